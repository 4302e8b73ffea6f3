"""Keeps an answer within a number of characters, and says what it leaves out and how to get that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dbt_ripple.errors import RippleError

CHARACTERS: Final = 25_000
"""Of an answer, as an agent gets it: its JSON as text, and the same JSON as values."""
_WHOLE: Final = (10**9, 10**9)
_STEPS: Final = (_WHOLE, (600, 30), (200, 10), (80, 3), (40, 1))
"""Characters of a text, and entries of a list, inside an entry: all of them where all of the answer has room, or else
so many; where it is too long still, fewer."""


class Page(NamedTuple):
    """A part of the data.

    Attributes:
        data: the part.
        shown: how many entries it has, of `total`.
        cursor: for the next part; None where this is the last one.
        shortened: how many texts and lists inside the entries were cut.
    """

    data: dict[str, Any]
    shown: int
    total: int
    cursor: str | None
    shortened: int


def page(
    document: Mapping[str, Any], lists: Sequence[str], cursor: str | None, room: int, whole: bool
) -> Page:
    """As much of a document as fits into so many characters of JSON.

    Args:
        document: plain values.
        lists: its fields whose entries are shown part by part, one list after the other; of every other list there
            are a few entries, whatever the part.
        cursor: of an earlier part.
        room: the characters.
        whole: whether the entries of `lists` are not cut, as far as there is room for one.

    Raises:
        RippleError: the cursor is of no part.
    """
    entries = [(name, entry) for name in lists for entry in document.get(name) or ()]
    start = _start(cursor, len(entries))
    for text, many in _STEPS:
        part = _part(document, lists, entries, start, room, _Cut(text, many), whole)
        if len(_json(part.data)) <= room and ((text, many) != _WHOLE or part.cursor is None):
            break
    return part


def _part(
    document: Mapping[str, Any],
    lists: Sequence[str],
    entries: Sequence[tuple[str, Any]],
    start: int,
    room: int,
    cut: _Cut,
    whole: bool,
) -> Page:
    data = {
        name: [] if name in lists and value is not None else cut.of(value)
        for name, value in document.items()
    }
    left = room - len(_json(data))
    place = start
    while place < len(entries):
        name, entry = entries[place]
        shown = entry if whole and (place > start or len(_json(entry)) <= left) else cut.of(entry)
        left -= len(_json(shown)) + 1
        if left < 0 and place > start:
            break
        data[name].append(shown)
        place += 1
    following = str(place) if place < len(entries) else None
    return Page(data, place - start, len(entries), following, cut.number)


def _start(cursor: str | None, total: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or not 0 < int(cursor) < max(total, 1):
        raise RippleError(
            f"{cursor[:40]!r} is no cursor of this answer",
            "cursor",
            "give the one of the answer before, with the same other arguments",
        )
    return int(cursor)


class _Cut:
    """Shortens texts and lists, and counts how many."""

    def __init__(self, text: int, entries: int) -> None:
        self.number = 0
        self._text = text
        self._entries = entries

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            if len(value) <= self._text:
                return value
            self.number += 1
            return f"{value[: self._text]}… ({len(value):,} characters)"
        if isinstance(value, Mapping):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            self.number += len(value) > self._entries
            return [self.of(item) for item in value[: self._entries]]
        return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
