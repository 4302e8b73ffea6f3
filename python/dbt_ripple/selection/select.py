"""Two projects -> the tests that the change can break (rules 1-13 of the fingerprint).

A test is impacted if its fingerprint (its query's rows and columns, and its own config) differs
between base and head, or base has no such test. No other test is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project, criticality, referenced_columns
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.causes import causes_of
from dbt_ripple.changes.column_types import FixtureTypes
from dbt_ripple.changes.comparison import Vertex
from dbt_ripple.changes.rewritten import rewritten
from dbt_ripple.changes.state_modified import modified, modified_tests
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.graph.broken_nodes import BUILT
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.lineage_tests import lineage_tests
from dbt_ripple.graph.node_properties import of_test
from dbt_ripple.graph.traversal import breadth_first_tree, reach_all
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.selection.evaluated_otherwise import tests_that_may_fail
from dbt_ripple.selection.impact_paths import ImpactPaths, spelled
from dbt_ripple.selection.models_to_build import (
    blocked_tests,
    only_tests_compile,
    tests_to_try,
    to_build,
)
from dbt_ripple.selection.proven_tests import proven_tests
from dbt_ripple.selection.result import (
    BlockedTest,
    Counts,
    Opaque,
    ProvenTest,
    SelectedTest,
    Selection,
)


def select(
    base: Project,
    head: Project,
    *,
    base_analysis: Analysis | None = None,
    head_analysis: Analysis | None = None,
    cache: Cache | None = None,
    critical: str | None = None,
    only: Collection[str] | None = None,
    facts: bool = True,
    assume_passed: bool = False,
) -> Selection:
    """Select the tests that a change can break, and the models to build for them.

    Args:
        base: what is deployed.
        head: what is proposed.
        base_analysis: `analyse(base)`, where it is at hand.
        head_analysis: `analyse(head)`, where it is at hand.
        cache: for the analyses that are not.
        critical: a criticality: of each node below the change that has it, every test is selected,
            too, whether the node is impacted or not.
        only: unique_ids the answer is restricted to.
        facts: whether to leave out the tests that base's passed tests prove cannot fail
            (`selection.proven_tests`). It takes base's results of tests.
        assume_passed: take all of base's tests as passed, without looking for results.

    Returns:
        The selection; empty lists where base and head are equal.

    Raises:
        RippleError: the two are not sides of one project.
    """
    comparison = compare(
        base, head, base_analysis=base_analysis, head_analysis=head_analysis, cache=cache
    )
    return select_from(
        comparison,
        critical=critical,
        only=only,
        facts=facts,
        assume_passed=assume_passed,
    )


def select_from(
    comparison: Comparison,
    *,
    critical: str | None = None,
    only: Collection[str] | None = None,
    facts: bool = True,
    assume_passed: bool = False,
) -> Selection:
    """The selection for a comparison that was made already; arguments as in `select`."""
    head = comparison.head
    impacted = impacted_tests(comparison)
    wanted = dict(tests_of_critical(comparison, critical)) if critical is not None else {}
    critical_only = wanted.keys() - impacted.keys()
    for unique_id, reason in wanted.items():
        impacted.setdefault(unique_id, reason)
    reasons = ImpactPaths(comparison)
    models = to_build(comparison)
    left_out = _LeftOut([], [], [], {})
    if facts:
        affected_tests = [
            test for test, own in impacted.items() if own is None and test not in wanted
        ]
        left_out = _left_out(comparison, affected_tests, models, only, assume_passed)
    for unique_id in left_out.unique_ids:
        del impacted[unique_id]
    if not comparison.everything:
        impacted |= tests_to_try(comparison, {*impacted, *left_out.unique_ids})
    alone = only_tests_compile(comparison, impacted)
    views: dict[str, str] = {}
    if not comparison.everything:
        blocked_ids = {test.unique_id for test in left_out.blocked}
        views = tests_that_may_fail(comparison, impacted.keys() | blocked_ids)
    alone |= {
        test: Code.EVALUATED_OTHERWISE(name=head.nodes[view].display_name)
        for test, view in views.items()
    }
    impacted |= alone
    proven = [test for test in left_out.proven if test.unique_id not in alone]
    blocked = [test for test in left_out.blocked if test.unique_id not in alone]
    broken = verdict_of(comparison).newly_broken
    impacted |= {one.unique_id: one.reason for one in broken if one.unique_id in impacted}
    tests = [
        SelectedTest(
            unique_id=unique_id,
            name=head.nodes[unique_id].name,
            reason=reason,
            path=[spelled((views[unique_id], ROWS)), unique_id] if unique_id in views else path,
            not_proven=left_out.not_proven.get(unique_id, msgspec.UNSET),
        )
        for unique_id, (reason, path) in reasons.of_tests(impacted).items()
    ]
    order = {unique_id: position for position, unique_id in enumerate(head.nodes)}
    tests.sort(key=lambda test: order[test.unique_id])
    proven.sort(key=lambda test: order[test.unique_id])
    blocked.sort(key=lambda test: order[test.unique_id])
    by_target = reasons.by_target(impacted)
    unit_tests = list(impacted_unit_tests(comparison))
    causes = causes_of(comparison)
    selection = Selection(
        tests=tests,
        proven=proven,
        blocked=blocked,
        models=models,
        broken=broken,
        exposures=list(_exposures(comparison)),
        unit_tests=unit_tests,
        opaque=_opaque(comparison),
        counts=Counts(
            impacted_tests=len(tests),
            proven_tests=len(proven),
            blocked_tests=len(blocked),
            state_modified_tests=len(modified_tests(head, comparison.modified)),
            all_tests=sum(node.resource_type == "test" for node in head.nodes.values()),
        ),
        notes=[*comparison.notes, *([by_target] if by_target else []), *left_out.notes],
        causes=causes.of_all(
            [
                *causes.began(),
                *(test.unique_id for test in tests if test.path[:-1] == []),
                *(unique_id for unique_id in models if unique_id in comparison.modified),
                *unit_tests,
            ]
        ),
        critical=msgspec.UNSET
        if critical is None
        else [test.unique_id for test in tests if test.unique_id in critical_only],
    )
    return selection if only is None else restricted(selection, only)


class _LeftOut(NamedTuple):
    """Affected tests that need not run; notes, and what is missing to prove the other ones."""

    proven: Sequence[ProvenTest]
    blocked: Sequence[BlockedTest]
    notes: Sequence[Reason]
    not_proven: Mapping[str, Reason]

    @property
    def unique_ids(self) -> set[str]:
        return {test.unique_id for test in self.proven} | {test.unique_id for test in self.blocked}


def _left_out(
    comparison: Comparison,
    affected_tests: Iterable[str],
    models: Collection[str],
    only: Collection[str] | None,
    assume_passed: bool,
) -> _LeftOut:
    """Which of the affected tests are proven or blocked, if `models` are built and only `only` runs."""
    affected_tests = list(affected_tests)
    # What a test asks may hold, and its new words still be no query: only running them shows it.
    anew = set(rewritten(comparison, (t for t in affected_tests if t in comparison.modified)))
    affected_tests = [test for test in affected_tests if test not in anew]
    chosen = None if only is None else frozenset(only)
    built = frozenset(models) if chosen is None else chosen.intersection(models)
    blocked = blocked_tests(comparison, affected_tests, built)
    skipped = {test.unique_id for test in blocked}
    proven, notes, not_proven = proven_tests(
        comparison,
        [test for test in affected_tests if test not in skipped],
        assume_passed=assume_passed,
        runs=lambda test: test not in skipped and (chosen is None or test in chosen),
        built=built,
    )
    return _LeftOut(proven, blocked, notes, not_proven)


def state_modified(base: Project, head: Project, only: Collection[str] | None = None) -> Selection:
    """What dbt's ``state:modified+`` would run and build, in the form of a selection."""
    changed = modified(base, head)
    origin: dict[str, str] = {}
    starts = [unique_id for unique_id in head.nodes if unique_id in changed]
    for unique_id, before in breadth_first_tree(starts, head.children).items():
        origin[unique_id] = unique_id if before is None else origin[before]
    tests = [
        SelectedTest(
            unique_id=unique_id,
            name=node.name,
            reason=Code.BELOW_DBT_MODIFIED(name=head.nodes[origin[unique_id]].display_name)
            if origin[unique_id] != unique_id
            else Code.DBT_MODIFIED(),
            path=list(dict.fromkeys([origin[unique_id], unique_id])),
        )
        for unique_id, node in head.nodes.items()
        if node.resource_type == "test" and unique_id in origin
    ]
    selection = Selection(
        tests=tests,
        models=[u for u, n in head.nodes.items() if n.resource_type in BUILT and u in origin],
        exposures=[
            u for u, n in head.nodes.items() if n.resource_type == "exposure" and u in origin
        ],
        unit_tests=[
            u
            for u, n in head.nodes.items()
            if n.resource_type == "unit_test" and (u in origin or _unit_test_differs(base, n))
        ],
        counts=Counts(
            impacted_tests=len(tests),
            state_modified_tests=len(tests),
            all_tests=sum(node.resource_type == "test" for node in head.nodes.values()),
        ),
    )
    return selection if only is None else restricted(selection, only)


