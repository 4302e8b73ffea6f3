"""The empty hexadecimal literal `0x`, of which sqlglot makes a name."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import Token, TokenType

_EMPTY: Final = ("0x", "0X")


def with_empty_hexadecimals(sql: str, tokens: list[Any]) -> list[Any]:
    """The tokens of a text, with a number for each `0x`.

    Example:
        >>> from sqlglot.dialects.trino import Trino
        >>> sql = 'a = 0x or "0x" = 0xff'
        >>> tokens = with_empty_hexadecimals(sql, Trino().tokenize(sql))
        >>> [token.text for token in tokens if token.token_type is TokenType.NUMBER]
        ['0x']
    """
    return [
        Token(TokenType.NUMBER, token.text, token.line, token.col, token.start, token.end)
        if token.token_type is TokenType.IDENTIFIER and sql[token.start : token.end + 1] in _EMPTY
        else token
        for token in tokens
    ]
