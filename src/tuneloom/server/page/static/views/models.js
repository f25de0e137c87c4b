// The models of a tenant.
import { get, send } from "../api.js";
import { confirm } from "../dialogs.js";
import { h, section, state } from "../dom.js";
import { NONE, ago, bytes, moment } from "../format.js";
import { shapeText } from "./upload.js";

class Models {
  constructor({ shell, covers }) {
    Object.assign(this, { shell, covers });
    this.body = h("tbody");
    this.empty = h("p", { class: "remark", hidden: true }, "No models yet. Drop one on the page Submit.");
    this.more = h("button", { type: "button", class: "more", hidden: true, onclick: () => this.load() }, "Show more models");
    const heads = ["Model", "State", "Inputs", ["Size", "number"], ["Uploaded", "number"], ""];
    this.content = [h("h1", null, "Models"), section("Uploaded models", h("div", { class: "scroller" }, h("table", { class: "list" },
      h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col", class: Array.isArray(head) ? head[1] : null }, Array.isArray(head) ? head[0] : head)))), this.body)), this.empty, this.more)];
  }

  async load() {
    const told = await get("/models", { before: this.next, limit: 50 });
    this.body.append(...told.models.map((model) => this.row(model)));
    this.next = told.next;
    this.more.hidden = told.next === null;
    this.empty.hidden = this.body.rows.length > 0;
    return this;
  }

  row(model) {
    const inputs = Object.entries(model.summary.inputs || {});
    const row = h("tr", null,
      h("td", { class: "name" }, h("strong", null, model.name), h("span", { class: "under" }, h("code", null, model.digest.slice(0, 12)), model.summary.nodes ? ` · ${model.summary.nodes} nodes` : "")),
      h("td", null, state(model.state), model.summary.reason && h("span", { class: "under" }, model.summary.reason)),
      h("td", null, inputs.length ? inputs.slice(0, 4).map(([name, sizes]) => h("div", null, h("code", null, `${name} ${shapeText(sizes)}`))) : NONE, inputs.length > 4 && h("span", { class: "under" }, `and ${inputs.length - 4} more`)),
      h("td", { class: "number" }, bytes(model.size_bytes)),
      h("td", { class: "number" }, h("time", { title: moment(model.created) }, ago(model.created))),
      h("td", { class: "number" }, h("div", { class: "row-actions" }, h("a", { class: "button", href: `/?model=${model.digest}` }, "Jobs"),
        this.covers("submitter") && model.state !== "refused" && model.summary.format !== "npz" && h("a", { class: "button", href: `/submit?model=${model.digest}` }, "Submit"),
        this.covers("submitter") && h("button", { type: "button", class: "danger", "aria-label": `Remove ${model.name}`, onclick: () => this.remove(model, row) }, "Remove"))));
    return row;
  }

  async remove(model, row) {
    if (!(await confirm("Remove this model?", `${model.name} is removed from the server. Bundles that were made of it stay.`, "Remove the model"))) return;
    try {
      await send("DELETE", `/models/${model.digest}`);
      row.remove();
    } catch (error) { this.shell.failed(error); }
  }
}

export default async (context) => {
  const view = await new Models(context).load();
  return { title: "Models", content: view.content };
};
