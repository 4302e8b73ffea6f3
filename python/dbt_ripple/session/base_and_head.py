"""`--state DIR`, `--base-ref REF`: the two sides that a command compares, or why it cannot.

The worst answer would be an empty one because nothing could be compared. So artifacts that are
missing, outdated, of another project or not compiled are refused here, with the command that
helps.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions, temporary_folder
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import count, detail, warn
from dbt_ripple.session.assets import DEFAULT, AssetOptions, with_declared
from dbt_ripple.session.open_artifacts import learn_secrets_of, open_target, written_by_hooks

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder

_MAKE_BASE = (
    "keep what `dbt build` leaves in target/ when the deployed commit is built, and give it by "
    "--state DIR; or let --base-ref REF compile that commit here"
)
_MAKE_HEAD = "run `dbt docs generate` (or `dbt compile`) on the whole project"
_SLACK = 2.0
"""Seconds a file may be newer than the manifest: file systems round, and dbt takes its time."""


@contextmanager
def open_sides(
    project_dir: Path,
    target_path: Path | None,
    state: Path | None,
    base_ref: str | None,
    options: DbtOptions,
    cache: Cache | None,
    threads: int | None,
    *,
    or_count: bool = False,
    assets: AssetOptions = DEFAULT,
) -> Iterator[tuple[TargetFolder, TargetFolder]]:
    """Base and head, from artifacts or (``base_ref``) compiled here; base's files stay meanwhile.

    Both have their declared and collected assets. Where head's write a source of dbt otherwise than
    base's, that source counts as changed.

    Args:
        project_dir: as for `load_sides`, like the next two and the last two.
        target_path: where head's artifacts are.
        state: base's artifacts.
        base_ref: a commit to compile base from, whatever the artifacts.
        options: how dbt is called.
        cache: where to look first.
        threads: processes that analyse what is not there.
        or_count: where dbt cannot compile what of head is neither compiled nor taken over from
            base, count that as changed, and say so; else it is refused.
        assets: what the options say of declared and collected assets.

    Raises:
        RippleError: as `load_sides`, `dbt_runner.base_ref.both_sides` and `read_assets`.
    """
    if base_ref is None:
        compile_others = partial(
            _compile_rest, project_dir, options, state, cache, or_count=or_count
        )
        with temporary_folder() as temporary:
            parse_anew = partial(parsed_anew, project_dir, options, cache, temporary)
            base, head = load_sides(
                project_dir, target_path, state, cache, threads, compile_others, parse_anew
            )
            folder = None if state is None else state_folder(project_dir, state)
            if folder is not None:
                base, head = _of_their_sessions(base, head, folder, project_dir, options)
            base.project_dir, head.project_dir = folder, project_dir
            yield base, with_declared(base, head, project_dir, assets, folder, None)
        return
    from dbt_ripple.dbt_runner.base_ref import both_sides
    from dbt_ripple.graph.target_folder import TargetFolder

    artifacts = artifacts_folder(project_dir, target_path)
    with both_sides(project_dir, base_ref, options, artifacts=artifacts, cache=cache) as sides:
        for side in (sides.base, sides.head):
            learn_secrets_of(side)
        for note in sides.notes:
            warn(note)
        detail(
            f"{count(len(sides.taken.taken), 'node')} compiled as for {base_ref}: nothing differs"
        )
        writes = written_by_hooks(project_dir)
        base, head = (
            TargetFolder.of(side.having(hook_writes=writes), cache, processes=threads)
            for side in (sides.base, sides.head)
        )
        base.project_dir, head.project_dir = sides.base_dir, project_dir
        yield base, with_declared(base, head, project_dir, assets, None, base_ref)


def _of_their_sessions(
    base: TargetFolder, head: TargetFolder, state: Path, project_dir: Path, options: DbtOptions
) -> tuple[TargetFolder, TargetFolder]:
    """Both sides with what differs of their sessions, where `load` or `build` kept base's beside the state."""
    from dbt_ripple.changes.comparability import with_session
    from dbt_ripple.dbt_runner.session_settings import FILE, settings_beside

    if not (state / FILE).is_file():
        detail(
            f"no {FILE} in {state}: whether profiles.yml has other settings there is not known "
            "(`dbt-ripple load` and `build` leave it)"
        )
        return base, head
    before, now = settings_beside(state, project_dir, options)
    if before == now:
        return base, head
    projects = with_session(base.project, head.project, before, now)
    return base.holding(projects[0]), head.holding(projects[1])


