"""The engines that edits are built on: what a world needs of one, for DuckDB and for Spark."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class EngineError(Exception):
    """A query that the engine refused or failed at."""


class Interrupted(Exception):  # noqa: N818 - it says what happened
    """A query that was stopped because it took too long."""


class Engine(Protocol):
    """Runs SQL and holds base's relations, which can be put back after each edit.

    Attributes:
        dialect: sqlglot's name of it.
        quote: what stands around an identifier.
        time_limit: seconds an edit may take.
    """

    dialect: str
    quote: str
    time_limit: float

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement; the rows it returned."""
        ...

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """Names and types of what a query would return."""
        ...

    def signature(self, name: str, without: tuple[str, ...] = ()) -> tuple[Any, ...]:
        """Names, types and the bag of rows of a relation, some columns left out of the rows."""
        ...

    def order(self, name: str) -> str:
        """How the rows of a relation lie; empty where an engine may read them in another order each time."""
        ...

    def keep(self, unique_id: str, name: str, sql: str) -> None:
        """Make a relation of base, of what a query returns."""
        ...

    def kept(self, unique_id: str) -> str:
        """A name under which base's relation stays, whatever head does."""
        ...

    def make(self, unique_id: str, name: str, sql: str) -> None:
        """Make a relation of head in the place of base's."""
        ...

    def written(self, unique_id: str, name: str) -> str:
        """The table that holds a relation's rows, for hooks that change them."""
        ...

    def put_back(self, unique_id: str, name: str, *, of_base: bool) -> None:
        """Undo `make`."""
        ...

    def interrupt(self) -> None:
        """Stop what runs, from another thread."""
        ...


class DuckDB:
    """DuckDB; it attaches files only to read them."""

    dialect = "duckdb"
    quote = '"'
    time_limit = 6.0

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.rows("set threads = 1")
        self.rows("set timezone = 'UTC'")

    @classmethod
    def in_memory(cls, catalog: str, schemas: set[str], disk: Path) -> DuckDB:
        """An empty database as the project calls it, with dbt's own at hand as ``disk``."""
        engine = cls()
        engine.rows("attach ':memory:' as kept")
        engine.rows(f"attach ':memory:' as \"{catalog}\"")
        engine.rows(f"attach '{disk}' as disk (read_only)")
        for schema in sorted(schemas):
            engine.rows(f'create schema if not exists "{catalog}"."{schema}"')
        return engine

    @classmethod
    def reading(cls, catalog: str, disk: Path) -> DuckDB:
        """The database that dbt has built."""
        engine = cls()
        engine.rows(f"attach '{disk}' as \"{catalog}\" (read_only)")
        engine.rows(f'use "{catalog}"')  # where functions of the database are found
        return engine

    def close(self) -> None:
        """Let go of files."""
        self.connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(sql).fetchall()
        except duckdb.InterruptException as error:
            raise Interrupted(str(error)) from error
        except duckdb.Error as error:
            raise EngineError(f"{type(error).__name__}: {error}") from error

    def columns(self, sql: str) -> list[tuple[str, str]]:
        return [(row[0], str(row[1])) for row in self.rows(f"describe {sql}")]

    def signature(self, name: str, without: tuple[str, ...] = ()) -> tuple[Any, ...]:
        columns = self.columns(f"select * from {name}")
        listed = ", ".join(quoted(c, '"') for c, _ in columns if c not in without) or "1"
        hashed = f"sum(hash({listed})::hugeint), bit_xor(hash({listed}, 1))"
        return (tuple(columns), self.rows(f"select count(*), {hashed} from {name}")[0])

    def order(self, name: str) -> str:
        listed = ", ".join(quoted(c, '"') for c, _ in self.columns(f"select * from {name}"))
        return str(self.rows(f"select md5(string_agg(hash({listed})::varchar, ',')) from {name}"))

    def keep(self, unique_id: str, name: str, sql: str) -> None:
        self.rows(f"create table {name} as {sql}")

    def remember(self, unique_id: str, name: str) -> None:
        """Keep a copy of a relation of base as it is now, its hooks run."""
        self.rows(f"create table {self.kept(unique_id)} as from {name}")

    def kept(self, unique_id: str) -> str:
        return f'kept."{unique_id}"'

    def make(self, unique_id: str, name: str, sql: str) -> None:
        self.rows(f"create or replace table {name} as {sql}")

    def written(self, unique_id: str, name: str) -> str:
        return name

    def put_back(self, unique_id: str, name: str, *, of_base: bool) -> None:
        if of_base:
            self.rows(f"create or replace table {name} as from {self.kept(unique_id)}")
        else:
            self.rows(f"drop table if exists {name}")

    def interrupt(self) -> None:
        self.connection.interrupt()


