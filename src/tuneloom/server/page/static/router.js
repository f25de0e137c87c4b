// Paths of the page and the views behind them; each view is loaded when it is first asked for.
const VIEWS = [
  [/^\/$/, () => import("./views/overview.js")],
  [/^\/login$/, () => import("./views/login.js")],
  [/^\/submit$/, () => import("./views/submit.js")],
  [/^\/jobs\/([a-z0-9-]+)$/, () => import("./views/job.js")],
  [/^\/models$/, () => import("./views/models.js")],
  [/^\/bank$/, () => import("./views/bank.js")],
  [/^\/devices$/, () => import("./views/devices.js")],
  [/^\/administration$/, () => import("./views/administration.js")],
];

let shown = null;
let render = async () => {};

export const onNavigate = (callback) => { render = callback; };

export const go = (path, { replace = false } = {}) => {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  return render();
};

// The view of an address: its module, and what the address names.
export const found = async (path) => {
  for (const [pattern, load] of VIEWS) {
    const match = pattern.exec(path);
    if (match) return { view: (await load()).default, name: match[1] };
  }
  return null;
};

// Make way for the next view: the last one lets go of its streams.
export const leave = () => {
  shown?.close?.();
  shown = null;
};

export const entered = (view) => { shown = view; };

export const listen = () => {
  addEventListener("popstate", () => render());
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || url.pathname.startsWith("/api/") || url.hash) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
};