def state_folder(project_dir: Path, state: Path) -> Path:
    """Where ``--state`` is: relative to the project, as in dbt, or else to the current folder."""
    return (
        state if state.is_absolute() or not (project_dir / state).exists() else project_dir / state
    )


def _compile_rest(
    project_dir: Path,
    options: DbtOptions,
    state: Path | None,
    cache: Cache | None,
    base: Project,
    head: Project,
    *,
    or_count: bool,
) -> Project | None:
    """Head with what is not compiled of it compiled in a folder of its own; None where dbt cannot.

    Raises:
        RippleError: dbt cannot, and that is no answer (not `or_count`); says which command does.
    """
    from dbt_ripple.dbt_runner.compile_nodes import Unanswered
    from dbt_ripple.dbt_runner.kept_artifacts import ParsedBefore
    from dbt_ripple.dbt_runner.run_selection import compile_against

    assert state is not None
    project_dir = project_dir.resolve()
    uncompiled = head.uncompiled()
    unanswered = Unanswered()
    with temporary_folder() as folder:
        try:
            dbt = Dbt(project_dir, folder, options, log_level="none")
            parsed = ParsedBefore(project_dir, options, Path(head.target_path), cache)
            folder_of_base = state_folder(project_dir, state)
            compiled = compile_against(
                base,
                head,
                [n.unique_id for n in uncompiled],
                dbt,
                folder_of_base,
                parsed,
                unanswered,
            )
            if unanswered.note:
                warn(unanswered.note)
            return compiled
        except RippleError as error:
            if or_count:
                one = len(uncompiled) == 1
                warn(
                    f"{count(len(uncompiled), 'node')} of head {'is' if one else 'are'} not compiled, and dbt "
                    f"cannot compile here ({error.what}): {'it counts' if one else 'they count'} as changed; "
                    f"compile by {_compiles(uncompiled)}"
                )
                return None
            raise RippleError(
                f"{count(len(uncompiled), 'node')} of head {'is' if len(uncompiled) == 1 else 'are'} parsed but "
                f"not compiled, and could not be compiled here: {error.what} ({error.where})",
                str(Path(head.target_path) / "manifest.json"),
                "compile the project: `dbt compile`",
            ) from error


def parsed_anew(
    project_dir: Path, options: DbtOptions, cache: Cache | None, folder: Path, target: Path
) -> Path:
    """A folder with the project's artifacts as its files are now, parsed and not compiled.

    What the catalog of ``target`` lists is older than they are.

    Raises:
        RippleError: dbt cannot.
    """
    from dbt_ripple.dbt_runner.kept_artifacts import ParsedBefore

    project_dir = project_dir.resolve()
    dbt = Dbt(project_dir, folder, options, log_level="none")
    ParsedBefore(project_dir, options, target, cache).parse(dbt)
    with suppress(FileNotFoundError):
        shutil.copyfile(target / "catalog.json", folder / "catalog.json")
    return folder


def _complete(
    base: TargetFolder,
    head: TargetFolder,
    compile_others: Callable[[Project, Project], Project | None] | None,
) -> TargetFolder | None:
    """Head with base's compiled SQL where it is proved to be head's, too; None if it is nowhere."""
    from dbt_ripple.session.complete_artifacts import take_over

    taken = take_over(base.project, head.project, "base")
    project = taken.head
    if taken.left_to_compile and compile_others is not None:
        project = compile_others(base.project, project) or project
    return head.holding(project) if project is not head.project else None


