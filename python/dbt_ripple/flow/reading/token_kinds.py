"""The kinds of tokens in a text, one byte for each.

A query has thousands of tokens, and this is needed for every query. Counting and searching in
bytes needs no loop in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from operator import attrgetter
from typing import Any, Final

from sqlglot import TokenType

from dbt_ripple.flow.identifiers import lowered

VALUES: Final = frozenset(
    {
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.BYTE_STRING,
        TokenType.BIT_STRING,
        TokenType.HEX_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
    }
)
"""Kinds of tokens that are a number or a string."""
NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
"""Kinds of tokens that are a name, and no word of the language."""
OPENING: Final = frozenset(
    {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
)
"""Kinds of tokens after which a query is a level deeper."""
UNARY: Final = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE})
"""Kinds of tokens that may be an operator before its operand."""

_VALUE: Final = b"\1"
_NAME: Final = b"\2"
_L_PAREN: Final = b"\3"
_OPENS: Final = b"\4"
_LT: Final = b"\5"
_UNARY: Final = b"\6"
_PIPE: Final = b"\7"
_IN: Final = b"\x08"
_FROM: Final = b"\x0b"
_INLINE_TABLE: Final = b"\x0c"
_ENDS_A_NAME: Final = b"\x0e"
_ARROW: Final = b"\x0f"
_DOT: Final = b"\x10"
_LATERAL: Final = b"\x11"
_VIEW: Final = b"\x12"


VALUES_SIDE_BY_SIDE: Final = (_VALUE + _VALUE,)
"""Two numbers or strings with nothing between them but space. These are parts of marks that few texts have."""
POINT_AND_VALUE: Final = (_DOT + _VALUE,)
"""A point, and no name behind it."""
IN_AND_BRACKET: Final = (_IN + _OPENS,)
"""IN, and another token behind it than after most."""
KEYWORDS_AS_NAMES: Final = (_INLINE_TABLE, _FROM + _ENDS_A_NAME)
"""`values` or `from` where either may be a name."""
LATERAL_VIEW: Final = (_LATERAL + _VIEW,)


def _only(*marks: bytes) -> bytes:
    """A table for `bytes.translate` that leaves these marks and makes 0 of all others."""
    return bytes(i if bytes([i]) in marks else 0 for i in range(256))


_MARKS: Final = {
    kind: mark[0]
    for kind, mark in {
        **dict.fromkeys(TokenType, b"\0"),
        TokenType.LT: _LT,
        TokenType.PIPE_GT: _PIPE,
        TokenType.IN: _IN,
        TokenType.FROM: _FROM,
        TokenType.VALUES: _INLINE_TABLE,
        TokenType.COMMA: _ENDS_A_NAME,
        TokenType.EQ: _ENDS_A_NAME,
        TokenType.NEQ: _ENDS_A_NAME,
        TokenType.ARROW: _ARROW,
        TokenType.DOT: _DOT,
        TokenType.LATERAL: _LATERAL,
        TokenType.VIEW: _VIEW,
        **dict.fromkeys(UNARY, _UNARY),
        **dict.fromkeys(OPENING, _OPENS),
        **dict.fromkeys(NAMES, _NAME),
        **dict.fromkeys(VALUES, _VALUE),
        TokenType.L_PAREN: _L_PAREN,
    }.items()
}
_ONLY_WORDS: Final = _only(_VALUE, _NAME)
_ONLY_VALUES: Final = _only(_VALUE)
_kind_of: Final = attrgetter("token_type")
_text_of: Final = attrgetter("text")


def marks_of(tokens: list[Any]) -> bytes:
    """What each token is, as far as it is asked here."""
    return bytes(map(_MARKS.__getitem__, map(_kind_of, tokens)))


def may_nest(marks: bytes, levels: int) -> bool:
    """Whether a text could nest that deep at all: most cannot, and no token is looked at.

    A type within a type counts as four levels: the parser tries each twice.
    """
    count = marks.count
    return (
        count(_L_PAREN) + count(_OPENS) > levels
        or count(_UNARY) > levels
        or count(_LT) > levels // 4
    )


def has_pipe(marks: bytes) -> bool:
    """Whether a text is of pipe syntax, ``FROM t |> WHERE ...``."""
    return _PIPE in marks


def has_arrow(marks: bytes) -> bool:
    """Whether a text has ``->``, of JSON or of a lambda."""
    return _ARROW in marks


def called(tokens: list[Any], marks: bytes) -> Iterator[tuple[str, str]]:
    """The word before each bracket, in lower case, with what stands before a dot before it, or ``""``."""
    at = marks.find(_L_PAREN)
    while at >= 0:
        name = tokens[at - 1].text.lower() if at else ""
        if name[:1].isalpha() or name[:1] == "_":
            of_schema = at > 2 and marks[at - 2 : at - 1] == _DOT
            yield name, tokens[at - 3].text.lower() if of_schema else ""
        at = marks.find(_L_PAREN, at + 1)


def texts_of(tokens: list[Any], marks: bytes, names: bool = True) -> Iterator[str]:
    """The values of a text and its names as they are written, but for what is called: ``f`` of ``f(a)``.

    Args:
        tokens: of the text.
        marks: what each of them is.
        names: whether names are asked for; else it is values alone.
    """
    kept = marks.replace(_VALUE + _L_PAREN, b"\0\0").replace(_NAME + _L_PAREN, b"\0\0")
    kept = kept.translate(_ONLY_WORDS if names else _ONLY_VALUES)
    return map(_text_of, compress(tokens, kept))


def lowered_texts(tokens: list[Any], marks: bytes, names: bool = True) -> list[str]:
    """The same in lower case."""
    return list(map(lowered.__getitem__, texts_of(tokens, marks, names)))
