"""What is sent to the REST API, and what it answers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

DEPTH: Final = 10
MOST_STEPS: Final = 100
MOST_NODES: Final = 2_000
"""Nodes of one answer; further ones are left out, which the answer says."""

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
_Long = Annotated[str, msgspec.Meta(max_length=100_000)]


class Asset(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An asset of a pipeline, as it is registered.

    Attributes:
        asset_type: a type that `ripple_assets.yml` knows, or a word that stands for one (``airflow``).
        name: of the asset, without blanks.
        source_ref: where it is defined: a file, an address, a name in its system.
        upstream_assets: what it reads: names or ids of assets, or nodes of dbt.
        sql: the SQL that it runs, which is followed column by column.
        dialect: of the SQL; by default the project's.
    """

    asset_type: _Text
    name: _Text
    source_ref: _Text | None = None
    upstream_assets: Annotated[list[_Text], msgspec.Meta(max_length=1_000)] = []
    owner: _Text | None = None
    description: _Long | None = None
    schedule: _Text | None = None
    tags: Annotated[list[_Text], msgspec.Meta(max_length=100)] = []
    sql: _Long | None = None
    dialect: _Text | None = None


class RegisteredAsset(msgspec.Struct, kw_only=True):
    """An asset that is registered.

    Attributes:
        id: by which it is asked for.
        upstream_assets: the ids of what it reads.
        kept_in: where it is written down: the assets file, or ``dbt`` of a node that dbt knows already.
        change: what became of the file's entry.
    """

    id: str
    asset_type: str
    name: str
    source_ref: str | None
    upstream_assets: list[str]
    kept_in: str
    change: Literal["added", "shown again", "back", "known to dbt"]


class TreeNode(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One node of the graph, with what hangs below it.

    Attributes:
        kinds: how a column depends on the one above it; only of columns.
        repeated: what follows it is shown where it comes first.
    """

    id: str
    name: str
    asset_type: str
    kinds: list[str] = []
    repeated: bool = False
    upstream: list[TreeNode] = []
    downstream: list[TreeNode] = []


class Lineage(msgspec.Struct, kw_only=True):
    """What is upstream or downstream of a node or a column.

    Attributes:
        node_count: how many there are, the one that was asked about included.
        complete: whether the graph has all of them; else its farthest are left out.
    """

    id: str
    direction: Literal["upstream", "downstream", "both"]
    depth: int
    node_count: int
    complete: bool
    graph: TreeNode
