"""Whether an engine accepts a query with a name that linking could not find, by dialect.

Engines differ in which parts of a query they check, and in which names they know without a
declaration. An answer is one of three: True (the engine refuses the query), False (it accepts it)
and None (not known). `docs/broken.md` has the table and the source of each answer: DuckDB, Spark,
PostgreSQL and SQLite were executed, the others follow their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from typing import Final

IsRefused = bool | None
"""Whether an engine refuses a query for something in it; None where that is not known."""


EXECUTED: Final = frozenset({"databricks", "duckdb", "spark", "sqlite"})
"""Dialects whose rules for names tests execute: only of these is it said that they refuse a name."""


class NameProblem(Enum):
    """Why linking could not take a name, or a position, for a column."""

    ABSENT = "no relation has it"
    ABSENT_IN_TABLE = "no relation has it, and one is a table, which may have hidden columns"
    AMBIGUOUS = "several relations have it"
    REPEATED = "a relation has it twice"
    REPEATED_IN_USING = "a relation of USING has it twice"
    SELECTED_TWICE = "a relation has it twice, and both are one column"
    POSITION = "the select list has no such position"
    NUMBER_OF_COLUMNS = "the branches of a set operation have different numbers of columns"
    HIDDEN = "its relation is the right side of a semi join"
    AGGREGATE_AS_KEY = "a key of GROUP BY is an aggregate"
    NOT_A_KEY = "it is no key of GROUP BY"
    ANOTHER_KEY = "it is no key of GROUP BY, though another column of the same values is"
    MAYBE_ALIAS = "it is an alias, unless a relation that does not list its columns has it"
    EXCEPT = "a `*` leaves it out and has none"
    RENAME = "a `*` renames it and has none"
    REPLACE = "a `*` replaces it and has none"
    OF_THE_LEFT_SIDE = "the left side of a join has it, and the right side may not read that"
    BEFORE_CROSS_JOIN = "what stands before a cross join has it"
    BESIDE = "a relation beside a query in FROM has it, and the query is not LATERAL"

    @property
    def is_of_name(self) -> bool:
        """Whether no relation has the name: the engine may know it otherwise."""
        return self in (NameProblem.ABSENT, NameProblem.ABSENT_IN_TABLE)


_READS_AS_ONE: Final = re.compile(r"[\w$@:#.`\"-]+(?: [\w$]+)*")

UNUSED_CTES: Final[dict[str, IsRefused]] = {
    "athena": True,
    "bigquery": True,
    "databricks": True,
    "duckdb": False,
    "fabric": True,
    "postgres": True,
    "spark": True,
    "sqlite": False,
    "trino": True,
    "tsql": True,
}
"""Whether an engine looks into a CTE that nothing reads."""

UNUSED_RECURSIVE_CTES: Final[dict[str, IsRefused]] = UNUSED_CTES | {
    "databricks": False,
    "spark": False,
}

_REFUSED: Final[dict[NameProblem, tuple[IsRefused, dict[str, IsRefused]]]] = {
    # Whether engines refuse it, and those of which it is otherwise.
    NameProblem.ABSENT: (True, {}),
    NameProblem.ABSENT_IN_TABLE: (True, {}),
    NameProblem.AMBIGUOUS: (True, {"clickhouse": None}),
    NameProblem.REPEATED: (
        True,
        {
            "clickhouse": None,
            "doris": None,
            "dremio": None,
            "duckdb": False,
            "exasol": None,
            "sqlite": False,
            "starrocks": None,
            "teradata": None,
        },
    ),
    NameProblem.REPEATED_IN_USING: (
        True,
        {
            "clickhouse": None,
            "databricks": False,
            "doris": None,
            "dremio": None,
            "duckdb": False,
            "exasol": None,
            "spark": False,
            "sqlite": False,
            "starrocks": None,
            "teradata": None,
        },
    ),
    NameProblem.SELECTED_TWICE: (
        True,
        {"databricks": None, "duckdb": False, "spark": None, "sqlite": False},
    ),
    NameProblem.POSITION: (True, dict.fromkeys(("clickhouse", "hive", "oracle", "tsql", "fabric"))),
    NameProblem.NUMBER_OF_COLUMNS: (True, {}),
    # What no engine is taken to refuse that was not asked.
    NameProblem.HIDDEN: (False, {"databricks": True, "duckdb": True, "spark": True}),
    NameProblem.AGGREGATE_AS_KEY: (False, {"duckdb": True}),
    NameProblem.NOT_A_KEY: (False, {"duckdb": True}),
    NameProblem.ANOTHER_KEY: (None, {"databricks": True, "duckdb": True, "spark": True}),
    NameProblem.EXCEPT: (True, {"clickhouse": False, "redshift": None, "snowflake": None}),
    # Of another relation of FROM. Spark takes nothing that is LATERAL on the right of such a join.
    NameProblem.OF_THE_LEFT_SIDE: (
        None,
        {"databricks": True, "duckdb": True, "postgres": True, "spark": True},
    ),
    NameProblem.BEFORE_CROSS_JOIN: (None, {"databricks": True, "spark": True}),
    NameProblem.BESIDE: (
        None,
        {"databricks": True, "duckdb": False, "postgres": True, "spark": True, "sqlite": True},
    ),
    NameProblem.MAYBE_ALIAS: (None, {}),
    NameProblem.RENAME: (None, {"duckdb": False}),
    NameProblem.REPLACE: (True, {"clickhouse": False, "snowflake": None}),
}


BY_TEXT_ALONE: Final = frozenset(
    {
        NameProblem.AGGREGATE_AS_KEY,
        NameProblem.AMBIGUOUS,
        NameProblem.ANOTHER_KEY,
        NameProblem.HIDDEN,
        NameProblem.NOT_A_KEY,
        NameProblem.NUMBER_OF_COLUMNS,
    }
)
"""Ways in which a query is refused whatever a column that nothing lists may be called.

