"""Rows of plain types into the lineage tables, so that a reader sees a whole load or none of it.

What is guaranteed, on parquet, Delta Lake and Iceberg alike:

* **Atomic.** Every table but ``snapshots`` is partitioned by ``snapshot_id``. A load writes its own
  partition of each, then its one row of ``snapshots``: that row is the commit, and readers take
  only rows whose ``snapshot_id`` is there. A load that dies before it is invisible; one that died
  after it was whole.
* **Idempotent.** A snapshot that is in ``snapshots`` is left alone. One that is not is written from
  scratch: its partition is overwritten, so that what a dead load left behind is replaced.
* **Nothing of yours is dropped.** Schema and tables are made when missing, columns that a newer
  version has are added; columns of your own stay.

What is not: two loads of the *same* artifacts at the same moment are not kept apart on parquet,
which has no transactions.

Rows travel as Arrow, a quarter of a million at a time, never as SQL text.
"""

from __future__ import annotations

import time
import typing
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.artifacts import Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_rows import LineageSnapshot
from dbt_ripple.graph.lineage_tables import RECORDED, TABLES
from dbt_ripple.spark.session import first_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

WORKERS: Final = 4
"""Tables that are written at a time."""

CHUNK: Final = 250_000
"""Rows that travel at once: what they take in the driver's memory is bounded by it."""

COMMIT: Final = "snapshots"
"""The table whose row publishes a load."""

INSTALL_PACKAGE: Final = (
    "add the dbt package to packages.yml and run `dbt deps`, or name the schema by --schema"
)
_SOURCE: Final = "source.dbt_ripple.ripple_raw."
_SQL_TYPES: Final[dict[type, str]] = {
    str: "string",
    int: "bigint",
    float: "double",
    bool: "boolean",
    datetime: "timestamp",
}
_FILE_FORMATS: Final = ("parquet", "delta", "iceberg")

ADAPTERS: Final = frozenset({"spark", "databricks"})
"""Adapters of dbt that the lineage tables can be made with."""

Progress = Callable[[str, int], None]
"""Called with a table and its number of rows before it is written."""


@dataclass(frozen=True)
class Destination:
    """Where the lineage tables are.

    Attributes:
        namespace: the schema, with its catalog before it where there is one.
        file_format: what missing tables are made of: parquet, delta or iceberg.
    """

    namespace: tuple[str, ...]
    file_format: str = "parquet"

    @property
    def schema(self) -> str:
        """The schema as SQL names it, quoted."""
        return ".".join(map(_quoted, self.namespace))

    def table(self, name: str) -> str:
        """A table as SQL names it, quoted."""
        return f"{self.schema}.{_quoted(name)}"

    def __str__(self) -> str:
        return ".".join(self.namespace)


@dataclass(frozen=True)
class Loaded:
    """What a load did.

    Attributes:
        snapshot_id: of the rows.
        already: whether the snapshot was there before, so that nothing was written.
        rows: how many rows the snapshot has in each table.
        seconds: wall time of ``prepare`` (schema, tables, columns) and ``write``.
    """

    snapshot_id: str
    already: bool
    rows: dict[str, int]
    seconds: dict[str, float]


def check_adapter(adapter_type: str | None) -> None:
    """Refuse a project whose warehouse the lineage tables are not made for.

    Raises:
        RippleError: it is on another adapter than those of Spark.
    """
    if adapter_type and adapter_type not in ADAPTERS:
        raise RippleError(
            f"the lineage tables are for Spark and Databricks only, and this project is on {adapter_type}",
            fix="`dbt-ripple analyze`, `trace`, `select`, `diff`, `gate` and `impact` need no tables",
        )


