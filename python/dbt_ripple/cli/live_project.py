"""The project that `dbt-ripple serve` answers about: opened as `trace` and `impact` open it, and again when its files change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dbt_ripple.artifacts import asset_type, did_you_mean, find_node
from dbt_ripple.artifacts.assets_file import OF_PREFIX
from dbt_ripple.artifacts.assets_path import assets_files
from dbt_ripple.artifacts.target_path import artifacts_folder
from dbt_ripple.errors import RippleError
from dbt_ripple.serve.api import MalformedError, UnknownError
from dbt_ripple.serve.bodies import Asset, Lineage, RegisteredAsset
from dbt_ripple.serve.lineage_tree import lineage_of
from dbt_ripple.session.assets import AssetOptions, open_assets, open_dbt_or_assets
from dbt_ripple.session.complete_artifacts import complete
from dbt_ripple.session.registering import files_of
from dbt_ripple.session.setting import Setting, set_to

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.target_folder import TargetFolder

_State = tuple[tuple[str, int, int], ...]
_ARTIFACTS = ("manifest.json", "catalog.json", "run_results.json", "sources.json")


@dataclass
class _Opened:
    """The project with its assets, as its files are now."""

    target: TargetFolder
    declared: DeclaredGraph | None
    cache: Cache | None

    @property
    def project(self) -> Project:
        """Dbt's nodes and the assets."""
        return self.declared.whole if self.declared is not None else self.target.project

    @cached_property
    def analysis(self) -> Analysis:
        """Of `project`."""
        analysis = self.target.analysis()
        if self.declared is None:
            return analysis
        from dbt_ripple.graph.assets.asset_lineage import AssetLineage

        return AssetLineage(self.declared, analysis, self.cache).analysis


