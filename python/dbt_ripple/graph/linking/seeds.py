"""Seeds: how they are fingerprinted, which is by the contents of their files (rule 12).

A file counts as that of one side only if it has the checksum in that side's manifest: the file in
the project, or a version in git. dbt computes the checksum over the text without surrounding white
space; other versions may use the bytes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold, fold_stored
from dbt_ripple.flow.relation import OutputColumn
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.git import revisions
from dbt_ripple.graph.linking.sources import unlisted_relation
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.graph.relations import LinkedNode

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

OF_ONE_TEXT: Final = frozenset(
    {"bigquery", "databricks", "duckdb", "postgres", "snowflake", "spark"}
)
"""Where dbt makes one type of all text in a seed, however long it is."""


_NOT_QUOTED: Final = frozenset({"oracle", "snowflake"})
"""Dialects whose adapter does not quote a seed's columns unless it is told to."""

# -- the fingerprint ---------------------------------------------------------------------------------


def link_seed(linker: Linker, unique_id: str, node: Node) -> LinkedNode:
    """A seed is its file, read with its settings."""
    seeds = linker.seeds
    names = [c.name for c in linker.catalog.get(unique_id, ())]
    file = None
    if not names or unique_id in seeds.changed:
        file = seeds.read(node)
    keys = None
    if file is not None and {n.lower() for n in names} != {n.lower() for n in file.header}:
        names = file.header
        quoted = node.config.get("quote_columns")
        quoted = linker.dialect not in _NOT_QUOTED if quoted is None else bool(quoted)
        keys = [fold(name, quoted, linker.dialect) for name in names]
    by_content = file is not None and unique_id in seeds.by_content and bool(file.values)
    if hooks_of(node):  # which may make one column out of another
        by_content = False
    # What was read by its delimiter tells what was read, whatever it was.
    delimiter = None if by_content else node.config.get("delimiter") or ","
    settings = (delimiter, _names_are_quoted(linker, node))
    config = digest(repr(settings).encode(), linker.context.config_fingerprints.of(node))
    content = b"" if by_content else repr(checksum(node)).encode()
    content += seeds.digests.get(unique_id, b"")
    fingerprint = digest(b"seed", unique_id.encode(), config, content)
    closed = bool(names)
    if not closed:
        names = [c.name for c in node.columns.values()]
    linked = unlisted_relation(linker, unique_id, fingerprint, names, closed, keys)
    if file is not None and by_content:
        _add_content(linker, linked, fingerprint, file)
    relation = linked.relation
    types = node.config.get("column_types")
    if isinstance(types, dict) and types:
        declared_types = {str(k).lower(): type_text(str(v)) for k, v in types.items()}
        for i, c in enumerate(relation.columns):
            if c.name.lower() in declared_types:
                fp = digest(c.fp, declared_types[c.name.lower()].encode())
                relation.columns[i] = OutputColumn(c.name, c.key, fp, c.deps)
    linked.analysis.fingerprints = [fp.hex() for fp in relation.fps]
    linked.analysis.rows_fingerprint = relation.rows.fp.hex()
    return linked


def _add_content(linker: Linker, linked: LinkedNode, fingerprint: bytes, file: SeedFile) -> None:
    """Tell the columns of a seed apart by the values in its file."""
    seeds, relation = linker.seeds, linked.relation
    unique_id = linked.analysis.unique_id
    values = dict(zip((n.lower() for n in file.header), file.values, strict=True))
    incidental = relation.rows.incidental
    if unique_id in seeds.reordered:
        incidental = digest(b"order of a file", *file.values)
        linked.analysis.incidental = incidental.hex()
        values = dict.fromkeys(values, file.bag)
    relation.rows = msgspec.structs.replace(
        relation.rows,
        fp=digest(relation.rows.fp, str(file.rows).encode()),
        incidental=incidental,
    )
    formerly = seeds.formerly.get(unique_id, {})
    for i, c in enumerate(relation.columns):
        name, fp = c.name.lower(), c.fp
        if name in formerly:  # the same column, under another name
            key = fold_stored(formerly[name], linker.dialect)
            fp = digest(fingerprint, key.encode())
        fp = digest(fp, values.get(name, b""))
        relation.columns[i] = OutputColumn(c.name, c.key, fp, c.deps)