No name is missing there: what is listed is there, and may not be used in this way.
"""


def refuses(problem: NameProblem, dialect: str) -> IsRefused:
    """Whether an engine refuses a query for a problem of a name (`Linked.problems`)."""
    answer, others = _REFUSED[problem]
    return others.get(dialect, answer)


def worst(answers: Collection[IsRefused]) -> IsRefused:
    """Whether an engine refuses a query, given whether it refuses each thing in it."""
    return True if True in answers else None if None in answers else False


# -- names that engines know without a declaration ---------------------------------------------------

_STANDARD: Final = frozenset(
    "current_catalog current_date current_role current_schema current_time current_timestamp "
    "current_user localtime localtimestamp session_user user".split()
)
CALLED_WITHOUT_BRACKETS: Final[dict[str, frozenset[str]]] = {
    "databricks": frozenset(
        "current_catalog current_date current_schema current_database current_time "
        "current_timestamp current_user grouping__id localtimestamp session_user user".split()
    ),
    "duckdb": _STANDARD,
    "materialize": _STANDARD,
    "mysql": frozenset(
        "current_date current_role current_time current_timestamp current_user localtime "
        "localtimestamp utc_date utc_time utc_timestamp".split()
    ),
    "oracle": frozenset(
        "current_date current_timestamp dbtimezone level localtimestamp rownum sessiontimezone "
        "sysdate systimestamp uid user connect_by_iscycle connect_by_isleaf".split()
    ),
    "postgres": _STANDARD,
    "redshift": _STANDARD | {"sysdate"},
    "risingwave": _STANDARD,
    "snowflake": frozenset(
        "current_date current_time current_timestamp current_user localtime localtimestamp".split()
    ),
    "spark": frozenset(
        "current_date current_time current_timestamp current_user grouping__id session_user "
        "user".split()
    ),
    "sqlite": frozenset("current_date current_time current_timestamp".split()),
    "trino": _STANDARD | {"current_path"},
    "tsql": frozenset("current_timestamp current_user session_user system_user user".split()),
}
"""Functions that need no brackets, which sqlglot may leave as columns."""

HIDDEN_IN_TABLES: Final[dict[str, frozenset[str]]] = {
    "athena": frozenset({"$bucket", "$file_modified_time", "$file_size", "$partition", "$path"}),
    "bigquery": frozenset("_file_name _partitiondate _partitiontime _table_suffix".split()),
    "clickhouse": frozenset(
        "_block_number _block_offset _file _part _part_index _part_offset _part_uuid "
        "_partition_id _partition_value _path _sample_factor _shard_num _size _table "
        "_time".split()
    ),
    "databricks": frozenset({"_metadata"}),
    "duckdb": frozenset({"rowid"}),
    "oracle": frozenset({"ora_rowscn", "rowid"}),
    "postgres": frozenset("cmax cmin ctid tableoid xmax xmin".split()),
    "snowflake": frozenset(
        "metadata$action metadata$file_content_key metadata$file_last_modified "
        "metadata$file_row_number metadata$filename metadata$isupdate metadata$row_id "
        "metadata$start_scan_time".split()
    ),
    "sqlite": frozenset({"_rowid_", "oid", "rowid"}),
    "trino": frozenset({"$bucket", "$file_modified_time", "$file_size", "$partition", "$path"}),
}
"""Columns that a stored table has and no ``*`` shows; views and subqueries have none.

