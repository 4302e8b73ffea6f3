"""parrant: its registry, which parses every model when it is loaded."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from common import Edge, Job, run


def _analyse(job: Job) -> tuple[int, Any]:
    from parrant.artifacts.registry import ModelRegistry

    logging.disable(logging.ERROR)
    job.lap("import")
    registry = ModelRegistry(str(job.target / "catalog.json"), str(job.target / "manifest.json"))
    registry.load()
    job.lap("analyse")
    return registry.get_coverage().parsed_ok, (registry, job.target)


def _edges(analysed: Any) -> Iterator[Edge]:
    registry, target = analysed
    manifest = json.loads((target / "manifest.json").read_text())
    ids = {node["name"].lower(): key for key, node in manifest["nodes"].items()}
    ids |= {node["identifier"].lower(): key for key, node in manifest["sources"].items()}
    for name, model in registry.get_models().items():
        for column in model.columns.values():
            for lineage in column.lineage or ():
                for token in lineage.source_columns:
                    parent, _, parent_column = token.rpartition(".")
                    parent = parent.split(".")[-1].strip('`"').lower()
                    yield ids.get(parent, parent), parent_column.strip('`"'), ids[name], column.name


run(_analyse, _edges)
