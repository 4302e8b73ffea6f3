"""The terminal: its colours and width, what ``--quiet`` leaves out, and the progress line.

A pipe, a file and a CI log are not terminals: they get no colours, whole lines and no progress.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import click

from dbt_ripple.rendering.escaping import cut

if TYPE_CHECKING:
    import threading

PATIENCE: Final = 2.0
"""Seconds that a command takes before the progress line is there."""

_TICK: Final = 0.25


class _Screen:
    """What holds for one command.

    Attributes:
        quiet: only the answer and errors are printed.
        verbose: how an answer came about is printed, too.
        colours: whether there may be any.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.quiet = False
        self.verbose = False
        self.colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.line: _ProgressLine | None = None


_screen = _Screen()


def begin() -> None:
    """Forget what the command before was told; `cli.main` calls it."""
    global _screen
    _screen = _Screen()


def options() -> list[click.Parameter]:
    """``--quiet``, ``--verbose`` and ``--no-color``, which every command has."""

    def be_quiet(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        _screen.quiet |= value

    def be_verbose(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        _screen.verbose |= value

    def no_colours(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        _screen.colours &= not value

    flags: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True}
    return [
        click.Option(
            ["--quiet", "-q"],
            callback=be_quiet,
            help="Print only the answer and errors.",
            **flags,
        ),
        click.Option(
            ["--verbose", "-v"],
            callback=be_verbose,
            help="Also say on stderr how the answer came about.",
            **flags,
        ),
        click.Option(
            ["--no-color"],
            callback=no_colours,
            help="Print without colours, as if NO_COLOR were set.",
            **flags,
        ),
    ]


def is_quiet() -> bool:
    """Whether ``--quiet`` was given."""
    return _screen.quiet


def is_verbose() -> bool:
    """Whether ``--verbose`` was given."""
    return _screen.verbose


def without_colours() -> bool:
    """Whether the user asked for no colours."""
    return not _screen.colours


def has_colours(stream: TextIO) -> bool:
    """Whether colours may be sent to a stream: a terminal, unless the user asked for none."""
    return _screen.colours and _is_terminal(stream)


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal; None of a pipe or a file, which have no width."""
    if not _is_terminal(stream):
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # closed, or in the place of a stream
        return False


_HEARD: Final[ContextVar[dict[str, None] | None]] = ContextVar("heard", default=None)


@contextmanager
def heard_by(notes: dict[str, None]) -> Iterator[None]:
    """Add to notes, once each, what would be printed on stderr meanwhile in this thread; nothing is drawn."""
    before = _HEARD.set(notes)
    try:
        yield
    finally:
        _HEARD.reset(before)


def heard() -> dict[str, None] | None:
    """What takes the place of stderr; None where nothing does."""
    return _HEARD.get()


# --- progress --------------------------------------------------------------------------------------


@contextmanager
def progress(step: str) -> Iterator[Callable[[str], None]]:
    """Say on a terminal what takes its time, on a line that is gone when it is done.

    The line comes after :data:`PATIENCE` seconds of the command; of steps in one another the
    innermost is printed.

    Args:
        step: what is done, as in ``reading target``.

    Yields:
        How the step is called from then on.
    """
    if heard() is not None:
        yield _nothing
        return
    if _screen.line is None:
        if _screen.quiet or not _is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
            yield _nothing
            return
        _screen.line = _ProgressLine(_screen.began)
    line = _screen.line
    index = line.push(step)

    def rename(text: str) -> None:
        line.steps[index] = text

    try:
        yield rename
    finally:
        line.pop()


def _nothing(_text: str) -> None:
    pass


def clear() -> None:
    """Take the progress line away, because something is printed; it comes back by itself."""
    if _screen.line is not None:
        _screen.line.clear()


def giving_way(stream: TextIO) -> TextIO:
    """A stream for somebody who knows nothing of the progress line, which gives way to them."""
    return stream if _screen.line is None else cast("TextIO", _GivingWay(stream))


class _GivingWay:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class _ProgressLine:
    """The last line of a terminal: what is being done, and for how long the command has run."""

    def __init__(self, began: float) -> None:
        import threading

        self.steps: list[str] = []
        self._began = began
        self._drawn = ""
        self._lock = threading.RLock()
        self._done: threading.Event | None = None

    def push(self, step: str) -> int:
        import threading

        self.steps.append(step)
        if self._done is None:
            self._done = threading.Event()
            threading.Thread(target=self._draw_on, args=(self._done,), daemon=True).start()
        return len(self.steps) - 1

    def pop(self) -> None:
        self.steps.pop()
        if not self.steps and self._done is not None:
            self._done.set()
            self._done = None
            self.clear()

    def _draw_on(self, done: threading.Event) -> None:
        while not done.wait(_TICK):
            seconds = time.monotonic() - self._began
            if seconds >= PATIENCE:
                with self._lock:
                    if not done.is_set():
                        self._draw(seconds)

    def _draw(self, seconds: float) -> None:
        steps = self.steps[-1:]  # another thread may just have taken the last
        text = cut(
            f"dbt-ripple: {''.join(steps)} ({seconds:.0f} s)", (width_of(sys.stderr) or 80) - 1
        )
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        if text != self._drawn:
            self._send(f"\r{text}\x1b[K".encode(encoding, "replace").decode(encoding))
            self._drawn = text

    def clear(self) -> None:
        with self._lock:
            if self._drawn:
                self._send("\r\x1b[K")
                self._drawn = ""

    def _send(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal has gone
            pass
