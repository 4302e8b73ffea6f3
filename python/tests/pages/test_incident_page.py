"""The page of an incident in a real browser: on a telephone, in the dark, with hostile names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "governance"))

from test_incident import EDITED_STG, of, wide, world

from dbt_ripple.pages.incident import incident_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from browsers import OpenPage

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "{{ 7*7 }} {% raw %}",
    "\u202eknil\u202c \u2066x",
    "\N{FIRE}" * 20,
    "x" * 500,
    "a\nb\tc",
)
PHONE = {"width": 360, "height": 740}


def hostile() -> str:
    """A page where every name that can be hostile is."""
    made = world(EDITED_STG, fresh="error")
    for number, unique_id in enumerate(made.nodes):
        node = made.nodes[unique_id]
        owned = {**node.meta, "owner": HOSTILE[(number + 3) % len(HOSTILE)]}
        # The source is shared with other tests.
        node = made.nodes[unique_id] = msgspec.structs.replace(node, meta=owned)
        if unique_id != "source.p.raw":
            name = HOSTILE[number % len(HOSTILE)]
            made.nodes[unique_id] = msgspec.structs.replace(node, name=name)
    base = world()
    found = of(made, base, root="model.p.daily")
    return incident_page(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_on_a_telephone(
    tmp_path: Path, open_page: Callable[..., OpenPage], scheme: str
) -> None:
    file = tmp_path / "incident.html"
    file.write_text(incident_page(of(world(EDITED_STG, fresh="error"), world())))
    one = open_page(file, viewport=PHONE, color_scheme=scheme)
    assert one.page.title() == "total fails since 2026-01-01 09:00:00 UTC"
    headings = one.page.get_by_role("heading", level=2).all_inner_texts()
    assert headings[:2] == ["What failed", "Likely causes"] and "What to do" in headings
    first = one.page.locator("#causes + ol > li").first.inner_text()
    assert first.startswith("stg (3 steps above)") and "price * 2" in first
    # Nothing has to be scrolled to the side.
    assert one.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert one.accessibility() == []
    one.screenshot(f"incident-phone-{scheme}", full_page=True)


def test_hostile_names_are_shown_and_never_run(
    tmp_path: Path, open_page: Callable[..., OpenPage]
) -> None:
    file = tmp_path / "incident.html"
    file.write_text(hostile())
    one = open_page(file, viewport=PHONE)
    one.page.wait_for_timeout(100)
    text = one.page.inner_text("body")
    shown = [name for name in HOSTILE[:4] if name in text]
    assert len(shown) >= 3 and "\u202e" not in text and "\\u202eknil" in text
    assert one.page.locator("script, img, svg").count() == 0
    assert one.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert one.accessibility() == []
    one.screenshot("incident-hostile", full_page=True)


def test_it_is_printed_whole(tmp_path: Path, open_page: Callable[..., OpenPage]) -> None:
    file = tmp_path / "incident.html"
    found = of(wide(60))
    file.write_text(incident_page(found))
    one = open_page(file)
    assert one.page.locator("#below + ul > li").count() == len(found.impacted) == 61
    one.page.emulate_media(media="print")
    one.screenshot("incident-print", full_page=True)
    one.screenshot("incident-wide")
