"""Rows that a LEFT JOIN keeps, whatever became of its right side: by the queries alone, without a test that passed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import duckdb
import pytest
from hand_made import check, generic, node, picked, project

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.artifacts.project import TestMetadata
from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import diff
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.rendering.diff import diff_markdown

ORDERS, CUSTOMERS, TOP = "source.p.raw.orders", "source.p.raw.customers", "model.p.top"
COLUMNS = {
    ORDERS: {"id": "INTEGER", "customer_id": "INTEGER", "code": "VARCHAR", "amount": "INTEGER"},
    CUSTOMERS: {"id": "INTEGER", "code": "VARCHAR"},
}
COUNTED = "select customer_id, count(*) as n from s.orders {where} group by customer_id"
JOINED = (
    f"with o as ({COUNTED}) select c.id, o.n from s.customers c left join o on c.id = o.customer_id"
)
EDIT = "where amount > 10"


def side(
    where: str,
    top: str = JOINED,
    *more: Any,
    types: bool = True,
    adapter: str = "duckdb",
    **of_top: Any,
) -> Project:
    """A table on top of two sources, and what reads it."""
    typed = {u: c if types else dict.fromkeys(c) for u, c in COLUMNS.items()}
    typed |= {TOP: {"id": "INTEGER" if types else None, "n": "BIGINT" if types else None}}
    return project(
        node(ORDERS, columns=[*COLUMNS[ORDERS]]),
        node(CUSTOMERS, columns=[*COLUMNS[CUSTOMERS]]),
        node(TOP, top.replace("{where}", where), ORDERS, CUSTOMERS, **of_top),
        node("model.p.below", "select id from s.top", TOP, config={"materialized": "view"}),
        generic("unique_id", "unique", "select id from s.top group by id having count(*) > 1", TOP),
        check("of_below", "select id from s.below where id is null", "model.p.below"),
        check("of_n", "select n from s.top where n < 0", TOP),
        *more,
        types=typed,
        adapter=adapter,
    )


def selected(before: Project, now: Project) -> list[str]:
    return [test.name for test in picked(before, now).tests]


EVERY = ["unique_id", "of_below", "of_n"]


@pytest.mark.parametrize("adapter", ["duckdb", "spark", "postgres"])
def test_a_filter_below_a_group_by_leaves_the_rows_of_a_left_join(adapter: str) -> None:
    base, head = side("", adapter=adapter), side(EDIT, adapter=adapter)
    assert selected(base, head) == ["of_n"]
    change = compare(base, head).changed
    assert [*change] == [TOP]
    assert (change[TOP].rows, change[TOP].redefined) == (False, ["n"])


@pytest.mark.parametrize(
    "top",
    [
        JOINED.replace("select customer_id,", "select cast(customer_id as integer) as customer_id,")
        .replace("group by customer_id", "group by 1")
        .replace("on c.id", "on cast(c.id as integer)"),
        JOINED.replace("s.customers", "s.orders")
        .replace("on c.id", "on c.customer_id")
        .replace("with o", "with customers as (select id from s.customers), o"),
    ],
)
def test_types_may_be_told_by_the_query(top: str) -> None:
    """Without a catalog, as with `--base-ref`."""
    assert selected(side("", top, types=False), side(EDIT, top, types=False)) == ["of_n"]


def test_the_clause_that_was_edited_is_shown_of_the_columns_it_changes() -> None:
    base, head = side(""), side(EDIT)
    said = [*diff_markdown(diff(compare(base, head)), base, head)]
    assert said[-6:-1] == ["- n: redefined", "", "  ```diff", "  + WHERE amount > 10", "  ```"]


def test_a_join_none_of_whose_columns_are_read_changes_nothing() -> None:
    unread = JOINED.replace("o.n", "c.code as n")
    comparison = compare(side("", unread), side(EDIT, unread))
    assert (comparison.changed, selected(side("", unread), side(EDIT, unread))) == ({}, [])
    assert picked(side("", unread), side(EDIT, unread)).models == [TOP]


NEAR: dict[str, tuple[str, dict[str, Any]]] = {
    "types are not known": (JOINED, {"types": False}),
    "another type, so that two keys may meet one row": (
        JOINED.replace("customer_id", "code"),
        {},
    ),
    "a group is a part of what is joined by": (
        JOINED.replace("group by customer_id", "group by customer_id, code"),
        {},
    ),
    "rows without a match go": (JOINED.replace("left join", "join"), {}),
    "rows that match nothing come": (JOINED.replace("left join", "full join"), {}),
    "a filter reads what is joined": (JOINED + " where o.n > 1", {}),
    "a hook makes rows of columns": (
        JOINED,
        {"config": {"post-hook": [{"sql": "delete from s.top where n > 1"}]}},
    ),
    "a view is only created": (JOINED, {"config": {"materialized": "view"}}),
    "rows of earlier runs stay": (JOINED, {"config": {"materialized": "incremental"}}),
}


@pytest.mark.parametrize("case", NEAR)
def test_rows_change_where(case: str) -> None:
    top, more = NEAR[case]
    assert selected(side("", top, **more), side(EDIT, top, **more)) == EVERY


def test_more_than_the_key_may_be_asked() -> None:
    more = JOINED.replace("on c.id", "on o.n > c.id and c.id")
    assert selected(side("", more), side(EDIT, more)) == ["of_n"]


COUNTED_BY = "model.p.counted"
OF_TABLE = "select c.id, o.n from s.customers c left join s.counted o on c.id = o.customer_id"
VIEW = {"config": {"materialized": "view"}}


def over(table: dict[str, Any], edit: str, *more: Node) -> Project:
    """What is joined is a table of its own, with these settings."""
    counted = node(COUNTED_BY, COUNTED.replace("{where}", edit), ORDERS, **table)
    top = node(TOP, OF_TABLE, CUSTOMERS, COUNTED_BY)
    types = {u: {c.name: str(c.type) for c in of} for u, of in side("").catalog.items()}
    types[COUNTED_BY] = {"customer_id": "INTEGER", "n": "BIGINT"}
    nodes = {**side("").nodes, TOP: top, COUNTED_BY: counted}
    return project(*nodes.values(), *more, types=types, adapter="duckdb")


def of_more(*more: Node) -> list[str]:
    """What an edit of the table on the right selects beside the test of what it redefines."""
    found = selected(over({}, "", *more), over({}, EDIT, *more))
    assert found[0] == "of_n"
    return found[1:]


def test_a_table_that_groups_is_unique_by_its_query() -> None:
    assert of_more() == []


@pytest.mark.parametrize(
    "table",
    [
        {"config": {"materialized": "incremental"}},
        {"config": {"post-hook": [{"sql": "insert into s.counted select * from s.other"}]}},
    ],
)
def test_a_table_that_holds_more_than_its_query_is_not(table: dict[str, Any]) -> None:
    assert selected(over(table, ""), over(table, EDIT)) == EVERY


JOINING_VIEW = node("model.p.v", OF_TABLE, CUSTOMERS, COUNTED_BY, **VIEW)
OF_VIEW = node("model.p.w", "select id from s.v", "model.p.v", **VIEW)


def test_what_a_view_joins_may_be_evaluated_by_its_readers() -> None:
    """It keeps its rows; but the engine may evaluate the join all the same, and fail there."""
    more = [
        JOINING_VIEW,
        check("of_v", "select id from s.v where id is null", "model.p.v"),
        OF_VIEW,
        check("of_w", "select id from s.w where id is null", "model.p.w"),
    ]
    assert of_more(*more) == ["of_v", "of_w"]


def test_a_test_that_joins_evaluates_it_itself() -> None:
    joining = check("joining", OF_TABLE.replace("o.n", "1 as x"), CUSTOMERS, COUNTED_BY)
    assert of_more(joining) == ["joining"]


def test_a_value_of_one_row_that_is_looked_up_is_redefined() -> None:
    """Plain fingerprints say of it that the rows changed, and not the column."""
    top = JOINED.replace("count(*) as n", "customer_id + 1 as n")
    assert selected(side("", top), side(EDIT, top)) == ["of_n"]
    assert compare(side("", top), side(EDIT, top)).changed[TOP].redefined == ["n"]


PYTHON = node("model.p.py", "x", "model.p.below", language="python", raw="x")


def test_what_cannot_be_followed_may_see_another_order() -> None:
    of_python = node("model.p.of_py", "select 1 as x from s.py", "model.p.py")
    test = check("of_of_py", "select x from s.of_py where x > 1", "model.p.of_py")
    assert of_more(PYTHON, of_python, test) == ["of_of_py"]


def asking(column: str) -> Node:
    asks = f"{{% set all = dbt_utils.get_column_values(ref('top'), '{column}') %}} select 1 as x"
    return node("model.p.asking", "select 1 as x", TOP, raw=asks)


@pytest.mark.parametrize(("column", "more"), [("id", []), ("n", ["of_asking"])])
def test_who_asks_the_warehouse_for_what_is_kept_is_told_the_same(
    column: str, more: list[str]
) -> None:
    test = check("of_asking", "select x from s.asking", "model.p.asking")
    assert of_more(asking(column), test) == more


def test_a_count_of_rows_that_are_kept_is_kept() -> None:
    sums = node("model.p.sums", "select count(*) as c, max(n) as m from s.top", TOP)
    of_c = check("of_c", "select c from s.sums where c < 1", "model.p.sums")
    of_m = check("of_m", "select m from s.sums where m < 1", "model.p.sums")
    assert of_more(sums, of_c, of_m) == ["of_m"]
    changed = compare(over({}, "", sums), over({}, EDIT, sums)).changed
    assert changed["model.p.sums"].redefined == ["m"]


def test_a_new_model_below_is_new() -> None:
    new = node("model.p.new", "select id, n from s.top", TOP)
    change = compare(over({}, ""), over({}, EDIT, new)).changed["model.p.new"]
    assert change.kind == "added"


def test_a_key_of_another_type_may_meet_a_row_twice() -> None:
    """The catalog has the type that the key had on base."""
    then = over({}, "")
    text = "select code || '' as customer_id, count(*) as n from s.orders group by 1"
    now = over({}, "", node(COUNTED_BY, text, ORDERS))
    assert selected(then, now) == EVERY


@pytest.mark.parametrize(
    ("key", "materialized", "kept"),
    [
        ("abs(customer_id)", "table", True),
        ("abs(customer_id)", "incremental", False),
        ("abs(customer_id){edit}", "table", False),
    ],
)
def test_a_key_that_did_not_change_has_the_type_that_it_had(
    key: str, materialized: str, kept: bool
) -> None:
    """By base's catalog: no query tells the type of `abs`."""

    def counted(edit: str, other_key: str) -> Project:
        text = f"select {key.format(edit=other_key)} as customer_id, count(*) as n from s.orders {edit} group by 1"
        of = {"config": {"materialized": materialized}}
        return over({}, "", node(COUNTED_BY, text, ORDERS, **of))

    found = selected(counted("", ""), counted(EDIT, " + 1"))
    assert found == (["of_n"] if kept else EVERY)


