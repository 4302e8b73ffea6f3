"""The gate's rules that are not about contracts or personal data: owners, keys, readers, sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dbt_ripple.artifacts import (
    Node,
    Project,
    criticality,
    has_tested_key,
    is_own,
    owner,
    referenced_columns,
)
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.certain_failures import edited_texts, not_parsed
from dbt_ripple.changes.column_types import catalog_types, declared_types, retyped
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.governance.contracts import Breach, on_base
from dbt_ripple.governance.duplicate_definitions import twin_breaches
from dbt_ripple.governance.unjudged_code import unjudged_breaches
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tests import LineageJudge, LineageTest, Verdict, lineage_tests
from dbt_ripple.reasons import Code, Reason

_OWNED: Final = frozenset({"model", "seed", "snapshot", "source", "exposure"})
_BUILT: Final = frozenset({"model", "seed", "snapshot"})
_NESTED: Final = ("struct", "array", "map", "[")
"""Of types with one of these, catalogs say too little, and each in its own way, to be compared."""


def owner_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Nodes without an owner."""
    base, head = comparison.base, comparison.head
    owned = any(owner(n, base) is not None for n in base.nodes.values() if of_project(n, base))
    for unique_id, node in head.nodes.items():
        if not of_project(node, head):
            continue
        if owner(node, head) is not None:
            continue
        then = base.nodes.get(unique_id)
        had = owner(then, base) if then is not None else None
        if had is not None:
            yield Breach("owner_removed", unique_id, None, Code.OWNER_REMOVED(owner=had))
        elif then is None:
            yield Breach(
                "owner_missing", unique_id, None, Code.NEW_WITHOUT_OWNER(), usual=not owned
            )
        else:
            reason = Code.ALREADY_ON_BASE(because=Code.WITHOUT_OWNER())
            yield Breach("owner_missing", unique_id, None, reason, old=True, usual=not owned)


_ACCESS: Final = ("private", "protected", "public")


def promise_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Models that promise less than on base: no contract, a narrower access, an earlier end."""
    for node in comparison.head.of_type("model"):
        then = comparison.base.nodes.get(node.unique_id)
        if then is None:
            continue
        if then.contract_enforced and not node.contract_enforced:
            yield Breach("promise_lowered", node.unique_id, None, Code.CONTRACT_ENDED())
        was, is_now = (n.access or "protected" for n in (then, node))
        if _rank(is_now) < _rank(was):
            reason = Code.ACCESS_LOWERED(was=was, now=is_now)
            yield Breach("promise_lowered", node.unique_id, None, reason)
        ends, ended = (str(n.deprecation_date or "")[:10] for n in (then, node))
        if ended and ended < ends:
            reason = Code.ENDS_EARLIER(was=ends, now=ended)
            yield Breach("promise_lowered", node.unique_id, None, reason)


def newly_deprecated(comparison: Comparison) -> Iterator[Reason]:
    """A note on each model that has a deprecation_date, and had none: this announces its end as it should."""
    for node in comparison.head.of_type("model"):
        then = comparison.base.nodes.get(node.unique_id)
        if node.deprecation_date and then is not None and not then.deprecation_date:
            date = str(node.deprecation_date)[:10]
            yield Code.NEWLY_DEPRECATED(name=node.display_name, date=date)


def _rank(access: str) -> int:
    return _ACCESS.index(access) if access in _ACCESS else 1


def of_project(node: Node, project: Project) -> bool:
    """Whether the project has to name an owner for it."""
    return node.resource_type in _OWNED and is_own(node, project)


def key_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Tier-1 relations without a tested key."""
    base, head = comparison.base, comparison.head
    for unique_id, node in head.nodes.items():
        if not _needs_key(node, head) or has_tested_key(node, head):
            continue
        then = base.nodes.get(unique_id)
        new = then is None or not _needs_key(then, base) or has_tested_key(then, base)
        reason = on_base(Code.KEY_UNTESTED(), not new)
        yield Breach("tier1_key_untested", unique_id, None, reason, old=not new)


def _needs_key(node: Node, project: Project) -> bool:
    return (
        node.resource_type in _BUILT
        and is_own(node, project)
        and (criticality(node) or "").lower() == "tier1"
    )


def lineage_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Tests of lineage that do not hold, or that nobody can answer."""
    tests = lineage_tests(comparison.head)
    if not tests:
        return
    asked_before = {test.asks: test for test in lineage_tests(comparison.base)}
    before = {
        asks: {problem.key for problem in verdict.problems}
        for asks, verdict in _verdicts(
            comparison.base,
            comparison.base_analysis,
            [asked_before[test.asks] for test in tests if test.asks in asked_before],
        )
    }
    for test, (asks, verdict) in zip(
        tests, _verdicts(comparison.head, comparison.head_analysis, tests), strict=True
    ):
        for problem in verdict.problems:
            old = problem.key in before.get(asks, ())
            yield Breach(
                "lineage_broken",
                test.node,
                test.column,
                on_base(problem.reason, old),
                old=old,
                mild=test.warns or not problem.certain,
            )


def _verdicts(
    project: Project, analysis: Analysis, tests: list[LineageTest]
) -> Iterator[tuple[tuple[object, ...], Verdict]]:
    judge = LineageJudge(project, analysis, (test.node for test in tests))
    for test in tests:
        yield test.asks, judge.judge(test)


def reader_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Models, snapshots, tests and consumers that read a column that is not there any more."""
    verdict = verdict_of(comparison)
    for broken in (*verdict.newly_broken, *verdict.lost):
        if broken.unique_id not in verdict.syntax_errors:
            yield Breach("reader_broken", broken.unique_id, None, broken.reason)
    yield from _consumers(comparison)


