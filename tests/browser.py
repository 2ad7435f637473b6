"""A real Chromium for tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str:
    """Where Chromium is. Without one a test is skipped; where one is required (`ONNXPROOF_BROWSER=required`, as in CI), it fails."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is not None:
        return found
    return _miss("there is no Chromium: install your system's package (Debian: apt-get install chromium)")


def require_javascript(runtime: str) -> None:
    """Skip or fail where what a runtime of JavaScript needs is not there."""
    if not shutil.which("node") or not shutil.which("npm"):
        _miss("there is no Node: install your system's packages (Debian: apt-get install nodejs npm)")
    if runtime == "browser":
        executable()


def _miss(reason: str) -> NoReturn:
    if os.environ.get("ONNXPROOF_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def started() -> Iterator[Any]:
    """The running browser."""
    from playwright.sync_api import sync_playwright

    path = executable()
    with sync_playwright() as playwright:
        # Root may not use the sandbox, and CI often is root; the page is our own file.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page, and all that it did."""

    def __init__(self, browser: Any, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **context})
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.troubles: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, html: str, folder: Path) -> Any:
        """Write the page, open it from its file."""
        file = folder / "report.html"
        file.write_text(html, encoding="utf-8")
        self.page.goto(file.as_uri())
        return self.page

    def draw_all(self) -> None:
        """Wait until every visible chart is drawn."""
        self.page.wait_for_function(
            "() => Array.from(document.querySelectorAll('.chart')).filter(c => c.getClientRects().length)"
            ".every(c => c.dataset.drawn || c.querySelector('.chart-failed'))",
            timeout=30_000,
        )
