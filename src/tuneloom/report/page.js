"use strict";
(() => {
  const tip = document.getElementById("tip");

  const showTip = (text, event) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
    const below = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 16;
    tip.style.left = Math.max(4, right) + "px";
    tip.style.top = Math.max(4, below) + "px";
  };

  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element && event.target.closest("[data-tip], [data-i], [data-row]");
    const text = mark && (mark.dataset.tip || (chart && chart.describe(mark)));
    if (text) showTip(text, event);
    else tip.hidden = true;
  });
  const hideTip = () => { tip.hidden = true; };
  document.addEventListener("pointerleave", hideTip);
  addEventListener("scroll", hideTip, { passive: true });

  const seconds = (s) => {
    if (s >= 3600) return Math.floor(s / 3600) + " h " + String(Math.floor((s % 3600) / 60)).padStart(2, "0") + " min";
    if (s >= 120) return Math.floor(s / 60) + " min " + String(Math.floor(s % 60)).padStart(2, "0") + " s";
    return s >= 1 ? s.toPrecision(3) + " s" : (s * 1000).toPrecision(3) + " ms";
  };

  const step = (rough) => {
    const whole = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
    if (rough > 5) return whole.find((s) => s >= rough) || 86400 * Math.ceil(rough / 86400);
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((f) => power * f >= rough * 0.999999);
  };

  const clock = (s, by) => {
    if (by >= 60) {
      const minutes = Math.round(s / 60);
      return minutes >= 60 ? Math.floor(minutes / 60) + " h " + String(minutes % 60).padStart(2, "0") : minutes + " min";
    }
    if (s >= 60 && by >= 1) return Math.floor(s / 60) + ":" + String(Math.floor(s % 60)).padStart(2, "0") + " min";
    return s.toFixed(by >= 1 ? 0 : by >= 0.1 ? 1 : 3) + " s";
  };

  const SVG = "http://www.w3.org/2000/svg";
  const draw = (parent, name, attributes, text) => {
    const mark = document.createElementNS(SVG, name);
    for (const key in attributes) mark.setAttribute(key, attributes[key]);
    if (text !== undefined) mark.textContent = text;
    parent.appendChild(mark);
    return mark;
  };

  // The same rules as the drawing in the file: wide spans as themselves, narrow ones gathered in columns.
  class Gantt {
    constructor(svg, data) {
      Object.assign(this, data);
      this.svg = svg;
      this.marks = svg.querySelector("#gantt-marks");
      this.axis = svg.querySelector("#gantt-axis");
      this.brush = svg.querySelector("#gantt-brush");
      [this.left, this.width, this.height] = data.plot;
      this.byNumber = new Map(data.spans.map((span) => [span[8], span]));
      this.job = "";
      this.show(0, this.end);
    }

    show(from, to) {
      const least = this.end / 1e6;
      this.from = Math.max(0, Math.min(from, this.end - least));
      this.to = Math.min(this.end, Math.max(to, this.from + least));
      this.scale = this.width / (this.to - this.from);
      this.drawAxis();
      this.drawSpans();
      this.moveAbsences();
    }

    moveAbsences() {
      for (const mark of this.svg.querySelectorAll(".away")) {
        const a = Math.max(Number(mark.dataset.from), this.from), b = Math.min(Number(mark.dataset.to), this.to);
        mark.setAttribute("x", this.left + Math.max(0, a - this.from) * this.scale);
        mark.setAttribute("width", Math.max(0, b - a) * this.scale);
      }
    }

    zoom(factor, at) {
      const middle = at === undefined ? (this.from + this.to) / 2 : at;
      this.show(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
    }

    drawAxis() {
      this.axis.replaceChildren();
      const by = step((this.to - this.from) / 9);
      for (let k = Math.ceil(this.from / by - 1e-9); k * by <= this.to + by * 1e-9; k++) {
        const x = this.left + (k * by - this.from) * this.scale;
        draw(this.axis, "line", { x1: x, x2: x, y1: 0, y2: this.height + 5, class: "grid" });
        draw(this.axis, "text", { x, y: this.height + 19, class: "tick" }, clock(k * by, by));
      }
    }

    drawSpans() {
      const group = document.createDocumentFragment();
      const columns = new Map();
      for (const span of this.spans) {
        const [row, start, length, kind, job, , , slots] = span;
        if (start > this.to || start + length < this.from) continue;
        if (this.job && this.jobs[job][0] !== this.job) continue;
        if (length * this.scale >= 1) this.drawWide(group, span);
        else for (let r = row; r < row + slots; r++) this.gather(columns, r, start, kind, length);
      }
      for (const column of columns.values()) this.drawColumn(group, column);
      this.marks.replaceChildren(group);
    }

    drawWide(group, [row, start, length, kind, job, , , slots, number]) {
      const a = Math.max(start, this.from), b = Math.min(start + length, this.to);
      const x = this.left + (a - this.from) * this.scale, width = Math.max(0.5, (b - a) * this.scale);
      const [y, one] = this.rows[row], height = one * slots;
      draw(group, "rect", { x, y, width, height, class: "k" + this.kinds[kind][1] + " mark", "data-i": number });
      if (width < 46 || height < 13) return;
      const letters = Math.floor(width / 7), name = this.kinds[kind][0];
      const whole = this.jobs.length > 1 ? name + " · " + this.jobs[job][1] : name;
      const text = whole.length <= letters ? whole : name.slice(0, letters);
      draw(group, "text", { x: x + width / 2, y: y + height / 2 + 3.5, class: "bar-label" }, text);
    }

    gather(columns, row, start, kind, length) {
      const place = Math.floor(((start - this.from) * this.scale) / 2);
      const key = row + "/" + place;
      if (!columns.has(key)) columns.set(key, { row, place, count: 0, shares: new Map() });
      const column = columns.get(key);
      column.count += 1;
      column.shares.set(kind, (column.shares.get(kind) || 0) + length);
    }

    drawColumn(group, { row, place, count, shares }) {
      const [top, height] = this.rows[row], x = Math.max(this.left, this.left + place * 2);
      let bottom = top + height;
      for (const [kind, busy] of [...shares].sort((a, b) => a[0] - b[0])) {
        const tall = Math.max(0.5, height * Math.min(1, (busy * this.scale) / 2));
        bottom -= tall;
        draw(group, "rect", {
          x, y: bottom, width: 2, height: tall, class: "s" + this.kinds[kind][1] + " mark gathered",
          "data-row": row, "data-kind": kind, "data-count": count, "data-busy": busy,
        });
      }
    }

    describe(mark) {
      if (mark.dataset.row !== undefined) {
        const { row, kind, count, busy } = mark.dataset;
        return this.rows[row][2] + "\n" + count + " short stages here, zoom in to see them\n" + this.kinds[kind][0] + ": " + seconds(+busy);
      }
      const span = this.byNumber.get(+mark.dataset.i);
      if (!span) return "";
      const [row, start, length, kind, job, task, wait] = span;
      const lines = [this.kinds[kind][0] + " · " + this.rows[row][2], this.jobs[job][1]];
      if (this.tasks[task]) lines.push(this.tasks[task]);
      lines.push(seconds(length) + ", from " + start.toFixed(2) + " s on");
      if (wait > 0) lines.push("waited " + seconds(wait));
      return lines.join("\n");
    }

    timeAt(event) {
      const box = this.svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * this.svg.viewBox.baseVal.width;
      return this.from + Math.max(0, Math.min(this.width, x - this.left)) / this.scale;
    }

    listen() {
      let began = null;
      const x = (time) => this.left + (time - this.from) * this.scale;
      this.svg.addEventListener("pointerdown", (event) => { if (event.button === 0) began = this.timeAt(event); });
      addEventListener("pointermove", (event) => {
        if (began === null) return;
        const now = this.timeAt(event);
        this.brush.setAttribute("x", x(Math.min(began, now)));
        this.brush.setAttribute("width", Math.abs(x(now) - x(began)));
      });
      addEventListener("pointerup", (event) => {
        if (began === null) return;
        const now = this.timeAt(event), first = began;
        began = null;
        this.brush.setAttribute("width", 0);
        if (Math.abs(x(now) - x(first)) > 6) this.show(Math.min(first, now), Math.max(first, now));
      });
      this.svg.addEventListener("dblclick", () => this.show(0, this.end));
      this.svg.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event));
      }, { passive: false });
      document.getElementById("zoom-in").addEventListener("click", () => this.zoom(0.5));
      document.getElementById("zoom-out").addEventListener("click", () => this.zoom(2));
      document.getElementById("zoom-reset").addEventListener("click", () => this.show(0, this.end));
      const picker = document.getElementById("gantt-job");
      if (picker) picker.addEventListener("change", () => { this.job = picker.value; this.drawSpans(); });
    }
  }

  const ganttData = document.getElementById("gantt-data");
  const chart = ganttData && new Gantt(document.getElementById("gantt-chart"), JSON.parse(ganttData.textContent));
  if (chart) chart.listen();

  for (const button of document.querySelectorAll("[data-opens]")) {
    button.addEventListener("click", () => {
      document.getElementById(button.dataset.opens).classList.add("open");
      button.remove();
    });
  }

  const value = (row, column) => row.children[column].dataset.v;
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const x = value(a, column), y = value(b, column);
        return x === "" || y === "" || !down ? compare(x, y) : -compare(x, y);
      });
      table.tBodies[0].append(...rows);
    }));
  }
})();
