"""How the keys of ROLLUP, CUBE and GROUPING SETS are spelled, and where else they are spelled so.

In the rows of a set that leaves out a key, the engine makes the key NULL, and with it every
expression that is this key. Engines decide that by spelling: for DuckDB ``len(s)`` and
``length(s)``, ``k > v`` and ``v < k``, ``k`` and ``t.k`` are different. Fingerprints and parse
trees do not distinguish all of these, so the text is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import TokenType as T

from dbt_ripple.flow.fingerprint import digest

_SETS: Final = frozenset({T.ROLLUP, T.CUBE, T.GROUPING_SETS})
_OPENING: Final = frozenset({T.L_PAREN, T.L_BRACKET, T.L_BRACE})
_CLOSING: Final = frozenset({T.R_PAREN, T.R_BRACKET, T.R_BRACE})
_BEHIND_SELECT: Final = frozenset({T.FROM, T.WHERE, T.GROUP_BY, T.HAVING, T.QUALIFY})
_BEHIND_GROUP: Final = frozenset(
    {T.HAVING, T.QUALIFY, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH, T.SELECT}
)
_BETWEEN_QUERIES: Final = frozenset({T.UNION, T.EXCEPT, T.INTERSECT, T.SEMICOLON})

_Words = tuple[str, ...]


def spelled_alike(tokens: Sequence[Any], columns_too: bool) -> tuple[bytes, bytes]:
    """Which keys of grouping sets are spelled alike, and where in their SELECT they stand again.

    Args:
        tokens: of a statement.
        columns_too: whether two spellings of one column (`k` and `t.k`) are two keys, too.

    Returns:
        A digest of what is alike; and one of the spellings of the keys and of what stands beside
        GROUP BY, which is for keys that are one column.
    """
    clauses = []
    for i, token in enumerate(tokens):
        if token.token_type is T.GROUP_BY:
            query = _query_around(tokens, i)
            end = next((j for j in query if j > i and tokens[j].token_type in _BEHIND_GROUP), None)
            end = end or query[-1] + 1
            clause = tokens[i + 1 : end]
            if any(t.token_type in _SETS for t in clause):
                clauses.append(_one(tokens, query, clause, end, columns_too))
    alike, spellings = [], []
    for one, words in clauses:
        alike.append(one)
        spellings.append(words)
    return digest(*alike), digest(*spellings)


def _query_around(tokens: Sequence[Any], at: int) -> list[int]:
    """The places of a SELECT's own tokens, those in brackets left out, given one of them."""

    def outwards(step: int, opening: frozenset[Any], closing: frozenset[Any]) -> list[int]:
        places = []
        depth = 0
        i = at + step
        while 0 <= i < len(tokens):
            kind = tokens[i].token_type
            if kind in closing:
                if not depth:
                    break
                depth -= 1
            elif kind in opening:
                depth += 1
            elif not depth and kind in _BETWEEN_QUERIES:
                break
            elif not depth:
                places.append(i)
            i += step
        places.append(i - step)
        return places

    before = outwards(-1, _CLOSING, _OPENING)
    return sorted({*before, at, *outwards(1, _OPENING, _CLOSING)})


def _one(
    tokens: Sequence[Any], query: list[int], clause: Sequence[Any], end: int, columns_too: bool
) -> tuple[bytes, bytes]:
    """What `spelled_alike` says of one GROUP BY."""
    keys = _keys(clause)
    classes: dict[_Words, int] = {}
    key_classes = [
        classes.setdefault(words, len(classes))
        for words, _ in keys
        if columns_too or not _is_name(words)
    ]
    in_sets = [inside for _, inside in keys]
    order = in_sets if columns_too and len(set(in_sets)) > 1 else []
    start = next((i for i in query if tokens[i].token_type is T.SELECT), query[0])
    behind = (i for i in query if i > start and tokens[i].token_type in _BEHIND_SELECT)
    items = [*_split(tokens[start + 1 : next(behind)]), tokens[end : query[-1] + 1]]
    again = []
    for words, key in classes.items():
        if len(words) > 1 and not _is_name(words):
            for n, item in enumerate(items):
                here = _words(item)
                again += [
                    (key, n, at)
                    for at in range(len(here) - len(words) + 1)
                    if here[at : at + len(words)] == words
                ]
    beside = [_words(item) for item in items]
    return repr((key_classes, order, again)).encode(), repr((list(classes), beside)).encode()


def _keys(clause: Sequence[Any], inside: bool = False) -> list[tuple[_Words, bool]]:
    """The keys in a list of them, in order, and whether each is in a ROLLUP or its like."""
    keys = []
    for item in _split(clause):
        within = inside
        while item and item[0].token_type in _SETS:
            item = item[1:]
            within = True
        if len(item) > 1 and _in_brackets(item):
            keys += _keys(item[1:-1], within)
        elif item:
            keys.append((_words(item), within))
    return keys


def _split(tokens: Sequence[Any]) -> list[Sequence[Any]]:
    """What commas divide, except commas in brackets."""
    parts = []
    depth = first = 0
    for i, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if kind is T.COMMA and not depth:
            parts.append(tokens[first:i])
            first = i + 1
    return [*parts, tokens[first:]]


def _in_brackets(tokens: Sequence[Any]) -> bool:
    """Whether the bracket that opens first closes last."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if not depth:
            return i == len(tokens) - 1 and token.token_type is T.R_PAREN
    return False


def _words(tokens: Sequence[Any]) -> _Words:
    return tuple(repr(t.text) if t.token_type is T.STRING else str(t.text).lower() for t in tokens)


def _is_name(words: _Words) -> bool:
    """Whether a key is a column, or the position or alias of one."""
    return len(words) == 1 or set(words[1::2]) == {"."}
