"""Pipe operators that sqlglot does not parse, as operators that it does.

``|> SET c = e`` is ``|> SELECT * REPLACE (e AS c)``, ``|> DROP c`` is ``|> SELECT * EXCEPT (c)``, and
``FROM ... |> AS p`` is ``FROM (FROM ...) AS p``. Text in, text out; comments and strings are safe,
because the work is done between tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import TokenType

_OPEN: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSE: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_REWRITTEN: Final = frozenset({"SET", "DROP", "AS"})


def without_unknown_pipes(sql: str, tokenize: Callable[[str], list[Any]]) -> str:
    """Return the query with SET, DROP and AS pipes replaced; unchanged where there are none."""
    while True:
        tokens = tokenize(sql)
        at = next(
            (
                i
                for i, token in enumerate(tokens[:-1])
                if token.token_type is TokenType.PIPE_GT
                and tokens[i + 1].text.upper() in _REWRITTEN
            ),
            None,
        )
        if at is None:
            return sql
        sql = _rewritten(sql, tokens, at)


def _rewritten(sql: str, tokens: list[Any], pipe: int) -> str:
    """Replace the operator behind one pipe."""
    word = tokens[pipe + 1].text.upper()
    end = len(tokens)
    depth = 0
    starts = [pipe + 2]  # of the comma-separated parts
    for i in range(pipe + 2, len(tokens)):
        kind = tokens[i].token_type
        if kind in _OPEN:
            depth += 1
        elif kind in _CLOSE:
            depth -= 1
        if depth < 0 or (depth == 0 and kind in (TokenType.PIPE_GT, TokenType.SEMICOLON)):
            end = i
            break
        if depth == 0 and kind is TokenType.COMMA:
            starts.append(i + 1)
    stops = [*(s - 1 for s in starts[1:]), end]
    head, tail = sql[: tokens[pipe].start], sql[tokens[end - 1].end + 1 :]

    def text(first: int, stop: int) -> str:
        return sql[tokens[first].start : tokens[stop - 1].end + 1]

    if word == "AS":
        begin = _pipeline_start(tokens, pipe)
        inner = sql[tokens[begin].start : tokens[pipe].start]
        return f"{sql[: tokens[begin].start]}FROM ({inner}) AS {text(pipe + 2, end)}{tail}"
    if word == "DROP":
        return f"{head}|> SELECT * EXCEPT ({text(pipe + 2, end)}){tail}"
    # name = expression, ...
    parts = [
        f"{text(start + 2, stop)} AS {text(start, start + 1)}"
        for start, stop in zip(starts, stops, strict=True)
    ]
    return f"{head}|> SELECT * REPLACE ({', '.join(parts)}){tail}"


def _pipeline_start(tokens: list[Any], pipe: int) -> int:
    """The first token of the query a pipe continues: behind its bracket or the WITH before it."""
    depth = 0
    begin = 0
    for i in range(pipe - 1, -1, -1):
        kind = tokens[i].token_type
        if kind in _CLOSE:
            depth += 1
        elif kind in _OPEN:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and kind in (TokenType.FROM, TokenType.SELECT, TokenType.TABLE):
            begin = i
    return begin
