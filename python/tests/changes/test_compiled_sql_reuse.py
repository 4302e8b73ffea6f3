"""What head takes over of base's compiled SQL, and above all what it does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Metadata, Node, Project, Ref
from dbt_ripple.artifacts.project import DependsOn, TestMetadata
from dbt_ripple.changes.compile_inputs import CompileConditions, rename
from dbt_ripple.changes.compiled_sql_reuse import (
    other_names,
    reuse_compiled_sql,
    reuse_compiled_sql_of_artifacts,
)
from dbt_ripple.reasons import Code
from dbt_ripple.selection.select import select

ALL = CompileConditions(variables=True, environment=True, target=True, command=True)


def node(name: str, raw: str, compiled: str | None, *parents: str, **more: Any) -> Node:
    fields: dict[str, Any] = {
        "unique_id": f"model.shop.{name}",
        "name": name,
        "resource_type": "model",
        "raw_code": raw,
        "compiled_code": compiled,
        "relation_name": f"prod.{name}",
        "config": {"materialized": "table"},
        "depends_on": DependsOn(nodes=[f"model.shop.{parent}" for parent in parents]),
    }
    return Node(**(fields | more))


def macro(name: str, text: str, package: str = "shop") -> Macro:
    return Macro(
        unique_id=f"macro.{package}.{name}",
        name=name,
        package_name=package,
        macro_sql=f"{{% macro {name}() %}}{text}{{% endmacro %}}",
    )


def project(*nodes: Node, macros: tuple[Macro, ...] = ()) -> Project:
    return Project(
        target_path="target",
        metadata=Metadata(project_name="shop", dbt_version="1.11.1", adapter_type="spark"),
        nodes={n.unique_id: n for n in nodes},
        parents={n.unique_id: list(n.depends_on.nodes) for n in nodes},
        children={},
        macros={m.unique_id: m for m in macros},
    )


def parsed(base: Project, schema: str | None = None) -> Project:
    """Head as dbt parses the same project, perhaps for another schema."""
    head = copy.deepcopy(base)
    for unique_id, node in head.nodes.items():
        name = node.relation_name
        if schema and name:
            name = name.replace("prod.", f"{schema}.")
        head.nodes[unique_id] = replace(node, compiled_code=None, relation_name=name)
    return head


ORDERS = node("orders", "select 1 as id", "select 1 as id")


def shop(raw: str, *macros: Macro, compiled: str = "text") -> Project:
    return project(ORDERS, node("top", raw, compiled, "orders"), macros=macros)


def why(base: Project, head: Project, conditions: CompileConditions = ALL) -> str | None:
    """Why the model `top` is compiled; None where it is taken over."""
    reason = reuse_compiled_sql(base, head, conditions).left_to_compile.get("model.shop.top")
    return reason and reason.message


def test_a_test_whose_arguments_call_macros_is_as_it_was() -> None:
    """dbt notes the macros of a test's arguments only when it compiles the test."""
    types = macro("types", "{{ return([run_query('select int from t')]) }}")
    arguments = {"model": "{{ get_where_subquery(ref('orders')) }}", "types": "{{ types() }}"}
    test = node(
        "typed",
        "{{ p.test_typed(**_dbt_generic_test_kwargs) }}",
        "select 1 from prod.orders",
        "orders",
        unique_id="test.shop.typed",
        resource_type="test",
        relation_name=None,
        config={"materialized": "test"},
        test_metadata=TestMetadata(name="typed", kwargs=arguments),
    )
    base = project(ORDERS, test, macros=(types,))
    head = parsed(base)
    test.depends_on.macros.append(types.unique_id)
    taken = reuse_compiled_sql_of_artifacts(base, head)
    assert "test.shop.typed" in taken.taken
    assert select(base, taken.head).tests == []
    head.macros[types.unique_id].macro_sql = types.macro_sql.replace("int", "text")
    assert "test.shop.typed" not in reuse_compiled_sql_of_artifacts(base, head).taken


