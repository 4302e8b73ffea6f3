"""Names as people type them: file names, ``--select`` evaluated on the artifacts, and words to search for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from dbt_ripple.artifacts import Node, Project, owner

_FILES = (".sql", ".py", ".csv", ".yml", ".yaml")


def chosen(
    project: Project, select: Sequence[str], exclude: Sequence[str], project_dir: Path
) -> set[str] | None:
    """The unique_ids that specs of dbt's grammar select; None where none is given.

    Raises:
        RippleError: as `artifacts.node_selection.selected`.
    """
    if not select and not exclude:
        return None
    from dbt_ripple.artifacts.node_selection import selected

    def typed(specs: Sequence[str]) -> list[str]:
        return [
            " ".join(
                ",".join(as_typed(part, project_dir) for part in word.split(","))
                for word in spec.split()
            )
            for spec in specs
        ]

    return selected(project, typed(select), typed(exclude))


def as_typed(text: str, project_dir: Path) -> str:
    """A name with a file in it, as dbt knows that file: by its path from the project's root.

    It may be typed from the current folder, as a shell completes it.
    """
    bare = text.lstrip("@+0123456789") if text[:1] in "@+0123456789" and "+" in text else text
    before, name = text[: len(text) - len(bare)], bare
    method, colon, path = name.partition(":")
    if not colon or method not in ("path", "file"):
        method, colon, path = "", "", name
    end = "+" + path.rpartition("+")[2] if path.rpartition("+")[2].isdigit() else ""
    end = end or ("+" if path.endswith("+") else "")
    path = path.removesuffix(end)
    if "/" not in path and not path.endswith(_FILES):
        return text
    there = Path(path)
    if there.exists():
        try:
            path = there.resolve().relative_to(project_dir.resolve()).as_posix()
        except ValueError:
            path = there.as_posix()
    return f"{before}{method}{colon}{path.removeprefix('./')}{end}"


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
