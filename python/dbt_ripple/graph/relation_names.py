"""Which name in SQL is which node (rule 6)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.identifiers import fold, fold_stored, keeps_case
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.jinja.kept import cached_method

_PLAIN: Final = re.compile(
    r"""(?: [\w$-]+ | `[\w$-]+` | "[\w$-]+" ) (?: \. (?: [\w$-]+ | `[\w$-]+` | "[\w$-]+" ) )*""",
    re.ASCII | re.VERBOSE,
)
_RELATION_PARTS: Final = re.compile(r'`([^`]+)`|"([^"]+)"|\[([^\]]+)\]|([^.`"\[\]]+)')


class RelationNames:
    """The names that the relations of a project go by.

    Attributes:
        canonical: of a source that a node of the project builds, that node.
    """

    def __init__(self, project: Project, dialect: str) -> None:
        self.project = project
        self.dialect = dialect
        self._keeps_case = keeps_case(dialect)
        self.by_name: dict[str, str] = {}
        self.canonical: dict[str, str] = {}
        self._name_relations()

    def _name_relations(self) -> None:
        sources = []
        for unique_id, node in self.project.nodes.items():
            if node.resource_type not in RELATIONS:
                continue
            if node.resource_type == "source":
                sources.append((unique_id, node))
                continue
            if node.is_ephemeral:
                self.by_name[EPHEMERAL_PREFIX + (node.alias or node.name).lower()] = unique_id
                continue
            for key in self.keys_of(node):
                self.by_name.setdefault(key, unique_id)
        for unique_id, node in sources:
            keys = self.keys_of(node)
            builder = next((b for k in keys if (b := self.by_name.get(k)) is not None), None)
            if builder is not None:
                self.canonical[unique_id] = builder
            for key in keys:
                self.by_name.setdefault(key, unique_id)

    @cached_property
    def by_suffix(self) -> dict[str, str | None]:
        """Names without their first parts, with None for those that several relations have."""
        by_suffix: dict[str, str | None] = {}
        for key, unique_id in self.by_name.items():
            parts = key.split(".")
            for length in range(2, len(parts)):
                suffix = ".".join(parts[-length:])
                other = by_suffix.setdefault(suffix, unique_id)
                if other != unique_id:
                    by_suffix[suffix] = None
        return by_suffix

    def _key(self, name: str) -> str:
        """The key of a relation's name as it is written in SQL."""
        if _PLAIN.fullmatch(name):  # as nearly all are, and taking them apart takes its time
            bare = name.replace("`", "").replace('"', "")
            if bare == name or not keeps_case(self.dialect):
                return bare.lower()
        return ".".join(self._parts(name))

    def _parts(self, name: str) -> list[str]:
        """The folded parts of a relation's name as it is written in SQL."""
        parts = []
        for match in _RELATION_PARTS.finditer(name):
            quoted = match[4] is None
            text = match[match.lastindex or 0].strip()
            inner = text.split(".") if self.dialect == "bigquery" else [text]
            parts += [fold(p, quoted, self.dialect) for p in inner if p]
        return parts

    def keys_of(self, node: Node) -> list[str]:
        """The folded names the node's relation goes by."""
        name = node.identifier if node.resource_type == "source" else node.alias
        written = node.relation_name
        if written and node.schema and not self._keeps_case:
            # Nearly all relations are called after the places that their nodes name.
            full = f"{node.schema}.{name or node.name}"
            full = (f"{node.database}.{full}" if node.database else full).lower()
            bare = written.replace("`", "").replace('"', "").lower()
            if (
                bare == full
                and full.count(".") == (2 if node.database else 1)
                and full.isascii()
                and full.replace(".", "_").isidentifier()
            ):
                return [full]
        keys = []
        if written:
            keys.append(self._key(written))
            if node.database and keys[0].count(".") == 2:
                return keys  # what differs in its database only is another relation
        if node.schema and (name or node.name):
            pair = f"{fold_stored(node.schema, self.dialect)}.{fold_stored(name or node.name, self.dialect)}"
            if not keys or not keys[0].endswith(pair):
                keys.append(pair)
            if node.database and keys[0].count(".") < 2:
                keys.append(f"{fold_stored(node.database, self.dialect)}.{pair}")
        return keys

    @cached_property
    def by_identifier(self) -> dict[str, set[str]]:
        """The relations by the last part of their names, in lower case."""
        unique_ids: dict[str, set[str]] = {}
        for key, unique_id in self.by_name.items():
            if not key.startswith(EPHEMERAL_PREFIX):
                last = key.rpartition(".")[2].strip('"').lower()
                unique_ids.setdefault(last, set()).add(self.canonical.get(unique_id, unique_id))
        return unique_ids

    @cached_property
    def by_dbt_name(self) -> dict[str, list[str]]:
        """The relations by the name that ``ref`` or ``source`` calls them."""
        unique_ids: dict[str, list[str]] = {}
        for unique_id, node in self.project.nodes.items():
            if node.resource_type in RELATIONS:
                unique_ids.setdefault(node.name, []).append(unique_id)
        return unique_ids

    @cached_method
    def named_by(self, words: frozenset[str]) -> frozenset[str]:
        """The relations that a text which is not followed may name: those of which a word is the name.

        Args:
            words: of the text (`graph.unnamed_reads.words_of_names`).
        """
        unique_ids: set[str] = set()
        for word in words:
            if "." not in word:
                unique_ids |= self.by_identifier.get(word.lower(), set())
            elif (unique_id := self.node_named(word)) is not None:
                unique_ids.add(unique_id)
        return frozenset(unique_ids)

    def node_named(self, name: str) -> str | None:
        """The relation of the project that a name with a schema means in SQL."""
        return self.node_of(".".join(self._parts(name)))

    def node_of(self, key: str) -> str | None:
        """The unique_id of the relation a query names, or None where dbt does not know it."""
        unique_id = self.by_name.get(key)
        if unique_id is None and "." in key:
            unique_id = self.by_suffix.get(key)
            if unique_id is None and key.count(".") == 2:
                unique_id = self.by_name.get(key.split(".", 1)[1])
                if unique_id is not None and self.project.nodes[unique_id].database:
                    unique_id = None  # that one is in another database
        return self.canonical.get(unique_id, unique_id) if unique_id is not None else None
