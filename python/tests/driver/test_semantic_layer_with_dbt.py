"""The semantic layer of a project that a real dbt has parsed: metrics of every type, saved queries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_project

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import gate
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.semantic_references import SEMANTIC

pytestmark = pytest.mark.slow

ORDERS = "select 1 as id, 2 as customer_id, 3.5 as amount, 1.5 as cost, 'paid' as status, date '2026-01-01' as day\n"
FILES = {
    "dbt_project.yml": "name: tiny\nversion: 1.0.0\nprofile: tiny\n",
    "profiles.yml": tiny_project.FILES["profiles.yml"],
    "models/orders.sql": ORDERS,
    "models/customers.sql": "select 2 as id, 'north' as region, date '2025-01-01' as joined\n",
    "models/days.sql": "select date '2026-01-01' as date_day\n",
    "models/layer.yml": """
models:
  - name: days
    time_spine: {standard_granularity_column: date_day}
    columns: [{name: date_day, granularity: day}]
semantic_models:
  - name: orders
    model: ref('orders')
    defaults: {agg_time_dimension: placed_on}
    entities:
      - {name: order, type: primary, expr: id}
      - {name: customer, type: foreign, expr: customer_id}
    dimensions:
      - {name: placed_on, expr: day, type: time, type_params: {time_granularity: day}}
      - {name: status, type: categorical}
    measures:
      - {name: revenue, agg: sum, expr: amount}
      - {name: costs, agg: sum, expr: cost * 2}
      - {name: order_count, agg: sum, expr: 1}
      - {name: p90, agg: percentile, expr: amount, agg_params: {percentile: 0.9}}
  - name: customers
    model: ref('customers')
    defaults: {agg_time_dimension: joined}
    entities:
      - {name: customer, type: primary, expr: id}
    dimensions:
      - {name: region, type: categorical}
      - {name: joined, type: time, type_params: {time_granularity: day}}
    measures:
      - {name: customer_count, agg: count_distinct, expr: id}
metrics:
  - name: profit
    label: Profit
    type: derived
    type_params:
      expr: income - costs
      metrics: [{name: revenue, alias: income}, {name: costs}]
  - {name: revenue, label: Revenue, type: simple, type_params: {measure: revenue}}
  - {name: costs, label: Costs, type: simple, type_params: {measure: costs}}
  - {name: orders, label: Orders, type: simple, type_params: {measure: order_count}}
  - {name: customers, label: Customers, type: simple, type_params: {measure: customer_count}}
  - name: paid_revenue
    label: Paid
    type: simple
    type_params: {measure: revenue}
    filter: "{{ Dimension('order__status') }} = 'paid' and {{ TimeDimension('order__placed_on', 'month') }} > '2026-01-01'"
  - name: northern
    label: Northern
    type: simple
    type_params: {measure: order_count}
    filter: ["{{ Dimension('customer__region') }} = 'north'"]
  - name: margin
    label: Margin
    type: ratio
    type_params: {numerator: profit, denominator: {name: revenue}}
  - name: so_far
    label: So far
    type: cumulative
    type_params: {measure: revenue, cumulative_type_params: {window: 7 days}}
  - name: bought
    label: Bought
    type: conversion
    type_params:
      conversion_type_params:
        base_measure: customer_count
        conversion_measure: order_count
        entity: customer
        window: 7 days
saved_queries:
  - name: by_region
    query_params:
      metrics: [revenue]
      group_by: ["Dimension('customer__region')", "TimeDimension('metric_time', 'day')"]
      where: ["{{ Dimension('order__status') }} = 'paid'"]
""",
}
OF_REVENUE = {"metric.revenue", "metric.profit", "metric.margin", "metric.paid_revenue"} | {
    *("metric.so_far", "saved_query.by_region", "semantic_model.orders"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("layer") / "tiny"
    tiny_project.write(folder, FILES)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def compiled(folder: Path, name: str, **edited: str) -> Project:
    """The project with some files edited, as dbt compiles it."""
    files = {file: edited.get(Path(file).stem, text) for file, text in FILES.items()}
    tiny_project.write(folder, files)
    assert tiny_project.dbt(folder, "compile", "--target-path", name, "--no-partial-parse")
    return read_project(folder / name)


@pytest.fixture(scope="module")
def base(folder: Path) -> Project:
    return compiled(folder, "base")


def moved(base: Project, head: Project) -> set[str]:
    return {u.replace(".tiny.", ".") for u in compare(base, head).changed if u.startswith(SEMANTIC)}


def test_all_of_it_is_followed(base: Project) -> None:
    seen = analyse(base)
    assert {
        u: str(n.reason)
        for u, n in seen.nodes.items()
        if u.startswith(SEMANTIC) and n.status != "analysed"
    } == {}
    assert sum(u.startswith("metric.") for u in seen.nodes) == 10
    read = {
        (e.parent_id, e.parent_column) for e in seen.edges if e.child_id == "metric.tiny.so_far"
    }
    assert ("model.tiny.days", "date_day") in read


def test_an_edit_reaches_who_reads_it(base: Project, folder: Path) -> None:
    head = compiled(folder, "amount", orders=ORDERS.replace("3.5 as amount", "4.5 as amount"))
    assert moved(base, head) == OF_REVENUE
    assert gate(base, head).decision != "BLOCKED"
    people = FILES["models/customers.sql"].replace("'north'", "'south'")
    assert moved(base, compiled(folder, "region", customers=people)) == {
        *("semantic_model.customers", "metric.northern", "saved_query.by_region"),
    }


def test_a_column_that_is_read_is_not_taken_away(base: Project, folder: Path) -> None:
    head = compiled(folder, "gone", orders=ORDERS.replace("1.5 as cost, ", ""))
    report = gate(base, head)
    assert report.decision == "BLOCKED"
    assert {f.unique_id for f in report.findings if f.level == "block"} == {
        "semantic_model.tiny.orders"
    }
    breaking = {a.unique_id for a in report.affected if a.severity == "breaking"}
    assert breaking == {
        *("semantic_model.tiny.orders", "metric.tiny.costs"),
        *("metric.tiny.profit", "metric.tiny.margin"),
    }


def test_a_dimension_that_is_asked_for_is_not_taken_away(base: Project, folder: Path) -> None:
    """dbt does not look for what filters ask for."""
    layer = FILES["models/layer.yml"].replace("      - {name: status, type: categorical}\n", "")
    report = gate(base, compiled(folder, "dimension", layer=layer))
    assert {f.unique_id: f.reason.message for f in report.findings if f.level == "block"} == {
        "metric.tiny.paid_revenue": "cannot find dimension order__status",
        "saved_query.tiny.by_region": "cannot find dimension order__status",
    }
