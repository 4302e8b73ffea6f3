"""The SQL by which an engine hashes the bag of rows of a relation over some of its columns.

The hash does not depend on the order of the rows, counts duplicates, tells NULL from every value,
and has at least 128 bits. Each row becomes a text from which its values can be read back. The
text's MD5 gives two numbers, and these are summed over all rows, next to the number of rows. So
equal hashes mean equal bags, up to chance. Values without such a text (maps, variants, floating
point numbers that the engine rounds) are not hashed, and then nothing counts as equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple


class HashedColumn(NamedTuple):
    """A column as its engine describes it."""

    name: str
    type: str


class NotHashed(Exception):  # noqa: N818 - it says what is so
    """Some columns cannot be hashed; the message says which, and of what type they are."""


class _Engine(NamedTuple):
    quote: str
    text: Callable[[str, str], str | None]
    """A column in quotes and its type -> its text, NULL for NULL; None where it has none."""
    row: Callable[[Sequence[str]], str]
    hashes: str
    """Numbers that add up, of ``{row}``."""
    place: str | None = None
    """The place of a row in a table, where the engine keeps it."""


def engines() -> list[str]:
    """The adapters whose relations can be hashed."""
    return sorted(_ENGINES)


def hash_sql(
    adapter: str, relation: str, columns: Sequence[HashedColumn], *, in_order: bool = False
) -> str:
    """A query of one row: how many rows a relation has, and what their hashes add up to.

    Args:
        adapter: the adapter's type, one of `engines`.
        relation: its name, as SQL.
        columns: those that count; of none of them only the number of rows is told.
        in_order: whether the place of each row counts, too.

    Raises:
        NotHashed: of one of the columns.
    """
    return hashes_sql(adapter, relation, [row_sql(adapter, columns, in_order=in_order)])


def row_sql(adapter: str, columns: Sequence[HashedColumn], *, in_order: bool = False) -> str:
    """A row's text over some columns, as SQL; empty where none of them counts.

    Raises:
        NotHashed: of one of the columns.
    """
    engine = _ENGINES[adapter]
    texts, without = [], []
    for column in columns:
        quoted = engine.quote + column.name.replace(engine.quote, 2 * engine.quote) + engine.quote
        text = engine.text(quoted, column.type.strip().lower())
        if text is None:
            without.append(f"{column.name} ({column.type})")
        else:
            texts.append(text)
    if without:
        raise NotHashed(f"no exact hash of {', '.join(without)}")
    if in_order:
        if engine.place is None:
            raise NotHashed(f"rows of {adapter} have no order that could be seen")
        texts.append(engine.place)
    return engine.row(texts) if texts else ""


def hashes_sql(adapter: str, relation: str, rows: Sequence[str]) -> str:
    """A query of one row that scans a relation once: the number of rows, then the hashes of each text.

    Args:
        adapter: the adapter's type, one of `engines`.
        relation: its name, as SQL.
        rows: texts of a row, each as `row_sql` makes it.
    """
    named = {row: f"ripple_row_{i}" for i, row in enumerate(dict.fromkeys(filter(None, rows)))}
    if not named:
        return f"select count(*) from {relation}"
    hashes = [_ENGINES[adapter].hashes.format(row=name) for name in named.values()]
    texts = ",\n".join(f"{row} as {name}" for row, name in named.items())
    return f"select count(*), {', '.join(hashes)}\nfrom (select {texts} from {relation}) as ripple_rows"


def hashes_of(
    adapter: str, rows: Sequence[str], values: Sequence[Any]
) -> dict[str, tuple[Any, ...]]:
    """What `hashes_sql` found: of each text of a row the number of rows and its hashes."""
    texts = list(dict.fromkeys(filter(None, rows)))
    each = _ENGINES[adapter].hashes.count("{row}")
    hashed = {
        text: (values[0], *values[1 + i * each : 1 + (i + 1) * each])
        for i, text in enumerate(texts)
    }
    return {"": (values[0],), **hashed}


def _by_type(exact: frozenset[str], cast: str) -> Callable[[str, str], str | None]:
    def text(column: str, type_name: str) -> str | None:
        # What follows the brackets counts: `timestamp(6) with time zone`, `varchar(9) collate x`.
        plain = re.sub(r"\([^()]*\)", "", type_name)
        return cast.format(column) if " ".join(plain.split()) in exact else None

    return text


def _words(type_name: str) -> frozenset[str]:
    return frozenset(name.strip() for name in type_name.split(",") if name.strip())


def _with_lengths(length: str, join: str) -> Callable[[Sequence[str]], str]:
    """A row's text: each value behind its length, which no value can imitate; NULL has none."""

    def row(texts: Sequence[str]) -> str:
        parts = [
            f"case when {t} is null then 'n' else {join.format(f'{length.format(t)}', _COLON, t)} end"
            for t in texts
        ]
        return parts[0] if len(parts) == 1 else "concat(" + ",\n  ".join(parts) + ")"

    return row


