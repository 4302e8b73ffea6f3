"""Answers of a `Project` as DataFrames, on a real Spark: rows, empty ones, and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_ripple import equivalent, lineage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_become_a_dataframe(spark: SparkSession) -> None:
    found = lineage(
        "select id, amount * 2 as twice from t where s = 'x'", {"t": ["id", "amount", "s"]}
    )
    frame = found.to_spark(spark)
    assert [tuple(row) for row in frame.collect()] == [
        (e.output, e.table, e.column, e.kind, e.transformation, e.masking) for e in found
    ]
    assert dict(frame.dtypes)["masking"] == "boolean"
    empty = lineage("select 1 as one").to_spark(spark)
    assert empty.schema == frame.schema
    assert equivalent("select 1 as one", "select  1 as one")
