"""SQL without the values that are written in it, to be shown where none may be."""

from __future__ import annotations

from typing import Final

from sqlglot import TokenType
from sqlglot.errors import TokenError

from dbt_ripple.flow.reading.reader import tokens_as_they_stand

HIDDEN: Final = "…"
_DIGITS: Final = 5
"""Digits up to which a number stays: `rate / 100` tells what was changed, a telephone number does not."""

_STRINGS: Final = frozenset(kind for kind in TokenType if kind.name.endswith("STRING"))


def without_values(sql: str, dialect: str) -> str | None:
    """SQL in one line with an ellipsis for each string, and for each number of more than five digits.

    Comments are left out. None is for text that cannot be read.

    Example:
        >>> without_values("case when email = 'x@y.z' then rate / 100 end", "duckdb")
        "case when email = '…' then rate / 100 end"
        >>> without_values("phone in (4915112345678, 4915112345679L) -- of x@y.z", "spark")
        'phone in (…, …)'
    """
    try:
        tokens = tokens_as_they_stand(sql, dialect)
    except TokenError:
        return None
    parts: list[str] = []
    end = 0
    for token in tokens:
        if token.start < end:  # sqlglot makes a cast of `1L`: it has read that already
            continue
        if parts and sql[end : token.start]:
            parts.append(" ")
        text = sql[token.start : token.end + 1]
        end = token.end + 1
        if token.token_type in _STRINGS:
            text = f"'{HIDDEN}'"
        elif token.token_type is TokenType.NUMBER and sum(map(str.isdigit, text)) > _DIGITS:
            text = HIDDEN
        parts.append(text)
    return "".join(parts).strip()
