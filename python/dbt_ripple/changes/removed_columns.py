"""Names that a query cannot find: of which relation the column was, and what it is called now.

An engine reports `orders.channel` as the query has it, where `orders` may be an alias or a CTE. A
reviewer wants to know that this is `stg_orders.channel`, and that it is called `sales_channel`
now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.compare import Comparison
from dbt_ripple.graph.broken_nodes import missing_without
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.jinja.text import pieces, without_tags
from dbt_ripple.reasons import Code, Reason, names_missing

_WORD: Final = re.compile(r"\w+")


class RemovedColumn(msgspec.Struct, kw_only=True):
    """A column that base has and head has not.

    Attributes:
        unique_id: the relation it was a column of.
        renamed_to: the column of head with its definition; None where there is none.
    """

    unique_id: str
    column: str
    renamed_to: str | None = None


class Broken(msgspec.Struct, kw_only=True):
    """A node that cannot compile on head; the reason has the name that is missing.

    Attributes:
        gone: the columns it reads that the change took away or renamed, where it is that.
    """

    unique_id: str
    reason: Reason
    gone: list[RemovedColumn] = []


class MissingNames:
    """The names that broken nodes and tests of head cannot find because the change removed them.

    Args:
        comparison: of base and head.
        lost: also those that read a column which an edit took out of a query
            (`broken_by_lost_columns`). They may run, so their readers do not count as broken.

    Attributes:
        reasons: what the engine would say of each; of those that it cannot even parse, too.
        new: those that are not broken on base in the same way; nodes first, then tests.
    """

    def __init__(self, comparison: Comparison, lost: bool = False) -> None:
        self.comparison = comparison
        now = comparison.head_analysis
        self.reasons = {
            unique_id: analysed.reason or Code.NO_REASON_GIVEN()
            for side in (now.nodes, now.tests)
            for unique_id, analysed in side.items()
            if analysed.status == "broken"
        }
        if lost:
            self.reasons |= broken_by_lost_columns(comparison)
        self.reasons |= comparison.syntax_errors
        before = comparison.base_analysis
        was = before.nodes | before.tests if self.reasons else {}
        self.new = [
            unique_id
            for unique_id, reason in self.reasons.items()
            if (then := was.get(unique_id)) is None or then.reason != reason
        ]
        self._read = _read_on_base(comparison, self.reasons) if self.reasons else {}
        self._vanished = vanished(comparison.base, comparison.head) if self.reasons else {}

    def of(self, unique_id: str) -> list[RemovedColumn]:
        """The columns that are gone and that a broken node or test asks for by their names."""
        reason = self.reasons.get(unique_id)
        if reason is None:
            return []
        base, head = self.comparison.base, self.comparison.head
        parents = (*head.parents.get(unique_id, ()), *base.parents.get(unique_id, ()))
        removed = [
            gone
            for parent in dict.fromkeys(parents)
            for gone in self._gone(parent)
            if any(_names(name, gone.column) for name in names_missing(reason))
        ]
        # Two parents may have lost a column of this name, and only one of them be read.
        read = self._read.get(unique_id, set())
        return [g for g in removed if (g.unique_id, g.column.lower()) in read] or removed

    def broken(self) -> list[Broken]:
        """What cannot compile on head and could (or did not exist) on base."""
        return [
            Broken(unique_id=unique_id, reason=self.reason(unique_id), gone=self.of(unique_id))
            for unique_id in self.new
        ]

    def reason(self, unique_id: str) -> Reason:
        """Why a broken node or test is broken, with what the change did to what it reads."""
        reason = self.reasons[unique_id]
        gone = self.of(unique_id)
        return broken_by(reason, map(self.what_became_of, gone)) if gone else reason

    def what_became_of(self, gone: RemovedColumn) -> Reason:
        """What became of a column."""
        base, head = self.comparison.base.nodes, self.comparison.head.nodes
        node = head.get(gone.unique_id) or base.get(gone.unique_id)
        name = node.spoken_name if node else gone.unique_id
        if gone.renamed_to:
            return Code.COLUMN_RENAMED(name=name, column=gone.column, to=gone.renamed_to)
        return Code.COLUMN_GONE(name=name, column=gone.column)

    def _gone(self, parent: str) -> Iterable[RemovedColumn]:
        change = self.comparison.changed.get(parent)
        if change is not None:
            to = {was: name for name, was in change.renamed.items()}
            for name in change.removed:
                yield RemovedColumn(unique_id=parent, column=name, renamed_to=to.get(name))
        for name in self._vanished.get(parent, ()):
            if change is None or name not in change.removed:
                yield RemovedColumn(unique_id=parent, column=name)


def broken_by_lost_columns(comparison: Comparison) -> dict[str, Reason]:
    """Who reads a column that its relation may still have, though the edit took it out of the query.

    The one side alone does not tell whether the relation still has it; the edit does
    (`_lost_from_table`, `_lost_from_text`).
    """
    now = comparison.head_analysis
    doubtful = [
        unique_id
        for side in (now.nodes, now.tests)
        for unique_id, analysed in side.items()
        if analysed.reason is not None and analysed.reason.code is Code.MAY_NOT_BUILD
    ]
    if not doubtful:
        return {}
    lost = {**_lost_from_table(comparison), **_lost_from_text(comparison)}
    if not lost:
        return {}
    relations = {unique_id: now.nodes[unique_id] for unique_id in lost}
    missing = missing_without(comparison.head_context, doubtful, relations)
    columns = {column for removed in lost.values() for column in removed}
    certain = {
        unique_id: [name for name in names if any(_names(name, column) for column in columns)]
        for unique_id, names in missing.items()
    }
    return {u: Code.CANNOT_FIND(names=names) for u, names in certain.items() if names}


def _lost_from_table(comparison: Comparison) -> dict[str, list[str]]:
    """The columns that the query of an incremental model has no longer.

    They may still be in the model's table. But then dbt's insert, which lists the table's columns,
    cannot find them in the query; ``on_schema_change: fail`` refuses it, and ``sync_all_columns``
    takes them away. Only ``append_new_columns`` keeps them and goes on.
    """
    base, head, now = comparison.base.nodes, comparison.head, comparison.head_analysis
    return {
        unique_id: change.removed
        for unique_id, change in comparison.changed.items()
        if change.removed
        and unique_id in base
        and unique_id in now.nodes
        and (node := head.nodes[unique_id]).materialized == "incremental"
        and node.config.get("on_schema_change") != "append_new_columns"
    }


def _lost_from_text(comparison: Comparison) -> dict[str, list[str]]:
    """The columns that were written out in a query which also queries the warehouse as it compiles.

    It may compile to another text when it is built. But where the edit only took a column out of
    the SQL, and left the Jinja, the macros and what they query as they were, no answer of the
    warehouse brings the column back that did not make two of them on base.
    """
    base, head = comparison.base, comparison.head
    before, now = comparison.base_analysis.nodes, comparison.head_analysis.nodes
    lost: dict[str, list[str]] = {}
    for unique_id, change in comparison.changed.items():
        then, node = base.nodes.get(unique_id), head.nodes.get(unique_id)
        if not (change.removed and then and node and unique_id in now):
            continue
        looks_at = now[unique_id].introspects
        if not looks_at or node.materialized not in ("table", "view"):
            continue
        if _tags(then.raw_code) != _tags(node.raw_code) or (
            _macros(comparison.base_context, then) != _macros(comparison.head_context, node)
        ):
            continue
        if any(before.get(above) != now.get(above) for above in looks_at):
            continue
        was, written = (
            Counter(_WORD.findall(without_tags(n.raw_code, " ").lower())) for n in (then, node)
        )
        gone = [c for c in change.removed if was[c.lower()] > written[c.lower()]]
        if gone:
            lost[unique_id] = gone
    return lost


def _tags(text: str) -> list[str]:
    """The tags of a text; all of it where Jinja refuses it."""
    parts = pieces(text)
    return [text] if parts is None else [part.text for part in parts if part.kind != "data"]


def _macros(context: ProjectContext, node: Node) -> dict[str, str]:
    """The text of every macro that a node may call."""
    called = context.macros.closure(node.depends_on.macros)
    return {unique_id: context.project.macros[unique_id].macro_sql for unique_id in called}


def broken_by(reason: Reason, gone: Iterable[Reason]) -> Reason:
    """A reason, extended by what happened to the columns that cannot be found."""
    return Code.BROKEN_BY(because=reason, gone=list(gone))


def _names(name: str, column: str) -> bool:
    """Whether a name that a query looks for is that of a column."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", name, re.IGNORECASE) is not None


def _read_on_base(
    comparison: Comparison, readers: Iterable[str]
) -> dict[str, set[tuple[str, str]]]:
    """The columns, in lower case, that some nodes and tests read on base."""
    analysis = comparison.base_analysis
    columns: dict[str, set[tuple[str, str]]] = {unique_id: set() for unique_id in readers}
    nodes = [unique_id for unique_id in columns if unique_id in analysis.nodes]
    for edge in edges_into(analysis.edges, nodes) if nodes else ():
        columns[edge[2]].add((edge[0], edge[1].lower()))
    for test, node, column in analysis.test_columns:
        if test in columns:
            columns[test].add((node, column.lower()))
    return columns


def vanished(base: Project, head: Project) -> dict[str, list[str]]:
    """Columns of sources that base's catalog has and head's has not, by unique_id.

    The analysis alone does not tell: a column that is still read is one of the relation to it.
    """
    columns = {}
    for node in head.of_type("source"):
        then, now = base.catalog.get(node.unique_id), head.catalog.get(node.unique_id)
        if not then or not now or now == then:
            continue
        left = {c.name.lower() for c in now}
        if gone := [c.name for c in then if c.name.lower() not in left]:
            columns[node.unique_id] = gone
    return columns
