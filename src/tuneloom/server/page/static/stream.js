// Server-sent events by fetch: unlike EventSource it tells why a stream ended, and a new stream can
// begin where an old one broke off. Hidden tabs let go of their streams, since a browser has few.
import { Problem, address, problemOf } from "./api.js";

const FIRST_MS = 1000, MOST_MS = 15000, HIDDEN_MS = 30000;
// Servers speak at least every 15 s; a stream that is silent for longer is dead.
const SILENT_MS = 40000;

export class Stream {
  // `on` is called with (name, data); `tell` with "open", "lost" or "ended".
  constructor(path, query, on, tell) {
    Object.assign(this, { path, query, on, tell, last: "", wait: FIRST_MS, closed: false });
    this.wake = () => { this.wait = FIRST_MS; this.again?.(); };
    this.seen = () => this.visibility();
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.seen);
    this.run();
  }

  close() {
    this.closed = true;
    this.abort?.abort();
    this.again?.();
    clearTimeout(this.hiding);
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.seen);
  }

  visibility() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => { this.resting = true; this.abort?.abort(); }, HIDDEN_MS);
    else if (this.resting) { this.resting = false; this.wake(); }
  }

  async run() {
    while (!this.closed) {
      const ended = await this.once();
      if (this.closed) return;
      if (ended) { this.tell("ended"); this.close(); return; }
      if (!this.resting) this.tell("lost");
      await this.pause();
    }
  }

  pause() {
    return new Promise((resolve) => {
      this.again = resolve;
      if (!this.resting) setTimeout(resolve, this.wait * (0.75 + Math.random() / 2));
      this.wait = Math.min(MOST_MS, this.wait * 2);
    });
  }

  // Listens to one connection; whether there is nothing more to hear.
  async once() {
    this.abort = new AbortController();
    try {
      const headers = this.last ? { "Last-Event-ID": this.last } : {};
      const response = await fetch(address(this.path, this.query), { headers, signal: this.abort.signal, cache: "no-store" });
      if (!response.ok) throw await problemOf(response);
      this.wait = FIRST_MS;
      this.tell("open");
      return await this.read(response.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch (error) {
      return error instanceof Problem && error.status < 500 && error.status !== 429;
    } finally {
      clearTimeout(this.silence);
    }
  }

  async read(reader) {
    let rest = "";
    for (;;) {
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.abort.abort(), SILENT_MS);
      const { value, done } = await reader.read();
      if (done) return false;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) if (this.take(block)) return true;
    }
  }

  take(block) {
    const fields = Object.fromEntries(block.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
    }));
    if (fields.id) this.last = fields.id;
    if (!fields.data) return false;
    this.on(fields.event, JSON.parse(fields.data));
    return fields.event === "end";
  }
}
