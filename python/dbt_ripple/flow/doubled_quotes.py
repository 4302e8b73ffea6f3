"""Quotes within a text of Spark, doubled: two texts side by side to sqlglot, and to Spark before 4.0.

Spark 4 reads `'it''s'` as "it's" and `'it' 's'` as "its"; which one another version or a setting makes
of the former is not known. So it is a text of its own, which is equal to neither.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import Token, TokenType

_SIDE_BY_SIDE: Final = frozenset({"databricks", "hive", "spark", "spark2"})
_BETWEEN: Final = "\u2060"


def with_doubled_quotes(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """The tokens of a text, with one for each string that has doubled quotes in it."""
    if dialect not in _SIDE_BY_SIDE:
        return tokens
    merged: list[Any] = []
    for token in tokens:
        before = merged[-1] if merged else None
        if (
            before is not None
            and token.token_type is TokenType.STRING is before.token_type
            and before.end + 1 == token.start
            and sql[before.end] == sql[token.start]
        ):
            quote = sql[token.start]
            text = f"{before.text}{quote}{_BETWEEN}{quote}{token.text}"
            merged[-1] = Token(
                TokenType.STRING, text, before.line, before.col, before.start, token.end
            )
        else:
            merged.append(token)
    return merged
