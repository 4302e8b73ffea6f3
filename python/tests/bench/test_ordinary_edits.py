"""The table of ordinary edits in docs is of the edits that the bench makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "gate-edits.md"
SCRIPT = Path(__file__).parents[2] / "bench" / "ordinary_edits.py"
SPEC = importlib.util.spec_from_file_location("ordinary_edits", SCRIPT)
assert SPEC is not None and SPEC.loader is not None
ordinary_edits = importlib.util.module_from_spec(SPEC)
sys.modules["ordinary_edits"] = ordinary_edits
SPEC.loader.exec_module(ordinary_edits)


@pytest.mark.parametrize("project", ordinary_edits.PROJECTS)
def test_the_page_has_every_edit_and_each_is_judged_as_it_should_be(project: str) -> None:
    text = PAGE.read_text()
    section = text.partition(f"## {project}\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    edits = ordinary_edits.PROJECTS[project]
    assert len(edits) >= 20
    assert len({edit.what for edit in edits}) == len(edits)
    said = {row[0].removeprefix("| "): row[1] for row in rows}
    assert list(said) == [f"{e.what}{' *(breaks)*' if e.breaking else ''}" for e in edits]
    stopped = [what for what, decision in said.items() if decision in ("BLOCKED", "dbt refuses")]
    assert stopped == [f"{edit.what} *(breaks)*" for edit in edits if edit.breaking]


def test_another_value_is_another() -> None:
    assert ordinary_edits._another_value("1,a,19") == "1,a,10"
    assert ordinary_edits._another_value("4,b") == "5,b"
