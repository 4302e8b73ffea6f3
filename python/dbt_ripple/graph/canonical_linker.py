"""One side of a project, linked in canonical form as far as it differs from the other side.

This is the second, stronger comparison. Relations that are the same on both sides count as the
same, and the queries of the others are linked as `flow.canonical` writes them. Two nodes with
equal fingerprints here are equal, by the same argument as for plain fingerprints: queries with the
same meaning, over relations that are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence

from dbt_ripple.artifacts import CatalogColumn, Node, Project, masking_functions
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.dbt_tests import TestLinker
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import (
    LinkedNode,
    OwnPreviousColumns,
    unchanged_relation,
    why_unreadable,
)
from dbt_ripple.graph.seed_files import SeedFiles
from dbt_ripple.reasons import Code, Reason


class CanonicalLinker(TestLinker):
    """Links what is asked for in canonical form.

    Args:
        project: the side.
        analysis: of this side, plain.
        unmoved: the nodes that are the same on both sides, by unique_id.
        edited: the nodes that have another text on the other side: only these are rewritten, since
            one text over relations that are the same is the same as it stands.
        catalog: base's, which holds of what is the same on both sides.
        cache: where lowered queries may be found.
        seeds: the files of seeds.

    Attributes:
        rules: the rules that rewrote each query.
    """

    def __init__(
        self,
        project: Project,
        analysis: Analysis,
        unmoved: Collection[str],
        edited: Collection[str],
        catalog: Mapping[str, Sequence[CatalogColumn]],
        cache: Cache | None,
        seeds: SeedFiles,
    ) -> None:
        super().__init__(project, False, cache, None, seeds)
        self.analysis = analysis
        self.unmoved = unmoved
        self.edited = edited
        self.catalog = catalog
        self.rules: dict[str, list[str]] = {}
        self.masking = tuple(sorted(masking_functions(project)))

    def node(self, unique_id: str) -> LinkedNode:
        """A relation; one that is the same on both sides as it was seen there."""
        linked = self.linked_nodes.get(unique_id)
        if linked is None and unique_id in self.unmoved:
            seen = self.analysis.nodes[unique_id]
            # What hooks write to holds, on both sides, what they have left in it.
            listed = unique_id in self.hooks.writing and self.project.catalog.get(unique_id)
            if seen.status == "analysed" or listed:
                relation = unchanged_relation(unique_id, seen, self.dialect)
                linked = self.linked_nodes[unique_id] = LinkedNode(seen, relation, [], {})
        return linked or super().node(unique_id)

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name; one that stands in a circle is equal to nothing."""
        unique_id = self.names.node_of(key)
        if (
            unique_id in self.in_progress
            and unique_id != reader
            and unique_id not in self.linked_nodes
        ):
            leaf = digest(b"cycle", unique_id.encode(), str(id(self)).encode())
            rows = {(unique_id, ROWS): IDENTITY}
            return Relation([], [], [], [], [OwnPreviousColumns()], leaf, rows, leaf)
        return super().table(reader, key, name)

    def left_in(self, key: str) -> bytes:
        """What hooks leave is not looked into here: it is equal to nothing on the other side."""
        return digest(key.encode(), str(id(self)).encode())

    def follow(self, unique_id: str, node: Node) -> tuple[dict[str, str], Linked] | Reason:
        """A node's query, linked in canonical form where it has one."""
        reason = why_unreadable(node)
        if reason is not None:
            return reason
        sql = node.compiled_code or ""
        table = functools.partial(self.table, unique_id)
        try:
            lowered = self.queries.lowered(sql)
            if lowered.rel is None:
                return lowered.reason or Code.NO_QUERY()
            linked = link(lowered, table, self.dialect)
            self.called[unique_id] = linked.called
            if unique_id not in self.edited:
                return {}, linked
            above = set(self.above.get(unique_id, ()))
            named = set(self.named_by.get(unique_id, ()))
            # Here, because it takes its time and most comparisons never come here.
            from dbt_ripple.flow.canonical import canonical

            form = canonical(sql, self.dialect, linked, table, self.masking, self.types_of)
            self.above[unique_id] = above
            self.named_by[unique_id] = named
        except Exception as error:  # a defect of ours is this node's, not the whole project's
            return Code.DEFECT(error=f"{type(error).__name__}: {error}")
        if form is None:
            return {}, linked
        self.rules[unique_id] = form.rules
        return {}, form.linked

    def types_of(self, key: str) -> dict[str, str]:
        """The types of a relation's columns, where it is the same on both sides and base knows them."""
        unique_id = self.names.node_of(key)
        if unique_id is None or unique_id not in self.unmoved:
            return {}
        return {
            fold_stored(c.name, self.dialect): c.type
            for c in self.catalog.get(unique_id, ())
            if c.type
        }

    def of_test(self, unique_id: str) -> NodeAnalysis:
        """A test's fingerprints."""
        return self.test(unique_id, self.project.nodes[unique_id])[0]
