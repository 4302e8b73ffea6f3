"""The least a column lineage by sqlglot can cost: load, tokenise and parse, and do nothing with it.

Of the artifacts only the fields that are needed are decoded, and the garbage collector is kept as
quiet as dbt_ripple keeps it: both make the floor lower.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path

import msgspec
from common import Clock, Edge, run
from sqlglot.dialects.dialect import Dialect


class _Node(msgspec.Struct):
    resource_type: str = ""
    compiled_code: str | None = None


class _Metadata(msgspec.Struct):
    adapter_type: str = ""


class _Manifest(msgspec.Struct):
    metadata: _Metadata
    nodes: dict[str, _Node]


class _Column(msgspec.Struct):
    name: str
    type: str


class _Table(msgspec.Struct):
    columns: dict[str, _Column]


class _Catalog(msgspec.Struct):
    nodes: dict[str, _Table]
    sources: dict[str, _Table]


def _analyse(target: Path, clock: Clock) -> tuple[int, _Catalog]:
    gc.set_threshold(200_000, 50, 100)
    manifest = msgspec.json.decode((target / "manifest.json").read_bytes(), type=_Manifest)
    catalog = msgspec.json.decode((target / "catalog.json").read_bytes(), type=_Catalog)
    clock.lap("load")
    dialect = Dialect.get_or_raise(manifest.metadata.adapter_type)
    queries = [node.compiled_code for node in manifest.nodes.values() if node.compiled_code]
    for query in queries:
        dialect.parser().parse(dialect.tokenize(query), query)
    clock.lap("analyse")
    return sum(node.resource_type == "model" for node in manifest.nodes.values()), catalog


def _edges(found: _Catalog) -> Iterable[Edge]:
    return ()


run(_analyse, _edges)
