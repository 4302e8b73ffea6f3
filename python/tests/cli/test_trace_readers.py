"""Who reads one column, to ``dbt-ripple trace``: who does, who may, and the tests."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import check, node
from semantic_world import ORDERS, shop

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.rendering.escaping import line as printed
from dbt_ripple.rendering.trace import column_view, render

FEED = node("exposure.p.feed", None, ORDERS, type="dashboard")
LISTED = node(
    "exposure.p.listed", None, ORDERS, type="dashboard", meta={"referenced_columns": ["note"]}
)
FORECAST = node(
    "model.p.forecast", None, ORDERS, language="python", original_file_path="models/forecast.py"
)
STRANGE = node("model.p.strange", "select from from", ORDERS)
OVER = node("model.p.over", "select any_of_it from s.forecast", "model.p.forecast")
NOT_NULL = check("not_null_note", "select note from s.orders where note is null", ORDERS)
OTHER = check("not_null_cost", "select cost from s.orders where cost is null", ORDERS)
ODD = check("odd", "select from from", ORDERS)
UNIT = node(
    "unit_test.p.adds_up",
    None,
    ORDERS,
    model="orders",
    given=[{"input": "source('raw', 'sales')", "rows": [{"amount": 1}]}],
    expect={"rows": [{"note": "a"}]},
)
EVERYBODY = (FEED, LISTED, FORECAST, STRANGE, OVER, NOT_NULL, OTHER, ODD, UNIT)


def traced(
    column: str, style: str, *more: Node, tests: bool = False, direction: Any = "downstream"
) -> Any:
    project: Project = shop(more=more)
    root = project.nodes[ORDERS]
    view = column_view(project, analyse(project), root, column, direction, None, tests)
    if style == "json":
        return view.document
    lines = render(view, style)
    return [printed(line) for line in ([lines] if isinstance(lines, str) else lines)]


def test_who_may_read_a_column_is_shown_so() -> None:
    lines = traced("note", "tree", *EVERYBODY)
    assert lines == [
        "DBT_MODEL orders.note",
        "├── DBT_MODEL forecast (rows)  may read",
        "│   └── DBT_MODEL over (rows)  DIRECT IDENTITY",
        "├── DBT_MODEL forecast.any_of_it  may read",
        "│   └── DBT_MODEL over.any_of_it  DIRECT IDENTITY",
        "├── DBT_MODEL strange (rows)  may read",
        "├── DASHBOARD feed (rows)  may read",
        "└── DASHBOARD listed.note  DIRECT IDENTITY",
    ]


def test_tests_are_shown_where_they_are_asked_for() -> None:
    lines = traced("note", "tree", NOT_NULL, OTHER, ODD, UNIT, tests=True)
    assert lines == [
        "DBT_MODEL orders.note",
        "├── TEST not_null_note  tests it",
        "├── TEST odd  may read",
        "└── UNIT_TEST adds_up  tests it",
    ]
    assert traced("note", "tree", NOT_NULL, OTHER, ODD, UNIT) == [
        "DBT_MODEL orders.note",
        "└── (nothing downstream; left out: tests)",
    ]


def test_json_says_of_each_whether_it_is_known() -> None:
    document = traced("note", "json", *EVERYBODY)
    assert {(n["name"], n["column"]): n.get("may_read", False) for n in document["nodes"]} == {
        ("orders", "note"): False,
        ("forecast", "*rows*"): True,
        ("forecast", "any_of_it"): True,
        ("over", "*rows*"): True,
        ("over", "any_of_it"): True,
        ("strange", "*rows*"): True,
        ("feed", "*rows*"): True,
        ("listed", "note"): False,
    }
    assert {(e["to"], e.get("may_read", False)) for e in document["edges"]} == {
        ("model.p.forecast", True),
        ("model.p.over", False),
        ("model.p.strange", True),
        ("exposure.p.feed", True),
        ("exposure.p.listed", False),
    }


def test_what_reads_by_way_of_who_may_read_it_may_read_it() -> None:
    columns = ["any_of_it"]
    python = node(
        "model.p.forecast",
        None,
        ORDERS,
        language="python",
        original_file_path="models/forecast.py",
        columns=columns,
    )
    nodes = {
        n["name"]: n.get("may_read", False) for n in traced("note", "json", python, OVER)["nodes"]
    }
    assert nodes == {"orders": False, "forecast": True, "over": True}


def test_a_picture_has_a_dashed_arrow_to_who_may_read_it() -> None:
    text = "\n".join(traced("note", "mermaid", FEED, LISTED))
    assert '-.->|"may read"|' in text
    assert '-->|"DIRECT IDENTITY"|' in text


def test_markdown_says_it() -> None:
    text = "\n".join(traced("note", "markdown", FEED))
    assert "DASHBOARD `feed (rows)` (may read)" in text


@pytest.mark.parametrize("column", ["amount", "status"])
def test_the_semantic_layer_is_part_of_a_trace(column: str) -> None:
    lines = traced(column, "tree")
    assert (
        lines
        == {
            "amount": [
                "DBT_MODEL orders.amount",
                "└── SEMANTIC_MODEL orders.revenue  DIRECT AGGREGATION",
                "    ├── METRIC revenue  DIRECT AGGREGATION",
                "    │   ├── METRIC profit  DIRECT TRANSFORMATION",
                "    │   │   └── METRIC margin  DIRECT TRANSFORMATION",
                "    │   ├── METRIC margin  DIRECT TRANSFORMATION",
                "    │   ├── METRIC orders_of_spenders (rows)  INDIRECT FILTER",
                "    │   └── SAVED_QUERY by_region.revenue  DIRECT IDENTITY",
                "    └── METRIC revenue_so_far  DIRECT AGGREGATION",
            ],
            "status": [
                "DBT_MODEL orders.status",
                "└── SEMANTIC_MODEL orders.status  DIRECT IDENTITY",
                "    ├── METRIC paid_orders (rows)  INDIRECT FILTER",
                "    └── SAVED_QUERY paid (rows)  INDIRECT FILTER",
            ],
        }[column]
    )


def test_upstream_of_a_metric() -> None:
    project = shop()
    root = project.nodes["metric.p.costs"]
    view = column_view(project, analyse(project), root, "costs", "upstream", None)
    assert [printed(line) for line in render(view, "tree")] == [
        "METRIC costs",
        "└── SEMANTIC_MODEL orders.costs  DIRECT AGGREGATION",
        "    └── DBT_MODEL orders.cost  DIRECT AGGREGATION, INDIRECT CONDITIONAL",
        "        └── TABLE sales.cost  DIRECT IDENTITY",
    ]


def test_a_column_that_is_computed_says_how() -> None:
    daily = node(
        "model.p.daily",
        "with a as (select note, amount / 100 as total from s.orders) "
        "select note, sum(total) as total from a group by note",
        ORDERS,
    )
    document = traced("amount", "json", daily)
    expressions = {
        n["unique_id"]: n.get("expression") for n in document["nodes"] if n["column"] == "total"
    }
    assert expressions == {"model.p.daily": "SUM(amount / 100)"}
    [line] = [line for line in traced("amount", "tree", daily) if "daily.total" in line]
    assert line.endswith("DIRECT AGGREGATION  = SUM(amount / 100)")
    [line] = [line for line in traced("amount", "markdown", daily) if "daily.total" in line]
    assert line.endswith("(DIRECT AGGREGATION): `SUM(amount / 100)`")
