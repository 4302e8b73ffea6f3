"""Which tests a change can break, why, and what a number comes from, as a `Project` says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.session.answers import Answer, Place

if TYPE_CHECKING:
    from dbt_ripple.governance.diagnose import Diagnosis
    from dbt_ripple.selection.explain import Explanation
    from dbt_ripple.selection.result import Selection
    from dbt_ripple.session.sides import Sides


@dataclass(frozen=True, slots=True)
class ChosenTest:
    """A data test or unit test that a change can break.

    Attributes:
        reason: what changed, and where it began; empty of unit tests.
        path: from where it began down to the test, as ``unique_id.column`` (``*rows*`` for which rows there are).
    """

    unique_id: str
    name: str
    reason: str
    path: tuple[str, ...]


@dataclass(frozen=True)
class Selected(Answer[ChosenTest]):
    """The tests that a change can break; iterates over them, data tests first.

    Attributes:
        tests: to run.
        models: unique_ids of what has to be built for them.
        proven: unique_ids of impacted tests that need not run, because base's passed tests prove them.
        blocked: of those below a relation that cannot be built.
        all_tests: how many there are in the project.
        seconds: how long it took to answer, wall time.
    """

    tests: tuple[ChosenTest, ...]
    models: tuple[str, ...]
    proven: tuple[str, ...]
    blocked: tuple[str, ...]
    all_tests: int
    seconds: float = field(compare=False)
    selection: Selection = field(repr=False, compare=False)
    """For renderers."""
    sides: Sides = field(repr=False, compare=False)
    """What was compared."""
    explain: Callable[[str], Explained] = field(repr=False, compare=False)

    _row: ClassVar[type] = ChosenTest

    @classmethod
    def of(
        cls,
        selection: Selection,
        sides: Sides,
        seconds: float,
        explain: Callable[[str], Explained],
        **known: Any,
    ) -> Selected:
        """An answer as it was made."""
        nodes = sides.head.project.nodes
        data = (
            ChosenTest(t.unique_id, t.name, t.reason.message, tuple(t.path))
            for t in selection.tests
        )
        unit = (ChosenTest(u, nodes[u].display_name, "", ()) for u in selection.unit_tests)
        return cls(
            tests=(*data, *unit),
            models=tuple(selection.models),
            proven=tuple(test.unique_id for test in selection.proven),
            blocked=tuple(test.unique_id for test in selection.blocked),
            all_tests=selection.counts.all_tests,
            seconds=seconds,
            not_analysed={one.unique_id: one.reason.message for one in selection.opaque},
            selection=selection,
            sides=sides,
            explain=explain,
            **known,
        )

    @property
    def rows(self) -> tuple[ChosenTest, ...]:
        """The tests."""
        return self.tests

    def __len__(self) -> int:
        return len(self.tests)

    def why(self, test: ChosenTest | str) -> Explained:
        """Why a test is selected, or why not.

        Args:
            test: one of the tests, a unique_id, a name, or a part of a name that only one test has.

        Raises:
            RippleError: there is no such test; the nearest are given.
        """
        return self.explain(test if isinstance(test, str) else test.unique_id)

    def to_dbt_args(self) -> list[str]:
        """Arguments for ``dbt build``: the models, and these tests alone; empty where there is nothing to do."""
        from dbt_ripple.rendering.selection import names

        words = names(self.selection, self.sides.head.project)
        return ["--indirect-selection", "empty", "--select", *words] if words else []

    def _document(self) -> Any:
        return self.selection

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        def place(vertex: str) -> Place:
            nodes = self.sides.head.project.nodes
            node, _, column = vertex.rpartition(".")
            return (vertex, None) if vertex in nodes else (node, column)

        pairs = (p for t in self.tests for p in zip(t.path, t.path[1:], strict=False))
        for parent, child in dict.fromkeys(pairs):
            yield place(parent), place(child), {}

    def _headline(self) -> str:
        return f"{len(self):,} of {self.all_tests:,} tests, {len(self.models):,} to build"


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step on the way of a change.

    Attributes:
        column: None for a test; ``*rows*`` is which rows there are.
        expression: the SQL that computes it on head, where it is at hand.
    """

    unique_id: str
    column: str | None
    expression: str | None


