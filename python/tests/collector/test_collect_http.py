"""`dbt-ripple collect --serve`: what is accepted, what is refused, and how it ends."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_collector import BATCH, EVENTS, Answer, Served, event, stored

from dbt_ripple.collector import guard


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One collector with the usual limits but a smaller body."""
    with Served(tmp_path_factory.mktemp("http") / "store", "--max-body", "100000") as server:
        yield server


def problem(answer: Answer) -> dict[str, Any]:
    """The document of a refusal."""
    assert 400 <= answer.status < 500, answer
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == answer.status
    assert document["title"]
    assert document["detail"]
    return document


def test_an_event_is_there_when_it_is_answered(served: Served) -> None:
    for number in range(3):
        answer = served.post(event(number))
        assert (answer.status, answer.body) == (201, b"")
        assert event(number) in stored(served.store)


def test_a_redelivered_event_is_stored_once(served: Served) -> None:
    before = served.metrics()
    turned = dict(reversed(event(77).items()))
    for each in (event(77), turned, event(77)):
        assert served.post(each).status == 201
    assert stored(served.store).count(event(77)) == 1
    after = served.metrics()
    for name, more in (("accepted", 1), ("duplicates", 2)):
        key = f"dbt_ripple_collect_{name}_total"
        assert after[key] - before[key] == more


def test_gzip(served: Served) -> None:
    body = gzip.compress(json.dumps(event(10)).encode())
    assert served.post(body, Content_Encoding="gzip").status == 201
    assert event(10) in stored(served.store)
    for wrong in (body[:-9], body + b"x", b"no gzip"):
        assert served.post(wrong, Content_Encoding="gzip").status == 400
    bomb = gzip.compress(b" " * 50_000_000)
    assert problem(served.post(bomb, Content_Encoding="gzip"))["status"] == 413
    assert problem(served.post(body, Content_Encoding="br"))["status"] == 415


def test_a_batch(served: Served) -> None:
    answer = served.post([event(20), event(21)], BATCH)
    assert answer.status == 200
    assert answer.json() == {
        "status": "success",
        "summary": {
            "received": 2,
            "successful": 2,
            "failed": 0,
            "retriable": 0,
            "non_retriable": 0,
        },
        "failed_events": [],
    }
    answer = served.post([event(22), {"run": {"runId": 3}}, event(23)], BATCH)
    assert answer.status == 200
    document = answer.json()
    assert document["status"] == "partial_success"
    assert [(e["index"], e["retriable"]) for e in document["failed_events"]] == [(1, False)]
    assert "/run/runId" in document["failed_events"][0]["reason"]
    there = stored(served.store)
    assert all(event(number) in there for number in range(20, 24))
    assert served.post([], BATCH).status == 200


def test_a_batch_without_a_valid_event(served: Served) -> None:
    document = problem(served.post([3, {}], BATCH))
    assert document["status"] == 422
    assert [e["index"] for e in document["failed_events"]] == [0, 1]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"\xff", 400, None),
        (b"1e999", 400, None),
        (b"[" * 5000 + b"]" * 5000, 422, None),
        (b"[]", 422, ""),
        (json.dumps(event(1, run={"runId": "x"})).encode(), 422, "/run/runId"),
        (json.dumps(event(1, inputs=3)).encode(), 422, "/inputs"),
    ],
)
def test_a_body_that_is_no_event(
    served: Served, body: bytes, status: int, pointer: str | None
) -> None:
    document = problem(served.post(body))
    assert document["status"] == status
    if pointer is not None:
        assert document["errors"][0]["pointer"] == pointer


def test_other_refusals(served: Served) -> None:
    assert problem(served.post(event(1), Content_Type="text/plain"))["status"] == 415
    assert problem(served.ask("GET", EVENTS))["status"] == 405
    assert problem(served.ask("POST", "/api/v2/lineage"))["status"] == 404
    assert problem(served.post([1] * 1001, BATCH))["status"] == 413
    assert served.ask("GET", "/health").json() == {"status": "ok"}


