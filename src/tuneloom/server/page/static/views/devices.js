// Devices: what they do now, how quiet they were, when they were lost and returned.
import { get } from "../api.js";
import { fill, h, section } from "../dom.js";
import { about, ago, clock, moment } from "../format.js";
import { Stream } from "../stream.js";
import { canary } from "./job_parts.js";
import { resources } from "./resources.js";

const absence = (each) => h("li", null, h("strong", null, each.name), ` was lost ${moment(each.since)}`,
  each.until === null ? h("span", { class: "state failed" }, "away") : h("span", { class: "quiet" }, `, returned after ${about(each.until - each.since)}`),
  each.reason && h("span", { class: "under" }, each.reason));

const device = (told) => section(told.key,
  h("p", { class: "quiet" }, `${told.names.join(", ")} · last used ${ago(told.last_seen)}`),
  h("h3", null, "Canary"),
  h("p", { class: "remark" }, "A small kernel of known speed, run between measurements: above the band, somebody else disturbed the device."),
  canary(told.canary, told.key, (at) => `${moment(at).replace(/,[^,]*$/, "")}, ${clock(at)}`),
  h("h3", null, "Lost and returned"),
  told.absences.length ? h("ul", { class: "absences" }, [...told.absences].reverse().slice(0, 30).map(absence)) : h("p", { class: "remark" }, "Never lost."));

export default async ({ shell, covers }) => {
  const told = await get("/devices/history");
  const now = resources();
  const past = h("div");
  now.draw([]);
  fill(past, told.devices.length ? told.devices.map(device) : section("History", h("p", { class: "remark" }, "No job has used a device yet.")));
  let stream;
  return {
    title: "Devices",
    content: [h("h1", null, "Devices"), section("Now", now.element), past],
    start: () => { stream = new Stream("/events", covers("administrator") ? { tenant: "*" } : null, (_name, event) => now.draw(event.devices), (how) => shell.connection(how)); },
    close: () => stream?.close(),
  };
};
