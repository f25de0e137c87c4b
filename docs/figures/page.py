"""Takes the pictures of the service's page for the docs, from a real run in a real browser.

python docs/figures/page.py -o docs/figures [--trials 150]

A server is started on a free port with a store of its own, models of the zoo are submitted, and the page is
looked at while they are tuned and afterwards. It takes some minutes, and needs Chromium.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tuneloom.client import Client, RemoteJob

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.browser import Browser, installed_browser

ENTER = "\ue007"
MODELS = ("zoo:squeezenet", "zoo:shufflenet")
WIDE = (1280, 860)


@contextmanager
def server(home: str) -> Iterator[tuple[str, str]]:
    """A server of our own; its address and its first token."""
    words = [sys.executable, "-m", "tuneloom.cli.main", "serve", "--port", "0", "--store", f"{home}/store.db"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            lines = process.stdout.readline() + process.stdout.readline()
            address, token = re.findall(r"(https?://\S+|tl_\S+)", lines)
            yield address, token
        finally:
            process.terminate()


@contextmanager
def browser(address: str, token: str) -> Iterator[Browser]:
    """A browser in which the administrator is logged in."""
    found = installed_browser()
    if found is None:
        raise SystemExit("no Chromium here: `make browser` installs Debian's")
    started = Browser(*found)
    try:
        started.open(f"{address}/login")
        started.wait_for("document.querySelector('#token')")
        started.write("#token", token + ENTER)
        started.wait_for("document.querySelector('#log-out')")
        yield started
    finally:
        started.close()


def picture(page: Browser, path: Path, *, whole: bool = False) -> None:
    """What the page looks like now, or the whole of it."""
    page.resize(*WIDE)
    page.prefer("light")
    page.settle()
    path.write_bytes(page.screenshot(whole=whole))
    print(path)


def take(folder: Path, trials: int) -> None:
    """All pictures."""
    with (
        tempfile.TemporaryDirectory() as home,
        server(home) as (address, token),
        Client(address, token) as client,
        browser(address, token) as page,
    ):
        page.resize(*WIDE)
        client.submit(MODELS[0], trials=trials // 3, name="squeezenet, a first look").wait()
        jobs = [client.submit(model, trials=trials) for model in MODELS]
        watch(page, address, folder, jobs[0])
        for job in jobs:
            job.wait()
        look_back(page, address, folder, jobs[0])


def watch(page: Browser, address: str, folder: Path, job: RemoteJob) -> None:
    """While jobs go on: all of them, then one."""
    page.open(address)
    page.wait_for("document.querySelectorAll('.jobs .meter').length > 1 && document.querySelector('.busy')")
    page.open(f"{address}/jobs/{job.id}")
    page.wait_for("document.querySelectorAll('.kernel').length > 5")
    page.open(address)
    page.wait_for("document.querySelectorAll('.jobs .meter').length > 1 && document.querySelector('.busy')")
    picture(page, folder / "page-overview.png")


def look_back(page: Browser, address: str, folder: Path, job: RemoteJob) -> None:
    """A job that has ended."""
    page.open(f"{address}/jobs/{job.id}")
    page.wait_for("document.querySelector('#download') && document.querySelector('.gantt .mark')")
    page.wait_for("document.querySelector('.facts dd') && document.querySelectorAll('.kernel').length > 3")
    picture(page, folder / "page-job.png", whole=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--trials", type=int, default=150)
    options = parser.parse_args()
    take(options.out, options.trials)


if __name__ == "__main__":
    main()
