"""Which columns of nodes and tests see the order of the rows that they read, and what may change that order.

Two versions of a project are compared by `changes.order_seen`. A load meets no other version: it keeps of what
relations the order is seen (`orders_read`), and of each relation what decides it (`orders_of_relations`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache as once
from typing import Final

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.flow.determinism import inexact_type
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX
from dbt_ripple.flow.varying_columns import EVERYTHING, OrderRead
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.lineage import Analysis, RelationOrder
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.node_properties import LAYING_OUT, hooks_in
from dbt_ripple.graph.traversal import reach_all
from dbt_ripple.graph.unresolved_names import STORED
from dbt_ripple.jinja.text import normalised

READERS: Final = frozenset({"model", "snapshot", "test"})
"""The resource types of what may see an order."""
BUILT: Final = ("model", "snapshot", "seed")
"""Those of what dbt builds."""

Types = Mapping[str, Sequence[CatalogColumn]]


def table_of(node: Node) -> str:
    """What a query calls a node's relation, without its schema, or an ephemeral model's CTE, in lower case."""
    name = (node.identifier or node.alias or node.name).lower()
    return EPHEMERAL_PREFIX + name if node.is_ephemeral else name


class OrderReads:
    """What of the queries of a project depends on the order of the rows that they read.

    Args:
        project: with its parents.
        types: the columns of relations; None if none are known.
        cache: has which queries see no order.
    """

    def __init__(self, project: Project, types: Types | None, cache: Cache | None = None) -> None:
        self.project = project
        self.types = types
        self.cache = cache
        self.dialect = dialect_of(project.metadata.adapter_type)
        models = project.of_type("model")
        self._ephemeral = frozenset(node.unique_id for node in models if node.is_ephemeral)

    def of(self, node: Node) -> OrderRead | None:
        """What of a node's query does; None for nothing."""
        sql = "" if node.is_python else node.compiled_code or ""  # no query: all of it
        if node.resource_type == "test" and not counts_rows(node):  # as dbt runs it
            limit = f"limit {node.config['limit']}" if node.config.get("limit") else ""
            calculated = node.config["fail_calc"]
            sql = f"select {calculated} as failures from ({sql}\n{limit}) as rows_of_test"
        above = self.above(node.unique_id)
        inexact = inexact_columns(above, self.types or {}, self.dialect)
        key = b""
        if self.cache is not None:
            known = "" if inexact is None else repr(sorted(inexact))
            parts = (self.dialect, sql, known, str(counts_rows(node)))
            key = self.cache.key(b"order", *(p.encode("utf-8", "surrogatepass") for p in parts))
            if self.cache.view(key) is not None:
                return None
        read = OrderRead(sql, self.dialect, inexact)
        if counted(node, read.by().ties):
            return read
        if self.cache is not None:
            self.cache.put(key, b"none")
        return None

    def above(self, unique_id: str) -> set[str]:
        """What a node reads: of ephemeral models, whose text is part of its own, what these read."""
        through = self._ephemeral.__contains__
        above = reach_all([unique_id], self.project.parents, through=through)
        return above.keys() - self._ephemeral - {unique_id}


def laid_out(node: Node) -> list[tuple[str, object]]:
    """What decides in which order an engine finds the rows that a node has stored; nothing for most.

    A hook that changes no row may lay them out: ``optimize ... zorder by``, ``create index``.
    """
    settings = [(name, node.config[name]) for name in sorted(LAYING_OUT) if node.config.get(name)]
    return [*settings, *((when, normalised(sql)) for when, sql in hooks_in(node.config))]


def counted(node: Node, columns: frozenset[str]) -> frozenset[str]:
    """The columns of a node that count: of a test that counts its rows none, whatever they show."""
    return columns & {EVERYTHING} if counts_rows(node) else columns


def counts_rows(node: Node) -> bool:
    """Whether a node is a test that fails by the number of its rows."""
    return node.resource_type == "test" and node.config.get("fail_calc") in (None, "count(*)")


def inexact_columns(relations: Iterable[str], types: Types, dialect: str) -> set[str] | None:
    """The columns of relations whose equal values may not be the same; None where types are not known."""
    names: set[str] = set()
    for relation in relations:
        columns = types.get(relation)
        if not columns:
            return None
        names |= {c.name.lower() for c in columns if inexact_type(c.type or "", dialect)}
    return names


def orders_of_relations(context: ProjectContext, analysis: Analysis) -> dict[str, RelationOrder]:
    """What decides the order of the rows of each relation, by unique_id.

    Args:
        context: of a project.
        analysis: of it, with own fingerprints.
    """
    nodes, canonical = context.project.nodes, context.names.canonical
    parents = {**context.project.parents, **{s: [built] for s, built in canonical.items()}}

    @once
    def written(unique_id: str) -> bytes:
        node, own = nodes.get(unique_id), analysis.own.get(unique_id)
        if node is None or own is None or node.resource_type not in BUILT:
            return b""
        # The rows of a seed are compared as they stand in its file.
        query = () if node.resource_type == "seed" else (own.rows, [*own.columns.items()])
        stored = node.materialized in STORED, laid_out(node)
        return repr((unique_id, query, stored)).encode()

    def of(unique_id: str, node: Node) -> RelationOrder:
        seen = analysis.nodes.get(unique_id)
        known = (seen.order, seen.incidental) if seen is not None else ()
        above = b"".join(map(written, sorted(reach_all([unique_id], parents))))
        return RelationOrder(
            digest(above).hex(),
            hashed((known, node.materialized in STORED)) if any(known) else "",
            hashed(laid_out(node)) if laid_out(node) else "",
        )

    def hashed(what: object) -> str:
        return digest(repr(what).encode()).hex()

    return {u: of(u, node) for u, node in nodes.items() if node.resource_type in (*BUILT, "source")}


def orders_read(
    context: ProjectContext,
    orders: Mapping[str, RelationOrder],
    types: Types | None,
    cache: Cache | None = None,
) -> dict[str, dict[str, set[str]]]:
    """What sees an order of rows.

    Args:
        context: of a project.
        orders: of its relations.
        types: as of `OrderReads`.
        cache: as of `OrderReads`.

    Returns:
        Of nodes and tests, by unique_id, the columns that see an order, and of what: ``above:`` with a relation
        where no ORDER BY stands; ``order:`` where one does, and of sums and the like, if anything orders that relation.
    """
    project, canonical = context.project, context.names.canonical
    reads = OrderReads(project, types, cache)
    found: dict[str, dict[str, set[str]]] = {}
    for unique_id, node in project.nodes.items():
        if node.resource_type not in READERS or (not node.compiled_code and not node.is_python):
            continue
        read = reads.of(node)
        if read is None:
            continue
        columns: dict[str, set[str]] = defaultdict(set)
        inlined = [p for p in project.parents.get(unique_id, ()) if project.nodes[p].is_ephemeral]
        for relation in (*sorted(reads.above(unique_id)), *inlined):
            seen = read.by({table_of(project.nodes[relation])})
            built = canonical.get(relation, relation)
            # The text of an ephemeral model is the reader's own, its order is not.
            for name in counted(node, seen.open) if relation not in inlined else ():
                columns[name].add(f"above:{built}")
            if built in orders and (orders[built].order or orders[built].layout):
                for name in counted(node, seen.ties):
                    columns[name].add(f"order:{built}")
        if columns:
            found[unique_id] = columns
    return found
