"""Early cutoff: what stops is as it was, executed; and what is never taken for equal."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import duckdb
import pytest
from hand_made import check, node, project
from small_worlds import World, uid

from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.changes import compare
from dbt_ripple.selection.cutoff import Cutoff
from dbt_ripple.selection.cutoff_reads import (
    Answer,
    Question,
    Types,
    Unequal,
    equal_columns,
    unequal_rows,
)
from dbt_ripple.selection.relation_hashes import HashedColumn, hash_sql
from dbt_ripple.selection.result import ProvenTest
from dbt_ripple.selection.select import select_from

# --- executed ------------------------------------------------------------------------------------

WORLDS = int(os.environ.get("RIPPLE_CUTOFF_WORLDS", "8"))
EDITS = 6
"""Edits of each world."""


class Run:
    """A cutoff over the relations of two sides, both of them built in one DuckDB."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, base: Project, head: Project) -> None:
        self.connection = connection
        comparison = compare(base, head)
        self.selection = select_from(comparison, facts=False)
        self.cutoff = Cutoff(comparison, self.selection, self.types)

    def decide(self, failed: set[str]) -> Cutoff:
        cutoff = self.cutoff
        while step := cutoff.next():
            cutoff.built(u for u in step.models if u in failed)
            questions = cutoff.questions()
            cutoff.answer(
                {
                    u: self.answer(u, [q for q in questions if q.relation == u])
                    for u, *_ in questions
                }
            )
        return cutoff

    def described(self, name: str) -> dict[str, str]:
        return {r[0]: r[1] for r in self.connection.execute(f"describe {name}").fetchall()}

    def types(self, unique_id: str) -> Types | None:
        return self.described(unique_id.rpartition(".")[2])

    def answer(self, unique_id: str, questions: list[Question]) -> Answer:
        name = unique_id.rpartition(".")[2]
        base, head = self.described(f"kept.{name}"), self.described(name)

        def unequal(question: Question) -> Unequal | None:
            if (why := equal_columns(base, head, question.columns)) is not None:
                return Unequal(why)
            hashes = []
            for relation, types in ((f"kept.{name}", base), (name, head)):
                listed = [
                    HashedColumn(*c)
                    for c in sorted(types.items())
                    if question.columns is None or c[0].lower() in question.columns
                ]
                query = hash_sql("duckdb", relation, listed, in_order=question.in_order)
                hashes.append(self.connection.execute(query).fetchall()[0])
            return unequal_rows(*hashes)

        return Answer(base, head, {question: unequal(question) for question in questions})


@pytest.mark.slow
def test_what_stops_is_as_it_was() -> None:
    counted: Counter[str] = Counter()
    for seed in range(WORLDS):
        world = World(seed)
        bags = rows_of(world)
        world.connection.execute("create schema kept")
        for name in world.queries:
            world.connection.execute(f"create table kept.{name} as from {name}")
        for _ in range(EDITS):
            edited = world.edited()
            if edited is None:
                continue
            failed = built(world, edited[0])
            run = Run(world.connection, world.base, edited[1])
            decided = run.decide(failed).decided
            after, now = world.results(), rows_of(world)
            for name, query in world.queries.items():
                world.build(name, query)
            stopped = [u.rpartition(".")[2] for u in decided.stopped]
            wrong = [n for n in stopped if n in bags and (uid(n) in failed or now[n] != bags[n])]
            wrong += [n for n in stopped if n not in bags and after[n] != world.before[n]]
            assert wrong == [], f"seed {seed}: {run.cutoff.result()}"
            counted["edits"] += 1
            counted["stopped"] += len(stopped)
            counted["run"] += len(decided.built)
            counted["seen to differ"] += len(decided.seen)
            counted["changed"] += sum(now[n] != bags[n] for n in bags)
            counted["changed"] += sum(after[t] != rows for t, rows in world.before.items())
        world.connection.close()
    print(counted)
    # A run in which nothing stops, or nothing changes, would prove nothing.
    assert counted["edits"] > WORLDS
    assert counted["stopped"] > WORLDS
    assert counted["seen to differ"] > WORLDS
    assert counted["changed"] > WORLDS


