"""SLO tests, record_run and a game day on a real Spark: a contract is broken, and it is told why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from drive import on_shared_spark, said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[3]
FILES = {
    "dbt_project.yml": """
name: day
version: 1.0.0
profile: day
on-run-end: "{{ dbt_ripple.record_run(results) }}"
vars: {dbt_ripple: {ripple_parts: all}}
flags: {require_generic_test_arguments_property: false}
models: {day: {+materialized: table, +file_format: parquet}}
""",
    "profiles.yml": """
day:
  target: dev
  outputs:
    dev: {type: spark, method: session, host: none, schema: day}
""",
    "packages.yml": json.dumps({"packages": [{"local": str(REPOSITORY)}]}),
    "models/stg.sql": """
select
    1 as id,
    {{ "'ten'" if var('broken', false) else 'cast(10 as int)' }} as amount,
    current_timestamp() as loaded_at
""",
    "models/fct.sql": "select id, amount, loaded_at from {{ ref('stg') }}",
    "models/models.yml": """
models:
  - name: stg
    data_tests:
      - dbt_ripple.schema_matches_contract: {name: nothing_declared}
  - name: fct
    access: public
    config: {contract: {enforced: true}, meta: {owner: ann}}
    data_tests:
      - dbt_ripple.volume_within_sigma: {name: volume}
      - dbt_ripple.volume_within_sigma: {name: volume_by_day, by: loaded_at}
      - dbt_ripple.schema_matches_contract: {name: as_declared}
    columns:
      - {name: id, data_type: integer}
      - name: amount
        data_type: int
        data_tests: [dbt_ripple.null_rate_at_most: {name: few_nulls, rate: "< 10%"}]
      - name: loaded_at
        data_type: timestamp
        data_tests:
          - dbt_ripple.fresh_within: {name: fresh, count: 2, period: hour}
          - dbt_ripple.fresh_within: {name: stale, count: -1, period: day, config: {severity: warn}}
""",
}
MODELS = "dbt run --select +dbt_ripple.operations dbt_ripple.governance.ripple_contract_violations"
INCIDENTS = (
    "sql select name, state, owner, failed_runs, cause_unique_id, cause_column, seconds_to_recovery"
    " from day_ripple.ripple_incidents where severity = 'error'"
)


@pytest.mark.spark
@pytest.mark.slow
def test_a_game_day(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    mine = "--exclude package:dbt_ripple"
    done = on_shared_spark(
        *(spark, tmp_path / "made", tmp_path),
        "dbt deps",
        f"dbt build {mine} --exclude-resource-type test",
        f"dbt test {mine} nothing_declared",
        "dbt compile",  # `dbt test` leaves a manifest without the models' compiled SQL
        "dbt-ripple load",
        "sql select name, status, row_count from day_ripple_raw.run_history order by name",
        "dbt compile --vars '{broken: true}'",
        "dbt-ripple load",
        f"! dbt build {mine} nothing_declared --vars '{{broken: true}}'",
        MODELS,
        INCIDENTS,
        "sql select message from day_ripple_raw.run_history where status = 'error'",
        "sql select violation from day_ripple.ripple_contract_violations where column_name = '*' and is_latest",
        f"dbt build {mine} nothing_declared",
        MODELS,
        INCIDENTS,
        "sql select sum(seconds_to_recovery) as total from day_ripple.ripple_incidents",
        "! dbt test --select nothing_declared",
        GITHUB_SHA="",
    )
    output = done.stderr[-4000:]
    assert done.returncode == 0, output
    assert sum("enforced contract" in text for text in said(done)) == 1, output
    recorded, opened, message, violations, closed, total = map(json.loads, done.stdout.splitlines())
    assert [tuple(row.values()) for row in recorded] == [
        ("as_declared", "pass", None),
        ("fct", "success", None),
        ("few_nulls", "pass", 1),
        ("fresh", "pass", None),
        ("stale", "warn", None),
        ("stg", "success", None),
        ("volume", "pass", 1),
        ("volume_by_day", "pass", 1),
    ]
    cause = {"cause_unique_id": "model.day.stg", "cause_column": "amount"}
    (incident,) = opened
    assert incident == {
        "name": "fct",
        "state": "open",
        "owner": "ann",
        "failed_runs": 1,
        **cause,
        "seconds_to_recovery": None,
    }, output
    assert "enforced contract" in str(message[0]["message"])
    assert violations == [{"violation": "contract_refused"}]
    (incident,) = closed
    assert incident["state"] == "closed" and incident["cause_unique_id"] == "model.day.stg"
    assert isinstance(total[0]["total"], int) and total[0]["total"] > 0
    assert "nothing_declared" in said(done)[-1], "a column that nobody declared"
