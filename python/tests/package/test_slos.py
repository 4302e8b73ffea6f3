"""The generic tests and record_run, by a real dbt on DuckDB: what passes, what fails, what is kept."""

from __future__ import annotations

import datetime as datetime_module
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jinja2
import pytest
import pytz

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, rows, statuses

pytestmark = pytest.mark.slow

FILES = {
    "models/stg.sql": """
select * from (values
  (1, cast(now() at time zone 'UTC' as timestamp) - interval 2 hour, 'a', cast(1.5 as decimal(10, 2))),
  (2, cast(now() at time zone 'UTC' as timestamp) - interval 2 hour, null, 2.5),
  (3, cast(now() at time zone 'UTC' as timestamp) - interval 3 hour, 'it''s', 3.5),
  (4, cast(now() at time zone 'UTC' as timestamp) - interval 3 hour, 'b', 4.5)
) as v(id, loaded_at, name, amount)
""",
    "models/empty.sql": "select * from {{ ref('stg') }} where id > 100",
    "models/counted.sql": "{{ config(materialized='table', meta={'ripple_count_rows': true}) }} select * from {{ ref('stg') }}",
    "models/broken.sql": "{{ config(materialized='table') }} select cast('it''s \\\\ ${not} a number' as int) as n from {{ ref('stg') }}",
    "models/models.yml": """
models:
  - name: stg
    columns:
      - {name: id, data_type: int}
      - name: loaded_at
        data_type: timestamp
        data_tests:
          - dbt_ripple.fresh_within: {name: fresh, count: 4, period: hour}
          - dbt_ripple.fresh_within: {name: stale, count: 60, period: minute}
          - dbt_ripple.fresh_within: {name: fresh_in_days, count: 1, period: day}
          - dbt_ripple.fresh_within: {name: stale_in_words, within: "< 60m"}
          - dbt_ripple.fresh_within: {name: stale_on_no_day_of_work, within: 60m, business_hours: "FAR-FAR 00:00-24:00"}
          - dbt_ripple.fresh_within: {name: stale_at_work, within: 60m, business_hours: "mon-sun 00:00-24:00", time_zone: Europe/Berlin}
      - name: name
        data_type: varchar
        data_tests:
          - dbt_ripple.null_rate_at_most: {name: few_nulls, rate: 0.25}
          - dbt_ripple.null_rate_at_most: {name: many_nulls, rate: 0.2}
          - dbt_ripple.null_rate_at_most: {name: a_quarter_of_nulls, rate: "25%"}
          - dbt_ripple.null_rate_at_most: {name: fewer_than_a_quarter_of_nulls, rate: "< 25%"}
          - dbt_ripple.null_rate_at_most: {name: nulls_of_a_part, rate: "50 %", config: {where: id > 2}}
      - {name: amount, data_type: "numeric(10,2)"}
    data_tests:
      - dbt_ripple.volume_within_sigma: {name: volume, of: level, tags: [slo]}
      - dbt_ripple.volume_within_sigma: {name: volume_of_one, of: level, sigmas: 0.5}
      - dbt_ripple.volume_within_sigma: {name: volume_tolerant, of: level, sigmas: 0.5, tolerance: 0.7}
      - dbt_ripple.schema_matches_contract: {name: as_declared}
  - name: empty
    columns:
      - {name: ID}
      - {name: loaded_at, data_tests: [{dbt_ripple.fresh_within: {name: nothing_is_not_fresh, count: 9, period: day}}]}
      - {name: name, data_tests: [{dbt_ripple.null_rate_at_most: {name: nothing_is_not_null, rate: 0}}, {dbt_ripple.null_rate_at_most: {name: nothing_is_not_null_at_all, rate: "< 1%"}}]}
    data_tests:
      - dbt_ripple.schema_matches_contract: {name: more_than_declared}
      - dbt_ripple.schema_matches_contract: {name: more_is_fine, allow_more: true}
  - name: counted
    columns: [{name: id, data_type: bigint}, {name: gone, data_type: int}]
    data_tests:
      - dbt_ripple.schema_matches_contract: {name: not_as_declared, allow_more: true}
""".replace("FAR", f"{datetime.now(UTC) + timedelta(days=3):%a}".lower()),
}


