"""The least a column lineage by sqlglot can cost: load, tokenise and parse, and do nothing with it.

Of the artifacts only the fields that are needed are decoded, and the garbage collector has the
thresholds that were quickest for this: both make the floor lower. It also has
jinja2 parse the text of every macro and hook, which is the least that reading them costs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from common import Edge, Job, run
from jinja2 import Environment, TemplateSyntaxError
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError


class _Hook(msgspec.Struct):
    sql: str = ""


class _Config(msgspec.Struct, rename="kebab"):
    pre_hook: list[_Hook] = []
    post_hook: list[_Hook] = []


class _Node(msgspec.Struct):
    resource_type: str = ""
    raw_code: str = ""
    compiled_code: str | None = None
    config: _Config = msgspec.field(default_factory=_Config)


class _Macro(msgspec.Struct):
    macro_sql: str


class _Metadata(msgspec.Struct):
    adapter_type: str = ""


class _Manifest(msgspec.Struct):
    metadata: _Metadata
    nodes: dict[str, _Node]
    macros: dict[str, _Macro]


class _Column(msgspec.Struct):
    name: str
    type: str


class _Table(msgspec.Struct):
    columns: dict[str, _Column]


class _Catalog(msgspec.Struct):
    nodes: dict[str, _Table]
    sources: dict[str, _Table]


def _analyse(job: Job) -> tuple[int, _Catalog]:
    gc.set_threshold(10_000, 100, 1000)
    manifest = msgspec.json.decode((job.target / "manifest.json").read_bytes(), type=_Manifest)
    listed = job.target / "catalog.json"
    content = listed.read_bytes() if listed.exists() else b'{"nodes": {}, "sources": {}}'
    catalog = msgspec.json.decode(content, type=_Catalog)
    job.lap("load")
    dialect = Dialect.get_or_raise(manifest.metadata.adapter_type)
    kinds = ("model", "test") if job.tests else ("model",)
    for node in manifest.nodes.values():
        if node.resource_type in kinds and node.compiled_code:
            with suppress(SqlglotError):  # of SQL that cannot be parsed, its tokens are enough
                dialect.parser().parse(dialect.tokenize(node.compiled_code), node.compiled_code)
    _parse_jinja(manifest)
    job.lap("analyse")
    return sum(node.resource_type == "model" for node in manifest.nodes.values()), catalog


def _parse_jinja(manifest: _Manifest) -> None:
    """Parse every macro and every hook by jinja2, each text once."""
    texts = {macro.macro_sql for macro in manifest.macros.values()}
    for node in manifest.nodes.values():
        texts.update(hook.sql for hook in (*node.config.pre_hook, *node.config.post_hook))
        if node.resource_type == "operation":
            texts.add(node.raw_code)
    environment = Environment(extensions=["jinja2.ext.do"])
    for text in texts:
        with suppress(TemplateSyntaxError):  # dbt's own blocks: their tokens are enough
            environment.parse(text)


def _edges(lineage: _Catalog) -> Iterable[Edge]:
    return ()


run(_analyse, _edges)
