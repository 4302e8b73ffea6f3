"""Nothing that was accepted is lost: the process is killed, the disk is full, or slow."""

from __future__ import annotations

import http.client
import json
import random
import resource
import shutil
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from served_collector import BATCH, EVENTS, Served, asked, event, stored

MANY = 10_000
KILLS = 20
HEADERS = {"Content-Type": "application/json"}


class Sender:
    """Clients that post events, each until it is accepted, whichever collector is there.

    Attributes:
        accepted: the numbers of the events that were answered with yes.
    """

    def __init__(self, port: int, total: int, batches: int) -> None:
        self.accepted: list[int] = []
        self.statuses: Counter[int] = Counter()
        self.port = port
        self._left = iter([range(n, min(n + 10, total)) for n in range(0, total, 10)])
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._post, args=(number < batches,), daemon=True)
            for number in range(4)
        ]
        for thread in self._threads:
            thread.start()

    def is_at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=300)
            assert not thread.is_alive()

    def _post(self, in_batches: bool) -> None:
        connection: http.client.HTTPConnection | None = None
        while True:
            with self._lock:
                numbers = next(self._left, None)
            if numbers is None:
                return
            wanted = [numbers] if in_batches else [[number] for number in numbers]
            for each in wanted:
                done = False
                while not done:
                    try:
                        if connection is None:
                            connection = http.client.HTTPConnection("127.0.0.1", self.port)
                        events = [event(number) for number in each]
                        body = json.dumps(events if in_batches else events[0]).encode()
                        path = BATCH if in_batches else EVENTS
                        answer = asked(connection, "POST", path, body, HEADERS)
                    except (OSError, http.client.HTTPException):
                        connection = None
                        time.sleep(0.02)
                        continue
                    with self._lock:
                        self.statuses[answer.status] += 1
                        if done := answer.status in (200, 201):
                            self.accepted += each


