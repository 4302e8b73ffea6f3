"""A dbt project that answers questions: `from dbt_ripple import Project`.

The command line asks the same object, so that there is one way to an answer. Questions of all threads of a process
are answered one after the other; an answer is frozen, and may be shared. Nothing is printed: what would be said on
stderr is in the `notes` of the answer. Whatever is wrong is a `RippleError` of one line.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_ripple.artifacts.paths import artifacts_folder
from dbt_ripple.errors import RippleError
from dbt_ripple.session.answers import Reached, Trace, openlineage_events
from dbt_ripple.session.assets import open_dbt_or_assets
from dbt_ripple.session.base_and_head import open_sides, parsed_anew
from dbt_ripple.session.chosen_tests import Diagnosed, Explained, Selected
from dbt_ripple.session.diagnosis_with_changes import body_of, diagnose_with_changes, incident_of
from dbt_ripple.session.judged import Checked, Gate, Impact
from dbt_ripple.session.open_project import OpenProject, not_analysed
from dbt_ripple.session.sides import Sides, tier_asked
from dbt_ripple.session.typed_names import Hit, as_typed, chosen, search

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project as Artifacts
    from dbt_ripple.artifacts.assets_file import DeclaredAsset
    from dbt_ripple.artifacts.node_selection import Operators
    from dbt_ripple.governance.asset_edits import Edited, Registration
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.graph.target_folder import TargetFolder
    from dbt_ripple.graph.traversal import Direction
    from dbt_ripple.pages.project_document import DescribedNode, ProjectDocument
    from dbt_ripple.session.registering import ToRegister


class Project(OpenProject):
    """A dbt project that answers questions; or, without a dbt project, the declared assets of a folder.

    `load` and `at` make one. ``project["fct_orders"]`` is a node, ``project["fct_orders.amount"]`` a column;
    iterating gives the unique_ids of all nodes. Artifacts are read once: load again what dbt has written anew.
    """

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
            opaque = {} if column is None else state.not_analysed_of(reached, tests=tests)
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
        from dbt_ripple.dbt_runner.invoke import chosen_by_dbt

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
            asked = diagnose_with_changes(self, name, [Path(folder) for folder in since])
            steps = {step.unique_id for step in asked.diagnosis.steps}
            return Diagnosed.of(
                asked.diagnosis,
                notes=self._said(notes),
                not_analysed=not_analysed(asked.analysis, steps),
            )

    def incident(
        self, name: str, window: timedelta, service: str, *, since: Sequence[Path | str] = ()
    ) -> dict[str, Any]:
        """What on-call has to know, as ``dbt-ripple incident --format SERVICE`` prints it.

        Args:
            name: a test, a node or a column, named as on the command line.
            window: how long before the failure a change counts as recent.
            service: slack, pagerduty or webhook.
            since: as for `diagnose`.

        Raises:
            RippleError: as `diagnose`.
        """
        from dbt_ripple.secrets import scrub_value

        with self._asking():
            asked = diagnose_with_changes(self, name, [Path(folder) for folder in since])
            document = scrub_value(incident_of(asked, window, self.project_dir))
            return body_of(document, service, asked.own, name)

    def openlineage(self, trace: Trace) -> list[str]:
        """The nodes of a trace as OpenLineage events, as ``dbt-ripple emit --static`` sends them; each is JSON.

        Raises:
            RippleError: openlineage-python is not installed, or dbt's profile cannot be read.
        """
        with self._asking():
            state = self._state(tests=False)
            analysis = state.analysis(tests=False, expressions=True)
            nodes = {trace.root, *(one.unique_id for one in trace)}
            return openlineage_events(
                state.everything, analysis, nodes, self.project_dir, self._dbt
            )

    def search(self, text: str, *, tests: bool = False) -> list[Hit]:
        """The nodes in which all the words of a text are found, in names, columns, tags, owners, paths, descriptions.

        Args:
            text: words, or parts of names.
            tests: whether tests are looked at, too.
        """
        with self._asking():
            everything = self._state().everything
            columns = {
                unique_id: [column.name or key for key, column in node.columns.items()]
                for unique_id, node in everything.nodes.items()
            }
            try:
                nodes = self._state(tests=False).analysis(tests=False).nodes
            except RippleError:  # it is not compiled: what is declared is all that is known
                nodes = {}
            columns |= {u: seen.columns for u, seen in nodes.items() if seen.columns}
            return search(everything, columns, text, tests=tests)

    def check_sql(self, name: str, sql: str) -> Checked:
        """What an edit of a model would change and break, before it is written: judged as the gate judges it.

        dbt parses a copy of the project with the new text, and compiles it, in a folder that is removed; base is this
        project as its artifacts say.

        Args:
            name: a model, snapshot or SQL test of the project itself.
            sql: the whole text of its file, with its Jinja.

        Raises:
            RippleError: there is no such model, or dbt cannot parse or compile the text.
        """
        from dbt_ripple.session.uncommitted import with_text

        with self._asking() as notes:
            node, _, _ = self._named(name, self._state())
            if node.is_python or not (node.original_file_path or "").endswith(".sql"):
                raise RippleError("has no file of SQL", name, "name a model that is SQL")
            if not (self.project_dir / "dbt_project.yml").is_file():
                raise RippleError(
                    "no dbt_project.yml in this folder, so that dbt cannot compile",
                    str(self.project_dir),
                    "open the dbt project itself",
                )
            state = artifacts_folder(self.project_dir, self.target_path).resolve()
            path, options = node.original_file_path or "", self._dbt.resolved(self.project_dir)
            with (
                with_text(self.project_dir, state, path, sql) as (copy, artifacts, parsed),
                ExitStack() as stack,
            ):
                how = (options, self._cache, self._threads)
                try:
                    anew = parsed_anew(copy, options, self._cache, parsed, artifacts)
                    opening = open_sides(copy, anew, state, None, *how, assets=self._assets)
                    base, head = stack.enter_context(opening)
                except RippleError as error:
                    cause = error.__cause__ if isinstance(error.__cause__, RippleError) else error
                    raise RippleError(cause.what, name, "correct the text") from error
                sides = Sides(self.project_dir, base, head, *how[1:], self._others)
                return self._checked(sides, notes)

    def _checked(self, sides: Sides, notes: Mapping[str, None]) -> Checked:
        answer = sides.gate(with_tests=True)
        said = {**notes, **dict.fromkeys(note.message for note in answer.report.notes)}
        return Checked.of(Gate.of(answer, notes=self._said(said)), sides.judged.diff())

    def register(
        self,
        registrations: Sequence[Registration] | ToRegister,
        *,
        file: Path | None = None,
        dry_run: bool = False,
    ) -> Edited:
        """Write assets that dbt does not build into ripple_assets.yml, as ``dbt-ripple register`` does.

        Args:
            registrations: the assets; or what makes them of what is known already.
            file: what is written in its place; by default what the project was opened with.
            dry_run: whether nothing is written.

        Raises:
            RippleError: an id, a type or a name is not valid, with the nearest that is; the file is left alone.
        """
        from dbt_ripple.session.registering import register

        with self._asking():
            edited = register(*self._where_to(file), registrations, dry_run)
            self._forget(dry_run)
            return edited

    def capture(
        self,
        sql: str,
        *,
        id: str | None = None,
        dialect: str | None = None,
        file: Path | None = None,
        dry_run: bool = False,
        **properties: Any,
    ) -> dict[str, Any]:
        """Follow the SQL of a job and write it into ripple_assets.yml, as ``dbt-ripple capture`` does.

        Args:
            sql: one or more statements.
            id: of the job; by default ``job:`` and the name of what it writes.
            dialect: of the SQL, as sqlglot calls it; by default the project's.
            file: as for `register`.
            dry_run: whether nothing is written.
            properties: source_ref, owner, schedule, description and tags of the job.

        Returns:
            ``id``, ``source_tables``, ``target_tables``, ``columns``, ``file`` and ``written``
            (docs/schemas/capture.json).

        Raises:
            RippleError: the SQL or the dialect is not valid, or it writes to nothing and has no id.
        """
        from dbt_ripple.session.registering import capture

        with self._asking():
            document = capture(
                *(*self._where_to(file), self._cache, sql, id, dialect, dry_run),
                **properties,
            )
            self._forget(dry_run)
            return document

    def _where_to(self, file: Path | None) -> tuple[TargetFolder, Path, list[DeclaredAsset]]:
        """Dbt's artifacts, without which assets can be registered as well; the file to write, and what others say."""
        there = self.ref is None and "_folder" in self.__dict__
        folder = self.project_dir, self.target_path, None, self._cache
        target = self._folder if there else open_dbt_or_assets(*folder)
        from dbt_ripple.session.registering import files_of

        return target, *files_of(file or self._file, self.project_dir, self._assets.files)

    def _forget(self, dry_run: bool) -> None:
        if not dry_run:  # the assets are others now
            self._states.clear()

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
