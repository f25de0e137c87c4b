// The kernels of a job before and after: bars for the dearest, and all of them in a table that sorts.
import { fill, h } from "../dom.js";
import { NONE, count, latency, percent, times } from "../format.js";

const MOST_BARS = 12;
const COLUMNS = [
  ["kernel", "name"], ["class", "kernel_class"], ["shapes", "shapes"], ["weight", "weight"], ["trials", "trials"], ["failed", "failed"],
  ["before", "before_ms"], ["after", "after_ms"], ["speed-up", "gain"],
];
const NUMBERS = new Set(["weight", "trials", "failed", "before_ms", "after_ms", "gain"]);

// What the server told of a kernel, with what its trials came to since.
const merged = (task, seen) => {
  const before = task.before_ms ?? (seen?.before_s ? seen.before_s * 1e3 : null);
  const after = task.after_ms !== null && !seen ? task.after_ms : seen?.best_s ? Math.min(seen.best_s * 1e3, task.after_ms ?? Infinity) : task.after_ms;
  return { ...task, trials: seen?.trials ?? task.trials, failed: seen?.failed ?? task.failed, before_ms: before, after_ms: after, gain: before && after ? before / after : null };
};

const cost = (task) => task.weight * (task.before_ms || task.after_ms || 0);

const bar = (task, longest, total) => {
  const share = (ms) => `${Math.min(100, (100 * task.weight * (ms || 0)) / longest)}%`;
  return h("li", { class: "kernel" },
    h("span", { class: "kernel-name", title: `${task.name}\n${task.shapes}` }, task.name, task.weight > 1 && h("span", { class: "quiet" }, ` ×${task.weight}`)),
    h("span", { class: "bars", role: "img", "aria-label": `${latency(task.before_ms)} before, ${latency(task.after_ms)} after` },
      h("span", { class: "was", style: { width: share(task.before_ms) } }), h("span", { class: "is", style: { width: share(task.after_ms) } })),
    h("span", { class: "number strong" }, times(task.gain)),
    h("span", { class: "number quiet" }, percent(total ? cost(task) / total : 0)));
};

export class Kernels {
  constructor() {
    this.bars = h("ol", { class: "kernels" });
    this.remark = h("p", { class: "remark" });
    this.body = h("tbody");
    this.order = ["cost", true];
    this.heads = new Map(COLUMNS.map(([name, key]) => [key, h("th", { scope: "col", class: NUMBERS.has(key) ? "number" : null },
      h("button", { type: "button", onclick: () => this.sortBy(key) }, name))]));
    this.element = h("div", null,
      h("ul", { class: "legend" }, h("li", null, h("span", { class: "key was" }), "before"), h("li", null, h("span", { class: "key is" }), "best so far"), h("li", { class: "quiet" }, "time × weight; speed-up; fraction of the model before")),
      this.bars, this.remark,
      h("details", null, h("summary", null, "All kernels"), h("div", { class: "scroller" }, h("table", { class: "tasks" }, h("thead", null, h("tr", null, [...this.heads.values()])), this.body))));
  }

  sortBy(key) {
    this.order = [key, this.order[0] === key ? !this.order[1] : NUMBERS.has(key)];
    for (const [each, head] of this.heads) {
      if (each === key) head.setAttribute("aria-sort", this.order[1] ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.rows();
  }

  set(tasks, seen) {
    this.tasks = tasks.map((task) => merged(task, seen.get(task.key)));
    const dearest = [...this.tasks].filter((task) => cost(task) > 0).sort((a, b) => cost(b) - cost(a));
    const total = dearest.reduce((sum, task) => sum + cost(task), 0);
    const longest = Math.max(...dearest.map((task) => task.weight * Math.max(task.before_ms || 0, task.after_ms || 0)), 1e-12);
    fill(this.bars, dearest.slice(0, MOST_BARS).map((task) => bar(task, longest, total)));
    const rest = dearest.slice(MOST_BARS);
    this.remark.textContent = rest.length ? `${count(rest.length)} more kernels account for ${percent(rest.reduce((sum, task) => sum + cost(task), 0) / total)}.`
      : dearest.length ? "" : tasks.length ? "No kernel has been measured yet." : "The model has not been opened yet.";
    this.rows();
  }

  rows() {
    const [key, down] = this.order;
    const value = (task) => (key === "cost" ? cost(task) : task[key]);
    const compare = (a, b) => {
      const x = value(a), y = value(b);
      if (x === null || y === null) return (x === null) - (y === null);
      return (typeof x === "string" ? x.localeCompare(y) : x - y) * (down ? -1 : 1);
    };
    fill(this.body, [...(this.tasks || [])].sort(compare).map((task) => h("tr", null,
      h("td", null, task.name), h("td", null, task.kernel_class), h("td", { class: "quiet" }, task.shapes || NONE),
      h("td", { class: "number" }, task.weight), h("td", { class: "number" }, count(task.trials)), h("td", { class: "number" }, count(task.failed)),
      h("td", { class: "number" }, latency(task.before_ms)), h("td", { class: "number" }, latency(task.after_ms)), h("td", { class: "number strong" }, times(task.gain)))));
  }
}
