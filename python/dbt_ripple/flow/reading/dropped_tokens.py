"""Words of a text that sqlglot reads and does not keep in its parse tree.

sqlglot parses ``percentile(a, 0.5, 3)`` as ``percentile(a, 0.5)``, so a change of the 3 would not
be found. Such words are found by comparing the values and names in the text with those in the tree
that the lowering came across. Nearly always they are the same. If they are not, sqlglot may have
read a word in another way (``'dd'`` as a unit, ``nulls last`` as a flag). Then SQL is generated
from the tree, and a word that is not in that text either was dropped.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date
from operator import le
from typing import Any, Final, NamedTuple

from sqlglot import TokenType, exp

from dbt_ripple.flow.reading.dialects import as_written
from dbt_ripple.flow.reading.token_kinds import (
    NAMES,
    VALUES,
    has_pipe,
    lowered_texts,
    marks_of,
    texts_of,
)

_STRINGS: Final = VALUES - {TokenType.NUMBER}
_WORD: Final = re.compile(r"\w+")

_READ_OTHERWISE: Final = {
    "nulls": "NULLS FIRST and NULLS LAST are a flag, written out where it is not the default",
    "first": "as of NULLS FIRST, and of FETCH FIRST",
    "last": "as of NULLS LAST",
    "within": "WITHIN GROUP is a node of its own, written as an ORDER BY in the call",
    "next": "FETCH NEXT is LIMIT",
    "only": "the ONLY of FETCH FIRST n ROWS ONLY",
    "without": "WITHOUT TIME ZONE, what a type is by default",
    "at": "AT TIME ZONE is a node of its own",
    "time": "as of WITH TIME ZONE",
    "zone": "as of WITH TIME ZONE",
    "exclude": "* EXCLUDE is * EXCEPT",
    "corresponding": "UNION CORRESPONDING is UNION BY NAME, which is a flag",
    "local": "as of WITH LOCAL TIME ZONE, which is a type of its own",
    "strict": "as of UNION STRICT CORRESPONDING, which is a flag, too",
}
"""Words that are in a tree, but under another name than their own."""


_OF_A_CAST: Final = (TokenType.ALIAS, TokenType.DCOLON)
"""What stands before a type in CAST(a AS type) and a::type."""

_OF_JSON_OBJECT: Final = frozenset({"key", "value"})
"""JSON_OBJECT(KEY k VALUE v) is JSON_OBJECT(k: v)."""


_NUMBERS_ARE_DATES: Final = frozenset({"fabric", "tsql"})
"""Dialects in which sqlglot writes the number of a day as its date: `datediff(day, 0, x)`."""
_LENGTHS_NOT_KEPT: Final = frozenset({TokenType.CHAR, TokenType.VARCHAR})
_TEXT_TYPES: Final = {
    "databricks": _LENGTHS_NOT_KEPT,
    "duckdb": frozenset({TokenType.TEXT}),
    "hive": _LENGTHS_NOT_KEPT,
    "spark": _LENGTHS_NOT_KEPT,
}
"""Types of which sqlglot leaves out the length in a cast. DuckDB ignores it; Spark (4.1 was executed)
does by default."""
_FIRST_DAY: Final = date(1900, 1, 1)
_OF_A_UNIT: Final = "datename"
"""A function of SQL Server whose first argument is a unit, of which sqlglot makes a format."""


class DroppedTokens(NamedTuple):
    """What a parse tree does not hold of its text.

    Attributes:
        words: names and numbers, in order: the query cannot be followed.
        constants: strings, units of time and lengths of text types, in order: sqlglot rewrites
            formats and paths and not always back. They say what they say by themselves, so that it
            is enough to hash them.
    """

    words: list[str]
    constants: list[str]


def holds(read: Collection[str], tokens: list[Any], marks: bytes) -> bool:
    """Whether what was read of a tree holds every name and value of its text: nearly always so."""
    here = Counter(read)
    names = not has_pipe(marks)
    # Nearly always in lower case, as what is read is: then nothing has to be folded.
    as_written = Counter(texts_of(tokens, marks, names))
    if all(map(le, as_written.values(), map(here.__getitem__, as_written))):
        return True
    there = Counter(lowered_texts(tokens, marks, names))
    return all(map(le, there.values(), map(here.__getitem__, there)))


def dropped_tokens(
    sql: str, tokens: list[Any], marks: bytes, tree: Any, dialect: str
) -> DroppedTokens:
    """What of a query its parse tree does not hold.

    Names of functions are not looked for: sqlglot writes many under another one. Of a pipe it
    makes new queries with other names, so that there only values are compared.
    """
    names = not has_pipe(marks)
    there, here = _count(lowered_texts(tokens, marks, names)), _count(_strings(tree))
    missing = there - here
    lengths = [*_lengths_of_text(tokens, _TEXT_TYPES.get(dialect, frozenset()))]
    missing -= Counter(lengths)
    lost = DroppedTokens([], [] if dialect == "duckdb" else lengths)
    if dialect in _NUMBERS_ARE_DATES:
        missing -= Counter(_numbers_of_days(tree, sql))
    otherwise = set(_READ_OTHERWISE)
    if "json_object" in sql.lower():
        otherwise |= _OF_JSON_OBJECT
    if missing.keys() <= otherwise:
        return lost
    engine = as_written(dialect)
    units = engine.DATE_PART_MAPPING
    more = here - there
    for word in list(missing):  # `dd` and `days` are DAY
        unit = units.get(word.upper(), "").lower()
        if word in otherwise or (unit and more[unit] >= missing[word]):
            more[unit] -= missing.pop(word)
    if not missing:
        return lost
    try:
        text = tree.sql(dialect=engine, comments=False)
        again = engine.tokenize(text)
        missing &= there - _count(lowered_texts(again, marks_of(again)))
    except Exception as error:  # it cannot write all that it can read
        logging.getLogger(__name__).debug("cannot write out a query: %s", error)
    kinds = VALUES | NAMES if names else VALUES
    defaults = {f.strip("'").lower() for f in (engine.TIME_FORMAT, engine.DATE_FORMAT)}
    before, called = None, ""
    held = _places_of_names(tree) if missing else {}
    for token in tokens if missing else ():
        kind, behind, function = token.token_type, before, called
        before = kind
        if kind is not TokenType.L_PAREN:
            called = token.text.lower()
        if kind in NAMES and held.get(token.start) == token.text:
            continue  # where a word is there twice, as a name and in a path, it is the other
        words = [w for w in _words(token.text.lower()) if missing[w] > 0] if kind in kinds else []
        if not words:
            continue
        missing.subtract(words)
        is_unit = behind is TokenType.L_PAREN and (
            token.text.upper() in units or function == _OF_A_UNIT
        )
        if kind in _STRINGS or is_unit:
            if token.text.lower() not in defaults:  # a format that is left out
                lost.constants.append(token.text)
        else:
            lost.words.append(token.text)
    return lost


def _places_of_names(tree: Any) -> dict[int, str]:
    """The names of a tree, by where they begin in the text."""
    names = tree.find_all(exp.Identifier)
    return {name.meta["start"]: name.this for name in names if "start" in (name._meta or ())}


def _lengths_of_text(tokens: list[Any], types: Collection[TokenType]) -> Iterable[str]:
    """The lengths of these types in casts."""
    for i in range(1, len(tokens) - 3):
        if tokens[i].token_type in types and tokens[i - 1].token_type in _OF_A_CAST:
            opened, length, closed = tokens[i + 1 : i + 4]
            array = tokens[i + 4 : i + 5]  # in the type of an array it is kept
            if (
                opened.token_type is TokenType.L_PAREN
                and length.token_type is TokenType.NUMBER
                and closed.token_type is TokenType.R_PAREN
                and not (array and array[0].token_type is TokenType.L_BRACKET)
            ):
                yield length.text.lower()


def _numbers_of_days(tree: Any, sql: str) -> Iterable[str]:
    """The numbers of the days whose dates are in a tree and not in its text."""
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and literal.this not in sql:
            with suppress(ValueError):
                yield str(abs((date.fromisoformat(literal.this) - _FIRST_DAY).days))


def _strings(tree: Any) -> Iterable[str]:
    """Every string in a tree, whatever it stands for but for a function's name."""
    for node in tree.walk():
        for name, value in node.args.items():
            if name == "this" and isinstance(node, exp.Anonymous):
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, exp.DType):
                    yield item.value


def _count(texts: Iterable[str]) -> Counter[str]:
    """How often each word is there; ``INTERVAL '1 day'`` is two, and a path its keys."""
    return Counter(word for text in texts for word in _words(text.lower()))


def _words(text: str) -> list[str]:
    return _WORD.findall(text) or [text]
