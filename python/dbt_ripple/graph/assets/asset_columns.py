"""Columns and rows of a declared asset while they are put together, and the relation that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dbt_ripple.artifacts.assets_file import KINDS, ColumnFlow
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import (
    AGGREGATION,
    CONDITIONAL,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    MASK_SHIFT,
    SORT,
    TRANSFORMATION,
    WINDOW,
)
from dbt_ripple.flow.relation import (
    Deps,
    Relation,
    RowSet,
    merge,
    through,
)
from dbt_ripple.graph.lineage import NodeAnalysis, Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import (
    LinkedNode,
    columns_of_node,
    rows_of_node,
)
from dbt_ripple.reasons import Reason

_BITS: Final[Mapping[str, int]] = {
    "IDENTITY": IDENTITY,
    "TRANSFORMATION": TRANSFORMATION,
    "AGGREGATION": AGGREGATION,
    "JOIN": JOIN,
    "FILTER": FILTER,
    "GROUP_BY": GROUP_BY,
    "SORT": SORT,
    "WINDOW": WINDOW,
    "CONDITIONAL": CONDITIONAL,
}


def kind_of(flow: ColumnFlow) -> int:
    """The kind of a dependency that a declaration means."""
    word = (flow.transformation or "identity").strip().lower().replace(" ", "_")
    kind, subtype = KINDS.get(word, ("DIRECT", "TRANSFORMATION"))
    bit = _BITS[subtype]
    return bit << MASK_SHIFT if flow.masking and kind == "DIRECT" else bit


@dataclass
class AssetColumnParts:
    """A column while it is put together: what it depends on, and the parts of its fingerprint."""

    name: str
    deps: Deps = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)

    def add(self, fp: bytes, deps: Deps, kind: int = IDENTITY, transformation: str = "") -> None:
        """Add something that it comes of."""
        self.parts.append(digest(b"of", fp, str(kind).encode(), transformation.encode()))
        merge(self.deps, through(kind, deps))


@dataclass
class Columns:
    """The columns and rows of a relation while they are put together, in order."""

    by_name: dict[str, AssetColumnParts] = field(default_factory=dict)
    rows: AssetColumnParts = field(default_factory=lambda: AssetColumnParts(ROWS))

    def column(self, name: str) -> AssetColumnParts:
        """A column, made where there is none."""
        return self.by_name.setdefault(name.lower(), AssetColumnParts(name))


@dataclass
class LinkedAsset:
    """An asset while it is linked.

    Attributes:
        unseen: why not all of it can be followed.
        missing: columns that are certainly not there.
        everything: what is read without its columns.
        into_whole: what is read as a whole for some of what it writes, by unique_id.
        into: what it writes to by its SQL, by unique_id: its own columns by theirs; None where any of them
            may come of all that it reads.
        written_whole: who writes it without its columns.
        texts: of what counts as it is written, because it is not followed.
    """

    own: Columns = field(default_factory=Columns)
    unseen: list[Reason] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    everything: dict[str, None] = field(default_factory=dict)
    into_whole: dict[str, None] = field(default_factory=dict)
    into: dict[str, dict[str, str] | None] = field(default_factory=dict)
    written_whole: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def fingerprint_parts(columns: Columns) -> dict[str, list[bytes]]:
    """The parts of the fingerprint of each column and of the rows, in one order."""
    by_name = {name: sorted(column.parts) for name, column in columns.by_name.items()}
    return {**by_name, ROWS: sorted(columns.rows.parts)}


def as_linked_node(
    unique_id: str,
    own: bytes,
    columns: Columns,
    dialect: str,
    status: Status,
    reason: Reason | None,
) -> LinkedNode:
    """The relation that the columns make, as a linked node; `own` is the asset's own fingerprint."""
    declared = list(columns.by_name.values())
    names = [column.name for column in declared]
    fps = [digest(own, c.name.lower().encode(), *sorted(c.parts)) for c in declared]
    rows_fp = digest(own, b"rows", *sorted(columns.rows.parts))
    side_key = digest(b"leaf", unique_id.encode())
    relation = Relation(
        columns_of_node(unique_id, names, fps, dialect),
        RowSet.unjoined(rows_fp, rows_of_node(unique_id), side_key),
        [UnlistedAssetColumns(unique_id, digest(own, b"rest"))],
    )
    analysis = NodeAnalysis(
        unique_id,
        status,
        reason,
        columns=names,
        fingerprints=[fp.hex() for fp in fps],
        expressions=[None] * len(names),
        rows_fingerprint=rows_fp.hex(),
    )
    return LinkedNode(analysis, relation, [column.deps for column in declared], columns.rows.deps)


class UnlistedAssetColumns:
    """Columns of a relation that nothing lists: each is taken as existing once it is read.

    A name that is listed in another case is that column.
    """

    __slots__ = ("analysed", "fingerprint", "unique_id")

    def __init__(
        self, unique_id: str, fingerprint: bytes, analysed: NodeAnalysis | None = None
    ) -> None:
        self.unique_id = unique_id
        self.fingerprint = fingerprint
        self.analysed = analysed

    def get(self, key: str, name: str) -> tuple[bytes, Deps]:
        """Its fingerprint and what it depends on."""
        if self.analysed is not None:
            for column, fp in zip(self.analysed.columns, self.analysed.fingerprints, strict=False):
                if column.lower() == name.lower():
                    return bytes.fromhex(fp), {(self.unique_id, column): IDENTITY}
        return digest(self.fingerprint, key.encode()), {(self.unique_id, name): IDENTITY}

    def fp(self) -> bytes:
        """A fingerprint of all of them."""
        return digest(self.fingerprint, b"*")

    def whole(self) -> Deps:
        """What depends on all of them depends on the rows."""
        return {(self.unique_id, ROWS): TRANSFORMATION}
