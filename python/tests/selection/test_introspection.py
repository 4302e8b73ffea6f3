"""Rule 11: what a node looks at while it compiles is part of it."""

from __future__ import annotations

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.introspection import NOTHING, IntrospectedParts, Introspection, WarehouseReads
from dbt_ripple.graph.macros import Macros
from dbt_ripple.selection.select import select

RUN_QUERY = macro("macro.dbt.run_query", "{% call statement('x') %}{% endcall %}")
STATEMENT = macro("macro.dbt.statement", "{% macro statement() %} {% endmacro %}")
COLUMNS = macro("macro.dbt.get_columns_in_relation", "{{ statement('x') }}", "macro.dbt.statement")
STAR = macro(
    "macro.dbt_utils.star",
    "{% for c in adapter.get_columns_in_relation(from) %}{{ c.column }}{% endfor %}",
)
VALUES = macro("macro.dbt_utils.get_column_values", "{{ run_query('x') }}", "macro.dbt.run_query")
DATEADD = macro("macro.dbt.dateadd", "{{ adapter.dispatch('dateadd', 'dbt')(x) }}")
INCREMENTAL = macro("macro.dbt.is_incremental", "{% set r = load_relation(this) %}")
OURS = macro("macro.p.ours", "{{ return(run_query('select 1')) }}", "macro.dbt.run_query")
TYPES = macro(
    "macro.p.types", "{% for c in adapter.get_columns_in_relation(x) %}{{ c.dtype }}{% endfor %}"
)
WRAPPED = macro("macro.p.wrapped", "{{ dbt_utils.star(x) }}", "macro.dbt_utils.star")
LOADED = macro("macro.dbt.load_relation", "{{ return(adapter.get_relation(x)) }}")
FOUND = macro("macro.p.found", "{{ return(adapter.get_relation('d', 's', 'x')) }}")
ALL = [
    FOUND,
    LOADED,
    RUN_QUERY,
    STATEMENT,
    COLUMNS,
    STAR,
    VALUES,
    DATEADD,
    INCREMENTAL,
    OURS,
    TYPES,
    WRAPPED,
]


def looks(raw: str, *calls: Macro) -> WarehouseReads:
    model = node("model.p.a", "select 1", raw=raw, macros=[m.unique_id for m in calls])
    side = project(model, macros=ALL)
    return Introspection(side, Macros(side)).of(model)


@pytest.mark.parametrize(
    ("raw", "calls", "sees"),
    [
        ("select * from {{ ref('x') }}", [], IntrospectedParts.NOTHING),
        ("select {{ dbt.dateadd('day') }}", [DATEADD], IntrospectedParts.NOTHING),
        (
            "select 1 {% if is_incremental() %} where x {% endif %}",
            [INCREMENTAL],
            IntrospectedParts.NOTHING,
        ),
        ("{% set x = run_query('select 1') %}", [RUN_QUERY], IntrospectedParts.EVERYTHING),
        (
            "{% call statement('x') %} select 1 {% endcall %}",
            [STATEMENT],
            IntrospectedParts.EVERYTHING,
        ),
        ("select 1 -- the materialization's own", [STATEMENT], IntrospectedParts.NOTHING),
        ("{{ ours() }}", [OURS], IntrospectedParts.EVERYTHING),
        ("{{ dbt_utils.star(ref('x')) }}", [STAR], IntrospectedParts.NAMES),
        ("{{ wrapped() }}", [WRAPPED], IntrospectedParts.NAMES),
        ("{{ types() }}", [TYPES], IntrospectedParts.COLUMNS),
        (
            "{% for c in adapter.get_columns_in_relation(ref('x')) %}{% endfor %}",
            [],
            IntrospectedParts.NAMES,
        ),
        (
            "{% for c in get_columns_in_relation(ref('x')) %}{% endfor %}",
            [COLUMNS],
            IntrospectedParts.NAMES,
        ),
        ("{{ adapter.get_relation(this).metadata }}", [], IntrospectedParts.EVERYTHING),
        ("{{ found().information }}", [FOUND], IntrospectedParts.EVERYTHING),
        ("{% set get = adapter %}{{ get.get_relation(this) }}", [], IntrospectedParts.EVERYTHING),
        (
            "{{ found() }}{% set x = run_query('select 1') %}",
            [FOUND, RUN_QUERY],
            IntrospectedParts.EVERYTHING,
        ),
        ("{% for n in graph.nodes.values() %}{% endfor %}", [], IntrospectedParts.NOTHING),
        (
            "{# run_query('x') #} select graph from {{ ref('graph') }}",
            [],
            IntrospectedParts.NOTHING,
        ),
        ("{{ adapter.dispatch('x')() }} {{ adapter.quote('y') }}", [], IntrospectedParts.NOTHING),
        (
            "{{ dbt_utils.get_column_values(ref('x'), var('c')) }}",
            [VALUES],
            IntrospectedParts.EVERYTHING,
        ),
    ],
)
def test_what_jinja_may_look_at(raw: str, calls: list[Macro], sees: IntrospectedParts) -> None:
    assert looks(raw, *calls) == WarehouseReads(sees)


