"""In which ways a project is linked.

`LinkingMode` is how an analysis links it: every node from its own query, over its parents as they
are. The others do single steps otherwise:

* `own_mode`: over parents of which only the names of the columns count;
* `canonical_mode`: queries rewritten into their canonical form, to compare two sides;
* `fact_mode`: with what tests prove of rows (rules 14 and 15), and `kept_rows_mode`: with what queries alone do;
* `graph.broken_nodes`: only over columns that certainly exist.

Each resolves names by a `NodeTableResolver`, and reads a node's `text_of`, in which marks of the macro ``mask`` count
only if the macro made them. It writes a mark around what it hides (`flow.functions.MASK_MARK`). A mark that
somebody writes by hand masks nothing, so a node's marks count only if it calls the macro (itself, through other
macros, or in an ephemeral model that dbt puts into it), and none of its own texts spells the mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.functions import MASK_MARK
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.functions import marked_calls
from dbt_ripple.graph.macros import OWN
from dbt_ripple.graph.query_cache import Note
from dbt_ripple.graph.relations import LinkedNode, unknown_relation
from dbt_ripple.reasons import Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker
    from dbt_ripple.graph.linking.project_context import ProjectContext

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


MASK: Final = f"macro.{MASK_MARK}"
_CALL: Final = re.compile(r"\bdbt_ripple\s*\.\s*mask\s*\(")
_NO_MARK: Final = "no mask"
_NOT_OF_NAMES: Final = re.compile(r"[^\w.]")


def without_forged_marks(text: str) -> str:
    """SQL in which no mark counts."""
    return text.replace(f"'{MASK_MARK}'", f"'{_NO_MARK}'")


def text_of(node: Node, context: ProjectContext) -> str:
    """A node's compiled SQL, in which its marks are only those of the macro."""
    text = node.compiled_code or ""
    if f"'{MASK_MARK}'" not in text:
        return text
    called = False
    for one in _with_ephemerals(node, context):
        if _spells_it(one.raw_code):
            return without_forged_marks(text)
        for unique_id in context.macros.closure(one.depends_on.macros):
            macro = context.project.macros[unique_id]
            called = called or unique_id == MASK
            if macro.package_name != OWN and _spells_it(macro.macro_sql):
                return without_forged_marks(text)
        called = called or MASK in one.depends_on.macros
    return text if called else without_forged_marks(text)


def _spells_it(text: str) -> bool:
    """Whether a text has the mark otherwise than by a call of the macro, also in pieces."""
    spelled = _NOT_OF_NAMES.sub("", text).count(MASK_MARK)
    return spelled > len(_CALL.findall(text))


def _with_ephemerals(node: Node, context: ProjectContext) -> Iterator[Node]:
    """The node and the ephemeral models whose SQL stands in its own."""
    seen, stack = {node.unique_id}, [node]
    while stack:
        one = stack.pop()
        yield one
        for unique_id in one.depends_on.nodes:
            above = context.project.nodes.get(unique_id)
            if above is not None and above.is_ephemeral and unique_id not in seen:
                seen.add(unique_id)
                stack.append(above)
