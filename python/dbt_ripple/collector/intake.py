"""Bytes from anybody, to events that may be stored.

Guarantees, whatever the bytes are: an answer in time that is linear in their number, no exception
but `RefusedError`, and of an accepted event one line of JSON that every parser reads the same:
UTF-8, keys sorted and not repeated, no white space, no newline. So equal events are equal lines.

Numbers are kept as Python has them: integers exactly, others as the nearest double.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal

import msgspec

from dbt_ripple.collector.event_schemas import (
    NOT_GIVEN,
    EventProblem,
    complete,
    most_parts,
    problems_of,
)

Reason = Literal["json", "schema", "depth", "size", "batch_size", "parts", "check"]
"""Why an event is refused; the values of the metric's label ``reason`` are these and those of `serve`."""

# Unclosed strings end with the text, so that no part of it is looked at twice.
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_STEPS: Final = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))
_encoder: Final = msgspec.json.Encoder(order="sorted")


class RefusedError(Exception):
    """Something that is no event, or too much of it.

    Attributes:
        reason: for counting.
        detail: what is wrong, as a sentence without a full stop.
        problems: where, if it is known.
    """

    def __init__(self, reason: Reason, detail: str, problems: Sequence[EventProblem] = ()) -> None:
        self.reason: Reason = reason
        self.detail = detail
        self.problems = problems
        super().__init__(detail)

    def __str__(self) -> str:
        return "; ".join(f"{p.pointer or 'the event'}: {p.detail}" for p in self.problems) or (
            self.detail
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What is taken at most.

    Attributes:
        body_bytes: of a request, before and after decompression; of a line of a file.
        depth: arrays and objects inside each other.
        batch_events: events of a batch.
        datasets: of an event.
        facets: of an event in all.
        facets_of_one: of a run, a job or a dataset.
    """

    body_bytes: int = 5_000_000
    depth: int = 100
    batch_events: int = 1000
    datasets: int = 10_000
    facets: int = 20_000
    facets_of_one: int = 500


@dataclass(frozen=True, slots=True)
class Taken:
    """The events of a batch.

    Attributes:
        lines: those that may be stored.
        refused: of the others the position in the batch, and why.
    """

    lines: list[bytes]
    refused: list[tuple[int, RefusedError]]


def parsed(body: bytes, limits: Limits) -> Any:
    """What a text in JSON says.

    Raises:
        RefusedError: it is too large, too deep, or no JSON in UTF-8.
    """
    if len(body) > limits.body_bytes:
        raise RefusedError("size", f"more than {limits.body_bytes:,} bytes")
    if _is_deeper(body, limits.depth):
        raise RefusedError("depth", f"nested more than {limits.depth} deep")
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError as error:
        raise RefusedError("json", f"no UTF-8: {error.reason}") from None
    except msgspec.ValidationError as error:
        raise RefusedError("json", f"no JSON that can be kept: {str(error).lower()}") from None
    except msgspec.DecodeError as error:
        raise RefusedError("json", f"no JSON: {error}") from None
    except RecursionError:
        raise RefusedError("depth", "nested too deep") from None


def not_given_in(lines: Iterable[bytes]) -> int:
    """How many of these events do not name their producer, or that of a facet."""
    mark = f'"{NOT_GIVEN}"'.encode()
    return sum(mark in line for line in lines)


NOT_GIVEN_WARNING: Final = (
    "did not name the producer or schema of the event or of a facet (producer, schemaURL, _producer, "
    "_schemaURL), which OpenLineage asks for; kept all the same"
)


def line_of(event: object, limits: Limits) -> bytes:
    """A parsed event as the line that is stored, without its newline.

    Raises:
        RefusedError: it is not valid, or has more parts than are taken.
    """
    datasets, of_one, facets = most_parts(event)
    for number, most, what in (
        (datasets, limits.datasets, "datasets"),
        (of_one, limits.facets_of_one, "facets of one thing"),
        (facets, limits.facets, "facets"),
    ):
        if number > most:
            raise RefusedError("parts", f"more than {most:,} {what}")
    complete(event)
    problems = problems_of(event)
    if problems:
        raise RefusedError("schema", "the event is not valid", problems)
    return _encoder.encode(event)


def read_event(body: bytes, limits: Limits) -> bytes:
    """The line of an event in JSON.

    Raises:
        RefusedError: it is none, or not valid.
    """
    event = parsed(body, limits)
    if isinstance(event, list):
        problem = EventProblem("", "an array; the batch path takes arrays")
        raise RefusedError("schema", "the body is not one event", [problem])
    return line_of(event, limits)


def read_batch(body: bytes, limits: Limits) -> Taken:
    """The events of a JSON array, each judged alone.

    Raises:
        RefusedError: it is no array, or too long a one.
    """
    events = parsed(body, limits)
    if not isinstance(events, list):
        problem = EventProblem("", "a batch is an array of events")
        raise RefusedError("schema", "the body is no array", [problem])
    if len(events) > limits.batch_events:
        raise RefusedError("batch_size", f"more than {limits.batch_events:,} events")
    return take(events, limits)


def take(events: Sequence[object], limits: Limits) -> Taken:
    """Judge events one by one."""
    lines, refused = [], []
    for number, event in enumerate(events):
        try:
            lines.append(line_of(event, limits))
        except RefusedError as error:
            refused.append((number, error))
    return Taken(lines, refused)


def _is_deeper(body: bytes, most: int) -> bool:
    """Whether brackets outside strings are nested deeper; asked before anything is parsed."""
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    left = _STRINGS.sub(b"", body).translate(None, _OTHERS)
    return max(accumulate(map(_STEPS.__getitem__, left)), default=0) > most
