"""Of nodes that ask the warehouse while dbt compiles: which answers the comparison may need.

A node that has the same code on both sides, and that is neither above nor below anything that differs,
has the same SQL on both sides, whatever that is. So an answer that the warehouse gave before does, if the
node only asks for the columns of relations that it reads: which relations these are, its code says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.compile_inputs import defined
from dbt_ripple.graph.introspection import IntrospectedParts, Introspection
from dbt_ripple.graph.macros import Macros
from dbt_ripple.graph.traversal import reach_all

_READ: Final = re.compile(r"""(?:\.|\b(?:from|join|update|into|table)\b)\s*["`\[]?(\w+)""", re.I)
"""Where the name of a relation can stand in SQL."""


def asked_again(base: Project, head: Project, asking: Iterable[str]) -> set[str]:
    """The nodes of base that have to ask again.

    Args:
        base: compiled, with what the warehouse answered before.
        head: parsed, with the same vars and project file.
        asking: the nodes of base that ask the warehouse something.
    """
    asking = set(asking)
    if base.macros != head.macros:
        return asking
    differ = {
        unique_id
        for unique_id in {*base.nodes, *head.nodes}
        if not _same(base.nodes.get(unique_id), head.nodes.get(unique_id))
    }
    if any(unique_id.startswith("operation.") for unique_id in differ):
        return asking  # a hook may write to any relation
    below = {u for side in (base, head) for u in reach_all(differ, side.children)}
    above = {u for side in (base, head) for u in reach_all(differ, side.parents)}
    nodes = [node for side in (base, head) for u in below if (node := side.nodes.get(u))]
    names = {(node.identifier or node.alias or node.name).lower() for node in nodes}
    introspection = Introspection(base, Macros(base))

    def may_be_stale(node: Node) -> bool:
        reads = introspection.of(node)
        if reads.values or reads.exist or reads.parts == IntrospectedParts.EVERYTHING:
            return True
        return not names.isdisjoint(map(str.lower, _READ.findall(node.compiled_code or "")))

    return {u for u in asking if u in below or u in above or may_be_stale(base.nodes[u])}


def _same(then: Node | None, now: Node | None) -> bool:
    """Whether a node is defined as before; of a seed whose file dbt has not read, that is not known."""
    if then is None or now is None:
        return False
    if isinstance(now.checksum, dict) and now.checksum.get("name") == "path":
        return False
    return defined(then) == defined(now)
