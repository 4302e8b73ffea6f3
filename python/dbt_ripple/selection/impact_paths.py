"""Why a test is impacted: the shortest path from where a change began to the test."""

from __future__ import annotations

from collections.abc import Collection

from dbt_ripple.artifacts.project import WITH_SQL
from dbt_ripple.changes.causes import causes_of
from dbt_ripple.changes.comparison import Comparison, Vertex
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.reasons import Code, Reason


class ImpactPaths:
    """The paths along which the changes of a comparison spread.

    Attributes:
        predecessors: each changed vertex with the one before it on a shortest way; None where a change
            began.
        reads: the nearest changed vertex each test reads that `of_tests` was asked of.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.predecessors = comparison.predecessors
        self.reads: dict[str, Vertex] = {}

    def of_tests(self, impacted: dict[str, Reason | None]) -> dict[str, tuple[Reason, list[str]]]:
        """The reason of each impacted test, and its path (see `SelectedTest`)."""
        nearest = self.reads = nearest_changed(self.comparison, impacted)
        reasons = {}
        for test, own in impacted.items():
            vertex_read = nearest.get(test)
            if own is not None:
                reasons[test] = (own, [test])
            elif vertex_read is None:
                reasons[test] = (Code.OWN_QUERY_CHANGED(), [test])
            else:
                way = self.comparison.way_to(vertex_read)
                reasons[test] = (self.began(way[0]), [*map(spelled, way), test])
        return reasons

    def by_target(self, impacted: dict[str, Reason | None]) -> Reason | None:
        """The reason where SQL differs between the sides, and nothing that was written does."""
        comparison = self.comparison
        base, head = comparison.base.nodes, comparison.head.nodes
        began = {
            unique_id for (unique_id, _), before in self.predecessors.items() if before is None
        }
        began.update(u for u, own in impacted.items() if own is None and u not in self.reads)
        names = [
            head[unique_id].display_name
            for unique_id in began
            if unique_id in head
            and unique_id in base
            and head[unique_id].resource_type in WITH_SQL
            and unique_id not in comparison.modified
            and None not in (sql := (head[unique_id].compiled_code, base[unique_id].compiled_code))
            and sql[0] != sql[1]
            and all(cause.kind == "compiled" for cause in causes_of(comparison).of(unique_id))
        ]
        if not names or (
            comparison.base.same_environment and comparison.base.variables is not None
        ):
            return None  # both were compiled alike
        return Code.DIFFERS_BY_TARGET(names=sorted(names))

    def began(self, vertex: Vertex) -> Reason:
        """What happened at the vertex where a change began."""
        unique_id, column = vertex
        change = self.comparison.changed[unique_id]
        name = self.comparison.name(unique_id)
        if change.kind == "added":
            return Code.NODE_NEW(name=name)
        if column == ROWS:
            return Code.ROWS_CHANGED(name=name)
        if column in change.added:
            return Code.COLUMN_NEW(name=name, column=column)
        return Code.COLUMN_CHANGED(name=name, column=column)


def nearest_changed(comparison: Comparison, tests: Collection[str]) -> dict[str, Vertex]:
    """The changed vertex that each test reads, or looks at, nearest to where its change began; of those that do."""
    depth: dict[Vertex, int] = {}
    for vertex, before in comparison.predecessors.items():
        depth[vertex] = 0 if before is None else depth[before] + 1
    if not depth:
        return {}
    read: dict[str, list[Vertex]] = {}
    for test, node, column in comparison.head_analysis.test_columns:
        if test in tests and (node, column) in depth:
            read.setdefault(test, []).append((node, column))
    for test in tests:
        analysed = comparison.head_analysis.tests.get(test)
        if test not in read and analysed is not None and analysed.introspects:
            read[test] = [vertex for vertex in depth if vertex[0] in analysed.introspects]
    return {test: min(above, key=depth.__getitem__) for test, above in read.items() if above}


def spelled(vertex: Vertex) -> str:
    """A vertex as it is printed: ``model.shop.orders.amount``."""
    return f"{vertex[0]}.{vertex[1]}"
