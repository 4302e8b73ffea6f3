"""`v IN [1, 2, NULL]`, which sqlglot reads as `v IN (1, 2, NULL)`, and which is not the same.

To DuckDB a list in brackets is a value: whether a list contains 5 is true or false, even where it
contains NULL; of the values in parentheses it would be unknown. A function call is read as a value.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import Token, TokenType

_OF_DUCKDB: Final = "list_value"
_ELSEWHERE: Final = "array"


def with_lists_as_calls(tokens: list[Any], dialect: str) -> list[Any]:
    """The tokens of a text, with ``IN list_value(...)`` for each ``IN [...]``.

    Example:
        >>> from sqlglot.tokens import Tokenizer
        >>> tokens = with_lists_as_calls(Tokenizer().tokenize("v in [1, [2]]"), "duckdb")
        >>> " ".join(token.text for token in tokens)
        'v in list_value ( 1 , [ 2 ] )'
    """
    calls: dict[int, int] = {}
    opened: list[int] = []
    comprehensions: set[int] = set()
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind in (TokenType.L_BRACKET, TokenType.L_PAREN):
            opened.append(i)
        elif kind in (TokenType.R_BRACKET, TokenType.R_PAREN) and opened:
            start = opened.pop()
            is_list = (
                tokens[start].token_type is TokenType.L_BRACKET and start not in comprehensions
            )
            if is_list and start and tokens[start - 1].token_type is TokenType.IN:
                calls[start] = i
        elif kind is TokenType.FOR and opened:
            comprehensions.add(opened[-1])
    if not calls:
        return tokens
    name = _OF_DUCKDB if dialect == "duckdb" else _ELSEWHERE
    ends = {*calls.values()}
    rewritten: list[Any] = []
    for i, token in enumerate(tokens):
        place = (token.line, token.col, token.start, token.end)
        if i in calls:
            rewritten.append(Token(TokenType.VAR, name, *place))
            rewritten.append(Token(TokenType.L_PAREN, "(", *place))
        elif i in ends:
            rewritten.append(Token(TokenType.R_PAREN, ")", *place))
        else:
            rewritten.append(token)
    return rewritten
