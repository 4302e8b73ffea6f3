"""Which nodes ask the warehouse again where base was compiled before."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Metadata, Node, Project
from dbt_ripple.artifacts.project import DependsOn
from dbt_ripple.changes.compile_inputs import asking_the_warehouse, environment_read
from dbt_ripple.changes.compiled_sql_reuse import asked_again

COLUMNS = "select {{ adapter.get_columns_in_relation(ref('raw')) | length }} from s.raw"
VALUES = "select {{ run_query('select 1') }} from s.raw"


def node(name: str, raw: str, *parents: str, **more: Any) -> Node:
    return Node(
        **{
            "unique_id": f"model.shop.{name}",
            "name": name,
            "resource_type": "model",
            "raw_code": raw,
            "compiled_code": raw,
            "config": {"materialized": "table"},
            "depends_on": DependsOn(nodes=[f"model.shop.{parent}" for parent in parents]),
            **more,
        }
    )


def macro(name: str, text: str, package: str = "shop") -> Macro:
    text = f"{{% macro {name}() %}}{text}{{% endmacro %}}"
    unique_id = f"macro.{package}.{name}"
    return Macro(unique_id=unique_id, name=name, package_name=package, macro_sql=text)


MACROS = (
    macro("run_query", "{{ statement() }}{{ load_result('x') }}", "dbt"),
    macro("statement", "{{ adapter.execute(sql) }}", "dbt"),
    macro("is_incremental", "{{ adapter.get_relation(this) }}", "dbt"),
    macro("plain", "1"),
)


def project(*nodes: Node, macros: tuple[Macro, ...] = MACROS) -> Project:
    parents = {n.unique_id: list(n.depends_on.nodes) for n in nodes}
    children: dict[str, list[str]] = {unique_id: [] for unique_id in parents}
    for unique_id, above in parents.items():
        for parent in above:
            children[parent].append(unique_id)
    return Project(
        target_path="target",
        metadata=Metadata(project_name="shop", adapter_type="duckdb"),
        nodes={n.unique_id: n for n in nodes},
        parents=parents,
        children=children,
        macros={m.unique_id: m for m in macros},
    )


BASE = project(
    node("raw", "select 1 as a"),
    node("far", COLUMNS, "raw"),
    node("asks_values", VALUES, "raw"),
    node("other", "select 1 as b"),
    node("near", COLUMNS.replace("raw", "other"), "other"),
    node("below", "select * from s.near", "near"),
    node("names_it", COLUMNS + ", s.near", "raw"),
)
ASKING = {"far", "asks_values", "near", "names_it"}


def edit(name: str, **fields: Any) -> Callable[[Project], None]:
    unique_id = f"model.shop.{name}"
    return lambda head: head.nodes.update({unique_id: replace(head.nodes[unique_id], **fields)})


def without(name: str) -> Callable[[Project], None]:
    return lambda head: head.nodes.pop(f"model.shop.{name}") and None


def with_macro(head: Project) -> None:
    head.macros["macro.shop.plain"] = macro("plain", "2")


def with_hook(head: Project) -> None:
    hook = Node(unique_id="operation.shop.h", resource_type="operation", raw_code="drop table x")
    head.nodes[hook.unique_id] = hook


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (lambda head: None, {"asks_values"}),
        (edit("raw", compiled_code=None, root_path="/elsewhere"), {"asks_values"}),
        (edit("other", raw_code="select 2 as b"), {"asks_values", "near", "names_it"}),
        (edit("other", description="new"), {"asks_values", "near", "names_it"}),
        (
            edit("other", checksum={"name": "path", "checksum": "a.csv"}),
            {"asks_values", "near", "names_it"},
        ),
        (without("other"), {"asks_values", "near", "names_it"}),
        (edit("below", raw_code="select a from s.near"), {"asks_values", "near"}),
        (edit("raw", raw_code="select 2 as a"), {"far", "asks_values", "names_it"}),
        (with_macro, ASKING),
        (with_hook, ASKING),
    ],
)
def test_only_what_the_comparison_may_need_asks_again(
    change: Callable[[Project], None], asked: set[str]
) -> None:
    head = copy.deepcopy(BASE)
    change(head)
    again = asked_again(BASE, head, {f"model.shop.{name}" for name in ASKING})
    assert {unique_id.rpartition(".")[2] for unique_id in again} == asked


@pytest.mark.parametrize(
    ("raw", "config", "asks"),
    [
        (COLUMNS, {}, True),
        (VALUES, {}, True),
        ("select * from {{ ref('eph') }}", {}, True),
        ("select {{ context['run_' ~ 'query']('select 1') }}", {}, True),
        ("select {{ render('{{ run_query() }}') }}", {}, True),
        ("select {% if is_incremental() %} 1 {% endif %}", {"full_refresh": False}, True),
        ("select {% if is_incremental() %} 1 {% endif %}", {}, False),
        ("select {{ plain() }}", {"full_refresh": False}, False),
        ("select {{ adapter.quote('a') }}, {{ relation.render() }}", {}, False),
    ],
)
def test_what_asks_the_warehouse(raw: str, config: dict[str, Any], asks: bool) -> None:
    ephemeral = node("eph", VALUES, config={"materialized": "ephemeral"})
    parents = ("eph",) if "eph" in raw else ()
    top = node("top", raw, *parents, config={"materialized": "incremental", **config})
    found = asking_the_warehouse(project(ephemeral, top), [top.unique_id])
    assert bool(found) == asks


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("{{ env_var('A') }} {{ env_var('B', 'x') }}", {"A", "B"}),
        ("{{ reads() }}", {"OF_A_MACRO"}),
        ("{{ env_var('A' ~ 'B') }}", {"*"}),
        ("{{ dbt_metadata_envs }}", {"*"}),
        ("select 'env_var'", set()),
    ],
)
def test_which_environment_variables_are_read(raw: str, names: set[str]) -> None:
    from dbt_ripple.graph.macros import ANY

    macros = (
        macro("reads", "{{ env_var('OF_A_MACRO') }}"),
        macro("unused", "{{ env_var('OF_NO_NODE') }}"),
        macro("generate_schema_name", "", "dbt"),
    )
    found = environment_read(project(node("top", raw), macros=macros))
    assert {"*" if name == ANY else name for name in found} == names
    own = macro("generate_schema_name", "{{ env_var('OF_THE_SCHEMA') }}")
    found = environment_read(project(node("top", "select 1"), macros=(*macros, own)))
    assert found == {"OF_THE_SCHEMA"}
