"""A function that dbt builds is part of the expressions that call it, and of nothing else.

What comes out of such queries is executed in ``driver/test_functions_built.py``.
"""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.changes import compare
from dbt_ripple.changes.causes import causes_of
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.selection.select import select_from

F, OTHER, G = "function.p.f", "function.p.other", "function.p.g"
INCREMENTAL = "select s.f(id) as n from s.orders {% if is_incremental() %} where x {% endif %}"


def function(unique_id: str, body: str = "x + 1", *parents: str, **more: Any) -> Node:
    config = {"type": more.pop("type", "scalar")}
    return node(unique_id, body, *parents, config=config, **more)


def sides(
    sql: str,
    *parents: str,
    above: tuple[Node, ...] = (),
    edited: Node | None = None,
    adapter: str = "duckdb",
    macros: tuple[Macro, ...] = (),
    **more: Any,
) -> tuple[Project, Project]:
    """A model with a query, before and after an edit of the function f."""
    model = node("model.p.m", sql, RAW, *(parents or (F,)), **more)
    below = node("model.p.below", "select n::text as t, a from s.m", "model.p.m")
    tests = (
        check("n", "select n from s.m where n is null", "model.p.m"),
        check("a", "select a from s.m where a is null", "model.p.m"),
    )
    both = orders(), node("model.p.rest", "select 1 as n, 2 as a"), *above, model, below, *tests
    base, head = (
        project(f, *both, catalog=LISTED, adapter=adapter, macros=macros)
        for f in (function(F), edited or function(F, "x + 2"))
    )
    return base, head


def changed(*args: Any, **more: Any) -> set[str]:
    """The columns of the model that change with the function, and ``*`` where its rows do."""
    comparison = compare(*sides(*args, **more))
    change = comparison.changed.get("model.p.m")
    return {*change.redefined, *(["*"] if change.rows else [])} if change is not None else set()


CALLED = [
    ("select s.f(id) as n, amount as a from s.orders", {"n"}),
    ('select "s"."f"(id) as n, amount as a from s.orders', {"n"}),
    ("select S.F(id) as n, amount as a from s.orders", {"n"}),  # the case of a name
    ("select f(id) as n, amount as a from s.orders", {"n"}),
    ("select s.f(id) as f, amount as a from s.orders", {"f"}),
    ("select 1 + s.f (id) as n, amount as a from s.orders", {"n"}),
    ("select s.f(s.f(id)) as n, s.f(amount) as a, status from s.orders", {"n", "a"}),
    ("with c as (select s.f(id) as x, amount as a from s.orders) select x as n, a from c", {"n"}),
    ("select id as n, amount as a from s.orders where s.f(id) > 1", {"*"}),
    ("select id as n, amount as a from s.orders order by s.f(id) limit 1", {"*"}),
    ("select s.f(id) as n, max(amount) as a from s.orders group by s.f(id)", {"n", "a", "*"}),
    ("select sum(s.f(id)) as n, max(amount) as a from s.orders", {"n"}),
    ("select o.id as n, p.amount as a from s.orders o join s.orders p on s.f(o.id) = p.id", {"*"}),
    ("select distinct s.f(id) as n, 1 as a from s.orders", {"n", "*"}),
    ("select id as n, sum(amount) over (order by s.f(id)) as a from s.orders", {"a"}),
    ("select id as n, x.a from s.orders, lateral (select s.f(id) as a) x", {"a"}),
    ("with c as (select s.f(id) as x from s.orders) select id as n, 1 as a from s.orders", set()),
    ("select n, a from (select id as n, amount as a, s.f(id) as x from s.orders)", set()),
]


@pytest.mark.parametrize(("sql", "columns"), CALLED)
def test_what_is_made_of_a_call_changes_with_the_function(sql: str, columns: set[str]) -> None:
    assert changed(sql) == columns


def test_what_is_below_changes_with_the_column_that_it_reads() -> None:
    comparison = compare(*sides("select s.f(id) as n, amount as a from s.orders"))
    assert comparison.changed["model.p.below"].redefined == ["t"]
    selection = select_from(comparison)
    assert [test.name for test in selection.tests] == ["n"]
    assert "model.p.m" in selection.models and "model.p.rest" not in selection.models


