"""Who reads a column besides the readers in the lineage: nodes that may read it, and tests.

An exposure that lists no columns may read any column of its parents. So may a node that cannot be
analysed: a Python model, SQL that cannot be parsed. The analysis has edges only for what is known;
this module adds the others, for questions about one column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbt_ripple.artifacts import Node, Project, referenced_columns
from dbt_ripple.graph.column_edges import WithAssetEdges, exposure_edges_of, is_read_whole
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, column_names
from dbt_ripple.graph.lineage_tables import ROWS

Pair = tuple[str, str]

OF_TESTS = "TEST"
"""Type of an edge to a test; its subtype says of which kind."""


def may_read(project: Project, analysis: Analysis, *, tests: bool) -> Iterator[ColumnEdge]:
    """An edge from each column to the rows of each node that may read it, and each test if wanted."""
    for unique_id in sorted(unseen(analysis)):
        if unique_id in analysis.tests and not tests:
            continue
        for parent in project.parents.get(unique_id, ()):
            for column in _columns(project, analysis, parent):
                yield ColumnEdge(parent, column, unique_id, ROWS, "DIRECT", "TRANSFORMATION", False)
    exposures = {node.unique_id: node for node in project.of_type("exposure")}
    with_columns = {
        (edge[0], edge[2])
        for edge in exposure_edges_of(analysis.edges, exposures)
        if edge[3] != ROWS
    }
    for node in exposures.values():
        for parent in parents_unlisted(project, node):
            if (parent, node.unique_id) in with_columns:
                continue
            for column in _columns(project, analysis, parent):
                yield ColumnEdge(parent, column, node.unique_id, ROWS, "DIRECT", "IDENTITY", False)


def guessed_edges(
    project: Project, analysis: Analysis, *, tests: bool = False
) -> tuple[list[ColumnEdge], Callable[[Pair, Pair], bool]]:
    """The edges of `may_read`, and what tells of a parent and a child whether it is known that one reads the other.

    A pair is a unique_id and a column. It is not known of what is read or written by a node that
    cannot be followed, either.
    """
    guessed = list(may_read(project, analysis, tests=tests))
    unanalysed_nodes, written = unseen(analysis), may_write(analysis)
    may = {((edge[0], edge[1]), (edge[2], edge[3])) for edge in guessed}

    def is_guess(parent: Pair, child: Pair) -> bool:
        return (
            child[0] in unanalysed_nodes
            or (parent, child) in may
            or (parent[0], child[0]) in written
        )

    return guessed, is_guess


def unseen(analysis: Analysis) -> set[str]:
    """The nodes and tests that cannot be analysed."""
    sides = (analysis.nodes, analysis.tests)
    return {
        unique_id
        for side in sides
        for unique_id, analysed in side.items()
        if analysed.is_unanalysed
    }


def may_write(analysis: Analysis) -> frozenset[tuple[str, str]]:
    """Pairs of a declared asset and what it writes, where the declaration does not name its columns."""
    edges = analysis.edges
    return edges.guessed if isinstance(edges, WithAssetEdges) else frozenset()


def parents_unlisted(project: Project, node: Node) -> list[str]:
    """The parents of an exposure that names none of their columns."""
    if referenced_columns(node) is not None:
        return []
    parents = project.parents.get(node.unique_id, ())
    return [p for p in parents if not is_read_whole(project.nodes.get(p))]


def read_by_tests(project: Project, analysis: Analysis) -> Iterator[ColumnEdge]:
    """An edge from each column and row set to each data test and unit test that reads it."""
    for test, parent, column in analysis.test_columns:
        yield ColumnEdge(parent, column, test, ROWS, OF_TESTS, "DATA_TEST", False)
    for unique_id, analysed in analysis.unit_tests.items():
        node = project.nodes[unique_id]
        parents = {project.nodes[p].name: p for p in project.parents.get(analysed.model, ())}
        for given in node.given:
            named = str(given.get("input"))
            above = next(
                (p for name, p in parents.items() if f"'{name}'" in named or f'"{name}"' in named),
                None,
            )
            if above is not None:
                yield from _of_unit_test(project, analysis, above, unique_id, given.get("rows"))
        yield from _of_unit_test(
            project, analysis, analysed.model, unique_id, node.expect.get("rows")
        )


def _of_unit_test(
    project: Project, analysis: Analysis, parent: str, unique_id: str, rows: object
) -> Iterator[ColumnEdge]:
    """What the rows of a fixture name; one that is not a list of rows may name any column."""
    columns = _columns(project, analysis, parent)
    if isinstance(rows, list):
        names = {str(key).lower() for row in rows if isinstance(row, dict) for key in row}
        columns = [column for column in columns if column.lower() in names]
    for column in columns:
        yield ColumnEdge(parent, column, unique_id, ROWS, OF_TESTS, "UNIT_TEST", False)


def _columns(project: Project, analysis: Analysis, unique_id: str) -> list[str]:
    node, analysed = project.nodes.get(unique_id), analysis.nodes.get(unique_id)
    return list(column_names(node, analysed, project.catalog.get(unique_id, ())).values())
