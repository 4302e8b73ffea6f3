"""The declared columns of a node, decoded when they are first asked for.

They are more than half of what there is to decode in a manifest, and most questions ask for those of
few nodes. It is used for a manifest that was decoded as a whole before, by this version, without
anything in it that dbt does not write: so nothing can be found wrong in it when it is too late to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dbt_ripple.artifacts.decode_json import unknown_properties_apart
from dbt_ripple.artifacts.project import Column


class ColumnsOnDemand(Mapping[str, Column]):
    """The columns of one node by name, in the order of their declaration.

    Args:
        text: what the manifest says of them, a JSON object.
    """

    __slots__ = ("_columns", "_text")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._columns: dict[str, Column] | None = None

    def _decoded(self) -> dict[str, Column]:
        if self._columns is None:
            self._columns = decode_columns(self._text)
        return self._columns

    def __getitem__(self, name: str) -> Column:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ColumnsOnDemand):
            return self._text == other._text or self._decoded() == other._decoded()
        return self._decoded() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._decoded())


def decode_columns(text: bytes) -> dict[str, Column]:
    """Columns out of JSON, complete.

    Raises:
        msgspec.ValidationError: a property of a column is not of the type that dbt gives it.
    """
    try:
        columns = msgspec.json.decode(text, type=dict[str, Column])
    except msgspec.ValidationError as error:
        if "unknown field" not in str(error):
            raise
        columns = columns_of(msgspec.json.decode(text, type=dict[str, dict[str, Any]]))
    complete_columns(columns)
    return columns


def columns_of(properties: Mapping[str, dict[str, Any]]) -> dict[str, Column]:
    """Columns of which the project says more than dbt knows."""
    return {
        name: msgspec.convert(unknown_properties_apart(column), Column)
        for name, column in properties.items()
    }


def complete_columns(columns: Mapping[str, Column]) -> None:
    """Fill in what dbt versions say of columns in different places, or not at all."""
    for name, column in columns.items():
        if not column.name:
            column.name = name
        if (own := column.config) and (own.get("meta") or own.get("tags")):
            if isinstance(meta := own.get("meta"), dict):
                column.meta = {**column.meta, **meta}
            column.tags = merged_tags(column.tags, own.get("tags"))


def merged_tags(tags: list[str], more: Any) -> list[str]:
    """Tags and those of a config (one, or several), without repeats."""
    if not more or more == tags:
        return tags
    extra = [more] if isinstance(more, str) else [str(tag) for tag in more]
    return list(dict.fromkeys([*tags, *extra]))
