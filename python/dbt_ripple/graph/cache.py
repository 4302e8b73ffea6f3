"""Results on disk, by the content they were made from: one SQLite file for all projects of a user.

What is guaranteed:

* **Never a wrong answer.** A key is a digest of everything its value follows from, the code of this
  package and the version of the parser included (:func:`engine`), so nothing is ever out of date;
  every value carries a checksum, so a damaged one is not there.
* **Any number of processes** read and write at the same time (SQLite's write-ahead log). What one
  process has made is written at its end, in short transactions.
* **Bounded.** Above :data:`LIMIT` the entries that have not been used for longest go.
* **Never in the way.** A file that is damaged, or not ours, is renamed and made anew, with a
  warning; where nothing can be written (a read-only folder, a full disk), everything works without.

What is not: that an entry stays. Whoever holds a key must be able to make the value again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import xxhash

from dbt_ripple import __version__
from dbt_ripple.flow.fingerprint import digest

FOLDER_VARIABLE: Final = "DBT_RIPPLE_CACHE_DIR"
"""Environment variable that names the folder."""

FILE: Final = "analysis.sqlite3"

LIMIT: Final = 1_000_000_000
"""Bytes of the file above which entries go; one run may exceed it by what it writes at once."""

BUSY_SECONDS: Final = 10.0
"""How long to wait for another process that is writing."""

UNWRITTEN_BYTES: Final = 32_000_000
"""Bytes that wait in memory before they are written."""

REFRESHED: Final = 86_400
"""Seconds within which using an entry again is not noted: to note it is to write."""

_APPLICATION: Final = 0x64627252
"""SQLite's application_id of our files (``dbrR``)."""
_LAYOUT: Final = 1
_KEPT: Final = 0.8
"""Share of the limit that is left when entries have to go."""
_SUM: Final = 8
_CREATE: Final = (
    "create table entries "
    "(key blob primary key, used integer not null, size integer not null, value blob not null)",
    "create index entries_used on entries (used, size)",
    f"pragma application_id = {_APPLICATION}",
    f"pragma user_version = {_LAYOUT}",
)