def built(world: World, queries: dict[str, Any]) -> set[str]:
    """Build head in the place of base; what does not build is left as it was, and told."""
    failed = set()
    for name, query in queries.items():
        if not world.runs(query):
            failed.add(uid(name))
            continue
        world.build(name, query)
    return failed


def rows_of(world: World) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, world.connection.execute(f"from {name}").fetchall()))
        for name in world.queries
    }


# --- by hand -------------------------------------------------------------------------------------

TYPES = {"id": "INTEGER", "amount": "INTEGER", "status": "VARCHAR", "ratio": "DOUBLE"}
RAW = node("source.p.raw.raw", columns=TYPES)
UNLISTED = node("source.p.raw.unlisted")
SRC = "`s`.`raw`"
STG, MART = "model.p.stg", "model.p.mart"
BEFORE = f"select id, amount, status, ratio from {SRC}"
AFTER = f"select id, abs(amount) as amount, status, ratio from {SRC}"
READER = "select id, amount from `s`.`stg` where amount > 3"
TEST = check("t", "select amount from `s`.`mart` where amount is null", MART)


def decided(
    *,
    reader: str = READER,
    before: str = BEFORE,
    after: str = AFTER,
    config: dict[str, Any] | None = None,
    head_types: dict[str, str] | None = None,
    unequal: Unequal | None = None,
    more: list[Node] | None = None,
    resting: str | None = None,
    mart: dict[str, Any] | None = None,
    **given: Any,
) -> Cutoff:
    """The cutoff of an edit of stg, where mart reads it and a test reads mart."""

    def named(sql: str) -> list[str]:
        return [u.unique_id for u in (RAW, UNLISTED) if f"`{u.name}`" in sql]

    def side(sql: str) -> Project:
        nodes = [
            RAW,
            UNLISTED,
            node(STG, sql, *named(sql), config=config or {}),
            node(MART, reader, STG, *named(reader), config=mart or {}),
            TEST,
            *(more or []),
        ]
        return project(*nodes, types={RAW.unique_id: TYPES}, adapter="spark")

    base = side(before)
    if resting is not None:
        base = base.having(
            run_results=[RunResult(unique_id=TEST.unique_id, status=resting, failures=0)]
        )
    comparison = compare(base, side(after))
    selection = select_from(comparison, facts=False)
    if resting is not None:
        selection.proven = [
            ProvenTest(unique_id="test.p.proven", reason="", facts=[TEST.unique_id])
        ]
    types = {RAW.unique_id: TYPES, STG: head_types or TYPES, MART: TYPES}
    cutoff = Cutoff(comparison, selection, types.get, **given)
    while step := cutoff.next():
        cutoff.built(())
        questions = cutoff.questions()
        cutoff.answer(
            {
                u: Answer(
                    TYPES,
                    types[u],
                    {
                        q: Unequal("no order", seen=False)
                        if q.in_order
                        else Unequal(why)
                        if (why := equal_columns(TYPES, types[u], q.columns))
                        else unequal
                        for q in questions
                        if q.relation == u
                    },
                )
                for u in {q.relation for q in questions}
            }
        )
        del step
    return cutoff


def built_models(cutoff: Cutoff) -> set[str]:
    return {u for u in cutoff.models if u in cutoff.decided.built}


def test_an_equal_relation_stops_reader_and_test() -> None:
    cutoff = decided()
    assert built_models(cutoff) == {STG}
    selection = cutoff.result()
    assert [(t.name, t.equal) for t in selection.stopped] == [("t", [STG])]
    assert [(m.unique_id, m.equal) for m in selection.stopped_models] == [(MART, [STG])]
    assert (selection.tests, selection.skipped) == ([], {})
    # Only what is read is compared.
    assert {q for a in cutoff.answers.values() for q in a.unequal} == {
        Question(STG, frozenset({"id", "amount"}))
    }