def destination(
    project: Project, schema: str | None = None, file_format: str | None = None
) -> Destination:
    """Where a project's lineage goes: what is given, else where the dbt package reads it.

    Args:
        project: its manifest says where the package's source ``ripple_raw`` is, and in which
            format, once the package is installed.
        schema: ``schema`` or ``catalog.schema``.
        file_format: parquet, delta or iceberg.

    Raises:
        RippleError: no schema is given and the project does not have the package or is not on Spark, or
            the format is not known.
    """
    source = {**project.nodes, **project.hidden}.get(_SOURCE + COMMIT)
    if not schema:
        check_adapter(project.metadata.adapter_type)
    if schema:
        namespace = tuple(part.strip("`") for part in schema.split("."))
    elif source is not None and source.schema:
        # dbt-spark repeats the schema as the database; elsewhere that is a catalog.
        catalog = source.database if source.database != source.schema else None
        namespace = (catalog, source.schema) if catalog else (source.schema,)
    else:
        raise RippleError(
            "the project does not have the dbt package dbt_ripple, so it is not known which schema"
            " the lineage tables are in",
            project.target_path,
            INSTALL_PACKAGE,
        )
    format_given = file_format or (source.meta.get("file_format") if source is not None else None)
    chosen = str(format_given or "parquet").lower()
    if chosen not in _FILE_FORMATS:
        raise RippleError(
            f"the file format {chosen!r} is not known",
            "ripple_file_format",
            f"use one of {', '.join(_FILE_FORMATS)}",
        )
    return Destination(namespace, chosen)


def load(
    session: SparkSession,
    snapshot: LineageSnapshot,
    to: Destination,
    *,
    progress: Progress | None = None,
) -> Loaded:
    """Load one snapshot and publish it.

    Args:
        session: any Spark 3.5 or later, Spark Connect included.
        snapshot: the rows.
        to: where they go; schema and tables are made when missing.
        progress: called before each table.

    Raises:
        RippleError: the schema or a table cannot be made or written.
    """
    started = time.perf_counter()
    counts = {table: len(rows) for table, rows in snapshot.rows.items()}
    try:
        prepare(session, to)
        prepared = time.perf_counter()
        already = _is_published(session, to, snapshot.snapshot_id)
        if not already:
            _write(session, snapshot, to, progress)
    except RippleError:
        raise
    except Exception as error:
        raise RippleError(
            f"the lineage tables cannot be written ({first_line(error)})",
            str(to),
            "check that this Spark may write there and knows the file format"
            f" ({to.file_format}), then load again: nothing half loaded is visible",
        ) from error
    seconds = {"prepare": prepared - started, "write": time.perf_counter() - prepared}
    return Loaded(snapshot.snapshot_id, already, counts, seconds)


def _write(
    session: SparkSession, snapshot: LineageSnapshot, to: Destination, progress: Progress | None
) -> None:
    """Write all tables: the first alone, which tells of a load that began, and the commit last."""
    lock = Lock()

    def write(table: str) -> None:
        rows = snapshot.rows[table]
        if progress:
            with lock:
                progress(table, len(rows))
        if table == COMMIT:
            _publish(session, to, snapshot.snapshot_id, rows)
        else:
            _write_partition(session, to.table(table), snapshot.snapshot_id, table, rows)

    first, *others = (table for table in snapshot.rows if table != COMMIT)
    write(first)
    _side_by_side(session, write, others)
    write(COMMIT)


def prepare(session: SparkSession, to: Destination) -> None:
    """Make the schema and the tables where they are missing, and add the columns a table lacks."""
    # Asked first: who may not create schemas can still be given one.
    if not session.catalog.databaseExists(to.schema):
        session.sql(f"create schema if not exists {to.schema}")
    _side_by_side(session, lambda table: _prepare_table(session, to, table), [*TABLES, *RECORDED])


def _prepare_table(session: SparkSession, to: Destination, table: str) -> None:
    name = to.table(table)
    if not session.catalog.tableExists(name):
        session.sql(create_table(name, table, to.file_format))
        return
    present = {column.lower() for column in session.table(name).columns}
    missing = [
        f"{_quoted(column)} {type_}"
        for column, type_ in columns(table).items()
        if column not in present
    ]
    if missing:
        session.sql(f"alter table {name} add columns ({', '.join(missing)})")


def _side_by_side(
    session: SparkSession, work: Callable[[str], None], tables: Sequence[str]
) -> None:
    """Do the same for several tables at a time: most of it is waiting for the metastore."""
    # Before Spark 4 rows travel through pandas, by a setting of the session that all threads share.
    workers = WORKERS if int(session.version.partition(".")[0]) >= 4 else 1
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, table) for table in tables]:
            done.result()


