"""Whatever names a project has, its events are valid, and as many as with tame names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import schemas
from hostile import PARTS
from hostile_project import write

from dbt_ripple.cli.emit import EventSettings, static_of
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.graph.target_folder import TargetFolder
from dbt_ripple.openlineage.client import as_json


def static_events(folder: Path) -> schemas.Events:
    settings = EventSettings(folder, DbtOptions(), datasets="ns")
    made = static_of(TargetFolder(folder / "target"), settings)
    return schemas.Events(schemas.valid(json.loads(as_json(event))) for event in made)


def shape(events: schemas.Events) -> list[object]:
    """What is in events, without any name."""
    return [
        (
            sorted(event.get("job", {}).get("facets", ())),
            sorted(event.get("dataset", {}).get("facets", ())),
            len(event.get("inputs", ())),
            [
                len(o["facets"].get("schema", {}).get("fields", ()))
                for o in event.get("outputs", ())
            ],
        )
        for event in events
    ]


@pytest.mark.parametrize("start", range(0, len(PARTS), 12))
def test_hostile_names(tmp_path: Path, start: int) -> None:
    text = "".join(PARTS[start : start + 12])
    write(tmp_path / "hostile", lambda name: f"{name}{text}x")
    write(tmp_path / "tame", lambda name: f"{name}/x")
    hostile, tame = static_events(tmp_path / "hostile"), static_events(tmp_path / "tame")
    assert len(tame) > 8
    assert sorted(map(repr, shape(hostile))) == sorted(map(repr, shape(tame)))
    names = [e["dataset"]["name"] for e in hostile if "dataset" in e]
    assert len(set(names)) == len(names)
