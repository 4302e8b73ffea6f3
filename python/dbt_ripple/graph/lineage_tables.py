"""The lineage tables as plain rows: one struct for each table, one field for each column.

Only this module says what the tables contain. `spark/` derives the Arrow and Spark schemas from
the annotations, and `make tables` writes what the dbt package repeats of them. A column is described
in `models/columns.md`. Every row of a load has its ``snapshot_id``, the first column of each table.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

ROWS: Final = "*rows*"
"""The column name that stands for which rows a relation holds and how often."""


class SnapshotRow(msgspec.Struct, frozen=True):
    """One load. Its row is written last and makes the other tables' rows of the snapshot visible."""

    snapshot_id: str
    project_name: str
    dbt_version: str | None
    dbt_schema_version: str | None
    adapter_type: str | None
    ripple_version: str
    invocation_id: str | None
    generated_at: datetime | None
    loaded_at: datetime
    git_sha: str | None
    target_name: str | None


class NodeRow(msgspec.Struct, frozen=True):
    """One node of the project (any dbt resource type that takes part in lineage).

    ``relation_key`` is what its relation is called, spelled so that two names of one relation are
    equal. A source that a node of its own project builds has none: it is that node.
    """

    snapshot_id: str
    unique_id: str
    name: str
    resource_type: str
    asset_type: str
    package_name: str | None
    path: str | None
    relation_name: str | None
    materialized: str | None
    language: str | None
    description: str | None
    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None
    domain: str | None
    group_name: str | None
    access: str | None
    contract_version: str | None
    contract_enforced: bool
    criticality: str | None
    certified: bool
    canonical: bool
    pii: bool
    public: bool
    key_tested: bool | None
    tags: str
    checksum: str | None
    rows_fingerprint: str | None
    analysis_status: str
    analysis_reason: str | None
    test_fingerprint: str | None
    own_rows_fingerprint: str | None
    relation_key: str | None = None
    label: str | None = None
    typed_fingerprint: str | None = None
    orders_seen: str | None = None
    above_fingerprint: str | None = None
    order_fingerprint: str | None = None
    layout_fingerprint: str | None = None


class ColumnRow(msgspec.Struct, frozen=True):
    """One column of one node."""

    snapshot_id: str
    unique_id: str
    column_name: str
    position: int
    data_type: str | None
    description: str | None
    pii: str | None
    fingerprint: str | None
    expression: str | None
    own_fingerprint: str | None
    is_repeatable: bool | None
    pii_reason: str | None = None


class EdgeRow(msgspec.Struct, frozen=True):
    """One dependency of one node on another, as dbt has it."""

    snapshot_id: str
    parent_id: str
    child_id: str


class ColumnEdgeRow(msgspec.Struct, frozen=True):
    """One column pair with one kind of dependency; ``*rows*`` stands for the row set."""

    snapshot_id: str
    parent_id: str
    parent_column: str
    child_id: str
    child_column: str
    type: str
    subtype: str
    masking: bool


class TestColumnRow(msgspec.Struct, frozen=True):
    """One column (or ``*rows*``) that one test reads."""

    snapshot_id: str
    test_id: str
    unique_id: str
    column_name: str


class RunResultRow(msgspec.Struct, frozen=True):
    """The result of one node in one invocation."""

    snapshot_id: str
    invocation_id: str
    unique_id: str
    status: str
    execution_time: float | None
    started_at: datetime | None
    completed_at: datetime | None
    rows_affected: int | None
    failures: int | None
    message: str | None


class NodeClosureRow(msgspec.Struct, frozen=True):
    """One ancestor of one node; ``depth`` is the length of the shortest path, 0 for itself."""

    snapshot_id: str
    ancestor_id: str
    descendant_id: str
    depth: int


class PiiColumnRow(msgspec.Struct, frozen=True):
    """One column that holds personal data, or would; see :class:`dbt_ripple.graph.pii.PiiColumn`.

    ``path`` is written as one text, its columns joined by ``" > "``.
    """

    snapshot_id: str
    unique_id: str
    column_name: str
    pii: str
    origin: str
    reason: str | None
    source_id: str
    source_column: str
    path: str


class RunHistoryRow(msgspec.Struct, frozen=True):
    """The result of one node in one invocation, recorded by the dbt package when the run ended.

    ``node_id`` is the node that a test is about, and the node itself otherwise; ``row_count`` is
    what was counted of it where that was asked for, and ``null_count`` how many of these rows
    have no value in the tested column. ``compared_days`` is how far back a test compares counts.
    """

    invocation_id: str
    unique_id: str
    project_name: str
    target_name: str
    command: str
    resource_type: str
    name: str
    node_id: str | None
    test_name: str | None
    tags: str | None
    status: str
    execution_time: float | None
    started_at: datetime | None
    completed_at: datetime | None
    rows_affected: int | None
    row_count: int | None
    failures: int | None
    message: str | None
    max_loaded_at: datetime | None
    checksum: str | None
    git_sha: str | None
    recorded_at: datetime
    column_name: str | None = None
    null_count: int | None = None
    compared_days: int | None = None


TABLES: Final[dict[str, type[msgspec.Struct]]] = {
    "nodes": NodeRow,
    "columns": ColumnRow,
    "edges": EdgeRow,
    "column_edges": ColumnEdgeRow,
    "test_columns": TestColumnRow,
    "run_results": RunResultRow,
    "node_closure": NodeClosureRow,
    "pii_columns": PiiColumnRow,
    "snapshots": SnapshotRow,
}
"""Every table with its row type, in the order they are written: ``snapshots`` last, as the commit."""

RECORDED: Final[dict[str, type[msgspec.Struct]]] = {"run_history": RunHistoryRow}
"""Tables that the dbt package's on-run-end macro writes; a load makes them and leaves them alone."""
