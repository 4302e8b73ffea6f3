"""The package's empty tables are the tables the loader writes: same names, columns, order, types."""

from __future__ import annotations

import types
import typing
from datetime import datetime

import pytest
from column_macros import columns_of, raw_table_columns

from dbt_ripple.graph.lineage_tables import RECORDED, TABLES

pytestmark = pytest.mark.slow

TYPE_NAMES = {str: "string", int: "bigint", float: "double", bool: "boolean", datetime: "timestamp"}


def _type_name(annotation: object) -> str:
    """The type name of a field, null or not."""
    options = [annotation]
    if isinstance(annotation, types.UnionType):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
    (option,) = options
    assert isinstance(option, type)
    return TYPE_NAMES[option]


def test_the_same_tables_in_the_order_they_are_written() -> None:
    assert list(raw_table_columns()) == list(TABLES | RECORDED)


@pytest.mark.parametrize("table", TABLES | RECORDED)
def test_the_same_columns_in_the_same_order_with_the_same_types(table: str) -> None:
    row = (TABLES | RECORDED)[table]
    expected = {
        name: _type_name(annotation) for name, annotation in typing.get_type_hints(row).items()
    }
    declared = raw_table_columns()[table]
    assert list(declared.items()) == list(expected.items())


def test_a_model_selects_columns_by_name() -> None:
    listed = "snapshot_id,\n        parent_id,\n        child_id"
    assert columns_of("edges") == listed
    assert columns_of("edges", "e", without=["parent_id"]) == "e.snapshot_id,\n        e.child_id"
