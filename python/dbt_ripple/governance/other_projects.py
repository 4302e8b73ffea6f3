"""What a change in one dbt project does to the projects that read what it builds.

The reading project is analysed twice: with the relations as they are built before the change and
after it. What differs is judged as in any project: a reader that does not find its columns any more
is broken, whatever project it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import Comparison, compare
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.governance.affected_assets import Affected, Ripple
from dbt_ripple.governance.checks import reader_breaches
from dbt_ripple.governance.contracts import Breach
from dbt_ripple.governance.personal_data import Sides, pii_breaches, pii_breaches_of
from dbt_ripple.graph.hypothetical import BuiltElsewhere, Supposed
from dbt_ripple.graph.joined_projects import JoinedProjects, Member, ProjectNode
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.traversal import Vertex
from dbt_ripple.reasons import Code, Reason

_ROUNDS = 20
"""How often a change may go from one project into another: two projects may read each other in turn."""


@dataclass
class ReachedProject:
    """What a change does in one of the other projects, with ids as they are there.

    Attributes:
        number: which project it is, see `JoinedProjects.members`.
        affected: as `affected_by`; the path of each begins in the changed project, and all its
            unique_ids are those among all projects.
        broken: readers that do not find their columns any more.
        opaque: affected nodes that could not be analysed, with the reason.
    """

    number: int
    comparison: Comparison
    affected: list[Affected]
    broken: list[Breach]
    opaque: dict[str, Reason]

    @property
    def project(self) -> Project:
        """The project."""
        return self.comparison.head


@dataclass
class _Wave:
    """What changed in one project, to be passed on."""

    number: int
    comparison: Comparison
    ripple: Ripple
    paths: dict[str, list[str]]
    hypothetical: Mapping[str, Supposed] | None


def reached_projects(
    joined: JoinedProjects,
    comparison: Comparison,
    ripple: Ripple,
    hypothetical: Mapping[str, Supposed] | None = None,
    contract_types: Callable[[int, Comparison], Collection[str]] = lambda _number, _comparison: (),
) -> list[ReachedProject]:
    """Where a change in the first project goes in the others, nearest first.

    Args:
        joined: the projects.
        comparison: of the first project before and after the change.
        ripple: of the change, in that project.
        hypothetical: hypothetical changes of its relations, where the change is not written yet.
        contract_types: gives the models of a project whose enforced contract will not hold.

    Returns:
        A project for each way the change comes into it; the first project itself, where what it
        builds comes back to it.
    """
    if not joined.built_by:
        return []
    before = joined.analyses(comparison.base_analysis)
    projects: list[ReachedProject] = []
    paths = {asset.unique_id: asset.path for asset in ripple.assets()}
    waves = [_Wave(0, comparison, ripple, paths, hypothetical)]
    done: set[tuple[ProjectNode, frozenset[str]]] = set()
    for _ in range(_ROUNDS):
        following = []
        for number, readers in _readers_of(joined, waves, done).items():
            wave = _handed_to(joined, number, readers, before, contract_types)
            if wave is not None:
                following.append(wave)
                projects.append(_reached(joined, wave))
        if not following:
            break
        waves = following
    return projects


@dataclass
class _SourceOfWave:
    """A source, and what of its relation changed."""

    unique_id: str
    builder: ProjectNode
    wave: _Wave
    built: BuiltElsewhere


def _readers_of(
    joined: JoinedProjects, waves: Sequence[_Wave], done: set[tuple[ProjectNode, frozenset[str]]]
) -> dict[int, list[_SourceOfWave]]:
    """The sources that stand for what changed, by their project, unless that was looked at before."""
    readers: dict[int, list[_SourceOfWave]] = {}
    for wave in waves:
        finder = None
        for unique_id in (*wave.comparison.changed, *wave.comparison.removed):
            builder = ProjectNode(wave.number, unique_id)
            for place in joined.read_by.get(builder, ()):
                reached = place, frozenset(wave.ripple.reached(unique_id))
                if reached in done:
                    continue
                done.add(reached)
                finder = finder or joined.finder(wave.comparison.head, wave.hypothetical)
                built = joined.built(builder, wave.comparison.head_analysis, finder)
                readers.setdefault(place.project, []).append(
                    _SourceOfWave(place.unique_id, builder, wave, built)
                )
    return readers


def _handed_to(
    joined: JoinedProjects,
    number: int,
    readers: list[_SourceOfWave],
    before: list[Analysis],
    contract_types: Callable[[int, Comparison], Collection[str]],
) -> _Wave | None:
    """One of the projects, compared with itself as it is with what changed above it."""
    project = joined.members[number].project
    given: dict[str, Supposed] = {
        place.unique_id: joined.built(builder, before[builder.project])
        for place, builder in joined.built_by.items()
        if place.project == number
    }
    given |= {reader.unique_id: reader.built for reader in readers}
    base = before[number]
    if number == 0:  # what comes back: as it is before the change, with what others build of it
        base = joined.analysed(
            0, {r.unique_id: joined.built(r.builder, before[r.builder.project]) for r in readers}
        )
        given = {reader.unique_id: reader.built for reader in readers}
    comparison = compare(
        project,
        project,
        base_analysis=base,
        head_analysis=joined.analysed(number, given),
        cache=joined.cache,
    )
    if not comparison.changed:
        return None
    reached: dict[Vertex, None] = {}
    lost: set[Vertex] = set()
    for reader in readers:
        ripple, unique_id = reader.wave.ripple, reader.builder.unique_id
        columns = sorted(ripple.reached(unique_id))
        if reader.built.is_gone:
            columns = [c.lower() for c in base.nodes[reader.unique_id].columns]
        reached |= dict.fromkeys((reader.unique_id, column) for column in columns)
        lost |= {(reader.unique_id, column) for column in ripple.lost_columns(unique_id)}
    origins = {reader.unique_id for reader in readers}
    refused = contract_types(number, comparison)
    unsettled = {
        reader.unique_id
        for reader in readers
        if reader.builder.unique_id in reader.wave.ripple.below_broken
    }
    ripple = Ripple(
        *(comparison, origins, refused), reached=reached, lost=lost, unsettled=unsettled
    )
    paths = {}
    for reader in readers:
        above = reader.wave.paths.get(reader.builder.unique_id) or [joined.id_of(*reader.builder)]
        paths[reader.unique_id] = [*above, joined.id_of(number, reader.unique_id)]
    for asset in ripple.assets():
        first, *rest = asset.path
        begin = paths.get(first, [joined.id_of(number, first)])
        paths[asset.unique_id] = [*begin, *(joined.id_of(number, u) for u in rest)]
    return _Wave(number, comparison, ripple, paths, given)


def _reached(joined: JoinedProjects, wave: _Wave) -> ReachedProject:
    number, nodes = wave.number, wave.comparison.head_analysis.nodes
    assets = wave.ripple.assets()
    opaque = {
        joined.id_of(number, asset.unique_id): nodes[asset.unique_id].reason
        or Code.NO_REASON_GIVEN()
        for asset in assets
        if asset.unique_id in nodes and nodes[asset.unique_id].status == "opaque"
    }
    affected = [
        msgspec.structs.replace(
            asset,
            unique_id=joined.id_of(number, asset.unique_id),
            path=wave.paths[asset.unique_id],
            project=joined.names[number] if number else None,
        )
        for asset in assets
    ]
    return ReachedProject(
        number, wave.comparison, affected, list(reader_breaches(wave.comparison)), opaque
    )


@dataclass
class Elsewhere:
    """What a change does in the other projects, by ids among all; empty where none is asked.

    Attributes:
        joined: the projects.
        reached: those that it reaches.
    """

    joined: JoinedProjects | None = None
    reached: Sequence[ReachedProject] = ()

    def _by_id(self) -> Iterator[tuple[ReachedProject, Callable[[str], str]]]:
        joined = self.joined
        if joined is not None:
            for project in self.reached:
                yield project, partial(joined.id_of, project.number)

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes of all projects."""
        return self.joined.union.nodes if self.joined is not None else {}

    @property
    def broken(self) -> dict[str, list[Breach]]:
        """The readers that do not find their columns any more, and the reason for each."""
        broken: dict[str, list[Breach]] = {}
        for project, id_of in self._by_id():
            for breach in project.broken:
                if breach.unique_id is not None:
                    broken.setdefault(id_of(breach.unique_id), []).append(breach)
        return broken

    def personal_data(self, comparison: Comparison) -> Iterator[Breach]:
        """Personal data that is untagged or shown, wherever it comes from.

        Of another project only what this change brings there: for the rest it has its own gate.
        """
        joined = self.joined
        if joined is None:
            yield from pii_breaches(comparison)
            return
        deployed = Member(comparison.base, lambda: comparison.base_analysis)
        before = JoinedProjects([deployed, *joined.members[1:]], cache=joined.cache)
        sides = Sides(
            before.union,
            before.united(before.analyses(comparison.base_analysis)),
            joined.union,
            joined.united(joined.analyses(comparison.head_analysis)),
            frozenset(str(member.project.name) for member in joined.members).union(
                *(member.project.local_packages for member in joined.members)
            ),
        )
        for breach in pii_breaches_of(sides):
            if not (breach.old and breach.unique_id in joined.project_of):
                yield breach

    @property
    def missing(self) -> dict[str, Reason]:
        """The relations that are broken now, with the reason."""
        return {
            id_of(unique_id): reason
            for project, id_of in self._by_id()
            for unique_id, reason in verdict_of(project.comparison).relations.items()
        }

    @property
    def opaque(self) -> dict[str, Reason]:
        """Affected nodes that cannot be analysed, with the reason."""
        return {u: reason for project in self.reached for u, reason in project.opaque.items()}

    def and_here(self, affected: Sequence[Affected]) -> list[Affected]:
        """All that is affected, each asset once with its worst severity, nearest first."""
        rank = ("breaking", "warning", "info")
        assets = {asset.unique_id: asset for asset in affected}
        for project in self.reached:
            for asset in project.affected:
                listed = assets.get(asset.unique_id)
                if listed is None or rank.index(asset.severity) < rank.index(listed.severity):
                    assets[asset.unique_id] = asset
        if len(assets) == len(affected) and not self.reached:
            return list(affected)
        return sorted(
            assets.values(), key=lambda a: (len(a.path), rank.index(a.severity), a.unique_id)
        )
