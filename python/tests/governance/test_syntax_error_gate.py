"""Edits that make no SQL of a model: blocked where that is certain, else a caution with the line."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hand_made import check, generic, node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import diff
from dbt_ripple.governance.gate import GateReport, gate
from dbt_ripple.selection.select import select

RAW = node("source.p.raw.t", columns={"id": "int", "a": "int", "b": "int"})
BASE = "select id, a + 1 as a, b\nfrom s.t"


def shop(stg: str = BASE, adapter: str = "duckdb", test: str = "", **more: Any) -> Project:
    return project(
        RAW,
        node("model.p.stg", stg, "source.p.raw.t", **more),
        node("model.p.mart", "select id, a from s.stg", "model.p.stg"),
        check("no_a", test or "select id from s.mart where a < 0", "model.p.mart"),
        generic("not_null", "not_null", "select id from s.stg where id is null", "model.p.stg"),
        adapter=adapter,
    )


def of_syntax(report: GateReport) -> list[tuple[str, str, str | None]]:
    rules = ("syntax_error", "unread_sql")
    return [(f.rule, f.level, f.unique_id) for f in report.findings if f.rule in rules]


def duckdb_builds(sql: str) -> bool:
    with duckdb.connect() as connection:
        connection.execute("create schema s")
        connection.execute("create table s.t as select 1 as id, 2 as a, 3 as b")
        try:
            connection.execute(f"create table s.stg as (\n{sql}\n)")
        except duckdb.Error:
            return False
    return True


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select id, (a + 1 as a, b\nfrom s.t", "`(` is not closed (line 1"),
        ("select id, a + 1 as a,\n  b,, id as c\nfrom s.t", "a comma too many (line 2"),
        ("select id,\n  a + 1 as a\n  b\nfrom s.t", "a comma is missing before `b` (line 3"),
        ("select id, a + 1 as a, b\nfrom s.t\nwhere", "nothing follows `where` (line 3"),
        ("select id, a + 1 as a, 'b as b\nfrom s.t", "`'` is not closed (line 1"),
        ("select id, a + 1 as a, b\nform s.t", "`form` for `from` (line 2"),
    ],
)
def test_what_no_engine_can_parse_is_blocked(sql: str, why: str) -> None:
    assert duckdb_builds(BASE)
    assert not duckdb_builds(sql)
    report = gate(shop(), shop(sql))
    assert report.decision == "BLOCKED"
    assert of_syntax(report) == [("syntax_error", "block", "model.p.stg")]
    (message,) = [f.reason.message for f in report.findings if f.rule == "syntax_error"]
    assert why in message
    assert "model.p.stg" not in report.opaque  # it is said once


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("select id, a + 1 as a, b, 3! as c\nfrom s.t", 1),
        ("with x as (select * from s.t),\nselect id, a + 1 as a, b\nfrom x", 2),
    ],
)
def test_what_only_sqlglot_does_not_know_is_a_caution_with_the_line(sql: str, line: int) -> None:
    assert duckdb_builds(sql)
    report = gate(shop(), shop(sql))
    assert report.decision == "CAUTION"
    assert of_syntax(report) == [("unread_sql", "warn", "model.p.stg")]
    (message,) = [f.reason.message for f in report.findings if f.rule == "unread_sql"]
    assert f"line {line} of the compiled SQL" in message


def test_that_base_was_not_parsed_either_is_known() -> None:
    report = gate(shop("select id, 4! as a, b from s.t"), shop("select id, 3! as a, b from s.t"))
    assert of_syntax(report) == [("unread_sql", "known", "model.p.stg")]


def test_a_mistake_of_base_is_not_the_changes() -> None:
    report = gate(shop("select id, (a as a, b from s.t"), shop("select id, (b as a, b from s.t"))
    assert ("syntax_error", "block", "model.p.stg") not in of_syntax(report)
    assert gate(shop("select (a from s.t"), shop("select (a from s.t")).decision == "APPROVED"


def test_a_new_model_and_an_edited_test_are_looked_at_too() -> None:
    new = node("model.p.new", "select id from s.stg where", "model.p.stg")
    head = shop(test="select id from s.mart where (a < 0")
    head = project(*head.nodes.values(), new, adapter="duckdb")
    assert set(of_syntax(gate(shop(), head))) == {
        ("syntax_error", "block", "model.p.new"),
        ("syntax_error", "block", "test.p.no_a"),
    }


def test_of_an_engine_that_is_not_known_nothing_is_certain() -> None:
    wrong = "select id, (a + 1 as a, b\nfrom s.t"
    report = gate(shop(adapter="nobody_knows"), shop(wrong, adapter="nobody_knows"))
    assert of_syntax(report) == [("unread_sql", "warn", "model.p.stg")]


def test_text_that_the_warehouse_decides_is_not_certain() -> None:
    wrong = "select id, (a + 1 as a, b\nfrom s.t"
    looks = "{% set n = run_query('select 1') %}select {{ n }}"
    assert of_syntax(gate(shop(raw=looks), shop(wrong, raw=looks + " "))) == [
        ("unread_sql", "warn", "model.p.stg")
    ]


def test_an_ephemeral_model_is_broken_where_it_is_inlined() -> None:
    wrong = "select id, (a + 1 as a, b\nfrom s.t"
    ephemeral = {"config": {"materialized": "ephemeral"}}

    def inlined(sql: str, *readers: str) -> Project:
        within = f"with __dbt__cte__stg as (\n{sql}\n) select id, a from __dbt__cte__stg"
        return project(
            RAW,
            node("model.p.stg", sql, "source.p.raw.t", **ephemeral),
            *(node(f"model.p.{name}", within, "model.p.stg") for name in readers),
            adapter="duckdb",
        )

    findings = of_syntax(gate(inlined(BASE, "mart"), inlined(wrong, "mart")))
    assert [(rule, unique_id) for rule, _, unique_id in findings] == [
        ("syntax_error", "model.p.mart"),
        ("syntax_error", "model.p.stg"),
    ]
    assert of_syntax(gate(inlined(BASE), inlined(wrong))) == [("unread_sql", "warn", "model.p.stg")]


def test_select_and_diff_say_so_and_leave_out_no_test() -> None:
    head = shop("select id, (a + 1 as a, b\nfrom s.t")
    selection = select(shop(), head)
    assert [b.unique_id for b in selection.broken] == ["model.p.stg"]
    assert {test.unique_id for test in selection.tests} == {"test.p.no_a", "test.p.not_null"}
    differences = diff(compare(shop(), head))
    assert ["cannot be parsed: `(` is not closed" in str(b.reason) for b in differences.broken] == [
        True
    ]
