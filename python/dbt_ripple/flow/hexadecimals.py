"""Hexadecimal literals of which sqlglot makes names: `0x`, which is empty, and `0xFF` on DuckDB."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import Token, TokenType

_DIGITS: Final = re.compile(r"[xX][0-9a-fA-F_]+")


def with_hexadecimals(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """The tokens of a text, with a number for each hexadecimal literal that is a name there.

    Example:
        >>> from sqlglot.dialects.duckdb import DuckDB
        >>> sql = "a = 0xFF or f(0x)"
        >>> tokens = with_hexadecimals(sql, DuckDB().tokenize(sql), "duckdb")
        >>> [token.text for token in tokens if token.token_type.name == "NUMBER"]
        ['0xFF', '0']
    """
    rewritten: list[Any] = []
    for token in tokens:
        before = rewritten[-1] if rewritten else None
        text = sql[token.start : token.end + 1]
        if token.token_type is TokenType.IDENTIFIER and text in ("0x", "0X"):
            place = (token.line, token.col, token.start, token.end)
            rewritten.append(Token(TokenType.NUMBER, text, *place))
        elif (
            dialect == "duckdb"
            and before is not None
            and before.token_type is TokenType.NUMBER
            and before.text == "0"
            and before.end + 1 == token.start
            and _DIGITS.fullmatch(text)
        ):
            place = (before.line, before.col, before.start, token.end)
            rewritten[-1] = Token(TokenType.NUMBER, f"0{text}", *place)
        else:
            rewritten.append(token)
    return rewritten