@pytest.mark.parametrize("announces", [True, False])
def test_a_large_body(served: Served, announces: bool) -> None:
    """A hundred megabytes, announced or not; the answer can be read when all is sent."""
    connection = served.connection()
    chunk = b" " * 1_000_000
    headers = {"Content-Type": "application/json"}
    if announces:
        headers["Content-Length"] = str(100 * len(chunk))
    body = iter([chunk] * 100)
    connection.request("POST", EVENTS, body, headers, encode_chunked=not announces)
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["detail"] == "the body has more than 100,000 bytes"
    connection.close()
    assert served.metrics()["process_resident_memory_bytes"] < 300_000_000


def test_what_is_no_http(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_refusals_are_counted_by_reason(tmp_path: Path) -> None:
    with Served(tmp_path / "s") as served:
        served.post(b"{")
        served.post(event(1, run=3))
        served.post([event(1), 3, 4], BATCH)
        served.ask("GET", "/nothing")
        metrics = served.metrics()
        code, out, err = served.stop()
    for reason, count in (("json", 1), ("schema", 3), ("path", 1)):
        assert metrics[f'dbt_ripple_collect_rejected_total{{reason="{reason}"}}'] == count
    assert metrics["dbt_ripple_collect_request_seconds_count"] == 3
    assert metrics["dbt_ripple_collect_commit_seconds_count"] == 1
    assert (code, err) == (143, "")
    assert out == "stored 1 event; 0 were there before, 5 refused\n"


def test_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-ä\n", encoding="utf-8")
    arguments = ("--token-file", str(tmp_path / "token"))
    with Served(
        tmp_path / "s", *arguments, environment={"DBT_RIPPLE_COLLECT_TOKEN": "x"}
    ) as served:
        token = "s3cret-ä".encode().decode("latin-1")
        for shown in (
            "",
            "Bearer",
            "Bearer x",
            "Basic s3cret",
            f"Basic {token}",
            f"Bearer {token}x",
        ):
            answer = served.post(event(1), Authorization=shown)
            assert problem(answer)["status"] == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert b"s3cret" not in answer.body
        assert served.ask("GET", "/metrics").status == 401
        assert served.ask("GET", "/health").status == 200
        assert stored(served.store) == []
        assert served.post(event(1), Authorization=f"Bearer {token}").status == 201
        _, out, err = served.stop()
    assert "s3cret" not in out + err + served.first_line
    with Served(tmp_path / "s", environment={"DBT_RIPPLE_COLLECT_TOKEN": "x"}) as served:
        assert served.post(event(2)).status == 401
        assert served.post(event(2), Authorization="bearer x").status == 201


def test_the_rate(tmp_path: Path) -> None:
    with Served(tmp_path / "s", "--rate", "2") as served:
        answers = [served.post(event(number)) for number in range(40)]
        refused = [answer for answer in answers if answer.status != 201]
        assert {answer.status for answer in refused} == {429}
        assert int(refused[0].headers["retry-after"]) >= 1
        assert problem(refused[0])["detail"] == "more than 2 events a second"
        assert len(stored(served.store)) == 40 - len(refused)


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    limit = guard.RateLimit(2, 10, lambda: now[0])
    limit.count("a", 20)
    assert limit.wait("a") == 0.5
    assert limit.wait("b") == 0
    limit.count("a", 9)
    assert limit.wait("a") == 5
    now[0] = 5
    assert limit.wait("a") == 0
    now[0] = 1000
    limit.count("a", 20)
    assert limit.wait("a") == 0.5
    for number in range(20_000):
        limit.count(str(number), 1)
    assert len(limit._left) <= 10_000


@pytest.mark.parametrize("sent", [b"", b"POST /api/v1/lineage HTTP/1.1\r\nHost: localhost\r\n"])
def test_headers_that_do_not_come(tmp_path: Path, sent: bytes) -> None:
    with (
        Served(tmp_path / "s", "--timeout", "0.2") as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection,
    ):
        connection.sendall(sent)
        assert connection.recv(1000) == b""
        assert served.post(event(1)).status == 201


def test_a_body_that_does_not_come(tmp_path: Path) -> None:
    head = b"POST /api/v1/lineage HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    with (
        Served(tmp_path / "s", "--timeout", "0.2", "--max-requests", "1") as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection,
    ):
        connection.sendall(head)
        answer = b""
        while part := connection.recv(1000):
            answer += part
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert served.post(event(1)).status == 201