def test_an_unchanged_project_is_taken_over_whole() -> None:
    base = shop("select * from {{ ref('orders') }}", compiled="select * from prod.orders")
    head = parsed(base)
    taken = reuse_compiled_sql(base, head)
    assert taken.taken == ["model.shop.orders", "model.shop.top"]
    assert taken.left_to_compile == {}
    assert taken.head.nodes["model.shop.top"].compiled_code == "select * from prod.orders"
    assert taken.head.uncompiled() == []
    assert len(head.uncompiled()) == 2  # it stays as it was read


def test_names_of_relations_become_heads() -> None:
    base = shop(
        "select * from {{ ref('orders') }}, {{ this }}",
        compiled="select * from prod.orders, prod.top, prod.orders_old, a.prod.orders, 'x'",
    )
    head = parsed(base, schema="ci")
    head = reuse_compiled_sql(base, head).head
    assert head.nodes["model.shop.top"].compiled_code == (
        "select * from ci.orders, ci.top, prod.orders_old, a.prod.orders, 'x'"
    )


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("select * from prod.orders", "prod.orders is written into its code"),
        ("select {{ ref('orders').identifier }}", "part of a relation's name (`identifier`)"),
        ("select '{{ this.name }}_x'", "part of a relation's name (`name`)"),
    ],
)
def test_a_text_whose_names_cannot_be_mapped_is_compiled(raw: str, reason: str) -> None:
    base = shop(raw)
    assert reason in str(why(base, parsed(base, schema="ci")))
    assert why(base, parsed(base)) is None


def edited(**changes: Any) -> Callable[[Node], Node]:
    return lambda node: replace(node, **changes)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (edited(raw_code="select 2"), "its code changed"),
        (edited(config={"materialized": "table", "where": "x"}), "its config changed"),
        (edited(test_metadata=TestMetadata(name="a", kwargs={"b": 1})), "its arguments changed"),
        (edited(column_name="b"), "its arguments changed"),
        (edited(depends_on=DependsOn(nodes=[])), "what it refers to changed"),
        (
            edited(depends_on=DependsOn(nodes=["model.shop.orders"], macros=["macro.shop.other"])),
            "`adapter.dispatch` takes other macros for it",
        ),
    ],
)
def test_an_edit_of_the_node_itself_is_compiled(edit: Callable[[Node], Node], reason: str) -> None:
    base = shop("select 1", macro("other", "1"))
    head = parsed(base)
    head.nodes["model.shop.top"] = edit(head.nodes["model.shop.top"])
    assert why(base, head) == reason


@pytest.mark.parametrize(
    "raw",
    [
        "select {{ helper('a') }}",
        "{% if is_incremental() %}{{ helper() }}{% endif %}",
        "{{ adapter.dispatch('helper', 'shop')() }}",
        "{{ caller_of_helper() }}",
        "{% set f = {'a': {'b': 1}} %}{{ {'x': {'y': helper()}} }}",
        "{{ '}}' ~ helper() }}",
        "{{ context_free['helper'] }}",
    ],
)
def test_a_macro_is_reached_however_it_is_called(raw: str) -> None:
    around = (macro("caller_of_helper", "{{ helper() }}"), macro("is_incremental", "no"))
    base = shop(raw, macro("helper", "1"), *around)
    assert why(base, parsed(base)) is None
    head = parsed(base)
    head.macros["macro.shop.helper"] = macro("helper", "2")
    assert why(base, head) == "macro helper changed"
    # An adapter's own version of it counts as it does.
    head = parsed(base)
    head.macros["macro.shop.spark__helper"] = macro("spark__helper", "2")
    assert "is not on both sides" in str(why(base, head))


@pytest.mark.parametrize(
    "raw", ["select {# helper() #} 1", "select helper from {{ ref('orders') }}"]
)
def test_a_word_outside_of_jinja_reaches_nothing(raw: str) -> None:
    base = shop(raw, macro("helper", "1"))
    head = parsed(base)
    head.macros["macro.shop.helper"] = macro("helper", "2")
    assert why(base, head) is None


