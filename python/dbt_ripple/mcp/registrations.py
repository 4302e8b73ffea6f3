"""What `register` is asked with, as registrations: flows, pipelines, and jobs by their SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dbt_ripple.errors import RippleError
from dbt_ripple.mcp.arguments import Flow, Pipeline, Register
from dbt_ripple.mcp.documents import Registered
from dbt_ripple.rendering.json_documents import CapturedJob
from dbt_ripple.session.registering import pipeline_of

if TYPE_CHECKING:
    from dbt_ripple.governance.asset_edits import Registration
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.session.project import Project


def write(project: Project, given: Register) -> Registered:
    """Write all of it, or nothing of the flows and pipelines where one is not valid.

    Raises:
        RippleError: nothing is given, or a name or an id is not valid.
    """
    pipelines = [*map(_as_pipeline, given.flows), *given.pipelines]
    for pipeline in pipelines:
        if len(pipeline.steps) < 2:
            raise RippleError("has no hop", f"pipeline {pipeline.name}", "give at least two steps")
        if len(pipeline.transformations) not in (0, len(pipeline.steps) - 1):
            raise RippleError(
                f"{len(pipeline.transformations)} transformations of {len(pipeline.steps) - 1} hops",
                f"pipeline {pipeline.name}",
                "give one for each hop, or none",
            )
    if not pipelines and not given.sql:
        raise RippleError("nothing is to be registered", "register", "give flows, pipelines or sql")

    def all_of_them(graph: DeclaredGraph, analysis: Analysis) -> list[Registration]:
        made = [pipeline_of(p.steps, _properties(p))(graph, analysis) for p in pipelines]
        for flow, registrations in zip(given.flows, made, strict=False):
            if flow.columns:
                registrations[:] = [_with_columns(flow, one) for one in registrations]
        return _joined([one for registrations in made for one in registrations])

    file, changed = "", {}
    if pipelines:
        edited = project.register(all_of_them, dry_run=given.dry_run)
        file, changed = str(edited.file), dict(edited.changed)
    captured = []
    for job in given.sql:
        document = project.capture(
            job.sql,
            id=job.id,
            dialect=job.dialect,
            description=job.transformation,
            dry_run=given.dry_run,
        )
        file, changed[document["id"]] = document["file"], "captured"
        captured.append(msgspec.convert(document, CapturedJob))
    return Registered(file=file, changed=changed, captured=captured, written=not given.dry_run)


def _as_pipeline(flow: Flow) -> Pipeline:
    return Pipeline(
        name="", steps=[flow.source, flow.target], transformations=[flow.transformation]
    )


def _with_columns(flow: Flow, one: Registration) -> Registration:
    """What reads a source, with the columns that it reads."""
    if flow.source not in one.reads:
        return one
    columns = [
        {
            "from": name.partition(":")[0].strip(),
            "to": (name.partition(":")[2] or name).strip(),
            **({"transformation": flow.transformation} if flow.transformation else {}),
        }
        for name in flow.columns
    ]
    reads = [
        {"node": flow.source, "columns": columns} if r == flow.source else r for r in one.reads
    ]
    return msgspec.structs.replace(one, reads=reads)


def _properties(pipeline: Pipeline) -> dict[str, Any]:
    return {
        "description": pipeline.transformations or None,
        "schedule": pipeline.schedule,
        "owner": pipeline.owner,
        "tags": (pipeline.name,) if pipeline.name else (),
    }


def _joined(registrations: list[Registration]) -> list[Registration]:
    """One registration an asset, with all that it reads and writes."""
    by_id: dict[str, Registration] = {}
    for one in registrations:
        before = by_id.get(one.id.casefold())
        if before is not None:
            one = msgspec.structs.replace(
                one,
                reads=_each_once([*before.reads, *one.reads]),
                writes=_each_once([*before.writes, *one.writes]),
                tags=[*dict.fromkeys([*before.tags, *one.tags])],
                description="; ".join(filter(None, [before.description, one.description])) or None,
                schedule=one.schedule or before.schedule,
                owner=one.owner or before.owner,
            )
        by_id[one.id.casefold()] = one
    return list(by_id.values())


def _each_once(flows: Sequence[Any]) -> list[Any]:
    """What is read or written, each once; with columns, if they are given."""
    by_node: dict[str, Any] = {}
    for flow in flows:
        node = flow if isinstance(flow, str) else flow["node"]
        if not isinstance(flow, str) or node not in by_node:
            by_node[node] = flow
    return list(by_node.values())
