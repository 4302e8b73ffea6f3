"""What the whole process shares and this package sets: garbage collector, recursion limit, SIGTERM.

Nothing is set by importing the package. Its functions set each only for as long as they run; the
command line, whose process it is, relaxes the collector to its end.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from types import FrameType
from typing import Final

_RELAXED: Final = (10_000, 100, 1000)
"""Thresholds of the garbage collector. Parse trees, which are cyclic, are swept while they are still
in the processor's cache, and what is kept is hardly ever looked at again."""

_DEEP: Final = 20_000
"""Recursion that suffices for every query that is followed (`flow.lowering.walk.MAX_NESTING`)."""


def relax_collector() -> None:
    """Let the collector run more rarely, to the end of the process."""
    gc.set_threshold(*_RELAXED)


@contextmanager
def collector_relaxed() -> Iterator[None]:
    """The same for a while: millions of small tuples and few cycles would double the time.

    Afterwards all there is counts as old. The thresholds put back would else have it walked at once.
    """
    thresholds = gc.get_threshold()
    if thresholds[0] >= _RELAXED[0]:
        yield
        return
    relax_collector()
    try:
        yield
    finally:
        count_as_old()
        gc.set_threshold(*thresholds)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector while much is decoded: it would walk every new object again and again.

    Afterwards all there is counts as old, so that it is not walked at once either.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            count_as_old()
            gc.enable()


def count_as_old() -> None:
    """Move all there is into the oldest generation, without walking any of it."""
    gc.freeze()
    gc.unfreeze()


def collect_new() -> None:
    """Free the cycles among what was made since it was last counted as old; that alone is walked."""
    gc.collect(0)


def keep_all() -> None:
    """Tell the collector that all there is lives as long as the process."""
    gc.freeze()


class deep_recursion(ContextDecorator):  # noqa: N801
    """Let functions call themselves as deeply as the deepest query that is followed asks.

    A class, and no generator: it is entered for every query.
    """

    def __init__(self) -> None:
        self.limits: list[int] = []

    def __enter__(self) -> None:
        limit = sys.getrecursionlimit()
        self.limits.append(limit)
        if limit < _DEEP:
            sys.setrecursionlimit(_DEEP)

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self.limits.pop())


@contextmanager
def interrupted_by_term() -> Iterator[None]:
    """Let SIGTERM, by which CI cancels a job, end the process as Ctrl-C does: cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