class LiveProject:
    """Answers by calling what the commands call. One thread asks at a time.

    Args:
        setting: of the command: ``--partial``, the hooks that ripple.yml names.
        project_dir: of the dbt project, or any folder.
        target_path: as ``--target-path`` says it.
        assets: files of assets, and stores of events, that are read.
        file: the assets file that is written; None is ripple_assets.yml beside the project.
        cache: for analyses; open as long as this is asked.
        threads: as ``--threads``.
    """

    def __init__(
        self,
        setting: Setting,
        project_dir: Path,
        target_path: Path | None,
        assets: AssetOptions,
        file: Path | None,
        cache: Cache | None,
        threads: int | None,
    ) -> None:
        self._project_dir = project_dir
        self._target_path = target_path
        self._folder = artifacts_folder(project_dir, target_path)
        self._file, _ = files_of(file, project_dir)
        files = (file, *assets.files) if file is not None else assets.files
        self._assets = assets._replace(files=tuple(dict.fromkeys(files)))
        self._cache = cache
        self._threads = threads
        # What is opened is let go when its files change.
        self._setting = replace(setting, keeps=None)
        self._target: tuple[_State, TargetFolder] | None = None
        self._opened: tuple[_State, _Opened] | None = None
        self._page: tuple[_State, str] | None = None

    # -- what is asked ------------------------------------------------------------------------------

    def register(self, asset: Asset) -> RegisteredAsset:
        """Write an asset down, unless dbt knows it.

        Raises:
            MalformedError: its type, its name or something that it reads is not valid.
            RippleError: the project cannot be read, or the file cannot be written.
        """
        with set_to(self._setting):
            opened = self._open()
            known = _dbt_node(opened.target.project, asset)
            if known is not None:
                return RegisteredAsset(
                    id=known.unique_id,
                    asset_type=asset.asset_type,
                    name=asset.name,
                    source_ref=asset.source_ref,
                    upstream_assets=_above(asset, opened.project),
                    kept_in="dbt",
                    change="known to dbt",
                )
            return self._registered(asset, opened)

    def lineage(
        self, asked: str, direction: Literal["upstream", "downstream", "both"], depth: int
    ) -> Lineage:
        """What is upstream or downstream of a node, or of a column.

        Raises:
            UnknownError: there is no such node or column.
            RippleError: the project cannot be read.
        """
        from dbt_ripple.rendering.trace import TraceView, column_view, node_view

        with set_to(self._setting):
            opened = self._open()
            project = opened.project
            root, column = _asked(project, asked)
            view: TraceView[Any]
            if column is None:
                view = node_view(project, root, direction, depth, include_tests=False)
            else:
                try:
                    view = column_view(project, opened.analysis, root, column, direction, depth)
                except RippleError as error:
                    raise UnknownError(error) from None
            return lineage_of(view, asked, lambda unique_id: _id_in(project, unique_id))

    def impact(self, asked: str, changes: list[Change]) -> dict[str, object]:
        """Who would break, as ``impact --format json`` says it.

        Raises:
            UnknownError: there is no such node.
            MalformedError: a change is none, or of a column that is not there.
            RippleError: the project cannot be read.
        """
        from dbt_ripple.governance.impact import impact
        from dbt_ripple.rendering.json_values import plain

        with set_to(self._setting):
            opened = self._open()
            node, column = _asked(opened.project, asked)
            if column is not None:
                why = RippleError(f"names a column, {column}", asked, "name its table")
                raise MalformedError(why)
            analysis = opened.target.analysis()
            try:
                report = impact(
                    opened.target.project,
                    node,
                    changes,
                    analysis=analysis,
                    cache=self._cache,
                    assets=opened.declared,
                )
            except RippleError as error:
                raise MalformedError(error) from None
            opaque = {unique_id: reason.message for unique_id, reason in report.opaque.items()}
            return {
                "asset_id": asked,
                **plain(report.document()),
                "not_analysed": opaque,
            }

    def page(self) -> str:
        """The explorer.

        Raises:
            RippleError: the project cannot be read.
        """
        from dbt_ripple.cli.explorer import described
        from dbt_ripple.pages.explorer import explorer_page

        with set_to(self._setting):
            opened = self._open()
            assert self._opened is not None
            state = self._opened[0]
            if self._page is None or self._page[0] != state:
                document = described(opened.target, opened.declared, self._cache)
                self._page = state, explorer_page(document)
            return self._page[1]

    def incident(self, asked: str, since: timedelta) -> dict[str, Any]:
        """What on-call has to know of a test, a node or a column, as Slack's blocks.

        Raises:
            RippleError: there is no such thing, or the project cannot be read.
        """
        from dbt_ripple.cli.incident import slack_answer

        with set_to(self._setting):
            return slack_answer(
                asked,
                since,
                assets=self._assets,
                cache=self._cache,
                threads=self._threads,
                project_dir=self._project_dir,
                target_path=self._target_path,
            )

    # -- what it is asked about ---------------------------------------------------------------------

    def _open(self) -> _Opened:
        of_dbt = _state([self._folder / name for name in _ARTIFACTS])
        if self._target is None or self._target[0] != of_dbt:
            self._target = self._opened = self._page = None
            target = open_dbt_or_assets(
                self._project_dir, self._target_path, None, self._cache, self._threads
            )
            target = complete(target, self._cache, project_dir=self._project_dir, tests=True)
            self._target = of_dbt, target
        state = (*of_dbt, *_state(self._asset_files()))
        if self._opened is None or self._opened[0] != state:
            target = self._target[1]
            declared = open_assets(self._project_dir, self._there(), lambda: target.project)
            self._opened = state, _Opened(target, declared, self._cache)
        return self._opened[1]

    def _there(self) -> AssetOptions:
        """The options without the file that is yet to be written."""
        files = tuple(f for f in self._assets.files if f != self._file or f.is_file())
        return self._assets._replace(files=files)

    def _asset_files(self) -> Iterator[Path]:
        yield from assets_files(self._project_dir, self._there().files)
        for place in self._assets.events or ():
            yield from sorted(place.glob("events-*.ndjson")) if place.is_dir() else [place]

    def _registered(self, asset: Asset, opened: _Opened) -> RegisteredAsset:
        from dbt_ripple.artifacts.assets_file import read_assets
        from dbt_ripple.governance.asset_edits import Registration, registered

        own = self._file.resolve()
        files = assets_files(self._project_dir, self._there().files)
        others = [file for file in files if file.resolve() != own]
        one = Registration(
            id=f"{asset.asset_type}:{asset.name}",
            source_ref=asset.source_ref,
            description=asset.description,
            owner=asset.owner,
            schedule=asset.schedule,
            tags=asset.tags,
            reads=asset.upstream_assets,
            sql=asset.sql,
            dialect=asset.dialect,
        )
        if asset.asset_type not in OF_PREFIX:
            fix = did_you_mean(asset.asset_type, OF_PREFIX, f"say one of {', '.join(OF_PREFIX)}")
            raise MalformedError(RippleError(f"{asset.asset_type!r} is no asset_type", "", fix))
        analysis = opened.target.analysis(tests=False)
        try:
            edited = registered(
                self._file, [one], opened.target.project, analysis, read_assets(others)
            )
        except RippleError as error:
            raise MalformedError(error) from None
        edited.write()
        project = self._open().project
        prefix, _, name = one.id.partition(":")
        node = project.nodes[f"asset.{prefix}.{name}"]
        return RegisteredAsset(
            id=_id(node),
            asset_type=asset_type(node),
            name=asset.name,
            source_ref=asset.source_ref,
            upstream_assets=[_id_in(project, above) for above in project.parents[node.unique_id]],
            kept_in=self._file.name,
            change=edited.changed[one.id],  # type: ignore[arg-type]
        )


def _state(files: Iterator[Path] | list[Path]) -> _State:
    """By what files are told apart from what they were."""
    found = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)


def _dbt_node(project: Project, asset: Asset) -> Node | None:
    """The node of dbt that an asset is, by its name and type."""
    try:
        node, column = find_node(project, asset.name)
    except RippleError:
        return None
    return node if column is None and asset_type(node) == asset.asset_type else None


def _above(asset: Asset, project: Project) -> list[str]:
    """The ids of what an asset reads, each of which there has to be."""
    try:
        return [_id(_asked(project, name)[0]) for name in asset.upstream_assets]
    except UnknownError as error:
        raise MalformedError(error.error) from None


def _asked(project: Project, text: str) -> tuple[Node, str | None]:
    try:
        return find_node(project, text)
    except RippleError as error:
        raise UnknownError(error) from None


def _id(node: Node) -> str:
    """By what a node is asked for: an asset's id, or dbt's unique_id."""
    return node.label or node.unique_id if node.resource_type == "asset" else node.unique_id


def _id_in(project: Project, unique_id: str) -> str:
    node = project.nodes.get(unique_id)
    return _id(node) if node is not None else unique_id
