"""Shell completion: names of nodes, tests and columns, from the artifacts in the target folder.

Only names are decoded, so projects with thousands of models answer at once. If there are no
artifacts, or they cannot be read, nothing is completed, because a shell cannot show an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import GenericAlias
from typing import Any, Final

import click

from dbt_ripple.artifacts.paths import artifacts_folder, assets_files
from dbt_ripple.cli.options import nearest_project
from dbt_ripple.rendering.escaping import shown

_TESTS: Final = ("test", "unit_test")
_SECTIONS: Final = (
    *("nodes", "sources", "exposures", "metrics", "semantic_models", "saved_queries", "unit_tests"),
)
_SEMANTIC: Final = ("metric", "semantic_model", "saved_query")

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _quietly(complete: Complete) -> Complete:
    def completed(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        try:
            return complete(context, parameter, typed)
        except Exception:  # of whatever kind: it would be printed into the line that is typed
            return []

    return completed


@_quietly
def node_names(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Nodes that hold data or use it; after a node and a dot, its columns."""
    nodes = _nodes(context)
    names = {name: node for node in nodes if node.kind not in _TESTS for name in node.names()}
    assets = _assets(context)
    result = _matching([*names, *assets], typed)
    before, dot, _ = typed.rpartition(".")
    if dot and before in assets:
        result += _matching((f"{before}.{c}" for c in assets[before]), typed)
    elif dot and before in names:
        result += _matching((f"{before}.{c}" for c in _columns(context, names[before])), typed)
    return result


@_quietly
def names_of_any(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Data tests and unit tests, and what `node_names` has."""
    tests = (node for node in _nodes(context) if node.kind in _TESTS)
    names = _matching((name for node in tests for name in node.names()), typed)
    return [*names, *node_names(context, parameter, typed)]


@_quietly
def column_names(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Columns of the node that stands before."""
    # An option that waits for its value leaves what stands before it unread.
    asked = {context.params.get("node"), *context.args}
    nodes = (node for node in _nodes(context) if asked & {node.unique_id, *node.names()})
    return _matching((name for node in nodes for name in _columns(context, node)), typed)


def _matching(names: Iterable[str], typed: str) -> list[str]:
    """The names that begin so, and that a shell takes for one word."""
    start = typed.casefold()
    return sorted(
        {name for name in names if name.casefold().startswith(start) and _ONE_WORD(shown(name))}
    )


_ONE_WORD: Final = re.compile(r"""[^\s'"`$\\!;&|<>(){}*?\[\]~#]+""").fullmatch


class _CompletedNode:
    """What a node's names are made of."""

    def __init__(self, unique_id: str, content: Any) -> None:
        self.unique_id = unique_id
        self.kind = unique_id.partition(".")[0]
        self._content = content

    def names(self) -> Iterator[str]:
        from dbt_ripple.artifacts.project import version_text

        name, version = self._content.name, self._content.version
        if self._content.source_name is not None:
            yield f"{self._content.source_name}.{name}"
        else:
            yield name if version is None else f"{name}.v{version_text(version)}"
            if self.kind in _SEMANTIC:
                yield f"{self.kind}:{name}"

    def columns(self) -> Iterable[str]:
        content = self._content
        return [
            *content.columns,
            *(e.name for e in (*content.entities, *content.dimensions, *content.measures)),
        ]


def _nodes(context: click.Context) -> list[_CompletedNode]:
    import msgspec

    element = msgspec.defstruct("Element", [("name", str)])
    elements = GenericAlias(list, (element,))
    named = msgspec.defstruct(
        "Named",
        [
            ("name", str),
            ("source_name", str | None, None),
            ("version", str | int | float | None, None),
            ("columns", dict[str, msgspec.Raw], msgspec.field(default_factory=dict)),
            ("entities", elements, msgspec.field(default_factory=list)),
            ("dimensions", elements, msgspec.field(default_factory=list)),
            ("measures", elements, msgspec.field(default_factory=list)),
        ],
    )
    content = (_folder(context) / "manifest.json").read_bytes()
    sections = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    return [
        _CompletedNode(unique_id, content)
        for section in _SECTIONS
        if section in sections
        for unique_id, content in msgspec.json.decode(
            sections[section], type=GenericAlias(dict, (str, named))
        ).items()
    ]


def _assets(context: click.Context) -> dict[str, list[str]]:
    """The ids of the declared assets with their columns, as far as the files can be read."""
    from dbt_ripple.artifacts.assets_file import read_assets
    from dbt_ripple.errors import RippleError

    project_dir = Path(context.params.get("project_dir") or nearest_project())
    try:
        declared = read_assets(assets_files(project_dir, context.params.get("assets") or ()))
    except RippleError:
        return {}
    return {a.id: [c.name for c in a.columns] for a in declared if a.retired is None}


def _columns(context: click.Context, node: _CompletedNode) -> list[str]:
    """What yml files list, and what the catalog knows."""
    import msgspec

    names = dict.fromkeys(node.columns())
    path = _folder(context) / "catalog.json"
    if path.is_file():
        catalog = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
        for section in ("nodes", "sources"):
            tables = msgspec.json.decode(catalog[section], type=dict[str, msgspec.Raw])
            if node.unique_id in tables:
                table = msgspec.json.decode(tables[node.unique_id], type=dict[str, Any])
                names |= dict.fromkeys(table["columns"])
    return list(names)


def _folder(context: click.Context) -> Path:
    project_dir = context.params.get("project_dir") or nearest_project()
    return artifacts_folder(Path(project_dir), context.params.get("target_path"))
