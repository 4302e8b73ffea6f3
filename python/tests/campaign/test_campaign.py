"""Some hundred edits of the campaign: nothing is missed, refactors select nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign import KINDS, repeated, run, tasks
from random_project import Maker
from refactors import CATALOGUE
from report import Report, table

pytestmark = pytest.mark.slow

MUTANTS = 270
DBT_KINDS = ("var", "introspective macro", "incremental settings")
"""Some seconds each; `make campaign` makes the others, too."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    doing = tasks(7, MUTANTS, 1, refactored=2, dbt_kinds=DBT_KINDS)
    made = run(doing, tmp_path_factory.mktemp("campaign"))
    print(table(made))
    return made


def test_every_test_whose_rows_differ_is_selected(report: Report) -> None:
    assert report.misses == []
    assert report.total().tried >= 0.95 * MUTANTS


def test_every_kind_of_edit_changed_something(report: Report) -> None:
    assert set(report.kinds) == {*KINDS, *DBT_KINDS}
    assert [kind for kind in report.idle() if kind in KINDS] == []


def test_refactors_select_nothing(report: Report) -> None:
    assert report.selecting == []
    assert set(report.refactors) == set(CATALOGUE)
    assert [name for name, count in report.refactors.items() if not count.made] == []


def test_facts_leave_out_more_than_fingerprints_alone(report: Report) -> None:
    all_ = report.total()
    assert all_.truly < all_.selected < all_.without_facts < all_.modified


def test_one_edit_can_be_made_again(tmp_path: Path) -> None:
    one, two = (run([repeated(7, "shop:3")], tmp_path / name) for name in ("one", "two"))
    assert one.kinds == two.kinds
    assert one.total().tried == 1


def test_the_same_seed_writes_the_same_project() -> None:
    one, two = Maker(5, models=6), Maker(5, models=6)
    for maker in (one, two):
        maker.make()
    assert [m.raw for m in one.models] == [m.raw for m in two.models]
    assert one.singular == two.singular
