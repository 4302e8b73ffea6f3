"""A script that registers a pipeline by HTTP and asks about it, as people write one: it knows the base URL alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import requests

PIPELINE: tuple[tuple[str, str, str, list[str]], ...] = (
    ("table", "raw_orders", "postgres://warehouse/raw/orders", []),
    ("dbt_model", "stg_orders", "models/staging/stg_orders.sql", ["raw_orders"]),
    ("dbt_model", "fct_orders", "models/marts/fct_orders.sql", ["stg_orders"]),
    ("dag", "daily_revenue_report", "dags/daily_revenue_report.py", ["fct_orders"]),
    ("spark_job", "customer_ltv_model", "jobs/customer_ltv.py", ["fct_orders"]),
)
CHANGES: list[dict[str, str]] = [
    {"type": "column_rename", "from": "order_total", "to": "total_amount"},
    {"type": "column_drop", "column": "legacy_discount_code"},
]


class Client:
    """Asks a server.

    Args:
        base: its URL.
        token: that it wants.
    """

    def __init__(self, base: str, token: str = "") -> None:
        self.base = base
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def register(self, asset_type: str, name: str, source_ref: str, upstream: list[str]) -> Any:
        body: dict[str, Any] = {
            "asset_type": asset_type,
            "name": name,
            "source_ref": source_ref,
            "upstream_assets": upstream,
        }
        answer = requests.post(
            f"{self.base}/lineage/trace", headers=self.headers, json=body, timeout=60
        )
        if answer.status_code == 422:
            raise ValueError(f"invalid asset: {answer.json()['detail']}")
        assert answer.status_code == 201, answer.text
        return answer.json()

    def lineage(self, asset_id: str, direction: str = "downstream", depth: int = 10) -> Any:
        query: dict[str, Any] = {"direction": direction, "depth": depth}
        answer = requests.get(
            f"{self.base}/lineage/{asset_id}", headers=self.headers, params=query, timeout=60
        )
        if answer.status_code == 404:
            raise LookupError(answer.json()["detail"])
        assert answer.status_code == 200, answer.text
        return answer.json()

    def impact(self, asset_id: str, changes: list[dict[str, str]]) -> Any:
        body: dict[str, Any] = {"asset_id": asset_id, "proposed_changes": changes}
        answer = requests.post(
            f"{self.base}/lineage/impact", headers=self.headers, json=body, timeout=60
        )
        if answer.status_code == 400:
            raise ValueError(f"malformed change: {answer.json()['detail']}")
        assert answer.status_code == 200, answer.text
        return answer.json()


def drawn(node: Any, indent: int = 0) -> Iterator[str]:
    """A graph as the lines of a tree."""
    branch = "└── " if indent else ""
    yield f"{' ' * indent}{branch}[{node.get('asset_type', 'unknown').upper()}] {node['name']}"
    for child in node.get("downstream", []):
        yield from drawn(child, indent + 1)


def reported(report: Any) -> Iterator[str]:
    """The lines of a report."""
    yield f"Risk level: {report['risk_level'].upper()}"
    yield f"Affected assets: {report['affected_count']}"
    for affected in report["affected_assets"]:
        yield f"{affected['name']} ({affected['asset_type']})"
        yield f"  References: {', '.join(affected['affected_references'])}"
        yield f"  Severity: {affected['severity']}"


def is_safe(report: Any) -> bool:
    """Whether nothing breaks: the gate of a migration."""
    return not [a for a in report["affected_assets"] if a["severity"] == "breaking"]