class Spark:
    """An embedded Spark. A relation is a view over a table: base's, or the one head made of it.

    Args:
        session: dbt's own.
    """

    dialect = "spark"
    quote = "`"
    time_limit = 60.0

    def __init__(self, session: SparkSession) -> None:
        from pyspark.logger import PySparkLogger

        # Pages of Java for each edit that does not build, which the report counts.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        self.session = session
        self.made: dict[str, str] = {}
        self.numbers = itertools.count()
        for schema in ("kept", "made"):
            self.rows(f"create schema if not exists {schema}")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return [tuple(row) for row in self.session.sql(sql).collect()]
        except (PySparkException, Py4JError) as error:
            message = str(error)
            # Not just "cancelled": messages quote SQL, in which orders are cancelled, too.
            if "[SPARK_JOB_CANCELLED]" in message:
                raise Interrupted(message) from error
            raise EngineError(message.split("JVM stacktrace")[0]) from error

    def columns(self, sql: str) -> list[tuple[str, str]]:
        from pyspark.errors import PySparkException

        try:
            return list(self.session.sql(sql).dtypes)
        except PySparkException as error:
            raise EngineError(str(error).split("JVM stacktrace")[0]) from error

    def signature(self, name: str, without: tuple[str, ...] = ()) -> tuple[Any, ...]:
        columns = self.columns(f"select * from {name}")
        listed = [quoted(c, "`") for c, _ in columns if c not in without] or ["1"]
        # xxhash64 skips NULLs, so of bare columns (NULL, 1) and (1, NULL) would be the same row.
        row = ", ".join(
            [f"cast(struct({', '.join(listed)}) as string)", *map("{} is null".format, listed)]
        )
        hashed = f"sum(cast(xxhash64({row}) as decimal(20))), bit_xor(xxhash64({row}, 1))"
        return (tuple(columns), self.rows(f"select count(*), {hashed} from {name}")[0])

    def order(self, name: str) -> str:
        return ""

    def keep(self, unique_id: str, name: str, sql: str) -> None:
        self.rows(f"create table {self.kept(unique_id)} using parquet as {sql}")
        for kind in ("table", "view"):
            with contextlib.suppress(EngineError):
                self.rows(f"drop {kind} if exists {name}")
        self.rows(f"create view {name} as select * from {self.kept(unique_id)}")

    def remember(self, unique_id: str, name: str) -> None:
        """Nothing to do: what is kept is what was made."""

    def kept(self, unique_id: str) -> str:
        return f"kept.{_flat(unique_id)}"

    def make(self, unique_id: str, name: str, sql: str) -> None:
        # A name of its own each time: a build that failed half-way may have left files.
        made = f"made.{_flat(unique_id)}_{next(self.numbers)}"
        self.rows(f"create table {made} using parquet as {sql}")
        self.made[unique_id] = made
        self.rows(f"create or replace view {name} as select * from {made}")

    def written(self, unique_id: str, name: str) -> str:
        return self.made.get(unique_id, self.kept(unique_id))

    def put_back(self, unique_id: str, name: str, *, of_base: bool) -> None:
        if of_base:
            self.rows(f"create or replace view {name} as select * from {self.kept(unique_id)}")
        else:
            self.rows(f"drop view if exists {name}")
        if unique_id in self.made:
            self.rows(f"drop table {self.made.pop(unique_id)}")

    def interrupt(self) -> None:
        self.session.sparkContext.cancelAllJobs()


def _flat(unique_id: str) -> str:
    return unique_id.replace(".", "__")


def quoted(name: str, quote: str) -> str:
    """An identifier in quotes: an expression without an alias may hold some itself."""
    return quote + name.replace(quote, 2 * quote) + quote


def bag_of_rows(engine: Engine, sql: str) -> list[str] | str:
    """A query's rows as a sorted bag, or the engine's error."""
    try:
        rows = engine.rows(sql)
    except EngineError as error:
        return str(error)
    return sorted(repr(tuple(map(plain, row))) for row in rows)


def plain(value: Any) -> Any:
    """A value whose text is the same for equal values; doubles lose their last digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return value
