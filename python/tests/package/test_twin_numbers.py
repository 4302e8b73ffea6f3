"""Twins of one project: each rule about numbers is broken once by the bad one, and none by the good one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, insert, loaded, rows, statuses
from hand_made import node, project

from dbt_ripple.graph.lineage_tables import RunHistoryRow

pytestmark = pytest.mark.slow

NOW = datetime.now(UTC).replace(microsecond=0)
YML = """
models:
  - name: counted
    data_tests:
      - dbt_ripple.volume_within_sigma: {name: grows, tags: [slo]}
  - name: daily
    data_tests:
      - dbt_ripple.volume_within_sigma: {name: every_day, by: day, tags: [slo]}
  - name: loads
    columns:
      - name: loaded_at
        data_tests:
          - dbt_ripple.fresh_within:
              {name: fresh, within: "< 60m", business_hours: "mon-sun 00:00-24:00", time_zone: Europe/Berlin}
      - name: value
        data_tests:
          - dbt_ripple.null_rate_at_most: {name: few_nulls, rate: "< 0.5%", config: {severity: warn}}
"""
COUNTED = "{{ config(materialized='table', meta={'ripple_count_rows': true}) }} select * from range(COUNT) as t(id)"
DAILY = "select cast(current_date - cast(i as int) as date) as day from range(FIRST, 21) as d(i), range(50) as r(n)"
LOADS = (
    "select cast(now() at time zone 'UTC' as timestamp) - interval AGE minute as loaded_at,"
    " case when id >= NULLS then id end as value from range(200) as t(id)"
)
SIDES = {
    # By 100 rows a day until yesterday, as good has it, and since then by none.
    "good": {"COUNT": "2000", "FIRST": "1", "AGE": "10", "NULLS": "0"},
    "bad": {"COUNT": "1900", "FIRST": "2", "AGE": "180", "NULLS": "2"},
}
TESTS = {"grows": "fail", "every_day": "fail", "fresh": "fail", "few_nulls": "warn"}
"""The tests, and what dbt says of each that is broken."""


def counted(days_ago: int) -> RunHistoryRow:
    moment = NOW - timedelta(days=days_ago)
    values = dict.fromkeys(RunHistoryRow.__struct_fields__)
    values |= {
        "invocation_id": f"day {days_ago}",
        "unique_id": "model.duck.counted",
        "project_name": "duck",
        "target_name": "dev",
        "command": "run",
        "resource_type": "model",
        "name": "counted",
        "node_id": "model.duck.counted",
        "status": "success",
        "started_at": moment,
        "completed_at": moment,
        "recorded_at": moment,
        "row_count": 2000 - 100 * days_ago,
    }
    return RunHistoryRow(**values)


@pytest.fixture(scope="module", params=SIDES)
def twin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, bool, dict[str, str]]]:
    """One of the twins, run, tested and loaded: its folder, whether it is bad, and what dbt said of its tests."""
    folder = tmp_path_factory.mktemp(request.param)
    files = {"models/models.yml": YML}
    for name, sql in (("counted", COUNTED), ("daily", DAILY), ("loads", LOADS)):
        for word, value in SIDES[request.param].items():
            sql = sql.replace(word, value)
        files[f"models/{name}.sql"] = sql
    bad = request.param == "bad"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, files)
        dbt(folder, "run", "--select", "package:duck", "package:dbt_ripple")
        insert(folder, "run_history", [counted(days) for days in range(1, 12)])
        output = statuses(dbt(folder, "test", "--select", "package:duck"))
        if bad:
            rows(folder, "create table dev.by_hand as select 1 as id")
        made = project(
            *(
                node(f"model.duck.{name}", "select 1 as id")
                for name in ("counted", "daily", "loads")
            ),
            adapter="duckdb",
        )
        made.metadata.project_name = "duck"
        # The bad one was loaded yesterday, and built since.
        made.metadata.generated_at = NOW + timedelta(days=-1 if bad else 1)
        made = made.having(digest=request.param)
        loaded(folder, made, "c0ffee")
        dbt(folder, "run", "--select", "package:dbt_ripple")
        yield folder, bad, output


def test_each_test_fails_on_the_bad_one_alone(twin: tuple[Path, bool, dict[str, str]]) -> None:
    _, bad, statuses_of_tests = twin
    assert statuses_of_tests == (TESTS if bad else dict.fromkeys(TESTS, "pass"))


def test_each_is_an_incident_of_its_severity(twin: tuple[Path, bool, dict[str, str]]) -> None:
    folder, bad, _ = twin
    result_rows = rows(
        folder, "select name, severity, state from dev_ripple.ripple_incident_failures"
    )
    of = {"fail": "error", "warn": "warn"}
    assert set(result_rows) == ({(t, of[s], "open") for t, s in TESTS.items()} if bad else set())


def test_slos_are_violated_by_the_bad_one_alone(twin: tuple[Path, bool, dict[str, str]]) -> None:
    folder, bad, _ = twin
    state_of = dict(rows(folder, "select name, state from dev_ripple.ripple_slo_status"))
    assert state_of == dict.fromkeys(TESTS, "violated" if bad else "met")


def test_what_nobody_lists_and_what_lags_behind(twin: tuple[Path, bool, dict[str, str]]) -> None:
    folder, bad, _ = twin
    unlisted = rows(folder, "select relation_name from dev_ripple.ripple_unlisted_relations")
    assert unlisted == ([("by_hand",)] if bad else [])
    assert rows(folder, "select status from dev_ripple.ripple_lineage_status") == [
        ("behind" if bad else "loaded",)
    ]