@pytest.mark.parametrize(
    ("raw", "condition"),
    [
        ("{{ var('x') }}", "variables"),
        ("{{ env_var('x') }}", "environment"),
        ("{{ target.name }}", "target"),
        ("select '{{ target.name }}_id'", "target"),
        ("{% if target['schema'] %}{% endif %}", "target"),
        ("{{ schema }}", "target"),
        ("{{ flags.WHICH }}", "command"),
        ("{{ through_a_macro() }}", "variables"),
    ],
)
def test_what_the_artifacts_do_not_say_has_to_be_proved(raw: str, condition: str) -> None:
    base = shop(raw, macro("through_a_macro", "{{ var('x') }}"))
    assert "whose value is not in the artifacts" in str(
        why(base, parsed(base), CompileConditions())
    )
    others = CompileConditions(**{name: name != condition for name in ALL.__dataclass_fields__})
    assert why(base, parsed(base), others) is not None
    assert why(base, parsed(base), CompileConditions(**{condition: True})) is None


@pytest.mark.parametrize(
    "raw",
    [
        "{{ adapter.get_columns_in_relation(ref('orders')) }}",
        "{% set a = adapter %}",
        "{{ graph.nodes }}",
        "{{ model.columns }}",
        "{{ run_query('select 1') }}",
        "{{ builtins['var']('x') }}",
        "{{ context['var']('x') }}",
        "{{ selected_resources }}",
    ],
)
def test_what_looks_around_while_it_compiles_is_compiled(raw: str) -> None:
    run_query = macro("run_query", "{% do adapter.execute(sql) %}", "dbt")
    base = shop(raw, run_query)
    assert "while it compiles" in str(why(base, parsed(base)))


@pytest.mark.parametrize(
    "raw",
    [
        "{{ config(schema='x', database='y') }} select 1",
        "{{ adapter.quote('a') }}",
        "{{ builtins.ref('orders') }}",
        "{% if is_incremental() %} where 1 {% endif %}",
        "{{ run_started_at }} {{ invocation_id }} {{ thread_id }}",
        "select '{{ target.name }}' as a, '{{- target.schema -}}' as b",
        "select {{ ref('orders').render() }}",
    ],
)
def test_what_is_the_same_or_answered_as_on_base_is_taken_over(raw: str) -> None:
    asks = macro("is_incremental", "{{ adapter.get_relation(this) }}{{ model.config }}", "dbt")
    base = shop(raw, asks)
    assert why(base, parsed(base), CompileConditions()) is None


def test_a_parameter_is_not_what_it_is_called() -> None:
    text = "{% macro test_a(model, schema) %}select {{ schema }} from {{ model }}{% endmacro %}"
    test_a = Macro(unique_id="macro.dbt.test_a", name="test_a", macro_sql=text)
    base = shop("{{ test_a(**kwargs) }}", test_a)
    assert why(base, parsed(base), CompileConditions()) is None


def test_the_arguments_of_a_generic_test_are_jinja_too() -> None:
    arguments = TestMetadata(name="a", kwargs={"values": [{"at": "{{ var(\"it's\") ~ 'x' }}"}]})
    base = project(ORDERS, node("top", "{{ test_a() }}", "x", "orders", test_metadata=arguments))
    assert "`var`" in str(why(base, parsed(base), CompileConditions()))
    assert why(base, parsed(base)) is None


def test_an_ephemeral_parent_is_part_of_the_text() -> None:
    eph = node(
        *("eph", "select {{ m() }}", "select 1"),
        config={"materialized": "ephemeral"},
        relation_name=None,
    )
    top = node("top", "select * from {{ ref('eph') }}", "with __dbt__cte__eph ...", "eph")
    base = project(eph, top, macros=(macro("m", "1"),))
    assert why(base, parsed(base)) is None

    head = parsed(base)
    head.macros["macro.shop.m"] = macro("m", "2")
    assert why(base, head) == "eph is part of it: macro m changed"
    head = parsed(base)
    head.nodes["model.shop.eph"] = replace(
        head.nodes["model.shop.eph"], config={"materialized": "view"}
    )
    assert why(base, head) == "eph is ephemeral on one side only"