def test_an_unequal_one_does_not_and_it_is_reported_what_a_test_rests_on() -> None:
    cutoff = decided(unequal=Unequal("its rows differ"))
    assert built_models(cutoff) == {STG, MART}
    (test,) = cutoff.result().tests
    assert (test.rests_on, test.relations) == ("seen to differ", [MART])


def test_the_order_counts_for_what_is_read_by_something_that_sees_it() -> None:
    last = "model.p.last"
    for sql, sees in (
        ("select id from `s`.`mart` limit 1", True),
        ("select id from `s`.`mart`", False),
    ):
        more = [node(last, sql, MART), check("on_last", "select * from `s`.`last`", last)]
        cutoff = decided(more=more)
        assert cutoff.counts_in_order(MART) == sees
        assert (MART in cutoff.decided.built) == sees  # of Spark nobody sees an order


NEVER = {
    "the time": {"after": AFTER + " where id < unix_timestamp()"},
    "chance": {"after": AFTER + " where rand() < 0.5"},
    "a limit without order": {"after": AFTER + " limit 5"},
    "an unordered number": {
        "after": f"select id, row_number() over (partition by id) as amount, status, ratio from {SRC}"
    },
    "a table nobody knows, in what is not seen through": {
        "before": "select * from `s`.`unlisted`",
        "after": "select * from `s`.`unlisted` where id in (select id from `x`.`nowhere`)",
    },
    "a function that gives rows, in what is not seen through": {
        "before": "select * from `s`.`unlisted`",
        "after": "select * from `s`.`unlisted` cross join my_rows(1)",
    },
    "chance in what is not seen through": {
        "before": "select * from `s`.`unlisted`",
        "after": "select * from `s`.`unlisted` where rand() < 0.5",
    },
    "a function nobody knows": {
        "after": f"select id, my_udf(amount) as amount, status, ratio from {SRC}"
    },
    "incremental": {"config": {"materialized": "snapshot"}},
    "hooks that write elsewhere": {"config": {"post-hook": ["insert into s.log select 1"]}},
    "hooks of Jinja": {"config": {"post-hook": ["delete from {{ this }} where id > {{ var('x') }}"]}},
    "an own materialization": {"config": {"materialized": "their_own"}},
    "a reader that takes the first rows": {"reader": READER + " limit 5"},
    "a reader that asks for the time": {"reader": READER + " and current_timestamp() > '2020-01-01'"},
    "a reader that adds floats": {
        "reader": "select id, sum(amount * ratio) as amount from `s`.`stg` group by id"
    },
    "a reader that asks which relations there are": {
        "reader": READER + " and id in (select 1 from information_schema.tables)"
    },
    "a column with another type": {"head_types": {**TYPES, "amount": "BIGINT"}},
    "columns that stand elsewhere": {
        "after": f"select abs(amount) as amount, id, status, ratio from {SRC}",
        "head_types": {n: TYPES[n] for n in ("amount", "id", "status", "ratio")},
        "reader": "select * from `s`.`stg`",
    },
    "a column that is gone, named where nothing comes of it": {
        "head_types": {"id": "INTEGER", "amount": "INTEGER", "ratio": "DOUBLE"},
        "reader": f"with dead as (select status from `s`.`stg`) {READER}",
    },
}  # fmt: skip


@pytest.mark.parametrize("given", NEVER.values(), ids=NEVER)
def test_what_never_stops_a_reader(given: dict[str, Any]) -> None:
    assert MART in built_models(decided(**given))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["z", "a", "b"], ["a", "b"]),  # m as t(w, x): x was a and is b
        (["a", "b"], ["b", "a"]),
        (["a", "b"], ["a", "n", "b"]),
    ],
)
def test_columns_at_other_places_are_not_equal(before: list[str], after: list[str]) -> None:
    """By an alias list a reader reads places, and by `*` it hands its relation's places on."""
    base, head = (dict.fromkeys(names, "INTEGER") for names in (before, after))
    why = equal_columns(base, head, frozenset({"a", "b"}))
    assert why is not None
    assert "was column" in why
    assert equal_columns(base, {**base, "new": "INTEGER"}, frozenset({"a", "b"})) is None


