"""The page of a service in a real browser: log in, submit, watch, pause, cancel, download, a lost server."""

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from support.browser import Browser, installed_browser
from support.commands import Workplace, ended_afterwards
from support.models.onnx_files import write_network
from support.ports import reserved_port
from support.warm import WarmInterpreter
from tuneloom.app.hosting.bundles import packed
from tuneloom.app.reports.reporting import report_data
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.errors import StoreError
from tuneloom.server.access.credentials import make_token
from tuneloom.server.building import build_app
from tuneloom.server.settings import ServerSettings
from tuneloom.store import JobStatus, Role, Store, Submission, TenantLimits, WishKind, open_store

FOUND = installed_browser()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(FOUND is None, reason="no Chromium here: `make browser` installs Debian's"),
]
ENTER, ESCAPE = "\ue007", "\ue00c"
ENDLESS = "mock:tasks=3,size=100000,build=0.02,profile=0.02,build_error=0.1"
"""A job that goes on until it is cancelled."""
PATIENCE_S = 300.0
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@dataclass
class Served:
    """A server that listens, its store, and an administrator's token."""

    settings: ServerSettings
    store: Store
    token: str
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    def start(self) -> None:
        """Listen, maybe again."""
        config = uvicorn.Config(
            build_app(self.settings),
            port=self.settings.port,
            log_level="error",
            timeout_graceful_shutdown=1,
        )
        listener = config.bind_socket()
        listener.listen()
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, args=(self._server, listener))
        self._thread.start()

    @staticmethod
    def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
        asyncio.run(server.serve(sockets=[listener]))
        listener.close()

    def stop(self) -> None:
        """Let streams end, and listen no more."""
        if self._server is not None and self._thread is not None:
            self._server.config.app.state.service.drain()  # type: ignore[union-attr]
            self._server.should_exit = True
            self._thread.join()

    def submit(self, name: str, model: str = ENDLESS, trials: int = 50_000, **spec: Any) -> str:
        """A job as if somebody had submitted it elsewhere."""
        made = job_spec({"name": name, "model": model, "trials": trials, **spec})
        submission = Submission(
            tenant="weavers",
            token="t",
            name=name,
            model=model,
            spec=made.to_json(),
            trials=trials,
            request=name,
        )
        return self.store.submit_job(submission, {"policy": "load-aware", "device_cores": 1})[0].id


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, warm: WarmInterpreter) -> Iterator[Served]:
    """A server in this process and an executor beside it."""
    folder = tmp_path_factory.mktemp("service")
    workplace = Workplace(folder=folder, warm=warm)
    (folder / "home").mkdir()
    with reserved_port() as port, closing(open_store(workplace.store)) as store:
        settings = ServerSettings(store=workplace.store, tuners=("tvm", "mock"), rate=1e6, port=port)
        store.add_tenant("weavers", TenantLimits(most_priority=100, trials_a_day=10**9, jobs_at_once=5000))
        token = make_token(store, "weavers", "test", Role.ADMINISTRATOR)[1]
        with ended_afterwards(workplace.start("executor", "--store", workplace.store)):
            found = Served(settings=settings, store=store, token=token)
            found.start()
            yield found
            found.stop()


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Browser]:
    """A browser in which somebody is logged in."""
    assert FOUND is not None
    with closing(Browser(*FOUND)) as started:
        log_in(started, served)
        yield started


def log_in(browser: Browser, served: Served) -> None:
    browser.open(f"{served.url}/login")
    browser.wait_for("document.querySelector('#token')")
    browser.write("#token", served.token + ENTER)
    browser.wait_for("location.pathname === '/' && document.querySelector('#log-out')")


def shown(browser: Browser, words: str) -> None:
    """Wait until the page says something."""
    browser.wait_for("document.querySelector('main').innerText.includes(arguments[0])", words)


def visit(browser: Browser, served: Served, path: str, heading: str | None = None) -> None:
    """Load an address of the page and wait for its view."""
    browser.open(served.url + path)
    browser.wait_for(
        "document.querySelector('main h1') && (!arguments[0] || "
        "document.querySelector('main h1').textContent === arguments[0])",
        heading,
    )


def status_shown(browser: Browser, status: str) -> None:
    browser.wait_for("document.querySelector('.about .state')?.textContent === arguments[0]", status)


@pytest.fixture
def running(browser: Browser, served: Served) -> Iterator[str]:
    """A job that an executor carries out, and whose view is open; it is cancelled afterwards."""
    job = served.submit("endless")
    visit(browser, served, f"/jobs/{job}", "endless")
    status_shown(browser, "running")
    yield job
    cancel(served, job)