GROUPED = "select customer_id, count(*) as n from s.orders group by customer_id"


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        (GROUPED, GROUPED.replace("select", "select distinct"), []),
        (GROUPED, GROUPED.replace("select", "select distinct on (n)"), ["of_n"]),
        ("select customer_id, 1 as n from s.orders", "select distinct customer_id, 1 as n from s.orders", EVERY),
        # Not all keys are shown.
        (f"{GROUPED}, id", f"{GROUPED}, id".replace("select", "select distinct"), EVERY),
    ],
)  # fmt: skip
def test_distinct_leaves_rows_that_are_distinct(then: str, now: str, found: list[str]) -> None:
    sides = (over({}, "", node(COUNTED_BY, sql, ORDERS)) for sql in (then, now))
    assert selected(*sides) == found


def test_the_type_of_a_key_is_known_before_it_is_asked_what_is_unique() -> None:
    """Of what is not DISTINCT, too: else one side joins by a lookup, and the other does not."""

    def of(word: str) -> Project:
        grouped = node("model.p.grouped", GROUPED, ORDERS, config={"materialized": "ephemeral"})
        inlined = f"with __dbt__cte__grouped as ({GROUPED}), o as (select {word} * from __dbt__cte__grouped) "
        top = node(TOP, inlined + JOINED.rpartition(") ")[2], CUSTOMERS, "model.p.grouped")
        made = side("")
        types = {u: {c.name: str(c.type) for c in of} for u, of in made.catalog.items()}
        return project(*{**made.nodes, TOP: top}.values(), grouped, types=types, adapter="duckdb")

    assert selected(of(""), of("distinct")) == []


