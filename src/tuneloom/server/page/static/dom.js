// Elements as values. Text is only ever set as text: there is no way here to make markup of a string.
const SVG = "http://www.w3.org/2000/svg";

const assign = (element, props) => {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
};

const append = (element, children) => {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
};

export const h = (name, props, ...children) => {
  const element = document.createElement(name);
  append(element, children);
  assign(element, props);
  return element;
};

export const s = (name, props, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(props || {})) {
    if (key === "data") Object.assign(element.dataset, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  append(element, children);
  return element;
};

export const fill = (element, ...children) => {
  element.replaceChildren();
  append(element, children);
  return element;
};

// A place whose content is made anew only when what it shows has changed.
export const place = (element, make) => {
  let shown;
  return (...values) => {
    const key = JSON.stringify(values);
    if (key === shown) return;
    shown = key;
    fill(element, make(...values));
  };
};

export const section = (title, ...content) => {
  const id = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), content);
};

export const state = (status) => h("span", { class: `state ${status}` }, status);
