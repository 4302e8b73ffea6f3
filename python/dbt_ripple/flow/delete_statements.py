"""Statements that delete rows of one relation, as a filter of the rows that stay."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlglot import exp

from dbt_ripple.flow.determinism import is_repeatable
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, Text

_PLAIN_DELETE: Final = frozenset({"this", "where"})
_OTHER_ROWS: Final = (exp.Query, exp.AggFunc, exp.Window, exp.Star, exp.Placeholder, exp.Parameter)
"""Expressions of which the value is up to more than the row."""


class Deleted(NamedTuple):
    """The rows that a statement deletes: those of which the condition is true.

    Attributes:
        condition: SQL over one row.
        columns: the names that it reads, lower case.
    """

    condition: str
    columns: frozenset[str]


def deleted_rows(sql: str, relation: str, dialect: str) -> Deleted | None:
    """Which rows a statement deletes of a relation, where that is all it does.

    Args:
        sql: one statement.
        relation: the name, a word, that stands for the relation in it.
        dialect: sqlglot's name of its engine.

    Returns:
        None unless each row goes or stays by its own values alone: without subqueries, other tables,
        chance, the time and functions that are not known.

    Example:
        >>> deleted_rows("delete from mine where qty < 1", "mine", "duckdb").columns
        frozenset({'qty'})
        >>> deleted_rows("delete from mine where id in (select id from other)", "mine", "duckdb")
    """
    try:
        text = Text(sql, dialect)
        tree = text.statement()
    except UNREAD:
        return None
    if not isinstance(tree, exp.Delete) or any(text.dropped(tree)):
        return None
    table, where = tree.this, tree.args.get("where")
    if (
        where is None
        or {name for name, value in tree.args.items() if value} != _PLAIN_DELETE
        or not isinstance(table, exp.Table)
        or {name for name, value in table.args.items() if value} != {"this"}
        or table.name != relation
    ):
        return None
    condition = where.this
    named = list(condition.find_all(exp.Column))
    if any(condition.find_all(*_OTHER_ROWS)) or any(column.table for column in named):
        return None
    kept = written(condition, dialect)
    if not is_repeatable(kept, dialect):
        return None
    return Deleted(kept, frozenset(column.name.lower() for column in named))
