"""What the dbt package repeats of the lineage tables is written from their definition."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tool_scripts import tool

from dbt_ripple.graph.lineage_tables import TABLES

REPOSITORY = Path(__file__).parents[3]
TOOL = tool("lineage_tables")

YML = """\
    columns:
      - name: project_name  # by hand
      # columns_of('edges', without=['snapshot_id'])
      - name: child_id
        description: As it was.
      # end of columns_of
      - name: distance
        data_tests: [not_null]
"""


def test_the_package_has_the_columns_as_they_are_defined() -> None:
    files = TOOL.files()
    assert {str(path.relative_to(REPOSITORY)) for path in files} == {
        "macros/load/raw_table_columns.sql",
        "models/lineage/lineage.yml",
        "models/staging/staging.yml",
    }
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is not current: run `make tables`"


def test_only_what_is_marked_is_written() -> None:
    assert TOOL.described(YML, {"ripple_parent_id", "ripple_child_id"}).splitlines() == [
        "    columns:",
        "      - name: project_name  # by hand",
        "      # columns_of('edges', without=['snapshot_id'])",
        "      - name: parent_id",
        "        description: \"{{ doc('ripple_parent_id') }}\"",
        "      - name: child_id",
        "        description: \"{{ doc('ripple_child_id') }}\"",
        "      # end of columns_of",
        "      - name: distance",
        "        data_tests: [not_null]",
    ]


def test_what_is_written_by_hand_between_marks_is_not_lost() -> None:
    yml = YML.replace("description: As it was.", "data_tests: [unique]")
    with pytest.raises(SystemExit, match="more than names and descriptions"):
        TOOL.described(yml, {"ripple_parent_id", "ripple_child_id"})


def test_a_column_without_description_is_named() -> None:
    with pytest.raises(SystemExit, match=r"no block ripple_parent_id .* edges\.parent_id"):
        TOOL.described(YML, {"ripple_child_id"})


def test_a_column_that_is_left_out_has_to_be_there() -> None:
    with pytest.raises(SystemExit, match="edges has no column depth"):
        TOOL.columns_of("edges", ["depth"])


def test_a_new_column_is_in_the_macro_and_in_every_list(monkeypatch: pytest.MonkeyPatch) -> None:
    before = TOOL.files()
    field = ("is_joined", bool | None, None)
    wider = msgspec.defstruct("WiderRow", [field], bases=(TABLES["nodes"],), frozen=True)
    monkeypatch.setitem(TABLES, "nodes", wider)
    added = {
        path.name: [line.strip() for line in text.splitlines() if "is_joined" in line]
        for path, text in TOOL.files().items()
        if text != before[path]
    }
    listed = ["- name: is_joined", "description: \"{{ doc('ripple_is_joined') }}\""]
    assert added == {
        "raw_table_columns.sql": ["'is_joined': 'boolean',"],
        "staging.yml": 2 * listed,
        "lineage.yml": listed,
    }
