"""What of a query decides the types of its columns: two queries that share it have the same types."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.reading.dialects import written
from dbt_ripple.flow.reading.reader import UNREAD, parse_followed
from dbt_ripple.tuning import for_deep_queries

_WITHOUT_TYPE: Final = (
    "where prewhere group having qualify order sort cluster distribute limit offset sample distinct"
).split()
"""Clauses that decide which rows there are, and in which order."""
_OF_A_WINDOW: Final = ("partition_by", "order", "spec")
_NAMES_COLUMNS: Final = ("SEMI", "ANTI")
"""Joins that decide which columns `*` stands for."""
_OF_ONE_TEXT: Final = ("bigquery", "databricks", "duckdb", "postgres", "spark")
"""Dialects in which text has one type, however long it is."""
_VALUE_OF: Final = (exp.Alias, exp.Case, exp.Coalesce, exp.If, exp.Paren, exp.Select)
"""Where a constant is a value, and no argument that a function may take for a type or a scale."""
_COMPUTED_BY: Final = (*_VALUE_OF, exp.Add, exp.Div, exp.Mod, exp.Mul, exp.Neg, exp.Sub)
_CONDITION_OF: Final = (*_VALUE_OF, exp.And, exp.Not, exp.Or)
_OUTERMOST: Final = (exp.Alias, exp.Select, exp.AggFunc)
"""Where a computation ends whose type does not depend on the values in it."""
_SIZES: Final = (7, 8, 15, 16, 31, 32, 63, 64)


@for_deep_queries
def type_shape(sql: str, dialect: str, *, schemas: bool = True) -> str:
    """A query without what says nothing of types: which rows there are, conditions, values.

    A whole number stands for all of as many digits that need as many bits, because engines type a
    sum or a product by them. A text that cannot be parsed is its own shape, and so is any on
    ClickHouse, where a join makes other types.

    Args:
        sql: as it was compiled.
        dialect: it is written in.
        schemas: whether the schemas of the relations count, too.

    Example:
        >>> type_shape("select a * 2 as b from ci.t where c", "duckdb", schemas=False)
        'SELECT a * 7001 AS b FROM t'
        >>> type_shape("select distinct a > 3 as b from ci.t", "duckdb")
        'SELECT TRUE AS b FROM ci.t'
    """
    if dialect == "clickhouse":
        return sql
    try:
        parsed = parse_followed(sql, dialect)
        if parsed is None:
            return sql
        tree: Any = parsed[0]
        for node in list(tree.walk()):
            _without_rows(node, schemas)
        # From the root on, so that a condition is gone before what stands in it is looked at.
        return written(tree.transform(_without_values, dialect), dialect)
    except UNREAD:
        return sql


def _without_rows(node: Any, schemas: bool) -> None:
    if isinstance(node, exp.Query):
        for clause in _WITHOUT_TYPE:
            if node.args.get(clause) is not None:
                node.set(clause, False if isinstance(node, exp.SetOperation) else None)
    elif isinstance(node, exp.Join):
        node.set("on", None)
        if not node.args.get("using") and not node.args.get("method"):
            node.set("side", None)
            if str(node.args.get("kind") or "").upper() not in _NAMES_COLUMNS:
                node.set("kind", None)
    elif isinstance(node, exp.Window):
        for part in _OF_A_WINDOW:
            node.set(part, None)
    elif isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
        if len(node.expressions) == 1:
            node.replace(node.expressions[0])
    elif isinstance(node, exp.Table) and not schemas:
        node.set("db", None)
        node.set("catalog", None)


def _without_values(node: Any, dialect: str) -> Any:
    parent = node.parent
    if isinstance(node, exp.Case):
        node.set("this", None)
    elif isinstance(node, exp.If) and isinstance(parent, exp.Case):
        node.set("this", exp.true())
    elif isinstance(node, (exp.Predicate, exp.Boolean)) and _is_a_value(node, _CONDITION_OF):
        return exp.true()
    elif not isinstance(node, exp.Literal):
        return node
    elif node.is_string:
        if dialect in _OF_ONE_TEXT and _is_a_value(node, _VALUE_OF):
            return exp.Literal.string("")
    elif node.this.isdecimal() and _is_a_value(node, _COMPUTED_BY):
        size = next((bits for bits in _SIZES if int(node.this) < 2**bits), 128)
        return exp.Literal.number(f"{size}{len(node.this):03}")
    return node


def _is_a_value(node: Any, within: tuple[Any, ...]) -> bool:
    """Whether a constant is only computed with, and is part of no argument: ``(2)`` of ``round(a, (2))``."""
    above: Any = node.parent
    if not isinstance(above, within):
        return False
    while isinstance(above, within) and not isinstance(above, _OUTERMOST):
        above = above.parent
    return isinstance(above, _OUTERMOST)
