"""The browser that tests of pages have sees what a page must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from readable import unreadable

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


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<p>one</p><p style='margin-top:-2.2em'>two</p>", "on each other"),
        ("<p>one</p><p>two</p>", None),
        ("<p style='width:4em;border:1px solid;white-space:nowrap'>much longer</p>", "wider than"),
        ("<p style='width:9em;border:1px solid;white-space:nowrap'>short</p>", None),
        ("<p style='height:1em;overflow:hidden'>one<br>two</p>", "cut below"),
        ("<p style='position:absolute;left:2000px'>far</p>", "sideways"),
        ("<svg width=99 height=40><text y=20>ab…</text></svg>", "cut: text"),
        (
            "<svg width=99 height=40><g class=box><rect class=frame width=9 height=9 />"
            "<text y=8>abcdef</text></g></svg>",
            "out of its box",
        ),
        (
            "<svg id=picture width=99 height=40><rect class=frame width=30 height=30 />"
            "<rect class=frame x=20 width=30 height=30 /></svg>",
            "boxes on each other",
        ),
        ("<h2 style='margin-top:3000px'>below</h2>", "out of sight: h2"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, open_page: Callable[..., OpenPage], body: str, said: str | None
) -> None:
    one = open_page(page_of(tmp_path, body), viewport={"width": 400, "height": 300})
    found = unreadable(one, "h2" if "<h2" in body else None)
    assert said in " ".join(found) if said else found == []
