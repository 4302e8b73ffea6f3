"""What a bare name means if a column of the sources and an alias of the select list share it.

There is one table for all dialects. `docs/name-resolution.md` has the same table with the source
of each row, and `tests/flow/test_name_resolution.py` executes it on DuckDB and Spark. If a dialect
or a clause is not in it, both meanings count (`EITHER`).
"""

from __future__ import annotations

from functools import cache
from typing import Final

# Which meaning a name has, in the order in which they are looked for.
SOURCE: Final = 0
"""A column of the sources, or of a query around; an alias is not seen."""
SOURCE_FIRST: Final = 1
"""A column of the sources, then an alias, then a column of a query around."""
ALIAS_FIRST: Final = 2
"""An alias, then a column of the sources."""
KEY_FIRST: Final = 3
"""A column of the sources that is a key of GROUP BY, then an alias, then any column."""
EITHER: Final = 4
"""It is not known which: both count."""

# The places in which a name can stand. "in" is inside an expression; bare is the name alone.
SELECT: Final = "select"
WHERE: Final = "where"
WINDOW: Final = "window"
GROUP: Final = "group"
GROUP_IN: Final = "group in"
HAVING: Final = "having"
HAVING_AGGREGATE: Final = "having aggregate"
HAVING_ALL: Final = "having all"
"""HAVING behind GROUP BY ALL, whose keys are not known before the select list is."""
QUALIFY: Final = "qualify"
DISTINCT_ON: Final = "distinct on"
DISTINCT_ON_IN: Final = "distinct on in"
ORDER: Final = "order"
ORDER_IN: Final = "order in"
ORDER_AGGREGATE: Final = "order aggregate"
ORDER_WINDOW: Final = "order window"
SUBQUERY: Final = "subquery"
"""In a subquery of HAVING, QUALIFY or ORDER BY: what it sees of the query around."""
PLACES: Final = (
    SELECT, WHERE, WINDOW, GROUP, GROUP_IN, HAVING, HAVING_AGGREGATE, HAVING_ALL, QUALIFY, DISTINCT_ON,
    DISTINCT_ON_IN, ORDER, ORDER_IN, ORDER_AGGREGATE, ORDER_WINDOW, SUBQUERY,
)  # fmt: skip

_STANDARD: Final = {
    SELECT: SOURCE,
    WHERE: SOURCE,
    WINDOW: SOURCE,
    HAVING_AGGREGATE: SOURCE,
    ORDER: ALIAS_FIRST,
}
"""What every dialect without aliases of its own reading does, as the standard says."""
_POSTGRES: Final = {
    **_STANDARD,
    GROUP: SOURCE_FIRST,
    GROUP_IN: SOURCE,
    HAVING: SOURCE,
    DISTINCT_ON: ALIAS_FIRST,
    DISTINCT_ON_IN: SOURCE,
    ORDER_IN: SOURCE,
    ORDER_AGGREGATE: SOURCE,
    ORDER_WINDOW: SOURCE,
    SUBQUERY: SOURCE,
}
_SPARK: Final = {
    SELECT: SOURCE_FIRST,
    WHERE: SOURCE,
    WINDOW: SOURCE_FIRST,
    GROUP: SOURCE_FIRST,
    GROUP_IN: SOURCE_FIRST,
    HAVING: KEY_FIRST,
    HAVING_AGGREGATE: SOURCE,
    SUBQUERY: SOURCE_FIRST,
    ORDER: ALIAS_FIRST,
    ORDER_IN: ALIAS_FIRST,
    ORDER_AGGREGATE: SOURCE,
}
RESOLUTION: Final[dict[str, dict[str, int]]] = {
    "bigquery": {**_STANDARD, SELECT: SOURCE_FIRST, WHERE: SOURCE_FIRST},
    "databricks": {**_SPARK, QUALIFY: SOURCE_FIRST},
    "duckdb": {
        SELECT: SOURCE_FIRST,
        WHERE: SOURCE_FIRST,
        WINDOW: SOURCE_FIRST,
        GROUP: SOURCE_FIRST,
        GROUP_IN: SOURCE,
        HAVING: KEY_FIRST,
        HAVING_AGGREGATE: SOURCE,
        HAVING_ALL: ALIAS_FIRST,
        QUALIFY: SOURCE_FIRST,
        DISTINCT_ON: ALIAS_FIRST,
        DISTINCT_ON_IN: SOURCE_FIRST,
        ORDER: ALIAS_FIRST,
        ORDER_IN: SOURCE_FIRST,
        ORDER_AGGREGATE: SOURCE_FIRST,
        ORDER_WINDOW: SOURCE_FIRST,
        SUBQUERY: SOURCE_FIRST,
    },
    "mysql": {**_STANDARD, GROUP: SOURCE_FIRST},
    "oracle": {SELECT: SOURCE, WHERE: SOURCE, WINDOW: SOURCE, ORDER: ALIAS_FIRST},
    "postgres": _POSTGRES,
    "redshift": {SELECT: SOURCE_FIRST, WINDOW: SOURCE_FIRST, ORDER: ALIAS_FIRST},
    "snowflake": {
        SELECT: SOURCE_FIRST,
        WHERE: SOURCE_FIRST,
        WINDOW: SOURCE_FIRST,
        GROUP: SOURCE_FIRST,
        ORDER: ALIAS_FIRST,
    },
    "spark": _SPARK,
    "trino": {**_STANDARD, GROUP: SOURCE, GROUP_IN: SOURCE, HAVING: SOURCE},
    "tsql": {**_STANDARD, GROUP: SOURCE, GROUP_IN: SOURCE, HAVING: SOURCE},
}
"""Dialect -> place -> which meaning a name has there; `EITHER` where no documentation says it."""


