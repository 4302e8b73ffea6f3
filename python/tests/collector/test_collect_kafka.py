"""`dbt-ripple collect --from-kafka`: nothing is passed over, whatever happens to the process.

In `make matrix` on a real broker; one test in each run on the one that librdkafka brings for tests, which
keeps a group waiting for minutes after its first member.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from real_programs.environments import Unavailable
from real_programs.programs import Kafka
from served_collector import PACKAGE, event, stored

from dbt_ripple.collector.kafka import DEFAULTS, settings_of
from dbt_ripple.errors import RippleError

TOPIC = "lineage"
PARTITIONS = 3
REAL = pytest.mark.matrix


class Broker:
    """Something that speaks Kafka, and a producer of it."""

    def __init__(self, producer: Producer, brokers: str) -> None:
        self.producer = producer
        self.brokers = brokers
        self._topics = 0

    def topic(self) -> str:
        """A topic of its own for each test, which exists."""
        self._topics += 1
        name = f"{TOPIC}-{self._topics}"
        admin = AdminClient({"bootstrap.servers": self.brokers})
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
            made.result(30)
        return name

    def send(self, topic: str, *values: bytes | None) -> None:
        for number, value in enumerate(values):
            self.producer.produce(topic, value, partition=number % PARTITIONS)
            if number % 1000 == 999:
                self.producer.flush()
        assert self.producer.flush(60) == 0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    except Unavailable as reason:
        pytest.skip(str(reason))
    with kafka:
        yield Broker(Producer({"bootstrap.servers": kafka.brokers}), kafka.brokers)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Those that a test has started; none of them is left."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def started(
    broker: Broker,
    topic: str,
    store: Path,
    *arguments: str,
    group: str = DEFAULTS["group.id"],
    preexec: Callable[[], None] | None = None,
) -> subprocess.Popen[str]:
    # A session that ends soon, so that the next one need not wait for a dead one's partitions.
    settings = store.with_suffix(".settings")
    settings.write_text(f"# of the tests\nsession.timeout.ms = 6000\n\ngroup.id={group}\n")
    program = "from dbt_ripple.cli import main; main()"
    return subprocess.Popen(
        [
            *(sys.executable, "-c", program, "collect", "--from-kafka", topic),
            *("--brokers", broker.brokers, "--store", str(store), "--kafka-config"),
            *(str(settings), *arguments),
        ],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=preexec,
    )


def to_the_end(
    broker: Broker, topic: str, store: Path, *more: str, **further: Any
) -> tuple[int, str, str]:
    process = started(broker, topic, store, "--until-end", *more, **further)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out.splitlines()[-1] if out else "", err


def of(number: int) -> bytes:
    return json.dumps(event(number)).encode()


def numbers(store: Path) -> list[int]:
    return sorted(
        e["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] for e in stored(store)
    )


@REAL
def test_a_topic_is_read_to_its_end_and_only_once(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, *map(of, range(500)))
    said = f"stored 500 events in {tmp_path / 's'}; 0 were there before, 0 refused"
    assert to_the_end(broker, topic, tmp_path / "s") == (0, said, "")
    assert numbers(tmp_path / "s") == [*range(500)]
    broker.send(topic, of(500), of(3))
    # Those of before are not read again: the group knows how far it has come.
    said = f"stored 1 event in {tmp_path / 's'}; 1 was there before, 0 refused"
    assert to_the_end(broker, topic, tmp_path / "s") == (0, said, "")
    # Another group begins at the beginning.
    again = to_the_end(broker, topic, tmp_path / "t", group="another")
    assert (again[0], numbers(tmp_path / "t")) == (0, [*range(501)])


@REAL
def test_what_is_refused_is_named_and_the_rest_is_stored(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    bad = [b"nope", None, b"[]", b'{"run": 3}', b"\xff" * 5000, of(7)]
    broker.send(topic, *bad)
    code, out, err = to_the_end(broker, topic, tmp_path / "s", "--max-body", "2000")
    assert (code, out) == (
        1,
        f"stored 1 event in {tmp_path / 's'}; 0 were there before, 5 refused",
    )
    found = sorted(line.removeprefix("dbt-ripple: ") for line in err.splitlines())
    assert len(found) == 5, err
    assert found[0].startswith(f"{topic}[0]@0: no JSON")
    assert found[1].startswith(f"{topic}[0]@1: ")
    assert found[2] == f"{topic}[1]@0: a message without a value"
    assert found[3] == f"{topic}[1]@1: more than 2,000 bytes"
    assert "an array" in found[4]
    # They are not asked for again.
    assert to_the_end(broker, topic, tmp_path / "s")[0] == 0


@REAL
def test_killed_at_random_moments(
    broker: Broker, tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    """kill -9 while it reads: what is left is read by the next one, and nothing twice."""
    topic, store, total = broker.topic(), tmp_path / "s", 6000
    broker.send(topic, *map(of, range(total)))
    chance = random.Random(17)
    kills = []
    for _ in range(3):
        before = lines_in(store)
        process = started(broker, topic, store)
        processes.append(process)
        end = time.monotonic() + 60
        while lines_in(store) == before and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.002)
        time.sleep(chance.random() / 50)
        process.kill()
        process.communicate()
        kills.append(lines_in(store))
    code, _, err = to_the_end(broker, topic, store)
    assert code == 0, err
    assert numbers(store) == [*range(total)]
    assert kills[0] < total, "it was done before it was killed"


def lines_in(store: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in store.glob("events-*"))


@REAL
def test_no_room(broker: Broker, tmp_path: Path) -> None:
    """It ends, and has not said to Kafka that it has what it could not write."""
    topic = broker.topic()
    broker.send(topic, *map(of, range(600)))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000))

    process = started(broker, topic, tmp_path / "s", preexec=limit)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "events cannot be written (File too large), after " in err
    assert "Kafka keeps what is not stored" in err
    assert len(numbers(tmp_path / "s")) < 600
    assert to_the_end(broker, topic, tmp_path / "s")[0] == 0
    assert numbers(tmp_path / "s") == [*range(600)]


@REAL
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_it_waits_for_more_until_a_signal(
    broker: Broker,
    tmp_path: Path,
    processes: list[subprocess.Popen[str]],
    number: int,
    code: int,
) -> None:
    topic = broker.topic()
    broker.send(topic, of(1))
    process = started(broker, topic, tmp_path / "s", preexec=listens_to_ctrl_c)
    processes.append(process)
    assert process.stdout
    group = DEFAULTS["group.id"]
    said = process.stdout.readline()
    assert said == f"reading {topic} as group {group}, storing in {tmp_path / 's'}\n"
    for count in (1, 2):
        if count > 1:
            broker.send(topic, of(count))
        end = time.monotonic() + 60
        while lines_in(tmp_path / "s") < count:
            assert time.monotonic() < end
            time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (code, "")  # click ends the line of Ctrl-C
    assert out == f"stored 2 events in {tmp_path / 's'}; 0 were there before, 0 refused\n"


def listens_to_ctrl_c() -> None:
    """A shell that runs the tests in the background has Ctrl-C ignored by all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@REAL
