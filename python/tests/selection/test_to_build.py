"""Rule 13: what CI must build, and the one test that compiles what no relation inlines."""

from __future__ import annotations

import pytest
from hand_made import LISTED, RAW, check, macro, node, orders, picked, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.selection.select import select

E = "select id, amount, status from s.orders"
WITH_E = "with __dbt__cte__e as ({e}) "
OVER_E = WITH_E + "select id from __dbt__cte__e"


def ephemeral(name: str, sql: str, *parents: str, **more: str) -> Node:
    return node(f"model.p.{name}", sql, *parents, config={"materialized": "ephemeral"}, **more)


def inlined(e: str, *more: Node) -> Project:
    """orders -> e (ephemeral), and whatever reads it."""
    return project(orders(), ephemeral("e", e, RAW), *more, catalog=LISTED)


def table(e: str) -> Node:
    return node("model.p.t", OVER_E.format(e=e), "model.p.e", raw="select id from {{ ref('e') }}")


EDITED = E.replace("amount", "upper(amount) as amount")


def test_a_relation_is_built_that_inlines_an_edited_ephemeral() -> None:
    selection = picked(inlined(E, table(E)), inlined(EDITED, table(EDITED)))
    assert (selection.tests, selection.models) == ([], ["model.p.e", "model.p.t"])


def test_also_through_another_ephemeral() -> None:
    def side(e: str) -> Project:
        first = WITH_E.format(e=e)
        return inlined(
            e,
            ephemeral("f", first + "select id from __dbt__cte__e", "model.p.e", raw="from e"),
            node(
                "model.p.t",
                first.rstrip() + ", __dbt__cte__f as (select id from __dbt__cte__e) "
                "select id from __dbt__cte__f",
                "model.p.f",
                raw="select id from {{ ref('f') }}",
            ),
        )

    assert picked(side(E), side(EDITED)).models == ["model.p.e", "model.p.t"]


def test_what_reads_that_relation_is_not_built() -> None:
    def side(e: str) -> Project:
        return inlined(e, table(e), node("model.p.u", "select id from s.t", "model.p.t"))

    assert "model.p.u" not in picked(side(E), side(EDITED)).models


def on_e(name: str, e: str, column: str = "id") -> Node:
    sql = WITH_E.format(e=e) + f"select {column} from __dbt__cte__e where {column} is null"
    return check(name, sql, "model.p.e", raw=f"select {column} from {{{{ ref('e') }}}}")


def test_one_test_compiles_an_ephemeral_that_only_tests_inline() -> None:
    selection = picked(
        inlined(E, on_e("a", E), on_e("b", E)),
        inlined(EDITED, on_e("a", EDITED), on_e("b", EDITED)),
    )
    assert [(t.name, str(t.reason)) for t in selection.tests] == [
        ("a", "e changed, and only tests inline it: running one shows whether it compiles")
    ]


def test_a_test_that_runs_anyway_is_that_one() -> None:
    def side(e: str) -> Project:
        return inlined(e, on_e("a", e), on_e("b", e, "amount"))

    assert [t.name for t in picked(side(E), side(EDITED)).tests] == ["b"]


def test_where_a_relation_inlines_it_no_test_has_to() -> None:
    selection = picked(
        inlined(E, table(E), on_e("a", E)), inlined(EDITED, table(EDITED), on_e("a", EDITED))
    )
    assert selection.tests == []


@pytest.mark.parametrize(("named", "tried"), [("amount", ["of_e"]), ("status", [])])
def test_one_test_compiles_an_ephemeral_that_names_a_column_of_another_type(
    named: str, tried: list[str]
) -> None:
    """Nothing is made of the name, but the engine may refuse it: `amount collate nocase` of a number, say."""

    def side(edit: str) -> Project:
        inner = f"with x as (select id, {named} || 'x' as n from s.t) select id from x"
        text = WITH_E.format(e=inner) + "select id from __dbt__cte__e where id is null"
        return project(
            orders(),
            node("model.p.t", f"select id, {edit} as amount, status from s.orders", RAW),
            ephemeral("e", inner, "model.p.t"),
            check("of_e", text, "model.p.e"),
            catalog=LISTED,
        )

    selection = picked(side("amount"), side("amount + 1"))
    assert [test.name for test in selection.tests] == tried
    if tried:
        assert "amount" in str(selection.tests[0].reason)


def test_an_ephemeral_that_means_the_same_selects_no_test() -> None:
    same = "with o as (select * from s.orders) select id, amount, status from o"
    base, head = inlined(E, table(E), on_e("a", E)), inlined(same, table(same), on_e("a", same))
    selection = picked(base, head)
    assert (selection.tests, selection.models) == ([], ["model.p.e", "model.p.t"])


