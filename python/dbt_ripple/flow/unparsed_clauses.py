"""Clauses that sqlglot does not parse, and that read no column: left out of the text, and told.

They say how a function reads and writes JSON, which index is used, how ORDER BY compares. What is left
out is a part of all that the query gives, so a change of it counts. An operator of Postgres that sqlglot
does not know is written as `OPERATOR(public.<#>)`, which it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlglot import TokenType

from dbt_ripple.flow.json_arrows import HAVE_LAMBDAS
from dbt_ripple.flow.token_kinds import NAMES, VALUES

_POSTGRES: Final = frozenset({"materialize", "postgres", "redshift", "risingwave"})
_OF_JSON: Final = "|".join(
    (
        r"RETURNING \w+(?: \( \d+(?: , \d+)? \))?",
        r"(?:NULL|ABSENT) ON NULL",
        r"(?:NULL|ERROR|EMPTY|DEFAULT (?:'[^']*'|\d+|NULL)) ON (?:ERROR|EMPTY)",
        r"FORMAT JSON(?: ENCODING UTF\d+)?",
        r"(?:WITH|WITHOUT)(?: (?:UN)?CONDITIONAL)?(?: ARRAY)? WRAPPER",
    )
)
"""What may stand behind the arguments of a function of JSON, and behind a column of JSON_TABLE."""
_CLAUSES: Final = {
    "": rf"(?:{_OF_JSON})(?: (?:{_OF_JSON}))*(?= [),])",
    "clickhouse": r"(?:(?<=ANY )|(?<=ALL )|(?<=SEMI )|(?<=ANTI )|(?<=ASOF ))OUTER(?= JOIN)",
    "postgres": r"USING (?:[<>]|OPERATOR \( \w+ \. [<>] \))",
    "tsql": r"(?<=INDEX )= (?:\w+|\( \w+ \))(?= [),])|(?<=OPENROWSET \( )BULK(?= N?')",
}
"""What is left out: of all dialects, and of one; patterns of tokens in upper case, a space between them."""
_BEGIN_AN_ARGUMENT: Final = frozenset({TokenType.L_PAREN, TokenType.COMMA, TokenType.DISTINCT})
_END_AN_OPERAND: Final = frozenset(
    {TokenType.R_PAREN, TokenType.COMMA, TokenType.ORDER_BY, TokenType.ARROW, TokenType.DARROW}
)
_OPERATOR: Final = re.compile(r"[-+*/<>=~!@#%^&|?]+")
_OF_LONGER_OPERATORS: Final = frozenset("~!@#%^&|?")


def without_unparsed_clauses(
    sql: str, tokens: Sequence[Any], dialect: str
) -> tuple[str, list[str]] | None:
    """The text without them, and what was left out; None where there is nothing of them.

    Example:
        >>> from sqlglot.dialects.postgres import Postgres
        >>> sql = "select json_serialize(a returning text), b <#> c from t"
        >>> without_unparsed_clauses(sql, Postgres().tokenize(sql), "postgres")
        ('select json_serialize(a ), b  OPERATOR(public.<#>)  c from t', ['RETURNING TEXT'])
    """
    cuts: list[tuple[int, int, str]] = []
    left_out: list[str] = []
    for start, end, words in _clauses(sql, tokens, dialect):
        cuts.append((start, end, ""))
        left_out.append(words)
    if dialect in _POSTGRES:
        cuts += _operators(sql, tokens)
    if dialect not in HAVE_LAMBDAS:
        cuts += _arrows(sql, tokens)
    pieces: list[str] = []
    at = 0
    for start, end, instead in sorted(cuts):
        if start >= at:
            pieces += [sql[at:start], instead]
            at = end
    return ("".join([*pieces, sql[at:]]), left_out) if cuts else None


def _clauses(sql: str, tokens: Sequence[Any], dialect: str) -> Iterator[tuple[int, int, str]]:
    """Where such clauses stand, and their words."""
    written = [sql[token.start : token.end + 1].upper() for token in tokens]
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    length = 0
    for token, words in zip(tokens, written, strict=True):
        starts[length] = token.start
        length += len(words) + 1
        ends[length - 1] = token.end + 1
    patterns = [_CLAUSES[""], *([_CLAUSES[dialect]] if dialect in _CLAUSES else [])]
    for match in re.finditer("|".join(patterns), " ".join(written)):
        if match.start() in starts and match.end() in ends:
            yield starts[match.start()], ends[match.end()], match[0]


def _arrows(sql: str, tokens: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    """`f(b -> 'k' order by c)`, where sqlglot sees a lambda: with brackets around `b -> 'k'` it does not."""
    kinds = [token.token_type for token in tokens]
    for i in range(1, len(tokens) - 3):
        before, name, arrow, key, behind = kinds[i - 1 : i + 4]
        if (
            arrow is TokenType.ARROW
            and before in _BEGIN_AN_ARGUMENT
            and name in NAMES
            and key in VALUES
            and behind in _END_AN_OPERAND
        ):
            start, end = tokens[i].start, tokens[i + 2].end + 1
            yield start, end, f"({sql[start:end]})"


def _operators(sql: str, tokens: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    """Where operators stand that sqlglot reads as several, or as the mark of a parameter."""
    inside = 0
    for token in tokens:
        match = _OPERATOR.match(sql, token.start)
        if match is None or token.start < inside or token.token_type is TokenType.STRING:
            continue
        operator = match[0]
        if not _OF_LONGER_OPERATORS.intersection(operator):  # `=-1` is `= -1`
            operator = operator[0] + operator[1:].rstrip("+-")
        inside = token.start + len(operator)
        is_known = token.end + 1 == inside and operator != "@"
        if operator == "@" or (len(operator) > 1 and not is_known):
            yield token.start, inside, f" OPERATOR(public.{operator}) "
