"""Relations without a query: sources, seeds, and relations that dbt does not know."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.flow.data_types import Fields, fields_of_type, may_have_fields
from dbt_ripple.flow.fingerprint import digest, hashed
from dbt_ripple.flow.identifiers import dialect_of, fold, fold_stored
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.relation import Deps, Relation, UnlistedColumns
from dbt_ripple.graph.config_fingerprints import ConfigFingerprints, hooks_of
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.node_properties import of_source, read_of
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.graph.query_cache import Note
from dbt_ripple.graph.relations import LinkedNode, UnlistedSourceColumns
from dbt_ripple.graph.seed_files import SeedFiles, checksum

DATASET_PREFIX: Final = "dataset."
"""unique_id prefix of a relation that a query reads and dbt does not know."""


_type_of: Final = attrgetter("type")


OF_ONE_TEXT: Final = frozenset(
    {"bigquery", "databricks", "duckdb", "postgres", "snowflake", "spark"}
)
"""Where dbt makes one type of all text in a seed, however long it is."""


class SourcesAndSeeds:
    """The relations of a project that nothing is above."""

    def __init__(self, project: Project, seeds: SeedFiles) -> None:
        self.project = project
        self.seeds = seeds
        self.dialect = dialect_of(project.metadata.adapter_type)
        self.linked_nodes: dict[str, LinkedNode] = {}
        self.notes: dict[Note, None] | None = None
        self.plain_types: set[str | None] = set()  # found to be no structs
        self.macros = Macros(project)
        self.settings = ConfigFingerprints(project, self.macros)

    def dataset(self, key: str, name: str) -> LinkedNode:
        """A relation that dbt does not know."""
        unique_id = DATASET_PREFIX + key
        linked = self.linked_nodes.get(unique_id)
        if linked is None:
            linked = self.linked_nodes[unique_id] = self.unlisted_relation(
                unique_id, digest(b"leaf", unique_id.encode()), [], False
            )
        return linked

    def source_or_seed(self, unique_id: str, node: Node) -> LinkedNode:
        """A source or a seed."""
        if node.resource_type == "seed":
            return self.seed(unique_id, node)
        fingerprint = digest(b"leaf", unique_id.encode(), repr(where_it_is(node)).encode())
        settings = of_source(node, self.project.metadata.adapter_type)
        if reads := self.settings.read_by_project_hooks:
            settings += read_of(node, reads)
        if settings:
            fingerprint = digest(fingerprint, repr(settings).encode())
        listed = self.project.catalog.get(unique_id, [])
        names = [c.name for c in listed]
        closed = bool(names)
        if not closed:
            names = [c.name for c in node.columns.values()]
        linked = self.unlisted_relation(unique_id, fingerprint, names, closed)
        linked.relation.fields = self.fields_of(node, linked.relation.fields, listed)
        return linked

    def fields_of(
        self, node: Node, fields: dict[str, Fields], listed: list[CatalogColumn]
    ) -> dict[str, Fields]:
        """The fields of its columns that are a struct: as its query or the warehouse shows them."""
        types: list[tuple[str, bool, str]] = []
        if new := {*map(_type_of, listed)} - self.plain_types:
            structs = {t for t in new if t and may_have_fields(t)}
            self.plain_types |= new - structs
            types += [(c.name, True, c.type or "") for c in listed if c.type in structs]
        if node.contract_enforced:
            types += [
                (c.name, bool(c.quote), c.data_type)
                for c in node.columns.values()
                if c.data_type and may_have_fields(c.data_type)
            ]
        for name, quoted, text in types:
            key = fold(name, quoted, self.dialect)
            fields_read = fields_of_type(text, self.dialect) if key not in fields else None
            if fields_read is not None:
                fields = {**fields, key: fields_read}
        return fields

    def seed(self, unique_id: str, node: Node) -> LinkedNode:
        """A seed is its file (rule 12), read with its settings."""
        names = [c.name for c in self.project.catalog.get(unique_id, ())]
        file = None
        if not names or unique_id in self.seeds.changed:
            file = self.seeds.read(node)
        if file is not None and {n.lower() for n in names} != {n.lower() for n in file.header}:
            names = file.header
        by_content = file is not None and file.values and unique_id in self.seeds.by_content
        if hooks_of(node):  # which may make one column out of another
            by_content = False
        # What was read by its delimiter tells what was read, whatever it was.
        settings = (None if by_content else node.config.get("delimiter") or ",", self.quoted(node))
        config = digest(repr(settings).encode(), self.settings.of(node))
        content = b"" if by_content else repr(checksum(node)).encode()
        content += self.seeds.digests.get(unique_id, b"")
        fingerprint = digest(b"seed", unique_id.encode(), config, content)
        closed = bool(names)
        if not closed:
            names = [c.name for c in node.columns.values()]
        linked = self.unlisted_relation(unique_id, fingerprint, names, closed)
        relation = linked.relation
        if file is not None and by_content:
            values = dict(zip((n.lower() for n in file.header), file.values, strict=True))
            if unique_id in self.seeds.reordered:
                relation.incidental = digest(b"order of a file", *file.values)
                linked.analysis.incidental = relation.incidental.hex()
                values = dict.fromkeys(values, file.bag)
            relation.rows_fp = digest(relation.rows_fp, str(file.rows).encode())
            formerly = self.seeds.formerly.get(unique_id, {})
            for i, name in enumerate(names):
                if name.lower() in formerly:  # the same column, under another name
                    key = fold_stored(formerly[name.lower()], self.dialect)
                    relation.fps[i] = digest(fingerprint, key.encode())
                relation.fps[i] = digest(relation.fps[i], values.get(name.lower(), b""))
        types = node.config.get("column_types")
        if isinstance(types, dict) and types:
            said_types = {str(k).lower(): type_text(str(v)) for k, v in types.items()}
            for i, name in enumerate(names):
                if name.lower() in said_types:
                    relation.fps[i] = digest(relation.fps[i], said_types[name.lower()].encode())
        linked.analysis.fingerprints = [fp.hex() for fp in relation.fps]
        linked.analysis.rows_fingerprint = relation.rows_fp.hex()
        return linked

    def types_of_file(self, unique_id: str) -> bytes | None:
        """A fingerprint of the names and types of a changed seed's columns; None where not known.

        Of other relations what their columns are made of stands for their types.
        """
        node = self.project.nodes[unique_id]
        if (
            unique_id not in self.seeds.by_content
            or self.project.metadata.adapter_type not in OF_ONE_TEXT
            or self.settings.of(node)
            or (file := self.seeds.read(node)) is None
            or not file.shapes
        ):
            return None
        column_types = node.config.get("column_types")
        return digest(
            b"types",
            *(name.encode() for name in file.header),
            *file.shapes,
            repr(
                (
                    sorted(column_types.items())
                    if isinstance(column_types, dict)
                    else column_types,
                    self.quoted(node),
                )
            ).encode(),
        )

    def quoted(self, node: Node) -> bool | None:
        """Whether the names of a seed's columns are quoted; None where it makes no other name.

        That is so where the engine does not tell names apart by it, or where the file has each name
        as the engine stores it.
        """
        if fold("aB", False, self.dialect) == fold("aB", True, self.dialect):
            return None
        quoted = node.config.get("quote_columns")
        if quoted is not None and (file := self.seeds.read(node)) is not None:
            plain = all(
                fold(n, False, self.dialect) == fold(n, True, self.dialect) for n in file.header
            )
            return None if plain else bool(quoted)
        return quoted

    def unlisted_relation(
        self, unique_id: str, fingerprint: bytes, names: list[str], closed: bool
    ) -> LinkedNode:
        """A relation of these columns, and of any other that is read unless it is closed."""
        keys = [fold_stored(n, self.dialect) for n in names]
        prefix = fingerprint + b"\x00"
        fps = [hashed(prefix + k.encode()) for k in keys]  # what `digest` of the two gives
        rest: list[UnlistedColumns] = [UnlistedSourceColumns(self, unique_id, fingerprint)]
        relation = Relation(
            list(names),
            keys,
            fps,
            [{(unique_id, n): IDENTITY} for n in names],
            [] if closed else rest,
            digest(fingerprint, b"rows"),
            {(unique_id, ROWS): IDENTITY},
            fingerprint,
            unresolved=rest if closed else None,
        )
        analysis = NodeAnalysis(
            unique_id,
            "leaf",
            None,
            list(names),
            [fp.hex() for fp in fps],
            [None] * len(names),
            relation.rows_fp.hex(),
        )
        return LinkedNode(analysis, relation, [{} for _ in names], {})

    def discover(self, linked: LinkedNode, key: str, name: str, fp: bytes, deps: Deps) -> str:
        """Note a column that only its use shows; returns the name it is noted under."""
        if key in linked.relation.columns():
            return linked.analysis.columns[linked.relation.keys.index(key)]
        analysis = linked.analysis
        for other in analysis.columns[len(linked.relation.names) :]:
            if fold(other, False, self.dialect) == key or fold_stored(other, self.dialect) == key:
                return other
        analysis.columns.append(name)
        analysis.fingerprints.append(fp.hex())
        analysis.expressions.append(None)
        linked.deps.append(deps)
        return name


def where_it_is(source: Node) -> tuple[str | None, ...]:
    """What a project says of where a source is, without what only the target decides (rule 6)."""
    parts: list[str | None] = [source.identifier or source.name]
    for unrendered, rendered in (
        (source.unrendered_database, source.database),
        (source.unrendered_schema, source.schema),
    ):
        parts.append(unrendered)
        if unrendered and "target" not in unrendered and "env_var" not in unrendered:
            parts.append(rendered)
    return tuple(parts)
