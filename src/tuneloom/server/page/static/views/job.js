// One job, live: its timeline, curves, kernels, failures, what it reused, its log, and what can be done to it.
import { get, send } from "../api.js";
import { Curve } from "../charts/curve.js";
import { Gantt } from "../charts/gantt.js";
import { ask, confirm, field } from "../dialogs.js";
import { fill, h, place, section } from "../dom.js";
import { bytes, count, duration, latency } from "../format.js";
import { Stream } from "../stream.js";
import * as parts from "./job_parts.js";
import { Trials } from "./job_trials.js";
import { Kernels } from "./kernels.js";

const EVERY_MS = 2000;
const LOG_EVERY = 3, FACTS_EVERY = 15; // rounds

class Job {
  constructor({ shell, covers, name }) {
    Object.assign(this, { shell, covers, id: name, trials: new Trials(), tasks: [], names: new Map(), lastSpan: 0, round: 0 });
    this.gantt = new Gantt((task) => this.names.get(task) || task);
    this.curve = new Curve({ label: "Best latency of the model", xName: "trials", yName: "ms" });
    this.kernels = new Kernels();
    this.places = Object.fromEntries(["about", "actions", "cards", "failures", "reused", "measured", "log", "message", "estimated"].map((each) => [each, h("div", { class: each })]));
    this.drawActions = place(this.places.actions, (status, priority, bundle) => this.actions(status, priority, bundle));
  }

  async open() {
    this.job = await get(`/jobs/${this.id}`);
    this.picture = this.job.progress?.jobs?.[0] ?? null;
    this.content = [
      h("p", { class: "crumb" }, h("a", { href: "/" }, "← Overview")),
      h("div", { class: "job-head" }, h("div", null, h("h1", null, this.job.name), this.places.about), this.places.actions),
      this.places.message, this.places.cards,
      section("Timeline of resources", this.gantt.element),
      section("Progress", this.curve.element, this.places.estimated),
      section("Kernels before and after", this.kernels.element),
      h("div", { class: "pair" }, section("Failures", this.places.failures), section("Log", this.places.log)),
      section("Reused schedules", this.places.reused),
      section("How it was measured", this.places.measured),
    ];
    this.places.about.className = "about";
    this.places.cards.className = "cards";
    this.drawJob();
    return this;
  }

  start() {
    this.stream = new Stream(`/jobs/${this.id}/events`, null, (name, told) => this.take(name, told), (how) => this.shell.connection(how));
    this.refresh();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stream?.close();
    this.gantt.close();
    this.curve.close();
  }

  take(name, told) {
    if (name === "trials") this.trials.add(told.trials);
    else if (name === "view") this.know(told.job, told.view);
    else if (name === "end") { this.know(told, null); this.finish(); }
    this.changed = true;
    this.soon ??= requestAnimationFrame(() => { this.soon = null; this.drawJob(); });
  }

  know(job, view) {
    this.job = { ...this.job, ...job };
    // Events tell the old priority until an executor has granted the wish for another.
    if (this.job.priority === this.wished) this.wished = undefined;
    this.job.priority = this.wished ?? this.job.priority;
    if (view) this.picture = view.jobs?.[0] ?? this.picture;
  }

  // What the stream does not tell comes by asking, while something changes; one round after another.
  refresh() {
    clearTimeout(this.timer);
    this.rounds = (this.rounds ?? Promise.resolve()).then(() => this.ask());
    return this.rounds;
  }

  async ask() {
    if (this.closed) return;
    if (this.changed !== false && !document.hidden) {
      this.changed = false;
      const at = this.round++;
      const wanted = [this.moreSpans(), this.moreTasks(), at % LOG_EVERY === 0 && this.moreLog(), at % FACTS_EVERY === 0 && this.moreFacts()];
      await Promise.all(wanted).catch((error) => this.quietly(error));
      this.drawJob();
    }
    clearTimeout(this.timer);
    if (!this.job.ended && !this.closed) this.timer = setTimeout(() => this.refresh(), EVERY_MS);
  }

  quietly(error) {
    if (error.status && error.status < 500) this.shell.failed(error);
    this.changed = true;
  }

  async finish() {
    this.shell.say(`Job ${this.job.status}`);
    const told = await get(`/jobs/${this.id}`).catch(() => null);
    if (told) this.job = told;
    this.finished = true;
    this.changed = true;
    this.round = 0;
    await this.refresh();
  }

  async moreSpans() {
    for (let complete = false; !complete && !this.closed;) {
      const told = await get(`/jobs/${this.id}/timeline`, { after: this.lastSpan });
      complete = told.complete;
      if (told.spans.length) this.lastSpan = told.spans[told.spans.length - 1].id;
      if (told.spans.length || told.resources.length) this.gantt.add(told.resources, told.spans);
    }
  }

