"""recce: its column lineage of each model, as its server computes it, artifacts read by dbt-core.

What recce does beyond that (the change analysis against a base) is left out.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import ROWS, Edge, Job, run

# It keeps a profile in the home folder and reports its use; neither shall happen here.
_HOME = tempfile.mkdtemp()
os.environ["HOME"] = _HOME
(Path(_HOME) / ".recce").mkdir()
(Path(_HOME) / ".recce" / "profile.yml").write_text("user_id: bench\nanonymous_tracking: false\n")


def _analyse(job: Job) -> tuple[int, Any]:
    from recce.adapter import dbt_adapter as recce_dbt

    logging.disable(logging.ERROR)
    # It would note every model's timing for its makers.
    recce_dbt.log_performance = lambda *_: None
    job.lap("import")
    manifest = recce_dbt.load_manifest(path=str(job.target / "manifest.json"))
    catalog = recce_dbt.load_catalog(path=str(job.target / "catalog.json"))
    adapter = recce_dbt.DbtAdapter(
        adapter=SimpleNamespace(type=lambda: manifest.metadata.adapter_type),
        manifest=recce_dbt.as_manifest(manifest),
        curr_manifest=manifest,
        curr_catalog=catalog,
    )
    job.lap("load")
    lineage = {
        key: adapter.get_cll_cached(key, base=False)
        for key, node in manifest.nodes.items()
        if node.resource_type == "model"
    }
    job.lap("analyse")
    seen = sum(
        any(c.transformation_type != "unknown" for c in data.nodes[key].columns.values())
        for key, data in lineage.items()
        if data is not None and key in data.nodes
    )
    return seen, (lineage, manifest)


def _edges(lineage: Any) -> Iterator[Edge]:
    models, manifest = lineage
    # It joins a node and a column by an underscore; the longest node that fits is meant.
    relations = {*manifest.nodes, *manifest.sources}

    def split(joined: str) -> tuple[str, str] | None:
        at = len(joined)
        while (at := joined.rfind("_", 0, at)) > 0:
            if joined[:at] in relations:
                return joined[:at], joined[at + 1 :]
        return None

    for child, data in models.items():
        if data is None:
            continue
        for key, parents in data.parent_map.items():
            column = ROWS if key == child else key[len(child) + 1 :]
            for parent in parents:
                if parent not in relations and (pair := split(parent)) is not None:
                    yield pair[0], pair[1], child, column


run(_analyse, _edges)
