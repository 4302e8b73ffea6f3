"""What reading asks of dialects: which of them have a construct, and how each is read and written."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

HAVE_LAMBDAS: Final = frozenset(
    """
    athena bigquery clickhouse databricks dremio dune hive presto snowflake spark trino
    """.split()
)
"""Those in which `->` in a call is a lambda, in whichever call."""
GIVEN_LAMBDAS: Final[dict[str, frozenset[str] | tuple[str, ...]]] = {
    "duckdb": frozenset(
        """
        apply array_apply array_filter array_reduce array_transform arrayfilter filter invoke
        list_apply list_filter list_reduce list_transform reduce transform
        """.split()
    ),
    "doris": ("array", "map", "transform", "any_match", "all_match"),
    "starrocks": ("array", "map", "transform", "any_match", "all_match"),
}
"""Functions whose `->` is a lambda: their names, as sqlglot has them, or what these begin with."""
LIKE_POSTGRES: Final = frozenset({"materialize", "postgres", "redshift", "risingwave"})
NO_KEYWORD_RESERVED: Final = frozenset({"databricks", "spark"})
"""Those of engines to which no keyword is reserved."""
NOT_IS_A_MARK: Final = frozenset({"spark", "databricks"})
"""Those whose `!` is NOT wherever NOT may stand."""
SIDE_BY_SIDE: Final = frozenset({"databricks", "hive", "spark", "spark2"})
"""Those to which two texts side by side are one."""
SPACED_OPERATORS: Final = frozenset({"oracle", "tsql"})
"""Those that let an operator have white space within."""


@cache
def dialects() -> list[str]:
    """The dialects that can be read at all."""
    return sorted(name for name in Dialect.classes if name)


@cache
def as_written(dialect: str) -> Dialect:
    """A dialect whose trees hold the index of a list as the text does.

    sqlglot counts from 0 in its trees, of engines that count from 1, but only where it sees that an
    index is a whole number: `l[2]` would hold the same 1 that `l[i]` has of an i that is 1. What is
    read in this way has to be written in it, too.
    """
    reader = Dialect.get_or_raise(dialect)
    reader.INDEX_OFFSET = 0
    return reader


def written(tree: Any, dialect: str) -> str:
    """A tree of this room as SQL of its dialect, without comments.

    Raises:
        SqlglotError, ValueError: where sqlglot cannot write it.
    """
    text: str = tree.sql(dialect=as_written(dialect), comments=False)
    return text


@cache
def name_key(dialect: str) -> str:
    """Where sqlglot keeps the name a call was written with."""
    return getattr(as_written(dialect), "ORIGINAL_NAME_META_KEY", None) or "name"


def function_name(node: Any) -> str:
    """The folded name of a function call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return str(node.key).lstrip("_")


def keywords(dialect: str) -> Iterable[str]:
    """The keywords of a dialect, in upper case."""
    found: Iterable[str] = as_written(dialect).tokenizer_class.KEYWORDS
    return found
