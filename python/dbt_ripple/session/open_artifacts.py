"""Opens the artifacts of a project, and of others beside it.

`Setting` has what holds for all that is opened while a question is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.artifacts.paths import artifacts_folder
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

    In a process of our own (`setting.Setting.keeps`) the garbage collector is relaxed from here on.
    """
    from dbt_ripple.graph.target_folder import TargetFolder

    now = setting()
    if now.keeps is not None:
        relax_collector()
    with terminal.progress(f"reading {folder}"):
        target = TargetFolder(
            folder,
            cache,
            processes=threads,
            lower_many=lower_many,
            on_read=_was_read,
            sources_of=sources_of,
            late=late,
            like=like,
            hook_writes=written_by_hooks(now.project_dir),
        )
    if now.keeps is not None:
        now.keeps.append(target)  # see `cli.main`
    return target


def written_by_hooks(project_dir: Path | None) -> tuple[str, ...] | None:
    """What ``ripple.yml`` says of hooks that cannot be followed, as `Project.hook_writes`."""
    if project_dir is None or not (project_dir / "ripple.yml").is_file():
        return None
    from dbt_ripple.governance.ripple_yml import (
        hook_writes,  # here, because a warm run does without
    )

    return hook_writes(project_dir)


def _was_read(project: Project) -> None:
    if setting().keeps is not None:
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