MERGED_IN_PLACE: Final = frozenset({"duckdb"})
"""Dialects whose star leaves a column of USING or NATURAL where the left side has it; elsewhere first."""

LOOKS_FARTHER: Final = frozenset({"databricks", "duckdb", "spark"})
"""Dialects that look for `a.b` in the queries around where the nearest relation a has no column b."""

NEARER_STRUCT: Final = LOOKS_FARTHER
"""Dialects in which `a.b` is a field of a struct column a of the query itself, before it is a column of a
relation a of a query around. Elsewhere both count."""

ALIAS_IN_FROM: Final = frozenset({"snowflake"})
"""Dialects in which the condition of a join sees an alias of the select list, behind the columns. Of
those that have no row in `RESOLUTION` nothing is known."""

ROW_FIRST: Final = frozenset({"duckdb"})
"""Dialects in which the name of a relation, as a value its row, is found right behind the columns of its
query: before an alias of the select list, and before all of a query around."""

ROW_LAST: Final = frozenset(
    {"athena", "databricks", "mysql", "oracle", "postgres", "presto", "snowflake", "spark", "sqlite",
     "trino", "tsql"}
)  # fmt: skip
"""Dialects in which it is found behind all other meanings, or is none. Elsewhere both count."""

LATERAL_UNSAID: Final = frozenset({"duckdb"})
"""Dialects in which a query in FROM may read what stands before it there without the word LATERAL."""

COMMA_IS_A_JOIN: Final = frozenset({"databricks", "spark"})
"""Dialects in which what stands behind a comma is joined from left to right as behind a CROSS JOIN, so
that USING and NATURAL behind it look at all before it (Spark: unless spark.sql.ansi.relationPrecedence)."""

COMMA_ENDS_JOINS: Final = frozenset({"duckdb", "postgres"})
"""Dialects in which NATURAL looks at what stands behind the last comma only, and no JOIN but CROSS JOIN
goes without a condition."""

ORDERED_BY_ANY_BRANCH: Final = frozenset({"duckdb"})
"""Dialects in which ORDER BY after a set operation knows the names of every branch, by position."""


@cache
def resolution(dialect: str) -> dict[str, int]:
    """Which meaning a name has in each place, in this dialect."""
    overrides = RESOLUTION.get(dialect, {})
    return {place: overrides.get(place, EITHER) for place in PLACES}