def types_of_seed_file(linker: Linker, unique_id: str) -> bytes | None:
    """A fingerprint of the names and types of a changed seed's columns; None where not known.

    Of other relations what their columns are made of stands for their types.
    """
    node = linker.project.nodes[unique_id]
    if (
        unique_id not in linker.seeds.by_content
        or linker.project.metadata.adapter_type not in OF_ONE_TEXT
        or linker.context.config_fingerprints.of(node)
        or (file := linker.seeds.read(node)) is None
        or not file.shapes
    ):
        return None
    types = node.config.get("column_types")
    settings = (
        sorted(types.items()) if isinstance(types, dict) else types,
        _names_are_quoted(linker, node),
    )
    header = (name.encode() for name in file.header)
    return digest(b"types", *header, *file.shapes, repr(settings).encode())


def _names_are_quoted(linker: Linker, node: Node) -> bool | None:
    """Whether the names of a seed's columns are quoted; None where it makes no other name.

    That is so where the engine does not tell names apart by it, or where the file has each name
    as the engine stores it.
    """
    dialect = linker.dialect
    if fold("aB", False, dialect) == fold("aB", True, dialect):
        return None
    quoted = node.config.get("quote_columns")
    if quoted is not None and (file := linker.seeds.read(node)) is not None:
        plain = all(fold(n, False, dialect) == fold(n, True, dialect) for n in file.header)
        return None if plain else bool(quoted)
    return quoted


def types_of_seed(linker: Linker, node: Node) -> list[tuple[str, str]]:
    """The types that a seed's columns will have once its file is loaded, as far as that is sure.

    Nothing of what is no seed.
    """
    if node.resource_type != "seed":
        return []
    column_types = node.config.get("column_types")
    types = (
        {str(k): str(v) for k, v in column_types.items()} if isinstance(column_types, dict) else {}
    )
    file = linker.seeds.read(node)
    if file is not None:
        own = {name.lower() for name in types}
        types |= {n: "text" for n in file.header if n.lower() in file.text - own}
    return list(types.items())


# -- the files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeedFile:
    """What a seed's file holds; what most seeds are not asked for is computed when it is asked for.

    Attributes:
        header: the names of its columns.
        rows: how many rows follow the header.
        content: the file.
        delimiter: what it is read by.
    """

    header: list[str]
    rows: int
    content: bytes
    delimiter: str | None

    @cached_property
    def values(self) -> list[bytes]:
        """A fingerprint of each column's values in order; empty where a row is longer or shorter than the header."""
        if not self._is_even:
            return []
        return [
            digest(*(f"{len(value)}:{value}".encode() for value in column))
            for column in self._columns
        ] or [digest(b"no rows")] * len(self.header)

    @cached_property
    def text(self) -> frozenset[str]:
        """The names, in lower case, of the columns that no loader takes for anything but text."""
        texts = zip(self.header, self._columns, strict=False)
        return frozenset(name.lower() for name, column in texts if any(map(_is_text, column)))

    @cached_property
    def shapes(self) -> list[bytes]:
        """What each column's type depends on where none is set: how its values are written, and how long they are."""
        return [digest(*(shape.encode() for shape in sorted(_shapes(c)))) for c in self._columns]

    @cached_property
    def bag(self) -> bytes:
        """A fingerprint of the rows in whatever order; empty where `values` is."""
        if not self._is_even:
            return b""
        return digest(*(repr(row).encode() for row in [self.header, *sorted(self._rows)]))

    @cached_property
    def plain(self) -> bool:
        """Whether every loader reads the same rows and values in it.

        What a loader that guesses quotes and escapes from the whole file could take for one stands nowhere in it.
        """
        return _is_plain(self.content, rows_of(self.content, self.delimiter) or [])

    def is_read_alike(self, adapter: str | None) -> bool:
        """Whether the columns that this adapter loads are equal to those of another such file where their values are."""
        return bool(self.values) and (adapter not in LOADERS_THAT_GUESS or self.plain)

    def renamed_since(self, then: SeedFile) -> dict[str, str]:
        """The columns that only have another name: what they were called, by what they are called now.

        They hold the same values, and no other column that came or went does.
        """
        before = {name.lower() for name in then.header}
        here = {name.lower() for name in self.header}
        gone = [
            (name, v)
            for name, v in zip(then.header, then.values, strict=True)
            if name.lower() not in here
        ]
        came = [
            (name, v)
            for name, v in zip(self.header, self.values, strict=True)
            if name.lower() not in before
        ]
        renamed = {}
        for name, values in came:
            old = [n for n, v in gone if v == values]
            if len(old) == 1 and sum(v == values for _, v in came) == 1:
                renamed[name.lower()] = old[0]
        return renamed

    @property
    def _rows(self) -> list[list[str]]:
        return (rows_of(self.content, self.delimiter) or [])[1:]

    @cached_property
    def _is_even(self) -> bool:
        return all(len(row) == len(self.header) for row in self._rows)

    @cached_property
    def _columns(self) -> list[tuple[str, ...]]:
        """The values of each column; none where there are no rows, or `values` is empty."""
        return list(zip(*self._rows, strict=True)) if self._is_even else []


