"""One side of a project, linked in canonical form as far as it differs from the other side.

This is the second, stronger comparison. Relations that are the same on both sides count as the
same, and the queries of the others are linked as `flow.canonical` writes them. Two nodes with
equal fingerprints here are equal, by the same argument as for plain fingerprints: queries with the
same meaning, over relations that are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.link import link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.linking.compared_side import ComparedSide
from dbt_ripple.graph.linking.functions import marked_calls
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import FollowedQuery, LinkingMode, unequal_cycle
from dbt_ripple.graph.relations import LinkedNode, unchanged_relation
from dbt_ripple.reasons import Code, Reason


class CanonicalMode(LinkingMode):
    """Queries that were edited are linked in canonical form, over relations that were not.

    Args:
        side: one of the two.
        edited: the nodes that have another text on the other side: only these are rewritten, since
            one text over relations that are the same is the same as it stands.
        types: the columns, with their types, of what is the same on both sides.
        built: those of ``edited`` whose query is evaluated when they are built, on both sides.

    Attributes:
        linker: of this side, in this mode.
        rules: the rules that rewrote each query.
    """

    def __init__(
        self,
        side: ComparedSide,
        edited: Collection[str],
        types: Mapping[str, Sequence[CatalogColumn]],
        built: Collection[str] = (),
    ) -> None:
        self.analysis = side.analysis
        self.unchanged = side.unchanged
        self.edited = edited
        self.types = types
        self.built = built
        self.linker = side.linker(self)
        self.rules: dict[str, list[str]] = {}

    def substitute(self, linker: Linker, unique_id: str) -> LinkedNode | None:
        """A relation that is the same on both sides, as it was seen there."""
        if unique_id not in self.unchanged:
            return None
        analysed = self.analysis.nodes[unique_id]
        # What hooks write to holds, on both sides, what they have left in it.
        listed = unique_id in linker.context.hooks.writing and linker.catalog.get(unique_id)
        if analysed.status != "analysed" and not listed:
            return None
        return LinkedNode(analysed, unchanged_relation(unique_id, analysed, linker.dialect), [], {})

    def in_cycle(self, linker: Linker, unique_id: str) -> Relation:
        """What is in a cycle is equal to nothing."""
        return unequal_cycle(linker, unique_id)

    def left_by_hooks(self, linker: Linker, key: str) -> bytes:
        """What hooks leave is not looked into here: it is equal to nothing on the other side."""
        return digest(key.encode(), str(id(linker)).encode())

    def follow(self, linker: Linker, unique_id: str, node: Node) -> FollowedQuery | Reason:
        """A node's query, linked in canonical form where it has one."""
        sql, dialect = marked_calls(linker, node, node.compiled_code or "").sql, linker.dialect
        table = functools.partial(linker.table, unique_id)
        lowered = linker.queries.lowered(sql)
        if lowered.rel is None:
            return lowered.reason or Code.NO_QUERY()
        linked = link(lowered, table, dialect)
        linker.called[unique_id] = linked.called
        if unique_id not in self.edited:
            return {}, linked
        above = set(linker.above.get(unique_id, ()))
        named = set(linker.named_by.get(unique_id, ()))
        # Here, because it takes its time and most comparisons never come here.
        from dbt_ripple.flow.canonical import canonical

        types_of = functools.partial(self._types_of, linker)
        form = canonical(
            *(sql, dialect, linked, table, linker.context.masking, types_of),
            is_built=unique_id in self.built,
        )
        linker.above[unique_id] = above
        linker.named_by[unique_id] = named
        if form is None:
            return {}, linked
        self.rules[unique_id] = form.rules
        return {}, form.linked

    def _types_of(self, linker: Linker, key: str) -> dict[str, str]:
        """The types of a relation's columns, where it is the same on both sides and base knows them."""
        unique_id = linker.names.node_of(key)
        if unique_id is None:
            return {}
        return {
            fold_stored(c.name, linker.dialect): c.type
            for c in self.types.get(unique_id, ())
            if c.type
        }
