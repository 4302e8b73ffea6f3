"""Values that are stored under a name of their own: by earlier runs, or by what hooks write."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import LISTED, RAW, check, macro, names, node, orders, project

from dbt_ripple.artifacts import Node, Project

INCREMENTAL = {
    "materialized": "incremental",
    "unique_key": "id",
    "on_schema_change": "append_new_columns",
}
SNAPSHOT = {"strategy": "check", "check_cols": "all", "unique_key": "id"}
MASKS = macro(
    "macro.p.masks",
    "{% macro masks() %}{% for c in adapter.get_columns_in_relation(this) if c.name == 'a' %}"
    "update {{ this }} set {{ c.name }} = 0{% endfor %}{% endmacro %}",
)


def side(sql: str, read: str, config: dict[str, Any], *more: Node, kind: str = "model") -> Project:
    """orders -> m -> below, with a test of what stands below."""
    return project(
        orders(),
        node(f"{kind}.p.m", sql, RAW, config=config),
        node("model.p.below", read, f"{kind}.p.m"),
        *more,
        check("t", "select x from s.below where x is null", "model.p.below"),
        catalog=LISTED,
        macros=[MASKS],
        adapter="duckdb",
    )


@pytest.mark.parametrize(
    ("kind", "config", "counts"),
    [
        ("model", {"materialized": "table"}, False),
        ("model", {"materialized": "view"}, False),
        ("model", INCREMENTAL, True),
        ("snapshot", SNAPSHOT, True),
    ],
)
def test_rows_of_earlier_runs_have_no_value_under_a_new_name(
    kind: str, config: dict[str, Any], counts: bool
) -> None:
    base = side("select id, amount as a from s.orders", "select a as x from s.m", config, kind=kind)
    head = side("select id, amount as b from s.orders", "select b as x from s.m", config, kind=kind)
    assert names(base, head) == (["t"] if counts else [])


@pytest.mark.parametrize("config", [{"materialized": "table"}, INCREMENTAL])
@pytest.mark.parametrize("read", ["select a as x from s.m", "select m.a as x from s.m as m"])
def test_another_layout_of_what_is_kept_is_no_change(config: dict[str, Any], read: str) -> None:
    base = side("select id, amount as a from s.orders", "select a as x from s.m", config)
    head = side("select id,\n orders.amount a from s.orders", read, config)
    assert names(base, head) == []


def test_hooks_of_others_write_by_name() -> None:
    """Who exchanges two names lets the hook write to what the other column was."""
    hook = {"post-hook": [{"sql": "update s.m set a = null"}]}
    other = node("model.p.other", "select 1 as i", config={"materialized": "table", **hook})
    table = {"materialized": "table"}
    base = side("select id as a, amount as b from s.orders", "select a as x from s.m", table, other)
    head = side("select id as b, amount as a from s.orders", "select b as x from s.m", table, other)
    assert names(base, head) == ["t"]


@pytest.mark.parametrize(
    ("hook", "counts"),
    [
        ("{{ masks() }}", True),
        ("{% if target.name == 'x' %}update {{ this }} set {{ var('c') }} = 0{% endif %}", True),
        ("{{ mask(adapter.get_columns_in_relation(this)) }}", True),
        ("update {{ this }} set {{ var('c') }} = 0", True),
        ("update {{ this }} set {{ model.columns.keys() | first }} = 0", True),
        ("grant select on {{- this.schema -}}.m to {{ target.name }}", False),
        ("grant select on {{ this }} to reader", False),
        ("delete from {{ this }} where id = 1", False),
    ],
)
def test_a_hook_that_makes_its_words_may_go_by_names(hook: str, counts: bool) -> None:
    config = {"materialized": "table", "post-hook": [{"sql": hook}]}
    base = side("select id, amount as b from s.orders", "select b as x from s.m", config)
    head = side("select id, amount as a from s.orders", "select a as x from s.m", config)
    assert names(base, head) == (["t"] if counts else [])


@pytest.mark.parametrize(
    ("config", "counts"), [({"materialized": "table"}, False), (INCREMENTAL, True)]
)
def test_a_relation_that_a_macro_names_anew_has_no_rows_of_earlier_runs(
    config: dict[str, Any], counts: bool
) -> None:
    names_it = "{% macro generate_alias_name(custom_alias_name, node) %}REST{% endmacro %}"
    base, head = (
        side("select id, amount as a from s.orders", "select a as x from s.m", config).having(
            macros={name: macro(name, names_it.replace("REST", rest))}
        )
        for name in ["macro.p.generate_alias_name"]
        for rest in ("{{ node.name }}", "{{ node.name }}_x")
    )
    assert names(base, head) == (["t"] if counts else [])
