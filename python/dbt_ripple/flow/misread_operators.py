"""Operators that sqlglot reads otherwise than the engine: where one stands, a query is not followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import TokenType, exp

_NOT_IS_A_MARK: Final = frozenset({"spark", "databricks"})
"""Dialects whose `!` is NOT wherever NOT may stand."""
_CHAINED: Final = (exp.JSONExtract, exp.JSONExtractScalar)
"""`->` and `->>`, which DuckDB reads from left to right where they follow on one another."""
_OPERATORS: Final = (exp.Binary, exp.Unary, exp.Between, exp.In)


def misread_operator(sql: str, tokens: Sequence[Any], dialect: str) -> str | None:
    """An operator of the text of which the tree says something else; None without one.

    `n ! in (1)` is about the factorial of n on DuckDB, which sqlglot reads as `n not in (1)`.
    """
    if "!" in sql and dialect not in _NOT_IS_A_MARK:
        for token in tokens:
            behind = sql[token.end + 1 : token.end + 2]
            if token.token_type is TokenType.NOT and token.text == "!" and behind != "~":
                return "!, which is not NOT everywhere"
    return None


def misread_arrow(tree: Any) -> str | None:
    """Says where a `->` of DuckDB stands beside another operator without brackets.

    It binds last of all, after OR: `a or b -> 'k'` is `(a or b) -> 'k'`, and sqlglot reads it first.
    """
    for node in tree.find_all(exp.JSONExtract):
        if "only_json_types" in node.args:  # it is written as an arrow
            around = node.parent
            if isinstance(around, _OPERATORS) and not isinstance(around, (exp.Paren, *_CHAINED)):
                return "-> beside another operator, without brackets"
    return None