@pytest.mark.slow
def test_killed_at_twenty_moments(tmp_path: Path) -> None:
    """kill -9 in the midst of 10,000 events: what was accepted until then is in the store."""
    store = tmp_path / "s"
    chance = random.Random(17)
    moments = sorted(chance.sample(range(1, MANY - 200), KILLS))
    served = Served(store, "--rate", "0")
    sender: Sender | None = None
    for moment in moments:
        if sender is None:
            sender = Sender(served.port, MANY, batches=1)
        while len(sender.accepted) < moment:
            assert sender.is_at_work()
            time.sleep(0.001)
        time.sleep(chance.random() / 100)
        served.kill()
        accepted = set(sender.accepted)
        lines = b"".join(path.read_bytes() for path in sorted(store.glob("events-*")))
        whole = [json.loads(line) for line in lines.split(b"\n")[:-1]]
        there = {e["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] for e in whole}
        assert accepted <= there
        # The port stays: producers know the collector by it.
        served = Served(store, "--rate", "0", "--port", str(sender.port))
    assert sender is not None
    sender.join()
    assert served.stop()[0] == 143
    assert sorted(sender.accepted) == [*range(MANY)]
    assert sender.statuses.keys() == {200, 201}
    numbers = [e["run"]["runId"] for e in stored(store)]
    assert sorted(numbers) == [event(number)["run"]["runId"] for number in range(MANY)]


def test_disorder_and_duplicates(tmp_path: Path) -> None:
    """Whatever the order, and however often: the store has each event once."""
    numbers = [*range(50)] * 3
    random.Random(5).shuffle(numbers)
    with Served(tmp_path / "s") as served:
        connection = served.connection()
        for number in numbers:
            body = json.dumps(event(number)).encode()
            assert asked(connection, "POST", EVENTS, body, HEADERS).status == 201
        metrics = served.metrics()
    assert metrics["dbt_ripple_collect_accepted_total"] == 50
    assert metrics["dbt_ripple_collect_duplicates_total"] == 100
    there = stored(tmp_path / "s")
    assert len(there) == 50
    assert all(event(number) in there for number in range(50))


def fill(served: Served) -> list[int]:
    """Post until no room is left."""
    accepted = []
    for number in range(MANY):
        answer = served.post(event(number))
        if answer.status == 507:
            assert "no room is left for events" in answer.json()["detail"]
            assert answer.headers["retry-after"]
            return accepted
        assert answer.status == 201
        accepted.append(number)
    raise AssertionError("it was never full")


def test_a_full_disk(tmp_path: Path) -> None:
    """A file system of its own, which ends with the process: nobody else sees it."""
    (tmp_path / "disk").mkdir()
    before = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"',
    ]
    before.append(str(tmp_path / "disk"))
    if not shutil.which("unshare") or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    store = tmp_path / "disk" / "store"
    with Served(store, before=before) as served:
        seen = Path(f"/proc/{served.process.pid}/root{store}")
        assert served.post(event(MANY)).status == 201
        filler = seen.parent / "filler"
        filler.write_bytes(b"x" * 100_000)
        accepted = fill(served)
        assert accepted
        assert stored(seen) == [event(MANY), *(event(number) for number in accepted)]
        # Nothing of a batch that does not fit is there, either.
        assert served.post([event(MANY + n) for n in range(1, 50)], BATCH).status == 507
        assert len(stored(seen)) == len(accepted) + 1
        filler.unlink()
        assert served.post(event(accepted[-1] + 1)).status == 201
        assert served.post([event(MANY + n) for n in range(1, 5)], BATCH).status == 200
        assert len(stored(seen)) == len(accepted) + 6
        metrics = served.metrics()
        assert metrics['dbt_ripple_collect_rejected_total{reason="full"}'] == 2
        assert len([*seen.glob("events-*")]) == 1


def test_a_file_may_not_grow(tmp_path: Path) -> None:
    """The same by a limit of the system, which needs no rights: a write ends in the midst of a line."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    with Served(tmp_path / "s", preexec=limit) as served:
        accepted = fill(served)
        assert accepted
        assert stored(served.store) == [event(number) for number in accepted]
        assert served.stop()[0] == 143
    with Served(tmp_path / "s") as served:
        assert served.post(event(accepted[-1] + 1)).status == 201
    assert len(stored(tmp_path / "s")) == len(accepted) + 1


def test_a_slow_disk_only_slows(tmp_path: Path) -> None:
    """Every fsync takes a third of a second: who posts meanwhile shares the next one."""
    slow = """
import time, dbt_ripple.collector.event_store as store
sync = store._sync
def slow(file):
    time.sleep(0.33)
    sync(file)
store._sync = slow
"""
    with Served(tmp_path / "s", code=slow) as served:
        sender = Sender(served.port, 400, batches=2)
        sender.join()
        assert sender.statuses.keys() <= {200, 201}
        metrics = served.metrics()
    assert len(stored(tmp_path / "s")) == 400
    assert metrics["dbt_ripple_collect_commit_seconds_count"] < sum(sender.statuses.values())


def test_a_disk_that_fails(tmp_path: Path) -> None:
    """503, and nothing is there; when the disk is well again, so is the collector."""
    broken = """
import errno, os, pathlib, dbt_ripple.collector.event_store as store
sync = store._sync
def broken(file):
    if pathlib.Path(os.environ["BROKEN"]).exists():
        raise OSError(errno.EIO, "Input/output error")
    sync(file)
store._sync = broken
"""
    flag = tmp_path / "broken"
    with Served(tmp_path / "s", code=broken, environment={"BROKEN": str(flag)}) as served:
        assert served.post(event(1)).status == 201
        flag.touch()
        for number in range(2, 5):
            answer = served.post(event(number))
            assert answer.status == 503
            assert "Input/output error" in answer.json()["detail"]
        flag.unlink()
        assert served.post(event(3)).status == 201
    assert stored(tmp_path / "s") == [event(1), event(3)]


def test_a_torn_line_is_reported_at_the_next_start(tmp_path: Path) -> None:
    with Served(tmp_path / "s") as served:
        served.post(event(1))
        served.post(event(2))
        served.kill()
    (segment,) = (tmp_path / "s").glob("events-*")
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 5)
    with Served(tmp_path / "s") as served:
        assert stored(tmp_path / "s") == [event(1)]
        assert served.post(event(2)).status == 201
        _, _, err = served.stop()
    assert "events-00000001.ndjson: cut off " in err
    assert err.count("\n") == 1
    assert stored(tmp_path / "s") == [event(1), event(2)]
