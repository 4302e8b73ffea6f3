"""What is open of a project while it is asked: artifacts, assets, other projects, their analyses; each made once."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.session.assets import (
    AssetOptions,
    as_they_are,
    files_of_assets,
    open_assets,
    open_dbt_or_assets,
)
from dbt_ripple.session.complete_artifacts import complete
from dbt_ripple.session.open_artifacts import Setting, learn_secrets_of, open_joined, set_to
from dbt_ripple.session.typed_names import as_typed
from dbt_ripple.tuning import collector_relaxed

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node
    from dbt_ripple.artifacts import Project as Artifacts
    from dbt_ripple.artifacts.node_selection import Operators
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.joined_projects import JoinedProjects
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.pages.project_document import ProjectDocument

_ARTIFACTS: Final = ("manifest.json", "catalog.json", "run_results.json", "sources.json")
_ONE_AT_A_TIME: Final = threading.RLock()
"""Held while a question is answered: the garbage collector's settings, dbt and kept texts are a process' own."""


class OpenProject:
    """A dbt project, by its artifacts; or, without a dbt project, the declared assets of a folder.

    `load` and `at` make one. ``project["fct_orders"]`` is a node, ``project["fct_orders.amount"]`` a column;
    iterating gives the unique_ids of all nodes. Artifacts are read once: load again what dbt has written anew.

    Args:
        project_dir: the folder of dbt_project.yml, or of ripple_assets.yml.
        target_path: the folder of the artifacts, relative to it; by default what dbt_project.yml says, or target.
        assets: what declared assets and events are read besides those beside the project.
        others: artifacts of other dbt projects, or their folders: answers go on where these read what this one
            builds.
        cache: of earlier analyses, which stays the caller's; None for none.
        threads: processes that analyse what is not in the cache; None for all cores.
        partial: whether models whose SQL is not known are answered without, in place of refused.
        dbt: how dbt is called where it has to compile.
        ref: a commit whose project is meant, in place of the artifacts.
        file: what `register` and `capture` write in place of ripple_assets.yml; it is read where it is there.
        aloud: whether notes and progress go to stderr as they come, as the command line has it.
    """

    def __init__(
        self,
        project_dir: Path,
        target_path: Path | None = None,
        *,
        assets: AssetOptions | None = None,
        others: Sequence[Path] = (),
        cache: Cache | None = None,
        threads: int | None = None,
        partial: bool = False,
        dbt: DbtOptions | None = None,
        ref: str | None = None,
        file: Path | None = None,
        aloud: bool = False,
    ) -> None:
        self.project_dir = project_dir
        self.target_path = target_path
        self.ref = ref
        self._given_assets = assets or AssetOptions()
        self._file = file
        self._others = tuple(others)
        self._cache = cache
        self._threads = threads
        self._partial = partial
        self._dbt = dbt or DbtOptions()
        self._aloud = aloud
        self._opened: dict[str, None] = {}
        self._states: dict[int, OpenState] = {}
        self._seen: tuple[Any, Any] = (None, None)

    @classmethod
    def load(
        cls,
        path: str | Path = ".",
        *,
        target_path: str | Path | None = None,
        assets: Sequence[str | Path] = (),
        events: Sequence[str | Path] = (),
        dataset_namespace: str | None = None,
        others: Sequence[str | Path] = (),
        cache: bool | str | Path = True,
        threads: int | None = 1,
        partial: bool = False,
        dbt: DbtOptions | None = None,
        file: str | Path | None = None,
        now: bool = True,
    ) -> Self:
        """Open a dbt project, or a folder with manifest.json.

        Args:
            path: the folder.
            target_path: the folder of the artifacts, relative to it; by default dbt's.
            assets: files with assets that dbt does not build, in addition to ripple_assets.yml beside the project.
            events: folders or files of OpenLineage events, in addition to openlineage_events beside it.
            dataset_namespace: the namespace of dbt's own datasets in these events; by default any of its engine.
            others: artifacts of other dbt projects, or their folders.
            cache: whether earlier analyses are used and kept; or the folder where they are.
            threads: processes that analyse what is not there; None for all cores. More than one starts fresh
                interpreters, so that a script needs ``if __name__ == "__main__"``.
            partial: whether models whose SQL is not known are answered without, in place of refused.
            dbt: how dbt is called where it has to compile, as `DbtOptions` says it.
            file: what `register` and `capture` write in place of ripple_assets.yml; it is read where it is there.
            now: whether artifacts are looked for at once, or else by the first question.

        Raises:
            RippleError: there is no such folder, or no manifest.json (or declared asset) in it.

        Example:
            >>> from dbt_ripple import Project
            >>> Project.load("nowhere")
            Traceback (most recent call last):
            dbt_ripple.errors.RippleError: nowhere: no such folder; name the folder of dbt_project.yml or of manifest.json
        """
        project = cls._at(
            path,
            target_path,
            AssetOptions(tuple(map(Path, assets)), tuple(map(Path, events)), dataset_namespace),
            others=tuple(map(Path, others)),
            cache=cache,
            threads=threads,
            partial=partial,
            dbt=dbt,
            file=Path(file) if file is not None else None,
        )
        if now:
            with project._asking():
                project._target()
        return project

    @classmethod
    def at(
        cls,
        ref: str,
        path: str | Path = ".",
        *,
        cache: bool | str | Path = True,
        threads: int | None = 1,
        dbt: DbtOptions | None = None,
    ) -> Self:
        """A dbt project as it is at a commit of its git repository; dbt compiles it when it is first asked.

        As the base of a comparison it is what ``--base-ref`` is: dbt then compiles the working copy as the other
        side, whatever artifacts there are.

        Args:
            ref: what git calls a commit: a branch, a tag, a hash.
            path: the dbt project.
            cache: as for `load`, like the others.
            threads: see there.
            dbt: see there.

        Raises:
            RippleError: there is no dbt_project.yml.
        """
        path = Path(path)
        if not (path / "dbt_project.yml").is_file():
            raise RippleError("no dbt_project.yml in this folder", str(path), "name a dbt project")
        return cls._at(path, None, None, cache=cache, threads=threads, dbt=dbt, ref=ref)

    @classmethod
    def _at(
        cls,
        path: str | Path,
        target_path: str | Path | None,
        assets: AssetOptions | None,
        *,
        cache: bool | str | Path,
        **how: Any,
    ) -> Self:
        folder = Path(path)
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "no such folder"
            fix = "name the folder of dbt_project.yml or of manifest.json"
            raise RippleError(what, str(path), fix)
        target = Path(target_path) if target_path is not None else None
        is_dbt = (folder / "dbt_project.yml").is_file()
        if target is None and not is_dbt and (folder / "manifest.json").is_file():
            target = folder.resolve()
        own: Cache | None = None
        if cache is not False:
            from dbt_ripple.graph.cache import Cache

            own = Cache(None if cache is True else Path(cache), any_thread=True)
        project = cls(folder, target, assets=assets, cache=own, **how)
        if own is not None:
            weakref.finalize(project, own.close)
        return project

    def __repr__(self) -> str:
        at = f" at {self.ref}" if self.ref else ""
        return f"<dbt_ripple.Project {self.project_dir}{at}>"

    # --- what is open ------------------------------------------------------------------------------

    @contextmanager
    def _asking(self) -> Iterator[dict[str, None]]:
        """While a question is answered: the notes of the answer are added to what is given."""
        notes: dict[str, None] = {}
        if self._aloud:
            yield notes
            return
        with _ONE_AT_A_TIME, ExitStack() as stack:
            stack.enter_context(set_to(Setting(self.project_dir, self._partial)))
            stack.enter_context(terminal.heard_by(notes))
            stack.enter_context(collector_relaxed())
            if self._cache is not None:
                from dbt_ripple.jinja.kept import keep_in

                keep_in(self._cache)
                stack.callback(self._cache.write)
            yield notes

    @contextmanager
    def _opening(self, notes: dict[str, None]) -> Iterator[None]:
        """While something is opened, once: what is to be said of it is said by each answer."""
        if self._aloud:
            yield
            return
        with terminal.heard_by(notes):
            yield

    def _said(self, notes: Mapping[str, None]) -> tuple[str, ...]:
        opened = [note for state in self._states.values() for note in state.opened]
        return tuple(dict.fromkeys([*self._opened, *opened, *notes]))

    @property
    def _assets(self) -> AssetOptions:
        given = self._given_assets
        if self._file is None or self._file in given.files or not self._file.is_file():
            return given
        return given._replace(files=(*given.files, self._file))

    def refreshed(self) -> Self:
        """This project, without what was read of files that are others now: the next question reads these anew.

        Of a project at a commit nothing ever is.
        """
        folder = artifacts_folder(self.project_dir, self.target_path)
        with _ONE_AT_A_TIME:
            of_dbt = as_they_are(folder / name for name in _ARTIFACTS)
            seen = of_dbt, as_they_are(files_of_assets(self.project_dir, self._assets))
            if self._seen != seen:
                self._states.clear()
            if self._seen[0] != of_dbt and self.ref is None:
                self._opened.clear()
                for name in ("_folder", "_complete"):
                    self.__dict__.pop(name, None)
            self._seen = seen
        return self

    def analysed(self) -> Self:
        """This project, read and analysed now where a question would do it.

        Raises:
            RippleError: artifacts or assets cannot be read, or models are not compiled.
        """
        with self._asking():
            self._state(tests=True).analysis(tests=True)
        return self

    @functools.cached_property
    def _folder(self) -> TargetFolder:
        if self.ref is None:
            return open_dbt_or_assets(
                self.project_dir, self.target_path, self._assets, self._cache, self._threads
            )
        from dbt_ripple.dbt_runner.base_ref import both_sides
        from dbt_ripple.graph.target_folder import TargetFolder
        from dbt_ripple.rendering.output import warn

        with both_sides(self.project_dir, self.ref, self._dbt, cache=self._cache) as sides:
            learn_secrets_of(sides.base)
            for note in sides.notes:
                warn(note)
            target = TargetFolder.of(sides.base, self._cache, processes=self._threads)
            target.analysis(expressions=True)  # now, because the files of seeds go
        return target

    def _target(self) -> TargetFolder:
        with self._opening(self._opened):
            return self._folder

    def _state(self, *, tests: bool | None = None, others: Iterable[Artifacts] = ()) -> OpenState:
        """What is open; with what dbt has not compiled of it completed, `tests` too or not, unless that is None.

        `others` are artifacts of other states, from which it is completed first.
        """
        target = self._target()
        with self._opening(self._opened):
            if tests is not None and target.project.nodes and self.ref is None:
                target = self._completed(tests, others)
        state = self._states.get(id(target))
        if state is None:
            state = self._states[id(target)] = OpenState(self, target)
        return state

    def _completed(self, tests: bool, others: Iterable[Artifacts]) -> TargetFolder:
        known: dict[bool, TargetFolder] = self.__dict__.setdefault("_complete", {})
        for options in (tests, True):
            if options in known:
                return known[options]
        known[tests] = complete(
            *(self._target(), self._cache),
            project_dir=self.project_dir,
            options=self._dbt,
            others=others,
            tests=tests,
        )
        return known[tests]

    def _named(self, name: str, state: OpenState) -> tuple[Node, str | None, Operators]:
        from dbt_ripple.artifacts.node_selection import named, named_in_any

        typed = as_typed(name, self.project_dir)
        if state.joined is not None:
            return named_in_any(state.target.project, state.everything, typed)
        return named(state.everything, typed)


class OpenState:
    """A project as far as it is open: completed or not, with the assets and the other projects over it."""

    def __init__(self, asked: OpenProject, target: TargetFolder) -> None:
        self.target = target
        self._asked = asked
        self.opened: dict[str, None] = {}
        """What is to be said of what is opened here."""
        self._analyses: dict[tuple[bool, bool, bool], Analysis] = {}

    @functools.cached_property
    def joined(self) -> JoinedProjects | None:
        """This project and the others; None where there are none."""
        asked = self._asked
        with asked._opening(self.opened):
            return open_joined(self.target, asked._others, asked._cache, asked._threads)

    @functools.cached_property
    def assets(self) -> DeclaredGraph | None:
        """The declared and collected assets over all projects."""
        return self._over(lambda: self.dbt_projects)

    @functools.cached_property
    def own_assets(self) -> DeclaredGraph | None:
        """The same over this project alone."""
        if self.joined is None:
            return self.assets
        return self._over(lambda: self.target.project)

    def _over(self, project: Callable[[], Artifacts]) -> DeclaredGraph | None:
        asked = self._asked
        with asked._opening(self.opened):
            return open_assets(asked.project_dir, asked._assets, project)

    @property
    def dbt_projects(self) -> Artifacts:
        """All that dbt builds, of all projects."""
        return self.joined.union if self.joined is not None else self.target.project

    @property
    def everything(self) -> Artifacts:
        """The same with the declared and collected assets."""
        return self.assets.whole if self.assets is not None else self.dbt_projects

    @property
    def own(self) -> Artifacts:
        """This project alone, with its assets."""
        return self.own_assets.whole if self.own_assets is not None else self.target.project

    @property
    def whose(self) -> dict[str, str]:
        """The names of the projects of nodes that are of another one."""
        return self.joined.project_of if self.joined is not None else {}

    def analysis(self, *, tests: bool, expressions: bool = False, own: bool = False) -> Analysis:
        """The analysis of `everything`; the options are those of `TargetFolder.analysis`."""
        known = self._analyses.get((tests, expressions, own))
        if known is not None:
            return known
        if self.joined is not None:
            analysis = self.joined.united(self.joined.analyses())
        else:
            analysis = self.target.analysis(tests=tests, expressions=expressions, own=own)
        if self.assets is not None:
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            analysis = AssetLineage(self.assets, analysis, self._asked._cache).analysis
        self._analyses[tests, expressions, own] = analysis
        return analysis

    def not_analysed_of(self, unique_ids: set[str], *, tests: bool) -> dict[str, str]:
        """Those of some nodes that could not be analysed, with the reason."""
        return not_analysed(self.analysis(tests=tests), unique_ids)

    @functools.cached_property
    def described(self) -> ProjectDocument:
        """All that pages say of the project."""
        from dbt_ripple.pages.describe_project import describe_project

        return describe_project(self.everything, self.analysis(tests=True, expressions=True))


def not_analysed(analysis: Analysis, unique_ids: set[str]) -> dict[str, str]:
    """Those of some nodes that could not be analysed, with the reason."""
    return {
        unique_id: seen.reason.message if seen.reason is not None else ""
        for unique_id in unique_ids
        if (seen := analysis.nodes.get(unique_id)) is not None and seen.status == "opaque"
    }