def create_table(name: str, table: str, file_format: str) -> str:
    """The statement that makes a lineage table; the dbt package's macro makes the same one.

    Args:
        name: the table as SQL names it.
        table: which of :data:`~dbt_ripple.graph.lineage_tables.TABLES` or ``RECORDED`` it is.
        file_format: parquet, delta or iceberg.
    """
    body = ",\n  ".join(f"{_quoted(column)} {type_}" for column, type_ in columns(table).items())
    partition = "" if table == COMMIT or table in RECORDED else "\npartitioned by (snapshot_id)"
    return f"create table if not exists {name} (\n  {body}\n) using {file_format}{partition}"


def columns(table: str) -> dict[str, str]:
    """A table's columns and their Spark SQL types, in the order of its row struct."""
    return {name: _SQL_TYPES[type_] for name, type_ in _fields(table).items()}


def arrow_table(table: str, rows: Sequence[msgspec.Struct]) -> pa.Table:
    """Rows as an Arrow table, one column a field; timestamps are UTC in microseconds."""
    import pyarrow as pa

    types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(name, types[type_]) for name, type_ in _fields(table).items()])
    return pa.table(
        [pa.array([getattr(row, field.name) for row in rows], type=field.type) for field in schema],
        schema=schema,
    )


def _fields(table: str) -> dict[str, type]:
    """A table's columns and their Python types, without the ``| None``."""
    fields = {}
    for name, hint in typing.get_type_hints((TABLES | RECORDED)[table]).items():
        alternatives = [type_ for type_ in typing.get_args(hint) if type_ is not type(None)]
        fields[name] = alternatives[0] if alternatives else hint
    return fields


def _write_partition(
    session: SparkSession, name: str, id_: str, table: str, rows: Sequence[msgspec.Struct]
) -> None:
    """Make the rows the whole content of a snapshot's partition, were it none."""
    names = ", ".join(_quoted(column) for column in columns(table) if column != "snapshot_id")
    for start in range(0, max(len(rows), 1), CHUNK):
        frame = arrow_frame(session, arrow_table(table, rows[start : start + CHUNK]))
        verb = "insert into" if start else "insert overwrite"
        # Spelt as a static partition, the same statement replaces (or empties) exactly this
        # partition on all three formats, whatever the session's partitionOverwriteMode.
        _insert(
            session,
            frame,
            f"{verb} table {name} partition (snapshot_id = '{id_}') ({names}) select {names}",
        )


def _publish(
    session: SparkSession, to: Destination, id_: str, rows: Sequence[msgspec.Struct]
) -> None:
    """Write the row that makes the load visible, unless somebody else has just loaded the same."""
    if _is_published(session, to, id_):
        return
    names = ", ".join(map(_quoted, columns(COMMIT)))
    frame = arrow_frame(session, arrow_table(COMMIT, rows))
    _insert(session, frame, f"insert into {to.table(COMMIT)} ({names}) select {names}")


def _insert(session: SparkSession, frame: DataFrame, statement: str) -> None:
    """Run ``statement from <frame>``."""
    # Several are written at a time.
    view = f"dbt_ripple_rows_{get_ident()}"
    # One file a chunk: readers, not writers, pay for small files.
    frame.coalesce(1).createOrReplaceTempView(view)
    try:
        session.sql(f"{statement} from {view}")
    finally:
        session.catalog.dropTempView(view)


def _is_published(session: SparkSession, to: Destination, id_: str) -> bool:
    rows = session.sql(f"select 1 from {to.table(COMMIT)} where snapshot_id = '{id_}' limit 1")
    return bool(rows.collect())


def arrow_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame; before Spark 4 that goes through pandas."""
    if int(session.version.partition(".")[0]) >= 4:
        return session.createDataFrame(table)
    from pyspark.sql.pandas.types import from_arrow_schema

    key = "spark.sql.execution.arrow.pyspark.enabled"
    before = session.conf.get(key)
    session.conf.set(key, "true")
    try:
        # Objects, so that a null in a column of integers does not make them floats.
        frame: Any = table.to_pandas(integer_object_nulls=True)
        return session.createDataFrame(frame, schema=from_arrow_schema(table.schema))
    finally:
        session.conf.set(key, before)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
