"""`--output selector`: a selection as a named selector in the project's selectors.yml.

Everything else in the file is kept, with comments and the layout of lists; only the selector of
the same name is replaced. dbt has no method for a unique_id, so nodes are named by their full
``fqn``. Where dbt would select more than that (a model with the name of the folder beside it, a
data test and a unit test with the same name), the resource type or an ``exclude`` narrows it down.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.escaping import dbt_pattern
from dbt_ripple.selection.result import Selection

FILE: Final = "selectors.yml"
NAME: Final = "dbt_ripple"
DESCRIPTION: Final = "What the change needs: the models to build and the tests to run (dbt-ripple)."

_FQN: Final = frozenset({"model", "seed", "snapshot", "test", "unit_test", "analysis"})
"""What the method ``fqn`` looks at, of what is ever selected or lies beside it."""


def write_selector(
    selection: Selection, head: Project, project_dir: Path, name: str = NAME
) -> Path:
    """Write a selection into selectors.yml as a selector.

    Args:
        selection: its models, tests and unit tests are what the selector selects.
        head: the project the names are of.
        project_dir: where selectors.yml is, or is made.
        name: of the selector.

    Returns:
        The file.

    Raises:
        RippleError: the file is not YAML with a list of selectors, or cannot be written.
    """
    path = project_dir / FILE
    chosen = [
        *selection.models,
        *selection.unit_tests,
        *(test.unique_id for test in selection.tests),
    ]
    selector = {
        "name": name,
        "description": DESCRIPTION,
        "definition": definition(chosen, head),
    }
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        written = _with_selector(text, selector)
        # Whole or not at all: dbt refuses every command on half a file.
        beside = path.with_name(f".{FILE}.{os.getpid()}")
        beside.write_text(written, encoding="utf-8")
        beside.replace(path)
    except (OSError, UnicodeDecodeError) as error:
        raise RippleError(
            f"cannot be written ({error})", str(path), "make it a readable and writable text file"
        ) from error
    except (YAMLError, TypeError, AttributeError) as error:
        problem = " ".join(str(error).split())[:200]
        raise RippleError(
            f"is not a list of selectors ({problem})", str(path), "mend it, or move it aside"
        ) from error
    return path


def definition(unique_ids: Collection[str], head: Project) -> dict[str, Any]:
    """A selector's definition that selects exactly these nodes.

    Every entry says ``indirect_selection: empty``, so that a model does not bring its tests along.
    """
    chosen = set(unique_ids)
    places = _Places(head)
    entries = [places.criteria(head.nodes[unique_id], chosen) for unique_id in unique_ids]
    # A union of nothing is an error to dbt; this selects nothing, too.
    return {"union": entries or [{"method": "fqn", "value": f"{NAME}_selected_nothing"}]}


class _Places:
    """Which nodes dbt takes for a full fqn: those at it, and all below it."""

    def __init__(self, head: Project) -> None:
        self.below: dict[tuple[str, ...], list[Node]] = {}
        for node in head.nodes.values():
            if node.resource_type in _FQN:
                flat = _flat(node)
                for length in range(1, len(flat) + 1):
                    self.below.setdefault(flat[:length], []).append(node)

    def criteria(self, node: Node, chosen: Collection[str]) -> dict[str, Any]:
        """What selects one node, and nothing that is not chosen."""
        criterion = _criterion(node)
        others = [n for n in self.below[_flat(node)] if n.unique_id not in chosen]
        if not others:
            return criterion
        if all(n.resource_type != node.resource_type for n in others):
            return {"intersection": [criterion, _of_type(node)]}
        # The others may lie above further chosen ones: each of those has an entry of its own.
        excluded = [_criterion(n) for n in others if _flat(n) != _flat(node)]
        # An entry of its own: beside a method in a list dbt takes `exclude` for the whole of it.
        besides: list[dict[str, Any]] = [{"exclude": excluded}] if excluded else []
        return {"intersection": [criterion, _of_type(node), *besides]}


def _criterion(node: Node) -> dict[str, Any]:
    value = dbt_pattern(".".join(node.fqn))
    return {"method": "fqn", "value": value, "indirect_selection": "empty"}


def _of_type(node: Node) -> dict[str, Any]:
    return {"method": "resource_type", "value": node.resource_type, "indirect_selection": "empty"}


def _flat(node: Node) -> tuple[str, ...]:
    return tuple(part for segment in node.fqn for part in segment.split("."))


def _with_selector(text: str, selector: Mapping[str, Any]) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    sequence, offset = _indents(text)
    yaml.indent(mapping=2, sequence=sequence, offset=offset)
    document = yaml.load(text)
    if document is None:  # nothing, or comments only
        document = yaml.load(f"{text}\nselectors:\n".lstrip("\n"))
    selectors = document.setdefault("selectors", [])
    if selectors is None:
        selectors = document["selectors"] = []
    for other in selectors:
        if other.get("name") == selector["name"]:
            other.update(selector)
            other.fa.set_block_style()
            break
    else:
        selectors.append(dict(selector))
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _indents(text: str) -> tuple[int, int]:
    """How far the file indents its lists: dashes under their key, or two to the right."""
    for line in _after_key(text):
        if line.lstrip().startswith("- "):
            return (4, 2) if line.startswith(" ") else (2, 0)
    return 4, 2


def _after_key(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if inside:
            yield line
        inside = inside or line.startswith("selectors:")