@pytest.mark.parametrize(
    ("sql", "models"),
    [
        ("select id from s.orders -- all", []),
        ("SELECT id\nFROM s.orders", []),
        ("with o as (select * from s.orders) select id from o", ["model.p.m"]),
        (
            "with o as (select cast(status as int) as n from s.orders) select id from s.orders",
            ["model.p.m"],
        ),
    ],
)
def test_a_model_edited_beyond_its_layout_is_built(sql: str, models: list[str]) -> None:
    base, head = (
        project(orders(), node("model.p.m", s, RAW), catalog=LISTED)
        for s in ("select id from s.orders", sql)
    )
    assert picked(base, head).models == models


def test_another_schema_is_no_edit() -> None:
    base = project(orders(), node("model.p.m", "select id from `s`.`orders`", RAW), catalog=LISTED)
    head = project(
        orders(),
        node("model.p.m", "select id from `dev`.`orders`", RAW, raw="select id  from orders"),
        catalog=LISTED,
    )
    head.nodes[RAW] = replace(head.nodes[RAW], schema="dev", relation_name="`dev`.`orders`")
    assert picked(base, head).models == []


@pytest.mark.parametrize(
    ("sql", "proven"),
    [
        ("select id from s.m where id is null", True),
        ("SELECT id FROM s.m -- none\nWHERE id IS NULL", True),
        ("select m.id from s.m where id is null", False),
    ],
)
def test_a_test_in_new_words_is_not_proven(sql: str, proven: bool) -> None:
    """It may ask the same and be no query any more, which only running it shows."""
    base, head = (
        project(
            orders(),
            node("model.p.m", f"select id from s.orders{where}", RAW),
            check("t", test_sql, "model.p.m"),
            catalog=LISTED,
        )
        for where, test_sql in (("", "select id from s.m where id is null"), (" where id > 0", sql))
    )
    chosen = select(base, head, assume_passed=True)
    assert bool(chosen.proven) == proven
    assert bool(chosen.tests) != proven


BASE_TEST = "with a as (select max(id) as id from s.m) select id from a where id > 3"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("WITH a AS (select max(id) as id from s.m)\nselect id from a where id > 3 -- all", []),
        ("with b as (select max(id) as id from s.m) select id from b where id > 3", []),
        ("with b as (select max(id) as n from s.m) select n from b where n > 3", ["s"]),
        ("with a as (select max(id) as id, status from s.m) select id from a where id > 3", ["s"]),
    ],
)
def test_a_test_in_other_words_runs_though_it_asks_the_same(sql: str, names: list[str]) -> None:
    def side(test: str) -> Project:
        model = node("model.p.m", "select id, status from s.orders", RAW)
        return project(orders(), model, check("s", test, "model.p.m"), catalog=LISTED)

    assert [t.name for t in picked(side(BASE_TEST), side(sql)).tests] == names


JOINED = (
    "select m.id from s.m as m {} s.m as n on m.id = n.id where m.id > 3 and n.id > 4 group by m.id"
)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (JOINED.format("join"), []),
        (JOINED.format("cross join"), ["s"]),
        (JOINED.replace("m.id from", "m.id, from"), ["s"]),
        (
            JOINED.replace(" where m.id > 3 and n.id > 4", "") + " where m.id > 3 and n.id > 4",
            ["s"],
        ),
        (JOINED.replace("s.m as m", "s.m as m, (select 1 as x) as o"), ["s"]),
    ],
)
def test_a_test_runs_that_an_engine_may_not_take(sql: str, names: list[str]) -> None:
    """sqlglot takes clauses in any order, a comma too many and conditions of any join."""

    def side(test: str) -> Project:
        model = node("model.p.m", "select id, status from s.orders", RAW)
        return project(
            orders(), model, check("s", test.format("inner join"), "model.p.m"), catalog=LISTED
        )

    assert [t.name for t in picked(side(JOINED), side(sql)).tests] == names


def test_another_way_to_the_same_rows_computes_nothing_else_around_it() -> None:
    def side(read: str) -> Project:
        model = node("model.p.m", "select id, status from s.orders", RAW)
        there = f"select 1 from {read} as o where o.id = m.id"
        sql = f"select * from s.m as m where not exists ({there}) and id > 3"
        return project(orders(), model, check("s", sql, "model.p.m"), catalog=LISTED)

    renamed = side("(select id, status as status from s.m)")
    assert picked(side("s.m"), renamed).tests == []


