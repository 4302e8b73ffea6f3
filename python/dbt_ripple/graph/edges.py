"""The column edges of a linked project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from dbt_ripple.artifacts import Node, referenced_columns
from dbt_ripple.flow.ir import KINDS
from dbt_ripple.flow.names import fold, fold_stored
from dbt_ripple.flow.relation import Deps
from dbt_ripple.graph.analysis import ColumnEdge
from dbt_ripple.graph.linker import Linker
from dbt_ripple.graph.rows import ROWS

_BITS: Final = {bit: (kind, subtype, masking) for bit, kind, subtype, masking in KINDS}
_edge: Final[Callable[[tuple[str, str, str, str, str, str, bool]], ColumnEdge]] = partial(
    tuple.__new__, ColumnEdge
)
"""Make an edge; there are more of them than of anything else, and this is how they are cheapest."""


class _Kinds(dict[int, list[tuple[str, str, bool]]]):
    """A mask of kinds -> OpenLineage type, subtype and masking of each, told once per mask."""

    def __missing__(self, mask: int) -> list[tuple[str, str, bool]]:
        kinds = self[mask] = [said for bit, said in _BITS.items() if mask & bit]
        return kinds


_KINDS: Final = _Kinds()


def _edges(deps: Deps, child: str, column: str) -> list[ColumnEdge]:
    return [
        _edge((parent, parent_column, child, column, kind, subtype, masking))
        for (parent, parent_column), mask in deps.items()
        if parent != child
        for kind, subtype, masking in _KINDS[mask]
    ]


def edges_of(linker: Linker) -> list[ColumnEdge]:
    """The edges into every relation and exposure."""
    edges: list[ColumnEdge] = []
    for unique_id, known in linker.known.items():
        for name, deps in zip(known.analysis.columns, known.deps, strict=True):
            edges += _edges(deps, unique_id, name)
        edges += _edges(known.rows, unique_id, ROWS)
    for unique_id, node in linker.project.nodes.items():
        if node.resource_type == "exposure":
            edges.extend(_exposure_edges(linker, unique_id, node))
    return edges


def _exposure_edges(linker: Linker, unique_id: str, node: Node) -> Iterator[ColumnEdge]:
    """A consumer reads the rows of what it depends on, and the columns it is known to read."""
    said = referenced_columns(node)
    for declared_parent in linker.project.parents.get(unique_id, ()):
        parent = linker.names.canonical.get(declared_parent, declared_parent)
        known = linker.known.get(parent)
        if known is None:
            continue
        yield ColumnEdge(parent, ROWS, unique_id, ROWS, "DIRECT", "IDENTITY", False)
        names = {fold_stored(n, linker.dialect): n for n in known.analysis.columns}
        owners = {
            linker.project.nodes[p].name
            for p in (parent, declared_parent)
            if p in linker.project.nodes
        }
        for entry in said or ():
            owner, _, column = entry.rpartition(".")
            name = names.get(fold(column, False, linker.dialect))
            if name is not None and (
                not owner or owner in owners or owner in (parent, declared_parent)
            ):
                yield ColumnEdge(parent, name, unique_id, name, "DIRECT", "IDENTITY", False)
