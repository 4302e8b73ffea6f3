"""What `emit` sends, our own collector takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from event_shell import EventShell
from served_collector import Served, stored


def test_every_event_arrives(shell: EventShell, tmp_path: Path) -> None:
    expected = shell.events() + shell.events("--static")
    with Served(tmp_path / "store") as served:
        shell.monkeypatch.setenv("OPENLINEAGE_URL", served.url)
        for arguments in ((), ("--static",), ()):
            code, _, err = shell("emit", *arguments)
            assert (code, err) == (0, "")
        metrics = served.metrics()
    there = stored(tmp_path / "store")
    assert len(there) == len(expected)
    # The client adds tags of its own where it sends.
    assert sorted(map(_what, there)) == sorted(map(_what, expected))
    # All runs were sent a second time: they are the same events.
    assert metrics["dbt_ripple_collect_duplicates_total"] == len(shell.events())


def _what(event: dict[str, Any]) -> str:
    parts = ("eventType", "eventTime", "inputs", "outputs", "dataset")
    run = (event.get("run") or {}).get("runId")
    facets = ((event.get("job") or {}).get("facets") or {}).keys()
    kept = {part: event.get(part) for part in parts}
    named = {name: (event.get("job") or {}).get(name) for name in ("namespace", "name")}
    return json.dumps([run, kept, named, sorted(facets)], sort_keys=True)
