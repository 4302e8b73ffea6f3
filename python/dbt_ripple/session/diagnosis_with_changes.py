"""What `diagnose` and `incident` have in common: the project as it is asked about, and what changed in it.

And what on-call has to know of a test, a node or a column: as a document, and as what services take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_ripple.errors import RippleError
from dbt_ripple.session.complete_artifacts import open_complete
from dbt_ripple.session.open_artifacts import open_target

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
    from dbt_ripple.artifacts.assets_file import DeclaredAsset
    from dbt_ripple.changes import Comparison
    from dbt_ripple.governance.at_hand import Past
    from dbt_ripple.governance.diagnose import Diagnosis
    from dbt_ripple.governance.incident_document import Incident
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.graph.joined_projects import JoinedProjects
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.session.open_project import OpenProject


@dataclass
class DiagnosisWithChanges:
    """A question about a node, a column or a test, and what it comes from.

    Attributes:
        own: dbt's project that is asked.
        project: the same with the other projects and the declared assets.
        analysis: of `project`.
        root: what is asked about.
        diagnosis: what it comes from, with what changed since `--state`.
        whose: the name of the project of each node that is of another one.
        past: each project as it was.
    """

    own: Project
    project: Project
    analysis: Analysis
    root: Node
    diagnosis: Diagnosis
    whose: dict[str, str]
    past: list[Past] = field(default_factory=list)


def diagnose_with_changes(
    of: OpenProject, node: str, states: Sequence[Path] = ()
) -> DiagnosisWithChanges:
    """Find what is meant, what it comes from, and what of that is not as it was.

    Args:
        of: the project that is asked.
        node: what the question is about, as people write it.
        states: artifacts of when the number was right, once for each project that is to be compared.

    Raises:
        RippleError: there is no such node or column, or artifacts are missing or of another project.
    """
    from dbt_ripple.changes import compare
    from dbt_ripple.governance.at_hand import Past
    from dbt_ripple.governance.diagnose import diagnosis
    from dbt_ripple.graph.traversal import column_graph
    from dbt_ripple.rendering.trace import column_of, expressions_of
    from dbt_ripple.session.base_and_head import state_folder

    cache, threads = of._cache, of._threads
    past = [state_folder(of.project_dir, folder) for folder in states]
    state = of._state(
        tests=True, others=(open_target(folder, cache, threads).project for folder in past)
    )
    joined, declared, everything = state.joined, state.assets, state.everything
    projects = [state.target.project] if joined is None else [m.project for m in joined.members]
    root, column, _ = of._named(node, state)
    analysis = state.analysis(tests=True, own=bool(states))
    if column is not None:
        column = column_of(analysis, column_graph(analysis.edges), root, column)
    diagnosis_of_node = diagnosis(
        everything, analysis, root, column, expressions_of(everything), state.whose
    )
    asked = DiagnosisWithChanges(
        own=projects[0],
        project=everything,
        analysis=analysis,
        root=root,
        diagnosis=diagnosis_of_node,
        whose=state.whose,
    )
    for folder in past:
        base = open_complete(folder, cache, threads, others=projects, tests=True)
        number = _number_of(base.project, projects, folder)
        head = projects[number]
        # Of another project the own columns: what comes to it from elsewhere is reported there.
        whose = state.target if joined is None else joined.members[number]
        seen = whose.analysis(own=True)
        then = base.analysis(own=True)
        comparison = compare(
            base.project, head, base_analysis=then, head_analysis=seen, cache=cache
        )
        if declared is not None:
            declared_assets = list(declared.declared.values())
            comparison = _with_assets(comparison, declared_assets, joined is not None, cache)
        ids, back = _ids_of(joined, number, declared is not None)
        before = expressions_of(comparison.base)
        after = expressions_of(everything if joined is None else comparison.head)
        diagnosis_of_node.add_changes(comparison, after, before, ids, (then.own, seen.own))
        asked.past.append(Past(comparison, ids, back, base.project.executed))
    return asked


def _with_assets(
    comparison: Comparison,
    assets: Sequence[DeclaredAsset],
    is_one_of_many: bool,
    cache: Cache | None,
) -> Comparison:
    """The comparison with the assets of both sides; one of several projects lacks what others have."""
    from dbt_ripple.changes.asset_changes import with_declared_assets
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

    then = DeclaredGraph(comparison.base, assets, lenient=True)
    now = DeclaredGraph(comparison.head, assets, formerly=comparison.base, lenient=is_one_of_many)
    return with_declared_assets(comparison, then, now, cache)


def _ids_of(
    joined: JoinedProjects | None, number: int, has_assets: bool
) -> tuple[Callable[[str], str | None], Callable[[str], str]]:
    """Gives the id of a step in one of the projects, and the inverse."""
    if joined is None:
        return (lambda id_: id_), (lambda unique_id: unique_id)

    def own_id(id_: str) -> str | None:
        place = joined.place_of(id_)
        if place is None:  # an asset belongs to none of them
            return id_ if has_assets else None
        return place.unique_id if place.project == number else None

    return own_id, lambda unique_id: joined.id_of(number, unique_id)


def _number_of(base: Project, projects: Sequence[Project], folder: Path) -> int:
    """Which of the projects was as these artifacts say."""
    if len(projects) == 1:
        return 0
    for number, project in enumerate(projects):
        if project.name == base.name:
            return number
    raise RippleError(
        f"these are artifacts of {base.name or 'a project without a name'}",
        f"--state {folder}",
        f"name artifacts of {' or '.join(str(project.name) for project in projects)}",
    )


def incident_of(
    asked: DiagnosisWithChanges,
    since: timedelta,
    project_dir: Path,
    tables: Any = None,
    *,
    messages: bool = False,
) -> Incident:
    """All that is known, as ``dbt-ripple incident --format json`` says it.

    Args:
        asked: what the incident is of.
        since: how long ago a change is still recent.
        project_dir: of the dbt project, whose git history is read.
        tables: what the lineage tables say, where they were asked.
        messages: whether dbt's error messages are in it.
    """
    from dbt_ripple.governance.at_hand import AtHand
    from dbt_ripple.governance.incident import incident
    from dbt_ripple.rendering.selection import dbt_words

    known = AtHand(
        *(asked.project, asked.analysis, asked.root, asked.diagnosis, asked.own),
        past=asked.past,
        tables=tables,
        since=since,
        project_of=asked.whose or {},
        commit_of=_commit_of(asked.own, project_dir),
    )
    return incident(known, lambda u: dbt_words(u, asked.own), messages=messages)


def body_of(
    document: Incident, service: str, own: Project, name: str, key: str = ""
) -> dict[str, Any]:
    """What is sent to a service: slack, pagerduty or webhook.

    Args:
        document: the incident.
        service: who takes it.
        own: dbt's project, whose dialect tells values from names.
        name: what was asked about, for the command that shows more.
        key: PagerDuty's.
    """
    from dbt_ripple.flow.identifiers import dialect_of
    from dbt_ripple.rendering.incident_bodies import (
        pagerduty_body,
        sendable,
        slack_body,
        webhook_body,
    )

    shown, left_out = sendable(document, dialect_of(own.metadata.adapter_type))
    if service == "slack":
        return slack_body(shown, left_out, f"dbt-ripple incident {name} --format json")
    if service == "pagerduty":
        return pagerduty_body(shown, left_out, key)
    return webhook_body(shown, left_out)


def _commit_of(own: Project, project_dir: Path) -> Callable[[Node], tuple[str, datetime] | None]:
    """The last commit of a node's file; of installed packages it tells nothing."""
    from dbt_ripple.graph.git import last_commit

    def commit(node: Node) -> tuple[str, datetime] | None:
        if node.package_name != own.name or not node.original_file_path:
            return None
        file = project_dir / node.original_file_path
        return last_commit(file) if file.is_file() else None

    return commit
