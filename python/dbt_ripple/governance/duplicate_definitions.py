"""Columns that compute the same, and columns of one name that do not.

Two columns are *twins* if they have the same fingerprint and each is computed in its own model: neither
passed on from somewhere nor constant. They are then the same function of the same source columns. Where
chance, the time or the order of rows decides, they may have other values all the same, and are no twins;
nor are they where the relations have other rows, and joins may pair what the value is made of in another way.
Two columns *compete* if they have one name, both are computed, and their fingerprints differ. The
dbt package has both as models, `duplicate_definitions` and `competing_definitions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from dbt_ripple.artifacts import Node, Project, is_canonical
from dbt_ripple.changes import Comparison
from dbt_ripple.flow.definitions import computed, is_whole, pairs_rows
from dbt_ripple.flow.determinism import is_repeatable
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.governance.contracts import Breach
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.traversal import Vertex, reach
from dbt_ripple.reasons import Code


class Definitions:
    """The models of one side that can be analysed, and what they compute."""

    def __init__(self, project: Project, analysis: Analysis) -> None:
        self.project = project
        self.analysis = analysis
        self._computed: dict[str, set[str]] = {}
        self._made_of: dict[Vertex, set[str]] = {}
        self._fingerprints: dict[str, dict[str, str]] = {}
        self._by_fingerprint: dict[str, list[Vertex]] = {}

    @cached_property
    def _models(self) -> dict[str, NodeAnalysis]:
        return {
            unique_id: analysed
            for unique_id, analysed in self.analysis.nodes.items()
            if analysed.status == "analysed"
            and (node := self.project.nodes.get(unique_id)) is not None
            and node.resource_type in ("model", "metric")
        }

    def fingerprints(self, unique_id: str) -> dict[str, str]:
        """The fingerprint of each column of a model, by lower-case name; none of what is no model.

        A metric is one column, of its name.
        """
        columns = self._fingerprints.get(unique_id)
        if columns is None:
            analysed = self._models.get(unique_id)
            columns = self._fingerprints[unique_id] = (
                dict(zip(map(str.lower, analysed.columns), analysed.fingerprints, strict=True))
                if analysed is not None
                else {}
            )
        return columns

    def fingerprint(self, vertex: Vertex) -> str | None:
        """The fingerprint of a column of a model; None where there is none."""
        return self.fingerprints(vertex[0]).get(vertex[1])

    def look_for_the_same(self, vertices: Iterable[Vertex]) -> None:
        """Find at once the columns that have the fingerprints of these."""
        wanted = {f for v in vertices if (f := self.fingerprint(v)) is not None}
        wanted -= self._by_fingerprint.keys()
        if not wanted:
            return
        for fingerprint in wanted:
            self._by_fingerprint[fingerprint] = []
        for unique_id, analysed in self._models.items():
            if not wanted.isdisjoint(analysed.fingerprints):
                for name, fingerprint in zip(analysed.columns, analysed.fingerprints, strict=True):
                    if fingerprint in wanted:
                        self._by_fingerprint[fingerprint].append((unique_id, name.lower()))

    def computes(self, vertex: Vertex) -> bool:
        """Whether a column is made in its model, of something, and not of the model itself."""
        self.look_at([vertex[0]])
        return vertex[1] in self._computed[vertex[0]]

    def look_at(self, unique_ids: Iterable[str]) -> None:
        """Find out at once what several models compute."""
        wanted = {unique_id for unique_id in unique_ids if unique_id not in self._computed}
        if not wanted:
            return
        handed_on: set[Vertex] = set()
        of_themselves: set[str] = set()
        defined: dict[str, set[str]] = {unique_id: set() for unique_id in wanted}
        for edge in edges_into(self.analysis.edges, wanted):
            child, column = edge.child_id, edge.child_column.lower()
            if edge.parent_id == child:
                of_themselves.add(child)
            if edge.child_column == ROWS:
                continue
            defined[child].add(column)
            if edge.type == "DIRECT":
                self._made_of.setdefault((child, column), set()).add(edge.parent_id)
            if (edge.type, edge.subtype) == ("DIRECT", "IDENTITY") and edge.parent_column != ROWS:
                handed_on.add((child, column))
        for unique_id, columns in defined.items():
            kept = set() if unique_id in of_themselves else columns
            self._computed[unique_id] = {c for c in kept if (unique_id, c) not in handed_on}

    def twins(self, vertex: Vertex) -> list[Vertex]:
        """The columns of other models that compute the same; none of a column that is not computed."""
        self.look_for_the_same([vertex])
        same = self._by_fingerprint.get(self.fingerprint(vertex) or "", ())
        others = [v for v in same if v[0] != vertex[0]]
        self.look_at(unique_id for unique_id, _ in (vertex, *others) if others)
        if not others or not self.computes(vertex):
            return []
        twins = [other for other in others if self.computes(other) and self.same(vertex, other)]
        return twins if twins and self.is_repeatable(vertex) else []

    def same(self, one: Vertex, other: Vertex) -> bool:
        """Whether two columns of one fingerprint have the same value wherever both have one.

        Of the same rows they have; of other rows, unless joins pair these in another way.
        """
        rows = [self.analysis.nodes[v[0]].rows_fingerprint for v in (one, other)]
        return rows[0] == rows[1] or not (self._pairs_rows(one) or self._pairs_rows(other))

    def _pairs_rows(self, vertex: Vertex) -> bool:
        sql = self.project.nodes[vertex[0]].compiled_code
        dialect = dialect_of(self.project.metadata.adapter_type)
        return sql is None or pairs_rows(sql, dialect, len(self._made_of.get(vertex, ())) == 1)

    def is_repeatable(self, vertex: Vertex) -> bool:
        """Whether a column has the same values whenever what it reads has: no chance, no time."""
        if self.project.nodes[vertex[0]].resource_type == "metric":
            return True  # it has no query of its own
        dialect = dialect_of(self.project.metadata.adapter_type)
        sql = self.project.nodes[vertex[0]].compiled_code
        text = computed(sql, dialect).get(vertex[1]) if sql else None
        return text is not None and is_whole(text) and is_repeatable(text, dialect)


def twin_breaches(comparison: Comparison) -> Iterator[Breach]:
    """New duplicates of a definition, and new readers of one that is not the canonical one."""
    head = Definitions(comparison.head, comparison.head_analysis)
    base = Definitions(comparison.base, comparison.base_analysis)
    yield from _duplicates(comparison, base, head)
    yield from _bypasses(comparison, base, head)


def _duplicates(comparison: Comparison, base: Definitions, head: Definitions) -> Iterator[Breach]:
    changed = {
        (unique_id, column.lower()): column for unique_id, column in comparison.changed_vertices
    }
    head.look_for_the_same(changed)
    for vertex, spelled in changed.items():
        if head.fingerprint(vertex) is None:
            continue
        # A pair of which both moved is named once, and one that moved together is no new one.
        for other in sorted(head.twins(vertex), key=lambda v: _rank(head.project, v)):
            before = base.fingerprint(vertex)
            old = before is not None and before == base.fingerprint(other)
            first = other not in changed or _rank(head.project, other) < _rank(head.project, vertex)
            if first and not old:
                name = head.project.nodes[other[0]].display_name
                reason = Code.COMPUTED_TWICE(name=name, column=_spelled(head, other))
                yield Breach("duplicate_introduced", vertex[0], spelled, reason)
                break


def _bypasses(comparison: Comparison, base: Definitions, head: Definitions) -> Iterator[Breach]:
    canonical = {u for u, node in head.project.nodes.items() if _is_canonical_model(node)}
    if not canonical:
        return
    readers = {
        unique_id
        for unique_id in {*comparison.changed, *comparison.modified}
        if unique_id in head.project.nodes
    }
    before = {
        (edge.parent_id, edge.parent_column.lower(), edge.child_id)
        for edge in edges_into(base.analysis.edges, readers)
    }
    head.look_at(canonical)
    above = {unique_id: reach(unique_id, head.project.parents) for unique_id in canonical}
    reported: set[tuple[str, Vertex]] = set()
    edges = edges_into(head.analysis.edges, readers)
    head.look_for_the_same((edge.parent_id, edge.parent_column.lower()) for edge in edges)
    for edge in edges:
        read = (edge.parent_id, edge.parent_column.lower())
        if (
            (*read, edge.child_id) in before
            or head.fingerprint(read) is None
            or edge.parent_id in canonical
            or edge.child_id in canonical
            or (edge.child_id, read) in reported
            or not head.computes(read)
        ):
            continue
        reported.add((edge.child_id, read))
        for unique_id in sorted(canonical):
            if edge.parent_id in above[unique_id]:  # what it is made of is no other truth
                continue
            twins = [v for v in head.twins(read) if v[0] == unique_id]
            named = (unique_id, read[1])
            if not twins and not (head.fingerprint(named) is not None and head.computes(named)):
                continue
            node, other = head.project.nodes[edge.parent_id], head.project.nodes[unique_id]
            code = Code.BYPASSES_SAME if twins else Code.BYPASSES_OTHER
            yield Breach(
                "canonical_bypassed",
                edge.child_id,
                None,
                code(
                    name=node.display_name,
                    column=edge.parent_column,
                    canonical=other.display_name,
                    there=_spelled(head, twins[0] if twins else named),
                ),
            )
            break


def _is_canonical_model(node: Node) -> bool:
    return node.resource_type == "model" and is_canonical(node)


def _rank(project: Project, vertex: Vertex) -> tuple[bool, Vertex]:
    """The canonical one comes first."""
    return not is_canonical(project.nodes[vertex[0]]), vertex


def _spelled(side: Definitions, vertex: Vertex) -> str:
    columns = side.analysis.nodes[vertex[0]].columns
    return next((name for name in columns if name.lower() == vertex[1]), vertex[1])
