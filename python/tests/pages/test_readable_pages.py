"""The pages as somebody sees them who opens them for the first time, on a desk and on a phone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browsers import OpenPage
from large_project import LONG, changed, large
from msgspec.structs import replace
from readable import unreadable

from dbt_ripple.cli import cli
from dbt_ripple.graph.traversal import reach
from dbt_ripple.pages.evidence_pack import NEAREST
from dbt_ripple.pages.explorer import explorer_page
from dbt_ripple.pages.report import html, mondays
from dbt_ripple.pages.report_from_tables import from_tables

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[..., OpenPage]
DESK: dict[str, Any] = {"viewport": {"width": 1400, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 420, "height": 860}}
BOTH = pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
SIZES = (48, 240, 10_000)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by what is in them: the number of models, or of changed ones of 240."""
    folder = tmp_path_factory.mktemp("readable")
    files = {}
    for size in SIZES:
        document = large(size)
        files[f"{size}"] = explorer_page(document)
        if size == 240:
            for number in (1, 200):
                files[f"{number} changed"] = explorer_page(document, changed(document, number))
    for name, page in files.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in files}


def opened(open_page: Open, file: Path, window: dict[str, Any], fragment: str = "") -> OpenPage:
    one = open_page(file, fragment, **window)
    one.page.wait_for_selector("#app[data-ready]", timeout=60_000)
    return one


def in_sight(one: OpenPage, window: dict[str, Any]) -> bool:
    """Whether all of the picture is seen: on a desk in the window, on a phone in its width."""
    boxes: list[dict[str, float]] = one.page.eval_on_selector_all(
        "#picture .frame", "all => all.map(e => e.getBoundingClientRect().toJSON())"
    )
    canvas = one.page.eval_on_selector(".canvas", "e => e.getBoundingClientRect().toJSON()")
    assert boxes
    assert canvas["right"] <= window["viewport"]["width"] + 1
    return all(
        box["left"] >= canvas["left"] - 1
        and box["right"] <= canvas["right"] + 1
        and box["top"] >= canvas["top"] - 1
        and box["bottom"] <= canvas["bottom"] + 1
        for box in boxes
    )


def smallest_name(one: OpenPage) -> float:
    """How high the smallest name of the picture is drawn, in pixels."""
    return float(
        one.page.eval_on_selector_all(
            "#picture .name, #picture .member",
            "all => Math.min(...all.map(e => e.getBoundingClientRect().height))",
        )
    )


@BOTH
@pytest.mark.parametrize("size", [f"{size}" for size in SIZES])
def test_the_explorer_opens_with_the_whole_project(
    projects: dict[str, Path], open_page: Open, size: str, window: dict[str, Any]
) -> None:
    one = opened(open_page, projects[size], window)
    one.screenshot(f"start-{size}-{window['viewport']['width']}", full_page=True)
    labels = one.page.eval_on_selector_all(
        "#picture .group", "all => all.map(e => e.getAttribute('aria-label'))"
    )
    counts = [int(label.split(", ")[1].split(" ")[0].replace(",", "")) for label in labels]
    assert [label.split(", ")[0] for label in labels] == ["staging", "intermediate", "marts"]
    assert sum(counts) == int(size)
    assert in_sight(one, window)
    assert smallest_name(one) >= 8
    assert unreadable(one, "#picture .group") == []


@BOTH
def test_a_group_is_opened_down_to_a_node(
    projects: dict[str, Path], open_page: Open, window: dict[str, Any]
) -> None:
    one = opened(open_page, projects["240"], window)
    one.page.locator('#picture [role=button][aria-label^="folder team_1,"]').first.click()
    assert "group=staging%2Fteam_1" in one.page.url
    assert in_sight(one, window)
    assert unreadable(one, "#picture .group") == []
    assert one.page.locator("#details .list li").count() == 4
    again = opened(open_page, projects["240"], window, one.page.url.split("#")[1])
    assert again.page.inner_text("#details") == one.page.inner_text("#details")
    # A name that is as long as real ones is there whole, in the picture and beside it.
    name = f"model_00024_{LONG}"
    assert name in one.page.inner_text("#details")
    one.page.locator(f'#picture [role=button][aria-label^="model {name}"]').click()
    assert one.page.inner_text("#details h2") == name
    assert unreadable(one, "#picture .focus .name") == []
    drawn = "".join(one.page.locator("#picture .focus .name").all_text_contents())
    assert drawn == name