def cancel(served: Served, job: str) -> None:
    """End a job, unless it has ended."""
    with suppress(StoreError):
        served.store.add_wish(job, WishKind.CANCEL, f"{job}.1", {})


def test_somebody_who_is_not_logged_in_is_asked_to_and_comes_back(browser: Browser, served: Served) -> None:
    visit(browser, served, "/", "Overview")
    browser.click("#log-out")
    browser.wait_for("location.pathname === '/login' && document.querySelector('#token')")
    visit(browser, served, "/models", "Log in")
    assert browser.script("return location.search") == "?then=%2Fmodels"
    assert browser.script("return document.cookie") == ""
    browser.write("#token", "tl_wrong" + ENTER)
    browser.wait_for("document.querySelector('#login-problem').textContent.includes('opens nothing')")
    browser.script("document.querySelector('#token').value = ''")
    browser.write("#token", served.token + ENTER)
    browser.wait_for(
        "location.pathname === '/models' && document.querySelector('h1').textContent === 'Models'"
    )
    assert browser.script("return document.cookie") == "", "no script may read the session"
    browser.complaints()  # the refused token is in the console, as it should be


def test_a_dropped_model_shows_its_inputs_and_a_named_one_is_submitted(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    network = write_network(tmp_path / "net.onnx")
    visit(browser, served, "/submit", "Submit a model")
    browser.write("#file", str(network))
    browser.wait_for("document.querySelector('.told .state')?.textContent === 'ready'")
    shown(browser, "[1, 8, 8, 8]")
    browser.write("#named", "mock:tasks=1,size=64")
    browser.script("document.querySelector('#trials').value = '0'")
    browser.click("#submit")
    browser.wait_for("document.querySelector('#trials').getAttribute('aria-invalid') === 'true'")
    browser.script("document.querySelector('#trials').value = ''")
    browser.write("#trials", "8")
    browser.wait_for("!document.querySelector('#trials').hasAttribute('aria-invalid')")
    browser.click("#submit")
    browser.wait_for("location.pathname.startsWith('/jobs/')")
    status_shown(browser, "finished")
    shown(browser, "8 of 8 trials")
    job = browser.script("return location.pathname").rpartition("/")[2]
    curve = report_data(served.store, job).models[0].progress
    browser.wait_for(f"{POINTS} === arguments[0]", ",".join(f"trial {point.trial}" for point in curve))
    browser.complaints()  # the refused submission is in the console
    visit(browser, served, "/models", "Models")
    shown(browser, "net.onnx")


POINTS = (
    "[...document.querySelectorAll('.curve-chart .point')].map((p) => p.dataset.tip.split('\\n')[0]).join()"
)


def test_a_job_is_watched_while_it_goes_on(browser: Browser, running: str) -> None:
    browser.wait_for("document.querySelectorAll('.gantt .mark').length > 20")
    browser.wait_for("document.querySelectorAll('.curve-chart .point').length > 1")
    browser.wait_for("document.querySelectorAll('.kernel').length === 3")
    shown(browser, "build error")
    first = trials_shown(browser)
    browser.wait_for(f"{TRIALS_SHOWN} > arguments[0]", first)
    assert browser.complaints() == []


TRIALS_SHOWN = "Number(document.querySelector('[role=progressbar]').getAttribute('aria-valuenow'))"


def trials_shown(browser: Browser) -> int:
    return int(browser.script(f"return {TRIALS_SHOWN}"))


def test_a_timeline_zooms_by_pointer_and_by_keyboard(browser: Browser, running: str) -> None:
    browser.wait_for("document.querySelectorAll('.gantt .mark').length > 20")
    ticks = "return [...document.querySelectorAll('.gantt .tick')].map(t => t.textContent).join()"
    browser.drag(".gantt", 0.4, 0.5)
    zoomed = browser.script(ticks)
    browser.press("+")
    browser.script("document.querySelector('.gantt').focus()")
    browser.press("+")
    assert browser.script(ticks) != zoomed
    browser.press("0")
    assert browser.script("return document.querySelector('.gantt .tick').textContent") == "0 s"


def test_a_job_is_paused_resumed_given_a_priority_and_cancelled(
    browser: Browser, served: Served, running: str
) -> None:
    browser.click("#pause")
    status_shown(browser, "paused")
    browser.click("#resume")
    status_shown(browser, "running")
    browser.script(PRIORITIES)
    browser.click("#priority")
    browser.script("document.querySelector('dialog input').value = ''")
    browser.write("dialog input", "7" + ENTER)
    browser.wait_for("document.querySelector('#priority').textContent === 'Priority 7'")
    wait_until(lambda: served.store.job(f"{running}.1").spec["priority"] == 7)
    browser.wait_for(f"{TRIALS_SHOWN} > arguments[0]", trials_shown(browser))
    assert browser.script("return priorities") == ["Priority 7"], "it does not fall back meanwhile"
    browser.click("#cancel")
    browser.press(ESCAPE)
    browser.wait_for("!document.querySelector('dialog')")
    browser.click("#cancel")
    browser.click("dialog .danger")
    status_shown(browser, "cancelled")
    found = served.store.submitted_job(running)
    assert found is not None and found.status is JobStatus.CANCELLED
    shown(browser, "cancel job")
    assert browser.complaints() == []


PRIORITIES = """
window.priorities = [];
const told = () => priorities.push(document.querySelector("#priority")?.textContent);
new MutationObserver(told).observe(document.querySelector(".actions"), { childList: true });
"""
"""Notes every priority that the page shows from now on."""


def test_a_bundle_is_downloaded_as_it_was_made(browser: Browser, served: Served, tmp_path: Path) -> None:
    job = served.submit("done", "mock:tasks=1,size=8", trials=4)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "bundle.json").write_text("{}")
    content = b"".join(packed(tmp_path / "made"))
    visit(browser, served, f"/jobs/{job}", "done")
    status_shown(browser, "finished")
    served.store.keep_bundle(job, served.store.put_blob([content], f"bundle:{job}"), len(content))
    visit(browser, served, f"/jobs/{job}", "done")
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    browser.save_downloads(downloads)
    browser.wait_for("document.querySelector('#download')")
    browser.click("#download")
    file = downloads / f"{job}.tar.gz"
    wait_until(file.exists)
    assert file.read_bytes() == content


