"""Events out of a Kafka topic, into a store.

Guarantee: an offset is committed when its event, and all before it in its partition, are in the store
(`event_store`) or were refused. So a consumer that dies in between reads some events again, which the
store knows; it never passes one over.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.collector.event_store import EventStore
from dbt_ripple.collector.files import Collected, Refused
from dbt_ripple.collector.intake import Limits, RefusedError, not_given_in, read_event
from dbt_ripple.errors import RippleError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

DEFAULTS: Final = {"group.id": "dbt-ripple-collect", "auto.offset.reset": "earliest"}
"""What holds where the configuration says nothing else."""

_OURS: Final = ("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof")
_MESSAGES: Final = 200
_POLL_SECONDS: Final = 0.5
_FIRST_ANSWER_SECONDS: Final = 10.0


def settings_of(file: Path | None, brokers: str | None) -> dict[str, Any]:
    """A consumer's configuration.

    Args:
        file: lines of ``name=value``, as librdkafka calls them; ``#`` begins a comment line.
        brokers: ``host:port``, parted by commas; counts more than the file's.

    Raises:
        RippleError: the file is wrong, or names no broker.
    """
    settings: dict[str, Any] = dict(DEFAULTS)
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise RippleError("cannot be read", str(file)) from error
        for number, line in enumerate(lines, 1):
            name, sign, value = (part.strip() for part in line.partition("="))
            if not name or name.startswith("#"):
                continue
            if not sign:
                raise RippleError(f"{name} has no value", f"{file}:{number}", "write name=value")
            if name in _OURS:
                raise RippleError(
                    f"{name} cannot be set",
                    f"{file}:{number}",
                    "offsets are committed when their events are on disk",
                )
            settings[name] = value
    if brokers:
        settings["bootstrap.servers"] = brokers
    if not settings.get("bootstrap.servers"):
        raise RippleError("no broker is named", "--from-kafka", "give --brokers HOST:PORT")
    return settings


def consume(
    settings: Mapping[str, Any],
    topic: str,
    store: EventStore,
    limits: Limits,
    collected: Collected,
    on_refused: Callable[[Refused], None],
    *,
    until_end: bool = False,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Store a topic's events, until SIGTERM or SIGINT, which end it when the events at hand are stored.

    Args:
        settings: of the consumer, as `settings_of` gives them.
        topic: its name.
        store: nobody else may append to it.
        limits: of events.
        collected: what became of the events is counted in it.
        on_refused: is told of each event that is not stored, with topic, partition and offset.
        until_end: stop when the partitions that are ours have been read to their ends.
        on_ready: is called when a broker has answered.

    Raises:
        RippleError: no broker answers, or there is no such topic.
        StoreError: events cannot be written; their offsets are not committed.
    """
    with ExitStack() as stack:
        consumer = stack.enter_context(_consumer(settings, topic, until_end))
        partitions = _Partitions()
        on_ready()
        consumer.subscribe(
            [topic],
            on_assign=lambda _, partitions_given: partitions.assigned(partitions_given),
            on_revoke=lambda _, gone: partitions.revoked(gone),
            on_lost=lambda _, gone: partitions.revoked(gone),
        )
        signals = stack.enter_context(_signals())
        while not (until_end and partitions.are_read):
            messages = consumer.consume(_MESSAGES, _POLL_SECONDS)
            lines: list[bytes] = []
            refused: list[Refused] = []
            last: dict[int, int] = {}
            for message in _events_of(messages, partitions, topic):
                place = f"{topic}[{message.partition()}]@{message.offset()}"
                try:
                    lines.append(_line(message, limits))
                except RefusedError as error:
                    refused.append(Refused(place, str(error)))
                last[_not_none(message.partition())] = _not_none(message.offset())
            if lines:
                collected.add(*store.append([lines]))
                collected.not_given += not_given_in(lines)
            for each in refused:
                collected.refused += 1
                on_refused(each)
            if last:
                _commit(consumer, topic, last)
            if signals:
                break


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Signals that came; they are raised at the end, as `dbt-ripple` has them."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


class _Partitions:
    """Which partitions are ours, and which of them have been read to their ends."""

    def __init__(self) -> None:
        self._mine: set[int] | None = None
        self._read: set[int] = set()

    @property
    def are_read(self) -> bool:
        """Whether they are known, and nothing is left in them."""
        return self._mine is not None and self._mine <= self._read

    def assigned(self, partitions: list[Any]) -> None:
        self._mine = (self._mine or set()) | {each.partition for each in partitions}
        self._read -= {each.partition for each in partitions}

    def revoked(self, partitions: list[Any]) -> None:
        self._mine = (self._mine or set()) - {each.partition for each in partitions}

    def ended(self, partition: int) -> None:
        self._read.add(partition)

    def continued(self, partition: int) -> None:
        self._read.discard(partition)


def _events_of(messages: list[Message], partitions: _Partitions, topic: str) -> Iterator[Message]:
    """Those that are no news of the client itself."""
    from confluent_kafka import KafkaError

    for message in messages:
        error = message.error()
        if error is None:
            partitions.continued(_not_none(message.partition()))
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            partitions.ended(_not_none(message.partition()))
        elif (
            error.code()
            in (
                KafkaError.UNKNOWN_TOPIC_OR_PART,
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.GROUP_AUTHORIZATION_FAILED,
            )
            or error.fatal()
        ):
            raise RippleError(f"it cannot be read ({error.str()})", f"topic {topic}")
        # Of others the client says that it will try again.


def _line(message: Message, limits: Limits) -> bytes:
    value = message.value()
    if value is None:
        raise RefusedError("json", "a message without a value")
    return read_event(value if isinstance(value, bytes) else value.encode(), limits)


def _commit(consumer: Consumer, topic: str, last: Mapping[int, int]) -> None:
    """Tell the group how far it has come; that it could not be told makes events come again."""
    from confluent_kafka import KafkaException, TopicPartition

    offsets = [TopicPartition(topic, partition, offset + 1) for partition, offset in last.items()]
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        logging.getLogger(__name__).debug("offsets were not committed: %s", error)


@contextmanager
def _consumer(settings: Mapping[str, Any], topic: str, until_end: bool) -> Iterator[Consumer]:
    """A consumer whose broker has answered and has the topic; it leaves its group at the end."""
    from confluent_kafka import Consumer, KafkaException

    errors: list[str] = []
    # Its client writes to stderr what it does about a broker that is away.
    logger = logging.getLogger(f"{__name__}.client")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    required = {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": until_end,
        "error_cb": lambda error: errors.append(error.str()),
    }
    where = f"brokers {settings['bootstrap.servers']}"
    try:
        consumer = Consumer({**settings, **required}, logger=logger)
    except (KafkaException, TypeError, ValueError) as error:
        raise RippleError(f"the configuration is wrong ({_reason(error)})", where) from error
    try:
        try:
            metadata = consumer.list_topics(topic, _FIRST_ANSWER_SECONDS)
        except KafkaException as error:
            consumer.poll(0)  # it calls error_cb, which knows more
            why = errors[0] if errors else _reason(error)
            raise RippleError(f"no broker answers ({why})", where) from error
        problem = metadata.topics[topic].error
        if problem is not None:
            raise RippleError(f"it cannot be read ({problem.str()})", f"topic {topic}")
        yield consumer
    finally:
        consumer.close()


def _reason(error: Exception) -> str:
    """What Kafka's client says, without the wrapping of its errors."""
    first = error.args[0] if error.args else error
    return first.str() if hasattr(first, "str") else str(first)


def _not_none(number: int | None) -> int:
    """The partition or offset of a message that a broker has given."""
    assert number is not None
    return number
