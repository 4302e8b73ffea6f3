"""What on-call has to know of a failed test or a wrong number: one document for every form of it.

It is put together from what other questions answer: the steps and changes of `governance.diagnose`,
the promises of `governance.contracts`, the walk of `governance.diagnose`; likely causes are ordered by
`governance.suspects`.

No value of a row is in it. What an engine says of a failure may quote one (``Could not convert string
'x@y.z'``), so a message is told only by its kind, out of a closed list, unless it is asked for and
nothing on the way holds personal data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final

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
from dbt_ripple.governance.affected_assets import matters
from dbt_ripple.governance.at_hand import FAILED, PASSED, AtHand, Window, moment
from dbt_ripple.governance.diagnose import ColumnReach, columns_to_start_from
from dbt_ripple.governance.incident_document import (
    Commands,
    Containment,
    Failure,
    Impacted,
    Incident,
    IncidentSeverity,
    JobRun,
    LastSuccess,
    SourceState,
    State,
    Suspect,
    Violation,
)
from dbt_ripple.governance.suspects import (
    broken_promises,
    is_on_the_way,
    suspects,
)
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import pii_columns
from dbt_ripple.graph.traversal import reach, reach_all
from dbt_ripple.reasons import Code, Reason

Words = Callable[[Sequence[str]], list[str]]
"""Writes nodes of the first project as words of dbt's ``--select``."""

NAMED: Final = 40
"""Nodes up to which a command names each one; above that it says it with dbt's graph operator."""

_BUILT: Final = frozenset({"model", "seed", "snapshot"})
_WRITTEN: Final = frozenset({"asset", "dataset", "source"})


def incident(known: AtHand, words: Words, *, messages: bool = False) -> Incident:
    """Put together what is known.

    Args:
        known: of the failure.
        words: names nodes for dbt.
        messages: whether dbt's messages are wanted.
    """
    project, root, own, whose = known.project, known.root, known.own, known.project_of
    column = known.diagnosis.column
    with_personal_data = {
        c.unique_id for c in pii_columns(project, known.analysis) if c.origin != "declassified"
    }
    sensitive = sorted({*known.steps, root.unique_id, *known.about} & with_personal_data)
    failed = _failed(known)
    withheld = None
    if messages and sensitive:
        names = [project.nodes[u].display_name for u in sensitive]
        withheld = Code.MESSAGES_WITHHELD(names=names)
    elif messages:
        for failure in failed:
            result = known.results.get(failure.unique_id)
            failure.dbt_message = result.message if result is not None else None
    state = _state(known, failed)
    window = _window(known, failed)
    ranked = suspects(known, window)
    impacted = _impacted(known)
    owned = root if not known.is_test else None
    owned = owned or next((project.nodes[u] for u in known.about if u in project.nodes), root)
    of_other = f"{whose[root.unique_id]}." if root.unique_id in whose else ""
    return Incident(
        root=root.unique_id,
        name=f"{of_other}{root.display_name}",
        column=column,
        project=own.name,
        target=_target(own),
        **ownership(owned, project),
        state=state,
        severity=_severity(failed, impacted, state),
        dedup_key=dedup_key(own, root, column),
        opened_at=window.opened_at,
        failed=failed,
        last_successful_run=known.passed.get(owned.unique_id),
        sources=_sources(known),
        jobs=_jobs(known),
        suspects=ranked,
        contract_violations=_violations(known),
        impacted=impacted,
        exposures=[i.unique_id for i in impacted if i.unique_id.startswith("exposure.")],
        containment=_containment(known, ranked, impacted, words),
        compared_with=[
            at
            for one in known.past
            if (at := one.comparison.base.metadata.generated_at) is not None
        ],
        since_hours=known.since / timedelta(hours=1),
        not_at_hand=_not_at_hand(known, window),
        messages_withheld=withheld,
        sensitive=sensitive,
    )


def _state(known: AtHand, failed: Sequence[Failure]) -> State:
    """Whether it fails, as far as the last command tells."""
    if any(f.status in FAILED or f.status in ("warn", "skipped") for f in failed):
        return "failing"
    own = known.results.get(known.root.unique_id)
    return "passing" if known.is_test and own is not None and own.status in PASSED else "unknown"


