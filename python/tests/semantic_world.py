"""A small shop with a semantic layer, made by hand: every type of metric over two models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hand_made import node, project

from dbt_ripple.artifacts import Node, Project

RAW = "source.p.raw.sales"
PEOPLE = "source.p.raw.people"
ORDERS, CUSTOMERS, DAYS = "model.p.orders", "model.p.customers", "model.p.days"
COLUMNS = {
    "id": "id",
    "customer_id": "customer_id",
    "amount": "amount",
    "cost": "cost",
    "status": "status",
    "ordered_at": "ordered_at",
    "note": "note",
}
"""The columns of the model ``orders``, with the SQL of each."""


def filtered(template: str) -> dict[str, Any]:
    return {"where_filters": [{"where_sql_template": template}]}


def semantic_model(name: str, model: str, **more: Any) -> Node:
    return node(f"semantic_model.p.{name}", None, model, config={}, **more)


def metric(name: str, kind: str, *above: str, filter: Any = None, **params: Any) -> Node:
    """A metric; ``above`` are the unique_ids dbt says it depends on."""
    return node(f"metric.p.{name}", None, *above, type=kind, type_params=params, filter=filter)


def simple(name: str, measure: str, model: str = "orders", filter: Any = None) -> Node:
    of = {"name": measure, "filter": None, "alias": None}
    return metric(
        name, "simple", f"semantic_model.p.{model}", filter=filter, measure=of, input_measures=[of]
    )


def saved_query(name: str, metrics: list[str], group_by: list[str], where: Any = None) -> Node:
    params = {"metrics": metrics, "group_by": group_by, "where": where}
    above = [f"metric.p.{m}" for m in metrics]
    return node(f"saved_query.p.{name}", None, *above, query_params=params)


def layer() -> list[Node]:
    """The semantic layer, what is made of others listed before these."""
    return [
        saved_query(
            "by_region",
            ["revenue"],
            ["Dimension('customer__region')", "TimeDimension('metric_time', 'day')"],
        ),
        saved_query("paid", ["orders"], [], filtered("{{ Dimension('order__status') }} = 'paid'")),
        saved_query("people", ["customers"], ["Entity('customer')"]),
        metric(
            "profit",
            "derived",
            *("metric.p.revenue", "metric.p.costs"),
            expr="income - costs",
            metrics=[{"name": "revenue", "alias": "income"}, {"name": "costs"}],
        ),
        metric(
            "margin",
            "ratio",
            *("metric.p.profit", "metric.p.revenue"),
            numerator={"name": "profit"},
            denominator={"name": "revenue"},
        ),
        simple("revenue", "revenue"),
        simple("costs", "costs"),
        simple("orders", "order_count"),
        simple("customers", "customers", "customers"),
        simple(
            "paid_orders",
            "order_count",
            filter=filtered("{{ Dimension('order__status') }} = 'paid'"),
        ),
        simple(
            "orders_of_the_north",
            "order_count",
            filter=filtered("{{ Dimension('customer__region') }} = 'north'"),
        ),
        simple(
            "orders_of_spenders",
            "order_count",
            filter=filtered("{{ Metric('revenue', group_by=['customer']) }} > 100"),
        ),
        metric(
            "revenue_so_far",
            "cumulative",
            "semantic_model.p.orders",
            measure={"name": "revenue"},
            cumulative_type_params={"window": {"count": 7, "granularity": "day"}},
        ),
        metric(
            "bought",
            "conversion",
            *("semantic_model.p.customers", "semantic_model.p.orders"),
            conversion_type_params={
                "base_measure": {"name": "customers"},
                "conversion_measure": {"name": "order_count"},
                "entity": "customer",
            },
        ),
        semantic_model(
            "orders",
            ORDERS,
            defaults={"agg_time_dimension": "ordered_at"},
            entities=[
                {"name": "order", "type": "primary", "expr": "id"},
                {"name": "customer", "type": "foreign", "expr": "customer_id"},
            ],
            dimensions=[
                {"name": "ordered_at", "type": "time", "type_params": {"time_granularity": "day"}},
                {"name": "status", "type": "categorical", "expr": None},
            ],
            measures=[
                {"name": "revenue", "agg": "sum", "expr": "amount"},
                {"name": "costs", "agg": "sum", "expr": "case when cost > 0 then cost end"},
                {"name": "order_count", "agg": "sum", "expr": "1"},
            ],
        ),
        semantic_model(
            "customers",
            CUSTOMERS,
            defaults={"agg_time_dimension": "joined_at"},
            entities=[{"name": "customer", "type": "primary", "expr": "id"}],
            dimensions=[
                {"name": "region", "type": "categorical"},
                {"name": "joined_at", "type": "time", "type_params": {"time_granularity": "day"}},
            ],
            measures=[{"name": "customers", "agg": "count_distinct", "expr": "id"}],
        ),
    ]


def shop(
    columns: dict[str, str] | None = None,
    where: str = "",
    people: str = "select id, region, joined_at, email from s.people",
    edit: Callable[[dict[str, Node]], None] | None = None,
    more: tuple[Node, ...] = (),
    adapter: str = "duckdb",
) -> Project:
    """The shop; ``edit`` may change its semantic layer, by name (``metric.revenue``)."""
    of = columns or COLUMNS
    listed = ", ".join(f"{sql} as {name}" for name, sql in of.items())
    nodes = layer()
    if edit is not None:
        by_name = {n.unique_id.replace(".p.", "."): n for n in nodes}
        edit(by_name)
        nodes = list(by_name.values())
    return project(
        node(RAW, columns=list(COLUMNS)),
        node(PEOPLE, columns=["id", "region", "joined_at", "email"]),
        *nodes,
        node(ORDERS, f"select {listed} from s.sales {where}", RAW),
        node(CUSTOMERS, people, PEOPLE),
        node(
            DAYS,
            "select day from s.calendar",
            time_spine={"standard_granularity_column": "day", "custom_granularities": []},
        ),
        *more,
        catalog={RAW: list(COLUMNS), PEOPLE: ["id", "region", "joined_at", "email"]},
        adapter=adapter,
    )
