"""Links the relations of a project, each after its parents.

`Linker` knows what is linked so far. How a node is linked is up to the module of its resource type:
`sources`, `seeds`, `models`, `snapshots`; and, as they are read by nobody, `data_tests` and `unit_tests`.

Hooks leave something in other relations than their own (`LeftByHooks`). What a hook leaves is told by its text and by
the relations that it reads, which are linked first: so each relation is linked once, those that hooks write to after
what these read. A hook may also write to what it reads, or to what that is made of. Of such a circle nothing can be
linked first; what is left in it is then told by the code of all that stands above the circle, so that an edit of any
of it is seen in all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.function_marks import MarkedText
from dbt_ripple.flow.identifiers import fold, fold_stored
from dbt_ripple.flow.relation import Deps, Relation
from dbt_ripple.graph.hooks import when_it_runs
from dbt_ripple.graph.hypothetical import (
    BuiltElsewhere,
    Supposed,
    relation_after,
    relation_of_builder,
    written_otherwise,
)
from dbt_ripple.graph.linking.models import link_model
from dbt_ripple.graph.linking.modes import FollowedQuery, LinkingMode
from dbt_ripple.graph.linking.node_parents import refers_to
from dbt_ripple.graph.linking.opaque_nodes import text_by_unique_id
from dbt_ripple.graph.linking.other_dependencies import whole_relations
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles, checksum, link_seed
from dbt_ripple.graph.linking.snapshots import link_snapshot
from dbt_ripple.graph.linking.sources import DATASET_PREFIX, link_source, unlisted_relation
from dbt_ripple.graph.node_properties import declared
from dbt_ripple.graph.query_cache import Note, QueryCache
from dbt_ripple.graph.relations import (
    RELATIONS,
    LinkedNode,
    after_hooks,
    digest_of_relation,
    topological,
    unknown_relation,
    why_unreadable,
)
from dbt_ripple.jinja.kept import cached_method
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.tuning import collect_new, count_as_old

_LINK: Final[Mapping[str, Callable[[Linker, str, Node], LinkedNode]]] = {
    "model": link_model,
    "seed": link_seed,
    "snapshot": link_snapshot,
    "source": link_source,
}
"""How a relation is linked, by its resource type."""


class Linker:
    """Every relation's columns, fingerprints and what they depend on.

    Args:
        context: of the project.
        queries: lowers and links single queries.
        mode: what is done otherwise than an analysis does it.
        seeds: the files of seeds.
        catalog: the columns of relations, instead of those that the project's catalog lists.
        hypothetical: relations whose columns are to be taken as other than they are, or as another
            project has them, by unique_id.

    Attributes:
        linked_nodes: the relations that are linked, by unique_id.
        in_progress: those that are being linked, outermost first.
        named_by: the relations that each node's query names. A query may be asked about again, by a
            unit test of its model.
        above: the same, with what the node reads besides, once that is known.
        called: what the FROM clause of each node's query calls.
        left: what hooks leave in the relations that they write to.
        notes: the columns that only their use shows, while they are gathered.
    """

    def __init__(
        self,
        context: ProjectContext,
        queries: QueryCache,
        mode: LinkingMode | None = None,
        *,
        seeds: SeedFiles | None = None,
        catalog: Mapping[str, Sequence[CatalogColumn]] | None = None,
        hypothetical: Mapping[str, Supposed] | None = None,
    ) -> None:
        self.context = context
        self.project = context.project
        self.dialect = context.dialect
        self.names = context.names
        self.queries = queries
        self.mode = mode or LinkingMode()
        self.seeds = seeds or SeedFiles()
        self._catalog = catalog
        self.hypothetical = hypothetical or {}
        self.linked_nodes: dict[str, LinkedNode] = {}
        self.in_progress: dict[str, None] = {}
        self.functions: dict[str, bytes] = {}
        self.marked: dict[str, tuple[str, MarkedText]] = {}
        self.views: dict[str, bytes | None] = {}
        self.above: dict[str, set[str]] = {}
        self.named_by: dict[str, set[str]] = {}
        self.called: dict[str, Sequence[str]] = {}
        self.left = LeftByHooks(self)
        self.notes: dict[Note, None] | None = None

    @property
    def catalog(self) -> Mapping[str, Sequence[CatalogColumn]]:
        """The columns of relations; the project's catalog is decoded when it is first asked for."""
        return self.project.catalog if self._catalog is None else self._catalog

    def link_all(self) -> None:
        """Link every relation, as hooks leave it."""
        nodes = self.project.nodes
        for unique_id in topological(self.project):
            if (
                nodes[unique_id].resource_type in RELATIONS
                and unique_id not in self.names.canonical
            ):
                linked = self.node(unique_id)
                # What is left of a query that was followed stays, and its parse tree is gone. The tree
                # of another one is a cycle (`flow.lowering.parse_tree.cut_parents`): the collector has to find it.
                if linked.analysis.status == "opaque":
                    collect_new()
                count_as_old()

    def node(self, unique_id: str) -> LinkedNode:
        """Link one node, its parents first where they are not linked yet."""
        linked = self.linked_nodes.get(unique_id)
        if linked is not None:
            return linked
        linked = self.mode.substitute(self, unique_id)
        if linked is None:
            node = self.project.nodes[unique_id]
            self.in_progress[unique_id] = None
            self.mode.before(self, unique_id, node)
            linked = _LINK[node.resource_type](self, unique_id, node)
            if unique_id in self.context.hooks.writing and (left := self.left_in(unique_id)):
                linked = as_hooks_leave_it(self, unique_id, linked, left)
            change = self.hypothetical.get(unique_id)
            if isinstance(change, BuiltElsewhere):
                linked = relation_of_builder(linked, change, self)
            elif change is not None:
                linked = relation_after(linked, change, self.dialect)
            del self.in_progress[unique_id]
        self.linked_nodes[unique_id] = linked
        self.mode.after(self, unique_id, linked)
        return linked

    def follow(self, unique_id: str, node: Node) -> FollowedQuery | Reason:
        """A node's query, linked, with the SQL behind its outputs; or why it cannot be followed."""
        reason = why_unreadable(node)
        if reason is not None:
            return reason
        try:
            return self.mode.follow(self, unique_id, node)
        except Exception as error:  # a defect of ours is this node's, not the whole project's
            return Code.DEFECT(error=f"{type(error).__name__}: {error}")

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name in `reader`'s query."""
        unique_id = self.names.node_of(key)
        self.above.setdefault(reader, set()).add(unique_id or DATASET_PREFIX + key)
        self.named_by.setdefault(reader, set()).add(unique_id or DATASET_PREFIX + key)
        if unique_id is None:
            return self.dataset(key).relation
        if unique_id == reader:
            return unknown_relation(digest(b"this"), {})
        linked = self.linked_nodes.get(unique_id)
        if linked is None:
            if unique_id in self.in_progress:
                return self.mode.in_cycle(self, unique_id)
            linked = self.node(unique_id)
        return linked.relation

    def view(self, reader: str, key: str) -> bytes | None:
        """A digest of the relation behind a name in `reader`'s query, of all that linking sees.

        None where the relation has columns that are found through another query.
        """
        unique_id = self.names.node_of(key)
        if unique_id is None:
            return digest(b"dataset", key.encode())
        if unique_id == reader:
            return digest(b"this")
        linked = self.linked_nodes.get(unique_id)
        if linked is None:
            if unique_id in self.in_progress:
                return digest(b"cycle", unique_id.encode())
            linked = self.node(unique_id)
        try:
            return self.views[unique_id]
        except KeyError:
            seen = self.views[unique_id] = digest_of_relation(unique_id, linked.relation)
            return seen

    def dataset(self, key: str) -> LinkedNode:
        """A relation that dbt does not know."""
        unique_id = DATASET_PREFIX + key
        linked = self.linked_nodes.get(unique_id)
        if linked is None:
            fingerprint = digest(b"leaf", unique_id.encode())
            linked = unlisted_relation(self, unique_id, fingerprint, [], False)
            change = self.hypothetical.get(unique_id)
            if changed := self.project.written_otherwise.get(unique_id):
                change = written_otherwise(unique_id, linked.analysis, changed, True)
            if isinstance(change, BuiltElsewhere):
                linked = relation_of_builder(linked, change, self)
            self.linked_nodes[unique_id] = linked
        return linked

    def discover(self, linked: LinkedNode, key: str, name: str, fp: bytes, deps: Deps) -> str:
        """Note a column that only its use shows; returns the name it is noted under."""
        if key in linked.relation.columns_by_key():
            return linked.analysis.columns[linked.relation.keys.index(key)]
        analysis = linked.analysis
        for other in analysis.columns[len(linked.relation.names) :]:
            if fold(other, False, self.dialect) == key or fold_stored(other, self.dialect) == key:
                return other
        analysis.columns.append(name)
        analysis.fingerprints.append(fp.hex())
        analysis.expressions.append(None)
        linked.deps.append(deps)
        return name

    def left_in(self, key: str) -> bytes:
        """A fingerprint of what hooks leave in a relation, or make."""
        return self.mode.left_by_hooks(self, key)


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
