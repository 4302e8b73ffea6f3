"""The query fuzzer itself: it writes what it says, it repeats itself, and it sees a miss."""

from __future__ import annotations

from collections.abc import Callable

import fuzz
import pytest
import token_edits
import verdict
from engine import DuckDB, Result
from fuzz import Fuzzer
from verdict import Prints, judge, prints

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fuzzer() -> Fuzzer:
    return Fuzzer(7, one_in=5, patience=0.5)


def verdict_of(engine: DuckDB, one: str, other: str, see: Callable[[str], Prints]) -> str:
    base, head = engine.run(one), engine.run(other)
    assert isinstance(base, Result) and isinstance(head, Result)
    return judge(base, head, see(one), see(other), "duckdb").missed


PAIRS = [
    ("select k, v from a", "select k, v + 1 as v from a"),
    ("select k, v from a", "select k, v from a where k = 1"),
    ("select k, v from a", "select k as v, v as k from a"),
    ("select count(*) as n from a", "select count(*) as n from b"),
    ("select first(s) as s from (select * from a order by id)", "select 'x' as s"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_miss_is_seen_and_what_is_right_is_not(fuzzer: Fuzzer, one: str, other: str) -> None:
    assert verdict_of(fuzzer.engine, one, other, lambda sql: prints(sql, "duckdb")) == ""
    blind = prints(one, "duckdb")
    assert verdict_of(fuzzer.engine, one, other, lambda _: blind) != ""
    opaque = Prints("cannot be read")
    assert verdict_of(fuzzer.engine, one, other, lambda _: opaque) == ""


def test_a_pair_can_be_made_again_and_a_miss_is_cut_to_its_core(
    fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = prints("select 1 as k", "duckdb")
    monkeypatch.setattr(fuzz, "prints", lambda sql, dialect, book=None: blind)
    monkeypatch.setattr(verdict, "prints", lambda sql, dialect, book=None: blind)
    found = []
    for _ in range(2):
        fuzzer.report = fuzz.Report(7)
        for number in range(20):
            fuzzer.number(number)
        found.append(fuzzer.report)
    assert found[0].kinds == found[1].kinds
    assert found[0].misses
    for miss in found[0].misses:
        assert len(miss["base"]) <= len(miss["whole base"])


def test_what_is_not_decided_by_the_query_is_no_miss(fuzzer: Fuzzer) -> None:
    for sql, decided in (
        ("select first(s) as s from a", False),
        ("select list(id) as l from (select * from a order by id)", True),
        ("select k from a limit 2", False),
        ("select k from a order by id limit 2", True),
    ):
        result = fuzzer.engine.run(sql)
        assert isinstance(result, Result)
        assert fuzzer.engine.determined(sql, result) == decided, sql


def test_what_runs_away_is_stopped(fuzzer: Fuzzer) -> None:
    endless = (
        "with recursive r (n) as (select 1 union all select 1 from r) select count(*) as n from r"
    )
    assert isinstance(fuzzer.engine.run(endless), str)
    assert isinstance(fuzzer.engine.run("select 1 as n"), Result)


def test_tokens_written_again_are_the_same_query(fuzzer: Fuzzer) -> None:
    same = 0
    for number in range(200):
        sql, _ = fuzzer.base(number)
        result = fuzzer.engine.run(sql)
        if isinstance(result, Result):
            again = fuzzer.engine.run(token_edits.joined(token_edits.tokens_of(sql)))
            assert isinstance(again, Result), sql
            assert again.bag() == result.bag() or not fuzzer.engine.determined(sql, result), sql
            same += 1
    assert same > 80
