"""A number looks wrong: what it is computed from, step by step, with what is known of each.

`ColumnReach` has what columns come from and what comes from them, and how much of that is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from dbt_ripple.artifacts import (
    Node,
    Project,
    asset_type,
    ownership,
)
from dbt_ripple.changes import Comparison
from dbt_ripple.graph.lineage import Analysis, Own
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.possible_readers import guessed_edges
from dbt_ripple.graph.traversal import Vertex, column_graph, reach, reach_all

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


Expressions = Callable[[Vertex], str | None]
"""The SQL that computes a column; None for what is a column of a parent as it is."""

OwnSides = tuple[Mapping[str, Own], Mapping[str, Own]]
"""The own fingerprints of two sides, by unique_id."""

Joined = Callable[[str], str | None] | None
"""Gives the id that a step has in its project; None where it is of another one."""

_SUCCESS = ("success", "pass")


class StepColumn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A column of a step; ``*rows*`` is which rows there are.

    Attributes:
        expression: the SQL that computes it, there where it is more than a column of a parent.
    """

    name: str
    expression: str | None = None


class LastRun(msgspec.Struct, kw_only=True):
    """How the last command that ran it ended.

    Attributes:
        at: when; null where dbt gave no time.
        succeeded: whether it was built.
    """

    status: str
    at: datetime | None
    succeeded: bool


class Freshness(msgspec.Struct, kw_only=True):
    """The result of `dbt source freshness`."""

    status: str
    max_loaded_at: datetime | None
    age_seconds: float | None


class StepChange(msgspec.Struct, kw_only=True):
    """What is not as it was.

    Attributes:
        column: null of the rows.
        change: redefined, removed, added or renamed.
        began_here: whether it was changed here, and not because something above was.
        before: the expression then, null where there is none.
        after: the expression now.
    """

    column: str | None
    change: str
    began_here: bool
    before: str | None = None
    after: str | None = None


class Guard(msgspec.Struct, kw_only=True):
    """A test that reads the columns of a step.

    Attributes:
        status: how it ended in the last command, null where it did not run.
    """

    unique_id: str
    name: str
    status: str | None


class Step(msgspec.Struct, kw_only=True):
    """One relation, or element of the semantic layer, that the number comes from.

    Attributes:
        depth: how many steps above.
        columns: those that the number comes from.
        may_read: whether that is not known, only possible.
        last_run: null where no command of run_results.json ran it.
        freshness: null where sources.json does not have it.
        changes: since the artifacts of ``--state``.
        tests: the tests that guard these columns.
        project: of another one the name.
    """

    unique_id: str
    name: str
    asset_type: str
    depth: int
    columns: list[StepColumn]
    may_read: bool
    owner: str | None
    owner_name: str | None
    owner_email: str | None
    owner_channel: str | None
    last_run: LastRun | None
    freshness: Freshness | None
    tests: list[Guard]
    changes: list[StepChange] = []
    project: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def full_name(self) -> str:
        """Its name, of another project with that one's before it."""
        return f"{self.project}.{self.name}" if self.project else self.name


class Diagnosis(msgspec.Struct, kw_only=True):
    """All that a number is computed from.

    Attributes:
        root: unique_id of the node.
        column: null where all of them were asked about.
        compared_with: when the artifacts of the first ``--state`` were made; null without.
        steps: nearest first, down to the sources.
    """

    root: str
    column: str | None
    steps: list[Step]
    compared_with: datetime | None = None

    @property
    def spoken(self) -> str:
        """The number, as people call it."""
        name = self.steps[0].full_name
        return f"{name}.{self.column}" if self.column else name

    def can_be_tested(self, step: Step) -> bool:
        """Whether dbt can test it: consumers and metrics have no tests."""
        return step.unique_id.partition(".")[0] in ("model", "seed", "snapshot", "source")

    def add_changes(
        self,
        comparison: Comparison,
        now: Expressions,
        then: Expressions,
        joined: Joined = None,
        own: OwnSides | None = None,
    ) -> None:
        """Say of each step what changed on the way.

        Args:
            comparison: of one project.
            now: the SQL of its columns.
            then: the same of base.
            joined: tells which of the steps are that project's, and their ids there; None: all are.
            own: the own fingerprints of base and of now, by which an edit is told where something above
                changed, too; without them it counts as moved along then.
        """
        if self.compared_with is None:
            self.compared_with = comparison.base.metadata.generated_at
        for step in self.steps:
            unique_id = step.unique_id if joined is None else joined(step.unique_id)
            if unique_id is not None:
                # An asset may read several projects, of which each may have changed.
                listed = {(change.column, change.change) for change in step.changes}
                step.changes = [
                    *step.changes,
                    *(
                        change
                        for change in _changes(comparison, step, unique_id, now, then, own)
                        if (change.column, change.change) not in listed
                    ),
                ]


