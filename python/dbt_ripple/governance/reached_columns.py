"""What columns come from and what comes from them, and how much of that is certain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.possible_readers import guessed_edges
from dbt_ripple.graph.traversal import Vertex, column_graph, reach_all

_Edge = Callable[[Vertex, Vertex], tuple[Vertex, Vertex]]


class Reached(NamedTuple):
    """What is above or below some columns, these included.

    Attributes:
        depths: each column and set of rows with its distance from the nearest start, nearest first.
        sure: those that are known to be reached; of the others it is only possible.
    """

    depths: dict[Vertex, int]
    sure: set[Vertex]

    def by_node(self) -> dict[str, list[Vertex]]:
        """The same by unique_id, nearest first."""
        of: dict[str, list[Vertex]] = {}
        for vertex in self.depths:
            of.setdefault(vertex[0], []).append(vertex)
        return of


class ColumnReach:
    """Walks the columns of a project up and down, with what only may read them.

    Args:
        project: the artifacts.
        analysis: of the project.
    """

    def __init__(self, project: Project, analysis: Analysis) -> None:
        guessed, self._is_guess = guessed_edges(project, analysis)
        self._graph = column_graph([*analysis.edges, *guessed])

    def above(self, starts: Collection[Vertex]) -> Reached:
        """All that some columns come from."""
        return self._reached(starts, self._graph.parents, lambda vertex, other: (other, vertex))

    def below(self, starts: Collection[Vertex]) -> Reached:
        """All that comes from some columns."""
        return self._reached(starts, self._graph.children, lambda vertex, other: (vertex, other))

    def _reached(
        self,
        starts: Collection[Vertex],
        neighbours: Mapping[Vertex, Sequence[Vertex]],
        edge: _Edge,
    ) -> Reached:
        without_guesses = {
            vertex: [other for other in others if not self._is_guess(*edge(vertex, other))]
            for vertex, others in neighbours.items()
        }
        return Reached(reach_all(starts, neighbours), set(reach_all(starts, without_guesses)))


def columns_to_start_from(
    analysis: Analysis, root: Node, column: str | None, *, rows: bool
) -> list[Vertex]:
    """The columns that a question about a node, one of its columns or a test is about.

    The macro of this name in the dbt package says the same: of a node the column, or all of them and the
    rows where none is named; of a test the columns that it reads, and rows where it reads nothing else. A
    unit test is about its model.

    Args:
        analysis: of the project.
        root: the node, or the test.
        column: as the analysis spells it.
        rows: whether the rows count in any case: they decide on every number.
    """
    if root.unique_id in analysis.unit_tests:
        unique_id = analysis.unit_tests[root.unique_id].model
        return [(unique_id, name) for name in (*_columns(analysis, unique_id), ROWS)]
    if root.resource_type == "test":
        read: dict[Vertex, None] = {}
        for test, unique_id, name in analysis.test_columns:
            if test == root.unique_id:
                spelled = {spelling.lower(): spelling for spelling in _columns(analysis, unique_id)}
                read[unique_id, spelled.get(name.lower(), name)] = None
        if not read:  # what it reads is not known: all of what it stands on
            parents = [u for u in root.depends_on.nodes if u in analysis.nodes]
            return [(u, name) for u in parents for name in (*_columns(analysis, u), ROWS)]
        if rows:
            read |= dict.fromkeys((unique_id, ROWS) for unique_id, _ in tuple(read))
        elif any(name != ROWS for _, name in read):
            read = {vertex: None for vertex in read if vertex[1] != ROWS}
        return list(read)
    if column is None:
        return [(root.unique_id, name) for name in (*_columns(analysis, root.unique_id), ROWS)]
    return [(root.unique_id, name) for name in dict.fromkeys([column, *([ROWS] if rows else [])])]


def _columns(analysis: Analysis, unique_id: str) -> list[str]:
    analysed = analysis.nodes.get(unique_id)
    return list(analysed.columns) if analysed is not None else []
