"""The 2 a.m. story of docs/incident-stories.md in the warehouse: a deployment, a failed test, and what the tables say."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from dbt_here import run_dbt
from test_two_projects import asked

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.graph.lineage_tables import RunHistoryRow

REPOSITORY = Path(__file__).parents[3]
STORIES = REPOSITORY / "integration_tests" / "stories"
PAGE = (REPOSITORY / "docs" / "incident-stories.md").read_text()
NOW = datetime.now(UTC).replace(microsecond=0)


def shown(first: str) -> list[dict[str, str]]:
    """The table of the page whose columns begin so."""
    (table,) = re.findall(rf"^\| {first} \|.*\n\|.*\n(?:\|.*\n)*", PAGE, re.M)
    names, _, *rows = (
        [cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table.splitlines()
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def as_shown(found: list[dict[str, Any]], of: list[dict[str, str]]) -> list[dict[str, str]]:
    names = of[0].keys()
    return [{n: "" if row[n] is None else str(row[n]) for n in names} for row in found]


def compiled(folder: Path, edited: bool, hours_ago: int) -> Project:
    project = folder / f"stories{hours_ago}"
    shutil.copytree(STORIES, project, ignore=shutil.ignore_patterns("target", "logs"))
    if edited:
        shutil.copy(project / "edits" / "stg_fx_rates.sql", project / "models")
    done, said = run_dbt(project, "compile")
    assert done, said
    made = read_project(project / "target")
    made.metadata.generated_at = NOW - timedelta(hours=hours_ago)
    return made


def ended(status: str, hours_ago: int) -> RunHistoryRow:
    """How the test ended."""
    moment = NOW - timedelta(hours=hours_ago)
    values: dict[str, Any] = dict.fromkeys(RunHistoryRow.__struct_fields__)
    values |= {
        "invocation_id": f"{hours_ago} hours ago",
        "unique_id": "test.stories.revenue_holds",
        "project_name": "stories",
        "target_name": "dev",
        "command": "build",
        "resource_type": "test",
        "name": "revenue_holds",
        "node_id": "model.stories.revenue_daily",
        "status": status,
        "started_at": moment,
        "completed_at": moment,
        "recorded_at": moment,
    }
    return RunHistoryRow(**values)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("night")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        patch.chdir(folder)
        package = duck_project.make(folder / "store", {"models/mine.sql": "select 1 as id"})
        patch.chdir(package)
        duck_project.dbt(package, "run", "--select", "package:dbt_ripple")
        duck_project.loaded(package, compiled(folder, False, 30), "0ldc0de")
        duck_project.loaded(package, compiled(folder, True, 5), "bad1dea")
        duck_project.insert(package, "run_history", [ended("pass", 6), ended("fail", 1)])
        duck_project.dbt(package, "run", "--select", "package:dbt_ripple")
        yield package


def test_the_incident_names_its_cause(night: Path) -> None:
    of = shown("name \\| state")
    found = duck_project.rows(night, f"select {', '.join(of[0])} from dev_ripple.incidents")
    assert as_shown([dict(zip(of[0], row, strict=True)) for row in found], of) == of


@pytest.mark.parametrize(
    ("analysis", "first"),
    [("changed_upstream", "depth \\| name"), ("who_to_page", "criticality \\| owner")],
)
def test_what_changed_and_whom_to_page(night: Path, analysis: str, first: str) -> None:
    of = shown(first)
    assert as_shown(asked(night, analysis, node="revenue_holds"), of) == of
