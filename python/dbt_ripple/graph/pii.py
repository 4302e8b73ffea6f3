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

from typing import Final, Literal

import msgspec

from dbt_ripple.artifacts import Column, Project, column_pii, declassified, referenced_columns
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
    result: dict[Vertex, PiiColumn] = {}
    names = _Names(project, analysis)
    for unique_id in project.nodes:
        for column, kind in _declared(unique_id, project, names):
            path = (f"{unique_id}.{column}",)
            result[unique_id, column.lower()] = PiiColumn(
                unique_id, column, kind, "declared", None, unique_id, column, path
            )
    frontier = list(result)
    children = _children(project, analysis, names) if result else {}
    readers = _readers_of_all(project, analysis) if result else {}
    while frontier:
        following: list[Vertex] = []
        for vertex in frontier:
            origin = result[vertex]
            below = children.get(vertex, [])
            for unique_id, key in (*below, *((r, vertex[1]) for r in readers.get(vertex[0], ()))):
                if (unique_id, key) in result:
                    continue
                column = names.of(unique_id).get(key, origin.column)
                column_declared = names.declaration(unique_id, key)
                reason = declassified(column_declared) if column_declared else None
                result[unique_id, key] = PiiColumn(
                    unique_id,
                    column,
                    origin.pii,
                    "declassified" if reason else "inherited",
                    reason,
                    origin.source_id,
                    origin.source_column,
                    (*origin.path, f"{unique_id}.{column}"),
                )
                if not reason:
                    following.append((unique_id, key))
        frontier = following
    return sorted(result.values(), key=lambda pii: (pii.unique_id, pii.column))


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


def _children(project: Project, analysis: Analysis, names: _Names) -> dict[Vertex, list[Vertex]]:
    """The columns that each column's value reaches in one step."""
    opaque = {u for u, seen in analysis.nodes.items() if seen.is_unseen}
    children: dict[Vertex, list[Vertex]] = {}
    for parent, parent_column, child, child_column, type_, _, masking in analysis.edges:
        if type_ != "DIRECT" or masking or parent_column == ROWS:
            continue
        below = children.setdefault((parent, parent_column.lower()), [])
        if child_column != ROWS:
            below.append((child, child_column.lower()))
        elif child in opaque:
            # Where an opaque node has too many pairs of columns, only this edge tells of them.
            below += ((child, key) for key in names.of(child))
    # A source that a node of the project builds is that node, whatever is declared of either.
    built = {
        node.relation_name.lower(): unique_id
        for unique_id, node in project.nodes.items()
        if node.relation_name and node.resource_type in BUILT
    }
    for unique_id, node in project.nodes.items():
        if node.resource_type == "source" and node.relation_name:
            builder = built.get(node.relation_name.lower())
            if builder is not None:
                for key in names.of(unique_id):
                    children.setdefault((unique_id, key), []).append((builder, key))
    return children


def _readers_of_all(project: Project, analysis: Analysis) -> dict[str, list[str]]:
    """The consumers of each node of which it is not known what they read: it may be all of it."""
    readers: dict[str, list[str]] = {}
    unseen = {u for u, seen in analysis.nodes.items() if seen.is_unseen}
    for edge in analysis.edges:
        if edge.child_column == ROWS and edge.parent_column == ROWS:
            node = project.nodes.get(edge.child_id)
            if node is not None and (
                (node.resource_type == "exposure" and referenced_columns(node) is None)
                or (node.resource_type == "asset" and node.unique_id in unseen)
            ):
                readers.setdefault(edge.parent_id, []).append(edge.child_id)
    return readers
