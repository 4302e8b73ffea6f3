"""Own fingerprints: they move with what a node makes of its parents, not with what these hold."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis

STG = "select id, amount, status from s.orders"
TOP = "with s as (select * from s.stg) select status, sum(amount) as total from s group by status"


def side(stg: str = STG, top: str = TOP, test: str = "", **more: Any) -> Project:
    return project(
        orders(),
        node("model.p.stg", stg, RAW, config=more.get("stg_config", {})),
        node("model.p.top", top, "model.p.stg", config=more.get("top_config", {})),
        check("total", test or "select total from s.top where total < 0", "model.p.top"),
        node("model.p.py", "x", "model.p.top", language="python", raw=more.get("py", "x")),
        catalog=more.get("catalog", LISTED),
        adapter="duckdb",
    )


def moved(before: Analysis, now: Analysis) -> set[str]:
    """What differs of itself: ``node.column``, ``node`` for its rows."""
    changed_columns = set()
    for unique_id, own in now.own.items():
        name = unique_id.rpartition(".")[2]
        then = before.own[unique_id]
        changed_columns |= {name} if then.rows != own.rows else set()
        changed_columns |= {
            f"{name}.{c}" for c, fp in own.columns.items() if then.columns.get(c) != fp
        }
    return changed_columns


def analysed(*args: Any, cache: Cache | None = None, **kwargs: Any) -> Analysis:
    return analyse(side(*args, **kwargs), expressions=True, own=True, cache=cache)


UPSTREAM = "select id, amount * 2 as amount, status from s.orders where id > 7"

CASES: list[tuple[str, dict[str, Any], dict[str, Any], set[str]]] = [
    ("only above", {}, {"stg": UPSTREAM}, {"stg.amount", "stg"}),
    (
        "above, and here",
        {},
        {"stg": UPSTREAM, "top": TOP.replace("sum", "max")},
        {"stg.amount", "stg", "top.total"},
    ),
    (
        "above, and other words here",
        {},
        {
            "stg": UPSTREAM,
            "top": "select t.status, sum(t.amount) as total /* ! */ from s.stg as t group by 1",
        },
        {"stg.amount", "stg"},
    ),
    (
        "a filter in a CTE",
        {},
        {"stg": UPSTREAM, "top": TOP.replace("s.stg)", "s.stg where id > 0)")},
        {"stg.amount", "stg", "top", "top.total"},
    ),
    (
        "a test",
        {},
        {"stg": UPSTREAM, "test": "select 1 as x from s.top where total < 1"},
        {"stg.amount", "stg", "total"},
    ),
    (
        "settings",
        {},
        {"top_config": {"unique_key": "id", "materialized": "incremental"}},
        {"top", "top.total", "top.status"},
    ),
    ("python", {}, {"py": "y"}, {"py"}),
    (
        "a column more above that a star passes on",
        {"top": "select * from s.stg"},
        {"stg": STG.replace("id,", "id, 1 as one,"), "top": "select * from s.stg"},
        {"stg.one", "top.one"},
    ),
    (
        "columns that only their use shows",
        {"catalog": {}, "stg": "select * from s.orders"},
        {"catalog": {}, "stg": "select * from s.orders where id > 0"},
        {"stg"},
    ),
]


@pytest.mark.parametrize(
    ("before", "now", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_what_changes_of_itself(
    before: dict[str, Any], now: dict[str, Any], wanted: set[str]
) -> None:
    assert moved(analysed(**before), analysed(**now)) == wanted


def test_with_a_cache_and_without_it_is_the_same(tmp_path: Any) -> None:
    with Cache(tmp_path) as cache:
        for _, before, now, _ in CASES:
            for sides in (before, now, before):
                assert analysed(**sides, cache=cache).own == analysed(**sides).own


def test_the_analysis_is_as_it_is_without() -> None:
    plain, own = analyse(side(), expressions=True), analysed()
    assert plain.own == {}
    assert (own.nodes, own.tests, list(own.edges)) == (plain.nodes, plain.tests, list(plain.edges))
    assert set(own.own) == {"model.p.stg", "model.p.top", "model.p.py", "test.p.total"}
