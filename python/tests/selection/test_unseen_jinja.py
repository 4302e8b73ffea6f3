"""What a node's Jinja does when it is built, and ``dbt compile`` does not show: all of it counts.

Each case was first executed by a real dbt, where the test's result differed and nothing said so.
"""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.selection.select import select

SQL = "select id, 1 as x from s.orders"
LOWER = "{% if flags.WHICH == 'compile' %}1{% else %}1{% endif %}"
HIGHER = LOWER.replace("else %}1", "else %}2")
ASKS = macro("macro.p.asks", f"{{% macro asks() %}}{LOWER}{{% endmacro %}}")
ASKS_OTHERWISE = macro("macro.p.asks", f"{{% macro asks() %}}{HIGHER}{{% endmacro %}}")
OUTER = macro("macro.p.outer", "{% macro outer() %}{{ asks() }}{% endmacro %}", ASKS.unique_id)
LOADED = macro("macro.dbt.run_query", "{% call statement('x') %}{% endcall %}")


def side(raw: str, *more: Node, macros: tuple[str, ...] = (), asks: bool = True) -> Project:
    """A model ``m`` that compiles to `SQL`, with a test of it."""
    model = node("model.p.m", SQL, RAW, raw=raw, macros=list(macros))
    test = check("t", "select x from s.m where x > 1", "model.p.m")
    macros_of_project = [ASKS if asks else ASKS_OTHERWISE, OUTER, LOADED]
    return project(
        orders(), model, test, *more, catalog=LISTED, macros=macros_of_project, adapter="duckdb"
    )


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (LOWER, HIGHER, True),
        ("{{ 1 if invocation_args_dict.which else 1 }}", "{{ 2 if invocation_args_dict.which else 1 }}", True),
        ("{% set w = flags %}{{ 1 if w.WHICH }}", "{% set w = flags %}{{ 2 if w.WHICH }}", True),
        ("{{ 1 if selected_resources else 1 }}", "{{ 2 if selected_resources else 1 }}", True),
        ("{{ 1 if flags['WHICH'] else 1 }}", "{{ 2 if flags['WHICH'] else 1 }}", True),
        ("{{ 1 if flags.FULL_REFRESH else 1 }}", "{{ 1 if flags.FULL_REFRESH  else 1 }}", False),
        ("{{ 1 if flags.FULL_REFRESH else 1 }}", "{{ 2 if flags.FULL_REFRESH else 1 }}", True),
        ("{{ config(full_refresh=false) }}1", "{{ config(full_refresh = false) }}{% set a = 1 %}1", False),
        (LOWER, LOWER + " {# why #} -- and\n", False),
        ("-- WHICH flags\n1", "-- which flags\n1", False),
        (LOWER, LOWER, False),
    ],
)  # fmt: skip
def test_another_branch_for_another_command(before: str, after: str, counts: bool) -> None:
    assert names(side(before), side(after)) == (["t"] if counts else [])


@pytest.mark.parametrize("called", ["asks", "outer"])
def test_a_macro_that_asks_which_command_runs(called: str) -> None:
    raw, of = f"{{{{ {called}() }}}}", f"macro.p.{called}"
    base = side(raw, macros=(of,))
    assert names(base, side(raw, macros=(of,), asks=False)) == ["t"]
    assert names(side(SQL), side(SQL, asks=False)) == []


def test_a_test_asks_too() -> None:
    def asking(raw: str) -> Project:
        test = check("t", "select 1 as x from s.m where false", "model.p.m", raw=raw)
        model = node("model.p.m", SQL, RAW)
        return project(orders(), model, test, catalog=LISTED, adapter="duckdb")

    assert names(asking(LOWER), asking(HIGHER)) == ["t"]


EXTRA = "select id from s.orders where id > 3"


@pytest.mark.parametrize(
    ("raw", "appears", "moves"),
    [
        ("{{ adapter.get_relation(this.database, this.schema, 'extra') }}", True, False),
        ("{{ run_query('select max(id) from s.extra') }}", True, True),
        ("{{ run_query('select max(id) from ' ~ target.schema ~ '.extra') }}", True, True),
        ("{% call statement('q', fetch_result=True) %}select 1 from s.extra{% endcall %}", True, True),
        ("{% set q %}select 1 from {{ target.schema }}.extra{% endset %}{% do run_query(q) %}", True, True),
        ("{{ run_query('select table_name from information_schema.tables') }}", True, False),
        ("{{ run_query('select column_name from information_schema.columns') }}", True, True),
        ("{{ run_query('select * from information_schema.columns, information_schema.tables') }}", True, True),
        ("{{ run_query('from information_schema.columns') }}{{ run_query('from information_schema.tables') }}", True, True),
        ("{{ run_query('select 1 from ' ~ source('raw', 'extra')) }}", False, False),
        ("{{ run_query('select 1 from s.other') }}", False, False),
        ("{{ 'extra' }}", False, False),
    ],
)  # fmt: skip
def test_a_relation_that_only_a_string_names(raw: str, appears: bool, moves: bool) -> None:
    """It is no parent to dbt; what is looked at there may be another one, or be there at last."""
    base = side(raw, node("model.p.extra", EXTRA, RAW))
    assert names(side(raw), base) == (["t"] if appears else [])
    edited = side(raw, node("model.p.extra", EXTRA.replace("3", "4"), RAW))
    assert names(base, edited) == (["t"] if moves else [])
    assert names(base, side(raw, node("model.p.extra", EXTRA + " -- the same", RAW))) == []


