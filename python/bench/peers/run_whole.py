"""Load and parse as one writes it: the whole files, each query by `sqlglot.parse_one`, as they are.

`run_floor.py` is tighter: it decodes only the fields that are needed, takes one dialect for all
queries, and has the garbage collector relaxed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlglot
from common import Edge, Job, run


def _analyse(job: Job) -> tuple[int, Any]:
    manifest = msgspec.json.decode((job.target / "manifest.json").read_bytes())
    catalog = msgspec.json.decode((job.target / "catalog.json").read_bytes())
    job.lap("load")
    dialect = manifest["metadata"]["adapter_type"]
    kinds = ("model", "test") if job.tests else ("model",)
    for node in manifest["nodes"].values():
        if node["resource_type"] in kinds and node.get("compiled_code"):
            sqlglot.parse_one(node["compiled_code"], dialect=dialect)
    job.lap("analyse")
    models = sum(node["resource_type"] == "model" for node in manifest["nodes"].values())
    return models, catalog


def _edges(lineage: Any) -> Iterable[Edge]:
    return ()


run(_analyse, _edges)
