"""The 2 a.m. story of docs/incident-stories.md in the warehouse: a deployment, a failed test, and what the tables say."""

from __future__ import annotations

import json
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
from click.testing import CliRunner
from dbt_here import run_dbt
from test_two_projects import asked

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.cli import cli
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_tables import RunHistoryRow

pytestmark = pytest.mark.slow

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


def as_shown(shown_rows: list[dict[str, Any]], of: list[dict[str, str]]) -> list[dict[str, str]]:
    names = of[0].keys()
    return [{n: "" if row[n] is None else str(row[n]) for n in names} for row in shown_rows]


def compiled(folder: Path, edited: bool, hours_ago: int) -> Project:
    project = folder / f"stories{hours_ago}"
    shutil.copytree(STORIES, project, ignore=shutil.ignore_patterns("target", "logs"))
    if edited:
        shutil.copy(project / "edits" / "stg_fx_rates.sql", project / "models")
    done, output = run_dbt(project, "compile")
    assert done, output
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
        duck_project.dbt(package, "run", "--select", "ripple_dim_snapshots")
        duck_project.loaded(package, compiled(folder, False, 30), "0ldc0de")
        duck_project.loaded(package, compiled(folder, True, 5), "bad1dea")
        duck_project.insert(package, "run_history", [ended("pass", 6), ended("fail", 1)])
        duck_project.dbt(package, "run", "--select", "package:dbt_ripple")
        yield package


def test_the_incident_names_its_cause(night: Path) -> None:
    of = shown("name \\| state")
    result_rows = duck_project.rows(
        night, f"select {', '.join(of[0])} from dev_ripple.ripple_incidents"
    )
    assert as_shown([dict(zip(of[0], row, strict=True)) for row in result_rows], of) == of


@pytest.mark.parametrize(
    ("analysis", "first"),
    [("changed_upstream", "depth \\| name"), ("who_to_page", "criticality \\| owner")],
)
def test_what_changed_and_whom_to_page(night: Path, analysis: str, first: str) -> None:
    of = shown(first)
    assert as_shown(asked(night, analysis, node="revenue_holds"), of) == of


def test_the_command_asks_the_tables(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause with its commit, since when it fails and when it last passed: `incident --tables`."""
    monkeypatch.chdir(night)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            patch.delenv(name)
        said = CliRunner().invoke(
            cli,
            [
                *("incident", "revenue_holds", "--project-dir", str(night.parent / "stories5")),
                *("--tables-project", ".", "--format", "json"),
            ],
        )
    _close()
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    (failure,) = found["failed"]
    passed = NOW - timedelta(hours=6)
    assert failure["status"] == "fail" and found["state"] == "failing"
    assert datetime.fromisoformat(failure["last_passed"]["at"]) == passed
    assert failure["last_passed"]["invocation_id"] == "6 hours ago"
    assert datetime.fromisoformat(found["opened_at"]) == NOW - timedelta(hours=1)
    first = found["suspects"][0]
    assert (first["name"], first["git_sha"], first["reported_by"]) == (
        *("stg_fx_rates", "bad1dea"),
        ["tables"],
    )
    assert passed < datetime.fromisoformat(first["changed_at"]) < NOW - timedelta(hours=1)
    ((change),) = first["changes"]
    assert (change["before"], change["after"]) == ("rate", "rate / 100")
    assert "no_lineage_tables" not in [reason["code"] for reason in found["not_at_hand_coded"]]


def test_tables_that_are_not_there_are_told(night: Path, tmp_path: Path) -> None:
    project = tmp_path / "none"
    shutil.copytree(STORIES, project, ignore=shutil.ignore_patterns("target", "logs"))
    said = CliRunner().invoke(
        cli,
        [
            *("incident", "revenue_holds", "--project-dir", str(night.parent / "stories5")),
            *("--tables-project", str(project)),
        ],
    )
    _close()
    assert isinstance(said.exception, RippleError) or said.exit_code == 2
    assert "lineage tables cannot be asked" in str(said.exception or said.output)


def _close() -> None:
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.adapters.factory import reset_adapters

    DuckDBConnectionManager.close_all_connections()
    reset_adapters()
