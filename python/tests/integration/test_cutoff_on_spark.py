"""`dbt-ripple run` on an embedded Spark, by dbt-spark's session method: what is equal stops there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from drive import on_shared_spark, said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STG = "select id, {amount} as amount, ratio, name from {{{{ ref('raw') }}}}"
FILES = {
    "dbt_project.yml": """
name: small
version: 1.0.0
profile: small
models: {+materialized: table, +file_format: parquet}
""",
    "profiles.yml": """
small:
  target: prod
  outputs:
    prod: {type: spark, method: session, host: localhost, schema: cutoff_prod}
    ci: {type: spark, method: session, host: localhost, schema: cutoff_ci}
""",
    "models/raw.sql": """
select id, cast(amount as decimal(9, 2)) as amount, ratio, name
from values (1, 10, 0.1D, 'a'), (2, 20, -0.0D, null), (2, 20, 0.3D, '') as t (id, amount, ratio, name)
""",
    "models/stg.sql": STG,
    "models/mart.sql": "select id, sum(amount) as amount from {{ ref('stg') }} group by id",
    "models/named.sql": "select id, name, ratio from {{ ref('stg') }} where amount > 0",
    "models/models.yml": """
models:
  - name: mart
    columns: [{name: amount, data_tests: [not_null]}]
  - name: named
    columns: [{name: id, data_tests: [not_null]}]
""",
}


def write(folder: Path, amount: str) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(amount=amount) if name == "models/stg.sql" else text.lstrip())


def test_what_comes_out_equal_is_neither_built_below_nor_tested(
    spark: SparkSession, tmp_path: Path
) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    equal, other = (tmp_path / name for name in ("equal.sql", "other.sql"))
    equal.write_text(STG.format(amount="abs(amount)"))
    other.write_text(STG.format(amount="greatest(amount, cast(15 as decimal(9, 2)))"))
    write(project, "amount")
    edited, schemas, tables = (
        project / "models" / "stg.sql",
        "sql show schemas",
        "sql show tables in",
    )
    run = ("dbt parse --target ci", f"dbt-ripple run --state {state} --target ci")
    done = on_shared_spark(
        *(spark, tmp_path, project, schemas, f"dbt build --target-path {state}"),
        *(f"cp {equal} {edited}", *run, f"{tables} cutoff_ci", schemas),
        *(f"cp {other} {edited}", *run, f"{tables} cutoff_ci"),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    before, of_equal, after, of_other = map(json.loads, done.stdout.splitlines())
    assert {row["tableName"] for row in of_equal} == {"stg"}, done.stderr[-4000:]
    assert {row["namespace"] for row in after} - {row["namespace"] for row in before} == {
        *("cutoff_prod", "cutoff_ci")
    }
    assert {row["tableName"] for row in of_other} == {"stg", "mart", "named"}
    *_, first, _, second = said(done)
    assert "0 of 2 tests ran, 2 could differ and did not run" in first
    # Other amounts are no other ids.
    assert "1 of 2 tests ran, 1 could differ and did not run" in second
    assert "; seen to differ: mart was seen to differ: " in second, done.stderr[-4000:]
