"""The semantic layer in the gate and in `impact`: what was removed, and how it would be after a change.

Who asks for a metric or a dimension is mostly outside of the project: dashboards, notebooks, an API. So
whatever is declared there and goes is named, also where nothing in the project reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.artifacts import Node, Project, did_you_mean
from dbt_ripple.changes import Comparison
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.contracts import Breach
from dbt_ripple.graph.semantic_references import SEMANTIC, asked, list_of
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.governance.hypothetical_changes import Change

_LISTS: Final = {"entities": "entity", "dimensions": "dimension", "measures": "measure"}
"""The elements of a semantic model: the field they stand in, and what one is called."""


def layer_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Metrics, saved queries, semantic models and elements of these that were removed."""
    base, head = comparison.base, comparison.head
    for node in base.of_type(*SEMANTIC):
        unique_id = node.unique_id
        if unique_id not in head.nodes:
            now = _renamed_to(comparison, node)
            yield Breach("semantic_removed", unique_id, None, _gone(_kind(node), now))
        elif change := comparison.changed.get(unique_id):
            to = {was: name for name, was in change.renamed.items()}
            for name in change.removed:
                reason = _gone(_element_kind(node, name), to.get(name))
                yield Breach("semantic_removed", unique_id, name, reason)


def _gone(kind: str, renamed_to: str | None) -> Reason:
    if renamed_to:
        return Code.OFFERED_RENAMED(kind=kind, to=renamed_to)
    return Code.OFFERED_NO_MORE(kind=kind)


def _kind(node: Node) -> str:
    return node.resource_type.replace("_", " ")


def _element_kind(node: Node, name: str) -> str:
    kinds = [
        k for field, k in _LISTS.items() for e in getattr(node, field) if e.get("name") == name
    ]
    return " and ".join(kinds) or "column"


def _renamed_to(comparison: Comparison, node: Node) -> str | None:
    """The new metric with the definition of one that is gone."""
    if node.resource_type != "metric":
        return None
    before = comparison.base_analysis.nodes[node.unique_id].fingerprints
    return next(
        (
            other.name
            for other in comparison.head.of_type("metric")
            if other.unique_id not in comparison.base.nodes
            and comparison.head_analysis.nodes[other.unique_id].fingerprints == before
        ),
        None,
    )


# --- as it would be --------------------------------------------------------------------------------


def layer_after(project: Project, node: Node, changes: Sequence[Change]) -> Project:
    """The project with a change to one node of its semantic layer.

    Args:
        project: as it is.
        node: a semantic model, a metric or a saved query.
        changes: what would be done to it.

    Raises:
        RippleError: a change makes no sense for such a node; says which ones do.
    """
    if any(change.kind in ("retype", "add") for change in changes):
        raise RippleError(
            f"what stands in a {_kind(node)} has no type that is declared",
            node.spoken_name,
            "retype, or add, the column that it reads",
        )
    nodes = dict(project.nodes)
    del nodes[node.unique_id]
    if not any(change.kind == "remove" for change in changes):
        now = _edited(project, node, changes)
        nodes[now.unique_id] = now
    parents = {u: [p for p in project.parents.get(u, ()) if p in nodes] for u in nodes}
    for unique_id in nodes.keys() - project.nodes.keys():  # renamed
        parents[unique_id] = list(project.parents.get(node.unique_id, ()))
    children: dict[str, list[str]] = {u: [] for u in nodes}
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    return project.having(nodes=nodes, parents=parents, children=children)


def _edited(project: Project, node: Node, changes: Sequence[Change]) -> Node:
    if node.resource_type == "metric":
        return _metric(project, node, changes)
    if node.resource_type == "saved_query":
        return _saved_query(node, changes)
    return _semantic_model(node, changes)


def _metric(project: Project, node: Node, changes: Sequence[Change]) -> Node:
    for change in changes:
        if change.kind == "drop" or change.column.strip() != node.name:
            raise RippleError(
                f"a metric is one value, {node.name}",
                f"--{change.kind} {change.column}",
                f"say --deprecate, --remove, or --rename {node.name}:NEW",
            )
    to = {change.to for change in changes}
    if len(to) > 1:
        raise RippleError("it is renamed twice", node.spoken_name, "give one new name")
    name = to.pop()
    if taken := [n for n in project.of_type("metric") if n.name == name]:
        raise RippleError(
            f"there is a metric {taken[0].name} already",
            f"--rename {node.name}:{name}",
            "choose another",
        )
    unique_id = f"{node.unique_id.removesuffix(node.name)}{name}"
    return msgspec.structs.replace(node, name=name, unique_id=unique_id)


def _saved_query(node: Node, changes: Sequence[Change]) -> Node:
    params = dict(node.query_params)
    for change in changes:
        if change.kind == "rename":
            raise RippleError(
                "a saved query has the names of its metrics and group-bys",
                f"--rename {change.column}:{change.to}",
                "rename the metric or the dimension, or --drop it here",
            )
        names_of = {key: list_of(params.get(key)) for key in ("metrics", "group_by")}
        kept = {
            "metrics": [m for m in names_of["metrics"] if m != change.column],
            "group_by": [g for g in names_of["group_by"] if _grouped(g) != change.column],
        }
        if kept == names_of:
            names = [*map(str, names_of["metrics"]), *map(_grouped, names_of["group_by"])]
            raise _no_element(node, change, names)
        params |= kept
    return msgspec.structs.replace(node, query_params=params)


def _grouped(text: Any) -> str:
    element = asked(str(text).strip().removeprefix("{{").removesuffix("}}"))
    return element.name if element else str(text)


def _semantic_model(node: Node, changes: Sequence[Change]) -> Node:
    lists: dict[str, list[dict[str, Any]]] = {field: list(getattr(node, field)) for field in _LISTS}
    names = {str(e.get("name")): None for of in lists.values() for e in of}
    touched: dict[str, str | None] = {}
    for change in changes:
        name = _element(node, change, lists, names)
        to = change.to if change.kind == "rename" else None
        if touched.setdefault(name, to) != to:
            raise RippleError(
                f"{name} is changed twice", f"--{change.kind} {change.column}", "do one of the two"
            )
    left = names.keys() - touched.keys()
    for name, to in touched.items():
        if to is not None and to in left:
            raise RippleError(
                f"{node.spoken_name} has {to} already",
                f"--rename {name}:{to}",
                "choose another name",
            )
    after = {}
    for field, elements in lists.items():
        after[field] = [
            e
            if name not in touched
            else {**e, "name": touched[name], "expr": e.get("expr") or name}
            for e in elements
            if (name := str(e.get("name"))) not in touched or touched[name] is not None
        ]
    return msgspec.structs.replace(node, **after)


def _element(
    node: Node, change: Change, lists: dict[str, list[dict[str, Any]]], names: dict[str, None]
) -> str:
    """The element that is meant: ``status``, or as queries name it, ``order__status``."""
    wanted = change.column.strip()
    if wanted in names:
        return wanted
    entity, _, name = wanted.rpartition("__")
    entities = {str(e.get("name")) for e in lists["entities"]} | {node.primary_entity}
    if entity in entities and name in names:
        return name
    raise _no_element(node, change, names)


def _no_element(node: Node, change: Change, names: Sequence[str] | dict[str, None]) -> RippleError:
    return RippleError(
        f"{node.spoken_name} has no {change.column!r}",
        f"--{change.kind}",
        did_you_mean(change.column, names, f"it has {', '.join(list(names)[:8])}"),
    )
