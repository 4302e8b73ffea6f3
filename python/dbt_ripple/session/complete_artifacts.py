"""Artifacts of which dbt has compiled a part, completed: one way, for every command.

``dbt run --select x``, and a build that a failed test has cut short, leave a manifest in which the other
models have no compiled SQL. What is missing is taken, in this order,

1. from other artifacts at hand: those of ``--state``, and the last complete ones of this project, where all
   that decides a text is proved to be the same (`changes.compiled_sql_reuse`);
2. from dbt, which compiles the rest into a folder of its own, if the files are still those of the manifest.

What is missing after that is refused: a model that is not compiled may read anything. With ``--partial`` it
is named instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import count, detail, warn
from dbt_ripple.session.open_artifacts import open_target, setting

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
    from dbt_ripple.changes.compiled_sql_reuse import ReusedSql
    from dbt_ripple.dbt_runner.invoke import DbtOptions
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.target_folder import TargetFolder

_BUILT: Final = ("model", "snapshot")


def open_complete(
    folder: Path, cache: Cache | None, threads: int | None, **how: Any
) -> TargetFolder:
    """`open_artifacts.open_target`, and `complete`, whose other arguments these are."""
    return complete(open_target(folder, cache, threads), cache, **how)


def complete(
    target: TargetFolder,
    cache: Cache | None,
    *,
    project_dir: Path | None = None,
    options: DbtOptions | None = None,
    others: Iterable[Project] = (),
    tests: bool = False,
) -> TargetFolder:
    """Artifacts with the SQL of what dbt has not compiled of them.

    Args:
        target: the artifacts.
        cache: in which the last complete artifacts of a project are kept.
        project_dir: the dbt project that they are of; None of artifacts that were kept.
        options: how dbt is called; by default as by the command that wrote the artifacts.
        others: artifacts of the same project, at other states.
        tests: whether what tests read counts, too.

    Raises:
        RippleError: there are models (or tests, if they count) whose SQL is not known, and not ``--partial``.
    """
    from dbt_ripple.artifacts import check_compiled
    from dbt_ripple.dbt_runner.invoke import temporary_folder
    from dbt_ripple.dbt_runner.kept_artifacts import LastComplete

    kept = LastComplete(project_dir, cache) if project_dir is not None else None

    def missing(project: Project) -> list[Node]:
        return [n for n in project.uncompiled() if tests or n.resource_type in _BUILT]

    if not missing(target.project):
        if kept is not None:
            kept.keep(target.content, target.project, target.project)
        return target
    project, why = target.project, ""
    with temporary_folder() as temporary:
        for other in others:
            if not missing(project):
                break
            if other.name == project.name:
                project = take_over(other, project, other.target_path).head
        if kept is not None and missing(project) and (last := kept.read(temporary)) is not None:
            project = take_over(last, project, "the last complete run").head
    if project_dir is not None and missing(project):
        try:
            project = _compiled_here(project, project_dir, options, cache)
        except RippleError as error:
            why = f" ({error.what})"
    if left := missing(project):
        names = ", ".join(n.display_name for n in left[:3]) + (", ..." if len(left) > 3 else "")
        all_ = sum(1 for n in project.of_type("model") if not n.is_python)
        here = (
            f", and dbt cannot compile {'it' if len(left) == 1 else 'them'} here{why}"
            if why
            else ""
        )
        what = f"{count(len(left), 'node')} of a project of {count(all_, 'model')} not compiled ({names}){here}"
        where = str(target.folder / "manifest.json")
        if not setting().partial:
            check_compiled(project)
            raise RippleError(
                f"{what}: what they read is not known",
                where,
                "compile the whole project by `dbt compile`, or answer without them by --partial",
            )
        warn(f"{where}: {what}: they may read anything")
    elif kept is not None:
        kept.keep(target.content, target.project, project)
    return target.holding(project)


def take_over(other: Project, project: Project, named: str) -> ReusedSql:
    """A project with another state's compiled SQL, where it is proved to be its own, too."""
    from dbt_ripple.changes.compiled_sql_reuse import reuse_compiled_sql_of_artifacts

    taken = reuse_compiled_sql_of_artifacts(other, project)
    if taken.taken:
        detail(f"{count(len(taken.taken), 'node')} compiled as for {named}: nothing differs")
    return taken


def _compiled_here(
    project: Project, project_dir: Path, options: DbtOptions | None, cache: Cache | None
) -> Project:
    """A project with what is missing compiled by dbt.

    Raises:
        RippleError: it cannot, or the files are not those of the manifest any more.
    """
    from dbt_ripple.dbt_runner.compile_nodes import Unanswered, compile_nodes
    from dbt_ripple.dbt_runner.invoke import Dbt, temporary_folder
    from dbt_ripple.dbt_runner.kept_artifacts import ParsedBefore

    project_dir = project_dir.resolve()
    if not (project_dir / "dbt_project.yml").is_file():
        raise RippleError("there is no dbt_project.yml", str(project_dir), "")
    options = _as_it_was_called(project, options)
    unanswered = Unanswered()
    with temporary_folder() as folder:
        dbt = Dbt(project_dir, folder, options, log_level="none")
        manifest = ParsedBefore(project_dir, options, Path(project.target_path), cache).parse(dbt)
        if changed := _other_code(project, manifest):
            raise RippleError(f"{changed} is not as it was then", str(project_dir), "")
        uncompiled = [node.unique_id for node in project.uncompiled()]
        compiled = compile_nodes(
            *(dbt, manifest, project, uncompiled, "--no-defer"), unanswered=unanswered
        )
    if unanswered.note:
        warn(unanswered.note)
    return compiled


def _as_it_was_called(project: Project, options: DbtOptions | None) -> DbtOptions:
    """With the target and the vars of the command that wrote the artifacts, where no others are given."""
    from dbt_ripple.dbt_runner.invoke import DbtOptions

    same = project.run_invocation and project.run_invocation == project.metadata.invocation_id
    args = project.run_args if same else {}
    variables = args.get("vars")
    options = options or DbtOptions()
    return replace(
        options,
        target=options.target or args.get("target"),
        profile=options.profile or args.get("profile"),
        variables=options.variables or (json.dumps(variables) if variables else None),
    )


def _other_code(project: Project, manifest: Any) -> str:
    """A node or macro that dbt now reads otherwise, or that is elsewhere; empty if there is none."""
    for unique_id, node in project.nodes.items():
        if node.resource_type in ("model", "snapshot", "seed", "test"):
            now = manifest.nodes.get(unique_id)
            if (
                now is None
                or (now.raw_code or "") != (node.raw_code or "")
                or (now.relation_name or None) != (node.relation_name or None)
            ):
                return node.display_name
    for unique_id, macro in project.macros.items():
        now = manifest.macros.get(unique_id)
        if now is None or now.macro_sql != macro.macro_sql:
            return f"macro {macro.name}"
    return ""
