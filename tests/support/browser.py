"""A real Chromium without a window, driven by Selenium; driver and browser are those that are installed."""

import base64
import shutil
from pathlib import Path
from typing import Any

from selenium.common.exceptions import JavascriptException, TimeoutException
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

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
_PATIENCE_S = 300.0
_GLANCE_S = 0.04


def installed_browser() -> tuple[str, str] | None:
    """The driver and the browser on this machine, or None if one of them is missing."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return (driver, browser) if driver and browser else None


class Browser:
    """One browser with a fresh profile; `close` ends it."""

    def __init__(self, driver: str, binary: str) -> None:
        options = ChromeOptions()
        options.binary_location = binary
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        for flag in FLAGS:
            options.add_argument(flag)
        self._driver = Chrome(options, ChromeService(driver))
        self._driver.set_script_timeout(_PATIENCE_S)

    def open(self, page: Path | str) -> None:
        """Load a page from a file or from an address and wait until it is complete."""
        self._driver.get(page if isinstance(page, str) else page.absolute().as_uri())

    def script(self, source: str, *arguments: Any) -> Any:
        """What a function body returns in the page."""
        return self._driver.execute_script(source, *arguments)

    def wait_for(self, condition: str, *arguments: Any) -> Any:
        """Wait until a condition of the page is true; returns its value.

        Raises TimeoutException with what the page shows if it never is.
        """
        waiting = WebDriverWait(self._driver, _PATIENCE_S, _GLANCE_S, [JavascriptException])
        try:
            return waiting.until(lambda _: self.script(f"return ({condition})", *arguments))
        except TimeoutException as error:
            shown = self.script("return location.href + '\\n' + document.body.innerText")
            raise TimeoutException(f"never true: {condition}\n{shown}") from error

    def write(self, selector: str, text: str) -> None:
        """Type into the first element that a selector finds; a path chooses a file where it takes one."""
        self._first(selector).send_keys(text)

    def press(self, *keys: str) -> None:
        """Press and release keys one after another; a key is a character or a WebDriver key code."""
        self._actions().send_keys(*keys).perform()

    def resize(self, width: int, height: int) -> None:
        """Pretend that the window has another size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def save_downloads(self, folder: Path) -> None:
        """Let the browser save what is downloaded in a folder."""
        place = {"behavior": "allow", "downloadPath": str(folder)}
        self._driver.execute_cdp_cmd("Browser.setDownloadBehavior", place)

    def prefer(self, scheme: str) -> None:
        """Pretend that the reader prefers `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def hover(self, selector: str) -> None:
        """Move the pointer to the middle of the first element that a selector finds."""
        self._actions().move_to_element(self._shown(selector)).perform()

    def click(self, selector: str) -> None:
        """Press and release on the first element that a selector finds."""
        self._actions().click(self._shown(selector)).perform()

    def drag(self, selector: str, from_share: float, to_share: float) -> None:
        """Drag across an element, between two shares of its width."""
        element = self._shown(selector)
        width = element.rect["width"]
        begin, far = round((from_share - 0.5) * width), round((to_share - from_share) * width)
        moves = self._actions().move_to_element_with_offset(element, begin, 0)
        moves.click_and_hold().move_by_offset(far, 0).release().perform()

    def settle(self) -> None:
        """Wait until two frames are drawn, so that the page has heard of everything."""
        self._driver.execute_async_script(
            "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def complaints(self) -> list[str]:
        """What the page wrote to the console since the last call: errors and warnings."""
        entries = self._driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, *, whole: bool = False) -> bytes:
        """The visible part of the page as a PNG, or the whole of it."""
        wanted = {"format": "png", "captureBeyondViewport": whole}
        return base64.b64decode(self._driver.execute_cdp_cmd("Page.captureScreenshot", wanted)["data"])

    def close(self) -> None:
        """End the browser and its driver."""
        self._driver.quit()

    def _first(self, selector: str) -> WebElement:
        return self._driver.find_element("css selector", selector)

    def _shown(self, selector: str) -> WebElement:
        """An element that was scrolled to, which the page has heard of."""
        element = self._first(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        self.settle()
        return element

    def _actions(self) -> ActionChains:
        return ActionChains(self._driver, duration=0)
