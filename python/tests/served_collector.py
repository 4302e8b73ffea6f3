"""`dbt-ripple collect --serve` as a process of its own, and a client of it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dbt_ripple

PACKAGE = Path(dbt_ripple.__file__).parents[1]
EVENTS = "/api/v1/lineage"
BATCH = "/api/v1/lineage/batch"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A collector that listens; a context manager that ends it as a service manager does.

    Args:
        store: its folder.
        arguments: further ones of the command line.
        command: that listens.
        before: what is put before the command, as `unshare --mount`.
        code: Python that runs in the process first.
    """

    def __init__(
        self,
        store: Path,
        *arguments: str,
        before: Sequence[str] = (),
        code: str = "",
        preexec: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = ("collect", "--serve"),
    ) -> None:
        self.store = store
        program = f"{code}\nfrom dbt_ripple.cli import main\nmain()"
        self.process = subprocess.Popen(
            [
                *(*before, sys.executable, "-c", program, *command),
                *("--port", "0", "--store", str(store), *arguments),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), **(environment or {})},
            preexec_fn=preexec,
        )
        assert self.process.stdout
        self.first_line = self.process.stdout.readline()
        listening = re.match(
            r"listening on (http://127\.0\.0\.1:(\d+))/(?:api/v1/lineage)?, ", self.first_line
        )
        if not listening:
            self.process.terminate()
            raise AssertionError(self.process.communicate()[1])
        self.url, self.port = listening[1], int(listening[2])

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Its exit code, and what it said at last."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        connection = self.connection()
        try:
            return asked(connection, method, path, body, headers)
        finally:
            connection.close()

    def post(self, body: Any, path: str = EVENTS, **headers: str) -> Answer:
        """Post a value as JSON, or bytes as they are."""
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, text, {"Content-Type": "application/json", **named})

    def metrics(self) -> dict[str, float]:
        """Its counters by name with labels."""
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in lines
            if not line.startswith("#")
        }


def asked(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    connection.request(method, path, body, dict(headers or {}))
    answer = connection.getresponse()
    return Answer(answer.status, dict(answer.getheaders()), answer.read())


def event(number: int, **further: Any) -> dict[str, Any]:
    """A valid RunEvent, another one for each number."""
    base = {"_producer": "https://example.com/p", "_schemaURL": "https://example.com/s"}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-23T06:00:00.123Z",
        "run": {
            "runId": str(uuid.UUID(int=number)),
            "facets": {"nominalTime": {**base, "nominalStartTime": "2026-11-23T06:00:00Z"}},
        },
        "job": {"namespace": "shop", "name": f"job.{number}"},
        "inputs": [{"namespace": "postgres://db:5432", "name": "shop.raw.orders"}],
        "outputs": [
            {
                "namespace": "postgres://db:5432",
                "name": "shop.public.orders",
                "facets": {
                    "schema": {**base, "fields": [{"name": "id", "type": "int"}]},
                    "anything_of_ours": {**base, "x": [1, 2.5, None, {"y": "ä"}]},
                },
                "outputFacets": {"outputStatistics": {**base, "rowCount": number}},
            }
        ],
        "producer": "https://example.com/p",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        **further,
    }


def stored(folder: Path) -> list[dict[str, Any]]:
    """The events of a store, read with nothing of ours; every line is whole."""
    events = []
    for segment in sorted(folder.glob("events-*.ndjson")):
        text = segment.read_bytes()
        assert text.endswith(b"\n") or not text, segment
        events += [json.loads(line) for line in text.splitlines()]
    return events
