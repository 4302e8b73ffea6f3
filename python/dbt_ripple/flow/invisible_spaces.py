"""Characters without a width that DuckDB reads as spaces, and sqlglot as letters of a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import TokenType

_INVISIBLE: Final = "\u200b\u2060\ufeff"
_AS_SPACES: Final = str.maketrans(_INVISIBLE, " " * len(_INVISIBLE))


def with_spaces(sql: str, dialect: str, tokenize: Callable[[str], list[Any]]) -> str:
    """The text with a space for each of them outside of quotes and comments, where the engine says so.

    It is as long as before, so that places in it stay what they are.
    """
    if dialect != "duckdb" or sql.isascii() or not any(c in sql for c in _INVISIBLE):
        return sql
    pieces = []
    done = 0
    for token in tokenize(sql):
        if token.token_type is TokenType.VAR or sql[token.start] in _INVISIBLE:
            pieces += [
                sql[done : token.start],
                sql[token.start : token.end + 1].translate(_AS_SPACES),
            ]
            done = token.end + 1
    return "".join((*pieces, sql[done:]))
