"""dbt-guard: its column lineage, which it resolves from changes: every source column has changed.

It answers which columns a change reaches, so an edge is a link of the chains it gives; it stops at
the first link it finds for a column.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from common import Edge, Job, run


def _analyse(job: Job) -> tuple[int, Any]:
    from dbt_guard.manifest import load_manifest
    from dbt_guard.models import ColumnInfo
    from dbt_guard.resolver import resolve_column_lineage

    logging.disable(logging.ERROR)
    job.lap("import")
    manifest = load_manifest(job.target, include_sources=True)
    models = {**manifest.models, **manifest.sources}
    # It knows documented columns only; the catalog's make it see as much as the others do.
    catalog = json.loads((job.target / "catalog.json").read_bytes())
    for key, table in {**catalog["nodes"], **catalog["sources"]}.items():
        for column in table["columns"].values():
            name = column["name"].lower()
            models[key].columns[name] = ColumnInfo(name=name, data_type=column["type"])
    changed = {key: set(source.columns) for key, source in manifest.sources.items()}
    job.lap("load")
    adapter = json.loads((job.target / "manifest.json").read_bytes())["metadata"]["adapter_type"]
    impacts, _ = resolve_column_lineage(
        changed, manifest.child_map, models, dialect=adapter, max_depth=1_000_000
    )
    job.lap("analyse")
    return sum(not impact.cleared for impact in impacts), impacts


def _edges(lineage: Any) -> Iterator[Edge]:
    for impact in lineage:
        for column in impact.impacted_columns:
            for parent, child in zip(column.chain, column.chain[1:], strict=False):
                yield parent.model_id, parent.column_name, child.model_id, child.column_name


run(_analyse, _edges)
