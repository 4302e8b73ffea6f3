"""Who sees that rows come in another order: the guards, each with its near miss (executed in `driver/test_unpromised`)."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import compare
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.order_seen import orders_of_relations, orders_read

T, U = "source.p.raw.t", "source.p.raw.u"
WHOLE = {"k": "bigint", "v": "bigint"}


def source(unique_id: str) -> Node:
    return replace(node(unique_id), relation_name=f"s.{unique_id.rpartition('.')[2]}")


def side(
    edited: str, reader: str, *read: str, between: str = "table", types: Any = WHOLE
) -> Project:
    """t -> edited -> between -> reader, which may read u, too."""
    models = (
        node("model.p.edited", edited, T),
        node("model.p.between", "select k, v from s.edited", "model.p.edited"),
        node("model.p.reader", reader, *(f"model.p.{name}" for name in read), U),
    )
    for model, kind in zip(models, ("table", between, "table"), strict=True):
        model.config["materialized"] = kind
    known = {T: types, U: WHOLE, "model.p.edited": types}
    if between != "ephemeral":
        known["model.p.between"] = types
    return project(source(T), source(U), *models, types=known, adapter="duckdb")


def sees(reader: str, *read: str, **more: Any) -> bool:
    """Whether a reader changes with an edit above it that leaves the same bag of rows."""
    old, new = (f"select k, v from s.t group by {keys}" for keys in ("k, v", "v, k"))
    comparison = compare(side(old, reader, *read, **more), side(new, reader, *read, **more))
    return "model.p.reader" in comparison.changed


@pytest.mark.parametrize(
    ("reader", "seen"),
    [
        ("select list(v) as l from s.edited", True),
        ("select sum(v) as n from s.edited", False),
        ("select e.k from s.edited as e where e.v > (select u.v from s.u as u limit 1)", False),
        ("select u.k from s.u as u where u.v > (select e.v from s.edited as e limit 1)", True),
        ("with x as (select * from s.u), y as (select first(v) as f from x) select f, k from y, s.edited", False),
        ("with x as (select * from s.edited), y as (select first(v) as f from x) select f, k from y, s.u", True),
    ],
)  # fmt: skip
def test_only_the_order_of_tables_below_the_edit_counts(reader: str, seen: bool) -> None:
    assert sees(reader, "edited") is seen


@pytest.mark.parametrize(
    ("now", "seen"),
    [
        ("select k, case when v > 1 then v else null end as v from s.t where k > 2", False),
        ("select k, case when v > 1 then v end as v from s.t where k > 2 and 1 = 1", False),
        ("select k, case when v > 1 then v end as v from s.t where (k > 2) and (k > 2 and true)", False),
        ("select k, case when v > 1 then v end as v from s.t where not (k <= 2)", True),
        ("select k, case when not v <= 1 then v end as v from s.t where k > 2", True),
        ("select k, case when v > 1 then v end as v from (select * from s.t order by v) where k > 2", True),
    ],
)  # fmt: skip
def test_what_no_plan_has_is_no_edit_of_an_order(now: str, seen: bool) -> None:
    then = "select k, case when v > 1 then v end as v from s.t where k > 2"
    reader = "select list(v) as l from s.edited"
    comparison = compare(side(then, reader, "edited"), side(now, reader, "edited"))
    assert ("model.p.reader" in comparison.changed) is seen


@pytest.mark.parametrize("types", [WHOLE, {"k": "bigint", "v": "double"}, {}])
def test_a_sum_through_an_ephemeral_model_is_of_what_that_reads(types: dict[str, str]) -> None:
    """Its text is part of its reader's, and its columns have no types of their own."""
    inlined = (
        "with __dbt__cte__between as (select k, v from s.edited) "
        "select sum(v) as n from __dbt__cte__between"
    )
    seen = sees(inlined, "between", between="ephemeral", types=types)
    assert seen is (types != WHOLE)


def test_a_reader_that_is_edited_too_sees_the_order_below_the_other_edit() -> None:
    """Its own edit shows in its own fingerprints, and says nothing of a column that it leaves as it is."""

    def edited(above: int, own: int) -> Project:
        return side(
            f"select k, v, v + {above} as w from s.t",
            f"select list(k) as l, {own} as o, sum(v) as n from s.edited",
            "edited",
        )

    def redefined(project: Project) -> set[str]:
        change = compare(edited(1, 1), project).changed.get("model.p.reader")
        return set() if change is None else {*change.redefined}

    assert redefined(edited(1, 2)) == {"o"}
    assert redefined(edited(2, 1)) == {"l"}
    assert redefined(edited(2, 2)) == {"l", "o"}


def test_who_reads_the_relation_as_a_source_sees_its_order() -> None:
    """The source is what a model of the project builds."""

    def edited(above: int) -> Project:
        built = replace(source("source.p.raw.edited"), relation_name="`s`.`edited`")
        return project(
            source(T),
            node("model.p.edited", f"select k, v, v + {above} as w from s.t", T),
            built,
            node("model.p.reader", "select list(k) as l from s.edited", built.unique_id),
            types={T: WHOLE, "model.p.edited": WHOLE},
            adapter="duckdb",
        )

    assert "model.p.reader" in compare(edited(1), edited(2)).changed