def test_a_python_model_that_asks_where_it_is() -> None:
    code = "def model(dbt, session):\n    return session.sql(f\"select '{X}' as x\")\n"

    def at(alias: str, read: str) -> Project:
        model = node("model.p.m", None, RAW, raw=code.replace("X", read), language="python")
        model = replace(model, alias=alias, relation_name=f"`s`.`{alias}`")
        model.config["alias"] = alias
        test = check("t", f"select x from s.{alias} where x = 'm'", "model.p.m")
        return project(orders(), model, test, catalog=LISTED, adapter="duckdb")

    assert names(at("m", "dbt.this"), at("n", "dbt.this")) == ["t"]
    assert names(at("m", "dbt.ref"), at("n", "dbt.ref")) == []


@pytest.mark.parametrize(
    ("status", "before", "now", "counts"),
    [
        ("warn", {"warn_error": None}, {"warn_error": True}, True),
        ("warn", {"warn_error": False}, {"warn_error_options": {"error": ["LogTestResult"]}}, True),
        ("fail", {"warn_error": True}, {"which": "compile"}, True),
        ("pass", {"warn_error": False}, {"warn_error": True}, False),
        ("warn", {"warn_error": False}, {"warn_error_options": {"error": [], "warn": []}}, False),
        ("warn", {"warn_error": False}, {}, False),
    ],
)
def test_a_warning_that_is_an_error_now(
    status: str, before: dict[str, Any], now: dict[str, Any], counts: bool
) -> None:
    """A flag of the project, which stands in no manifest."""
    base, head = side(SQL), side(SQL)
    result = RunResult(unique_id="test.p.t", status=status, failures=1)
    base = base.having(run_results=[result], run_args={"which": "build", **before})
    head = head.having(run_args=now)
    assert names(base, head) == (["t"] if counts else [])


def test_a_warning_that_is_an_error_by_the_project_file_of_a_head_that_is_only_parsed() -> None:
    def picked_by(before: dict[str, Any], *results: RunResult) -> list[str]:
        base, head = side(SQL), side(SQL)
        base = base.having(run_results=[*results], run_args=before)
        flags = {"warn_error_options": {"include": ["LogTestResult"]}}
        return names(base, head.having(warning_flags=flags))

    result = RunResult(unique_id="test.p.t", status="warn", failures=1)
    other, same = ({"error": listed, "warn": []} for listed in ([], ["LogTestResult"]))
    assert picked_by({"which": "build", "warn_error_options": other}, result) == ["t"]
    assert picked_by({"which": "build", "warn_error_options": same}, result) == []
    # By --base-ref base is only compiled: any test may have warned.
    assert picked_by({"which": "compile", "warn_error_options": other}) == ["t"]
    assert picked_by({"which": "compile", "warn_error_options": same}) == []


THERE = "{{ 1 if adapter.get_relation(this.database, this.schema, this.identifier) else 1 }}"
COLUMNS = "{% set c = adapter.get_columns_in_relation(this) %}{% if c %}1{% else %}1{% endif %}"


