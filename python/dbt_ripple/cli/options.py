"""What all commands share: where the project is, how to print, how to read a project politely."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project

RELAXED_COLLECTOR = (10_000, 100, 1000)
"""Thresholds of the garbage collector of a command: nearly all it makes lives to its end."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def project_options(command: _Command) -> _Command:
    """Add ``--project-dir`` and ``--target-path``, which mean what they mean to dbt."""
    command = click.option(
        "--target-path",
        envvar="DBT_TARGET_PATH",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="Folder with manifest.json, relative to the project.  [default: target]",
    )(command)
    return click.option(
        "--project-dir",
        envvar="DBT_PROJECT_DIR",
        show_envvar=True,
        default=".",
        show_default=True,
        type=click.Path(path_type=Path),
        help="The dbt project.",
    )(command)


def artifacts_folder(project_dir: Path, target_path: Path | None) -> Path:
    """The folder dbt writes its artifacts to.

    It is ``target_path`` (relative to the project, as in dbt), or else the ``target-path`` of
    dbt_project.yml, or else ``target``.
    """
    return project_dir / (target_path or _configured_target(project_dir) or "target")


def _configured_target(project_dir: Path) -> str | None:
    try:
        text = (project_dir / "dbt_project.yml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r"""^target-path:\s*["']?([^"'#\s]+)["']?\s*(?:#.*)?$""", text, re.MULTILINE)
    return found.group(1) if found else None


def load_project(project_dir: Path, target_path: Path | None) -> Project:
    """Read the project's artifacts; what had to be left out is said on stderr.

    From here on the process' garbage collector is relaxed.
    """
    from dbt_ripple.artifacts import read_project

    gc.set_threshold(*RELAXED_COLLECTOR)
    project = read_project(artifacts_folder(project_dir, target_path))
    # All of it lives as long as the process: nothing the collector needs to look at again.
    gc.freeze()
    for note in project.notes[:_NOTES_SHOWN]:
        warn(note)
    if len(project.notes) > _NOTES_SHOWN:
        warn(f"and {len(project.notes) - _NOTES_SHOWN} more notes of this kind")
    return project


_NOTES_SHOWN = 5


def warn(message: str) -> None:
    """Say something on stderr that does not stop the command."""
    click.echo(f"dbt-ripple: {message}", err=True)


def answer(text: str) -> None:
    """Print the answer on stdout; a reader that has gone (``| head``) is not an error.

    Colours and styles are dropped where stdout is not a terminal, and characters its encoding lacks
    become ASCII.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII_GUIDES).encode(encoding, "replace").decode(encoding)
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more when it ends, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


_ASCII_GUIDES = str.maketrans({"└": "`", "├": "|", "│": "|", "─": "-", "·": "-"})


def as_json(value: Any) -> str:
    """Indented JSON, as every ``--format json`` prints it."""
    import msgspec

    text: str = msgspec.json.format(msgspec.json.encode(value).decode(), indent=2)
    return text


def count(number: int, noun: str) -> str:
    """A number with its noun.

    Example:
        >>> count(1, "model"), count(2000, "model"), count(2, "analysis")
        ('1 model', '2,000 models', '2 analyses')
    """
    plural = f"{noun[:-2]}es" if noun.endswith("is") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
