// Logging in: the token goes to the server once and is kept nowhere here.
import { send } from "../api.js";
import { field } from "../dialogs.js";
import { h } from "../dom.js";
import { go } from "../router.js";

// Only a path of this page may follow: an address from elsewhere must not.
const next = (query) => {
  const then = query.get("then") || "/";
  const url = new URL(then, location.origin);
  return url.origin === location.origin && then.startsWith("/") && !then.startsWith("//") ? url.pathname + url.search : "/";
};

export default ({ logIn, query }) => {
  const token = h("input", {
    type: "password", name: "token", id: "token", required: true, autofocus: true, autocomplete: "off",
    spellcheck: "false", placeholder: "tl_…", "aria-describedby": "login-problem",
  });
  const problem = h("p", { class: "message", id: "login-problem", role: "alert", hidden: true });
  const button = h("button", { class: "primary wide", type: "submit" }, "Log in");
  const form = h("form", {
    class: "card login",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      problem.hidden = true;
      try {
        logIn(await send("POST", "/session", { token: token.value.trim() }));
        token.value = "";
        await go(next(query), { replace: true });
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
        token.select();
      }
      button.disabled = false;
    },
  },
  h("h1", null, "Log in"),
  h("p", { class: "quiet" }, "Submit a model, get a faster one."),
  field("Token", token),
  problem, button,
  h("p", { class: "hint" }, "The first start of ", h("code", null, "tuneloom serve"), " prints a token once; an administrator makes others. A session lasts 12 hours."));
  return { title: "Log in", content: form };
};
