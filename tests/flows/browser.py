"""A real browser before the pages of a server that `harness up` has started."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import (
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.services import DRIVER, browser

SECONDS = 60.0
NOT_YET = (
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
Found = TypeVar("Found")


class Browser:
    """One window; what it waits for and does not find is told with the page's text."""

    def __init__(self, address: str, profile: Path, *, dark: bool = False) -> None:
        self.address = address
        options = webdriver.ChromeOptions()
        options.binary_location = str(browser())
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--window-size=1400,1400",
            f"--user-data-dir={profile}",
            # As on a machine without a network: only our own server has an address.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
        service = webdriver.ChromeService(executable_path=shutil.which(DRIVER))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.requested: list[str] = []
        self.failed: list[str] = []
        if dark:
            self.driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
            )

    def sign_in(self, credentials: str) -> None:
        self.driver.get(self.address)
        self.until(lambda: self.one("input[type=password]")).send_keys(credentials)
        self.click("Login")
        self.sees("Dashboard", "Flow Runs")

    def open(self, path: str, *texts: str) -> str:
        """Opens a page of the default UI and waits for texts on it."""
        self.driver.get(f"{self.address}/v2{path}")
        return self.sees(*texts)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self) -> str:
        return self.one("body").text

    def sees(self, *texts: str) -> str:
        """Waits until the page shows all texts and returns what it shows."""

        def shown() -> str | None:
            page = self.text()
            return page if all(text in page for text in texts) else None

        return self.until(shown, texts)

    def counts(self, least: int, *texts: str) -> str:
        """Waits until the page shows texts so often, which it may draw one by one."""

        def shown() -> str | None:
            page = self.text()
            return page if sum(map(page.count, texts)) >= least else None

        return self.until(shown, (least, texts))

    def click(self, text: str, *, role: str = "button") -> None:
        """Presses the button, or what else has a role, with exactly this text.

        By the keyboard: a notification may lie above it, and stays under a pointer.
        """
        kind = "//button" if role == "button" else f"//*[@role='{role}']"
        path = f"{kind}[normalize-space()='{text}']"

        def pressed() -> bool:
            button = self.driver.find_element(By.XPATH, path)
            self.show(button)
            button.send_keys(Keys.ENTER)
            return True

        self.until(pressed, path)

    def field(self, name: str, group: str) -> WebElement:
        """Returns the input of a setting: the first of this name after its group."""
        labels = (
            "return [...document.querySelectorAll('label')]"
            ".map(label => [label.innerText, label.htmlFor])"
        )

        def found() -> WebElement | None:
            shown = self.driver.execute_script(labels)
            names = [text.split()[0] if text.strip() else "" for text, _ in shown]
            if group not in names or name not in names[names.index(group) :]:
                return None
            _, identity = shown[names.index(name, names.index(group))]
            return self.driver.find_element(By.ID, identity)

        field = self.until(found, (group, name))
        self.show(field)
        return field

    def show(self, element: WebElement) -> None:
        script = "arguments[0].scrollIntoView({block: 'center'})"
        self.driver.execute_script(script, element)

    def until(self, what: Callable[[], Found | None], told: object = "") -> Found:
        """Waits until something is there, and returns it."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                if found := what():
                    return found
            except NOT_YET:
                pass
            time.sleep(0.2)
        raise AssertionError(
            f"{told} did not come on {self.driver.current_url}:\n{self.text()[:3000]}"
        )

    def hosts_beside_ours(self) -> set[str]:
        """Returns the hosts that pages have asked so far, other than our server."""
        for entry in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            self._note(json.loads(entry["message"])["message"])
        addresses = [urlsplit(address) for address in self.requested]
        return {
            part.netloc
            for part in addresses
            if part.scheme in ("http", "https", "ws", "wss")
            and part.hostname != "127.0.0.1"
        }

    def _note(self, message: dict[str, Any]) -> None:
        if message["method"] == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"])
        if message["method"] == "Network.loadingFailed":
            self.failed.append(message["params"]["errorText"])

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))

    def close(self) -> None:
        self.driver.quit()
