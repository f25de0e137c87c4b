// What is known: kernels by class and family of targets.
import { get } from "../api.js";
import { h, section } from "../dom.js";
import { count, percent } from "../format.js";

const row = (each, most) => h("tr", null,
  h("td", { class: "name" }, h("strong", null, each.kernel_class || "unnamed")),
  h("td", null, each.family),
  h("td", { class: "number" }, count(each.workloads)),
  h("td", null, h("div", { class: "meter", "aria-hidden": "true" }, h("span", { class: "filled", style: { width: `${(100 * each.measured) / most}%` } }))),
  h("td", { class: "number" }, count(each.measured)),
  h("td", { class: "number quiet" }, `${count(each.failed)} failed, ${percent(each.failed / Math.max(1, each.failed + each.measured))}`));

export default async ({ covers }) => {
  if (!covers("administrator")) {
    return { title: "Bank", content: [h("h1", null, "Bank"), section("Records", h("p", { class: "remark" }, "The bank covers all tenants, so only administrators see it. Jobs use it all the same."))] };
  }
  const { rows } = await get("/bank");
  const most = Math.max(1, ...rows.map((each) => each.measured));
  const total = (name) => rows.reduce((sum, each) => sum + each[name], 0);
  const totals = [["classes of kernels", new Set(rows.map((each) => each.kernel_class)).size], ["kernels", total("workloads")], ["measured", total("measured")], ["failed", total("failed")]];
  return {
    title: "Bank",
    content: [
      h("h1", null, "Bank"),
      h("dl", { class: "totals" }, totals.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, count(value))))),
      section("Kernels by class", rows.length ? h("div", { class: "scroller" }, h("table", { class: "list" },
        h("thead", null, h("tr", null, ["Class", "Targets"].map((head) => h("th", { scope: "col" }, head)), h("th", { scope: "col", class: "number" }, "Kernels"), h("th", { scope: "col" }, ""), h("th", { scope: "col", class: "number" }, "Measured"), h("th", { scope: "col", class: "number" }, ""))),
        h("tbody", null, rows.map((each) => row(each, most))))) : h("p", { class: "remark" }, "Nothing has been measured yet.")),
    ],
  };
};
