"""Queries that differ only in words: the second comparison, of canonical forms.

Nodes and tests whose fingerprints differ are the same on both sides if their fingerprints in
canonical form (`graph.linking.canonical_mode`) are equal. Each node is taken as a whole from one of the two
comparisons: one of them shows that two of its columns stay in the same row, never half of each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import dialect_of, keeps_case
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.linking.canonical_mode import CanonicalMode
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.data_tests import link_data_test
from dbt_ripple.graph.unresolved_names import STORED
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.changes.comparison import Comparison


def prove_equivalent(comparison: Comparison, cache: Cache | None = None) -> bool:
    """Remove what is only written in other words from `changed`, and from head's analysis.

    Args:
        comparison: of base and head, which is changed in place.
        cache: where lowered queries may be found.

    Returns:
        Whether more of any relation is now known to be the same than its fingerprints showed.
    """
    base, head = comparison.base_analysis, comparison.head_analysis
    changed = [
        unique_id
        for unique_id, change in comparison.changed.items()
        if change.kind == "changed"
        and not comparison.is_semantic(unique_id)
        and _comparable(base.nodes.get(unique_id), head.nodes.get(unique_id))
    ]
    tests = [
        test
        for test, now in head.tests.items()
        if (then := base.tests.get(test)) is not None
        and then is not now
        and (then.rows_fingerprint, then.fingerprints) != (now.rows_fingerprint, now.fingerprints)
        and _comparable(then, now)
        # Where a column comes from is not told by what its values are.
        and not is_lineage_test(comparison.head.nodes[test])
    ]
    edited = {
        unique_id
        for unique_id in (*changed, *tests)
        if comparison.base.nodes[unique_id].compiled_code
        != comparison.head.nodes[unique_id].compiled_code
    }
    if not edited:
        return False
    unchanged = comparison.unchanged()
    one, other = _in_canonical_form(comparison, unchanged, edited, cache)
    nodes = _nodes(comparison, one, other, changed)
    proven = _tests(comparison, one, other, tests, nodes)
    if nodes or proven:
        comparison.head_analysis = dataclasses.replace(
            head, nodes={**head.nodes, **nodes}, tests={**head.tests, **proven}
        )
    if comparison.reworded:
        comparison.notes.append(_in_words(comparison))
    return bool(nodes)


def _in_canonical_form(
    comparison: Comparison, unchanged: frozenset[str], edited: set[str], cache: Cache | None
) -> tuple[CanonicalMode, CanonicalMode]:
    """Base and head, linked in canonical form."""
    seeds, base = comparison.seeds, comparison.base
    spelled = keeps_case(dialect_of(comparison.head.metadata.adapter_type))
    standing_in = frozenset[str]() if spelled else unchanged
    sides = (
        (comparison.base_context, comparison.base_analysis, seeds.base),
        (comparison.head_context, comparison.head_analysis, seeds.head),
    )
    built = {
        unique_id
        for unique_id in edited
        if all(context.project.nodes[unique_id].materialized in STORED for context, _, _ in sides)
    }
    one, other = (
        CanonicalMode(
            ComparedSide.of(context, analysis, standing_in, cache, files),
            edited,
            {u: columns for u, columns in base.types.items() if u in unchanged},
            built,
        )
        for context, analysis, files in sides
    )
    return one, other


def _in_words(comparison: Comparison) -> Reason:
    """The notes on queries that mean the same."""
    nodes = comparison.head.nodes
    parts: list[str | Reason] = [
        Code.REWORDED_NODE(name=nodes[unique_id].display_name, rules=rules)
        for unique_id, rules in comparison.reworded.items()
        if rules
    ]
    shown = (parts or [nodes[unique_id].display_name for unique_id in comparison.reworded])[:_SHOWN]
    more = len(comparison.reworded) - len(shown)
    if more:
        return Code.REWORDED_AND_MORE(nodes=shown, more=more)
    return Code.REWORDED(nodes=shown)


_SHOWN: Final = 3


def _comparable(then: NodeAnalysis | None, now: NodeAnalysis | None) -> bool:
    """Whether two queries can be the same: both followed to the end, or both opaque.

    Of an opaque one the text is compared as it is, over parents that may be in other words.
    """
    if then is None or now is None:
        return False
    if then.status == now.status == "opaque":
        return then.reason == now.reason
    return _is_followed(then) and _is_followed(now)


def _is_followed(analysed: NodeAnalysis | None) -> bool:
    """Whether a query was followed to the end, with nothing missing in it."""
    return analysed is not None and analysed.status == "analysed" and not analysed.unresolved_names


def _nodes(
    comparison: Comparison, one: CanonicalMode, other: CanonicalMode, changed: list[str]
) -> dict[str, NodeAnalysis]:
    """The nodes of which less changed than their plain fingerprints say, as they are on head."""
    from dbt_ripple.changes.comparison import node_change

    nodes: dict[str, NodeAnalysis] = {}
    for unique_id in changed:
        if not _may_be_less(unique_id, comparison, one, nodes):
            continue
        then = comparison.base_analysis.nodes[unique_id]
        now = comparison.head_analysis.nodes[unique_id]
        before, here = (side.linker.node(unique_id).analysis for side in (one, other))
        if not (
            _comparable(before, here) and (before.status, here.status) == (then.status, now.status)
        ):
            continue
        if now.status == "opaque":
            # Its rows stand for all of it: which columns it has is only known by its readers.
            if (
                before.rows_fingerprint == here.rows_fingerprint
                and then.columns == now.columns
                and _same_order(unique_id, comparison, one, other)
            ):
                del comparison.changed[unique_id]
                comparison.reworded[unique_id] = []
                nodes[unique_id] = dataclasses.replace(
                    now, fingerprints=then.fingerprints, rows_fingerprint=then.rows_fingerprint
                )
            continue
        if (before.columns, here.columns) != (then.columns, now.columns):
            continue
        plain = comparison.changed[unique_id]
        change = node_change(before, here)
        if change is not None and not set(change.vertices()) < set(plain.vertices()):
            continue
        if change is None:
            del comparison.changed[unique_id]
            comparison.reworded[unique_id] = _rules(unique_id, one, other)
        else:
            comparison.changed[unique_id] = change
        nodes[unique_id] = with_fingerprints_of(then, before, now, here)
    return nodes


def _same_order(
    unique_id: str, comparison: Comparison, one: CanonicalMode, other: CanonicalMode
) -> bool:
    """Whether all that a node refers to passes on its rows in the order that it had.

    What cannot be followed may take the first row of something.
    """
    sides = []
    for mode, project in ((one, comparison.base), (other, comparison.head)):
        linker = mode.linker
        above = {*project.parents.get(unique_id, ()), *linker.above.get(unique_id, ())}
        seen = [linker.node(u).analysis for u in sorted(above) if u in mode.analysis.nodes]
        sides.append([(a.unique_id, a.order, a.incidental) for a in seen])
    return sides[0] == sides[1]


def _may_be_less(
    unique_id: str, comparison: Comparison, one: CanonicalMode, proven: Collection[str]
) -> bool:
    """Whether less may have changed than is reported: the node, or one above it, is in other words."""
    if unique_id in one.edited:
        return True
    parents = comparison.head.parents.get(unique_id, ())
    return any(one.linker.names.canonical.get(parent, parent) in proven for parent in parents)


def _tests(
    comparison: Comparison,
    one: CanonicalMode,
    other: CanonicalMode,
    tests: list[str],
    nodes: Collection[str],
) -> dict[str, NodeAnalysis]:
    """The tests that check the same of the same columns and rows, as they are on head."""
    analyses: dict[str, NodeAnalysis] = {}
    for test in tests:
        if not _may_be_less(test, comparison, one, nodes):
            continue
        then = comparison.base_analysis.tests[test]
        now = comparison.head_analysis.tests[test]
        before, here = (
            link_data_test(side.linker, test, side.linker.project.nodes[test]).analysis
            for side in (one, other)
        )
        if (
            _comparable(before, here)
            and (before.status, here.status) == (then.status, now.status)
            and (now.status != "opaque" or _same_order(test, comparison, one, other))
            and (before.columns, here.columns) == (then.columns, now.columns)
            and (before.rows_fingerprint, before.fingerprints, before.reason)
            == (here.rows_fingerprint, here.fingerprints, here.reason)
        ):
            analyses[test] = dataclasses.replace(
                now, rows_fingerprint=then.rows_fingerprint, fingerprints=then.fingerprints
            )
            comparison.reworded[test] = _rules(test, one, other)
    return analyses


def with_fingerprints_of(
    then: NodeAnalysis, before: NodeAnalysis, now: NodeAnalysis, here: NodeAnalysis
) -> NodeAnalysis:
    """A node of head under base's fingerprints, where it is equal in canonical form.

    Args:
        then: the node of base, plain.
        before: in canonical form.
        now: the node of head, plain.
        here: in canonical form.
    """
    equal = dict(zip(before.fingerprints, then.fingerprints, strict=True))
    named = {
        (name, fp): plain
        for name, fp, plain in zip(
            before.columns, before.fingerprints, then.fingerprints, strict=True
        )
    }
    rows = then.rows_fingerprint
    if before.rows_fingerprint != here.rows_fingerprint:
        rows = _other(here.rows_fingerprint)
    ordered = (before.order, before.incidental) == (here.order, here.incidental)
    return dataclasses.replace(
        now,
        fingerprints=[
            named.get((name, fp)) or equal.get(fp) or _other(fp)
            for name, fp in zip(here.columns, here.fingerprints, strict=True)
        ],
        rows_fingerprint=rows,
        order=then.order if ordered else now.order,
        incidental=then.incidental if ordered else _other(here.incidental),
    )


def _other(fingerprint: str) -> str:
    return digest(b"in canonical form", fingerprint.encode()).hex()


def _rules(unique_id: str, one: CanonicalMode, other: CanonicalMode) -> list[str]:
    """The rules that bring two texts to one form: those used on one text only, if there are any."""
    then, now = (side.linker.project.nodes[unique_id].compiled_code for side in (one, other))
    if then == now:
        return []
    here, there = one.rules.get(unique_id, []), other.rules.get(unique_id, [])
    apart = [rule for rule in dict.fromkeys([*here, *there]) if (rule in here) != (rule in there)]
    return apart or list(dict.fromkeys([*here, *there]))
