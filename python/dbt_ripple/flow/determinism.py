"""Does a query give the same bag of rows whenever its tables have the same bags of rows?

It does not if it asks for the time, a random number or its session. It may not if it depends on
the order of rows, which a bag does not have: a LIMIT, the first of a group, the number of a row, a
sum of floating point numbers. Only what is known to be repeatable is called so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from sqlglot import exp

from dbt_ripple.flow.builtin_names import VOLATILE_NAMES
from dbt_ripple.flow.functions import functions
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, Text, data_type, parse_statement, table_named
from dbt_ripple.flow.reading.token_kinds import called


class Cause(IntEnum):
    """What may make a query give another bag of rows; each is worse than those before."""

    TIES = 1
    """Which of rows that its own order holds for equal comes first, or by what way a sum is made."""
    ORDER = 2
    """The order in which rows lie or come, where it asks for none."""
    CHANCE = 3
    """Anything: the time, chance, the session, a function nobody knows."""


class Nondeterminism(NamedTuple):
    """Why a query may give other rows of the same."""

    reason: str
    by: Cause


def nondeterminism(sql: str, dialect: str, inexact: Iterable[str] | None) -> Nondeterminism | None:
    """Why a query may give another bag of rows of the same bags; None where it does not.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        inexact: the names of those columns of its tables whose values are equal in other ways than
            by being the same, or do not add up exactly: floating point numbers, above all. None
            where that is not known: then any column may be one.
    """
    try:
        tree = parse_statement(sql, dialect)
    except UNREAD as error:
        return Nondeterminism(f"its SQL is not followed ({type(error).__name__})", Cause.CHANCE)
    if not isinstance(tree, exp.Query):
        return Nondeterminism("it is no query that is followed", Cause.CHANCE)
    return _Query(tree, dialect, None if inexact is None else {n.lower() for n in inexact}).reason()


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
    found = _pieces(_Query(tree, dialect, None), Cause.CHANCE)
    return made_of(tree, found, read)


class ByOrder(NamedTuple):
    """The columns of a query that depend on the order of the rows it reads, in lower case.

    Attributes:
        open: where no ORDER BY says in which.
        ties: where one leaves it open for rows that are equal to it, or which of equal values is shown
            decides, or how a sum of floating point numbers is made; those of ``open`` are among them.
    """

    open: frozenset[str]
    ties: frozenset[str]


def by_order(
    sql: str,
    dialect: str,
    inexact: Iterable[str] | None,
    moved: Collection[str] | None = None,
) -> ByOrder:
    """The columns of a query that depend on the order of rows; `EVERYTHING` where it may be any.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        inexact: as of `nondeterminism`.
        moved: the names, in lower case, of the tables whose rows may come in another order; None for all.

    Example:
        >>> seen = by_order("select a, first(b) as f, sum(c) as s from t group by a", "duckdb", ["c"])
        >>> sorted(seen.open), sorted(seen.ties)
        (['f'], ['f', 's'])
    """
    try:
        tree = parse_statement(sql, dialect)
    except UNREAD:
        tree = None
    if not isinstance(tree, exp.Query):
        return ByOrder(frozenset({EVERYTHING}), frozenset({EVERYTHING}))
    query = _Query(tree, dialect, None if inexact is None else {n.lower() for n in inexact})
    unordered, tied = (
        [n for n in _pieces(query, cause) if moved is None or _sees_one_of(n, moved)]
        for cause in (Cause.ORDER, Cause.TIES)
    )
    ties = made_of(tree, [*unordered, *(n for n in tied if not isinstance(n, _SHOWING))], ())
    shown = [key for n in tied if isinstance(n, _SHOWING) for key in _shown_keys(query, n)]
    return ByOrder(made_of(tree, unordered, ()), ties | made_of(tree, shown, (), compared=False))


def _sees_one_of(piece: Any, names: Collection[str]) -> bool:
    """Whether a piece of a query may see rows of one of these tables: of all below its SELECT."""
    query = piece if isinstance(piece, exp.Query) else piece.find_ancestor(exp.Query)
    while query is not None and query.find(exp.Table) is None and query.parent is not None:
        query = query.find_ancestor(exp.Query)  # it is over the rows of a query further out
    return query is None or any(name in names for name in _tables(query, set()))


def _tables(query: Any, looked: set[int]) -> Iterator[str]:
    """The names, in lower case, of the tables that a query reads, by CTEs too."""
    for table in query.find_all(exp.Table):
        cte = _cte_of(table)
        if cte is None:
            yield table.name.lower()
        elif id(cte) not in looked:
            looked.add(id(cte))
            yield from _tables(cte.this, looked)


_SHOWING: Final = (exp.Group, exp.Distinct, exp.SetOperation)


def _shown_keys(query: _Query, node: Any) -> list[Any]:
    """The items of a select list that show one of several equal values that are not the same."""
    if isinstance(node, exp.SetOperation):
        return [
            item for side in _branches(node) for item in side.expressions if not query.exact(item)
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


def _pieces(query: _Query, cause: Cause) -> list[Any]:
    """The pieces of a query that are not repeatable by this very cause, without CTEs that nothing reads."""
    of_chance = (exp.Func, exp.Column, *_UNKNOWN)  # no other node is `Cause.CHANCE`
    nodes = query.tree.find_all(*of_chance) if cause is Cause.CHANCE else query.tree.walk()
    found = [n for n in nodes if (why := query.of(n)) is not None and why.by is cause]
    unread = unread_ctes(query.tree) if found else ()
    return [n for n in found if not unread or not any(id(a) in unread for a in _above(n))]


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
        names.update(_column_of(node, compared) for node in found)
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
        return bool(node.args.get("columns"))
    if isinstance(node, exp.SetOperation):
        return bool(node.args.get("by_name")) or any(
            not isinstance(side, exp.Select | exp.SetOperation)
            or any(item.is_star for item in side.selects)
            for side in (node.this.unnest(), node.expression.unnest())
        )
    return isinstance(node, _BY_PLACE)


def _column_of(node: Any, compared: bool) -> str:
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
            if compared and _is_distinct(operation):
                return EVERYTHING
            first = operation.selects
            if place >= len(first):
                return EVERYTHING
            item = first[place]
        operation = operation.parent
    named = isinstance(item, exp.Alias | exp.Column)
    return item.alias_or_name.lower() if named else EVERYTHING


def _is_distinct(operation: Any) -> bool:
    """Whether a set operation compares rows."""
    return bool(operation.args.get("distinct")) or not isinstance(operation, exp.Union)


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
    if any(word in sql for word in _OTHER_WORDS) and not _OTHER_WORDS.isdisjoint(
        _WORD.findall(sql)
    ):
        return True
    return any(
        (schema and schema not in _OF_THE_ENGINE)
        or (name not in _HARMLESS and (name in _OF_NOW or kind(name) not in _KNOWN_KINDS))
        for name, schema in called(text.tokens, text.marks)
    )


def is_repeatable(expression: str, dialect: str) -> bool:
    """Whether an expression over a relation has the same values whenever that has the same rows.

    Floating point numbers are taken as exact: the last digit of their sum may differ.

    Example:
        >>> is_repeatable("sum(o.qty * 2)", "duckdb"), is_repeatable("o.qty * random()", "duckdb")
        (True, False)
    """
    return nondeterminism(f"select {expression} as x from t", dialect, ()) is None


def reads_only(sql: str, dialect: str, relations: Iterable[str]) -> bool:
    """Whether a query reads no other tables than these, each a relation as dbt writes it.

    It is for queries that are followed no further, and so of few kinds: what is written in them is
    in the parse tree, all of that is known, and rows come of tables and subqueries only.
    """
    try:
        text = Text(sql, dialect)
        tree = text.statement()
        allowed = {_parts(table_named(name, dialect)) for name in relations}
    except UNREAD:
        return False
    if not isinstance(tree, exp.Query) or any(text.dropped(tree)):
        return False
    for node in tree.walk():
        if isinstance(node, exp.Table):
            given = {name for name, value in node.args.items() if value}
            named = isinstance(node.this, exp.Identifier) and given <= _PLAIN_TABLE
            if not named or not (_cte_of(node) is not None or _parts(node) in allowed):
                return False
        elif isinstance(node, exp.Func):
            if isinstance(node.parent, exp.From | exp.Join):
                return False
        elif not isinstance(node, _PLAIN):
            return False
    return True


def _parts(table: Any) -> tuple[str, ...]:
    return tuple(part.name for part in table.parts)


def _cte_of(table: Any) -> Any:
    """The CTE of a query around it that a table is, one that stands before where it is read; or None."""
    inside, above = None, table.parent
    while above is not None and len(table.parts) == 1:
        if isinstance(above, exp.CTE):
            inside = above
        for cte in above.ctes if isinstance(above, exp.Query) else ():
            if cte is inside:
                break
            if cte.alias.lower() == table.name.lower():
                return cte
        above = above.parent
    return None


def changes_only(statement: str, dialect: str, table: str) -> bool:
    """Whether a statement deletes or updates rows of one table by what that holds, and no more.

    So that what it leaves is the same bag of rows of the same bag.
    """
    try:
        tree = parse_statement(statement, dialect)
    except UNREAD:
        return False
    return (
        isinstance(tree, exp.Delete | exp.Update)
        and all(relation.name == table and not relation.db for relation in tree.find_all(exp.Table))
        and not any(tree.find_all(exp.Returning))
        and _Query(tree, dialect, None).reason() is None
    )


class _Query:
    def __init__(self, tree: Any, dialect: str, inexact: set[str] | None) -> None:
        self.tree = tree
        self.dialect = dialect
        self.functions = functions(dialect)
        self.inexact = inexact
        if inexact is not None:
            self.spread(inexact)

    def spread(self, inexact: set[str]) -> None:
        """Take in the names that the query itself gives to inexact values."""
        named = [(a.alias.lower(), a.this) for a in self.tree.find_all(exp.Alias)]
        # Columns that a CTE or a derived table lists by position may be any of its values.
        for alias in self.tree.find_all(exp.TableAlias):
            inexact.update(column.name.lower() for column in alias.args.get("columns") or ())
        changed = True
        while changed:
            changed = False
            for name, value in named:
                if name not in inexact and not self.exact(value):
                    inexact.add(name)
                    changed = True

    def reason(self) -> Nondeterminism | None:
        """The worst of what makes it unrepeatable."""
        reason = None
        for node in self.tree.walk():
            why = self.of(node)
            if why is not None and (reason is None or why.by > reason.by):
                reason = why
        return reason

    def of(self, node: Any) -> Nondeterminism | None:
        """Why one piece of the query is not repeatable."""
        if isinstance(node, _VOLATILE):
            sql = written(node, self.dialect)[:40]
            return Nondeterminism(f"{sql} is another value each time", Cause.CHANCE)
        if isinstance(node, _UNKNOWN):
            return Nondeterminism(f"{node.key} is not followed", Cause.CHANCE)
        if isinstance(node, exp.Func) and not isinstance(node, exp.Cast):
            return self.function(node)
        if isinstance(node, _LIMITING):
            return Nondeterminism(f"{node.key} takes some of the rows", _by_order_of(node.parent))
        if isinstance(node, exp.WithinGroup):
            return Nondeterminism("WITHIN GROUP sees the order of rows", Cause.TIES)
        if isinstance(node, exp.Pivot):
            return Nondeterminism("PIVOT groups by columns it does not name", Cause.TIES)
        if isinstance(node, exp.Column) and _is_bare(node):
            return Nondeterminism(f"{node.name} is another value each time", Cause.CHANCE)
        if isinstance(node, exp.Cast) and str(node.this.this).strip().lower() in _MOMENTS:
            return Nondeterminism(f"{node.this.this} is another moment each time", Cause.CHANCE)
        if isinstance(node, exp.Distinct):
            select = node.parent
            if node.args.get("on") is not None:
                return Nondeterminism("DISTINCT ON takes some of the rows", _by_order_of(select))
            values = node.expressions or (
                select.expressions if isinstance(select, exp.Select) else [exp.Star()]
            )
            return self.of_keys(values, "DISTINCT")
        if isinstance(node, exp.Group):
            return self.of_keys(_group_keys(node), "GROUP BY")
        if isinstance(node, exp.SetOperation) and _is_distinct(node):
            return self.of_keys([v for s in _branches(node) for v in s.expressions], node.key)
        if isinstance(node, exp.Window):
            return self.window(node)
        if isinstance(node, exp.Join):
            words = {str(node.args.get(name) or "").upper() for name in ("method", "kind")}
            if "ASOF" in words:
                return Nondeterminism("an ASOF join takes some of the rows", Cause.TIES)
            if "POSITIONAL" in words:
                return Nondeterminism("a positional join sees the order of rows", Cause.ORDER)
        if isinstance(node, exp.With) and node.args.get("recursive"):
            return Nondeterminism("WITH RECURSIVE", Cause.TIES)
        if isinstance(node, exp.Subquery) and _is_value(node) and not _is_one_row(node.this):
            return Nondeterminism("a subquery may be the first of several rows", Cause.ORDER)
        return None

    def of_keys(self, values: Iterable[Any], clause: str) -> Nondeterminism | None:
        if all(map(self.exact, values)):
            return None
        return Nondeterminism(f"{clause} of values that may be equal and not the same", Cause.TIES)

    def function(self, node: Any) -> Nondeterminism | None:
        if isinstance(node.parent, exp.Dot) and node.arg_key == "expression":
            schema = written(node.parent.this, self.dialect).lower()
            if schema not in _OF_THE_ENGINE:
                return Nondeterminism(f"a function of {schema} may be anything", Cause.CHANCE)
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
            name = node.name.lower()
            kind = self.functions.kind(name)
            if name in VOLATILE_NAMES or name in _SESSION or _is_of_now(name, node.expressions):
                return Nondeterminism(f"{name}() is another value each time", Cause.CHANCE)
            if kind == "scalar" or name in _EXACT_AGGREGATES:
                return None
            if kind == "generator" and name in _GENERATORS:
                return None
            if kind in ("aggregate", "window"):
                return Nondeterminism(f"{name}() sees the order of rows", _by_order_in(node))
            return Nondeterminism(f"{name}() is on no list of the engine", Cause.CHANCE)
        if isinstance(node, _FREE):
            return None
        if isinstance(node, exp.Sum | exp.Avg):
            if self.exact(node.this):
                return None
            return Nondeterminism(f"a {node.key} of what may be floating point numbers", Cause.TIES)
        if isinstance(node, exp.Min | exp.Max):
            if not node.expressions and self.exact(node.this):
                return None
            return Nondeterminism(f"a {node.key} of what may be equal and not the same", Cause.TIES)
        if isinstance(node, exp.Array):
            if not any(node.find_all(exp.Select)):
                return None
            return Nondeterminism("an array of a query sees the order of rows", Cause.ORDER)
        if isinstance(node, exp.AggFunc | exp.RowNumber):
            return Nondeterminism(f"{node.key} sees the order of rows", _by_order_in(node))
        if node.sql_name().lower() in VOLATILE_NAMES | _SESSION:
            return Nondeterminism(
                f"{node.sql_name().lower()}() is another value each time", Cause.CHANCE
            )
        return None

    def window(self, node: Any) -> Nondeterminism | None:
        # Of its keys none is shown: rows that are equal to it are so in whatever order they come.
        order = node.args.get("order")
        if any(node.args.get(name) is not None for name in ("alias", "spec", "first")):
            by = Cause.TIES if order is not None else Cause.ORDER
            return Nondeterminism("a window of named or counted rows", by)
        return None

    def exact(self, value: Any) -> bool:
        """Whether equal values of an expression are the same, and add up exactly in any order."""
        if isinstance(value, exp.Alias):
            return self.exact(value.this)
        if isinstance(value, exp.Column):
            return self.inexact is not None and not (
                isinstance(value.this, exp.Star) or value.name.lower() in self.inexact
            )
        if isinstance(value, exp.Star):
            # All columns of tables whose columns are known, and of subqueries that name theirs.
            return self.inexact is not None and not self.inexact
        if isinstance(value, exp.Literal):
            return value.is_string or "e" not in value.name.lower()
        if isinstance(value, exp.Cast):
            return _is_exact(value.to)
        if isinstance(value, _COMPARING):
            return True
        if isinstance(value, _TEXT):
            return True
        if isinstance(value, exp.Case):
            branches = [b.args.get("true") for b in value.args.get("ifs") or ()]
            branches += [value.args.get("default")]
            return all(b is None or self.exact(b) for b in branches)
        if isinstance(value, exp.If):
            branches = [value.args.get("true"), value.args.get("false")]
            return all(b is None or self.exact(b) for b in branches)
        if isinstance(value, exp.Sum | exp.Min | exp.Max):
            return not value.expressions and self.exact(value.this)
        if isinstance(value, exp.Window | exp.Filter):
            return self.exact(value.this)
        if isinstance(value, _KEEPING):
            parts = [value.this, *value.expressions, value.args.get("expression")]
            return all(p is None or self.exact(p) for p in parts)
        return isinstance(value, exp.Null | exp.Boolean | exp.Count | exp.CountIf | exp.Interval)


def _classes(names: str) -> tuple[Any, ...]:
    return tuple(t for n in names.split() if (t := getattr(exp, n, None)) is not None)


_PLAIN_TABLE: Final = frozenset({"this", "db", "catalog", "alias", "pivots", "joins"})
_PLAIN: Final = _classes(
    "Select From Where Group Having Qualify Order Ordered Limit Offset With CTE Subquery TableAlias "
    "Alias Aliases Identifier Column Dot Star Literal Boolean Null Paren Tuple Join SetOperation "
    "Distinct Window WindowSpec Case Cast DataType DataTypeParam Interval IntervalSpan Var Between In "
    "Is Predicate Not Binary Unary Pivot PivotAlias PivotAny UnpivotColumns Rollup Cube GroupingSets Bracket Slice "
    "IgnoreNulls RespectNulls Filter WithinGroup PropertyEQ"
)
"""What a query that is followed no further may hold besides functions and tables."""

_VOLATILE: Final[tuple[Any, ...]] = tuple(
    t
    for t in exp.ALL_FUNCTIONS
    if t.__name__.startswith(("Current", "Utc", "Rand"))
    or t.__name__
    in {"Localtime", "Localtimestamp", "SessionUser", "Uuid", "Seq1", "Seq2", "Seq4", "Seq8",
        "Shuffle", "Uniform"}
)  # fmt: skip
_UNKNOWN: Final = _classes(
    "Command Parameter SessionParameter Placeholder TableSample MatchRecognize Version HistoricalData"
)
_LIMITING: Final = _classes("Limit Offset Fetch")
_COMPARED: Final = _classes("EQ NEQ GT GTE LT LTE Is In NullSafeEQ NullSafeNEQ Count")
_BY_PLACE: Final = _classes("Pivot Unnest Lateral Columns")
_NAMED_BY_PLACE: Final = (*_BY_PLACE, exp.Star, exp.TableAlias, exp.SetOperation)
_NUMERIC: Final = _classes(
    "ArgMax ArgMin Corr CovarPop CovarSamp Kurtosis Median PercentileCont PercentileDisc Quantile "
    "RegrAvgx RegrAvgy RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Skewness "
    "Stddev StddevPop StddevSamp Variance VariancePop ApproxDistinct ApproxQuantile"
)
"""Aggregates that take rows in an order of their own, or add floating point numbers."""

_FREE: Final = _classes(
    "Count CountIf LogicalAnd LogicalOr BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Grouping GroupingId "
    "Rank DenseRank PercentRank CumeDist"
)
"""Aggregates and functions of windows that come out the same in whatever order the rows come."""

_COMPARING: Final = _classes(
    "Predicate Not And Or Is In Between Exists LogicalAnd LogicalOr DateDiff TimestampDiff Length Extract"
)
_TEXT: Final = _classes(
    "Lower Upper Trim Concat ConcatWs DPipe Substring Replace MD5 SHA SHA2 TimestampTrunc DateTrunc "
    "DateAdd DateSub Date TsOrDsToDate Left Right SplitPart RegexpReplace TimeToStr"
)
_KEEPING: Final = _classes("Paren Neg Add Sub Mul Mod Coalesce Nullif Abs Distinct Greatest Least")
"""What is exact of exact values."""

_EXACT_TYPES: Final = (
    *exp.DataType.INTEGER_TYPES,
    *exp.DataType.TEXT_TYPES,
    exp.DataType.Type.BOOLEAN,
    exp.DataType.Type.DATE,
    exp.DataType.Type.DECIMAL,
    exp.DataType.Type.BIGDECIMAL,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.DATETIME,
    exp.DataType.Type.TIME,
    exp.DataType.Type.UUID,
)


def _is_exact(to: Any) -> bool:
    return isinstance(to, exp.DataType) and to.this in _EXACT_TYPES


def inexact_type(name: str, dialect: str) -> bool:
    """Whether values of a type, as the engine calls it, may be equal and not the same."""
    try:
        built = data_type(name, dialect)
    except UNREAD:
        return True
    if dialect in _COLLATES_UNSEEN and built.this in exp.DataType.TEXT_TYPES:
        return True
    return not _is_exact(built)


_COLLATES_UNSEEN: Final = frozenset(
    {"duckdb", "fabric", "mysql", "oracle", "postgres", "redshift", "sqlite", "tsql"}
)
"""Dialects in which texts that are not the same may be equal by a collation that no type of a column shows."""


_OF_THE_ENGINE: Final = frozenset({"aead", "hll_count", "keys", "net", "pg_catalog", "safe"})
"""What stands before a function of an engine's own; before another one it is a schema, or a value."""

