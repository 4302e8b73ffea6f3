"""Within somebody else's program: its limits, its collector and its small stacks are left as they are."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from types import FrameType
from typing import Any

import pytest
from linked_tables import table_relation

from dbt_ripple.flow.canonical import canonical
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation
from dbt_ripple.reasons import Code
from dbt_ripple.tuning import collector_paused, collector_relaxed, deep_recursion

WITHIN = {
    "duckdb": """
        nullif({}, b); nullif(b, {}); coalesce({}, b); ifnull({}, b); case when {} > 1 then a else b end
        case when a > 1 then {} else b end; case {} when 1 then a else b end; case a when 1 then {} else b end
        if({} > 1, a, b); if(a > 1, {}, b); ({} between a and b); (a between {} and b); ({} in (1, b)); (a in ({}, 2))
        (not {}); ({} is null); greatest({}, b); cast({} as int); try_cast({} as int); concat({}, b); ({} || b); ({} + b)
        ((a and {}) or b); (select {} from t); exists (select 1 from t where a = {}); (a in (select {} from t))
        ({} is distinct from b); substring({}, 1, 2); trim({}); [{}]; struct_pack(x := {}); (-{}); ({} = b); ({} -> 'a')
        date_trunc('day', {}); ({} like b); list_transform([a], x -> {}); (select max({}) from t)
        (with c as (select {} as z from t) select z from c)
        """,
    "spark": "decode({}, 1, a, b); nvl2({}, a, b); nullif({}, b); ({} <=> b); named_struct('x', {})",
    "snowflake": "iff({}, a, b); nvl2({}, a, b); decode({}, 1, a, b); nullif({}, b); {}::int",
}
CASES = [
    (dialect, text.strip())
    for dialect, texts in WITHIN.items()
    for line in texts.split("\n")
    for text in line.split(";")
    if text.strip()
]


def table(*_: str) -> Relation:
    return table_relation("t", ["id", "a", "b"])


def followed(dialect: str, expression: str) -> bool:
    sql = f"select {expression} as x from t where {expression} is not null"
    lowered = lower(sql, dialect, expressions=True)
    if lowered.rel is None:
        return False
    canonical(sql, dialect, link(lowered, table, dialect), table)
    return True


def calls_of(dialect: str, within: str, times: int) -> int:
    """How many functions are called to follow an expression that is nested in itself."""
    expression = "a"
    for _ in range(times):
        expression = within.format(expression)
    calls = 0

    def count(_frame: FrameType, event: str, _of: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert followed(dialect, expression), expression
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(("dialect", "within"), CASES)
def test_no_expression_costs_more_than_a_power_of_its_depth(dialect: str, within: str) -> None:
    """Twice as deep may cost eight times as much (a subquery in a subquery), and not 2^20 times."""
    followed(dialect, within.format("a"))  # what is made once
    few, many = (calls_of(dialect, within, times) for times in (8, 16))
    assert many < 12 * few
    expression = "a"
    for _ in range(60):
        expression = within.format(expression)
    assert followed(dialect, expression)


@pytest.mark.parametrize("name", ["zeroifnull({})", "NULLIFZERO ({})", "div0(a, {})"])
def test_what_sqlglot_writes_twice_is_followed_to_a_depth(name: str) -> None:
    within = "a"
    for _ in range(8):
        within = name.format(within)
    beside = ", ".join(f"{name.format('a')} as c{i}" for i in range(20))
    assert followed("snowflake", within)
    assert lower(f"select {beside} from t", "snowflake").rel is not None
    deeper = lower(f"select {name.format(within)} as x from t", "snowflake")
    assert deeper.reason == Code.NESTED_TOO_DEEP(levels=8)


def test_threads_leave_the_recursion_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for i in range(200):
            with deep_recursion:
                assert sys.getrecursionlimit() >= 20_000
            if i % 50 == 0:
                lower("select a from t", "duckdb")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrecursionlimit() == before
    one_within = deep_recursion
    with one_within:  # the first that leaves does not take it from who is still within
        with deep_recursion:
            pass
        assert sys.getrecursionlimit() >= 20_000
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("pausing", [collector_paused, collector_relaxed])
def test_what_a_host_keeps_for_good_stays_so(pausing: Any) -> None:
    code = (
        "import gc\nfrom dbt_ripple.tuning import collector_paused, collector_relaxed, keep_all\n"
        f"gc.freeze()\nkept = gc.get_freeze_count()\nassert kept\nwith {pausing.__name__}(): pass\n"
        "assert gc.get_freeze_count() >= kept\n"
        # What the command line itself keeps is its own to count anew.
        f"keep_all()\nwith {pausing.__name__}(): pass\nassert gc.get_freeze_count() == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert gc.isenabled()


def test_a_thread_with_a_small_stack_follows_the_deepest_query() -> None:
    code = (
        "import threading\nfrom dbt_ripple.flow.lower import lower\n"
        "from dbt_ripple.flow.query_text import text_of_query\n"
        "def nested():\n"
        "    sql = 'select ' + 'coalesce(' * 185 + 'a' + ', b)' * 185 + ' as x from t'\n"
        "    print(lower(sql, 'duckdb', expressions=True).reason)\n"
        "    print(len(text_of_query(sql, 'duckdb').columns))\n"
        "    print(threading.stack_size())\n"
        "threading.stack_size(256 * 1024)\n"
        "one = threading.Thread(target=nested)\none.start()\none.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (
        0,
        ["None", "1", str(256 * 1024)],
        "",
    )
