"""Accepted events on disk.

A store is a folder of segments, ``events-00000001.ndjson`` and so on: text files to which lines are
appended, one event a line (what a line is, `intake` says). Nothing else is in them, so any program
that reads NDJSON reads them, and files of several stores can be put together.

Guarantees:

* When `EventStore.append` returns, its events are on disk (``fsync``), and stay there whatever
  happens to the process or the machine's power.
* When it raises, none of its events are in the store, and those before are as they were.
* After a crash, opening the store cuts off what was not finished. What is cut off was never
  acknowledged. Whole lines that were not acknowledged may stay: they are events that will be sent again.
* An event that is there is not stored again, among the last `EventStore.remembered` events. Readers
  may meet an event twice nevertheless (from further back, or from another store): equal events are
  equal lines.

One process writes to a store at a time. Anybody may read: lines are whole if they end in a newline.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from dbt_ripple.errors import RippleError

try:
    import fcntl
except ImportError:  # Windows: a second writer is not noticed there
    fcntl = None  # type: ignore[assignment]

SEGMENT_BYTES: Final = 64_000_000
REMEMBERED: Final = 200_000
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StoreError(Exception):
    """Events that could not be stored.

    Attributes:
        is_full: no room is left; otherwise the disk is broken or gone.
        detail: what the system says.
    """

    def __init__(self, error: OSError) -> None:
        self.is_full = error.errno in _FULL
        self.detail = error.strerror or type(error).__name__
        super().__init__(self.detail)


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of some events.

    Attributes:
        new: how many were stored.
        duplicates: how many were there before.
    """

    new: int
    duplicates: int


