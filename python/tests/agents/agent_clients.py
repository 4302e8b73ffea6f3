"""A dbt project of integration_tests, and real clients of the SDK that ask about it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from stories_project import compiled

pytest.importorskip("mcp")

Ask = Callable[[Callable[[Any], Coroutine[Any, Any, Any]]], Any]
"""Runs a function of a connected client."""

TOKEN = "a token of the tests"


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("dbt.adapters.duckdb")
    return compiled(tmp_path_factory.mktemp("stories"))


def command(folder: Path, *options: str) -> list[str]:
    of = ["--project-dir", str(folder), "--target-path", "edited", "--profiles-dir", str(folder)]
    return ["-m", "dbt_ripple", "mcp", *of, "--state", str(folder / "last-good"), *options]


@pytest.fixture(scope="session")
def over_stdio(stories: Path) -> Ask:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=command(stories), env={**os.environ}
    )

    def ask(questions: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            async with Client(stdio_client(server)) as client:
                return await questions(client)

        return anyio.run(run)

    return ask


@pytest.fixture(scope="session")
def served(stories: Path) -> Iterator[str]:
    """The URL of a server over HTTP, which may write."""
    environment = {**os.environ, "DBT_RIPPLE_MCP_TOKEN": TOKEN}
    process = subprocess.Popen(
        [sys.executable, *command(stories, "--http", "--port", "0", "--allow-writes")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), line
    yield line.split()[-1]
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="session")
def over_http(served: str) -> Ask:
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    def ask(questions: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
                transport = streamable_http_client(served, http_client=http)
                async with Client(transport) as client:
                    return await questions(client)

        return anyio.run(run)

    return ask
