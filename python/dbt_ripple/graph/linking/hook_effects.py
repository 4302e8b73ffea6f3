"""What hooks leave in other relations than their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.hooks import Hook, when_it_runs
from dbt_ripple.graph.linking.node_parents import (
    functions_above,
    named_by_hooks,
    named_by_jinja,
    refers_to,
)
from dbt_ripple.graph.linking.other_dependencies import whole_relations
from dbt_ripple.graph.relations import LinkedNode, after_hooks
from dbt_ripple.graph.traversal import reach_all
from dbt_ripple.reasons import Code

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


def as_hooks_leave_it(
    linker: Linker, unique_id: str, linked: LinkedNode, left: bytes
) -> LinkedNode:
    """A relation as hooks of other nodes have left it; ``left`` is a fingerprint of what they do."""
    hooks = linker.context.hooks.writing[unique_id]
    read = {u for hook in hooks for u in hook.reads if u in linker.linked_nodes and u != unique_id}
    nodes = linker.project.nodes
    owners = list(dict.fromkeys(nodes[hook.owner].display_name for hook in hooks))
    reason = Code.HOOKS_MAY_WRITE(names=owners)
    return after_hooks(linked, left, whole_relations(linker, sorted(read)), reason)


def settle_hooks(linker: Linker) -> None:
    """Link again what reads what hooks write, until that is known to the end.

    A hook may write to a relation from others that are made of it. So what hooks leave is told
    from the relations as they were linked before, once more for each thing that hooks write:
    then whatever one of them depends on has come to all of them, in a circle, too.
    """
    hooks = linker.context.hooks
    if not hooks.all:
        return
    for _ in range(1 + len(hooks.writing) + len(hooks.making)):
        left = {key: _left_by(linker, key, writing) for key, writing in hooks.writing.items()}
        left |= {f"{name}()": _left_by(linker, name, by) for name, by in hooks.making.items()}
        changed = {key for key, fingerprint in left.items() if linker.left.get(key) != fingerprint}
        if not changed:
            return
        linker.left = left
        again = _reached_from(linker, changed)
        for unique_id in again:
            linker.linked_nodes.pop(unique_id, None)
            linker.views.pop(unique_id, None)
        linker.functions.clear()
        for unique_id in again:
            if unique_id not in linker.linked_nodes:
                linker.node(unique_id)


def _left_by(linker: Linker, key: str, hooks: list[Hook]) -> bytes:
    """What these hooks do: their texts, and all that they read."""
    parts = [key.encode()]  # a hook that writes to two relations need not do the same to both
    for hook in hooks:
        # Where one that may write to anything was edited, every test is selected anyway.
        parts += [when_it_runs(hook.owner).encode(), b"" if hook.anything else hook.text]
        for unique_id in sorted(hook.reads - {key}):
            if unique_id in linker.linked_nodes:
                relation = linker.linked_nodes[unique_id].relation
                parts += [unique_id.encode(), relation.all_fp(), relation.rows.fp]
        for other in sorted(linker.context.hooks.of_others(hook)):
            parts += [other.encode(), linker.left_in(other)]
    return digest(b"left", *parts)


def _reached_from(linker: Linker, changed: set[str]) -> list[str]:
    """The linked nodes that read any of these, directly or not, and these; in order."""
    nodes = linker.project.nodes
    children: dict[str, list[str]] = {}
    for child, above in linker.above.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    for unique_id in linker.linked_nodes:
        if unique_id in nodes:
            node = nodes[unique_id]
            reads = linker.context.introspection.of(node)
            for parent in (
                *refers_to(linker, unique_id),
                *functions_above(linker, unique_id),
                *named_by_hooks(linker, unique_id, node),
                *named_by_jinja(linker, unique_id, node, reads),
            ):
                children.setdefault(parent, []).append(unique_id)
    reached = reach_all(changed, children)
    return [u for u in linker.linked_nodes if u in reached and u in nodes]
