"""Pipe operators that sqlglot does not parse, as operators that it does.

``|> SET c = e`` is ``|> SELECT * REPLACE (e AS c)``, ``|> DROP c`` is ``|> SELECT * EXCEPT (c)``,
``|> RENAME c AS d`` is ``|> SELECT * RENAME (c AS d)``, and ``FROM ... |> AS p`` is ``FROM (FROM ...) AS p``. sqlglot also makes one SELECT of operators that follow
one another, whatever their order: ``|> LIMIT 1 |> WHERE a`` as if it were ``|> WHERE a |> LIMIT 1``. Where
that would be another query, what comes first is put in brackets: ``FROM (... |> LIMIT 1) |> WHERE a``; and
``|> SELECT DISTINCT c``, of which it drops the word, is ``|> SELECT c |> DISTINCT``.

Text in, text out; comments and strings are safe, because the work is done between tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import TokenType

_OPEN: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSE: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_REWRITTEN: Final = frozenset({"SET", "DROP", "RENAME", "AS"})
_ENDS: Final = frozenset({"LIMIT", "OFFSET", "DISTINCT", "TABLESAMPLE"})
"""Operators of which sqlglot makes clauses that are evaluated after those of a later operator."""
_READ_FIRST: Final = frozenset(
    "JOIN INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI LATERAL PIVOT UNPIVOT TABLESAMPLE".split()
)
"""Operators of which it makes a part of FROM, which is evaluated before the WHERE of an earlier one."""
_KEEP_NAMES: Final = frozenset({"WHERE", "ORDER BY", "SORT BY", "EXTEND", *_ENDS})
"""Operators behind which the name of the relation in FROM still has a meaning."""


def without_unknown_pipes(sql: str, tokenize: Callable[[str], list[Any]]) -> str:
    """Return the query with the pipes replaced that sqlglot misreads; unchanged where there are none."""
    while True:
        tokens = tokenize(sql)
        pipes = [i for i, t in enumerate(tokens[:-1]) if t.token_type is TokenType.PIPE_GT]
        for pipe in pipes:
            word = tokens[pipe + 1].text.upper()
            if word in _REWRITTEN:
                sql = _rewritten(sql, tokens, pipe)
                break
            if (
                word == "SELECT"
                and tokens[min(pipe + 2, len(tokens) - 1)].text.upper() == "DISTINCT"
            ):
                end = _end_of_operator(tokens, pipe)
                items = sql[tokens[pipe + 2].end + 1 : tokens[end - 1].end + 1]
                rest = sql[tokens[end - 1].end + 1 :]
                sql = f"{sql[: tokens[pipe].start]}|> SELECT{items} |> DISTINCT{rest}"
                break
            begin = _pipeline_start(tokens, pipe)
            earlier = _operators(tokens, begin, pipe)
            if (
                _ENDS & {*earlier}
                or (word in _READ_FIRST and "WHERE" in earlier)
                or tokens[begin].token_type is not TokenType.FROM
            ):
                inner = sql[tokens[begin].start : tokens[pipe].start]
                name = _name(tokens, begin, pipe) if _KEEP_NAMES.issuperset(earlier) else ""
                sql = (
                    f"{sql[: tokens[begin].start]}FROM ({inner}){name} {sql[tokens[pipe].start :]}"
                )
                break
        else:
            return sql


def _operators(tokens: list[Any], begin: int, pipe: int) -> list[str]:
    """The words of the operators of a pipeline before one of its pipes."""
    words = []
    depth = 0
    for i in range(begin, pipe):
        kind = tokens[i].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if kind is TokenType.PIPE_GT and depth == 0:
            words.append(tokens[i + 1].text.upper())
    return words


def _name(tokens: list[Any], begin: int, pipe: int) -> str:
    """`` AS name`` of the one relation in the FROM that a pipeline begins with, if there is just one."""
    if tokens[begin].token_type is not TokenType.FROM:
        return ""
    behind = next(i for i in range(begin, pipe + 1) if tokens[i].token_type is TokenType.PIPE_GT)
    relation = tokens[begin + 1 : behind]
    plain = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT, TokenType.ALIAS}
    if not relation or any(t.token_type not in plain for t in relation):
        return ""
    last = relation[-1]
    quote = "`" if last.token_type is TokenType.IDENTIFIER else ""
    return f" AS {quote}{last.text}{quote}"


def _rewritten(sql: str, tokens: list[Any], pipe: int) -> str:
    """Replace the operator behind one pipe."""
    word = tokens[pipe + 1].text.upper()
    end = _end_of_operator(tokens, pipe)
    starts = [pipe + 2]  # of the comma-separated parts
    depth = 0
    for i in range(pipe + 2, end):
        kind = tokens[i].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
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
    if word == "RENAME":
        pairs = (
            f"{text(start, start + 1)} AS {text(stop - 1, stop)}"  # AS may be left out
            for start, stop in zip(starts, stops, strict=True)
        )
        return f"{head}|> SELECT * RENAME ({', '.join(pairs)}){tail}"
    # name = expression, ...
    parts = [
        f"{text(start + 2, stop)} AS {text(start, start + 1)}"
        for start, stop in zip(starts, stops, strict=True)
    ]
    return f"{head}|> SELECT * REPLACE ({', '.join(parts)}){tail}"


def _end_of_operator(tokens: list[Any], pipe: int) -> int:
    """The token behind the operator that a pipe begins."""
    depth = 0
    for i in range(pipe + 2, len(tokens)):
        kind = tokens[i].token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth < 0 or (depth == 0 and kind in (TokenType.PIPE_GT, TokenType.SEMICOLON)):
            return i
    return len(tokens)


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
