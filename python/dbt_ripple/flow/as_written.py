"""A dialect of sqlglot that leaves the index of a list as it is written."""

from __future__ import annotations

from functools import cache

from sqlglot.dialects.dialect import Dialect


@cache
def as_written(dialect: str) -> Dialect:
    """A dialect whose trees hold the index of a list as the text does.

    sqlglot counts from 0 in its trees, of engines that count from 1, but only where it sees that an
    index is a whole number: `l[2]` would hold the same 1 that `l[i]` has of an i that is 1. What it
    read in this way has to be written in it, too.
    """
    reader = Dialect.get_or_raise(dialect)
    reader.INDEX_OFFSET = 0
    return reader
