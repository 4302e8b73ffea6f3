"""Real producers: the openlineage-python client over HTTP, our `emit`, `track`, and the page's examples."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, JobEvent, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import schema_dataset, sql_job
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpCompression,
    HttpConfig,
    HttpTransport,
)
from served_collector import BATCH, PACKAGE, Served, event, stored

PAGE = Path(__file__).parents[3] / "docs" / "collect.md"
TOKEN = "of-the-client"


@pytest.mark.parametrize("compression", [None, HttpCompression.GZIP])
def test_the_client_of_openlineage(tmp_path: Path, compression: HttpCompression | None) -> None:
    with Served(tmp_path / "s", environment={"DBT_RIPPLE_COLLECT_TOKEN": TOKEN}) as served:
        config = HttpConfig(
            url=served.url,
            auth=ApiKeyTokenProvider({"apiKey": TOKEN}),
            compression=compression,
        )
        client = OpenLineageClient(transport=HttpTransport(config))
        fields = [schema_dataset.SchemaDatasetFacetFields("id", "int", fields=[])]
        output = OutputDataset(
            "postgres://db:5432", "shop.a", {"schema": schema_dataset.SchemaDatasetFacet(fields)}
        )
        job = Job("airflow", "load.orders", {"sql": sql_job.SQLJobFacet("select 1", "duckdb")})
        run = Run("01993333-0000-7000-8000-000000000000")
        at = datetime.now(UTC).isoformat()
        for state in (RunState.START, RunState.COMPLETE):
            client.emit(RunEvent(eventTime=at, run=run, job=job, eventType=state, outputs=[output]))
        client.emit(JobEvent(eventTime=at, job=job, outputs=[output]))
        client.close()
    stored_events = stored(tmp_path / "s")
    assert [e.get("eventType") for e in stored_events] == ["START", "COMPLETE", None]
    assert stored_events[0]["job"]["facets"]["sql"]["query"] == "select 1"


def test_track(tmp_path: Path) -> None:
    program = """
from dbt_ripple import track
with track(inputs=["s3://lake/a"], outputs=["s3://lake/b"], job="clean") as run:
    run.wrote("s3://lake/b", rows=3)
"""
    with Served(tmp_path / "s") as served:
        environment = {"PYTHONPATH": str(PACKAGE), "OPENLINEAGE_URL": served.url, "PATH": ""}
        subprocess.run(
            [sys.executable, "-c", program], check=True, env=environment, cwd=tmp_path, timeout=120
        )
    stored_events = stored(tmp_path / "s")
    assert [(e["eventType"], e["job"]["name"]) for e in stored_events] == [
        ("START", "clean"),
        ("COMPLETE", "clean"),
    ]


def test_the_answers_on_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    ((asked, answered),) = re.findall(r"^    \$ (curl .*)\n    (.*)$", text, re.M)
    body = json.loads(shlex.split(asked)[shlex.split(asked).index("-d") + 1])
    (batch,) = re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)
    with Served(tmp_path / "s") as served:
        assert served.post(body).json()["errors"][-1] == json.loads(answered)
        events: list[Any] = [event(1), event(2, run={"runId": "7"})]
        assert served.post(events, BATCH).json() == json.loads(batch)
        names = set(served.metrics())
    (listed,) = re.findall(r"^\* \*\*`GET /metrics`.*", text, re.M)
    shown = re.findall(r"`(?:dbt_ripple_collect)?(_[a-z_]+?)(?:\{.*?\})?`", listed)
    assert len(shown) == 6
    for name in shown:
        assert any(
            name_of_metric.startswith(f"dbt_ripple_collect{name}") for name_of_metric in names
        ), name


def test_the_limits_on_the_page() -> None:
    from dbt_ripple.cli.collect import collect
    from dbt_ripple.collector.event_store import REMEMBERED

    text = PAGE.read_text(encoding="utf-8")
    defaults = {option.opts[0]: option.default for option in collect.params}
    for phrase, option, value in (
        ("`--max-body` (5 MB)", "--max-body", 5_000_000),
        ("`--max-batch` (1,000)", "--max-batch", 1000),
        ("`--max-depth` (100)", "--max-depth", 100),
        ("`--rate` (1,000 a second", "--rate", 1000),
        ("`--max-requests` (64 are checked and stored at a time)", "--max-requests", 64),
        ("`--timeout` (30 seconds)", "--timeout", 30),
        ("(`--store`)", "--store", "openlineage_events"),
    ):
        assert phrase in text
        assert defaults[option] == value
    assert f"{REMEMBERED:,} events" in text
