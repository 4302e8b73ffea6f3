"""The declared columns of a node, decoded when they are first asked for.

Decoding them is nearly half of decoding a manifest, and most questions ask for those of
few nodes. Of a manifest that this version has not read before all are decoded at once, so that what
is wrong with one is found in time.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, Final

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

    @property
    def is_decoded(self) -> bool:
        """Whether they were asked for."""
        return self._columns is not None

    def decode(self) -> dict[str, Column]:
        """The columns, complete.

        Raises:
            msgspec.ValidationError: a property of a column is not of the type that dbt gives it.
        """
        if self._columns is None:
            self._columns = _decoded(self._text)
            self._text = b""
        return self._columns

    def __getitem__(self, name: str) -> Column:
        return self.decode()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.decode())

    def __len__(self) -> int:
        return len(self.decode())

    # Those of `Mapping` come to each column by its name.

    def values(self) -> ValuesView[Column]:
        """The columns."""
        return self.decode().values()

    def items(self) -> ItemsView[str, Column]:
        """The columns with their names."""
        return self.decode().items()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, ColumnsOnDemand):
            return (self._text != b"" and self._text == other._text) or (
                self.decode() == other.decode()
            )
        return self.decode() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.decode())


_decode: Final = msgspec.json.Decoder(dict[str, Column]).decode


def _decoded(text: bytes) -> dict[str, Column]:
    try:
        columns = _decode(text)
    except msgspec.ValidationError as error:
        if "unknown field" not in str(error):
            raise
        properties = msgspec.json.decode(text, type=dict[str, dict[str, Any]])
        columns = {
            name: msgspec.convert(unknown_properties_apart(column), Column)
            for name, column in properties.items()
        }
    complete_columns(columns)
    return columns


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
