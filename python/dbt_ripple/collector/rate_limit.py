"""How many events a client may send: a token bucket for each client."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_CLIENTS: Final = 10_000
"""Clients that are remembered; who has not been seen for longest is forgotten, with a full bucket."""


class RateLimit:
    """Allows each client so many events a second, over some seconds on average.

    Args:
        per_second: events; 0 allows any number.
        seconds: over how long it is averaged: a client may send the events of so many seconds at once.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        per_second: float,
        seconds: float = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._most = per_second * seconds
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until a client may send again; 0 is now."""
        if not self._per_second:
            return 0
        left = self._now(client)
        return 0 if left >= 1 else (1 - left) / self._per_second

    def count(self, client: str, events: int) -> None:
        """Count events; a batch may take more than is left, and has to be waited for."""
        if self._per_second:
            self._left[client] = (self._now(client) - events, self._clock())
            self._left.move_to_end(client)
            if len(self._left) > _CLIENTS:
                self._left.popitem(last=False)

    def _now(self, client: str) -> float:
        left, at = self._left.get(client, (self._most, self._clock()))
        return min(self._most, left + (self._clock() - at) * self._per_second)
