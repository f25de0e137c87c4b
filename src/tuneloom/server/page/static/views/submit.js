// Submitting a job: a model, where it shall run, what is wanted, and what may be expected.
import { get, send } from "../api.js";
import { field } from "../dialogs.js";
import { fill, h, section } from "../dom.js";
import { about, bytes, count, latency } from "../format.js";
import { go } from "../router.js";
import { Chooser } from "./upload.js";

const openSizes = (sizes) => sizes.some((size) => typeof size !== "number");

class Submit {
  constructor({ shell, query }, own, keys) {
    Object.assign(this, { shell, own, model: null });
    this.chooser = new Chooser(own.accepts, (model) => this.choose(model));
    this.chosen = query.get("model");
    const number = (name, extra) => h("input", { type: "number", name, id: name, ...extra });
    this.inputs = {
      name: h("input", { type: "text", name: "name", id: "name", maxlength: 100, autocomplete: "off" }),
      device: h("select", { name: "device", id: "device" }, h("option", { value: "" }, "the target's own"), keys.map((key) => h("option", { value: key }, key))),
      target: h("input", { type: "text", name: "target", id: "target", list: "targets", placeholder: "cpu", autocomplete: "off" }),
      goal_ms: number("goal_ms", { min: 0, step: "any", placeholder: "none" }),
      goal_ratio: number("goal_ratio", { min: 0, step: "any", placeholder: "none" }),
      trials: number("trials", { min: 1, step: 1, value: 1000 }),
      minutes: number("minutes", { min: 0, step: "any", placeholder: "no limit" }),
      deadline: h("input", { type: "datetime-local", name: "deadline", id: "deadline" }),
      priority: number("priority", { step: 1, value: 0, min: -own.quota.most_priority, max: own.quota.most_priority }),
      reuse: h("select", { name: "reuse", id: "reuse" }, ["auto", "off", "transfer", "share", "transfer-only"].map((value) => h("option", { value }, value))),
      seed: number("seed", { min: 0, step: 1, placeholder: "any" }),
    };
    this.shapes = h("div", { class: "shapes" });
    this.problem = h("p", { class: "message", role: "alert", hidden: true });
    this.button = h("button", { class: "primary big-button", type: "submit", id: "submit", disabled: true }, "Submit");
    this.expected = h("div", { class: "expected", "aria-live": "polite" });
    this.form = h("form", { class: "submit", novalidate: true, onsubmit: (event) => this.submit(event), oninput: () => this.changed() });
    this.fillForm();
  }

  fillForm() {
    const given = this.inputs;
    fill(this.form,
      h("div", { class: "steps" },
        section("1. The model", this.chooser.element, this.shapes, field("Name of the job", given.name, "for people; the model's name if left empty")),
        section("2. Where it runs", h("div", { class: "fields" }, field("Target", given.target, "cpu, cuda, or a TVM target"), field("Device", given.device, "measured on this kind of device")), h("datalist", { id: "targets" }, ["cpu", "cuda"].map((value) => h("option", { value })))),
        section("3. What is wanted",
          h("div", { class: "fields" }, field("Goal, ms", given.goal_ms, "ends as soon as the model is this fast"), field("Goal, × ONNX Runtime", given.goal_ratio, "0.8: at most 80 % of its time"), field("Trials, at most", given.trials), field("Minutes, at most", given.minutes)),
          h("details", null, h("summary", null, "More"), h("div", { class: "fields" }, field("Wanted by", given.deadline), field("Priority", given.priority, `from −${this.own.quota.most_priority} to ${this.own.quota.most_priority}`), field("Reuse of schedules", given.reuse), field("Random seed", given.seed))))),
      h("aside", { class: "card" }, h("h2", null, "What to expect"), this.expected, this.problem, this.button, this.quota()));
  }

  quota() {
    const { quota } = this.own;
    const left = (used, most) => count(Math.max(0, most - used));
    return h("dl", { class: "wants" }, h("dt", null, "jobs left"), h("dd", null, left(quota.used_jobs, quota.jobs_at_once)),
      h("dt", null, "trials left today"), h("dd", null, left(quota.used_trials, quota.trials_a_day)),
      h("dt", null, "room for files"), h("dd", null, bytes(Math.max(0, quota.bytes_stored - quota.used_bytes))));
  }

