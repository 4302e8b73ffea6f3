"""The column edges of a linked project."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import msgspec

from dbt_ripple.artifacts import Node, referenced_columns
from dbt_ripple.flow.identifiers import fold, fold_stored
from dbt_ripple.flow.ir import KINDS
from dbt_ripple.flow.relation import Deps, Key, PackedDeps, pack_deps, unpack_deps
from dbt_ripple.graph.lineage import ColumnEdge, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker
    from dbt_ripple.graph.relations import LinkedNode

DependsOn = tuple[Sequence[str], Sequence[Deps], Deps]
"""The columns of a relation, what each depends on, and what its rows do."""
ValueEdge = tuple[tuple[str, str], str, str]
"""A column whose value goes on as it is or computed with; the child it reaches, and its column."""

_BITS: Final = {bit: (kind, subtype, masking) for bit, kind, subtype, masking in KINDS}
_VALUE_BITS: Final = sum(bit for bit, kind, _, masking in KINDS if kind == "DIRECT" and not masking)
_edge: Final[Callable[[tuple[str, str, str, str, str, str, bool]], ColumnEdge]] = partial(
    tuple.__new__, ColumnEdge
)
"""Make an edge; there are more of them than of anything else, and this is how they are cheapest."""


class _Kinds(dict[int, list[tuple[str, str, bool]]]):
    """A mask of kinds -> OpenLineage type, subtype and masking of each, told once per mask."""

    def __missing__(self, mask: int) -> list[tuple[str, str, bool]]:
        kinds = self[mask] = [kind for bit, kind in _BITS.items() if mask & bit]
        return kinds


_KINDS: Final = _Kinds()


def edges_of_deps(deps: Deps, child: str, column: str) -> list[ColumnEdge]:
    """The edges into a column of a node, or its rows."""
    return [
        _edge((parent, parent_column, child, column, kind, subtype, masking))
        for (parent, parent_column), mask in deps.items()
        if parent != child
        for kind, subtype, masking in _KINDS[mask]
    ]


_T = TypeVar("_T")


class Edges(Sequence[ColumnEdge], Generic[_T]):
    """The edges into every relation and exposure, made when they are first asked for.

    Whoever selects tests asks for few of them, and there are very many.

    Args:
        nodes: relations, and what says what each depends on.
        opened: what it says.
        exposures: the edges into exposures.
    """

    def __init__(
        self,
        nodes: Mapping[str, _T],
        opened: Callable[[str, _T], DependsOn],
        exposures: list[ColumnEdge],
    ) -> None:
        self.nodes = nodes
        self.opened = opened
        self.exposures = exposures
        self._made: list[ColumnEdge] | None = None

    def all(self) -> list[ColumnEdge]:
        """All of them."""
        if self._made is None:
            self._made = [*self.into(self.nodes), *self.exposures]
            self.nodes = {}  # what they are made of is large
        return self._made

    def into(self, nodes: Container[str]) -> list[ColumnEdge]:
        """Those into some relations."""
        if self._made is not None:
            return [edge for edge in self._made if edge[2] in nodes]
        edges: list[ColumnEdge] = []
        for unique_id, how in self.nodes.items():
            if unique_id in nodes:
                columns, deps, rows = self.opened(unique_id, how)
                for name, own in zip(columns, deps, strict=True):
                    for (parent, column), mask in own.items():  # as `edges_of_deps`, without a call
                        if parent != unique_id:
                            for kind, subtype, masking in _KINDS[mask]:
                                fields = (parent, column, unique_id, name, kind, subtype, masking)
                                edges.append(_edge(fields))
                edges += edges_of_deps(rows, unique_id, ROWS)
        return edges

    def values_into(self, nodes: Container[str] | None) -> list[ValueEdge]:
        """As `value_edges`, without making the others."""
        if self._made is not None:
            return value_edges(self._made, nodes)
        edges: list[ValueEdge] = []
        for unique_id, how in self.nodes.items():
            if nodes is None or unique_id in nodes:
                columns, deps, rows = self.opened(unique_id, how)
                for name, own in zip((*columns, ROWS), (*deps, rows), strict=True):
                    edges += [
                        (key, unique_id, name)
                        for key, mask in own.items()
                        if mask & _VALUE_BITS and key[0] != unique_id
                    ]
        return edges + value_edges(self.exposures, nodes)

    def depend_as_in(self, other: Edges[Any], unique_id: str) -> bool:
        """Whether the columns and rows of a relation depend on the same on both sides.

        No, where that is not at hand any more. What the columns are called is not looked at.
        """
        how, there = self.nodes.get(unique_id), other.nodes.get(unique_id)
        if how is None or there is None:
            return False
        if isinstance(how, msgspec.Raw) and isinstance(there, msgspec.Raw):
            return bool(how == there)
        (_, deps, rows), (_, deps_there, rows_there) = (
            self.opened(unique_id, how),
            other.opened(unique_id, there),
        )
        return rows == rows_there and list(deps) == list(deps_there)

    @overload
    def __getitem__(self, index: int) -> ColumnEdge: ...
    @overload
    def __getitem__(self, index: slice) -> list[ColumnEdge]: ...
    def __getitem__(self, index: int | slice) -> ColumnEdge | list[ColumnEdge]:
        return self.all()[index]

    def __iter__(self) -> Iterator[ColumnEdge]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.all() == list(other)

    def __repr__(self) -> str:
        return repr(self.all())

    __hash__ = None  # type: ignore[assignment]


class WithAssetEdges(Sequence[ColumnEdge]):
    """The edges of a project, and those of its declared assets.

    Args:
        edges: the project's.
        more: those from and into assets.
        place: of each node, one that is behind all that is above it.
        guessed: pairs of an asset and what it writes, where nobody says which columns.
    """

    def __init__(
        self,
        edges: Sequence[ColumnEdge],
        more: Sequence[ColumnEdge],
        place: Mapping[str, int],
        guessed: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.edges = edges
        self.more = more
        self.place = place
        self.guessed = guessed

    def into(self, nodes: Container[str]) -> list[ColumnEdge]:
        """Those into some nodes, each after those that are above it."""
        edges = [*edges_into(self.edges, nodes), *(e for e in self.more if e[2] in nodes)]
        return sorted(edges, key=lambda edge: self.place.get(edge[2], -1))

    @overload
    def __getitem__(self, index: int) -> ColumnEdge: ...
    @overload
    def __getitem__(self, index: slice) -> list[ColumnEdge]: ...
    def __getitem__(self, index: int | slice) -> ColumnEdge | list[ColumnEdge]:
        return list(self)[index]

    def __iter__(self) -> Iterator[ColumnEdge]:
        yield from self.edges
        yield from self.more

    def __len__(self) -> int:
        return len(self.edges) + len(self.more)


def edges_into(edges: Sequence[ColumnEdge], nodes: Container[str]) -> list[ColumnEdge]:
    """The edges into some relations, without making the others."""
    if isinstance(edges, WithAssetEdges):
        return edges.into(nodes)
    if isinstance(edges, Edges):
        return edges.into(nodes)
    return [edge for edge in edges if edge[2] in nodes]


def value_edges(
    edges: Sequence[ColumnEdge], nodes: Container[str] | None = None
) -> list[ValueEdge]:
    """The edges over which a value goes on: DIRECT, and not masked. Rows have theirs, too.

    Args:
        edges: all of them.
        nodes: only those into these nodes.
    """
    if isinstance(edges, WithAssetEdges):
        return value_edges(edges.edges, nodes) + value_edges(edges.more, nodes)
    if isinstance(edges, Edges):
        return edges.values_into(nodes)
    return [
        ((parent, parent_column), child, child_column)
        for parent, parent_column, child, child_column, type_, _, masking in edges
        if type_ == "DIRECT" and not masking and (nodes is None or child in nodes)
    ]


def goes_back(edges: Sequence[ColumnEdge], edge: ColumnEdge) -> bool:
    """Whether an edge closes a cycle: a declared asset writes what it depends on."""
    if not isinstance(edges, WithAssetEdges):
        return False
    return edges.place.get(edge[0], -1) > edges.place.get(edge[2], -1) >= 0


def is_read_whole(node: Node | None) -> bool:
    """Whether who depends on a node is known to read all of it: there is nothing else to it."""
    return node is not None and node.resource_type in ("metric", "saved_query")


def exposure_edges_of(edges: Sequence[ColumnEdge], exposures: Container[str]) -> list[ColumnEdge]:
    """The edges into some exposures, without making any other."""
    if isinstance(edges, WithAssetEdges):
        return exposure_edges_of(edges.edges, exposures)
    candidates = edges.exposures if isinstance(edges, Edges) else edges
    return [edge for edge in candidates if edge[2] in exposures]


def edges_of(linker: Linker, semantic: dict[str, LinkedNode]) -> Edges[LinkedNode]:
    """The edges of a linked project, and of its semantic layer."""
    everything = linker.linked_nodes | semantic
    exposures = [
        edge
        for unique_id, node in linker.project.nodes.items()
        if node.resource_type == "exposure"
        for edge in _exposure_edges(linker, everything, unique_id, node)
    ]
    return Edges(
        everything, lambda _, linked: (linked.analysis.columns, linked.deps, linked.rows), exposures
    )


class PackedEdges(msgspec.Struct, array_like=True):
    """Edges as they are kept: of each node, what its columns and its rows depend on, packed."""

    nodes: dict[str, msgspec.Raw]
    exposures: list[ColumnEdge]


class _PackedNode(msgspec.Struct, array_like=True, gc=False):
    of: list[Key]
    deps: list[PackedDeps]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_PackedNode).decode


def pack_edges(edges: Edges[Any]) -> PackedEdges:
    """Pack edges; what each node depends on, without its columns' names."""
    nodes = {}
    for unique_id, how in edges.nodes.items():
        _, deps, rows = edges.opened(unique_id, how)
        of: dict[Key, int] = defaultdict(count().__next__)
        packed = pack_deps(of, (*deps, rows))
        nodes[unique_id] = msgspec.Raw(_encode(_PackedNode(list(of), packed)))
    return PackedEdges(nodes, edges.exposures)


