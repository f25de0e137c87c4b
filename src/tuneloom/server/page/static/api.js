// Requests to the API. The browser holds the session in a cookie that this script can't read;
// writes carry the proof that the server gave to this page.
const API = "/api/v1";

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || `the server answered with ${status}`);
    this.status = status;
    this.field = told.field || null;
    this.requestId = told.request_id || "";
  }
}

export class Unreachable extends Error {}

let proof = "";
let lost = () => {};

export const onSessionLost = (callback) => { lost = callback; };
export const setProof = (value) => { proof = value || ""; };

export const address = (path, query) => {
  const given = Object.entries(query || {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).filter((each) => each !== null && each !== undefined && each !== "").map((each) => [name, each]));
  return API + path + (given.length ? `?${new URLSearchParams(given)}` : "");
};

export const problemOf = async (response) => {
  const told = await response.json().catch(() => ({}));
  if (response.status === 401 && told.field === "Cookie") lost();
  return new Problem(response.status, told);
};

const request = async (method, url, options) => {
  let response;
  try {
    response = await fetch(url, { method, credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the server can't be reached; trying again may help");
  }
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? null : response.json();
};

export const get = (path, query, signal) => request("GET", address(path, query), { signal });

export const send = (method, path, body) => {
  const headers = { "X-CSRF-Token": proof };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return request(method, address(path), { headers, body: body === undefined ? undefined : JSON.stringify(body) });
};

// fetch can't tell how much of a body is on its way, so uploads go the older way.
export const upload = (file, onProgress, signal) => new Promise((resolve, reject) => {
  const asked = new XMLHttpRequest();
  asked.open("POST", address("/models", { name: file.name }));
  asked.setRequestHeader("Content-Type", "application/octet-stream");
  asked.setRequestHeader("X-CSRF-Token", proof);
  asked.upload.addEventListener("progress", (event) => { if (event.lengthComputable) onProgress(event.loaded / event.total); });
  asked.addEventListener("load", () => {
    let told = {};
    try { told = JSON.parse(asked.responseText); } catch { /* the status says enough */ }
    if (asked.status === 401 && told.field === "Cookie") lost();
    if (asked.status < 400) resolve(told); else reject(new Problem(asked.status, told));
  });
  asked.addEventListener("error", () => reject(new Unreachable("the upload broke off; try again")));
  asked.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
  signal.addEventListener("abort", () => asked.abort());
  asked.send(file);
});
