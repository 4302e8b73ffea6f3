"""What the whole process shares and this package sets: garbage collector, recursion limit, SIGTERM.

Nothing is set by importing the package. Its functions set each only for as long as they run; the
command line, whose process it is, relaxes the collector to its end.
"""

from __future__ import annotations

import functools
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar, cast

_Follow = TypeVar("_Follow", bound=Callable[..., Any])

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
    """Move all there is into the oldest generation, without walking any of it.

    Not where somebody else keeps objects apart for good: that would be undone.
    """
    if _kept_all or not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def collect_new() -> None:
    """Free the cycles among what was made since it was last counted as old; that alone is walked."""
    gc.collect(0)


def keep_all() -> None:
    """Tell the collector that all there is lives as long as the process."""
    _kept_all.append(True)
    gc.freeze()


_kept_all: Final[list[bool]] = []
"""Not empty once `keep_all` was called: what is kept apart is ours."""


class _DeepRecursion:
    """Raises Python's limit for as long as anybody is within, in whatever thread: there is one for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._before = sys.getrecursionlimit()
                if self._before < _DEEP:
                    sys.setrecursionlimit(_DEEP)
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within and self._before < _DEEP:
                sys.setrecursionlimit(self._before)


deep_recursion: Final = _DeepRecursion()
"""Lets functions call themselves as deeply as the deepest query that is followed asks."""


def for_deep_queries(follow: _Follow) -> _Follow:
    """Let a function whose first argument is SQL recurse as deeply as the deepest query that is followed asks.

    sqlglot's compiled parser recurses on the stack of the thread. That of the main thread suffices; any
    other may be small (musl gives 128 KB, and a host what it likes), and a process whose stack is at
    its end is gone without a word. There, what may nest is followed in a thread of its own.
    """

    @functools.wraps(follow)
    def followed(sql: str, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is threading.main_thread() or not _may_nest(sql):
            with deep_recursion:
                return follow(sql, *args, **kwargs)
        return _on_large_stack(functools.partial(follow, sql, *args, **kwargs))

    return cast("_Follow", followed)


def _may_nest(sql: str) -> bool:
    words = sql.lower()
    return sum(map(words.count, _NESTING)) > _FLAT


def _on_large_stack(work: Callable[[], Any]) -> Any:
    """What work returns or raises, from a thread with a stack of `_STACK` bytes."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with deep_recursion:
                done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="dbt_ripple deep query", daemon=True)
    with _STACKS:
        before = threading.stack_size(_STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


_NESTING: Final = (*"([{<-+~", "case", "not")
"""What a query nests by, and what only looks like it."""
_FLAT: Final = 30
"""As many of these need no stack to speak of."""
_STACK: Final = 64 * 1024 * 1024
_STACKS: Final = threading.Lock()
"""Whoever has it sets the size of the stacks of new threads, which is one for all."""


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
