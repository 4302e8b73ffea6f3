"""The package's empty tables are the tables the loader writes: same names, columns, order, types."""

from __future__ import annotations

import types
import typing
from datetime import datetime
from pathlib import Path

import jinja2
import pytest

from dbt_ripple.graph.lineage_tables import RECORDED, TABLES

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
MACRO = REPOSITORY / "macros" / "load" / "raw_table_columns.sql"
TYPE_NAMES = {str: "string", int: "bigint", float: "double", bool: "boolean", datetime: "timestamp"}


class _ReturnedError(Exception):
    """What dbt's `return()` does: it leaves the macro with a value."""


def _declared_columns() -> dict[str, dict[str, str]]:
    """Render the macro as dbt does and take what it returns."""

    def leave(value: object) -> None:
        raise _ReturnedError(value)

    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    module = environment.from_string(MACRO.read_text(), globals={"return": leave}).module
    with pytest.raises(_ReturnedError) as returned:
        module.raw_table_columns()
    columns = returned.value.args[0]
    assert isinstance(columns, dict)
    return columns


def _type_name(annotation: object) -> str:
    """The type name of a field, null or not."""
    options = [annotation]
    if isinstance(annotation, types.UnionType):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
    (option,) = options
    assert isinstance(option, type)
    return TYPE_NAMES[option]


def test_the_same_tables_in_the_order_they_are_written() -> None:
    assert list(_declared_columns()) == list(TABLES | RECORDED)


@pytest.mark.parametrize("table", TABLES | RECORDED)
def test_the_same_columns_in_the_same_order_with_the_same_types(table: str) -> None:
    row = (TABLES | RECORDED)[table]
    expected = {
        name: _type_name(annotation) for name, annotation in typing.get_type_hints(row).items()
    }
    declared = _declared_columns()[table]
    assert list(declared.items()) == list(expected.items())
