// Hosts and devices with what they do now.
import { h, place } from "../dom.js";
import { NONE, percent } from "../format.js";

const resource = (device) => h("li", { class: device.taken ? "busy" : "idle" },
  h("div", { class: "resource-head" }, h("strong", null, device.name), h("span", { class: "quiet" }, [device.key, device.executor].filter(Boolean).join(" · "))),
  h("div", { class: "meter", role: "img", "aria-label": `busy ${percent(device.utilisation)} of the time` }, h("span", { class: "filled", style: { width: `${device.utilisation * 100}%` } })),
  h("div", { class: "now", title: device.now }, device.now || NONE),
  h("div", { class: "quiet small" }, `${percent(device.utilisation)} busy · ${device.queue} waiting`));

export const resources = () => {
  const list = h("ul", { class: "resources" });
  const draw = place(list, (devices) => (devices.length ? devices.map(resource)
    : h("li", { class: "none" }, "No executor is running. `tuneloom executor` starts one; its devices then appear here.")));
  return { element: list, draw };
};
