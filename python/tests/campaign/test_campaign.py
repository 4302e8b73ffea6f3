"""A few edits of each kind of the campaign: nothing is missed, refactors select nothing.

The campaign itself, thousands of edits and every refactor on every model, is `make campaign`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign import KINDS, SMALL, Task, edit, edit_small
from constructs import CONSTRUCTS, constructs_of
from dbt_builds import Folder
from definitions import Found, try_copies
from judge import Judge
from random_project import MAX_ROWS, Maker
from refactors import CATALOGUE, IN_OTHER_WORDS
from report import WORDS, Count, Report, table
from small_edits import written
from small_kinds import WRITERS
from world import Edit, Outcome, World
from worlds import lab, shop

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import Metadata
from dbt_ripple.jinja.text import branches
from dbt_ripple.reasons import Code
from dbt_ripple.selection.result import ProvenTest, SelectedTest, Selection

pytestmark = pytest.mark.slow

SEED = 7
EDITS = 40
"""In each of two worlds: one or two of each kind, and some more of those that changed nothing."""
REFACTORED = 2
"""On how many models each refactor is made."""
DBT_KINDS = ("introspective macro",)
"""Some seconds each; `make campaign` makes the others, too."""
LAB = "lab 7000"

Lab = tuple[World, Folder]


@pytest.fixture(scope="module")
def in_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A random project, built once: an edit leaves it as it was."""
    return lab(tmp_path_factory.mktemp("lab"), 7000)


@pytest.fixture(scope="module")
def report(in_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Report:
    task = Task("shop", SEED, EDITS, refactors=True, refactored_models=REFACTORED)
    made = edit(*shop(tmp_path_factory.mktemp("shop")), task)
    made.add(edit(*in_lab, Task(LAB, SEED, EDITS, dbt_kinds=DBT_KINDS, dbt_rounds=1, insist=2)))
    print(table(made))
    return made


def test_every_test_whose_rows_differ_is_selected(report: Report) -> None:
    assert report.misses == []
    assert report.total().tried >= 2 * EDITS


def test_of_small_projects_nothing_is_missed(tmp_path: Path) -> None:
    report = edit_small(tmp_path, Task(SMALL, SEED, 3 * len(WRITERS)))
    assert report.misses == []
    assert report.kinds.keys() == WRITERS.keys()
    assert min(count.tried for count in report.kinds.values()) > 1
    assert report.total().changed > 3


def test_a_small_edit_can_be_made_again_whatever_kinds_are_made() -> None:
    task = Task(SMALL, SEED, 0)
    rng_of = lambda number: task.rng(str(number))  # noqa: E731
    edits = dict(written(WRITERS, rng_of, 40))
    kind = "hooks with quotes"
    some = dict(written(WRITERS, rng_of, 4, kinds=[kind]))
    assert {edit.kind for edit in some.values()} == {kind}
    for number, made in some.items():
        assert edits[number] == made
        assert dict(written(WRITERS, rng_of, 1, only=number)) == {number: made}


def test_an_edit_leaves_what_an_incremental_model_asks_of_its_own_table(in_lab: Lab) -> None:
    world, _ = in_lab
    nodes = world.project.nodes
    incremental = [u for u in world.relations if nodes[u].materialized == "incremental"]
    assert incremental
    for unique_id in incremental:
        head = world.head(Edit(sql={unique_id: "select 1 as id"}))
        asked = branches(nodes[unique_id].raw_code)
        assert any("is_incremental" in part for part in asked)
        assert branches(head.nodes[unique_id].raw_code) == asked


def test_a_ground_below_a_model_that_is_not_built_shows_the_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ground, proven = "test.ground", "test.proven"
    project = Project(target_path="", metadata=Metadata(), nodes={}, parents={}, children={})
    outcome = Outcome(project, tests={proven})
    tests = [
        SelectedTest(unique_id=t, name=t, reason=Code.NEW_TEST(), path=[]) for t in (ground, proven)
    ]
    with_facts = Selection(
        tests=tests[:1],
        proven=[ProvenTest(unique_id=proven, reason=Code.SAME_ROWS(), facts=[ground])],
    )
    monkeypatch.setattr(Judge, "select", lambda *_: (with_facts, Selection(tests=tests)))
    judge = Judge.__new__(Judge)
    assert judge.judge(outcome).missed  # nothing that runs fails
    outcome.blocked = {ground}
    assert not judge.judge(outcome).missed


def test_copies_are_found_and_what_is_named_has_the_same_values(in_lab: Lab) -> None:
    counts = Found()
    try_copies(in_lab[0], 80, SEED, counts)
    assert (counts.missed, counts.wrong) == ([], [])
    assert counts.expected > 20
    assert counts.pairs["same rows"] > 20


def test_every_kind_of_edit_is_made(report: Report) -> None:
    assert set(report.kinds) == {*KINDS, *DBT_KINDS}
    assert all(count.tried for count in report.kinds.values())
    # Of few edits of a kind all may be in vain; of thousands none is (`make campaign`).
    assert len(report.idle()) <= 3


def test_refactors_select_nothing(report: Report) -> None:
    assert report.alike() == []
    assert set(report.refactors) == {*CATALOGUE, *IN_OTHER_WORDS}
    assert [name for name in CATALOGUE if not report.refactors[name].made] == []


def test_of_refactors_in_other_words_few_select(report: Report) -> None:
    # One or two of these fifty decide: over all models `make campaign` holds it to `WORDS`.
    assert report.words() <= 1.5 * WORDS


def test_facts_leave_out_more_than_fingerprints_alone(report: Report) -> None:
    all_ = report.total()
    assert all_.truly < all_.selected < all_.without_facts < all_.modified


def test_one_edit_can_be_made_again(in_lab: Lab) -> None:
    several = edit(*in_lab, Task(LAB, SEED, 4))
    again = [edit(*in_lab, Task(LAB, SEED, 1, only=str(n))) for n in range(4)]
    one_by_one: dict[str, Count] = {}
    for made in again:
        one_by_one |= made.kinds
    assert one_by_one == several.kinds


def test_the_same_seed_writes_the_same_project() -> None:
    one, two = Maker(5, models=6), Maker(5, models=6)
    for maker in (one, two):
        maker.make()
    assert [m.raw for m in one.models] == [m.raw for m in two.models]
    assert one.singular == two.singular


def test_every_construct_is_written_and_recognised() -> None:
    maker = Maker(11, models=6)
    maker.make()
    written: set[str] = set()
    forms = ("query", "query", "query", "model")
    for n in range(3000):
        sql = maker.queries().written(forms[n % 4])
        if maker.runs(sql):
            written.update(constructs_of(sql))
    assert set(CONSTRUCTS) - written == set()


def test_a_model_has_rows_that_its_query_alone_decides() -> None:
    maker = Maker(11, models=6)
    maker.make()
    assert all(2 <= model.relation.rows <= MAX_ROWS for model in maker.models[:6])
    name = maker.models[0].relation.jinja
    assert maker.tried(f"select * from {name}") == maker.models[0].relation.columns
    assert maker.tried(f"select *, row_number() over () as n from {name}") is None
    assert maker.tried(f"select * from {name} where false") is None
    assert maker.tried(f"select 1 as a, 2 as b from {name}") is None
