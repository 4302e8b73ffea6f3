"""Tokens that sqlglot makes otherwise than the engine reads the text, as tokens that say what the engine reads.

`REPAIRS` is the table. Each row is a function of tokens, which are as many or other ones; each token keeps
the place in the text of what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlglot import Token, TokenType

from dbt_ripple.flow.reading.dialects import NO_KEYWORD_RESERVED, SIDE_BY_SIDE, SPACED_OPERATORS
from dbt_ripple.flow.reading.token_kinds import (
    IN_AND_BRACKET,
    KEYWORDS_AS_NAMES,
    LATERAL_VIEW,
    NAMES,
    POINT_AND_VALUE,
    VALUES_SIDE_BY_SIDE,
    marks_of,
)

_UPSTREAM: Final = "https://github.com/tobymao/sqlglot"


class Repair(NamedTuple):
    """A construct, and how its tokens are made to say what the engine reads.

    Attributes:
        construct: what an engine reads.
        example: a text that has it.
        looked_for: what a text has in its marks (`token_kinds`), or in its letters, if it may have it; most have not.
        repaired: makes new tokens of the text, its tokens and its dialect; it says which.
        dialects: those in which it is looked for; all where there is none.
        upstream: where sqlglot was told; empty where nothing was found.
    """

    construct: str
    example: str
    looked_for: Sequence[bytes] | re.Pattern[str]
    repaired: Callable[[str, list[Any], str], list[Any]]
    dialects: Collection[str] = ()
    upstream: str = ""


def repaired(sql: str, tokens: list[Any], dialect: str) -> tuple[list[Any], bytes]:
    """The tokens of a text with all repairs of its dialect, and what each of them is (`token_kinds`)."""
    marks = marks_of(tokens)
    rewritten = tokens
    for repair in _repairs_of(dialect):
        looked_for = repair.looked_for
        if (
            looked_for.search(sql)
            if isinstance(looked_for, re.Pattern)
            else any(part in marks for part in looked_for)
        ):
            rewritten = repair.repaired(sql, rewritten, dialect)
    return rewritten, marks if rewritten is tokens else marks_of(rewritten)


@cache
def _repairs_of(dialect: str) -> Sequence[Repair]:
    return [each for each in REPAIRS if not each.dialects or dialect in each.dialects]


def _at(token: Any, kind: TokenType, text: str, end: Any = None) -> Token:
    """A token in the place of another one, or of all from that to an end."""
    return Token(kind, text, token.line, token.col, token.start, (end or token).end)


# -- numbers and texts ------------------------------------------------------------------------------

_BETWEEN: Final = "\u2060"


def _with_doubled_quotes(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """One text for each that has doubled quotes in it, which sqlglot and Spark before 4.0 take for two.

    Spark 4 reads `'it''s'` as "it's" and `'it' 's'` as "its"; which one another version or a setting
    makes of the former is not known. So it is a text of its own, which is equal to neither.
    """
    merged: list[Any] = []
    for token in tokens:
        before = merged[-1] if merged else None
        if (
            before is not None
            and token.token_type is TokenType.STRING is before.token_type
            and before.end + 1 == token.start
            and sql[before.end] == sql[token.start]
        ):
            quote = sql[token.start]
            text = f"{before.text}{quote}{_BETWEEN}{quote}{token.text}"
            merged[-1] = _at(before, TokenType.STRING, text, token)
        else:
            merged.append(token)
    return merged


_ENDS_A_VALUE: Final = frozenset("_)]}\"'`$")


def _with_leading_points(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """One number for each that begins with a point: `.5` is a DECIMAL(1, 1) on DuckDB, `0.5` a DECIMAL(2, 1)."""
    merged: list[Any] = []
    for token in tokens:
        point = merged[-1] if merged else None
        if (
            point is not None
            and token.token_type is TokenType.NUMBER
            and point.token_type is TokenType.DOT
            and point.end + 1 == token.start
            and not _ends_a_value(sql[: point.start][-1:])
        ):
            merged[-1] = _at(point, TokenType.NUMBER, f".{token.text}", token)
        else:
            merged.append(token)
    return merged


def _ends_a_value(char: str) -> bool:
    return char.isalnum() or char in _ENDS_A_VALUE


_EMPTY: Final = ("0x", "0X")


def _with_empty_hexadecimals(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """A number for each literal `0x`, of which sqlglot makes a name."""
    return [
        _at(token, TokenType.NUMBER, token.text)
        if token.token_type is TokenType.IDENTIFIER and sql[token.start : token.end + 1] in _EMPTY
        else token
        for token in tokens
    ]


# -- lists, operators -------------------------------------------------------------------------------


def _with_lists_as_calls(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """``IN list_value(...)`` for each ``IN [...]``, which sqlglot reads as ``IN (...)``.

    To DuckDB a list in brackets is a value: whether a list contains 5 is true or false, even where it
    contains NULL; of the values in parentheses it would be unknown. A function call is read as a value.
    """
    ends = _brackets(tokens)
    calls = {
        start: end
        for start, end in ends.items()
        if start
        and _is(tokens[start], TokenType.L_BRACKET)
        and _is(tokens[start - 1], TokenType.IN)
        if not _is_comprehension(tokens, ends, start)
    }
    if not calls:
        return tokens
    name = "list_value" if dialect == "duckdb" else "array"
    closing = {*calls.values()}
    rewritten: list[Any] = []
    for i, token in enumerate(tokens):
        if i in calls:
            rewritten += [_at(token, TokenType.VAR, name), _at(token, TokenType.L_PAREN, "(")]
        elif i in closing:
            rewritten.append(_at(token, TokenType.R_PAREN, ")"))
        else:
            rewritten.append(token)
    return rewritten


def _is(token: Any, *kinds: TokenType) -> bool:
    return token.token_type in kinds


def _brackets(tokens: list[Any]) -> dict[int, int]:
    """Where each parenthesis or square bracket that opens is closed, by position."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if _is(token, TokenType.L_PAREN, TokenType.L_BRACKET):
            opened.append(i)
        elif _is(token, TokenType.R_PAREN, TokenType.R_BRACKET) and opened:
            ends[opened.pop()] = i
    return ends


