"""Seeds: the file is what they hold (rule 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold, fold_stored
from dbt_ripple.flow.relation import OutputColumn
from dbt_ripple.graph.config_fingerprints import hooks_of
from dbt_ripple.graph.linking.sources import unlisted_relation
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.graph.relations import LinkedNode
from dbt_ripple.graph.seed_files import SeedFile, checksum

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker

OF_ONE_TEXT: Final = frozenset(
    {"bigquery", "databricks", "duckdb", "postgres", "snowflake", "spark"}
)
"""Where dbt makes one type of all text in a seed, however long it is."""


_NOT_QUOTED: Final = frozenset({"oracle", "snowflake"})
"""Dialects whose adapter does not quote a seed's columns unless it is told to."""


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
