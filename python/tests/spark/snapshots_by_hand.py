"""Snapshots of any size for the loader's tests: small, known rows in every table."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbt_ripple.graph.lineage_rows import LineageSnapshot
from dbt_ripple.graph.lineage_tables import (
    TABLES,
    ColumnEdgeRow,
    ColumnRow,
    EdgeRow,
    NodeClosureRow,
    NodeRow,
    PiiColumnRow,
    RunResultRow,
    SnapshotRow,
    TestColumnRow,
)

if TYPE_CHECKING:
    import msgspec

MOMENT = datetime(2026, 11, 20, 12, 30, 15, 123456, tzinfo=UTC)


def snapshot_by_hand(id_: str, nodes: int = 3, edges_a_node: int = 2) -> LineageSnapshot:
    """A snapshot of ``nodes`` nodes; the text holds what quoting could break."""
    names = [f"model.shop.m{number}" for number in range(nodes)]
    rows: dict[str, list[msgspec.Struct]] = {
        "nodes": [
            NodeRow(
                snapshot_id=id_,
                unique_id=name,
                name=name,
                resource_type="model",
                asset_type="dbt_model",
                package_name="shop",
                path=None,
                relation_name=f"`shop`.`{name}`",
                materialized="table",
                language="sql",
                description='It\'s "quoted" \\ ; -- and\nlong, naïve 東京',
                owner=None,
                owner_name=None,
                owner_email=None,
                owner_channel=None,
                domain=None,
                group_name=None,
                access=None,
                contract_version=None,
                contract_enforced=False,
                criticality=None,
                certified=True,
                canonical=False,
                pii=False,
                public=False,
                key_tested=None,
                tags="a,b",
                checksum=None,
                rows_fingerprint="n",
                analysis_status="analysed",
                analysis_reason=None,
                test_fingerprint=None,
                own_rows_fingerprint=None,
            )
            for name in names
        ],
        "columns": [
            ColumnRow(id_, name, "id", 1, "bigint", None, None, "f", None, None, None)
            for name in names
        ],
        "edges": [EdgeRow(id_, a, b) for a, b in itertools.pairwise(names)],
        "column_edges": [
            ColumnEdgeRow(id_, a, f"c{n}", b, f"c{n}", "DIRECT", "IDENTITY", False)
            for a, b in itertools.pairwise(names)
            for n in range(edges_a_node)
        ],
        "test_columns": [TestColumnRow(id_, "test.shop.t", names[0], "*rows*")],
        "run_results": [
            RunResultRow(id_, "i", names[0], "success", 0.25, MOMENT, None, None, None, "ok"),
            RunResultRow(id_, "i", names[-1], "fail", None, None, None, 2**40, 7, None),
        ],
        "node_closure": [NodeClosureRow(id_, name, name, 0) for name in names],
        "pii_columns": [
            PiiColumnRow(id_, name, "id", "pii", "declared", None, name, "id", f"{name}.id")
            for name in names
        ],
        "snapshots": [
            SnapshotRow(
                id_, "shop", "1.11.0", None, "spark", "0.1.0", None, None, MOMENT, None, None
            )
        ],
    }
    return LineageSnapshot(id_, {table: rows[table] for table in TABLES}, None)
