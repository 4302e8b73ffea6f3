"""An edited macro that gives what it gave has not changed; one that may give something else has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hand_made import check, macro, node, project

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.changes.equivalent_macros import Evaluator, with_same_macros
from dbt_ripple.jinja.unknown import CannotTellError
from dbt_ripple.selection.select import select

METRICS = {
    "metric.p.b": {"name": "b", "type_params": {"measure": {"name": "n"}}, "created_at": 1.5},
    "metric.p.a": {"name": "a", "type_params": {"measure": None}, "created_at": 2.5},
}
VALUES = """{% macro metric_values() -%}
  {%- set values = [] -%}
  {%- for metric in graph.metrics.values() -%}{%- do values.append([MADE]) -%}{%- endfor -%}
  {{ return(values) }}
{%- endmacro %}"""
QUOTED = "{% macro quoted(text) %}{% if text is none %}null{% else %}'{{ text }}'{% endif %}{% endmacro %}"


def values(made: str) -> Macro:
    return macro("macro.p.metric_values", VALUES.replace("MADE", made))


def side(folder: Path, *macros: Macro, metrics: dict[str, Any] | None = None) -> Project:
    """A model whose hook inserts what the macro gives, and a test of it."""
    folder.mkdir(exist_ok=True)
    manifest = {
        "metadata": {"invocation_id": "1"},
        "metrics": METRICS if metrics is None else metrics,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    hook = "insert into {{ this }} values {{ metric_values() | join(',') }}"
    built = project(
        node("model.p.metrics", "select 1 as name", config={"post-hook": [{"sql": hook}]}),
        check("on_metrics", "select name from s.metrics where name is null", "model.p.metrics"),
        macros=[*macros, macro("macro.p.quoted", QUOTED)],
        adapter="duckdb",
    )
    built = built.having(target_path=str(folder))
    built.metadata.invocation_id = "1"
    return built


def same(tmp_path: Path, before: str, now: str, **more: Any) -> list[str]:
    sides = side(tmp_path / "b", values(before)), side(tmp_path / "h", values(now), **more)
    return with_same_macros(*sides)[1]


NAME = "quoted(metric.name)"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (NAME, "quoted(metric['name'])"),
        (NAME, "quoted(metric.name if metric.name else none)"),
        (NAME, "p.quoted(metric.name | trim)"),
        (NAME, "\"'\" ~ metric.name ~ \"'\""),
        ("metric.type_params.measure | tojson", "tojson(metric.type_params.measure)"),
        ("metric.type_params.measure.name or 'no'", "metric.type_params.measure.name if metric.type_params.measure else 'no'"),
    ],
)  # fmt: skip
def test_another_text_that_gives_the_same(before: str, now: str, tmp_path: Path) -> None:
    assert same(tmp_path, before, now) == ["metric_values"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (NAME, "quoted(metric.name | upper)"),
        (NAME, "quoted(metric.name) if metric.name == 'a' else none"),
        ("metric.name", "[metric.name]"),
        ("1", "'1'"),
        ("none", "'none'"),
    ],
)
def test_what_gives_something_else(before: str, now: str, tmp_path: Path) -> None:
    assert same(tmp_path, before, now) == []


@pytest.mark.parametrize(
    "made",
    [
        *("var('x', 1)", "target.name", "env_var('X', '')", "run_query('select 1')", "this"),
        *("ref('a')", "metric.created_at * 0", "metric.compiled_code", "metric | string"),
        *(
            "metric.not_listed",
            "metric.get('not_listed')",
            "metric.type_params.measure.name | string",
        ),
        *("var is defined", "graph.unit_tests", "modules.datetime", "flags.WHICH", "unknown()"),
        *("adapter.get_relation", "adapter.dispatch('quoted')('a')", "metric_values()"),
        *("api.Relation", "invocation_id", "run_started_at", "model.name", "config.get('a')"),
    ],
)
def test_what_dbt_may_give_otherwise_is_not_told(made: str, tmp_path: Path) -> None:
    text = values(f"1 if ({made}) else 1")
    with pytest.raises(CannotTellError):
        Evaluator(side(tmp_path, text), {"metrics": METRICS}).value(text)


def test_what_rests_on_the_order_of_the_nodes_is_something_else(tmp_path: Path) -> None:
    first = "(graph.metrics.values() | list | first).name"
    least = "(graph.metrics.values() | map(attribute='name') | sort | first)"
    assert same(tmp_path, first, least) == []
    assert same(tmp_path, least, least + " | trim") == ["metric_values"]


def test_nodes_that_differ_may_make_it_something_else(tmp_path: Path) -> None:
    others = {"metric.p.b": {"name": "c", "type_params": {"measure": None}}}
    assert same(tmp_path, NAME, NAME + " | trim", metrics=others) == []


def test_a_hook_that_writes_the_same_rows_changes_nothing(tmp_path: Path) -> None:
    base = side(tmp_path / "b", values(NAME))
    same = select(base, side(tmp_path / "h", values(NAME + " | trim")), facts=False)
    assert (same.tests, same.models) == ([], [])
    other = select(base, side(tmp_path / "h", values("quoted('x')")), facts=False)
    assert [t.name for t in other.tests] == ["on_metrics"]
    assert other.models == ["model.p.metrics"]


def test_a_manifest_of_another_run_is_not_read(tmp_path: Path) -> None:
    base, head = side(tmp_path / "b", values(NAME)), side(tmp_path / "h", values(NAME + " | trim"))
    head.metadata.invocation_id = "2"
    assert with_same_macros(base, head) == (head, [])
