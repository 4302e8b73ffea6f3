"""A real browser for tests of pages: headless Chromium, driven by Playwright.

A test takes the fixture ``open_page`` and is marked ``browser``. It gets a page that cannot reach
any network, and that keeps what a page must not do: requests, errors, dialogs. Where no browser can
be had the test is skipped, and the reason says what was looked for.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page, Playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""What Chromium is called on the machines that have it."""

SERIOUS: Final = frozenset({"serious", "critical"})


@dataclass
class OpenPage:
    """A page of the browser, and what it did.

    Attributes:
        page: Playwright's page.
        requests: the addresses it asked for, besides its own file and what it holds itself.
        errors: exceptions, and what it wrote to the console as an error (a breach of its Content
            Security Policy is one).
        dialogs: what it said in a dialog; a script of a hostile name would.
    """

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def screenshot(self, name: str, **options: Any) -> Path | None:
        """Write a picture into the folder of DBT_RIPPLE_SCREENSHOTS, if that is set."""
        folder = os.environ.get("DBT_RIPPLE_SCREENSHOTS")
        if not folder:
            return None
        path = Path(folder) / f"{name}.png"
        self.page.screenshot(path=path, **options)
        return path

    def accessibility(self) -> list[str]:
        """The serious findings of axe-core, one line each; empty where there is none."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{finding['id']}: {finding['help']}: {node['target']} {node['failureSummary']}"
            for finding in found
            if finding["impact"] in SERIOUS
            for node in finding["nodes"]
        ]

    def close_cleanly(self) -> None:
        """Say what it did that no page may do."""
        self.page.context.close()
        assert self.requests == []
        assert self.errors == []
        assert self.dialogs == []


def _launch(playwright: Playwright) -> Browser:
    """Playwright's own Chromium where it is installed, or else the machine's."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    tried = []
    for path in dict.fromkeys((None, found)):
        try:
            return playwright.chromium.launch(executable_path=path)
        except Exception as error:
            tried.append(str(error).splitlines()[0])
    if found is None:
        tried.append(f"none of {', '.join(NAMES)} is on the PATH")
    raise LookupError("; ".join(tried))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, for the tests of one module.

    No longer than that: while Playwright runs, nothing else on this thread can run an event loop.
    """
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        try:
            opened = _launch(playwright)
        except LookupError as error:
            pytest.skip(f"no browser: {error}")
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., OpenPage]]:
    """Open a page of a file, or an empty one; at the end, nothing may have left it or failed in it.

    Args of the function it gives:
        file: the page; None for one that a test fills itself.
        fragment: what stands behind the ``#``.
        options: of Playwright's ``new_context``: ``color_scheme``, ``viewport``, ``reduced_motion``.
    """
    opened: list[OpenPage] = []

    def open_it(file: Path | None = None, fragment: str = "", **options: Any) -> OpenPage:
        # Nothing is turned off that would make a breach of the page's own policy pass.
        context = browser.new_context(offline=True, **options)
        page = context.new_page()
        page.set_default_timeout(15_000)
        one = OpenPage(page)
        opened.append(one)
        own = file.resolve().as_uri() if file is not None else "about:blank"

        def asked(address: str) -> None:
            if not address.startswith((own, "data:", "blob:")):
                one.requests.append(address)

        page.on("request", lambda request: asked(request.url))
        page.on("websocket", lambda socket: one.requests.append(socket.url))
        page.on("pageerror", lambda error: one.errors.append(str(error)))
        page.on(
            "console",
            lambda said: one.errors.append(said.text) if said.type == "error" else None,
        )

        def dismissed(dialog: Any) -> None:
            one.dialogs.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", dismissed)
        if file is not None:
            page.goto(own + (f"#{fragment}" if fragment else ""))
        return one

    yield open_it
    for one in opened:
        one.close_cleanly()