def test_the_values_of_one_column() -> None:
    raw = "{% for v in dbt_utils.get_column_values(table=ref('x'), column='y') %}{% endfor %}"
    assert looks(raw, VALUES) == WarehouseReads(IntrospectedParts.NOTHING, (("x", "y"),))
    assert not NOTHING
    filtered = "{{ dbt_utils.get_column_values(ref('x'), 'y', where='z > 1') }}"
    assert looks(filtered, VALUES) == WarehouseReads(IntrospectedParts.EVERYTHING)


def side(stg: str, raw: str, *calls: Macro) -> Project:
    """A model whose compiled SQL says nothing of what it looks at."""
    return project(
        orders(),
        node("model.p.stg", stg, RAW),
        node(
            "model.p.a",
            "select 1 as x",
            "model.p.stg",
            raw=raw,
            macros=[m.unique_id for m in calls],
        ),
        check("t", "select x from s.a", "model.p.a"),
        catalog=LISTED,
        macros=ALL,
    )


STG = "select id, amount from s.orders"
VALUE = "select id, amount + 1 as amount from s.orders"
ROWS = "select id, amount from s.orders where id > 0"
COLUMN = "select id, amount, status from s.orders"
OTHER = "select id + 1 as id, amount from s.orders"


@pytest.mark.parametrize(
    ("raw", "calls", "moves"),
    [
        ("{{ ours() }}", [OURS], {VALUE, ROWS, COLUMN, OTHER}),
        ("{{ types() }}", [TYPES], {VALUE, ROWS, COLUMN, OTHER}),  # nor is stg named anywhere
        ("{{ dbt_utils.star(ref('stg')) }}", [STAR], {COLUMN}),
        ("{{ dbt_utils.get_column_values(ref('stg'), 'amount') }}", [VALUES], {VALUE, ROWS}),
        ("-- depends_on: {{ ref('stg') }}", [], {VALUE, ROWS, COLUMN, OTHER}),
    ],
)
def test_a_node_changes_with_what_it_queries(raw: str, calls: list[Macro], moves: set[str]) -> None:
    base = side(STG, raw, *calls)
    for edit in (VALUE, ROWS, COLUMN, OTHER):
        assert names(base, side(edit, raw, *calls)) == (["t"] if edit in moves else []), edit
    assert names(base, side(STG + " -- the same", raw, *calls)) == []


