"""``OPENROWSET(...) WITH (...)`` and ``OPENXML(...) WITH (...)`` of T-SQL, as calls with an argument more.

sqlglot reads that WITH as hints of a table. What stands in it says which columns the function has, where
they come from and their types: as a string among the arguments it counts in whole, and columns of the
function are looked up as those of any other function.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import Token, TokenType

ROWSET: Final = re.compile(r"\b(?:openrowset|openxml)\s*\(", re.IGNORECASE)
"""Found in each text that has one."""
_FUNCTIONS: Final = frozenset({"OPENROWSET", "OPENXML"})


def with_schemas_as_arguments(sql: str, tokens: list[Any]) -> list[Any]:
    """The tokens of a text of T-SQL, with ``f(a, 'b')`` for ``f(a) with (b)``.

    Example:
        >>> from sqlglot.tokens import Tokenizer
        >>> sql = "from openxml(@d, '/r') with (id int '@id') x"
        >>> tokens = with_schemas_as_arguments(sql, Tokenizer().tokenize(sql))
        >>> [token.text for token in tokens][5:]
        [',', '/r', ',', "(id int '@id')", ')', 'x']
    """
    ends = _ends(tokens)
    rewritten = list(tokens)
    for i in reversed(range(len(tokens) - 1)):
        end = ends.get(i + 1)
        if tokens[i].text.upper() not in _FUNCTIONS or end is None:
            continue
        last = ends.get(end + 2)
        if last is None or tokens[end + 1].token_type is not TokenType.WITH:
            continue
        first, closing = tokens[end + 2], tokens[last]
        place = (first.line, first.col, first.start, closing.end)
        schema = sql[first.start : closing.end + 1]
        comma = Token(TokenType.COMMA, ",", *place)
        rewritten[end : last + 1] = [comma, Token(TokenType.STRING, schema, *place), tokens[end]]
    return rewritten


def _ends(tokens: list[Any]) -> dict[int, int]:
    """Where each parenthesis that opens is closed, by position."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            opened.append(i)
        elif token.token_type is TokenType.R_PAREN and opened:
            ends[opened.pop()] = i
    return ends
