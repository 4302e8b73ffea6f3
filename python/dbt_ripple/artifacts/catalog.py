"""`catalog.json`: the columns of relations, decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from dbt_ripple.artifacts.decode_json import NOT_JSON, decode
from dbt_ripple.artifacts.project import CatalogColumn, Metadata, Node, as_utc
from dbt_ripple.errors import RippleError


class _CatalogTable(msgspec.Struct):
    columns: dict[str, CatalogColumn] = {}


class _Catalog(msgspec.Struct):
    nodes: dict[str, _CatalogTable] = {}
    sources: dict[str, _CatalogTable] = {}


class _LateTable(msgspec.Struct, gc=False):
    columns: msgspec.Raw = msgspec.Raw(b"{}")


class _LateCatalog(msgspec.Struct):
    """The catalog as dbt writes it, its columns not decoded yet."""

    nodes: dict[str, _LateTable] = {}
    sources: dict[str, _LateTable] = {}
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class CatalogColumns(Mapping[str, list[CatalogColumn]]):
    """The columns of the catalog's relations that are among the nodes, in order.

    Those of a relation are decoded when they are asked for; hardly any command asks for all.

    Args:
        content: of the file.
        path: of the file.
        nodes: those of the project.
        like: the catalog of another state of the project: if it is the same, each relation is decoded once.

    Attributes:
        listed: the unique_ids of all that the catalog holds.
        metadata: of the catalog, as far as it can be read.
    """

    def __init__(
        self, content: bytes, path: Path, nodes: Collection[str], like: object = None
    ) -> None:
        self._content = content
        self._path = path
        self._tables: dict[str, msgspec.Raw | list[CatalogColumn]]
        self.listed: list[str]
        self.metadata = Metadata()
        if isinstance(like, CatalogColumns) and like._content == content:
            self._content, self.listed, self.metadata = like._content, like.listed, like.metadata
            self._tables = like._tables
        else:
            try:
                catalog = msgspec.json.decode(content, type=_LateCatalog)
            except (msgspec.ValidationError, *NOT_JSON):
                self.decode()
            else:
                self._tables = {
                    u: t.columns for u, t in {**catalog.nodes, **catalog.sources}.items()
                }
                with suppress(msgspec.ValidationError, *NOT_JSON):
                    self.metadata = msgspec.json.decode(catalog.metadata, type=Metadata)
            self.listed = list(self._tables)
        self._of_nodes = dict.fromkeys(u for u in self.listed if u in nodes)

    def decode(self) -> None:
        """Decode all of it, which tells what to make of what dbt does not write."""
        catalog = decode(self._content, _Catalog, self._path)
        tables = {**catalog.nodes, **catalog.sources}
        self._tables = {unique_id: _sorted(table.columns) for unique_id, table in tables.items()}

    def __getitem__(self, unique_id: str) -> list[CatalogColumn]:
        if unique_id not in self._of_nodes:
            raise KeyError(unique_id)
        columns = self._tables.get(unique_id, [])
        if isinstance(columns, list):
            return columns
        try:
            decoded = _sorted(msgspec.json.decode(columns, type=dict[str, CatalogColumn]))
        except (msgspec.ValidationError, *NOT_JSON):
            self.decode()  # what is null there is not in it, and has no columns
            return self[unique_id]
        self._tables[unique_id] = decoded
        return decoded

    def may_contain(self, unique_id: str, pieces: Iterable[bytes]) -> bool:
        """Whether the JSON of a relation's columns may contain one of these pieces, in lower case."""
        columns = self._tables.get(unique_id, b"")
        if isinstance(columns, list):
            return True
        text = bytes(columns).lower()
        return b"\\" in text or any(map(text.__contains__, pieces))

    def __contains__(self, unique_id: object) -> bool:
        return unique_id in self._of_nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._of_nodes)

    def __len__(self) -> int:
        return len(self._of_nodes)


def catalog_may_contain(
    catalog: Mapping[str, Sequence[CatalogColumn]], unique_id: str, pieces: Iterable[bytes]
) -> bool:
    """Whether a catalog may say one of these pieces of JSON of a relation's columns; decodes nothing.

    Args:
        catalog: as `Project.catalog`.
        unique_id: of the relation.
        pieces: in lower case.
    """
    return not isinstance(catalog, CatalogColumns) or catalog.may_contain(unique_id, pieces)


def is_older(catalog: Metadata, manifest: Metadata) -> bool:
    """Whether a catalog was written before the manifest, by another command than that."""
    if catalog.generated_at is None or manifest.generated_at is None:
        return False
    same = catalog.invocation_id is not None and catalog.invocation_id == manifest.invocation_id
    return not same and as_utc(catalog.generated_at) < as_utc(manifest.generated_at)


_index_of: Final = attrgetter("index")


def _sorted(columns: dict[str, CatalogColumn]) -> list[CatalogColumn]:
    return sorted(columns.values(), key=_index_of)


def check_catalog(
    catalog: CatalogColumns,
    path: Path,
    nodes: dict[str, Node],
    metadata: Metadata,
    disabled: Collection[str],
) -> None:
    """Refuse the catalog of another project.

    Raises:
        RippleError: it holds none of the project's own relations, and others.
    """
    # Installed packages are shared between projects, so only the project's own relations tell.
    unknown = [key for key in catalog.listed if key not in catalog and key not in disabled]
    if unknown and not any(nodes[key].package_name == metadata.project_name for key in catalog):
        raise RippleError(
            f"is the catalog of another project: it holds {unknown[0]} and nothing of "
            f"{metadata.project_name}",
            str(path),
            "run `dbt docs generate`, which writes manifest.json and catalog.json together",
        )
