"""What `dbt-ripple serve` answers: questions to a `session.project.Project`, whose files may change meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from dbt_ripple.artifacts import Node, asset_type, did_you_mean, find_node
from dbt_ripple.artifacts import Project as Artifacts
from dbt_ripple.artifacts.assets_file import OF_PREFIX
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.trace import Line, TraceView, tree_lines
from dbt_ripple.serve.api import MalformedError, UnknownError
from dbt_ripple.serve.openapi import MOST_NODES, Asset, Lineage, RegisteredAsset, TreeNode

if TYPE_CHECKING:
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.pages.project_document import ProjectDocument
    from dbt_ripple.session.project import Project


class LiveProject:
    """Answers about a project. One thread asks at a time.

    Args:
        project: what is asked.
        say: told each note of an answer once.
    """

    def __init__(self, project: Project, say: Callable[[str], None]) -> None:
        self._project = project
        self._say = say
        self._said: set[str] = set()
        self._page: tuple[ProjectDocument, str] | None = None

    def register(self, asset: Asset) -> RegisteredAsset:
        """Write an asset down, unless dbt knows it.

        Raises:
            MalformedError: its type, its name or something that it reads is not valid.
            RippleError: the project cannot be read, or the file cannot be written.
        """
        from dbt_ripple.governance.asset_edits import Registration

        artifacts = self._now().artifacts
        known = _dbt_node(artifacts, asset)
        if known is not None:
            return _registered(known, asset, _above(asset, artifacts), "dbt", "known to dbt")
        if asset.asset_type not in OF_PREFIX:
            fix = did_you_mean(asset.asset_type, OF_PREFIX, f"say one of {', '.join(OF_PREFIX)}")
            raise MalformedError(RippleError(f"{asset.asset_type!r} is no asset_type", "", fix))
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
        try:
            edited = self._project.register([one], dry_run=True)
        except RippleError as error:
            raise MalformedError(error) from None
        edited.write()
        artifacts = self._project.refreshed().artifacts
        prefix, _, name = one.id.partition(":")
        node = artifacts.nodes[f"asset.{prefix}.{name}"]
        above = [_id_in(artifacts, parent) for parent in artifacts.parents[node.unique_id]]
        return _registered(node, asset, above, edited.file.name, edited.changed[one.id])

    def lineage(
        self, asked: str, direction: Literal["upstream", "downstream", "both"], depth: int
    ) -> Lineage:
        """What is upstream or downstream of a node, or of a column.

        Raises:
            UnknownError: there is no such node or column.
            RippleError: the project cannot be read.
        """
        artifacts = self._now().artifacts
        node, column = _asked(artifacts, asked)
        name = node.unique_id if column is None else f"{node.unique_id}.{column}"
        try:
            trace = self._project.trace(name, direction=direction, depth=depth)
        except RippleError as error:
            raise UnknownError(error) from None
        self._note(trace.notes)
        return lineage_of(trace.view, asked, lambda unique_id: _id_in(artifacts, unique_id))

    def impact(self, asked: str, changes: list[Change]) -> dict[str, object]:
        """Who would break, as ``impact --format json`` says it.

        Raises:
            UnknownError: there is no such node.
            MalformedError: a change is none, or of a column that is not there.
            RippleError: the project cannot be read.
        """
        node, column = _asked(self._now().artifacts, asked)
        if column is not None:
            raise MalformedError(RippleError(f"names a column, {column}", asked, "name its table"))
        try:
            answer = self._project.impact(node.unique_id, changes)
        except RippleError as error:
            raise MalformedError(error) from None
        self._note(answer.notes)
        return {
            "asset_id": asked,
            **answer.document(),
            "not_analysed": dict(answer.not_analysed),
        }

    def page(self) -> str:
        """The explorer.

        Raises:
            RippleError: the project cannot be read.
        """
        from dbt_ripple.pages.explorer import explorer_page

        document = self._now().described()
        if self._page is None or self._page[0] is not document:
            self._page = document, explorer_page(document)
        return self._page[1]

    def incident(self, asked: str, since: timedelta) -> dict[str, Any]:
        """What on-call has to know of a test, a node or a column, as Slack's blocks.

        Raises:
            RippleError: there is no such thing, or the project cannot be read.
        """
        return self._project.refreshed().incident(asked, since, "slack")

    def _now(self) -> Project:
        """The project as its files are now.

        Raises:
            RippleError: it cannot be read.
        """
        return self._project.refreshed().analysed()

    def _note(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._said:
                self._said.add(note)
                self._say(note)


def _registered(
    node: Node, asset: Asset, above: list[str], kept_in: str, change: Any
) -> RegisteredAsset:
    return RegisteredAsset(
        id=_id(node),
        asset_type=asset.asset_type if kept_in == "dbt" else asset_type(node),
        name=asset.name,
        source_ref=asset.source_ref,
        upstream_assets=above,
        kept_in=kept_in,
        change=change,
    )


def _dbt_node(project: Artifacts, asset: Asset) -> Node | None:
    """The node of dbt that an asset is, by its name and type."""
    try:
        node, column = find_node(project, asset.name)
    except RippleError:
        return None
    return node if column is None and asset_type(node) == asset.asset_type else None


def _above(asset: Asset, project: Artifacts) -> list[str]:
    """The ids of what an asset reads, each of which there has to be."""
    try:
        return [_id(_asked(project, name)[0]) for name in asset.upstream_assets]
    except UnknownError as error:
        raise MalformedError(error.error) from None


def _asked(project: Artifacts, text: str) -> tuple[Node, str | None]:
    try:
        return find_node(project, text)
    except RippleError as error:
        raise UnknownError(error) from None


def _id(node: Node) -> str:
    """By what a node is asked for: an asset's id, or dbt's unique_id."""
    return node.label or node.unique_id if node.resource_type == "asset" else node.unique_id


def _id_in(project: Artifacts, unique_id: str) -> str:
    node = project.nodes.get(unique_id)
    return _id(node) if node is not None else unique_id


def lineage_of(view: TraceView[Any], asked: str, id_of: Callable[[str], str]) -> Lineage:
    """The graph that a trace is.

    Args:
        view: the trace, of nodes or of columns; with a depth.
        asked: how its root was asked for.
        id_of: the id of a node, by its unique_id.
    """
    trace = view.trace
    way: list[Literal["upstream", "downstream"]] = ["upstream", "downstream"]
    if trace.direction != "both":
        way = [trace.direction]
    root: TreeNode | None = None
    left_out = False
    for direction in way:
        stack: list[TreeNode] = []
        for number, line in enumerate(tree_lines(view, direction)):
            if number >= MOST_NODES:
                left_out = True
                break
            depth = len(line.last)
            if depth == 0 and root is not None:
                node = root
            else:
                node = _node(line, id_of)
            del stack[depth:]
            if stack:
                getattr(stack[-1], direction).append(node)
            stack.append(node)
            root = root or node
    assert root is not None
    return Lineage(
        id=asked,
        direction=trace.direction,
        depth=trace.depth or 0,
        node_count=len(trace.depths),
        complete=not left_out,
        graph=root,
    )


def _node(line: Line, id_of: Callable[[str], str]) -> TreeNode:
    vertex = line.vertex
    unique_id, column = vertex if isinstance(vertex, tuple) else (vertex, None)
    return TreeNode(
        id=id_of(unique_id) + (f".{column}" if column is not None else ""),
        name=line.label.name,
        asset_type=line.label.kind.lower(),
        kinds=line.kinds,
        repeated=line.seen,
        upstream=[],
        downstream=[],
    )
