"""Spark's ``LATERAL VIEW f(x) v a, b``, which sqlglot reads only as ``LATERAL VIEW f(x) v AS a, b``."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import Token, TokenType

from dbt_ripple.flow.token_kinds import NAMES

_BRACKETS: Final = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}


def with_columns_of_views(tokens: list[Any]) -> list[Any]:
    """The tokens of a text, with an AS before the columns of each LATERAL VIEW that has none.

    Example:
        >>> from sqlglot.tokens import Tokenizer
        >>> tokens = Tokenizer().tokenize("from t lateral view inline(f(a)) v x, y where x > 1")
        >>> " ".join(token.text for token in with_columns_of_views(tokens))
        'from t lateral view inline ( f ( a ) ) v AS x , y where x > 1'
    """
    rewritten: list[Any] = []
    depth, closed = -1, False  # of the view that is open; right behind its call
    for token in tokens:
        kind = token.token_type
        before = rewritten[-1] if rewritten else None
        if kind is TokenType.VIEW and before is not None:
            depth = 0 if before.token_type is TokenType.LATERAL else depth
        elif depth >= 0 and kind in _BRACKETS:
            depth += _BRACKETS[kind]
            closed = depth == 0
        elif closed and kind in NAMES:
            if before is not None and before.token_type in NAMES:
                rewritten.append(Token(TokenType.ALIAS, "AS", token.line, token.col, 0, 0))
                depth, closed = -1, False
        elif closed:
            depth, closed = -1, False
        rewritten.append(token)
    return rewritten
