"""The transports of openlineage-python: what is configured for it counts, and nothing else."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import schemas
from collector import Collector
from event_shell import EventShell

from dbt_ripple.openlineage.client import reason_of, silent


def test_by_url(shell: EventShell, collector: Collector) -> None:
    expected = shell.events()
    shell.monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    shell.monkeypatch.setenv("OPENLINEAGE_API_KEY", "key")
    code, out, err = shell("emit")
    assert (code, err) == (0, "")
    assert out == f"sent {len(expected)} events to {collector.url}\n"
    path, headers, _ = collector.taken[0]
    assert (path, headers["Authorization"]) == ("/api/v1/lineage", "Bearer key")
    sent = collector.events
    assert [e["run"]["runId"] for e in sent] == [e["run"]["runId"] for e in expected]
    assert sent.of("model.eggs.eggs")["outputs"] == expected.of("model.eggs.eggs")["outputs"]


def test_by_openlineage_yml(shell: EventShell) -> None:
    Path("openlineage.yml").write_text(
        "transport: {type: file, log_file_path: sent.ndjson, append: true}\n"
        "tags: {job: {team: farm}}\n"
    )
    assert shell("emit")[0] == 0
    sent = schemas.Events(schemas.read(Path("sent.ndjson").read_text()))
    tags = sent.of("model.eggs.eggs")["job"]["facets"]["tags"]["tags"]
    assert ("team", "farm", "USER") in [(t["key"], t["value"], t["source"]) for t in tags]
    assert ("contract_version", "3", "DBT") in [(t["key"], t["value"], t["source"]) for t in tags]


def test_disabled(shell: EventShell, collector: Collector) -> None:
    shell.monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    shell.monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    code, out, err = shell("emit")
    assert (code, out, collector.taken) == (0, "", [])
    assert err == "dbt-ripple: OPENLINEAGE_DISABLED is true: nothing is sent\n"


def test_the_namespace_of_the_jobs(shell: EventShell) -> None:
    shell.monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    assert {e["job"]["namespace"] for e in shell.events()} == {"prod"}


def test_nothing_is_configured(shell: EventShell) -> None:
    output = shell.refused("emit")
    assert output.startswith(
        "dbt-ripple: no OpenLineage transport is configured; set OPENLINEAGE_URL"
    )


def test_a_configuration_that_is_wrong(shell: EventShell) -> None:
    Path("openlineage.yml").write_text("transport: {type: file}\n")
    assert "configuration is wrong" in shell.refused("emit")


def test_a_collector_that_refuses(shell: EventShell, collector: Collector) -> None:
    collector.status = 422
    shell.monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    output = shell.refused("emit")
    assert "an event could not be sent" in output
    assert "422" in output
    assert len(collector.taken) == 1


def test_nobody_listens(shell: EventShell) -> None:
    Path("openlineage.yml").write_text(
        # The client would try for hours: that nobody is there is found out before.
        "transport: {type: http, url: 'http://me:pw@127.0.0.1:1', retry: {total: 9, backoff_factor: 600}}"
    )
    refused = shell.refused("emit")
    assert "@127.0.0.1:1: nobody answers there (connection refused); start the" in refused
    assert "pw" not in refused


def test_a_file_that_cannot_be_written(shell: EventShell) -> None:
    assert "--output gone/events" in shell.refused("emit", "--output", "gone/events")


def test_without_the_extra(shell: EventShell) -> None:
    def find_spec(name: str, *_: object) -> None:
        raise ModuleNotFoundError(name)

    shell.monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    output = shell.refused("emit")
    assert re.search(r'run `pip install "openlineage-python\S*>=1\.54\S*"`', output)


def test_through_a_proxy_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = SimpleNamespace(transport=SimpleNamespace(url="http://127.0.0.1:1"))
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert silent(client) == "connection refused"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:2")
    assert silent(client) is None
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert silent(client) == "connection refused"
    client.transport.url = "kafka:9092"
    assert silent(client) is None


def test_a_failed_connection_is_told_as_the_system_tells_it() -> None:
    refused = OSError("Max retries (Caused by E('c: [Errno 111] Connection refused'))")
    assert reason_of(refused) == "connection refused"
    assert reason_of(ValueError(" 422  Client Error ")) == "422 Client Error"
    assert reason_of(ValueError()) == "ValueError"
