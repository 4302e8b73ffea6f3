"""The evidence of a node or a column, gathered from what is at hand."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple import __version__
from dbt_ripple.artifacts import Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.data_tests import outcome_fingerprints
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.traversal import Vertex, reach, reach_all
from dbt_ripple.pages.consecutive_loads import State, history
from dbt_ripple.pages.evidence_document import (
    Artifact,
    DataVersion,
    Dependency,
    EvidenceColumn,
    EvidenceDocument,
    EvidenceNode,
    EvidenceTest,
    Recorded,
    Side,
    TestedColumn,
    Tool,
)
from dbt_ripple.pages.project_document import DescribedNode, Link, ProjectDocument
from dbt_ripple.rendering.page_documents import Absent

ARTIFACTS: Final = ("manifest.json", "catalog.json", "run_results.json", "sources.json")
_TOOLS: Final = ("sqlglot", "openlineage-python")
_SUCCESS: Final = ("success", "pass")


@dataclass(frozen=True)
class Lineage:
    """The part of the lineage that the evidence is about.

    Attributes:
        sides: of each node, by unique_id: root, upstream or downstream, and how many steps away; the
            root first, then upstream, then downstream, nearest first.
        columns: the columns of each node that are part of it; None where all are.
        links: between these.
    """

    sides: dict[str, tuple[Side, int]]
    columns: dict[str, set[str]] | None
    links: list[Link]

    @property
    def made_of(self) -> set[str]:
        """The root and what is upstream."""
        return {unique_id for unique_id, (side, _) in self.sides.items() if side != "downstream"}


def lineage_of(document: ProjectDocument, root: str, column: str | None) -> Lineage:
    """What a node, or one of its columns, is made of, and who depends on it.

    A column is made of what its value comes from, and of what decides which rows there are.

    Raises:
        RippleError: it is a test.
    """
    if root not in document.nodes:
        raise RippleError("evidence is about nodes that hold or read data, not about tests", root)
    if column is None:
        above = reach(root, {u: node.parents for u, node in document.nodes.items()})
        below = reach(root, {u: node.children for u, node in document.nodes.items()})
        sides = _sides(root, above, below)
        links = [
            link
            for link in document.links
            if {link.parent_id, link.child_id} <= above.keys()
            or {link.parent_id, link.child_id} <= below.keys()
        ]
        return Lineage(sides, None, links)
    parents: dict[Vertex, list[Vertex]] = {}
    children: dict[Vertex, list[Vertex]] = {}
    for link in document.links:
        parents.setdefault(link.child, []).append(link.parent)
        children.setdefault(link.parent, []).append(link.child)
    made_of = reach_all([(root, column), (root, ROWS)], parents)
    read_by = reach((root, column), children)
    columns: dict[str, set[str]] = {}
    for unique_id, name in (*made_of, *read_by):
        columns.setdefault(unique_id, set()).add(name)
    sides = _sides(root, _nearest(made_of), _nearest(read_by))
    links = [
        link
        for link in document.links
        if (link.parent in made_of and link.child in made_of)
        or (link.parent in read_by and link.child in read_by)
    ]
    return Lineage(sides, columns, links)


def _nearest(vertices: Mapping[Vertex, int]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for (unique_id, _), depth in vertices.items():
        depths[unique_id] = min(depth, depths.get(unique_id, depth))
    return depths


def _sides(
    root: str, above: Mapping[str, int], below: Mapping[str, int]
) -> dict[str, tuple[Side, int]]:
    def ordered(side: Side, depths: Mapping[str, int]) -> dict[str, tuple[Side, int]]:
        by_depth = sorted((depth, unique_id) for unique_id, depth in depths.items())
        return {unique_id: (side, depth) for depth, unique_id in by_depth if unique_id != root}

    # In a cycle, what is on both sides is what it is made of.
    return {
        **ordered("downstream", below),
        root: ("root", 0),
        **ordered("upstream", above),
    }


@dataclass
class Gathering:
    """What evidence is gathered from.

    Attributes:
        project: with its declared assets.
        analysis: of it.
        document: the same, described.
        states: earlier ones, oldest first, and the project as it is as the last.
        folders: of the artifacts of each of the states.
        recorded: rows of the lineage tables; None where they were not asked.
        absent: what is already known to be missing.
    """

    project: Project
    analysis: Analysis
    document: ProjectDocument
    states: Sequence[State]
    folders: Sequence[Path]
    recorded: Recorded | None = None
    absent: list[Absent] = field(default_factory=list)

    def add_unread(self, unread: Mapping[str, str]) -> None:
        """Say which models of the lineage tables could not be read, and why."""
        self.absent += [Absent(what=f"the model {name}", why=why) for name, why in unread.items()]


def gather(
    at_hand: Gathering,
    lineage: Lineage,
    root: str,
    column: str | None,
    definitions: Mapping[str, str],
    cache: Cache | None = None,
) -> EvidenceDocument:
    """The document of a node or of a column.

    Args:
        at_hand: what there is.
        lineage: of `lineage_of`.
        root: unique_id of the node.
        column: as the analysis spells it.
        definitions: the files of the pack with SQL, by unique_id.
        cache: of the analyses.
    """
    project, document = at_hand.project, at_hand.document
    made_of = lineage.made_of
    changes, violations = history(at_hand.states, made_of, cache)
    builder = _Builder(at_hand, lineage, definitions)
    nodes = [builder.node(unique_id) for unique_id in _in_order(lineage.sides)]
    wanted = dict.fromkeys(t for n in nodes if n.unique_id in made_of for t in n.tests)
    return EvidenceDocument(
        project=project.name,
        adapter_type=project.metadata.adapter_type,
        root=root,
        column=column,
        artifacts=list(_artifacts(at_hand)),
        tools=_tools(project),
        nodes=nodes,
        tests=[builder.test(unique_id) for unique_id in sorted(wanted)],
        changes=changes,
        violations=violations,
        recorded=at_hand.recorded or {},
        absent=[*_absent(at_hand, nodes, document), *at_hand.absent],
    )


def _in_order(sides: Mapping[str, tuple[Side, int]]) -> list[str]:
    place = {"root": 0, "upstream": 1, "downstream": 2}
    return sorted(sides, key=lambda u: (place[sides[u][0]], sides[u][1], u))


class _Builder:
    """Makes the nodes and tests of the document."""

    def __init__(
        self, at_hand: Gathering, lineage: Lineage, definitions: Mapping[str, str]
    ) -> None:
        self._project = at_hand.project
        self._analysis = at_hand.analysis
        self._document = at_hand.document
        self._lineage = lineage
        self._definitions = definitions
        self._sources: dict[Vertex, list[Link]] = {}
        for link in lineage.links:
            self._sources.setdefault(link.child, []).append(link)
        self._results = {result.unique_id: result for result in at_hand.project.executed}
        self._test_fingerprints = outcome_fingerprints(
            ProjectContext(at_hand.project.of_dbt or at_hand.project), at_hand.analysis.tests
        )

    def node(self, unique_id: str) -> EvidenceNode:
        described = self._document.nodes[unique_id]
        node = self._project.nodes.get(unique_id)
        side, depth = self._lineage.sides[unique_id]
        analysed = self._analysis.nodes.get(unique_id)
        prints = (
            dict(zip(analysed.columns, analysed.fingerprints, strict=False)) if analysed else {}
        )
        by_name = {name.lower(): print_ for name, print_ in prints.items() if print_}
        part = None if self._lineage.columns is None else self._lineage.columns[unique_id]
        return EvidenceNode(
            unique_id=unique_id,
            name=described.name,
            resource_type=described.resource_type,
            asset_type=described.asset_type,
            side=side,
            depth=depth,
            path=described.path,
            relation=described.relation,
            materialized=described.materialized,
            description=described.description or None,
            owner=described.owner,
            owner_name=described.owner_name,
            owner_email=described.owner_email,
            owner_channel=described.owner_channel,
            domain=described.domain,
            access=described.access,
            criticality=described.criticality,
            certified=described.certified,
            canonical=described.canonical,
            tags=sorted(described.tags),
            contract_version=described.contract_version,
            contract_enforced=described.contract_enforced,
            contract_versions=list(described.contract_versions),
            definition=self._definitions.get(unique_id),
            checksum=_checksum(node),
            rows_fingerprint=(analysed.rows_fingerprint or None) if analysed else None,
            status=described.status,
            reason=described.reason,
            columns=[
                EvidenceColumn(
                    name=column.name,
                    type=column.type,
                    description=column.description or None,
                    expression=column.expression,
                    fingerprint=by_name.get(column.name.lower()),
                    pii=column.pii.pii
                    if column.pii is not None and column.pii.origin != "declassified"
                    else None,
                    pii_reason=column.pii.reason
                    if column.pii is not None and column.pii.origin == "declassified"
                    else None,
                    comes_from=self._comes_from(unique_id, column.name),
                )
                for column in described.columns
                if part is None or column.name in part
            ],
            rows_come_from=self._comes_from(unique_id, ROWS),
            last_run=described.last_run,
            last_success=described.last_success,
            freshness=described.freshness,
            data=self._data(described),
            tests=self._tests_of(described, part),
        )

    def _tests_of(self, described: DescribedNode, part: set[str] | None) -> list[str]:
        """The tests of a node; of some of its columns those that read one of them, or no column at all."""
        if part is None:
            return list(described.tests)
        tests = []
        for test in described.tests:
            reads = [c for u, c in self._document.tests[test].reads if u == described.unique_id]
            named = [column for column in reads if column != ROWS]
            if not named or part.intersection(named):
                tests.append(test)
        return tests

    def _comes_from(self, unique_id: str, column: str) -> list[Dependency]:
        return [
            Dependency(
                unique_id=link.parent_id,
                column=link.parent_column,
                kinds=list(dict.fromkeys(f"{kind.type} {kind.subtype}" for kind in link.kinds)),
                masking=any(kind.masking for kind in link.kinds),
                may_read=link.may_read,
            )
            for link in self._sources.get((unique_id, column), ())
        ]

    def _data(self, described: DescribedNode) -> DataVersion | None:
        result = self._results.get(described.unique_id)
        if result is None or result.status not in _SUCCESS:
            return None
        return DataVersion(
            invocation_id=result.invocation_id or None,
            built_at=result.completed_at,
            rows_affected=result.rows_affected,
        )

    def test(self, unique_id: str) -> EvidenceTest:
        test = self._document.tests[unique_id]
        unit = self._analysis.unit_tests.get(unique_id)
        return EvidenceTest(
            unique_id=unique_id,
            name=test.name,
            kind=test.kind,
            severity=test.severity,
            description=test.description or None,
            columns=[TestedColumn(unique_id=u, column=c) for u, c in test.reads],
            fingerprint=unit.fingerprint
            if unit is not None
            else self._test_fingerprints.get(unique_id),
            status=test.last_run.status if test.last_run else None,
            at=test.last_run.at if test.last_run else None,
            failures=test.failures,
            message=test.message,
        )


def _checksum(node: Node | None) -> str | None:
    checksum = node.checksum if node is not None else None
    if isinstance(checksum, dict):
        text = checksum.get("checksum")
        name = checksum.get("name")
        return f"{name}:{text}" if text and name not in (None, "none") else None
    return checksum or None


class _Headed(msgspec.Struct):
    """An artifact, of which only the metadata are read."""

    metadata: dict[str, Any] = {}


def _artifacts(at_hand: Gathering) -> Iterable[Artifact]:
    for state, folder in zip(at_hand.states, at_hand.folders, strict=True):
        for name in ARTIFACTS:
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            try:
                metadata = msgspec.json.decode(content, type=_Headed).metadata
            except msgspec.DecodeError:
                metadata = {}
            invocation = metadata.get("invocation_id")
            yield Artifact(
                file=name,
                sha256=hashlib.sha256(content).hexdigest(),
                generated_at=_moment(metadata.get("generated_at")),
                invocation_id=str(invocation) if invocation else None,
                state=state.number,
            )


def _moment(value: object) -> datetime | None:
    try:
        return msgspec.convert(value, datetime, strict=False) if value else None
    except msgspec.ValidationError:
        return None


def _tools(project: Project) -> list[Tool]:
    tools = [Tool(name="dbt-ripple", version=__version__)]
    if project.metadata.dbt_version:
        tools.append(Tool(name="dbt", version=project.metadata.dbt_version))
    for name in _TOOLS:
        try:
            tools.append(Tool(name=name, version=version(name)))
        except PackageNotFoundError:
            continue
    return tools


def _absent(
    at_hand: Gathering, nodes: Collection[EvidenceNode], document: ProjectDocument
) -> Iterable[Absent]:
    folder = at_hand.folders[-1]
    for name, what in (
        ("catalog.json", "the columns and types that the warehouse has"),
        ("run_results.json", "the last run, and the results of tests"),
        ("sources.json", "the freshness of sources"),
    ):
        if not (folder / name).is_file():
            yield Absent(what=what, why=f"there is no {name} beside the manifest")
    if (folder / "run_results.json").is_file() and not at_hand.project.executed:
        why = "the command that wrote run_results.json runs nothing"
        yield Absent(what="the last run, and the results of tests", why=why)
    if len(at_hand.states) == 1:
        why = "no earlier artifacts were given by --state"
        yield Absent(what="the history of definitions and contracts", why=why)
    if at_hand.recorded is None:
        why = "the lineage tables were not asked (--tables)"
        yield Absent(what="incidents, recorded runs and violations of contracts", why=why)
    for node in nodes:
        if node.side != "downstream" and node.status in ("opaque", "broken"):
            why = node.reason or "it could not be analysed"
            yield Absent(what=f"the columns that {node.name} reads", why=why)
    for note in document.notes:
        # Where the artifacts are is not part of what they say.
        why = note.replace(f"{at_hand.project.target_path}/", "")
        yield Absent(what="a part of the artifacts", why=why)
