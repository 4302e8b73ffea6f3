"""The page of an evidence pack in a real browser: hostile names, light and dark, narrow, on paper."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hostile_project
import pytest

from dbt_ripple.cli import cli

if TYPE_CHECKING:
    from browsers import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"' onmouseover=alert(3) x='",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(4)",
    "\u202eevil\u2066",
    "שלום عالم",
    "🙂👩‍👩‍👧",
    "n" * 500,
    "]]></style><svg onload=alert(5)>",
)


def run(*arguments: str) -> None:
    assert not cli([*arguments], prog_name="dbt-ripple", standalone_mode=False, obj=[])


def packed(folder: Path, part: str) -> tuple[Path, Any]:
    def name(of: str) -> str:
        return f"{of}{part}{of[-1]}"

    hostile_project.write(folder, name)
    root = hostile_project.unique_id("m_fct", name)
    run("evidence", root, "-o", str(folder / "pack"), "--project-dir", str(folder), "--no-cache")
    said = json.loads((folder / "pack" / "evidence.json").read_text(encoding="utf-8"))
    return folder / "pack" / "index.html", said


@pytest.mark.parametrize("part", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_shown_and_do_nothing(
    tmp_path: Path, part: str, open_page: Callable[..., OpenPage]
) -> None:
    file, said = packed(tmp_path, part)
    one = open_page(file)
    page = one.page
    page.mouse.move(200, 200)
    assert page.locator("script, iframe, img, object, form, input").count() == 0
    on_handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"
    )
    assert on_handlers == []
    assert page.locator("main > section").count() >= 8
    # What is said of each node stands in a row of its own.
    rows = page.locator("section[aria-labelledby='made-of'] tbody tr")
    assert rows.count() == sum(node["side"] != "downstream" for node in said["nodes"])
    from dbt_ripple.rendering.escaping import shown

    heading = page.locator("h1").text_content() or ""
    assert heading == shown(said["nodes"][0]["name"])
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of a model of a project that dbt 1.11 compiled."""
    import shutil

    folder = tmp_path_factory.mktemp("shop")
    fixture = Path(__file__).parent.parent / "artifacts" / "fixtures" / "v12_dbt_1_11"
    shutil.copytree(fixture, folder / "target")
    run(*("evidence", "dim_customers.v2", "-o", str(folder / "pack"), "--project-dir", str(folder)))
    return folder / "pack" / "index.html"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"color_scheme": "dark"},
        {"viewport": {"width": 360, "height": 740}},
    ],
    ids=["light", "dark", "narrow"],
)
def test_it_is_accessible_and_fits(
    shop: Path, open_page: Callable[..., OpenPage], options: dict[str, Any], request: Any
) -> None:
    one = open_page(shop, **options)
    assert one.accessibility() == []
    assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    one.screenshot(f"evidence-{request.node.callspec.id}", full_page=True)
    anchors = one.page.locator("a[href^='#']")
    assert anchors.count() > 0
    for number in range(anchors.count()):
        target = anchors.nth(number).get_attribute("href") or ""
        assert one.page.locator(target).count() == 1


def test_it_prints(shop: Path, open_page: Callable[..., OpenPage]) -> None:
    one = open_page(shop, color_scheme="dark")
    pdf = one.page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    one.page.emulate_media(media="print")
    # White paper, also where the screen is dark, and nothing is cut off that scrolls on a screen.
    assert (
        one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert one.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    one.page.set_viewport_size({"width": 690, "height": 1000})
    assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    one.screenshot("evidence-print", full_page=True)
