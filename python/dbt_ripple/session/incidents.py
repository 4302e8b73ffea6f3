"""What on-call has to know of a test, a node or a column: as a document, and as what services take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Node, Project
    from dbt_ripple.governance.incident_document import Incident
    from dbt_ripple.session.diagnosis_with_changes import DiagnosisWithChanges


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
    from dbt_ripple.graph.git_history import last_commit

    def commit(node: Node) -> tuple[str, datetime] | None:
        if node.package_name != own.name or not node.original_file_path:
            return None
        file = project_dir / node.original_file_path
        return last_commit(file) if file.is_file() else None

    return commit
