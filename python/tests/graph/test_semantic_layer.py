"""What the semantic layer reads: an edit reaches exactly those whose columns it touches."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hand_made import node
from msgspec.structs import replace
from semantic_world import COLUMNS, ORDERS, filtered, metric, shop, simple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import compare
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.semantic_references import SEMANTIC

SO_FAR = {"revenue_so_far"}
OF_REVENUE = {"revenue", "profit", "margin", "orders_of_spenders", "by_region"} | SO_FAR
OF_ORDERS = {"orders", "paid_orders", "orders_of_the_north", "orders_of_spenders", "paid"}
EVERY_ORDER = OF_REVENUE | OF_ORDERS | {"costs", "bought"}
"""Who aggregates the rows of the model ``orders``."""

READERS: dict[str, set[str]] = {
    "id": {"orders"},  # the semantic model only: nobody asks for an order by its key
    "customer_id": {"by_region", "orders_of_the_north", "orders_of_spenders", "bought"},
    "amount": OF_REVENUE,
    "cost": {"costs", "profit", "margin"},
    "status": {"paid_orders", "paid"},
    "ordered_at": EVERY_ORDER,
    "note": set(),
}
"""Who reads each column of ``orders``, besides its semantic model."""


def changed(base: Project, head: Project) -> set[str]:
    """The names of what moved in the semantic layer."""
    return {
        unique_id.partition(".")[0] + "." + unique_id.rpartition(".")[2]
        for unique_id in compare(base, head).changed
        if unique_id.startswith(SEMANTIC)
    }


def named(names: set[str], *models: str) -> set[str]:
    kinds = {"by_region": "saved_query", "paid": "saved_query", "people": "saved_query"}
    return {f"{kinds.get(n, 'metric')}.{n}" for n in names} | {
        f"semantic_model.{m}" for m in models
    }


def analysed(project: Project) -> Analysis:
    return analyse(project)


def test_all_of_it_is_followed() -> None:
    seen = analysed(shop())
    assert {
        (u, n.reason and n.reason.message)
        for u, n in seen.nodes.items()
        if u.startswith(SEMANTIC) and n.status != "analysed"
    } == set()


@pytest.mark.parametrize("column", COLUMNS)
def test_an_edit_of_one_expression_reaches_who_reads_it_and_nobody_else(column: str) -> None:
    head = shop({**COLUMNS, column: f"coalesce({column}, null, {column})"})
    readers = named(READERS[column] - {"orders"} if column == "id" else READERS[column])
    models = named(set(), *(["orders"] if column != "note" else []))
    assert changed(shop(), head) == readers | models


def test_other_rows_reach_who_aggregates_them() -> None:
    assert changed(shop(), shop(where="where amount > 0")) == named(EVERY_ORDER, "orders")


@pytest.mark.parametrize(
    ("people", "readers"),
    [
        ("id, upper(region) as region, joined_at, email", {"orders_of_the_north", "by_region"}),
        ("id, region, joined_at, lower(email) as email", None),
        ("id, region, joined_at + 1 as joined_at, email", {"customers", "people", "bought"}),
    ],
)
def test_a_dimension_of_another_model_reaches_who_joins_it(
    people: str, readers: set[str] | None
) -> None:
    head = shop(people=f"select {people} from s.people")
    assert changed(shop(), head) == (set() if readers is None else named(readers, "customers"))


def test_a_column_renamed_with_its_measure_is_no_change() -> None:
    def adapted(layer: dict[str, Node]) -> None:
        layer["semantic_model.orders"].measures[0]["expr"] = "total"

    columns = {"total" if k == "amount" else k: sql for k, sql in COLUMNS.items()}
    assert changed(shop(), shop(columns, edit=adapted)) == set()


def test_another_way_to_say_the_same_is_no_change() -> None:
    filtered = "select id, region, joined_at, email from s.people where not (region is null)"
    same = "select id, region, joined_at, email from s.people where region is not null"
    assert changed(shop(people=filtered), shop(people=same)) == set()


EDITS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "an expression": (
        "semantic_model.orders",
        {"measures": {0: {"expr": "amount * 2"}}},
        OF_REVENUE,
    ),
    "an aggregation": ("semantic_model.orders", {"measures": {0: {"agg": "max"}}}, OF_REVENUE),
    "a label": ("semantic_model.orders", {"measures": {0: {"label": "Revenue"}}}, set()),
    "a time": (
        "semantic_model.orders",
        {"defaults": {"agg_time_dimension": "status"}},
        EVERY_ORDER,
    ),
    "a grain": ("metric.revenue_so_far", {"type_params": {"grain_to_date": "month"}}, SO_FAR),
    "a derived expression": (
        "metric.profit",
        {"type_params": {"expr": "costs"}},
        {"profit", "margin"},
    ),
    "a filter": (
        "metric.paid_orders",
        {"filter": filtered("{{ Dimension('order__status') }} = 'done'")},
        {"paid_orders"},
    ),
    "the layout of a filter": (
        "metric.paid_orders",
        {"filter": filtered("{{Dimension( 'order__status' )}}\n  =   'paid' -- as before")},
        set(),
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_the_layer_itself_reaches_its_readers(what: str) -> None:
    where, edit, readers = EDITS[what]

    def edited(layer: dict[str, Node]) -> None:
        for field, new_value in edit.items():
            value = getattr(layer[where], field)
            if isinstance(value, list):
                for i, more in new_value.items():
                    value[i] = {**value[i], **more}
            elif field == "filter":
                layer[where] = replace(layer[where], filter=new_value)
            else:
                layer[where] = replace(layer[where], **{field: {**(value or {}), **new_value}})

    model = [where.partition(".")[2]] if where.startswith("semantic") and readers else []
    model = [] if what == "a time" else model
    assert changed(shop(), shop(edit=edited)) == named(readers, *model)


def test_the_order_of_lists_decides_nothing() -> None:
    expected = analysed(shop())
    for seed in range(20):
        dice = random.Random(seed)

        def shuffled(layer: dict[str, Node], dice: random.Random = dice) -> None:
            for n in layer.values():
                for items in (n.entities, n.dimensions, n.measures):
                    dice.shuffle(items)
                for items in (n.type_params.get("metrics"), n.query_params.get("group_by")):
                    dice.shuffle(items or [])
            nodes = list(layer.items())
            dice.shuffle(nodes)
            layer.clear()
            layer.update(nodes)

        seen = analysed(shop(edit=shuffled))
        for unique_id, node_analysis in expected.nodes.items():
            assert seen.nodes[unique_id] == node_analysis
        assert list(seen.edges) == list(expected.edges)


# -- edges ------------------------------------------------------------------------------------------


def edges_to(seen: Analysis, unique_id: str) -> set[tuple[str, ...]]:
    return {
        (e.parent_id.rpartition(".")[2], e.parent_column, e.child_column, e.subtype)
        for e in seen.edges
        if e.child_id == unique_id
    }


def test_the_kinds_of_what_is_read() -> None:
    seen = analysed(shop())
    assert ("orders", "amount", "revenue", "AGGREGATION") in edges_to(
        seen, "semantic_model.p.orders"
    )
    assert ("orders", "cost", "costs", "AGGREGATION") in edges_to(seen, "semantic_model.p.orders")
    assert not any(e[2] == "order_count" for e in edges_to(seen, "semantic_model.p.orders"))
    assert edges_to(seen, "metric.p.paid_orders") == {
        ("orders", "order_count", "paid_orders", "AGGREGATION"),
        ("orders", "*rows*", "*rows*", "GROUP_BY"),
        ("orders", "ordered_at", "*rows*", "GROUP_BY"),
        ("orders", "status", "*rows*", "FILTER"),
    }
    assert {e for e in edges_to(seen, "metric.p.orders_of_the_north") if e[0] == "customers"} == {
        ("customers", "region", "*rows*", "FILTER"),
        ("customers", "customer", "*rows*", "JOIN"),
        ("customers", "*rows*", "*rows*", "JOIN"),
    }
    assert ("days", "day", "*rows*", "JOIN") in edges_to(seen, "metric.p.revenue_so_far")
    assert ("revenue", "revenue", "profit", "TRANSFORMATION") in edges_to(seen, "metric.p.profit")
    assert ("customers", "region", "customer__region", "IDENTITY") in edges_to(
        seen, "saved_query.p.by_region"
    )


def test_a_count_masks_what_it_counts() -> None:
    into_count = [
        e
        for e in analysed(shop()).edges
        if e.child_id == "semantic_model.p.customers" and e.child_column == "customers"
    ]
    assert [(e.parent_column, e.masking) for e in into_count] == [("id", True)]


# -- what is not there, and what cannot be read -----------------------------------------------------


def state(project: Project, unique_id: str) -> tuple[str, str | None]:
    node_analysis = analysed(project).nodes[unique_id]
    return node_analysis.status, node_analysis.reason and node_analysis.reason.message


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {k: v for k, v in COLUMNS.items() if k != "amount"},
            "cannot find amount, which measure revenue reads",
        ),
        (
            {k: v for k, v in COLUMNS.items() if k != "cost"},
            "cannot find cost, which measure costs reads",
        ),
        (
            {k: v for k, v in COLUMNS.items() if k != "status"},
            "cannot find status, which dimension status reads",
        ),
        ({k: v for k, v in COLUMNS.items() if k != "note"}, None),
    ],
)
def test_a_semantic_model_is_broken_by_a_column_that_is_gone(
    columns: dict[str, str], reason: str | None
) -> None:
    status = "analysed" if reason is None else "broken"
    assert state(shop(columns), "semantic_model.p.orders") == (status, reason)


def without(field: str, name: str) -> Any:
    def edit(layer: dict[str, Node]) -> None:
        of = "semantic_model.customers" if name == "region" else "semantic_model.orders"
        elements = [e for e in getattr(layer[of], field) if e["name"] != name]
        layer[of] = replace(layer[of], **{field: elements})

    return edit


@pytest.mark.parametrize(
    ("edit", "broken"),
    [
        (without("measures", "revenue"), {"metric.p.revenue": "cannot find measure revenue",
                                          "metric.p.revenue_so_far": "cannot find measure revenue"}),
        (without("dimensions", "status"), {"metric.p.paid_orders": "cannot find dimension order__status",
                                           "saved_query.p.paid": "cannot find dimension order__status"}),
        (without("dimensions", "region"), {
            "metric.p.orders_of_the_north": "cannot find dimension customer__region",
            "saved_query.p.by_region": "cannot find dimension customer__region"}),
        (lambda layer: layer.pop("metric.costs"), {"metric.p.profit": "cannot find metric costs"}),
        (lambda layer: layer.pop("metric.orders"), {"saved_query.p.paid": "cannot find metric orders"}),
        (without("entities", "customer"), {
            "metric.p.orders_of_spenders": None, "metric.p.bought": None,
            "metric.p.orders_of_the_north": None, "saved_query.p.by_region": None}),
    ],
)  # fmt: skip
def test_who_asks_for_what_is_not_declared_is_broken(edit: Any, broken: dict[str, str]) -> None:
    seen = analysed(shop(edit=edit))
    broken_nodes = {u: str(n.reason) for u, n in seen.nodes.items() if n.status == "broken"}
    if (
        None in broken.values()
    ):  # the other side of the join is there: it is reached, and not broken
        assert broken_nodes == {}
        moved = compare(shop(), shop(edit=edit)).changed
        assert broken.keys() <= moved.keys()
    else:
        assert broken_nodes == broken


@pytest.mark.parametrize(
    "unread",
    ["{{ Dimension(var('x')) }} = 1", "{% if 1 %}1=1{% endif %}", "{{ Dimension('order__status') }} = = 1",
     "{{ Dimension('order__status') }} = no_such_column"],
)  # fmt: skip
def test_a_filter_that_cannot_be_read_may_read_everything(unread: str) -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer["metric.revenue"] = replace(layer["metric.revenue"], filter=filtered(unread))

    seen = analysed(shop(edit=edit))
    metric = seen.nodes["metric.p.revenue"]
    assert metric.status == "opaque"
    assert "filter of revenue" in str(metric.reason)
    read = {(p, c) for p, c, _, _ in edges_to(seen, "metric.p.revenue")}
    assert {("customers", "region"), ("orders", "status"), ("orders", "customer")} <= read
    base, head = shop(edit=edit), shop({**COLUMNS, "status": "upper(status)"}, edit=edit)
    assert "metric.revenue" in changed(base, head)


@pytest.mark.parametrize(
    "unread", ["amount +", "(select max(x) from s.other)", "amount) as a, (cost"]
)
def test_an_expression_that_cannot_be_read_may_read_everything(unread: str) -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer["semantic_model.orders"].measures[0]["expr"] = unread

    seen = analysed(shop(edit=edit))
    assert seen.nodes["semantic_model.p.orders"].status == "opaque"
    read = {c for _, c, e, _ in edges_to(seen, "semantic_model.p.orders") if e == "revenue"}
    assert read == {*COLUMNS, "*rows*"}


def test_a_metric_that_aggregates_by_itself() -> None:
    own = metric(
        "own",
        "simple",
        "semantic_model.p.orders",
        metric_aggregation_params={
            "semantic_model": "orders",
            "agg": "sum",
            "expr": "amount + cost",
            "agg_time_dimension": "ordered_at",
        },
    )
    seen = analysed(shop(more=(own,)))
    assert seen.nodes["metric.p.own"].expressions == ["sum(amount + cost)"]
    assert {
        ("orders", "amount", "own", "AGGREGATION"),
        ("orders", "cost", "own", "AGGREGATION"),
    } <= (edges_to(seen, "metric.p.own"))


def test_a_column_that_only_the_semantic_layer_reads_is_found_behind_a_star() -> None:
    """Nothing lists the columns of the source: that they are read shows that they are there."""
    loose = [
        node("source.p.raw.heap"),
        node("model.p.loose", "select * from s.heap", "source.p.raw.heap"),
    ]
    model = node(
        "semantic_model.p.loose",
        None,
        "model.p.loose",
        measures=[{"name": "m", "agg": "sum", "expr": "x"}],
    )
    seen = analysed(shop(more=(*loose, model, simple("of_loose", "m", "loose"))))
    assert seen.nodes["semantic_model.p.loose"].status == "analysed"
    assert "x" in seen.nodes["source.p.raw.heap"].columns
    assert ("loose", "x", "m", "AGGREGATION") in edges_to(seen, "semantic_model.p.loose")


def test_a_metric_made_of_itself_is_no_loop() -> None:
    a = metric("a", "derived", "metric.p.b", expr="b", metrics=[{"name": "b"}])
    b = metric("b", "derived", "metric.p.a", expr="a", metrics=[{"name": "a"}])
    assert state(shop(more=(a, b)), "metric.p.b")[0] == "broken"


@pytest.mark.parametrize(
    "adapter", ["duckdb", "snowflake", "bigquery", "postgres", "spark", "redshift"]
)
def test_every_dialect_reads_it_alike(adapter: str) -> None:
    head = shop({**COLUMNS, "amount": "amount + 1"}, adapter=adapter)
    assert changed(shop(adapter=adapter), head) == named(OF_REVENUE, "orders")
    assert ORDERS in analysed(head).nodes


def test_the_tables_hold_it() -> None:
    project = shop()
    rows = build_rows(project, analysed(project)).rows
    nodes = {row.unique_id: row.analysis_status for row in rows["nodes"]}  # type: ignore[attr-defined]
    assert nodes["metric.p.revenue"] == nodes["semantic_model.p.orders"] == "analysed"
    columns = {(c.unique_id, c.column_name): c for c in rows["columns"]}  # type: ignore[attr-defined]
    ends = {
        end
        for e in rows["column_edges"]
        for end in ((e.parent_id, e.parent_column), (e.child_id, e.child_column))  # type: ignore[attr-defined]
        if end[1] != "*rows*"
    }
    assert ends <= columns.keys()
    assert columns["semantic_model.p.orders", "revenue"].expression == "sum(amount)"
    edges = {(e.parent_id, e.child_id) for e in rows["edges"]}  # type: ignore[attr-defined]
    assert ("semantic_model.p.customers", "metric.p.orders_of_the_north") in edges
    closure = {(c.ancestor_id, c.descendant_id) for c in rows["node_closure"]}  # type: ignore[attr-defined]
    assert (ORDERS, "saved_query.p.by_region") in closure


def test_a_metric_of_a_type_that_is_not_known_may_read_everything() -> None:
    odd = metric("odd", "of_tomorrow", "semantic_model.p.orders", something={"new": 1})
    status, reason = state(shop(more=(odd,)), "metric.p.odd")
    assert (status, reason) == ("opaque", "cannot be read: what it is made of")
    head = shop({**COLUMNS, "cost": "cost + 1"}, more=(odd,))
    assert "metric.odd" in changed(shop(more=(odd,)), head)


def test_what_is_named_without_a_word_more_is_read_alike() -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer["metric.revenue"] = replace(
            layer["metric.revenue"], type_params={"measure": "revenue"}
        )
        layer["metric.margin"] = replace(
            layer["metric.margin"], type_params={"numerator": "profit", "denominator": "revenue"}
        )

    assert changed(shop(), shop(edit=edit)) == set()


# -- what no version of dbt writes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "field", "value"),
    [
        ("saved_query.by_region", "query_params", {"metrics": 5, "group_by": "x", "where": 3}),
        ("metric.bought", "type_params", {"conversion_type_params": "x"}),
        ("metric.revenue", "type_params", {"measure": {"name": "revenue"}, "metrics": 7}),
        ("metric.profit", "type_params", {"cumulative_type_params": [1]}),
    ],
)
def test_a_shape_that_is_not_known_may_read_anything(where: str, field: str, value: Any) -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer[where] = replace(layer[where], **{field: value})

    unique_id = where.replace(".", ".p.")
    seen = analysed(shop(edit=edit)).nodes
    assert seen[unique_id].status == "opaque", seen[unique_id]
    assert "broken" not in {n.status for u, n in seen.items() if u.startswith("metric")}
    moved = compare(shop(edit=edit), shop({**COLUMNS, "cost": "cost + 1"}, edit=edit)).changed
    assert unique_id in moved