def syntax_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Edited models, snapshots and tests that no engine can parse, or that are not parsed here."""
    wrong = verdict_of(comparison).syntax_errors
    for unique_id, reason in wrong.items():
        yield Breach("syntax_error", unique_id, None, reason)
    for node in edited_texts(comparison):
        because = not_parsed(comparison.head_analysis, node.unique_id)
        if because is None or node.unique_id in wrong:
            continue
        old = not_parsed(comparison.base_analysis, node.unique_id) is not None
        reason = on_base(because, old) if old else Code.CHECK_THAT_IT_BUILDS(because=because)
        yield Breach("unread_sql", node.unique_id, None, reason, old=old)


def _consumers(comparison: Comparison) -> Iterator[Breach]:
    head = comparison.head
    gone = {
        unique_id: set(map(str.lower, change.removed))
        for unique_id, change in comparison.changed.items()
        if change.removed
    }
    for unique_id, columns in verdict_of(comparison).vanished.items():
        gone.setdefault(unique_id, set()).update(map(str.lower, columns))
    for unique_id, node in head.nodes.items():
        if node.resource_type != "exposure":
            continue
        for parent in node.depends_on.nodes:
            if parent in comparison.base.nodes and parent not in head.nodes:
                name = comparison.base.nodes[parent].display_name
                yield Breach("reader_broken", unique_id, None, Code.READS_GONE_NODE(name=name))
        for parent in head.parents.get(unique_id, ()):
            names = (head.nodes[parent].name, parent)
            for entry in referenced_columns(node) or () if parent in gone else ():
                relation, _, column = entry.rpartition(".")
                if column.lower() in gone[parent] and (not relation or relation in names):
                    name = head.nodes[parent].display_name
                    reason = Code.READS_GONE_COLUMN(name=name, column=column)
                    yield Breach("reader_broken", unique_id, column, reason)


def drift_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Sources that are not what they were, or not what their declaration says.

    A column that came is no drift: nobody reads it yet.
    """
    base, head = comparison.base, comparison.head
    gone = verdict_of(comparison).vanished
    for unique_id, node in head.nodes.items():
        if node.resource_type != "source":
            continue
        breaches: dict[str, Breach] = {}
        for name in gone.get(unique_id, ()):
            breaches[name.lower()] = Breach(
                "source_drift", unique_id, name, Code.NOT_IN_WAREHOUSE()
            )
        if base.catalog.get(unique_id) and head.catalog.get(unique_id):
            for name, (was, now) in retyped(base, head, unique_id).items():
                reason = Code.SOURCE_RETYPED(was=was, now=now)
                breaches[name] = Breach("source_drift", unique_id, name, reason)
        undeclared = _against_declaration(head, unique_id)
        declared_before = _against_declaration(base, unique_id) if undeclared else {}
        for name, what in undeclared.items():
            if name not in breaches:
                old = declared_before.get(name) == what
                breaches[name] = Breach(
                    "source_drift", unique_id, name, on_base(what, old), old=old
                )
        yield from breaches.values()


def _against_declaration(project: Project, unique_id: str) -> dict[str, Reason]:
    """What is declared of a source and not so, by lower-case column name."""
    node = project.nodes.get(unique_id)
    catalog = project.catalog.get(unique_id)
    if node is None or not catalog:
        return {}
    present = {column.name.lower() for column in catalog}
    reasons = {
        (column.name or name).lower(): Code.DECLARED_BUT_ABSENT()
        for name, column in node.columns.items()
        if (column.name or name).lower() not in present
    }
    types = catalog_types(project, unique_id)
    dialect = dialect_of(project.metadata.adapter_type)
    for name, type_declared in declared_types(project, unique_id).items():
        is_ = types.get(name)
        if is_ is None or type_declared.lower() == is_.lower():
            continue
        if any(word in text.lower() for text in (type_declared, is_) for word in _NESTED):
            continue
        from dbt_ripple.flow.data_types import canonical_type

        # What a yml file calls a type need not be this warehouse's word: two that can be read count.
        both = canonical_type(type_declared, dialect), canonical_type(is_, dialect)
        if None not in both and both[0] != both[1]:
            reasons[name] = Code.DECLARED_OTHERWISE(declared=type_declared, now=is_)
    return reasons


CHECKS: Final[tuple[Callable[[Comparison], Iterator[Breach]], ...]] = (
    owner_breaches,
    promise_breaches,
    key_breaches,
    lineage_breaches,
    reader_breaches,
    syntax_breaches,
    twin_breaches,
    drift_breaches,
    unjudged_breaches,
)
"""All of them but those about personal data, which several projects may pass on to each other; each
needs no more than the two sides."""
