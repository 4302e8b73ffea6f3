"""What holds for all that is opened while a question is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True)
class Setting:
    """What holds for all that is opened meanwhile, in this thread.

    Attributes:
        project_dir: the project whose ripple.yml says what hooks write that cannot be followed.
        partial: whether models whose SQL is not known are answered without, in place of refused.
        keeps: holds to the end of the process what is opened; None in a process that is somebody else's.
    """

    project_dir: Path | None = None
    partial: bool = False
    keeps: list[Any] | None = None


_SETTING: Final = ContextVar("setting", default=Setting())  # noqa: B039  (it is frozen)


def setting() -> Setting:
    """What holds now."""
    return _SETTING.get()


@contextmanager
def set_to(setting: Setting) -> Iterator[None]:
    """Let something hold for a while."""
    before = _SETTING.set(setting)
    try:
        yield
    finally:
        _SETTING.reset(before)