def test_a_model_has_a_curve_although_some_of_its_kernels_were_never_measured(
    browser: Browser, served: Served
) -> None:
    job = served.submit("few trials", "mock:tasks=8,size=8", trials=4)
    visit(browser, served, f"/jobs/{job}", "few trials")
    status_shown(browser, "finished")
    browser.wait_for("document.querySelectorAll('.curve-chart .point').length > 0")
    shown(browser, "kernels were not measured")


def test_the_headline_is_the_comparison_with_what_the_user_runs_today(
    browser: Browser, served: Served
) -> None:
    job = served.submit("compared", "mock:tasks=1,size=8", trials=4)
    wait_until(lambda: ended(served, job))
    own = {"name": "onnxruntime", "latency_s": 4e-3, "tuned_s": 2e-3}
    result = {"latency_before_s": 14e-3, "latency_after_s": 2e-3, "own_runtime": own, "kernels": {}}
    served.store.set_job(f"{job}.1", JobStatus.FINISHED, result)
    visit(browser, served, f"/jobs/{job}", "compared")
    headline = "document.querySelector('.card .gain').innerText"
    browser.wait_for(f"{headline}.includes('2.00×') && {headline}.includes('faster than ONNX Runtime')")
    visit(browser, served, "/", "Overview")
    row = f"document.querySelector(`tr[data-job='{job}'] .result`).innerText"
    browser.wait_for(f"{row}.includes('faster than ONNX Runtime')")


def test_schedules_that_were_tried_in_vain_are_shown_on_demand(browser: Browser, served: Served) -> None:
    visit(browser, served, "/", "Overview")
    browser.script(REUSED_SHOWN, [{"kernel": f"k{n}", "donor": "d", "used": n % 20 == 0} for n in range(40)])
    browser.wait_for("document.querySelectorAll('#reused-here > .scroller tbody tr').length === 2")
    assert browser.script("return document.querySelector('#reused-here summary').innerText") == (
        "38 more that were tried"
    )
    browser.script(REUSED_SHOWN, [{"kernel": f"k{n}", "donor": "d", "used": False} for n in range(40)])
    browser.wait_for("document.querySelectorAll('#reused-here > .scroller tbody tr').length === 12")


REUSED_SHOWN = """
const [gifts] = arguments;
document.querySelector('#reused-here')?.remove();
import('/page/views/job_parts.js').then(({ reused }) => {
  const here = document.createElement('div');
  here.id = 'reused-here';
  here.append(...reused(gifts, true));
  document.body.append(here);
});
"""


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for something outside of the page, such as a file of the browser."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, "it never happened"
        threading.Event().wait(0.05)


