"""One run of real dbt for all tests of this folder, and a shell in a copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import eggs_project
import pytest
import schemas
from collector import Collector
from event_shell import EventShell


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after `dbt build`."""
    folder = eggs_project.write(tmp_path_factory.mktemp("eggs"))
    output = eggs_project.build(folder)
    assert "Completed with" in output, output
    return folder


@pytest.fixture
def shell(
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> EventShell:
    """`dbt-ripple` in a copy of the built project; no configuration of OpenLineage is there."""
    folder = tmp_path / "eggs"
    shutil.copytree(built, folder)
    return EventShell(folder, monkeypatch, capsys)


@pytest.fixture
def events(shell: EventShell) -> schemas.Events:
    """The events of the run, each valid."""
    return shell.events()


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A stand-in for a collector."""
    running = Collector()
    yield running
    running.close()