RUN = {"stg": "success", "empty": "success", "counted": "success", "broken": "error"}
TESTED = {
    "fresh": "pass",
    "fresh_in_days": "pass",
    "stale": "fail",
    "stale_in_words": "fail",
    "stale_on_no_day_of_work": "pass",
    "stale_at_work": "fail",
    "a_quarter_of_nulls": "pass",
    "fewer_than_a_quarter_of_nulls": "fail",
    "nulls_of_a_part": "pass",
    "nothing_is_not_null_at_all": "pass",
    "few_nulls": "pass",
    "many_nulls": "fail",
    "volume": "pass",
    "volume_of_one": "pass",
    "volume_tolerant": "pass",
    "as_declared": "pass",
    "nothing_is_not_fresh": "fail",
    "nothing_is_not_null": "pass",
    "more_than_declared": "fail",
    "more_is_fine": "pass",
    "not_as_declared": "fail",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project, run and tested once."""
    folder = tmp_path_factory.mktemp("slos")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.setenv("GITHUB_SHA", "c0ffee")
        patch.chdir(folder)
        duck_project.make(folder, FILES)
        assert statuses(dbt(folder, "run", "--exclude", "package:dbt_ripple")) == RUN
        yield folder


def test_what_passes_and_fails_is_recorded_once(built: Path) -> None:
    results = dbt(built, "test", "--exclude", "package:dbt_ripple")
    assert statuses(results) == TESTED
    result_rows = rows(
        built,
        "select name, status, command, resource_type, node_id, test_name, tags, row_count, failures"
        " from dev_ripple_raw.run_history",
    )
    assert len(result_rows) == len(RUN) + len(TESTED)
    assert {row[0]: row[1] for row in result_rows} == RUN | TESTED
    kept = {row[0]: row[2:] for row in result_rows}
    assert kept["counted"] == ("run", "model", "model.duck.counted", None, "", 4, None)
    assert kept["stg"] == ("run", "model", "model.duck.stg", None, "", None, None)
    volume = ("test", "test", "model.duck.stg", "volume_within_sigma", "slo", 4, 0)
    assert kept["volume"] == volume
    stale = ("test", "test", "model.duck.stg", "fresh_within", "", None, 1)
    assert kept["stale"] == stale
    counted = rows(
        built,
        "select name, column_name, row_count, null_count, compared_days"
        " from dev_ripple_raw.run_history where row_count is not null and command = 'test'",
    )
    assert {name: tuple(more) for name, *more in counted} == {
        **dict.fromkeys(("few_nulls", "many_nulls", "a_quarter_of_nulls"), ("name", 4, 1, None)),
        "fewer_than_a_quarter_of_nulls": ("name", 4, 1, None),
        "nulls_of_a_part": ("name", 2, 0, None),
        "nothing_is_not_null": ("name", 0, 0, None),
        "nothing_is_not_null_at_all": ("name", 0, 0, None),
        **dict.fromkeys(("volume", "volume_of_one", "volume_tolerant"), (None, 4, None, 14)),
    }


def test_what_is_recorded_of_a_run(built: Path) -> None:
    ((message, seconds, took, checksums, shas, targets, projects),) = rows(
        built,
        "select max(message), max(execution_time), max(epoch(completed_at - started_at)),"
        " count(checksum), max(git_sha), max(target_name), max(project_name)"
        " from dev_ripple_raw.run_history where command = 'run'",
    )
    # As it is: quotes, backslashes and what some shells take for variables.
    assert "it's \\\\ ${not} a number" in message
    assert seconds >= took > 0
    assert (checksums, shas, targets, projects) == (4, "c0ffee", "dev", "duck")
    ((off,),) = rows(
        built,
        "select max(abs(epoch(recorded_at - (now() at time zone 'UTC')::timestamp)))"
        " + max(abs(epoch(started_at - recorded_at))) from dev_ripple_raw.run_history",
    )
    assert off < 600, "times are not in UTC"


def test_the_volume_is_compared_with_what_was_recorded(built: Path) -> None:
    days = {1: [999, 10], 2: [12], 3: [11], 0: [4000], 20: [4000]}  # the last of each day counts
    for day, counts in days.items():
        for number, count in enumerate(counts):
            rows(
                built,
                "insert into dev_ripple_raw.run_history"
                " (invocation_id, unique_id, node_id, target_name, row_count, recorded_at)"
                f" select 'i{day}', 'model.duck.stg', 'model.duck.stg', 'dev', {count},"
                f" date_trunc('day', (now() at time zone 'UTC')::timestamp)"
                f" - interval {day} day + interval {number + 1} second",
            )
    rows(
        built,
        "insert into dev_ripple_raw.run_history (node_id, target_name, row_count, recorded_at)"
        " select node_id, 'prod', 4, recorded_at from dev_ripple_raw.run_history",
    )
    # 4 rows against 10, 11, 12: seven standard deviations, and 64 percent of the mean.
    output = statuses(dbt(built, "test", "--select", "stg,test_name:volume_within_sigma"))
    assert output == {"volume": "fail", "volume_of_one": "fail", "volume_tolerant": "pass"}
    rows(built, "delete from dev_ripple_raw.run_history where invocation_id = 'i3'")
    output = statuses(dbt(built, "test", "--select", "stg,test_name:volume_within_sigma"))
    assert set(output.values()) == {"pass"}, "two days are too few"


def test_it_is_not_recorded_where_that_is_not_wanted_or_not_possible(built: Path) -> None:
    before = rows(built, "select count(*) from dev_ripple_raw.run_history")
    off = "{ripple_record_runs: false}"
    assert statuses(dbt(built, "run", "--select", "stg", "--vars", off)) == {"stg": "success"}
    assert rows(built, "select count(*) from dev_ripple_raw.run_history") == before
    missing = "{ripple_raw_schema: nowhere, ripple_create_raw_tables: false}"
    assert statuses(dbt(built, "run", "--select", "stg", "--vars", missing)) == {"stg": "success"}
    rows(built, "create schema older; create table older.run_history (invocation_id text)")
    older = "{ripple_raw_schema: older}"
    assert statuses(dbt(built, "run", "--select", "stg", "--vars", older)) == {"stg": "success"}
    assert rows(built, "select count(*) from older.run_history") == [(0,)]


def test_a_volume_of_a_part_is_refused(built: Path) -> None:
    path = built / "models" / "part.yml"
    path.write_text(
        "models: [{name: broken, data_tests: [{dbt_ripple.volume_within_sigma:"
        " {name: volume_of_a_part, config: {where: id > 1}}}]}]"
    )
    (result,) = dbt(built, "test", "--select", "volume_of_a_part")
    path.unlink()
    assert str(result.status) == "error"
    assert "remove `where`" in (result.message or "")


@pytest.mark.parametrize(
    ("hours", "moment", "expected"),
    [
        # A Friday, in summer: Berlin is two hours ahead.
        ("09:00-18:00", "2024-06-14 07:00", True),
        ("09:00-18:00", "2024-06-14 06:59", False),
        ("09:00-18:00", "2024-06-14 15:59", True),
        ("09:00-18:00", "2024-06-14 16:00", False),
        ("9:00 - 18:00", "2024-06-15 10:00", False),
        ("mon-sat 09:00-18:00", "2024-06-15 10:00", True),
        # In winter it is one.
        ("09:00-18:00", "2024-12-13 07:59", False),
        ("09:00-18:00", "2024-12-13 08:00", True),
        # The night from Friday to Saturday is Friday's, that from Sunday to Monday is nobody's.
        ("22:00-06:00", "2024-06-15 03:59", True),
        ("22:00-06:00", "2024-06-15 20:00", False),
        ("22:00-06:00", "2024-06-17 03:00", False),
        ("sat-mon 00:00-24:00", "2024-06-16 10:00", True),
        ("sat-mon 00:00-24:00", "2024-06-18 10:00", False),
    ],
)
def test_business_hours(hours: str, moment: str, expected: bool) -> None:
    when = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert rendered("is_business_time", hours, "Europe/Berlin", when) is expected


@pytest.mark.parametrize(
    ("text", "share", "strict"),
    [(0.005, 0.005, False), ("0.5%", 0.005, False), ("< 0.5%", 0.005, True), ("<=1", 1, False)],
)
def test_shares_as_people_write_them(text: str, share: float, strict: bool) -> None:
    assert rendered("read_share", text) == {"share": share, "strict": strict}


@pytest.mark.parametrize(
    ("macro", "text"),
    [
        ("read_share", "5"),
        ("read_share", "half"),
        ("read_age", "None None"),
        ("read_age", "30 weeks"),
        ("is_business_time", "9-18"),
        ("is_business_time", "mon-tod 09:00-18:00"),
    ],
)
def test_what_nobody_can_read_is_refused(macro: str, text: str) -> None:
    with pytest.raises(CompilationError, match=re.escape(text)):
        rendered(macro, text, *(["Europe/Berlin"] if macro == "is_business_time" else []))


def rendered(name: str, *arguments: object) -> object:
    """What a macro of macros/slos returns."""

    def returned(value: object) -> None:
        raise _ReturnedError(value)

    def refused(message: str) -> None:
        raise CompilationError(message)

    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    text = (duck_project.REPOSITORY / "macros" / "slos" / f"{name}.sql").read_text()
    module = environment.from_string(text).make_module(
        {
            "modules": {"re": re, "pytz": pytz, "datetime": datetime_module},
            "return": returned,
            "exceptions": {"raise_compiler_error": refused},
        }
    )
    try:
        getattr(module, name)(*arguments)
    except _ReturnedError as done:
        return done.args[0]
    return None


class _ReturnedError(Exception):
    """Ends a macro, as dbt's `return` does."""


class CompilationError(Exception):
    """What dbt's `raise_compiler_error` raises."""
