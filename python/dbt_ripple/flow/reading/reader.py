"""The one place where SQL is divided into tokens and parsed: nothing else in the package calls sqlglot for that.

A text is repaired on its way (see the package): whoever asks here sees what the engine reads, or an error.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Final, NamedTuple

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError, TokenError

from dbt_ripple.flow.reading.dialects import name_key
from dbt_ripple.flow.reading.dropped_tokens import DroppedTokens, dropped_tokens
from dbt_ripple.flow.reading.refusals import Unsupported, first_line, refuse_deep, refuse_misread
from dbt_ripple.flow.reading.sqlglot_versions import in_new_form, may_not_end, misread, names_kept
from dbt_ripple.flow.reading.text_repairs import (
    with_aliases,
    with_json_arrows,
    with_spaces,
    without_unknown_pipes,
    without_unparsed_clauses,
)
from dbt_ripple.flow.reading.token_kinds import has_arrow, has_pipe
from dbt_ripple.flow.reading.token_repairs import repaired
from dbt_ripple.reasons import Code

UNREAD: Final = (SqlglotError, Unsupported, RecursionError, ValueError)
"""What the functions here raise of a text that is not read, and what writing a tree as SQL raises."""

# What sqlglot takes for a command, it says; here that is an answer.
logging.getLogger("sqlglot").addFilter(
    lambda record: "Falling back to parsing as a 'Command'" not in record.getMessage()
)


class _Reader(NamedTuple):
    """sqlglot's reader of a dialect."""

    dialect: Dialect
    tokenizer: Any
    parser: Any


_readers = threading.local()


def _reader(dialect: str) -> _Reader:
    """The reader of a dialect, for each thread one: making one anew costs as much as a small query."""
    readers: dict[str, _Reader] = _readers.__dict__
    if dialect not in readers:
        reader = Dialect.get_or_raise(dialect)
        names_kept(reader, name_key(dialect))
        reader.INDEX_OFFSET = 0  # see `as_written`
        readers[dialect] = _Reader(reader, reader.tokenizer(), reader.parser())
    return readers[dialect]


class Text:
    """One text, its tokens and its parse trees.

    Args:
        sql: the text.
        dialect: the sqlglot dialect it is written in.

    Attributes:
        sql: the text as it was repaired; where it has no pipes, as long as before.
        tokens: of the text.
        marks: what each of them is (`token_kinds`).

    Raises:
        Unsupported: where it nests deeper than `MAX_NESTING`.
        SqlglotError: where the tokenizer does not read it.
    """

    def __init__(self, sql: str, dialect: str) -> None:
        self._reader = reader = _reader(dialect)
        self.dialect = dialect
        tokenize = reader.tokenizer.tokenize
        self.sql = with_spaces(sql, dialect, tokenize)
        self.tokens, self.marks = repaired(self.sql, tokenize(self.sql), dialect)
        self.has_pipe = has_pipe(self.marks)
        if self.has_pipe:
            self.sql = without_unknown_pipes(self.sql, tokenize)
            self.tokens, self.marks = repaired(self.sql, tokenize(self.sql), dialect)
        refuse_deep(self.sql, self.tokens, self.marks)

    def statements(self, *, partly: bool = False) -> list[Any]:
        """The parse trees of its statements, made anew: lowering a tree destroys it.

        Args:
            partly: whether what is no SQL to sqlglot is left out of the trees, which may then be none.

        Raises:
            Unsupported: where the installed sqlglot takes one for another query.
            SqlglotError: where it does not read one.
        """
        if may_not_end(self.sql, self.tokens):
            raise Unsupported(Code.CANNOT_PARSE(error="NOT among the names of an alias"))
        parser = self._reader.parser
        if partly:
            parser = self._reader.dialect.parser(error_level=ErrorLevel.IGNORE)
        try:
            trees = [s for s in parser.parse(self.tokens, self.sql) if s is not None]
        except (SqlglotError, RecursionError):
            raise
        except Exception as error:  # a builder of sqlglot that does not expect these arguments
            raise Unsupported(Code.CANNOT_PARSE(error=first_line(error))) from error
        if what := misread(self.sql, self.tokens, trees, self.dialect):
            raise Unsupported(f"{what}, which this version of sqlglot misreads")
        for tree in trees:
            in_new_form(tree)
            with_aliases(tree, self.dialect)
            if has_arrow(self.marks):
                with_json_arrows(tree, self.dialect)
        return trees

    def statement(self) -> Any:
        """The parse tree of its one statement, made anew.

        Raises:
            Unsupported: there are more or none, or sqlglot reads it otherwise than the engine.
            SqlglotError: sqlglot does not read it.
        """
        trees = self.statements()
        if len(trees) != 1:
            raise Unsupported(Code.NOT_ONE_QUERY(statements=len(trees)))
        refuse_misread(self.sql, self.tokens, self.marks, trees[0], self.dialect)
        return trees[0]

    def dropped(self, tree: Any) -> DroppedTokens:
        """What of the text one of its trees does not hold."""
        return dropped_tokens(self.sql, self.tokens, self.marks, tree, self.dialect)

    def shorter(self) -> tuple[Text, list[str]] | None:
        """The text without clauses that sqlglot does not parse, and these; None where it has none."""
        shorter = without_unparsed_clauses(self.sql, self.tokens, self.dialect)
        return None if shorter is None else (Text(shorter[0], self.dialect), shorter[1])


