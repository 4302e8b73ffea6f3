"""Spark's columns called `values` and `from`, which sqlglot reads as the keywords only.

No keyword is reserved there. Both are taken for names where no inline table and no FROM clause can
begin: neither begins with a comma, a comparison or a closing bracket.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from sqlglot import Token, TokenType

DIALECTS: Final = frozenset({"databricks", "spark"})
"""Those of engines to which no keyword is reserved."""

_COMPARED: Final = frozenset({TokenType.EQ, TokenType.NEQ})
_ENDS_A_NAME: Final = {
    TokenType.FROM: _COMPARED | {TokenType.COMMA},
    TokenType.VALUES: _COMPARED
    | {
        TokenType.ALIAS,
        TokenType.COMMA,
        TokenType.DOT,
        TokenType.FROM,
        TokenType.IS,
        TokenType.L_BRACKET,
        TokenType.R_PAREN,
    },
}
"""What may follow a name, and cannot follow the keyword."""


def with_keywords_as_names(tokens: list[Any]) -> list[Any]:
    """The tokens of a text, with a name for each keyword that is certainly one.

    Example:
        >>> from sqlglot.tokens import Tokenizer
        >>> tokens = with_keywords_as_names(Tokenizer().tokenize("select from, f(values) from t"))
        >>> [token.text for token in tokens if token.token_type is TokenType.VAR]
        ['from', 'f', 'values', 't']
    """
    rewritten = list(tokens)
    for i, (token, follows) in enumerate(pairwise(tokens)):
        if follows.token_type in _ENDS_A_NAME.get(token.token_type, ()):
            place = (token.line, token.col, token.start, token.end)
            rewritten[i] = Token(TokenType.VAR, token.text, *place)
    return rewritten