def test_a_query_names_a_column_that_a_seed_does_not_have() -> None:
    def of(edit: str, column: str) -> Project:
        seed = node("seed.p.few", columns=["id"])
        query = f"select {column} from s.few"
        return over({}, edit, seed, node("model.p.other", query, "seed.p.few"))

    assert selected(of("", "id"), of(EDIT, "missing")) == ["of_n"]


def test_distinct_makes_the_readers_of_a_view_evaluate_all_columns() -> None:
    failing = GROUPED.replace("count(*)", "count(cast(code as integer))")
    both = [failing, failing.replace("select", "select distinct")]
    views = (over({}, "", node(COUNTED_BY, sql, ORDERS, **VIEW)) for sql in both)
    with mock.patch("dbt_ripple.changes.compare.prove_equivalent", return_value=False):
        assert selected(*views) == ["of_n"]


def test_where_a_column_comes_from_is_asked_of_the_plain_comparison() -> None:
    asks = {"column_name": "n", "columns": ["orders.amount"]}
    test = node(
        "test.p.not_from_amount",
        "select 1 as problem",
        TOP,
        test_metadata=TestMetadata(name="not_from", namespace="dbt_ripple", kwargs=asks),
        column_name="n",
        attached_node=TOP,
    )
    summed = JOINED.replace("count(*)", "sum(amount)")
    assert selected(side("", JOINED, test), side(EDIT, summed, test)) == ["of_n", "not_from_amount"]


