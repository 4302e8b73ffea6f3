"""A macro may ask for the var that its caller names: then an edit of that var counts, and no other."""

from __future__ import annotations

import pytest
from hand_made import macro, node, picked, project

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.macros import Macros
from dbt_ripple.jinja.facts import ANY

MB_VAR = "{% macro mb_var(name, default=none) %}{% set v = var(name, none) %}{{ v }}{% endmacro %}"
FURTHER = "{% macro further(which) %}{{ p.mb_var(which) }}{% endmacro %}"
BY_DISPATCH = "{% macro sent(of) %}{{ adapter.dispatch('sent', 'p')(of) }}{% endmacro %}"
DEFAULT = "{% macro default__sent(of) %}{{ var(of) }}{% endmacro %}"
SET_ANEW = "{% macro anew(name) %}{% set name = name ~ '_x' %}{{ var(name) }}{% endmacro %}"
OF_SCHEMA = "{% macro generate_schema_name(name, node) %}{{ var(name) }}{% endmacro %}"


def of(*more: str) -> Project:
    texts = {
        "mb_var": MB_VAR,
        "further": FURTHER,
        "sent": BY_DISPATCH,
        "default__sent": DEFAULT,
        "anew": SET_ANEW,
        "generate_schema_name": OF_SCHEMA,
    }
    own = [macro(f"macro.p.{name}", text) for name, text in texts.items()]
    dbt = macro(
        "macro.dbt.generate_schema_name", "{% macro generate_schema_name(n, node) %}{% endmacro %}"
    )
    return project(macros=[*own, dbt])


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("{{ mb_var('a') }}", {"a"}),
        ("{{ p.mb_var(name='a') }} {{ mb_var('b', 1) }}", {"a", "b"}),
        ("{{ further('a') }}", {"a"}),
        ("{{ sent('a') }} {{ var('b') }}", {"a", "b"}),
        ("{{ other('a') }}", set()),
        (MB_VAR, set()),
        (FURTHER, set()),
        # What is not told by the text may be any.
        ("{{ mb_var(x) }}", {ANY}),
        ("{{ mb_var('a' ~ 'b') }}", {ANY}),
        ("{{ mb_var(default='a') }}", {ANY}),
        ("{{ mb_var(*names) }}", {ANY}),
        ("{{ mb_var(**names) }}", {ANY}),
        ("{% set f = mb_var %}{{ f('a') }}", {ANY}),
        ("{{ mb_var('a') }}{{ p.further }}", {"a", ANY}),
        ("{% set f = adapter.dispatch('sent') %}{{ f('a') }}", {ANY}),
        ("{{ sent('a') }}{% set f = adapter.dispatch('sent') %}", {"a", ANY}),
        ("{{ context['mb_' ~ 'var']('a') }}", {ANY}),
        ("{{ p['mb_' ~ 'var']('a') }}", {ANY}),
        ("{{ anew('a') }}", set()),
        (SET_ANEW, {ANY}),
        ("{% macro m(x) %}{% set x = 'b' %}{{ mb_var(x) }}{% endmacro %}", {ANY}),
        # Which dbt calls itself.
        (OF_SCHEMA, {ANY}),
    ],
)  # fmt: skip
def test_the_vars_that_a_text_asks_for(text: str, asked: set[str]) -> None:
    assert Macros(of()).variables_in(text) == asked


@pytest.mark.parametrize(("edited", "selected"), [("a", ["few"]), ("b", [])])
def test_an_edit_of_another_var_counts_for_no_caller(edited: str, selected: list[str]) -> None:
    raw = "select 1 as x {% if is_incremental() %} where {{ mb_var('a') }} {% endif %}"
    model = node(
        "model.p.m", "select 1 as x", raw=raw, config={"materialized": "incremental"}, macros=["macro.p.mb_var"]
    )  # fmt: skip
    few = node("test.p.few", "select x from s.m where x > 1", "model.p.m")
    macros = [macro("macro.p.mb_var", MB_VAR)]
    base, head = (
        project(model, few, macros=macros).having(variables={edited: value}) for value in ("1", "2")
    )
    assert [test.name for test in picked(base, head).tests] == selected
