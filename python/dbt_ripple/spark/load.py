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
which has no transactions. Where a statement can be sent twice (a lost connection), what arrived is
counted before the load is published: it is not published with a row too many.

This module says what is made, written and asked; how statements and rows reach the server is
:mod:`dbt_ripple.spark.server`'s.
"""

from __future__ import annotations

import time
import typing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec

from dbt_ripple.artifacts import Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_rows import LineageSnapshot
from dbt_ripple.graph.lineage_tables import RECORDED, TABLES
from dbt_ripple.spark.session import first_line

if TYPE_CHECKING:
    import pyarrow as pa

    from dbt_ripple.spark.server import Batch, Server

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
"""Called with a table and 0 before it is written, then with how many rows of it were just written."""


@dataclass(frozen=True)
class Destination:
    """Where the lineage tables are.

    Attributes:
        namespace: the schema, with its catalog before it where there is one.
        file_format: what missing tables are made of: parquet, delta or iceberg.
        prefix: of the tables' names, where they stand among others'.
    """

    namespace: tuple[str, ...]
    file_format: str = "parquet"
    prefix: str = ""

    @property
    def schema(self) -> str:
        """The schema as SQL names it, quoted."""
        return ".".join(map(_quoted, self.namespace))

    def table(self, name: str) -> str:
        """A table as SQL names it, quoted."""
        return f"{self.schema}.{_quoted(self.prefix + name)}"

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
    prefix = ""
    if source is not None and namespace[-1] == source.schema:
        prefix = (source.identifier or COMMIT).removesuffix(COMMIT)
    return Destination(namespace, chosen, prefix)


def load(
    server: Server,
    snapshot: LineageSnapshot,
    to: Destination,
    *,
    progress: Progress | None = None,
) -> Loaded:
    """Load one snapshot and publish it.

    Args:
        server: any Spark 3.5 or later.
        snapshot: the rows.
        to: where they go; schema and tables are made when missing.
        progress: called before each table and after each of its batches, by one thread at a time.

    Raises:
        RippleError: the schema or a table cannot be made or written, or what arrived is not what was sent.
    """
    started = time.perf_counter()
    counts = {table: len(rows) for table, rows in snapshot.rows.items()}
    try:
        with ThreadPoolExecutor(server.workers) as pool:
            each = _Each(pool)
            prepare(server, to, each)
            prepared = time.perf_counter()
            already = _is_published(server, to, snapshot.snapshot_id)
            if not already:
                _write(server, snapshot, to, each, _one_at_a_time(progress))
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


class _Each:
    """Does the same for several tables at a time: most of it is waiting for the metastore."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self, work: Callable[[str], None], tables: Iterable[str]) -> None:
        # dbt keeps what it knows of its run in a context, which a thread does not inherit.
        submitted = [self._pool.submit(copy_context().run, work, table) for table in tables]
        for done in submitted:
            done.result()


def _one_at_a_time(progress: Progress | None) -> Progress:
    """The same, called by one thread at a time; without one, nothing."""
    lock = Lock()

    def locked(table: str, rows: int) -> None:
        if progress is not None:
            with lock:
                progress(table, rows)

    return locked


def _write(
    server: Server, snapshot: LineageSnapshot, to: Destination, each: _Each, progress: Progress
) -> None:
    """Write all tables: the first alone, which tells of a load that began, and the commit last."""
    id_ = snapshot.snapshot_id

    def write(table: str) -> None:
        progress(table, 0)
        _write_partition(server, to, id_, table, snapshot.rows[table], progress)

    first, *others = (table for table in snapshot.rows if table != COMMIT)
    each(write, [first])
    each(write, others)
    progress(COMMIT, 0)
    _publish(server, to, id_, snapshot.rows[COMMIT])
    progress(COMMIT, len(snapshot.rows[COMMIT]))


