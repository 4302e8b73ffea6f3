"""The explorer's page in a real browser: found, followed, filtered, compared, and kept to itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import explorer_shop as world
import pytest
from browsers import OpenPage
from explorer_shop import CUSTOMERS, FCT, FCT_SQL, MART, PYTHON, RAW, STG, STG_SQL, nodes, shop
from hand_made import node
from msgspec.structs import replace

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[..., OpenPage]
DESK = {"viewport": {"width": 1440, "height": 900}}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.page(tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="module")
def change_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`channel` is defined otherwise, `status` is gone, which fct_orders reads; a model is removed."""
    head = shop(*nodes(STG_SQL.replace("channel, status", "lower(channel) as channel"), old=False))
    return world.page(tmp_path_factory.mktemp("change"), head, shop())


@pytest.fixture(scope="module")
def stop_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`channel` is defined otherwise: what reads other columns of fct_orders is the same."""
    head = shop(*nodes(STG_SQL.replace("channel", "lower(channel) as channel")))
    return world.page(tmp_path_factory.mktemp("stop"), head, shop())


@pytest.fixture
def opened(open_page: Open) -> Callable[..., OpenPage]:
    def open_it(file: Path, fragment: str = "", **options: Any) -> OpenPage:
        one = open_page(file, fragment, **{**DESK, **options})
        one.page.wait_for_selector("#app[data-ready]")
        return one

    return open_it


def boxes(one: OpenPage) -> dict[str, str]:
    """What is drawn: the name of each node, and its classes."""
    found = one.page.eval_on_selector_all(
        "#picture .box",
        "all => all.map(g => [g.getAttribute('aria-label'), g.getAttribute('class')])",
    )
    return {label.split(" ")[-1]: classes for label, classes in found}


def edges(one: OpenPage) -> list[str]:
    return one.page.eval_on_selector_all(
        "#picture .edge", "all => all.map(g => g.getAttribute('class').replace('edge ', ''))"
    )


def fragment_of(one: OpenPage) -> str:
    return str(one.page.evaluate("decodeURIComponent(location.hash)"))


def button(one: OpenPage, label: str) -> Any:
    return one.page.locator(f'#picture [role=button][aria-label^="{label}"]')


# --- search ------------------------------------------------------------------------------------------


def test_search_finds_nodes_columns_owners_and_tags_as_one_types(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file)

    def found(query: str) -> list[str]:
        one.page.fill("#search", query)
        return [text.split(" ")[0] for text in one.page.locator("[role=option]").all_inner_texts()]

    assert found("fct") == ["fct_orders"]
    assert set(found("orders")) >= {"orders", "raw_orders", "stg_orders", "fct_orders"}
    assert found("revenue.to") == ["total"]
    assert found("stg cents") == ["cents"]
    assert found("ann@") == ["ann@x.example"]
    assert found("finance") == ["finance"]
    assert found("no such thing") == []
    assert "Nothing has this" in one.page.inner_text("#found")


def test_what_is_found_is_selected_and_a_tag_filters(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file)
    one.page.fill("#search", "revenue.total")
    one.page.keyboard.press("Enter")
    assert one.page.inner_text("#details h2") == "total"
    assert {"revenue", "fct_orders"} <= boxes(one).keys()
    one.page.fill("#search", "finance")
    # What the first search left to do when the focus went away does not close the second one.
    one.page.wait_for_timeout(300)
    assert one.page.is_visible("#found")
    one.page.keyboard.press("Enter")
    assert boxes(one).keys() == {"revenue", "fct_orders"}
    assert "hidden by the filters" in one.page.inner_text(".notice")


# --- the graph -----------------------------------------------------------------------------------------


def test_columns_run_from_left_to_right_and_kinds_of_edges_are_told_apart(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file, f"node={FCT}&column=paid&depth=all")
    assert boxes(one).keys() == {
        *("raw_orders", "stg_orders", "fct_orders", "revenue", "report", "forecast")
    }
    left = one.page.eval_on_selector_all(
        "#picture .box",
        "all => Object.fromEntries(all.map(g => [g.getAttribute('aria-label').split(' ').at(-1),"
        " g.getBoundingClientRect().left]))",
    )
    assert left["raw_orders"] < left["stg_orders"] < left["fct_orders"] < left["revenue"]
    assert set(edges(one)) == {"value", "decides", "rows may"}
    styles = {
        kind: one.page.evaluate(
            "kind => { const s = getComputedStyle(document.querySelector(`.edge.${kind} .line`));"
            " return [s.stroke, s.strokeDasharray] }",
            kind,
        )
        for kind in ("value", "decides", "rows")
    }
    assert len({tuple(style) for style in styles.values()}) == 3
    assert len({style[1] for style in styles.values()}) == 3  # without colours, too
    one.page.uncheck("#edges-decides")
    assert "status" not in one.page.text_content("#picture")
    one.page.uncheck("#edges-may")
    assert "forecast" not in boxes(one)


def test_rows_are_followed(opened: Callable[..., OpenPage], page_file: Path) -> None:
    one = opened(page_file, f"node={STG}&column=cents&direction=downstream")
    assert "rows" in edges(one)
    one.page.uncheck("#edges-rows")
    assert "rows" not in edges(one)
    assert "(rows)" not in one.page.text_content("#picture")


def test_direction_and_depth(opened: Callable[..., OpenPage], page_file: Path) -> None:
    one = opened(page_file, f"node={FCT}&depth=1")
    near = {"stg_orders", "raw_customers", "fct_orders", "revenue", "regions", "forecast"}
    assert boxes(one).keys() == near
    one.page.check("#direction-upstream")
    assert boxes(one).keys() == {"stg_orders", "raw_customers", "fct_orders"}
    one.page.select_option("#depth", "2")
    assert boxes(one).keys() == {"raw_orders", "stg_orders", "raw_customers", "fct_orders"}
    one.page.check("#direction-downstream")
    assert boxes(one).keys() == {"fct_orders", "revenue", "regions", "forecast", "report"}


def test_expand_and_collapse(opened: Callable[..., OpenPage], page_file: Path) -> None:
    one = opened(page_file, f"node={FCT}&depth=1")
    button(one, "Show 1 more upstream of stg_orders").click()
    assert "raw_orders" in boxes(one)
    # stg_orders has another reader, beside the way to fct_orders.
    button(one, "Show 1 more downstream of stg_orders").click()
    assert "old_report" in boxes(one)
    button(one, "Hide what is upstream of stg_orders").click()
    assert "raw_orders" not in boxes(one)
    button(one, "Hide what is downstream of fct_orders").click()
    assert not {"revenue", "regions", "forecast"} & boxes(one).keys()
    button(one, "Show 3 more downstream of fct_orders").click()
    assert {"revenue", "regions", "forecast"} <= boxes(one).keys()
    assert button(one, "column").count() == 0
    button(one, "Show columns of fct_orders").click()
    assert button(one, "column").count() == 6
    button(one, "Show columns of stg_orders").click()
    assert {"value", "decides"} <= set(edges(one))
    button(one, "Hide columns of fct_orders").click()
    button(one, "Hide columns of stg_orders").click()
    assert button(one, "column").count() == 0
    assert set(edges(one)) == {"node"}
    # Of a column those on its way are shown; the arrow shows all, then none.
    one = opened(page_file, f"node={FCT}&column=paid&depth=1")
    assert button(one, "column").count() == 4
    button(one, "Show all columns of fct_orders").click()
    assert button(one, "column").count() == 9
    button(one, "Hide columns of fct_orders").click()
    assert button(one, "column").count() == 3
    button(one, "Show columns of fct_orders").click()
    assert button(one, "column").count() == 4


def test_the_expression_is_shown_on_hover_and_on_focus(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file, f"node={FCT}&column=paid&depth=1")
    hint = one.page.locator("#hint")
    assert hint.is_hidden()
    button(one, "column paid").hover()
    assert "CASE WHEN" in hint.inner_text()
    one.page.mouse.move(5, 5)
    assert hint.is_hidden()
    button(one, "model fct_orders").focus()
    one.page.keyboard.press("ArrowDown")
    assert "CASE WHEN" in hint.inner_text()
    assert button(one, "column paid").get_attribute("aria-describedby") == "hint"
    one.page.locator("#picture .edge.decides .wide").first.hover(force=True)
    assert "INDIRECT CONDITIONAL" in hint.inner_text()


def test_what_filters_hide_is_passed_through(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file, f"node={RAW}&depth=all&layer=marts&direction=downstream")
    assert "stg_orders" not in boxes(one)
    assert "fct_orders" in boxes(one)
    assert any("through" in edge for edge in edges(one))
    one = opened(page_file, f"node={RAW}&column=amount&depth=all&layer=marts")
    assert any("through" in edge and "value" in edge for edge in edges(one))
    one.page.locator("summary", has_text="Layer").click()
    one.page.get_by_label("staging").check()
    assert "stg_orders" in boxes(one)
    one.page.get_by_text("Clear filters").click()
    assert "layer" not in fragment_of(one)
    one = opened(page_file, f"node={FCT}&owner=bob@x.example")
    assert boxes(one).keys() == {"fct_orders", "revenue"}


def test_what_is_not_followed_says_so(opened: Callable[..., OpenPage], page_file: Path) -> None:
    one = opened(page_file)
    assert "Not followed (1)" in one.page.inner_text("#details")
    one = opened(page_file, f"node={PYTHON}")
    assert "opaque" in boxes(one)["forecast"]
    assert "could not be followed" in one.page.inner_text("#details .warning")
    assert "NOT FOLLOWED" in one.page.text_content("#picture").upper()


def test_what_a_column_is_made_of_is_not_said_where_it_is_not_known(
    opened: Callable[..., OpenPage], tmp_path: Path
) -> None:
    listed = node(STG, columns=["only_in_yml"]).columns
    found = [
        replace(one, columns=listed) if one.unique_id in (STG, PYTHON) else one for one in nodes()
    ]
    file = world.page(tmp_path, shop(*found))
    for unique_id, column, said in (
        (STG, "only_in_yml", "Not known: its query does not show it"),
        (PYTHON, "only_in_yml", "fct_orders.cents may read"),
        (RAW, "amount", "Nothing in this project."),
    ):
        one = opened(file, f"node={unique_id}&column={column}")
        text = one.page.locator("#details section", has_text="Comes from").inner_text()
        assert said in text, unique_id


def test_the_details_of_a_node_and_a_column(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file, f"node={FCT}")
    text = one.page.inner_text("#details")
    for said in ("certified", "tier1", "bob@x.example", "finance", "marts", "personal data"):
        assert said in text
    one.page.locator("#details").get_by_role("button", name="email", exact=True).click()
    text = one.page.inner_text("#details")
    assert "inherited" in text
    assert "raw_customers.email" in text
    one.page.get_by_role("button", name="raw_customers.email").click()
    assert fragment_of(one) == f"#node={CUSTOMERS}&column=email"


# --- links, keys, looks ----------------------------------------------------------------------------------


def test_a_link_shows_what_was_selected(opened: Callable[..., OpenPage], page_file: Path) -> None:
    one = opened(page_file, f"node={FCT}&depth=1")
    button(one, "Show 1 more upstream of stg_orders").click()
    button(one, "Show columns of fct_orders").click()
    button(one, "column paid").click()
    one.page.check("#direction-upstream")
    one.page.select_option("#depth", "all")
    one.page.uncheck("#edges-rows")
    again = opened(page_file, one.page.url.split("#", 1)[1])
    assert boxes(again) == boxes(one)
    assert edges(again) == edges(one)
    assert again.page.inner_text("#details") == one.page.inner_text("#details")
    assert again.page.title().startswith("fct_orders.paid")
    one.page.go_back()
    one.page.wait_for_function("document.querySelector('#edges-rows').checked")
    one = opened(page_file, "node=model.p.gone")
    assert "There is no model.p.gone" in one.page.inner_text(".notice")
    one = opened(page_file, f"node={FCT}&column=gone&depth=x&edges=,&limit=0&type=%ff")
    assert "There is no model.p.fct_orders.gone" in one.page.inner_text(".notice")


def test_all_of_it_works_by_keys_alone(opened: Callable[..., OpenPage], page_file: Path) -> None:
    one = opened(page_file)
    press = one.page.keyboard.press
    focused = "document.activeElement.getAttribute('aria-label')"
    press("/")
    one.page.keyboard.type("fct_o")
    press("ArrowDown")
    press("ArrowUp")
    press("Enter")
    assert one.page.evaluate(focused).startswith("model fct_orders")
    press("c")
    press("ArrowDown")
    assert one.page.evaluate(focused) == "column id"
    for _ in range(2):
        press("ArrowDown")
    assert one.page.evaluate(focused) == "column paid"
    press("Enter")
    assert one.page.inner_text("#details h2") == "paid"
    assert one.page.evaluate(focused).startswith("column paid")
    press("ArrowLeft")
    assert one.page.evaluate(focused) in ("column cents", "column status")
    press("ArrowRight")
    assert one.page.evaluate(focused).startswith("column paid")
    press("Home")
    assert one.page.evaluate(focused).startswith("model fct_orders")
    before = boxes(one).keys()
    press("d")
    assert boxes(one).keys() < before
    press("d")
    assert boxes(one).keys() == before
    press("Escape")
    assert one.page.inner_text("#details h2") == "fct_orders"
    press("?")
    assert one.page.locator("dialog").is_visible()
    press("Escape")
    assert one.page.locator("dialog").is_hidden()
    # Tab comes to every control, and to the picture once.
    seen = set()
    for _ in range(60):
        press("Tab")
        seen.add(
            one.page.evaluate("document.activeElement.id || document.activeElement.dataset?.key")
        )
    assert {"search", "theme", "keys", "depth"} <= seen
    assert len([key for key in seen if key and re.fullmatch(r"[ncv]\d+", key)]) == 1


def test_light_and_dark(opened: Callable[..., OpenPage], page_file: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    box = "getComputedStyle(document.querySelector('.frame')).fill"
    light = opened(page_file, f"node={FCT}", color_scheme="light")
    dark = opened(page_file, f"node={FCT}", color_scheme="dark")
    assert light.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert sum(map(int, re.findall(r"\d+", dark.page.evaluate(ground)))) < 150
    assert light.page.evaluate(box) != dark.page.evaluate(box)
    light.screenshot("explorer-light")
    dark.screenshot("explorer-dark")
    light.page.click("#theme")
    light.page.click("#theme")
    assert light.page.evaluate(ground) == dark.page.evaluate(ground)
    light.page.reload()
    light.page.wait_for_selector("#app[data-ready]")
    assert light.page.evaluate(ground) == dark.page.evaluate(ground)


def test_paper_has_the_picture_and_the_details_and_no_controls(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    one = opened(page_file, f"node={FCT}", color_scheme="dark")
    one.page.emulate_media(media="print")
    for control in ("#search", ".tools", ".filters", "#theme"):
        assert one.page.locator(control).is_hidden()
    for kept in ("#picture", "#details"):
        assert one.page.locator(kept).is_visible()
    assert (
        one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    one.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    fits = one.page.evaluate(
        "[...document.querySelectorAll('.box')].every(b => { const r = b.getBoundingClientRect();"
        " return r.left >= 0 && r.right <= innerWidth + 1 })"
    )
    assert fits
    one.screenshot("explorer-print", full_page=True)
    assert one.page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_checker_finds_nothing_serious(
    opened: Callable[..., OpenPage], page_file: Path, change_file: Path, scheme: str
) -> None:
    for name, file, fragment in (
        ("overview", page_file, ""),
        ("node", page_file, f"node={FCT}&columns={FCT}&columns={STG}"),
        ("column", page_file, f"node={FCT}&column=paid&depth=all"),
        ("opaque", page_file, f"node={PYTHON}&layer=marts"),
        ("change", change_file, ""),
        ("changed", change_file, f"node={STG}"),
    ):
        one = opened(file, fragment, color_scheme=scheme, reduced_motion="reduce")
        one.screenshot(f"explorer-{name}-{scheme}")
        assert one.accessibility() == [], name
        assert one.page.evaluate("document.getAnimations().length") == 0
    one.page.fill("#search", "o")
    assert one.accessibility() == []
    one.page.keyboard.press("Escape")
    one.page.locator("summary", has_text="Owner").click()
    assert one.accessibility() == []
    one.page.keyboard.press("Escape")
    one.page.click("#keys")
    assert one.accessibility() == []


def test_a_narrow_window_has_all_of_it(opened: Callable[..., OpenPage], change_file: Path) -> None:
    one = opened(change_file, viewport={"width": 380, "height": 800})
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 380
    one.screenshot("explorer-narrow", full_page=True)
    assert one.accessibility() == []


# --- a change --------------------------------------------------------------------------------------------


def states(one: OpenPage) -> dict[str, str]:
    found = {}
    for name, classes in boxes(one).items():
        state = re.search(r"state-(\w+)", classes)
        found[name] = state.group(1) if state else ""
    return found


def test_compare_mode_shows_what_a_pull_request_does(
    opened: Callable[..., OpenPage], change_file: Path
) -> None:
    one = opened(change_file)
    assert states(one) == {
        "stg_orders": "changed",
        "fct_orders": "broken",
        "revenue": "impacted",
        "regions": "impacted",
        "forecast": "impacted",
        "report": "impacted",
        "old_report": "removed",
    }
    text = one.page.inner_text("#details")
    assert "Compared with main: 1 broken, 1 changed, 1 removed, 4 impacted." in text
    assert "cannot find o.status: stg_orders.status is gone" in text
    one.page.uncheck("#states-impacted")
    assert states(one).keys() == {"stg_orders", "fct_orders", "old_report"}
    button(one, "model stg_orders").click()
    text = one.page.inner_text("#details")
    assert "LOWER(channel)" in text
    assert "is gone" in text
    one.page.click("#change")
    assert states(one).keys() == {"stg_orders", "fct_orders", "old_report"}


def test_compare_mode_shows_where_a_change_stops(
    opened: Callable[..., OpenPage], stop_file: Path
) -> None:
    one = opened(stop_file)
    assert states(one) == {
        "stg_orders": "changed",
        "fct_orders": "impacted",
        "old_report": "stopped",
        "revenue": "stopped",
        "regions": "stopped",
        "forecast": "impacted",
    }
    assert "Tests to run: 0 of 1" in one.page.inner_text("#details")
    button(one, "model revenue").click()
    assert "nothing of it that differs" in one.page.inner_text("#details")


def test_a_change_of_words_alone_says_that_nothing_differs(
    opened: Callable[..., OpenPage], tmp_path: Path
) -> None:
    head = shop(*nodes(STG_SQL.replace("select", "SELECT\n ")))
    one = opened(world.page(tmp_path, head, shop()))
    assert "Nothing differs" in one.page.inner_text(".welcome")


# --- files -----------------------------------------------------------------------------------------------


def exported(one: OpenPage, kind: str) -> bytes:
    one.page.locator("#export summary").click()
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name=kind, exact=True).click()
    return Path(download.value.path()).read_bytes()


def test_export_as_svg_png_and_mermaid(
    opened: Callable[..., OpenPage], change_file: Path, tmp_path: Path
) -> None:
    one = opened(change_file, f"node={FCT}&column=cents&depth=all")
    svg = exported(one, "SVG")
    root = ElementTree.fromstring(svg)
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"fct_orders", "stg_orders", "cents"} <= texts
    assert b"var(--" not in svg
    assert b"<script" not in svg
    png = exported(one, "PNG")
    assert png.startswith(b"\x89PNG")
    mermaid = exported(one, "Mermaid").decode()
    assert mermaid.startswith("flowchart LR\n")
    assert "fct_orders" in mermaid
    assert "DIRECT IDENTITY" in mermaid
    assert ":::" in mermaid or "class g" in mermaid
    # The SVG is a picture of its own: it opens alone, without a request.
    alone = tmp_path / "alone.svg"
    alone.write_bytes(svg)
    opened_alone = one.page.context.new_page()
    opened_alone.goto(alone.as_uri())
    assert opened_alone.evaluate("document.documentElement.tagName") == "svg"


# --- hostile names ---------------------------------------------------------------------------------------

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=https://x.example/a.png onerror=alert(2)>",
    "\"'`${alert(3)}<!--",
    "\u202egnp.exe \u0645\u0631\u062d\u0628\u0627",
    "x" * 500,
    "👩‍👩‍👧‍👦 ✨",
    "</style><style>*{display:none}",
    "javascript:alert(4)",
    "__proto__",
    "a\nb\x00\x1b[31m",
)


@pytest.mark.parametrize("name", HOSTILE, ids=[f"name{i}" for i in range(len(HOSTILE))])
def test_hostile_names_are_shown_and_never_executed(
    opened: Callable[..., OpenPage], tmp_path: Path, name: str
) -> None:
    def hostile() -> list[Any]:
        by_id = {node.unique_id: node for node in nodes(email=name)}
        by_id[STG] = replace(
            by_id[STG],
            name=name,
            description=name,
            tags=[name],
            meta={"owner": name, "layer": name, "domain": name},
        )
        sql = (by_id[MART].compiled_code or "").replace(" as total", " as `t`")
        by_id[MART] = replace(by_id[MART], compiled_code=sql)
        by_id[RAW].columns["channel"].description = name
        return list(by_id.values())

    head = hostile()
    sql = FCT_SQL.replace("o.channel", "upper(o.channel) as channel")
    head[3] = replace(head[3], compiled_code=sql)
    one = opened(world.page(tmp_path, shop(*head), shop(*hostile())))
    page = one.page
    page.wait_for_timeout(50)
    assert page.evaluate("document.scripts.length") == 1
    for fragment in (f"node={STG}&columns={STG}", f"node={CUSTOMERS}&column=email&depth=all"):
        page.evaluate("hash => { location.hash = hash }", fragment)
        page.wait_for_function("document.querySelectorAll('.box').length > 1")
    page.evaluate("hash => { location.hash = hash }", f"node={STG}&columns={STG}")
    page.wait_for_function("document.querySelector('#details h2').textContent.length > 0")
    visible = "".join(
        char if char.isprintable() or char == "\u200d" else f"\\u{{{ord(char):x}}}" for char in name
    ).replace("\\u{a}", "\\n")
    assert page.inner_text("#details h2") == " ".join(visible.split()) or (
        page.text_content("#details h2") == visible
    )
    page.fill("#search", name[:20].replace("\n", " ").replace("\x00", ""))
    page.keyboard.press("Escape")
    button(one, "Show columns").first.hover()
    for kind in ("SVG", "Mermaid"):
        file = exported(one, kind)
        assert b"<script" not in file
        assert b"<img" not in file
    ElementTree.fromstring(exported(one, "SVG"))
    one.screenshot(f"explorer-hostile-{HOSTILE.index(name)}")
    assert page.evaluate("({}).polluted === undefined")


def test_the_page_forbids_every_request_itself(page_file: Path, open_page: Open) -> None:
    text = page_file.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy.group(1)
    assert "unsafe" not in policy.group(1)
    assert "http" not in policy.group(1)
    # A script that came in all the same could not send anything, nor could one be added.
    one = open_page(page_file, **DESK)
    one.page.wait_for_selector("#app[data-ready]")
    outcome = one.page.evaluate("fetch('https://x.example/').then(() => 'sent', () => 'refused')")
    assert outcome == "refused"
    assert any("Content Security Policy" in error for error in one.errors)
    one.errors.clear()
    one.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    assert one.page.evaluate("window.ran") is None
    one.errors.clear()
    one.requests.clear()


def test_the_page_is_the_same_for_the_same_artifacts(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    assert world.page(first).read_bytes() == world.page(second).read_bytes()


def test_the_browser_reads_back_what_was_packed(
    opened: Callable[..., OpenPage], page_file: Path
) -> None:
    """Every node, column and link of the document is in what the page unpacks."""
    from dbt_ripple.pages.explorer import unpacked

    document = world.documented(shop())
    raw = json.loads(
        json.dumps(unpacked(document), default=lambda value: getattr(value, "status", ""))
    )
    texts = raw["texts"]
    names = [texts[i] for i in raw["columns"]["name"]]
    assert names == [c.name for n in document.nodes.values() for c in n.columns]
    assert len(raw["links"]["parent"]) == len(document.links)
    one = opened(page_file)
    assert f"{len(names)}" in one.page.inner_text("#details dl")