_COLON: Final = "':'"
_CONCAT: Final = "concat({}, {}, {})"

_DUCKDB_EXACT: Final = _words(
    """boolean, tinyint, smallint, integer, bigint, hugeint, utinyint, usmallint, uinteger, ubigint,
    uhugeint, decimal, varchar, date, time, timestamp, timestamp_s, timestamp_ms, timestamp_ns,
    timestamp with time zone, time with time zone, uuid, enum, blob, interval, float, double"""
)
"""DuckDB writes every float with the digits that tell it from its neighbours, and the sign of zero."""


def _of_duckdb(column: str, type_name: str) -> str | None:
    if type_name.endswith("]") or type_name.startswith(
        ("struct", "map", "union", "variant", "json")
    ):
        return None
    if type_name.startswith("enum("):
        type_name = "enum"
    plain = re.sub(r"\([^()]*\)", "", type_name)
    return f"cast({column} as varchar)" if " ".join(plain.split()) in _DUCKDB_EXACT else None


_SPARK_EXACT: Final = _words(
    """boolean, tinyint, byte, smallint, short, int, integer, bigint, long, decimal, string, varchar, char,
    date, timestamp, timestamp_ntz, float, double"""
)
"""Java writes every float with the digits that tell it from its neighbours, and the sign of zero."""

_SNOWFLAKE_EXACT: Final = _words(
    """boolean, number, decimal, numeric, int, integer, bigint, smallint, tinyint, byteint, varchar, text, string,
    char, character, character varying, date, time"""
)
"""Its timestamps are written by the session's format, which may leave digits out; floats are rounded."""

_BIGQUERY_EXACT: Final = _words(
    "bool, boolean, int64, integer, int, numeric, bignumeric, string, date, time, datetime, timestamp"
)
"""It writes floats without the sign of zero."""

_SPARK: Final = _Engine(
    "`",
    _by_type(_SPARK_EXACT, "cast({} as string)"),
    _with_lengths("cast(length({}) as string)", _CONCAT),
    "sum(cast(conv(substr(md5({row}), 1, 16), 16, 10) as decimal(20, 0))), "
    "sum(cast(conv(substr(md5({row}), 17, 16), 16, 10) as decimal(20, 0)))",
)


def _of_snowflake(column: str, type_name: str) -> str | None:
    plain = re.sub(r"\([^()]*\)", "", type_name)
    if plain in ("timestamp_ntz", "timestamp_ltz", "timestamp_tz", "datetime"):
        zone = "" if plain in ("timestamp_ntz", "datetime") else "TZHTZM"
        return f"to_varchar({column}, 'YYYY-MM-DD HH24:MI:SS.FF9{zone}')"
    if plain == "time":
        return f"to_varchar({column}, 'HH24:MI:SS.FF9')"
    if plain == "date":
        return f"to_varchar({column}, 'YYYY-MM-DD')"
    return f"to_varchar({column})" if " ".join(plain.split()) in _SNOWFLAKE_EXACT else None


_ENGINES: Final = {
    "duckdb": _Engine(
        '"',
        _of_duckdb,
        _with_lengths("length({})", _CONCAT),
        "sum(md5_number_lower({row})::hugeint), sum(md5_number_upper({row})::hugeint)",
        "cast(row_number() over (order by rowid) as varchar)",
    ),
    "spark": _SPARK,
    "databricks": _SPARK,
    "snowflake": _Engine(
        '"',
        _of_snowflake,
        _with_lengths("to_varchar(length({}))", _CONCAT),
        "sum(md5_number_lower64({row})), sum(md5_number_upper64({row}))",
    ),
    "bigquery": _Engine(
        "`",
        _by_type(_BIGQUERY_EXACT, "cast({} as string)"),
        _with_lengths("cast(length({}) as string)", _CONCAT),
        "sum(cast(cast(concat('0x', substr(to_hex(md5({row})), 1, 15)) as int64) as bignumeric)), "
        "sum(cast(cast(concat('0x', substr(to_hex(md5({row})), 16, 15)) as int64) as bignumeric)), "
        "sum(cast(cast(concat('0x', substr(to_hex(md5({row})), 31, 2)) as int64) as bignumeric))",
    ),
}