EVERYTHING = {"n", "a", "*"}
ELSEWHERE = [
    # no call stands there
    ("select id as n, amount as a from s.orders", {}),
    ("select id as n, amount as a from s.orders -- s.f(id)", {}),
    # a string may be run
    ("select s.f(id) as n, a from s.orders, query('select s.f(1) as a')", {}),
    # it is called on a column, or of what is no name
    ("select id.f() as n, amount as a from s.orders", {}),
    ("select (id).f() as n, amount as a from s.orders", {}),
    # the query is another one on other runs
    (
        "select s.f(id) as n, amount as a from s.orders",
        {
            "config": {"materialized": "incremental"},
            "raw": "select {{ function('f') }}(id) as n, amount as a from {{ ref('o') }}"
            "{% if is_incremental() %} where {{ function('f') }}(id) > 1 {% endif %}",
        },
    ),
    (
        "select s.f(id) as n, amount as a from s.orders",
        {
            "config": {"materialized": "incremental"},
            "raw": "{% set f = function('f') %}select {{ f }}(id) as n, amount as a from {{ ref('o') }}"
            "{% if is_incremental() %} where {{ f }}(id) > 1 {% endif %}",
        },
    ),
    # a hook, a header, a macro or a materialization calls it
    (
        "select s.f(id) as n, amount as a from s.orders",
        {"config": {"post-hook": [{"sql": "update {{ this }} set a = {{ function('f') }}(a)"}]}},
    ),
    (
        "select s.f(id) as n, amount as a from s.orders",
        {"config": {"post-hook": [{"sql": "{{ again() }}"}]}},
    ),
    (
        "select s.f(id) as n, amount as a from s.orders",
        {"config": {"sql_header": "set x = s.f(1);"}},
    ),
    (
        "select s.f(id) as n, amount as a from s.orders",
        {"raw": "{% set x = run_query('select ' ~ function('f') ~ '(1)') %}select 1"},
    ),
    (
        "select s.f(id) as n, amount as a from s.orders",
        {"config": {"materialized": "mine"}},
    ),
]
AGAIN = macro("macro.p.again", "update {{ this }} set a = {{ function('f') }}(a)")
MINE = macro("macro.p.materialization_mine_default", "{{ sql }} {{ function('f') }}(1)")


@pytest.mark.parametrize(("sql", "more"), ELSEWHERE)
def test_where_a_call_may_stand_elsewhere_all_of_it_changes(sql: str, more: Any) -> None:
    assert changed(sql, macros=(AGAIN, MINE), **more) == EVERYTHING


HARMLESS = [
    {"config": {"post-hook": [{"sql": "delete from {{ this }} where a is null"}]}},
    {
        "config": {"materialized": "incremental"},
        "raw": "select {{ function('f') }}(id) as n, amount as a from {{ ref('o') }}"
        "{% if is_incremental() %} where id > (select max(n) from {{ this }}) {% endif %}",
    },
]


@pytest.mark.parametrize("more", HARMLESS)
def test_beside_what_does_not_call_it_only_the_column_changes(more: Any) -> None:
    assert changed("select s.f(id) as n, amount as a from s.orders", **more) == {"n"}


@pytest.mark.parametrize(
    "edited",
    [
        replace(function(F), returns={"data_type": "bigint"}),
        replace(function(F), arguments=[{"name": "x", "data_type": "bigint"}]),
        function(F, type="aggregate"),
    ],
)
def test_its_type_counts_as_its_body(edited: Node) -> None:
    assert "n" in changed("select s.f(id) as n, amount as a from s.orders", edited=edited)


def test_a_function_of_another_schema_is_another_one() -> None:
    other = replace(function(OTHER), name="f", alias="f", schema="t")
    sql = "select t.f(id) as n, s.f(amount) as a from s.orders"
    assert changed(sql, F, OTHER, above=(other,)) == {"a"}
    # Without a schema it may be either.
    sql = "select f(id) as n, amount as a from s.orders"
    assert changed(sql, F, OTHER, above=(other,)) == {"n"}
    # Of one that dbt does not build nothing is known.
    assert changed("select u.f(id) as n, s.f(amount) as a from s.orders") == EVERYTHING