def test_what_stands_in_an_analysis_only_is_not_linked_again() -> None:
    """As what is supposed to change, or what another project builds."""
    made = side("")
    seen = analyse(made)
    nodes = {
        u: replace(n, rows_fingerprint="00" * 16) if u in (ORDERS, TOP, "model.p.below") else n
        for u, n in seen.nodes.items()
    }
    comparison = compare(made, side(""), head_analysis=replace(seen, nodes=nodes))
    assert {*comparison.changed} == {ORDERS, TOP, "model.p.below"}


def test_what_is_supposed_to_change_is_not_kept() -> None:
    by_amount = side(EDIT)
    report = impact(by_amount, by_amount.nodes[ORDERS], [Change("retype", "amount", "varchar")])
    assert report.decision == "CAUTION"


BY_TEXT = JOINED.replace("customer_id", "code").replace("c.id =", "c.code =")


@pytest.mark.parametrize(
    ("top", "adapter", "kept"),
    [
        (BY_TEXT, "duckdb", False),
        (BY_TEXT, "spark", True),  # whose types show a collation
        (BY_TEXT.replace("c.code =", "cast(c.code as varchar) ="), "duckdb", False),
        (BY_TEXT.replace("c.code =", "upper(c.code) ="), "duckdb", False),
        (
            BY_TEXT.replace("c.code =", "md5(c.code) =")
            .replace("select code", "select md5(code) as code")
            .replace("by code", "by 1"),
            "duckdb",
            True,
        ),
        (
            BY_TEXT.replace("c.code =", "cast(c.id as varchar) =")
            .replace("select code", "select cast(id as varchar) as code")
            .replace("by code", "by 1"),
            "duckdb",
            True,
        ),
        (
            BY_TEXT.replace("s.customers", "s.orders").replace(
                "with o", "with customers as (select id from s.customers), o"
            ),
            "duckdb",
            True,
        ),
    ],
)
def test_text_of_two_columns_of_sources_may_be_compared_by_other_rules(
    top: str, adapter: str, kept: bool
) -> None:
    expected = ["of_n"] if kept else EVERY
    assert selected(side("", top, adapter=adapter), side(EDIT, top, adapter=adapter)) == expected


