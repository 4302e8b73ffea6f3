"""All that an incident is made of: artifacts of now and of before, and what the lineage tables tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.changes import Comparison
from dbt_ripple.governance.diagnose import Diagnosis, Step, columns_to_start_from
from dbt_ripple.governance.incident_document import LastSuccess, ReportedBy, Violation
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.reasons import Code, Reason

FAILED: Final = frozenset({"fail", "error", "runtime error"})
PASSED: Final = frozenset({"pass", "success"})


class Past(NamedTuple):
    """One project as it was.

    Attributes:
        comparison: of it and now.
        ids: gives the id that a step has in that project; None where it is of another one.
        back: the inverse.
        results: how its last command ended.
    """

    comparison: Comparison
    ids: Callable[[str], str | None]
    back: Callable[[str], str]
    results: Sequence[RunResult]


class TableChange(msgspec.Struct, kw_only=True):
    """A change of a definition upstream, as the package's `changed_upstream` has it."""

    unique_id: str
    depth: int
    column: str | None
    change: str
    before: str | None
    after: str | None
    changed_at: datetime | None
    git_sha: str | None


class FromTables(msgspec.Struct, kw_only=True):
    """What the lineage tables tell (`dbt_runner.incident_tables`).

    Attributes:
        changes: of definitions upstream, each with when it came into use.
        passed: when nodes and tests were last well, by unique_id.
        opened_at: since when what was asked about fails; None where no incident of it is open.
        last_status: how it ended then at last.
        last_failed_at: when that was.
        violations: of promises upstream.
    """

    changes: list[TableChange] = []
    passed: dict[str, LastSuccess] = {}
    opened_at: datetime | None = None
    last_status: str | None = None
    last_failed_at: datetime | None = None
    violations: list[Violation] = []


class Window(NamedTuple):
    """When it can have happened.

    Attributes:
        opened_at: since when it fails.
        last_passed: when it last passed.
        since: how long before the failure a change is recent.
    """

    opened_at: datetime | None
    last_passed: datetime | None
    since: timedelta

    def ruled_out(self, at: datetime | None) -> Reason | None:
        """Why a change that came into use at that time is not the cause."""
        if at is None:
            return None
        if self.last_passed is not None and as_utc(at) <= as_utc(self.last_passed):
            return Code.IN_USE_WHEN_IT_PASSED(at=moment(at), passed=moment(self.last_passed))
        if self.opened_at is not None and as_utc(at) > as_utc(self.opened_at):
            return Code.IN_USE_AFTER_FAILURE(at=moment(at), failed=moment(self.opened_at))
        return None

    def is_recent(self, at: datetime | None) -> bool:
        """Whether that is within `since` before the failure; of what has no date it may be."""
        if at is None or self.opened_at is None:
            return True
        return as_utc(at) >= as_utc(self.opened_at) - self.since


@dataclass(frozen=True)
class AtHand:
    """What is known of a failure.

    Attributes:
        project: all that is at hand, other projects and assets included.
        analysis: of it.
        root: what failed, or is wrong.
        diagnosis: `diagnosis` of it, with the changes of `past`.
        own: the project that is asked about alone: its commands are given.
        past: older artifacts.
        tables: what the lineage tables say; None where they were not asked.
        since: how long before the failure a change is recent.
        project_of: the name of the project of each node that is of another one.
        commit_of: the last commit of a node's file, where that is known.
    """

    project: Project
    analysis: Analysis
    root: Node
    diagnosis: Diagnosis
    own: Project
    past: Sequence[Past] = ()
    tables: FromTables | None = None
    since: timedelta = timedelta(hours=24)
    project_of: Mapping[str, str] = field(default_factory=dict)
    commit_of: Callable[[Node], tuple[str, datetime] | None] | None = None

    @property
    def is_test(self) -> bool:
        """Whether a test is asked about."""
        return self.root.resource_type in ("test", "unit_test")

    @cached_property
    def steps(self) -> dict[str, Step]:
        """What it comes from, by unique_id."""
        return {step.unique_id: step for step in self.diagnosis.steps}

    @cached_property
    def results(self) -> dict[str, RunResult]:
        """How the last command ended, by unique_id."""
        return {result.unique_id: result for result in self.project.executed}

    @cached_property
    def about(self) -> list[str]:
        """The nodes that a question is about: of a test, what it is on first."""
        root = self.root
        if not self.is_test:
            return [root.unique_id]
        read = [v[0] for v in columns_to_start_from(self.analysis, root, None, rows=True)]
        first = [root.attached_node] if root.attached_node in self.project.nodes else []
        return list(dict.fromkeys([*(u for u in first if u), *read, *root.depends_on.nodes]))

    @cached_property
    def passed(self) -> dict[str, LastSuccess]:
        """When each node last succeeded, by the newest result that is available."""
        successes: dict[str, list[LastSuccess]] = {}

        def add(unique_id: str, result: RunResult, reported_by: ReportedBy) -> None:
            if result.status in PASSED:
                successes.setdefault(unique_id, []).append(
                    LastSuccess(
                        at=result.completed_at,
                        invocation_id=result.invocation_id or None,
                        reported_by=reported_by,
                    )
                )

        for unique_id, result in self.results.items():
            add(unique_id, result, "run_results")
        for one in self.past:
            for result in one.results:
                add(one.back(result.unique_id), result, "state")
        for unique_id, success in (self.tables.passed if self.tables is not None else {}).items():
            successes.setdefault(unique_id, []).append(success)
        return {u: max(all_, key=lambda s: _order(s.at)) for u, all_ in successes.items()}


def _order(at: datetime | None) -> datetime:
    return as_utc(at) if at is not None else datetime.min.replace(tzinfo=UTC)


def moment(at: datetime) -> str:
    """A time as people read it."""
    return as_utc(at).strftime("%Y-%m-%d %H:%M:%S UTC")