class EventStore:
    """The store of a folder, to append to; a context manager.

    Args:
        folder: is made if it is not there.
        report: is called with a sentence on what is damaged.
        remembered: events by which duplicates are known, about 150 bytes of memory each.
        segment_bytes: a segment that is larger is not appended to.

    Raises:
        RippleError: the folder cannot be written to, or another process writes to it.
    """

    def __init__(
        self,
        folder: Path,
        report: Callable[[str], None] = lambda _: None,
        *,
        remembered: int = REMEMBERED,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.folder = folder
        self.remembered = remembered
        self._segment_bytes = segment_bytes
        self._seen: dict[bytes, None] = {}
        self._file: int | None = None
        self._length = 0
        self._is_dirty = False
        self._is_suspect = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _sync_folder(folder.parent)
            self._lock = (folder / "lock").open("ab")
            self._take_lock()
            paths = segments(folder)
            for path in paths:
                if path == paths[-1] or not _ends_in_newline(path):
                    _cut_off_torn_line(path, report)
            self._remember(paths)
            self._number = _number(paths[-1]) if paths else 0
            if paths and paths[-1].stat().st_size < segment_bytes:
                self._open(paths[-1], 0)
        except OSError as error:
            raise RippleError(
                f"the store cannot be written to ({error.strerror})",
                str(folder),
                "name another folder by --store",
            ) from error

    def __enter__(self) -> EventStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, requests: Sequence[Sequence[bytes]]) -> list[Stored]:
        """Store events, all of them or none; they are on disk when this returns.

        Args:
            requests: for each who is answered by itself its lines, without newlines.

        Returns:
            Of each request what became of its lines.

        Raises:
            StoreError: nothing of it is stored.
        """
        fresh: dict[bytes, None] = {}
        written: list[bytes] = []
        answers = []
        for lines in requests:
            before = len(written)
            for line in lines:
                digest = blake2b(line, digest_size=16).digest()
                if digest not in self._seen and digest not in fresh:
                    fresh[digest] = None
                    written.append(line)
            new = len(written) - before
            answers.append(Stored(new, len(lines) - new))
        if written:
            try:
                self._commit(b"\n".join((*written, b"")))
            except OSError as error:
                raise StoreError(error) from error
            self._seen.update(fresh)
            self._forget()
        return answers

    def close(self) -> None:
        """Let another process write to the store."""
        self._close_segment()
        self._lock.close()

    def _commit(self, text: bytes) -> None:
        if self._is_dirty:
            self._roll_back()
        if self._file is not None and self._length >= self._segment_bytes:
            self._close_segment()
        if self._file is None:
            self._number += 1
            self._open(self._path_of(self._number), os.O_CREAT | os.O_EXCL)
            _sync_folder(self.folder)
        assert self._file is not None
        self._is_dirty = True
        is_written = False
        try:
            left = memoryview(text)
            while left:
                left = left[os.write(self._file, left) :]
            is_written = True
            _sync(self._file)
        except OSError:
            self._is_suspect = is_written
            with suppress(OSError):  # then it is tried again before anything else is written
                self._roll_back()
            raise
        self._is_dirty = False
        self._length += len(text)

    def _roll_back(self) -> None:
        """Take back what was not committed.

        A segment that could not be synchronised is given up: later calls may say that it is,
        although what they were to write is gone.
        """
        assert self._file is not None
        os.ftruncate(self._file, self._length)
        self._is_dirty = False
        if self._is_suspect:
            self._is_suspect = False
            with suppress(OSError):
                _sync(self._file)
            self._close_segment()
            if not self._length:
                with suppress(OSError):
                    self._path_of(self._number).unlink()

    def _path_of(self, number: int) -> Path:
        return self.folder / f"events-{number:08d}.ndjson"

    def _open(self, path: Path, flags: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | flags, 0o640)
        self._length = os.fstat(self._file).st_size

    def _close_segment(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _take_lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RippleError(
                "another dbt-ripple collect writes to this store",
                str(self.folder),
                "post the events to it, or name another folder by --store",
            ) from None

    def _remember(self, paths: Sequence[Path]) -> None:
        """Know the last events again, the newest segments first until there are enough."""
        digests_of_files: list[dict[bytes, None]] = []
        left = self.remembered
        for path in reversed(paths):
            if left <= 0:
                break
            with path.open("rb") as file:
                digests = {blake2b(line[:-1], digest_size=16).digest(): None for line in file}
            digests_of_files.append(digests)
            left -= len(digests)
        for digests in reversed(digests_of_files):
            self._seen.update(digests)
        self._forget()

    def _forget(self) -> None:
        too_many = len(self._seen) - self.remembered
        if too_many > 0:
            for digest in [d for d, _ in zip(self._seen, range(too_many), strict=False)]:
                del self._seen[digest]


def segments(folder: Path) -> list[Path]:
    """The segments of a store, the oldest first."""
    return sorted(folder.glob("events-????????.ndjson"))


def stored_lines(folder: Path) -> Iterator[bytes]:
    """The events of a store as they lie there, each a line of JSON without its newline.

    A line that is still being written is left out. Events may come twice, and in any order.

    Raises:
        OSError: a segment cannot be read.
    """
    for path in segments(folder):
        with path.open("rb") as file:
            yield from (line[:-1] for line in file if line.endswith(b"\n"))


def _number(segment: Path) -> int:
    return int(segment.stem.removeprefix("events-"))


def _ends_in_newline(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read() in (b"", b"\n")


def _cut_off_torn_line(path: Path, report: Callable[[str], None]) -> None:
    """Remove what a crash has left behind the last whole event.

    A process that is killed leaves a line without an end. A machine that loses its power may leave
    anything behind what was synchronised last, also whole lines of zeros.
    """
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        good = size
        while good:
            line = _last_line(file, good)
            if line.endswith(b"\n") and _is_object(line):
                break
            good -= len(line)
        if good < size:
            file.truncate(good)
            report(
                f"{path}: cut off {size - good:,} bytes of an event that was not finished when"
                " its collector died; it was never acknowledged"
            )
        # Whole lines may be known to the system only, and the one who sent them may try again.
        _sync(file.fileno())


def _last_line(file: BinaryIO, end: int) -> bytes:
    """The line that ends before a position, with its newline if it has one."""
    step, start = 65_536, end
    text = b""
    while start:
        reach = max(0, start - step)
        file.seek(reach)
        text = file.read(start - reach) + text
        start, step = reach, step * 2
        cut = text.rfind(b"\n", 0, len(text) - 1)
        if cut >= 0:
            return text[cut + 1 :]
    return text


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _sync(file: int) -> None:
    """Have a file's contents on the disk, not in a cache of the system or of the disk."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, whose fsync leaves it in the disk's cache
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        getattr(os, "fdatasync", os.fsync)(file)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on the disk."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


_MOST_AT_ONCE: Final = 8_000_000
"""Bytes of events that are written together, if they are of several requests."""


class EventWriter:
    """A thread that appends to a store for the coroutines of an event loop: many requests wait for one write.

    `fsync` takes milliseconds, whatever is behind it. While it runs, the events of the requests that
    come in the meantime gather, and are written together (group commit).

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
