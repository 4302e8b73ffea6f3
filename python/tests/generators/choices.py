"""Random writing of which any one decision can be made anew while all others stay.

Every decision has a seed of its own, derived from where it stands. To edit what was written, write it
again with another seed for one place: a leaf (a word, a literal, a function's name) or a whole part.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")
Place = Sequence[str] | Callable[[], str]
"""What may stand at a place of a text: one of several texts, or what a call writes."""
PLACE: Final = re.compile(r"\{(\w+(?: \w+)*|l?\*)\}")
_MASK = (1 << 64) - 1


def mix(x: int) -> int:
    """A number that looks random, of another (splitmix64)."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Choices:
    """The decisions of one text; `changed` has another seed for some places."""

    def __init__(self, seed: int, changed: dict[int, int] | None = None) -> None:
        self.changed = changed or {}
        self.seed = mix(seed)
        self.counts: dict[tuple[int, str], int] = {}
        self.places: list[tuple[int, str]] = []
        self.constructs: set[str] = set()

    def _place(self, kind: str) -> tuple[int, int]:
        at = (self.seed, kind)
        n = self.counts.get(at, 0)
        self.counts[at] = n + 1
        place = mix(self.seed ^ (zlib.crc32(kind.encode()) << 16) ^ n)
        self.places.append((place, kind))
        other = self.changed.get(place)
        return place, place if other is None else mix(place ^ other)

    @contextmanager
    def part(self, kind: str) -> Iterator[None]:
        """A part of the text, which an edit may write anew as a whole."""
        outside = self.seed
        self.seed = self._place(kind)[1]
        try:
            yield
        finally:
            self.seed = outside

    def pick(self, kind: str, options: Sequence[T]) -> T:
        """One of several."""
        return options[self._place(kind)[1] % len(options)]

    def chance(self, kind: str, share: float) -> bool:
        """Yes or no."""
        return self._place(kind)[1] / (_MASK + 1) < share

    def filled(self, text: str, places: Mapping[str, Place]) -> str:
        """A text with each of its ``{place}`` decided; what stands there may leave places, too."""

        def put(match: re.Match[str]) -> str:
            options = places.get(match[1])
            if options is None:
                return match[0]
            if callable(options):
                return options()
            return self.filled(self.pick(match[1], options), places)

        return PLACE.sub(put, text)

    def used(self, construct: str) -> None:
        """Say that the text has a construct, for the report."""
        self.constructs.add(construct)