def restricted(selection: Selection, only: Collection[str]) -> Selection:
    """The part of a selection that is among the given unique_ids; totals stay as they are."""
    selection.tests = [test for test in selection.tests if test.unique_id in only]
    selection.proven = [test for test in selection.proven if test.unique_id in only]
    selection.blocked = [test for test in selection.blocked if test.unique_id in only]
    selection.models = [unique_id for unique_id in selection.models if unique_id in only]
    selection.exposures = [unique_id for unique_id in selection.exposures if unique_id in only]
    selection.unit_tests = [unique_id for unique_id in selection.unit_tests if unique_id in only]
    if not isinstance(selection.critical, msgspec.UnsetType):
        selection.critical = [unique_id for unique_id in selection.critical if unique_id in only]
    selection.counts.impacted_tests = len(selection.tests)
    selection.counts.proven_tests = len(selection.proven)
    selection.counts.blocked_tests = len(selection.blocked)
    return selection


def impacted_tests(comparison: Comparison) -> dict[str, Reason | None]:
    """The impacted tests, in head's order, each with the reasons of the test itself.

    That is ``None`` where the test is as it was and something it reads has changed.
    """
    base, head = comparison.base, comparison.head
    before, now = comparison.base_analysis.tests, comparison.head_analysis.tests
    reasons: dict[str, Reason | None] = {}
    warned = _warned_otherwise(base, head)
    for unique_id, here in now.items():
        then = before.get(unique_id)
        if then is None:
            reasons[unique_id] = Code.NEW_TEST()
            continue
        settings = _settings_changed(base.nodes[unique_id], head.nodes[unique_id])
        if unique_id in warned:
            settings.append("warn_error")
        if settings:
            reasons[unique_id] = Code.SETTINGS_CHANGED(settings=[*settings])
        elif here is not then and (
            here.rows_fingerprint != then.rows_fingerprint
            or here.fingerprints != then.fingerprints
            or here.reason != then.reason
            or (here.columns != then.columns and _counts_by_name(head.nodes[unique_id]))
        ):
            asked = lineage_tests(head, [head.nodes[unique_id]])
            if asked:
                name = head.nodes[asked[0].node].display_name
                reasons[unique_id] = Code.LINEAGE_CHANGED(name=name, column=asked[0].column)
                continue
            sides = (comparison.base_context, comparison.head_context)
            run = [side.config_fingerprints.of(side.project.nodes[unique_id]) for side in sides]
            reasons[unique_id] = None if run[0] == run[1] else _run_otherwise(base, head)
        elif comparison.everything:
            reasons[unique_id] = comparison.everything[0]
    return reasons