class StatementText(NamedTuple):
    """One statement of a script.

    Attributes:
        sql: its text, with the comments before it.
        tokens: its tokens, whose places are those in the script.
    """

    sql: str
    tokens: list[Any]


def tokenize(sql: str, dialect: str) -> list[Any]:
    """The tokens of a text, whether it can be parsed or not.

    Raises:
        SqlglotError: the text cannot be divided into tokens.
    """
    read = _reader(dialect).tokenizer.tokenize
    sql = with_spaces(sql, dialect, read)
    return repaired(sql, read(sql), dialect)[0]


def tokens_as_they_stand(sql: str, dialect: str) -> list[Any]:
    """Sqlglot's own tokens of a text, each a piece of it: to show the text, not to say what it means.

    Raises:
        SqlglotError: the text cannot be divided into tokens.
    """
    tokens: list[Any] = _reader(dialect).tokenizer.tokenize(sql)
    return tokens


def statement_texts(sql: str, dialect: str) -> list[StatementText]:
    """The statements of a script; a semicolon in a string or a comment ends none.

    Raises:
        SqlglotError: the text cannot be divided into tokens.
    """
    texts: list[StatementText] = []
    tokens: list[Any] = []
    start = 0
    for token in (*tokenize(sql, dialect), None):
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            tokens.append(token)
            continue
        text = sql[start : token.start] if token is not None else sql[start:]
        if tokens:
            texts.append(StatementText(text.strip(), tokens))
        tokens = []
        start = token.end + 1 if token is not None else start
    return texts


def parse_statement(sql: str, dialect: str) -> Any:
    """The parse tree of a text of one statement, a query mostly.

    Raises:
        SqlglotError, Unsupported, RecursionError: it is not read; see `UNREAD`.
    """
    return Text(sql, dialect).statement()


def parse_statements(sql: str, dialect: str, *, partly: bool = False) -> list[Any]:
    """The parse trees of the statements of a text.

    Args:
        sql: the text.
        dialect: it is written in.
        partly: whether what is no SQL to sqlglot is left out of the trees.

    Raises:
        SqlglotError, Unsupported, RecursionError: it is not read; see `UNREAD`.
    """
    trees = Text(sql, dialect).statements(partly=partly)
    return [tree for tree in trees if not isinstance(tree, exp.Semicolon)]


def parse_followed(sql: str, dialect: str) -> tuple[Any, list[Any]] | None:
    """The parse tree of one statement, and its tokens; None where `lower` would not follow it."""
    try:
        text = Text(sql, dialect)
        return None if text.has_pipe else (text.statement(), text.tokens)
    except UNREAD:
        return None


def data_type(text: str, dialect: str) -> exp.DataType:
    """The type of a name of one.

    Raises:
        SqlglotError, ValueError: it is none.
    """
    return exp.DataType.build(text, dialect=dialect, udt=False)


def table_named(name: str, dialect: str) -> exp.Table:
    """The relation of a name with points and quotes in it, as a query would have it.

    Raises:
        SqlglotError, ValueError: it is no name.
    """
    return exp.to_table(name, dialect=dialect)


HIDDEN: Final = "…"
_DIGITS: Final = 5
"""Digits up to which a number stays: `rate / 100` tells what was changed, a telephone number does not."""

_STRINGS: Final = frozenset(kind for kind in TokenType if kind.name.endswith("STRING"))


def without_values(sql: str, dialect: str) -> str | None:
    """SQL in one line with an ellipsis for each string, and for each number of more than five digits.

    Comments are left out. None is for text that cannot be read.

    Example:
        >>> without_values("case when email = 'x@y.z' then rate / 100 end", "duckdb")
        "case when email = '…' then rate / 100 end"
        >>> without_values("phone in (4915112345678, 4915112345679L) -- of x@y.z", "spark")
        'phone in (…, …)'
    """
    try:
        tokens = tokens_as_they_stand(sql, dialect)
    except TokenError:
        return None
    parts: list[str] = []
    end = 0
    for token in tokens:
        if token.start < end:  # sqlglot makes a cast of `1L`: it has read that already
            continue
        if parts and sql[end : token.start]:
            parts.append(" ")
        text = sql[token.start : token.end + 1]
        end = token.end + 1
        if token.token_type in _STRINGS:
            text = f"'{HIDDEN}'"
        elif token.token_type is TokenType.NUMBER and sum(map(str.isdigit, text)) > _DIGITS:
            text = HIDDEN
        parts.append(text)
    return "".join(parts).strip()
