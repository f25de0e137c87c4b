// From values to places on a chart, and where an axis has ticks.
import { brief } from "../format.js";

export const linear = (low, high, start, end) => {
  const span = high - low || 1;
  return (value) => start + ((value - low) / span) * (end - start);
};

export const logarithmic = (low, high, start, end) => {
  const scale = linear(Math.log(low), Math.log(high), start, end);
  return (value) => scale(Math.log(value));
};

export const step = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => power * each >= rough * 0.999999);
};

export const ticks = (low, high, wanted) => {
  if (!(high > low)) return [low];
  const by = step((high - low) / wanted);
  const found = [];
  for (let k = Math.ceil(low / by - 1e-9); k * by <= high + by * 1e-9; k++) found.push(k * by);
  return found;
};

const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export const clockStep = (rough) => (rough <= 1 ? step(rough) : CLOCK.find((each) => each >= rough) || 86400 * Math.ceil(rough / 86400));

export const clock = (seconds, by) => {
  if (by >= 60) {
    const minutes = Math.round(seconds / 60);
    return minutes >= 60 ? `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")}` : `${minutes} min`;
  }
  if (seconds >= 60 && by >= 1) return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
  return `${brief(Number(seconds.toFixed(3)))} s`;
};
