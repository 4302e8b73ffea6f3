"""Where personal data goes: the columns that are declared to hold it, and those it reaches.

It follows the value: over DIRECT edges that do not mask, from declared columns to whatever is
computed from them. So a hash, a count, a condition and a join key stop it; ``min``, ``max``,
``first``, ``collect_list`` and arithmetic do not, for their result can be somebody's value. What an
opaque node does with its parents' columns cannot be seen: each of its columns is taken to hold
what any of theirs holds.

What is not seen: personal data that nobody declared, and a value told through a condition
(``case when email = 'x' then 1 end``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Literal

import msgspec

from dbt_ripple.artifacts import Column, Project, column_pii, declassified, referenced_columns
from dbt_ripple.graph.column_edges import (
    Edges,
    ValueEdge,
    edges_into,
    exposure_edges_of,
    value_edges,
)
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.traversal import Vertex

Origin = Literal["declared", "inherited", "declassified"]

SEPARATOR: Final = " > "
"""Between the columns of a path, where it is written as one text."""

BUILT: Final = frozenset({"model", "seed", "snapshot"})
"""Resource types that the project itself makes."""


class PiiColumn(msgspec.Struct, frozen=True):
    """A column that holds personal data, or would if it were not declassified.

    Attributes:
        unique_id: of its node; an exposure has the columns it reads.
        column: its name, as in the table ``columns``.
        pii: which kind: what ``meta.pii`` says (``email``, ``phone``, ...), ``pii`` where it is only
            flagged; of an inherited one the kind of its source.
        origin: ``declared`` on the column itself, ``inherited`` from another, or ``declassified``:
            reached, and declared to hold none, with a reason; nothing inherits from it.
        reason: of a declassified column, ``meta.pii_reason``.
        source_id: node of the nearest declared column it comes from; itself when declared.
        source_column: that column.
        path: from that column to this one, both included, as ``unique_id.column``; no other path
            from a declared column is shorter.
    """

    unique_id: str
    column: str
    pii: str
    origin: Origin
    reason: str | None
    source_id: str
    source_column: str
    path: tuple[str, ...]


def pii_columns(project: Project, analysis: Analysis) -> list[PiiColumn]:
    """Every column that holds personal data, declared or inherited, and every declassified one.

    A column is declared by its ``meta.pii`` or a tag ``pii``. Where a node is flagged so and none
    of its columns is, all of its columns are taken to be (but those with ``meta.pii: none``).

    Args:
        project: the artifacts.
        analysis: what was seen in them; its edges know what masks.

    Returns:
        One entry for each column, by unique_id and column.
    """
    return PersonalData(project, analysis).columns


def declared_columns(
    project: Project, analysis: Analysis, of: Iterable[str] | None = None
) -> dict[str, dict[str, tuple[str, str]]]:
    """The columns that are declared to hold personal data.

    Args:
        project: the artifacts.
        analysis: what was seen in them.
        of: these nodes; by default all.

    Returns:
        By unique_id and lower-case name, the column's name and the kind of data.
    """
    names = _Names(project, analysis)
    return {
        unique_id: {column.lower(): (column, kind) for column, kind in columns}
        for unique_id in (project.nodes if of is None else of)
        if (columns := _declared(unique_id, project, names))
    }


class PersonalData:
    """The columns that hold personal data, and how it came there.

    Args:
        project: the artifacts.
        analysis: what was seen in them; its edges know what masks.
        into: only of these nodes and what is above them; of all by default.

    Attributes:
        columns: as `pii_columns`.
    """

    def __init__(
        self, project: Project, analysis: Analysis, into: Collection[str] | None = None
    ) -> None:
        self._project = project
        self._analysis = analysis
        self._names = names = _Names(project, analysis)
        self._came_from: dict[Vertex, Vertex | None] = {}
        self._by_vertex: dict[Vertex, PiiColumn] = {}
        edges: list[ValueEdge] | None = None
        nodes: Iterable[str] = project.nodes
        if into is not None:
            nodes, edges = _above(project, analysis, into)
        for unique_id in nodes:
            for column, kind in _declared(unique_id, project, names):
                path = (f"{unique_id}.{column}",)
                self._add(
                    None,
                    column.lower(),
                    PiiColumn(
                        unique_id=unique_id,
                        column=column,
                        pii=kind,
                        origin="declared",
                        reason=None,
                        source_id=unique_id,
                        source_column=column,
                        path=path,
                    ),
                )
        if self._by_vertex:
            self._follow(value_edges(analysis.edges) if edges is None else edges)
        self.columns = sorted(self._by_vertex.values(), key=lambda pii: (pii.unique_id, pii.column))

    def _add(self, above: Vertex | None, key: str, pii: PiiColumn) -> None:
        self._by_vertex[pii.unique_id, key] = pii
        self._came_from[pii.unique_id, key] = above

    def _follow(self, edges: list[ValueEdge]) -> None:
        names, found = self._names, self._by_vertex
        children = _children(self._project, self._analysis, names, edges)
        readers = _readers_of_all(self._project, self._analysis)
        frontier = list(found)
        while frontier:
            following: list[Vertex] = []
            for vertex in frontier:
                origin = found[vertex]
                below = children.get(vertex, [])
                of_all = ((reader, vertex[1]) for reader in readers.get(vertex[0], ()))
                for unique_id, key in (*below, *of_all):
                    if (unique_id, key) in found:
                        continue
                    column = names.of(unique_id).get(key, origin.column)
                    column_declared = names.declaration(unique_id, key)
                    reason = declassified(column_declared) if column_declared else None
                    pii = PiiColumn(
                        unique_id=unique_id,
                        column=column,
                        pii=origin.pii,
                        origin="declassified" if reason else "inherited",
                        reason=reason,
                        source_id=origin.source_id,
                        source_column=origin.source_column,
                        path=(*origin.path, f"{unique_id}.{column}"),
                    )
                    self._add(vertex, key, pii)
                    if not reason:
                        following.append((unique_id, key))
            frontier = following

    def certain_on(self, base: Project, analysis: Analysis) -> list[PiiColumn]:
        """Of these columns those that hold personal data in another state of the project, too.

        All that it passes on its way to them is the same there. Of the others it is not known.
        """
        builders, builders_there = (_builders(project) for project in (self._project, base))
        of_sources = {
            builder for source, builder in {*builders.items()} ^ {*builders_there.items()}
        }
        same: dict[str, bool] = {}

        def is_same(unique_id: str) -> bool:
            known = same.get(unique_id)
            if known is None:
                known = same[unique_id] = unique_id not in of_sources and self._is_same(
                    unique_id, base, analysis
                )
            return known

        certain: dict[Vertex, PiiColumn] = {}
        for vertex, pii in self._by_vertex.items():  # what is above a column comes before it
            above = self._came_from[vertex]
            if (above is None or above in certain) and is_same(vertex[0]):
                certain[vertex] = pii
        return list(certain.values())

    def _is_same(self, unique_id: str, base: Project, analysis: Analysis) -> bool:
        """Whether all that is asked of a relation, and the edges into it, are as in another state."""
        node, then = self._project.nodes.get(unique_id), base.nodes.get(unique_id)
        analysed, before = self._analysis.nodes.get(unique_id), analysis.nodes.get(unique_id)
        edges, edges_before = self._analysis.edges, analysis.edges
        return (
            (node is None) == (then is None)
            and (
                node is None
                or then is None
                or (node.resource_type, node.columns, node.meta, node.tags)
                == (then.resource_type, then.columns, then.meta, then.tags)
            )
            and analysed is not None
            and before is not None
            and (analysed.columns, analysed.is_unanalysed) == (before.columns, before.is_unanalysed)
            and isinstance(edges, Edges)
            and isinstance(edges_before, Edges)
            and edges.depend_as_in(edges_before, unique_id)
            and self._project.catalog.get(unique_id) == base.catalog.get(unique_id)
        )


class _Names:
    """The columns of nodes by their names in lower case; names differ in case between artifacts."""

    def __init__(self, project: Project, analysis: Analysis) -> None:
        self._project = project
        self._analysis = analysis
        self._names: dict[str, dict[str, str]] = {}
        self._declared: dict[str, dict[str, Column]] = {}

    def of(self, unique_id: str) -> dict[str, str]:
        names = self._names.get(unique_id)
        if names is None:
            names = self._names[unique_id] = column_names(
                self._project.nodes.get(unique_id),
                self._analysis.nodes.get(unique_id),
                self._project.catalog.get(unique_id, ()),
            )
        return names

    def declaration(self, unique_id: str, key: str) -> Column | None:
        """What the yml files say of a column."""
        declared = self._declared.get(unique_id)
        if declared is None:
            node = self._project.nodes.get(unique_id)
            declared = self._declared[unique_id] = {
                (column.name or name).lower(): column
                for name, column in (node.columns if node else {}).items()
            }
        return declared.get(key)


def _declared(unique_id: str, project: Project, names: _Names) -> list[tuple[str, str]]:
    """The columns of a node that are declared to hold personal data, with the kind."""
    node = project.nodes[unique_id]
    columns = [
        (names.of(unique_id).get((column.name or name).lower(), column.name or name), kind)
        for name, column in node.columns.items()
        if (column.meta or column.tags) and (kind := column_pii(column)) is not None
    ]
    if columns or node.resource_type not in BUILT | {"source"}:
        return columns
    of_all = column_pii(Column(meta=node.meta, tags=node.tags))
    if of_all is None:
        return []
    return [
        (name, of_all)
        for key, name in names.of(unique_id).items()
        if (column_declared := names.declaration(unique_id, key)) is None
        or column_declared.meta.get("pii") is None
    ]


def _children(
    project: Project, analysis: Analysis, names: _Names, edges: list[ValueEdge]
) -> dict[Vertex, list[Vertex]]:
    """The columns that each column's value reaches in one step."""
    opaque = {u for u, analysed in analysis.nodes.items() if analysed.is_unanalysed}
    children: dict[Vertex, list[Vertex]] = {}
    for (parent, parent_column), child, child_column in edges:
        if parent_column == ROWS:
            continue
        below = children.setdefault((parent, parent_column.lower()), [])
        if child_column != ROWS:
            below.append((child, child_column.lower()))
        elif child in opaque:
            # Where an opaque node has too many pairs of columns, only this edge tells of them.
            below += ((child, key) for key in names.of(child))
    for unique_id, builder in _builders(project).items():
        for key in names.of(unique_id):
            children.setdefault((unique_id, key), []).append((builder, key))
    return children


