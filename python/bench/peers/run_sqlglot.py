"""Plain sqlglot: `lineage(None, ...)`, all columns of a model at once, with its parents' columns.

Without trimming selects, which only makes the labels of its drawings nicer and takes most of the
time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from common import Edge, Job, run


def _analyse(job: Job) -> tuple[int, Any]:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.lineage import lineage

    job.lap("import")
    manifest = json.loads((job.target / "manifest.json").read_bytes())
    catalog = json.loads((job.target / "catalog.json").read_bytes())
    dialect = manifest["metadata"]["adapter_type"]
    tables = {**catalog["nodes"], **catalog["sources"]}
    by_name = {}
    for key, table in tables.items():
        about = table["metadata"]
        by_name[about["database"] or "", about["schema"], about["name"]] = key
    job.lap("load")

    edges_of: dict[str, set[tuple[str, str, str]]] = {}
    for key, node in manifest["nodes"].items():
        if node["resource_type"] != "model":
            continue
        schema: dict[str, Any] = {}
        for parent in {*node["depends_on"]["nodes"], key}:
            about = tables[parent]["metadata"]
            level = schema.setdefault(about["database"], {}) if about["database"] else schema
            level.setdefault(about["schema"], {})[about["name"]] = {
                column["name"]: column["type"] for column in tables[parent]["columns"].values()
            }
        try:
            columns = lineage(
                None, node["compiled_code"], schema, dialect=dialect, trim_selects=False
            )
        except SqlglotError:
            continue
        edges = edges_of[key] = set()
        for column, root in columns.items():
            for leaf in root.walk():
                table = leaf.expression
                if not leaf.downstream and isinstance(table, exp.Table):
                    parent = by_name.get((table.catalog, table.db, table.name))
                    edges.add((parent or table.sql(), leaf.name.rpartition(".")[2], column))
    job.lap("analyse")
    return len(edges_of), edges_of


def _edges(lineage: Any) -> Iterator[Edge]:
    for child, triples in lineage.items():
        for parent, parent_column, column in triples:
            yield parent, parent_column.strip("`"), child, column


run(_analyse, _edges)