_SESSION: Final = frozenset(
    """
    clock_timestamp connection_id current_catalog current_connection_id current_database
    current_date current_localtime current_localtimestamp current_query current_query_id
    current_role current_schema current_schemas current_setting current_time current_timestamp
    current_timezone current_transaction_id current_user curdate getdate get_current_time
    get_current_timestamp getvariable in_search_path input_file_block_length
    input_file_block_start input_file_name localtime localtimestamp now random_bytes
    session_user setseed spark_partition_id stats statement_timestamp sysdate systimestamp timeofday
    to_timestamp_now today transaction_timestamp txid_current unix_timestamp user version
    write_log sleep_ms vector_type error getenv invoker pg_backend_pid
    """.split()
)
"""Functions that ask for the time or the session, or do something."""

_BARE: Final = frozenset(
    "current_date current_time current_timestamp current_user localtime localtimestamp "
    "session_user sysdate systimestamp user".split()
)
"""Names that are no column where no table has them."""
_GENERATORS: Final = frozenset(
    "explode explode_outer generate_series posexplode posexplode_outer range sequence unnest".split()
)
_HARMLESS: Final = _GENERATORS | frozenset(
    "all and any as between by case cast coalesce distinct else except exists extract filter from group having if in "
    "interval is join lateral like limit not nullif numeric decimal on or order over partition rows select some then "
    "try_cast union using values varchar char when where window with within".split()
)
"""What a bracket follows that calls nothing, and calls that give rows of what they are given."""
_KNOWN_KINDS: Final = frozenset({"aggregate", "scalar", "window"})
_PLACES: Final = frozenset("ctid oid rowid _rowid_ xmin _metadata _file _partitiontime".split())
"""Columns that say where a row lies, and that nobody defines."""
_MOMENTS: Final = frozenset("now today tomorrow yesterday".split())
"""Texts that some engines cast to a moment."""
_OTHER_WORDS: Final = (
    VOLATILE_NAMES | _SESSION | _BARE | _PLACES | _MOMENTS | {"sample", "tablesample", "repeatable"}
)
_OF_NOW: Final = {"age": 1, "unix_timestamp": 0, "date": 0, "time": 0, "datetime": 0}
"""Functions that count from now where they are given so few arguments."""


