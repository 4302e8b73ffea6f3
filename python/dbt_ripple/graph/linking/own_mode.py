"""Own fingerprints: what a node itself makes of its parents, whatever these hold.

A column's fingerprint changes if anything does that it is made of. Its own fingerprint is computed in the
same way, but over parents of which only the names count: it changes with the node's query, its
settings and what belongs to it (macros, variables, functions, hooks), not with what is above it. So
where both changed, the change was made here, and where only the fingerprint did, it was made above.

A column of a parent that has another name is another column here, with equal values, too.
"""

from __future__ import annotations

from typing import Final

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.relation import Column, Deps, OutputColumn, Relation, RowSet, UnlistedColumns
from dbt_ripple.graph.lineage import NodeAnalysis, Own
from dbt_ripple.graph.linking.data_tests import link_data_test, outcome_fingerprints
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.modes import LinkingMode
from dbt_ripple.graph.relations import LinkedNode, UnlistedSourceColumns


class OwnMode(LinkingMode):
    """Readers of a node see its name and those of its columns."""

    def after(self, linker: Linker, unique_id: str, linked: LinkedNode) -> None:
        """Show a node's columns by their names."""
        linked.relation = _by_name(linker, unique_id, linked.relation)


def _by_name(linker: Linker, unique_id: str, relation: Relation) -> Relation:
    """A relation by its name and those of its columns."""
    fingerprint = digest(b"named", unique_id.encode())

    def unlisted(inner: UnlistedColumns) -> UnlistedColumns:
        if isinstance(inner, UnlistedSourceColumns):
            return UnlistedSourceColumns(linker, unique_id, fingerprint)
        return _UnlistedByName(fingerprint, inner)

    named = _NamedRelation(
        [
            OutputColumn(c.name, c.key, digest(fingerprint, c.key.encode()), c.deps)
            for c in relation.columns
        ],
        RowSet.unjoined(digest(fingerprint, b"rows"), relation.rows.deps, fingerprint),
        [unlisted(inner) for inner in relation.unlisted],
        [unlisted(inner) for inner in relation.unresolved],
    )
    named.fields = relation.fields
    return named


class _NamedRelation(Relation):
    """A relation of which only the name counts, and those of its columns that are read."""

    __slots__ = ()

    def all_fp(self) -> bytes:
        """Whoever may read all of it reads all of it, whatever that is."""
        return digest(self.rows.side_key, b"all")


class _UnlistedByName:
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


LENGTH: Final = 16
"""Characters of one. It is compared with that of the same column in another load and with nothing else,
and it is stored for every column."""


def own_fingerprints(linker: Linker) -> dict[str, Own]:
    """The own fingerprints of every relation that has a query, and of every test, by unique_id.

    Args:
        linker: has linked the project. Everything is linked once more, with its context and queries.
    """
    project = linker.project
    own = Linker(linker.context, linker.queries, OwnMode(), seeds=linker.seeds)
    own.link_all()
    tests = {
        unique_id: link_data_test(own, unique_id, node).analysis
        for unique_id, node in project.nodes.items()
        if node.resource_type == "test"
    }
    fingerprints = {
        unique_id: Own(
            _fingerprints_by_name(linked.analysis), linked.analysis.rows_fingerprint[:LENGTH]
        )
        for unique_id, linked in own.linked_nodes.items()
        if linked.analysis.status != "leaf"
    }
    outcomes = outcome_fingerprints(linker.context, tests)
    return fingerprints | {
        unique_id: Own({}, outcome[:LENGTH]) for unique_id, outcome in outcomes.items()
    }


def _fingerprints_by_name(analysis: NodeAnalysis) -> dict[str, str]:
    pairs = zip(analysis.columns, analysis.fingerprints, strict=True)
    return {name.lower(): fingerprint[:LENGTH] for name, fingerprint in pairs}
