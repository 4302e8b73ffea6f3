"""What is told of a run while it runs, where dbt does not come to its end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import schemas

from dbt_ripple.artifacts import RunResult
from dbt_ripple.cli.emit import EventSettings, analysis_of
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.graph.target_folder import TargetFolder
from dbt_ripple.openlineage.client import as_json
from dbt_ripple.openlineage.invocation import Invocation
from dbt_ripple.openlineage.live_events import LiveEvents

EGGS, HENS, TEST = "model.eggs.eggs", "model.eggs.hens", "test.eggs.no_heavy_eggs"
BEGUN = datetime(2026, 11, 23, 6, tzinfo=UTC)
INVOCATION = Invocation("0198c3a4-9c6e-7b1c-9b57-3f1ea2a3c001", "1.11", "build", BEGUN)


@pytest.fixture
def told() -> list[Any]:
    return []


@pytest.fixture
def live(built: Path, tmp_path: Path, told: list[Any]) -> LiveEvents:
    shutil.copytree(built / "target", tmp_path / "target")
    target = TargetFolder(tmp_path / "target")
    settings = EventSettings(built, DbtOptions(), datasets="ns")
    project = target.project
    names = settings.names_of(project)
    events = settings.run_events(project, analysis_of(target), names, None, project.nodes)

    def put(make: Callable[[], Any]) -> None:
        told.append(make())

    def compiled(unique_id: str) -> str | None:
        return None if unique_id == HENS else project.nodes[unique_id].compiled_code

    return LiveEvents(events, compiled, put)


def states(told: list[Any]) -> list[tuple[str, str]]:
    events = [schemas.valid(json.loads(as_json(event))) for event in told]
    return [(e["job"]["name"], e["eventType"]) for e in events]


def test_what_runs_when_dbt_is_interrupted_is_aborted(live: LiveEvents, told: list[Any]) -> None:
    live.began(INVOCATION)
    live.node_began(EGGS, BEGUN)
    live.node_ended(RunResult(unique_id=EGGS, status="success"))
    live.node_began(TEST, BEGUN)
    live.aborted("dbt was interrupted")
    assert states(told) == [
        ("dbt-run-eggs", "START"),
        (EGGS, "START"),
        (EGGS, "COMPLETE"),
        (TEST, "START"),
        (TEST, "ABORT"),
        ("dbt-run-eggs", "ABORT"),
    ]
    assert "interrupted" in as_json(told[-1])


def test_nothing_is_told_of_what_did_not_begin(live: LiveEvents, told: list[Any]) -> None:
    live.node_began(EGGS, BEGUN)
    live.aborted("dbt was interrupted")
    assert (told, live.has_begun) == ([], False)


def test_what_is_skipped_or_unknown(live: LiveEvents, told: list[Any]) -> None:
    live.began(INVOCATION)
    live.began(INVOCATION)
    live.node_began("model.eggs.nobody", BEGUN)
    live.node_began("model.eggs.weights", BEGUN)  # ephemeral
    live.node_began("exposure.eggs.scales", BEGUN)
    live.node_ended(RunResult(unique_id="model.eggs.sold_later", status="skipped"))
    assert states(told) == [("dbt-run-eggs", "START")]


def test_an_end_that_is_not_known_yet_is_left(live: LiveEvents, told: list[Any]) -> None:
    live.began(INVOCATION)
    live.node_began(HENS, BEGUN)
    live.node_ended(RunResult(unique_id=HENS, status="success"))
    assert (states(told)[-1], live.ended) == ((HENS, "START"), set())
