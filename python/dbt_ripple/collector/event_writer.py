"""Group commit: many requests wait for one write to the disk.

`fsync` takes milliseconds, whatever is behind it. While it runs, the events of the requests that
come in the meantime gather, and are written together.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from dbt_ripple.collector.event_store import EventStore, Stored

_MOST_AT_ONCE: Final = 8_000_000
"""Bytes of events that are written together, if they are of several requests."""


class EventWriter:
    """A thread that appends to a store for the coroutines of an event loop.

    Args:
        store: nobody else may append to it.
        on_commit: is called in that thread with the seconds that a commit took.
    """

    def __init__(
        self, store: EventStore, on_commit: Callable[[float], None] = lambda _: None
    ) -> None:
        self._store = store
        self._on_commit = on_commit
        self._waiting: list[tuple[Sequence[bytes], asyncio.Future[Stored]]] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write, name="event-writer", daemon=True)
        self._thread.start()

    async def append(self, lines: Sequence[bytes]) -> Stored:
        """Wait until the lines are on disk.

        A coroutine that is cancelled meanwhile does not take its lines back.

        Raises:
            StoreError: none of them is stored.
        """
        future: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._is_closed:
                raise RuntimeError("the writer is closed")
            self._waiting.append((lines, future))
            self._changed.notify()
        return await future

    def close(self) -> None:
        """Write what waits, and stop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _write(self) -> None:
        while group := self._next_group():
            answers: list[Stored] | Exception
            try:
                answers = self._timed_append([lines for lines, _ in group])
            except Exception as error:  # whoever waits has to hear of it
                answers = error
            for number, (_, future) in enumerate(group):
                answer = answers if isinstance(answers, Exception) else answers[number]
                try:
                    future.get_loop().call_soon_threadsafe(_resolve, future, answer)
                except RuntimeError:  # the loop is gone, and with it who waits
                    continue

    def _timed_append(self, requests: list[Sequence[bytes]]) -> list[Stored]:
        began = time.perf_counter()
        try:
            return self._store.append(requests)
        finally:
            self._on_commit(time.perf_counter() - began)

    def _next_group(self) -> list[tuple[Sequence[bytes], asyncio.Future[Stored]]]:
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            size = taken = 0
            for lines, _ in self._waiting:
                size += sum(map(len, lines))
                if taken and size > _MOST_AT_ONCE:
                    break
                taken += 1
            group, self._waiting = self._waiting[:taken], self._waiting[taken:]
            return group


def _resolve(future: asyncio.Future[Stored], answer: Stored | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
