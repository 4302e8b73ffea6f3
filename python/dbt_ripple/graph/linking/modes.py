"""In which ways a project is linked.

`LinkingMode` is how an analysis links it: every node from its own query, over its parents as they
are. The others do single steps otherwise:

* `own_mode`: over parents of which only the names of the columns count;
* `canonical_mode`: queries rewritten into their canonical form, to compare two sides;
* `fact_mode`: with what tests prove of rows (rules 14 and 15), and `kept_rows_mode`: with what queries alone do;
* `graph.broken_nodes`: only over columns that certainly exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.functions import marked_calls
from dbt_ripple.graph.linking.table_resolver import NodeTableResolver
from dbt_ripple.graph.masks import text_of
from dbt_ripple.graph.relations import LinkedNode, unknown_relation
from dbt_ripple.reasons import Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

FollowedQuery = tuple[dict[str, str], Linked]
"""The SQL behind each output of a query, by key, as far as that was asked for; and the query, linked."""


class LinkingMode:
    """What a linker asks of its mode, with the answers of plain linking.

    A mode answers questions about one node; it never calls or replaces the steps between them.

    Attributes:
        settled: the nodes of which nothing counts besides their compiled SQL.
    """

    settled: frozenset[str] = frozenset()

    def substitute(self, linker: Linker, unique_id: str) -> LinkedNode | None:
        """What stands for a node that is not linked from its own query or file; None for the others."""
        return None

    def before(self, linker: Linker, unique_id: str, node: Node) -> None:
        """Do what has to be done before a node is linked."""

    def after(self, linker: Linker, unique_id: str, linked: LinkedNode) -> None:
        """Do what has to be done to a node once it is linked or substituted."""

    def follow(self, linker: Linker, unique_id: str, node: Node) -> FollowedQuery | Reason:
        """A node's compiled SQL, linked; or why it cannot be followed."""
        resolver = NodeTableResolver(linker, unique_id)
        marked = marked_calls(linker, node, text_of(node, linker.context))
        followed = linker.queries.follow(marked.sql, resolver)
        if isinstance(followed, Reason):
            return followed
        expressions, linked = followed
        if linked.called:
            linker.called[unique_id] = linked.called
        return {key: marked.without_marks(sql) for key, sql in expressions.items()}, linked

    def in_cycle(self, linker: Linker, unique_id: str) -> Relation:
        """What a query sees of a node that is being linked: it is above itself."""
        fingerprint = digest(b"cycle", unique_id.encode())
        return unknown_relation(fingerprint, {(unique_id, ROWS): IDENTITY})

    def left_by_hooks(self, linker: Linker, key: str) -> bytes:
        """A fingerprint of what hooks leave in a relation, or make; empty for nothing."""
        return linker.left.in_(key)


def unequal_cycle(linker: Linker, unique_id: str) -> Relation:
    """The same in a comparison of two sides: it is equal to nothing on the other side."""
    fingerprint = digest(b"cycle", unique_id.encode(), str(id(linker)).encode())
    return unknown_relation(fingerprint, {(unique_id, ROWS): IDENTITY})