@pytest.mark.parametrize(
    ("reads", "moved"),
    [
        ("with a as (select status || 'x' as y, id from s.m) select id from a", True),
        ("with a as (select id from s.m) select id from a", False),
        ("with a as (select 'status' as y, id from s.m) select id from a", False),
    ],
)
def test_a_changed_column_is_named_where_nothing_comes_of_it(reads: str, moved: bool) -> None:
    def side(status: str) -> Project:
        model = node("model.p.m", f"select id, {status} as status from s.orders", RAW)
        reader = node("model.p.r", reads, "model.p.m")
        return project(orders(), model, reader, check("s", reads, "model.p.m"), catalog=LISTED)

    selection = picked(side("status"), side("length(status)"))
    assert selection.models == (["model.p.m", "model.p.r"] if moved else ["model.p.m"])
    assert [str(t.reason) for t in selection.tests] == (
        ["it names m.status, which changed, without using it"] if moved else []
    )


@pytest.mark.parametrize(
    ("last", "built"),
    [
        ("select id from s.t limit 3", ["o", "t", "last"]),
        ("select listagg(id) as id from s.t", ["o", "t", "last"]),
        ("select id from s.t", ["o"]),
        ("select count(*) as id from s.t", ["o"]),
    ],
)
def test_rows_in_another_order_are_handed_on_to_what_takes_the_first(
    last: str, built: list[str]
) -> None:
    def side(way: str) -> Project:
        return project(
            orders(),
            node("model.p.o", f"select id from s.orders order by amount {way}", RAW),
            node("model.p.t", "select id from s.o", "model.p.o"),
            node("model.p.last", last, "model.p.t"),
            catalog=LISTED,
        )

    selection = picked(side("asc"), side("desc"))
    assert selection.models == [f"model.p.{name}" for name in built]


UPLOAD = "{{ dbt_ripple.record_run() }}"
RECORD = macro("macro.dbt_ripple.record_run", "{% macro record_run() %}{{ write() }}{% endmacro %}")
OTHER_RECORD = macro(
    "macro.dbt_ripple.record_run", "{% macro record_run() %}{{ write(1) }}{% endmacro %}"
)


def recorded(
    a: str = "select id from s.orders",
    *more: Node,
    log: str = "select 1 as n",
    kind: str = "table",
    record: Macro = RECORD,
) -> Project:
    """A model of the project, and one of our own package, to which a hook of the run may write."""
    written = node("model.dbt_ripple.log", log, config={"materialized": kind})
    written = replace(written, package_name="dbt_ripple")
    run = node("operation.p.p-on-run-end-0", None, raw=UPLOAD)
    nodes = (orders(), node("model.p.a", a, RAW), written, run, *more)
    return project(*nodes, catalog=LISTED, macros=[record])


EDIT = "select id + 1 as id from s.orders"
CHECK = check("t", "select n from s.log", "model.dbt_ripple.log")
OF_PACKAGE = replace(CHECK, package_name="dbt_ripple")
READER = node("model.p.reads", "select n from s.log", "model.dbt_ripple.log")


def test_what_a_known_package_alone_reads_of_the_run_is_not_built() -> None:
    assert picked(recorded(), recorded(EDIT)).models == ["model.p.a"]


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (recorded("select id from s.orders", READER), recorded(EDIT, READER)),
        (recorded("select id from s.orders", CHECK), recorded(EDIT, CHECK)),
        (recorded("select id from s.orders", OF_PACKAGE), recorded(EDIT, OF_PACKAGE)),
        (recorded(), recorded(EDIT, log="select 2 as n")),
        (recorded(), recorded(EDIT, kind="incremental")),
        (recorded(), recorded(EDIT, record=OTHER_RECORD)),
    ],
    ids=["a model", "a test", "a test of the package", "edited", "configured", "another package"],
)  # fmt: skip
def test_it_is_built_where_more_than_that_depends_on_it(base: Project, head: Project) -> None:
    assert "model.dbt_ripple.log" in picked(base, head).models


def test_a_name_that_is_another_column_of_the_same_values_is_said() -> None:
    # `group by k` means the alias on base, and a column on head: `g` is no key any more.
    def side(columns: str) -> Project:
        return project(
            node("source.p.raw.r"),
            node("model.p.u", f"select {columns} from s.r", "source.p.raw.r"),
            node("model.p.m", "select g as k, count(*) as n from s.u group by k", "model.p.u"),
            check("t", "select k from s.m where k is null", "model.p.m"),
            catalog={"source.p.raw.r": ["g", "v"]},
            adapter="duckdb",
        )

    selection = picked(side("g, v"), side("g, v, g as k"))
    assert "model.p.m" in selection.models
    assert [t.name for t in selection.tests] + [b.test for b in selection.blocked] == ["t"]
    assert "model.p.m" not in picked(side("g, v"), side("g, v, g as w")).models
