"""Finds nodes and columns by words of their names, descriptions, tags and owners."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from dbt_ripple.artifacts import Node, Project, owner

_WORD: Final = re.compile(r"\w+")
_TESTS: Final = frozenset({"test", "unit_test", "operation"})


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is meant, or may be.

    Attributes:
        name: as other questions take it.
        columns: those of its columns in which a word was found.
        found_in: where all the words were found: name, column, description, tag, owner or path; the best of them.
    """

    unique_id: str
    name: str
    resource_type: str
    description: str
    owner: str | None
    columns: list[str]
    found_in: str


_PLACES: Final = ("name", "column", "tag", "owner", "path", "description")


def search(
    project: Project, columns: Mapping[str, list[str]], text: str, *, tests: bool = False
) -> list[Hit]:
    """The nodes in which all the words of a text are found, the best first.

    Args:
        project: with everything that can be asked about.
        columns: of each node, by unique_id.
        text: words; parts of names are enough, and case does not matter.
        tests: whether tests are looked at, too.
    """
    words = _WORD.findall(text.casefold())
    hits: list[tuple[tuple[int, int, str], Hit]] = []
    for node in project.nodes.values():
        if not words or (node.resource_type in _TESTS and not tests):
            continue
        own = columns.get(node.unique_id, [])
        places = dict(_texts(node, project, own))
        worst = max((_place(word, places) for word in words), default=len(_PLACES))
        if worst == len(_PLACES):
            continue
        name = node.spoken_name.casefold()
        exact = 0 if name == text.strip().casefold() else 1 if name.startswith(words[0]) else 2
        hit = Hit(
            unique_id=node.unique_id,
            name=node.spoken_name,
            resource_type=node.resource_type,
            description=node.description,
            owner=owner(node, project),
            columns=[c for c in own if any(word in c.casefold() for word in words)],
            found_in=_PLACES[worst],
        )
        hits.append(((worst, exact, node.unique_id), hit))
    return [hit for _, hit in sorted(hits, key=lambda found: found[0])]


def _place(word: str, places: Mapping[str, str]) -> int:
    return next((i for i, p in enumerate(_PLACES) if word in places[p]), len(_PLACES))


def _texts(node: Node, project: Project, columns: list[str]) -> Iterator[tuple[str, str]]:
    names = (node.unique_id, node.name, node.display_name, node.alias, node.label, node.source_name)
    yield "name", " ".join(filter(None, names)).casefold()
    yield "column", " ".join(columns).casefold()
    yield "tag", " ".join(node.tags).casefold()
    yield "owner", (owner(node, project) or "").casefold()
    yield "path", (node.original_file_path or "").casefold()
    yield "description", node.description.casefold()
