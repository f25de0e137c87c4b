// Tenants, tokens and the audit log, for administrators.
import { get, send } from "../api.js";
import { ask, confirm, field, show } from "../dialogs.js";
import { fill, h, section } from "../dom.js";
import { NONE, ago, bytes, count, moment } from "../format.js";

const LIMITS = [
  ["weight", "Weight", "share of devices against other tenants", { min: 0.001, max: 1000, step: "any" }],
  ["jobs_at_once", "Jobs at once", "", { min: 0, step: 1 }],
  ["trials_a_day", "Trials a day", "", { min: 0, step: 1 }],
  ["bytes_stored", "Bytes stored", "models and bundles", { min: 0, step: 1 }],
  ["most_priority", "Highest priority", "", { min: 0, step: 1 }],
];

const table = (heads, rows, name) => h("div", { class: "scroller" }, h("table", { class: "list" }, h("caption", { class: "spoken" }, name),
  h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col", class: Array.isArray(head) ? head[1] : null }, Array.isArray(head) ? head[0] : head)))), h("tbody", null, rows)));

const used = (now, most, text) => h("td", { class: "number" }, text(now), h("span", { class: "under" }, `of ${text(most)}`));

class Administration {
  constructor({ shell }) {
    this.shell = shell;
    this.places = { tenants: h("div"), tokens: h("div") };
    this.audit = h("tbody");
    this.more = h("button", { type: "button", class: "more", hidden: true, onclick: () => this.loadAudit() }, "Show more");
    const add = (name, act) => h("div", { class: "bar" }, h("span"), h("button", { type: "button", class: "primary", onclick: act }, name));
    this.content = [
      h("h1", null, "Administration"),
      section("Tenants", add("New tenant", () => this.editTenant(null)), this.places.tenants),
      section("Tokens", add("New token", () => this.newToken()), this.places.tokens),
      section("Audit log", h("div", { class: "scroller" }, h("table", { class: "list audit" }, h("thead", null, h("tr", null, ["When", "Tenant", "Token", "Action", "Subject", "Detail"].map((head) => h("th", { scope: "col" }, head)))), this.audit)), this.more),
    ];
  }

  async load() {
    const [tenants, tokens] = await Promise.all([get("/tenants"), get("/tokens")]);
    Object.assign(this, { tenants: tenants.tenants, tokens: tokens.tokens });
    this.draw();
    this.next = undefined;
    this.audit.replaceChildren();
    await this.loadAudit();
    return this;
  }

  draw() {
    fill(this.places.tenants, table(["Tenant", ["Weight", "number"], ["Jobs", "number"], ["Trials today", "number"], ["Stored", "number"], ["Priority up to", "number"], "Shares records", ""],
      this.tenants.map((tenant) => h("tr", null, h("td", { class: "name" }, h("strong", null, tenant.name)), h("td", { class: "number" }, String(tenant.weight)), used(tenant.used_jobs, tenant.jobs_at_once, count), used(tenant.used_trials, tenant.trials_a_day, count),
        used(tenant.used_bytes, tenant.bytes_stored, bytes), h("td", { class: "number" }, String(tenant.most_priority)), h("td", null, tenant.shares_records ? "yes" : "no"),
        h("td", { class: "number" }, h("button", { type: "button", "aria-label": `Change ${tenant.name}`, onclick: () => this.editTenant(tenant) }, "Change")))), "Tenants"));
    fill(this.places.tokens, table(["Token", "Tenant", "Role", ["Created", "number"], ["Expires", "number"], ""],
      this.tokens.map((token) => this.tokenRow(token)), "Tokens"));
  }

  tokenRow(token) {
    const dead = token.revoked !== null || (token.expires !== null && token.expires * 1e3 < Date.now());
    return h("tr", { class: dead ? "dead" : null }, h("td", { class: "name" }, h("strong", null, token.name), h("span", { class: "under" }, h("code", null, token.id))), h("td", null, token.tenant), h("td", null, token.role),
      h("td", { class: "number" }, h("time", { title: moment(token.created) }, ago(token.created))), h("td", { class: "number" }, token.revoked !== null ? "revoked" : token.expires === null ? "never" : moment(token.expires)),
      h("td", { class: "number" }, !dead && h("button", { type: "button", class: "danger", "aria-label": `Revoke ${token.name}`, onclick: () => this.revoke(token) }, "Revoke")));
  }

  async loadAudit() {
    const told = await get("/audit", { before: this.next, limit: 50 });
    this.audit.append(...told.entries.map((entry) => h("tr", null, h("td", { class: "nowrap" }, h("time", { title: ago(entry.at) }, moment(entry.at))), h("td", null, entry.tenant), h("td", null, h("code", null, entry.token)), h("td", { class: "nowrap" }, entry.action),
      h("td", null, h("code", null, entry.subject.slice(0, 40))), h("td", { class: "quiet" }, Object.entries(entry.detail).map(([name, value]) => `${name} ${value}`).join(", ") || NONE))));
    this.next = told.next;
    this.more.hidden = told.next === null;
  }

  editTenant(tenant) {
    const name = !tenant && h("input", { type: "text", name: "name", required: true, pattern: "[a-z0-9][a-z0-9\\-]{0,39}", autofocus: true, autocomplete: "off" });
    const inputs = LIMITS.map(([key, , , extra]) => h("input", { type: "number", name: key, ...extra, value: tenant ? tenant[key] : "", placeholder: "default" }));
    const shares = h("input", { type: "checkbox", name: "shares_records", checked: tenant?.shares_records });
    ask(tenant ? `Change ${tenant.name}` : "New tenant",
      [name && field("Name", name, "small letters, digits and dashes"), h("div", { class: "fields" }, LIMITS.map(([, label, hint], at) => field(label, inputs[at], hint))), h("label", { class: "check" }, shares, " Its records help other tenants")],
      tenant ? "Change" : "Create", async () => {
        const body = Object.fromEntries(inputs.filter((input) => input.value !== "").map((input) => [input.name, Number(input.value)]));
        body.shares_records = shares.checked;
        if (tenant) await send("PATCH", `/tenants/${tenant.name}`, body); else await send("POST", "/tenants", { name: name.value, ...body });
        await this.load();
      });
  }

  newToken() {
    const tenant = h("select", { name: "tenant" }, this.tenants.map((each) => h("option", { value: each.name }, each.name)));
    const name = h("input", { type: "text", name: "name", required: true, maxlength: 200, autofocus: true, autocomplete: "off" });
    const role = h("select", { name: "role" }, ["submitter", "reader", "administrator"].map((each) => h("option", { value: each }, each)));
    const days = h("input", { type: "number", name: "days", min: 0, step: "any", placeholder: "never expires" });
    ask("New token", [field("Tenant", tenant), field("What it is for", name), field("Role", role), field("Days", days)], "Create", async () => {
      const made = await send("POST", "/tokens", { tenant: tenant.value, name: name.value, role: role.value, days: days.value === "" ? null : Number(days.value) });
      await this.load();
      this.showToken(made);
    });
  }

  showToken(made) {
    const text = h("input", { type: "text", class: "secret", readonly: true, value: made.token, "aria-label": "The new token", onfocus: () => text.select() });
    const copied = h("span", { class: "quiet", role: "status" });
    show(`Token ${made.name}`, h("p", null, "Copy it now: it is shown this once and kept nowhere."), text,
      h("p", null, h("button", { type: "button", onclick: async () => { text.select(); await navigator.clipboard?.writeText(made.token); copied.textContent = " copied"; } }, "Copy"), copied));
  }

  async revoke(token) {
    if (!(await confirm("Revoke this token?", `${token.name} of ${token.tenant} opens nothing any more; everybody who logged in with it is logged out.`, "Revoke the token"))) return;
    try {
      await send("DELETE", `/tokens/${token.id}`);
      await this.load();
    } catch (error) { this.shell.failed(error); }
  }
}

export default async (context) => {
  const view = await new Administration(context).load();
  return { title: "Administration", content: view.content };
};
