"""The agent stories of docs/agents.md without a model: a client of the SDK calls the tools that an agent would call.

    python integration_tests/agent_stories.py

A server of its own is started over stdio, on an empty folder that is removed at the end; no dbt project is needed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

WAREHOUSE = {
    "pipelines": [
        {
            "name": "customer_360",
            "schedule": "daily at 6am",
            "steps": [
                *("api:crm", "table:raw_customers", "table:customers_clean", "table:customer_360"),
                *("model:churn", "table:churn_risk_scores"),
            ],
            "transformations": [
                *("CRM API pulls customers", "cleaned and deduplicated"),
                *("joined with order history and NPS scores", "features for churn", "scored"),
            ],
        },
        {
            "name": "revenue",
            "schedule": "hourly",
            "steps": [
                *("api:stripe", "table:raw_transactions", "table:revenue_daily"),
                "dashboard:revenue_dashboard",
            ],
            "transformations": [
                *("payment events", "aggregated by day", "MTD, QTD and YTD rollups"),
            ],
        },
    ],
    "flows": [
        {
            "source": "table:customers_clean",
            "target": "dashboard:executive_kpis",
            "transformation": "active customers",
            "columns": ["customer_id:active_customers"],
        },
        {
            "source": "table:customers_clean",
            "target": "table:customer_360",
            "transformation": "joined with order history and NPS scores",
            "columns": ["customer_id"],
        },
        {"source": "table:raw_events_v1", "target": "table:session_events"},
        {"source": "table:raw_events_v1", "target": "table:session_metrics"},
    ],
}
JOBS = {
    "sql": [
        {
            "sql": "insert into orders_clean select order_id, customer_id, amount_cents / 100.0 as amount_usd, created_at "
            "from raw_orders where amount_cents > 0 and customer_id is not null",
            "transformation": "Clean and normalize raw orders",
        },
        {
            "sql": "insert into customer_order_summary select c.customer_id, c.email, count(o.order_id) as total_orders, "
            "sum(o.amount_usd) as lifetime_value from orders_clean o join customers c on o.customer_id = c.customer_id "
            "group by c.customer_id, c.email",
            "transformation": "Aggregate customer order history",
        },
    ]
}

STORIES: Sequence[tuple[str, Sequence[tuple[str, dict[str, Any]]]]] = (
    (
        "Register our nightly warehouse pipelines. What depends on raw_customers?",
        [("register", WAREHOUSE), ("trace", {"name": "table:raw_customers"})],
    ),
    (
        "Rename customer_id in customers_clean to cust_id, for naming consistency.",
        [("impact", {"name": "table:customers_clean", "rename": {"customer_id": "cust_id"}})],
    ),
    (
        "Decommission raw_events_v1, all consumers should have migrated to v2.",
        [("impact", {"name": "table:raw_events_v1", "deprecate": True})],
    ),
    (
        "Where does the data in revenue_dashboard ultimately come from?",
        [("trace", {"name": "revenue_dashboard", "direction": "upstream"})],
    ),
    (
        "The ML team wants to add a flow from customer_360 to model:churn_v3.",
        [
            (
                "register",
                {
                    "flows": [
                        {
                            "source": "table:customer_360",
                            "target": "model:churn_v3",
                            "transformation": "churn predictions",
                        }
                    ]
                },
            )
        ],
    ),
    (
        "Generate a Mermaid diagram of customer_360 in both directions.",
        [("trace", {"name": "table:customer_360", "direction": "both", "format": "mermaid"})],
    ),
    (
        "How risky would it be to change the schema of raw_transactions?",
        [("impact", {"name": "table:raw_transactions", "remove": True})],
    ),
    (
        "Capture the lineage of these ETL jobs. What is lifetime_value computed from?",
        [
            ("register", JOBS),
            (
                "trace",
                {"name": "table:customer_order_summary.lifetime_value", "direction": "upstream"},
            ),
        ],
    ),
    (
        "Add a new required column to orders_clean: should we proceed?",
        [
            (
                "impact",
                {
                    "name": "table:orders_clean",
                    "add": {"currency": "string"},
                    "required": ["currency"],
                },
            )
        ],
    ),
)
"""What somebody asks, and the calls that answer it."""


async def play(client: Client) -> None:
    """Ask everything, one after the other."""
    for question, calls in STORIES:
        print(f"\nQ: {question}")
        for tool, arguments in calls:
            shown = json.dumps(arguments)
            print(f"   {tool} {shown if len(shown) < 160 else shown[:157] + '...'}")
            answer = await client.call_tool(tool, arguments)
            if answer.is_error or answer.structured_content is None:
                raise SystemExit(f"{tool} was refused: {answer.content}")
            values = answer.structured_content
            if brief := values.get("brief"):
                print(f"   DECISION: {brief['decision']}")
                print(f"   RISK: {brief['risk'].upper()}")
                print(f"   AFFECTED SYSTEMS: {brief['affected_systems']}")
                print(f"   REASON: {brief['reason']}")
                print(f"   RECOMMENDATION: {brief['recommendation']}")
            else:
                print(f"   {values['verdict']}")
            for line in values["data"].get("lines", ()):
                print(f"     {line}")
            if not values["complete"]:
                print(f"   not complete: {values['truncated'] or values['not_analysed']}")


async def main() -> None:
    """Start a server on an empty folder, and play."""
    with tempfile.TemporaryDirectory() as folder:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "dbt_ripple", "mcp", "--project-dir", folder, "--allow-writes"],
            env={**os.environ},
        )
        async with Client(stdio_client(server)) as client:
            await play(client)


if __name__ == "__main__":
    anyio.run(main)