def _run_otherwise(base: Project, head: Project) -> Reason:
    """The reason of what only runs otherwise: in a session that is set otherwise, or by other code."""
    keys = sorted({*base.session, *head.session})
    settings = [key for key in keys if base.session.get(key) != head.session.get(key)]
    return Code.TARGET_SET_OTHERWISE(settings=settings) if settings else Code.RUN_OTHERWISE()


def impacted_unit_tests(comparison: Comparison) -> Iterator[str]:
    """The unit tests to run, in head's order (rule 9)."""
    before, now = comparison.base_analysis.unit_tests, comparison.head_analysis.unit_tests
    given = FixtureTypes(comparison)
    for unique_id, node in comparison.head.nodes.items():
        if node.resource_type != "unit_test":
            continue
        then, here = before.get(unique_id), now.get(unique_id)
        if (
            then is None
            or here is None
            or comparison.everything
            or then.fingerprint != here.fingerprint
            or any(then.types.get(column, type_) != type_ for column, type_ in here.types.items())
            or given.differ(here)
        ):
            yield unique_id


def _unit_test_differs(base: Project, node: Node) -> bool:
    then = base.nodes.get(node.unique_id)
    return then is None or then.checksum != node.checksum


def _settings_changed(before: Node, now: Node) -> list[str]:
    if before is now or before.config == now.config:
        return []
    then, here = of_test(before), of_test(now)
    return [name for name in {**then, **here} if then.get(name) != here.get(name)]