def user_folder() -> Path:
    """The folder of this user's cache: ``$XDG_CACHE_HOME/dbt-ripple``, or ``~/.cache/dbt-ripple``.

    It is not made.

    Raises:
        OSError: this user has no home folder.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path("~/.cache").expanduser()) / "dbt-ripple"
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from error


def version(package: str) -> str:
    """The version of an installed package; empty where it is not known."""
    spec = find_spec(package)
    if spec is not None and spec.origin is not None:
        installed = list(Path(spec.origin).parents[1].glob(f"{package}-*.dist-info"))
        if len(installed) == 1:
            return installed[0].stem
    # Here, because to import it takes as long as a small project does.
    from importlib import metadata

    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return ""


@functools.cache
def engine() -> bytes:
    """A digest of everything that an analysis depends on besides what is analysed.

    It is the code of the rooms that read, lower, link and fingerprint, the version of sqlglot, and
    Python's (whose tables say which letters are the same).
    """
    parts = [__version__.encode(), repr(sys.version_info[:2]).encode()]
    parts.append(version("sqlglot").encode())
    package = Path(__file__).parents[1]
    for room in ("artifacts", "flow", "jinja", "graph"):
        of_room = (package / room).rglob("*")
        for file in sorted(f for f in of_room if f.suffix in (".json", ".py", ".txt")):
            parts += [file.relative_to(package).as_posix().encode(), file.read_bytes()]
    return digest(*parts)


class _ForeignError(Exception):
    """The file is a database, and not one of ours."""


class Cache:
    """Bytes by key. Every method works, and does nothing, where the file cannot be used.

    Use it as a context manager, or `close` it: what was put is written then.

    Args:
        folder: where the file lies; made when missing. By default what :data:`FOLDER_VARIABLE`
            names, or else `user_folder`.
        limit: bytes of the file above which entries go.
        any_thread: whether several threads use it, one at a time.
        warn: told, in one line, when the file is damaged or cannot be used.

    Example:
        >>> import tempfile
        >>> with Cache(Path(tempfile.mkdtemp())) as cache:
        ...     key = cache.key(b"greeting", b"hello")
        ...     cache.put(key, b"world")
        ...     cache.get(key), cache.get(cache.key(b"greeting", b"bye"))
        (b'world', None)
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        limit: int = LIMIT,
        any_thread: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.path = Path(FILE)
        self.limit = limit
        self._any_thread = any_thread
        self._warn = warn
        self._new: dict[bytes, bytes] = {}
        self._new_size = 0
        self._touched: list[bytes] = []
        self._now = int(time.time())
        self._connection: sqlite3.Connection | None = None
        self._engine = engine()
        self._mended = False
        self._inode = 0
        try:
            from_environment = os.environ.get(FOLDER_VARIABLE)
            self.path = (
                folder or (Path(from_environment) if from_environment else user_folder())
            ) / FILE
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()
        except (_ForeignError, sqlite3.Error, OSError) as error:
            self._lose(error)

    def key(self, *parts: bytes) -> bytes:
        """The key of what this version of the engine makes of the parts."""
        return digest(self._engine, *parts)

    def get(self, key: bytes) -> bytes | None:
        """What is kept under a key, or None."""
        content = self.view(key)
        return None if content is None else bytes(content)

    def view(self, key: bytes) -> memoryview | None:
        """As `get`, without a copy of what may be tens of megabytes."""
        new = self._new.get(key)
        if new is not None:
            return memoryview(new)
        if self._connection is None:
            return None
        try:
            row = self._connection.execute(
                "select value, used from entries where key = ?", (key,)
            ).fetchone()
        except sqlite3.Error as error:
            self._lose(error)
            return None
        if row is None:
            return None
        stored, used = row
        if not isinstance(stored, bytes):
            return None
        value = memoryview(stored)[_SUM:]
        if stored[:_SUM] != _sum(key, value):
            return None
        if used < self._now - REFRESHED:
            self._touched.append(key)
        return value

    def has(self, key: bytes) -> bool:
        """Whether something is kept under a key; it may be gone, or damaged, when asked for."""
        if key in self._new:
            return True
        if self._connection is None:
            return False
        try:
            asked = self._connection.execute("select 1 from entries where key = ?", (key,))
            return asked.fetchone() is not None
        except sqlite3.Error as error:
            self._lose(error)
            return False

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value."""
        if self._connection is None:
            return
        self._new_size += len(value) - len(self._new.get(key, b""))
        self._new[key] = value
        if self._new_size > UNWRITTEN_BYTES:
            self.write()

    def write(self) -> None:
        """Write what was put so far; what cannot be written is forgotten."""
        new, self._new, self._new_size = self._new, {}, 0
        touched, self._touched = self._touched, []
        connection = self._connection
        if connection is None or not (new or touched):
            return
        try:
            connection.execute("begin immediate")
            connection.executemany(
                "update entries set used = ? where key = ?", ((self._now, k) for k in touched)
            )
            connection.executemany(
                "insert or replace into entries (key, used, size, value) values (?, ?, ?, ?)",
                ((k, self._now, len(v), _sum(k, v) + v) for k, v in new.items()),
            )
            self._evict(connection)
            connection.execute("commit")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("rollback")
            self._lose(error)

    def close(self) -> None:
        """Write what was put and let go of the file. The cache is empty afterwards."""
        self.write()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _evict(self, connection: sqlite3.Connection) -> None:
        """Delete what has not been used for longest, where the file has grown too big."""
        page = _number(connection, "page_size")

        def in_use() -> int:
            pages = _number(connection, "page_count") - _number(connection, "freelist_count")
            return pages * page

        if in_use() <= self.limit:
            return
        while in_use() > self.limit * _KEPT:
            surplus = in_use() - int(self.limit * _KEPT)
            oldest = []
            for row_id, size in connection.execute(
                "select rowid, size from entries order by used, rowid"
            ):
                oldest.append((row_id,))
                surplus -= size
                if surplus <= 0:
                    break
            if not oldest:
                return
            connection.executemany("delete from entries where rowid = ?", oldest)

    def _open(self) -> sqlite3.Connection:
        """Connect, and make the table where the file is new.

        Raises:
            _ForeignError: the file is somebody else's.
            sqlite3.Error: it is damaged, or cannot be used.
        """
        with contextlib.suppress(FileNotFoundError):
            self._inode = self.path.stat().st_ino
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=not self._any_thread,
        )
        try:
            if _number(connection, "application_id") != _APPLICATION:
                self._make(connection)
            if _number(connection, "user_version") != _LAYOUT:
                raise _ForeignError
            # Where another process is just doing the same, it is done.
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            connection.execute("select key, used, size, value from entries limit 0")
            self._inode = self.path.stat().st_ino
            return connection
        except BaseException:
            connection.close()
            raise

    def _make(self, connection: sqlite3.Connection) -> None:
        connection.execute("pragma page_size = 16384")
        connection.execute("begin immediate")
        try:
            application = _number(connection, "application_id")
            if application == _APPLICATION:  # by another process, while we waited
                return
            if application or connection.execute("select 1 from sqlite_master").fetchone():
                raise _ForeignError
            for statement in _CREATE:
                connection.execute(statement)
            connection.execute("commit")
        finally:
            if connection.in_transaction:
                connection.execute("rollback")

    def _lose(self, error: Exception) -> None:
        """Let go of the file; a damaged one (and a foreign one) is renamed and made anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        try:
            if not (damaged or isinstance(error, _ForeignError)) or self._mended:
                self._report(f"not used ({error or 'the file is not ours'})")
                return
            self._mended = True
            # Another process may have mended it meanwhile.
            if self.path.stat().st_ino == self._inode:
                backup = f"{self.path}.aside"
                for suffix in ("-wal", "-shm", ""):
                    with contextlib.suppress(FileNotFoundError):
                        Path(f"{self.path}{suffix}").replace(f"{backup}{suffix}")
                self._report(
                    f"{'damaged' if damaged else 'not ours'}: moved to {backup}, made anew"
                )
            self._connection = self._open()
        except (_ForeignError, sqlite3.Error, OSError) as again:
            self._report(f"not used ({again})")

    def _report(self, what: str) -> None:
        if self._warn is not None:
            self._warn(f"cache {self.path} {what}")


_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"pragma {pragma}").fetchone()[0])


def _sum(key: bytes, value: bytes | memoryview) -> bytes:
    hasher = xxhash.xxh3_64(key)
    hasher.update(value)
    return hasher.digest()