LOADERS_THAT_GUESS: Final = frozenset({"duckdb"})
"""Adapters that have the engine read the file of a seed, which guesses how it is written."""


class SeedFiles:
    """The files of one project's seeds, as far as they are at hand.

    Args:
        folders: where to look besides the folder a seed says it is in.
        changed: seeds whose file is not the same on the other side: their file is read even where
            the catalog lists their columns, because it is newer.
        by_content: those of them whose columns are told apart by their values; for all others it is
            the checksum that counts.
        digests: what stands for the contents of a seed instead of its checksum.
        reordered: those of ``by_content`` that hold the same rows on the other side, in another order.
        formerly: the names that columns of ``by_content`` with the same values have on base, by
            their names in lower case.
    """

    def __init__(
        self,
        folders: Iterable[str] = (),
        changed: Collection[str] = (),
        by_content: Collection[str] = (),
        digests: Mapping[str, bytes] | None = None,
        reordered: Collection[str] = (),
        formerly: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.folders = list(folders)
        self.changed = changed
        self.by_content = by_content
        self.digests = digests or {}
        self.reordered = reordered
        self.formerly = formerly or {}
        self._parsed: dict[tuple[str, str], SeedFile | None] = {}

    @classmethod
    def by_their_values(cls, project: Project) -> SeedFiles:
        """The files at hand of a project's seeds, each column told apart by its values.

        So that two analyses can be compared which never meet, as those of two loads.
        """
        files = cls()
        adapter = project.metadata.adapter_type
        files.changed = files.by_content = {
            node.unique_id
            for node in project.of_type("seed")
            if (file := files.read(node)) is not None and file.is_read_alike(adapter)
        }
        return files

    def read(self, node: Node) -> SeedFile | None:
        """The file of a seed; None where no file with its checksum can be read."""
        key = node.unique_id, repr((node.root_path, checksum(node), node.config.get("delimiter")))
        if key not in self._parsed:
            content = self.content(node)
            delimiter = node.config.get("delimiter")
            self._parsed[key] = _read(content, delimiter) if content is not None else None
        return self._parsed[key]

    def content(self, node: Node) -> bytes | None:
        """The bytes of a seed's file; None where no file with its checksum can be read."""
        for folder in dict.fromkeys([*([node.root_path] if node.root_path else []), *self.folders]):
            try:
                content = (Path(folder) / node.original_file_path).read_bytes()
            except OSError:
                continue
            if _has_checksum(content, node):
                return content
        if node.unique_id in self.changed and node.root_path:
            # Head's file lies where base's did; git still has that.
            return _former(Path(node.root_path) / node.original_file_path, *checksum(node))
        return None


def checksum(node: Node) -> tuple[str, str]:
    """The kind of a seed's checksum, and the checksum; of kind ``path`` it tells no contents."""
    value = node.checksum
    if isinstance(value, dict):
        return str(value.get("name") or ""), str(value.get("checksum") or "")
    return "", value or ""


@lru_cache(maxsize=64)
def _former(file: Path, kind: str, wanted: str) -> bytes | None:
    """The content of the file in the last commit in which it had the checksum."""
    if kind not in hashlib.algorithms_available:
        return None
    return next((c for c in revisions(file) if _digests(c, kind, wanted)), None)


def _has_checksum(content: bytes, node: Node) -> bool:
    return _digests(content, *checksum(node))


def _digests(content: bytes, kind: str, wanted: str) -> bool:
    if kind not in hashlib.algorithms_available:
        return False
    try:
        stripped = content.decode("utf-8").strip().encode("utf-8")
    except UnicodeDecodeError:
        stripped = content
    return wanted in (hashlib.new(kind, c).hexdigest() for c in (stripped, content))


def rows_of(content: bytes, delimiter: str | None) -> list[list[str]] | None:
    """The header and the rows of a file; None where it cannot be read."""
    try:
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        return [
            row
            for row in csv.reader(text, delimiter=delimiter if delimiter else _COMMA)
            if row  # an empty line is no row
        ]
    except (UnicodeDecodeError, csv.Error, TypeError):
        return None


def _read(content: bytes, delimiter: str | None) -> SeedFile | None:
    rows = rows_of(content, delimiter)
    if not rows:
        return None
    return SeedFile([name.strip() for name in rows[0]], len(rows) - 1, content, delimiter)


def _is_plain(content: bytes, rows: list[list[str]]) -> bool:
    """Whether a file that could be read is read alike by a loader that guesses how it is written.

    DuckDB guesses quotes and escapes from the whole file, reads ``""`` as another value than nothing,
    takes a blank line for a row, and cuts what stands around a value. An apostrophe is a quote only
    where a value begins with it.
    """
    text = content.decode("utf-8-sig")
    if _GUESSED.search(text.rstrip("\r\n")):
        return False
    values = (value for row in rows for value in row)
    return all(value == value.strip() and not _QUOTES.search(value) for value in values)


_GUESSED: Final = re.compile(r"\\|\"\"|\n[ \t]*\r?\n|^\s*#|\n\s*#|\r(?!\n)")
_QUOTES: Final = re.compile(r"^'|[\"\n\r]")


def _shapes(values: Sequence[str]) -> set[str]:
    """How the values of a column are written, as far as a loader may guess a type by it."""
    if any(map(is_a_word, values)):
        return {"text"}
    return set(map(_shape, values))


def _shape(value: str) -> str:
    if INTEGER.fullmatch(value):
        return "integer" if len(value) < _SHORT else f"integer of {len(value)}"
    if fraction := _FRACTION.fullmatch(value):
        return "fraction" if fraction[1].strip("0") else "fraction of zeros"
    if _MOMENT.fullmatch(value):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return value
        return f"moment of {len(value)}"
    return value


def _is_text(value: str) -> bool:
    """Whether a value can be nothing but text: loaders guess numbers, dates and truth values."""
    return _WORD.search(value) is not None and value.strip().lower() not in _NO_TEXT


def is_a_word(value: str) -> bool:
    """Whether a value is text, and no date with its month or its time zone in words."""
    return _is_text(value) and not _OF_DATES.issuperset(w.lower() for w in _WORDS.findall(value))


_COMMA: Final = ","
_WORDS: Final = re.compile("[A-Za-z]{2,}")
_OF_DATES: Final = frozenset(
    (
        "jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july "
        "august september october november december mon tue wed thu fri sat sun monday tuesday "
        "wednesday thursday friday saturday sunday am pm ad bc st nd rd th utc gmt est edt cst cdt "
        "mst mdt pst pdt cet cest"
    ).split()
)
INTEGER: Final = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_SHORT: Final = 9
_FRACTION: Final = re.compile(r"-?(?:0|[1-9]\d{0,8})\.(\d{1,6})", re.ASCII)
_MOMENT: Final = re.compile(
    r"(?:19|20)\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?)?", re.ASCII
)
_WORD: Final = re.compile("[A-Za-z]{2}")
_NO_TEXT: Final = frozenset(
    "true false yes no on off null none na n/a nan snan inf -inf +inf infinity -infinity +infinity".split()
)
