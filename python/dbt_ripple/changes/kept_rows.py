"""Rows that a join keeps, whatever became of its right side.

Plain fingerprints take all that is joined for a part of the rows. Here what changed is linked once more, on both
sides, with what queries alone say of rows: a LEFT JOIN by what a GROUP BY makes unique keeps those of its left
side (rule 14, without a test: `graph.linking.fact_mode`). What is the same by that has base's fingerprints.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dbt_ripple.artifacts import CatalogColumn
from dbt_ripple.changes.equivalent_queries import with_fingerprints_of
from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.data_tests import link_data_test
from dbt_ripple.graph.linking.fact_mode import Evidence, FactMode
from dbt_ripple.graph.linking.node_parents import relations_above
from dbt_ripple.graph.traversal import reach_all

if TYPE_CHECKING:
    from dbt_ripple.changes.compare import Comparison


def prove_rows_kept(comparison: Comparison, cache: Cache | None = None) -> bool:
    """Take out of `changed`, and of head's analysis, what joins keep.

    Keys have to be of one type, by base's catalog, by casts, or as one column: a conversion can make two equal.

    Args:
        comparison: of base and head, which is changed in place.
        cache: where lowered queries may be found.

    Returns:
        Whether more of any relation is now known to be the same than its fingerprints showed.
    """
    if not any(_joins(comparison, u) for u in comparison.changed):
        return False
    proof = _Proof(comparison, cache)
    nodes = dict(proof.nodes())
    tests = dict(proof.tests()) if nodes else {}
    head = comparison.head_analysis
    comparison.head_analysis = dataclasses.replace(
        head, nodes={**head.nodes, **nodes}, tests={**head.tests, **tests}
    )
    return bool(nodes)


def _joins(comparison: Comparison, unique_id: str) -> bool:
    """Whether it is a table whose rows seem to have changed, and that joins what may not matter to them.

    Without one nothing can be shown, so nothing has to be linked.
    """
    node = comparison.head.nodes.get(unique_id)
    return (
        node is not None
        and comparison.changed[unique_id].rows
        and node.materialized == "table"
        and "left" in (node.compiled_code or "").lower()
    )


class _Proof:
    """Both sides, linked with what their queries say of rows as far as that is asked for."""

    def __init__(self, comparison: Comparison, cache: Cache | None) -> None:
        self.comparison = comparison
        base, seeds = comparison.base, comparison.seeds
        before, now = comparison.base_analysis, comparison.head_analysis
        unchanged = comparison.unchanged()
        constraints = KnownConstraints()

        def of_unchanged(unique_id: str) -> Iterable[CatalogColumn]:
            return base.types.get(unique_id, ()) if unique_id in unchanged else ()

        self.base = FactMode(
            ComparedSide.of(comparison.base_context, before, unchanged, cache, seeds.base),
            Evidence(lambda _: False, lambda u: base.types.get(u, ())),
            constraints,
        )
        self.head = FactMode(
            ComparedSide.of(comparison.head_context, now, unchanged, cache, seeds.head),
            Evidence(lambda _: False, of_unchanged),
            constraints,
        )
        # What a query is compiled to may be something else once what it asks for is built.
        unknown = [u for u in comparison.changed if not self.is_known(u)]
        self.unknown = reach_all(unknown, self.readers())
        self.plainly_changed = frozenset(comparison.changed)
        self.shown: set[str] = set()
        """What changed, and evaluates nothing else that could fail unseen."""

    def is_known(self, unique_id: str) -> bool:
        """Whether a compiled query says all of a node or a test, on both sides."""
        comparison = self.comparison
        if unique_id not in comparison.head.nodes or comparison.is_semantic(unique_id):
            return False
        sides = (comparison.base_analysis, comparison.head_analysis)
        found = [side.nodes.get(unique_id) or side.tests.get(unique_id) for side in sides]
        return all(seen is not None and not seen.introspects for seen in found)

    def readers(self) -> dict[str, list[str]]:
        """What refers to each node, under any of its names."""
        readers = defaultdict(list, {u: [*c] for u, c in self.comparison.head.children.items()})
        for source, unique_id in self.head.linker.names.canonical.items():
            readers[unique_id].append(source)
        return readers

    def nodes(self) -> Iterator[tuple[str, NodeAnalysis]]:
        """The nodes of which less changed than their plain fingerprints say, as they are on head."""
        from dbt_ripple.changes.compare import node_change

        comparison = self.comparison
        for unique_id, plain in list(comparison.changed.items()):
            if unique_id in self.unknown:
                continue
            then = comparison.base_analysis.nodes[unique_id]
            now = comparison.head_analysis.nodes[unique_id]
            before, here = (side.linker.node(unique_id).analysis for side in (self.base, self.head))
            change = node_change(before, here)
            if not self.fails_no_more(unique_id):
                continue
            self.shown.add(unique_id)
            if change is not None and change.rows >= plain.rows:
                continue
            if change is None:
                del comparison.changed[unique_id]
                comparison.reworded[unique_id] = self.head.used_by(unique_id)
            else:
                comparison.changed[unique_id] = change
            yield unique_id, with_fingerprints_of(then, before, now, here)

    def tests(self) -> Iterator[tuple[str, NodeAnalysis]]:
        """The tests that return the rows that they returned on base, as they are on head."""
        comparison = self.comparison
        for test, now in comparison.head_analysis.tests.items():
            then = comparison.base_analysis.tests.get(test)
            if (
                then is None
                or (then.rows_fingerprint, then.fingerprints)
                == (now.rows_fingerprint, now.fingerprints)
                or is_lineage_test(comparison.head.nodes[test])
                or test in self.unknown
                or not self.is_known(test)
            ):
                continue
            before, here = (
                link_data_test(side.linker, test, side.linker.project.nodes[test]).analysis
                for side in (self.base, self.head)
            )
            if before == here and self.fails_no_more(test):
                same = then.rows_fingerprint, then.fingerprints
                yield test, dataclasses.replace(now, rows_fingerprint=same[0], fingerprints=same[1])

    def fails_no_more(self, unique_id: str) -> bool:
        """Whether a query evaluates what it evaluated on base, or building it shows that it can be.

        What is joined to rows that do not need it may still be evaluated, over other values: also in a view that
        the query reads.
        """
        head = self.comparison.head
        if all(
            side.nodes[unique_id].materialized == "table" for side in (self.comparison.base, head)
        ):
            return True
        above = self.plainly_changed.intersection(relations_above(self.head.linker, unique_id))
        return not self.head.used_by(unique_id) and above <= self.shown