def diagnosis(
    project: Project,
    analysis: Analysis,
    root: Node,
    column: str | None,
    now: Expressions,
    project_of: Mapping[str, str] | None = None,
) -> Diagnosis:
    """What a node, one of its columns, or what a test reads, comes from.

    Args:
        project: with its results and freshness.
        analysis: of the project.
        root: the node, or the test: then it is the first step.
        column: as the analysis spells it; None for all of them.
        now: the SQL of each column.
        project_of: the name of the project of each node that is of another one.
    """
    is_test = root.resource_type in ("test", "unit_test")
    # Which rows there are decides on every number.
    starts = columns_to_start_from(analysis, root, column, rows=True)
    reached = ColumnReach(project, analysis).above(starts)
    of: dict[str, list[Vertex]] = {root.unique_id: []} if is_test else {}
    of |= reached.by_node()
    # By the graph of nodes: the ways of rows and values to one relation may differ in length.
    place = reach(root.unique_id, project.parents)
    runs = {result.unique_id: result for result in project.executed}
    fresh = {result.unique_id: result for result in project.freshness}
    tests: dict[str, dict[str, list[str]]] = {}
    for test, unique_id, name in analysis.test_columns:
        tests.setdefault(unique_id, {}).setdefault(test, []).append(name.lower())
    steps = []
    for unique_id, vertices in of.items():
        node = project.nodes.get(unique_id)
        names = [name for _, name in vertices]
        run, loaded = runs.get(unique_id), fresh.get(unique_id)
        wanted = {name.lower() for name in names}
        steps.append(
            Step(
                unique_id=unique_id,
                name=node.display_name if node else unique_id,
                asset_type=asset_type(node) if node else "table",
                depth=place.get(unique_id, reached.depths[vertices[0]] if vertices else 0),
                columns=[
                    StepColumn(name=name, expression=now((unique_id, name))) for name in names
                ],
                may_read=bool(vertices) and not any(v in reached.sure for v in vertices),
                **ownership(node, project),
                last_run=None
                if run is None
                else LastRun(
                    status=run.status, at=run.completed_at, succeeded=run.status in _SUCCESS
                ),
                freshness=None
                if loaded is None
                else Freshness(
                    status=loaded.status,
                    max_loaded_at=loaded.max_loaded_at,
                    age_seconds=loaded.max_loaded_at_time_ago_in_s,
                ),
                tests=[
                    Guard(
                        unique_id=test,
                        name=project.nodes[test].name,
                        status=runs[test].status if test in runs else None,
                    )
                    for test, read in tests.get(unique_id, {}).items()
                    # What a test reads of the rows, all tests do: it guards the columns it names.
                    if wanted.intersection(read) - {ROWS} or set(read) == {ROWS}
                ],
                project=(project_of or {}).get(unique_id, msgspec.UNSET),
            )
        )
    steps.sort(key=lambda step: (step.depth, step.may_read, step.unique_id))
    return Diagnosis(root=root.unique_id, column=column, steps=steps)


def _changes(
    comparison: Comparison,
    step: Step,
    unique_id: str,
    now: Expressions,
    then: Expressions,
    own: OwnSides | None,
) -> list[StepChange]:
    change = comparison.changed.get(unique_id)
    if change is None:
        return []
    wanted = {column.name.lower() for column in step.columns}
    renamed_from = {was: name for name, was in change.renamed.items()}
    changes = []

    before, after = (side.get(unique_id) for side in own) if own is not None else (None, None)

    def began(column: str, was: str | None = None) -> bool:
        if comparison.predecessors.get((unique_id, column)) is None:
            return True
        if before is None or after is None:
            return False
        if column == ROWS:
            return before.rows != after.rows
        return before.columns.get((was or column).lower()) != after.columns.get(column.lower())

    if change.rows and ROWS in wanted:
        changes.append(StepChange(column=None, change="redefined", began_here=began(ROWS)))
    kinds = (("redefined", change.redefined), ("added", change.added), ("removed", change.removed))
    for kind, columns in kinds:
        for name in columns:
            # A column that is gone has no lineage any more: whoever read it may be on the way.
            if kind != "removed" and name.lower() not in wanted:
                continue
            if kind == "removed" and name in renamed_from:
                continue
            was = change.renamed.get(name, name) if kind == "added" else name
            changes.append(
                StepChange(
                    column=name,
                    change="renamed" if name in change.renamed else kind,
                    began_here=kind == "removed" or began(name, was),
                    before=None if kind == "added" and was == name else then((unique_id, was)),
                    after=None if kind == "removed" else now((unique_id, name)),
                )
            )
    return changes
