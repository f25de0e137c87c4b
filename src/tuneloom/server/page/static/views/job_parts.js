// Parts of the view of a job that only need what was told last.
import { h, s, state } from "../dom.js";
import { NONE, about, clock, count, duration, latency, moment, percent, times, words } from "../format.js";
import { linear, logarithmic } from "../charts/scales.js";

// Latencies as bars: [look, name, ms].
const bars = (rows) => {
  const shown = rows.filter(([, , ms]) => ms), longest = Math.max(...shown.map(([, , ms]) => ms), 0);
  const left = Math.max(...shown.map(([, name]) => name.length), 0) > 8 ? 92 : 56;
  const row = ([look, name, ms], at) => {
    const width = Math.max(2, (ms / longest) * (238 - left));
    return [s("text", { x: 0, y: 26 * at + 15, class: "tick left" }, name), s("rect", { x: left, y: 26 * at + 3, width, height: 16, rx: 2, class: look }), s("text", { x: left + width + 8, y: 26 * at + 15.5, class: "value left" }, latency(ms))];
  };
  const label = shown.map(([, name, ms]) => `${name} ${latency(ms)}`).join(", ");
  return longest > 0 && s("svg", { viewBox: `0 0 320 ${26 * shown.length - 4}`, class: "before-after", role: "img", "aria-label": label }, shown.map(row));
};

const card = (title, number, unit, ...rest) => h("article", { class: "card" }, h("h2", null, title),
  h("p", { class: "gain" }, h("span", { class: "big" }, number), h("span", { class: "unit" }, unit)), rest);

// How the bundle stands against what its user would run instead: a number and words.
export const compared = (job) => {
  const gain = job.rival_ms / job.beside_ms;
  if (gain < 1.05 && gain > 1 / 1.05) return [latency(job.beside_ms), `as fast as ${job.rival}`];
  return [times(gain >= 1 ? gain : 1 / gain), `${gain >= 1 ? "faster" : "slower"} than ${job.rival}`];
};

export const resultCard = (job, best, before) => {
  const after = job.after_ms ?? best, from = job.before_ms ?? before;
  const gain = from && after ? from / after : null, title = job.ended ? "Result" : "Result so far";
  const rows = [["before", "untuned", from], ["after", "tuned", after]];
  if (job.rival_ms) return card(title, ...compared(job), bars([["rival", job.rival, job.rival_ms], ["after", "tuned", job.beside_ms], ["before", "untuned", from]]));
  if (!gain) return card("Result", latency(after), after ? "best so far" : job.status === "waiting" ? "waits for an executor" : "no kernel is measured yet");
  return card(title, times(gain >= 1 ? gain : 1 / gain), gain >= 1 ? "faster than untuned" : "slower than untuned", bars(rows));
};

// What is expected of a goal or a deadline: while a job runs from what it found, before from earlier jobs.
const outlook = (job, picture) => {
  const words = job.ended ? "" : picture?.outlook || (job.status === "waiting" && job.expectation?.words) || "";
  return words && h("p", { class: "outlook" }, `${words[0].toUpperCase()}${words.slice(1)}.`);
};

const met = (value, is) => [value, is === true && h("span", { class: "chip strong" }, "met"), is === false && h("span", { class: "chip missed" }, "missed")];

export const progressCard = (job, picture, tried) => {
  const spent = Math.max(picture?.spent ?? 0, tried), budget = picture?.budget || job.trials;
  const left = picture?.left_s;
  // A job that met its goal is done, however few of its trials it needed.
  const share = job.status === "finished" ? 1 : budget ? Math.min(1, spent / budget) : 0;
  const stage = job.ended ? `took ${duration(job.ended - (job.started ?? job.created))}` : picture ? picture.stage : "waits for an executor";
  return card("Progress", percent(share), `${count(spent)} of ${count(budget)} trials`,
    h("div", { class: "meter tall", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": budget, "aria-valuenow": spent, "aria-label": "Trials" }, h("span", { class: "filled", style: { width: `${100 * share}%` } })),
    h("p", { class: "quiet" }, [stage, !job.ended && left !== null && left !== undefined && `expected to end in ${about(left)}`].filter(Boolean).join(" · ")),
    outlook(job, picture));
};

export const wantedCard = (job) => {
  const wants = [
    job.goal_ms && ["goal", met(latency(job.goal_ms), job.goal_met)], job.goal_ratio && ["goal", met(`${job.goal_ratio} × ONNX Runtime`, job.goal_met)], ["budget", `${count(job.trials)} trials`], job.seconds && ["at most", duration(job.seconds)],
    job.deadline_s && ["deadline", met(moment(job.created + job.deadline_s), job.deadline_met)], ["priority", String(job.priority)], ["device", job.device || "any"], ["target", job.target || NONE],
  ].filter(Boolean);
  return h("article", { class: "card" }, h("h2", null, "Asked for"), h("dl", { class: "wants" }, wants.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])));
};