def test_what_is_not_seen_through_is_compared_in_all_its_columns() -> None:
    cutoff = decided(
        before="select * from `s`.`unlisted`", after="select * from `s`.`unlisted` where true"
    )
    assert cutoff.comparison.head_analysis.nodes[STG].status == "opaque"
    assert built_models(cutoff) == {STG}
    assert {q for a in cutoff.answers.values() for q in a.unequal} == {Question(STG, None)}
    same = decided(
        before="select * from `s`.`unlisted`",
        after="select * from `s`.`unlisted` where true",
        unequal=Unequal("its rows differ"),
    )
    assert built_models(same) == {STG, MART}


def test_a_reader_that_is_not_seen_through_reads_all_columns() -> None:
    reader = "select stg.*, u.* from `s`.`stg` as stg join `s`.`unlisted` as u on stg.id = u.id"
    cutoff = decided(reader=reader)
    assert cutoff.comparison.head_analysis.nodes[MART].status == "opaque"
    assert built_models(cutoff) == {STG}
    assert {q for a in cutoff.answers.values() for q in a.unequal} == {Question(STG, None)}


@pytest.mark.parametrize("status", ["pass", "fail"])
def test_what_proven_tests_rest_on_stops_only_where_base_passed_it(status: str) -> None:
    cutoff = decided(resting=status)
    assert (TEST.unique_id in cutoff.decided.stopped) == (status == "pass")


def test_a_contract_is_the_same_one_or_nothing_is_equal() -> None:
    enforced = {"contract": {"enforced": True}}
    assert built_models(decided(config=enforced)) == {STG}
    base, head = (
        project(RAW, node(STG, sql, RAW.unique_id, config=enforced, columns=types), adapter="spark")
        for sql, types in ((BEFORE, TYPES), (AFTER, {**TYPES, "amount": "BIGINT"}))
    )
    comparison = compare(base, head)
    cutoff = Cutoff(comparison, select_from(comparison, facts=False), {}.get)
    assert cutoff.unmade(STG) == "its contract changed"


def test_a_hook_on_its_own_rows_is_followed() -> None:
    hook = ["delete from {{ this }} where amount < 0"]
    assert built_models(decided(config={"post-hook": hook})) == {STG}


def test_sums_of_whole_numbers_see_no_order_and_those_of_floats_do() -> None:
    whole = "select id, sum(amount) as amount from `s`.`stg` group by id"
    assert built_models(decided(reader=whole)) == {STG}


def test_an_incremental_model_counts_only_where_nothing_was_there() -> None:
    incremental = {"materialized": "incremental"}
    assert built_models(decided(config=incremental, anew=True)) == {STG}
    # As it is, it may hold what another state of its query left.
    assert MART in built_models(decided(config=incremental, anew=True, as_it_is=True))


def test_what_is_asked_for_runs_whatever_is_seen() -> None:
    cutoff = decided(always={TEST.unique_id})
    assert [test.because for test in cutoff.result().tests] == ["it is asked for"]


def test_below_what_does_not_build_nothing_runs() -> None:
    base, head = (
        project(RAW, node(STG, sql, RAW.unique_id), node(MART, READER, STG), TEST)
        for sql in (BEFORE, AFTER)
    )
    comparison = compare(base, head)
    cutoff = Cutoff(comparison, select_from(comparison, facts=False), {}.get)
    assert cutoff.next().models == [STG]
    cutoff.built([STG])
    assert cutoff.questions() == []
    assert not cutoff.next()
    assert cutoff.result().skipped == {MART: STG, TEST.unique_id: MART}
