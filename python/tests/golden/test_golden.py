"""No fingerprint, edge or answer differs from the record, which a refactoring leaves as it is."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import golden
import pytest
from golden import Item

HOW = """
Where that is meant, record anew with `make golden` and say in the commit what changed and why.
Where it is not, `python python/tests/golden/golden.py show KEY` prints an item in full: run it on
both commits and compare.
"""


@pytest.mark.parametrize("section", golden.SECTIONS)
def test_all_is_as_recorded(section: str, tmp_path: Path) -> None:
    lines = golden.RECORD.read_text(encoding="utf-8").splitlines()
    told = golden.report(golden.recorded(section, lines), list(golden.items(tmp_path, section)))
    assert not told, golden.complaint(told, lines) + HOW


def test_another_version_is_said_and_excuses_nothing() -> None:
    lines = golden.RECORD.read_text(encoding="utf-8").splitlines()
    with_others = [line.replace("# duckdb ", "# duckdb 0.") for line in lines]
    assert golden.complaint(["edit p:1: select"], lines) == (
        "1 items differ from the record:\nedit p:1: select\n"
    )
    assert golden.complaint(["edit p:1: select"], with_others).endswith(
        f"duckdb {version('duckdb')} here, and the record was made with {with_others[2][2:]}:"
        " install what python/constraints.txt says before you look further\n"
    )


def test_every_line_is_in_one_part() -> None:
    lines = golden.RECORD.read_text(encoding="utf-8").splitlines()
    parts = [golden.recorded(section, lines) for section in golden.SECTIONS]
    assert all(parts)
    assert sorted(x for part in parts for x in part) == sorted(x for x in lines if x[:1] != "#")


def test_the_report_names_what_differs() -> None:
    before = Item("p model.a", {"rows": "1", "column x": "2"}, "analysed")
    edit = Item("edit p:1", {"the edit itself": "0", "select": "1"}, "3 tests")
    lines = [before.line(), edit.line(), Item("p model.gone", {}).line()]
    assert golden.report(lines[:2], [before, edit]) == []
    now = [
        Item("p model.a", {"rows": "1", "column x": "3"}, "analysed"),
        Item("edit p:1", {"the edit itself": "0", "select": "2"}, "4 tests"),
        Item("p model.new", {}),
    ]
    assert golden.report(lines, now) == [
        "p model.a: column x",
        "edit p:1: select (3 tests before; 4 tests now)",
        "p model.new: is not in the record",
        "p model.gone: is in the record, and not there any more",
    ]


def test_digests_do_not_hang_on_the_order_of_dictionaries_and_sets() -> None:
    assert golden.digest({"a": 1, "b": {2, 3}}) == golden.digest({"b": {3, 2}, "a": 1})
    assert golden.digest(["a", "b"]) != golden.digest(["b", "a"])
