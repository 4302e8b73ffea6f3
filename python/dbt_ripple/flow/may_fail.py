"""Can an expression fail when it is evaluated? Then it counts whether, and of which rows, it is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.determinism import classes
from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, parse_statement
from dbt_ripple.flow.varying_columns import EVERYTHING, made_of

DIVIDES_BY_ZERO: Final = frozenset({"duckdb", "hive", "mysql", "spark2", "sqlite"})
"""Dialects in which `/` by zero gives a value, or NULL; in all but DuckDB, `//` and `%` by zero, too."""


_CASTS_TO_NULL: Final = frozenset({"hive", "spark2"})


_NEVER: Final = classes(
    "And Or Xor Case If Coalesce Nullif Nvl2 Lower Upper Trim Length Concat ConcatWs Substring Left Right Replace "
    "Abs Greatest Least Extract DateTrunc TimestampTrunc Year Month Day Quarter Hour Minute CurrentDate "
    "CurrentTimestamp RowNumber Rank DenseRank Lag Lead Array StartsWith EndsWith Contains Exists RegexpLike DateAdd DateSub DateDiff Round"
)
"""Functions of sqlglot's that fail for no value of the types that they take; an aggregate is no other."""
_OVERFLOWING: Final = (exp.Add, exp.Sub, exp.Mul)
_DIVISIONS: Final = classes("Div IntDiv Mod")
_QUERIES: Final = (exp.From, exp.Join, exp.In, exp.Exists, exp.CTE, exp.SetOperation)


def may_fail(expression: Any, dialect: str, *, by_overflow: bool = False) -> bool:
    """Whether an expression may fail for some values, or some rows, that it is evaluated for.

    A cast may, a division by zero, a subquery of several rows, and any function that is not known
    not to. What an engine casts by itself is not looked for, and what overflows only if that is asked for.

    Example:
        >>> from dbt_ripple.flow.reading.reader import parse_statement
        >>> [may_fail(parse_statement("select " + e, "duckdb").selects[0], "duckdb") for e in ("a > 1 and b is null", "a::int > 1", "a::text", "f(a)")]
        [False, True, False, True]
    """
    return any(
        _fails(node, dialect) or (by_overflow and isinstance(node, _OVERFLOWING))
        for node in expression.walk()
    )


def columns_that_may_fail(
    sql: str, dialect: str, read: Collection[str] = (), *, forced: bool = False
) -> frozenset[str]:
    """The columns of a query, in lower case, whose values may fail when they are read.

    An engine that is asked for other columns need not evaluate these. `EVERYTHING` where it may be any.

    Args:
        sql: a compiled query.
        dialect: sqlglot's name of its engine.
        read: the columns of views that it reads whose values may fail.
        forced: whether something in the query has the engine evaluate all of it: then what overflows counts, too.
    """
    try:
        tree = parse_statement(sql, dialect)
    except UNREAD:
        return frozenset({EVERYTHING})
    failing = [node for node in tree.walk() if _fails(node, dialect)]
    if forced and (failing or read or tree.find(*_OVERFLOWING)):
        return frozenset({EVERYTHING})
    return made_of(tree, failing, read)


def forced_in(sql: str, dialect: str) -> set[str]:
    """What in a query has an engine evaluate what nobody reads: ORDER BY, DISTINCT, and CTEs that are materialized."""
    try:
        tree: Any = parse_statement(sql, dialect)
    except UNREAD:
        return set()
    orders = [o for o in tree.find_all(exp.Order) if isinstance(o.parent, exp.Query)]
    once = [cte.this for cte in tree.find_all(exp.CTE) if cte.args.get("materialized")]
    distinct = [d.parent for d in tree.find_all(exp.Distinct) if isinstance(d.parent, exp.Select)]
    items = (item for select in distinct for item in select.expressions)
    return {written(node, dialect) for node in (*orders, *once, *items)}


def _fails(node: Any, dialect: str) -> bool:
    if isinstance(node, exp.Cast):
        if node.args.get("safe") or dialect in _CASTS_TO_NULL:
            return False
        text = isinstance(node.to, exp.DataType) and node.to.this in exp.DataType.TEXT_TYPES
        return not text and not isinstance(node.this, (exp.Literal, exp.Null))
    if isinstance(node, _DIVISIONS):
        if dialect == "duckdb":  # as 2.0 does; it was NULL before
            return not isinstance(node, exp.Div)
        return dialect not in DIVIDES_BY_ZERO
    if isinstance(node, exp.Subquery):
        return node.parent is not None and not isinstance(node.parent, _QUERIES)
    return isinstance(node, exp.Func) and not isinstance(node, (exp.AggFunc, *_NEVER))
