"""A headless Chromium for tests and screenshots: it reports every console message and every request."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "no Chromium here: install chromium and chromium-driver to run the browser tests"

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
)


class Browser:
    """One page at a time, at a width, in a colour scheme."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(
        self, path: Path | str, width: int = 1100, height: int = 900, scheme: str = "light", scale: float = 1
    ) -> None:
        """Load a file or an address as a device of this width would, in a scheme the system prefers."""
        phone = width < 600
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=phone,
        )
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.driver.get(path if isinstance(path, str) else path.resolve().as_uri())
        self.script("localStorage.clear()")

    def cdp(self, command: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(
            f"return {text}" if not text.startswith("return") else text, *arguments
        )

    def click(self, selector: str) -> None:
        from selenium.webdriver.common.by import By

        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        self.driver.execute_script(
            "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
        )
        element.click()

    def settle(self) -> None:
        """Wait until what was asked for is drawn: two frames."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def until(self, condition: str) -> None:
        """Wait for a condition, a minute at most."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60, 0.02).until(lambda _: self.script(condition), condition)

    def text(self, selector: str) -> str:
        return str(self.script("document.querySelector(arguments[0]).textContent", selector))

    def problems(self) -> list[str]:
        """What the console said: errors, and what the content security policy refused."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that one of our pages asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            str(event["params"]["request"]["url"])
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and str(event["params"]["documentURL"]).startswith(("file:", "http:"))
        ]

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, closed at the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
