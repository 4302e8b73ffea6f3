"""The macros that list the columns of the lineage tables, rendered without dbt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import jinja2

MACROS = Path(__file__).parents[3] / "macros" / "load"


class _ReturnedError(Exception):
    """What dbt's `return()` does: it leaves the macro with a value."""


def raw_table_columns() -> dict[str, dict[str, str]]:
    """By table, its columns with the names of their types."""

    def leave(value: object) -> None:
        raise _ReturnedError(value)

    text = (MACROS / "raw_table_columns.sql").read_text()
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    try:
        environment.from_string(text, globals={"return": leave}).module.raw_table_columns()
    except _ReturnedError as returned:
        columns = returned.args[0]
    assert isinstance(columns, dict)
    return columns


def columns_of(table: str, relation: str | None = None, without: Sequence[str] = ()) -> str:
    """What a model selects of a table by the macro of this name."""
    package = SimpleNamespace(raw_table_columns=raw_table_columns)
    template = jinja2.Template((MACROS / "columns_of.sql").read_text())
    return str(template.make_module({"dbt_ripple": package}).columns_of(table, relation, without))