def test_a_body_that_is_on_its_way_keeps_nobody_waiting(tmp_path: Path) -> None:
    head = b"POST /api/v1/lineage HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    with (
        Served(tmp_path / "s", "--timeout", "20", "--max-requests", "1") as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection,
    ):
        connection.sendall(head)
        began = time.perf_counter()
        assert served.post(event(1)).status == 201
        assert time.perf_counter() - began < 10


def test_requests_wait_for_their_turn(tmp_path: Path) -> None:
    """The disk takes a second, and one request is worked on at a time: others are told to try again."""
    slow = """
import time, dbt_ripple.collector.event_store as store
sync = store._sync
def slow(file):
    time.sleep(1)
    sync(file)
store._sync = slow
"""
    arguments = ("--timeout", "0.5", "--max-requests", "1")
    with Served(tmp_path / "s", *arguments, code=slow) as served:
        answers: list[Answer] = []
        threads = [
            threading.Thread(target=lambda n=n: answers.append(served.post(event(n))))
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status for answer in answers) == [201, 503, 503]
        assert all(a.headers["retry-after"] for a in answers if a.status == 503)


def test_who_hangs_up(tmp_path: Path) -> None:
    with Served(tmp_path / "s") as served:
        for number in range(20):
            with socket.create_connection(("127.0.0.1", served.port)) as connection:
                body = json.dumps(event(number)).encode()
                head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body[: len(body) // (number % 2 + 1)])
        assert served.post(event(100)).status == 201
        assert event(100) in stored(served.store)
        code, _, err = served.stop()
        assert (code, err) == (143, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_has_begun_is_answered_before_it_ends(tmp_path: Path, number: int, code: int) -> None:
    """The disk takes half a second, and the signal comes in that time."""
    # A shell that runs the tests in the background has Ctrl-C ignored by all that it starts.
    slow = """
import signal, time, dbt_ripple.collector.event_store as store
signal.signal(signal.SIGINT, signal.default_int_handler)
sync = store._sync
def slow(file):
    time.sleep(0.5)
    sync(file)
store._sync = slow
"""
    with Served(tmp_path / "s", code=slow) as served:
        answers: list[Answer] = []
        threads = [
            threading.Thread(target=lambda n=n: answers.append(served.post(event(n))))
            for n in range(5)
        ]
        for thread in threads:
            thread.start()
        while not (tmp_path / "s" / "events-00000001.ndjson").exists():
            time.sleep(0.01)
        ended = served.stop(number)
        for thread in threads:
            thread.join()
        assert ended[0] == code
        assert ended[2].strip() == ""
        accepted = [answer for answer in answers if answer.status == 201]
        assert accepted
        assert len(stored(served.store)) >= len(accepted)


def test_the_port_is_taken(tmp_path: Path, served: Served) -> None:
    with pytest.raises(AssertionError, match="choose another --host or --port"):
        Served(tmp_path / "s", "--port", str(served.port))


def test_another_collector_has_the_store(served: Served) -> None:
    with pytest.raises(AssertionError, match="another dbt-ripple collect writes to this store"):
        Served(served.store)


def test_not_everybody_may_post(tmp_path: Path) -> None:
    """Where others than this machine can reach it, they have to know a token."""
    address = ("--host", "0.0.0.0")
    with pytest.raises(AssertionError, match="because no token is asked for; give --token-file"):
        Served(tmp_path / "s", *address, environment={"TERM": "dumb"})
    assert not (tmp_path / "s").exists()
    environment = {"TERM": "dumb", "DBT_RIPPLE_COLLECT_TOKEN": "t" * 20}
    with pytest.raises(AssertionError) as listened:  # `Served` knows 127.0.0.1 alone
        Served(tmp_path / "s", *address, environment=environment)
    assert "no token" not in str(listened.value)
    assert (tmp_path / "s").exists()
