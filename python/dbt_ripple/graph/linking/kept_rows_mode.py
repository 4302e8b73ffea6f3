"""Rows that a join keeps, whatever became of its right side, by what queries alone say.

Plain fingerprints take all that is joined for a part of the rows. Here a table is linked with what its query
says of rows: a LEFT JOIN by what a GROUP BY makes unique keeps those of its left side (rule 14, without a test).
Building a table evaluates its query, so that what fails is seen there; whatever else is linked plainly, over
such tables, because an engine may evaluate a join of which only the other side's rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tests import is_lineage_test
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.data_tests import link_data_test
from dbt_ripple.graph.linking.fact_mode import Evidence, FactMode
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import FollowedQuery, LinkingMode
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.seed_files import SeedFiles
from dbt_ripple.graph.semantic_layer import over_analysis
from dbt_ripple.reasons import Reason


class KeptRowsMode(FactMode):
    """Tables are linked with what queries say of rows, and nothing else is.

    Args:
        side: one of two, or a project alone, of which nothing is known to be unchanged.
        types: the columns of a relation as the warehouse has them. Keys have to be of one type, by these, by
            casts, or as one column: a conversion can make two equal.
        known_constraints: what is known while queries are linked; two sides share it.
    """

    def __init__(
        self,
        side: ComparedSide,
        types: Callable[[str], Iterable[CatalogColumn]],
        known_constraints: KnownConstraints,
    ) -> None:
        super().__init__(side, Evidence(lambda _: False, types), known_constraints)

    def follow(self, linker: Linker, unique_id: str, node: Node) -> FollowedQuery | Reason:
        """As with facts; a join is looked up by tables only."""
        constraints = self.known_constraints
        outer = constraints.looks_up
        constraints.looks_up = node.materialized == "table"
        try:
            return super().follow(linker, unique_id, node)
        finally:
            constraints.looks_up = outer


class _Alone(KeptRowsMode):
    """The same of a project alone: its fingerprints are compared with those of others."""

    def in_cycle(self, linker: Linker, unique_id: str) -> Relation:
        return LinkingMode.in_cycle(self, linker, unique_id)

    def left_by_hooks(self, linker: Linker, key: str) -> bytes:
        return LinkingMode.left_by_hooks(self, linker, key)


def with_kept_rows(
    context: ProjectContext, analysis: Analysis, seeds: SeedFiles, cache: Cache | None = None
) -> Analysis:
    """An analysis with fingerprints by which what a join keeps is equal, as of two sides that are compared.

    Everything is linked once more.
    """
    project = context.project
    side = ComparedSide.of(context, analysis, frozenset(), cache, seeds)
    linker = _Alone(side, lambda u: project.catalog.get(u, ()), KnownConstraints()).linker
    linker.link_all()
    nodes, tests = dict(analysis.nodes), dict(analysis.tests)
    for unique_id, linked in linker.linked_nodes.items():
        seen, plain = linked.analysis, nodes.get(unique_id)
        if plain is not None and plain.columns == seen.columns:
            nodes[unique_id] = replace(
                plain,
                fingerprints=seen.fingerprints,
                rows_fingerprint=seen.rows_fingerprint,
                order=seen.order,
                incidental=seen.incidental,
            )
    for unique_id, plain in analysis.tests.items():
        test = project.nodes[unique_id]
        if not is_lineage_test(test):
            seen = link_data_test(linker, unique_id, test).analysis
            tests[unique_id] = replace(
                plain, fingerprints=seen.fingerprints, rows_fingerprint=seen.rows_fingerprint
            )
    found = replace(analysis, nodes=nodes, tests=tests)
    return replace(found, nodes=nodes | over_analysis(project, linker.dialect, side.queries, found))
