"""A view is evaluated by whoever reads it: what reads it may fail by an edit that leaves its rows as they are."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hand_made import check, node, picked, project
from test_proven_tests import passed

from dbt_ripple.artifacts import Project
from dbt_ripple.changes import compare
from dbt_ripple.selection.evaluated_otherwise import readers_of_what_may_fail
from dbt_ripple.selection.select import select

T, V, W = "source.p.raw.t", "model.p.v", "model.p.w"
TYPES = {T: {"k": "INTEGER", "s": "VARCHAR"}, V: {"k": "INTEGER", "n": "INTEGER"}}
TESTS = {
    "of_n": "select n from s.v where n is null",
    "of_k": "select k from s.v where k is null",
    "keys": "select k from s.v group by k having count(*) > 1",
    "below": "select n from s.w where n is null",
}
PLAIN = "select k, cast(s as int) as n from s.t"
GUARDED = f"{PLAIN} where regexp_matches(s, '^[0-9]+$')"
COLUMN = "select k, s as n from s.t"
GROUPED = "select k, sum(cast(s as int)) as n from s.t group by k"


def side(sql: str, kind: str = "view", below: str = "view", above: str = "") -> Project:
    top = node(V, sql, "model.p.above" if above else T, config={"materialized": kind})
    view = {"config": {"materialized": "view"}}
    return project(
        node(T, columns=["k", "s"]),
        *([node("model.p.above", above, T, **view)] if above else []),
        top,
        node(W, "select k, n from s.v", V, config={"materialized": below}),
        *(check(name, sql, W if name == "below" else V) for name, sql in TESTS.items()),
        types=TYPES,
        adapter="duckdb",
    )


DATA = "select i as k, case when i % 2 = 0 then 'x' || i else i::varchar end as s from range(9999) t(i)"


def run(sql: str, kind: str, above: str = "", data: str = DATA) -> dict[str, Any]:
    """What DuckDB makes of the tests."""
    results: dict[str, Any] = {}
    with duckdb.connect() as connection:
        connection.execute("create schema s")
        connection.execute(f"create table s.t as {data}")
        if above:
            connection.execute(f"create view s.above as {above}")
        connection.execute(f"create {kind} s.v as {sql}")
        connection.execute("create view s.w as select k, n from s.v")
        for name, query in TESTS.items():
            try:
                results[name] = connection.execute(query).fetchall()
            except duckdb.Error:
                results[name] = "error"
    return results


@pytest.mark.parametrize(
    ("then", "now", "selected"),
    [
        # A sort, a CTE that is evaluated once and DISTINCT evaluate what nobody reads.
        (PLAIN, f"{PLAIN} order by n", {*TESTS}),
        (COLUMN, f"{COLUMN} order by cast(s as int)", {*TESTS}),
        (PLAIN, f"with m as materialized ({PLAIN}) select k, n from m", {*TESTS}),
        (GROUPED, GROUPED.replace("select", "select distinct"), {*TESTS}),
        (COLUMN, f"{COLUMN} order by k * 1000000", {*TESTS}),
        (PLAIN, f"with m as ({PLAIN}) select k, n from m", set()),
        (COLUMN, f"{COLUMN} order by n", set()),
        (PLAIN, f"{PLAIN} order by k", {"of_n", "below"}),
        # So they do where what they evaluate comes to fail.
        (f"{COLUMN} order by n", f"{PLAIN} order by n", {*TESTS}),
        (f"{COLUMN} order by 2", f"{PLAIN} order by 2", {*TESTS}),
        (f"{COLUMN} order by all", f"{PLAIN} order by all", {*TESTS}),
        (f"{COLUMN} order by k", f"{PLAIN} order by k", {"of_n", "below"}),
        (
            f"with m as materialized ({COLUMN}) select k, n from m",
            f"with m as materialized ({PLAIN}) select k, n from m",
            {*TESTS},
        ),
        (
            f"with m as ({COLUMN}) select k, n from m",
            f"with m as ({PLAIN}) select k, n from m",
            {"of_n", "below"},
        ),
        (COLUMN, f"with m as materialized ({COLUMN}) select k, n from m", set()),
        (f"{PLAIN} order by n", f"{PLAIN}\norder by n -- sorted", set()),
    ],
)
def test_what_has_all_of_a_view_evaluated(then: str, now: str, selected: set[str]) -> None:
    found = {test.name for test in picked(side(then), side(now)).tests}
    base, head = run(then, "view"), run(now, "view")
    assert {name for name in TESTS if base[name] != head[name]} <= found
    assert found == selected


@pytest.mark.parametrize(
    ("then", "now", "selected"),
    [
        (GUARDED, ("table", "view"), {"of_n", "below"}),
        (GUARDED, ("view", "table"), {"of_n", "below"}),
        (GUARDED, ("view", "materialized_view"), {"of_n", "below"}),
        (GUARDED, ("view", "view"), set()),
        (COLUMN, ("view", "table"), set()),
        (PLAIN, ("table", "view"), set()),
        (
            f"{COLUMN} where k < 5".replace("s as n", "k * k as n"),
            ("table", "view"),
            {"of_n", "below"},
        ),
        (f"{COLUMN} where cast(k as int) > 5", ("view", "table"), {*TESTS}),
    ],
)
def test_a_view_is_made_a_table(then: str, now: tuple[str, str], selected: set[str]) -> None:
    sides = (side(then, kind) for kind in now)
    assert {test.name for test in picked(*sides).tests} == selected


def test_the_engine_evaluates_a_filter_before_what_guards_it() -> None:
    table, view = run(GUARDED, "table"), run(GUARDED, "view")
    assert (table["of_n"], view["of_n"]) == ([], "error")
    assert table["of_k"] == view["of_k"] == []


@pytest.mark.parametrize(
    ("above", "selected"), [(GUARDED, {"of_n", "below"}), (PLAIN, set()), (COLUMN, set())]
)
def test_what_may_fail_may_stand_in_a_view_above(above: str, selected: set[str]) -> None:
    sql = "select k, n from s.above"
    sides = (side(sql, kind, above=above) for kind in ("table", "view"))
    assert {test.name for test in picked(*sides).tests} == selected


IN_TURN = "select k, n from s.above where {} and {}"


@pytest.mark.parametrize(
    ("above", "now", "selected"),
    [
        (PLAIN, IN_TURN.format("n > 1", "k < 5"), {*TESTS}),
        (COLUMN, IN_TURN.format("n > 1", "k < 5"), set()),
        (PLAIN, f"with c as (select * from s.above) {IN_TURN.format('k < 5', 'n > 1')}".replace("n from s.above", "n from c"), set()),
    ],
)  # fmt: skip
def test_a_condition_on_what_may_fail_in_a_view_above_is_moved(
    above: str, now: str, selected: set[str]
) -> None:
    then = IN_TURN.format("k < 5", "n > 1")
    sides = (side(sql, above=above) for sql in (then, now))
    assert {test.name for test in picked(*sides).tests} == selected


SUMMED = "select k, sum(case when k < 5 then n end) as n from s.above group by k"
FILTERED = "select k, sum(n) filter (where k < 5) as n from s.above group by k"


@pytest.mark.parametrize(
    ("then", "now", "selected"),
    [
        (SUMMED, FILTERED, {"of_n", "below"}),
        (SUMMED, SUMMED.replace("n end", "n * 2 end"), {"of_n", "below"}),  # as a column that changed
        (SUMMED, SUMMED.replace(") as n from", ") as n, max(n) as more from"), set()),
        (f"select k, n, n + 1 as more from ({SUMMED}) as o", SUMMED, set()),
    ],
)  # fmt: skip
def test_a_column_is_said_otherwise_of_what_may_fail_in_a_view_above(
    then: str, now: str, selected: set[str]
) -> None:
    sides = (side(sql, above=PLAIN) for sql in (then, now))
    assert {test.name for test in picked(*sides).tests} == selected


INSIDE = f"with c as ({PLAIN}) select k, n from c where {{}}"
AT_ONCE = "select k, n from (select *, row_number() over () as r from s.above) as x where k < 5"


@pytest.mark.parametrize(
    ("then", "now", "selected"),
    [
        # What guards it is made dearer: an engine asks the cheaper condition first.
        (INSIDE.format("k in (1, 2)"), INSIDE.format("k = 1 or k = 2"), {"of_n", "below"}),
        (INSIDE.format("k in (1, 2)"), INSIDE.format("k in (1, 2) and true"), set()),
        (INSIDE.format("n > 1 and k < 5"), INSIDE.format("not (n <= 1) and k < 5"), {*TESTS}),
        # A window reads all rows, whatever is asked of it afterwards.
        (AT_ONCE, "select k, n from s.above where k < 5", {"of_n", "below"}),
        # What counts rows reads no value.
        ("select k, n, count(*) over () as c from s.above", "select k, n, count(1) over () as c from s.above", set()),
        ("select k, max(n) as n, count(*) as c from s.above group by k", "select k, max(n) as n, count(1) as c from s.above group by k", set()),
        ("select k, n, case when k > 1 then 1 end as c from s.above", "select k, n, if(k > 1, 1, null) as c from s.above", set()),
        ("select a.k, a.n from s.above as a where a.k < 5", "select b.k, b.n from s.above as b where b.k < 5", set()),
    ],
)  # fmt: skip
def test_what_is_evaluated_for_other_rows(then: str, now: str, selected: set[str]) -> None:
    sides = (side(sql, above=PLAIN) for sql in (then, now))
    assert {test.name for test in picked(*sides).tests} == selected


@pytest.mark.parametrize(
    ("view", "selected"),
    [
        ("select k, n from s.above order by n", {*TESTS}),
        ("select k, n from s.above order by k", {"of_n", "below"}),
        ("select k, n from s.above", {"of_n", "below"}),
    ],
)
def test_a_view_that_nobody_edited_evaluates_what_comes_to_fail(
    view: str, selected: set[str]
) -> None:
    found = {test.name for test in picked(*(side(view, above=s) for s in (COLUMN, PLAIN))).tests}
    base, head = (run(view, "view", above) for above in (COLUMN, PLAIN))
    assert {name for name in TESTS if base[name] != head[name]} <= found
    assert found == selected


@pytest.mark.parametrize(
    ("order", "selected"), [("order by n", {"of_n", "below", "k_below"}), ("", {"of_n", "below"})]
)
def test_a_view_that_nobody_edited_evaluates_what_was_stored(
    order: str, selected: set[str]
) -> None:
    def of(kind: str) -> Project:
        nodes = {**side(GUARDED, kind).nodes}
        nodes[W] = node(W, f"select k, n from s.v {order}", V, config={"materialized": "view"})
        counted = check("k_below", "select k from s.w group by k having count(*) > 1", W)
        return project(*nodes.values(), counted, types=TYPES, adapter="duckdb")

    assert {test.name for test in picked(of("table"), of("view")).tests} == selected


def test_an_engine_asks_what_is_cheaper_first() -> None:
    guard = "k in (0, 1, 2)"
    dear = " or ".join(f"k + {i} - {i} = {i % 3}" for i in range(9))
    data = "select i as k, case when i < 3 then i::varchar else 'x' end as s from range(9) t(i)"
    results = [run(INSIDE.format(condition), "view", data=data) for condition in (guard, dear)]
    assert [result["of_n"] for result in results] == [[], "error"]
    assert [result["of_k"] for result in results] == [[], []]


FEW = "select i as k, case when i < 9 then i::varchar else 'x' end as s from range(20) t(i)"


@pytest.mark.parametrize(
    ("now", "proven"),
    [
        ("select k, n from c where k < 9 and k > 3", {"of_n", "of_k"}),
        ("select k, n from (select k, n, row_number() over (order by k) as r from c) as x where k < 9 and r < 5", {"of_k"}),
        ("select k, n from (select k, n from c order by k limit 100) as x where k < 9", {"of_k"}),
    ],
)  # fmt: skip
def test_fewer_rows_are_proven_where_no_more_are_evaluated(now: str, proven: set[str]) -> None:
    then = INSIDE.format("k < 9")
    now = now.join([INSIDE.partition("select k, n from c")[0], ""])
    found = select(passed(side(then), keys=1), side(now))
    assert {test.unique_id.rpartition(".")[2] for test in found.proven} == proven
    before, after = run(then, "view", data=FEW), run(now, "view", data=FEW)
    assert before["of_n"] == []
    assert (after["of_n"] == "error") is ("of_n" not in proven)


def test_a_view_that_is_new_has_asked_nothing_before() -> None:
    def of(*more: Any) -> Project:
        top = node(
            V,
            f"select k, n from s.{'new' if more else 'above'} where k < 9",
            "model.p.new" if more else "model.p.above",
            config={"materialized": "view"},
        )
        return project(
            *{**side(PLAIN, above=PLAIN).nodes, V: top}.values(),
            *more,
            types=TYPES,
            adapter="duckdb",
        )

    new = node(
        "model.p.new",
        "select k, n from s.above where k < 5",
        "model.p.above",
        config={"materialized": "view"},
    )
    found = select(passed(of(), keys=1), of(new))
    assert "of_n" in {test.name for test in found.tests}


def test_what_is_edited_too_is_selected_by_its_rows_alone() -> None:
    """Proofs of tests ask themselves who evaluates a view that changed."""
    comparison = compare(side(PLAIN), side(f"{PLAIN} where k > 1 order by n"))
    assert [*readers_of_what_may_fail(comparison)] == []


@pytest.mark.parametrize("below", ["view", "table"])
def test_what_reads_it_is_built(below: str) -> None:
    """A view, too: base's would read base's."""
    sides = (side(GUARDED, kind, below) for kind in ("table", "view"))
    assert picked(*sides).models == [V, W]


def test_a_table_between_has_evaluated_it() -> None:
    sides = [side(GUARDED, kind, "table") for kind in ("table", "view")]
    of_table = check("of_table", "select k from s.u where n is null", "model.p.u")
    further = node("model.p.u", "select k, n from s.w", W)
    sides = [
        project(*(*made.nodes.values(), further, of_table), types=TYPES, adapter="duckdb")
        for made in sides
    ]
    assert {test.name for test in picked(*sides).tests} == {"of_n", "below"}


def test_views_that_many_ways_lead_to_are_looked_at_once() -> None:
    def stacked(kind: str) -> Project:
        nodes = [
            node(T, columns=["k", "s"]),
            node("model.p.v0", PLAIN, T, config={"materialized": "view"}),
        ]
        for i in range(40):
            sql = f"select a.k, b.n from s.v{i} as a join s.w{i} as b on a.k = b.k"
            twin = node(f"model.p.w{i}", f"select k, n from s.v{i}", f"model.p.v{i}")
            above = node(f"model.p.v{i + 1}", sql, f"model.p.v{i}", f"model.p.w{i}")
            twin.config["materialized"] = above.config["materialized"] = "view"
            nodes += [twin, above]
        nodes[-1].config["materialized"] = kind
        test = check("of_top", "select n from s.v40 where n is null", "model.p.v40")
        return project(*nodes, test, types=TYPES, adapter="duckdb")

    assert [t.name for t in picked(stacked("table"), stacked("view")).tests] == ["of_top"]
