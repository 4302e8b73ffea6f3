"""A linked relation as its readers see it, and columns that are known only by their use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from dbt_ripple.artifacts import Node, Project, catalog_may_contain
from dbt_ripple.flow.data_types import STRUCT_TYPES, Fields, fields_of_type, may_have_fields
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold, fold_stored
from dbt_ripple.flow.ir import IDENTITY, TRANSFORMATION
from dbt_ripple.flow.relation import (
    Deps,
    OutputColumn,
    Relation,
    RowSet,
    UnlistedColumns,
    union,
    unlisted_fp,
)
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.query_cache import Note
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

RELATIONS: Final = frozenset({"model", "seed", "snapshot", "source"})
"""Resource types that are (or stand for) a relation."""


class LinkedNode:
    """A linked node: its own columns, as its children see them."""

    __slots__ = ("analysis", "deps", "relation", "rows")

    def __init__(
        self, analysis: NodeAnalysis, relation: Relation, deps: list[Deps], rows: Deps
    ) -> None:
        self.analysis = analysis
        self.relation = relation
        self.deps = deps
        self.rows = rows


def columns_of_node(
    unique_id: str, names: Iterable[str], fps: Iterable[bytes], dialect: str
) -> list[OutputColumn]:
    """The columns of a node as its children see them: each is the node's own."""
    return [
        OutputColumn(name, fold_stored(name, dialect), fp, {(unique_id, name): IDENTITY})
        for name, fp in zip(names, fps, strict=True)
    ]


def rows_of_node(unique_id: str) -> Deps:
    """What the rows of a node are to its children: its own."""
    return {(unique_id, ROWS): IDENTITY}


def unchanged_relation(unique_id: str, analysed: NodeAnalysis, dialect: str) -> Relation:
    """A relation that is the same on both sides of a comparison, without looking above it."""
    return Relation(
        columns_of_node(
            unique_id, analysed.columns, map(bytes.fromhex, analysed.fingerprints), dialect
        ),
        RowSet.unjoined(
            bytes.fromhex(analysed.rows_fingerprint),
            rows_of_node(unique_id),
            digest(b"unchanged", unique_id.encode()),
            order=bytes.fromhex(analysed.order),
            incidental=bytes.fromhex(analysed.incidental),
        ),
    )


class ColumnDiscoverer(Protocol):
    """Where relations of a project are linked, and columns noted that only their use shows."""

    dialect: str
    linked_nodes: dict[str, LinkedNode]
    notes: dict[Note, None] | None

    def discover(self, linked: LinkedNode, key: str, name: str, fp: bytes, deps: Deps) -> str:
        """Note a column; returns the name it is noted under."""
        ...


class _UnlistedOfNode:
    """Columns of a node that nothing lists. Subclasses say what one is, and what all are."""

    __slots__ = ("linker", "unique_id")

    def __init__(self, linker: ColumnDiscoverer, unique_id: str) -> None:
        self.linker = linker
        self.unique_id = unique_id

    def whole(self) -> Deps:
        """What depends on all of them depends on the node's rows."""
        return {(self.unique_id, ROWS): TRANSFORMATION}


class UnlistedSourceColumns(_UnlistedOfNode):
    """Columns of a source that nothing lists: each is taken as existing once it is read."""

    __slots__ = ("fingerprint", "left")

    def __init__(
        self,
        linker: ColumnDiscoverer,
        unique_id: str,
        fingerprint: bytes,
        left: tuple[bytes, ...] = (),
    ) -> None:
        super().__init__(linker, unique_id)
        self.fingerprint = fingerprint
        self.left = left

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        """Its fingerprint and what it depends on; None where there is no such column."""
        linked = self.linker.linked_nodes[self.unique_id]
        fp = digest(self.fingerprint, key.encode())
        for left in self.left:  # as `wrapped_columns` tells those that something lists
            fp = digest(left, _named(key, fp))
        noted = self.linker.discover(linked, key, name, fp, {})
        if self.linker.notes is not None:
            self.linker.notes[self.unique_id, key, name, noted] = None
        return fp, {(self.unique_id, noted): IDENTITY}

    def fp(self) -> bytes:
        """A fingerprint of all of them."""
        return digest(digest(self.fingerprint, b"*"), *self.left)

    def after(self, left: bytes) -> UnlistedSourceColumns:
        """The same columns, as hooks have left them: told as those are that something lists."""
        return UnlistedSourceColumns(
            self.linker, self.unique_id, self.fingerprint, (*self.left, left)
        )


