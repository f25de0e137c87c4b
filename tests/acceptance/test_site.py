"""The documentation site is built without a warning, and every page needs nothing but the site itself."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.browser import Browser, installed_browser

ROOT = Path(__file__).parents[2]
FOUND = installed_browser()
pytestmark = pytest.mark.acceptance
ELSEWHERE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
LOADED_BY_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps what it serves to itself."""

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if FOUND is None:
        pytest.skip("no Chromium here: `make browser` installs Debian's")
    started = Browser(*FOUND)
    yield started
    started.close()


class Loads(HTMLParser):
    """What a page makes a browser load, and which of its elements are drawn by scripts from elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.found += [given[name] for name in ("src", "srcset", "poster", "data") if name in given]
        if tag == "link" and given.get("rel") != "canonical":
            self.found.append(given.get("href", ""))
        if "mermaid" in given.get("class", "").split():
            self.found.append("//mermaid, which the theme's script fetches")


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page).exists()] == []


def test_the_reference_of_python_has_what_users_import(site: Path) -> None:
    text = (site / "python.html").read_text()
    for name in ("session.Session.autotune", "client.Client.submit", "backends.base.Backend"):
        assert f'id="tuneloom.{name}"' in text


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = {path: Loads(path.read_text()).found for path in site.rglob("*.html")}
    styles = {path: LOADED_BY_STYLES.findall(path.read_text()) for path in site.rglob("*.css")}
    pictures = {path: LOADED_BY_STYLES.findall(path.read_text()) for path in site.rglob("*.svg")}
    assert pages and styles and pictures
    loaded = [(path.name, one) for path, found in (pages | styles | pictures).items() for one in found]
    assert [(page, place) for page, place in loaded if ELSEWHERE.match(place)] == []


def test_pictures_and_scripts_from_elsewhere_would_be_found() -> None:
    page = '<img src="https://a/b.png"><script src="//c/d.js"></script><a href="https://e">f</a>'
    assert Loads(page).found == ["https://a/b.png", "//c/d.js"]
    assert ELSEWHERE.match(Loads('<pre class="mermaid"></pre>').found[0])
    assert LOADED_BY_STYLES.findall("a { background: url('//g/h.woff') }") == ["//g/h.woff"]


@pytest.mark.parametrize("page", ["index", "architecture", "states", "benchmarks", "service"])
def test_every_picture_is_drawn_without_a_complaint(page: str, address: str, browser: Browser) -> None:
    browser.open(f"{address}/{page}.html")
    browser.wait_for("document.images.length && [...document.images].every(image => image.complete)")
    assert browser.script("return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)") == []
    loaded = browser.script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [place for place in loaded if not place.startswith((address, "data:", "blob:"))] == []
    assert browser.complaints() == []


def test_the_search_finds_a_page(address: str, browser: Browser) -> None:
    browser.open(f"{address}/index.html")
    browser.click(".md-search__input")
    browser.write(".md-search__input", "heartbeat")
    browser.wait_for("document.querySelector('.md-search-result__link[href*=\"architecture.html\"]')")