@BOTH
@pytest.mark.parametrize("change", ["1 changed", "200 changed"])
def test_a_change_is_in_sight_whole(
    projects: dict[str, Path], open_page: Open, change: str, window: dict[str, Any]
) -> None:
    one = opened(open_page, projects[change], window)
    one.screenshot(f"{change}-{window['viewport']['width']}", full_page=True)
    is_grouped = one.page.locator("#picture .group").count() > 0
    assert is_grouped == (change == "200 changed")
    assert in_sight(one, window)
    assert smallest_name(one) >= 8
    assert unreadable(one, "#picture .frame") == []
    # Fit brings all of it back, however far one has gone.
    if window is DESK:
        for _ in range(9):
            one.page.get_by_label("Larger").click()
        assert not in_sight(one, window)
        one.page.get_by_label("Everything into sight").click()
        assert in_sight(one, window)


def test_a_change_is_listed_by_owner_and_by_reach(
    projects: dict[str, Path], open_page: Open
) -> None:
    one = opened(open_page, projects["200 changed"], DESK)
    owners = one.page.locator("#details .owner")
    headings = owners.locator("h4").all_inner_texts()
    nobody = "Nobody is named as owner"
    assert all("@x.example" in heading or nobody in heading for heading in headings)
    reached = [
        [int(number) for number in re.findall(r"feeds (\d+)", text)]
        for text in owners.all_inner_texts()
    ]
    firsts = [numbers[0] if numbers else 0 for numbers in reached]
    assert firsts == sorted(firsts, reverse=True)
    of_nobody = reached[[nobody in heading for heading in headings].index(True)]
    assert len(of_nobody) > 3
    assert of_nobody == sorted(of_nobody, reverse=True)
    text = one.page.inner_text("#details")
    assert "Its own definition differs" not in text
    assert "and 5 more columns: defined otherwise" in text
    assert "Tests to run: 7 of 240, and 1 unit test." in text


def test_the_legend_is_what_is_drawn(tmp_path: Path, open_page: Open) -> None:
    document = large(48)
    for unique_id in list(document.nodes)[-2:]:
        node = replace(document.nodes[unique_id], resource_type="saved_query", status="opaque")
        document.nodes[unique_id] = node
    file = tmp_path / "explorer.html"
    file.write_text(explorer_page(document), encoding="utf-8")
    one = opened(open_page, file, DESK)
    assert "46 models, 2 saved queries" in one.page.inner_text("#details")
    legend = one.page.locator(".legend li")
    drawn = {
        "": ["nodes of one group read", "how many nodes"],
        "node=model.p.model_00002&depth=1": ["one node reads the other"],
        "node=model.p.model_00047&depth=1": ["one node reads the other", "not followed"],
        "node=model.p.model_00001&column=*rows*&direction=upstream": ["rows: which rows"],
    }
    for fragment, words in drawn.items():
        one = opened(open_page, file, DESK, fragment)
        legend = one.page.locator(".legend li")
        said = legend.all_inner_texts()
        assert len(said) == len(words), (fragment, said)
        assert all(word in text for word, text in zip(words, said, strict=True)), (fragment, said)
        # The sample looks as the edges do.
        stroke = "all => [...new Set(all.map(e => getComputedStyle(e).strokeDasharray))]"
        of_edges = one.page.eval_on_selector_all("#picture .edge .line", stroke)
        assert one.page.eval_on_selector_all(".legend .edge .line", stroke) == of_edges


# --- evidence --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of that model of a project of 240 that is made of most."""
    folder = tmp_path_factory.mktemp("evidence")
    generator = Path(__file__).parents[2] / "bench" / "generate.py"
    command = [sys.executable, str(generator), "--models", "240", str(folder / "target")]
    subprocess.run(command, check=True, capture_output=True)
    manifest = json.loads((folder / "target" / "manifest.json").read_text(encoding="utf-8"))
    parents = manifest["parent_map"]
    models = [unique_id for unique_id in parents if unique_id.startswith("model.bench.")]
    _, most = max((len(reach(one, parents)), one) for one in models)
    name = most.rpartition(".")[2]
    options = ["--project-dir", str(folder), "--no-cache"]
    assert not cli(
        ["evidence", name, "-o", str(folder / "pack"), *options],
        prog_name="dbt-ripple",
        standalone_mode=False,
        obj=[],
    )
    return folder / "pack"


