"""The statements of a script: what each writes, and the relations it names.

A job's SQL is more than one query: it inserts, it makes tables, it may do both one after the other. Its
queries are followed as any query is (`flow.lower`); this module only finds which relation a statement writes to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlglot import exp

from dbt_ripple.flow.identifiers import DIALECTS, fold
from dbt_ripple.flow.reading.reader import UNREAD, parse_statements, statement_texts
from dbt_ripple.flow.reading.refusals import Unsupported, first_line
from dbt_ripple.reasons import Code, Reason

KNOWN: Final = frozenset(DIALECTS.values())
"""Dialects of which the rules of names and functions are known (docs/name-resolution.md)."""


_BEFORE: Final = re.compile(r"\A(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)


class Name(NamedTuple):
    """A relation as a statement names it.

    Attributes:
        key: its folded parts, with dots between them.
        spelled: as it is written, without quotes.
    """

    key: str
    spelled: str


class Statement(NamedTuple):
    """One statement.

    Attributes:
        sql: its text.
        writes: the relation it writes to; None of a query.
        reads: the relations it names besides, each once.
        columns: of the relation it writes to, those that it lists.
        is_query: whether what it writes is what a query returns, so that it can be followed.
        temporary: whether what it makes is gone when the script ends.
        only_deletes: whether it only takes rows out, or makes or drops the relation, and reads no other.
        ctes: keys that its own CTEs have, so that a name among ``reads`` may mean one of them.
        is_insert: whether it adds rows to a relation that is there, column by column in its order.
    """

    sql: str
    writes: Name | None
    reads: tuple[Name, ...]
    columns: tuple[str, ...]
    is_query: bool
    temporary: bool = False
    only_deletes: bool = False
    ctes: frozenset[str] = frozenset()
    is_insert: bool = False

    @property
    def first_word(self) -> str:
        """What it begins with, behind comments."""
        words = re.findall(r"\w+", _BEFORE.sub("", self.sql))
        return words[0].upper() if words else ""


def statements(sql: str, dialect: str) -> list[Statement] | Reason:
    """The statements of a script, or why it cannot be read.

    Args:
        sql: one or more statements.
        dialect: a name of `reading.dialects.dialects`.

    Example:
        >>> (one,) = statements("insert into a.t (x) select y from b.u", "spark")
        >>> one.writes.key, [name.key for name in one.reads], one.columns
        ('a.t', ['b.u'], ('x',))
    """
    try:
        read = [
            None
            if isinstance(tree, (exp.Condition, exp.Alias))
            else _statement(text.sql, tree, dialect)
            for text in statement_texts(sql, dialect)
            for tree in parse_statements(text.sql, dialect)
        ]
    except Unsupported as why:
        return why.reason
    except UNREAD as error:
        return Code.CANNOT_PARSE(error=first_line(error))
    understood = [statement for statement in read if statement is not None]
    return understood if understood and len(understood) == len(read) else Code.NO_QUERY()


def _statement(sql: str, tree: Any, dialect: str) -> Statement:
    target = None
    columns: Sequence[str] = ()
    is_query = isinstance(tree, exp.Query)
    temporary = False
    if isinstance(tree, (exp.Insert, exp.Create)):
        into = tree.this
        if isinstance(into, exp.Schema):
            named = into.expressions
            columns = [c.name for c in named if isinstance(c, (exp.Identifier, exp.ColumnDef))]
            into = into.this
        creates_or_inserts = isinstance(tree, exp.Insert) or tree.args.get("kind") in (
            "TABLE",
            "VIEW",
        )
        target = into if isinstance(into, exp.Table) and creates_or_inserts else None
        is_query = target is not None and isinstance(tree.expression, (exp.Query, exp.Values))
        properties = tree.args.get("properties")
        temporary = properties is not None and properties.find(exp.TemporaryProperty) is not None
    elif isinstance(tree, (exp.Merge, exp.Update, exp.Delete)):
        into = tree.this
        target = into if isinstance(into, exp.Table) else None
    elif isinstance(tree, (exp.TruncateTable, exp.Drop)):
        return Statement(sql, None, (), (), False, only_deletes=True)
    elif isinstance(tree, exp.Command):
        return Statement(sql, None, (), (), False)
    ctes = frozenset(fold(cte.alias, False, dialect) for cte in tree.find_all(exp.CTE))
    reads: dict[Name, None] = {}
    for table in tree.find_all(exp.Table):
        name = _name(table, dialect)
        if table is not target and name is not None:
            reads[name] = None
    writes = _name(target, dialect) if target is not None else None
    # A table that is made without a query, or emptied, has no rows from anywhere.
    bare = isinstance(tree, exp.Create) and target is not None and tree.expression is None
    deletes = (isinstance(tree, exp.Delete) or bare) and not reads
    is_insert = isinstance(tree, exp.Insert) and not tree.args.get("by_name")
    return Statement(
        *(sql, writes, tuple(reads), tuple(columns), is_query, temporary, deletes, ctes, is_insert)
    )


def _name(table: exp.Table, dialect: str) -> Name | None:
    parts = table.parts
    if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    key = ".".join(fold(p.name, bool(p.args.get("quoted")), dialect) for p in parts)
    return Name(key, ".".join(p.name for p in parts))