@dataclass(frozen=True)
class Explained(Answer[ExplainedStep]):
    """Why a test is selected or not, or a node or column differs or not; iterates over the way of the change.

    Attributes:
        verdict: of a test: selected, proven, blocked or not selected. Of a node or a column: new, changed (by
            itself), affected (by what it reads) or not changed.
        reason: why, in a sentence.
        path: from where the change began, or to where it stops.
        before: at the beginning of the path, what base has there.
        after: likewise, of head.
    """

    unique_id: str
    verdict: str
    reason: str
    path: tuple[ExplainedStep, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    explanation: Explanation = field(repr=False, compare=False)
    """For renderers."""

    _row: ClassVar[type] = ExplainedStep

    @classmethod
    def of(cls, explained: Explanation, **known: Any) -> Explained:
        """An answer as it was made."""
        return cls(
            unique_id=explained.unique_id,
            verdict=explained.verdict,
            reason=explained.reason.message,
            path=tuple(
                ExplainedStep(step.unique_id, step.column, step.expression)
                for step in explained.path
            ),
            before=tuple(explained.before),
            after=tuple(explained.after),
            explanation=explained,
            **known,
        )

    @property
    def rows(self) -> tuple[ExplainedStep, ...]:
        """The steps."""
        return self.path

    def _document(self) -> Any:
        return self.explanation

    def _edges(self) -> Iterator[tuple[Place, Place, dict[str, Any]]]:
        for one, next_ in zip(self.path, self.path[1:], strict=False):
            yield (one.unique_id, one.column), (next_.unique_id, next_.column), {}

    def _headline(self) -> str:
        return f"{self.unique_id}: {self.verdict}. {self.reason}"


@dataclass(frozen=True, slots=True)
class DiagnosedStep:
    """One relation that a number comes from.

    Attributes:
        depth: how many steps above.
        columns: those that the number comes from; ``*rows*`` is which rows there are.
        last_run: dbt's status of the last command that ran it; None where none did.
        freshness: that of ``dbt source freshness``; None where it was not asked.
        changes: what is not as it was at `since`, as ``column: what``.
        failed_tests: names of the tests of these columns that did not pass when they last ran.
    """

    unique_id: str
    name: str
    depth: int
    columns: tuple[str, ...]
    may_read: bool
    owner: str | None
    last_run: str | None
    freshness: str | None
    changes: tuple[str, ...]
    failed_tests: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosed(Answer[DiagnosedStep]):
    """All that a number is computed from; iterates over it, nearest first, the number's own node before all.

    Attributes:
        root: unique_id of the node.
        column: None where all of them were asked about.
    """

    root: str
    column: str | None
    steps: tuple[DiagnosedStep, ...]
    diagnosis: Diagnosis = field(repr=False, compare=False)
    """For renderers."""

    _row: ClassVar[type] = DiagnosedStep

    @classmethod
    def of(cls, diagnosis: Diagnosis, **known: Any) -> Diagnosed:
        """An answer as it was made."""
        return cls(
            root=diagnosis.root,
            column=diagnosis.column,
            steps=tuple(
                DiagnosedStep(
                    *(step.unique_id, step.full_name, step.depth),
                    *(tuple(column.name for column in step.columns), step.may_read, step.owner),
                    step.last_run.status if step.last_run else None,
                    step.freshness.status if step.freshness else None,
                    tuple(f"{c.column or ROWS}: {c.change}" for c in step.changes),
                    tuple(t.name for t in step.tests if t.status not in (None, "pass", "success")),
                )
                for step in diagnosis.steps
            ),
            diagnosis=diagnosis,
            **known,
        )

    @property
    def rows(self) -> tuple[DiagnosedStep, ...]:
        """The steps."""
        return self.steps

    def _document(self) -> Any:
        return self.diagnosis

    def _headline(self) -> str:
        return f"{self.diagnosis.spoken}: {len(self.steps):,} steps"
