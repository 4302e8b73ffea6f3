"""The harness beside packages: how two answers are compared, and how an edit is made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from beside_packages import SHOPS, Answer, make
from ordinary_edits import Edit

ALONE = Answer(frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (Answer(frozenset({"a", "b"})), "same"),
        (Answer(frozenset({"a", "b", "c"})), "+1"),
        (Answer(frozenset({"a", "c", "d"})), "+2, -1"),
        (Answer(frozenset({"a", "b"}), ("node_hook_differs",)), "1 of hooks"),
        (Answer(failed="no such table"), "failed: no such table"),
    ],
)
def test_an_answer_is_compared_with_the_one_alone(beside: Answer, said: str) -> None:
    assert beside.beside(ALONE) == said
    assert beside.beside(Answer(failed="x")).startswith("failed")


def test_each_project_has_twelve_edits_of_different_names() -> None:
    for shop in SHOPS.values():
        assert len({edit.what for edit in shop.edits}) == len(shop.edits) == 12
        assert not [edit.what for edit in shop.edits if edit.breaking]


def test_an_edit_that_does_not_apply_stops(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("select 1, 1")
    make(Edit("", {"a.sql": [("1", "2")], "new/b.sql": "select 3"}), tmp_path)
    assert (tmp_path / "a.sql").read_text() == "select 2, 1"
    assert (tmp_path / "new/b.sql").read_text() == "select 3"
    with pytest.raises(AssertionError, match=r"a\.sql has no '9'"):
        make(Edit("nines", {"a.sql": [("9", "2")]}), tmp_path)
