// What is known: kernels by class, and the best known of each on every kind of device.
import { get } from "../api.js";
import { fill, h, section } from "../dom.js";
import { count, digits, latency, percent } from "../format.js";

const FAST_MS = 250;

const head = (names) => h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col", class: Array.isArray(name) ? name[1] : null }, Array.isArray(name) ? name[0] : name))));

class Bank {
  constructor({ shell }) {
    Object.assign(this, { shell, filter: {} });
    this.body = h("tbody");
    this.search = h("input", { type: "search", placeholder: "Search kernels and shapes", "aria-label": "Search kernels and shapes", oninput: () => this.soon() });
    this.chosen = h("span");
    this.empty = h("p", { class: "remark", hidden: true }, "No kernel fits this search.");
    this.more = h("button", { type: "button", class: "more", hidden: true, onclick: () => this.load().catch((error) => this.shell.failed(error)) }, "Show more kernels");
  }

  async open() {
    this.rows = (await get("/bank")).rows;
    const total = (name) => this.rows.reduce((sum, each) => sum + each[name], 0);
    const totals = [["classes of kernels", new Set(this.rows.map((each) => each.kernel_class)).size], ["kernels", total("workloads")], ["measured", total("measured")], ["failed", total("failed")]];
    this.content = [
      h("h1", null, "Bank"),
      h("p", { class: "quiet" }, "Everything measured is kept, and later jobs begin with it."),
      h("dl", { class: "totals" }, totals.map(([name, value]) => h("div", { class: "total" }, h("dt", null, name), h("dd", null, count(value))))),
      section("Kernels by class", this.rows.length ? this.classes() : h("p", { class: "remark" }, "Nothing has been measured yet.")),
      section("Best known on each device", h("div", { class: "bar" }, h("div", { class: "controls" }, this.search, this.chosen)),
        h("div", { class: "scroller" }, h("table", { class: "list" }, head(["Kernel", "Class", "Device", ["Best", "number"], ["GFLOP/s", "number"], ["Measured", "number"]]), this.body)), this.empty, this.more),
    ];
    return this;
  }

  classes() {
    const most = Math.max(1, ...this.rows.map((each) => each.measured));
    return h("div", { class: "scroller" }, h("table", { class: "list" }, head(["Class", "Targets", ["Kernels", "number"], "", ["Measured", "number"], ["Failed", "number"]]),
      h("tbody", null, this.rows.map((each) => h("tr", null,
        h("td", { class: "name" }, h("button", { type: "button", class: "link", onclick: () => this.choose(each) }, each.kernel_class || "unnamed")),
        h("td", null, each.family), h("td", { class: "number" }, count(each.workloads)),
        h("td", null, h("div", { class: "meter", "aria-hidden": "true" }, h("span", { class: "filled", style: { width: `${(100 * each.measured) / most}%` } }))),
        h("td", { class: "number" }, count(each.measured)), h("td", { class: "number quiet" }, `${count(each.failed)}, ${percent(each.failed / Math.max(1, each.failed + each.measured))}`))))));
  }

  choose({ kernel_class, family }) {
    this.filter = { kernel_class, family };
    fill(this.chosen, h("button", { type: "button", class: "chip", title: "Show all classes", onclick: () => { this.filter = {}; fill(this.chosen); this.again(); } }, `${kernel_class} · ${family} ×`));
    this.again();
    document.getElementById("best-known-on-each-device").scrollIntoView({ block: "start" });
  }

  soon() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.again(), FAST_MS);
  }

  again() {
    this.next = undefined;
    this.body.replaceChildren();
    return this.load().catch((error) => this.shell.failed(error));
  }

  async load() {
    const mine = (this.asked = (this.asked || 0) + 1);
    const told = await get("/bank/kernels", { ...this.filter, text: this.search.value.trim(), after: this.next, limit: 50 });
    if (mine !== this.asked) return;
    this.body.append(...told.kernels.map((kernel) => this.row(kernel)));
    this.next = told.next;
    this.more.hidden = !told.next;
    this.empty.hidden = this.body.rows.length > 0;
  }

  row(kernel) {
    const pace = kernel.gflop && kernel.best_ms ? digits(kernel.gflop / (kernel.best_ms / 1e3)) : "–";
    return h("tr", null,
      h("td", { class: "name" }, h("strong", null, kernel.name), h("span", { class: "under" }, kernel.shapes)), h("td", null, kernel.kernel_class),
      h("td", null, kernel.device_key, h("span", { class: "under" }, kernel.family)), h("td", { class: "number strong" }, latency(kernel.best_ms)), h("td", { class: "number quiet" }, pace), h("td", { class: "number" }, count(kernel.measured)));
  }
}

export default async (context) => {
  const view = await new Bank(context).open();
  return { title: "Bank", content: view.content, start: () => view.again(), close: () => clearTimeout(view.waiting) };
};
