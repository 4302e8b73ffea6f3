"""Declared assets as nodes of a project: their ids, properties and SQL, and the relation that their columns make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Column, Node
from dbt_ripple.artifacts.assets_file import COLLECTED, KINDS, ColumnFlow, DeclaredAsset, Flow
from dbt_ripple.artifacts.paths import FILE
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
from dbt_ripple.flow.relation import Deps, Relation, RowSet, merge, through
from dbt_ripple.flow.statements import KNOWN, Statement
from dbt_ripple.graph.lineage import NodeAnalysis, Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import LinkedNode, columns_of_node, rows_of_node
from dbt_ripple.reasons import Code, Reason

ASSET: Final = "asset"
"""Resource type of a declared asset."""
DATASET: Final = "dataset"
"""Resource type of a relation that is read or written and that nobody declares."""


class AssetLink(NamedTuple):
    """What an asset reads or writes, by its unique_id."""

    unique_id: str
    flow: Flow


@dataclass
class AssetNode:
    """A declared asset, with what its names mean.

    Attributes:
        dialect: its SQL is written in.
        reads: what the declaration says that it reads, in order.
        writes: likewise.
        statements: of its SQL; the reason why there are none where it cannot be read; empty without SQL.
        named: the relations that its SQL names, by their keys.
        gone: what it reads or writes that is there no more, as it is called.
    """

    declared: DeclaredAsset
    dialect: str
    reads: list[AssetLink]
    writes: list[AssetLink]
    statements: list[Statement] | Reason
    named: dict[str, str]
    gone: list[str]

    @property
    def unique_id(self) -> str:
        """Its id in the graph."""
        return self.declared.unique_id

    def sql_targets(self) -> dict[str, str]:
        """The relations its statements write to, by key, without those that end with the script."""
        if isinstance(self.statements, Reason):
            return {}
        return {
            s.writes.key: self.named[s.writes.key]
            for s in self.statements
            if s.writes is not None and s.writes.key in self.named
        }

    def sql_reads(self) -> dict[str, None]:
        """The relations its statements read."""
        if isinstance(self.statements, Reason):
            return {}
        return dict.fromkeys(
            self.named[name.key]
            for s in self.statements
            for name in s.reads
            if name.key in self.named
        )

    def above(self) -> dict[str, None]:
        """All that it reads."""
        return dict.fromkeys([*(link.unique_id for link in self.reads), *self.sql_reads()])

    def below(self) -> dict[str, None]:
        """All that it writes."""
        below = [*(link.unique_id for link in self.writes), *self.sql_targets().values()]
        return dict.fromkeys(below)


def file_of(asset: DeclaredAsset) -> str:
    """The file it is declared in; beside the project only its name. Events have none."""
    if asset.place.startswith(COLLECTED):
        return ""
    file = asset.place.rpartition(":")[0]
    return FILE if file.replace("\\", "/").rpartition("/")[2] == FILE else file


def names_of_node(node: Node) -> set[str]:
    """How a declaration may name a node of dbt besides its unique_id, in lower case."""
    names = {node.name.casefold(), node.display_name.casefold()}
    if node.source_name:
        names.add(f"{node.source_name}.{node.name}".casefold())
    return names


def not_followed(parsed: Sequence[Statement]) -> list[Statement]:
    """The same statements, marked as not followed."""
    return [statement._replace(is_query=False) for statement in parsed]


def is_one_query(parsed: list[Statement] | Reason) -> bool:
    """Whether the SQL of an asset is one SELECT, which writes nothing by itself."""
    return not isinstance(parsed, Reason) and len(parsed) == 1 and parsed[0].is_query


def explained(node: Node, flow: Flow) -> Node:
    """A node with the expressions of its columns, as far as the declaration has them."""
    texts = {
        column_flow.target: text
        for column_flow in flow.columns or ()
        if (text := column_flow.expression or column_flow.transformation) is not None
        and text.lower() not in KINDS
    }
    if not texts:
        return node
    columns = dict(node.columns)
    by_name = {(column.name or key).lower(): key for key, column in columns.items()}
    for target, text in texts.items():
        key = by_name.get(target.lower(), target)
        column = columns.get(key) or Column(name=target)
        columns[key] = msgspec.structs.replace(
            column, more={**(column.more or {}), EXPRESSION: text}
        )
    return msgspec.structs.replace(node, columns=columns)


EXPRESSION: Final = "ripple_transformation"
"""Where `Column.more` has how a column is made, as an asset's declaration says it."""


def declared_expressions(node: Node) -> dict[str, str]:
    """How columns are made, as declared assets say it, by their names in lower case."""
    return {
        (column.name or key).lower(): str(text)
        for key, column in node.columns.items()
        if column.more and (text := column.more.get(EXPRESSION))
    }


def text_of(asset: DeclaredAsset) -> str:
    """All that a declaration says of the data, as text: without owner and schedule."""
    definition = msgspec.structs.replace(
        asset,
        place="",
        description="",
        owner={},
        tags=(),
        schedule=None,
        meta={},
        last_seen=None,
        runs=(),
        assertions=(),
        columns=tuple((c.name, c.type) for c in asset.columns),
        reads=tuple(msgspec.structs.replace(f, place="") for f in asset.reads),
        writes=tuple(msgspec.structs.replace(f, place="") for f in asset.writes),
    )
    return msgspec.json.encode(definition).decode()


def dialect_note(asset: AssetNode) -> Reason | None:
    """Why SQL that can be parsed is not followed: the rules of its dialect are not implemented here."""
    if asset.declared.sql is None or asset.dialect in KNOWN:
        return None
    return Code.DIALECT_NOT_KNOWN(dialect=asset.dialect)


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
