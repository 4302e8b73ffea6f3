"""Events in files: one a line (NDJSON), a JSON array, or a single event over several lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import IO, Final

from dbt_ripple.collector.event_store import EventStore, Stored
from dbt_ripple.collector.intake import (
    Limits,
    RefusedError,
    line_of,
    not_given_in,
    parsed,
    read_event,
)

_BOM_BYTES: Final = (b"\xef", b"\xbb", b"\xbf")
"""The mark that some editors put first."""

_COMMIT_EVENTS: Final = 1000
_COMMIT_BYTES: Final = 8_000_000
_ARRAY_BYTES: Final = 1_000_000_000
"""Of an array, which is in memory as a whole. Files of lines have no limit."""


@dataclass(slots=True)
class Collected:
    """What became of a file's events; of those that are stored, how many do not name their producer."""

    new: int = 0
    duplicates: int = 0
    refused: int = 0
    not_given: int = 0

    def add(self, stored: Stored) -> None:
        """Count what was stored."""
        self.new += stored.new
        self.duplicates += stored.duplicates


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that was not stored.

    Attributes:
        where: its line (``12``), or its place in an array (``[3]``).
        why: in words.
    """

    where: str
    why: str


def collect(
    file: IO[bytes], store: EventStore, limits: Limits, collected: Collected
) -> Iterator[Refused]:
    """Store the events of a file, and yield those that are refused.

    Each event is judged alone. Events are committed some at a time; those of a file that could not be read to
    its end, and those that `collected` has counted when a `StoreError` is raised, are in the store.

    Raises:
        OSError: the file cannot be read.
        StoreError: an event cannot be written.
    """
    batch: list[bytes] = []
    size = 0
    for where, event in _events(file, limits):
        if isinstance(event, RefusedError):
            collected.refused += 1
            yield Refused(where, str(event))
            continue
        batch.append(event)
        collected.not_given += not_given_in([event])
        size += len(event)
        if len(batch) >= _COMMIT_EVENTS or size >= _COMMIT_BYTES:
            collected.add(*store.append([batch]))
            batch, size = [], 0
    if batch:
        collected.add(*store.append([batch]))


def _events(file: IO[bytes], limits: Limits) -> Iterator[tuple[str, bytes | RefusedError]]:
    before = 1
    while (head := file.read(1)).isspace() or head in _BOM_BYTES:
        before += head == b"\n"
    if not head:
        return
    if head == b"[":
        yield from _of_array(head + b"".join(_rest(file)), limits)
        return
    lines = _lines(file, head, limits.body_bytes)
    first = next(lines)
    if first.strip() == b"{":  # an event that goes over several lines
        text = first + b"".join(_rest(file))
        yield str(before), _judged(text, limits)
        return
    for number, line in enumerate(chain([first], lines), before):
        if line.strip():
            yield str(number), _judged(line, limits)


def _of_array(text: bytes, limits: Limits) -> Iterator[tuple[str, bytes | RefusedError]]:
    try:
        events = parsed(text.strip(), replace(limits, body_bytes=_ARRAY_BYTES))
    except RefusedError as error:
        yield "1", error
        return
    for number, event in enumerate(events):
        try:
            yield f"[{number}]", line_of(event, limits)
        except RefusedError as error:
            yield f"[{number}]", error


def _judged(text: bytes, limits: Limits) -> bytes | RefusedError:
    try:
        return read_event(text.strip(), limits)
    except RefusedError as error:
        return error


def _lines(file: IO[bytes], head: bytes, most: int) -> Iterator[bytes]:
    """Lines, the first with what was read of it; of one too long, as much as shows that it is."""
    enough = most + len(b"\r\n") + 1
    while line := head + file.readline(enough):
        head = b""
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(1_000_000)):
            pass
        yield line


def _rest(file: IO[bytes]) -> Iterable[bytes]:
    left = _ARRAY_BYTES
    while left > 0 and (chunk := file.read(min(left, 1_000_000))):
        left -= len(chunk)
        yield chunk
