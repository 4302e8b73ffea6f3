"""Tests that are blocked: a relation above them cannot be built, so dbt would skip them.

A relation whose query names a column that does not exist fails in CI, and dbt skips everything below
it. So does one whose text no engine accepts, whatever its sources hold (`engine_checks.BY_TEXT_ALONE`). So does one that failed in base's build for a reason that has not changed (`changes.repeated_failures`).
Running the tests there would show nothing more. They are listed with the relation that blocks
them: its failure makes CI red, and where it is built after all (``--run`` notices), they run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dbt_ripple.changes import Comparison
from dbt_ripple.changes.verdict import BuildVerdict, verdict_of
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.selection.result import BlockedTest


def blocked_tests(
    comparison: Comparison,
    impacted: Iterable[str],
    models: Collection[str],
) -> list[BlockedTest]:
    """The impacted tests below a relation that cannot be built.

    Args:
        comparison: of base and head.
        impacted: unique_ids of tests.
        models: what CI builds; everything else is deferred to base, where it exists.

    Returns:
        In the order of ``impacted``, each with the nearest relation that blocks it.
    """
    head, built = comparison.head, frozenset(models)
    impacted = list(impacted)
    if not impacted:
        return []
    verdict = verdict_of(comparison)
    refused = [unique_id for unique_id in verdict.refused if unique_id in built]
    if not refused and not verdict.failing:
        return []
    skipped = {r.unique_id for r in comparison.base.run_results if r.status == "skipped"}
    blocked_by = {unique_id: unique_id for unique_id in (*refused, *verdict.failing)}
    causes = dict(blocked_by)
    ahead = list(blocked_by)
    while ahead:  # the nearest first
        following = []
        for parent in ahead:
            for child in head.children.get(parent, ()):
                node = head.nodes.get(child)
                if node is None or child in blocked_by:
                    continue
                # What base skipped is not there either, though nothing builds it.
                gone = child in skipped and causes[parent] in verdict.failing
                if node.resource_type == "test" or node.is_ephemeral or child in built or gone:
                    above = blocked_by[parent]
                    blocked_by[child] = child if child in built and above not in built else above
                    causes[child] = causes[parent]
                    following.append(child)
        ahead = following
    return [
        BlockedTest(
            unique_id=test,
            reason=_why(comparison, verdict, model, causes[test]),
            blocked_by=model,
        )
        for test in impacted
        if (model := blocked_by.get(test)) in built and model is not None
    ]


def _why(comparison: Comparison, verdict: BuildVerdict, model: str, cause: str) -> Reason:
    """Why a relation cannot be built, because of itself or of one above it."""
    nodes = comparison.head.nodes
    if cause in verdict.refused:
        because = verdict.refused[cause]
    elif cause != model:
        error = verdict.failing[cause]
        because = Code.READS_FAILED(name=nodes[cause].display_name, error=error)
    else:
        because = Code.FAILED_ON_BASE(error=verdict.failing[cause])
    return Code.CANNOT_BE_BUILT(name=nodes[model].display_name, because=because)
