// Jobs as rows of a table that are changed in place while they go on.
import { h, place, state } from "../dom.js";
import { compared } from "./job_parts.js";
import { NONE, about, ago, count, latency, moment, times } from "../format.js";

const meter = (spent, budget) => {
  const share = budget ? Math.min(1, spent / budget) : 0;
  return h("span", { class: "meter", role: "img", "aria-label": `${spent} of ${budget} trials` },
    h("span", { class: "filled", style: { width: `${share * 100}%` } }));
};

const progressOf = (job) => {
  const told = job.progress;
  if (job.status === "finished" || job.status === "cancelled" || job.status === "failed") {
    return h("span", { class: "quiet clip" }, job.failure || (job.status === "finished" ? "" : NONE));
  }
  if (!told) return h("span", { class: "quiet" }, `${count(job.trials)} trials`);
  return [meter(told.spent, told.budget), h("span", { class: "under" }, `${count(told.spent)} of ${count(told.budget)} · ${told.stage}`)];
};

const resultOf = (job) => {
  if (job.rival_ms) {
    return [h("strong", { class: "gain" }, compared(job)[0]), h("span", { class: "under" }, compared(job)[1])];
  }
  if (job.before_ms && job.after_ms) {
    return [h("strong", { class: "gain" }, times(job.before_ms / job.after_ms)), h("span", { class: "under" }, `${latency(job.before_ms)} → ${latency(job.after_ms)}`)];
  }
  const best = job.after_ms ?? job.progress?.best_ms;
  return [latency(best), job.goal_ms && h("span", { class: "under" }, `goal ${latency(job.goal_ms)}`)];
};

const endOf = (job) => {
  if (job.ended) return h("time", { datetime: new Date(job.ended * 1e3).toISOString(), title: moment(job.ended) }, ago(job.ended));
  const left = job.progress?.left_s;
  return left === null || left === undefined ? NONE : [`in ${about(left)}`.replace("in now", "any moment"), h("span", { class: "under" }, "expected")];
};

export class JobRows {
  constructor(showTenant) {
    this.showTenant = showTenant;
    this.known = new Map();
    this.bodies = { goingOn: h("tbody", { class: "going-on" }), ended: h("tbody") };
    const heads = ["Job", "State", "Progress", ["Latency", "number"], ["End", "number"], ["Submitted", "number wide-only"]];
    this.element = h("table", { class: "jobs" },
      h("caption", { class: "spoken" }, "Jobs: those that go on, then those that have ended, newest first"),
      h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col", class: Array.isArray(head) ? head[1] : null }, Array.isArray(head) ? head[0] : head)))),
      Object.values(this.bodies));
  }

  get size() { return this.known.size; }

  clear() {
    this.known.clear();
    Object.values(this.bodies).forEach((body) => body.replaceChildren());
  }

  has(id) { return this.known.has(id); }

  goingOn() { return [...this.known.values()].filter((row) => !row.job.ended).map((row) => row.job); }

  add(job) {
    if (this.known.has(job.id)) return this.change(job);
    const row = this.row(job);
    this.known.set(job.id, row);
    this.put(row);
  }

  change(job) {
    const row = this.known.get(job.id);
    if (!row) return;
    row.job = { ...row.job, ...job };
    row.draw();
    if (!this.bodyOf(row).contains(row.element)) this.put(row);
  }

  bodyOf(row) { return row.job.ended ? this.bodies.ended : this.bodies.goingOn; }

  // Jobs that go on come first, then those that have ended; the newest first in both.
  put(row) {
    const body = this.bodyOf(row);
    const older = [...body.rows].find((each) => this.known.get(each.dataset.job).job.created < row.job.created);
    body.insertBefore(row.element, older || null);
  }

  row(job) {
    const cell = (name) => h("td", { class: name });
    const cells = { name: cell("name"), state: cell("at"), progress: cell("progress"), result: cell("number result"), end: cell("number end"), since: cell("number wide-only since") };
    const parts = {
      name: place(cells.name, (id, name, device, tenant) => [h("a", { class: "row-link", href: `/jobs/${id}` }, name), h("span", { class: "under" }, [id, device, tenant].filter(Boolean).join(" · "))]),
      state: place(cells.state, (status) => state(status)),
      progress: place(cells.progress, progressOf),
      result: place(cells.result, resultOf),
      end: place(cells.end, (each) => endOf(each)),
      since: place(cells.since, (created) => h("time", { datetime: new Date(created * 1e3).toISOString(), title: moment(created) }, ago(created))),
    };
    const row = { job, element: h("tr", { data: { job: job.id } }, Object.values(cells)) };
    row.draw = () => {
      const now = row.job;
      parts.name(now.id, now.name, now.device, this.showTenant() ? now.tenant : "");
      parts.state(now.status);
      parts.progress(now);
      parts.result(now);
      parts.end(now);
      parts.since(now.created);
    };
    row.draw();
    return row;
  }
}
