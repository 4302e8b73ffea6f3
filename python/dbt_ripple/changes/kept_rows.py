"""The comparison of what joins keep: tables whose rows are the same though what they join is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from dbt_ripple.artifacts import CatalogColumn
from dbt_ripple.changes.comparison import Comparison, node_change
from dbt_ripple.changes.equivalent_queries import with_fingerprints_of
from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.data_tests import link_data_test
from dbt_ripple.graph.linking.kept_rows_mode import KeptRowsMode


def prove_rows_kept(comparison: Comparison, cache: Cache | None = None) -> bool:
    """Take out of `changed`, and of head's analysis, what joins keep (see `graph.linking.kept_rows_mode`).

    Args:
        comparison: of base and head, which is changed in place.
        cache: where lowered queries may be found.

    Returns:
        Whether more of any relation is now known to be the same than its fingerprints showed.
    """
    if not any(_joins(comparison, unique_id) for unique_id in comparison.changed):
        return False
    sides = _sides(comparison, cache)
    if not _is_seen(comparison, *sides):
        return False
    nodes = dict(_nodes(comparison, *sides))
    tests = dict(_tests(comparison, *sides)) if nodes else {}
    head = comparison.head_analysis
    comparison.head_analysis = dataclasses.replace(
        head, nodes={**head.nodes, **nodes}, tests={**head.tests, **tests}
    )
    return bool(nodes)


def _joins(comparison: Comparison, unique_id: str) -> bool:
    """Whether it is a table whose rows seem to have changed, with a join or a DISTINCT that may not matter to them.

    Without one nothing can be shown, so nothing has to be linked.
    """
    node = comparison.head.nodes.get(unique_id)
    return (
        node is not None
        and comparison.changed[unique_id].rows
        and node.materialized == "table"
        and any(word in (node.compiled_code or "").lower() for word in ("left", "distinct"))
    )


def _sides(comparison: Comparison, cache: Cache | None) -> tuple[KeptRowsMode, KeptRowsMode]:
    """Base and head; both know the types that base's catalog has, head of columns that did not change."""
    types, unchanged = comparison.base.types, comparison.unchanged()
    constraints, seeds = KnownConstraints(), comparison.seeds

    def of_unchanged(unique_id: str) -> Iterable[CatalogColumn]:
        columns = types.get(unique_id, ())
        if unique_id in unchanged:
            return columns
        change = comparison.changed.get(unique_id)
        if change is None:
            return ()
        others = {name.lower() for name in (*change.redefined, *change.added)}
        return [column for column in columns if column.name.lower() not in others]

    before, now = comparison.base_analysis, comparison.head_analysis
    base = ComparedSide.of(comparison.base_context, before, unchanged, cache, seeds.base)
    head = ComparedSide.of(comparison.head_context, now, unchanged, cache, seeds.head)
    return (
        KeptRowsMode(base, lambda unique_id: types.get(unique_id, ()), constraints),
        KeptRowsMode(head, of_unchanged, constraints),
    )


def _is_seen(comparison: Comparison, base: KeptRowsMode, head: KeptRowsMode) -> bool:
    """Whether what changed first differs when it is linked again; what stands in the analyses only does not."""
    project = comparison.head
    for unique_id in comparison.changed:
        node, then = project.nodes.get(unique_id), comparison.base.nodes.get(unique_id)
        if node is None or then is None or comparison.is_semantic(unique_id):
            continue
        above = {head.linker.names.canonical.get(p, p) for p in project.parents.get(unique_id, ())}
        if not above.isdisjoint(comparison.changed) or then.compiled_code != node.compiled_code:
            continue
        change = comparison.changed[unique_id]
        if not (change.rows or change.redefined or change.removed):
            continue  # a column of which only a query that was edited knows
        before, here = (side.linker.node(unique_id).analysis for side in (base, head))
        if node_change(before, here) is None:
            return False
    return True


def _nodes(
    comparison: Comparison, base: KeptRowsMode, head: KeptRowsMode
) -> Iterator[tuple[str, NodeAnalysis]]:
    """The nodes of which less changed than their plain fingerprints say, as they are on head."""
    for unique_id, plain in list(comparison.changed.items()):
        then = comparison.base_analysis.nodes.get(unique_id)
        if then is None or not plain.rows or comparison.is_semantic(unique_id):
            continue
        before, here = (side.linker.node(unique_id).analysis for side in (base, head))
        change = node_change(before, here)
        if change is None:
            del comparison.changed[unique_id]
            comparison.reworded[unique_id] = head.used_by(unique_id)
        elif not change.rows:
            comparison.changed[unique_id] = change
        else:
            continue
        now = comparison.head_analysis.nodes[unique_id]
        yield unique_id, with_fingerprints_of(then, before, now, here)


def _tests(
    comparison: Comparison, base: KeptRowsMode, head: KeptRowsMode
) -> Iterator[tuple[str, NodeAnalysis]]:
    """The tests that return the rows that they returned on base, as they are on head."""
    for test, now in comparison.head_analysis.tests.items():
        then = comparison.base_analysis.tests.get(test)
        if (
            then is None
            or (then.rows_fingerprint, then.fingerprints)
            == (now.rows_fingerprint, now.fingerprints)
            or is_lineage_test(comparison.head.nodes[test])
        ):
            continue
        before, here = (
            link_data_test(side.linker, test, side.linker.project.nodes[test]).analysis
            for side in (base, head)
        )
        if before == here:
            same = then.rows_fingerprint, then.fingerprints
            yield test, dataclasses.replace(now, rows_fingerprint=same[0], fingerprints=same[1])
