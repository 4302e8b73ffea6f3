"""The relation that a model's or a snapshot's query gives, put together step by step.

Config may decide, together with the columns it names, which rows a relation keeps (rule 7): `config_with_columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_ripple.artifacts import Node
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import MADE_UP, fold, fold_stored
from dbt_ripple.flow.ir import FILTER, IDENTITY
from dbt_ripple.flow.relation import (
    Deps,
    OutputColumn,
    Relation,
    merge,
    through,
    union,
    unlisted_fp,
)
from dbt_ripple.flow.varying_columns import EVERYTHING
from dbt_ripple.graph.config_fingerprints import OF_COLUMNS
from dbt_ripple.graph.lineage import NodeAnalysis, Status
from dbt_ripple.graph.linking.modes import FollowedQuery
from dbt_ripple.graph.linking.node_parents import relations_above
from dbt_ripple.graph.linking.opaque_nodes import unfollowed_text
from dbt_ripple.graph.linking.other_dependencies import (
    besides_query,
    unnamed_fingerprint,
    unnamed_reads,
    whole_fingerprints,
    whole_relations,
    why_unnamed,
)
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.graph.relations import (
    LinkedNode,
    UnlistedNodeColumns,
    rows_of_node,
    struct_fields,
    wrapped_columns,
)
from dbt_ripple.graph.unresolved_names import STORED, opaque_names
from dbt_ripple.reasons import Code, Reason

if TYPE_CHECKING:
    from dbt_ripple.graph.linking.linker import Linker


def config_with_columns(
    linker: Linker, node: Node, relation: Relation, config: bytes, rows: Deps
) -> tuple[bytes, Deps]:
    """The settings of an incremental model, a snapshot or hooks, with the columns that they name.

    A setting that names a column means what this column is, whatever it is called.

    Args:
        linker: of the project.
        node: a model or a snapshot.
        relation: what its query returns.
        config: the fingerprint of its settings, without those that name columns.
        rows: what the rows of its query depend on.

    Returns:
        The fingerprint of its settings, and what its rows depend on.
    """
    config_fingerprints = linker.context.config_fingerprints
    rows = dict(rows)
    parts = [config]
    named: set[str] = set()
    for setting, kind, name in config_fingerprints.column_uses(node):
        named.add(setting)
        column = relation.get(fold(name, False, linker.dialect), name)
        if column is not None:
            parts += [setting.encode(), column[0]]
            merge(rows, through(kind, column[1]))
        else:
            parts += [setting.encode(), name.encode()]
    if node.resource_type == "snapshot" and node.config.get("check_cols") == "all":
        parts.append(relation.all_fp())
        for of_query in relation.columns:
            merge(rows, through(FILTER, of_query.deps))
    if node.resource_type == "snapshot" or node.materialized == "incremental":
        values = ((name, node.config.get(name)) for name in OF_COLUMNS if name not in named)
        parts += [repr(pair).encode() for pair in values if pair[1]]
    if words := config_fingerprints.words_of_hooks(node):
        parts.append(relation.rows.fp)
        if words & {"insert", "merge", "copy"}:  # values may be told by their places
            parts += [key.encode() for key in relation.keys]
        _add_named(words, relation, parts, rows)
    if words := config_fingerprints.words_of_branches(node):
        for parent in sorted(relations_above(linker, node.unique_id)):
            above = linker.node(parent).relation
            parts += [parent.encode(), above.rows.fp]
            _add_named(words, above, parts, rows)
    if node.config.get("incremental_strategy") == "microbatch":
        # dbt filters each parent by its event_time when it builds a batch.
        for parent in relations_above(linker, node.unique_id):
            event_time = linker.project.nodes[parent].config.get("event_time")
            if isinstance(event_time, str):
                key = fold(event_time, False, linker.dialect)
                column = linker.node(parent).relation.get(key, event_time)
                if column is not None:
                    parts += [parent.encode(), column[0]]
                    merge(rows, through(FILTER, column[1]))
    return digest(*parts), rows


def _add_named(words: set[str], relation: Relation, parts: list[bytes], rows: Deps) -> None:
    """Rows depend on the columns that a text names which is not followed; ``*`` names all."""
    for column in relation.columns:
        if "*" in words or column.key.lower() in words:
            parts.append(column.fp)
            merge(rows, through(FILTER, column.deps))
    if relation.unlisted:
        parts.append(unlisted_fp(relation.unlisted))


class QueryResult:
    """What a query returns, and what dbt makes of it.

    Each method is a step; `models` and `snapshots` say which of them are taken, and in which order.

    Args:
        linker: of the project.
        unique_id: of the node.
        node: a model or a snapshot.
        followed: its query.

    Attributes:
        columns: those that are known by name.
        rows: what its rows depend on.
        wrapped: a fingerprint of what counts for all columns and the rows; empty for nothing.
        config: a fingerprint of its settings; empty for nothing.
        missing: the names for want of which the query may not run, or may mean anything.
        accepted: the names that it cannot find either, and that its engine does not mind.
        introspects: the relations that count besides its query.
    """

    __slots__ = (
        "accepted",
        "columns",
        "config",
        "expressions",
        "introspection_fingerprint",
        "introspects",
        "is_open",
        "linker",
        "missing",
        "node",
        "query",
        "reason",
        "rows",
        "status",
        "unique_id",
        "wrapped",
    )

    def __init__(self, linker: Linker, unique_id: str, node: Node, followed: FollowedQuery) -> None:
        self.linker = linker
        self.unique_id = unique_id
        self.node = node
        self.expressions, query = followed
        self.missing, self.query, everywhere = opaque_names(linker, unique_id, node, query)
        self.accepted = [name for name in query.missing if name not in self.missing]
        relation = self.query.relation
        self.columns = list(relation.columns)
        self.rows = relation.rows.deps
        self.is_open = bool(relation.unlisted)
        self.status: Status = "analysed"
        self.reason: Reason | None = None
        self.wrapped = b""
        self.config = b""
        self.introspects: list[str] = []
        self.introspection_fingerprint = b""
        if self.missing:
            self._follow_no_further(everywhere)

    def list_columns(self) -> None:
        """Take the columns of a ``*``, and names that the engine makes up, from the warehouse."""
        relation, dialect = self.query.relation, self.linker.dialect
        keys = [column.key for column in self.columns]
        made_up = len(set(keys)) < len(keys) or not all(map(str.isidentifier, keys))
        if not (self.is_open or made_up or self.query.unknown):
            return
        listed = self.linker.catalog.get(self.unique_id, [])
        if self.is_open:
            # The warehouse knows what the text does not: which columns the * has.
            shown = [c.name for c in listed] or [c.name for c in self.node.columns.values()]
            have = {k.removeprefix(MADE_UP) for k in keys}
            for name in shown:
                key = fold_stored(name, dialect)
                if key in have:
                    continue
                column = relation.get(key, name)
                if column is not None:
                    have.add(key)
                    self.columns.append(OutputColumn(name, key, *column))
            if listed:
                self.is_open = False
            else:
                self.status, self.reason = "opaque", _why_unknown(relation)
        elif made_up and len(listed) == len(self.columns):
            # Of a name that the engine makes up, or tells apart, the warehouse knows better.
            for i, (in_warehouse, c) in enumerate(zip(listed, self.columns, strict=True)):
                if keys.count(c.key) > 1 or not c.key.removeprefix('"').isidentifier():
                    name = in_warehouse.name
                    self.columns[i] = OutputColumn(name, fold_stored(name, dialect), c.fp, c.deps)
        if self.query.unknown and self.status == "analysed" and not listed:
            self.status, self.reason = "opaque", self.query.unknown

    def put_in_declared_order(self) -> None:
        """Dbt selects the columns that an enforced contract declares, in its order."""
        at = {k: i for i, k in enumerate(self._declared_keys())}
        if set(at) == {column.key for column in self.columns}:
            self.columns.sort(key=lambda column: at[column.key])

    def cast_to_declared_types(self) -> None:
        """An enforced contract casts a column to its declared type."""
        types = {
            key: column.data_type
            for key, column in zip(self._declared_keys(), self.node.columns.values(), strict=True)
            if column.data_type
        }
        for i, c in enumerate(self.columns):
            if c.key in types:
                fp = digest(b"type", c.fp, type_text(types[c.key]).encode())
                self.columns[i] = OutputColumn(c.name, c.key, fp, c.deps)

    def _declared_keys(self) -> list[str]:
        """The folded names of the columns that its properties declare."""
        dialect = self.linker.dialect
        return [fold(c.name, bool(c.quote), dialect) for c in self.node.columns.values()]

    def _follow_no_further(self, everywhere: bool) -> None:
        """All of a relation depends on every word of a query that looks for names in vain (rule 5).

        Args:
            everywhere: whether on all that its parents hold, too, and not only what has such a name.
        """
        linker, unique_id = self.linker, self.unique_id
        self.wrapped = unfollowed_text(linker, unique_id, self.node, self.missing)
        if everywhere:
            parents = relations_above(linker, unique_id)
            self.wrapped = digest(self.wrapped, *whole_fingerprints(linker, parents))
            self.rows = union(self.rows, whole_relations(linker, parents))
            self.introspects += parents

    def add_config(self) -> None:
        """Settings that change data are part of all of it (rule 7)."""
        self.config = self.linker.context.config_fingerprints.of(self.node)
        if self.config:
            self.config, self.rows = config_with_columns(
                self.linker, self.node, self.query.relation, self.config, self.rows
            )

    def add_what_it_reads_besides(self) -> None:
        """Add what the query does not name (`linking.other_dependencies`). To be called after `add_config`."""
        linker, unique_id, node = self.linker, self.unique_id, self.node
        reads = linker.context.introspection.of(node)
        besides, looked_at = besides_query(linker, unique_id, node, reads)
        self.introspection_fingerprint = besides
        self.introspects += looked_at
        unnamed = unnamed_reads(linker, unique_id, node, reads)
        if self.config or besides or unnamed:
            of_unnamed = unnamed_fingerprint(linker, unnamed)
            self.wrapped = digest(b"aside", self.wrapped, self.config, besides, of_unnamed)
        if unnamed:
            self.rows = union(self.rows, whole_relations(linker, unnamed.whole))
            self.introspects += unnamed.whole
            self.reason = self.reason or why_unnamed(linker, unnamed)
            if unnamed.catalog and self.status == "analysed":
                self.status = "opaque"

    def tell_what_varies(self) -> None:
        """Tell apart what no text does: what is stored of what is another value each time; and what sees the order of rows.

        What is another value each time is given once to what stores it; to each query once by an ephemeral
        model, which an engine may run once however often its name stands there; by a view wherever it is read.
        To be called when all columns are there.
        """
        context, unique_id = self.linker.context, self.unique_id
        varying = context.other_each_time(unique_id, self.query.varying)
        if self.node.materialized in STORED:
            self._mark(varying, digest(b"given once", unique_id.encode()))
        elif self.node.is_ephemeral:
            self._mark(varying, digest(b"given once to a query", unique_id.encode()))
        for names, token in context.in_other_order.get(unique_id, ()):
            self._mark(names, token)

    def _mark(self, names: frozenset[str], token: bytes) -> None:
        """Make these columns others than their query says; or all of the relation."""
        if EVERYTHING in names:
            self.wrapped = digest(self.wrapped, token)
            return
        for i, c in enumerate(self.columns if names else ()):
            if c.name.lower() in names:
                self.columns[i] = OutputColumn(c.name, c.key, digest(token, c.fp), c.deps)

    def break_where_missing(self) -> None:
        """A query that looks for a name in vain is broken, as far as is known."""
        if self.missing:
            self.status, self.reason = "broken", Code.CANNOT_FIND(names=self.missing)

    def linked(self) -> LinkedNode:
        """The node, as its readers see it."""
        unique_id, of_query, wrapped = self.unique_id, self.query.relation, self.wrapped
        columns, rows = self.columns, of_query.rows
        rows_fp = rows.fp
        by_name = bool(wrapped) and self.linker.context.config_fingerprints.kept_by_name(self.node)
        if wrapped:
            columns = wrapped_columns(wrapped, columns, by_name=by_name)
            rows_fp = digest(wrapped, rows_fp)
        unlisted = UnlistedNodeColumns(self.linker, unique_id, of_query, wrapped, by_name=by_name)
        relation = Relation(
            [OutputColumn(c.name, c.key, c.fp, {(unique_id, c.name): IDENTITY}) for c in columns],
            rows.after(rows_fp, rows_of_node(unique_id)),
            [unlisted] if self.is_open else [],
        )
        relation.fields = struct_fields(self.linker, self.node, of_query.fields)
        expressions: list[str | None] = [None] * len(columns)
        if self.expressions:
            expressions = [self.expressions.get(column.key) for column in columns]
        analysis = NodeAnalysis(
            unique_id,
            self.status,
            self.reason,
            columns=relation.names,
            fingerprints=list(map(bytes.hex, relation.fps)),
            expressions=expressions,
            rows_fingerprint=rows_fp.hex(),
            order=rows.order.hex(),
            introspects=list(dict.fromkeys(self.introspects)),
            incidental=rows.incidental.hex(),
            unresolved_names=self.accepted,
            introspection_fingerprint=self.introspection_fingerprint.hex(),
        )
        return LinkedNode(analysis, relation, [c.deps for c in columns], self.rows)


def _why_unknown(relation: Relation) -> Reason:
    parents = sorted({parent for parent, _ in relation.rows.deps})
    return Code.STAR_UNKNOWN(parents=[*parents[:3]] or ["its source"])
