"""Numbers that begin with a point, as they are written.

sqlglot makes `0.5` of `.5`, which is a DECIMAL(1, 1) on DuckDB, and `0.5` a DECIMAL(2, 1).
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import Token, TokenType

_ENDS_A_VALUE: Final = frozenset("_)]}\"'`$")


def with_leading_points(sql: str, tokens: list[Any]) -> list[Any]:
    """The tokens of a text, with one for each number that begins with a point.

    Example:
        >>> from sqlglot.tokens import Tokenizer
        >>> sql = "x + .5"
        >>> [token.text for token in with_leading_points(sql, Tokenizer().tokenize(sql))]
        ['x', '+', '.5']
    """
    merged: list[Any] = []
    for token in tokens:
        point = merged[-1] if merged else None
        if (
            point is not None
            and token.token_type is TokenType.NUMBER
            and point.token_type is TokenType.DOT
            and point.end + 1 == token.start
            and not _ends_a_value(sql[: point.start][-1:])
        ):
            place = (point.line, point.col, point.start, token.end)
            merged[-1] = Token(TokenType.NUMBER, f".{token.text}", *place)
        else:
            merged.append(token)
    return merged


def _ends_a_value(char: str) -> bool:
    return char.isalnum() or char in _ENDS_A_VALUE