@pytest.mark.parametrize("compiled", [None, "select 1 as id", "select (("])
@pytest.mark.parametrize(
    ("asks", "moves"),
    [
        ("select max(id) from s.b", {"edited"}),
        ("select table_name from information_schema.tables", {"new"}),
        ("select column_name from information_schema.columns", {"edited", "new"}),
        ("select 1", set()),
    ],
)
def test_what_cannot_be_analysed_changes_with_what_it_queries_too(
    compiled: str | None, asks: str, moves: set[str]
) -> None:
    """Without a connection dbt compiles nothing that asks."""

    def side(b: str = "select id from s.orders", *more: Node) -> Project:
        raw = f"select {{{{ run_query('{asks}') }}}} as id"
        asking = node("model.p.a", compiled, raw=raw, macros=["macro.dbt.run_query"])
        of_a = check("of_a", "select id from s.a", "model.p.a")
        return project(
            orders(), node("model.p.b", b, RAW), asking, of_a, *more, catalog=LISTED, macros=ALL
        )

    head = {
        "edited": side("select id from s.orders where id > 0"),
        "new": side("select id from s.orders", node("model.p.c", "select 1 as id")),
    }
    assert {edit for edit, it in head.items() if "of_a" in names(side(), it)} == moves


def test_a_test_looks_too() -> None:
    def looking(stg: str) -> Project:
        sql = "select 1 as x"
        looks = check("looks", sql, "model.p.stg", raw="{{ ours() }}", macros=["macro.p.ours"])
        plain = check("plain", "select 1 as x from s.stg", "model.p.stg")
        return project(
            orders(), node("model.p.stg", stg, RAW), looks, plain, catalog=LISTED, macros=ALL
        )

    assert names(looking(STG), looking(VALUE)) == ["looks"]


def test_nothing_is_held_below_a_node_whose_columns_compiled_sql_does_not_tell() -> None:
    """The column it asks about may be gone once the star is compiled anew; then the test fails."""

    def starred(stg: str) -> Project:
        star = "{{ dbt_utils.star(ref('stg')) }}"
        never = "select amount from (select amount from s.a where amount is not null) as x where amount is null"
        return project(
            orders(),
            node("model.p.stg", stg, RAW),
            node(
                "model.p.a",
                "select id, amount from s.stg",
                "model.p.stg",
                raw=star,
                macros=[STAR.unique_id],
            ),
            check("t", never, "model.p.a"),
            catalog=LISTED,
            macros=ALL,
        )

    def proven(head: str) -> list[str]:
        chosen = select(starred(STG), starred(head), assume_passed=True)
        return [test.unique_id for test in chosen.proven]

    assert proven(ROWS) == ["test.p.t"]
    assert proven("select id from s.orders") == []


def test_what_looks_at_the_same_is_held_as_its_compiled_sql_says() -> None:
    """Where what it looks at is as it was, and was there when head was compiled."""

    def starred(
        query: str = "select id, amount from `s`.`stg`",
        stg: str = STG,
        schema: str = "s",
        more: str = "",
    ) -> Project:
        never = "select amount from `s`.`a` where amount is null"
        star = node(
            "model.p.a",
            query.replace("`s`", f"`{schema}`"),
            "model.p.stg",
            raw="{{ dbt_utils.star(ref('stg')) }}" + more,
            macros=[STAR.unique_id],
        )
        looked_at = node("model.p.stg", stg, RAW)
        star, looked_at = (
            replace(each, schema=schema, relation_name=f"`{schema}`.`{each.name}`")
            for each in (star, looked_at)
        )
        test = check("t", never.replace("`s`", f"`{schema}`"), "model.p.a", raw=never)
        return project(orders(), looked_at, star, test, catalog=LISTED, macros=ALL)

    def proven(head: Project) -> list[str]:
        chosen = select(starred(), head, assume_passed=True)
        assert len(chosen.proven) + len(chosen.tests) == 1
        return [test.unique_id for test in chosen.proven]

    fewer = "select id, amount from `s`.`stg` where id > 0"
    assert proven(starred(fewer, more=" where id > 0")) == ["test.p.t"]
    assert proven(starred(stg=ROWS)) == ["test.p.t"]
    # What it looks at is another thing, so that it may compile to anything.
    assert proven(starred(fewer, stg=COLUMN, more=" where id > 0")) == []
    # In CI's schema there may be nothing yet, and the star compiles to whatever is written then.
    assert proven(starred(fewer, schema="ci", more=" where id > 0")) == []
    # Code that is as it was is taken as base compiled it, whatever it compiled to there.
    assert proven(starred("select * from `s`.`stg`", stg=ROWS, schema="ci")) == ["test.p.t"]
    assert proven(starred(stg=ROWS, schema="ci")) == ["test.p.t"]


