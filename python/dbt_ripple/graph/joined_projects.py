"""Several dbt projects of one warehouse: a source of one may be the relation that another one builds.

Each project is analysed on its own, by its own macros and settings. What is handed from one to
another are the columns, rows and fingerprints of a relation: the source that stands for it in the
reading project has those that its builder gives it, not what the reading project declares.

* A source is *built by* a model, seed or snapshot of another project that has its relation name
  (database, schema and identifier, each folded as the adapter does). A node that a plugin took over
  from another project's manifest (dbt's cross-project ``ref``) is built by the node of that id.
* A source that nobody builds and that the first project declares, too, is read through the first one's.
* A source that a node of its own project builds is that node (rule 6), whatever another project says.
* A relation name says nothing about where the warehouse is. Projects on different adapters are not
  joined. Artifacts of another target have other schemas, so that nothing is found there; the
  commands say so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.broken_nodes import BrokenNodeFinder
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.hypothetical import BuiltElsewhere, Supposed
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, NodeAnalysis, UnitTestAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.relation_names import RelationNames

_ONE_WAREHOUSE: Final = {"databricks": "spark"}
"""Adapters that name the same relations."""

_ROUNDS: Final = 20
"""How often a change may go from one project to another: projects may read each other in turn."""


class ProjectNode(NamedTuple):
    """A node of one of the projects, which are numbered."""

    project: int
    unique_id: str


@dataclass(frozen=True)
class Member:
    """One of the projects.

    Attributes:
        project: its artifacts.
        analysis: analyses it on its own; as `TargetFolder.analysis`.
    """

    project: Project
    analysis: Callable[..., Analysis]


class JoinedProjects:
    """Projects whose sources and relations are joined by their names.

    Args:
        members: the projects, the one that is asked about first.
        formerly: the first one as it is deployed, where it is compared: what it builds is found by the
            relation names of both sides, because CI builds into schemas of its own.
        cache: for the analyses that are made here.

    Attributes:
        built_by: by the source (or node of another project) that reads a relation, what builds it.
        read_by: the inverse.
        notes: what is not joined, and why, one sentence each.
    """

    def __init__(
        self,
        members: Sequence[Member],
        formerly: Project | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.members = list(members)
        self.cache = cache
        self.notes: list[str] = []
        self.names = _labels([member.project for member in members])
        self.built_by: dict[ProjectNode, ProjectNode] = {}
        self.read_by: dict[ProjectNode, list[ProjectNode]] = {}
        self._known_finders: dict[int, BrokenNodeFinder] = {}
        self._formerly = formerly
        self._join(formerly)

    def _join(self, formerly: Project | None) -> None:
        names = [_names_of(member.project) for member in self.members]
        builders: dict[tuple[str, str], list[ProjectNode]] = {}
        for number, member_names in enumerate(names):
            sides = [member_names]
            if number == 0 and formerly is not None:
                sides.insert(0, _names_of(formerly))
            for side in sides:
                for key, unique_id in _built(side):
                    places = builders.setdefault((_warehouse(side.project), key), [])
                    if all(place.project != number for place in places):
                        places.append(ProjectNode(number, unique_id))
        for number, member_names in enumerate(names):
            for reader, keys in _readers(member_names):
                at = ProjectNode(number, reader)
                builder = self._by_id(at) or self._by_name(at, keys, builders)
                if builder is not None:
                    self.built_by[at] = builder
                    self.read_by.setdefault(builder, []).append(at)
        self._join_shared_sources(names)
        for number in range(1, len(self.members)):
            if not any(number in (a.project, b.project) for a, b in self.built_by.items()):
                self.notes.append(self._why_alone(number))

    def _join_shared_sources(self, names: Sequence[RelationNames]) -> None:
        """What nobody builds, and the first project declares as a source, too."""
        first, *others = names
        own: dict[tuple[str, str], str] = {}
        for unique_id, keys in _readers(first):
            for key in keys if ProjectNode(0, unique_id) not in self.built_by else ():
                own.setdefault((_warehouse(first.project), key), unique_id)
        for number, member_names in enumerate(others, start=1):
            for reader, keys in _readers(member_names):
                same = [u for k in keys if (u := own.get((_warehouse(member_names.project), k)))]
                at = ProjectNode(number, reader)
                if same and at not in self.built_by:
                    self.built_by[at] = ProjectNode(0, same[0])
                    self.read_by.setdefault(ProjectNode(0, same[0]), []).append(at)

    def _by_id(self, reader: ProjectNode) -> ProjectNode | None:
        """Of a node that was taken over from another project, that node."""
        node = self.node(reader)
        if node.resource_type == "source":
            return None
        for number, member in enumerate(self.members):
            if number != reader.project and member.project.name == node.package_name:
                there = member.project.nodes.get(reader.unique_id)
                if there is not None and not is_external(there, member.project):
                    return ProjectNode(number, reader.unique_id)
        return None

    def _by_name(
        self,
        reader: ProjectNode,
        keys: Sequence[str],
        builders: Mapping[tuple[str, str], Sequence[ProjectNode]],
    ) -> ProjectNode | None:
        project = self.members[reader.project].project
        places = dict.fromkeys(
            place
            for key in keys
            for place in builders.get((_warehouse(project), key), ())
            if place.project != reader.project
        )
        if len(places) > 1:
            several = " and ".join(f"{self.names[p.project]} ({p.unique_id})" for p in places)
            self.notes.append(
                f"{self.node(reader).relation_name or keys[0]}, which {self.names[reader.project]} reads,"
                f" is built by {several}: taken is the first"
            )
        return next(iter(places), None)

    def _why_alone(self, number: int) -> str:
        there, here = self.members[number].project, self.members[0].project
        what = (
            f"{self.names[number]} ({there.target_path}) and the other projects read no relation of"
            " each other"
        )
        if _warehouse(there) != _warehouse(here):
            return (
                f"{what}: it is on {there.metadata.adapter_type}, {self.names[0]} on"
                f" {here.metadata.adapter_type}"
            )
        return f"{what}; artifacts of another target have relations in other schemas"

    def node(self, place: ProjectNode) -> Node:
        """The node at a place."""
        return self.members[place.project].project.nodes[place.unique_id]

    # -- analyses -----------------------------------------------------------------------------------

    def analyses(self, first: Analysis | None = None) -> list[Analysis]:
        """Each project analysed, with the relations that others build as they build them.

        Args:
            first: the first project's analysis as it is, if that is at hand and to be taken.
        """
        analyses: list[Analysis | None] = [None] * len(self.members)
        analyses[0] = first
        used: list[dict[str, BuiltElsewhere] | None] = [None] * len(self.members)
        for _ in range(_ROUNDS):
            changed = False
            for number in self._builders_first:
                if number == 0 and first is not None:
                    continue
                given = {
                    reader.unique_id: self.built(builder, analysis)
                    for reader, builder in self.built_by.items()
                    if reader.project == number
                    and (analysis := analyses[builder.project]) is not None
                }
                if given != used[number]:
                    analyses[number] = self.analysed(number, given)
                    used[number] = given
                    changed = True
            if not changed:
                break
        return [analysis for analysis in analyses if analysis is not None]

    @cached_property
    def _builders_first(self) -> list[int]:
        """The projects, those that build what others read first, as far as there is such an order."""
        left = list(range(len(self.members)))
        order: list[int] = []
        while left:
            above = {
                number: {b.project for r, b in self.built_by.items() if r.project == number}
                & set(left) - {number}
                for number in left
            }
            nearest = min(left, key=lambda number: len(above[number]))
            left.remove(nearest)
            order.append(nearest)
        return order

    def analysed(self, number: int, given: Mapping[str, Supposed]) -> Analysis:
        """One project, with what others build of it as given, by unique_id."""
        member = self.members[number]
        if not given:
            return member.analysis()
        return analyse(member.project, cache=self.cache, hypothetical=given)

    def built(
        self, builder: ProjectNode, analysis: Analysis, finder: BrokenNodeFinder | None = None
    ) -> BuiltElsewhere:
        """A relation as its readers in other projects see it.

        Args:
            builder: what builds it.
            analysis: of the builder's project, or of another side of it.
            finder: tells what is certain of that side; by default of the project as it is deployed.
        """
        unique_id = builder.unique_id
        finder = finder or self._finders(builder.project)
        if unique_id not in finder.project.nodes or unique_id not in analysis.nodes:
            return BuiltElsewhere(None)
        certain = not finder.linker.node(unique_id).relation.unlisted
        return BuiltElsewhere(
            analysis.nodes[unique_id], unique_id in analysis.unlisted, is_certain=certain
        )

    def finder(
        self, project: Project, hypothetical: Mapping[str, Supposed] | None = None
    ) -> BrokenNodeFinder:
        """Tells which columns of one side of a project are certain."""
        return BrokenNodeFinder(ProjectContext(project), self.cache, hypothetical)

    def _finders(self, number: int) -> BrokenNodeFinder:
        finder = self._known_finders.get(number)
        if finder is None:
            side = self.members[number].project
            if number == 0 and self._formerly is not None:
                side = self._formerly
            finder = self._known_finders[number] = self.finder(side)
        return finder

    # -- one graph of all ---------------------------------------------------------------------------

    @cached_property
    def _ids(self) -> dict[ProjectNode, str]:
        """One id for each node: its own, unless a project before has a node of this id."""
        ids: dict[ProjectNode, str] = {}
        taken: set[str] = set()
        for number, member in enumerate(self.members):
            own = {
                unique_id: f"{unique_id}@{self.names[number]}" if unique_id in taken else unique_id
                for unique_id in member.project.nodes
            }
            ids |= {ProjectNode(number, unique_id): id_ for unique_id, id_ in own.items()}
            taken |= own.keys()
        return ids

    def id_of(self, number: int, unique_id: str) -> str:
        """The id of a node among all projects; a relation that no project lists is the same in all."""
        return self._ids.get(ProjectNode(number, unique_id), unique_id)

    @cached_property
    def project_of(self) -> dict[str, str]:
        """The name of the project of each node that is not of the first one, by its id among all."""
        return {id_: self.names[place.project] for place, id_ in self._ids.items() if place.project}

    def place_of(self, id_: str) -> ProjectNode | None:
        """Where a node of `union` is; None of one that no project lists."""
        return self._places.get(id_)

    @cached_property
    def _places(self) -> dict[str, ProjectNode]:
        return {id_: place for place, id_ in self._ids.items()}

    @cached_property
    def union(self) -> Project:
        """All projects in one, to be shown: nodes and their results by their id among all."""
        first = self.members[0].project
        nodes = {
            id_: msgspec.structs.replace(self.node(place), unique_id=id_)
            for place, id_ in self._ids.items()
        }
        children: dict[str, list[str]] = {id_: [] for id_ in nodes}
        parents: dict[str, list[str]] = {id_: [] for id_ in nodes}

        def lead(parent: str, child: str) -> None:
            children[parent].append(child)
            parents[child].append(parent)

        for builder, reader in self._joints():
            if builder in self._ids:  # else it was there before a change, and is no more
                lead(self._ids[builder], self._ids[reader])
        for number, member in enumerate(self.members):
            for unique_id, below in member.project.children.items():
                for child in below:
                    lead(self.id_of(number, unique_id), self.id_of(number, child))
        catalog = {
            self.id_of(number, unique_id): columns
            for number, member in enumerate(self.members)
            for unique_id, columns in member.project.catalog.items()
        }
        groups = {k: g for m in reversed(self.members) for k, g in m.project.groups.items()}
        return first.having(
            nodes=nodes,
            parents=parents,
            children=children,
            catalog=catalog,
            groups=groups,
            run_args={},
            run_results=[
                msgspec.structs.replace(run, unique_id=self.id_of(number, run.unique_id))
                for number, member in enumerate(self.members)
                for run in member.project.executed
            ],
            freshness=[
                msgspec.structs.replace(source, unique_id=self.id_of(number, source.unique_id))
                for number, member in enumerate(self.members)
                for source in member.project.freshness
            ],
        )

    def united(self, analyses: Sequence[Analysis]) -> Analysis:
        """The analyses of all projects in one, for `union`: with an edge from builder to reader."""
        nodes: dict[str, NodeAnalysis] = {}
        tests: dict[str, NodeAnalysis] = {}
        unit_tests: dict[str, UnitTestAnalysis] = {}
        edges: list[ColumnEdge] = []
        test_columns: list[tuple[str, str, str]] = []
        for number, analysis in enumerate(analyses):

            def id_of(unique_id: str, number: int = number) -> str:
                return self.id_of(number, unique_id)

            for united, of in ((nodes, analysis.nodes), (tests, analysis.tests)):
                for unique_id, seen in of.items():
                    united[id_of(unique_id)] = dataclasses.replace(seen, unique_id=id_of(unique_id))
            for unique_id, unit_test in analysis.unit_tests.items():
                unit_tests[id_of(unique_id)] = dataclasses.replace(
                    unit_test, unique_id=id_of(unique_id), model=id_of(unit_test.model)
                )
            edges += (
                edge._replace(parent_id=id_of(edge.parent_id), child_id=id_of(edge.child_id))
                for edge in analysis.edges
            )
            test_columns += ((id_of(t), id_of(u), column) for t, u, column in analysis.test_columns)
        for builder, reader in self._joints():
            above, below = self._ids.get(builder, ""), self._ids[reader]
            if above in nodes and below in nodes:
                edges += _handed_on(above, nodes[above].columns, below, nodes[below].columns)
        return Analysis(
            nodes=nodes,
            edges=edges,
            test_columns=test_columns,
            seconds={},
            tests=tests,
            unit_tests=unit_tests,
        )

    def _joints(self) -> Iterator[tuple[ProjectNode, ProjectNode]]:
        for reader, builder in self.built_by.items():
            yield builder, reader


def _handed_on(
    above: str, columns: Sequence[str], below: str, columns_of_source: Sequence[str]
) -> Iterator[ColumnEdge]:
    """Who reads a relation under the name of a source has its columns, one by one."""
    spelled = {name.lower(): name for name in columns}
    for name in columns_of_source:
        handed = spelled.get(name.lower(), name)
        yield ColumnEdge(above, handed, below, name, "DIRECT", "IDENTITY", False)
    yield ColumnEdge(above, ROWS, below, ROWS, "DIRECT", "IDENTITY", False)


def is_external(node: Node, project: Project) -> bool:
    """Whether a plugin took a model over from another project's manifest, as dbt itself tells it.

    Such a model has no file.
    """
    return (
        node.resource_type == "model"
        and not node.original_file_path
        and not node.path
        and not node.compiled_code
        and node.package_name not in ("", project.name)
    )


def _names_of(project: Project) -> RelationNames:
    return RelationNames(project, dialect_of(project.metadata.adapter_type))


def _warehouse(project: Project) -> str:
    adapter = project.metadata.adapter_type or ""
    return _ONE_WAREHOUSE.get(adapter, adapter)


def _built(names: RelationNames) -> Iterator[tuple[str, str]]:
    """The keys of what a project builds, with its unique_id."""
    for unique_id, node in names.project.nodes.items():
        if node.resource_type not in ("model", "seed", "snapshot") or node.is_ephemeral:
            continue
        if not is_external(node, names.project):
            for key in names.keys_of(node):
                yield key, unique_id


def _readers(names: RelationNames) -> Iterator[tuple[str, list[str]]]:
    """What a project reads and does not build itself, with the keys of its relation."""
    for unique_id, node in names.project.nodes.items():
        external = is_external(node, names.project)
        if external or (node.resource_type == "source" and unique_id not in names.canonical):
            yield unique_id, names.keys_of(node)


def _labels(projects: Sequence[Project]) -> list[str]:
    """What the projects are called: two of one name are told apart by their folders."""
    names = [project.name or project.target_path for project in projects]
    return [
        f"{name}({project.target_path})" if name in names[:number] else name
        for number, (name, project) in enumerate(zip(names, projects, strict=True))
    ]
