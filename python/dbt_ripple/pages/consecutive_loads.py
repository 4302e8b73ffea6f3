"""What a project's artifacts, one after the other, say of its definitions, by the rules of the dbt package.

Each function behind `Load` follows the model that it names; a test builds the package's models on DuckDB out of the
same artifacts and compares. The time of a change is when the artifacts that have it first were written. What changed
between the states of a project that are at hand (`history`) is told in an evidence pack.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, cast

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.governance.contracts import contract_breaches
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import (
    ROWS,
    ColumnEdgeRow,
    ColumnRow,
    EdgeRow,
    NodeRow,
    TestColumnRow,
)
from dbt_ripple.graph.traversal import Vertex
from dbt_ripple.pages.evidence_document import ContractViolation, DefinitionChange
from dbt_ripple.rendering.trace import expressions_of

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class State:
    """A project as some artifacts have it.

    Attributes:
        number: from 1, oldest first; None of the project as it is.
    """

    number: int | None
    project: Project
    analysis: Analysis


def written_at(project: Project) -> datetime:
    """When dbt wrote the manifest; long ago where it does not say."""
    generated_at = project.metadata.generated_at
    return as_utc(generated_at) if generated_at is not None else _LONG_AGO


def history(
    states: Sequence[State], unique_ids: Collection[str], cache: Cache | None = None
) -> tuple[list[DefinitionChange], list[ContractViolation]]:
    """The definitions that changed from state to state, and the promises that were not kept.

    Args:
        states: oldest first.
        unique_ids: of these nodes.
        cache: of the analyses.
    """
    changes: list[DefinitionChange] = []
    violations: list[ContractViolation] = []
    for earlier, later in itertools.pairwise(states):
        comparison = compare(
            earlier.project,
            later.project,
            base_analysis=earlier.analysis,
            head_analysis=later.analysis,
            cache=cache,
        )
        changes += _changes(comparison, later.number, unique_ids)
        # A grace period is over or not on the day of the later state, whenever this is asked.
        day = written_at(later.project).date()
        for breach in contract_breaches(comparison, day):
            if breach.unique_id in unique_ids:
                violations.append(
                    ContractViolation(
                        state=later.number,
                        after=comparison.base.metadata.generated_at,
                        seen_at=comparison.head.metadata.generated_at,
                        unique_id=breach.unique_id,
                        column=breach.column,
                        rule=breach.rule,
                        reason=breach.reason,
                    )
                )
    return changes, violations


def _changes(
    comparison: Comparison, number: int | None, unique_ids: Collection[str]
) -> Iterator[DefinitionChange]:
    before, after = expressions_of(comparison.base), expressions_of(comparison.head)

    def definition_change(
        unique_id: str, column: str | None, change: str, began: bool, was: str | None = None
    ) -> DefinitionChange:
        old = None if change == "added" or column is None else before((unique_id, was or column))
        new = None if change == "removed" or column is None else after((unique_id, column))
        return DefinitionChange(
            state=number,
            after=comparison.base.metadata.generated_at,
            seen_at=comparison.head.metadata.generated_at,
            unique_id=unique_id,
            column=column,
            change=change,
            began_here=began,
            old=old,
            new=new,
        )

    def began(unique_id: str, column: str) -> bool:
        return comparison.predecessors.get((unique_id, column)) is None

    for unique_id in sorted({*unique_ids} & {*comparison.changed, *comparison.removed}):
        change = comparison.changed.get(unique_id)
        if change is None:
            yield definition_change(unique_id, None, "removed", True)
            continue
        if change.kind == "added":
            yield definition_change(unique_id, None, "added", True)
            continue
        if change.rows:
            yield definition_change(unique_id, None, "redefined", began(unique_id, "*rows*"))
        for name in change.redefined:
            yield definition_change(unique_id, name, "redefined", began(unique_id, name))
        for name in change.added:
            if (was := change.renamed.get(name)) is not None:
                yield definition_change(unique_id, name, "renamed", began(unique_id, name), was)
            else:
                yield definition_change(unique_id, name, "added", began(unique_id, name))
        renamed = set(change.renamed.values())
        for name in change.removed:
            if name not in renamed:
                yield definition_change(unique_id, name, "removed", True)


CHECKS: Final = frozenset({"test", "unit_test"})
_CONSUMERS: Final = frozenset({"asset", "exposure"})
_PACKAGE: Final = "dbt_ripple"


@dataclass(frozen=True)
class _Definition:
    """A column, or the rows, of one load."""

    fingerprint: str | None
    own_fingerprint: str | None
    data_type: str | None
    expression: str | None


class Load:
    """The lineage of one set of artifacts, as ``load`` writes it.

    Args:
        project: the artifacts.
        analysis: of them, with expressions and own fingerprints.
    """

    def __init__(self, project: Project, analysis: Analysis) -> None:
        self.project = project
        self.seen_at = written_at(project)
        self.target = str(project.run_args.get("target") or "")
        self.rows = build_rows(project, analysis, loaded_at=self.seen_at, max_closure=0).rows

    @cached_property
    def nodes(self) -> dict[str, NodeRow]:
        """Every node, tests included, by unique_id."""
        return {row.unique_id: row for row in cast("list[NodeRow]", self.rows["nodes"])}

    @cached_property
    def columns(self) -> dict[str, list[ColumnRow]]:
        """The columns of each node."""
        columns: dict[str, list[ColumnRow]] = {}
        for row in cast("list[ColumnRow]", self.rows["columns"]):
            columns.setdefault(row.unique_id, []).append(row)
        return columns

    @property
    def edges(self) -> list[EdgeRow]:
        """Of nodes."""
        return cast("list[EdgeRow]", self.rows["edges"])

    @property
    def column_edges(self) -> list[ColumnEdgeRow]:
        """Of columns and rows."""
        return cast("list[ColumnEdgeRow]", self.rows["column_edges"])

    @cached_property
    def reads(self) -> list[tuple[Vertex, Vertex]]:
        """Pairs of what is read and what reads it, tests included; names in lower case."""
        edges = [
            ((e.parent_id, e.parent_column.lower()), (e.child_id, e.child_column.lower()))
            for e in self.column_edges
            if e.parent_id != e.child_id
        ]
        edges += [
            ((row.unique_id, row.column_name.lower()), (row.test_id, ROWS))
            for row in cast("list[TestColumnRow]", self.rows["test_columns"])
        ]
        return edges

    @cached_property
    def definitions(self) -> dict[Vertex, _Definition]:
        """Every column and every set of rows; of a test, the rows are what it returns."""
        definitions = {
            (row.unique_id, row.column_name.lower()): _Definition(
                row.fingerprint, row.own_fingerprint, row.data_type, row.expression
            )
            for rows in self.columns.values()
            for row in rows
        }
        for node in self.nodes.values():
            if node.package_name != _PACKAGE:
                print_ = node.test_fingerprint or node.rows_fingerprint
                own = node.own_rows_fingerprint
                definitions[node.unique_id, ROWS] = _Definition(print_, own, None, None)
        return definitions


@dataclass(frozen=True)
class ChangedDefinition:
    """A definition that is not the same in two loads in a row: a row of ``definition_changes``."""

    vertex: Vertex
    change: str
    is_origin: bool
    old: _Definition | None
    new: _Definition | None


class LoadPair:
    """Two loads in a row of one target, and what differs (``definition_changes``).

    Attributes:
        changes: every definition that differs.
        edges: by which what moved was passed on, from what reads to what is read (``int_moved_edges``).
    """

    def __init__(self, base: Load, head: Load) -> None:
        self.base, self.head = base, head
        self.changed_at = head.seen_at
        kinds = dict(self._changed_vertices())
        self.edges = self._edges(kinds)
        self.changes = {
            vertex: ChangedDefinition(
                vertex,
                kind,
                self._is_origin(vertex, kind),
                base.definitions.get(vertex),
                head.definitions.get(vertex),
            )
            for vertex, kind in kinds.items()
        }

    def _changed_vertices(self) -> Iterable[tuple[Vertex, str]]:
        before, after = self.base.definitions, self.head.definitions
        for vertex, new in after.items():
            old = before.get(vertex)
            if old is None:
                yield vertex, "added"
            elif (new.fingerprint or "") != (old.fingerprint or ""):
                yield vertex, "redefined"
            elif _retyped(old, new):
                yield vertex, "retyped"
        for vertex in before:
            if vertex not in after:
                yield vertex, "removed"

    def _edges(self, kinds: dict[Vertex, str]) -> dict[Vertex, set[Vertex]]:
        parents: dict[Vertex, set[Vertex]] = {}
        for parent, child in (*self.head.reads, *self.base.reads):
            if parent in kinds and child in kinds:
                parents.setdefault(child, set()).add(parent)
        # An aggregate or a window is made of the rows it runs over, which no edge says.
        for vertex, kind in kinds.items():
            rows = (vertex[0], ROWS)
            if vertex == rows or kind != "redefined" or rows not in kinds or vertex in parents:
                continue
            old, new = self.base.definitions[vertex], self.head.definitions[vertex]
            if old.own_fingerprint is not None and old.own_fingerprint == new.own_fingerprint:
                parents[vertex] = {rows}
        return parents

    def _is_origin(self, vertex: Vertex, kind: str) -> bool:
        if vertex not in self.edges:
            return True
        old, new = self.base.definitions.get(vertex), self.head.definitions.get(vertex)
        own = (old.own_fingerprint if old else None, new.own_fingerprint if new else None)
        if kind in ("redefined", "retyped") and own[0] is not None:
            return own[0] != (own[1] or own[0])
        before, after = (d.expression if d is not None else None for d in (old, new))
        return (before or "") != (after or "")

    def type_of(self, unique_id: str) -> str:
        """The resource type of a node; one that is gone is known to the old side only."""
        node = self.head.nodes.get(unique_id) or self.base.nodes.get(unique_id)
        return node.resource_type if node is not None else ""

    @cached_property
    def changed_nodes(self) -> set[str]:
        """The nodes where a change began; tests are none."""
        return {
            change.vertex[0]
            for change in self.changes.values()
            if change.is_origin and self.type_of(change.vertex[0]) not in CHECKS
        }

    def broken_promises(self) -> list[str]:
        """The unique_id of each broken promise, as ``contract_violations`` lists them."""
        broken = []
        for (unique_id, column), definition_change in self.changes.items():
            then = self.base.nodes.get(unique_id)
            if column == ROWS or then is None or not _promises(then):
                continue
            now = self.head.nodes.get(unique_id)
            if (then.contract_version or "") != ((now.contract_version if now else None) or ""):
                continue
            if definition_change.change in ("removed", "redefined"):
                broken.append(unique_id)
            # A column that has another type often has another definition as well: two promises.
            if (
                definition_change.old is not None
                and definition_change.new is not None
                and _retyped(definition_change.old, definition_change.new)
            ):
                broken.append(unique_id)
        return broken

    def blast_radius(self) -> int:
        """How many assets the change broke or may have changed, as ``median_blast_radius`` counts."""
        of_data = {
            vertex: change
            for vertex, change in self.changes.items()
            if self.type_of(vertex[0]) not in CHECKS
        }
        new_or_gone = {
            vertex[0]
            for vertex, change in of_data.items()
            if vertex[1] == ROWS and change.change in ("added", "removed")
        }
        reached = {
            vertex[0]
            for vertex, change in of_data.items()
            if not change.is_origin and vertex[0] not in new_or_gone and change.change != "retyped"
        }
        gone = {v for v, change in of_data.items() if change.change in ("removed", "redefined")}
        return len(reached | self._consumers(gone))

    def _consumers(self, changed: set[Vertex]) -> set[str]:
        """Consumers of what changed: of the columns they declare to read, or of any if they declare none."""
        read: dict[tuple[str, str], set[str]] = {}
        for edge in self.base.column_edges:
            child = self.base.nodes.get(edge.child_id)
            if child is not None and child.resource_type in _CONSUMERS:
                read.setdefault((edge.parent_id, edge.child_id), set()).add(edge.parent_column)
        parents = {vertex[0] for vertex in changed}
        consumers = set()
        for (parent, consumer), columns in read.items():
            if parent not in parents or consumer not in self.head.nodes:
                continue
            any_ = columns == {ROWS}
            if any_ or any((parent, column.lower()) in changed for column in columns):
                consumers.add(consumer)
        return consumers


def pairs(loads: Sequence[Load]) -> list[LoadPair]:
    """Each load with the one before it of the same target, in the order of their times."""
    last: dict[str, Load] = {}
    pairs_of_loads = []
    for load in sorted(loads, key=lambda load: load.seen_at):
        if load.target in last:
            pairs_of_loads.append(LoadPair(last[load.target], load))
        last[load.target] = load
    return pairs_of_loads


def _retyped(old: _Definition, new: _Definition) -> bool:
    return (
        old.data_type is not None
        and new.data_type is not None
        and old.data_type.lower() != new.data_type.lower()
    )


def _promises(node: NodeRow) -> bool:
    return node.access == "public" or node.contract_enforced or node.contract_version is not None
