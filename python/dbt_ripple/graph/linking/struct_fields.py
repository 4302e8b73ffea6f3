"""Which columns of a relation are structs, and with which fields."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.flow.data_types import Fields, fields_of_type, may_have_fields
from dbt_ripple.flow.identifiers import fold

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

_type_of: Final = attrgetter("type")


def struct_fields(
    linker: Linker, node: Node, fields: dict[str, Fields], listed: Sequence[CatalogColumn]
) -> dict[str, Fields]:
    """The fields of a relation's columns that are a struct, by the key of the column.

    Args:
        linker: of the project.
        node: the relation.
        fields: those that its query shows.
        listed: its columns as the warehouse has them.
    """
    types: list[tuple[str, bool, str]] = []
    if new := {*map(_type_of, listed)} - linker.context.plain_types:
        structs = {t for t in new if t and may_have_fields(t)}
        linker.context.plain_types |= new - structs
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
