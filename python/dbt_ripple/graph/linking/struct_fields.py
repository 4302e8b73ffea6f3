"""Which columns of a relation are structs, and with which fields."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node, catalog_may_contain
from dbt_ripple.flow.data_types import STRUCT_TYPES, Fields, fields_of_type, may_have_fields
from dbt_ripple.flow.identifiers import fold

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

_type_of: Final = attrgetter("type")
STRUCTS_IN_JSON: Final = [f'"{name}'.encode() for name in STRUCT_TYPES]
"""How the type of a struct begins in the JSON of a catalog."""


def struct_fields(linker: Linker, node: Node, fields: dict[str, Fields]) -> dict[str, Fields]:
    """The fields of a relation's columns that are a struct, by the key of the column.

    Args:
        linker: of the project.
        node: the relation.
        fields: those that its query shows.
    """
    types: list[tuple[str, bool, str]] = []
    if catalog_may_contain(linker.catalog, node.unique_id, STRUCTS_IN_JSON):
        listed = linker.catalog.get(node.unique_id, ())
        if structs := {t for t in set(map(_type_of, listed)) if t and may_have_fields(t)}:
            types += [(c.name, True, c.type or "") for c in listed if c.type in structs]
    if node.contract_enforced:
        types += [
            (c.name, bool(c.quote), c.data_type)
            for c in node.columns.values()
            if c.data_type and may_have_fields(c.data_type)
        ]
    for name, quoted, text in types:
        key = fold(name, quoted, linker.dialect)
        fields_read = fields_of_type(text, linker.dialect) if key not in fields else None
        if fields_read is not None:
            fields = {**fields, key: fields_read}
    return fields
