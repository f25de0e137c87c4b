// A line of steps on two axes, with a goal to reach and a value to beat; redrawn when it grows.
import { h, s } from "../dom.js";
import { brief, latency } from "../format.js";
import { linear, ticks } from "./scales.js";

const LEFT = 58, RIGHT = 16, TOP = 12, BOTTOM = 44;

export class Curve {
  constructor({ label, xName, yName, height = 260 }) {
    Object.assign(this, { xName, yName, height, points: [], lines: [], remark: "" });
    this.svg = s("svg", { role: "img", class: "curve-chart" });
    this.label = label;
    this.element = h("div", { class: "chart" }, this.svg);
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.element);
  }

  close() { this.sizes.disconnect(); }

  // Points are [trial, ms]; lines are {value, name, look}; `until` is how far the axis goes.
  set(points, lines, until) {
    Object.assign(this, { points, lines, until });
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    const height = this.points.length ? this.height : 80;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    const values = [...this.points.map(([, value]) => value), ...this.lines.map((line) => line.value)];
    if (!this.points.length) return this.svg.replaceChildren(s("text", { x: width / 2, y: height / 2, class: "axis-name" }, this.remark));
    const low = 0, high = Math.max(...values) * 1.06;
    const across = linear(0, Math.max(this.until, 1), LEFT, width - RIGHT), up = linear(low, high, this.height - BOTTOM, TOP);
    this.svg.replaceChildren(this.axes(across, up, high, width), ...this.lines.map((line) => this.line(line, up, width)), this.steps(across, up), ...this.dots(across, up));
    const last = this.points[this.points.length - 1];
    this.svg.setAttribute("aria-label", `${this.label}: ${latency(this.points[0][1])} at trial ${this.points[0][0]}, ${latency(last[1])} at trial ${last[0]}`);
  }

  axes(across, up, high, width) {
    const group = s("g");
    const bottom = this.height - BOTTOM;
    for (const value of ticks(0, high, 5)) {
      const y = up(value);
      group.append(s("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: "grid" }), s("text", { x: LEFT - 8, y: y + 4, class: "tick right" }, brief(value)));
    }
    for (const value of ticks(0, Math.max(this.until, 1), Math.max(2, width / 130))) {
      if (value % 1) continue;
      group.append(s("text", { x: across(value), y: bottom + 17, class: "tick" }, brief(value)));
    }
    group.append(
      s("line", { x1: LEFT, x2: width - RIGHT, y1: bottom, y2: bottom, class: "axis" }),
      s("text", { x: (LEFT + width - RIGHT) / 2, y: bottom + 36, class: "axis-name" }, this.xName),
      s("text", { x: 14, y: (TOP + bottom) / 2, class: "axis-name", transform: `rotate(-90 14 ${(TOP + bottom) / 2})` }, this.yName));
    return group;
  }

  line({ value, name, look }, up, width) {
    const y = up(value);
    return s("g", null, s("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: look }), s("text", { x: width - RIGHT - 4, y: y - 5, class: "tick right" }, name));
  }

  steps(across, up) {
    const [first, ...rest] = this.points;
    const path = rest.map(([x, y]) => `H${across(x).toFixed(1)}V${up(y).toFixed(1)}`).join("");
    return s("path", { d: `M${across(first[0]).toFixed(1)} ${up(first[1]).toFixed(1)}${path}H${across(Math.max(this.reached ?? 0, this.points[this.points.length - 1][0])).toFixed(1)}`, class: "curve line0" });
  }

  dots(across, up) {
    return this.points.slice(-400).map(([x, y]) => s("circle", { cx: across(x), cy: up(y), r: 5, class: "point", data: { tip: `trial ${x}\n${latency(y)}` } }));
  }
}
