"""What changed between the states of a project that are at hand, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import as_utc
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.governance.contracts import contract_breaches
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.pages.evidence_document import ContractViolation, DefinitionChange
from dbt_ripple.rendering.trace import expressions_of

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class State:
    """A project as some artifacts have it.

    Attributes:
        number: from 1, oldest first; None of the project as it is.
    """

    number: int | None
    project: Project
    analysis: Analysis


def written_at(project: Project) -> datetime:
    """When dbt wrote the manifest; long ago where it does not say."""
    generated_at = project.metadata.generated_at
    return as_utc(generated_at) if generated_at is not None else _LONG_AGO


def history(
    states: Sequence[State], unique_ids: Collection[str], cache: Cache | None = None
) -> tuple[list[DefinitionChange], list[ContractViolation]]:
    """The definitions that changed from state to state, and the promises that were not kept.

    Args:
        states: oldest first.
        unique_ids: of these nodes.
        cache: of the analyses.
    """
    changes: list[DefinitionChange] = []
    violations: list[ContractViolation] = []
    for earlier, later in itertools.pairwise(states):
        comparison = compare(
            earlier.project,
            later.project,
            base_analysis=earlier.analysis,
            head_analysis=later.analysis,
            cache=cache,
        )
        changes += _changes(comparison, later.number, unique_ids)
        # A grace period is over or not on the day of the later state, whenever this is asked.
        day = written_at(later.project).date()
        for breach in contract_breaches(comparison, day):
            if breach.unique_id in unique_ids:
                violations.append(
                    ContractViolation(
                        state=later.number,
                        after=comparison.base.metadata.generated_at,
                        seen_at=comparison.head.metadata.generated_at,
                        unique_id=breach.unique_id,
                        column=breach.column,
                        rule=breach.rule,
                        reason=breach.reason,
                    )
                )
    return changes, violations


def _changes(
    comparison: Comparison, number: int | None, unique_ids: Collection[str]
) -> Iterator[DefinitionChange]:
    before, after = expressions_of(comparison.base), expressions_of(comparison.head)

    def definition_change(
        unique_id: str, column: str | None, change: str, began: bool, was: str | None = None
    ) -> DefinitionChange:
        old = None if change == "added" or column is None else before((unique_id, was or column))
        new = None if change == "removed" or column is None else after((unique_id, column))
        return DefinitionChange(
            state=number,
            after=comparison.base.metadata.generated_at,
            seen_at=comparison.head.metadata.generated_at,
            unique_id=unique_id,
            column=column,
            change=change,
            began_here=began,
            old=old,
            new=new,
        )

    def began(unique_id: str, column: str) -> bool:
        return comparison.predecessors.get((unique_id, column)) is None

    for unique_id in sorted({*unique_ids} & {*comparison.changed, *comparison.removed}):
        change = comparison.changed.get(unique_id)
        if change is None:
            yield definition_change(unique_id, None, "removed", True)
            continue
        if change.kind == "added":
            yield definition_change(unique_id, None, "added", True)
            continue
        if change.rows:
            yield definition_change(unique_id, None, "redefined", began(unique_id, "*rows*"))
        for name in change.redefined:
            yield definition_change(unique_id, name, "redefined", began(unique_id, name))
        for name in change.added:
            if (was := change.renamed.get(name)) is not None:
                yield definition_change(unique_id, name, "renamed", began(unique_id, name), was)
            else:
                yield definition_change(unique_id, name, "added", began(unique_id, name))
        renamed = set(change.renamed.values())
        for name in change.removed:
            if name not in renamed:
                yield definition_change(unique_id, name, "removed", True)
