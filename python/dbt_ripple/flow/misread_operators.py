"""Operators that sqlglot reads otherwise than the engine: where one stands, a query is not followed."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import TokenType, exp

from dbt_ripple.flow.parse import ParsedText
from dbt_ripple.flow.token_kinds import has_arrow

_NOT_IS_A_MARK: Final = frozenset({"spark", "databricks"})
"""Dialects whose `!` is NOT wherever NOT may stand."""
_CHAINED: Final = (exp.JSONExtract, exp.JSONExtractScalar)
"""`->` and `->>`, which DuckDB reads from left to right where they follow on one another."""
_OPERATORS: Final = (exp.Binary, exp.Unary, exp.Between, exp.In)


def misread_operator(text: ParsedText, tree: Any, dialect: str) -> str | None:
    """An operator of the text of which the tree says something else; None without one."""
    misread = None
    if dialect not in _NOT_IS_A_MARK:
        misread = _mark_of_not(text)
    if misread is None and dialect == "duckdb" and has_arrow(text.marks):
        misread = _arrow(tree)
    return misread


def _mark_of_not(text: ParsedText) -> str | None:
    """Says where a `!` stands alone.

    `n ! in (1)` is about the factorial of n on DuckDB, which sqlglot reads as `n not in (1)`.
    """
    sql = text.sql
    if "!" in sql:
        for token in text.tokens:
            behind = sql[token.end + 1 : token.end + 2]
            if token.token_type is TokenType.NOT and token.text == "!" and behind != "~":
                return "!, which is not NOT everywhere"
    return None


def _arrow(tree: Any) -> str | None:
    """Says where a `->` of DuckDB stands beside another operator without brackets.

    It binds last of all, after OR: `a or b -> 'k'` is `(a or b) -> 'k'`, and sqlglot reads it first.
    """
    for node in tree.find_all(exp.JSONExtract):
        if "only_json_types" in node.args:  # it is written as an arrow
            around = node.parent
            if isinstance(around, _OPERATORS) and not isinstance(around, (exp.Paren, *_CHAINED)):
                return "-> beside another operator, without brackets"
    return None
