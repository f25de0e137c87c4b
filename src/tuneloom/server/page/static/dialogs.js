// Questions to the user, in real dialogs: they trap the focus and close with Escape.
import { h } from "./dom.js";

const open = (dialog) => {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  return dialog;
};

// Resolves to whether the user agreed.
export const confirm = (title, text, yes) => new Promise((resolve) => {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      h("p", null, text),
      h("div", { class: "buttons" },
        h("button", { value: "no", autofocus: true }, "Keep it as it is"),
        h("button", { value: "yes", class: "danger" }, yes))));
  dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
  open(dialog);
});

export const show = (title, ...content) => open(h("dialog", { "aria-labelledby": "dialog-title" },
  h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, title),
    content,
    h("div", { class: "buttons" }, h("button", { class: "primary", value: "close" }, "Close")))));

// A form in a dialog; `submit` gets the form and may throw what is told at the field it names.
export const ask = (title, fields, yes, submit) => {
  const failure = h("p", { class: "message", role: "alert", hidden: true });
  const button = h("button", { class: "primary", type: "submit" }, yes);
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
  const form = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        await submit(form);
        dialog.close();
      } catch (error) {
        failure.textContent = error.message;
        failure.hidden = false;
        form.elements.namedItem(error.field)?.focus?.();
      }
      button.disabled = false;
    },
  },
  h("h2", { id: "dialog-title" }, title), fields, failure,
  h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button));
  dialog.append(form);
  return open(dialog);
};

export const field = (label, input, hint) => h("label", { class: "field" },
  h("span", { class: "label" }, label), input, hint && h("span", { class: "hint" }, hint));
