"""What comes out of the cache is what would be made anew, and only what changed is made anew."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import msgspec
import pytest
from graph.test_analyse_project import LISTED, ORDERS, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project, read_project
from dbt_ripple.flow import lower as lowering
from dbt_ripple.graph import query_cache
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis

FIXTURES = Path(__file__).resolve().parents[1] / "artifacts" / "fixtures"


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many queries were lowered and linked."""
    done = {"lowered": 0, "linked": 0}

    def counted(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            done[what] += 1
            return function(*arguments, **options)

        return counting

    monkeypatch.setattr(lowering, "lower", counted("lowered", lowering.lower))
    monkeypatch.setattr(query_cache, "link", counted("linked", query_cache.link))
    return done


def told(analysis: Analysis) -> str:
    """All of it but the times, in order."""
    names = [field.name for field in dataclasses.fields(analysis) if field.name != "seconds"]
    return repr([(name, getattr(analysis, name)) for name in names])


def with_sql(of: Project, node: Node, sql: str | None) -> Project:
    """A project in which a node has other compiled SQL."""
    edited = replace(node, compiled_code=sql)
    return of.having(nodes={**of.nodes, node.unique_id: edited})


def warm_is_cold(of: Project, folder: Path, **options: Any) -> None:
    cold = told(analyse(of, **options))
    for _ in range(2):
        with Cache(folder) as cache:
            assert told(analyse(of, cache=cache, **options)) == cold


def hand_made() -> Project:
    """Of everything that is not kept, or not kept as it stands, one."""
    nodes = [
        ORDERS,
        node("source.p.raw.dark"),
        node("model.p.plain", "select id, amount * 2 as twice from s.orders", ORDERS.unique_id),
        node("model.p.again", "select id, amount * 2 as twice from s.orders", ORDERS.unique_id),
        node("model.p.star", "select *, 1 as one from s.dark", "source.p.raw.dark"),
        node("model.p.named", "select Foo, foo as f2 from s.dark", "source.p.raw.dark"),
        node("model.p.over", "select foo, bar, one from s.star", "model.p.star"),
        node("model.p.lost", "select nowhere, id from s.orders", ORDERS.unique_id),
        node("model.p.stranger", "select a.x, b.y from q.one a join q.two b on a.k = b.k"),
        node("model.p.python", "x = 1", ORDERS.unique_id, columns=["x"], language="python"),
        node("model.p.below", "select x, z from s.python", "model.p.python"),
        node("model.p.garbage", "select (((", ORDERS.unique_id),
        node("model.p.two", "select 1 as a; select 2 as b"),
        node(
            "model.p.self",
            "select id from s.orders where id > (select max(id) from s.self)",
            ORDERS.unique_id,
            config={"materialized": "incremental"},
        ),
        node("model.p.eph", "select id from s.orders", config={"materialized": "ephemeral"}),
        node(
            "model.p.reads_eph",
            "with __dbt__cte__eph as (select id from s.orders) select id from __dbt__cte__eph",
            "model.p.eph",
        ),
        node("model.p.ring", "select id from s.gnir", "model.p.gnir"),
        node("model.p.gnir", "select id from s.ring", "model.p.ring"),
        node(
            "snapshot.p.history",
            "select * from s.orders",
            ORDERS.unique_id,
            config={"strategy": "timestamp", "updated_at": "amount", "unique_key": "id"},
        ),
        node("test.p.ids", "select id from s.plain where id is null", "model.p.plain"),
        node("test.p.dark", "select count(baz) as n from s.dark", "source.p.raw.dark"),
    ]
    return project(*nodes, catalog=LISTED)


@pytest.mark.parametrize("options", [{}, {"expressions": True}, {"tests": False}])
@pytest.mark.parametrize("name", ["v10_dbt_1_6", "v11_dbt_1_7", "v12_dbt_1_11", "hand made"])
def test_warm_is_cold(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    of = hand_made() if name == "hand made" else read_project(FIXTURES / name)
    warm_is_cold(of, tmp_path, **options)


def test_warm_is_cold_without_a_catalog(tmp_path: Path) -> None:
    of = read_project(FIXTURES / "v12_dbt_1_11")
    of = of.having(catalog={})
    warm_is_cold(of, tmp_path)


def test_warm_is_cold_on_a_large_project(generated: Path, tmp_path: Path) -> None:
    of = read_project(generated)
    warm_is_cold(of, tmp_path)
    of = of.having(catalog={})
    warm_is_cold(of, tmp_path)


def test_nothing_is_done_twice(generated: Path, tmp_path: Path, work: dict[str, int]) -> None:
    of = read_project(generated)
    with Cache(tmp_path) as cache:
        analyse(of, cache=cache)
    assert work["lowered"] > 120
    assert work["linked"] > 120
    work.update(lowered=0, linked=0)
    with Cache(tmp_path) as cache:
        analyse(of, cache=cache)
    assert work == {"lowered": 0, "linked": 0}


def test_a_changed_model_touches_only_what_depends_on_it(
    generated: Path, tmp_path: Path, work: dict[str, int]
) -> None:
    base, head = read_project(generated), read_project(generated)
    with Cache(tmp_path) as cache:
        analyse(base, cache=cache)
    changed = max(
        (n for n in head.of_type("model") if n.materialized != "ephemeral"),
        key=lambda n: len(head.children[n.unique_id]),
    )
    sql = f"select * from ({changed.compiled_code}) as q where 1 = 2"
    head = with_sql(head, changed, sql)
    below = {changed.unique_id}
    waiting = [changed.unique_id]
    while waiting:
        for child in head.children[waiting.pop()]:
            if child not in below and head.nodes[child].compiled_code:
                below.add(child)
                waiting.append(child)
    work.update(lowered=0, linked=0)
    with Cache(tmp_path) as cache:
        warm = told(analyse(head, cache=cache))
    assert work["lowered"] == 1
    assert 1 < work["linked"] <= len(below)
    assert len(below) < len([n for n in head.nodes.values() if n.compiled_code]) / 2
    assert warm == told(analyse(head))
    work.update(lowered=0, linked=0)
    with Cache(tmp_path) as cache:
        again = told(analyse(base, cache=cache))
        assert told(analyse(head, cache=cache)) == warm
    assert work == {"lowered": 0, "linked": 0}  # both are kept
    assert again == told(analyse(base))


def test_a_change_that_is_not_seen_below_stops_there(
    generated: Path, tmp_path: Path, work: dict[str, int]
) -> None:
    of = read_project(generated)
    with Cache(tmp_path) as cache:
        analyse(of, cache=cache)
    changed = max(of.of_type("model"), key=lambda n: len(of.children[n.unique_id]))
    of = with_sql(of, changed, f"{changed.compiled_code}\n-- a comment")
    work.update(lowered=0, linked=0)
    with Cache(tmp_path) as cache:
        analyse(of, cache=cache)
    assert work == {"lowered": 1, "linked": 1}


def test_a_changed_catalog_is_seen(tmp_path: Path) -> None:
    a = node("model.p.a", "select * from s.orders", ORDERS.unique_id)
    b = node("model.p.b", "select * from s.a", "model.p.a")
    for columns in (["id", "amount"], ["id", "amount", "status"], ["id"], ["id", "amount"]):
        of = project(ORDERS, a, b, catalog={ORDERS.unique_id: columns})
        with Cache(tmp_path) as cache:
            analysis = analyse(of, cache=cache)
        assert analysis.nodes["model.p.b"].columns == columns
        assert told(analysis) == told(analyse(of))


def test_the_same_text_may_read_other_relations(tmp_path: Path) -> None:
    """A bare name is another node in another project."""
    one = project(
        node("source.p.raw.t"),
        node("model.p.m", "select id from s.t", "source.p.raw.t"),
        catalog={"source.p.raw.t": ["id"]},
    )
    other = project(
        node("seed.p.t"),
        node("model.p.m", "select id from s.t", "seed.p.t"),
        catalog={"seed.p.t": ["id"]},
    )
    for of in (one, other, one):
        with Cache(tmp_path) as cache:
            assert told(analyse(of, cache=cache)) == told(analyse(of))


def test_random_edits_warm_are_cold(generated: Path, tmp_path: Path) -> None:
    rng = random.Random(5)
    of = read_project(generated)
    models = of.of_type("model")
    for _ in range(12):
        edited = of.nodes[rng.choice(models).unique_id]
        kept = edited.compiled_code
        sql = rng.choice(
            [
                f"select * from ({kept}) as q where 1 = 2",
                f"select distinct * from ({kept}) as q",
                "select 1 as one",
                "select (((",
                kept,
            ]
        )
        of = with_sql(of, edited, sql)
        with Cache(tmp_path) as cache:
            assert told(analyse(of, cache=cache)) == told(analyse(of))
        if rng.random() < 0.5:
            of = with_sql(of, edited, kept)


def _put_junk(
    cache: Cache, junk: bytes, put: Callable[..., None], key: bytes, _value: bytes
) -> None:
    put(cache, key, junk)


def test_entries_that_cannot_be_read_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = hand_made()
    cold = told(analyse(of))
    for junk in (
        b"",
        b"\xff\x00",
        msgspec.msgpack.encode({"a": 1}),
        msgspec.msgpack.encode([1, 2]),
    ):
        with monkeypatch.context() as patch, Cache(tmp_path) as cache:
            patch.setattr(Cache, "put", partialmethod(_put_junk, junk, Cache.put))
            assert told(analyse(of, cache=cache)) == cold
        with Cache(tmp_path) as cache:
            assert told(analyse(of, cache=cache)) == cold
        (tmp_path / "analysis.sqlite3").unlink()