def test_a_topic_that_is_not_there(broker: Broker, tmp_path: Path) -> None:
    code, out, err = to_the_end(broker, "nothing", tmp_path / "s")
    assert (code, out) == (2, "")
    assert err.startswith("dbt-ripple: topic nothing: it cannot be read (")
    assert err.count("\n") == 1


def test_a_topic_in_every_run(tmp_path: Path) -> None:
    """What comes is stored, what is no event is named: on librdkafka's own broker."""
    producer = Producer({"bootstrap.servers": "it makes its own", "test.mock.num.brokers": 1})
    (found,) = producer.list_topics(timeout=30).brokers.values()
    broker = Broker(producer, f"{found.host}:{found.port}")
    broker.send(TOPIC, *map(of, range(5)), b"nope", of(3))
    code, out, err = to_the_end(broker, TOPIC, tmp_path / "s")
    assert (code, out) == (1, f"stored 5 events in {tmp_path / 's'}; 1 was there before, 1 refused")
    assert err.startswith(f"dbt-ripple: {TOPIC}[2]@1: no JSON")
    assert numbers(tmp_path / "s") == [*range(5)]


def test_no_broker_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dbt_ripple.collector.kafka as kafka
    from dbt_ripple.collector.event_store import EventStore
    from dbt_ripple.collector.files import Collected
    from dbt_ripple.collector.intake import Limits

    monkeypatch.setattr(kafka, "_FIRST_ANSWER_SECONDS", 1.0)
    settings = settings_of(None, "127.0.0.1:9")
    with (
        EventStore(tmp_path / "s") as store,
        pytest.raises(RippleError, match=r"brokers 127.0.0.1:9: no broker answers \(.*[Cc]onnect"),
    ):
        kafka.consume(settings, TOPIC, store, Limits(), Collected(), lambda _: None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("group.id", "settings:1: group.id has no value"),
        ("\nenable.auto.commit=true", "settings:2: enable.auto.commit cannot be set"),
        ("group.id=a", "--from-kafka: no broker is named"),
        (None, "cannot be read"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "settings").write_text(text)
    with pytest.raises(RippleError) as error:
        settings_of(tmp_path / "settings", None)
    assert said in str(error.value)


def test_settings(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text(
        "# us\nbootstrap.servers = a:1\nsasl.password=x=y \ngroup.id=g\n"
    )
    found: dict[str, Any] = settings_of(tmp_path / "settings", None)
    assert found == {
        **DEFAULTS,
        "bootstrap.servers": "a:1",
        "sasl.password": "x=y",
        "group.id": "g",
    }
    assert settings_of(tmp_path / "settings", "b:2")["bootstrap.servers"] == "b:2"
