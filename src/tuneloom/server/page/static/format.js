// Numbers as people read them; the same rules as the report's.
const THIN = "\u2009";
const UNITS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];

export const NONE = "–";

export const count = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, THIN);

export const digits = (value) => {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 99.95) return count(value);
  return value.toFixed(size >= 9.995 ? 1 : 2);
};

export const brief = (value) => {
  const text = digits(value);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
};

export const duration = (seconds) => {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  if (seconds >= 2 * 86400) return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${two((seconds % 3600) / 60)} min`;
  if (seconds >= 120) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each * 0.9995) || (seconds ? UNITS[3] : UNITS[0]);
  return `${digits(seconds / size)} ${unit}`;
};

export const latency = (ms) => (ms === null || ms === undefined ? NONE : duration(ms / 1e3));

// How long something takes from now on: nobody wants to know tenths of a second.
export const about = (seconds) => {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  if (seconds < 1) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${brief(Math.round(seconds / 360) / 10)} h`;
  return `${Math.round(seconds / 86400)} d`;
};

export const times = (ratio) => (ratio && Number.isFinite(ratio) ? `${digits(ratio)}×` : NONE);

export const percent = (share) => {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return share < 0.0995 ? `${brief(share * 100)} %` : `${Math.round(share * 100)} %`;
};

export const bytes = (size) => {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = size > 0 ? Math.min(4, Math.floor(Math.log2(size) / 10)) : 0;
  return power ? `${digits(size / 2 ** (10 * power))} ${units[power]}` : `${count(size)} bytes`;
};

export const moment = (epoch) => new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" }).format(epoch * 1e3);

export const clock = (epoch) => new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" }).format(epoch * 1e3);

export const ago = (epoch) => {
  const seconds = Date.now() / 1e3 - epoch;
  return seconds < 45 ? "just now" : `${about(seconds)} ago`;
};

export const clipped = (text, length) => {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - tail)}…${text.slice(text.length - tail)}`;
};

export const words = (name) => name.replaceAll("_", " ");