  async moreTasks() {
    const strange = [...this.trials.tasks.keys()].some((key) => !this.trials.knows(key));
    if (this.tasks.length && !strange && !this.finished) return;
    this.tasks = (await get(`/jobs/${this.id}/tasks`)).tasks;
    this.tasks.forEach((task) => this.names.set(task.key, task.name));
    this.trials.know(this.tasks);
  }

  async moreLog() {
    const log = await get(`/jobs/${this.id}/log`);
    fill(this.places.log, parts.log(log.entries));
  }

  async moreFacts() {
    const provenance = await get(`/jobs/${this.id}/provenance`);
    fill(this.places.reused, parts.reused(provenance.reused, this.places.reused.querySelector("details")?.open));
    fill(this.places.measured, parts.facts(provenance.facts), h("p", { class: "remark" }, "The canary, a fixed kernel that is timed between batches, against its fastest time: high points tell that something disturbed the measurements."), parts.canary(provenance.canary, this.job.device, (at) => duration(at)));
  }

  drawJob() {
    const { job, trials } = this;
    const before = trials.untuned;
    const best = trials.curve[trials.curve.length - 1]?.[1] ?? null;
    fill(this.places.about, parts.heading(job));
    fill(this.places.message, job.failure && h("p", { class: "message", role: "alert" }, job.failure));
    fill(this.places.cards, parts.resultCard(job, best, before), parts.progressCard(job, this.picture, trials.count), parts.wantedCard(job));
    this.drawActions(job.status, job.priority, job.bundle);
    const lines = [before && { value: before, name: "untuned", look: "untuned" }, job.goal_ms && { value: job.goal_ms, name: `goal ${latency(job.goal_ms)}`, look: "goal" }].filter(Boolean);
    this.curve.reached = trials.count;
    this.curve.remark = job.ended ? "no kernel was measured" : "begins with the first measurement";
    fill(this.places.estimated, trials.curve.length > 0 && trials.estimated > 0 && h("p", { class: "remark" }, `${count(trials.estimated)} of ${count(this.tasks.length)} kernels were not measured: their untuned time is estimated from their number of operations.`));
    this.curve.set(trials.curve, lines, job.ended ? trials.count : Math.max(job.trials, trials.count));
    this.kernels.set(this.tasks, trials.tasks);
    fill(this.places.failures, parts.failures(trials.failures, trials.count));
  }

  actions(status, priority, bundle) {
    const ended = ["finished", "cancelled", "failed"].includes(status);
    const may = this.covers("submitter") && !ended;
    const button = (name, id, act, look) => h("button", { type: "button", id, class: look, onclick: act }, name);
    return [
      may && status !== "paused" && button("Pause", "pause", () => this.wish("pause", "Pausing…")),
      may && status === "paused" && button("Resume", "resume", () => this.wish("resume", "Going on…"), "primary"),
      may && button(`Priority ${priority}`, "priority", () => this.prioritise()),
      may && button("Cancel", "cancel", () => this.cancel(), "danger"),
      h("a", { class: "button", href: `/api/v1/jobs/${this.id}/report`, target: "_blank", rel: "noopener" }, "Full report"),
      bundle && h("a", { class: "button primary", id: "download", href: `/api/v1/jobs/${this.id}/bundle`, download: `${this.id}.tar.gz` }, `Download bundle, ${bytes(bundle.size_bytes)}`),
      this.covers("submitter") && ended && h("a", { class: "button", href: `/submit?model=${encodeURIComponent(this.job.model)}` }, "Submit again"),
    ];
  }

  async wish(what, said) {
    try {
      await send("POST", `/jobs/${this.id}/${what}`);
      this.shell.say(said);
      this.changed = true;
      this.round = 0;
    } catch (error) { this.shell.failed(error); }
  }

  async cancel() {
    if (await confirm("Cancel this job?", `${this.job.name} ends now, after ${count(this.trials.count)} trials. What it measured is kept for later jobs.`, "Cancel the job")) await this.wish("cancel", "Cancelling…");
  }

  prioritise() {
    const input = h("input", { type: "number", name: "priority", value: this.job.priority, step: 1, required: true, autofocus: true });
    ask("Priority", field("Jobs with a higher priority go first", input), "Change", async () => {
      const told = await send("PATCH", `/jobs/${this.id}`, { priority: Number(input.value) });
      this.wished = Number(input.value);
      this.job = { ...this.job, ...told, priority: this.wished };
      this.drawJob();
    });
  }
}

export default async (context) => {
  const view = await new Job(context).open();
  return { title: view.job.name, content: view.content, start: () => view.start(), close: () => view.close() };
};
