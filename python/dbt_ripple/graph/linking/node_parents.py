"""What is above a node: the relations and functions it refers to, and those its hooks and Jinja name."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.graph.introspection import IntrospectedParts, WarehouseReads
from dbt_ripple.graph.relations import RELATIONS
from dbt_ripple.graph.traversal import reach

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


def relations_above(linker: Linker, unique_id: str) -> list[str]:
    """The relations a node refers to, each once, but those it is itself part of."""
    return [p for p in refers_to(linker, unique_id) if p not in linker.in_progress]


def refers_to(linker: Linker, unique_id: str) -> dict[str, None]:
    """The relations a node refers to, each once."""
    parents = (
        linker.names.canonical.get(p, p)
        for p in linker.project.parents.get(unique_id, ())
        if linker.project.nodes[p].resource_type in RELATIONS
    )
    return dict.fromkeys(parents)


def functions_above(linker: Linker, unique_id: str) -> list[str]:
    """The functions a node calls."""
    functions = linker.context.functions
    if not functions:
        return []
    return [p for p in linker.project.parents.get(unique_id, ()) if p in functions]


def named_by_hooks(linker: Linker, unique_id: str, node: Node) -> list[str]:
    """The relations that a node's hooks name, but those that are made of it.

    Of one that is, a hook sees what an earlier run left, as a model does of itself (rule 6).
    """
    named = linker.context.hooks.read_by_own(node) - {unique_id, *linker.in_progress}
    nodes = linker.project.nodes
    unique_ids = [u for u in named if u not in nodes or nodes[u].resource_type in RELATIONS]
    return not_below(linker.project, unique_id, unique_ids)


def named_by_jinja(linker: Linker, unique_id: str, node: Node, reads: WarehouseReads) -> list[str]:
    """The relations that Jinja which queries the warehouse names in its strings, as above."""
    if not reads.exist and reads.parts != IntrospectedParts.EVERYTHING:
        return []
    named = linker.context.introspection.named(node)
    unique_ids = set().union(*map(linker.names.named_by, named.words))
    unique_ids -= {unique_id, *linker.in_progress, *refers_to(linker, unique_id)}
    return not_below(linker.project, unique_id, unique_ids)


def not_below(project: Project, unique_id: str, others: Collection[str]) -> list[str]:
    """Those of some nodes that are not downstream of a node, sorted."""
    return sorted(u for u in others if unique_id not in reach(u, project.parents))
