// What surrounds every view: the mark, navigation, who is logged in, the state of the connection.
import { send } from "./api.js";
import { show } from "./dialogs.js";
import { fill, h, s } from "./dom.js";
import { go } from "./router.js";

const MARK = "M3 9h18M3 15h18M9 3v4.5M9 10.5V21M15 3v10.5M15 16.5V21";
const PLACES = [
  { path: "/", name: "Overview", key: "o" },
  { path: "/submit", name: "Submit", key: "s", role: "submitter" },
  { path: "/models", name: "Models", key: "m" },
  { path: "/bank", name: "Bank", key: "b" },
  { path: "/devices", name: "Devices", key: "d" },
  { path: "/administration", name: "Administration", key: "a", role: "administrator" },
];
const ROLES = ["reader", "submitter", "administrator"];

export const covers = (session, role) => !role || ROLES.indexOf(session?.role) >= ROLES.indexOf(role);

export class Shell {
  constructor() {
    this.nav = h("nav", { "aria-label": "Main" });
    this.user = h("div", { class: "user" });
    this.banner = h("div", { class: "banner", role: "status", hidden: true });
    this.spoken = h("div", { class: "spoken", "aria-live": "polite" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    const mark = s("svg", { viewBox: "0 0 24 24", class: "logo", "aria-hidden": "true" }, s("path", { d: MARK }));
    this.header = h("header", { class: "shell" },
      h("a", { href: "/", class: "top", "aria-label": "Tuneloom, overview" }, mark, h("span", { class: "brand" }, "Tuneloom")),
      this.nav, this.user);
    document.getElementById("app").append(this.header, this.banner, this.spoken, this.main);
  }

  enter(session, path) {
    this.session = session;
    this.header.classList.toggle("alone", !session);
    const places = session ? PLACES.filter((place) => covers(session, place.role)) : [];
    const isHere = (place) => place.path === path || (place.path === "/" && path.startsWith("/jobs/"));
    fill(this.nav, places.map((place) => h("a", { href: place.path, "aria-current": isHere(place) ? "page" : null }, place.name)));
    fill(this.user, session && [
      h("span", { class: "who" }, h("strong", null, session.tenant), h("span", { class: "quiet" }, ` ${session.role}`)),
      h("button", { type: "button", "aria-label": "Keyboard shortcuts", class: "round", onclick: () => this.help() }, "?"),
      h("button", { type: "button", id: "log-out", onclick: () => this.logOut() }, "Log out"),
    ]);
    this.nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  async logOut() {
    await send("DELETE", "/session");
    location.assign("/login");
  }

  // Streams tell how they fare; people hear of it only when something is wrong, or well again.
  connection(how) {
    clearTimeout(this.hiding);
    if (how === "lost") {
      this.wasLost = true;
      this.banner.className = "banner lost";
      this.banner.textContent = "The connection is lost. What you see may be old; trying again…";
      this.banner.hidden = false;
    } else if (how === "open" && this.wasLost) {
      this.wasLost = false;
      this.banner.className = "banner back";
      this.banner.textContent = "Connected again. Everything is up to date.";
      this.hiding = setTimeout(() => { this.banner.hidden = true; }, 4000);
    }
  }

  failed(error) {
    if (error.name === "AbortError") return;
    this.banner.className = "banner lost";
    this.banner.textContent = error.message;
    this.banner.hidden = false;
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => { this.banner.hidden = true; }, 12000);
  }

  say(text) {
    this.spoken.textContent = text;
  }

  help() {
    const keys = [
      ...PLACES.filter((place) => covers(this.session, place.role)).map((place) => [`g ${place.key}`, place.name]),
      ["/", "search"], ["j, k", "next and previous job"], ["Enter", "open what has the focus"],
      ["← → + −", "move and zoom a timeline that has the focus"], ["Escape", "close"], ["?", "this list"],
    ];
    const toggle = h("input", { type: "checkbox", checked: shortcutsOn(), onchange: () => localStorage.setItem("shortcuts", toggle.checked ? "on" : "off") });
    show("Keyboard shortcuts",
      h("dl", { class: "keys" }, keys.map(([key, what]) => [h("dt", null, key.split(" ").map((each) => h("kbd", null, each))), h("dd", null, what)])),
      h("label", { class: "check" }, toggle, " Single-key shortcuts are on"));
  }

  listenToKeys() {
    let after = "";
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey || !this.session || !shortcutsOn()) return;
      const place = after === "g" && PLACES.find((each) => each.key === event.key && covers(this.session, each.role));
      after = event.key === "g" ? "g" : "";
      if (place) go(place.path);
      else if (event.key === "?") this.help();
      else if (event.key === "/" && this.search()) event.preventDefault();
      else if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
    });
  }

  search() {
    const box = this.main.querySelector("input[type=search]");
    box?.focus();
    return box;
  }

  step(by) {
    const rows = [...this.main.querySelectorAll("a.row-link")];
    const at = rows.indexOf(document.activeElement);
    rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
  }
}

const shortcutsOn = () => localStorage.getItem("shortcuts") !== "off";
