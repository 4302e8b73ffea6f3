"""Rows that a join keeps, whatever became of its right side, by what queries alone say.

Plain fingerprints take all that is joined for a part of the rows. Here a table is linked with what its query
says of rows: a LEFT JOIN by what a GROUP BY makes unique keeps those of its left side (rule 14, without a test).
Building a table evaluates its query, so that what fails is seen there; whatever else is linked plainly, over
such tables, because an engine may evaluate a join of which only the other side's rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.fact_mode import Evidence, FactMode
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import FollowedQuery
from dbt_ripple.graph.unresolved_names import STORED
from dbt_ripple.reasons import Reason


class KeptRowsMode(FactMode):
    """Tables are linked with what queries say of rows, and nothing else is.

    Args:
        side: one of two.
        types: the columns of a relation as the warehouse has them. Keys have to be of one type, by these, by
            casts, or as one column: a conversion can make two equal.
        known_constraints: what is known while queries are linked; both sides share it.
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
        outer = constraints.looks_up, constraints.is_stored
        constraints.looks_up = node.materialized == "table"
        constraints.is_stored = constraints.looks_up or _never_fails(linker, node)
        try:
            return super().follow(linker, unique_id, node)
        finally:
            constraints.looks_up, constraints.is_stored = outer


def _never_fails(linker: Linker, node: Node) -> bool:
    """Whether a query with a DISTINCT fails of no rows, however much of it an engine evaluates."""
    sql = node.compiled_code or ""
    if node.resource_type != "model" or "distinct" not in sql.lower():
        return False
    from dbt_ripple.flow.may_fail import Evaluated

    above = (linker.project.nodes.get(u) for u in linker.project.parents.get(node.unique_id, ()))
    return all(
        parent is not None and (parent.resource_type == "source" or parent.materialized in STORED)
        for parent in above
    ) and not Evaluated(sql, linker.dialect).may_fail(forced=True)
