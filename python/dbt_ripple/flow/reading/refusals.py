"""What is refused: texts that nest too deep, and operators that sqlglot reads otherwise than the engine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, TokenError

from dbt_ripple.flow.reading.dialects import NOT_IS_A_MARK
from dbt_ripple.flow.reading.token_kinds import OPENING, UNARY, has_arrow, may_nest
from dbt_ripple.reasons import Code, Reason


class Unsupported(Exception):  # noqa: N818  (it is a reason, not an error of the user's)
    """The query holds something that is not followed.

    Args:
        what: the construct, as SQL calls it, or another reason.
    """

    def __init__(self, what: str | Reason) -> None:
        self.reason = Code.UNSUPPORTED_SQL(construct=what) if isinstance(what, str) else what
        super().__init__(self.reason)


MAX_NESTING: Final = 200
"""Parentheses or expressions nested deeper than this are reported, not followed: the parser and
the walk recurse, and a stack must not overflow on somebody's generated SQL."""

_CLOSING: Final = frozenset(
    {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
)
_TYPE_BRACKETS: Final = frozenset({TokenType.LT, TokenType.GT, TokenType.COMMA})
_NESTED_TYPES: Final = frozenset({TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT})
_TWICE: Final = frozenset({"div0", "div0null", "nullifzero", "zeroifnull"})
"""Functions in whose place sqlglot puts a condition that has an argument twice."""
_TWICE_WITHIN: Final = 8
"""Levels of these within each other: each doubles what is in it."""


def refuse_deep(sql: str, tokens: list[Any], marks: bytes) -> None:
    """Look at how deep a text nests, before the parser recurses into it.

    Raises:
        Unsupported: where that is deeper than `MAX_NESTING`.
    """
    if may_nest(marks, MAX_NESTING) and _nesting(tokens) > MAX_NESTING:
        raise Unsupported(Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
    words = sql.lower()
    if sum(map(words.count, _TWICE)) > _TWICE_WITHIN and _twice_within(tokens):
        raise Unsupported(Code.NESTED_TOO_DEEP(levels=_TWICE_WITHIN))


def _nesting(tokens: Iterable[Any]) -> int:
    """How deep a query nests, read off its tokens."""
    depth = deepest = unary = types = 0
    previous = None
    for token in tokens:
        kind = token.token_type
        if kind in OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif kind in _CLOSING:
            depth -= 1
        elif kind in _TYPE_BRACKETS:
            # array<map<..>>: the parser tries each level twice, so these must stay few.
            types = types + 1 if kind is TokenType.LT and previous in _NESTED_TYPES else 0
            deepest = max(deepest, types * 4)
        unary = unary + 1 if kind in UNARY else 0
        deepest = max(deepest, unary)
        previous = kind
    return deepest


def _twice_within(tokens: Iterable[Any]) -> bool:
    """Whether more than `_TWICE_WITHIN` calls of these functions stand within each other."""
    opened: list[bool] = []
    called = ""
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            opened.append(called.lower() in _TWICE)
            if sum(opened) > _TWICE_WITHIN:
                return True
        elif kind is TokenType.R_PAREN and opened:
            opened.pop()
        called = token.text
    return False


_CHAINED: Final = (exp.JSONExtract, exp.JSONExtractScalar)
"""`->` and `->>`, which DuckDB reads from left to right where they follow on one another."""
_OPERATORS: Final = (exp.Binary, exp.Unary, exp.Between, exp.In)


def refuse_misread(sql: str, tokens: list[Any], marks: bytes, tree: Any, dialect: str) -> None:
    """Look for an operator of a text of which its tree says something else.

    Raises:
        Unsupported: there is one; says which.
    """
    # `n ! in (1)` is about the factorial of n on DuckDB; sqlglot reads it as `n not in (1)`.
    if "!" in sql and dialect not in NOT_IS_A_MARK:
        for token in tokens:
            behind = sql[token.end + 1 : token.end + 2]
            if token.token_type is TokenType.NOT and token.text == "!" and behind != "~":
                raise Unsupported("!, which is not NOT everywhere")
    # DuckDB's `->` binds last of all: `a or b -> 'k'` is `(a or b) -> 'k'`, and sqlglot reads it first.
    # (https://github.com/tobymao/sqlglot/issues/8035)
    if dialect == "duckdb" and has_arrow(marks):
        for node in tree.find_all(exp.JSONExtract):
            around = node.parent
            if (
                "only_json_types" in node.args  # it is written as an arrow
                and isinstance(around, _OPERATORS)
                and not isinstance(around, (exp.Paren, *_CHAINED))
            ):
                raise Unsupported("-> beside another operator, without brackets")


_REQUIRED: Final = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_GOT: Final = re.compile(r" but got <Token .*", re.DOTALL)


def first_line(error: Exception) -> str:
    """What an error says, and where; without the text around it, underlining and Python's names."""
    if isinstance(error, TokenError):
        error = next(
            (e for e in (error.__cause__, error.__context__) if isinstance(e, TokenError)), error
        )
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    message = _GOT.sub("", str(details.get("description") or error)).strip()
    message = (message.splitlines() or [type(error).__name__])[0][:200]
    if not details.get("line"):
        return message
    message = _REQUIRED.sub(lambda match: f"something is missing in {match[1].upper()}", message)
    near = " ".join(str(details.get("highlight") or "").split())[:30]
    message = message.rpartition(" / ")[2].rstrip(".")
    message = message[:1].lower() + message[1:]
    return f"{message} (line {details['line']} of the compiled SQL, near `{near}`)"
