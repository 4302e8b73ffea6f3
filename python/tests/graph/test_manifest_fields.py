"""Everything a manifest says of a node is read, or left out for a reason: dbt's own classes are asked."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dbt_ripple.artifacts import Column, Node
from dbt_ripple.graph.node_properties import (
    DESCRIBING,
    OF_KEPT_ROWS,
    OF_PYTHON,
    STORING,
)

resources = pytest.importorskip("dbt.artifacts.resources")

LEFT_OUT = {
    "doc_blocks": "which blocks a description is made of; the description itself is read",
    "docs": "the same as config.docs",
    "build_path": "where dbt writes what it runs",
    "compiled_path": "where dbt writes what it compiles",
    "created_at": "when dbt parsed it",
    "config_call_dict": "dbt leaves it out of the artifact",
    "unrendered_config_call_dict": "dbt leaves it out of the artifact",
    "extra_ctes": "part of compiled_code",
    "extra_ctes_injected": "whether they are",
    "metrics": "metrics a node names; of no relation",
    "functions": "in depends_on",
    "primary_key": "dbt infers it from constraints and tests",
    "defer_relation": "where the other target has it",
    "source_meta": "merged into meta",
    "_pre_injected_sql": "never written",
}


@pytest.mark.parametrize("kind", ["Model", "Seed", "Snapshot", "SourceDefinition", "GenericTest"])
def test_every_field_of_a_node_is_read_or_left_out_for_a_reason(kind: str) -> None:
    fields = {f.name for f in dataclasses.fields(getattr(resources, kind))}
    assert fields - set(Node.__struct_fields__) - LEFT_OUT.keys() == set()


def test_every_field_of_a_column_is_read() -> None:
    fields = {f.name for f in dataclasses.fields(resources.ColumnInfo)} - {"_extra"}
    assert fields <= set(Column.__struct_fields__)


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("ModelConfig", set[str]()),
        ("SeedConfig", set[str]()),
        ("SnapshotConfig", set[str]()),
        ("SourceConfig", set[str]()),
    ],
)
def test_every_key_dbt_knows_is_on_a_list(kind: str, counted: set[str]) -> None:
    """A new one counts for all until somebody says what it can change."""
    listed = DESCRIBING | OF_KEPT_ROWS | OF_PYTHON | STORING
    apart = {"column_types", "delimiter", "quote_columns", "post_hook", "pre_hook"}
    fields: list[Any] = list(dataclasses.fields(getattr(resources, kind)))
    known_keys = {f.name for f in fields if not f.name.startswith("_")}
    assert known_keys - listed - apart == counted
