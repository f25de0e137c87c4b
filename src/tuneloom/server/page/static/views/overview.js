// The overview: devices with what they run, and all jobs, live.
import { get } from "../api.js";
import { h, place, section } from "../dom.js";
import { count } from "../format.js";
import { Stream } from "../stream.js";
import { JobRows } from "./job_rows.js";
import { resources } from "./resources.js";

const PAGE = 50;
const MOST = 200; // jobs that an event of the stream tells of
const STATES = ["waiting", "running", "paused", "finished", "cancelled", "failed"];

class Overview {
  constructor({ shell, covers, query }) {
    this.shell = shell;
    this.filter = { status: query.get("status") || "", name: query.get("name") || "", model: query.get("model") || "", tenant: covers("administrator") ? query.get("tenant") || "*" : "" };
    this.rows = new JobRows(() => this.filter.tenant === "*");
    this.devices = resources();
    this.totals = h("dl", { class: "totals" });
    this.drawTotals = place(this.totals, (counts) => STATES.filter((name) => counts[name] || name === "running" || name === "waiting" || name === "finished")
      .map((name) => h("div", { class: `total ${name}` }, h("dt", null, name), h("dd", null, count(counts[name] || 0)))));
    this.more = h("button", { type: "button", class: "more", hidden: true, onclick: () => this.load() }, "Show more jobs");
    this.empty = h("p", { class: "remark", hidden: true });
    this.drawTotals({});
    this.devices.draw([]);
    this.content = [
      h("h1", null, "Overview"), this.totals,
      section("Devices", this.devices.element),
      section("Jobs", this.controls(covers), h("div", { class: "scroller" }, this.rows.element), this.empty, this.more),
    ];
  }

  controls(covers) {
    let waiting;
    const search = h("input", {
      type: "search", placeholder: "Search by name", "aria-label": "Search jobs by name", value: this.filter.name,
      oninput: () => { clearTimeout(waiting); waiting = setTimeout(() => this.refilter({ name: search.value.trim() }), 250); },
    });
    const states = h("select", { "aria-label": "State", onchange: () => this.refilter({ status: states.value }) },
      [["", "all states"], ...STATES.map((name) => [name, name])].map(([value, name]) => h("option", { value, selected: value === this.filter.status }, name)));
    this.tenants = covers("administrator") && h("select", { "aria-label": "Tenant", onchange: () => this.refilter({ tenant: this.tenants.value }) },
      h("option", { value: "*" }, "all tenants"));
    const model = this.filter.model && h("button", { type: "button", class: "chip", title: "Show all models", onclick: (event) => { event.target.remove(); this.refilter({ model: "" }); } }, `one model only ×`);
    return h("div", { class: "bar" }, h("div", { class: "controls" }, search, states, this.tenants, model),
      covers("submitter") && h("a", { href: "/submit", class: "button primary" }, "Submit a model"));
  }

  async load() {
    const asked = this.filter;
    const page = await get("/jobs", { ...asked, before: this.next, limit: PAGE });
    if (asked !== this.filter) return; // the answer to an earlier search
    page.jobs.forEach((job) => this.rows.add(job));
    this.next = page.next;
    this.more.hidden = page.next === null;
    this.empty.hidden = this.rows.size > 0;
    this.empty.textContent = this.filtered ? "No job fits this search." : "No jobs yet. Submit a model to begin.";
  }

  get filtered() { return Boolean(this.filter.status || this.filter.name || this.filter.model); }

  async refilter(change) {
    this.filter = { ...this.filter, ...change };
    const shown = Object.entries(this.filter).filter(([name, value]) => value && !(name === "tenant" && value === "*"));
    history.replaceState(null, "", shown.length ? `/?${new URLSearchParams(shown)}` : "/");
    this.next = undefined;
    this.rows.clear();
    await this.load().catch((error) => this.shell.failed(error));
    if (change.tenant !== undefined) this.listen();
  }

  listen() {
    this.stream?.close();
    this.stream = new Stream("/events", { tenant: this.filter.tenant }, (_name, told) => this.take(told), (how) => this.shell.connection(how));
  }

  take(told) {
    this.drawTotals(told.counts);
    this.devices.draw(told.devices);
    for (const job of told.jobs) if (!this.filtered || this.rows.has(job.id)) this.rows.add(job);
    this.empty.hidden = this.empty.hidden || this.rows.size > 0;
    const heard = new Set(told.jobs.map((job) => job.id));
    const oldest = told.jobs.length < MOST ? 0 : told.jobs[told.jobs.length - 1].created;
    this.rows.goingOn().filter((job) => job.created > oldest && !heard.has(job.id)).slice(0, PAGE).forEach((job) => this.ask(job.id));
  }

  // Jobs that the stream does not tell of any more have ended.
  async ask(id) {
    const job = await get(`/jobs/${id}`).catch(() => null);
    if (job) this.rows.change({ ...job, progress: null });
  }

  async start() {
    this.listen();
    await this.load().catch((error) => this.shell.failed(error));
    if (this.tenants) {
      const told = await get("/tenants").catch(() => ({ tenants: [] }));
      this.tenants.append(...told.tenants.map((tenant) => h("option", { value: tenant.name }, tenant.name)));
      this.tenants.value = this.filter.tenant;
    }
  }

  close() { this.stream?.close(); }
}

export default (context) => {
  const view = new Overview(context);
  return { title: "Overview", content: view.content, start: () => view.start(), close: () => view.close() };
};
