"""Likely causes of a failure, the likeliest first.

The order is the one by which the package's `incidents` finds a cause, and its `changed_upstream` lists changes:

1. what can be the cause comes before what is ruled out: a definition that was in use when it last passed, or came
   into use after it had failed, is not what broke it;
2. where what failed was skipped, what failed above it comes first: dbt skips for no other reason;
3. a change of a definition on the way comes before trouble with data: data goes wrong in the same place again and
   again and is seen by its own tests, and the definition is what is not as it was;
4. what is known to be on the way comes before what only may be;
5. what changed within ``since`` before the failure comes before what is older, and the newer change first;
6. the nearest: fewer steps lie between that might have absorbed it, and a test nearer to the others would have
   failed for those;
7. at one distance, what breaks a promise, or takes a column away, before what is only computed otherwise.

Trouble with data is ordered the other way round, the farthest first: it comes down from above, so that what failed
below only hands it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbt_ripple.artifacts import (
    Node,
    Project,
    asset_type,
    ownership,
)
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.changes import Comparison
from dbt_ripple.governance.at_hand import FAILED, AtHand, TableChange, Window, moment
from dbt_ripple.governance.contracts import Breach, contract_breaches
from dbt_ripple.governance.diagnose import (
    ColumnReach,
    Diagnosis,
    Step,
    StepChange,
    columns_to_start_from,
)
from dbt_ripple.governance.incident_document import Reporter, Suspect, SuspectKind
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.reasons import Code, Reason

_STALE: Final = frozenset({"warn", "error", "runtime error"})
_WORST: Final = ("removed", "renamed", "redefined", "added")


def suspects(known: AtHand, window: Window) -> list[Suspect]:
    """All that may be the cause, in the order that the module's docstring gives.

    Args:
        known: of the failure.
        window: when it can have happened.
    """
    own = known.results.get(known.root.unique_id)
    was_skipped = own is not None and own.status == "skipped"
    suspected = [
        *_definitions(known, window),
        *_removed(known),
        *_test_itself(known),
        *_failures(known, was_skipped),
        *_stale(known.diagnosis),
    ]
    return sorted(suspected, key=lambda suspect: _place(suspect, was_skipped))


def _place(suspect: Suspect, was_skipped: bool) -> tuple[object, ...]:
    is_data = suspect.kind in ("failure", "freshness")
    skipped_for = was_skipped and suspect.kind == "failure"
    worst = min((_WORST.index(c.change) for c in suspect.changes if c.change in _WORST), default=1)
    at = suspect.changed_at
    return (
        suspect.ruled_out is not None,
        not skipped_for,
        is_data,
        suspect.may_read,
        not suspect.recent,
        -as_utc(at).timestamp() if at is not None else _UNDATED,
        -suspect.depth if is_data else suspect.depth,
        not suspect.promises_broken,
        worst,
        suspect.unique_id,
    )


_UNDATED: Final = float("-inf")
"""What has no date is as new as can be: it is in the artifacts of now."""


# --- definitions -----------------------------------------------------------------------------------


def _definitions(known: AtHand, window: Window) -> list[Suspect]:
    table_changes: dict[str, list[TableChange]] = {}
    for change in known.tables.changes if known.tables is not None else ():
        table_changes.setdefault(change.unique_id, []).append(change)
    promised: dict[str, list[Reason]] = {}
    for comparison, ids, *_ in known.past:
        broken = broken_promises(comparison)
        for step in known.diagnosis.steps:
            for breach in broken.get(ids(step.unique_id) or "", ()):
                # Of what only moved along, the cause is above.
                along = breach.rule == "column_redefined" and not _began(step, breach.column)
                if along or not is_on_the_way(breach, step):
                    continue
                reason = breach.reason
                if breach.column is not None:
                    reason = Code.OF_COLUMN(column=breach.column, because=reason)
                promised.setdefault(step.unique_id, []).append(reason)
    causes = []
    for step in known.diagnosis.steps:
        changes = [change for change in step.changes if change.began_here]
        rows = table_changes.get(step.unique_id, [])
        promises = promised.get(step.unique_id, [])
        if not (changes or rows or promises):
            continue
        listed = {((c.column or ROWS).lower(), c.change) for c in changes}
        for row in rows:
            if ((row.column or ROWS).lower(), row.change) not in listed:
                listed.add(((row.column or ROWS).lower(), row.change))
                changes.append(
                    StepChange(
                        column=None if row.column in (None, ROWS) else row.column,
                        change=row.change,
                        began_here=True,
                        before=row.before,
                        after=row.after,
                    )
                )
        at = max((row.changed_at for row in rows if row.changed_at is not None), default=None)
        node = known.project.nodes.get(step.unique_id)
        commit = known.commit_of(node) if known.commit_of and node is not None else None
        sha = next((row.git_sha for row in rows if row.git_sha), None)
        by: list[Reporter] = []
        by += ["state"] if any(c.began_here for c in step.changes) or promises else []
        by += ["tables"] if rows else []
        suspect = _suspect(step, "definition", _why(changes, promises), by)
        suspect.changes, suspect.promises_broken = changes, promises
        suspect.changed_at = at
        suspect.git_sha = sha or (commit[0] if commit else None)
        suspect.committed_at = commit[1] if commit else None
        suspect.recent = window.is_recent(at)
        suspect.ruled_out = window.ruled_out(at)
        causes.append(suspect)
    return causes


def _why(changes: Sequence[StepChange], promises: Sequence[Reason]) -> Reason:
    if not changes:
        return Code.SUSPECT_PROMISE(promises=list(promises))
    names = ["its rows" if c.column is None else f"{c.column} ({c.change})" for c in changes]
    return Code.SUSPECT_CHANGED(columns=list(dict.fromkeys(names)))


def _began(step: Step, column: str | None) -> bool:
    return any(
        change.began_here and (change.column or "").lower() == (column or "").lower()
        for change in step.changes
    )


def is_on_the_way(breach: Breach, step: Step) -> bool:
    """Whether a promise is about what is read of a step; who read a column that is gone may be among these."""
    return (
        breach.column is None
        or breach.rule in ("column_removed", "column_renamed")
        or breach.column.lower() in {column.name.lower() for column in step.columns}
    )


def broken_promises(comparison: Comparison) -> dict[str, list[Breach]]:
    """What promises are not kept, by unique_id of the project that is compared."""
    broken: dict[str, list[Breach]] = {}
    for breach in contract_breaches(comparison):
        if breach.unique_id is not None and not breach.old and not breach.usual:
            broken.setdefault(breach.unique_id, []).append(breach)
    return broken


def _removed(known: AtHand) -> list[Suspect]:
    """Relations that are gone, and that it came from before."""
    causes = []
    for comparison, ids, back, _ in known.past:
        if not comparison.removed:
            continue
        base = comparison.base
        unique_id = ids(known.root.unique_id)
        then = base.nodes.get(unique_id or "")
        if then is None:
            continue
        starts = columns_to_start_from(comparison.base_analysis, then, None, rows=True)
        above = ColumnReach(base, comparison.base_analysis).above(starts).by_node()
        for gone in comparison.removed:
            if gone not in above:
                continue
            node = base.nodes[gone]
            step = _beside(node, base, max(1, _depths(base, then).get(gone, 1)))
            step.unique_id = back(gone)
            suspect = _suspect(step, "definition", Code.SUSPECT_GONE(), ["state"])
            suspect.changes = [
                StepChange(column=None, change="removed", began_here=True, before=None, after=None)
            ]
            causes.append(suspect)
    return causes


def _depths(project: Project, node: Node) -> dict[str, int]:
    from dbt_ripple.graph.traversal import reach

    return reach(node.unique_id, project.parents)


def _test_itself(known: AtHand) -> list[Suspect]:
    """The test itself, if it changed."""
    if not known.is_test:
        return []
    root = known.root
    for comparison, ids, *_ in known.past:
        unique_id = ids(root.unique_id)
        if unique_id is None:
            continue
        if root.resource_type == "test":
            is_edited = unique_id in comparison.modified
        else:
            then = comparison.base_analysis.unit_tests.get(unique_id)
            now = comparison.head_analysis.unit_tests.get(unique_id)
            was, is_ = comparison.base.nodes.get(unique_id), comparison.head.nodes.get(unique_id)
            is_edited = (
                then != now
                and was is not None
                and is_ is not None
                and (was.given, was.expect) != (is_.given, is_.expect)
            ) or was is None
        if is_edited:
            step = known.steps.get(root.unique_id)
            if step is not None:
                return [_suspect(step, "test", Code.SUSPECT_TEST(), ["state"])]
    return []


# --- data ------------------------------------------------------------------------------------------


def _failures(known: AtHand, was_skipped: bool) -> list[Suspect]:
    """What failed above: a node, or a test of what it comes from.

    What was skipped was so for any node above that failed, or that a test failed on, whatever columns are
    read of it.
    """
    project, root, results, steps = known.project, known.root, known.results, {**known.steps}
    guards = {
        step.unique_id: [test.unique_id for test in step.tests] for step in known.diagnosis.steps
    }
    if was_skipped:
        tests = {node.unique_id for node in project.of_type("test", "unit_test")}
        for unique_id, depth in _depths(project, root).items():
            if (node := project.nodes.get(unique_id)) is None:
                continue
            steps.setdefault(unique_id, _beside(node, project, depth))
            below = project.children.get(unique_id, ())
            guards[unique_id] = [u for u in below if u in tests]
    causes = []
    for unique_id, step in steps.items():
        if unique_id == root.unique_id:
            continue
        own = results.get(unique_id)
        if own is not None and own.status in FAILED:
            reason = Code.SUSPECT_FAILED(status=own.status)
            causes.append(_suspect(step, "failure", reason, ["run_results"]))
            continue
        failed = [
            project.nodes[test].name
            for test in guards.get(unique_id, ())
            if test != root.unique_id
            and (result := results.get(test)) is not None
            and result.status in FAILED
        ]
        # Another test of what a test is on fails beside it, and not before it.
        if failed and unique_id != root.attached_node:
            reason = Code.SUSPECT_TESTS_FAILED(tests=failed)
            causes.append(_suspect(step, "failure", reason, ["run_results"]))
    return causes


def _beside(node: Node, project: Project, depth: int) -> Step:
    """A node upstream that is on the path of no column."""
    return Step(
        unique_id=node.unique_id,
        name=node.display_name,
        asset_type=asset_type(node),
        depth=depth,
        columns=[],
        may_read=False,
        **ownership(node, project),
        last_run=None,
        freshness=None,
        tests=[],
    )


def _stale(diagnosis: Diagnosis) -> list[Suspect]:
    causes = []
    for step in diagnosis.steps:
        fresh = step.freshness
        if fresh is not None and fresh.status in _STALE:
            newest = moment(fresh.max_loaded_at) if fresh.max_loaded_at else "unknown"
            reason = Code.SUSPECT_STALE(status=fresh.status, newest=newest)
            causes.append(_suspect(step, "freshness", reason, ["sources"]))
    return causes


def _suspect(
    step: Step,
    kind: SuspectKind,
    reason: Reason,
    reported_by: list[Reporter],
) -> Suspect:
    return Suspect(
        unique_id=step.unique_id,
        name=step.full_name,
        asset_type=step.asset_type,
        kind=kind,
        depth=step.depth,
        may_read=step.may_read,
        reason=reason,
        changes=[],
        promises_broken=[],
        changed_at=None,
        git_sha=None,
        committed_at=None,
        recent=True,
        ruled_out=None,
        owner=step.owner,
        owner_email=step.owner_email,
        owner_channel=step.owner_channel,
        reported_by=reported_by,
    )
