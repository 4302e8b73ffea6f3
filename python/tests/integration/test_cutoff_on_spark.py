"""`dbt-ripple run` on an embedded Spark, by dbt-spark's session method: what is equal stops there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_shop import drive

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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
    prod: {type: spark, method: session, host: localhost, schema: prod}
    ci: {type: spark, method: session, host: localhost, schema: ci}
""",
    "models/raw.sql": """
select id, cast(amount as decimal(9, 2)) as amount, ratio, name
from values (1, 10, 0.1D, 'a'), (2, 20, -0.0D, null), (2, 20, 0.3D, '') as t (id, amount, ratio, name)
""",
    "models/stg.sql": "select id, {amount} as amount, ratio, name from {{{{ ref('raw') }}}}",
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


def test_what_comes_out_equal_is_neither_built_below_nor_tested(tmp_path: Path) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    write(project, "amount")
    base = drive(tmp_path, "parquet", project, f"dbt build --target-path {state}")
    assert base.returncode == 0, base.stderr[-4000:]
    write(project, "abs(amount)")
    run = f"dbt-ripple run --state {state} --target ci"
    head = drive(
        tmp_path, "parquet", project, "dbt parse --target ci", run, "sql show tables in ci",
        "sql show schemas",
    )  # fmt: skip
    assert head.returncode == 0, head.stderr[-4000:]
    tables, schemas = (json.loads(line) for line in head.stdout.splitlines() if line[:1] == "[")
    assert {row["tableName"] for row in tables} == {"stg"}, head.stderr[-4000:]
    assert {row["namespace"] for row in schemas} == {"default", "prod", "ci"}
    assert "0 of 2 tests ran, 2 could differ and did not run" in head.stderr
    write(project, "greatest(amount, cast(15 as decimal(9, 2)))")
    head = drive(
        tmp_path, "parquet", project, "dbt parse --target ci", run, "sql show tables in ci"
    )
    assert head.returncode == 0, head.stderr[-4000:]
    tables = json.loads(next(line for line in head.stdout.splitlines() if line[:1] == "["))
    assert {row["tableName"] for row in tables} == {"stg", "mart", "named"}
    # Other amounts are no other ids.
    assert "1 of 2 tests ran, 1 could differ and did not run" in head.stderr
    assert "; seen to differ: mart was seen to differ: " in head.stderr, head.stderr[-4000:]
