// Choosing a model: dropped, chosen as a file, one that is there already, or one known by its name.
import { get, upload } from "../api.js";
import { fill, h, state } from "../dom.js";
import { bytes, percent } from "../format.js";

const LOOK_MS = 700;

export const shapeText = (sizes) => `[${sizes.join(", ")}]`;

export const inputsTable = (inputs) => h("table", { class: "inputs" },
  h("thead", null, h("tr", null, h("th", { scope: "col" }, "input"), h("th", { scope: "col" }, "shape"))),
  h("tbody", null, Object.entries(inputs).map(([name, sizes]) => h("tr", null, h("td", null, h("code", null, name)), h("td", null, h("code", null, shapeText(sizes)))))));

export class Chooser {
  // `onModel` is called with the chosen model, or null; a model known by its name is {digest: name}.
  constructor(accepts, onModel) {
    Object.assign(this, { accepts, onModel, stop: new AbortController() });
    this.file = h("input", { type: "file", id: "file", class: "spoken", accept: accepts.formats.join(","), onchange: () => this.take(this.file.files[0]) });
    this.told = h("div", { class: "told", "aria-live": "polite" });
    this.zone = h("label", { class: "drop", for: "file" }, h("strong", null, "Drop a model here"), h("span", { class: "quiet" }, `or choose a file: ${accepts.formats.join(", ")}, up to ${bytes(accepts.most_model_bytes)}`));
    this.known = h("select", { id: "known", "aria-label": "A model that was uploaded before", onchange: () => this.pick(this.known.value) }, h("option", { value: "" }, "a model uploaded before"));
    this.named = h("input", { type: "text", id: "named", placeholder: "zoo:resnet18", "aria-label": "The name of a model", autocomplete: "off", oninput: () => this.name(this.named.value.trim()) });
    this.element = h("div", { class: "chooser" }, this.file, this.zone, h("div", { class: "alternatives" }, h("span", { class: "quiet" }, "or"), this.known, h("span", { class: "quiet" }, "or a name"), this.named), this.told);
    this.listen();
  }

  listen() {
    const over = (event) => { event.preventDefault(); this.zone.classList.add("over"); };
    this.zone.addEventListener("dragover", over);
    this.zone.addEventListener("dragenter", over);
    this.zone.addEventListener("dragleave", () => this.zone.classList.remove("over"));
    this.zone.addEventListener("drop", (event) => {
      event.preventDefault();
      this.zone.classList.remove("over");
      this.take(event.dataTransfer.files[0]);
    });
  }

  close() { this.stop.abort(); }

  async load(chosen) {
    const told = await get("/models", { limit: 100 });
    this.known.append(...told.models.filter((model) => model.state !== "refused" && model.summary.format !== "npz").map((model) => h("option", { value: model.digest }, `${model.name}, ${bytes(model.size_bytes)}`)));
    if (!chosen) return;
    if (/^[0-9a-f]{64}$/.test(chosen)) { this.known.value = chosen; await this.pick(chosen); }
    else { this.named.value = chosen; this.name(chosen); }
  }

  name(text) {
    this.known.value = "";
    fill(this.told);
    this.onModel(text ? { digest: text, name: text, state: "ready", summary: {} } : null);
  }

  async pick(digest) {
    this.named.value = "";
    if (digest) await this.follow(await get(`/models/${digest}`));
    else { fill(this.told); this.onModel(null); }
  }

  async take(file) {
    if (!file) return;
    this.named.value = this.known.value = "";
    const filled = h("span", { class: "filled" });
    const words = h("p", { class: "quiet" }, `Uploading ${file.name}…`);
    fill(this.told, h("div", { class: "meter tall" }, filled), words);
    this.onModel(null);
    try {
      const model = await upload(file, (share) => { filled.style.width = percent(share).replace(" ", ""); }, this.stop.signal);
      await this.follow(model);
    } catch (error) {
      if (error.name !== "AbortError") fill(this.told, h("p", { class: "message", role: "alert" }, error.message));
    }
    this.file.value = "";
  }

  // A file is looked into by the server before anything is known of it.
  async follow(model) {
    let now = model;
    while (now.state === "checking" && !this.stop.signal.aborted) {
      fill(this.told, h("p", null, h("strong", null, now.name), " ", state("checking")), h("p", { class: "quiet" }, "The server looks into the file…"));
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      now = await get(`/models/${now.digest}`);
    }
    this.show(now);
    this.onModel(now.state === "ready" ? now : null);
  }

  show(model) {
    const { summary } = model;
    fill(this.told,
      h("p", { class: "chosen" }, h("strong", null, model.name), " ", state(model.state), h("span", { class: "quiet" }, ` ${bytes(model.size_bytes)}`, summary.nodes && `, ${summary.nodes} nodes`, summary.opset && `, opset ${summary.opset}`)),
      model.state === "refused" && h("p", { class: "message", role: "alert" }, `This file can't be tuned: ${summary.reason || "unknown reason"}`),
      summary.inputs && inputsTable(summary.inputs));
  }
}
