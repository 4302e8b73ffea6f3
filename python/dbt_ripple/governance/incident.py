"""What on-call has to know of a failed test or a wrong number: one document for every form of it.

It is put together from what other questions answer: the steps and changes of `governance.diagnose`,
the promises of `governance.contracts`, the walk of `governance.reached_columns`; likely causes are ordered by
`governance.suspects`.

No value of a row is in it. What an engine says of a failure may quote one (``Could not convert string
'x@y.z'``), so a message is told only by its kind, out of a closed list, unless it is asked for and
nothing on the way holds personal data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import (
    Node,
    Project,
    RunResult,
    asset_type,
    criticality,
    ownership,
)
from dbt_ripple.artifacts.assets_file import DATASETS
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.changes import Comparison
from dbt_ripple.governance.affected_assets import matters
from dbt_ripple.governance.containment_commands import Words, containment
from dbt_ripple.governance.diagnose import Diagnosis
from dbt_ripple.governance.incident_document import (
    Failure,
    Impacted,
    Incident,
    IncidentSeverity,
    JobRun,
    LastSuccess,
    ReportedBy,
    SourceState,
    State,
    Violation,
)
from dbt_ripple.governance.incident_messages import error_kind
from dbt_ripple.governance.reached_columns import ColumnReach, columns_to_start_from
from dbt_ripple.governance.suspects import (
    TableChange,
    Window,
    broken_promises,
    is_on_the_way,
    suspects,
)
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import pii_columns
from dbt_ripple.graph.traversal import reach_all
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


def incident(
    project: Project,
    analysis: Analysis,
    root: Node,
    diagnosis: Diagnosis,
    words: Words,
    *,
    own: Project,
    past: Sequence[Past] = (),
    tables: FromTables | None = None,
    since: timedelta = timedelta(hours=24),
    messages: bool = False,
    project_of: Mapping[str, str] | None = None,
    commit_of: Callable[[Node], tuple[str, datetime] | None] | None = None,
) -> Incident:
    """Put together what is known.

    Args:
        project: all that is at hand, other projects and assets included.
        analysis: of it.
        root: what failed, or is wrong.
        diagnosis: `diagnosis` of it, with the changes of `past`.
        words: names nodes for dbt.
        own: the project that is asked about alone: its commands are given.
        past: older artifacts.
        tables: what the lineage tables say; None where they were not asked.
        since: how long before the failure a change is recent.
        messages: whether dbt's messages are wanted.
        project_of: the name of the project of each node that is of another one.
        commit_of: the last commit of a node's file, where that is known.
    """
    column, whose = diagnosis.column, project_of or {}
    results = {result.unique_id: result for result in project.executed}
    with_personal_data = {
        c.unique_id for c in pii_columns(project, analysis) if c.origin != "declassified"
    }
    about = _about(project, analysis, root)
    on_the_way = {step.unique_id for step in diagnosis.steps} | {root.unique_id, *about}
    sensitive = sorted(on_the_way & with_personal_data)
    passed = _passed(results, past, tables)
    failed = _failed(
        project=project,
        root=root,
        about=about,
        column=column,
        diagnosis=diagnosis,
        results=results,
        passed=passed,
        tables=tables,
    )
    withheld = None
    if messages and sensitive:
        names = [project.nodes[u].display_name for u in sensitive]
        withheld = Code.MESSAGES_WITHHELD(names=names)
    elif messages:
        for failure in failed:
            result = results.get(failure.unique_id)
            failure.dbt_message = result.message if result is not None else None
    state: State = "unknown"
    own_result = results.get(root.unique_id)
    if any(f.status in FAILED or f.status in ("warn", "skipped") for f in failed):
        state = "failing"
    elif own_result is not None and root.resource_type in ("test", "unit_test"):
        state = "passing" if own_result.status in PASSED else "unknown"
    opened = tables.opened_at if tables is not None else None
    times = [f.at for f in failed if f.at is not None]
    opened = opened or min(times, default=None)
    window = Window(
        opened_at=opened,
        last_passed=passed[root.unique_id].at if root.unique_id in passed else None,
        since=since,
    )
    ranked = suspects(
        project=project,
        analysis=analysis,
        root=root,
        diagnosis=diagnosis,
        past=[(one.comparison, one.ids, one.back) for one in past],
        window=window,
        results=results,
        from_tables=tables.changes if tables is not None else (),
        commit_of=commit_of,
    )
    impacted = _impacted(project, analysis, root, column, about, whose)
    exposures = [i.unique_id for i in impacted if i.unique_id.startswith("exposure.")]
    owned = root if root.resource_type not in ("test", "unit_test") else None
    owned = owned or next((project.nodes[u] for u in about if u in project.nodes), root)
    return Incident(
        root=root.unique_id,
        name=f"{whose[root.unique_id]}.{root.display_name}"
        if root.unique_id in whose
        else root.display_name,
        column=column,
        project=own.name,
        target=_target(own),
        **ownership(owned, project),
        state=state,
        severity=_severity(failed, impacted, state),
        dedup_key=dedup_key(own, root, column),
        opened_at=opened,
        failed=failed,
        last_successful_run=passed.get(owned.unique_id),
        sources=_sources(project, diagnosis),
        jobs=_jobs(project, diagnosis),
        suspects=ranked,
        contract_violations=_violations(project, diagnosis, past, tables),
        impacted=impacted,
        exposures=exposures,
        containment=containment(
            own=own,
            project=project,
            root=root,
            about=about,
            diagnosis=diagnosis,
            ranked=ranked,
            impacted=impacted,
            words=words,
            whose=whose,
        ),
        compared_with=[
            at for one in past if (at := one.comparison.base.metadata.generated_at) is not None
        ],
        since_hours=since / timedelta(hours=1),
        not_at_hand=_not_at_hand(project, analysis, diagnosis, past, tables, window),
        messages_withheld=withheld,
        sensitive=sensitive,
    )


def dedup_key(project: Project, root: Node, column: str | None) -> str:
    """The key by which a pager knows an incident again: made of names only, at most 255 characters."""
    parts = ("dbt-ripple", project.name, _target(project) or "", root.unique_id, column or "")
    key = ":".join(part for part in parts if part)
    if len(key) <= _KEY and key.isprintable():
        return key
    return f"dbt-ripple:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


_KEY: Final = 255


def _target(project: Project) -> str | None:
    target = project.run_args.get("target")
    return target if isinstance(target, str) and target else None


# --- what failed -----------------------------------------------------------------------------------


def _about(project: Project, analysis: Analysis, root: Node) -> list[str]:
    """The nodes that a question is about: of a test, what it is on first."""
    if root.resource_type not in ("test", "unit_test"):
        return [root.unique_id]
    read = [v[0] for v in columns_to_start_from(analysis, root, None, rows=True)]
    first = [root.attached_node] if root.attached_node in project.nodes else []
    return list(dict.fromkeys([*(u for u in first if u), *read, *root.depends_on.nodes]))


def _passed(
    results: Mapping[str, RunResult], past: Sequence[Past], tables: FromTables | None
) -> dict[str, LastSuccess]:
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

    for unique_id, result in results.items():
        add(unique_id, result, "run_results")
    for one in past:
        for result in one.results:
            add(one.back(result.unique_id), result, "state")
    for unique_id, success in (tables.passed if tables is not None else {}).items():
        successes.setdefault(unique_id, []).append(success)
    return {u: max(all_, key=lambda s: _order(s.at)) for u, all_ in successes.items()}


def _order(at: datetime | None) -> datetime:
    return as_utc(at) if at is not None else datetime.min.replace(tzinfo=UTC)


def _failed(
    project: Project,
    root: Node,
    about: Sequence[str],
    column: str | None,
    diagnosis: Diagnosis,
    results: Mapping[str, RunResult],
    passed: Mapping[str, LastSuccess],
    tables: FromTables | None,
) -> list[Failure]:
    """The node in question and the tests on it, as far as they did not succeed."""
    is_test = root.resource_type in ("test", "unit_test")
    wanted = [root.unique_id]
    if not is_test:
        first = next((s for s in diagnosis.steps if s.unique_id == root.unique_id), None)
        wanted += [guard.unique_id for guard in (first.tests if first is not None else ())]
    failed = []
    for unique_id in wanted:
        result = results.get(unique_id)
        status = result.status if result is not None else None
        if unique_id == root.unique_id and status is None and tables is not None:
            status = tables.last_status
        well = status is None or status in PASSED or status == "no-op"
        # A test that was asked about is always told of; the rest only where it did not end well.
        if well and not (is_test and unique_id == root.unique_id):
            continue
        node = project.nodes[unique_id]
        asked = tables if unique_id == root.unique_id else None
        at = result.completed_at if result is not None else None
        if asked is not None and result is None:
            at = asked.last_failed_at
        failed.append(
            Failure(
                unique_id=unique_id,
                name=node.display_name,
                resource_type=node.resource_type,
                status=status,
                failures=result.failures if result is not None else None,
                at=at,
                first_failed_at=asked.opened_at if asked is not None else None,
                invocation_id=(result.invocation_id or None) if result is not None else None,
                error_kind=error_kind(result.message)
                if result is not None and status in ("error", "runtime error")
                else None,
                dbt_message=None,
                last_passed=passed.get(unique_id),
                tested=node.attached_node or (about[0] if is_test and about else None),
            )
        )
    return failed


def _severity(
    failed: Iterable[Failure], impacted: Sequence[Impacted], state: State
) -> IncidentSeverity:
    statuses = {failure.status for failure in failed}
    if state == "passing":
        return "info"
    if not statuses & FAILED and "skipped" not in statuses:
        return "warning"
    if any(asset.matters or asset.asset_type in _CONSUMERS for asset in impacted):
        return "critical"
    return "error"


_CONSUMERS: Final = frozenset(
    {"dashboard", "report", "application", "ml_model", "notebook", "analysis", "api"}
)


# --- upstream --------------------------------------------------------------------------------------


def _sources(project: Project, diagnosis: Diagnosis) -> list[SourceState]:
    return [
        SourceState(
            unique_id=step.unique_id,
            name=step.full_name,
            freshness=step.freshness,
            owner=step.owner,
            owner_email=step.owner_email,
            owner_channel=step.owner_channel,
        )
        for step in diagnosis.steps
        if (node := project.nodes.get(step.unique_id)) is not None
        and node.resource_type == "source"
    ]


def _jobs(project: Project, diagnosis: Diagnosis) -> list[JobRun]:
    """What runs outside of dbt; collected events tell of its runs."""
    runs: dict[str, list[RunResult]] = {}
    for result in project.executed:
        if result.unique_id.startswith("asset."):
            runs.setdefault(result.unique_id, []).append(result)
    jobs = []
    for step in diagnosis.steps:
        if step.unique_id not in runs and step.asset_type not in _JOBS:
            continue
        own = runs.get(step.unique_id, [])
        last = own[-1] if own else None
        well = next((run for run in reversed(own) if run.status in PASSED), None)
        jobs.append(
            JobRun(
                unique_id=step.unique_id,
                name=step.full_name,
                asset_type=step.asset_type,
                status=last.status if last is not None else None,
                at=last.completed_at if last is not None else None,
                run_id=(last.invocation_id or None) if last is not None else None,
                last_success=LastSuccess(
                    at=well.completed_at,
                    invocation_id=well.invocation_id or None,
                    reported_by="events",
                )
                if well is not None
                else None,
                owner=step.owner,
                owner_email=step.owner_email,
                owner_channel=step.owner_channel,
            )
        )
    return jobs


_JOBS: Final = frozenset({"dag", "spark_job", "stream", "job"})


def _violations(
    project: Project, diagnosis: Diagnosis, past: Sequence[Past], tables: FromTables | None
) -> list[Violation]:
    violations = []
    for one in past:
        broken = broken_promises(one.comparison)
        for step in diagnosis.steps:
            for breach in broken.get(one.ids(step.unique_id) or "", ()):
                if not is_on_the_way(breach, step):
                    continue
                violations.append(
                    Violation(
                        unique_id=step.unique_id,
                        name=step.full_name,
                        column=breach.column,
                        rule=breach.rule,
                        reason=breach.reason,
                        at=None,
                        owner=step.owner,
                    )
                )
    steps = {step.unique_id: step for step in diagnosis.steps}
    for violation in tables.violations if tables is not None else ():
        if violation.unique_id in steps:
            violations.append(violation)
    return violations


# --- downstream ------------------------------------------------------------------------------------


def _impacted(
    project: Project,
    analysis: Analysis,
    root: Node,
    column: str | None,
    about: Sequence[str],
    whose: Mapping[str, str],
) -> list[Impacted]:
    starts = columns_to_start_from(analysis, root, column, rows=False)
    reached = ColumnReach(project, analysis).below(starts)
    near = reach_all(list(dict.fromkeys(v[0] for v in starts)), project.children)
    reached_columns = {*starts, *(v for vertices in reached.by_node().values() for v in vertices)}
    read_by: dict[str, set[str]] = {}
    for edge in analysis.edges:
        if (edge.parent_id, edge.parent_column) in reached_columns:
            read_by.setdefault(edge.child_id, set()).add(edge.parent_column)
    impacted = []
    for unique_id, vertices in reached.by_node().items():
        node = project.nodes.get(unique_id)
        if node is None or node.resource_type in ("test", "unit_test"):
            continue
        first = all(vertex in starts for vertex in vertices)
        # What is wrong itself is no consequence, and a source below is another project's name for a relation.
        if (unique_id in about and first) or node.resource_type == "source":
            continue
        columns = {v[1] for v in vertices}
        if node.resource_type == "asset" and node.type not in DATASETS:
            columns = read_by.get(unique_id, columns)  # its own are what it writes
        impacted.append(
            Impacted(
                unique_id=unique_id,
                name=node.display_name,
                asset_type=asset_type(node),
                columns=sorted(columns - {ROWS}) or [ROWS],
                depth=near.get(unique_id, reached.depths[vertices[0]]),
                may_read=not any(vertex in reached.sure for vertex in vertices),
                criticality=criticality(node),
                matters=matters(node),
                **ownership(node, project),
                project=whose.get(unique_id),
            )
        )
    # As the package's who_to_page.
    impacted.sort(
        key=lambda i: (
            i.criticality is None,
            i.criticality or "",
            i.depth,
            i.owner or "~",
            i.unique_id,
        )
    )
    return impacted


# --- what is missing -------------------------------------------------------------------------------


def _not_at_hand(
    project: Project,
    analysis: Analysis,
    diagnosis: Diagnosis,
    past: Sequence[Past],
    tables: FromTables | None,
    window: Window,
) -> list[Reason]:
    missing = []
    if not past and tables is None:
        missing.append(Code.NO_OLDER_ARTIFACTS())
    if tables is None:
        missing.append(Code.NO_LINEAGE_TABLES())
    if not project.executed:
        missing.append(Code.NO_LAST_RESULTS())
    sources = [u for s in diagnosis.steps if (u := s.unique_id).startswith("source.")]
    if sources and not project.freshness:
        missing.append(Code.NO_FRESHNESS())
    for one in past:
        at = one.comparison.base.metadata.generated_at
        if at is not None and window.opened_at is not None and as_utc(at) > window.opened_at:
            missing.append(Code.STATE_IS_NEWER(at=moment(at)))
    unseen = [
        step.full_name
        for step in diagnosis.steps
        if (analysed := analysis.nodes.get(step.unique_id)) is not None and analysed.is_unanalysed
    ]
    if unseen:
        missing.append(Code.NOT_FOLLOWED_ON_THE_WAY(names=unseen))
    return missing


def moment(at: datetime) -> str:
    """A time as people read it."""
    return as_utc(at).strftime("%Y-%m-%d %H:%M:%S UTC")
