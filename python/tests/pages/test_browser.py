"""The browser that tests of pages have sees what a page must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from browsers import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def page_of(folder: Path, body: str) -> Path:
    file = folder / "page.html"
    file.write_text(f"<!doctype html><html lang=en><title>t</title><main>{body}</main></html>")
    return file


def test_requests_errors_and_dialogs_are_seen(
    tmp_path: Path, open_page: Callable[..., OpenPage]
) -> None:
    bad = (
        "<img alt='' src=https://x.example/a.png><script>alert('seen'); throw Error('no')</script>"
    )
    one = open_page(page_of(tmp_path, bad))
    one.page.wait_for_timeout(100)
    assert one.requests == ["https://x.example/a.png"]
    assert one.dialogs == ["seen"]
    assert any("no" in error for error in one.errors)
    for found in (one.requests, one.dialogs, one.errors):
        found.clear()


def test_a_serious_finding_of_axe_is_told(
    tmp_path: Path, open_page: Callable[..., OpenPage]
) -> None:
    one = open_page(page_of(tmp_path, "<button></button>"))
    assert [finding.split(":")[0] for finding in one.accessibility()] == ["button-name"]
    assert open_page(page_of(tmp_path, "<button>Go</button>")).accessibility() == []
