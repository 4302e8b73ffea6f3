"""Of a macro counts what the project's adapter runs of it."""

from __future__ import annotations

import pytest
from hand_made import macro, node, project

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.linking.project_context import ProjectContext

ASKS = macro("macro.dbt.run_query", "{% macro run_query(sql) %}{% do statement() %}{% endmacro %}")
NAMES = "{{% macro names() %}}{{% if target.type == '{}' %}}{}{{% else %}}a as {}{{% endif %}}{{% endmacro %}}"


def shop(adapter: str, ask: str = "{{ run_query('select 1')[0][0] }}", name: str = "b") -> Project:
    names = macro("macro.p.names", NAMES.format("trino", ask, name), "macro.dbt.run_query")
    model = node(
        "model.p.m",
        "select a as b from s.t",
        raw="select {{ names() }} from s.t",
        macros=["macro.p.names"],
    )
    return project(model, macros=[ASKS, names], adapter=adapter)


@pytest.mark.parametrize(("adapter", "asking"), [("duckdb", False), ("trino", True)])
def test_a_query_in_the_branch_of_another_adapter_is_not_made(adapter: str, asking: bool) -> None:
    context = ProjectContext(shop(adapter))
    assert bool(context.introspection.of(context.project.nodes["model.p.m"])) is asking
    assert ("macro.dbt.run_query" in context.macros.closure(["macro.p.names"])) is asking


@pytest.mark.parametrize(
    ("edited", "changed"),
    [({"ask": "{{ run_query('select 2')[0][0] }}"}, False), ({"name": "c"}, True)],
)
def test_a_macro_changes_by_the_branch_of_its_adapter(
    edited: dict[str, str], changed: bool
) -> None:
    base, head = (
        ProjectContext(p).macros.fingerprint(["macro.p.names"])
        for p in (shop("duckdb"), shop("duckdb", **edited))
    )
    assert (base != head) is changed