  choose(model) {
    this.model = model;
    this.button.disabled = !model;
    const open = Object.entries(model?.summary.inputs || {}).filter(([, sizes]) => openSizes(sizes));
    fill(this.shapes, open.map(([name, sizes]) => field(`Shape of ${name}`,
      h("input", { type: "text", data: { input: name }, placeholder: sizes.join(", "), inputmode: "numeric", required: true }), "the model leaves it open; numbers with commas between")));
    this.changed();
  }

  changed() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.expect(), 350);
  }

  // The job as the API wants it; what is left empty is left out.
  body() {
    const text = (name) => this.inputs[name].value.trim() || undefined;
    const number = (name) => (this.inputs[name].value === "" ? undefined : Number(this.inputs[name].value));
    const minutes = number("minutes"), deadline = text("deadline");
    const shapes = [...this.shapes.querySelectorAll("input")].filter((input) => input.value.trim()).map((input) => [input.dataset.input, input.value.split(",").map((size) => (size.includes("..") ? size.trim() : Number(size)))]);
    return {
      model: this.model?.digest, name: text("name"), device: text("device"), target: text("target"), trials: number("trials"),
      goal_ms: number("goal_ms"), goal_ratio: number("goal_ratio"), seconds: minutes === undefined ? undefined : minutes * 60, priority: number("priority"), seed: number("seed"),
      reuse: this.inputs.reuse.value === "auto" ? undefined : this.inputs.reuse.value,
      deadline_s: deadline ? Math.max(1, (new Date(deadline) - Date.now()) / 1e3) : undefined,
      shapes: shapes.length ? Object.fromEntries(shapes) : undefined,
    };
  }

  async expect() {
    if (!this.model) return fill(this.expected, h("p", { class: "quiet" }, "Choose a model to see what it may take."));
    const mine = (this.asked = (this.asked || 0) + 1);
    const told = await send("POST", "/jobs/expectation", this.body()).catch((error) => error);
    if (mine !== this.asked) return;
    this.tell(told instanceof Error ? told : null);
    if (!(told instanceof Error)) this.drawExpected(told);
  }

  drawExpected(told) {
    const range = (value, show) => value && `${show(value.expected)} (${show(value.low)} to ${show(value.high)})`;
    const rows = [["latency", range(told.latency_ms, latency)], ["known already", told.known_ms && latency(told.known_ms)], ["time of tuning", range(told.seconds, about)], ["trials", `at most ${count(Number(this.inputs.trials.value || 1000))}`]].filter(([, value]) => value);
    fill(this.expected, h("dl", { class: "wants" }, rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
      told.words && h("p", { class: "quiet" }, `${told.words[0].toUpperCase()}${told.words.slice(1)}.`),
      told.jobs > 0 && h("p", { class: "hint" }, `From ${count(told.jobs)} earlier ${told.jobs === 1 ? "job" : "jobs"}.`));
  }

  tell(error) {
    this.form.querySelectorAll("[aria-invalid]").forEach((input) => input.removeAttribute("aria-invalid"));
    this.problem.hidden = !error;
    if (!error) return;
    this.problem.textContent = error.message;
    const wrong = this.inputs[{ seconds: "minutes", deadline_s: "deadline" }[error.field] || error.field];
    wrong?.setAttribute("aria-invalid", "true");
    wrong?.closest("details")?.setAttribute("open", "");
    return wrong;
  }

  async submit(event) {
    event.preventDefault();
    if (!this.model) return;
    this.button.disabled = true;
    try {
      const job = await send("POST", "/jobs", this.body());
      await go(`/jobs/${job.id}`);
    } catch (error) {
      this.tell(error)?.focus();
      this.button.disabled = false;
    }
  }

  start() {
    this.expect();
    this.chooser.load(this.chosen).catch((error) => this.shell.failed(error));
  }
}

export default async (context) => {
  const [own, devices, history] = await Promise.all([get("/self"), get("/devices"), get("/devices/history")]);
  const keys = [...new Set([...devices.devices.map((device) => device.key), ...history.devices.map((device) => device.key)].filter(Boolean))].sort();
  const view = new Submit(context, own, keys);
  return { title: "Submit", content: [h("h1", null, "Submit a model"), view.form], start: () => view.start(), close: () => { clearTimeout(view.waiting); view.chooser.close(); } };
};
