"""Events sent beside a program: it never waits for a collector, and never fails because of one.

What is to be sent is put into a bounded queue; a thread of its own makes events of it and sends them.
Where the queue is full, or sending fails, events are dropped and counted. At the exit of the
program the thread has a few seconds to send what is left.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from dbt_ripple.openlineage.client import Event

log = logging.getLogger("dbt_ripple.track")

QUEUE_SIZE: Final = 10_000
FLUSH_SECONDS: Final = 5.0
IMPORT_SECONDS: Final = 30.0
"""How long is waited at most for the client to be imported: on a busy machine that takes a while, and it
ends, whatever the collector does."""

Make = Callable[[], "Event"]


class Background:
    """A queue of events to be made and sent, and the thread that does it, once there is one.

    Args:
        size: of the queue.
        sender: makes what sends an event; by default a client as it is configured.

    Attributes:
        sent: how many were sent.
        dropped: how many will not be.
    """

    def __init__(
        self, size: int | None = None, sender: Callable[[], Callable[[Event], None]] | None = None
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self._size = size or _number("DBT_RIPPLE_TRACK_QUEUE", QUEUE_SIZE)
        self._make_sender = sender
        self._lock = threading.Lock()
        self._has_import_lock = False
        self._begin()

    def _begin(self) -> None:
        self._queue: queue.Queue[Make] = queue.Queue(self._size)
        self._thread: threading.Thread | None = None
        self._reported: set[str] = set()
        self._given_up = False
        self._where = ""
        self._client: OpenLineageClient | None = None
        self._ready = threading.Event()
        # Held while the thread imports: a child process must not begin with half a module.
        self._importing = threading.Lock()

    def put(self, make: Make) -> None:
        """Have an event made and sent, later. Never blocks and never raises."""
        try:
            self._queue.put_nowait(make)
        except queue.Full:
            self._drop("the queue is full")
            return
        if self._thread is None:
            self._start()

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until all is sent or dropped.

        Args:
            seconds: for how long; by default DBT_RIPPLE_TRACK_FLUSH_SECONDS, or 5.

        Returns:
            Whether nothing is left.
        """
        if seconds is None:
            seconds = _number("DBT_RIPPLE_TRACK_FLUSH_SECONDS", FLUSH_SECONDS)
        ends = time.monotonic() + seconds
        while self._queue.unfinished_tasks and self._thread is not None:
            if time.monotonic() >= ends:
                return False
            time.sleep(0.005)
        return not self._queue.unfinished_tasks

    def at_exit(self) -> None:
        """Flush for the last time, and say what was dropped."""
        if self._thread is None:
            return
        self._ready.wait(IMPORT_SECONDS)
        if not self.flush():
            self.dropped += self._queue.unfinished_tasks
        if self.dropped:
            log.warning(
                "dbt_ripple: %d OpenLineage events were not sent%s", self.dropped, self._where
            )

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="dbt_ripple track", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is ending
                self._drop("the program is ending")
                return
            self._thread = thread
            if self._make_sender is None:  # else whoever has made it waits for it
                _at_exit(self.at_exit)

    def _run(self) -> None:
        own = threading.get_ident()
        # It warns of each of its tries; that events are dropped, and why, is reported once, below.
        tries = logging.getLogger("urllib3.connectionpool")
        tries.addFilter(lambda record: record.thread != own or record.levelno > logging.WARNING)
        send: Callable[[Event], None] | None = None
        while True:
            make = self._queue.get()
            try:
                with self._importing:
                    if send is None and not self._given_up:
                        send = self._sender()
                    event = make() if send is not None else None
                    client, self._client = self._client, None
                self._ready.set()
                if client is not None:
                    self._say_if_silent(client)
                if send is None or event is None:
                    self.dropped += 1
                else:
                    send(event)
                    self.sent += 1
            except Exception as error:  # of a transport, or of what was declared
                self._drop(" ".join(str(error).split())[:300] or type(error).__name__)
            finally:
                self._ready.set()
                self._queue.task_done()

    def _sender(self) -> Callable[[Event], None] | None:
        """How events are sent; None where they cannot be, which will not change."""
        from dbt_ripple.errors import RippleError
        from dbt_ripple.openlineage.client import new_client

        try:
            if self._make_sender:
                return self._make_sender()
            client = self._client = new_client()
            return client.emit
        except RippleError as error:
            self._given_up = True
            self._warn_once(str(error))
            return None

    def _say_if_silent(self, client: OpenLineageClient) -> None:
        """Say at once that nobody answers; not while this thread imports, for which a fork waits."""
        from dbt_ripple.openlineage.client import silent
        from dbt_ripple.secrets import scrub

        url = scrub(str(getattr(client.transport, "url", None) or ""))
        self._where = f" to {url}" if url else ""
        if why := silent(client):
            log.warning("dbt_ripple: nobody answers at %s (%s)", url, why)

    def _drop(self, why: str) -> None:
        self.dropped += 1
        self._warn_once(why)

    def _warn_once(self, why: str) -> None:
        """Say once why events are dropped; not for each of them."""
        if why not in self._reported and len(self._reported) < 5:
            self._reported.add(why)
            log.warning("dbt_ripple: OpenLineage events are dropped: %s", why)

    def before_fork(self) -> None:
        """Wait until the thread has imported what it is importing."""
        self._has_import_lock = self._importing.acquire(timeout=IMPORT_SECONDS)

    def after_fork(self) -> None:
        """Go on."""
        if self._has_import_lock:
            self._importing.release()

    def after_fork_in_child(self) -> None:
        """Begin anew in a child process: it has no thread, and its parent sends what was there."""
        self._lock = threading.Lock()
        self.sent = self.dropped = 0
        self._begin()


def _at_exit(flush: Callable[[], None]) -> None:
    atexit.register(flush)
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        # Its child processes end without running what atexit has.
        Finalize(None, flush, exitpriority=10)


def _number(variable: str, default: float) -> int:
    try:
        return int(float(os.environ[variable]))
    except (KeyError, ValueError):
        return int(default)


BACKGROUND: Final = Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=BACKGROUND.before_fork,
        after_in_parent=BACKGROUND.after_fork,
        after_in_child=BACKGROUND.after_fork_in_child,
    )
