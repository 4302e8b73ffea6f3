"""volume_within_sigma over sixty days: loads that stop, lose or repeat rows fail, steady growth passes.

dbt compiles each test once; its query is then run on DuckDB for each of the days, with the counts
and results that record_run would have kept until then.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator

import duckdb
import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt

pytestmark = pytest.mark.slow

DAYS = 60
EVENT = 40
"""The day on which something happens; the days before it are as usual."""

AROUND = range(EVENT - 16, EVENT + 8)

FILES = {
    "models/orders.sql": "{{ config(materialized='table') }} select 1 as id, current_date as day where 1 = 0",
    "models/models.yml": """
models:
  - name: orders
    data_tests:
      - dbt_ripple.volume_within_sigma: {name: growth}
      - dbt_ripple.volume_within_sigma: {name: level, of: level}
      - dbt_ripple.volume_within_sigma: {name: by_day, by: day}
      - dbt_ripple.volume_within_sigma: {name: by_day_of_today, by: day, delay: 0}
""",
}

Loads = dict[int, int]
"""How many rows the table has of each day."""


def steady(_day: int) -> int:
    return 100


def noisy(day: int) -> int:
    return 100 + random.Random(day).randint(-20, 20)


def compound(day: int) -> int:
    return round(100 * 1.02**day)


def weekdays(day: int) -> int:
    return 0 if day % 7 > 4 else noisy(day)


def often_idle(day: int) -> int:
    return 50 if random.Random(day).random() < 0.5 else 0


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The compiled query of each test, by its name."""
    folder = tmp_path_factory.mktemp("volume")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        duck_project.make(folder, FILES)
        dbt(folder, "run", "--select", "orders")  # makes run_history
        dbt(folder, "compile", "--select", "orders", "--vars", "{ripple_volume_min_days: 7}")
        compiled = folder / "target" / "compiled" / "duck" / "models" / "models.yml"
        yield {path.stem: path.read_text().replace('"duck".', "") for path in compiled.iterdir()}


class Warehouse:
    """The table and what was recorded of it, as of a day."""

    def __init__(self, query: str, test: str) -> None:
        self.query = query
        self.test = test
        self.connection = duckdb.connect()
        self.connection.sql("set timezone = 'UTC'")
        self.connection.sql("create schema dev; create schema dev_ripple_raw")
        self.connection.sql("create table dev.orders (id int, day date)")
        self.connection.sql(
            "create table dev_ripple_raw.run_history (invocation_id text, unique_id text,"
            " node_id text, test_name text, target_name text, status text, row_count bigint,"
            " recorded_at timestamp)"
        )

    def fails(self, today: int, loads: Loads) -> bool:
        """Whether the test fails; its result and what it counted are recorded, as of today."""
        self.connection.sql("truncate dev.orders")
        self.connection.execute(
            "insert into dev.orders select 1, cast(now() as date) - l.ago"
            " from (select unnest(?) as ago, unnest(?) as n) as l, range(l.n)",
            [[today - day for day in loads], list(loads.values())],
        )
        rows = bool(self.connection.sql(self.query).fetchall())
        # A day passes: what is recorded is a day older tomorrow.
        self.connection.execute(
            "insert into dev_ripple_raw.run_history values (?, ?, 'model.duck.orders',"
            " 'volume_within_sigma', 'dev', ?, ?,"
            " (now() at time zone 'UTC')::timestamp + interval 5 minute)",
            [str(today), self.test, "fail" if rows else "pass", sum(loads.values())],
        )
        self.connection.sql(
            "update dev_ripple_raw.run_history set recorded_at = recorded_at - interval 1 day"
        )
        return rows


def failing(
    queries: dict[str, str], test: str, loads: Callable[[int], Loads], days: range = AROUND
) -> list[int]:
    """The days on which the test fails, where `loads` says what the table has on a day."""
    query = queries[test]
    # The id that dbt gave the test, where the query looks for its results.
    ids = re.findall(r"'(test\.duck\.[^']+)'", query)
    assert ids or "by_day" in test
    warehouse = Warehouse(query, ids[0] if ids else "")
    return [day for day in days if warehouse.fails(day, loads(day))]


def until(usual: Callable[[int], int], **changed: int) -> Callable[[int], Loads]:
    """As usual each day; `lost` days are gone from the event on, and its day has `times` the rows."""
    lost = range(EVENT - changed.get("lost", 0), EVENT)

    def loads(today: int) -> Loads:
        rows_of_day = {day: usual(day) for day in range(today + 1)}
        if today >= EVENT:
            rows_of_day[EVENT] *= changed.get("times", 1)
            rows_of_day |= dict.fromkeys(lost, 0)
            rows_of_day |= dict.fromkeys(range(EVENT, today + 1), 0) if changed.get("stuck") else {}
        return rows_of_day

    return loads


@pytest.mark.parametrize("test", ["growth", "by_day"])
@pytest.mark.parametrize("usual", [steady, noisy, compound])
def test_a_steadily_growing_table_passes_on_all_days(
    queries: dict[str, str], test: str, usual: Callable[[int], int]
) -> None:
    assert failing(queries, test, until(usual), range(DAYS)) == []


@pytest.mark.parametrize("test", ["growth", "by_day"])
def test_days_without_rows_are_usual_where_they_are(queries: dict[str, str], test: str) -> None:
    assert failing(queries, test, until(weekdays)) == []
    assert failing(queries, test, until(often_idle)) == []


@pytest.mark.parametrize("usual", [steady, noisy, compound])
def test_a_load_that_stopped_fails_every_day(
    queries: dict[str, str], usual: Callable[[int], int]
) -> None:
    assert failing(queries, "growth", until(usual, stuck=1)) == [*range(EVENT, EVENT + 8)]
    # Of a day it is known that nothing came once it is over.
    assert failing(queries, "by_day", until(usual, stuck=1)) == [*range(EVENT + 1, EVENT + 8)]
    assert failing(queries, "by_day_of_today", until(usual, stuck=1)) == [*range(EVENT, EVENT + 8)]


@pytest.mark.parametrize("usual", [steady, noisy, compound])
@pytest.mark.parametrize("test", ["growth", "by_day", "by_day_of_today"])
def test_ten_lost_days_and_a_fivefold_day_fail(
    queries: dict[str, str], test: str, usual: Callable[[int], int]
) -> None:
    for change in ({"lost": 10}, {"times": 5}):
        days = failing(queries, test, until(usual, **change))
        assert days and days[0] == EVENT, (change, days)


@pytest.mark.parametrize("usual", [steady, noisy, compound])
def test_the_level_does_not_tell(queries: dict[str, str], usual: Callable[[int], int]) -> None:
    """Why growth is the default: on a growing table the level hides all of it."""
    assert EVENT not in failing(queries, "level", until(usual, stuck=1))


def test_what_comes_after_is_judged_by_what_is_usual(queries: dict[str, str]) -> None:
    def late(today: int) -> Loads:
        """Nothing comes for three days; on the fourth all of it does."""
        seen = EVENT - 1 if EVENT <= today < EVENT + 3 else today
        return {day: noisy(day) for day in range(seen + 1)}

    assert failing(queries, "growth", late) == [EVENT, EVENT + 1, EVENT + 2]
    # The day itself was too much; the days after it are not.
    assert failing(queries, "growth", until(noisy, times=5)) == [EVENT]
    assert failing(queries, "growth", until(noisy, lost=10)) == [EVENT]