class UnlistedNodeColumns(_UnlistedOfNode):
    """Columns of a node behind a ``*`` over something unknown: found through its own query."""

    __slots__ = ("by_name", "inner", "wrapped")

    def __init__(
        self,
        linker: ColumnDiscoverer,
        unique_id: str,
        inner: Relation,
        wrapped: bytes,
        *,
        by_name: bool,
    ) -> None:
        super().__init__(linker, unique_id)
        self.inner = inner
        self.wrapped = wrapped
        self.by_name = by_name

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        """Its fingerprint and what it depends on; None where there is no such column."""
        column = self.inner.get(key, name)
        if column is None:
            return None
        fp = column[0]
        if self.wrapped:
            if self.by_name or fp in self.inner.fps:  # see `wrapped_columns`
                fp = _named(key, fp)
            fp = digest(self.wrapped, fp)
        linked = self.linker.linked_nodes[self.unique_id]
        name = self.linker.discover(linked, key, name, fp, column[1])
        return fp, {(self.unique_id, name): IDENTITY}

    def fp(self) -> bytes:
        """A fingerprint of all of them."""
        inner = unlisted_fp(self.inner.unlisted)
        return digest(self.wrapped, inner) if self.wrapped else inner

    def after(self, left: bytes) -> UnlistedNodeColumns:
        """The same columns, as hooks have left them."""
        return UnlistedNodeColumns(
            self.linker, self.unique_id, self.inner, digest(left, self.wrapped), by_name=True
        )


class OpaqueNodeColumns(_UnlistedOfNode):
    """Columns of an opaque node: any of them depends on everything its parents hold."""

    __slots__ = ("deps", "fingerprint")

    def __init__(
        self, linker: ColumnDiscoverer, unique_id: str, fingerprint: bytes, deps: Deps
    ) -> None:
        super().__init__(linker, unique_id)
        self.fingerprint = fingerprint
        self.deps = deps

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        """Its fingerprint and what it depends on; None where there is no such column."""
        linked = self.linker.linked_nodes[self.unique_id]
        # As one that something lists: another column of the node is not known to have its values.
        fp = digest(self.fingerprint, key.encode())
        name = self.linker.discover(linked, key, name, fp, self.deps)
        return fp, {(self.unique_id, name): IDENTITY}

    def fp(self) -> bytes:
        """A fingerprint of all of them."""
        return self.fingerprint

    def after(self, left: bytes) -> OpaqueNodeColumns:
        """The same columns, as hooks have left them."""
        fingerprint = digest(left, self.fingerprint)
        return OpaqueNodeColumns(self.linker, self.unique_id, fingerprint, self.deps)


class OwnPreviousColumns:
    """A node's own previous rows (``this``): no parent, but not nothing (rule 6)."""

    def get(self, key: str, name: str) -> tuple[bytes, Deps] | None:
        """Its fingerprint and what it depends on; None where there is no such column."""
        return digest(b"this", key.encode()), {}

    def fp(self) -> bytes:
        """A fingerprint of all of them."""
        return digest(b"this", b"*")

    def whole(self) -> Deps:
        """What depends on all of them depends on no parent."""
        return {}


def unknown_relation(fingerprint: bytes, rows: Deps) -> Relation:
    """A relation of which any column may be read, and nothing is known but a fingerprint."""
    return Relation(
        [], RowSet.unjoined(fingerprint, rows, fingerprint), unlisted=[OwnPreviousColumns()]
    )


def _named(key: str, fp: bytes) -> bytes:
    """The values of a column as something else has left them, by its name."""
    return digest(b"named", key.encode(), fp)


def wrapped_columns(
    wrapped: bytes, columns: Sequence[OutputColumn], *, by_name: bool
) -> list[OutputColumn]:
    """The fingerprints of columns in which more than a query writes.

    A hook, or a run in the past, writes by name: ``update ... set a = null``. So of two columns that
    the query makes alike neither tells what the other holds, and no longer do they have one
    fingerprint.

    Args:
        wrapped: a fingerprint of all that writes besides the query.
        columns: as the query makes them.
        by_name: whether values are there under a name that the query did not write: under another
            name the same query leaves other values.
    """
    times = Counter(column.fp for column in columns)
    result = []
    for name, key, fp, deps in ((c.name, c.key, c.fp, c.deps) for c in columns):
        own = _named(key, fp) if by_name or times[fp] > 1 else fp
        result.append(OutputColumn(name, key, digest(wrapped, own), deps))
    return result