def _compiles(nodes: Sequence[Node]) -> str:
    """The command that compiles some nodes."""
    names = [".".join(node.fqn) for node in nodes]
    if len(names) <= _NAMES:
        return f"`dbt compile --select {' '.join(names)}`"
    return "`dbt compile` (or --run, which compiles only those)"


_NAMES = 25
"""Names that still fit into a command somebody copies."""


def load_sides(
    project_dir: Path,
    target_path: Path | None,
    state: Path | None,
    cache: Cache | None,
    threads: int | None,
    compile_rest: Callable[[Project, Project], Project | None] | None = None,
    parse_anew: Callable[[Path], Path] | None = None,
) -> tuple[TargetFolder, TargetFolder]:
    """Read base from ``--state`` and head from the target folder.

    Args:
        project_dir: the project.
        target_path: where its artifacts are, as in `artifacts_folder`.
        state: base's artifacts; relative to the project, as in dbt, or else to the current folder.
        cache: where to look first.
        threads: processes that analyse what is not there.
        parse_anew: parses head, given the folder of artifacts that are not there, as after a checkout,
            or not of its files any more, and says where.
        compile_rest: compiles, given both, what of head is left uncompiled; None where it cannot.

    Returns:
        Base and head. What dbt has not compiled of head has base's compiled SQL where that is
        proved to be the same; the others are printed, with the command that compiles them.

    Raises:
        RippleError: one of them is missing, not compiled or cannot be read, they are the same
            folder, or head's artifacts are not of its files any more and dbt cannot parse these.
    """
    if state is None:
        raise RippleError("nothing to compare with", "--state", _MAKE_BASE)
    target = artifacts_folder(project_dir, target_path)
    folder = state_folder(project_dir, state)
    _check_folder(folder, "--state", _MAKE_BASE)
    if not target.is_dir() and not (project_dir / "dbt_project.yml").is_file():
        raise RippleError(
            "no dbt_project.yml and no artifacts in this folder",
            str(project_dir.resolve()),
            "name the project by --project-dir",
        )
    a_checkout = target_path is None and (project_dir / "dbt_project.yml").is_file()
    if a_checkout and parse_anew is not None and not (target / "manifest.json").is_file():
        try:
            target, parse_anew = parse_anew(target), None
        except RippleError as error:
            raise RippleError(
                f"has no manifest.json, and dbt cannot parse the project here ({error.what})",
                str(target),
                f"{error.fix}, or {_MAKE_HEAD}",
            ) from error
    _check_folder(target, "--target-path" if target_path else "", _MAKE_HEAD)
    if folder.resolve() == target.resolve():
        raise RippleError(
            "is the project's own target folder, so that both sides would be the same",
            str(state),
            _MAKE_BASE,
        )
    listed = [side for side in (target, folder) if (side / "catalog.json").is_file()]
    # Where one side has a catalog only, as in CI, where nobody waits for `dbt docs generate`, both
    # know the columns of the sources by it, and nothing more.
    sources_of = listed[0] if len(listed) == 1 else None
    base = open_target(folder, cache, threads, sources_of=sources_of, late=True)
    check_side(base.project, "base", _MAKE_BASE)
    head = open_target(target, cache, threads, sources_of=sources_of, late=True, like=base)
    if newer := next(outdated(head.project, project_dir), None):
        why = ""
        if parse_anew is not None:
            try:
                anew = parse_anew(target)
            except RippleError as error:
                why = f", and dbt cannot parse it here ({error.what})"
            else:
                return load_sides(project_dir, anew, state, cache, threads, compile_rest)
        raise RippleError(
            f"is older than the project: {newer}{why}",
            str(target / "manifest.json"),
            f"{_MAKE_HEAD} again",
        )
    from dbt_ripple.changes.compiled_sql_reuse import as_not_deferred
    from dbt_ripple.changes.dbt_vars import warning_flags
    from dbt_ripple.graph.target_folder import TargetFolder

    own_names = as_not_deferred(base.project, head.project)
    if own_names is not head.project:
        head = TargetFolder.of(own_names, head.cache, processes=head.processes)
    if not head.project.run_args:
        flags, there = warning_flags(project_dir), project_dir.resolve()
        head = head.holding(head.project.having(warning_flags=flags, project_dir=there))
    if not head.project.uncompiled():
        return base, head
    completed = _complete(base, head, compile_rest)
    if completed is None:
        check_side(head.project, "head", _MAKE_HEAD)
    return base, completed or head


