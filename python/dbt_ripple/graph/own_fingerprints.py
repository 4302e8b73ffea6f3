"""Own fingerprints: what a node itself makes of its parents, whatever these hold.

A column's fingerprint moves if anything does that it is made of. Its own fingerprint is computed in the
same way, but over parents of which only the names count: it moves with the node's query, its
settings and what belongs to it (macros, variables, functions, hooks), not with what is above it. So
where both moved, the change was made here, and where only the fingerprint did, it was made above.

A column of a parent that has another name is another column here, with equal values, too.
"""

from __future__ import annotations

from typing import Final

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.relation import Column, Deps, Relation, UnlistedColumns
from dbt_ripple.graph.dbt_tests import TestLinker, outcome_fingerprints
from dbt_ripple.graph.lineage import NodeAnalysis, Own
from dbt_ripple.graph.relations import RELATIONS, LinkedNode, UnlistedSourceColumns, topological

LENGTH: Final = 16
"""Characters of one. It is compared with that of the same column in another load and with nothing else,
and it is stored for every column."""


class _NamedRest:
    """Columns of a parent that nothing lists, by their names."""

    def __init__(self, fingerprint: bytes, inner: UnlistedColumns) -> None:
        self.fingerprint = fingerprint
        self.inner = inner

    def get(self, key: str, name: str) -> Column | None:
        """The column; None where it cannot be among these."""
        column = self.inner.get(key, name)
        return None if column is None else (digest(self.fingerprint, key.encode()), column[1])

    def fp(self) -> bytes:
        """A fingerprint of all of them."""
        return digest(self.fingerprint, b"*")

    def whole(self) -> Deps:
        """What any one of them may depend on."""
        return self.inner.whole()


class _Named(Relation):
    """A relation of which only the name counts, and those of its columns that are read."""

    __slots__ = ()

    def all_fp(self) -> bytes:
        """Whoever may read all of it reads all of it, whatever that is."""
        return digest(self.side_key, b"all")


class OwnLinker(TestLinker):
    """Links every node over parents of which it sees the names of their columns.

    Args:
        linker: has linked the project. What is found out about its nodes one by one is taken from it.
    """

    def __init__(self, linker: TestLinker) -> None:
        super().__init__(linker.project, linker.queries.expressions, None, None, linker.seeds)
        self.macros, self.settings = linker.macros, linker.settings
        self.names, self.introspection = linker.names, linker.introspection
        self.queries, self.hooks = linker.queries, linker.hooks

    def node(self, unique_id: str) -> LinkedNode:
        """Link one node; its readers see the names of its columns."""
        linked = self.linked_nodes.get(unique_id)
        if linked is None:
            linked = super().node(unique_id)
            linked.relation = self.by_name(unique_id, linked.relation)
        return linked

    def by_name(self, unique_id: str, relation: Relation) -> Relation:
        """A relation by its name and those of its columns."""
        fingerprint = digest(b"named", unique_id.encode())

        def rest(inner: UnlistedColumns) -> UnlistedColumns:
            if isinstance(inner, UnlistedSourceColumns):
                return UnlistedSourceColumns(self, unique_id, fingerprint)
            return _NamedRest(fingerprint, inner)

        named = _Named(
            relation.names,
            relation.keys,
            [digest(fingerprint, key.encode()) for key in relation.keys],
            relation.deps,
            [rest(inner) for inner in relation.unlisted],
            digest(fingerprint, b"rows"),
            relation.rows,
            fingerprint,
            unresolved=[rest(inner) for inner in relation.unresolved],
        )
        named.fields = relation.fields
        return named


def own_fingerprints(linker: TestLinker) -> dict[str, Own]:
    """The own fingerprints of every relation that has a query, and of every test, by unique_id.

    Args:
        linker: has linked the project.
    """
    project = linker.project
    own = OwnLinker(linker)
    for unique_id in topological(project):
        if (
            project.nodes[unique_id].resource_type in RELATIONS
            and unique_id not in own.names.canonical
        ):
            own.node(unique_id)
    own.settle_hooks()
    tests = {
        unique_id: own.test(unique_id, node)[0]
        for unique_id, node in project.nodes.items()
        if node.resource_type == "test"
    }
    found = {
        unique_id: Own(_by_name(linked.analysis), linked.analysis.rows_fingerprint[:LENGTH])
        for unique_id, linked in own.linked_nodes.items()
        if linked.analysis.status != "leaf"
    }
    outcomes = outcome_fingerprints(project, tests)
    return found | {unique_id: Own({}, outcome[:LENGTH]) for unique_id, outcome in outcomes.items()}


def _by_name(analysis: NodeAnalysis) -> dict[str, str]:
    pairs = zip(analysis.columns, analysis.fingerprints, strict=True)
    return {name.lower(): fingerprint[:LENGTH] for name, fingerprint in pairs}