def _builders(project: Project) -> dict[str, str]:
    """A source that a node of the project builds is that node, whatever is declared of either."""
    built = {
        node.relation_name.lower(): unique_id
        for unique_id, node in project.nodes.items()
        if node.relation_name and node.resource_type in BUILT
    }
    return {
        unique_id: built[name]
        for unique_id, node in project.nodes.items()
        if node.resource_type == "source"
        and node.relation_name
        and (name := node.relation_name.lower()) in built
    }


def _above(
    project: Project, analysis: Analysis, unique_ids: Iterable[str]
) -> tuple[list[str], list[ValueEdge]]:
    """Some nodes of the project and all that a value comes to them from, and the edges between."""
    sources: dict[str, list[str]] = {}
    for source, builder in _builders(project).items():
        sources.setdefault(builder, []).append(source)
    readers = _readers_of_all(project, analysis)
    read_whole: dict[str, list[str]] = {}
    for parent, consumers in readers.items():
        for consumer in consumers:
            read_whole.setdefault(consumer, []).append(parent)
    edges: list[ValueEdge] = []
    above = dict.fromkeys(unique_ids)
    frontier = set(above)
    while frontier:
        into = value_edges(analysis.edges, frontier)
        edges += into
        parents = [key[0] for key, _, _ in into]
        for unique_id in frontier:
            parents += sources.get(unique_id, ())
            parents += read_whole.get(unique_id, ())
        frontier = {parent for parent in parents if parent not in above}
        above |= dict.fromkeys(frontier)
    return [unique_id for unique_id in above if unique_id in project.nodes], edges


def _readers_of_all(project: Project, analysis: Analysis) -> dict[str, list[str]]:
    """The consumers of each node of which it is not known what they read: it may be all of it."""
    consumers = {
        unique_id
        for unique_id, node in project.nodes.items()
        if (node.resource_type == "exposure" and referenced_columns(node) is None)
        or (
            node.resource_type == "asset"
            and (analysed := analysis.nodes.get(unique_id)) is not None
            and analysed.is_unanalysed
        )
    }
    readers: dict[str, list[str]] = {}
    if consumers:
        edges = analysis.edges
        for edge in (*edges_into(edges, consumers), *exposure_edges_of(edges, consumers)):
            if edge.child_column == ROWS and edge.parent_column == ROWS:
                readers.setdefault(edge.parent_id, []).append(edge.child_id)
    return readers
