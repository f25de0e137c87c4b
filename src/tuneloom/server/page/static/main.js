// The beginning: who is logged in, what surrounds the views, and one view after another.
import { get, onSessionLost, setProof } from "./api.js";
import { fill, h } from "./dom.js";
import * as router from "./router.js";
import { Shell, covers } from "./shell.js";
import * as tip from "./tip.js";

const shell = new Shell();
let session = null;
let turn = 0;

const toLogin = () => {
  const from = location.pathname + location.search;
  return router.go(from === "/" || from.startsWith("/login") ? "/login" : `/login?then=${encodeURIComponent(from)}`, { replace: true });
};

const logIn = (told) => {
  session = told;
  setProof(told?.proof);
};

const failure = (error) => [
  h("h1", null, error.status === 404 ? "Not found" : "This did not work"),
  h("p", { class: "message", role: "alert" }, error.message),
  h("p", null, h("a", { href: "/" }, "Back to the overview")),
];

const missing = () => Object.assign(new Error("There is no such page."), { status: 404 });

const render = async () => {
  const mine = ++turn;
  const path = location.pathname;
  if (!session && path !== "/login") return toLogin();
  router.leave();
  shell.enter(path === "/login" ? null : session, path);
  const opened = await opening(path).catch((error) => ({ title: "Problem", content: failure(error) }));
  if (mine !== turn) return opened.close?.();
  router.entered(opened);
  fill(shell.main, opened.content);
  document.title = `${opened.title} · Tuneloom`;
  opened.start?.();
  scrollTo(0, 0);
  (shell.main.querySelector("[autofocus]") || shell.main).focus({ preventScroll: true });
  shell.say(opened.title);
};

const opening = async (path) => {
  const found = await router.found(path);
  if (!found) throw missing();
  return found.view({ shell, session, covers: (role) => covers(session, role), name: found.name, query: new URLSearchParams(location.search), logIn });
};

const start = async () => {
  const told = await get("/session");
  logIn(told.session);
  router.onNavigate(render);
  onSessionLost(() => { logIn(null); toLogin(); });
  router.listen();
  tip.listen();
  shell.listenToKeys();
  await render();
};

start().catch((error) => fill(shell.main, failure(error)));
