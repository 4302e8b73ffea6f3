"""From what a person types to the node they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt_ripple.artifacts import Metadata, Node, Project, did_you_mean, find_node, read_project
from dbt_ripple.errors import RippleError

FIXTURE = Path(__file__).parent / "fixtures" / "v12_dbt_1_11"


def project_of(*nodes: Node) -> Project:
    return Project(
        target_path="",
        metadata=Metadata(project_name="shop"),
        nodes={node.unique_id: node for node in nodes},
        parents={},
        children={},
        disabled=["model.shop.old"],
    )


def model(name: str, package: str = "shop", **fields: Any) -> Node:
    unique_id = f"model.{package}.{name}"
    return Node(
        **{"unique_id": unique_id, "resource_type": "model", "name": name, "package_name": package}
        | fields
    )


@pytest.mark.parametrize(
    ("text", "unique_id", "column"),
    [
        ("stg_orders", "model.shop.stg_orders", None),
        ("  stg_orders ", "model.shop.stg_orders", None),
        ("STG_ORDERS", "model.shop.stg_orders", None),
        ("model.shop.stg_orders", "model.shop.stg_orders", None),
        ("shop.stg_orders", "model.shop.stg_orders", None),
        ("model:stg_orders", "model.shop.stg_orders", None),
        ("stg_orders.amount", "model.shop.stg_orders", "amount"),
        ("model.shop.stg_orders.amount", "model.shop.stg_orders", "amount"),
        ("stg_orders.address.city", "model.shop.stg_orders", "address.city"),
        ("stg_orders.*rows*", "model.shop.stg_orders", "*rows*"),
        ("dim_customers.v2", "model.shop.dim_customers.v2", None),
        ("dim_customers.v1", "model.shop.dim_customers.v1", None),
        ("dim_customers", "model.shop.dim_customers.v2", None),
        ("dim_customers_v1", "model.shop.dim_customers.v1", None),
        ("dim_customers.v1.amount", "model.shop.dim_customers.v1", "amount"),
        ("dim_customers.amount", "model.shop.dim_customers.v2", "amount"),
        ("orders", "source.shop.raw.orders", None),
        ("raw.orders", "source.shop.raw.orders", None),
        ("source:raw.orders", "source.shop.raw.orders", None),
        ("raw.orders.email", "source.shop.raw.orders", "email"),
        ("raw_orders", "source.shop.raw.orders", None),
        ("raw.raw_orders", "source.shop.raw.orders", None),
        ("daily_revenue_report", "exposure.shop.daily_revenue_report", None),
        ("exposure:daily_revenue_report", "exposure.shop.daily_revenue_report", None),
        ("metric:revenue", "metric.shop.revenue", None),
        ("semantic_model:orders", "semantic_model.shop.orders", None),
        ("countries", "seed.shop.countries", None),
        ("no_negative_amount", "test.shop.no_negative_amount", None),
    ],
)
def test_names(text: str, unique_id: str, column: str | None) -> None:
    node, name_of_column = find_node(read_project(FIXTURE), text)
    assert (node.unique_id, name_of_column) == (unique_id, column)


def test_the_longest_name_wins() -> None:
    project = project_of(model("raw"), model("x"), model("raw.x"))
    assert find_node(project, "raw.x")[0].name == "raw.x"
    assert find_node(project, "raw.y") == (project.nodes["model.shop.raw"], "y")


def test_case_renames_repeated_where_it_must() -> None:
    project = project_of(model("Orders"), model("orders"))
    assert find_node(project, "Orders")[0].name == "Orders"
    with pytest.raises(RippleError, match="2 nodes have this name"):
        find_node(project, "ORDERS")


def test_an_alias_never_hides_a_name() -> None:
    project = project_of(model("orders"), model("stg", alias="orders"))
    assert find_node(project, "orders")[0].name == "orders"


def test_ambiguous_names_list_all() -> None:
    exposure = Node(unique_id="exposure.shop.orders", name="orders", resource_type="exposure")
    project = project_of(model("orders"), model("orders", "pkg"), exposure)
    with pytest.raises(RippleError) as caught:
        find_node(project, "orders.amount")
    assert str(caught.value) == (
        "orders.amount: 3 nodes have this name: exposure.shop.orders, model.pkg.orders, "
        "model.shop.orders; name one by its id"
    )
    assert find_node(project, "exposure:orders")[0] is exposure
    assert find_node(project, "pkg.orders.amount")[1] == "amount"


def test_unknown_names_get_the_nearest() -> None:
    project = project_of(model("stg_orders"), model("fct_orders"), model("zebra"))
    with pytest.raises(RippleError) as caught:
        find_node(project, "fct_order.amount")
    assert str(caught.value).startswith("fct_order.amount: no node of this name in project shop; ")
    assert "did you mean fct_orders" in caught.value.fix
    assert "zebra" not in caught.value.fix
    with pytest.raises(RippleError, match="lists the nodes"):
        find_node(project, "qqqqqqqqqqqqqqqq")
    with pytest.raises(RippleError):
        find_node(project, "")


def test_a_disabled_node_is_said_to_be_disabled() -> None:
    with pytest.raises(RippleError, match=r"model\.shop\.old is disabled"):
        find_node(project_of(), "old")


def test_the_nearest_name_ignores_case_and_keeps_its_kind() -> None:
    names = ["order_total", "x"]
    assert did_you_mean("ORDER_TOTL", names, "see docs") == "did you mean order_total?"
    assert (
        did_you_mean("a_totl", ["a_total"], "", prefix="metric:") == "did you mean metric:a_total?"
    )
    assert did_you_mean("nothing_like", names, "see docs") == "see docs"