UNION = (
    "{% if found() %} {% endif %}select {{ dbt_utils.star(x) }} from {{ source('raw', 'orders') }}"
)


@pytest.mark.parametrize(
    ("compiled", "raw", "source", "proven"),
    [
        ("select id, amount, status from s.orders", UNION, [], True),
        ("select id, amount, status from s.orders where id > 0", UNION + " where id > 0", [], True),
        # What looks like this was made where there may have been no table.
        ("select * from s.orders", UNION, [], False),
        ("select id, amount from s.orders", UNION, [], False),
        ("select null as id, null as amount, null as status", UNION, [], False),
        ("select id, null as amount, null as status from s.orders", UNION, [], False),
        # What it looks at is another table, or nobody knows what it looks at.
        (
            "select id, amount, status from s.orders",
            UNION,
            ["id", "amount", "status", "new"],
            False,
        ),
        ("select id, amount, status from s.orders", UNION + "{{ run_query('x') }}", [], False),
    ],
)
def test_code_that_begins_to_look_says_what_it_saw(
    compiled: str, raw: str, source: list[str], proven: bool
) -> None:
    def side(query: str, code: str, *calls: Macro, columns: list[str]) -> Project:
        never = "select amount from s.a where amount is null"
        a = node("model.p.a", query, RAW, raw=code, macros=[m.unique_id for m in calls])
        test = check("t", never, "model.p.a")
        return project(orders(), a, test, catalog={RAW: columns or LISTED[RAW]}, macros=ALL)

    base = side("select * from s.orders", "select * from {{ source('raw', 'orders') }}", columns=[])
    calls = [FOUND, STAR, *([RUN_QUERY] if "run_query" in raw else [])]
    selection = select(base, side(compiled, raw, *calls, columns=source), assume_passed=True)
    assert ([t.unique_id for t in selection.proven], len(selection.tests)) == (
        (["test.p.t"], 0) if proven else ([], 1)
    )


def test_edited_code_that_was_compiled_where_nothing_is_yet_counts_as_written() -> None:
    """In CI's empty schema a star is `*`, whatever it leaves out: the text shows no edit."""

    def starred(raw: str, compiled: str = "select * from ci.stg", schema: str = "ci") -> Project:
        a = node("model.p.a", compiled, "model.p.stg", raw=raw, macros=[STAR.unique_id])
        stg = node("model.p.stg", STG, RAW)
        a, stg = (
            replace(each, schema=schema, relation_name=f"`{schema}`.`{each.name}`")
            for each in (a, stg)
        )
        below = check("t", f"select id from {schema}.a where id is null", "model.p.a")
        return project(orders(), stg, a, below, catalog=LISTED, macros=ALL)

    star = "select {{ dbt_utils.star(ref('stg')) }} from {{ ref('stg') }}"
    built = starred(star, "select id, amount from s.stg", "s")
    assert names(built, starred(star)) == []
    assert names(built, starred(star + "  -- why")) == []
    assert names(built, starred(star.replace("('stg')", "('stg'), except=['id']", 1))) == ["t"]
    # Beside what base has built, the text shows it.
    shown = starred(star + " where 1 = 1", "select id, amount from s.stg", "s")
    assert names(built, shown) == []


def test_the_packages_tags_touch_no_rows() -> None:
    """`apply_tags` queries the warehouse, and yet whoever adds it to every model moves nothing."""
    tags = macro(
        "macro.dbt_ripple.apply_tags", "{% macro apply_tags() %}{% do run_query(x) %}{% endmacro %}"
    )
    theirs = macro("macro.p.grants", "{% macro grants() %}{% do run_query(x) %}{% endmacro %}")
    query = "select id, amount from s.orders"

    def side(*calls: str, hook: str | None = None) -> Project:
        config = {"post-hook": [{"sql": hook}]} if hook else {}
        m = node("model.p.m", query, RAW, macros=list(calls), config=config)
        t = check("t", "select id from s.m where id is null", "model.p.m")
        return project(orders(), m, t, catalog=LISTED, macros=[tags, theirs])

    applied = side(tags.unique_id, hook="{{ dbt_ripple.apply_tags() }}")
    assert names(side(), applied) == []
    assert names(side(), side(theirs.unique_id, hook="{{ grants() }}")) == ["t"]
    more = "{{ dbt_ripple.apply_tags() }} delete from {{ this }}"
    assert names(applied, side(tags.unique_id, hook=more)) == ["t"]


