"""What failed on base fails on head again only where the project alone decides it."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import check, macro, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.artifacts.project import RunResult
from dbt_ripple.changes.certain_failures import fail_again
from dbt_ripple.selection.select import select

MODEL = "model.p.days"
MATERIALIZATION = """{% materialization table, adapter='duckdb' %}
  {%- set existing = load_cached_relation(this) -%}
  {% if existing %} {{ drop_relation(existing) }} {% endif %}
  {%- set by = get_by(existing, false) -%}
  {% call statement('main') %} create table {{ this }} as {{ sql }} {% endcall %}
{% endmaterialization %}"""
GET_BY = """{% macro get_by(relation, temporary) -%}
  {%- if temporary -%} {{ return(none) }} {%- endif -%}
  {%- set raw = config.get('partition_by', none) -%}
  {%- if raw is none -%} {{ return(none) }} {%- endif -%}
  {%- set parts = as_list(raw, "partition_by") -%}
  {%- if not adapter.is_ducklake(relation) -%} {{ return(none) }} {%- endif -%}
  {{ return(parts | join(', ')) }}
{%- endmacro %}"""
AS_LIST = """{% macro as_list(raw, field) -%}
  {%- if raw is mapping -%} {{ exceptions.raise_compiler_error(field ~ " must be a list") }} {%- endif -%}
  {{ return(raw) }}
{%- endmacro %}"""
LOAD = """{% macro load_cached_relation(relation) %}
  {% do return(adapter.get_relation(relation.database, relation.schema, relation.identifier)) %}
{% endmacro %}"""
DROP = "{% macro drop_relation(relation) %}{% do adapter.drop_relation(relation) %}{% endmacro %}"
SAID = """Compilation Error in model days (models/days.sql)
  partition_by must be a list

  > in macro as_list (macros/as_list.sql)
  > called by macro get_by (macros/get_by.sql)
  > called by macro materialization_table_duckdb (macros/materialization_table_duckdb.sql)
  > called by model days (models/days.sql)"""
BY_DAY = {"materialized": "table", "partition_by": {"field": "day"}}
UNKNOWN = "Runtime Error in model days (models/days.sql)\n  Catalog Error: {}Function with name f does not exist!"


def macros(
    materialization: str = MATERIALIZATION, get_by: str = GET_BY, as_list: str = AS_LIST
) -> list[Macro]:
    return [
        macro("macro.dbt_duckdb.materialization_table_duckdb", materialization),
        macro("macro.dbt_duckdb.get_by", get_by),
        macro("macro.dbt_duckdb.as_list", as_list),
        macro("macro.dbt.load_cached_relation", LOAD),
        macro("macro.dbt.drop_relation", DROP),
    ]


def side(
    *more: Node | Macro,
    sql: str = "select 1 as day",
    config: dict[str, Any] = BY_DAY,
    message: str | None = None,
    of: list[Macro] | None = None,
    status: str = "error",
) -> Project:
    """days -> weeks, with a test of weeks; on base days failed and the rest was skipped."""
    nodes = [n for n in more if isinstance(n, Node)]
    built = project(
        node(MODEL, sql, config=config),
        node("model.p.weeks", "select day from s.days", MODEL, config={"materialized": "table"}),
        check("on_weeks", "select day from s.weeks where day is null", "model.p.weeks"),
        *nodes,
        macros=[*(of or macros()), *(m for m in more if isinstance(m, Macro))],
        adapter="duckdb",
    )
    if message:
        built = built.having(
            run_results=[
                RunResult(unique_id=MODEL, status=status, message=message),
                RunResult(unique_id="model.p.weeks", status="skipped"),
                RunResult(unique_id="test.p.on_weeks", status="skipped"),
            ]
        )
    return built


EDITED = "select 2 as day"


def test_a_config_that_the_adapter_refuses_is_refused_whatever_the_query() -> None:
    failures = fail_again(side(message=SAID), side(sql=EDITED))
    assert failures == {MODEL: "partition_by must be a list"}


def test_what_is_below_is_blocked_and_runs_where_it_is_built_after_all() -> None:
    selection = select(side(message=SAID), side(sql=EDITED))
    assert selection.tests == []
    assert [(t.unique_id, t.blocked_by) for t in selection.blocked] == [("test.p.on_weeks", MODEL)]
    assert str(selection.blocked[0].reason) == (
        "days cannot be built: failed on base, and everything that decides it is unchanged "
        "(partition_by must be a list)"
    )


def test_where_only_what_is_below_is_edited_that_blocks_its_tests() -> None:
    head = side()
    head.nodes["model.p.weeks"] = replace(
        head.nodes["model.p.weeks"],
        compiled_code="select day + 1 as day from s.days",
        raw_code="select day + 1 as day from s.days",
    )
    selection = select(side(message=SAID), head)
    assert selection.tests == []
    assert selection.models == ["model.p.weeks"]
    assert [(t.unique_id, t.blocked_by) for t in selection.blocked] == [
        ("test.p.on_weeks", "model.p.weeks")
    ]
    assert str(selection.blocked[0].reason) == (
        "weeks cannot be built: it reads days, directly or not, which failed on base, and everything that "
        "decides it is unchanged (partition_by must be a list)"
    )


def test_what_may_be_built_blocks_nothing() -> None:
    for base, head in (
        (side(message=SAID), side(sql=EDITED, config={**BY_DAY, "partition_by": ["day"]})),
        (side(), side(sql=EDITED)),  # base's build says nothing
    ):
        assert [t.name for t in select(base, head).tests] == ["on_weeks"]


OTHERS = {
    "it is mended": (macros(), macros(as_list=AS_LIST.replace("is mapping", "is number"))),
    "only where the table is there": (
        m := macros(
            materialization=MATERIALIZATION.replace(
                "{%- set by = get_by(existing, false) -%}",
                "{% if existing %}{%- set by = get_by(existing, false) -%}{% endif %}",
            )
        ),
        m,
    ),
    "in an expression": (
        m := macros(
            materialization=MATERIALIZATION.replace(
                "get_by(existing, false) -", "get_by(existing, false) if existing else none -"
            )
        ),
        m,
    ),
    "it may end before": (
        m := macros(
            materialization=MATERIALIZATION.replace(
                "{{ drop_relation(existing) }}", "{{ return({'relations': []}) }}"
            )
        ),
        m,
    ),
    "by what it is given": (
        m := macros(
            materialization=MATERIALIZATION.replace("(existing, false)", "(false, existing)")
        ),
        m,
    ),
    "by the warehouse": (
        m := macros(get_by=GET_BY.replace("raw is none", "adapter.get_relation(relation) is none")),
        m,
    ),
    "by a var": (m := macros(as_list=AS_LIST.replace("raw is mapping", "var('strict')")), m),
    "by the properties of the node": (
        m := macros(as_list=AS_LIST.replace("raw is mapping", "model.columns")),
        m,
    ),
    "by the target": (m := macros(as_list=AS_LIST.replace("raw is mapping", "target.name")), m),
    "by the environment": (
        m := macros(as_list=AS_LIST.replace("raw is mapping", "env_var('X', '')")),
        m,
    ),
    "through a macro that is not told": (
        m := macros(get_by=GET_BY.replace("raw is none", "other(raw)")),
        m,
    ),
    "another macro of the name": (
        [*macros(), macro("macro.p.as_list", AS_LIST)],
        macros(),
    ),
    "a materialization of the user's": (
        macros(),
        [*macros(), macro("macro.p.materialization_table_default", MATERIALIZATION)],
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_may_decide_otherwise_on_head_is_not_certain(what: str) -> None:
    before, now = OTHERS[what]
    assert fail_again(side(message=SAID, of=before), side(sql=EDITED, of=now)) == {}


@pytest.mark.parametrize(
    "message",
    [
        UNKNOWN.format("Scalar "),
        UNKNOWN.format(""),
        'Runtime Error in model days (m.sql)\n  Parser Error: syntax error at or near "x"',
    ],
)
def test_a_text_that_the_engine_refuses_is_refused_until_it_is_another(message: str) -> None:
    assert MODEL in fail_again(side(message=message), side())
    assert fail_again(side(message=message), side(sql=EDITED)) == {}
    assert fail_again(side(message=message), side(config={"materialized": "incremental"})) == {}
    assert fail_again(side(message=message, status="success"), side()) == {}


def test_what_stands_around_the_text_may_be_what_was_refused() -> None:
    error_message = UNKNOWN.format("Scalar ")
    hook = {"materialized": "table", "pre-hook": [{"sql": "{{ prepare() }}"}]}
    stands_in = macro("macro.p.duckdb__create_table_as", "{% macro duckdb__create_table_as() %}")
    internal = macro("macro.dbt.create_table_as", "{% macro create_table_as() %}{% endmacro %}")
    assert (
        fail_again(side(message=error_message), side(config={**BY_DAY, "options": {"a": "1"}}))
        == {}
    )
    assert fail_again(side(message=error_message, config=hook), side(config=hook)) == {}
    assert MODEL in fail_again(side(internal, message=error_message), side(internal))
    assert fail_again(side(internal, message=error_message), side(internal, stands_in)) == {}


@pytest.mark.parametrize(
    "makes",
    [
        macro(
            "macro.p.make", "{% macro make() %} create or replace function f(x) as x {% endmacro %}"
        ),
        macro("macro.p.make", "{% macro make() %} create temp macro f(x) as x {% endmacro %}"),
        node("operation.p.p-on-run-start-0", "install f from community; load f"),
        node("model.p.other", "select 1", config={"pre-hook": [{"sql": "load f"}]}),
        node("function.p.f", "x"),
    ],
)
def test_a_function_may_have_been_made(makes: Node | Macro) -> None:
    assert fail_again(side(message=UNKNOWN.format("Scalar ")), side(makes)) == {}


@pytest.mark.parametrize(
    "message",
    [
        "Runtime Error in model days (m.sql)\n  Conversion Error: Could not convert string 'x' to INT32",
        'Runtime Error in model days (m.sql)\n  Binder Error: Referenced column "x" not found',
        "Runtime Error in model days (m.sql)\n  Catalog Error: Table with name raw does not exist!",
        "Runtime Error in model days (m.sql)\n  IO Error: Could not set lock on file",
        "Compilation Error in model days (m.sql)\n  no such table",
    ],
)
def test_what_the_data_or_the_warehouse_refused_may_pass_on_head(message: str) -> None:
    assert fail_again(side(message=message), side()) == {}


def test_results_of_another_run_say_nothing_of_this_base() -> None:
    base = side(message=SAID)
    base.metadata.invocation_id = "this"
    for result in base.run_results:
        result.invocation_id = "another"
    assert fail_again(base, side()) == {}
