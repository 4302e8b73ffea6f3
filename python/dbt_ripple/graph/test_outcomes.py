"""What a load knows of the outcome of each data test, so that two loads can be told apart without meeting.

`select` compares two sides by more than the plain fingerprints of tests: by what joins keep
(`linking.kept_rows_mode`), and by the order of rows (`graph.order_seen`). So a load keeps of each test

* a second fingerprint, by the types that the catalog has, of what joins keep. The plain one needs no types, so that a load
  without a catalog can be compared with one that has it: either shows that nothing changed;
* the relations of which it sees the order of rows, itself or through what it reads, and of these what decides the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.flow.varying_columns import EVERYTHING
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.data_tests import link_data_test
from dbt_ripple.graph.linking.kept_rows_mode import KeptRowsMode
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import LinkingMode
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.order_seen import Types, orders_of_relations, orders_read
from dbt_ripple.graph.traversal import Vertex, reach_all


def with_test_outcomes(
    context: ProjectContext,
    analysis: Analysis,
    seeds: SeedFiles,
    cache: Cache | None = None,
    keys: Types | None = None,
) -> Analysis:
    """An analysis with what decides the outcome of its tests; all else is as it was.

    Args:
        context: of a project.
        analysis: of it, with own fingerprints.
        seeds: the files of its seeds.
        cache: where lowered queries may be found.
        keys: the columns of which the types of keys are known; by default those of the project's catalog,
            if that is not older than its manifest.

    Returns:
        With `Analysis.typed_tests`, `Analysis.orders` and `Analysis.orders_seen`.
    """
    project = context.project
    # What was listed before the manifest was written may have had other types.
    types = {} if project.catalog_is_older else project.catalog
    keys = types if keys is None else keys
    side = ComparedSide.of(context, analysis, frozenset(), cache, seeds)

    def linked(tests: Collection[str]) -> dict[str, NodeAnalysis]:
        mode = _Alone(side, lambda unique_id: keys.get(unique_id, ()), KnownConstraints())
        return _linked(mode.linker, analysis, tests)

    orders = orders_of_relations(context, analysis)
    read = orders_read(context, orders, types, cache)
    seen, in_rows = _seen_by_tests(analysis, read)
    if in_rows:
        # By two orders that differ: what joins keep does not come in another one.
        whole = [unique_id for unique_id, columns in read.items() if EVERYTHING in columns]
        ways = []
        for token in (b"one order", b"another one"):
            context.in_other_order = {u: [(frozenset({EVERYTHING}), token)] for u in whole}
            ways.append(linked(in_rows))
        context.in_other_order = {}
        for test, those in in_rows.items():
            if ways[0][test] != ways[1][test]:
                seen[test] |= those
    return replace(
        analysis,
        typed_tests=linked(analysis.tests),
        orders=orders,
        orders_seen={test: ",".join(sorted(those)) for test, those in seen.items() if those},
    )


def _seen_by_tests(
    analysis: Analysis, read: Mapping[str, Mapping[str, set[str]]]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Of tests that see an order, of which relations: itself or by columns, and by which rows there are."""
    seen: dict[str, set[str]] = defaultdict(set)
    in_rows: dict[str, set[str]] = defaultdict(set)
    tests: dict[Vertex, list[str]] = defaultdict(list)
    children: dict[Vertex, list[Vertex]] = defaultdict(list)
    if read:
        for test, unique_id, name in analysis.test_columns:
            tests[unique_id, name].append(test)
        for edge in analysis.edges:
            children[edge[0], edge[1]].append((edge[2], edge[3]))
    for unique_id, columns in read.items():
        for name, those in columns.items():
            if unique_id in analysis.tests:
                seen[unique_id] |= those
                continue
            there = (*analysis.nodes[unique_id].columns, ROWS)
            starts = [(unique_id, c) for c in there if name in (EVERYTHING, c.lower())]
            for vertex in reach_all(starts, children):
                for test in tests.get(vertex, ()):
                    (in_rows if name == EVERYTHING else seen)[test] |= those
    return seen, in_rows


def _linked(linker: Linker, analysis: Analysis, tests: Collection[str]) -> dict[str, NodeAnalysis]:
    """Tests of an analysis with the fingerprints that they have for a linker."""
    linker.link_all()
    nodes = linker.project.nodes
    return {
        unique_id: seen
        if is_lineage_test(nodes[unique_id])  # what is asked of the analysis, and not of rows
        else _having(seen, link_data_test(linker, unique_id, nodes[unique_id]).analysis)
        for unique_id, seen in analysis.tests.items()
        if unique_id in tests
    }


def _having(test: NodeAnalysis, linked: NodeAnalysis) -> NodeAnalysis:
    return replace(test, fingerprints=linked.fingerprints, rows_fingerprint=linked.rows_fingerprint)


class _Alone(KeptRowsMode):
    """The mode of a project that meets no other one: no fingerprint is of this process only."""

    in_cycle = LinkingMode.in_cycle
    left_by_hooks = LinkingMode.left_by_hooks