def in_ci(side: Project, *uncompiled: str) -> Project:
    """The same in another schema, as another target has it."""
    nodes = {}
    for unique_id, each in side.nodes.items():
        if each.resource_type in ("function", "model", "test"):
            sql = (each.compiled_code or "").replace('"s"."f"', '"ci"."f"')
            each = replace(each, compiled_code=None if unique_id in uncompiled else sql)
        nodes[unique_id] = replace(each, schema="ci") if unique_id == F else each
    return side.having(nodes=nodes)


@pytest.mark.parametrize("uncompiled", [(), ("model.p.m",)])
def test_in_the_schema_of_another_target_it_is_the_same_function(uncompiled: tuple[str]) -> None:
    sql = 'select "s"."f"(id) as n, amount as a from s.orders'
    base, head = sides(sql, raw="select {{ function('f') }}(id) as n, amount as a from s.orders")
    assert compare(base, in_ci(base, *uncompiled)).changed == {}
    change = compare(base, in_ci(head)).changed["model.p.m"]
    assert (change.redefined, change.rows) == (["n"], False)


def test_a_function_that_another_one_calls_is_part_of_it() -> None:
    caller = function(G, "s.f(x) * 2", F)
    assert changed("select s.g(id) as n, amount as a from s.orders", G, above=(caller,)) == {"n"}


def test_a_call_that_is_written_by_hand_is_one() -> None:
    """The node does not refer to the function, and names it all the same."""
    sql = "select s.f(id) as n, amount as a from s.orders"
    assert changed(sql, RAW) == {"n"}
    causes = select_from(compare(*sides(sql, RAW))).causes
    assert [(c.kind, c.name, c.nodes) for c in causes] == [("code", "f", ["model.p.m", F])]
    # A name that may be the engine's own is not the function's.
    assert changed("select f(id) as n, amount as a from s.orders", RAW) == set()


def test_an_ephemeral_model_passes_the_change_on() -> None:
    eph = node(
        "model.p.eph", "select s.f(id) as x, amount as a from s.orders", RAW, F,
        config={"materialized": "ephemeral"},
    )  # fmt: skip
    sql = (
        "with __dbt__cte__eph as (select s.f(id) as x, amount as a from s.orders)"
        " select x as n, a from __dbt__cte__eph"
    )
    assert changed(sql, "model.p.eph", above=(eph,)) == {"n"}


@pytest.mark.parametrize(
    "body", ["sum(x)", "unnest([x])", "row_number() over ()", "(select max(x))"]
)
def test_a_macro_of_duckdb_that_is_no_value_of_its_row_decides_the_rows(body: str) -> None:
    sql = "select s.f(id) as n from s.orders"
    assert "*" in changed(sql, edited=function(F, body))


@pytest.mark.parametrize("adapter", ["snowflake", "bigquery", "postgres", "databricks"])
def test_a_function_of_an_engine_is_what_it_is_declared_to_be(adapter: str) -> None:
    sql = "select s.f(id) as n, amount as a from s.orders"
    body = "begin return x + 2; end"
    assert changed(sql, adapter=adapter, edited=function(F, body)) == {"n"}


def test_a_name_without_brackets_is_a_call_where_the_engine_has_that() -> None:
    sql = "select s.f(id) as n, o.f as a from s.orders o"
    assert changed(sql, adapter="postgres") == EVERYTHING


def test_a_query_that_looks_for_a_name_in_vain_changes_with_the_function() -> None:
    assert "n" in changed("select s.f(nowhere) as n, amount as a from s.orders")


def test_definitions_are_shown_as_they_are_written() -> None:
    base, _ = sides("select s.f(id) as n, f(amount) as a from s.orders")
    shown = analyse(base, expressions=True).nodes["model.p.m"]
    assert shown.expressions == ["s.f(id)", "f(amount)"]
    assert shown.introspects == []


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select s.f(id) as n, amount as a from s.orders where id > {}", True),
        ('select s."F" (id) as n, amount as a from s.orders where id > {}', True),
        ("select fee as n, amount as a from s.orders as f where f.id > {}", False),
    ],
)
def test_a_function_is_a_cause_only_of_what_calls_it(sql: str, told: bool) -> None:
    base, _ = sides(sql.format(1), RAW)
    _, head = sides(sql.format(2), RAW)
    causes = causes_of(compare(base, head)).of("model.p.m")
    assert any("x + 2" in str(cause) for cause in causes) is told
    assert causes
