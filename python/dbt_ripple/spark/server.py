"""How statements and rows reach a Spark: through a session of this process, or through dbt's adapter.

A session takes rows as Arrow, a quarter of a million at a time. An adapter takes only text, so rows
travel inside statements of bounded size, or lie as files where the server reads them
(:mod:`dbt_ripple.spark.stage`).
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import math
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from dbt_ripple.spark.load import arrow_table, columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dbt_ripple.spark.stage import Stage

WORKERS: Final = 4
"""Tables that are written at a time."""

CHUNK: Final = 250_000
"""Rows that travel at once: what they take in the driver's memory is bounded by it."""

STATEMENT_BYTES: Final = 1_000_000
"""What the rows of one statement take as JSON, unless a single row takes more. As text it is a third more."""

STATEMENT_ROWS: Final = 10_000
"""Rows of one statement, at most."""

_POLL_SECONDS: Final = 0.1
"""Between two questions of dbt-spark to a Thrift server whether a statement is done. The server itself waits for
five seconds before it answers that it is not; dbt-spark would then sleep for five more."""

_SHORT_PLANS: Final = "set spark.sql.maxPlanStringLength=10000"
"""Spark keeps the texts of the plans of a thousand queries in memory, with the rows that stand in them."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Batch:
    """Rows that have reached the server.

    Attributes:
        rows: how many.
        relation: what stands behind FROM in a query that selects them.
        file: where the rows are a file, the literal behind FROM in COPY INTO.
    """

    rows: int
    relation: str
    file: str | None = None


class Server(Protocol):
    """A Spark, in the way it is reached.

    Attributes:
        workers: how many threads may use it at a time.
        sends_again: whether a statement may run twice, because the connection was lost while it ran.
        copies: whether it has COPY INTO, for Delta tables.
    """

    workers: int
    sends_again: bool
    copies: bool

    def execute(self, statement: str) -> None:
        """Run a statement that returns nothing."""

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query: strings, numbers, truth values and None come as Python's own."""

    def batches(
        self, table: str, names: Sequence[str], rows: Sequence[msgspec.Struct]
    ) -> Generator[Batch, None, None]:
        """Bring rows of a lineage table to the server, a batch at a time; at least one, were it empty.

        A batch can be selected from until the next one is asked for.

        Args:
            table: which table's rows they are.
            names: the columns that are wanted.
            rows: the rows.
        """


class SessionServer:
    """Through a session: an embedded Spark, a cluster that is driven from here, or Spark Connect."""

    sends_again = False
    copies = False

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # Before Spark 4 rows travel through pandas, by a setting of the session that all threads share.
        self.workers = WORKERS if int(session.version.partition(".")[0]) >= 4 else 1

    def execute(self, statement: str) -> None:
        """As :class:`Server` says."""
        self._session.sql(statement)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """As :class:`Server` says."""
        return [row.asDict(recursive=True) for row in self._session.sql(query).collect()]

    def batches(
        self, table: str, names: Sequence[str], rows: Sequence[msgspec.Struct]
    ) -> Generator[Batch, None, None]:
        """As :class:`Server` says."""
        if not rows:  # Spark Connect makes no frame of an Arrow table without rows
            yield _inline(names, columns(table), 0, b"[]")
        view = f"dbt_ripple_rows_{get_ident()}"  # several tables are written at a time
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            frame = arrow_frame(self._session, arrow_table(table, chunk).select(names))
            # One file a chunk: readers, not writers, pay for small files.
            frame.coalesce(1).createOrReplaceTempView(view)
            try:
                yield Batch(len(chunk), view)
            finally:
                self._session.catalog.dropTempView(view)


