"""What all commands share: where the project is, how to print, how to read a project."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from dbt_ripple.cli import screen, shown
from dbt_ripple.tuning import keep_all, relax_collector

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.queries import LowerMany
    from dbt_ripple.graph.target import Target

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
        default=nearest_project,
        show_default="here, or the nearest folder above with dbt_project.yml",
        type=click.Path(path_type=Path),
        help="The dbt project.",
    )(command)


def nearest_project() -> Path:
    """The project that dbt takes: the nearest folder with a dbt_project.yml, from here upwards."""
    try:
        here = Path.cwd()
    except OSError:  # it is gone
        return Path()
    for folder in (here, *here.parents):
        if (folder / "dbt_project.yml").exists():
            return Path(os.path.relpath(folder, here))
    return Path()


def format_option(*styles: str, help: str = "Output format.") -> Callable[[_Command], _Command]:
    """Add ``--format``, handed on as ``style``: one of some styles, by default the first."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=styles[0],
        show_default=True,
        help=help,
    )


def analysis_options(command: _Command) -> _Command:
    """Add ``--threads``, which is dbt's word, and those of `cache_options`."""
    command = click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Number of processes that analyse what is not in the cache.  [default: all cores]",
    )(command)
    return cache_options(command)


def cache_options(command: _Command) -> _Command:
    """Add ``--cache-dir`` and ``--no-cache``, for `open_cache`."""
    command = click.option("--no-cache", is_flag=True, help="Do not read or write the cache.")(
        command
    )
    return click.option(
        "--cache-dir",
        envvar="DBT_RIPPLE_CACHE_DIR",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="Folder of the cache of earlier analyses, at most 1 GB; `dbt clean` does not delete "
        "it.  [default: $XDG_CACHE_HOME/dbt-ripple, ~/.cache/dbt-ripple]",
    )(command)


@contextmanager
def open_cache(cache_dir: Path | None, no_cache: bool) -> Iterator[Cache | None]:
    """The cache, for a command; None where it shall do without."""
    if no_cache:
        with screen.progress("analysing"):
            yield None
        return
    from dbt_ripple.graph.cache import Cache

    with Cache(cache_dir, warn=warn) as cache, screen.progress("analysing"):
        yield cache


def open_target(
    folder: Path,
    cache: Cache | None,
    threads: int | None,
    lower_many: LowerMany | None = None,
    sources_of: Path | None = None,
    late: bool = False,
    like: Target | None = None,
) -> Target:
    """The artifacts in a folder; what had to be left out is said on stderr, once they are decoded.

    Arguments are those of `graph.target.Target`.

    From here on the process' garbage collector is relaxed.
    """
    from dbt_ripple.graph.target import Target

    relax_collector()
    with screen.progress(f"reading {folder}"):
        target = Target(
            folder,
            cache,
            processes=threads,
            lower_many=lower_many,
            on_read=_freeze,
            sources_of=sources_of,
            late=late,
            like=like,
        )
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, list):
        context.obj.append(target)  # see `cli.main`
    return target


def _freeze(project: Project) -> None:
    keep_all()
    say_notes(project.notes, len(project.notes))


def say_notes(notes: Sequence[str], of: int) -> None:
    """Say on stderr what the reader had to leave out or assume, up to a few."""
    from dbt_ripple.graph.overview import NOTES_SHOWN

    for note in notes[:NOTES_SHOWN]:
        warn(note)
    if of > NOTES_SHOWN:
        warn(f"and {of - NOTES_SHOWN} more notes of this kind")


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

    relax_collector()
    folder = artifacts_folder(project_dir, target_path)
    with screen.progress(f"reading {folder}"):
        project = read_project(folder)
    _freeze(project)
    return project


def warn(message: str) -> None:
    """Say something on stderr that does not stop the command; nothing with ``--quiet``."""
    if not screen.is_quiet():
        complain(message)


def complain(message: str) -> None:
    """Say on stderr what went wrong, in one line, whatever names are in it."""
    screen.clear()
    click.echo(shown.line(f"dbt-ripple: {message}"), err=True)


Fit = Literal["wrap", "cut"] | None
"""How a line is made to fit into the width of a terminal."""


def answer(lines: Iterable[str], *, fit: Fit = None, commands: bool = False) -> None:
    """Print the answer on stdout; a reader that has gone (``| head``) is not an error.

    Each line stays one line, whatever names are in it: what is not seen is shown, and a newline is
    not seen. Only styles of `shown.styled` are sent, and only to a terminal. Characters that the
    encoding of stdout lacks become ASCII.

    Args:
        lines: without newlines; text is one line.
        fit: how a line is made to fit into the width of a terminal. Anything else gets all of it.
        commands: whether lines may be commands to a workflow of GitHub.
    """
    colours, width = screen.has_colours(sys.stdout), screen.width_of(sys.stdout)
    printed: list[str] = []
    for said in [lines] if isinstance(lines, str) else lines:
        if width is None or fit is None:
            printed.append(shown.line(said, colours=colours, commands=commands))
        elif fit == "wrap":
            printed += shown.wrapped(said, width, colours=colours)
        else:
            printed.append(shown.cut(said, width, colours=colours))
    text = "\n".join(printed)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII_GUIDES).encode(encoding, "replace").decode(encoding)
    screen.clear()
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more when it ends, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


_ASCII_GUIDES = str.maketrans({"└": "`", "├": "|", "│": "|", "─": "-", "·": "-", "…": "~"})


SCHEMA_VERSION = 1
"""Of what ``--format json`` prints: raised where a field goes, or gets another name or meaning."""


def as_document(value: Any) -> list[str]:
    """What a command says, as its ``--format json`` prints it (`cli.documents` has the types)."""
    from dbt_ripple.cli.plain import plain

    return as_json({"schema_version": SCHEMA_VERSION, **plain(value)})


def as_json(value: Any) -> list[str]:
    """Indented JSON, as every ``--format json`` prints it, line by line."""
    return shown.json_text(value).split("\n")


def count(number: int, noun: str) -> str:
    """A number with its noun.

    Example:
        >>> count(1, "model"), count(2000, "model"), count(2, "analysis")
        ('1 model', '2,000 models', '2 analyses')
    """
    plural = f"{noun[:-2]}es" if noun.endswith("is") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
