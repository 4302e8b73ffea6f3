"""JSON that dbt wrote -> structs, also where a field is null or of a type that is not expected.

The declared columns of a node are decoded when they are first asked for: that is nearly half of decoding a manifest,
and most questions ask for those of few nodes. Of a manifest that this version has not read before all are decoded at
once, so that what is wrong with one is found in time.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from dbt_ripple.artifacts.project import Column, Node
from dbt_ripple.errors import RippleError

REGENERATE: Final = "run `dbt docs generate` to write it anew"
_DECISIVE: Final = frozenset(
    {"unique_id", "resource_type", "depends_on", "raw_code", "compiled_code", "config", "language"}
)
"""Fields of a node that decide its lineage: never left out."""
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def decode(content: bytes | msgspec.Raw, as_type: type[_Struct], path: Path) -> _Struct:
    """A whole file. A field that is null is left out; one of another type, too, unless it decides lineage.

    Raises:
        RippleError: it is no JSON, or not of the shape that dbt writes.
    """
    try:
        return msgspec.json.decode(content, type=as_type)
    except msgspec.ValidationError:
        return _loosely(msgspec.Raw(bytes(content)), as_type, path, path.name, [])
    except NOT_JSON as error:
        mended = without_lone_surrogates(bytes(content))
        if mended != content:
            return decode(mended, as_type, path)
        raise not_json(path, error) from None


def without_lone_surrogates(content: bytes) -> bytes:
    r"""JSON in which halves of a character stand written out (``\ud800``): no text can hold them.

    Python, and so dbt, writes them as it finds them in a yml file.
    """
    return _SURROGATES.sub(
        lambda match: match[0] if match[1] is None else b"\\" + match[1], content
    )


_SURROGATES: Final = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)")


def unknown_properties_apart(column: dict[str, Any]) -> dict[str, Any]:
    """The properties of a column, with those that dbt does not know under ``more``."""
    more = {key: value for key, value in column.items() if key not in _OF_COLUMNS}
    if not more:
        return column
    return {**{key: column[key] for key in column if key not in more}, "more": more}


_OF_COLUMNS: Final = frozenset(Column.__struct_fields__) - {"more", "index"}
NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def not_json(path: Path, error: Exception) -> RippleError:
    """The error that a file is no JSON, or is cut short."""
    what = "JSON cut short" if "truncated" in str(error) else f"not valid JSON ({error})"
    return RippleError(what, str(path), REGENERATE)


def entries_of(raw: Any, as_type: Any, path: Path, section: str, notes: list[str]) -> Any:
    """One section of the manifest as a dict by unique_id; empty where it is missing or null.

    A section that is not decoded yet is decoded at once. Only if an entry has a null or another
    type where we expect something else is it decoded entry by entry.
    """
    if isinstance(raw, dict):
        return raw
    if is_absent(raw):
        return {}
    if as_type is None:
        as_type = msgspec.Raw
    try:
        return msgspec.json.decode(raw, type=dict[str, as_type])
    except msgspec.ValidationError:
        pass
    except NOT_JSON as error:
        raise not_json(path, error) from None
    try:
        entries = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        raise RippleError(f"`{section}` is not an object", str(path), REGENERATE) from None
    if not (isinstance(as_type, type) and issubclass(as_type, msgspec.Struct)):
        return {
            key: [item for item in value if isinstance(item, str)]
            if isinstance(value, list)
            else []
            for key, value in ((k, msgspec.json.decode(v)) for k, v in entries.items())
        }
    return {
        key: _loosely(entry, as_type, path, key, notes)
        for key, entry in entries.items()
        if not is_absent(entry)
    }


def is_absent(raw: msgspec.Raw) -> bool:
    """Whether a value is not there, or null."""
    return bytes(memoryview(raw)[:5]) in (b"", b"null")  # a view: sections are tens of megabytes


def _loosely(
    raw: msgspec.Raw, as_type: type[_Struct], path: Path, key: str, notes: list[str]
) -> _Struct:
    """Decode one object whose fields may be null or of another type than we expect.

    A null is the same as no field. A field of another type is left out, and a note says so; if lineage
    depends on it the file is refused.
    """
    try:
        value = msgspec.json.decode(raw)
    except NOT_JSON as error:
        raise not_json(path, error) from None
    if not isinstance(value, dict):
        raise RippleError(f"`{key}` is not an object", str(path), REGENERATE)
    value = _without_nulls(value)
    if as_type is Node and isinstance(columns := value.get("columns"), dict):
        value["columns"] = {
            name: unknown_properties_apart(column) if isinstance(column, dict) else column
            for name, column in columns.items()
        }
    if isinstance(value.get("tags"), str):
        value["tags"] = [value["tags"]]
    while True:
        try:
            return msgspec.convert(value, as_type)
        except msgspec.ValidationError as error:
            match = re.search(r"\$\.(\w+)", str(error))
            field = match.group(1) if match else ""
            if field not in value or field in _DECISIVE:
                raise RippleError(
                    f"`{key}` has an unknown shape ({error})",
                    str(path),
                    "is it the file dbt wrote? " + REGENERATE,
                ) from None
            del value[field]
            notes.append(f"{path.name}: left out `{field}` of {key}: {error}")


_OPAQUE: Final = frozenset(
    {"config", "unrendered_config", "meta", "kwargs", "adapter_response", "owner", "args"}
)
"""Free-form objects: a null in them is the user's and stays."""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item if key in _OPAQUE else _without_nulls(item)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


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