def prepare(server: Server, to: Destination, each: _Each) -> None:
    """Make the schema and the tables where they are missing, and add the columns a table lacks."""
    try:
        # Asked first: who may not create schemas can still be given one.
        server.rows(f"describe schema {to.schema}")
    except (
        Exception
    ):  # of Spark, by what it works on: it is missing, or the next statement says why
        server.execute(f"create schema if not exists {to.schema}")
    there = {str(row["tableName"]).lower() for row in server.rows(f"show tables in {to.schema}")}

    def make(table: str) -> None:
        name = to.table(table)
        if (to.prefix + table).lower() not in there:
            server.execute(create_table(name, table, to.file_format))
            return
        present = {column.lower() for column in described(server, name)}
        missing = [
            f"{_quoted(column)} {type_}"
            for column, type_ in columns(table).items()
            if column not in present
        ]
        if missing:
            server.execute(f"alter table {name} add columns ({', '.join(missing)})")

    each(make, [*TABLES, *RECORDED])


def described(server: Server, relation: str) -> dict[str, str]:
    """The columns of a table or a view, and their types as Spark writes them."""
    types: dict[str, str] = {}
    for row in server.rows(f"describe table {relation}"):
        name = row["col_name"] or ""
        if not name or name.startswith("#"):  # what follows tells of partitions
            break
        types[name] = row["data_type"]
    return types


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
    server: Server,
    to: Destination,
    id_: str,
    table: str,
    rows: Sequence[msgspec.Struct],
    progress: Progress,
) -> None:
    """Make the rows the whole content of a snapshot's partition, were it none."""
    copies = server.copies and to.file_format == "delta"
    names = [column for column in columns(table) if column != "snapshot_id"]
    with closing(server.batches(table, names, rows)) as batches:
        for number, batch in enumerate(batches):
            make = _copy if copies and batch.file is not None else _insert
            for statement in make(to.table(table), id_, names, batch, first=number == 0):
                server.execute(statement)
            progress(table, batch.rows)
    if server.sends_again:
        _check_arrived(server, to, id_, table, len(rows))


def _insert(name: str, id_: str, names: Sequence[str], batch: Batch, *, first: bool) -> list[str]:
    """The statement that brings a batch into a snapshot's partition; the first one empties it."""
    selected = ", ".join(map(_quoted, names))
    verb = "insert overwrite" if first else "insert into"
    # Spelt as a static partition, the same statement replaces (or empties) exactly this
    # partition on all three formats, whatever the session's partitionOverwriteMode.
    return [
        f"{verb} table {name} partition (snapshot_id = '{id_}') ({selected})"
        f" select {selected} from {batch.relation}"
    ]


def _copy(name: str, id_: str, names: Sequence[str], batch: Batch, *, first: bool) -> list[str]:
    """The same by COPY INTO: a file that it has loaded it leaves out, should the statement be sent twice."""
    selected = ", ".join(map(_quoted, names))
    emptied = [f"delete from {name} where snapshot_id = '{id_}'"] if first else []
    what = f"select '{id_}' as snapshot_id, {selected} from {batch.file}"
    return [*emptied, f"copy into {name} from ({what}) fileformat = parquet"]


def _check_arrived(server: Server, to: Destination, id_: str, table: str, sent: int) -> None:
    """Refuse to go on where a table has more or fewer rows than were sent.

    Asked on the connection that wrote them: another one may remember which files there were before.

    Raises:
        RippleError: it has.
    """
    (row,) = server.rows(
        f"select count(*) as arrived from {to.table(table)} where snapshot_id = '{id_}'"
    )
    if row["arrived"] != sent:
        raise RippleError(
            f"{row['arrived']} rows of {table} arrived and {sent} were sent (another load of the same"
            " artifacts, or a statement that was sent twice as the connection was lost)",
            str(to),
            "load again: nothing of it is visible",
        )


def _publish(server: Server, to: Destination, id_: str, rows: Sequence[msgspec.Struct]) -> None:
    """Write the row that makes the load visible, unless somebody else has just loaded the same."""
    names = list(columns(COMMIT))
    selected = ", ".join(map(_quoted, names))
    published = f"select 1 from {to.table(COMMIT)} where snapshot_id = '{id_}'"
    with closing(server.batches(COMMIT, names, rows)) as batches:
        for batch in batches:
            server.execute(
                f"insert into {to.table(COMMIT)} ({selected}) select {selected}"
                f" from {batch.relation} where not exists ({published})"
            )


def _is_published(server: Server, to: Destination, id_: str) -> bool:
    return bool(
        server.rows(f"select 1 from {to.table(COMMIT)} where snapshot_id = '{id_}' limit 1")
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