def test_which_rows_come_first_counts_though_all_columns_have_changed() -> None:
    def side(above: int) -> Project:
        edited = node("model.p.edited", f"select k + {above} as k from s.t", T)
        reader = node("model.p.reader", "select k from s.edited limit 1", edited.unique_id)
        known = {T: WHOLE, edited.unique_id: {"k": "bigint"}}
        return project(source(T), edited, reader, types=known, adapter="duckdb")

    change = compare(side(1), side(2)).changed["model.p.reader"]
    assert change.rows and change.redefined == ["k"]


def test_a_load_knows_who_reads_a_laid_out_table_as_a_source() -> None:
    def read(**config: Any) -> Any:
        edited = node("model.p.edited", "select k, v from s.t", T, config=config)
        built = replace(source("source.p.raw.edited"), relation_name="`s`.`edited`")
        reader = node("model.p.reader", "select sum(v) as n from s.edited", built.unique_id)
        made = project(source(T), edited, built, reader, adapter="duckdb")
        context = ProjectContext(made)
        orders = orders_of_relations(context, analyse(made, own=True, context=context))
        return orders_read(context, orders, None)

    assert read() == {}
    assert read(cluster_by=["k"]) == {"model.p.reader": {"n": {"order:model.p.edited"}}}


def laid(types: Any = WHOLE, **config: Any) -> Project:
    """A list, and a sum, of a table that is stored by these settings."""
    edited = node("model.p.edited", "select k, v from s.t", T, config=config)
    reader = node(
        "model.p.reader", "select list(k) as l, sum(v) as n from s.edited", edited.unique_id
    )
    return project(
        source(T), edited, reader, types={T: types, edited.unique_id: types}, adapter="duckdb"
    )  # fmt: skip


@pytest.mark.parametrize("types", [WHOLE, {"k": "bigint", "v": "double"}])
@pytest.mark.parametrize(
    ("config", "orders"),
    [
        ({"cluster_by": ["k"]}, True),
        ({"partition_by": ["k"]}, True),
        ({"indexes": [{"columns": ["k"]}]}, True),
        ({"post-hook": [{"sql": "create index i on {{ this }} (k)"}]}, True),
        ({"cluster_by": []}, False),
        ({"tags": ["nightly"]}, False),
        ({"grants": {"select": ["reader"]}}, False),
        ({"persist_docs": {"relation": True}}, False),
    ],
)
def test_a_table_that_is_laid_out_otherwise_gives_its_rows_in_another_order(
    config: dict[str, Any], orders: bool, types: Any
) -> None:
    """Its rows are the same: only what sees their order changes. A sum of whole numbers sees none."""
    changed = compare(laid(types), laid(types, **config)).changed
    seen = {"l"} | ({"n"} if types is not WHOLE else set())
    assert {u: {*change.redefined} for u, change in changed.items()} == (
        {"model.p.reader": seen} if orders else {}
    )


@pytest.mark.parametrize(
    ("config", "seen"),
    [
        ({}, False),
        ({"limit": 5}, False),  # so many rows, whichever
        ({"fail_calc": "max(v)"}, False),
        ({"fail_calc": "max(v)", "limit": 5}, True),
        ({"fail_calc": "first(v)"}, True),
    ],
)
def test_a_test_sees_an_order_by_what_dbt_makes_of_its_rows(
    config: dict[str, Any], seen: bool
) -> None:
    def side(above: int) -> Project:
        edited = node("model.p.edited", f"select k, v, v + {above} as w from s.t", T)
        test = node("test.p.top", "select k, v from s.edited", edited.unique_id, config=config)
        return project(
            source(T), edited, test, types={T: WHOLE, edited.unique_id: WHOLE}, adapter="duckdb"
        )

    comparison = compare(side(1), side(2))
    sides = comparison.base_analysis, comparison.head_analysis
    assert len({side.tests["test.p.top"].rows_fingerprint for side in sides}) == 1 + seen


@pytest.mark.parametrize("kind", ["view", "ephemeral"])
@pytest.mark.parametrize(
    ("types", "seen"), [(WHOLE, False), ({"k": "bigint", "v": "double"}, True)]
)
def test_the_order_of_an_ephemeral_model_is_seen_as_that_of_a_view(
    kind: str, types: dict[str, str], seen: bool
) -> None:
    """0.0 and -0.0 are equal: which of them a group shows goes by the order of its rows."""

    def side(order: str) -> Project:
        inner = f"select k, v from s.t order by {order}"
        edited = node("model.p.edited", inner, T, config={"materialized": kind})
        read = "s.edited" if kind == "view" else "__dbt__cte__edited"
        text = f"select v, count(*) as n from {read} group by v"
        if kind == "ephemeral":
            text = f"with __dbt__cte__edited as ({inner}) {text}"
        known = {T: types} | ({edited.unique_id: types} if kind == "view" else {})
        return project(
            source(T), edited, node("model.p.reader", text, edited.unique_id), types=known, adapter="duckdb"
        )  # fmt: skip

    changed = compare(side("k"), side("v")).changed.get("model.p.reader")
    assert (changed is not None and "v" in changed.redefined) is seen
