"""Which relations the names in one node's query stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.query_cache import Note

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


class NodeTableResolver:
    """A node whose query is followed, to `QueryCache`."""

    __slots__ = ("linker", "unique_id")

    def __init__(self, linker: Linker, unique_id: str) -> None:
        self.linker = linker
        self.unique_id = unique_id

    def table(self, key: str, name: str) -> Relation:
        """The relation behind a name in the node's query."""
        return self.linker.table(self.unique_id, key, name)

    def view(self, key: str, name: str) -> bytes | None:
        """A digest of that relation, as `Linker.view`."""
        return self.linker.view(self.unique_id, key)

    def noting(self) -> _Notes:
        """Within it, columns that only their use shows are gathered."""
        return _Notes(self.linker)

    def repeat(self, note: Note) -> bool:
        """Note once more what linking noted before; whether it came out the same."""
        unique_id, key, name, noted = note
        relation = self.linker.linked_nodes[unique_id].relation
        (unlisted,) = relation.unlisted or relation.unresolved
        column = unlisted.get(key, name)
        return column is not None and (unique_id, noted) in column[1]


class _Notes:
    """Gathers the columns of sources and the like that only their use shows, while one query is linked.

    A query may be linked while another one is.
    """

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self.before: dict[Note, None] | None = None
        self.notes: dict[Note, None] = {}

    def __enter__(self) -> dict[Note, None]:
        self.before, self.linker.notes = self.linker.notes, self.notes
        return self.notes

    def __exit__(self, *_: object) -> None:
        self.linker.notes = self.before
