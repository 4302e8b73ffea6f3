"""Columns that the change took away: of which relation each was, who read it, and what it is called now.

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
from dbt_ripple.changes.comparison import Comparison
from dbt_ripple.graph.column_edges import edges_into
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.jinja.text import pieces, without_tags

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


def lost_columns(comparison: Comparison) -> dict[str, list[str]]:
    """The columns that relations may still have, though an edit took them out of their queries.

    The one side alone does not tell whether the relation still has it; the edit does
    (`_lost_from_table`, `_lost_from_text`).
    """
    return {**_lost_from_table(comparison), **_lost_from_text(comparison)}


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


def column_is_named(column: str, name: str) -> bool:
    """Whether a name that a query looks for is that of a column."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", name, re.IGNORECASE) is not None


def read_on_base(comparison: Comparison, readers: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
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