def _is_comprehension(tokens: list[Any], ends: dict[int, int], start: int) -> bool:
    """Whether a list is made of another one, `[x for x in l]`."""
    i = start + 1
    while i < ends[start]:
        if _is(tokens[i], TokenType.FOR):
            return True
        i = ends.get(i, i) + 1
    return False


_COMPARISONS: Final = {
    ("<", "="): (TokenType.LTE, "<="),
    (">", "="): (TokenType.GTE, ">="),
    ("<", ">"): (TokenType.NEQ, "<>"),
    ("!", "="): (TokenType.NEQ, "!="),
    ("!", "<"): (TokenType.GTE, ">="),
    ("!", ">"): (TokenType.LTE, "<="),
}
_SIGNS: Final = (TokenType.LT, TokenType.GT, TokenType.NOT)
_MULTISET: Final = frozenset({"EXCEPT", "INTERSECT", "UNION"})


def _with_whole_operators(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """One operator for each that stands in pieces.

    Oracle and T-SQL let a comparison have white space within (``a < = b``, ``a ! = b``); Oracle joins
    nested tables by ``a MULTISET UNION ALL b`` (Oracle's SQL reference, "Multiset Operators").
    """
    whole: list[Any] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        pieces = [each.text.upper() for each in tokens[i : i + 3]]
        comparison = _COMPARISONS.get((pieces[0], pieces[1] if len(pieces) > 1 else ""))
        if comparison and _is(token, *_SIGNS):
            whole.append(_at(token, *comparison))
            i += 2
        elif _is_multiset(token, pieces, dialect):
            kept = 3 if pieces[2:3] in (["ALL"], ["DISTINCT"]) else 2
            whole += [
                _at(token, TokenType.OPERATOR, "operator"),
                _at(token, TokenType.L_PAREN, "("),
                _at(token, TokenType.VAR, "_".join(pieces[:kept]).lower()),
                _at(token, TokenType.R_PAREN, ")"),
            ]
            i += kept
        else:
            whole.append(token)
            i += 1
    return whole


def _is_multiset(token: Any, pieces: list[str], dialect: str) -> bool:
    """Whether an operator of nested tables begins at a token: a quoted name is a name."""
    return (
        dialect == "oracle"
        and pieces[0] == "MULTISET"
        and not _is(token, TokenType.IDENTIFIER)
        and len(pieces) > 1
        and pieces[1] in _MULTISET
    )


# -- names and clauses ------------------------------------------------------------------------------

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


def _with_keywords_as_names(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """A name for each `values` and `from` that is certainly the name of a column.

    Both are where no inline table and no FROM clause can begin: neither begins with a comma, a
    comparison or a closing bracket.
    """
    rewritten = list(tokens)
    for i, (token, follows) in enumerate(pairwise(tokens)):
        if follows.token_type in _ENDS_A_NAME.get(token.token_type, ()):
            rewritten[i] = _at(token, TokenType.VAR, token.text)
    return rewritten


def _with_columns_of_views(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """An AS before the columns of each LATERAL VIEW that has none."""
    ends = _brackets(tokens)
    rewritten = list(tokens)
    for view in reversed(range(1, len(tokens))):
        if _is(tokens[view], TokenType.VIEW) and _is(tokens[view - 1], TokenType.LATERAL):
            opened = next((i for i in range(view, len(tokens)) if i in ends), view)
            column = ends.get(opened, len(tokens)) + 2
            if (
                column < len(tokens)
                and _is(tokens[column - 1], *NAMES)
                and _is(tokens[column], *NAMES)
            ):
                place = tokens[column].line, tokens[column].col, 0, 0
                rewritten.insert(column, Token(TokenType.ALIAS, "AS", *place))
    return rewritten


_ROWSET_FUNCTIONS: Final = frozenset({"OPENROWSET", "OPENXML"})


def _with_schemas_as_arguments(sql: str, tokens: list[Any], dialect: str) -> list[Any]:
    """``f(a, 'b')`` for ``f(a) with (b)``, whose WITH sqlglot reads as hints of a table.

    What stands in it says which columns the function has, where they come from and their types: as a
    string among the arguments it counts in whole, and columns of the function are looked up as those
    of any other function.
    """
    ends = {i: e for i, e in _brackets(tokens).items() if _is(tokens[i], TokenType.L_PAREN)}
    rewritten = list(tokens)
    for i in reversed(range(len(tokens) - 1)):
        end = ends.get(i + 1)
        if tokens[i].text.upper() not in _ROWSET_FUNCTIONS or end is None:
            continue
        last = ends.get(end + 2)
        if last is None or not _is(tokens[end + 1], TokenType.WITH):
            continue
        first, closing = tokens[end + 2], tokens[last]
        schema = sql[first.start : closing.end + 1]
        rewritten[end : last + 1] = [
            _at(first, TokenType.COMMA, ",", closing),
            _at(first, TokenType.STRING, schema, closing),
            tokens[end],
        ]
    return rewritten


REPAIRS: Final = (
    Repair(
        "a text with doubled quotes",
        "select 'it''s'",
        VALUES_SIDE_BY_SIDE,
        _with_doubled_quotes,
        SIDE_BY_SIDE,
    ),
    Repair(
        "a number that begins with a point",
        "select .5",
        POINT_AND_VALUE,
        _with_leading_points,
    ),
    Repair(
        "the empty hexadecimal literal",
        "select 0x",
        re.compile("0[xX]"),
        _with_empty_hexadecimals,
    ),
    Repair(
        "IN of a list in brackets",
        "select a in [1, null]",
        IN_AND_BRACKET,
        _with_lists_as_calls,
        upstream=f"{_UPSTREAM}/pull/5014",
    ),
    Repair(
        "OPENROWSET or OPENXML with a schema",
        "select * from openxml(@d, '/r') with (id int) x",
        re.compile(r"\b(?:openrowset|openxml)\s*\(", re.IGNORECASE),
        _with_schemas_as_arguments,
        ("tsql",),
        f"{_UPSTREAM}/issues/8151",
    ),
    Repair(
        "an operator of several words or signs",
        "select 1 from t where a < = b",
        re.compile(r"[<>!]\s+[<=>]|\bmultiset\b", re.IGNORECASE),
        _with_whole_operators,
        SPACED_OPERATORS,
    ),
    Repair(
        "a column called `values` or `from`",
        "select from, f(values) from t",
        KEYWORDS_AS_NAMES,
        _with_keywords_as_names,
        NO_KEYWORD_RESERVED,
        f"{_UPSTREAM}/pull/8322",
    ),
    Repair(
        "LATERAL VIEW without AS",
        "select x from t lateral view inline(f(a)) v x, y where x > 1",
        LATERAL_VIEW,
        _with_columns_of_views,
        NO_KEYWORD_RESERVED,
    ),
)
"""In the order in which they are made."""
