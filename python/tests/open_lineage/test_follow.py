"""`emit --follow`: real dbt in this process, and its events while it runs."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eggs_project
import pytest
import schemas
from collector import Collector
from event_shell import EventShell

EACH_TIME = "select egg_id, grams, '{{ invocation_id }}' as run from {{ ref('eggs') }}\n"


@pytest.fixture
def fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[EventShell]:
    """`dbt-ripple` in the project before dbt has ever run."""
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.adapters.factory import reset_adapters

    folder = eggs_project.write(tmp_path / "eggs")
    (folder / "models" / "stamped.sql").write_text(EACH_TIME)
    yield EventShell(folder, monkeypatch, capsys)
    with contextlib.suppress(Exception):
        DuckDBConnectionManager.close_all_connections()
    reset_adapters()


def without_times(event: dict[str, Any]) -> dict[str, Any]:
    """dbt tells the begin of a run by some microseconds otherwise while it runs."""
    document = json.loads(json.dumps(event))
    document["run"]["facets"].pop("nominalTime")
    if document["eventType"] == "START":
        document.pop("eventTime")
        document["job"]["facets"].pop("sql", None)  # of what looks different each time
    return document  # type: ignore[no-any-return]


def test_events_while_dbt_runs(fresh: EventShell) -> None:
    code, out, err = fresh("emit", "--output", "live.ndjson", "--follow", "--", "build")
    assert code == 1, err  # `sold` fails, as dbt's own exit code says
    live = schemas.Events(schemas.read(Path("live.ndjson").read_text()))
    assert out == f"wrote {len(live)} events to live.ndjson\n"
    order = [(e["job"]["name"], e["eventType"]) for e in live]
    assert order[0] == ("dbt-run-eggs", "START")
    assert order[-1] == ("dbt-run-eggs", "FAIL")
    # Told when it happened: `eggs` ended before `hens` began.
    assert order.index(("model.eggs.eggs", "COMPLETE")) < order.index(("model.eggs.hens", "START"))
    # Its SQL is another one at each compilation, so its end is told when dbt has ended.
    assert order.index(("model.eggs.stamped", "COMPLETE")) > order.index(
        ("model.eggs.hens", "COMPLETE")
    )
    afterwards = fresh.events()
    assert sorted(map(repr, map(without_times, live))) == sorted(
        map(repr, map(without_times, afterwards))
    )
    stamped = live.of("model.eggs.stamped")
    assert live[0]["run"]["runId"] in stamped["job"]["facets"]["sql"]["query"]
    fields = stamped["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert set(fields) == {"egg_id", "grams"}


def test_a_collector_that_refuses_does_not_stop_dbt(
    fresh: EventShell, collector: Collector
) -> None:
    collector.status = 503
    fresh.monkeypatch.setenv("OPENLINEAGE_CONFIG", str(fresh.folder / "ol.yml"))
    (fresh.folder / "ol.yml").write_text(
        f"transport: {{type: http, url: '{collector.url}', retry: {{total: 0}}}}"
    )
    code, out, err = fresh("emit", "--follow", "--", "seed")
    assert code == 0, err
    assert out.startswith("sent 0 events")
    assert "events could not be sent" in err
    collector.status = 201
    code, out, _ = fresh("emit")
    assert (code, out.split()[0]) == (0, "sent")
    assert collector.events[-1]["eventType"] == "COMPLETE"


def test_disabled(fresh: EventShell, collector: Collector) -> None:
    fresh.monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    fresh.monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    code, out, err = fresh("emit", "--follow", "--", "seed")
    assert (code, out, collector.taken) == (0, "", []), err
    assert (fresh.folder / "target" / "run_results.json").is_file()


def test_a_command_that_dbt_does_not_take(fresh: EventShell) -> None:
    code, out, err = fresh("emit", "--output", "-", "--follow", "--", "build", "--selekt", "x")
    assert (code, out) == (2, "")
    assert "`dbt build --selekt x` failed (No such option" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--follow",), "--follow needs a dbt command"),
        (("build",), "Did you mean --follow -- build?"),
        (("--follow", "--", "docs", "generate"), "`dbt docs` runs no node"),
        (("--follow", "--static", "--", "build"), "--static events without a run"),
    ],
)
def test_what_does_not_go_together(
    shell: EventShell, arguments: tuple[str, ...], message: str
) -> None:
    assert message in shell.refused("emit", *arguments)


def test_without_compiling_first(fresh: EventShell) -> None:
    """A model that looks into a warehouse where nothing is yet."""
    (fresh.folder / "models" / "looks.sql").write_text(
        "select {{ dbt_utils_free() }} as n from {{ ref('eggs') }}\n"
    )
    macros = fresh.folder / "macros"
    macros.mkdir()
    (macros / "m.sql").write_text(
        "{% macro dbt_utils_free() %}{% if execute %}"
        "{% do run_query('select max(grams) from ' ~ ref('eggs')) %}grams{% endif %}{% endmacro %}"
    )
    code, _, err = fresh(
        "emit", "--output", "live.ndjson", "--follow", "--", "run", "--select", "looks"
    )
    assert code == 1
    assert "dbt cannot compile this before it runs" in err
    shutil.copytree(fresh.folder / "target", fresh.folder / "before")
    eggs_project.build(fresh.folder, "build", "--select", "raw_eggs", "eggs")
    code, _, err = fresh(
        "emit", "--output", "live.ndjson", "--follow", "--", "run", "--select", "looks"
    )
    assert code == 0, err
    live = schemas.Events(schemas.read(Path("live.ndjson").read_text()))
    fields = live.of("model.eggs.looks")["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert fields["n"]["inputFields"][0]["field"] == "grams"
