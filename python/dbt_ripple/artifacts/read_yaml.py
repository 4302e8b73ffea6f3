"""The one reader of YAML that somebody else may have written: bounded, and one line where it cannot be read."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from dbt_ripple.errors import RippleError

MOST_BYTES: Final = 8_000_000
MOST_DEPTH: Final = 100
"""Levels of lists and mappings in each other."""
MOST_VALUES: Final = 1_000_000
"""Values with all aliases written out: ten levels of ten aliases are ten thousand million."""


def read_yaml(file: Path, *, inside: Path | None = None, as_dbt: bool = False) -> Any:
    """What a YAML file says.

    Args:
        file: the file.
        as_dbt: as for `parse_yaml`.
        inside: the folder that it has to be in, also where a link leads.

    Raises:
        RippleError: it cannot be read, is no YAML, is too large, or is elsewhere.
    """
    if inside is not None and not file.resolve().is_relative_to(inside.resolve()):
        raise RippleError("is a link out of the project", str(file), "put the file itself there")
    try:
        if file.stat().st_size > MOST_BYTES:
            raise RippleError("is too large", str(file), f"at most {MOST_BYTES:,} bytes are read")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = " ".join(str(error).split())
        raise RippleError(f"cannot be read: {message}", str(file), "correct it as YAML") from None
    return parse_yaml(text, str(file), as_dbt=as_dbt)


def parse_yaml(text: str, where: str, *, as_dbt: bool = False) -> Any:
    """What a text of YAML says.

    Args:
        text: the text.
        where: what an error names.
        as_dbt: whether it is read as dbt reads its own files: by YAML 1.1, where ``yes`` is true and
            012 is ten, and of a key that is there twice the last counts. Else that is an error, as it is
            where dbt is not installed.

    Raises:
        RippleError: it is no YAML, or too deep or too large with all of its aliases.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    of_dbt = _yaml_of_dbt() if as_dbt else None
    unreadable: type[Exception] = YAMLError if of_dbt is None else of_dbt.YAMLError
    try:
        if of_dbt is not None:
            loader = getattr(of_dbt, "CSafeLoader", of_dbt.SafeLoader)
            _check_events(of_dbt.parse(text, loader), where)
            return of_dbt.load(text, loader)
        check_bounds(text, where)
        return YAML(typ="safe", pure=True).load(text)
    except (unreadable, ValueError, OverflowError, RecursionError) as error:
        raise RippleError(_problem(error), where, "correct it as YAML") from None


def _yaml_of_dbt() -> Any:
    """The package by which dbt reads YAML; None where dbt is not installed."""
    try:
        return importlib.import_module("yaml")
    except ImportError:
        return None


def _problem(error: Exception) -> str:
    """What is wrong and in which line; not the line, which may be of any file that a link leads to."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "context", None) or "it is no YAML"
    line = f" (line {mark.line + 1})" if mark is not None else ""
    return f"cannot be read: {' '.join(str(problem).split())[:200]}{line}"


def check_bounds(text: str, where: str) -> None:
    """Refuse what is too deep or too large, by its events, which no recursion makes.

    Raises:
        RippleError: it is.
        YAMLError: it is no YAML.
    """
    from ruamel.yaml import YAML

    _check_events(YAML(typ="safe", pure=True).parse(text), where)


def _check_events(events: Iterable[Any], where: str) -> None:
    """The same of the events of either reader, whose classes have the same names."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    size = 0
    for event in events:
        kind = type(event).__name__
        if kind == "ScalarEvent":
            size += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif kind == "AliasEvent":
            # One within what it means has no end: whoever walks it is stopped by its depth.
            size += sizes.get(event.anchor, MOST_VALUES)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_.append((event.anchor, size))
            size += 1
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = size - before
        if len(open_) > MOST_DEPTH or size > MOST_VALUES:
            what = "nested too deep" if len(open_) > MOST_DEPTH else "too large with its aliases"
            raise RippleError(f"is {what}", where, "write it plainly")
