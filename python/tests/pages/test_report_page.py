"""The page of a report in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_ripple.pages.report import html, mondays
from dbt_ripple.pages.report_from_tables import from_tables
from dbt_ripple.rendering.escaping import shown

if TYPE_CHECKING:
    from browsers import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
WEEKS = mondays(NOW.date(), 4)
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>",
    "\u202eevil שלום 🙂",
    "d" * 500,
    "sales",
)


def page(folder: Path) -> Path:
    kpis = [
        {
            "week": f"{week}T00:00:00+00:00",
            "snapshot_id": "a",
            "node_coverage": 0.8 + number / 20,
            "tier1_column_coverage": None if number == 1 else 0.9,
            "certified_path_integrity": 1.0,
            "unknown_downstreams": 5 - number,
            "changes": number,
            "median_blast_radius": number * 1.5,
        }
        for number, week in enumerate(WEEKS)
        if number != 2
    ]
    incidents = [
        {
            "opened_at": f"{WEEKS[number]}T08:00:00+00:00",
            "closed_at": f"{WEEKS[number]}T{10 + number}:00:00+00:00",
            "domain": domain,
            "state": "closed",
        }
        for number, domain in enumerate(HOSTILE)
    ]
    rows: Any = {"lineage_kpis": kpis, "incidents": incidents, "domain_kpis": []}
    unread = {"median_blast_radius": "it cannot be read (<b>no table</b>)"}
    file = folder / "report.html"
    report = from_tables("<i>shop</i>", WEEKS, rows, unread, set(WEEKS), NOW)
    file.write_text(html(report), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "options",
    [{}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}],
    ids=["light", "dark", "narrow"],
)
def test_it_is_accessible_and_shows_names_as_text(
    tmp_path: Path, open_page: Callable[..., OpenPage], options: dict[str, Any], request: Any
) -> None:
    one = open_page(page(tmp_path), **options)
    assert one.accessibility() == []
    assert one.page.locator("script, img, main i").count() == 0
    assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    names = one.page.locator("section[aria-labelledby='domains'] tbody th").all_text_contents()
    assert sorted(names) == sorted(map(shown, HOSTILE))
    assert "<b>no table</b>" in (one.page.locator("main").text_content() or "")
    one.screenshot(f"report-{request.node.callspec.id}", full_page=True)


def test_it_prints(tmp_path: Path, open_page: Callable[..., OpenPage]) -> None:
    one = open_page(page(tmp_path), color_scheme="dark")
    assert one.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    one.page.emulate_media(media="print")
    assert one.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    one.screenshot("report-print", full_page=True)
