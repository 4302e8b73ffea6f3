"""The paths without a project: how long an answer may take, and what the description says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")
pytest.importorskip("starlette")

import jsonschema
from serve.pipeline_client import PIPELINE, Client
from served_collector import Served

from dbt_ripple.collector.guard import Guard, HttpLimits, Refusal
from dbt_ripple.collector.intake import Limits
from dbt_ripple.collector.metrics import Metrics
from dbt_ripple.errors import RippleError
from dbt_ripple.serve.api import Api
from dbt_ripple.serve.openapi import document


def api(seconds: float) -> Api:
    return Api(Guard(Metrics(), 1000, HttpLimits()), Limits(), seconds)


def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_waits_for_it() -> None:
    async def ask() -> None:
        slow, going = api(0.3), threading.Event()
        with pytest.raises(Refusal) as late:
            await slow._ask(lambda: going.wait(30))
        assert late.value.status == 504
        # It still runs: who comes now is told so, and is not put behind it for ever.
        with pytest.raises(Refusal) as busy:
            await slow._ask(lambda: True)
        assert (busy.value.status, busy.value.headers["Retry-After"]) == (503, "5")
        going.set()
        assert await slow._ask(lambda: "here") == "here"
        slow.close()

    asyncio.run(ask())


def test_an_answer_that_fails_later_is_nobodys() -> None:
    async def ask() -> None:
        slow, going = api(0.2), threading.Event()

        def fails() -> None:
            going.wait(30)
            raise RippleError("gone")

        with pytest.raises(Refusal):
            await slow._ask(fails)
        going.set()
        for _ in range(3):
            assert await slow._ask(lambda: 1) == 1
        with pytest.raises(RippleError, match="gone"):
            await slow._ask(fails)
        slow.close()

    asyncio.run(ask())


@pytest.mark.parametrize("with_slack", [False, True])
def test_the_description_holds_together(with_slack: bool) -> None:
    described = document(with_slack=with_slack)
    assert ("/slack/lineage" in described["paths"]) is with_slack
    names = set(described["components"]["schemas"])

    def refs(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if "$ref" in value else set()
            return own.union(*map(refs, value.values()))
        return set().union(*map(refs, value)) if isinstance(value, list) else set()

    assert {ref.rpartition("/")[2] for ref in refs(described)} <= names
    for schema in described["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert {"/lineage/trace", "/lineage/{id}", "/lineage/impact"} <= set(described["paths"])


@pytest.mark.slow
def test_whatever_the_description_allows_is_answered_as_it_says(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    with Served(
        tmp_path / "events",
        command=("serve", "--project-dir", str(tmp_path)),
    ) as served:
        client = Client(served.url)
        for asset in PIPELINE:
            client.register(*asset)
        checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json"),
                *("--checks", checks, "--phases", "examples,coverage,fuzzing"),
                *("--max-examples", "30", "--seed", "1"),
            ],
            capture_output=True,
            text=True,
            timeout=500,
            cwd=tmp_path,
        )
        assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
        # And it is still there, with what was registered.
        assert client.lineage("table:raw_orders")["node_count"] == len(PIPELINE)