Some are of certain tables only (BigQuery's ``_table_suffix`` of a wildcard), which no artifact tells.
"""

_MAY_BE_HIDDEN: Final[dict[str, frozenset[str]]] = {
    "duckdb": frozenset("file_index file_row_number filename snapshot_id".split()),
    "postgres": frozenset("epoch oid sysdate system_user".split()),
    "spark": frozenset(),
    "sqlite": frozenset(),
}
"""Of the engines that were asked: the names that only some of their tables, or versions, have."""

_KNOWN_SOMEWHERE: Final = frozenset(
    """
    _rowid_ casespecific cmax cmin connect_by_iscycle connect_by_isleaf ctid curdate
    current_catalog current_database current_date current_path current_role current_schema
    current_time current_timestamp current_timezone current_transform_group_for_type current_user
    current_warehouse currval dbtimezone default file_index file_row_number filename getdate
    grouping__id inf infinity lastval level localtime localtimestamp nan nextval now object_id
    object_value oid ora_rowscn row_id rowid rownum rowscn rowversion session session_user
    sessiontimezone snapshot_id sqlcode sqlerrm sysdate system_user systimestamp sysutcdatetime
    tableoid today uid unknown user utc_date utc_time utc_timestamp xmax xmin
    """.split()
)
"""Names that some engine has a value for where no column is called so."""

_LITERALS: Final = frozenset({"false", "null", "true"})
"""Values that sqlglot leaves as columns behind some operators (`@ null`)."""

_LOOKS_HIDDEN: Final = ("_", "$", "@", ":", "metadata$")


def is_hidden(name: str) -> bool:
    """Whether some engine may know a name that nothing declares: its rows decide its value."""
    plain = name.rpartition(".")[2].lower()
    return plain in _KNOWN_SOMEWHERE or plain.startswith(_LOOKS_HIDDEN) or "$" in plain


def name_is_refused(name: str, dialect: str, stored: bool) -> IsRefused:
    """Whether an engine refuses a name that no relation declares.

    Args:
        name: as it is reported, a qualifier included.
        dialect: of the query.
        stored: whether the query reads stored tables only, which have hidden columns.
    """
    qualifier, _, plain = name.lower().rpartition(".")
    if not qualifier and plain in _LITERALS:
        return False
    if not qualifier and plain in CALLED_WITHOUT_BRACKETS.get(dialect, ()):
        return False
    if plain in HIDDEN_IN_TABLES.get(dialect, ()):
        return False if stored else None
    if plain.startswith(_LOOKS_HIDDEN) or "$" in plain:
        return None
    if plain in _MAY_BE_HIDDEN.get(dialect, _KNOWN_SOMEWHERE):
        return None
    return True
