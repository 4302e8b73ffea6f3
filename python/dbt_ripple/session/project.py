"""A dbt project that answers questions: `from dbt_ripple import Project`.

The command line asks the same object, so that there is one way to an answer. Questions of all threads of a process
are answered one after the other; an answer is frozen, and may be shared. Nothing is printed: what would be said on
stderr is in the `notes` of the answer. Whatever is wrong is a `RippleError` of one line.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.session.answers import (
    Diagnosed,
    Explained,
    Gate,
    Impact,
    Reached,
    Selected,
    Trace,
)
from dbt_ripple.session.assets import AssetOptions, open_assets, open_dbt_or_assets
from dbt_ripple.session.base_and_head import open_sides
from dbt_ripple.session.complete_artifacts import complete
from dbt_ripple.session.diagnosis_with_changes import diagnose_with_changes
from dbt_ripple.session.open_artifacts import open_joined
from dbt_ripple.session.setting import Setting, set_to
from dbt_ripple.session.sides import Sides, tier_asked
from dbt_ripple.session.typed_names import as_typed, chosen

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node
    from dbt_ripple.artifacts import Project as Artifacts
    from dbt_ripple.artifacts.node_selection import Operators
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.joined_projects import JoinedProjects
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.graph.traversal import Direction
    from dbt_ripple.pages.project_document import DescribedNode, ProjectDocument

_ONE_AT_A_TIME: Final = threading.RLock()
"""Held while a question is answered: the garbage collector's settings, dbt and kept texts are a process' own."""


class Project:
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
        aloud: bool = False,
    ) -> None:
        self.project_dir = project_dir
        self.target_path = target_path
        self.ref = ref
        self._assets = assets or AssetOptions()
        self._others = tuple(others)
        self._cache = cache
        self._threads = threads
        self._partial = partial
        self._dbt = dbt or DbtOptions()
        self._aloud = aloud
        self._opened: dict[str, None] = {}
        self._states: dict[int, _State] = {}

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
    ) -> Project:
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
            dbt: how dbt is called where it has to compile, with `dbt_runner.invoke.DbtOptions`.

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
        )
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
    ) -> Project:
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
    ) -> Project:
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
            if self._cache is not None:
                from dbt_ripple.jinja.kept import keep_in

                keep_in(self._cache)
                stack.callback(self._cache.write)
            yield notes

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """While something is opened, once: what is to be said of it is said by each answer."""
        if self._aloud:
            yield
            return
        with terminal.heard_by(self._opened):
            yield

    def _said(self, notes: Mapping[str, None]) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._opened, *notes]))

    @functools.cached_property
    def _folder(self) -> TargetFolder:
        if self.ref is None:
            return open_dbt_or_assets(
                self.project_dir, self.target_path, self._assets, self._cache, self._threads
            )
        from dbt_ripple.dbt_runner.base_ref import both_sides
        from dbt_ripple.graph.target_folder import TargetFolder
        from dbt_ripple.rendering.output import warn
        from dbt_ripple.session.open_artifacts import learn_secrets_of

        with both_sides(self.project_dir, self.ref, self._dbt, cache=self._cache) as sides:
            learn_secrets_of(sides.base)
            for note in sides.notes:
                warn(note)
            target = TargetFolder.of(sides.base, self._cache, processes=self._threads)
            target.analysis(expressions=True)  # now, because the files of seeds go
        return target

    def _target(self) -> TargetFolder:
        with self._opening():
            return self._folder

    def _state(self, *, tests: bool | None = None) -> _State:
        """What is open; with what dbt has not compiled of it completed, `tests` too or not, unless that is None."""
        target = self._target()
        with self._opening():
            if tests is not None and target.project.nodes and self.ref is None:
                target = self._completed(tests)
        state = self._states.get(id(target))
        if state is None:
            state = self._states[id(target)] = _State(self, target)
        return state

    def _completed(self, tests: bool) -> TargetFolder:
        known: dict[bool, TargetFolder] = self.__dict__.setdefault("_complete", {})
        for options in (tests, True):
            if options in known:
                return known[options]
        known[tests] = complete(
            self._target(), self._cache, project_dir=self.project_dir, tests=tests
        )
        return known[tests]

    def _named(self, name: str, state: _State) -> tuple[Node, str | None, Operators]:
        from dbt_ripple.artifacts.node_selection import named, named_in_any

        typed = as_typed(name, self.project_dir)
        if state.joined is not None:
            return named_in_any(state.target.project, state.everything, typed)
        return named(state.everything, typed)

    # --- questions ---------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Named:
        with self._asking():
            state = self._state()
            node, column, _ = self._named(name, state)
            if column is not None:
                from dbt_ripple.graph.traversal import column_graph
                from dbt_ripple.rendering.trace import column_of

                analysis = self._state(tests=False).analysis(tests=False)
                column = column_of(analysis, column_graph(analysis.edges), node, column)
            return Named(node.unique_id, column, node.display_name, node.resource_type, self)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self[name])
        except RippleError:
            return False

    def __iter__(self) -> Iterator[str]:
        with self._asking():
            return iter(list(self._state().everything.nodes))

    def trace(
        self,
        name: str,
        *,
        direction: Direction | None = None,
        depth: int | None = None,
        tests: bool = False,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> Trace:
        """What is upstream or downstream of a node or a column, as ``dbt-ripple trace`` says it.

        Args:
            name: a node, or a column after its node and a dot, named as on the command line: ``+NAME`` is what is
                upstream, ``2+NAME`` two steps of it, ``NAME+`` what is downstream.
            direction: upstream, downstream or both; by default what is beside the name, or else downstream.
            depth: how many steps; None for all.
            tests: whether data tests, unit tests and hooks are there, too.
            select: what dbt selects by these: only ways to it are there.
            exclude: ways to these are not.

        Raises:
            RippleError: there is no such node or column; the nearest are given.
        """
        from dbt_ripple.rendering.trace import column_view, node_view

        with self._asking() as notes:
            by_column = bool(self._others) or self._names_column(name)
            state = self._state(
                tests=tests if by_column else None
            )  # of nodes dbt knows all without
            root, column, asked = self._named(name, state)
            direction, depth = _way(name, asked, direction, depth)
            project, whose = state.everything, state.whose
            wanted = chosen(project, select, exclude, self.project_dir)
            way = (direction, depth, tests, wanted, whose)
            if column is None:
                view: Any = node_view(project, root, *way)
            else:
                view = column_view(project, state.analysis(tests=tests), root, column, *way)
            reached = {node["unique_id"] for node in view.document["nodes"]}
            opaque = {} if column is None else state.not_analysed(reached, tests=tests)
            return Trace.of(view, notes=self._said(notes), not_analysed=opaque)

    def _names_column(self, name: str) -> bool:
        from dbt_ripple.artifacts.node_selection import named

        typed = as_typed(name, self.project_dir)
        try:
            return named(self._target().project, typed)[1] is not None
        except RippleError:  # it may be an asset
            return "." in typed

    def impact(
        self,
        name: str,
        changes: Sequence[Change] = (),
        *,
        rename: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        retype: Mapping[str, str] | None = None,
        add: Mapping[str, str] | None = None,
        required: Sequence[str] = (),
        deprecate: bool | str = False,
        remove: bool = False,
    ) -> Impact:
        """Who would break if a relation were changed, as ``dbt-ripple impact`` says it.

        Args:
            name: a node, named as on the command line.
            changes: what would be done to it, besides what follows.
            rename: new names by columns.
            drop: columns that go.
            retype: new types by columns.
            add: types by new columns.
            required: those of the new columns that have a value in each row.
            deprecate: whether its removal is announced, or for which day (YYYY-MM-DD).
            remove: whether it goes.

        Raises:
            RippleError: there is no such node or column, or changes contradict each other.
        """
        from dbt_ripple.governance.hypothetical_changes import Change
        from dbt_ripple.governance.impact import impact
        from dbt_ripple.rendering.output import warn

        if unknown := [column for column in required if column not in (add or {})]:
            raise RippleError(
                f"{unknown[0]} is no new column", "required", "name a column of `add`"
            )
        changes = [
            *changes,
            *(Change("rename", old, new) for old, new in (rename or {}).items()),
            *(Change("drop", column) for column in drop),
            *(Change("retype", column, to) for column, to in (retype or {}).items()),
            *(Change("add", column, to, column in required) for column, to in (add or {}).items()),
            *(
                [Change("deprecate", to="" if deprecate is True else deprecate)]
                if deprecate
                else []
            ),
            *([Change("remove")] if remove else []),
        ]
        with self._asking() as notes:
            state = self._state(tests=True)
            # A node of another project is not what would be changed here.
            from dbt_ripple.artifacts.node_selection import named

            node, column, asked = named(state.own, as_typed(name, self.project_dir))
            if asked.up is not None:
                warn(
                    f"{name}: asked is who reads {node.display_name}; what is above it is not judged"
                )
            if column is not None:
                raise RippleError(
                    f"names a column, {column}",
                    name,
                    f"name {node.spoken_name}, and say what to do with the column: --drop {column}",
                )
            report = impact(
                *(state.target.project, node, changes),
                analysis=state.target.analysis(),
                cache=self._cache,
                joined=state.joined,
                assets=state.own_assets,
            )
            shown = state.own
            if state.joined is not None:
                shown = shown.having(nodes={**state.joined.union.nodes, **shown.nodes})
            return Impact.of(report, node.unique_id, changes, shown, notes=self._said(notes))

    @contextmanager
    def against(
        self, state: Path | None, base_ref: str | None = None, *, or_count: bool = False
    ) -> Iterator[Sides]:
        """Open this project as head, and base beside it; base's files are there as long as the context.

        Args:
            state: base's artifacts.
            base_ref: a commit to compile base from, in place of these.
            or_count: where dbt cannot compile what of head is not compiled, count that as changed.

        Raises:
            RippleError: one of them is missing, is not compiled or is not of this project.
        """
        options = self._dbt
        with open_sides(
            *(self.project_dir, self.target_path, state, base_ref, options),
            *(self._cache, self._threads),
            or_count=or_count,
            assets=self._assets,
        ) as (base, head):
            yield Sides(
                *(self.project_dir, base, head, self._cache, self._threads),
                *(self._others, base_ref),
            )

    def _against(self, base: Project | str | Path, **how: Any) -> Any:
        if isinstance(base, Project):
            if base.ref is not None:
                return self.against(None, base.ref, **how)
            base = artifacts_folder(base.project_dir, base.target_path).resolve()
        return self.against(Path(base), **how)

    def select(
        self,
        base: Project | str | Path,
        *,
        critical: str | None = None,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        facts: bool = True,
        assume_passed: bool = False,
    ) -> Selected:
        """The tests that the change from base to this project can break, as ``dbt-ripple select`` says it.

        Args:
            base: `Project.at` a commit, a loaded project, or a folder of artifacts.
            critical: the tier all tests of which are added below the change; by default what ripple.yml says,
                and ``none`` for none.
            select: only what dbt selects by these.
            exclude: without what dbt selects by these.
            facts: whether tests are left out that base's passed tests prove cannot fail.
            assume_passed: whether all tests of base count as passed.

        Raises:
            RippleError: as `against`.
        """
        began = time.perf_counter()
        with self._asking() as notes, self._against(base, or_count=True) as sides:
            only = self.chosen_by_dbt(sides, select, exclude) if select or exclude else None
            critical = tier_asked(critical, self.project_dir)
            how = {"facts": facts, "assume_passed": assume_passed}
            selection = sides.select(critical=critical, only=only, **how)
            said = self._said({**notes, **dict.fromkeys(n.message for n in selection.notes)})

            def explain(what: str) -> Explained:
                with self._asking() as more:
                    explained, _ = sides.explain(what, **how)
                    return Explained.of(explained, notes=self._said(more))

            seconds = time.perf_counter() - began
            return Selected.of(selection, sides, seconds, explain, notes=said)

    def chosen_by_dbt(
        self, sides: Sides, select: Sequence[str], exclude: Sequence[str]
    ) -> set[str]:
        """The unique_ids that ``dbt ls`` selects of what is compared."""
        from dbt_ripple.dbt_runner.dbt_ls import chosen_by_dbt

        before = Path(sides.base.project.target_path)
        specs = tuple(select), tuple(exclude)
        return chosen_by_dbt(self.project_dir, self.target_path, before, *specs, self._dbt)

    def gate(
        self,
        base: Project | str | Path,
        *,
        approved_by: str | None = None,
        with_tests: bool = False,
    ) -> Gate:
        """May the change from base to this project be merged, as ``dbt-ripple gate`` says it.

        Args:
            base: as for `select`.
            approved_by: who says yes to the reach of the change; the answer has the name.
            with_tests: whether `document` has the tests that the change can break, too.

        Raises:
            RippleError: as `against`; or ripple.yml is not valid.
        """
        from dbt_ripple.governance.ripple_yml import read_config

        with self._asking() as notes:
            read_config(self.project_dir)  # what is wrong with it is said before dbt compiles
            with self._against(base) as sides:
                answer = sides.gate(approved_by, with_tests=with_tests)
                said = {**notes, **dict.fromkeys(note.message for note in answer.report.notes)}
                return Gate.of(answer, notes=self._said(said))

    def explain(self, what: str, base: Project | str | Path) -> Explained:
        """Why a test is selected, or a node or a column differs, or why not, as ``dbt-ripple explain`` says it.

        Args:
            what: a test (its name, or a part that only one has), a node, or a column after its node and a dot.
            base: as for `select`.

        Raises:
            RippleError: as `against`; or there is none of this name.
        """
        with self._asking() as notes, self._against(base, or_count=True) as sides:
            explained, assumed = sides.explain(what)
            said = {**notes, **dict.fromkeys(note.message for note in assumed)}
            return Explained.of(explained, notes=self._said(said))

    def diagnose(self, name: str, *, since: Sequence[Path | str] = ()) -> Diagnosed:
        """All that a node or a column is computed from, as ``dbt-ripple diagnose`` says it.

        Args:
            name: named as on the command line.
            since: artifacts of when the number was right, once for each project that is to be compared.

        Raises:
            RippleError: there is no such node or column, or artifacts are missing or of another project.
        """
        with self._asking() as notes:
            asked = diagnose_with_changes(
                node=name,
                states=[Path(folder) for folder in since],
                others=self._others,
                assets=self._assets,
                cache=self._cache,
                threads=self._threads,
                project_dir=self.project_dir,
                target_path=self.target_path,
            )
            steps = {step.unique_id for step in asked.diagnosis.steps}
            return Diagnosed.of(
                asked.diagnosis,
                notes=self._said(notes),
                not_analysed=_not_analysed(asked.analysis, steps),
            )

    @property
    def artifacts(self) -> Artifacts:
        """The manifest and the other artifacts, as they were read; with the declared assets and other projects."""
        with self._asking():
            return self._state().everything

    def described(self) -> ProjectDocument:
        """All that pages say of the project: its nodes with their columns, owners, tests and links; made once.

        Raises:
            RippleError: models are not compiled.
        """
        with self._asking():
            return self._state(tests=True).described


@dataclass(frozen=True)
class Named:
    """A node of a project, or a column of it: ``project["fct_orders.amount"]``.

    Attributes:
        unique_id: of the node.
        column: as the node spells it; None for the node.
        name: what people call the node.
        resource_type: dbt's: model, source, seed, snapshot, exposure, ...; asset where it is a declared one.
    """

    unique_id: str
    column: str | None
    name: str
    resource_type: str
    project: Project = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.unique_id}.{self.column}" if self.column else self.unique_id

    def upstream(self, depth: int | None = None) -> Trace:
        """What it comes from; `depth` is how many steps, all by default."""
        return self.project.trace(str(self), direction="upstream", depth=depth)

    def downstream(self, depth: int | None = None) -> Trace:
        """What comes of it; `depth` is how many steps, all by default."""
        return self.project.trace(str(self), direction="downstream", depth=depth)

    def readers(self) -> tuple[Reached, ...]:
        """Who reads it in one step: models, consumers and tests, each once."""
        trace = self.project.trace(str(self), direction="downstream", depth=1, tests=True)
        return tuple({one.unique_id: one for one in reversed(trace.reached)}.values())[::-1]

    def impact(self, **changes: Any) -> Impact:
        """As `Project.impact`, of the node."""
        return self.project.impact(self.unique_id, **changes)

    def diagnose(self, *, since: Sequence[Path | str] = ()) -> Diagnosed:
        """As `Project.diagnose`."""
        return self.project.diagnose(str(self), since=since)

    def described(self) -> DescribedNode:
        """What pages say of the node: description, owner, columns with types, contract, tests and last run."""
        return self.project.described().nodes[self.unique_id]


class _State:
    """A project as far as it is open: completed or not, with the assets and the other projects over it."""

    def __init__(self, asked: Project, target: TargetFolder) -> None:
        self.target = target
        self._asked = asked
        self._analyses: dict[tuple[bool, bool], Analysis] = {}

    @functools.cached_property
    def joined(self) -> JoinedProjects | None:
        asked = self._asked
        with asked._opening():
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
        with asked._opening():
            return open_assets(asked.project_dir, asked._assets, project)

    @property
    def dbt_projects(self) -> Artifacts:
        return self.joined.union if self.joined is not None else self.target.project

    @property
    def everything(self) -> Artifacts:
        return self.assets.whole if self.assets is not None else self.dbt_projects

    @property
    def own(self) -> Artifacts:
        return self.own_assets.whole if self.own_assets is not None else self.target.project

    @property
    def whose(self) -> dict[str, str]:
        return self.joined.project_of if self.joined is not None else {}

    def analysis(self, *, tests: bool, expressions: bool = False) -> Analysis:
        """The analysis of `everything`."""
        known = self._analyses.get((tests, expressions))
        if known is not None:
            return known
        if self.joined is not None:
            analysis = self.joined.united(self.joined.analyses())
        else:
            analysis = self.target.analysis(tests=tests, expressions=expressions)
        if self.assets is not None:
            from dbt_ripple.graph.assets.asset_lineage import AssetLineage

            analysis = AssetLineage(self.assets, analysis, self._asked._cache).analysis
        self._analyses[tests, expressions] = analysis
        return analysis

    def not_analysed(self, unique_ids: set[str], *, tests: bool) -> dict[str, str]:
        return _not_analysed(self.analysis(tests=tests), unique_ids)

    @functools.cached_property
    def described(self) -> ProjectDocument:
        from dbt_ripple.pages.describe_project import describe_project

        return describe_project(self.everything, self.analysis(tests=True, expressions=True))


def _way(
    name: str, asked: Operators, direction: Direction | None, depth: int | None
) -> tuple[Direction, int | None]:
    """Which way to go, and how far: the operators beside a name say it, or else the arguments."""
    depths = [steps for steps in (asked.up, asked.down) if steps is not None]
    if not depths:
        return direction or "downstream", depth
    for what, given in (("direction", direction), ("depth", max(depths) >= 0 and depth)):
        if given is not None and given is not False:
            both = f"+ and {what} both say how to go"
            raise RippleError(both, name, "give one of them")
    if len(set(depths)) > 1:
        raise RippleError("one depth for both ways", name, "say +NODE+, and the depth beside it")
    if max(depths) >= 0:
        depth = depths[0]
    if len(depths) > 1:
        return "both", depth
    return "upstream" if asked.up is not None else "downstream", depth


def _not_analysed(analysis: Analysis, unique_ids: set[str]) -> dict[str, str]:
    return {
        unique_id: seen.reason.message if seen.reason is not None else ""
        for unique_id in unique_ids
        if (seen := analysis.nodes.get(unique_id)) is not None and seen.status == "opaque"
    }
