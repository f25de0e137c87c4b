"""A real Chromium without a window, driven over the WebDriver protocol by the standard library alone."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,1000",
)
_PATIENCE_MS = 90_000
STARTED = re.compile(r"started successfully on port (\d+)")


def installed_browser() -> tuple[str, str] | None:
    """The driver and the browser on this machine, or None if one of them is missing."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return (driver, browser) if driver and browser else None


class Browser:
    """One browser with a fresh profile; `close` ends it."""

    def __init__(self, driver: str, binary: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._driver = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._address = f"http://127.0.0.1:{self._port()}"
        self._session = self._begin(binary)

    def open(self, page: Path | str) -> None:
        """Load a page from a file or from an address and wait until it is complete."""
        self._ask("url", {"url": page if isinstance(page, str) else page.absolute().as_uri()})

    def script(self, source: str, *arguments: Any) -> Any:
        """What a function body returns in the page."""
        return self._ask("execute/sync", {"script": source, "args": list(arguments)})

    def wait_for(self, condition: str, *arguments: Any) -> Any:
        """Wait until a condition of the page is true; returns its value.

        Raises TimeoutError with what the page shows if it never is.
        """
        source = (
            f"const done = arguments[arguments.length - 1], look = () => {{ return ({condition}); }};"
            "const again = () => { let found; try { found = look(); } catch { found = null; }"
            " if (found) done(found); else setTimeout(again, 40); };"
            "again();"
        )
        try:
            return self._ask("execute/async", {"script": source, "args": list(arguments)})
        except urllib.error.HTTPError as error:
            shown = self.script("return location.href + '\\n' + document.body.innerText")
            raise TimeoutError(f"never true: {condition}\n{shown}") from error

    def write(self, selector: str, text: str) -> None:
        """Type into the first element that a selector finds; a path chooses a file where it takes one."""
        found = self._ask("element", {"using": "css selector", "value": selector})
        self._ask(f"element/{next(iter(found.values()))}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press and release keys one after another; a key is a character or a WebDriver key code."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def resize(self, width: int, height: int) -> None:
        """Pretend that the window has another size."""
        params = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._ask("goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": params})

    def save_downloads(self, folder: Path) -> None:
        """Let the browser save what is downloaded in a folder."""
        params = {"behavior": "allow", "downloadPath": str(folder)}
        self._ask("goog/cdp/execute", {"cmd": "Browser.setDownloadBehavior", "params": params})

    def prefer(self, scheme: str) -> None:
        """Pretend that the reader prefers `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def hover(self, selector: str) -> None:
        """Move the pointer to the middle of the first element that a selector finds."""
        self._point([self._move(*self._middle(selector))])

    def click(self, selector: str) -> None:
        """Press and release on the first element that a selector finds."""
        self._point([self._move(*self._middle(selector)), *_press()])

    def drag(self, selector: str, from_share: float, to_share: float) -> None:
        """Drag across an element, between two shares of its width."""
        self._show(selector)
        x, y, width = self.script(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.x, b.y + b.height / 2, b.width]",
            selector,
        )
        begin, end = (self._move(x + share * width, y) for share in (from_share, to_share))
        down, up = _press()
        self._point([begin, down, end, up])

    def settle(self) -> None:
        """Wait until two frames are drawn, so that the page has heard of everything."""
        source = "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        self._ask("execute/async", {"script": source, "args": []})

    def complaints(self) -> list[str]:
        """What the page wrote to the console since the last call: errors and warnings."""
        entries = self._ask("se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, *, whole: bool = False) -> bytes:
        """The visible part of the page as a PNG, or the whole of it."""
        if not whole:
            return base64.b64decode(self._ask("screenshot"))
        params = {"format": "png", "captureBeyondViewport": True}
        answer = self._ask("goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": params})
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            self._ask("", method="DELETE")
        finally:
            self._driver.terminate()
            self._driver.communicate()
            self._profile.cleanup()

    def _port(self) -> int:
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            if found := STARTED.search(line):
                return int(found[1])
        raise RuntimeError("chromedriver ended before it said its port")

    def _begin(self, binary: str) -> str:
        options = {"binary": binary, "args": [*FLAGS, f"--user-data-dir={self._profile.name}"]}
        wanted = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": _PATIENCE_MS},
        }
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        return str(answer["sessionId"])

    def _middle(self, selector: str) -> tuple[float, float]:
        self._show(selector)
        x, y = self.script(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]",
            selector,
        )
        return x, y

    def _show(self, selector: str) -> None:
        """Scroll to an element and wait until the page has heard of it."""
        self.script("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.settle()

    def _move(self, x: float, y: float) -> dict[str, Any]:
        return {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}

    def _point(self, actions: list[dict[str, Any]]) -> None:
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self._ask("actions", {"actions": [mouse]})

    def _ask(self, command: str, body: Any = None, method: str | None = None) -> Any:
        path = f"/session/{self._session}/{command}".rstrip("/")
        return self._send(method or ("GET" if body is None else "POST"), path, body)

    def _send(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]


def _press() -> list[dict[str, Any]]:
    return [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