def check_side(project: Project, side: str, fix: str) -> None:
    """Refuse a side of which dbt has compiled nothing; say it where it has compiled a part.

    Raises:
        RippleError: there are SQL models and none has compiled SQL.
    """
    models = [node for node in project.of_type("model") if not node.is_python]
    missing = [node for node in models if node.compiled_code is None]
    if not missing:
        return
    where = str(Path(project.target_path) / "manifest.json")
    if len(missing) == len(models):
        raise RippleError(
            f"dbt has parsed {side} but not compiled it: none of its {len(models)} SQL models has "
            "compiled SQL",
            where,
            fix,
        )
    warn(
        f"{where}: {count(len(missing), 'model')} of {len(models)} on {side} not compiled "
        f"({', '.join(node.name for node in missing[:3])}{', ...' if len(missing) > 3 else ''}), "
        "taken as changed unless all that decides their SQL is the same: `dbt compile` on the whole "
        "project mends it"
    )


def outdated(project: Project, project_dir: Path) -> Iterator[str]:
    """The project's files that its manifest has not seen as they are, and what is with each.

    What dbt has read is known by the checksums it keeps: of every file in partial_parse.msgpack, where that
    is the manifest's, and of nodes and macros in the manifest. Only of what has none there, as YAML without
    partial_parse.msgpack, the time tells.
    """
    generated_at = project.metadata.generated_at
    if generated_at is None or not (project_dir / "dbt_project.yml").is_file():
        return
    from dbt_ripple.changes.dbt_vars import FileSeen, files_seen

    limit = generated_at.timestamp() + _SLACK
    seen = files_seen(project)
    folders: dict[str, None] = {}
    for path, sums in seen.items():
        folder, inside, _ = path.partition("/")
        if inside and folder != ".":  # dbt gives ./dbt_project.yml as the file of an on-run hook
            folders[folder] = None
        try:
            with open(f"{project_dir}/{path}", "rb") as opened:  # noqa: PTH123  (Path takes ten times as long)
                content = opened.read()
        except FileNotFoundError:
            yield f"{path} is gone"
            continue
        except OSError:
            continue
        holds = sums.holds(content)
        if holds is None and (project_dir / path).stat().st_mtime > limit:
            yield f"{path} was written after it"
        elif holds is False:
            yield f"{path} is not as dbt has read it"
    for file in [project_dir / "dbt_project.yml", *_files(project_dir, folders, limit)]:
        path = file.relative_to(project_dir).as_posix()
        if seen.get(path, FileSeen()) == FileSeen() and file.stat().st_mtime > limit:
            yield f"{path} was written after it"


def _files(project_dir: Path, folders: Iterable[str], limit: float) -> Iterator[Path]:
    """The files of a project that were written after a moment."""
    folders_to_read = [str(project_dir / folder) for folder in reversed(list(folders))]
    while folders_to_read:
        try:
            entries = list(os.scandir(folders_to_read.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    folders_to_read.append(entry.path)
            elif entry.name.endswith((".sql", ".yml", ".yaml", ".py", ".csv")):
                with suppress(OSError):
                    if entry.stat().st_mtime > limit:
                        yield Path(entry.path)


def _check_folder(folder: Path, option: str, fix: str) -> None:
    where = f"{option} {folder}".strip()
    if not folder.is_dir():
        raise RippleError("no such folder" if not folder.exists() else "not a folder", where, fix)
    if not (folder / "manifest.json").is_file():
        raise RippleError("no manifest.json in this folder", where, fix)
