"""What ``diff`` says of the semantic layer: what was edited in it, in its own words."""

from __future__ import annotations

from hand_made import Node
from msgspec.structs import replace
from semantic_world import COLUMNS, filtered, shop

from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import NodeDiff, diff
from dbt_ripple.rendering.diff import name_of


def differs(head: dict[str, str] | None = None, edit: object = None) -> dict[str, NodeDiff]:
    base, other = shop(), shop(head, edit=edit)  # type: ignore[arg-type]
    differences = diff(compare(base, other))
    return {name_of(node.unique_id, other, base): node for node in differences.nodes}


def test_what_is_only_below_an_edit_is_said_to_be() -> None:
    diff = differs({**COLUMNS, "cost": "cost + 1"})
    assert {name: node.change for name, node in diff.items()} == {
        "orders": "changed",
        "semantic_model:orders": "downstream",
        "metric:costs": "downstream",
        "metric:profit": "downstream",
        "metric:margin": "downstream",
    }


def test_an_edited_measure_shows_both_expressions() -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer["semantic_model.orders"].measures[0]["expr"] = "amount * 2"

    diff = differs(edit=edit)
    (column,) = diff["semantic_model:orders"].columns
    assert (column.change, column.before, column.after) == (
        "redefined",
        "sum(amount)",
        "sum(amount * 2)",
    )
    assert diff["metric:revenue"].change == "downstream"


def test_an_edited_filter_shows_both() -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer["metric.paid_orders"] = replace(
            layer["metric.paid_orders"],
            filter=filtered("{{ Dimension('order__status') }} = 'done'"),
        )

    node = differs(edit=edit)["metric:paid_orders"]
    (column,) = node.columns
    assert node.change == "changed"
    assert (column.before or "").endswith("= 'paid'")
    assert (column.after or "").endswith("= 'done'")


def test_a_dimension_that_goes_is_named() -> None:
    def edit(layer: dict[str, Node]) -> None:
        layer["semantic_model.orders"].entities.pop(0)

    (column,) = differs(edit=edit)["semantic_model:orders"].columns
    assert (column.name, column.change, column.before) == ("order", "removed", "id")
