"""What one producer sends takes little memory and time, and nothing from the others."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")
pytest.importorskip("starlette")

from served_collector import BATCH, EVENTS, Served, event

from dbt_ripple.collector.check_worker import CheckWorker
from dbt_ripple.collector.event_schemas import problems_of
from dbt_ripple.collector.intake import Limits, RefusedError, read_event

DATASET = {"namespace": "a", "name": "b"}


def packed(**changes: Any) -> bytes:
    return gzip.compress(json.dumps({**event(1), **changes}, separators=(",", ":")).encode())


def memory(served: Served) -> int:
    """Megabytes that the collector and the process that checks had at most."""
    pid = served.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [
        re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{one}/status").read_text())
        for one in (pid, *children)
    ]
    return sum(int(one[1]) for one in found if one) // 1024


BOMBS = {
    "datasets": {"inputs": [1] * 2_400_000},
    "empty datasets": {"inputs": [{}] * 9_000},
    "facets": {"job": {**DATASET, "facets": {f"f{i}": {} for i in range(20_000)}}},
    "facets of many": {"inputs": [{**DATASET, "facets": {f"f{i}": {} for i in range(400)}}] * 40},
    "fields": {"outputs": [{**DATASET, "facets": {"schema": {"fields": [1] * 2_000_000}}}]},
    "lists": {"run": [[]] * 1_600_000},
    "a text": {"producer": "x" * 4_500_000},
    "one facet": {
        "outputs": [
            {"name": "a", "facets": {"x": {"fields": [{"a": [i]} for i in range(300_000)]}}}
        ]
    },
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_body_that_is_large_takes_nothing_from_the_others(
    bomb: str, tmp_path: Path
) -> None:
    body = packed(**BOMBS[bomb])
    with Served(tmp_path / "s", "--rate", "0") as served:
        answers: list[int] = []
        sending = [
            threading.Thread(
                target=lambda: answers.append(served.post(body, Content_Encoding="gzip").status)
            )
            for _ in range(3)
        ]
        for thread in sending:
            thread.start()
        waits, number = [], 100
        while any(thread.is_alive() for thread in sending):
            began = time.perf_counter()
            assert served.post(event(number)).status == 201
            waits.append(time.perf_counter() - began)
            number += 1
        assert set(answers) <= {413, 422}, answers
        assert memory(served) < 300
        waits.sort()
        assert not waits or waits[int(len(waits) * 0.99) - 1] < 1


def test_what_is_large_and_valid_is_taken(tmp_path: Path) -> None:
    batch = [event(number, inputs=[DATASET] * 20) for number in range(200)]
    with Served(tmp_path / "s") as served:
        answer = served.post(batch, BATCH)
        assert answer.json()["summary"]["successful"] == 200
        assert served.post(event(1, inputs=[DATASET] * 5_000)).status == 201
        bad = served.post([*batch, {"a": 1}], BATCH).json()
        assert [failed["index"] for failed in bad["failed_events"]] == [200]
        refused = served.post(event(2, inputs=[DATASET] * 5_000, job={"namespace": "a"}))
        assert refused.status == 422
        assert {error["pointer"] for error in refused.json()["errors"]} == {"/job"}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"inputs": [DATASET] * 10_001}, "datasets"),
        ({"run": {"runId": "x", "facets": {f"f{i}": {} for i in range(501)}}}, "of one thing"),
        ({"outputs": [{**DATASET, "facets": dict.fromkeys(map(str, range(490)))}] * 50}, "facets"),
    ],
)
def test_parts_are_counted_before_anything_is_judged(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(RefusedError, match=what) as error:
        read_event(json.dumps({**event(1), **changes}).encode(), Limits())
    assert error.value.reason == "parts"


def test_the_largest_that_is_valid_has_room(tmp_path: Path) -> None:
    """Nothing of the bound on memory is in the way of who sends 5 MB of columns."""
    facet = {"_producer": "https://example.com/p", "_schemaURL": "https://example.com/s"}
    fields = [{"name": f"column_{i}", "type": "int"} for i in range(130_000)]
    one = event(1, outputs=[{**DATASET, "facets": {"schema": {**facet, "fields": fields}}}])
    body = json.dumps(one, separators=(",", ":")).encode()
    assert 4_500_000 < len(body) < 5_000_000
    with Served(tmp_path / "s") as served:
        assert served.post(body).status == 201
        assert served.post(b"[" + body + b"]", BATCH).status == 200


def test_of_a_large_event_the_first_mistake_is_named() -> None:
    (problem,) = problems_of({**event(1), "inputs": [DATASET] * 3_000 + [{}] * 2_000})
    assert problem.pointer.startswith("/inputs/3000")


def test_who_takes_too_long_is_refused_and_the_next_one_is_not() -> None:
    body = json.dumps(event(1, inputs=[DATASET] * 9_000)).encode()

    async def run() -> None:
        worker = CheckWorker(Limits(), 0.0001)
        with pytest.raises(RefusedError, match="could not be checked") as error:
            await worker.check("event", body)
        assert error.value.reason == "check"
        worker._seconds = 30
        assert len((await worker.check("event", body)).lines) == 1
        assert worker._process is not None
        worker._process.kill()  # as a system does that runs out of memory
        with pytest.raises(RefusedError, match="could not be checked"):
            await worker.check("event", body)
        assert len((await worker.check("batch", b"[" + body + b"]")).lines) == 1
        await worker.close()
        await worker.close()

    asyncio.run(run())


def test_it_ends_while_something_large_is_checked(tmp_path: Path) -> None:
    with Served(tmp_path / "s") as served:
        body = packed(**BOMBS["lists"])
        threads = [
            threading.Thread(target=lambda: _quietly(served, body), daemon=True) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        began = time.perf_counter()
        code, _, _ = served.stop(signal.SIGTERM)
        assert code == -signal.SIGTERM or code == 143
        assert time.perf_counter() - began < 40


def _quietly(served: Served, body: bytes) -> None:
    with contextlib.suppress(OSError):
        served.post(body, Content_Encoding="gzip")


# --- who is slow -----------------------------------------------------------------------------------


def slow_client(served: Served, sent: bytes, *headers: str) -> socket.socket:
    """A client that announces 200,000 bytes, sends some of them, and then nothing."""
    lines = [
        f"POST {EVENTS} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        "Content-Length: 200000",
        *headers,
    ]
    connection = socket.create_connection(("127.0.0.1", served.port))
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + sent)
    return connection


@pytest.mark.parametrize(
    ("sent", "headers", "clients"),
    [
        (b"{", ["Content-Encoding: gzip"], 90),
        (b"{", [], 90),
        (b"{" + b" " * 70_000, [], 40),  # more than what takes no place
    ],
)
def test_who_sends_slowly_takes_no_place_of_those_that_send(
    sent: bytes, headers: list[str], clients: int, tmp_path: Path
) -> None:
    large = json.dumps(event(1, inputs=[DATASET] * 5_000)).encode()
    with Served(tmp_path / "s", "--rate", "0", "--timeout", "30") as served, ExitStack() as stack:
        for _ in range(clients):
            stack.enter_context(slow_client(served, sent, *headers))
        time.sleep(0.5)  # until what they sent is read
        began = time.perf_counter()
        assert served.post(packed(), Content_Encoding="gzip").status == 201
        assert served.post(event(2)).status == 201
        # Behind at most five times eight, each for a second; not for thirty.
        assert served.post(large).status == 201
        assert time.perf_counter() - began < 29


def test_a_large_body_has_to_keep_a_pace(tmp_path: Path) -> None:
    large = json.dumps(event(1, inputs=[DATASET] * 5_000)).encode()
    with Served(tmp_path / "s", "--timeout", "30") as served:
        began = time.perf_counter()
        with slow_client(served, b"{" + b" " * 70_000) as connection:
            answer = connection.recv(10_000).decode()
        assert answer.startswith("HTTP/1.1 408"), answer
        assert 0.8 < time.perf_counter() - began < 15
        # At 100,000 bytes a second it is taken, however long that is in all.
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            head = (
                f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            )
            connection.sendall(f"{head}Content-Length: {len(large)}\r\n\r\n".encode())
            for start in range(0, len(large), 20_000):
                connection.sendall(large[start : start + 20_000])
                time.sleep(0.2)
            assert connection.recv(10_000).startswith(b"HTTP/1.1 201")


# --- who posts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 201),
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json", "Origin": "https://evil.example"}, 403),
        ({"Content-Type": "application/json", "Origin": "null"}, 403),
        ({"Content-Type": "application/json", "Host": "evil.example"}, 403),
        ({"Content-Type": "application/json", "Host": "localhost.evil.example:80"}, 403),
        ({"Content-Type": "application/json", "Host": "LocalHost:1"}, 201),
        ({"Content-Type": "application/json", "Host": "[::1]:5000"}, 201),
    ],
)
def test_a_page_in_a_browser_cannot_post(
    headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    with Served(tmp_path / "s") as served:
        assert served.ask("POST", EVENTS, json.dumps(event(1)).encode(), headers).status == status


def test_with_a_token_any_name_will_do(tmp_path: Path) -> None:
    with Served(tmp_path / "s", environment={"DBT_RIPPLE_COLLECT_TOKEN": "t"}) as served:
        headers = {
            "Content-Type": "application/json",
            "Host": "collector:5000",
            "Authorization": "Bearer t",
        }
        assert served.ask("POST", EVENTS, json.dumps(event(1)).encode(), headers).status == 201
