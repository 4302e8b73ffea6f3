"""What hooks leave in other relations than their own.

What a hook leaves is told by its text and by the relations that it reads, which are linked first: so each
relation is linked once, those that hooks write to after what these read. A hook may also write to
what it reads, or to what that is made of. Of such a circle nothing can be linked first; what is left in it
is then told by the code of all that stands above the circle, so that an edit of any of it is seen in all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.hooks import when_it_runs
from dbt_ripple.graph.linking.node_parents import refers_to
from dbt_ripple.graph.linking.opaque_nodes import text_by_unique_id
from dbt_ripple.graph.linking.other_dependencies import whole_relations
from dbt_ripple.graph.linking.seeds import checksum
from dbt_ripple.graph.node_properties import declared
from dbt_ripple.graph.relations import LinkedNode, after_hooks
from dbt_ripple.jinja.kept import cached_method
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


class LeftByHooks:
    """What the hooks of a project leave, each relation's and each thing's told once.

    Args:
        linker: links what hooks read.
    """

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self.hooks = linker.context.hooks

    @cached_method
    def in_(self, key: str) -> bytes:
        """A fingerprint of what is left in a relation, or made; empty where hooks do nothing to it.

        That is what hooks do: their texts, and all that they read.
        """
        linker = self.linker
        hooks = self.hooks.doing(key)
        if not hooks:
            return b""
        parts = [key.encode()]  # a hook that writes to two relations need not do the same to both
        for hook in hooks:
            # Where one that may write to anything was edited, every test is selected anyway.
            parts += [when_it_runs(hook.owner).encode(), b"" if hook.anything else hook.text]
            for unique_id in sorted(hook.reads - {key}):
                parts.append(unique_id.encode())
                if unique_id in linker.in_progress or key in self._reached_from(unique_id):
                    parts.append(self._code_of_circle(unique_id))
                elif unique_id in linker.project.nodes:
                    relation = linker.node(unique_id).relation
                    parts += [relation.all_fp(), relation.rows.fp]
            for other in sorted(self.hooks.of_others(hook)):
                in_circle = key in self._reached_from(other)
                left = self._code_of_circle(other) if in_circle else self.in_(other)
                parts += [other.encode(), left]
        return digest(b"left", *parts)

    # -- circles ------------------------------------------------------------------------------------

    def _reached_from(self, key: str) -> set[str]:
        """All that stands above a relation or a thing that hooks make, and itself."""
        reached: set[str] = set()
        waiting = [key]
        while waiting:
            each = waiting.pop()
            if each not in reached:
                reached.add(each)
                waiting += self._directly_above(each)
        return reached

    @cached_method
    def _directly_above(self, key: str) -> set[str]:
        linker = self.linker
        above: set[str] = set()
        for hook in self.hooks.doing(key):
            above |= hook.reads
            above |= self.hooks.of_others(hook)
        node = linker.project.nodes.get(key)
        if node is not None:
            above.update(refers_to(linker, key))
            above |= self.hooks.read_by_own(node)
            code = node.compiled_code or node.raw_code
            above |= {f"{name}()" for name in self.hooks.called_in(code)}
            above |= self.hooks.writing.keys() & set(re.findall(r"\w+", code.lower()))
        return above - {key}

    def _code_of_circle(self, key: str) -> bytes:
        """A fingerprint of the code of all that stands above."""
        return digest(*(self._code_of(each) for each in sorted(self._reached_from(key))))

    @cached_method
    def _code_of(self, key: str) -> bytes:
        linker = self.linker
        parts = [key.encode(), *(hook.text for hook in self.hooks.doing(key))]
        node = linker.project.nodes.get(key)
        if node is not None:
            settings = linker.context.config_fingerprints.of(node, columns=True)
            text = text_by_unique_id(linker, key, node).encode("utf-8", "surrogatepass")
            parts += [text, settings, repr((checksum(node), declared(node))).encode()]
        return digest(*parts)
