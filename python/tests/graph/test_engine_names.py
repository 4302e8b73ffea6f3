"""Names that only the engine knows, across models: fields of structs, repeated and made-up names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made import check, names, node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache

RAW = "source.p.raw.events"
TYPES = {RAW: {"id": "integer", "payload": "STRUCT(a INTEGER, b STRUCT(c VARCHAR))"}}


def events(adapter: str = "duckdb", payload: str = "payload", a: str = "payload.a") -> Project:
    return project(
        node(RAW),
        node("model.p.passed", f"select id, {payload} as payload from s.events", RAW),
        node("model.p.flat", "select id, payload.* from s.passed", "model.p.passed"),
        node("model.p.deep", "select b.*, a from s.flat", "model.p.flat"),
        check("c", "select * from s.deep where c is null", "model.p.deep"),
        types=TYPES,
        adapter=adapter,
    )


def test_fields_come_from_the_catalog_through_models() -> None:
    by_id = {a.unique_id: a for a in analyse(events()).nodes.values()}
    assert [a.status for a in by_id.values() if a.unique_id != RAW] == ["analysed"] * 3
    assert by_id["model.p.flat"].columns == ["id", "a", "b"]
    assert by_id["model.p.deep"].columns == ["c", "a"]


def test_they_are_kept_with_what_is_kept_of_a_query(tmp_path: Path) -> None:
    for _ in range(2):
        with Cache(tmp_path) as cache:
            analysis = analyse(events(), cache=cache)
        assert analysis.nodes["model.p.deep"].columns == ["c", "a"]
    other = events()
    other.catalog[RAW][1].type = "STRUCT(a INTEGER, b STRUCT(d VARCHAR))"
    with Cache(tmp_path) as cache:
        assert analyse(other, cache=cache).nodes["model.p.deep"].columns == ["d", "a"]


def test_a_field_is_what_it_is_made_of() -> None:
    assert names(events(), events()) == []
    assert names(events(), events(payload="coalesce(payload, null)")) == ["c"]


def renamed(made: str, reads: str) -> Project:
    return project(
        node(RAW, columns=["id", "v", "w"]),
        node("model.p.made", made, RAW),
        node("model.p.reads", f"select {reads} as x from s.made", "model.p.made"),
        check("c", "select * from s.reads where x is null", "model.p.reads"),
        catalog={RAW: ["id", "v", "w"]},
        adapter="duckdb",
    )


MADE = "select sum(v), sum(w), count(*) from s.events"
JOINED = "select a.id, b.id, a.v, b.v from s.events as a join (select id, {0} as v from s.events) as b using (id)"


@pytest.mark.parametrize(
    ("made", "edited", "reads", "moves"),
    [
        (JOINED.format("v"), JOINED.format("w"), "v_1", True),
        (JOINED.format("v"), JOINED.format("w"), "v", False),
        (MADE, MADE.replace("sum(v)", "sum(v + 1)"), '"sum(v)"', True),
        (MADE, MADE.replace("sum(v)", "max(v)"), '"sum(w)"', False),
        (MADE, MADE.replace("sum(w)", "max(w)"), '"count_star()"', False),
    ],
)
def test_an_engines_own_name_is_found(made: str, edited: str, reads: str, moves: bool) -> None:
    base, head = renamed(made, reads), renamed(edited, reads)
    node_analysis = analyse(base).nodes["model.p.reads"]
    assert (node_analysis.status, node_analysis.reason) == ("analysed", None)
    assert names(base, head) == (["c"] if moves else [])