class AdapterServer:
    """Through the adapter of dbt, over whatever the profile connects by: no Java and no pyspark here.

    Args:
        adapter: dbt's adapter, of Spark or Databricks.
        stage: where rows that one statement cannot take are put as files; None sends them in several
            statements.
        statement_bytes: what the rows of one statement take, as :data:`STATEMENT_BYTES` says.
    """

    workers = WORKERS
    sends_again = True

    def __init__(
        self, adapter: Any, stage: Stage | None = None, statement_bytes: int = STATEMENT_BYTES
    ) -> None:
        self.copies = adapter.type() == "databricks"
        self._adapter = adapter
        self._stage = stage
        self._statement_bytes = statement_bytes
        credentials = adapter.config.credentials
        if hasattr(credentials, "poll_interval"):
            credentials.poll_interval = _POLL_SECONDS
        self._prepared: dict[int, Any] = {}  # connections, kept so that none gets the id of another
        self._counter = itertools.count(1)  # of several threads
        self.statements = 0
        """How many statements were sent, queries included."""

    def execute(self, statement: str) -> None:
        """As :class:`Server` says."""
        self._run(self._adapter.execute, statement)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """As :class:`Server` says.

        It does not go through dbt's tables of results, which make an empty text NULL.
        """
        fetched: list[dict[str, Any]] = self._run(self._fetched, query)
        return fetched

    def _fetched(self, query: str) -> list[dict[str, Any]]:
        _, cursor = self._adapter.add_query(query, auto_begin=False)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _run(self, work: Any, text: str) -> Any:
        self.statements = next(self._counter)
        try:
            # One connection a thread; it stays open until all are closed.
            connection = self._adapter.acquire_connection("dbt_ripple")
            if self._adapter.type() == "spark" and id(connection) not in self._prepared:
                self._prepared[id(connection)] = connection
                # A server that does not let this be set is one that we do not know.
                with contextlib.suppress(Exception):
                    self._adapter.execute(_SHORT_PLANS)
            return work(text)
        except Exception as error:
            raise ServerError(_message(error)) from error

    def batches(
        self, table: str, names: Sequence[str], rows: Sequence[msgspec.Struct]
    ) -> Generator[Batch, None, None]:
        """As :class:`Server` says."""
        parts = _parts(names, rows, self._statement_bytes)
        first = next(parts)
        if self._stage is not None and first[0] < len(rows):
            yield from self._stage.batches(table, names, rows)
            return
        types = columns(table)
        yield _inline(names, types, *first)
        for part in parts:
            yield _inline(names, types, *part)

    def close(self) -> None:
        """Close the connections and remove the files that were put on the stage."""
        if self._stage is not None:
            self._stage.clear()
        self._adapter.cleanup_connections()


class ServerError(Exception):
    """What the server, or the way to it, said of a statement, in one line."""


def _message(error: Exception) -> str:
    """What an error of dbt says, in one line, without its kind and the classes of Java before it."""
    lines = str(getattr(error, "msg", None) or error).strip().splitlines()
    said = next(
        (line.strip() for line in lines if not re.fullmatch(r"\w+ Error", line.strip())), ""
    )
    said = re.sub(r"^(?:Error running query: |[\w.$]+(?:Exception|Error): )+", "", said)
    said = re.sub(
        r"^\[[\w.]+\] [\w.$]+(?:Exception|Error): (?=\[)", "", said
    )  # it says which twice
    return said or type(error).__name__


def _parts(
    names: Sequence[str], rows: Sequence[msgspec.Struct], limit: int
) -> Iterator[tuple[int, bytes]]:
    """Rows as JSON arrays of bounded size, each with its number of rows; one empty array for none."""
    encode = msgspec.json.encode
    short = {name: f"c{number}" for number, name in enumerate(names)}
    part: list[bytes] = []
    size = 0
    for row in rows:
        # What is left out is NULL.
        values = {
            short[name]: _as_json(value)
            for name in names
            if (value := getattr(row, name)) is not None
        }
        line = encode(values)
        if part and (size + len(line) > limit or len(part) == STATEMENT_ROWS):
            yield len(part), b"[" + b",".join(part) + b"]"
            part, size = [], 0
        part.append(line)
        size += len(line) + 1
    yield len(part), b"[" + b",".join(part) + b"]"


def _as_json(value: Any) -> Any:
    """A value as Spark's from_json reads it: a time is its microseconds, so that no time zone is asked."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _inline(names: Sequence[str], types: dict[str, str], count: int, rows: bytes) -> Batch:
    """Rows inside a statement.

    One literal in base64 holds all of them: whatever characters they have, no setting of the session
    (of escapes, quotes, variables or ANSI) reads them otherwise. Spark reads it several times as fast as VALUES,
    and as a table with types.
    """
    fields, selected = [], []
    for number, name in enumerate(names):
        time = types[name] == "timestamp"
        fields.append(f"c{number}: {'bigint' if time else types[name]}")
        value = f"timestamp_micros(c{number})" if time else f"c{number}"
        selected.append(f"{value} as `{name}`")
    text = f"cast(unbase64('{base64.b64encode(rows).decode()}') as string)"
    read = f"from_json({text}, 'array<struct<{', '.join(fields)}>>', map('mode', 'FAILFAST'))"
    return Batch(count, f"(select {', '.join(selected)} from (select inline({read})))")


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
