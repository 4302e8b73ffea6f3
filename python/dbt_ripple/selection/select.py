"""Two projects -> the tests the change can break (rules 1-13 of the fingerprint).

A test is impacted when its fingerprint (its query's rows and columns, and its own config) differs
between base and head, or base has no such test. Nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dbt_ripple.artifacts import Node, Project, referenced_columns
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.state import modified_tests
from dbt_ripple.graph.analysis import Analysis
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.rows import ROWS
from dbt_ripple.selection.answer import Broken, Counts, Opaque, SelectedTest, Selection
from dbt_ripple.selection.reasons import Reasons

BUILT = frozenset({"model", "seed", "snapshot"})
"""Resource types CI builds before it tests."""

_TEST_CONFIG = ("severity", "warn_if", "error_if", "fail_calc", "limit")
"""Config of a test that is not in its compiled SQL and decides its outcome."""


def select(
    base: Project,
    head: Project,
    *,
    base_analysis: Analysis | None = None,
    head_analysis: Analysis | None = None,
    cache: Cache | None = None,
) -> Selection:
    """Select the tests that a change can break, and the models to build for them.

    Args:
        base: what is deployed.
        head: what is proposed.
        base_analysis: `analyse(base)`, where it is at hand.
        head_analysis: `analyse(head)`, where it is at hand.
        cache: for the analyses that are not.

    Returns:
        The selection; empty lists where base and head are equal.

    Raises:
        RippleError: the two are not sides of one project.
    """
    comparison = compare(
        base, head, base_analysis=base_analysis, head_analysis=head_analysis, cache=cache
    )
    return select_from(comparison)


def select_from(comparison: Comparison) -> Selection:
    """The selection of a comparison that is at hand."""
    head = comparison.head
    impacted = impacted_tests(comparison)
    reasons = Reasons(comparison)
    tests = []
    for unique_id, why in reasons.of_tests(impacted).items():
        reason, path = why
        name = head.nodes[unique_id].name
        tests.append(SelectedTest(unique_id=unique_id, name=name, reason=reason, path=path))
    return Selection(
        tests=tests,
        models=[
            unique_id
            for unique_id, node in head.nodes.items()
            if node.resource_type in BUILT
            and (comparison.everything or unique_id in comparison.changed)
        ],
        broken=_broken(comparison),
        exposures=list(_exposures(comparison)),
        unit_tests=list(impacted_unit_tests(comparison)),
        opaque=_opaque(comparison),
        counts=Counts(
            impacted_tests=len(tests),
            state_modified_tests=len(modified_tests(comparison.base, head)),
            all_tests=sum(node.resource_type == "test" for node in head.nodes.values()),
        ),
        notes=comparison.notes,
    )


def impacted_tests(comparison: Comparison) -> dict[str, str | None]:
    """The impacted tests, in head's order, each with what is said of the test itself.

    That is ``None`` where the test is as it was and something it reads has moved.
    """
    base, head = comparison.base, comparison.head
    before, now = comparison.base_analysis.tests, comparison.head_analysis.tests
    found: dict[str, str | None] = {}
    for unique_id, here in now.items():
        then = before.get(unique_id)
        if then is None:
            found[unique_id] = "a new test"
            continue
        settings = _settings_changed(base.nodes[unique_id], head.nodes[unique_id])
        if settings:
            found[unique_id] = f"its own {' and '.join(settings)} changed"
        elif (
            here.rows_fingerprint != then.rows_fingerprint
            or here.fingerprints != then.fingerprints
            or here.reason != then.reason
        ):
            found[unique_id] = None
        elif comparison.everything:
            found[unique_id] = comparison.everything[0]
    return found


def impacted_unit_tests(comparison: Comparison) -> Iterator[str]:
    """The unit tests to run, in head's order (rule 9)."""
    before, now = comparison.base_analysis.unit_tests, comparison.head_analysis.unit_tests
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
        ):
            yield unique_id


def _settings_changed(before: Node, now: Node) -> list[str]:
    if before.config == now.config:
        return []
    return [name for name in _TEST_CONFIG if before.config.get(name) != now.config.get(name)]


def _broken(comparison: Comparison) -> list[Broken]:
    found = []
    before, now = comparison.base_analysis, comparison.head_analysis
    for side, was in ((now.nodes, before.nodes), (now.tests, before.tests)):
        for unique_id, seen in side.items():
            if seen.status != "broken":
                continue
            then = was.get(unique_id)
            if then is None or then.reason != seen.reason:
                found.append(Broken(unique_id=unique_id, reason=seen.reason or ""))
    return found


def _opaque(comparison: Comparison) -> list[Opaque]:
    found: dict[str, Opaque] = {}
    sides = (("head", comparison.head_analysis), ("base", comparison.base_analysis))
    for side, analysis in sides:
        for unique_id, seen in (*analysis.nodes.items(), *analysis.tests.items()):
            if seen.status != "opaque":
                continue
            reason = " ".join((seen.reason or "").split())
            known = found.get(unique_id)
            if known is None:
                found[unique_id] = Opaque(unique_id=unique_id, reason=f"on {side}: {reason}")
            elif known.reason == f"on head: {reason}":
                known.reason = reason
    return list(found.values())


def _exposures(comparison: Comparison) -> Iterable[str]:
    """Exposures that read rows that moved, or a column that did (all of them where none is said)."""
    head, moved = comparison.head, comparison.moved
    changed = comparison.changed
    for unique_id, node in head.nodes.items():
        if node.resource_type != "exposure":
            continue
        said = {entry.rpartition(".")[2].lower() for entry in referenced_columns(node) or ()}
        for parent in head.parents.get(unique_id, ()):
            change = changed.get(parent)
            if change is None:
                continue
            gone = {name.lower() for name in change.removed}
            touched = {column.lower() for _, column in change.vertices() if column != ROWS} | gone
            if (parent, ROWS) in moved or not said or touched & said:
                yield unique_id
                break
