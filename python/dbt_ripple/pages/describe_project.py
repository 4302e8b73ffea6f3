"""The document of a project, made of its artifacts and the analysis of its SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast

import msgspec

from dbt_ripple import __version__
from dbt_ripple.artifacts import Node, Project, RunResult, contract_version
from dbt_ripple.flow.definitions import is_computed
from dbt_ripple.governance.diagnose import Freshness, LastRun
from dbt_ripple.graph.lineage import Analysis, ColumnEdge
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import (
    ROWS,
    ColumnEdgeRow,
    ColumnRow,
    EdgeRow,
    NodeRow,
    TestColumnRow,
)
from dbt_ripple.graph.pii import PiiColumn, pii_columns
from dbt_ripple.graph.possible_readers import guessed_edges
from dbt_ripple.graph.traversal import Vertex, column_graph, count_below
from dbt_ripple.openlineage.project_facts import classification, severity
from dbt_ripple.pages.health import (
    SLO_TESTS,
    Health,
    Slos,
    health,
    incomplete_paths,
    slo_of,
    unknown_downstreams,
)
from dbt_ripple.pages.project_document import (
    ContractVersion,
    DescribedColumn,
    DescribedNode,
    DescribedTest,
    Link,
    ProjectDocument,
)

_CHECKS: Final = frozenset({"test", "unit_test"})
_SUCCESS: Final = ("success", "pass")
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def describe_project(
    project: Project, analysis: Analysis, earlier: Sequence[Project] = ()
) -> ProjectDocument:
    """All that pages say of a project.

    Args:
        project: the artifacts; with declared assets, those laid over it (`DeclaredGraph.whole`).
        analysis: of them, with tests and expressions.
        earlier: artifacts of earlier runs, or of earlier versions of the project, in any order. They tell
            when a node was last built, how its tests ended, and which versions its contract had.
    """
    rows = build_rows(project, analysis, loaded_at=_LONG_AGO, max_closure=0, repeatable=False).rows
    every = cast("list[NodeRow]", rows["nodes"])
    nodes = [node for node in every if node.resource_type not in _CHECKS]
    edges = cast("list[EdgeRow]", rows["edges"])
    column_edges = cast("list[ColumnEdgeRow]", rows["column_edges"])
    columns: dict[str, list[ColumnRow]] = {}
    for column in cast("list[ColumnRow]", rows["columns"]):
        columns.setdefault(column.unique_id, []).append(column)
    ids = {node.unique_id for node in nodes}
    links = _links(project, analysis, column_edges)
    column_children: dict[Vertex, list[Vertex]] = {}
    for link in links:
        column_children.setdefault(link.parent, []).append(link.child)
    neighbours = _Neighbours(ids, edges)
    runs = _Runs([*earlier, project])
    tests = _tests(project, runs, cast("list[TestColumnRow]", rows["test_columns"]))
    tests_of, tests_of_columns = _tests_of(project, tests, ids)
    slos = {
        unique_id: sum((_slo(tests[test]) for test in of if tests[test].is_slo), Slos())
        for unique_id, of in tests_of.items()
    }
    below = count_below(neighbours.children, of=lambda unique_id: unique_id)
    below_columns = count_below(column_children, of=lambda vertex: vertex[0])
    pii = {(p.unique_id, p.column.lower()): p for p in pii_columns(project, analysis)}
    fresh = {result.unique_id: result for result in project.freshness}
    incomplete = incomplete_paths(every, edges)
    unknown = unknown_downstreams(every, edges, column_edges)
    versions = _versions([*earlier, project])
    described = {}
    for row in sorted(nodes, key=lambda row: row.unique_id):
        unique_id = row.unique_id
        node = project.nodes.get(unique_id)
        loaded = fresh.get(unique_id)
        described[unique_id] = DescribedNode(
            unique_id=unique_id,
            name=node.display_name if node else row.name,
            label=row.label,
            resource_type=row.resource_type,
            asset_type=row.asset_type,
            package_name=row.package_name,
            path=row.path,
            relation=row.relation_name,
            materialized=row.materialized,
            layer=_layer(node, row.resource_type),
            tags=tuple(node.tags if node else ()),
            description=row.description,
            owner=row.owner,
            owner_name=row.owner_name,
            owner_email=row.owner_email,
            owner_channel=row.owner_channel,
            domain=row.domain,
            group=row.group_name,
            access=row.access,
            criticality=row.criticality,
            certified=row.certified,
            canonical=row.canonical,
            contract_version=row.contract_version,
            contract_enforced=row.contract_enforced,
            contract_versions=versions.get(_contract(node), ()) if node else (),
            pii=row.pii,
            status=row.analysis_status,
            reason=row.analysis_reason,
            columns=tuple(
                _column(row, column, pii, tests_of_columns, below_columns)
                for column in columns.get(unique_id, ())
            ),
            parents=tuple(neighbours.parents.get(unique_id, ())),
            children=tuple(neighbours.children.get(unique_id, ())),
            tests=tuple(tests_of.get(unique_id, ())),
            last_run=runs.last(unique_id),
            last_success=runs.succeeded.get(unique_id),
            freshness=None
            if loaded is None
            else Freshness(
                status=loaded.status,
                max_loaded_at=loaded.max_loaded_at,
                age_seconds=loaded.max_loaded_at_time_ago_in_s,
            ),
            slos=slos.get(unique_id, Slos()),
            path_is_complete=unique_id not in incomplete,
            blast_radius=below.get(unique_id, 0),
        )
    domains = {node.domain for node in nodes if node.domain}

    def of_nodes(chosen: Sequence[NodeRow]) -> Health:
        own = (slos[n.unique_id] for n in chosen if n.unique_id in slos)
        return health(chosen, columns, unknown, incomplete, own)

    metadata = project.metadata
    return ProjectDocument(
        name=project.name,
        adapter_type=metadata.adapter_type,
        dbt_version=metadata.dbt_version,
        ripple_version=__version__,
        generated_at=metadata.generated_at,
        has_catalog=bool(project.catalog),
        nodes=described,
        tests=tests,
        links=links,
        health=of_nodes(nodes),
        domains={d: of_nodes([n for n in nodes if n.domain == d]) for d in sorted(domains)},
        notes=tuple(project.notes),
    )


class _Neighbours:
    """Parents and children of each node, tests left out."""

    def __init__(self, ids: set[str], edges: Iterable[EdgeRow]) -> None:
        self.parents: dict[str, list[str]] = {}
        self.children: dict[str, list[str]] = {}
        for edge in edges:
            if edge.parent_id in ids and edge.child_id in ids:
                self.parents.setdefault(edge.child_id, []).append(edge.parent_id)
                self.children.setdefault(edge.parent_id, []).append(edge.child_id)


class _Runs:
    """How nodes ended in the runs at hand; of several projects the youngest run of a node counts."""

    def __init__(self, projects: Iterable[Project]) -> None:
        self.succeeded: dict[str, datetime] = {}
        self.results: dict[str, RunResult] = {}
        of_projects: list[tuple[datetime, RunResult]] = []
        for project in projects:
            generated_at = project.metadata.generated_at or _LONG_AGO
            of_projects += (
                (result.completed_at or generated_at, result) for result in project.executed
            )
        for _, result in sorted(of_projects, key=lambda item: item[0]):
            self.results[result.unique_id] = result
            if result.status in _SUCCESS and result.completed_at is not None:
                self.succeeded[result.unique_id] = result.completed_at

    def last(self, unique_id: str) -> LastRun | None:
        result = self.results.get(unique_id)
        if result is None:
            return None
        succeeded = result.status in _SUCCESS
        return LastRun(status=result.status, at=result.completed_at, succeeded=succeeded)


def _links(
    project: Project, analysis: Analysis, column_edges: Iterable[ColumnEdgeRow]
) -> tuple[Link, ...]:
    """Every pair of columns or rows with its kinds; what may be read beside what is."""
    guessed, is_guess = guessed_edges(project, analysis)
    certain = (ColumnEdge(*msgspec.structs.astuple(row)[1:]) for row in column_edges)
    graph = column_graph([*certain, *guessed])
    return tuple(
        Link(*parent, *child, tuple(kinds), is_guess(parent, child))
        for (parent, child), kinds in sorted(graph.kinds.items())
    )


def _column(
    node: NodeRow,
    row: ColumnRow,
    pii: Mapping[Vertex, PiiColumn],
    tests: Mapping[Vertex, list[str]],
    below: Mapping[Vertex, int],
) -> DescribedColumn:
    text = row.expression
    return DescribedColumn(
        name=row.column_name,
        type=row.data_type,
        description=row.description,
        expression=text if text and is_computed(text) else None,
        pii=pii.get((row.unique_id, row.column_name.lower())),
        is_followed=node.analysis_status == "analysed" and row.fingerprint is not None,
        tests=tuple(tests.get((row.unique_id, row.column_name), ())),
        blast_radius=below.get((row.unique_id, row.column_name), 0),
    )


def _tests(
    project: Project, runs: _Runs, reads: Iterable[TestColumnRow]
) -> dict[str, DescribedTest]:
    read: dict[str, list[Vertex]] = {}
    for row in reads:
        read.setdefault(row.test_id, []).append((row.unique_id, row.column_name))
    tests = {}
    for test in sorted(project.of_type(*_CHECKS), key=lambda test: test.unique_id):
        result = runs.results.get(test.unique_id)
        kind = classification(test)
        tests[test.unique_id] = DescribedTest(
            unique_id=test.unique_id,
            name=test.name,
            kind=kind,
            severity=severity(test),
            is_slo=kind.rpartition(".")[2] in SLO_TESTS or "slo" in test.tags,
            description=test.description or None,
            reads=tuple(sorted(read.get(test.unique_id, ()))),
            last_run=runs.last(test.unique_id),
            failures=result.failures if result else None,
            message=result.message if result else None,
        )
    return tests


def _tests_of(
    project: Project, tests: Mapping[str, DescribedTest], ids: set[str]
) -> tuple[dict[str, list[str]], dict[Vertex, list[str]]]:
    """The tests of each node, and of each column."""
    of_nodes: dict[str, list[str]] = {}
    of_columns: dict[Vertex, list[str]] = {}
    for test in tests.values():
        own = project.nodes[test.unique_id].attached_node
        read = (unique_id for unique_id, _ in test.reads)
        parents = [own] if own else project.parents.get(test.unique_id, [])
        for unique_id in dict.fromkeys([*parents, *read]):
            if unique_id in ids:
                of_nodes.setdefault(unique_id, []).append(test.unique_id)
        for vertex in test.reads:
            if vertex[1] != ROWS:
                of_columns.setdefault(vertex, []).append(test.unique_id)
    return of_nodes, of_columns


def _slo(test: DescribedTest) -> Slos:
    return slo_of(test.last_run.status if test.last_run else None)


def _layer(node: Node | None, resource_type: str) -> str:
    layer = node.meta.get("layer") if node else None
    if isinstance(layer, str) and layer.strip():
        return layer.strip()
    # The fully qualified name: package, folders, name (and version).
    if node is not None and resource_type == "model":
        folders = node.fqn[1 : -2 if node.version is not None else -1]
        return folders[0] if folders else resource_type
    return resource_type


def _contract(node: Node) -> tuple[str, str, str]:
    """What stays the same over the versions of a node."""
    return node.resource_type, node.package_name, node.name


def _versions(
    projects: Iterable[Project],
) -> dict[tuple[str, str, str], tuple[ContractVersion, ...]]:
    """The versions of each contract in these artifacts, the last of which are today's."""
    *before, today = projects
    ordered = [*sorted(before, key=lambda p: p.metadata.generated_at or _LONG_AGO), today]
    histories: dict[tuple[str, str, str], dict[str, ContractVersion]] = {}
    contracts_before: set[tuple[str, str, str]] = set()
    for project in ordered:
        generated_at = project.metadata.generated_at
        there: dict[tuple[str, str, str], dict[str, Node]] = {}
        for node in project.nodes.values():
            if node.resource_type not in _CHECKS:
                versions = there.setdefault(_contract(node), {})
                if (version := contract_version(node)) is not None:
                    versions[version] = node
        for contract, versions in there.items():
            history = histories.setdefault(contract, {})
            for version, node in versions.items():
                standing = history.pop(version, None)
                since = generated_at if contract in contracts_before else None
                if standing is not None and standing.until is None:
                    since = standing.since
                history[version] = ContractVersion(
                    version=version,
                    since=since,
                    unique_id=node.unique_id if project is today else None,
                    is_latest=node.latest_version is not None
                    and node.version == node.latest_version,
                    deprecation_date=str(node.deprecation_date) if node.deprecation_date else None,
                )
        for contract, history in histories.items():
            for version, standing in history.items():
                if standing.until is None and version not in there.get(contract, {}):
                    history[version] = _ended(standing, generated_at)
        contracts_before |= there.keys()
    return {contract: tuple(history.values()) for contract, history in histories.items()}


def _ended(version: ContractVersion, at: datetime | None) -> ContractVersion:
    return msgspec.structs.replace(version, until=at, unique_id=None, is_latest=False)