def test_a_lost_connection_is_told_and_comes_back_without_losing_a_trial(
    browser: Browser, served: Served, running: str
) -> None:
    browser.wait_for(f"{TRIALS_SHOWN} > 3")
    served.stop()
    browser.wait_for("document.querySelector('.banner.lost:not([hidden])')")
    served.start()
    browser.wait_for("document.querySelector('.banner.back')")
    browser.click("#pause")
    status_shown(browser, "paused")
    browser.click("#cancel")
    browser.click("dialog .danger")
    status_shown(browser, "cancelled")
    browser.wait_for(f"{TRIALS_SHOWN} === arguments[0]", served.store.trial_count(f"{running}.1"))
    browser.complaints()  # the console tells of the lost server


def test_the_overview_lives_and_keeps_a_thousand_jobs_in_pages(
    browser: Browser, served: Served, running: str
) -> None:
    many_jobs(served, 1000)
    visit(browser, served, "/", "Overview")
    browser.wait_for("document.querySelectorAll('table.jobs tbody tr').length >= 50")
    browser.wait_for("document.querySelector('tr[data-job] .meter')")
    browser.wait_for("document.querySelector('.resources .busy')")
    for _ in range(3):
        rows = browser.script("return document.querySelectorAll('table.jobs tbody tr').length")
        browser.click(".more")
        browser.wait_for("document.querySelectorAll('table.jobs tbody tr').length > arguments[0]", rows)
    browser.write("input[type=search]", "clone 777")
    browser.wait_for("document.querySelectorAll('table.jobs tbody tr').length === 1")
    shown(browser, "clone 777")
    assert browser.script("return location.search") == "?name=clone+777"
    visit(browser, served, "/", "Overview")
    browser.wait_for("document.querySelectorAll('table.jobs tbody tr').length >= 50")
    job = served.submit("latecomer")
    browser.wait_for("document.querySelector('table.jobs tbody tr').textContent.includes('latecomer')")
    cancel(served, job)
    browser.wait_for(
        "document.querySelector(`tr[data-job='${arguments[0]}'] .state`).textContent === 'cancelled'", job
    )
    assert browser.complaints() == []


def test_the_answer_to_an_earlier_search_does_not_mix_with_that_to_a_later_one(
    browser: Browser, served: Served
) -> None:
    for name in ("early bird", "early riser"):
        job = served.submit(name, "mock:tasks=1,size=8", trials=1)
        wait_until(lambda job=job: ended(served, job))  # type: ignore[misc]
    visit(browser, served, "/", "Overview")
    browser.wait_for("document.querySelectorAll('table.jobs tbody tr').length > 1")
    browser.script(HOLD_ANSWER, "name=early&")
    browser.write("input[type=search]", "early")
    browser.wait_for("held === 'asked'")
    browser.write("input[type=search]", " bird")
    browser.wait_for("document.querySelectorAll('table.jobs tbody tr').length === 1")
    browser.script("release()")
    browser.wait_for("held === 'told'")
    shown(browser, "early bird")
    assert browser.script("return document.querySelectorAll('table.jobs tbody tr').length") == 1


HOLD_ANSWER = """
const [wanted] = arguments, really = window.fetch;
const released = new Promise((done) => { window.release = done; });
window.held = "";
window.fetch = async (address, options) => {
  const answer = await really(address, options);
  if (!String(address).includes(wanted)) return answer;
  window.held = "asked";
  await released;
  const told = await answer.json();
  setTimeout(() => { window.held = "told"; });
  return new Response(JSON.stringify(told));
};
"""
"""Lets answers to requests with certain words in their address wait until they are released."""


def many_jobs(served: Served, number: int) -> None:
    """Finished jobs, written at once: submitting a thousand one by one would take a while."""
    job = served.submit("clone 0", "mock:tasks=1,size=8", trials=1)
    wait_until(lambda: ended(served, job))
    with closing(sqlite3.connect(served.store.place, timeout=PATIENCE_S)) as database:
        for table, key in (("runs", "id"), ("jobs", "run"), ("submissions", "run")):
            rows = database.execute(f"SELECT * FROM {table} WHERE {key} = ?", (job,))
            names = [column[0] for column in rows.description]
            (row,) = [dict(zip(names, found, strict=True)) for found in rows]
            copies = [copied(table, row, number) for number in range(1, number)]
            marks = ", ".join(f":{name}" for name in copies[0])
            database.executemany(f"INSERT INTO {table} ({', '.join(copies[0])}) VALUES ({marks})", copies)
        database.commit()


def ended(served: Served, job: str) -> bool:
    found = served.store.submitted_job(job)
    return found is not None and found.status.ended and served.store.run(job).ended is not None