def unpack_edges(packed: PackedEdges, nodes: Mapping[str, NodeAnalysis]) -> Edges[msgspec.Raw]:
    """Packed edges; ``nodes`` say what the columns are called."""

    def opened(unique_id: str, how: msgspec.Raw) -> DependsOn:
        node = _decode(how)
        *deps, rows = unpack_deps(node.of, node.deps)
        return nodes[unique_id].columns, deps, rows

    return Edges(packed.nodes, opened, packed.exposures)


def _exposure_edges(
    linker: Linker, everything: Mapping[str, LinkedNode], unique_id: str, node: Node
) -> Iterator[ColumnEdge]:
    """A consumer reads the rows of what it depends on, and the columns it is known to read.

    Of a metric and a saved query that is all there is of them: who depends on one reads it.
    """
    declared = referenced_columns(node)
    for declared_parent in linker.project.parents.get(unique_id, ()):
        parent = linker.names.canonical.get(declared_parent, declared_parent)
        linked = everything.get(parent)
        if linked is None:
            continue
        yield ColumnEdge(parent, ROWS, unique_id, ROWS, "DIRECT", "IDENTITY", False)
        if is_read_whole(linker.project.nodes.get(parent)):
            for column in linked.analysis.columns:
                yield ColumnEdge(parent, column, unique_id, column, "DIRECT", "IDENTITY", False)
            continue
        names = {fold_stored(n, linker.dialect): n for n in linked.analysis.columns}
        owners = {
            linker.project.nodes[p].name
            for p in (parent, declared_parent)
            if p in linker.project.nodes
        }
        for entry in declared or ():
            owner, _, column = entry.rpartition(".")
            name = names.get(fold(column, False, linker.dialect))
            if name is not None and (
                not owner or owner in owners or owner in (parent, declared_parent)
            ):
                yield ColumnEdge(parent, name, unique_id, name, "DIRECT", "IDENTITY", False)