def _window(known: AtHand, failed: Sequence[Failure]) -> Window:
    """When it can have happened."""
    opened = known.tables.opened_at if known.tables is not None else None
    times = [f.at for f in failed if f.at is not None]
    passed = known.passed.get(known.root.unique_id)
    return Window(
        opened_at=opened or min(times, default=None),
        last_passed=passed.at if passed is not None else None,
        since=known.since,
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


def _failed(known: AtHand) -> list[Failure]:
    """The node in question and the tests on it, as far as they did not succeed."""
    root, tables, is_test = known.root, known.tables, known.is_test
    wanted = [root.unique_id]
    if not is_test:
        first = known.steps.get(root.unique_id)
        wanted += [guard.unique_id for guard in (first.tests if first is not None else ())]
    failed = []
    for unique_id in wanted:
        result = known.results.get(unique_id)
        status = result.status if result is not None else None
        if unique_id == root.unique_id and status is None and tables is not None:
            status = tables.last_status
        well = status is None or status in PASSED or status == "no-op"
        # A test that was asked about is always told of; the rest only where it did not end well.
        if well and not (is_test and unique_id == root.unique_id):
            continue
        node = known.project.nodes[unique_id]
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
                last_passed=known.passed.get(unique_id),
                tested=node.attached_node or (known.about[0] if is_test and known.about else None),
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


def _sources(known: AtHand) -> list[SourceState]:
    return [
        SourceState(
            unique_id=step.unique_id,
            name=step.full_name,
            freshness=step.freshness,
            owner=step.owner,
            owner_email=step.owner_email,
            owner_channel=step.owner_channel,
        )
        for step in known.diagnosis.steps
        if (node := known.project.nodes.get(step.unique_id)) is not None
        and node.resource_type == "source"
    ]


def _jobs(known: AtHand) -> list[JobRun]:
    """What runs outside of dbt; collected events tell of its runs."""
    runs: dict[str, list[RunResult]] = {}
    for result in known.project.executed:
        if result.unique_id.startswith("asset."):
            runs.setdefault(result.unique_id, []).append(result)
    jobs = []
    for step in known.diagnosis.steps:
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


def _violations(known: AtHand) -> list[Violation]:
    violations = []
    for one in known.past:
        broken = broken_promises(one.comparison)
        for step in known.diagnosis.steps:
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
    for violation in known.tables.violations if known.tables is not None else ():
        if violation.unique_id in known.steps:
            violations.append(violation)
    return violations


# --- downstream ------------------------------------------------------------------------------------


def _impacted(known: AtHand) -> list[Impacted]:
    project, analysis = known.project, known.analysis
    starts = columns_to_start_from(analysis, known.root, known.diagnosis.column, rows=False)
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
        if (unique_id in known.about and first) or node.resource_type == "source":
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
                project=known.project_of.get(unique_id),
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


# --- until it is fixed ------------------------------------------------------------------------------


def _containment(
    known: AtHand, ranked: Sequence[Suspect], impacted: Sequence[Impacted], words: Words
) -> Containment:
    """What to leave out of the next run, what to build once the cause is fixed, and what shows that it is.

    Args:
        known: of the failure.
        ranked: the likely causes.
        impacted: what is below.
        words: names nodes for dbt.
    """
    own, project, root, is_test = known.own, known.project, known.root, known.is_test
    below = [i.unique_id for i in impacted]
    wrong = [u for u in known.about if _is_built(own, u)]
    if is_test and root.attached_node in wrong:
        wrong = [str(root.attached_node)]
    built_below = [u for u in below if _is_built(own, u)]
    pause = list(dict.fromkeys([*wrong, *built_below]))
    begin = next((s for s in ranked if s.ruled_out is None and _is_built(own, s.unique_id)), None)
    rebuild = pause
    if begin is not None and begin.unique_id not in pause:
        above = reach_all(pause, own.parents)
        between = [u for u in reach(begin.unique_id, own.children) if u in above]
        rebuild = [u for u in between if u in known.steps and _is_built(own, u) and u not in pause]
        rebuild = list(dict.fromkeys([begin.unique_id, *rebuild, *pause]))
    checks = [root.unique_id] if is_test and root.unique_id in own.nodes else []
    checks = checks or list(wrong[:1])
    # What passes on what is wrong, or writes it; who loads what is above has nothing to do with it.
    writers = project.parents.get(root.unique_id, []) if root.resource_type in _WRITTEN else []
    dags = [
        str(node.name)
        for u in dict.fromkeys([root.unique_id, *writers, *below])
        if (node := project.nodes.get(u)) is not None and asset_type(node) == "dag"
    ]
    return Containment(
        pause=_commands("build --exclude", pause, wrong, own, words),
        rebuild=_commands(
            "build --select", rebuild, rebuild[:1] if begin is not None else wrong, own, words
        ),
        check=_commands("test --select", checks, checks, own, words),
        dags=dags,
        elsewhere=[
            u for u in below if u in known.project_of and project.nodes[u].resource_type in _BUILT
        ],
    )


def _is_built(own: Project, unique_id: str) -> bool:
    node = own.nodes.get(unique_id)
    return node is not None and node.resource_type in _BUILT


def _commands(
    verb: str, nodes: Sequence[str], tops: Sequence[str], own: Project, words: Words
) -> Commands:
    """A command on nodes; on many of them it names the topmost, and says everything below."""
    if not nodes:
        return Commands(nodes=[], words=[], exact=True, command="")
    exact = len(nodes) <= NAMED
    named = words(list(nodes)) if exact else [f"{word}+" for word in words(list(tops))]
    return Commands(
        nodes=list(nodes), words=named, exact=exact, command=f"dbt {verb} {' '.join(named)}"
    )


# --- what is missing -------------------------------------------------------------------------------


def _not_at_hand(known: AtHand, window: Window) -> list[Reason]:
    missing = []
    if not known.past and known.tables is None:
        missing.append(Code.NO_OLDER_ARTIFACTS())
    if known.tables is None:
        missing.append(Code.NO_LINEAGE_TABLES())
    if not known.project.executed:
        missing.append(Code.NO_LAST_RESULTS())
    sources = [u for s in known.diagnosis.steps if (u := s.unique_id).startswith("source.")]
    if sources and not known.project.freshness:
        missing.append(Code.NO_FRESHNESS())
    for one in known.past:
        at = one.comparison.base.metadata.generated_at
        if at is not None and window.opened_at is not None and as_utc(at) > window.opened_at:
            missing.append(Code.STATE_IS_NEWER(at=moment(at)))
    unseen = [
        step.full_name
        for step in known.diagnosis.steps
        if (analysed := known.analysis.nodes.get(step.unique_id)) is not None
        and analysed.is_unanalysed
    ]
    if unseen:
        missing.append(Code.NOT_FOLLOWED_ON_THE_WAY(names=unseen))
    return missing


# --- messages --------------------------------------------------------------------------------------

KINDS: Final = (
    # dbt's own
    "enforced contract",
    "Compilation Error",
    "Dependency Error",
    "Parsing Error",
    # of engines, in their words
    "Conversion Error",
    "Constraint Error",
    "Binder Error",
    "Catalog Error",
    "Parser Error",
    "Out of Range Error",
    "Out of Memory Error",
    "UNRESOLVED_COLUMN",
    "TABLE_OR_VIEW_NOT_FOUND",
    "CAST_INVALID_INPUT",
    "DIVIDE_BY_ZERO",
    "permission denied",
    "timeout",
    # dbt's words around what an engine says
    "Runtime Error",
    "Database Error",
)
"""All that is ever told of a message: a longer phrase of this list, and nothing beside it."""


def error_kind(message: str | None) -> str | None:
    r"""The first of `KINDS` that stands in a message; None where none does.

    Example:
        >>> error_kind("Runtime Error in model m\n  Conversion Error: Could not convert 'x@y.z'")
        'Conversion Error'
        >>> error_kind("ada@x.example") is None
        True
    """
    text = (message or "").casefold()
    return next((kind for kind in KINDS if kind.casefold() in text), None)
