"""Fuzzed events against a running collector: what it takes in memory, and how long others wait.

    python python/tests/collector/fuzz_collector.py [--events 5000] [--seed 1]

Bodies are made by OpenLineage's schemas (whole and broken events, one by one and in batches) and by
bytes (cut, changed, repeated, with other headers), and some of each kind are as large as they may be.
Eight producers send them, others begin a request and do not end it, and two more send plain events
all the while: how long these wait is measured.

It exits with 1 where the collector and its helpers had 300 MB or more in memory, where one in a
hundred of the plain events waited for a second or longer, where an accepted event is not in the
store, and where an answer is none of ours (5xx, or none at all).
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import random
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from event_strategies import broken_events, valid_events
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from served_collector import BATCH, EVENTS, Served, asked, event, stored

from dbt_ripple.collector.event_schemas import complete

MEGABYTES = 300
SECONDS = 1.0
JSON = {"Content-Type": "application/json"}
DATASET = {"namespace": "a", "name": "b"}
LARGE = (
    {"inputs": [1] * 2_400_000},
    {"inputs": [{}] * 1_600_000},
    {"inputs": [{"": 0}] * 700_000},
    {"run": [[]] * 1_600_000},
    {"producer": "x" * 4_500_000},
    {"job": {**DATASET, "facets": {f"f{i}": {} for i in range(20_000)}}},
    {"inputs": [{**DATASET, "facets": {f"f{i}": {} for i in range(400)}}] * 40},
    {"outputs": [{**DATASET, "facets": {"schema": {"fields": [1] * 2_000_000}}}]},
    {"outputs": [{**DATASET, "facets": {"x": {"fields": [{"a": [i]} for i in range(300_000)]}}}]},
    {"x": {str(i): i for i in range(300_000)}},
    {"inputs": [DATASET] * 9_000},
)
SLOW_CLIENTS = 80


class Request(NamedTuple):
    """What one producer sends.

    Attributes:
        events: the events in it that may be accepted, in order; None where it is not known.
    """

    path: str
    headers: dict[str, str]
    body: bytes
    events: list[Any] | None


class Measured(NamedTuple):
    """What was seen.

    Attributes:
        seconds: that the plain events waited, from the shortest on.
        lost: accepted events that are not in the store.
        wrong: answers that are none of ours.
    """

    statuses: Counter[int]
    seconds: list[float]
    megabytes: int
    accepted: int
    lost: int
    wrong: list[str]

    @property
    def late(self) -> float:
        """What one in a hundred of the plain events waited at least."""
        return self.seconds[int(len(self.seconds) * 0.99)]


def made(number: int, chance: int) -> list[Any]:
    """So many events by the schemas, every other one broken, from a seed."""
    events: list[Any] = []

    @seed(chance)
    @settings(
        max_examples=-(-number // 10),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(st.lists(st.one_of(valid_events, broken_events()), min_size=10, max_size=10))
    def keep(drawn: list[Any]) -> None:
        events.extend(json.loads(json.dumps(drawn)))

    keep()
    return [events[i % len(events)] for i in range(number)]


def requests(number: int, chance: int, large: int) -> Iterator[Request]:
    """So many requests; so many of a hundred are large."""
    dice = random.Random(chance)
    for place, each in enumerate(made(number, chance)):
        if dice.random() * 100 < large:
            each = {**event(place), **dice.choice(LARGE)}
        path = dice.choice([EVENTS, EVENTS, BATCH])
        several = [each, *(event(2**40 + place * 10 + i) for i in range(dice.randrange(3)))]
        events = several if path == BATCH else [each]
        body = json.dumps(events if path == BATCH else each).encode()
        if dice.random() < 0.4:
            yield Request(path, *_spoiled(body, dice), None)
        elif dice.random() < 0.3 or len(body) > 1_000_000:
            yield Request(
                path, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(body, 1), events
            )
        else:
            yield Request(path, JSON, body, events)


def _spoiled(body: bytes, dice: random.Random) -> tuple[dict[str, str], bytes]:
    """A body with other bytes, or other headers."""
    at = dice.randrange(len(body) + 1)
    to = min(len(body), at + dice.randrange(1, 50))
    how = dice.randrange(7)
    if how == 0:
        return JSON, body[:at]
    if how == 1:
        return JSON, body[:at] + dice.randbytes(dice.randrange(1, 9)) + body[to:]
    if how == 2:
        return JSON, body[:to] + body[at:]
    if how == 3:
        return JSON, body[:at] + dice.choice(
            [b"[", b"{", b'"', b"\\", b"\0", b"1e999"]
        ) * 300 + body[at:]
    if how == 4:
        packed = gzip.compress(body, 1)
        return {**JSON, "Content-Encoding": "gzip"}, packed[: dice.randrange(len(packed))] + body[
            :9
        ]
    if how == 5:
        return {**JSON, "Content-Encoding": "gzip"}, body
    headers = [
        ("Content-Type", "text/x"),
        ("Origin", "null"),
        ("Content-Encoding", "br"),
        ("X", "é"),
    ]
    return dict([dice.choice(headers)]), body


def memory(process: int) -> int:
    """Kilobytes that a process and those it started have in memory now."""
    total, left = 0, [process]
    while left:
        one = left.pop()
        with suppress(OSError):
            status = Path(f"/proc/{one}/status").read_text()
            found = re.search(r"VmRSS:\s+(\d+) kB", status)
            total += int(found[1]) if found else 0
            for task in Path(f"/proc/{one}/task").iterdir():
                left += map(int, (task / "children").read_text().split())
    return total


def measure(folder: Path, number: int, chance: int, large: int = 3) -> Measured:
    """Send them all, and look into the store."""
    left = iter([*requests(number, chance, large)])
    statuses: Counter[int] = Counter()
    seconds: list[float] = []
    accepted: list[Any] = []
    wrong: list[str] = []
    lock, over = threading.Lock(), threading.Event()
    most = 0
    with Served(folder, "--rate", "0") as served:

        def produce() -> None:
            while True:
                with lock:
                    request = next(left, None)
                if request is None:
                    return
                try:
                    answer = served.ask("POST", request.path, request.body, request.headers)
                except (OSError, http.client.HTTPException) as error:
                    # A body that is refused is not read to its end.
                    with lock:
                        statuses[0] += 1
                        if len(request.body) < 5_000_000:
                            wrong.append(f"{error!r} for {request.body[:80]!r}")
                    continue
                with lock:
                    statuses[answer.status] += 1
                    if answer.status >= 500 and answer.status != 503:
                        wrong.append(f"{answer} for {request.body[:80]!r}")
                    if answer.status in (200, 201) and request.events is not None:
                        failed = answer.json()["failed_events"] if answer.status == 200 else []
                        refused = {one["index"] for one in failed}
                        accepted.extend(e for i, e in enumerate(request.events) if i not in refused)

        def send_plain_ones(begin: int) -> None:
            connection = served.connection()
            while not over.wait(0.01):
                begin += 1
                one = event(begin)
                began = time.perf_counter()
                answer = asked(connection, "POST", EVENTS, json.dumps(one).encode(), JSON)
                with lock:
                    seconds.append(time.perf_counter() - began)
                    if answer.status == 201:
                        accepted.append(one)
                    else:
                        wrong.append(f"{answer} for a plain event")

        def watch() -> None:
            nonlocal most
            while not over.wait(0.02):
                most = max(most, memory(served.process.pid))

        head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{{"
        slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(SLOW_CLIENTS)]
        for connection in slow:
            connection.sendall(head.encode())
        producers = [threading.Thread(target=produce) for _ in range(8)]
        others = [threading.Thread(target=send_plain_ones, args=(2**50 * i,)) for i in (1, 2)]
        others.append(threading.Thread(target=watch))
        for thread in (*producers, *others):
            thread.start()
        for thread in producers:
            thread.join()
        over.set()
        for thread in others:
            thread.join()
        for connection in slow:
            connection.close()
        _, _, said = served.stop()
        if said:
            wrong.append(said[-1000:])
    there = {json.dumps(one, sort_keys=True) for one in stored(folder)}
    for one in accepted:
        complete(one)  # as it is stored
    lost = [one for one in accepted if json.dumps(one, sort_keys=True) not in there]
    return Measured(statuses, sorted(seconds), most // 1024, len(accepted), len(lost), wrong)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = measure(Path(folder) / "s", arguments.events, arguments.seed)
    print(
        f"answers: {dict(sorted(seen.statuses.items()))}; {seen.accepted:,} events accepted, {seen.lost} lost"
    )
    half = seen.seconds[len(seen.seconds) // 2]
    print(
        f"{len(seen.seconds):,} plain events waited {half * 1000:.0f} ms (half of them), {seen.late * 1000:.0f} ms"
        f" (99 of 100), {seen.seconds[-1] * 1000:.0f} ms (all); at most {seen.megabytes} MB in memory"
    )
    for one in seen.wrong[:10]:
        print("WRONG", one)
    return int(bool(seen.wrong or seen.lost) or seen.megabytes >= MEGABYTES or seen.late >= SECONDS)


if __name__ == "__main__":
    sys.exit(main())
