"""Nodes linked over parents of which only the names of their columns count (`graph.own_fingerprints`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.relation import Column, Deps, OutputColumn, Relation, RowSet, UnlistedColumns
from dbt_ripple.graph.linking.modes import LinkingMode
from dbt_ripple.graph.relations import LinkedNode, UnlistedSourceColumns

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


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
