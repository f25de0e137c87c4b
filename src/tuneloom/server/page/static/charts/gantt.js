// A timeline of resources that grows while a job runs. Wide spans are drawn as themselves, narrow ones
// gathered in columns that show which share of that time each kind of stage took, as in the report.
import { h, s } from "../dom.js";
import { clipped, duration } from "../format.js";
import { clock, clockStep } from "./scales.js";
import { layOut } from "./tracks.js";

const AXIS = 42, COLUMN = 2;
const KINDS = document.body.dataset.kinds.split(" ");
const LOOKS = 10;

export const lookOf = (kind, others) => {
  const known = KINDS.indexOf(kind);
  return known >= 0 ? known : KINDS.length + (others.indexOf(kind) % (LOOKS - KINDS.length));
};

export class Gantt {
  constructor(nameOf) {
    this.nameOf = nameOf;
    this.spans = [];
    this.resources = [];
    this.window = null;
    this.svg = s("svg", { class: "gantt", role: "img", tabindex: "0", "aria-label": "Timeline of resources" });
    this.legend = h("ul", { class: "legend" });
    this.element = h("div", null, h("div", { class: "bar" }, this.legend, this.buttons()), this.svg);
    this.listen();
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.element);
  }

  close() { this.sizes.disconnect(); }

  buttons() {
    const button = (label, name, act) => h("button", { type: "button", "aria-label": name, title: name, onclick: act }, label);
    return h("div", { class: "controls" },
      button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)),
      button("last minute", "Follow the last minute", () => { this.window = { last: 60 }; this.draw(); }),
      button("all", "Show everything", () => { this.window = null; this.draw(); }));
  }

  add(resources, spans) {
    this.resources = resources;
    this.spans.push(...spans);
    this.layout = layOut(this.resources, this.spans);
    this.end = this.spans.reduce((most, span) => Math.max(most, span.end_s), 0);
    const kinds = [...new Set(this.spans.map((span) => span.kind))];
    this.others = kinds.filter((kind) => !KINDS.includes(kind)).sort();
    this.drawLegend(kinds);
    this.draw();
  }

  drawLegend(kinds) {
    const order = [...KINDS.filter((kind) => kinds.includes(kind)), ...this.others];
    if (order.join() === this.ordered) return;
    this.ordered = order.join();
    this.legend.replaceChildren(...order.map((kind) => h("li", null,
      s("svg", { width: 18, height: 12, class: "swatch", "aria-hidden": "true" }, s("rect", { width: 18, height: 12, rx: 2, class: `k${lookOf(kind, this.others)}` })), kind)));
  }

  get range() {
    const end = Math.max(this.end || 0, 1e-3);
    if (!this.window) return [0, end];
    if (this.window.last) return [Math.max(0, end - this.window.last), end];
    return [this.window.from, Math.max(this.window.to, this.window.from + end / 1e6)];
  }

  zoom(factor, at) {
    const [from, to] = this.range;
    const middle = at ?? (from + to) / 2;
    this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  show(from, to) {
    const end = this.end || 1;
    this.window = from <= 0 && to >= end ? null : { from: Math.max(0, from), to: Math.min(end, to) };
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!this.layout || !width) return;
    const { tracks, height } = this.layout;
    this.left = width < 600 ? 78 : 132;
    [this.from, this.to] = this.range;
    this.scale = (width - this.left - 8) / (this.to - this.from);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height + AXIS}`);
    this.svg.setAttribute("height", height + AXIS);
    this.svg.replaceChildren(this.axis(width, height), ...tracks.map((track) => this.track(track, width)), this.marks(), this.brush = s("rect", { class: "brush", y: 0, height, width: 0 }));
  }

  axis(width, height) {
    const group = s("g");
    const by = clockStep((this.to - this.from) / Math.max(2, width / 130));
    for (let k = Math.ceil(this.from / by - 1e-9); k * by <= this.to + by * 1e-9; k++) {
      const x = this.x(k * by);
      group.append(s("line", { x1: x, x2: x, y1: 0, y2: height + 5, class: "grid" }), s("text", { x, y: height + 19, class: "tick" }, clock(k * by, by)));
    }
    group.append(s("text", { x: (this.left + width) / 2, y: height + 37, class: "axis-name" }, "time since the job started"));
    return group;
  }

  track(track, width) {
    const letters = this.left < 100 ? 10 : 17;
    const group = s("g", null,
      s("rect", { x: this.left, y: track.top, width: width - this.left - 8, height: track.height, class: "idle" }),
      s("text", { x: this.left - 9, y: track.top + track.height / 2 + (track.resource.device_key ? -2 : 4), class: "row-name" }, clipped(track.resource.name, letters)),
      track.resource.device_key && s("text", { x: this.left - 9, y: track.top + track.height / 2 + 13, class: "row-detail" }, clipped(track.resource.device_key, letters)));
    for (const [gone, back] of track.resource.away || []) {
      const from = Math.max(gone, this.from), to = Math.min(back ?? this.to, this.to);
      if (to <= from) continue;
      const tip = `${track.resource.name} was lost for ${duration((back ?? this.end) - gone)}\n${track.resource.why_away || ""}`;
      group.append(s("rect", { x: this.x(from), y: track.top, width: (to - from) * this.scale, height: track.height, class: "away", data: { tip } }));
    }
    return group;
  }

  x(time) { return this.left + (time - this.from) * this.scale; }

  marks() {
    const group = s("g", { class: "marks" });
    const columns = new Map();
    for (const placed of this.layout.placed) {
      const { span } = placed;
      if (span.start_s > this.to || span.end_s < this.from) continue;
      if ((span.end_s - span.start_s) * this.scale >= 1) group.append(...this.wide(placed));
      else this.gather(columns, placed);
    }
    for (const column of columns.values()) this.column(group, column);
    return group;
  }

  wide({ span, track, row }) {
    const a = Math.max(span.start_s, this.from), b = Math.min(span.end_s, this.to);
    const y = track.top + row * track.rowHeight, height = track.rowHeight * span.slots, width = Math.max(0.5, (b - a) * this.scale);
    const waited = span.ready_s === null ? 0 : span.start_s - span.ready_s;
    const tip = [`${span.kind} · ${span.resource}`, this.nameOf(span.task), `${duration(span.end_s - span.start_s)}, from ${span.start_s.toFixed(2)} s on`, waited > 1e-4 && `waited ${duration(waited)}`].filter(Boolean).join("\n");
    const mark = s("rect", { x: this.x(a), y, width, height, class: `k${lookOf(span.kind, this.others)} mark`, data: { tip } });
    if (width < 46 || height < 13) return [mark];
    return [mark, s("text", { x: this.x(a) + width / 2, y: y + height / 2 + 3.5, class: "bar-label" }, span.kind.slice(0, Math.floor(width / 7)))];
  }

  gather(columns, { span, track, row }) {
    const at = Math.floor(((span.start_s - this.from) * this.scale) / COLUMN);
    const key = `${track.resource.name}/${row}/${at}`;
    if (!columns.has(key)) columns.set(key, { track, row, at, count: 0, shares: new Map() });
    const column = columns.get(key);
    column.count += 1;
    column.shares.set(span.kind, (column.shares.get(span.kind) || 0) + span.end_s - span.start_s);
  }

  column(group, { track, row, at, count, shares }) {
    let bottom = track.top + (row + 1) * track.rowHeight;
    for (const [kind, busy] of [...shares].sort()) {
      const height = Math.max(0.5, track.rowHeight * Math.min(1, (busy * this.scale) / COLUMN));
      bottom -= height;
      const tip = `${track.resource.name}\n${count} short stages here, zoom in to see them\n${kind}: ${duration(busy)}`;
      group.append(s("rect", { x: Math.max(this.left, this.left + at * COLUMN), y: bottom, width: COLUMN, height, class: `s${lookOf(kind, this.others)} mark gathered`, data: { tip } }));
    }
  }

  timeAt(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    return Math.max(this.from, Math.min(this.to, this.from + (x - this.left) / this.scale));
  }

  listen() {
    let began = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      began = this.timeAt(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (began === null) return;
      const now = this.timeAt(event);
      this.brush.setAttribute("x", this.x(Math.min(began, now)));
      this.brush.setAttribute("width", Math.abs(now - began) * this.scale);
    });
    this.svg.addEventListener("pointerup", (event) => {
      if (began === null) return;
      const now = this.timeAt(event), first = began;
      began = null;
      if (Math.abs(now - first) * this.scale > 6) this.show(Math.min(first, now), Math.max(first, now));
    });
    this.svg.addEventListener("dblclick", () => this.show(0, Infinity));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const width = this.to - this.from;
    const move = { ArrowLeft: -0.25, ArrowRight: 0.25 }[event.key];
    if (move) this.show(Math.max(0, Math.min(this.end - width, this.from + move * width)), Math.min(this.end, Math.max(width, this.to + move * width)));
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.show(0, Infinity);
    else return;
    event.preventDefault();
  }
}