@BOTH
def test_evidence_shows_the_subject_and_what_is_near(
    pack: Path, open_page: Open, window: dict[str, Any]
) -> None:
    one = open_page(pack / "index.html", **window)
    one.screenshot(f"evidence-{window['viewport']['width']}", full_page=True)
    assert unreadable(one, "h1") == []
    said = json.loads((pack / "evidence.json").read_text(encoding="utf-8"))
    upstream = [node for node in said["nodes"] if node["side"] == "upstream"]
    assert len(upstream) > NEAREST
    nearest = [node["name"] for node in upstream if node["depth"] == 1]
    if window is PHONE:
        instead = one.page.inner_text(".instead")
        assert all(name in instead for name in nearest)
        assert not one.page.is_visible(".picture")
    else:
        picture = one.page.locator(".picture").bounding_box()
        subject = one.page.locator(".picture .root").bounding_box()
        assert picture is not None
        assert subject is not None
        assert picture["x"] <= subject["x"]
        assert subject["x"] + subject["width"] <= picture["x"] + picture["width"]
        drawn = one.page.locator(".picture .node").count()
        assert f"The nearest {drawn} of {len(said['nodes'])} nodes" in one.page.inner_text("main")
    whole = (pack / "lineage.svg").read_text(encoding="utf-8")
    assert whole.count('class="node') == len(said["nodes"])


def test_evidence_of_one_model_is_printed_on_a_few_pages(pack: Path, open_page: Open) -> None:
    one = open_page(pack / "index.html", **DESK)
    printed = one.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 25
    # What is left out is in files that the page names, and that are there.
    text = one.page.inner_text("main")
    assert "more nodes with columns: evidence.json has them" in text
    for link in one.page.locator("a:not([href^='#'])").all():
        assert (pack / (link.get_attribute("href") or "")).is_file()


# --- report ----------------------------------------------------------------------------------------------


def report_of(weeks: int, folder: Path) -> Path:
    """The page of a report of some weeks in which everything but the time to recover is known."""
    now = datetime(2026, 11, 26, 12, tzinfo=UTC)
    days = mondays(now.date(), weeks)
    kpis = [
        {
            "week": f"{day}T00:00:00+00:00",
            "snapshot_id": f"{place}",
            "node_coverage": 0.981 + place / 1000,
            "tier1_column_coverage": 0.9,
            "certified_path_integrity": 1.0,
            "unknown_downstreams": 1_205 - place,
            "changes": 13 * (place + 1),
            "contract_violations": place,
            "median_blast_radius": place * 1.5,
        }
        for place, day in enumerate(days)
    ]
    rows: Any = {"lineage_kpis": kpis, "incidents": [], "domain_kpis": []}
    file = folder / "report.html"
    file.write_text(html(from_tables("shop", days, rows, {}, set(days), now)), encoding="utf-8")
    return file


@BOTH
@pytest.mark.parametrize("weeks", [1, 2, 3, 8])
def test_a_report_says_each_figure_once_and_draws_what_has_a_trend(
    tmp_path: Path, open_page: Open, weeks: int, window: dict[str, Any]
) -> None:
    one = open_page(report_of(weeks, tmp_path), **window)
    one.screenshot(f"report-{weeks}-{window['viewport']['width']}", full_page=True)
    assert unreadable(one, "h1") == []
    charts = one.page.locator("svg.trend")
    known = one.page.locator("section[aria-labelledby='weeks'] tbody tr")
    assert charts.count() == (known.count() if weeks >= 3 else 0)
    text = one.page.inner_text("main")
    assert "MTTR" in text.split("Not known in ")[1]
    # Coverage is 98% in the last week of up to 8, as everywhere: it is not rounded to 99%.
    assert text.count("98%") == weeks + (weeks >= 2)
    if weeks == 1:
        assert text.count("1,205") == 1
        assert one.page.locator("thead").first.locator("th").all_inner_texts() == [
            *("Figure", "2026-11-23")
        ]
