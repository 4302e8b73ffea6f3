"""Relations that a query reads, or may read, without naming them as dbt knows them."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, picked, project

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache

U = "select id, amount from s.orders"
VALUE, ROWS = U.replace("amount", "amount + 1 as amount"), U + " where id > 0"


def side(
    u: str, sql: str, *more: Node, raw: str = "", declared: bool = True, **config: Any
) -> Project:
    """orders -> u -> a -> a test of a; ``u`` and ``sql`` are the queries of u and a."""
    parents = ["model.p.u"] if declared else []
    return project(
        orders(),
        node("model.p.u", u, RAW),
        node("model.p.a", sql, RAW, *parents, raw=raw or sql, config=config),
        check("t", "select id from s.a", "model.p.a"),
        *more,
        catalog=LISTED,
        adapter="duckdb",
        macros=[
            macro(
                "macro.p.recent",
                "{% macro recent(r) %}(select max(amount) from {{ r }}){% endmacro %}",
            )
        ],
    )


@pytest.mark.parametrize(
    "sql",
    [
        "select id from s.orders -- depends_on: ref('u')",
        "select id from u",
        "with u as (select id from s.orders) select id from u",
        "select id from query_table('u')",
        "select id from query('select id from u')",
        "select table_name as id from information_schema.tables",
        "select table_name as id from duckdb_tables()",
        "select id from all_of_u()",
        "select id from s.orders where id > top_of_u()",
        "select id from s.orders union all select id from elsewhere.made_by_a_hook",
    ],
)
def test_a_parent_that_the_query_does_not_name_counts_whole(sql: str) -> None:
    for edit in (VALUE, ROWS):
        assert names(side(U, sql), side(edit, sql)) == ["t"], edit
    assert names(side(U, sql), side(U + " -- the same", sql)) == []


@pytest.mark.parametrize(
    "sql",
    [
        "select id from s.u",
        "with eph as (select id from s.u) select id from eph",
        "with u as (select id from s.u) select id from u",
        "select o.id from s.orders as o join s.u on o.id = u.id",
        "select id from s.orders where id in (select id from s.u)",
        "select id from s.orders where exists (select 1 from s.u where u.id = orders.id)",
        "with unused as (select * from s.u) select id from s.orders",
    ],
)
def test_a_parent_that_it_names_counts_by_what_is_read(sql: str) -> None:
    assert names(side(U, sql), side(VALUE, sql)) == []


def test_an_ephemeral_parent_is_named_by_its_cte() -> None:
    def with_ephemeral(u: str) -> Project:
        below = "with __dbt__cte__eph as (select id from s.u) select id from __dbt__cte__eph"
        return project(
            orders(),
            node("model.p.u", u, RAW),
            node(
                "model.p.eph",
                "select id from s.u",
                "model.p.u",
                config={"materialized": "ephemeral"},
            ),
            node("model.p.a", below, "model.p.eph"),
            check("t", "select id from s.a", "model.p.a"),
            catalog=LISTED,
        )

    assert names(with_ephemeral(U), with_ephemeral(VALUE)) == []


@pytest.mark.parametrize(
    ("sql", "moves"),
    [
        ("select id from u", True),
        ('select id from "U"', True),
        ("select id from query_table('u')", True),
        ("select id from query_table('s.u')", True),
        ("select id from query('select id from ' || 'u')", True),
        ("select id from identifier('s.u')", True),
        ("select id from s.orders, lateral f('u')", True),
        ("select table_name as id from information_schema.tables", True),
        ("with u as (select id from s.orders) select id from u", False),
        ("select id, 'u' as u from s.orders where status = 'u'", False),
        ("select id from read_csv('files/u/u.csv')", False),
        ("select id from elsewhere.u", False),
        ("select unnest as id from unnest(['u'])", False),
        ("pivot u on amount", True),
        ("pivot s.u on amount", True),
        ('summarize "u"', True),
        ("pivot s.orders on amount", False),
    ],
)
def test_a_relation_that_no_ref_declares_counts_where_it_may_be_read(sql: str, moves: bool) -> None:
    base = side(U, sql, declared=False)
    assert names(base, side(VALUE, sql, declared=False)) == (["t"] if moves else [])


def test_a_bare_name_of_what_is_made_of_the_node_is_another_table() -> None:
    def circle(u: str) -> Project:
        return project(
            node("model.p.a", "select id, amount from u"),
            node("model.p.u", u, "model.p.a"),
            check("t", "select id from s.a", "model.p.a"),
        )

    one = "select id, amount from s.a"
    assert names(circle(one), circle(one + " where id > 0")) == []


INCREMENTAL = (
    "select id from s.orders {% if is_incremental() %}"
    " where id > (select max(id) from {{ ref('u') }}) {% endif %}"
)


@pytest.mark.parametrize(
    ("raw", "moved"),
    [
        (INCREMENTAL, {ROWS}),
        ("-- depends_on: {{ ref('u') }}\n" + INCREMENTAL, {ROWS}),
        (INCREMENTAL.replace("max(id)", "max(amount)"), {VALUE, ROWS}),
        (
            INCREMENTAL.replace("(select max(id) from {{ ref('u') }})", "{{ recent(ref('u')) }}"),
            {VALUE, ROWS},
        ),
        ("{{ ref('u') }}\n" + INCREMENTAL, {VALUE, ROWS}),
        ("{% for c in dbt_utils.star(ref('u')) %}{% endfor %} select id from s.orders", set()),
        ("-- depends_on: {{ ref('u') }}\nselect id from s.orders", {VALUE, ROWS}),
    ],
)
def test_what_the_code_shows_to_be_read_elsewhere_counts_there(raw: str, moved: set[str]) -> None:
    base, *heads = (
        side(u, "select id from s.orders", raw=raw, materialized="incremental")
        for u in (U, VALUE, ROWS)
    )
    for edit, head in zip((VALUE, ROWS), heads, strict=True):
        assert names(base, head) == (["t"] if edit in moved else []), edit


def test_a_test_and_its_where_and_a_snapshot_and_a_function_alike() -> None:
    def more(u: str) -> Project:
        where = "select id from (select * from s.orders where id in (from query_table('u'))) q"
        function = node(
            "function.p.f", None, "model.p.u", raw="select max(id) from query_table('u')"
        )
        return side(
            u,
            "select id from s.orders",
            check("by_string", "select id from query_table('u')", "model.p.u"),
            check("in_its_where", where, RAW),
            check("catalog", "select 1 as x from duckdb_columns()", RAW),
            check("named", "select id from s.u", "model.p.u"),
            node("snapshot.p.snap", "select id from u", "model.p.u", config={"unique_key": "id"}),
            check("of_snapshot", "select id from s.snap", "snapshot.p.snap"),
            function,
            node("model.p.calls", "select f() as id", "function.p.f"),
            check("of_function", "select id from s.calls", "model.p.calls"),
            declared=False,
        )

    names_of_tests = names(more(U), more(VALUE))
    assert names_of_tests == ["by_string", "in_its_where", "catalog", "of_snapshot", "of_function"]


def test_lineage_and_the_reason_say_so() -> None:
    sql = "select id from query_table('u')"
    analysis = analyse(side(U, sql))
    edges = {(e.parent_id, e.parent_column, e.child_column, e.subtype) for e in analysis.edges}
    assert ("model.p.u", "amount", "*rows*", "CONDITIONAL") in edges
    assert ("model.p.u", "*rows*", "*rows*", "CONDITIONAL") in edges
    message = str(analysis.nodes["model.p.a"].reason)
    assert message == "may read all of orders, u, which its SQL does not name as a relation"
    (test,) = picked(side(U, sql), side(VALUE, sql)).tests
    assert test.path[0] == "model.p.u.amount"
    catalog = analyse(side(U, "select table_name from information_schema.tables", declared=False))
    assert catalog.nodes["model.p.a"].status == "opaque"


def test_it_is_the_same_from_the_cache(tmp_path: Any) -> None:
    sql = "select id from query_table('u')"
    with Cache(tmp_path) as cache:
        for _ in range(2):
            base, head = side(U, sql, declared=False), side(VALUE, sql, declared=False)
            assert names(base, head, cache=cache) == ["t"]


@pytest.mark.parametrize("sql", ["select id from all_of_u()", "select id from query_table('u')"])
def test_a_unit_test_reads_what_no_fixture_stands_in_for(sql: str) -> None:
    unit = node(
        "unit_test.p.a.of_a",
        None,
        "model.p.a",
        model="a",
        given=[{"input": "source('raw', 'orders')", "rows": [{"id": 1}]}],
        expect={"rows": [{"id": 1}]},
    )
    assert picked(side(U, sql, unit), side(U, sql, unit)).unit_tests == []
    for edit in (VALUE, ROWS):
        assert picked(side(U, sql, unit), side(edit, sql, unit)).unit_tests == [unit.unique_id]


@pytest.mark.parametrize("sql", ["select id from all_of_u()", "select id from query_table('u')"])
def test_a_hook_that_writes_elsewhere_hides_no_unnamed_parent(sql: str) -> None:
    def of(u: str) -> Project:
        writes = "insert into s.orders select id, amount from s.u"
        return side(
            u,
            sql,
            node("model.p.writer", "select 1 as id", config={"post-hook": [{"sql": writes}]}),
            check("elsewhere", "select id from s.writer", "model.p.writer"),
        )

    for edit in (VALUE, ROWS):
        assert "t" in names(of(U), of(edit)), edit
