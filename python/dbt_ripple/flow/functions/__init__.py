"""What kind of function a name is, engine by engine.

The lists beside this module are plain text, one file an engine, a section a kind. Those of DuckDB,
Spark, PostgreSQL, SQLite and ClickHouse come out of their catalogues (``python/tools/functions.py``);
the others are written by hand, from the documentation that each names in its first line.

A name that is not on its engine's list is a user's function, a macro of the database, or a mistake:
it is *unknown*, and so it may make one row of many, or many of one. A dialect without a list asks
all lists: a name of which they say one thing is that, any other is unknown.

At the end are names of functions and columns that mean something to us, whatever their kind.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import Final, Literal

Kind = Literal["scalar", "aggregate", "window", "generator", "unknown"]

ENGINES: Final = (
    "bigquery", "clickhouse", "databricks", "duckdb", "hive", "mysql", "oracle", "postgres",
    "redshift", "snowflake", "spark", "sqlite", "trino", "tsql",
)  # fmt: skip

_LISTS: Final = {
    "athena": ("trino",),
    "databricks": ("databricks", "spark"),
    "dune": ("trino",),
    "fabric": ("tsql",),
    "presto": ("trino",),
    "spark2": ("spark", "hive"),
    **{engine: (engine,) for engine in ENGINES if engine != "databricks"},
}
"""The lists of a dialect; one that is not here has none."""


class Functions:
    """The functions of one dialect."""

    __slots__ = ("combinators", "kinds")

    def __init__(self, kinds: dict[str, Kind], combinators: tuple[str, ...] = ()) -> None:
        self.kinds = kinds
        self.combinators = combinators

    def kind(self, name: str) -> Kind:
        """The kind of a name in lower case, where it is called in an expression.

        Example:
            >>> duckdb = functions("duckdb")
            >>> duckdb.kind("kahan_sum"), duckdb.kind("list_sum"), duckdb.kind("no_such_function")
            ('aggregate', 'scalar', 'unknown')
        """
        kind = self.kinds.get(name)
        if kind is not None:
            return kind
        if self.combinators and self._combined(name):
            return "aggregate"
        return "unknown"

    def _combined(self, name: str) -> bool:
        """Whether a name is that of an aggregate with combinators behind it: ``sumIfOrNull``."""
        for combinator in self.combinators:
            if name.endswith(combinator):
                before = name[: -len(combinator)]
                if self.kinds.get(before) == "aggregate" or self._combined(before):
                    return True
        return False


@cache
def functions(dialect: str) -> Functions:
    """The functions of a sqlglot dialect."""
    lists = _LISTS.get(dialect)
    if lists is None:
        return Functions(_agreed([_read(engine) for engine in ENGINES]))
    sections = [_read(engine) for engine in lists]
    kinds: dict[str, Kind] = {}
    for section in reversed(sections):
        kinds.update(_agreed([section]))
    return Functions(kinds, tuple(sections[0].get("combinator", ())))


def _agreed(lists: list[dict[str, list[str]]]) -> dict[str, Kind]:
    """The kind of each name by all of these lists; unknown where two lists differ."""
    kinds: dict[str, Kind] = {}
    ranked: tuple[Kind, ...] = ("scalar", "aggregate", "generator")
    for sections in lists:
        for name in sections.get("window", ()):
            kinds.setdefault(name, "window")
    for kind in ranked:
        for sections in lists:
            for name in sections.get(kind, ()):
                if kinds.setdefault(name, kind) not in (kind, "window"):
                    kinds[name] = "unknown"
    return kinds


@cache
def _read(engine: str) -> dict[str, list[str]]:
    data = get_data(__name__, f"{engine}.txt")
    assert data is not None
    sections: dict[str, list[str]] = {}
    names: list[str] = []
    for line in data.decode().splitlines():
        if line.startswith("["):
            names = sections.setdefault(line[1:-1], [])
        elif not line.startswith("#"):
            names += line.split()
    return sections


BUILT_IN_SCHEMAS: Final = frozenset({"pg_catalog", "safe", "builtin", "system.builtin"})
"""What may stand before the name of an engine's own function (BigQuery's SAFE is no schema)."""

MASKING_NAMES: Final = frozenset(
    """
    aes_encrypt crc32 hash mask md5 md5_hex md5_binary murmur_hash sha sha1 sha1_hex sha2 sha2_hex
    sha224 sha256 sha384 sha512 try_aes_encrypt xxhash64 farm_fingerprint hash_agg hmac
    """.split()
)
"""Functions whose result does not give their argument back (OpenLineage's ``masking``)."""

MASK_MARK: Final = "dbt_ripple.mask"
"""``case 'dbt_ripple.mask' when 'dbt_ripple.mask' then <expression> end`` says that the expression
masks whatever it reads: what the package's macro ``mask`` compiles to."""

GENERATED_COLUMNS: Final = {
    "explode": ["col"],
    "explodeouter": ["col"],
    "explode_outer": ["col"],
    "posexplode": ["pos", "col"],
    "posexplodeouter": ["pos", "col"],
    "posexplode_outer": ["pos", "col"],
    "range": ["id"],
    "session_window": ["session_window"],
    "variant_explode": ["pos", "key", "value"],
    "variant_explode_outer": ["pos", "key", "value"],
    "window": ["window"],
}
"""Spark's column names where a generator's alias names none (maps differ and stay unknown)."""

VOLATILE_NAMES: Final = frozenset(
    """
    currval gen_random_uuid generate_uuid generateuuidv4 monotonically_increasing_id newid nextval
    rand rand_cauchy randn random randstr seq1 seq2 seq4 seq8 setval shuffle uniform uuid uuid_string
    uuidv4 uuidv7
    """.split()
)
"""Functions that give another value each time they are called, by DuckDB's catalogue and Spark's,
Postgres's and Snowflake's documentation."""

CASTS: Final = frozenset(
    "bigint binary boolean decimal double float int smallint string timestamp tinyint".split()
)
"""Functions of Spark that cast; like CAST, they leave a column its name."""

FLATTEN_COLUMNS: Final = ("seq", "key", "path", "index", "value", "this")
"""What Snowflake's FLATTEN puts out."""

ORDERED_SET_NAMES: Final = frozenset({"percentile_cont", "percentile_disc", "mode", "median"})
"""Aggregates whose value comes out of WITHIN GROUP (ORDER BY ...) itself."""
