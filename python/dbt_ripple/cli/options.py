"""The options that all commands share, and how commands open a project and the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.output import warn
from dbt_ripple.secrets import learn_from
from dbt_ripple.tuning import keep_all, relax_collector

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.joined_projects import JoinedProjects
    from dbt_ripple.graph.query_cache import LowerMany
    from dbt_ripple.graph.target_folder import TargetFolder

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
        callback=_existing,
        help="The dbt project.",
    )(command)


def _existing(context: click.Context, option: click.Parameter, folder: Path) -> Path:
    """The project's folder: a missing folder is reported before all that would be missing in it."""
    if not context.resilient_parsing and not folder.is_dir():
        what = "is not a folder" if folder.exists() else "no such folder"
        source = context.get_parameter_source(option.name or "")
        given = source is click.core.ParameterSource.ENVIRONMENT and "DBT_PROJECT_DIR"
        where = f"{given or '--project-dir'} {folder}"
        raise RippleError(what, where, "name the folder of dbt_project.yml")
    return folder


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
    """Add ``--format``, passed on as ``style``: one of some styles, by default the first."""
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
    with kept_open(cache_dir, no_cache) as cache, terminal.progress("analysing"):
        yield cache


@contextmanager
def kept_open(cache_dir: Path | None, no_cache: bool) -> Iterator[Cache | None]:
    """The cache, for a process that answers again and again."""
    if no_cache:
        yield None
        return
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.jinja.kept import keep_in

    with Cache(cache_dir, warn=warn) as cache:
        keep_in(cache)
        yield cache


def open_target(
    folder: Path,
    cache: Cache | None,
    threads: int | None,
    lower_many: LowerMany | None = None,
    sources_of: Path | None = None,
    late: bool = False,
    like: TargetFolder | None = None,
) -> TargetFolder:
    """The artifacts in a folder; what had to be left out is printed on stderr, once they are decoded.

    Arguments are those of `graph.target_folder.TargetFolder`.

    From here on the process' garbage collector is relaxed.
    """
    from dbt_ripple.graph.target_folder import TargetFolder

    context = click.get_current_context(silent=True)
    project_dir = context.params.get("project_dir") if context is not None else None
    relax_collector()
    with terminal.progress(f"reading {folder}"):
        target = TargetFolder(
            folder,
            cache,
            processes=threads,
            lower_many=lower_many,
            on_read=_freeze,
            sources_of=sources_of,
            late=late,
            like=like,
            hook_writes=written_by_hooks(project_dir),
        )
    if context is not None and isinstance(context.obj, list):
        context.obj.append(target)  # see `cli.main`
    return target


def written_by_hooks(project_dir: Path | None) -> tuple[str, ...] | None:
    """What ``ripple.yml`` says of hooks that cannot be followed, as `Project.hook_writes`."""
    if project_dir is None or not (project_dir / "ripple.yml").is_file():
        return None
    from dbt_ripple.governance.ripple_yml import (
        hook_writes,  # here, because a warm run does without
    )

    return hook_writes(project_dir)


def _freeze(project: Project) -> None:
    keep_all()
    learn_secrets_of(project)
    print_notes(project.notes, len(project.notes))


def learn_secrets_of(project: Project) -> None:
    """Print no value of an environment variable that the project's Jinja reads."""
    nodes = project.nodes.values()
    texts = (
        *(node.raw_code for node in nodes),
        *(str(node.unrendered_config) for node in nodes if node.unrendered_config),
        *(macro.macro_sql for macro in project.macros.values()),
    )

    def shown() -> set[str]:
        places = ((n.schema, n.database, n.alias, n.identifier, n.name) for n in nodes)
        return {name for place in places for name in place if name}

    learn_from(texts, shown)


def other_projects_option(what: str) -> Callable[[_Command], _Command]:
    """Add ``--other-project``, passed on as ``others``, for `open_joined`.

    Args:
        what: what the command does with them, as the help says it.
    """
    return click.option(
        "--other-project",
        "others",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        help=f"The artifacts of another dbt project, or its folder: {what}. May be repeated.",
    )


def states_option(what: str) -> Callable[[_Command], _Command]:
    """Add ``--state`` that may be repeated, passed on as ``states``.

    Args:
        what: which folders these are, as the help says it.
    """
    return click.option(
        "--state",
        "states",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        help=what,
    )


def open_joined(
    target: TargetFolder,
    others: Sequence[Path],
    cache: Cache | None,
    threads: int | None,
    formerly: Project | None = None,
) -> JoinedProjects | None:
    """A project and those that ``--other-project`` names; None where it names none.

    What cannot be joined is printed on stderr.

    Raises:
        RippleError: there are no artifacts in a folder.
    """
    if not others:
        return None
    from dbt_ripple.graph.joined_projects import JoinedProjects, Member

    members = [Member(target.project, target.analysis)]
    for folder in others:
        if not (folder / "manifest.json").is_file() and (folder / "dbt_project.yml").is_file():
            folder = artifacts_folder(folder, None)
        if not (folder / "manifest.json").is_file():
            what = "no manifest.json in this folder" if folder.is_dir() else "no such folder"
            raise RippleError(
                what, f"--other-project {folder}", "name a folder of artifacts, or of a dbt project"
            )
        other = open_target(folder, cache, threads)
        members.append(Member(other.project, other.analysis))
    joined = JoinedProjects(members, formerly, cache)
    for note in joined.notes:
        warn(note)
    return joined


def print_notes(notes: Sequence[str], of: int) -> None:
    """Print on stderr what the reader had to leave out or assume, up to a few notes."""
    from dbt_ripple.graph.analysis_coverage import NOTES_SHOWN

    for note in notes[:NOTES_SHOWN]:
        warn(note)
    if of > NOTES_SHOWN:
        warn(f"and {of - NOTES_SHOWN} more notes of this kind")
