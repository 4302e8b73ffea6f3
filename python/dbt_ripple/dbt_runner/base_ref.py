"""`--base-ref REF`: compiles both sides of a comparison on the spot, under the same conditions.

Head is the working copy of the project, uncommitted changes included. Base is the same project at
a commit, in a git worktree in a temporary folder that is always removed. The dbt of this process
compiles both with the same profile, target, vars and environment, into target folders of their
own. The checkout, index, stash, target folder, dbt_packages, logs and warehouse are not changed.

* ``is_incremental()`` is false on both sides (``--full-refresh``), so the answer does not depend
  on what happens to be built, nor on a model that is new or has another name on head. The branch
  that is not compiled counts by its code (rule 7). For a model that forbids a full refresh the
  warehouse decides, and it is the same one for both sides.
* On-run hooks are not rendered: dbt would render them when it compiles, and many of them act.
* Jinja that queries the warehouse while it compiles (rule 11) does so, as in every compile. It is
  the same warehouse for both sides, also if the profile names a file by a path, which dbt takes as
  relative to the working directory and not to the project.
* Nodes of head that provably compile to base's SQL are not compiled again
  (:mod:`dbt_ripple.changes.compiled_sql_reuse`). Nor is base at a commit that was compiled before
  (:mod:`dbt_ripple.dbt_runner.kept_artifacts`), except for what asks the warehouse.
* Where dbt cannot connect, what asks the warehouse is not compiled on either side, and compared by
  its code (:mod:`dbt_ripple.dbt_runner.compile_nodes`).
* If packages.yml and its lock are the same, base uses the packages that are installed here.
* The columns of sources come from the project's catalog.json, if there is one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from ruamel.yaml.error import YAMLError

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.artifacts.paths import text_of_file
from dbt_ripple.artifacts.read_yaml import check_bounds, parse_yaml
from dbt_ripple.artifacts.source_locations import PROJECT_FILE
from dbt_ripple.changes.comparability import with_macro_order, with_session, with_variables
from dbt_ripple.changes.compile_inputs import CompileConditions
from dbt_ripple.changes.compiled_sql_reuse import ReusedSql, asked_again, reuse_compiled_sql
from dbt_ripple.changes.dbt_vars import vars_by_name, warning_flags
from dbt_ripple.dbt_runner.compile_nodes import Unanswered, compile_nodes
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions, temporary_folder
from dbt_ripple.dbt_runner.kept_artifacts import KeptBase, ParsedBefore
from dbt_ripple.dbt_runner.session_settings import profile_named_by, settings_in
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.file_reads import with_files
from dbt_ripple.graph.git import run_git
from dbt_ripple.graph.target_folder import sources_of_catalog
from dbt_ripple.jinja.facts import ANY
from dbt_ripple.tuning import interrupted_by_term

_OVERRIDES: Final = "require_explicit_package_overrides_for_builtin_materializations"
_TARGET: Final = "target"
_PACKAGE_FILES: Final = ("packages.yml", "dependencies.yml", "package-lock.yml")
_AS_BUILT_ANEW: Final = ("--full-refresh", "--no-defer")


@dataclass(frozen=True)
class CompiledSides:
    """Both sides of a comparison.

    Attributes:
        base: compiled, all of it.
        head: with base's compiled SQL where that is proved to be head's, too.
        taken: which those nodes are; the rest was compiled.
        notes: what the user should know of the comparison, one sentence each.
        base_dir: the project's files as they are at base; they are there as long as both sides are.
    """

    base: Project
    head: Project
    taken: ReusedSql
    notes: list[str]
    base_dir: Path


@contextmanager
def both_sides(
    project_dir: Path,
    ref: str,
    options: DbtOptions,
    *,
    artifacts: Path | None = None,
    cache: Cache | None = None,
) -> Iterator[CompiledSides]:
    """Compile a project as it is at ``ref`` and as it is here.

    Base's files (seeds among them) are there until the context ends.

    Args:
        project_dir: the dbt project, which may be any folder of a git repository.
        ref: what git calls a commit: a branch, a tag, a hash.
        options: how dbt is called, on both sides.
        artifacts: the project's own target folder, in which a catalog.json may be that knows the
            columns of the sources, and what dbt has parsed.
        cache: where both sides are looked for, as far as they were parsed or compiled before.

    Raises:
        RippleError: there is no repository, no such ref or no project at it; or dbt failed.
    """
    project_dir = project_dir.resolve()
    if not (project_dir / PROJECT_FILE).is_file():
        raise RippleError(
            f"no {PROJECT_FILE} in this folder", str(project_dir), "name it by --project-dir"
        )
    options = options.resolved(project_dir)
    _check_yaml(project_dir)
    with (
        interrupted_by_term(),
        temporary_folder() as folder,
        worktree(project_dir, ref, folder / "base") as (base_dir, notes),
    ):
        dbt_of_head = Dbt(
            project_dir, folder / "head-target", options, log_level="none", side="head"
        )
        own = artifacts or project_dir / _TARGET
        manifest = ParsedBefore(project_dir, options, own, cache).parse(dbt_of_head)
        config = connection_config(manifest)
        dbt_of_base = Dbt(base_dir, folder / "base-target", options, log_level="none", side="base")
        deps = partial(_refuse_deps, ref) if options.no_deps else partial(dbt_of_base, "deps")
        linked = _provide_packages(project_dir, base_dir, config, deps)
        kept = KeptBase(
            base_dir,
            folder,
            dbt_of_base.target_path,
            _tree(base_dir),
            options,
            config,
            base_dir / config.packages_install_path,
            cache
            if options.profile or profile_named_by(base_dir) == profile_named_by(project_dir)
            else None,
        )
        unanswered = Unanswered()
        head = read_project(dbt_of_head.target_path)
        base, asking = kept.read() or (_compile_base(dbt_of_base, kept, unanswered), [])
        base_files, head_files = (
            _project_files(d, config.packages_install_path) for d in (base_dir, project_dir)
        )
        conditions = CompileConditions(
            variables=linked and _variables(head_files) == _variables(base_files),
            environment=True,
            target=True,
            command=True,
            introspection=True,
            warehouse=True,
        )
        if asking:
            same_file = text_of_file(base_dir / PROJECT_FILE) == text_of_file(
                project_dir / PROJECT_FILE
            )
            same = conditions.variables and same_file
            again = asked_again(base, head, asking) if same else asking
            base = base.with_compiled(dict.fromkeys(again))
        taken = reuse_compiled_sql(base, head, conditions)
        # Both sides are asked at one time.
        base = base.with_compiled({u: None for u in asking if u in taken.left_to_compile})
        head = compile_nodes(
            *(dbt_of_head, manifest, taken.head, taken.left_to_compile, *_AS_BUILT_ANEW),
            unanswered=unanswered,
        )
        base = _ask_again(base, head, conditions, dbt_of_base, unanswered)
        if unanswered.note:
            notes.append(unanswered.note)
        # The environment is this process's.
        environment = msgspec.structs.replace(base.metadata, env=head.metadata.env)
        base, head = (
            _with_source_columns(side, artifacts).having(same_environment=True)
            for side in (base.having(metadata=environment), head)
        )
        base = base.having(run_args={"which": "compile", **warning_flags(base_dir)})
        head = head.having(warning_flags=warning_flags(project_dir))
        values = (_values(files, options.variables) for files in (base_files, head_files))
        base, head = with_variables(base, head, *values)
        base, head = with_session(base, head, *session_settings(base_dir, project_dir, options))
        orders = (_macro_order(d) for d in (base_dir, project_dir))
        base, head = with_macro_order(base, head, *orders)
        python_path = getattr(config.credentials, "module_paths", None) or ()
        tops = _tops(project_dir, base_dir)
        sides = with_files((base, head), tops, (project_dir, Path.cwd().resolve()), python_path)
        yield CompiledSides(*sides, taken, notes, base_dir)


def _compile_base(dbt: Dbt, kept: KeptBase, unanswered: Unanswered) -> Project:
    """Base, parsed and compiled as far as dbt can, and kept."""
    manifest = dbt.parse()
    base = read_project(dbt.target_path)
    unique_ids = [node.unique_id for node in base.uncompiled()]
    base = compile_nodes(dbt, manifest, base, unique_ids, *_AS_BUILT_ANEW, unanswered=unanswered)
    kept.keep(base)
    return base


def _ask_again(
    base: Project, head: Project, conditions: CompileConditions, dbt: Dbt, unanswered: Unanswered
) -> Project:
    """Base with what asks the warehouse as that answers now: as on head, or else compiled on base."""
    if not base.uncompiled():
        return base
    answered = reuse_compiled_sql(head, base, conditions)
    if not answered.left_to_compile or unanswered.why:
        return answered.head
    manifest = dbt.parse(write=False)
    unique_ids = answered.left_to_compile
    return compile_nodes(
        dbt, manifest, answered.head, unique_ids, *_AS_BUILT_ANEW, unanswered=unanswered
    )


def _tree(base_dir: Path) -> str:
    """Git's hash of all files of a commit, and the project's folder among them."""
    tree, inside = (_git(base_dir, "rev-parse", what) for what in ("HEAD^{tree}", "--show-prefix"))
    return f"{tree}:{inside}"


def connection_config(manifest: Any) -> Any:
    """The configuration of the adapter that dbt registered when it parsed this manifest."""
    from dbt.adapters.factory import get_adapter_by_type

    adapter: Any = get_adapter_by_type(manifest.metadata.adapter_type)
    return adapter.config


_SUSPICIOUS: Final = re.compile(r"[:\s\[,-]\*\w|(?:[\[{]\s*){50}|(?:[-?] +){50}")
"""Aliases, and lists or mappings in each other: of such a text the bounds are checked."""
_SKIPPED: Final = frozenset({"dbt_packages", "logs", "node_modules", "target"})


def _check_yaml(project_dir: Path) -> None:
    """Refuse YAML that dbt would read for hours, or until the memory is gone.

    Raises:
        RippleError: a file is too deep, or too large with its aliases.
    """
    for folder, folders, files in os.walk(project_dir):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            if name.endswith((".yml", ".yaml")):
                file = Path(folder, name)
                text = text_of_file(file)
                if text is not None and _SUSPICIOUS.search(text):
                    with suppress(YAMLError, ValueError, RecursionError):  # dbt says it better
                        check_bounds(text, str(file))


# --- the worktree ----------------------------------------------------------------------------------


@contextmanager
def worktree(project_dir: Path, ref: str, folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """The project at a commit: its folder in a new worktree, and notes about the commit."""
    top = _git(project_dir, "rev-parse", "--show-toplevel")
    if top is None:
        raise RippleError(
            f"not in a git repository ({_why_no_git(project_dir)})",
            str(project_dir),
            "--base-ref needs one; without it, compare with artifacts by --state",
        )
    commit = _git(project_dir, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if commit is None:
        shallow = _git(project_dir, "rev-parse", "--is-shallow-repository") == "true"
        raise RippleError(
            f"git knows no commit {ref!r} here" + (" (this clone is shallow)" if shallow else ""),
            str(project_dir),
            "fetch it first: `git fetch origin`; in CI check out with the whole history",
        )
    inside = _git(project_dir, "rev-parse", "--show-prefix") or ""
    if _git(Path(top), "cat-file", "-e", f"{commit}:{inside}{PROJECT_FILE}") is None:
        raise RippleError(
            f"no dbt project at {ref}: it has no {inside}{PROJECT_FILE}",
            str(project_dir),
            "name a ref at which the project is in the same folder",
        )
    notes = []
    behind = _git(project_dir, "rev-list", "--count", f"HEAD..{commit}")
    if behind and behind != "0":
        notes.append(
            f"{ref} has {behind} commits that are not in this branch, and they count as undone; "
            f"`--base-ref $(git merge-base HEAD {ref})` compares with where it branched off"
        )
    try:
        result = _run_git(
            project_dir, "worktree", "add", "--quiet", "--detach", str(folder), commit
        )
        if result.returncode:
            raise RippleError(
                f"git could not check out {ref} ({_one_line(result.stderr)})",
                str(project_dir),
                "mend that and try again",
            )
        yield folder / inside, notes
    finally:
        _run_git(project_dir, "worktree", "remove", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        if str(folder) in (_git(project_dir, "worktree", "list", "--porcelain") or ""):
            _run_git(project_dir, "worktree", "prune")


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says; None where it fails."""
    run = _run_git(folder, *arguments)
    return run.stdout.decode(errors="replace").strip() if run.returncode == 0 else None


