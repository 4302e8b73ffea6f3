"""What a load knows of the outcome of each data test, so that two loads can be told apart without meeting.

`select` compares two sides by more than the plain fingerprints of tests: by what joins keep
(`linking.kept_rows_mode`), and by the order of rows (`graph.order_seen`). A load gives each test two
fingerprints in place of that. Two loads in which either is the same have the same outcome:

* one that needs no types, so that a load without a catalog can be compared with one that has it: the plain
  one, with all that may change an order that the test, or what it reads, sees;
* one by the types that the catalog has: what joins keep, and which sums and keys are exact.
"""

from __future__ import annotations

from dataclasses import replace

from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.data_tests import link_data_test
from dbt_ripple.graph.linking.kept_rows_mode import KeptRowsMode
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import LinkingMode
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.order_seen import Types, order_marks


def with_test_outcomes(
    context: ProjectContext,
    analysis: Analysis,
    seeds: SeedFiles,
    cache: Cache | None = None,
    keys: Types | None = None,
) -> Analysis:
    """An analysis with both fingerprints of its tests; all else is as it was.

    Args:
        context: of a project.
        analysis: of it, with own fingerprints.
        seeds: the files of its seeds.
        cache: where lowered queries may be found.
        keys: the columns of which the types of keys are known; by default those of the project's catalog,
            if that is not older than its manifest.

    Returns:
        With `Analysis.ordered_tests`, and with `Analysis.typed_tests` by the types of the project's own catalog.
    """
    project = context.project
    side = ComparedSide.of(context, analysis, frozenset(), cache, seeds)
    ordered: dict[str, NodeAnalysis] = {}
    if marks := order_marks(context, analysis, None, cache):
        context.in_other_order = marks
        linked = _linked(side.linker(LinkingMode()), analysis)
        ordered = {test: seen for test, seen in linked.items() if seen != analysis.tests[test]}
    # What was listed before the manifest was written may have had other types.
    types = {} if project.catalog_is_older else project.catalog
    # Types can only show that an order is not seen.
    context.in_other_order = order_marks(context, analysis, types, cache, among=marks)
    keys = types if keys is None else keys
    mode = _Alone(side, lambda unique_id: keys.get(unique_id, ()), KnownConstraints())
    typed = _linked(mode.linker, analysis)
    context.in_other_order = {}
    return replace(analysis, ordered_tests=ordered, typed_tests=typed)


def _linked(linker: Linker, analysis: Analysis) -> dict[str, NodeAnalysis]:
    """The tests of an analysis with the fingerprints that they have for a linker."""
    linker.link_all()
    nodes = linker.project.nodes
    return {
        unique_id: seen
        if is_lineage_test(nodes[unique_id])  # what is asked of the analysis, and not of rows
        else _having(seen, link_data_test(linker, unique_id, nodes[unique_id]).analysis)
        for unique_id, seen in analysis.tests.items()
    }


def _having(test: NodeAnalysis, linked: NodeAnalysis) -> NodeAnalysis:
    return replace(test, fingerprints=linked.fingerprints, rows_fingerprint=linked.rows_fingerprint)


class _Alone(KeptRowsMode):
    """The mode of a project that meets no other one: no fingerprint is of this process only."""

    in_cycle = LinkingMode.in_cycle
    left_by_hooks = LinkingMode.left_by_hooks
