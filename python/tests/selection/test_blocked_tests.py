"""Tests are blocked by what certainly cannot be built, and by nothing else."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hand_made import check, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select

RAW = "source.p.raw.things"
STAGED = "select id, kind from s.things"
MART = "select id, upper(kind) as kind from s.stg"
REPORT = "select kind, count(*) as n from s.mart group by kind"


def things() -> Node:
    made_node = node(RAW, columns=["id", "kind", "later"])
    return replace(made_node, identifier="things", relation_name="`s`.`things`")


def side(
    stg: str = STAGED,
    mart: str = MART,
    *,
    source: tuple[str, ...] = ("id", "kind"),
    stg_config: dict[str, Any] | None = None,
    mart_config: dict[str, Any] | None = None,
    test_of_stg: str = "select id from s.stg where id is null",
    adapter: str = "spark",
) -> Project:
    """things -> stg -> mart -> report, and a test of each."""
    return project(
        things(),
        node("model.p.stg", stg, RAW, config=stg_config or {"materialized": "table"}),
        node("model.p.mart", mart, "model.p.stg", config=mart_config or {"materialized": "table"}),
        node("model.p.report", REPORT, "model.p.mart", config={"materialized": "table"}),
        check("on_stg", test_of_stg, "model.p.stg"),
        check("on_mart", "select id from s.mart where id is null", "model.p.mart"),
        check("on_report", "select * from s.report where n < 0", "model.p.report"),
        catalog={RAW: list(source)},
        adapter=adapter,
    )


def answer(base: Project, head: Project, **more: Any) -> tuple[list[str], dict[str, str]]:
    """The names of the tests that run, and what blocks each blocked one."""
    selection: Selection = select(base, head, **more)
    return (
        [test.name for test in selection.tests],
        {test.unique_id.rpartition(".")[2]: test.blocked_by for test in selection.blocked},
    )


RENAMED = STAGED.replace("kind", "kind as sort")
BY_ID = "select id, upper(id) as kind from s.stg"
BLOCKED = {"on_mart": "model.p.mart", "on_report": "model.p.mart"}


def test_what_is_below_a_relation_that_cannot_be_built_is_blocked_by_it() -> None:
    selection = select(side(), side(RENAMED))
    assert [b.unique_id for b in selection.broken] == ["model.p.mart"]
    assert selection.models == ["model.p.stg", "model.p.mart", "model.p.report"]
    assert answer(side(), side(RENAMED)) == ([], BLOCKED)
    assert str(selection.blocked[0].reason) == (
        "mart cannot be built: there is no kind: stg.kind is gone (renamed to sort)"
    )


def test_without_facts_all_readers_are_selected() -> None:
    assert answer(side(), side(RENAMED), facts=False) == (["on_mart", "on_report"], {})


def test_a_test_that_names_what_is_gone_itself_runs() -> None:
    on_kind = "select kind from s.stg where kind is null"
    tests_and_blocked = answer(side(test_of_stg=on_kind), side(RENAMED, test_of_stg=on_kind))
    assert tests_and_blocked == (["on_stg"], BLOCKED)


def test_what_ci_does_not_build_blocks_nothing() -> None:
    only = {"test.p.on_report", "model.p.report"}
    assert answer(side(), side(RENAMED), only=only) == (["on_report"], {})


UNSURE = {
    "the column of a source that the catalog does not list": (
        {},
        {"mart": MART, "stg": "select id, kind, later from s.things"},
    ),
    "a star over a source": (
        {"stg": "select * from s.things"},
        {"stg": "select * from s.things", "mart": MART.replace("kind)", "later)")},
    ),
    "a table that keeps the columns it had": (
        {"stg_config": {"materialized": "incremental"}},
        {"stg_config": {"materialized": "incremental"}, "stg": RENAMED},
    ),
    "a hook that may add it": (
        {"stg_config": {"materialized": "table", "post-hook": [{"sql": "alter table {{ this }}"}]}},
        {
            "stg_config": {
                "materialized": "table",
                "post-hook": [{"sql": "alter table {{ this }}"}],
            },
            "stg": RENAMED,
        },
    ),
    "a name that base did not look for": ({}, {"mart": MART.replace("id,", "idd as id,")}),
    "a CTE that nobody reads": (
        {"adapter": "duckdb"},
        {
            "stg": RENAMED,
            "mart": "with dead as (select kind from s.stg) " + BY_ID,
            "adapter": "duckdb",
        },
    ),
    "a name that two relations have, one of them a source": (
        {},
        {"mart": MART.replace("s.stg", "s.stg cross join (select * from s.things)")},
    ),
    "a name that engines know": (
        {
            "stg": STAGED.replace("id,", "id, rowid,"),
            "mart": MART.replace("id,", "rowid as id,"),
            "adapter": "duckdb",
        },
        {
            "stg": STAGED.replace("id,", "id, rowid as r,"),
            "mart": MART.replace("id,", "rowid as id,"),
            "adapter": "duckdb",
        },
    ),
    "a name of the engine's own": (
        {"stg": STAGED.replace("id,", "id, _file,"), "mart": MART.replace("id,", "_file as id,")},
        {
            "stg": STAGED.replace("id,", "id, _file as f,"),
            "mart": MART.replace("id,", "_file as id,"),
        },
    ),
    "a materialization that need not run it": (
        {"mart_config": {"materialized": "ours"}},
        {"mart_config": {"materialized": "ours"}, "stg": RENAMED},
    ),
}


@pytest.mark.parametrize("why", UNSURE)
def test_nothing_is_blocked_where_it_may_be_built_after_all(why: str) -> None:
    base, head = UNSURE[why]
    selected, blocked = answer(side(**base), side(**head))
    assert blocked == {}
    assert selected


def test_a_name_that_the_query_made_and_makes_no_more_is_certain() -> None:
    ranked = (
        "with numbered as (select *, row_number() over (partition by id order by kind) as place "
        "from s.things) select id, kind from numbered where place = 1"
    )
    selected, blocked = answer(side(ranked), side(ranked.replace("as place", "as rank")))
    assert (selected, set(blocked)) == ([], {"on_stg", "on_mart", "on_report"})
    # Had the source got that column since, the query would not be the one it was.
    selected, blocked = answer(side(STAGED), side(STAGED + " where place = 1"))
    assert blocked == {}


def test_a_source_that_is_another_table_may_have_what_the_catalog_does_not_list() -> None:
    ranked = "with t as (select *, 1 as place from s.things) select id, kind from t where place = 1"
    base, head = side(ranked), side(ranked.replace("1 as place", "1 as rank"))
    assert "on_mart" in answer(base, head)[1]
    head.nodes[RAW] = replace(head.nodes[RAW], identifier="other_things")
    assert answer(base, head)[1] == {}


def test_what_an_engine_looks_into_cannot_be_built_either() -> None:
    head = {"stg": RENAMED, "mart": "with dead as (select kind from s.stg) " + BY_ID}
    assert answer(side(mart=head["mart"]), side(**head)) == ([], BLOCKED)  # Spark checks every CTE


def test_an_ephemeral_model_is_not_built_but_what_it_is_inlined_into() -> None:
    inlined = "with __dbt__cte__mart as (" + MART + ") select kind, 1 as n from __dbt__cte__mart"

    def with_ephemeral(stg: str) -> Project:
        return project(
            things(),
            node("model.p.stg", stg, RAW, config={"materialized": "table"}),
            node("model.p.mart", MART, "model.p.stg", config={"materialized": "ephemeral"}),
            node("model.p.report", inlined, "model.p.mart", config={"materialized": "table"}),
            check("on_report", "select * from s.report where n < 0", "model.p.report"),
            catalog={RAW: ["id", "kind"]},
        )

    tests_and_blocked = answer(with_ephemeral(STAGED), with_ephemeral(RENAMED))
    assert tests_and_blocked == ([], {"on_report": "model.p.report"})


def test_what_was_broken_on_base_is_no_ground() -> None:
    base = side(STAGED, MART.replace("kind)", "kinds)"))
    head = side(STAGED, MART.replace("kind)", "kinds) || 'x'"))
    assert answer(base, head)[1] == {}


# --- what no engine accepts, whatever the sources hold ------------------------------------------------

WIDE = "select id, kind from s.stg"
REFUSED = {
    "widths": f"{WIDE} union all select id from s.stg",
    "hidden": "select a.id, b.kind from s.stg as a semi join s.stg as b on a.id = b.id",
    "hidden from WHERE": (
        "select a.id, a.kind from s.stg as a anti join s.stg as b on a.id = b.id where b.kind = 'x'"
    ),
    "ambiguous": "select id, a.kind from s.stg as a join s.stg as b on a.id = b.id",
    "no key": "select id, kind, count(*) as n from s.stg group by id",
    "aggregate as key": "select id, max(kind) as kind from s.stg group by 1, 2",
}
ON_BASE = {
    "widths": f"{WIDE} union all {WIDE}",
    "hidden": "select a.id, b.kind from s.stg as a left join s.stg as b on a.id = b.id",
    "hidden from WHERE": (
        "select a.id, a.kind from s.stg as a join s.stg as b on a.id = b.id where b.kind = 'x'"
    ),
    "ambiguous": "select a.id, a.kind from s.stg as a join s.stg as b on a.id = b.id",
    "no key": "select id, kind, count(*) as n from s.stg group by id, kind",
    "aggregate as key": "select id, max(kind) as kind from s.stg group by 1",
}


def on_duckdb(mart: str, **more: Any) -> Project:
    return side(mart=mart, adapter="duckdb", **more)


@pytest.mark.parametrize("why", REFUSED)
def test_what_the_text_alone_refuses_blocks(why: str) -> None:
    connection = duckdb.connect()
    connection.execute("create schema s; create table s.stg (id int, kind varchar)")
    connection.execute(ON_BASE[why])
    with pytest.raises(duckdb.BinderException):
        connection.execute(REFUSED[why])
    assert answer(on_duckdb(ON_BASE[why]), on_duckdb(REFUSED[why])) == ([], BLOCKED)


@pytest.mark.parametrize("why", REFUSED)
def test_it_is_not_known_of_columns_that_only_a_catalog_lists(why: str) -> None:
    over_source = {True: REFUSED[why], False: ON_BASE[why]}
    sides = []
    for is_head in (False, True):
        sql = over_source[is_head].replace("s.stg", "s.things")
        star = sql.replace("select id, kind from", "select * from")
        made = on_duckdb("select id, kind from s.stg", stg=star)
        sides.append(made)
    blocked = answer(*sides)[1]
    # A source may have got a column, or lost one, since its catalog was written.
    assert bool(blocked) is (why in ("hidden", "hidden from WHERE", "aggregate as key"))


@pytest.mark.parametrize("branch", ["where id > 1", "where b.kind > '' and kind > ''"])
@pytest.mark.parametrize("why", REFUSED)
def test_an_incremental_model_that_has_another_branch_may_be_built(why: str, branch: str) -> None:
    config = {"materialized": "incremental"}
    base, head = (on_duckdb(sql, mart_config=config) for sql in (ON_BASE[why], REFUSED[why]))
    assert answer(base, head)[1] == BLOCKED
    for made in (base, head):
        made.nodes["model.p.mart"] = replace(
            made.nodes["model.p.mart"],
            raw_code=made.nodes["model.p.mart"].raw_code
            + f"{{% if is_incremental() %}} {branch} {{% endif %}}",
        )
    assert answer(base, head)[1] == {}


@pytest.mark.parametrize("why", ["no key", "aggregate as key"])
def test_of_other_engines_it_is_not_said(why: str) -> None:
    selection = select(side(mart=ON_BASE[why]), side(mart=REFUSED[why]))
    assert (selection.blocked, selection.broken) == ([], [])


def test_the_reason_says_what_is_refused() -> None:
    selection = select(on_duckdb(ON_BASE["no key"]), on_duckdb(REFUSED["no key"]))
    assert str(selection.blocked[0].reason) == "mart cannot be built: cannot find kind in GROUP BY"


def test_a_blocked_test_is_not_tried_for_what_may_fail_in_a_view() -> None:
    def made(stg: str, kind: str) -> Project:
        text = stg.replace("select id,", "select cast(id as int) as id,") + " where id is not null"
        both = "select s.id from s.stg as s join s.mart as m on s.id = m.id where s.id is null"
        nodes = side(text, stg_config={"materialized": kind}).nodes.values()
        on_both = check("on_both", both, "model.p.stg", "model.p.mart")
        return project(*nodes, on_both, catalog={RAW: ["id", "kind"]})

    running, blocked = answer(made(STAGED, "table"), made(RENAMED, "view"))
    assert "on_both" in blocked
    assert "on_both" not in running
    assert "on_stg" in running