def after_hooks(linked: LinkedNode, left: bytes, rows: Deps, reason: Reason) -> LinkedNode:
    """A relation as the hooks of other nodes have left it, all of it other than before.

    Args:
        linked: as its own node makes it.
        left: a fingerprint of what these hooks do.
        rows: what they read.
        reason: why it is unknown, where there is no other reason.
    """
    was, analysis = linked.relation, linked.analysis
    relation = Relation(
        wrapped_columns(left, was.columns, by_name=True),
        was.rows.after(digest(left, was.rows.fp), was.rows.deps),
        _after(left, was.unlisted),
        _after(left, was.unresolved),
    )
    analysis.fingerprints = [fp.hex() for fp in relation.fps]
    analysis.rows_fingerprint = relation.rows.fp.hex()
    analysis.reason = analysis.reason or reason
    analysis.introspects = list(dict.fromkeys([*analysis.introspects, *(u for u, _ in rows)]))
    return LinkedNode(analysis, relation, linked.deps, union(linked.rows, rows))


def _after(left: bytes, unlisted: Iterable[UnlistedColumns]) -> list[UnlistedColumns]:
    """Columns that nothing lists, as hooks have left them."""
    return [
        columns.after(left)
        for columns in unlisted
        if isinstance(columns, (UnlistedSourceColumns, UnlistedNodeColumns, OpaqueNodeColumns))
    ]


def digest_of_relation(unique_id: str, relation: Relation) -> bytes | None:
    """A digest of a relation, of all that linking its readers sees.

    What its columns depend on is left out: it is the node's own columns, by name. None where it has
    columns that are found through another query.
    """
    if not all(
        type(columns) is UnlistedSourceColumns
        for columns in (*relation.unlisted, *relation.unresolved)
    ):
        return None
    return digest(
        msgspec.msgpack.encode(
            (
                unique_id,
                relation.names,
                relation.keys,
                relation.fps,
                [columns.fp() for columns in relation.unlisted],
                [columns.fp() for columns in relation.unresolved],
                relation.rows.fp,
                relation.rows.side_key,
                relation.rows.joins,
                relation.fields,
                relation.rows.order,
                relation.rows.incidental,
            )
        )
    )


def why_unreadable(node: Node) -> Reason | None:
    """Why a node has no SQL to read, or None where it has."""
    if node.is_python:
        return Code.PYTHON_MODEL()
    if not node.compiled_code:
        return Code.NOT_COMPILED()
    return None


def topological(project: Project) -> Iterable[str]:
    """Every node after its parents; nodes on a cycle last, in the manifest's order."""
    waiting = {u: len(project.parents.get(u, ())) for u in project.nodes}
    ready = [u for u, n in waiting.items() if n == 0]
    done: dict[str, None] = {}
    while ready:
        following: list[str] = []
        for unique_id in ready:
            done[unique_id] = None
            for child in project.children.get(unique_id, ()):
                waiting[child] -= 1
                if waiting[child] == 0:
                    following.append(child)
        ready = following
    return [*done, *(u for u in project.nodes if u not in done)]


_type_of: Final = attrgetter("type")
STRUCTS_IN_JSON: Final = [f'"{name}'.encode() for name in STRUCT_TYPES]
"""How the type of a struct begins in the JSON of a catalog."""


def struct_fields(linker: Linker, node: Node, fields: dict[str, Fields]) -> dict[str, Fields]:
    """The fields of a relation's columns that are a struct, by the key of the column.

    Args:
        linker: of the project.
        node: the relation.
        fields: those that its query shows.
    """
    types: list[tuple[str, bool, str]] = []
    if catalog_may_contain(linker.catalog, node.unique_id, STRUCTS_IN_JSON):
        listed = linker.catalog.get(node.unique_id, ())
        if structs := {t for t in set(map(_type_of, listed)) if t and may_have_fields(t)}:
            types += [(c.name, True, c.type or "") for c in listed if c.type in structs]
    if node.contract_enforced:
        types += [
            (c.name, bool(c.quote), c.data_type)
            for c in node.columns.values()
            if c.data_type and may_have_fields(c.data_type)
        ]
    for name, quoted, text in types:
        key = fold(name, quoted, linker.dialect)
        fields_read = fields_of_type(text, linker.dialect) if key not in fields else None
        if fields_read is not None:
            fields = {**fields, key: fields_read}
    return fields