def test_a_table_hands_on_the_collation_of_a_source() -> None:
    """So does a function of it; a hash does not."""
    for code, kept in (("code", False), ("lower(code)", False), ("md5(code)", True)):
        stg = node("model.p.stg", f"select id, {code} as code from s.customers", CUSTOMERS)
        by = code if kept else "code"
        text = f"select {by} as k, count(*) as n from s.orders {{where}} group by 1"
        joined = f"with o as ({text}) select c.id, o.n from s.stg c left join o on c.code = o.k"
        sides = []
        for where in ("", EDIT):
            made = side(where)
            top = node(TOP, joined.replace("{where}", where), ORDERS, "model.p.stg")
            types = {u: {c.name: str(c.type) for c in of} for u, of in made.catalog.items()}
            types["model.p.stg"] = {"id": "INTEGER", "code": "VARCHAR"}
            nodes = {**made.nodes, TOP: top}
            sides.append(project(*nodes.values(), stg, types=types, adapter="duckdb"))
        assert selected(*sides) == (["of_n"] if kept else EVERY), code


@pytest.mark.parametrize("language", ["sql", "python"])
def test_what_cannot_be_followed_may_hand_on_a_collation(language: str) -> None:
    made_by = "select id, cast(id as varchar) as code from s.customers"
    above = [CUSTOMERS] if language == "sql" else []  # Python may read what no manifest names
    stg = node("model.p.stg", made_by, *above, language=language)
    text = "select cast(id as varchar) as k, count(*) as n from s.orders {where} group by 1"
    joined = f"with o as ({text}) select c.id, o.n from s.stg c left join o on c.code = o.k"
    sides = []
    for where in ("", EDIT):
        made = side(where)
        top = node(TOP, joined.replace("{where}", where), ORDERS, "model.p.stg")
        types = {u: {c.name: str(c.type) for c in of} for u, of in made.catalog.items()}
        types["model.p.stg"] = {"id": "INTEGER", "code": "VARCHAR"}
        sides.append(
            project(*{**made.nodes, TOP: top}.values(), stg, types=types, adapter="duckdb")
        )
    assert selected(*sides) == (["of_n"] if language == "sql" else EVERY)


def test_the_engine_compares_by_a_collation_that_no_catalog_shows() -> None:
    with duckdb.connect() as connection:
        connection.execute("create table c as select 1 as id, 'a' as code")
        connection.execute("alter table c alter code type varchar collate nocase")
        connection.execute("create table o as from (values ('a', 1), ('A', 20)) t(code, amount)")
        shown = connection.execute("describe c").fetchall()
        assert shown[1][:2] == ("code", "VARCHAR")
        for code in ("code", "cast(code as varchar)", "lower(code)"):
            connection.execute(f"create or replace table stg as select id, {code} as code from c")
            joined = "from stg join (select code from o {} group by code) o on stg.code = o.code"
            count = f"select count(*) {joined}"
            found = [
                connection.execute(count.format(w)).fetchone() for w in ("", "where amount < 9")
            ]
            assert found == [(2,), (1,)], code


def rows_of(sql: str, where: str) -> list[Any]:
    """What DuckDB has of the key of the top table."""
    with duckdb.connect() as connection:
        connection.execute("create schema s")
        connection.execute(
            "create table s.orders as from (values (1, 1, '1', 5), (2, 1, '01', 20), (3, 2, '2', 5)) t(id, customer_id, code, amount)"
        )
        connection.execute(
            "create table s.customers as select i as id, i::varchar as code from range(1, 4) t(i)"
        )
        found = connection.execute(sql.replace("{where}", where)).fetchall()
    return sorted(row[0] for row in found)


def test_the_engine_agrees() -> None:
    assert rows_of(JOINED, "") == rows_of(JOINED, EDIT) == [1, 2, 3]
    by_code = JOINED.replace("customer_id", "code")
    assert (rows_of(by_code, ""), rows_of(by_code, EDIT)) == ([1, 1, 2, 3], [1, 2, 3])