def copied(table: str, row: dict[str, Any], number: int) -> dict[str, Any]:
    changed = {name: value for name, value in row.items() if table == "jobs" or name != "number"}
    if table == "jobs":
        return changed | {"id": f"clone-{number}.1", "run": f"clone-{number}", "name": f"clone {number}"}
    return changed | ({"id": f"clone-{number}"} if table == "runs" else {"run": f"clone-{number}"})


def test_what_users_write_is_never_markup(browser: Browser, served: Served) -> None:
    job = served.submit(HOSTILE, "mock:tasks=1,size=8", trials=4)
    for path in ("/", f"/jobs/{job}"):
        visit(browser, served, path)
        shown(browser, HOSTILE)
    status_shown(browser, "finished")
    assert browser.script("return document.querySelectorAll('img').length") == 0
    assert "owned" not in browser.script("return document.title.replace(arguments[0], '')", HOSTILE)
    assert browser.complaints() == []


def test_everything_can_be_reached_by_keyboard(browser: Browser, served: Served) -> None:
    visit(browser, served, "/", "Overview")
    browser.wait_for("document.querySelector('.row-link')")
    browser.press("?")
    browser.wait_for("document.querySelector('dialog[open]')")
    browser.press(ESCAPE)
    browser.wait_for("!document.querySelector('dialog')")
    browser.press("/")
    assert browser.script("return document.activeElement.type") == "search"
    browser.script("document.activeElement.blur()")
    browser.press("j", "j", "k", ENTER)
    browser.wait_for("location.pathname.startsWith('/jobs/') && document.querySelector('main h1')")
    for key, path in (
        ("m", "/models"),
        ("b", "/bank"),
        ("d", "/devices"),
        ("a", "/administration"),
        ("o", "/"),
    ):
        browser.press("g", key)
        browser.wait_for("location.pathname === arguments[0] && document.activeElement.id === 'main'", path)
    visit(browser, served, "/devices", "Devices")
    browser.script("document.activeElement.blur(); document.body.focus()")
    browser.script("document.querySelector('.skip').focus()")
    browser.press(ENTER)
    browser.wait_for("document.activeElement.id === 'main'")


def test_an_administrator_makes_a_tenant_and_a_token_that_is_shown_once(
    browser: Browser, served: Served
) -> None:
    visit(browser, served, "/administration", "Administration")
    browser.click("#tenants .primary")
    browser.write("dialog input[name=name]", "dyers")
    browser.write("dialog input[name=weight]", "2.5" + ENTER)
    browser.wait_for("!document.querySelector('dialog')")
    shown(browser, "dyers")
    browser.click("#tokens .primary")
    browser.write("dialog input[name=name]", "for the dye works" + ENTER)
    secret = browser.wait_for("document.querySelector('dialog .secret')?.value")
    assert secret.startswith("tl_")
    browser.press(ESCAPE)
    browser.wait_for("!document.querySelector('dialog')")
    assert secret not in browser.script("return document.documentElement.innerHTML")
    browser.click("[aria-label='Revoke for the dye works']")
    browser.click("dialog .danger")
    shown(browser, "revoked")
    shown(browser, "make tenant")
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_fits_its_window_and_can_be_read(
    browser: Browser, served: Served, width: int, scheme: str
) -> None:
    browser.prefer(scheme)
    browser.resize(width, 800)
    for path in ("/", "/submit", "/models", "/bank", "/devices", "/administration"):
        visit(browser, served, path)
        overflow = browser.script("const d = document.documentElement; return d.scrollWidth - d.clientWidth")
        assert overflow <= 0, path
        assert browser.script(FAINT) == [], path
    assert browser.complaints() == []
    browser.prefer("light")
    browser.resize(1280, 1000)


FAINT = """
const parts = (colour) => colour.match(/[0-9.]+/g).map(Number);
const shine = (colour) => {
  const linear = (c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = parts(colour).slice(0, 3).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paper = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor, found = parts(colour);
    if (colour.startsWith("rgb") && (found.length < 4 || found[3] === 1)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const kinds = "h1, h2, p, td, th, a, button, label, dt, dd, .state, .hint, .quiet";
const texts = [...document.querySelectorAll(kinds)];
return texts.filter((e) => e.textContent.trim() && e.offsetParent && !e.disabled).filter((e) => {
  const [light, dark] = [shine(getComputedStyle(e).color), shine(paper(e))].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05) < 4.4;
}).map((e) => e.outerHTML.slice(0, 120));
"""
