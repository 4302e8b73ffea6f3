"""The causes of a change, a line each: what was edited, where, and what stood there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dbt_ripple.rendering.escaping import code, styled, two_lines
from dbt_ripple.rendering.output import count

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes.causes import Cause

OF_A_NODE: Final = frozenset({"argument", "column", "config", "property"})
"""Kinds of which the name says nothing without the node."""
EDITED_THERE: Final = OF_A_NODE | {"code", "compiled", "seed", "new", "removed"}
"""Kinds of causes by which the node itself was edited, or looks so."""
_OF_SEVERAL: Final = frozenset(
    {"dispatch", "env_var", "file", "graph", "hook", "macro", "ref", "var"}
)
"""Kinds of causes that stand elsewhere than the nodes they change."""
_WORDS: Final = {
    "code": "{name}",
    "config": "config {name} of {node}",
    "property": "{name} of {node}",
    "column": "{name} of {node}",
    "argument": "argument {name} of {node}",
    "ref": "what {name} means",
    "macro": "macro {name}",
    "dispatch": "the order in which macros are looked for",
    "var": "var {name}",
    "env_var": "environment variable {name}",
    "hook": "hook {name}",
    "seed": "seed {name}",
    "file": "file {name}",
    "graph": "{name}, read by Jinja,",
    "catalog": "column {name} of {node} in the warehouse",
    "profile": "{name} of the target in profiles.yml",
    "new": "{name} is new",
    "removed": "{name} is gone",
    "dbt": "the version of dbt",
    "compiled": "{name} compiles to other SQL, though nothing of it was edited",
}
_IN_PLACES: Final = frozenset({"code", "hook", "seed"})
"""Kinds that may have several causes for one thing: lines of a file."""
_SHOWN: Final = 6
_NODES: Final = 3


def cause_lines(causes: Sequence[Cause], head: Project) -> list[str]:
    """Causes as text: the first of them, and how many more there are."""
    things = _things(causes)
    lines = [_text(cause, head, more) for cause, more in things[:_SHOWN]]
    more = len(things) - len(lines)
    return [*lines, *([f"  and {more:,} more (--format json has them all)"] if more > 0 else [])]


def _things(causes: Sequence[Cause]) -> list[tuple[Cause, int]]:
    """The first cause of each file, node or thing that was edited, and in how many more places it was."""
    things: dict[tuple[str, ...], tuple[Cause, int]] = {}
    for at, cause in enumerate(causes):
        key: tuple[str, ...] = cause.kind, cause.name if cause.kind in _IN_PLACES else str(at)
        setting, _, part = cause.name.partition(".")
        if cause.kind == "config" and part:
            key = cause.kind, setting, *cause.nodes
        first, more = things.get(key, (cause, -1))
        things[key] = first, more + 1
    return [*things.values()]


def _text(cause: Cause, head: Project, places: int) -> str:
    before, after = two_lines(cause.before, cause.after)
    line = f"  {said(cause, head)}"
    if before is not None or after is not None:
        values = f"{before or '(nothing)'} -> {after or '(nothing)'}"
        line += f": {styled(values, dim=True)}"
    return line + _in_more(places)


def _in_more(places: int) -> str:
    return f", and in {count(places, 'more place')}" if places else ""


def said(cause: Cause, head: Project, *, markdown: bool = False) -> str:
    """What was edited, where it stands, and which nodes it changes."""

    def name(text: str) -> str:
        return code(text) if markdown else text

    nodes = [_name(unique_id, head) for unique_id in cause.nodes]
    text = _WORDS[cause.kind].format(
        name=name(cause.name), node=name(nodes[0]) if nodes else "a node"
    )
    if cause.kind in OF_A_NODE and len(nodes) > 1:
        text += f" and {len(nodes) - 1:,} more"
    place = f"{cause.file}:{cause.line}" if cause.file and cause.line else cause.file or ""
    through = f"called by {', '.join(map(name, cause.through))}" if cause.through else ""
    commit = f"commit {name(cause.commit)}" if cause.commit else ""
    beside = ", ".join(filter(None, (name(place) if place else "", commit, through)))
    if beside:
        text += f" ({beside})"
    if cause.kind in _OF_SEVERAL and nodes:
        more = f" and {len(nodes) - _NODES:,} more" if len(nodes) > _NODES else ""
        text += f" in {', '.join(map(name, nodes[:_NODES]))}{more}"
    return text


def edited_lines(causes: Sequence[Cause], head: Project, *, markdown: bool = False) -> list[str]:
    """Causes without what stood there, for an answer that shows the SQL before and after itself."""
    return [
        said(cause, head, markdown=markdown) + _in_more(places) for cause, places in _things(causes)
    ]


def cause_markdown(causes: Sequence[Cause], head: Project) -> list[str]:
    """Causes as items of a list in Markdown."""
    lines = []
    for cause, places in _things(causes):
        before, after = two_lines(cause.before, cause.after)
        values = [f"{code(before)} →" if before else "", code(after) if after else ""]
        shown = " ".join(filter(None, values)) if before or after else ""
        if before and not after:
            shown = f"{code(before)} is gone"
        lines.append(
            f"- {said(cause, head, markdown=True)}"
            + (f": {shown}" if shown else "")
            + _in_more(places)
        )
    return lines


def _name(unique_id: str, head: Project) -> str:
    node = head.nodes.get(unique_id)
    return node.spoken_name if node is not None else unique_id