@pytest.mark.parametrize(
    ("raw", "calls", "sees"),
    [
        ("{% if adapter.get_relation('d', 's', 'x') %}{% endif %}", [], IntrospectedParts.NOTHING),
        ("{% if load_relation(ref('x')) %}{% endif %}", [LOADED], IntrospectedParts.NOTHING),
        (
            "{% if found() %}{{ dbt_utils.star(ref('x')) }}{% endif %}",
            [FOUND, STAR],
            IntrospectedParts.NAMES,
        ),
    ],
)
def test_what_asks_whether_a_relation_is_there_sees_no_more(
    raw: str, calls: list[Macro], sees: IntrospectedParts
) -> None:
    assert looks(raw, *calls) == WarehouseReads(sees, exist=True)


def test_whether_a_relation_is_there_does_not_move_with_its_rows() -> None:
    def side(where: str = "", kind: str = "table", sql: str = "select a from s.x") -> Project:
        return project(
            orders(),
            node(
                "model.p.x",
                f"select id as a from s.orders{where}",
                RAW,
                config={"materialized": kind},
            ),
            node(
                "model.p.y",
                sql,
                "model.p.x",
                raw="{% if found() %} {{ ref('x') }}{% endif %}",
                macros=[FOUND.unique_id],
            ),
            check("constant", "select 1 as one from s.z", "model.p.z"),
            node("model.p.z", "select distinct 1 as one from s.y", "model.p.y"),
            check("rows", "select a from s.y", "model.p.y"),
            catalog=LISTED,
            macros=ALL,
        )

    def columns(**edit: str) -> tuple[set[str], bool]:
        now = side(**edit)
        before, here = analyse(side()).nodes["model.p.y"], analyse(now).nodes["model.p.y"]
        return set(
            names(side(), now)
        ), before.introspection_fingerprint == here.introspection_fingerprint

    assert columns(where=" where id > 1") == ({"constant", "rows"}, True)  # by the text alone
    assert columns(kind="view") == ({"constant", "rows"}, False)
    # What the text does not name counts whole, as it may come to be named.
    gone = "select cast(null as int) as a"
    assert set(names(side(sql=gone), side(sql=gone, where=" where id > 1"))) == {"constant", "rows"}


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("{% set adapter = target.type %}{% if adapter in ['duckdb'] %} 1 {% endif %}", False),
        ("{% if x %}{{ end_date }}{% endif %}{% set adapter = 1 %}{{ adapter.a }}", False),
        ("{% if x %}{{ endif }}{% set adapter = 1 %}{% endif %}{{ adapter.execute(x) }}", True),
        ("{% for a in b %}{% set adapter = 1 %}{% endfor %}{{ adapter.execute(x) }}", True),
        ("{{ adapter.execute(x) }}{% set adapter = 1 %}", True),
        ("{% set adapter = adapter %}{{ adapter.execute(x) }}", True),
        ("{% set y %} {% set adapter = 1 %} {% endset %}{{ adapter.execute(x) }}", True),
        ("{% set adapter == 1 %}{{ adapter.execute(x) }}", True),
        ("{% set adapter = 1 %}{{ run_query(x) }}", True),
    ],
)
def test_a_variable_of_its_own_that_is_called_adapter_is_not_dbts(text: str, looks: bool) -> None:
    mine = macro("macro.p.m", "{% macro m(x) %}" + text + "{% endmacro %}")
    side = project(orders(), macros=[mine])
    parts, *_ = Introspection(side, Macros(side)).of_macro(mine.unique_id)
    assert (parts is IntrospectedParts.EVERYTHING) == looks
