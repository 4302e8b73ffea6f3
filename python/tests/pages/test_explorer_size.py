"""Ten thousand nodes: the page opens and answers a search; how long it takes is printed.

Times are ratios to a page of a hundred nodes, in the same browser: what a machine makes of it in
seconds is its own matter. What is drawn does not grow with the project.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from browsers import OpenPage

from dbt_ripple.graph.traversal import EdgeKind
from dbt_ripple.pages.explorer import explorer_page
from dbt_ripple.pages.health import Health, Slos
from dbt_ripple.pages.project_document import (
    DescribedColumn,
    DescribedNode,
    DescribedTest,
    Link,
    ProjectDocument,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COLUMNS = 15
WORDS = "order customer payment amount total country region status created updated channel".split()
KINDS = (
    (EdgeKind("DIRECT", "IDENTITY", False),),
    (EdgeKind("DIRECT", "TRANSFORMATION", False), EdgeKind("INDIRECT", "CONDITIONAL", False)),
)
FILTER = (EdgeKind("INDIRECT", "FILTER", False),)


def large(number: int) -> ProjectDocument:
    """A project of so many models: wide layers, each reading one to four of the nearest before it."""
    rng = random.Random(7)
    ids = [f"model.p.model_{i:05}" for i in range(number)]
    parents: list[list[int]] = [
        sorted({rng.randrange(max(0, i - 400), i) for _ in range(rng.randint(1, 4))}) if i else []
        for i in range(number)
    ]
    children: list[list[int]] = [[] for _ in range(number)]
    for child, of in enumerate(parents):
        for parent in of:
            children[parent].append(child)
    names = [[f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{k}" for k in range(COLUMNS)] for _ in ids]
    links = []
    for child, of in enumerate(parents):
        for parent in of:
            links.append(Link(ids[parent], "*rows*", ids[child], "*rows*", FILTER))
        for k in range(COLUMNS if of else 0):
            parent = of[k % len(of)]
            kinds = KINDS[k % 2]
            links.append(Link(ids[parent], names[parent][k], ids[child], names[child][k], kinds))
    health = Health(
        **dict.fromkeys(Health.__struct_fields__[:-1], 0),  # type: ignore[arg-type]
        slos=Slos(),
    )
    described = {
        unique_id: node(unique_id, i, parents[i], children[i], ids, names[i])
        for i, unique_id in enumerate(ids)
    }
    return ProjectDocument(
        name="large",
        adapter_type="spark",
        dbt_version="1.11.0",
        ripple_version="0",
        generated_at=datetime(2026, 1, 1, tzinfo=UTC),
        has_catalog=True,
        nodes=described,
        tests={f"test.p.t{i}": a_test(i) for i in range(number)},
        links=tuple(links),
        health=health,
        domains={},
        notes=(),
    )


def node(
    unique_id: str,
    i: int,
    parents: list[int],
    children: list[int],
    ids: list[str],
    names: list[str],
) -> DescribedNode:
    absent = dict.fromkeys(DescribedNode.__struct_fields__)
    columns = tuple(
        DescribedColumn(
            name=name,
            type="string",
            description=f"The {name.replace('_', ' ')} of it.",
            expression=f"COALESCE(o.{name}, '{i % 97}')" if k % 2 else None,
            pii=None,
            is_followed=True,
            tests=(),
            blast_radius=k,
        )
        for k, name in enumerate(names)
    )
    said = {
        "unique_id": unique_id,
        "name": unique_id.rpartition(".")[2],
        "resource_type": "model",
        "asset_type": "DBT_MODEL",
        "relation": f"lake.marts.{unique_id}",
        "layer": ("staging", "intermediate", "marts")[i % 3],
        "tags": (f"tag_{i % 40}",),
        "owner": f"team_{i % 60}@x.example",
        "status": "analysed",
        "columns": columns,
        "parents": tuple(ids[p] for p in parents),
        "children": tuple(ids[c] for c in children),
        "tests": (f"test.p.t{i}",),
        "contract_versions": (),
        "path_is_complete": True,
        "blast_radius": len(children),
        "slos": Slos(),
    }
    return DescribedNode(**{**absent, **said})  # type: ignore[arg-type]


def a_test(i: int) -> DescribedTest:
    absent = dict.fromkeys(DescribedTest.__struct_fields__)
    said = {"unique_id": f"test.p.t{i}", "name": f"not_null_{i}", "kind": "not_null", "reads": ()}
    return DescribedTest(**{**absent, **said})  # type: ignore[arg-type]


def measured(open_page: Callable[..., OpenPage], file: Path) -> tuple[float, float, float]:
    """Seconds to open, to answer the slowest of some searches, and to draw a selection: best of three."""
    opens, searches, draws = [], [], []
    for _ in range(3):
        one = open_page(viewport={"width": 1440, "height": 900})
        started = time.perf_counter()
        one.page.goto(file.resolve().as_uri())
        one.page.wait_for_selector("#app[data-ready]", timeout=120_000)
        opens.append(time.perf_counter() - started)
        # The first search reads all names; each that follows is what one feels when typing.
        spent = one.page.evaluate(
            """() => ['m', 'model_00042', 'order_total', 'customer_amount_7', 'team_5', 'zzz']
                .map(query => {
                  const input = document.getElementById('search');
                  input.value = query;
                  const started = performance.now();
                  input.dispatchEvent(new Event('input'));
                  return performance.now() - started;
                })"""
        )
        searches.append(max(spent) / 1000)
        draws.append(
            one.page.evaluate(
                """async () => {
                  const started = performance.now();
                  location.hash = 'node=model.p.model_00042&depth=3';
                  while (!document.querySelector('.box')) await new Promise(requestAnimationFrame);
                  return performance.now() - started;
                }"""
            )
            / 1000
        )
        one.errors.extend(
            [] if one.page.locator(".box").count() <= 100 else ["more is drawn than asked for"]
        )
        one.requests[:] = [r for r in one.requests if r != file.resolve().as_uri()]
        one.page.context.close()
    return min(opens), min(searches), min(draws)


def test_ten_thousand_nodes_open_and_are_searched(
    tmp_path: Path, open_page: Callable[..., OpenPage], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {}
    for number in (100, 10_000):
        file = tmp_path / f"{number}.html"
        file.write_text(explorer_page(large(number)), encoding="utf-8")
        figures[number] = (file.stat().st_size / 1e6, *measured(open_page, file))
    small, big = figures[100], figures[10_000]
    with capsys.disabled():
        print()
        for name, unit, a, b in zip(
            ("page", "open", "search", "draw"), ("MB", "s", "s", "s"), small, big, strict=True
        ):
            print(
                f"  {name:7} 100 nodes {a:8.3f} {unit:2}   10,000 nodes {b:8.3f} {unit:2}   {b / a:6.1f} times"
            )
    # A hundred times the nodes: the page is packed, only what is asked for is drawn, and no search
    # takes so long that one waits for letters to appear.
    assert big[0] / small[0] < 60
    assert big[1] / small[1] < 30
    assert big[2] < 0.5 * big[1]
    assert big[3] / small[3] < 10
