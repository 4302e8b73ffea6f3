"""Operators of more than one word or sign, which Oracle and T-SQL read and sqlglot does not.

Both engines let a comparison have white space within (``a < = b``, ``a ! = b``); Oracle joins nested
tables by ``a MULTISET UNION ALL b`` (Oracle's SQL reference, "Multiset Operators").
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import Token, TokenType

SPACED_IN: Final = frozenset({"oracle", "tsql"})
"""Dialects of such operators."""
SPACED: Final = re.compile(r"[<>!]\s+[<=>]|\bmultiset\b", re.IGNORECASE)
"""Found in each text that has one."""
_COMPARISONS: Final = {
    ("<", "="): (TokenType.LTE, "<="),
    (">", "="): (TokenType.GTE, ">="),
    ("<", ">"): (TokenType.NEQ, "<>"),
    ("!", "="): (TokenType.NEQ, "!="),
    ("!", "<"): (TokenType.GTE, ">="),
    ("!", ">"): (TokenType.LTE, "<="),
}
_SIGNS: Final = frozenset({TokenType.LT, TokenType.GT, TokenType.NOT})
_MULTISET: Final = frozenset({"EXCEPT", "INTERSECT", "UNION"})


def with_whole_operators(tokens: list[Any], dialect: str) -> list[Any]:
    """The tokens of a text of `SPACED_IN`, with one operator for each that stands in pieces.

    Example:
        >>> from sqlglot.tokens import Tokenizer
        >>> tokens = with_whole_operators(Tokenizer().tokenize("a < = b multiset union all c"), "oracle")
        >>> " ".join(token.text for token in tokens)
        'a <= b operator ( multiset_union_all ) c'
    """
    whole: list[Any] = []
    i = 0
    while i < len(tokens):
        pieces = [token.text.upper() for token in tokens[i : i + 3]]
        place = (tokens[i].line, tokens[i].col, tokens[i].start, tokens[i].end)
        comparison = _COMPARISONS.get((pieces[0], pieces[1] if len(pieces) > 1 else ""))
        if comparison and tokens[i].token_type in _SIGNS:
            whole.append(Token(*comparison, *place))
            i += 2
        elif _is_multiset(tokens[i], pieces, dialect):
            kept = 3 if pieces[2:3] in (["ALL"], ["DISTINCT"]) else 2
            name = "_".join(pieces[:kept]).lower()
            whole.append(Token(TokenType.OPERATOR, "operator", *place))
            whole.append(Token(TokenType.L_PAREN, "(", *place))
            whole.append(Token(TokenType.VAR, name, *place))
            whole.append(Token(TokenType.R_PAREN, ")", *place))
            i += kept
        else:
            whole.append(tokens[i])
            i += 1
    return whole


def _is_multiset(token: Any, pieces: list[str], dialect: str) -> bool:
    """Whether an operator of nested tables begins at a token: a quoted name is a name."""
    return (
        dialect == "oracle"
        and pieces[0] == "MULTISET"
        and token.token_type is not TokenType.IDENTIFIER
        and len(pieces) > 1
        and pieces[1] in _MULTISET
    )
