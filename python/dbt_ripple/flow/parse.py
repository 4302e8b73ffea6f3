"""Compiled SQL -> sqlglot's parse tree and the tokens it is made of."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError

from dbt_ripple.flow.bracketed_lists import with_lists_as_calls
from dbt_ripple.flow.doubled_quotes import with_doubled_quotes
from dbt_ripple.flow.hexadecimals import with_empty_hexadecimals
from dbt_ripple.flow.invisible_spaces import with_spaces
from dbt_ripple.flow.json_arrows import with_json_arrows
from dbt_ripple.flow.keywords_as_names import DIALECTS, with_keywords_as_names
from dbt_ripple.flow.lateral_views import with_columns_of_views
from dbt_ripple.flow.leading_points import with_leading_points
from dbt_ripple.flow.lowering.parse_tree import name_key
from dbt_ripple.flow.lowering.scope import Unsupported
from dbt_ripple.flow.lowering.walk import MAX_NESTING
from dbt_ripple.flow.pipe_syntax import without_unknown_pipes
from dbt_ripple.flow.rowset_schemas import ROWSET, with_schemas_as_arguments
from dbt_ripple.flow.spaced_operators import SPACED, SPACED_IN, with_whole_operators
from dbt_ripple.flow.sqlglot_versions import in_new_form, may_not_end, misread, names_kept
from dbt_ripple.flow.token_kinds import (
    OPENING,
    UNARY,
    has_arrow,
    has_pipe,
    has_values_side_by_side,
    marks_of,
    may_have_bracketed_list,
    may_have_keywords_as_names,
    may_have_lateral_view,
    may_have_leading_point,
    may_nest,
)
from dbt_ripple.reasons import Code

_T: Final = sqlglot.TokenType
_CLOSING: Final = frozenset({_T.R_PAREN, _T.R_BRACKET, _T.R_BRACE, _T.END})
_TYPE_BRACKETS: Final = frozenset({_T.LT, _T.GT, _T.COMMA})
_NESTED_TYPES: Final = frozenset({_T.ARRAY, _T.MAP, _T.STRUCT})


class ParsedText:
    """One text, as sqlglot's tokenizer and parser read it.

    Args:
        sql: the text.
        dialect: the sqlglot dialect it is written in.

    Raises:
        Unsupported: where it nests deeper than `MAX_NESTING`.
        SqlglotError: where the tokenizer does not read it.
    """

    def __init__(self, sql: str, dialect: str) -> None:
        tokenizer, self._parser = _reader(dialect)
        self.dialect = dialect
        self.sql = with_spaces(sql, dialect, tokenizer.tokenize)
        self.tokens, self.marks = _tokens(tokenizer, self.sql, dialect)
        self.has_pipe = has_pipe(self.marks)
        if self.has_pipe:
            self.sql = without_unknown_pipes(self.sql, tokenizer.tokenize)
            self.tokens, self.marks = _tokens(tokenizer, self.sql, dialect)
        if may_nest(self.marks, MAX_NESTING) and _nesting(self.tokens) > MAX_NESTING:
            raise Unsupported(Code.NESTED_TOO_DEEP(levels=MAX_NESTING))
        if len(_TWICE.findall(self.sql)) > _TWICE_WITHIN and _twice_within(self.tokens):
            raise Unsupported(Code.NESTED_TOO_DEEP(levels=_TWICE_WITHIN))

    def statements(self) -> list[Any]:
        """The parse trees of its statements, made anew: lowering a tree destroys it.

        Raises:
            Unsupported: where the installed sqlglot takes one for another query.
            SqlglotError: where it does not read one.
        """
        if may_not_end(self.sql, self.tokens):
            raise Unsupported(Code.CANNOT_PARSE(error="NOT among the names of an alias"))
        try:
            trees = [s for s in self._parser.parse(self.tokens, self.sql) if s is not None]
        except (SqlglotError, RecursionError):
            raise
        except Exception as error:  # a builder of sqlglot that does not expect these arguments
            raise Unsupported(Code.CANNOT_PARSE(error=first_line(error))) from error
        if what := misread(self.sql, self.tokens, trees, self.dialect):
            raise Unsupported(f"{what}, which this version of sqlglot misreads")
        for tree in trees:
            in_new_form(tree)
            if has_arrow(self.marks):
                with_json_arrows(tree, self.dialect)
        return trees


def parse(sql: str, dialect: str) -> tuple[exp.Expression, Sequence[Any]] | None:
    """The parse tree of one statement, and its tokens; None where `lower` would not follow it."""
    try:
        text = ParsedText(sql, dialect)
        statements = [] if text.has_pipe else text.statements()
    except (Unsupported, SqlglotError, RecursionError):
        return None
    return (statements[0], text.tokens) if len(statements) == 1 else None


def _nesting(tokens: list[Any]) -> int:
    """How deep a query nests, read off its tokens before the parser recurses into it."""
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
            types = types + 1 if kind is _T.LT and previous in _NESTED_TYPES else 0
            deepest = max(deepest, types * 4)
        unary = unary + 1 if kind in UNARY else 0
        deepest = max(deepest, unary)
        previous = kind
    return deepest


_TWICE: Final = re.compile(r"\b(?:div0|div0null|nullifzero|zeroifnull)\s*\(", re.IGNORECASE)
"""Functions in whose place sqlglot puts a condition that has an argument twice."""
_TWICE_WITHIN: Final = 8
"""Levels of these within each other: each doubles what is in it."""


def _twice_within(tokens: list[Any]) -> bool:
    """Whether more than `_TWICE_WITHIN` calls of these functions stand within each other."""
    opened: list[bool] = []
    called = ""
    for token in tokens:
        kind = token.token_type
        if kind is _T.L_PAREN:
            opened.append(bool(_TWICE.fullmatch(f"{called}(")))
            if sum(opened) > _TWICE_WITHIN:
                return True
        elif kind is _T.R_PAREN and opened:
            opened.pop()
        called = token.text
    return False


_CHARACTER_TYPES: Final = {
    name: dict(sqlglot.parse_one(name, into=exp.DataType).args) for name in ("char", "varchar")
}
_parse_one = sqlglot.parse_one
_templates: dict[str, Any] = {}
"""Expressions with `:placeholders` that what writes a dialect is made of. sqlglot copies one to fill it in."""


def _parse_one_remembering(
    sql: str, read: Any = None, dialect: Any = None, into: Any = None, **options: Any
) -> Any:
    """`sqlglot.parse_one`, which knows some answers by heart."""
    if not read and not dialect:
        if into is exp.DataType and sql in _CHARACTER_TYPES:
            return exp.DataType(**_CHARACTER_TYPES[sql])
        if into is None and ":" in sql:
            if sql not in _templates:
                _templates[sql] = _parse_one(sql, **options)
            return _templates[sql]
    return _parse_one(sql, read, dialect, into, **options)


@contextmanager
def character_types_remembered() -> Iterator[None]:
    """Put `_parse_one_remembering` in the place of `sqlglot.parse_one` for as long as a query is lowered.

    For every type in a query, the Hive family of dialects asks whether it is "char" or "varchar",
    and parses these two words anew to find out: a seventh of all the time it takes to parse. What
    writes DuckDB's SQL parses its templates anew for each output, before sqlglot 30.16.
    """
    sqlglot.parse_one = _parse_one_remembering
    try:
        yield
    finally:
        sqlglot.parse_one = _parse_one


_readers = threading.local()


def _reader(dialect: str) -> tuple[Any, Any]:
    """The tokenizer and parser of a dialect: making them anew costs as much as a small query."""
    readers: dict[str, tuple[Any, Any]] = _readers.__dict__
    if dialect not in readers:
        reader = Dialect.get_or_raise(dialect)
        names_kept(reader, name_key(dialect))
        reader.INDEX_OFFSET = 0  # see `as_written`
        readers[dialect] = (reader.tokenizer(), reader.parser())
    return readers[dialect]


def _tokens(tokenizer: Any, sql: str, dialect: str) -> tuple[list[Any], bytes]:
    """The tokens of a text, and what each of them is."""
    tokens = tokenizer.tokenize(sql)
    marks = marks_of(tokens)
    rewritten = tokens
    if has_values_side_by_side(marks):
        rewritten = with_doubled_quotes(sql, rewritten, dialect)
    if may_have_leading_point(marks):
        rewritten = with_leading_points(sql, rewritten)
    if "0x" in sql or "0X" in sql:
        rewritten = with_empty_hexadecimals(sql, rewritten)
    if may_have_bracketed_list(marks):
        rewritten = with_lists_as_calls(rewritten, dialect)
    if dialect == "tsql" and ROWSET.search(sql):
        rewritten = with_schemas_as_arguments(sql, rewritten)
    if dialect in SPACED_IN and SPACED.search(sql):
        rewritten = with_whole_operators(rewritten, dialect)
    if dialect in DIALECTS:
        if may_have_keywords_as_names(marks):
            rewritten = with_keywords_as_names(rewritten)
        if may_have_lateral_view(marks):
            rewritten = with_columns_of_views(rewritten)
    return rewritten, marks if rewritten is tokens else marks_of(rewritten)


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
