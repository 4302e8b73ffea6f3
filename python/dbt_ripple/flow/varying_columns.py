"""Which columns of a query depend on what no engine promises: on chance, or on the order of rows.

`flow.determinism` tells it of each piece of a query. Here it is followed to the columns that such a piece
enters, by name: more of them rather than less.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator
from typing import Any, Final, NamedTuple

from sqlglot import exp

from dbt_ripple.flow.determinism import (
    GENERATORS,
    NOT_FOLLOWED,
    OF_NOW,
    OF_THE_ENGINE,
    WORDS_OF_CHANCE,
    Cause,
    Nondeterminism,
    QueryPieces,
    branches_of,
    classes,
    cte_of,
    is_distinct,
)
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX
from dbt_ripple.flow.reading.reader import UNREAD, Text, parse_statement
from dbt_ripple.flow.reading.token_kinds import called
from dbt_ripple.flow.unused_cte_bodies import reads_by_text

EVERYTHING: Final = "*"
"""In place of the names of columns: all of them, and which rows there are."""

_WORD: Final = re.compile(r"\w+")


def other_each_time(sql: str, dialect: str, read: Collection[str] = ()) -> frozenset[str]:
    """The columns of a query that may be other values each time it runs over the same rows.

    That is what asks for the time, chance or the session, or calls a function nobody knows. A table
    holds what was given once; who reads a view has it made anew.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        read: the columns of what it reads that are other values each time.

    Returns:
        Names in lower case, more rather than less; `EVERYTHING` where it may be any, or the rows.

    Example:
        >>> sorted(other_each_time("select a, now() as b, random() + a as c from t", "duckdb"))
        ['b', 'c']
        >>> other_each_time("with x as (select now() as b from t) select a from x where b > a", "duckdb")
        frozenset({'*'})
    """
    try:
        text = Text(sql, dialect)
        if not read and not _may_be_other(text):
            return frozenset()
        tree = text.statement()
    except UNREAD:
        return frozenset({EVERYTHING})
    return _varying(tree, dialect, read)


def varying_in(tree: Any, text: Text) -> frozenset[str]:
    """As `other_each_time`, of a text that is parsed already, and of what reads nothing that varies."""
    return _varying(tree, text.dialect, ()) if _may_be_other(text) else frozenset()


def _varying(tree: Any, dialect: str, read: Collection[str]) -> frozenset[str]:
    if not isinstance(tree, exp.Query):
        return frozenset({EVERYTHING})
    pieces = _pieces(QueryPieces(tree, dialect, None), Cause.CHANCE, Cause.UNKNOWN)
    return made_of(tree, [piece for piece, _ in pieces], read)


class ByOrder(NamedTuple):
    """The columns of a query that depend on the order of the rows it reads, in lower case.

    Attributes:
        open: where no ORDER BY says in which.
        ties: where one leaves it open for rows that are equal to it, or which of equal values is shown
            decides, or how a sum of floating point numbers is made; those of ``open`` are among them.
    """

    open: frozenset[str]
    ties: frozenset[str]


class OrderRead:
    """Which columns of a query depend on the order of rows, asked of one table after another.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        inexact: as of `nondeterminism`.

    Example:
        >>> sql = "select a, first(b) as f, sum(c) as s from t group by a"
        >>> seen = OrderRead(sql, "duckdb", ["c"]).by({"t"})
        >>> sorted(seen.open), sorted(seen.ties)
        (['f'], ['f', 's'])
    """

    def __init__(self, sql: str, dialect: str, inexact: Iterable[str] | None) -> None:
        try:
            tree = parse_statement(sql, dialect)
        except UNREAD:
            tree = None
        self._tree = tree if isinstance(tree, exp.Query) else None
        if self._tree is None:
            return
        lower = None if inexact is None else {name.lower() for name in inexact}
        self._query = QueryPieces(self._tree, dialect, lower)
        pieces = _pieces(self._query, Cause.ORDER, Cause.UNKNOWN, Cause.TIES)
        self._tied = [n for n, why in pieces if why.by is Cause.TIES]
        self._unordered = [n for n, why in pieces if why.by is not Cause.TIES]

    def by(self, tables: Collection[str] | None = None) -> ByOrder:
        """The columns that rows of these tables decide by their order; `EVERYTHING` where it may be any.

        Args:
            tables: their names, in lower case, of ephemeral models those of their CTEs; None for all that
                are read.
        """
        if self._tree is None:
            return ByOrder(frozenset({EVERYTHING}), frozenset({EVERYTHING}))
        unordered, tied = (
            [n for n in pieces if tables is None or _sees_one_of(n, tables)]
            for pieces in (self._unordered, self._tied)
        )
        ties = [*unordered, *(n for n in tied if not isinstance(n, _SHOWING))]
        shown = [k for n in tied if isinstance(n, _SHOWING) for k in _shown_keys(self._query, n)]
        return ByOrder(
            made_of(self._tree, unordered, ()),
            made_of(self._tree, ties, ()) | made_of(self._tree, shown, (), compared=False),
        )


def _sees_one_of(piece: Any, names: Collection[str]) -> bool:
    """Whether a piece of a query may see rows of one of these tables: of all below its SELECT."""
    query = piece if isinstance(piece, exp.Query) else piece.find_ancestor(exp.Query)
    while query is not None and query.find(exp.Table) is None and query.parent is not None:
        query = query.find_ancestor(exp.Query)  # it is over the rows of a query further out
    return query is None or any(name in names for name in _tables(query, set()))


def _tables(query: Any, looked: set[int]) -> Iterator[str]:
    """The names, in lower case, of the tables that a query reads, by CTEs too, and of inlined models."""
    for table in query.find_all(exp.Table):
        cte, name = cte_of(table), table.name.lower()
        if cte is None or name.startswith(EPHEMERAL_PREFIX):
            yield name
        if cte is not None and id(cte) not in looked:
            looked.add(id(cte))
            yield from _tables(cte.this, looked)


_SHOWING: Final = (exp.Group, exp.Distinct, exp.SetOperation)


def _shown_keys(query: QueryPieces, node: Any) -> list[Any]:
    """The items of a select list that show one of several equal values that are not the same."""
    if isinstance(node, exp.SetOperation):
        return [
            item for side in branches_of(node) for item in side.expressions if not query.exact(item)
        ]
    select = node.parent
    if not isinstance(select, exp.Select) or node.args.get("on"):
        return [node]
    if any(isinstance(item, exp.Star) or item.is_star for item in select.expressions):
        return [node]
    return [
        item if isinstance(item, exp.Column) else item.this
        for item in select.expressions
        if not isinstance(item.unalias(), exp.AggFunc) and not query.exact(item)
    ]


def _pieces(query: QueryPieces, *causes: Cause) -> list[tuple[Any, Nondeterminism]]:
    """The pieces of a query that are not repeatable by one of these causes, without CTEs that nothing reads."""
    of_chance = (exp.Func, exp.Column, *NOT_FOLLOWED)  # no other node is of chance, or unknown
    nodes = query.tree.find_all(*of_chance) if Cause.CHANCE in causes else query.tree.walk()
    found = [(n, why) for n in nodes if (why := query.of(n)) is not None and why.by in causes]
    unread = unread_ctes(query.tree) if found else ()
    if not unread:
        return found
    return [(n, why) for n, why in found if not any(id(a) in unread for a in _above(n))]


def _above(node: Any) -> Iterator[Any]:
    while node is not None:
        yield node
        node = node.parent


def unread_ctes(tree: Any) -> set[int]:
    """The ids of the CTEs whose names stand nowhere but in each other: no row of them is asked for.

    Example:
        >>> sql = "with a as (select 1), b as (select * from a), c as (select 2) select * from c"
        >>> tree = parse_statement(sql, "duckdb")
        >>> [cte.alias for cte in tree.ctes if id(cte) in unread_ctes(tree)]
        ['a', 'b']
    """
    ctes = list(tree.find_all(exp.CTE))
    if not ctes or reads_by_text(tree):
        return set()
    tables = tree.find_all(exp.Table)
    unread: set[int] = set()
    while True:
        read = {table.name.lower() for table in tables}
        found = {id(cte) for cte in ctes if cte.alias.lower() not in read}
        if found <= unread:
            return unread
        unread |= found
        tables = (node for node in _read(tree, unread) if isinstance(node, exp.Table))


def _read(tree: Any, unread: Container[int]) -> Iterator[Any]:
    """The nodes of a query without those of some CTEs."""
    for node in tree.walk(prune=lambda node: id(node) in unread):
        if id(node) not in unread:
            yield node


def made_of(
    tree: Any, found: list[Any], read: Collection[str], *, compared: bool = True
) -> frozenset[str]:
    """The columns of a query that pieces of it, and columns that it reads, enter.

    Args:
        tree: of the query.
        found: pieces of it.
        read: names of columns that it reads.
        compared: whether to compare such a column shows what it is: of equal values it does not.
    """
    if not found and not read:
        return frozenset()
    if EVERYTHING in read or any(map(_is_by_place, tree.find_all(*_NAMED_BY_PLACE))):
        return frozenset({EVERYTHING})
    names = set(read)
    looked: set[str] = set()
    while True:
        names.update(column_of(node, compared=compared) for node in found)
        if EVERYTHING in names:
            return frozenset({EVERYTHING})
        if names == looked:
            return frozenset(names)
        found = [
            c
            for c in tree.find_all(exp.Column)
            if c.name.lower() in names - looked
            and (compared or not isinstance(c.parent, (*_COMPARED, exp.Group)))
        ]
        looked = set(names)


def _is_by_place(node: Any) -> bool:
    """Whether a piece of a query gives a column a name that does not stand beside what it is."""
    if isinstance(node, exp.Star):
        return any(node.args.values())
    if isinstance(node, exp.TableAlias):
        return bool(node.args.get("columns")) and not isinstance(node.parent, _UNNESTING)
    if isinstance(node, exp.SetOperation):
        return bool(node.args.get("by_name")) or any(
            not isinstance(side, exp.Select | exp.SetOperation)
            or any(item.is_star for item in side.selects)
            for side in (node.this.unnest(), node.expression.unnest())
        )
    if isinstance(node, _UNNESTING):
        # What is unnested decides which rows there are, and so counts where it stands.
        return node.find(exp.Query) is not None
    return isinstance(node, _BY_PLACE)


def column_of(node: Any, *, compared: bool) -> str:
    """The column, in lower case, that a piece of a query enters; `EVERYTHING` where that is not known.

    The first branch of a set operation names the columns of all of them, by place.
    """
    item = _item(node, compared)
    if item is None:
        return EVERYTHING
    select = item.parent
    place = next(i for i, one in enumerate(select.expressions) if one is item)
    operation = select.parent
    while isinstance(operation, exp.Subquery | exp.SetOperation):
        if isinstance(operation, exp.SetOperation):
            if compared and is_distinct(operation):
                return EVERYTHING
            first = operation.selects
            if place >= len(first):
                return EVERYTHING
            item = first[place]
        operation = operation.parent
    named = isinstance(item, exp.Alias | exp.Column)
    return item.alias_or_name.lower() if named else EVERYTHING


def _item(node: Any, compared: bool) -> Any:
    """The item of a select list that a node is part of; None where it decides which rows there are."""
    while node.parent is not None:
        if isinstance(node.parent, exp.Select):
            select = node.parent
            if node.arg_key != "expressions" or (compared and select.args.get("distinct")):
                return None
            return None if _is_inside(select) else node
        node = node.parent
    return None


def _is_inside(select: Any) -> bool:
    """Whether a SELECT is part of an expression: what it gives goes into that."""
    above = select.parent
    while isinstance(above, exp.Subquery | exp.SetOperation):
        above = above.parent
    return above is not None and not isinstance(above, exp.CTE | exp.From | exp.Join)


def _may_be_other(text: Text) -> bool:
    """Whether a text has a word that `other_each_time` has to look at."""
    kind = functions(text.dialect).kind
    sql = text.sql.lower()
    # Most texts hold none, and are not divided into words.
    if any(word in sql for word in WORDS_OF_CHANCE) and not WORDS_OF_CHANCE.isdisjoint(
        _WORD.findall(sql)
    ):
        return True
    return any(
        (schema not in OF_THE_ENGINE and (schema[:1].isalpha() or schema[:1] == "_"))
        or (name not in _HARMLESS and (name in OF_NOW or kind(name) not in _KNOWN_KINDS))
        for name, schema in called(text.tokens, text.marks)
    )


_COMPARED: Final = classes("EQ NEQ GT GTE LT LTE Is In NullSafeEQ NullSafeNEQ Count")
_BY_PLACE: Final = classes("Pivot Columns")
_UNNESTING: Final = (exp.Unnest, exp.Lateral)
_NAMED_BY_PLACE: Final = (*_BY_PLACE, *_UNNESTING, exp.Star, exp.TableAlias, exp.SetOperation)
_HARMLESS: Final = GENERATORS | frozenset(
    "all and any as between by case cast coalesce distinct else except exists extract filter from group having if in "
    "interval is join lateral like limit not nullif numeric decimal on or order over partition rows select some then "
    "try_cast union using values varchar char when where window with within".split()
)
"""What a bracket follows that calls nothing, and calls that give rows of what they are given."""
_KNOWN_KINDS: Final = frozenset({"aggregate", "scalar", "window"})
