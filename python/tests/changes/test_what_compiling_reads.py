"""Near misses of what a node's Jinja reads while it compiles: whether base's SQL is head's, too."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, macro, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Project
from dbt_ripple.artifacts.project import TestMetadata
from dbt_ripple.changes.compile_inputs import CompileConditions
from dbt_ripple.changes.compiled_sql_reuse import reuse_compiled_sql

CONDITIONS = ("variables", "environment", "target", "command")
HELPER = macro("macro.p.helper", "{% macro helper() %}1{% endmacro %}")
OTHER = macro("macro.p.helper", "{% macro helper() %}2{% endmacro %}")
IN_A_CALL = macro("macro.p.wraps", "{% macro wraps() %}{{ caller() }}{% endmacro %}")
READS_VAR = macro("macro.p.reads_var", "{% macro reads_var() %}{{ var('x') }}{% endmacro %}")
TAKES = macro("macro.p.takes", "{% macro takes(helper, target) %}{{ helper }}{{ target }}{% endmacro %}")  # fmt: skip


def side(raw: str, *macros: Macro, compiled: bool = True, **more: Any) -> Project:
    sql = "select id from s.orders" if compiled else None
    return project(
        orders(),
        node("model.p.m", sql, RAW, raw=raw, **more),
        catalog=LISTED,
        macros=[IN_A_CALL, READS_VAR, TAKES, *macros],
        adapter="duckdb",
    )


def taken(base: Project, head: Project, *proved: str) -> bool:
    """Whether head's SQL is known without compiling, where these conditions are proved to be equal."""
    conditions = CompileConditions(**dict.fromkeys(proved, True))
    return "model.p.m" in reuse_compiled_sql(base, head, conditions).taken


@pytest.mark.parametrize(
    ("raw", "condition"),
    [
        ("{{ var('x') }}", "variables"),
        ("{{ builtins['var']('x') }}", None),
        ("{% set v = var %}{{ v('x') }}", "variables"),
        ("{% set ns = namespace(x=var('x')) %}{{ ns.x }}", "variables"),
        ("{% call wraps() %}{{ var('x') }}{% endcall %}", "variables"),
        ("{% filter upper %}{{ var('x') }}{% endfilter %}", "variables"),
        ("{{ {'a': {'b': var('x')}}['a']['b'] }}", "variables"),
        ("{{ '}}' ~ var('x') }}", "variables"),
        ("{% if false %}{{ reads_var() }}{% endif %}", "variables"),
        ("{% for helper in [var('x')] %}{{ helper }}{% endfor %}", "variables"),
        ("{{ '{#' }}{{ env_var('X') }}{{ '#}' }}", "environment"),
        ("{{ env_var('X', 'y') | int }}", "environment"),
        ("{{ target['name'] }}", "target"),
        ("{{ target.get('schema') }}", "target"),
        ("{% set t = target %}{{ t.name }}", "target"),
        ("{{ flags['WHICH'] }}", "command"),
    ],
)
def test_a_value_that_may_differ_has_to_be_proved(raw: str, condition: str | None) -> None:
    """None: whatever is proved, it is not known what is looked up there."""
    base, head = side(raw), side(raw, compiled=False)
    assert not taken(base, head)
    others = [name for name in CONDITIONS if name != condition]
    assert not taken(base, head, *others)
    if condition is not None:
        assert taken(base, head, condition)


@pytest.mark.parametrize(
    "raw",
    [
        "{# {{ var('x') }} #} select 1",
        "{% raw %}{{ var('x') }}{% endraw %}",
        "select '{{ \"it is a var\" }}'",
        "select var, target, flags from {{ ref('orders') }}",
        "{% set n = namespace(var=1) %}{{ n.total }}",
        "{{ config(target='x', schema='y') }} select 1",
        "{{ takes(target=1, helper=2) }}",
        "{{ dict(var=1)['total'] }}",
    ],
)
def test_what_only_says_the_word_is_taken_over(raw: str) -> None:
    assert taken(side(raw), side(raw, compiled=False))


@pytest.mark.parametrize(
    ("raw", "reaches"),
    [
        ("{{ helper() }}", True),
        ("{{ p.helper() }}", True),
        ("{{ p['helper']() }}", True),
        ("{% set f = helper %}{{ f() }}", True),
        ("{% set all = {'a': helper} %}{{ all['a']() }}", True),
        ("{{ wraps(caller=helper) }}", True),
        ("{% call wraps() %}{{ helper() }}{% endcall %}", True),
        ("{{ context['helper']() }}", True),
        ("{% if is_incremental() %}{{ helper() }}{% endif %}", True),
        ("{{ '{#' }}{{ helper() }}{{ '#}' }}", True),
        ("{# {{ helper() }} #} select 1", False),
        ("{% raw %}{{ helper() }}{% endraw %}", False),
        ("select helper() from {{ ref('orders') }}", False),
        ("{{ takes(helper=1) }}", False),
    ],
)
def test_a_macro_that_is_edited_counts_where_it_is_reached(raw: str, reaches: bool) -> None:
    base = side(raw, HELPER)
    proved = CONDITIONS
    assert taken(base, side(raw, OTHER, compiled=False), *proved) != reaches
    if "context" not in raw:
        assert taken(base, side(raw, HELPER, compiled=False), *proved)


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (["{{ helper() }}"], True),
        ([{"deep": ["{{ helper() }}"]}], True),
        (["{{ p.helper() }}"], True),
        (["{# {{ helper() }} #}"], False),
        (["helper"], False),
        (["a.helper > 1"], False),
    ],
)
def test_the_arguments_of_a_generic_test_are_rendered(values: list[Any], counts: bool) -> None:
    def of(version: Macro, *, compiled: bool = True) -> Project:
        made = side("{{ test_in_list(**_dbt_generic_test_kwargs) }}", version, compiled=compiled)
        arguments = TestMetadata(name="in_list", kwargs={"values": values})
        m = made.nodes["model.p.m"]
        made.nodes["model.p.m"] = replace(m, test_metadata=arguments)
        return made

    proved = CONDITIONS
    assert taken(of(HELPER), of(OTHER, compiled=False), *proved) != counts
    assert taken(of(HELPER), of(HELPER, compiled=False), *proved)
