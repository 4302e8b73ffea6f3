"""The worked example of docs/incident.md, and that dbt takes the commands it gives."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from dbt_here import run_dbt
from twin_project import Command

REPOSITORY = Path(__file__).parents[3]
STORIES = REPOSITORY / "integration_tests" / "stories"
PAGE = REPOSITORY / "docs" / "incident.md"
SHOWN = re.findall(r"```console\n\$ dbt-ripple ([^\n]*)\n(.*?)```", PAGE.read_text(), re.S)
MADE = {"last-good": "2026-11-19T01:30:00Z", "target": "2026-11-20T01:30:00Z"}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stories: `last-good` of the night before, `target` with the edit of stg_fx_rates, and what failed."""
    pytest.importorskip("dbt.adapters.duckdb")
    folder = tmp_path_factory.mktemp("night") / "stories"
    shutil.copytree(STORIES, folder, ignore=shutil.ignore_patterns("target", "logs"))
    for target, made in MADE.items():
        if target == "target":
            shutil.copy(folder / "edits" / "stg_fx_rates.sql", folder / "models")
        compiled, said = run_dbt(folder, "compile", "--target-path", target)
        assert compiled, said
        manifest = folder / target / "manifest.json"
        document = json.loads(manifest.read_text())
        document["metadata"]["generated_at"] = made
        manifest.write_text(json.dumps(document))
        results = "failed" if target == "target" else "last_good"
        shutil.copy(STORIES / "incident" / f"{results}.json", folder / target / "run_results.json")
        shutil.copy(STORIES / "results" / "sources.json", folder / target)
    return folder


@pytest.mark.parametrize(("line", "shown"), SHOWN, ids=[line for line, _ in SHOWN])
def test_the_page_has_what_is_answered(
    night: Path, command: Command, line: str, shown: str
) -> None:
    _, out, err = command(*line.split(), "--project-dir", night)
    assert out and out == shown, err


def test_the_page_is_read() -> None:
    assert len(SHOWN) >= 2


def test_dbt_takes_the_commands(night: Path, command: Command) -> None:
    asked = ("incident", "revenue_holds", "--state", "last-good", "--project-dir", night)
    document = json.loads(command(*asked, "--format", "json")[1])
    containment = document["containment"]
    pause, rebuild, check = (containment[part] for part in ("pause", "rebuild", "check"))
    assert pause["nodes"] == ["model.stories.revenue_daily"]
    assert rebuild["nodes"] == ["model.stories.stg_fx_rates", "model.stories.revenue_daily"]
    everything = listed(night, "model")
    assert listed(night, "model", "--exclude", *pause["words"]) == everything - {*pause["nodes"]}
    assert listed(night, "model", "--select", *rebuild["words"]) == {*rebuild["nodes"]}
    assert listed(night, "test", "--select", *check["words"]) == {*check["nodes"]}
    for part in (pause, rebuild, check):
        words = part["command"].split()
        assert words[0] == "dbt" and words[2] in ("--select", "--exclude")
        assert words[3:] == part["words"]


def listed(folder: Path, kind: str, *arguments: str) -> set[str]:
    """The nodes that dbt itself lists."""
    done, said = run_dbt(
        folder,
        *("--quiet", "ls", "--resource-type", kind, "--output", "json"),
        *("--output-keys", "unique_id", "--target-path", "listed", *arguments),
    )
    assert done, said
    return {json.loads(line)["unique_id"] for line in said.splitlines() if line.startswith("{")}
