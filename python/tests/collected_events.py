"""Events of other programs, in short, and what becomes of them over a project."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.assets_file import DeclaredAsset
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.openlineage.collected.collected_assets import CollectedAssets, with_collected
from dbt_ripple.openlineage.collected.stored_events import read_events

DB = "postgres://db:5432"
BROKER = "kafka://broker:9092"
Event = dict[str, Any]
Kind = tuple[str, str] | None


def dataset(namespace: str, name: str, **facets: Any) -> Event:
    """A dataset of an event; `schema` may be a list of columns."""
    if isinstance(facets.get("schema"), list):
        facets["schema"] = {"fields": [{"name": n, "type": "text"} for n in facets["schema"]]}
    return {"namespace": namespace, "name": name, "facets": facets}


def made_of(
    fields: Mapping[str, Iterable[tuple[str, str, str, Kind]]],
    rows: Iterable[tuple[str, str, str, Kind]] | None = None,
) -> Event:
    """The facet `columnLineage`: each column of columns (namespace, dataset, column, kind)."""

    def sources(of: Iterable[tuple[str, str, str, Kind]]) -> list[Event]:
        return [
            {
                "namespace": namespace,
                "name": name,
                "field": column,
                "transformations": []
                if kind is None
                else [{"type": kind[0], "subtype": kind[1], "description": "", "masking": False}],
            }
            for namespace, name, column, kind in of
        ]

    facet: Event = {"fields": {f: {"inputFields": sources(of)} for f, of in fields.items()}}
    if rows is not None:
        facet["dataset"] = sources(rows)
    return facet


def run_event(
    job: str,
    kind: str = "COMPLETE",
    *,
    at: str = "2026-11-23T10:00:00Z",
    run: int = 1,
    inputs: Sequence[Event] = (),
    outputs: Sequence[Event] = (),
    integration: str = "AIRFLOW",
    namespace: str = "prod",
    run_facets: Mapping[str, Any] | None = None,
    **facets: Any,
) -> Event:
    """A run event."""
    job_type = {"integration": integration, "jobType": "TASK", "processingType": "BATCH"}
    return {
        "eventType": kind,
        "eventTime": at,
        "producer": "https://example.com/producer",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": f"0190a1b2-0000-7000-8000-{run:012d}", "facets": dict(run_facets or {})},
        "job": {"namespace": namespace, "name": job, "facets": {"jobType": job_type, **facets}},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def written(folder: Path, events: Iterable[Event | str]) -> Path:
    """A file of events."""
    file = folder / "events.ndjson"
    lines = [e if isinstance(e, str) else json.dumps(e, sort_keys=True) for e in events]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def collected(
    folder: Path,
    events: Iterable[Event | str],
    project: Project,
    declared: Sequence[DeclaredAsset] = (),
    namespace: str | None = None,
) -> CollectedAssets:
    """What events add to a project's assets."""
    return with_collected(declared, read_events([written(folder, events)]), [project], namespace)


def linked(
    folder: Path,
    events: Iterable[Event | str],
    project: Project,
    declared: Sequence[DeclaredAsset] = (),
) -> AssetLineage:
    """A project with collected events around it."""
    found = collected(folder, events, project, declared)
    return AssetLineage(DeclaredGraph(project, found.assets), analyse(project))


def edges(lineage: AssetLineage) -> set[str]:
    """The edges of assets in short: ``TYPE SUBTYPE parent.column child.column``."""
    return {
        f"{e.type} {e.subtype}{' masked' if e.masking else ''}"
        f" {e.parent_id.split('.', 1)[1]}.{e.parent_column} {e.child_id.split('.', 1)[1]}.{e.child_column}"
        for e in lineage.edges
    }