@pytest.mark.parametrize("materialized", ["table", "view", "incremental"])
@pytest.mark.parametrize(
    ("before", "counts"),
    [
        (THERE, True),
        (THERE.replace("this.", "model."), True),
        (THERE.replace("this.identifier", "'m'"), True),
        (THERE.replace("this.identifier", "'n'").replace("this.", "target."), False),
        (COLUMNS, True),
        ("{% set me = this %}{% if load_relation(me) %}1{% else %}1{% endif %}", True),
        ("{% if load_relation(api.Relation.create(identifier='m')) %}1{% else %}1{% endif %}", True),
        ("{% if guard() %}1{% else %}1{% endif %}", True),
        ("{% if adapter.get_relation('d', 's', 'orders') %}1{% else %}1{% endif %}", False),
        ("{{ config(alias='m') }}{% if load_relation(x) %}1{% else %}1{% endif %}", False),
        ("{{ config(alias='n') }}{% if load_relation('m') %}1{% else %}1{% endif %}", True),
        ("{% if this %}1{% else %}1{% endif %}", False),
    ],
)  # fmt: skip
def test_a_branch_for_a_relation_that_is_not_there_yet(
    before: str, counts: bool, materialized: str
) -> None:
    """The relation is there when both sides compile, and not in the empty schema of CI."""
    guard = macro("macro.p.guard", "{% macro guard() %}{{ load_relation(this) }}{% endmacro %}")

    def of(raw: str) -> Project:
        calls = [guard.unique_id] if "guard" in raw else []
        config = {"materialized": materialized}
        model = node("model.p.m", SQL, RAW, raw=raw, macros=calls, config=config)
        test = check("t", "select x from s.m where x > 1", "model.p.m")
        return project(orders(), model, test, catalog=LISTED, macros=[guard], adapter="duckdb")

    after = before.replace("else 1", "else 2").replace("else %}1", "else %}2")
    assert names(of(before), of(after)) == (["t"] if counts else [])
    assert names(of(before), of(before.replace("}}", "  }}") + "{# why #}")) == []


def test_a_test_that_looks_at_the_columns_of_what_it_tests_has_no_such_branch() -> None:
    """In a data test ``model`` is the tested relation, and it builds none of its own."""
    listed = macro(
        "macro.p.test_has",
        "{% test has(model) %}{{ adapter.get_columns_in_relation(model) }} {{ model.name }}"
        "{% endtest %}",
    )

    def of(where: str) -> Project:
        model = node("model.p.m", f"{SQL}{where}", RAW)
        has = check("has", "select x from s.m where x > 1", "model.p.m", macros=[listed.unique_id])
        return project(orders(), model, has, catalog=LISTED, macros=[listed], adapter="duckdb")

    selection = select(of(""), of(" where id > 1"), assume_passed=True)
    assert [test.name for test in selection.tests] == []
    assert [test.unique_id for test in selection.proven] == ["test.p.has"]


@pytest.mark.parametrize(
    ("of_name", "asked"),
    [
        ("select * from (select cast('id' as text) as c, 0 as at) as t where not (at >= 0)", False),
        ("select * from (select 1 as at) as t where at < size_of()", True),
        ('select * from (select 1 as at) as t where at < "size_of" ()', True),
        ("select * from (select 1 as at) as t where at < (select count(*) from m)", True),
    ],
)
def test_a_test_that_compares_names_of_columns_reads_no_row(of_name: str, asked: bool) -> None:
    listed = macro(
        "macro.p.test_has",
        "{% test has(model) %}{{ adapter.get_columns_in_relation(model) }}{% endtest %}",
    )

    def of(query: str) -> Project:
        model = node("model.p.m", query, RAW)
        has = check("has", of_name, "model.p.m", macros=[listed.unique_id])
        return project(orders(), model, has, catalog=LISTED, macros=[listed], adapter="duckdb")

    assert names(of(SQL), of(SQL + " where id > 1")) == (["has"] if asked else [])
    # What the columns of the model are called, it does ask.
    assert names(of(SQL), of(SQL.replace("as x", "as x, 2 as y"))) == ["has"]


@pytest.mark.parametrize(
    ("hook", "counts"),
    [
        ("{{ context['ti' ~ 'dy']() }}", True),
        ("{{ context['tidy']() }}", True),
        ("{{ adapter.dispatch('ti' ~ 'dy', 'p')() }}", True),
        ("update s.m set x = {{ render('{{ tidy() }}') }}", True),
        ("{{ by_name('dy') }}", True),
        ("{{ other() }}", False),
        ("update {{ this.render() }} set x = 1", False),
    ],
)
def test_a_macro_that_a_hook_calls_by_a_name_put_together(hook: str, counts: bool) -> None:
    by_name = "{% macro by_name(n) %}{{ context['ti' ~ n]() }}{% endmacro %}"

    def of(value: int) -> Project:
        tidy = f"{{% macro tidy() %}}update {{{{ this }}}} set x = {value}{{% endmacro %}}"
        macros_of_project = [macro("macro.p.tidy", tidy), macro("macro.p.by_name", by_name)]
        macros_of_project.append(
            macro("macro.p.other", "{% macro other() %}select 1{% endmacro %}")
        )
        model = node("model.p.m", SQL, RAW, config={"post-hook": [{"sql": hook}]})
        test = check("t", "select x from s.m where x > 1", "model.p.m")
        return project(
            orders(), model, test, catalog=LISTED, macros=macros_of_project, adapter="duckdb"
        )

    assert names(of(1), of(2)) == (["t"] if counts else [])
    assert names(of(1), of(1)) == []