def _run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return run_git(folder, *arguments, timeout=None)
    except OSError as error:
        raise RippleError(f"git cannot be run ({error.strerror})", "PATH", "install git") from error


def _why_no_git(folder: Path) -> str:
    return _one_line(_run_git(folder, "rev-parse", "--show-toplevel").stderr)


def _one_line(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").removeprefix("fatal: ").split())[:300]


# --- what base needs of here -----------------------------------------------------------------------


def _provide_packages(
    project_dir: Path, base_dir: Path, config: Any, deps: Callable[[], Any]
) -> bool:
    """Give base its packages; True where they are those that are installed here.

    Raises:
        RippleError: `dbt deps` failed.
    """
    if not any((base_dir / name).exists() for name in _PACKAGE_FILES[:2]):
        return not any((project_dir / name).exists() for name in _PACKAGE_FILES[:2])
    if _same_packages(project_dir, base_dir) and _link_packages(
        project_dir, base_dir, config.packages_install_path
    ):
        return True
    deps()
    return False


def _refuse_deps(ref: str) -> None:
    raise RippleError(
        f"the packages of {ref} are others than those that are installed here",
        "--no-deps",
        "let somebody look at what packages.yml names now, and leave --no-deps out",
    )


def _same_packages(project_dir: Path, base_dir: Path) -> bool:
    for name in _PACKAGE_FILES:
        here, there = project_dir / name, base_dir / name
        if name == "package-lock.yml" and not there.exists():
            continue  # not under version control: then packages.yml is what they agreed on
        if text_of_file(here) != text_of_file(there):
            return False
    return True


def _link_packages(project_dir: Path, base_dir: Path, install_path: str) -> bool:
    """Link the installed packages into base; False where that would not give it its own."""
    installed, wanted = project_dir / install_path, base_dir / install_path
    if wanted.exists():
        return True  # under version control
    if not installed.is_dir():
        return False
    wanted.mkdir(parents=True)
    top, base_top = _tops(project_dir, base_dir)
    for package in installed.iterdir():
        source = package.resolve()
        if package.is_symlink() and source.is_relative_to(top):
            # A local package of the repository: base has one of its own.
            source = base_top / source.relative_to(top)
            if not source.is_dir():
                shutil.rmtree(wanted)
                return False
        (wanted / package.name).symlink_to(source)
    return True


def _tops(project_dir: Path, base_dir: Path) -> tuple[Path, Path]:
    return tuple(  # type: ignore[return-value]
        Path(_git(folder, "rev-parse", "--show-toplevel") or folder).resolve()
        for folder in (project_dir, base_dir)
    )


def _project_files(project_dir: Path, install_path: str) -> dict[str, Path]:
    """The project's folder, under no name, and those of its packages by the names of the folders."""
    packages = sorted((project_dir / install_path).glob(f"*/{PROJECT_FILE}"))
    return {"": project_dir} | {file.parent.name: file.parent for file in packages}


def _variables(folders: dict[str, Path]) -> Any:
    """The vars and the macro order that project files set; text that is not YAML equals only itself."""
    return {name: _variables_of(folder) for name, folder in folders.items()}


def _variables_of(folder: Path) -> Any:
    text = text_of_file(folder / PROJECT_FILE)
    try:
        content = parse_yaml(text or "", "", as_dbt=True)
        return content.get("vars"), content.get("dispatch"), text_of_file(folder / "vars.yml")
    except (RippleError, AttributeError):
        return text


def _macro_order(project_dir: Path) -> str:
    """What a project file says of which package's macro runs."""
    text = text_of_file(project_dir / PROJECT_FILE)
    try:
        content = parse_yaml(text or "", "", as_dbt=True)
        return repr((content.get("dispatch"), (content.get("flags") or {}).get(_OVERRIDES)))
    except (RippleError, AttributeError):
        return text or ""


def session_settings(
    base_dir: Path, project_dir: Path, options: DbtOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """What each side's profiles.yml says of the target's session, where it is in the repository.

    Where base has none, as git does not know the one that is here, it is one for both.
    """
    folder = options.profiles_dir
    top, base_top = _tops(project_dir, base_dir)
    if folder is None or not folder.resolve().is_relative_to(top):
        return {}, {}
    folders = base_top / folder.resolve().relative_to(top), folder
    files = [d / "profiles.yml" for d in folders]
    if not files[0].exists():
        return {}, {}
    before, now = (
        settings_in(file, profile_named_by(d), options)
        for file, d in zip(files, (base_dir, project_dir), strict=True)
    )
    if before is None or now is None:  # as one of them cannot be read, all of it counts
        texts = [text_of_file(file) or "" for file in files]
        before, now = ({"profiles.yml": sha256(text.encode()).hexdigest()[:8]} for text in texts)
    return before, now


def _values(folders: dict[str, Path], given: str | None) -> dict[str, str]:
    """The vars of a project and its packages by name, with all values; of the command line's that is theirs.

    A var may have another value in each package; text that is not YAML is the value of every var.
    """
    sources: list[tuple[str, Any]] = []
    text = given or ""
    try:
        of_command = parse_yaml(text, "", as_dbt=True)
        for package, folder in folders.items():
            for file in ("vars.yml", PROJECT_FILE):
                text = text_of_file(folder / file) or ""
                content = parse_yaml(text, "", as_dbt=True)
                if isinstance(content, dict):
                    sources.append((package, content.get("vars")))
    except RippleError:
        return {ANY: text}
    return vars_by_name(sources, of_command)


def _with_source_columns(side: Project, folder: Path | None) -> Project:
    """Take the columns of the sources from a catalog: they are the same for both sides."""
    if folder is None or not (folder / "catalog.json").is_file():
        return side
    try:
        catalog = read_project(folder).catalog
    except RippleError:
        return side
    # It is older than the text of either side, which was compiled just now.
    return side.having(catalog=sources_of_catalog(side, catalog), catalog_is_older=True)
