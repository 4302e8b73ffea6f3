"""Where the relations of a project are, and which of them are elsewhere after the change.

Readers outside of the project look for a relation by its database, schema and name, whatever dbt
calls the node. Base and head may be compiled for two targets, so what a target makes of all relations
is no move: a node moved if its own config says so, or if it is somewhere else than the other relations
of its schema are. Where both were compiled for one target, whatever is somewhere else has moved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from dbt_ripple.artifacts import Node, Project, contract_version, is_certified, is_public
from dbt_ripple.artifacts.project import version_text

_RELATIONS: Final = ("model", "seed", "snapshot")
_PLACE: Final = ("database", "schema", "alias")
_IN_FILE: Final = re.compile(r"\b((?:target_)?(?:alias|database|schema))\s*=\s*([^,)\n]+)")
_CONFIG: Final = re.compile(r"\bconfig\s*\((.*?)\)\s*[-+]?[}%]\}", re.S)
_Place = tuple[str, str, str]


def is_exposed(node: Node, project: Project) -> bool:
    """Whether an exposure reads it."""
    return _is_read_by(node, project, "exposure")


def is_known(node: Node, project: Project) -> bool:
    """Whether somebody outside of dbt may look for the relation by its name."""
    return (
        node.access == "public"
        or node.contract_enforced
        or contract_version(node) is not None
        or is_certified(node)
        or is_public(node)
        or is_exposed(node, project)
        or _is_read_by(node, project, "asset")
    )


def _is_read_by(node: Node, project: Project, resource_type: str) -> bool:
    return any(
        (child := project.nodes.get(unique_id)) is not None and child.resource_type == resource_type
        for unique_id in project.children.get(node.unique_id, ())
    )


class MovedRelations:
    """The places of both sides.

    Args:
        base: the project before.
        head: the project after.
    """

    def __init__(self, base: Project, head: Project) -> None:
        self._base, self._head = base, head
        # Compiled at one time for one target: what is somewhere else, moved, however many there are.
        self._same_environment = base.same_environment and head.same_environment

    def place(self, node: Node) -> str:
        """Where a relation is, as a reader would write it."""
        return ".".join(filter(None, (node.database, node.schema, node.alias or node.name)))

    def is_elsewhere(self, then: Node, now: Node) -> bool:
        """Whether readers of base's relation do not find head's under its name.

        A node that is no relation on base (an ephemeral model) is nowhere, and cannot move.
        """
        if then.resource_type not in _RELATIONS or then.is_ephemeral:
            return False
        if now.is_ephemeral:
            return True
        if _told(then, now) != _configured(then):
            return True
        if then.relation_name is None or then.relation_name == now.relation_name:
            return False
        *schema, name = _resolved(now)
        *schema_expected, name_expected = self._expected(then)
        return schema != schema_expected or not (name == name_expected or self._names_differ)

    def there_now(self, then: Node) -> list[Node]:
        """The relations of head that stand where base's stood."""
        wanted = self._expected(then)
        return [
            node
            for node in self._head.of_type(*_RELATIONS)
            if not node.is_ephemeral
            and (
                _resolved(node) == wanted
                or (
                    node.unique_id not in self._base.nodes
                    and _configured(node) == _configured(then)
                )
            )
        ]

    def _expected(self, then: Node) -> _Place:
        """Where base's relation would be on head, if nobody had moved it."""
        database, schema, name = _resolved(then)
        return (*self._schemas.get((database, schema), (database, schema)), name)

    @cached_property
    def _names_differ(self) -> bool:
        """Whether most relations have another name, so that the target decides it."""
        if self._same_environment:
            return False
        pairs = [(then.alias, now.alias) for then, now in self._not_told_otherwise()]
        return 2 * sum(was != is_ for was, is_ in pairs) > len(pairs)

    def _not_told_otherwise(self) -> Iterator[tuple[Node, Node]]:
        """The relations of which head says the same place, on both sides."""
        for then in self._base.of_type(*_RELATIONS):
            now = self._head.nodes.get(then.unique_id)
            if now is not None and _told(then, now) == _configured(then):
                yield then, now

    @cached_property
    def _schemas(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Where head has the relations of each of base's schemas: most of those that stayed."""
        if self._same_environment:
            return {}
        votes: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
        for then, now in self._not_told_otherwise():
            votes.setdefault(_resolved(then)[:2], Counter())[_resolved(now)[:2]] += 1
        return {
            before: before if before in counter else counter.most_common(1)[0][0]
            for before, counter in votes.items()
        }


def _resolved(node: Node) -> _Place:
    return (
        (node.database or "").lower(),
        (node.schema or "").lower(),
        (node.alias or node.name).lower(),
    )


def _configured(node: Node) -> _Place:
    """What the project itself says of its place; to write dbt's default down says nothing else."""
    config = node.config
    version = "" if node.version is None else f"_v{version_text(node.version)}"
    name = config.get("alias") or f"{node.name}{version}"
    return (
        str(config.get("target_database") or config.get("database") or "").lower(),
        str(config.get("target_schema") or config.get("schema") or "").lower(),
        str(name).lower(),
    )


def _told(then: Node, now: Node) -> _Place:
    """What head says of the place; as on base where only the target makes another of the same text."""
    place = zip(_PLACE, _configured(then), _configured(now), strict=True)
    return tuple(was if _same_text(key, then, now) else is_ for key, was, is_ in place)  # type: ignore[return-value]


def _same_text(key: str, then: Node, now: Node) -> bool:
    """Whether both sides say a part of the place in the same words, and at all."""
    texts = []
    for node in (then, now):
        # What stands in the file itself comes first, and is rendered in the config of the manifest.
        calls = _CONFIG.findall(node.raw_code) if "config" in node.raw_code else []
        in_file = [found for call in calls for found in _IN_FILE.findall(call)]
        said = [value.strip() for name, value in in_file if name.removeprefix("target_") == key]
        written = node.unrendered_config.get(f"target_{key}", node.unrendered_config.get(key))
        texts.append(said or ([str(written)] if written is not None else []))
    return texts[0] == texts[1] != []