def _warned_otherwise(base: Project, head: Project) -> set[str]:
    """The tests that warned on base, where dbt now takes warnings for errors, or no longer does.

    That is no config of a test, but a flag of the project or of the command line, which dbt writes
    to run_results.json. Of a head that is only parsed, the project file has it. Where one side has
    none of it, nothing is known to differ. Where base has no results, any test may have warned.
    """
    before, now = base.run_args, head.run_args or head.warning_flags
    if not before or not now or _of_warnings(before) == _of_warnings(now):
        return set()
    if not base.executed:
        return {node.unique_id for node in base.of_type("test")}
    return {result.unique_id for result in base.executed if result.status in _MAY_BE_A_WARNING}


def _of_warnings(args: dict[str, Any]) -> tuple[bool, list[tuple[str, Any]]]:
    """What the arguments of a command say of warnings, without what says nothing."""
    options = args.get("warn_error_options")
    listed = options.items() if isinstance(options, dict) else [("", options)]
    named = {_FORMERLY.get(k, k): v for k, v in listed if v}
    return bool(args.get("warn_error")), sorted((k, repr(v)) for k, v in named.items())


_FORMERLY: Final = {"include": "error", "exclude": "warn"}
"""Keys of ``warn_error_options`` by what dbt calls them now."""


_MAY_BE_A_WARNING: Final = frozenset({"error", "fail", "warn"})


def _counts_by_name(test: Node) -> bool:
    """Whether the outcome is computed from columns of the test by their names."""
    return test.config.get("fail_calc") not in (None, "count(*)")


def tests_of_critical(comparison: Comparison, tier: str) -> Iterator[tuple[str, Reason]]:
    """The tests of critical nodes that are changed, or stand below what is, each with the reason."""
    head = comparison.head
    below = reach_all([*comparison.changed, *comparison.removed], head.children)
    wanted = {
        unique_id: (Code.CRITICAL if unique_id in comparison.changed else Code.CRITICAL_BELOW)(
            name=head.nodes[unique_id].display_name, criticality=tier
        )
        for unique_id in below
        if unique_id in head.nodes
        and (criticality(head.nodes[unique_id]) or "").lower() == tier.lower()
    }
    if not wanted:
        return
    for unique_id in comparison.head_analysis.tests:
        of = [parent for parent in head.parents.get(unique_id, ()) if parent in wanted]
        if of:
            # What is impacted says more.
            yield unique_id, wanted[min(of, key=lambda parent: parent not in comparison.changed)]


def _opaque(comparison: Comparison) -> list[Opaque]:
    opaque: dict[str, Opaque] = {}
    sides = (("head", comparison.head_analysis), ("base", comparison.base_analysis))
    for side, analysis in sides:
        for unique_id, analysed in (*analysis.nodes.items(), *analysis.tests.items()):
            if analysed.status != "opaque":
                continue
            reason = analysed.reason or Code.NO_REASON_GIVEN()
            on_head = opaque.get(unique_id)
            if on_head is None:
                there = Code.ON_SIDE(side=side, because=reason)
                opaque[unique_id] = Opaque(unique_id=unique_id, reason=there)
            elif on_head.reason == Code.ON_SIDE(side="head", because=reason):
                on_head.reason = reason
    return list(opaque.values())


def _exposures(comparison: Comparison) -> Iterable[str]:
    """Exposures that read something that changed."""
    for unique_id, node in comparison.head.nodes.items():
        if node.resource_type == "exposure" and any(changed_for_exposure(comparison, node)):
            yield unique_id


def changed_for_exposure(comparison: Comparison, exposure: Node) -> Iterator[Vertex]:
    """What changed of what an exposure reads: rows, and columns (all of them where it names none)."""
    columns = {entry.rpartition(".")[2].lower() for entry in referenced_columns(exposure) or ()}
    for parent in comparison.head.parents.get(exposure.unique_id, ()):
        change = comparison.changed.get(parent)
        if change is None:
            continue
        for _, column in (*change.vertices(), *((parent, name) for name in change.removed)):
            if column == ROWS or not columns or column.lower() in columns:
                yield parent, column