def test_another_dbt_or_a_base_that_is_not_compiled_gives_nothing() -> None:
    base = shop("select 1")
    head = parsed(base)
    head.metadata.dbt_version = "1.10.0"
    assert why(base, head) == "another dbt compiled base: 1.11.1, not 1.10.0"
    assert why(parsed(base), parsed(base)) == "base has not compiled it"
    new = project(*parsed(base).nodes.values(), node("new", "select 1", None))
    assert reuse_compiled_sql(base, new).left_to_compile == {
        "model.shop.new": Code.NOT_ON_BASE_SIDE()
    }


def test_what_head_has_compiled_stays() -> None:
    base = shop("select 1", compiled="base's")
    head = parsed(base)
    head.nodes["model.shop.top"] = replace(head.nodes["model.shop.top"], compiled_code="head's")
    assert reuse_compiled_sql(base, head).taken == ["model.shop.orders"]
    assert head.nodes["model.shop.top"].compiled_code == "head's"


def test_names_are_swapped_at_once_and_quoted_ones_whole() -> None:
    swap = {"s.a": "s.b", "s.b": "s.a"}
    assert rename("select * from s.a join s.b", swap) == "select * from s.b join s.a"
    quoted = {'"db"."s"."a"': '"db"."t"."a"'}
    sql = 'select * from "db"."s"."a", "db"."s"."a b", x."db"."s"."a"'
    assert rename(sql, quoted) == 'select * from "db"."t"."a", "db"."s"."a b", x."db"."s"."a"'
    assert rename("select 1", {}) == "select 1"


# --- references to versions ------------------------------------------------------------------------


def versioned(latest: int, refs: list[Ref], *order: int) -> Project:
    """m in three versions, and a model that refers to it."""
    versions = [
        node(
            "m", "select 1", None, unique_id=f"model.shop.m.v{v}", version=v, latest_version=latest
        )
        for v in (1, 2, 3)
    ]
    top = node("top", "{{ ref('m') }}", "select 2", *(f"m.v{v}" for v in order), refs=refs)
    return project(*versions, top)


V1, V2, ANY_VERSION = Ref(name="m", version=1), Ref(name="m", version=2), Ref(name="m")


@pytest.mark.parametrize(
    ("refs", "before", "after"),
    [
        ([ANY_VERSION], (2, [2]), (1, [1])),
        ([ANY_VERSION, V2, V1], (2, [2, 1]), (1, [1, 2])),  # the same two, the other way around
        ([V1, ANY_VERSION, V2], (2, [1, 2]), (1, [1, 2])),  # the same two in the same order
        ([Ref(name="m", version="1"), ANY_VERSION], (1, [1]), (3, [1, 3])),
    ],
)
def test_a_reference_that_means_another_version_is_compiled(
    refs: list[Ref], before: tuple[int, list[int]], after: tuple[int, list[int]]
) -> None:
    base = versioned(before[0], refs, *before[1])
    head = parsed(versioned(after[0], refs, *after[1]))
    assert why(base, head) == "what it refers to changed"


@pytest.mark.parametrize("refs", [[V1], [V1, V2], [Ref(name="m", version=1.0)]])
def test_a_latest_version_that_nobody_means_changes_no_reference(refs: list[Ref]) -> None:
    order = [int(r.version or 0) for r in refs]
    assert why(versioned(2, refs, *order), parsed(versioned(3, refs, *order))) is None


def test_a_name_that_two_nodes_had_is_not_that_of_one_of_them() -> None:
    # A seed, and a source of it that is another relation on head.
    def side(identifier: str, seed: str = "prod.d") -> Project:
        return project(
            node("d", "", None, relation_name=seed),
            node("raw_d", "", None, relation_name=f"prod.{identifier}"),
        )

    assert other_names(side("d"), side("d2")) == {}
    assert other_names(side("d"), side("d2", "prod.d2")) == {"prod.d": "prod.d2"}
    assert other_names(side("e"), side("e2")) == {"prod.e": "prod.e2"}