def _is_of_now(name: str, arguments: Sequence[Any]) -> bool:
    return len(arguments) <= _OF_NOW.get(name, -1)


def _is_bare(column: Any) -> bool:
    name = column.name.lower()
    if name in _PLACES or name.startswith("metadata$"):
        return True
    return not column.table and name in _BARE


_EXACT_AGGREGATES: Final = frozenset(
    "bool_and bool_or every some any_true count_if countif bit_and bit_or bit_xor".split()
)


def _by_order_of(query: Any) -> Cause:
    """What decides which rows a query takes of those it has."""
    return Cause.TIES if query is not None and query.args.get("order") is not None else Cause.ORDER


def _by_order_in(function: Any) -> Cause:
    """What decides of the value of an aggregate, or of a function over a window."""
    above = function.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        above = above.parent
    if isinstance(above, exp.Window):
        return _by_order_of(above)
    ordered = isinstance(function.this, exp.Order) or isinstance(above, exp.WithinGroup)
    return Cause.TIES if ordered or isinstance(function, _NUMERIC) else Cause.ORDER


def _group_keys(group: Any) -> Iterator[Any]:
    """What a GROUP BY groups by: ordinals stand for outputs, and ALL for those that do not add up."""
    outputs = group.parent.expressions if isinstance(group.parent, exp.Select) else []
    if group.args.get("all"):
        yield from outputs
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(outputs):
            yield outputs[int(key.name) - 1].unalias()
        else:
            yield key
    for kind in ("cube", "rollup", "grouping_sets"):
        for sets in group.args.get(kind) or ():
            for piece in sets.expressions:
                yield from piece.expressions if isinstance(piece, exp.Tuple) else [piece]


def _branches(operation: Any) -> Iterator[Any]:
    for side in (operation.left, operation.right):
        inner = side.unnest()
        if isinstance(inner, exp.SetOperation):
            yield from _branches(inner)
        elif isinstance(inner, exp.Select):
            yield inner


def _is_value(subquery: Any) -> bool:
    """Whether a subquery stands where a value does."""
    if isinstance(subquery.parent, exp.Pivot) and subquery.arg_key == "this":
        return False  # what a PIVOT or UNPIVOT statement turns
    return not isinstance(
        subquery.parent,
        exp.From
        | exp.Join
        | exp.CTE
        | exp.In
        | exp.Exists
        | exp.SetOperation
        | exp.Subquery
        | exp.With
        | exp.Lateral
        | exp.Any
        | exp.All
        | type(None),
    )


def _is_one_row(query: Any) -> bool:
    return (
        isinstance(query, exp.Select)
        and not query.args.get("group")
        and not query.args.get("having")
        and bool(query.expressions)
        and all(any(e.find_all(exp.AggFunc)) for e in query.expressions)
        and not any(query.find_all(exp.Window))
    )
