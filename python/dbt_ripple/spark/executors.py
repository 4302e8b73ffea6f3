"""Queries lowered on Spark's executors, for `load` of a project too large for one machine.

It goes through a DataFrame (``mapInArrow``), so that it works over Spark Connect, too. The executors
must have the same dbt-ripple and sqlglot as the driver; where they do not, the driver does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dbt_ripple.graph.cache import engine
from dbt_ripple.graph.query_cache import LowerMany
from dbt_ripple.spark.server import arrow_frame
from dbt_ripple.spark.session import first_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LEAST: Final = 5_000
"""Queries below which the driver's own cores are quicker than a job."""

_A_TASK: Final = 100
"""Queries a task lowers."""

_LOCAL: Final = re.compile(r"local(\[|$)")


class NotTheSameError(Exception):
    """The executors have another version of dbt-ripple or of sqlglot."""


def on_executors(
    session: Callable[[], SparkSession],
    otherwise: LowerMany | None,
    warn: Callable[[str], None],
    least: int = LEAST,
) -> LowerMany:
    """A way to lower many queries, for `graph.analyse_project.analyse`.

    Args:
        session: gives the Spark session, called if it is needed. An embedded Spark has no executors
            but this machine's cores, and is left alone.
        otherwise: the way for fewer queries, and where the executors cannot do it.
        warn: told, in one line, why they could not.
        least: queries below which they are not asked.
    """

    def lower_many(
        queries: Sequence[str], dialect: str, expressions: bool, masking: Collection[str] = ()
    ) -> list[bytes]:
        if len(queries) >= least:
            spark = session()
            if has_executors(spark):
                try:
                    return lower_on_executors(spark, queries, dialect, expressions, masking)
                except Exception as error:
                    warn(f"analysed here, not on Spark's executors: {_why(error)}")
        return otherwise(queries, dialect, expressions, masking) if otherwise is not None else []

    return lower_many


def has_executors(session: SparkSession) -> bool:
    """Whether other machines, or at least other processes, work for this session."""
    return not _LOCAL.match(session.conf.get("spark.master", "local") or "local")


def lower_on_executors(
    session: SparkSession,
    queries: Sequence[str],
    dialect: str,
    expressions: bool,
    masking: Collection[str] = (),
) -> list[bytes]:
    """Lower queries as `flow.ir.lower_packed` does, in a Spark job.

    Raises:
        Exception: as Spark does where the job fails; among other reasons because an executor lacks
            dbt-ripple or has another one.
    """
    import pyarrow as pa

    of_driver = engine()

    def lowered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        from dbt_ripple.flow.ir import lower_packed
        from dbt_ripple.graph.cache import engine
        from dbt_ripple.spark.executors import NotTheSameError

        if engine() != of_driver:
            raise NotTheSameError("they have another version of dbt-ripple or sqlglot")
        for batch in batches:
            ids, texts = batch.column(0), batch.column(1).to_pylist()
            packed = lower_packed(texts, dialect, expressions, masking)
            packed_queries = pyarrow.array(packed, pyarrow.binary())
            yield pyarrow.RecordBatch.from_arrays([ids, packed_queries], ["id", "packed"])

    # The longest first and dealt out in turn, so that all tasks take about as long.
    order = sorted(range(len(queries)), key=lambda i: -len(queries[i]))
    table = pa.table(
        {
            "id": pa.array(order, pa.int64()),
            "query": pa.array([queries[i] for i in order], pa.string()),
        }
    )
    frame = arrow_frame(session, table).repartition(-(-len(queries) // _A_TASK))
    packed_queries = [b""] * len(queries)
    for id_, packed in frame.mapInArrow(lowered, "id bigint, packed binary").collect():
        packed_queries[id_] = bytes(packed)
    return packed_queries


def _why(error: Exception) -> str:
    """The executor's own words, where they are in what Spark says."""
    causes = re.findall(
        r"^(?:\S+\.)?(?:ModuleNotFoundError|ImportError|NotTheSameError): (.+)$", str(error), re.M
    )
    return causes[-1] if causes else first_line(error)