export const heading = (job) => [
  state(job.status), h("code", null, job.id), h("span", null, job.tenant),
  h("span", null, `submitted ${moment(job.created)}`),
];

export const failures = (counted, total) => {
  const most = Math.max(...counted.values(), 1);
  const rows = [...counted].sort((a, b) => b[1] - a[1]);
  if (!rows.length) return h("p", { class: "remark" }, total ? `None of ${count(total)} trials failed.` : "No trial has failed.");
  return h("ul", { class: "failures" }, rows.map(([kind, number]) => h("li", null,
    h("span", null, words(kind)), h("span", { class: "meter bad", "aria-hidden": "true" }, h("span", { class: "filled", style: { width: `${(100 * number) / most}%` } })),
    h("span", { class: "number" }, count(number), h("span", { class: "quiet" }, ` ${percent(number / Math.max(1, total))}`)))));
};

const gifts = (listed) => {
  const gain = (gift) => (gift.before_ms && gift.after_ms ? gift.before_ms / gift.after_ms : null);
  return h("div", { class: "scroller" }, h("table", null,
    h("thead", null, h("tr", null, ["kernel", "schedule from", "learned in", "untuned", "with it", "gain", ""].map((head, at) => h("th", { scope: "col", class: at > 2 && at < 6 ? "number" : null }, head)))),
    h("tbody", null, listed.map((gift) => h("tr", null, h("td", null, gift.kernel), h("td", null, gift.donor), h("td", { class: "quiet" }, gift.source || NONE),
      h("td", { class: "number" }, latency(gift.before_ms)), h("td", { class: "number" }, latency(gift.after_ms)), h("td", { class: "number strong" }, times(gain(gift))),
      h("td", null, gift.used && h("span", { class: "chip strong" }, "in use")))))));
};

const FEW = 12;

// Those that the model uses, or the first ones until that is known; the others, of which there may be many, on demand.
export const reused = (all, open) => {
  if (!all.length) return h("p", { class: "remark" }, "No schedule of another kernel was tried.");
  const used = all.filter((gift) => gift.used), shown = used.length ? used : all.slice(0, FEW);
  const others = all.filter((gift) => !shown.includes(gift));
  return [gifts(shown), others.length > 0 && h("details", { open }, h("summary", null, `${count(others.length)} more that were tried`), gifts(others))];
};

export const facts = (told) => h("dl", { class: "facts" }, told.map((fact) => h("div", null, h("dt", null, fact.name), h("dd", null, fact.value))));

const RATIOS = [1, 1.02, 1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100];

// The canary's time against its quiet time: 1 is undisturbed, and up to 1.02 is what we call quiet.
export const canary = (points, label, nameOf) => {
  if (!points.length) return h("p", { class: "remark" }, "The canary kernel has not run.");
  const width = 640, height = 150, left = 44, bottom = 22;
  const moments = points.map(([at]) => at), ratios = points.map(([, ratio]) => ratio);
  const x = linear(Math.min(...moments), Math.max(...moments, Math.min(...moments) + 1), left + 6, width - 10);
  const top = Math.max(1.06, ...ratios), y = logarithmic(0.99, top, height - bottom, 8);
  const shown = RATIOS.filter((value) => value <= top).reduce((found, value) => (found.some((each) => Math.abs(y(each) - y(value)) < 14) ? found : [...found, value]), []);
  const dot = ([at, ratio]) => s("circle", { cx: x(at), cy: y(ratio), r: 3.2, class: ratio > 1.02 ? "dot loud" : "dot", data: { tip: `${nameOf(at)}\n${ratio.toFixed(3)} × its quiet time` } });
  return s("svg", { viewBox: `0 0 ${width} ${height}`, class: "canary", role: "img", "aria-label": `${label}: canary at ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} times its quiet time` },
    s("rect", { x: left, y: y(1.02), width: width - left, height: y(1) - y(1.02), class: "usual" }),
    shown.map((value) => [s("line", { x1: left, x2: width, y1: y(value), y2: y(value), class: "grid" }), s("text", { x: left - 6, y: y(value) + 4, class: "tick right" }, `${value}×`)]),
    points.map(dot),
    s("text", { x: left + 6, y: height - 4, class: "tick left" }, nameOf(Math.min(...moments))), s("text", { x: width, y: height - 4, class: "tick right" }, nameOf(Math.max(...moments))));
};

export const log = (entries) => (entries.length ? h("ol", { class: "log" }, entries.map((entry) => h("li", { class: entry.kind },
  h("time", { datetime: new Date(entry.at * 1e3).toISOString(), title: moment(entry.at) }, clock(entry.at)), h("span", { class: "what" }, entry.text), entry.detail && h("span", { class: "quiet detail" }, entry.detail)))) : h("p", { class: "remark" }, "Nothing has happened yet."));
