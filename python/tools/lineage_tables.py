"""Writes what the dbt package repeats of the lineage tables, from `dbt_ripple.graph.lineage_tables`.

    python python/tools/lineage_tables.py

* ``macros/load/raw_table_columns.sql``, whole. The models take their columns from it when dbt
  compiles them, by the macro ``columns_of``.
* In yml files, what stands between ``# columns_of('nodes')`` and ``# end of columns_of``: the
  name of each column, and its description by the doc block ``ripple_<column>`` of
  ``models/columns.md`` (or another one, see ``DOC_BLOCKS``). ``without=['tags']`` leaves columns
  out, as in the macro. Everything outside is written by hand.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment

from dbt_ripple.graph.lineage_tables import RECORDED, TABLES

REPOSITORY: Final = Path(__file__).parents[2]
MACRO: Final = REPOSITORY / "macros" / "load" / "raw_table_columns.sql"
MODELS: Final = REPOSITORY / "models"

TYPE_NAMES: Final = {
    str: "string",
    int: "bigint",
    float: "double",
    bool: "boolean",
    datetime: "timestamp",
}
"""What the macro ``type_of`` calls the type of a field."""

DOC_BLOCKS: Final = {
    "nodes": {"description": "node_description", "pii": "node_pii"},
    "columns": {"description": "column_description", "pii": "column_pii"},
    "column_edges": {"type": "edge_type", "subtype": "edge_subtype"},
    "test_columns": {"unique_id": "test_unique_id"},
    "run_results": {"message": "run_message"},
    "pii_columns": {
        "pii": "pii_kind",
        "origin": "pii_origin",
        "reason": "pii_reason",
        "source_id": "pii_source_id",
        "source_column": "pii_source_column",
        "path": "pii_path",
    },
    "run_history": {
        "command": "run_command",
        "node_id": "run_node_id",
        "message": "run_message",
        "column_name": "tested_column",
    },
}
"""By table, the columns that another block describes, as their name means more than one thing."""

HEAD: Final = """\
{% macro raw_table_columns() %}
    {#
        The columns of the loaded tables. `make tables` writes this file from `graph/lineage_tables.py` of the Python package.
        The types are names that `type_of` translates. `run_history` is written by record_run, the others by loads.
    #}
    {% do return({
"""
FOOT: Final = """\
    }) %}
{% endmacro %}
"""

MARKED: Final = re.compile(
    r"^(?P<indent> *)# (?P<call>columns_of\(.*\))\n"
    r"(?:(?P=indent)(?:- name|  description): .*\n)*"
    r"(?P=indent)# end of columns_of\n",
    re.MULTILINE,
)
MARKS: Final = re.compile(r"^ *# (?:end of )?columns_of\b.*", re.MULTILINE)


def columns_of(table: str, without: Collection[str] = ()) -> list[str]:
    """The columns of a table, as the macro of this name lists them."""
    fields = (TABLES | RECORDED)[table].__struct_fields__
    unknown = set(without) - set(fields)
    if unknown:
        raise SystemExit(f"{table} has no column {', '.join(sorted(unknown))}")
    return [field for field in fields if field not in without]


def called(call: str) -> tuple[str, list[str]]:
    """The table and the columns of a call of ``columns_of``, as a model or a yml file has it."""

    def answer(
        table: str, relation: str | None = None, without: Collection[str] = ()
    ) -> tuple[str, list[str]]:
        return table, columns_of(table, without)

    result: Any = Environment().compile_expression(call)(columns_of=answer)
    table, names = result
    return table, names


def macro() -> str:
    """The macro that says to dbt what the tables contain."""
    lines = []
    for table, row in (TABLES | RECORDED).items():
        lines.append(f"        '{table}': {{\n")
        for name, annotation in typing.get_type_hints(row).items():
            lines.append(f"            '{name}': '{_type_name(annotation)}',\n")
        lines.append("        },\n")
    return HEAD + "".join(lines) + FOOT


def _type_name(annotation: object) -> str:
    """The type name of a field, null or not."""
    options = [annotation]
    if isinstance(annotation, types.UnionType):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
    (option,) = options
    assert isinstance(option, type)
    return TYPE_NAMES[option]


def described(yml: str, blocks: Collection[str]) -> str:
    """A yml file with its marked columns as they are today."""

    def columns(marked: re.Match[str]) -> str:
        indent = marked["indent"]
        table, names = called(marked["call"])
        lines = [f"{indent}# {marked['call']}\n"]
        for name in names:
            block = "ripple_" + DOC_BLOCKS.get(table, {}).get(name, name)
            if block not in blocks:
                raise SystemExit(f"models/columns.md has no block {block} for {table}.{name}")
            lines.append(f"{indent}- name: {name}\n")
            lines.append(f"{indent}  description: \"{{{{ doc('{block}') }}}}\"\n")
        return "".join([*lines, f"{indent}# end of columns_of\n"])

    text, lists = MARKED.subn(columns, yml)
    if len(MARKS.findall(yml)) != 2 * lists:
        marks = "\n".join(MARKS.findall(MARKED.sub("", yml)))
        raise SystemExit(f"between these marks is more than names and descriptions:\n{marks}")
    return text


def files() -> dict[Path, str]:
    """The files that are written, with their text."""
    text = (MODELS / "columns.md").read_text(encoding="utf-8")
    blocks = set(re.findall(r"{% docs (\w+) %}", text))
    ymls = {path: path.read_text(encoding="utf-8") for path in sorted(MODELS.rglob("*.yml"))}
    return {MACRO: macro()} | {
        path: described(yml, blocks) for path, yml in ymls.items() if MARKS.search(yml)
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
