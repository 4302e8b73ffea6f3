"""What an engine does and SQL does not promise: edits executed by dbt on DuckDB, and what is selected for them.

All edits are made in one project, which is built as it was and as it is.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
import tiny_project
from unpromised_edits import ALIKE, CHANGES, LATER, SOURCES, Edit

from dbt_ripple.artifacts.read_artifacts import read_project
from dbt_ripple.selection.select import select

pytestmark = pytest.mark.slow

EDITS = [*CHANGES, *ALIKE]
FILES = {
    "dbt_project.yml": "name: lab\nversion: '1.0'\nprofile: lab\n",
    "profiles.yml": "lab:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: lab.duckdb, schema: main, threads: 1}\n",
    "models/sources.yml": "sources:\n  - name: raw\n    schema: raw\n    tables: [{name: t}, {name: w}, {name: big}, {name: i}]\n",
}


class Outcome(NamedTuple):
    """What each test returns, before and after, and the tests that are selected."""

    before: dict[str, list[str]]
    after: dict[str, list[str]]
    selected: set[str]


def text_of(edit: Edit, text: str) -> str:
    name = f"e{EDITS.index(edit)}"
    text = re.sub(r"@(\w+)", rf"{{{{ ref('{name}_\1') }}}}", text.replace("ONE", name))
    return re.sub(r"#(\w+)", r"{{ source('raw', '\1') }}", text)


def files(*, after: bool) -> dict[str, str]:
    written = dict(FILES)
    for i, edit in enumerate(EDITS):
        texts = edit.old | (edit.new if after else {})
        for model, text in texts.items():
            written[f"models/e{i}_{model}.sql"] = text_of(edit, text)
        test = edit.test[after] if edit.test else f"select * from @{'r' if 'r' in texts else 'u'}"
        written[f"tests/e{i}.sql"] = text_of(edit, test)
    return written


def dbt(project: Path, *arguments: str) -> None:
    tiny_project.dbt(project, *arguments)  # some of it fails: that is what is looked for
    tiny_project.let_go()


def write_artifacts(project: Path) -> None:
    """Its manifest, as of a first run, and its catalog."""
    dbt(project, "docs", "generate", "--no-compile", "--target-path", "docs")
    dbt(project, "compile", "--full-refresh", "--target-path", "state")
    shutil.copy(project / "docs" / "catalog.json", project / "state")


def returned(project: Path) -> dict[str, list[str]]:
    """The rows that each test returns, or why it fails."""
    manifest = json.loads((project / "state" / "manifest.json").read_text())
    rows: dict[str, list[str]] = {}
    with duckdb.connect(str(project / "lab.duckdb"), config={"threads": 1}) as connection:
        for node in manifest["nodes"].values():
            if node["resource_type"] == "test":
                try:
                    found = connection.execute(node["compiled_code"]).fetchall()
                    rows[node["name"]] = sorted(map(repr, found))
                except duckdb.Error as error:
                    rows[node["name"]] = [type(error).__name__]
    return rows


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    base, head = (tmp_path_factory.mktemp(side) / "lab" for side in ("base", "head"))
    tiny_project.write(base, files(after=False))
    tiny_project.write(head, files(after=True))
    with duckdb.connect(str(base / "lab.duckdb")) as connection:
        connection.execute(SOURCES)
    dbt(base, "run")
    write_artifacts(base)
    shutil.copy(base / "lab.duckdb", head)
    for project, what in ((base, ["--select", "config.materialized:incremental"]), (head, [])):
        with duckdb.connect(str(project / "lab.duckdb")) as connection:
            connection.execute(LATER)
        dbt(project, "run", *what)
    write_artifacts(head)
    sides = (read_project(project / "state") for project in (base, head))
    selection = select(*sides)
    return Outcome(returned(base), returned(head), {test.name for test in selection.tests})


@pytest.mark.parametrize("edit", CHANGES, ids=[edit.what for edit in CHANGES])
def test_what_comes_out_otherwise_is_selected(edit: Edit, outcome: Outcome) -> None:
    test = f"e{EDITS.index(edit)}"
    assert outcome.before[test] != outcome.after[test]
    assert test in outcome.selected


@pytest.mark.parametrize("edit", ALIKE, ids=[edit.what for edit in ALIKE])
def test_its_harmless_neighbour_is_not(edit: Edit, outcome: Outcome) -> None:
    test = f"e{EDITS.index(edit)}"
    assert outcome.before[test] == outcome.after[test]
    assert test not in outcome.selected
