"""Links the relations of a project, each after its parents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project, masking_functions
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import MADE_UP, fold, fold_stored
from dbt_ripple.flow.ir import CONDITIONAL, FILTER, IDENTITY, MASK_SHIFT, TRANSFORMATION
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import Deps, Relation, merge, through, union, unlisted_fp
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.config_fingerprints import OF_COLUMNS, listed
from dbt_ripple.graph.hooks import Hook, Hooks, when_it_runs
from dbt_ripple.graph.hypothetical import HypotheticalChange, relation_after
from dbt_ripple.graph.introspection import IntrospectedParts, Introspection, WarehouseReads
from dbt_ripple.graph.jinja import normalised
from dbt_ripple.graph.lineage import NodeAnalysis, Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.node_properties import declared, place
from dbt_ripple.graph.normalized_code import code_of, type_text
from dbt_ripple.graph.query_cache import LowerMany, Note, QueryCache
from dbt_ripple.graph.relation_names import RelationNames
from dbt_ripple.graph.relations import (
    RELATIONS,
    LinkedNode,
    OpaqueNodeColumns,
    OwnPreviousColumns,
    UnlistedNodeColumns,
    after_hooks,
    digest_of_relation,
    why_unreadable,
)
from dbt_ripple.graph.seed_files import SeedFiles, checksum
from dbt_ripple.graph.sources_and_seeds import DATASET_PREFIX, SourcesAndSeeds
from dbt_ripple.graph.unnamed_reads import (
    CATALOG,
    UnnamedReads,
    not_read,
    reads_nothing,
    relations_in,
    relations_named,
)
from dbt_ripple.graph.unresolved_names import unresolved_names
from dbt_ripple.reasons import Code, Reason, several

KNOWN_MATERIALIZATIONS: Final = frozenset(
    """
    dynamic_table ephemeral incremental materialized_view seed snapshot streaming_table table test
    view
    """.split()
)
"""Materializations that write what the query returns (rule 7); another one may do anything."""

MAX_OPAQUE_EDGES: Final = 20_000
"""Of an opaque node, parent columns times own columns above which the pairs are not spelled out:
its parents' columns then lead to its rows, and its columns come from its parents' rows."""

_PYTHON_STRING: Final = re.compile(
    r"""'''.*?'''|\"{3}.*?\"{3}|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.S
)

_SNAPSHOT_COLUMNS: Final = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to")


class NodeTableResolver:
    """A node whose query is followed, to `QueryCache`."""

    __slots__ = ("analyser", "unique_id")

    def __init__(self, analyser: Linker, unique_id: str) -> None:
        self.analyser = analyser
        self.unique_id = unique_id

    def table(self, key: str, name: str) -> Relation:
        """The relation behind a name in the node's query."""
        return self.analyser.table(self.unique_id, key, name)

    def view(self, key: str, name: str) -> bytes | None:
        """A digest of that relation, as `Linker.view`."""
        return self.analyser.view(self.unique_id, key)

    def noting(self) -> _Notes:
        """Within it, columns that only their use shows are gathered."""
        return _Notes(self.analyser)

    def repeat(self, note: Note) -> bool:
        """Note once more what linking noted before; whether it came out the same."""
        unique_id, key, name, noted = note
        relation = self.analyser.linked_nodes[unique_id].relation
        (rest,) = relation.unlisted or relation.unresolved
        column = rest.get(key, name)
        return column is not None and (unique_id, noted) in column[1]


class _Notes:
    """Gathers the columns of leaves that only their use shows, while one query is linked.

    A query may be linked while another one is.
    """

    def __init__(self, analyser: Linker) -> None:
        self.analyser = analyser
        self.before: dict[Note, None] | None = None
        self.notes: dict[Note, None] = {}

    def __enter__(self) -> dict[Note, None]:
        self.before, self.analyser.notes = self.analyser.notes, self.notes
        return self.notes

    def __exit__(self, *_: object) -> None:
        self.analyser.notes = self.before


class Linker(SourcesAndSeeds):
    """Every relation's columns, fingerprints and what they depend on.

    Args:
        project: its artifacts.
        expressions: whether to write out the SQL behind each column.
        cache: where to look for what was lowered and linked before, and to put what is now.
        lower_many: lowers queries on other cores or machines.
        seeds: the files of seeds.
    """

    def __init__(
        self,
        project: Project,
        expressions: bool,
        cache: Cache | None,
        lower_many: LowerMany | None,
        seeds: SeedFiles,
    ) -> None:
        super().__init__(project, seeds)
        self.names = RelationNames(project, self.dialect)
        self.in_progress: dict[str, None] = {}
        self.queries = QueryCache(
            self.dialect, expressions, cache, lower_many, masking_functions(project)
        )
        self.introspection = Introspection(project, self.macros)
        self.functions: dict[str, bytes] = {}
        self.views: dict[str, bytes | None] = {}
        self.hypothetical: dict[str, HypotheticalChange] = {}
        self.above: dict[str, set[str]] = {}
        # What each query names. `above` has what it reads besides, too, once that is known; a query
        # may be asked about again, when hooks have been settled or by a unit test of its model.
        self.named_by: dict[str, set[str]] = {}
        self.called: dict[str, Sequence[str]] = {}
        self.left: dict[str, bytes] = {}

    @cached_property
    def hooks(self) -> Hooks:
        """The hooks that do something to other relations than their own."""
        return Hooks(self.project, self.macros, self.names)

    def node(self, unique_id: str) -> LinkedNode:
        """Link one node, its parents first where they are not linked yet."""
        linked = self.linked_nodes.get(unique_id)
        if linked is not None:
            return linked
        node = self.project.nodes[unique_id]
        self.in_progress[unique_id] = None
        if node.resource_type in ("source", "seed"):
            linked = self.source_or_seed(unique_id, node)
        else:
            linked = self.query(unique_id, node)
        if unique_id in self.hooks.writing and (left := self.left_in(unique_id)):
            linked = self.after_hooks(unique_id, linked, left)
        if unique_id in self.hypothetical:
            linked = relation_after(linked, self.hypothetical[unique_id], self.dialect)
        del self.in_progress[unique_id]
        self.linked_nodes[unique_id] = linked
        return linked

    def table(self, reader: str, key: str, name: str) -> Relation:
        """The relation behind a name in `reader`'s query."""
        unique_id = self.names.node_of(key)
        self.above.setdefault(reader, set()).add(unique_id or DATASET_PREFIX + key)
        self.named_by.setdefault(reader, set()).add(unique_id or DATASET_PREFIX + key)
        if unique_id is None:
            return self.dataset(key, name).relation
        if unique_id == reader:
            leaf = digest(b"this")
            return Relation([], [], [], [], [OwnPreviousColumns()], leaf, {}, leaf)
        linked = self.linked_nodes.get(unique_id)
        if linked is None:
            if unique_id in self.in_progress:
                leaf = digest(b"cycle", unique_id.encode())
                return Relation(
                    [],
                    [],
                    [],
                    [],
                    [OwnPreviousColumns()],
                    leaf,
                    {(unique_id, ROWS): IDENTITY},
                    leaf,
                )
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

    # -- models and snapshots -------------------------------------------------------------------

    def query(self, unique_id: str, node: Node) -> LinkedNode:
        """A model or a snapshot."""
        followed = self.follow(unique_id, node)
        if isinstance(followed, Reason):
            return self.opaque(unique_id, node, followed)
        expressions, linked = followed
        relation = linked.relation
        status: Status = "analysed"
        reason: Reason | None = None
        wrapped = b""
        rows_fp = relation.rows_fp
        names, keys = list(relation.names), relation.keys
        fps, deps = list(relation.fps), list(relation.deps)
        rows = relation.rows
        rest = relation.unlisted
        declared = self.project.catalog.get(unique_id, [])
        if rest:
            # The warehouse knows what the text does not: which columns the * has.
            closed = bool(declared)
            shown = [c.name for c in declared] or [c.name for c in node.columns.values()]
            have = {k.removeprefix(MADE_UP) for k in keys}
            keys = list(keys)
            for name in shown:
                key = fold_stored(name, self.dialect)
                if key in have:
                    continue
                column = relation.get(key, name)
                if column is not None:
                    have.add(key)
                    names.append(name)
                    keys.append(key)
                    fps.append(column[0])
                    deps.append(column[1])
            if closed:
                rest = []
            else:
                status = "opaque"
                reason = _why_unknown(relation)
        elif len(declared) == len(names) and (
            len(set(keys)) < len(keys) or not all(map(str.isidentifier, keys))
        ):
            # Of a name that the engine makes up, or tells apart, the warehouse knows better.
            names = [
                n if k.isidentifier() and keys.count(k) == 1 else d.name
                for d, n, k in zip(declared, names, keys, strict=True)
            ]
            keys = [fold_stored(n, self.dialect) for n in names]
        if linked.unknown and status == "analysed" and not declared:
            status, reason = "opaque", linked.unknown
        if node.contract_enforced and node.materialized in ("table", "incremental"):
            # dbt selects the declared columns, in the declared order.
            at = {k: i for i, k in enumerate(self.declared_keys(node))}
            if set(at) == set(keys):
                order = sorted(range(len(keys)), key=lambda i: at[keys[i]])
                names, keys = [names[i] for i in order], [keys[i] for i in order]
                fps, deps = [fps[i] for i in order], [deps[i] for i in order]
        missing = unresolved_names(self, unique_id, node) if linked.missing else []
        if missing:
            wrapped = digest(b"broken", *(m.encode() for m in missing))
        if node.resource_type == "model" and node.materialized not in KNOWN_MATERIALIZATIONS:
            status = "opaque"
            reason = Code.UNKNOWN_MATERIALIZATION(materialization=str(node.materialized))
            wrapped = digest(wrapped, (node.raw_code or "").encode(), relation.all_fp(), rows_fp)
        config = self.settings.of(node)
        looks = self.introspection.of(node)
        if config:
            config, rows = self.configured(node, relation, config, rows)
        besides_query = self.besides_query(unique_id, node, looks)
        beyond = self.beyond(unique_id, node, looks)
        if config or besides_query or beyond:
            wrapped = digest(b"aside", wrapped, config, besides_query, self.all_of(beyond))
        introspects: list[str] = []
        if besides_query:
            introspects += self.relations_above(unique_id)
            introspects += self.named_by_hooks(unique_id, node)
            introspects += self.named_by_jinja(unique_id, node, looks)
        if beyond:
            rows = union(rows, self.deps_of(beyond.whole))
            introspects += beyond.whole
            reason = reason or self.said_of(beyond)
            if beyond.catalog and status == "analysed":
                status = "opaque"
        if missing and (
            node.resource_type != "model" or node.materialized in KNOWN_MATERIALIZATIONS
        ):
            status, reason = "broken", Code.CANNOT_FIND(names=missing)
        if node.contract_enforced:
            fps = self.typed(node, keys, fps)
        if node.resource_type == "snapshot":
            keys = list(keys)
            self.snapshot_columns(node, relation, config, names, keys, fps, deps)
        if wrapped:
            fps = [digest(wrapped, fp) for fp in fps]
            rows_fp = digest(wrapped, rows_fp)
        visible = Relation(
            list(names),
            list(keys),
            fps,
            [{(unique_id, n): IDENTITY} for n in names],
            [UnlistedNodeColumns(self, unique_id, relation, wrapped)] if rest else [],
            rows_fp,
            {(unique_id, ROWS): IDENTITY},
            relation.side_key,
            relation.joins,
            relation.order,
            incidental=relation.incidental,
        )
        visible.fields = self.fields_of(node, relation.fields, declared)
        analysis = NodeAnalysis(
            unique_id,
            status,
            reason,
            names,
            list(map(bytes.hex, fps)),
            [expressions.get(key) for key in keys] if expressions else [None] * len(keys),
            rows_fp.hex(),
            relation.order.hex(),
            list(dict.fromkeys(introspects)),
            relation.incidental.hex(),
            [name for name in linked.missing if name not in missing],
            besides_query.hex(),
        )
        return LinkedNode(analysis, visible, deps, rows)

    def declared_keys(self, node: Node) -> list[str]:
        """The folded names of the columns that its properties declare."""
        return [fold(c.name, bool(c.quote), self.dialect) for c in node.columns.values()]

    def follow(self, unique_id: str, node: Node) -> tuple[dict[str, str], Linked] | Reason:
        """A node's query, linked, with the SQL behind its outputs; or why it cannot be followed."""
        reason = why_unreadable(node)
        if reason is not None:
            return reason
        try:
            followed = self.queries.follow(
                node.compiled_code or "", NodeTableResolver(self, unique_id)
            )
            if not isinstance(followed, Reason) and followed[1].called:
                self.called[unique_id] = followed[1].called
            return followed
        except Exception as error:  # a defect of ours is this node's, not the whole project's
            return Code.DEFECT(error=f"{type(error).__name__}: {error}")

    def configured(
        self, node: Node, relation: Relation, config: bytes, rows: Deps
    ) -> tuple[bytes, Deps]:
        """Rule 7: settings of an incremental model or a snapshot decide what it holds.

        A setting that names a column means what this column is, whatever it is called.

        Returns:
            The fingerprint of its settings, and what its rows depend on.
        """
        rows = dict(rows)
        parts = [config]
        named: set[str] = set()
        for setting, kind, name in self.settings.column_uses(node):
            named.add(setting)
            column = relation.get(fold(name, False, self.dialect), name)
            if column is not None:
                parts += [setting.encode(), column[0]]
                merge(rows, through(kind, column[1]))
            else:
                parts += [setting.encode(), name.encode()]
        if node.resource_type == "snapshot" and node.config.get("check_cols") == "all":
            parts.append(relation.all_fp())
            for deps in relation.deps:
                merge(rows, through(FILTER, deps))
        if node.resource_type == "snapshot" or node.materialized == "incremental":
            values = ((name, node.config.get(name)) for name in OF_COLUMNS if name not in named)
            parts += [repr(pair).encode() for pair in values if pair[1]]
        if words := self.settings.words_of_hooks(node):
            parts.append(relation.rows_fp)
            if words & {"insert", "merge", "copy"}:  # values may be told by their places
                parts += [key.encode() for key in relation.keys]
            self.named(words, relation, parts, rows)
        if words := self.settings.words_of_branches(node):
            for parent in sorted(self.relations_above(node.unique_id)):
                above = self.node(parent).relation
                parts += [parent.encode(), above.rows_fp]
                self.named(words, above, parts, rows)
        if node.config.get("incremental_strategy") == "microbatch":
            # dbt filters each parent by its event_time when it builds a batch.
            for parent in self.relations_above(node.unique_id):
                time_column = self.project.nodes[parent].config.get("event_time")
                if isinstance(time_column, str):
                    key = fold(time_column, False, self.dialect)
                    column = self.node(parent).relation.get(key, time_column)
                    if column is not None:
                        parts += [parent.encode(), column[0]]
                        merge(rows, through(FILTER, column[1]))
        return digest(*parts), rows

    def named(self, words: set[str], relation: Relation, parts: list[bytes], rows: Deps) -> None:
        """Rows depend on the columns that a text names which is not followed; ``*`` names all."""
        for key, fp, deps in zip(relation.keys, relation.fps, relation.deps, strict=True):
            if "*" in words or key.lower() in words:
                parts.append(fp)
                merge(rows, through(FILTER, deps))
        if relation.unlisted:
            parts.append(unlisted_fp(relation.unlisted))

    def typed(self, node: Node, keys: list[str], fps: list[bytes]) -> list[bytes]:
        """An enforced contract casts a column to its declared type."""
        types = {
            key: column.data_type
            for key, column in zip(self.declared_keys(node), node.columns.values(), strict=True)
            if column.data_type
        }
        return [
            digest(b"type", fp, type_text(types[key]).encode()) if key in types else fp
            for key, fp in zip(keys, fps, strict=True)
        ]

    def besides_query(self, unique_id: str, node: Node, looks: WarehouseReads) -> bytes:
        """What a node depends on besides its query's text: empty where there is nothing.

        That is what its Jinja looks at while it compiles (rule 11), what its hooks refer to, and
        the functions it calls.
        """
        parts: list[bytes] = []
        if unique_id in self.project.blind:
            called = self.macros.fingerprint(node.depends_on.macros)
            parts += [
                b"as written",
                normalised(node.raw_code).encode("utf-8", "surrogatepass"),
                called,
            ]
        sees = IntrospectedParts.EVERYTHING if self.settings.hooks_read(node) else looks.parts
        if sees:
            for parent in sorted(self.relations_above(unique_id)):
                relation = self.node(parent).relation
                parts.append(parent.encode())
                if (
                    sees == IntrospectedParts.COLUMNS
                    and (types := self.types_of_file(parent)) is not None
                ):
                    parts.append(types)
                elif sees == IntrospectedParts.NAMES:
                    parts += [
                        *(key.encode() for key in relation.keys),
                        unlisted_fp(relation.unlisted),
                    ]
                else:
                    parts.append(relation.all_fp())
                if sees == IntrospectedParts.EVERYTHING:
                    parts.append(relation.rows_fp)
        if looks.exist and sees != IntrospectedParts.EVERYTHING:
            for parent in sorted(self.relations_above(unique_id)):
                parts += [parent.encode(), repr(_kind(self.project.nodes[parent])).encode()]
        for other in self.named_by_hooks(unique_id, node):
            relation = self.node(other).relation
            parts += [other.encode(), relation.all_fp(), relation.rows_fp]
        for other in self.named_by_jinja(unique_id, node, looks):
            parts += [other.encode(), repr(_kind(self.project.nodes[other])).encode()]
            if looks.parts == IntrospectedParts.EVERYTHING:
                relation = self.node(other).relation
                parts += [relation.all_fp(), relation.rows_fp]
        if looks.parts == IntrospectedParts.EVERYTHING:
            named = self.introspection.named(node)
            if named.catalog:
                parts.append(self.all_code if named.columns else self.all_places)
        for name, column in looks.values:
            parents = self.relations_above(unique_id)
            for parent in [p for p in parents if self.project.nodes[p].name == name] or parents:
                relation = self.node(parent).relation
                found = relation.get(fold(column, False, self.dialect), column)
                parts += [relation.rows_fp, found[0] if found else relation.all_fp()]
        parts += map(self.function, self.functions_above(unique_id))
        return digest(*parts) if parts else b""

    # -- what no query names ----------------------------------------------------------------------

    def beyond(self, unique_id: str, node: Node, looks: WarehouseReads) -> UnnamedReads | None:
        """What a node's query may read besides the relations it names; None where that is nothing.

        The query has been followed.
        """
        named = self.named_by.get(unique_id, frozenset[str]())
        called = self.called.get(unique_id, ())
        parents = self.project.parents.get(unique_id, ())
        as_dbt_says = len(named) == len(parents) and named.issuperset(parents)
        if as_dbt_says and not called and not self.hooks.making:  # so do nearly all
            return None
        whole: dict[str, None] = {}
        unnamed = [p for p in self.relations_above(unique_id) if p not in named]
        if node.resource_type == "test" and not named and not called:
            unnamed = [] if reads_nothing(node.compiled_code or "") else unnamed
        if unnamed and not self.sees_everything(node, looks):
            apart = not_read(node)
            whole.update((p, None) for p in unnamed if self.project.nodes[p].name not in apart)
        strange = [u.removeprefix(DATASET_PREFIX) for u in named if u.startswith(DATASET_PREFIX)]
        maybe = relations_in(called, self.names) if called else set()
        for key in strange:
            if "." not in key:
                maybe |= self.names.by_identifier.get(key.strip('"'), set())
        for other in sorted(maybe - {unique_id, *self.in_progress}):
            if not self.is_above(unique_id, other):
                whole.setdefault(other)
        hooks = [u for key in strange if (u := key.rpartition(".")[2]) in self.hooks.writing]
        hooks += [f"{name}()" for name in self.hooks.called_in(node.compiled_code or "")]
        catalog = any(CATALOG.search(text) for text in (*strange, *called))
        if not whole and not hooks and not catalog:
            return None
        self.above.setdefault(unique_id, set()).update(whole, hooks)
        return UnnamedReads(whole, sorted(hooks), catalog)

    def sees_everything(self, node: Node, looks: WarehouseReads) -> bool:
        """Whether all that a node refers to counts whole anyway."""
        return looks.parts == IntrospectedParts.EVERYTHING or self.settings.hooks_read(node)

    def all_of(self, beyond: UnnamedReads | None) -> bytes:
        """A fingerprint of all that a query may read and does not name; empty for nothing."""
        if beyond is None:
            return b""
        parts = []
        for unique_id in sorted(beyond.whole):
            relation = self.node(unique_id).relation
            parts += [unique_id.encode(), relation.all_fp(), relation.rows_fp]
        for key in beyond.hooks:
            parts += [key.encode(), self.left_in(key)]
        if beyond.catalog:
            parts.append(self.all_code)
        return digest(b"beyond", *parts)

    def deps_of(self, unique_ids: Iterable[str]) -> Deps:
        """What may decide about rows: all that these relations hold."""
        found: Deps = {}
        for unique_id in unique_ids:
            relation = self.node(unique_id).relation
            merge(found, through(CONDITIONAL, relation.rows))
            for deps in relation.deps:
                merge(found, through(CONDITIONAL, deps))
        return found

    def said_of(self, beyond: UnnamedReads) -> Reason:
        """What is said of a node that may read what its query does not name."""
        nodes = self.project.nodes
        reasons: list[Reason] = []
        if beyond.whole:
            reasons.append(Code.READS_UNNAMED(names=[nodes[u].display_name for u in beyond.whole]))
        if beyond.hooks:
            reasons.append(Code.READS_WHAT_HOOKS_MAKE(names=[*beyond.hooks[:3]]))
        if beyond.catalog:
            reasons.append(Code.READS_CATALOG())
        return several(reasons)

    @cached_property
    def all_code(self) -> bytes:
        """A fingerprint of the code of the whole project: what stands in the catalog is of it."""
        parts = []
        for unique_id, node in sorted(self.project.nodes.items()):
            if node.resource_type in RELATIONS:
                config = (node.materialized, node.config.get("contract"))
                columns = [(c.name, c.data_type) for c in node.columns.values()]
                settings = repr((config, node.identifier, columns, checksum(node)))
                parts += [unique_id.encode(), code_of(node).encode(), settings.encode()]
        return digest(*parts, self.macros.fingerprint(self.macros.user))

    @cached_property
    def all_places(self) -> bytes:
        """A fingerprint of which relations there are, where, and of which kind."""
        parts = [
            repr((unique_id, place(node), _kind(node))).encode()
            for unique_id, node in sorted(self.project.nodes.items())
            if node.resource_type in RELATIONS and not node.is_ephemeral
        ]
        return digest(*parts)

    # -- what hooks leave in other relations than their own -----------------------------------------

    def left_in(self, key: str) -> bytes:
        """A fingerprint of what hooks leave in a relation, or make; empty before it is known."""
        return self.left.get(key, b"")

    def after_hooks(self, unique_id: str, linked: LinkedNode, left: bytes) -> LinkedNode:
        """A relation as hooks of other nodes have left it."""
        hooks = self.hooks.writing[unique_id]
        read = {
            u for hook in hooks for u in hook.reads if u in self.linked_nodes and u != unique_id
        }
        nodes = self.project.nodes
        owners = list(dict.fromkeys(nodes[hook.owner].display_name for hook in hooks))
        reason = Code.HOOKS_MAY_WRITE(names=owners)
        return after_hooks(linked, left, self.deps_of(sorted(read)), reason)

    def settle_hooks(self) -> None:
        """Link again what reads what hooks write, until that is known to the end.

        A hook may write to a relation from others that are made of it. So what hooks leave is told
        from the relations as they were linked before, once more for each thing that hooks write:
        then whatever one of them depends on has come to all of them, in a circle, too.
        """
        hooks = self.hooks
        if not hooks.all:
            return
        for _ in range(1 + len(hooks.writing) + len(hooks.making)):
            left = {
                key: self.left_by(key, hooks_writing)
                for key, hooks_writing in hooks.writing.items()
            }
            left |= {f"{name}()": self.left_by(name, f) for name, f in hooks.making.items()}
            moved = {key for key, fingerprint in left.items() if self.left.get(key) != fingerprint}
            if not moved:
                return
            self.left = left
            again = self.reached_from(moved)
            for unique_id in again:
                self.linked_nodes.pop(unique_id, None)
                self.views.pop(unique_id, None)
            self.functions.clear()
            for unique_id in again:
                if unique_id not in self.linked_nodes:
                    self.node(unique_id)

    def left_by(self, key: str, hooks: list[Hook]) -> bytes:
        """What these hooks do: their texts, and all that they read."""
        parts = []
        for hook in hooks:
            # Where one that may write to anything was edited, every test is selected anyway.
            parts += [when_it_runs(hook.owner).encode(), b"" if hook.anything else hook.text]
            for unique_id in sorted(hook.reads - {key}):
                if unique_id in self.linked_nodes:
                    relation = self.linked_nodes[unique_id].relation
                    parts += [unique_id.encode(), relation.all_fp(), relation.rows_fp]
            for other in sorted(self.hooks.of_others(hook)):
                parts += [other.encode(), self.left_in(other)]
        return digest(b"left", *parts)

    def reached_from(self, changed: set[str]) -> list[str]:
        """The linked nodes that read any of these, directly or not, and these; in order."""
        children: dict[str, list[str]] = {}
        for child, above in self.above.items():
            for parent in above:
                children.setdefault(parent, []).append(child)
        for unique_id in self.linked_nodes:
            if unique_id in self.project.nodes:
                node = self.project.nodes[unique_id]
                for parent in (
                    *self.refers_to(unique_id),
                    *self.functions_above(unique_id),
                    *self.named_by_hooks(unique_id, node),
                    *self.named_by_jinja(unique_id, node, self.introspection.of(node)),
                ):
                    children.setdefault(parent, []).append(unique_id)
        unique_ids = set(changed)
        ahead = list(changed)
        while ahead:
            for child in children.get(ahead.pop(), ()):
                if child not in unique_ids:
                    unique_ids.add(child)
                    ahead.append(child)
        return [u for u in self.linked_nodes if u in unique_ids and u in self.project.nodes]

    def relations_above(self, unique_id: str) -> list[str]:
        """The relations a node refers to, each once, but those it is itself part of."""
        return [p for p in self.refers_to(unique_id) if p not in self.in_progress]

    def refers_to(self, unique_id: str) -> dict[str, None]:
        """The relations a node refers to, each once."""
        parents = (
            self.names.canonical.get(p, p)
            for p in self.project.parents.get(unique_id, ())
            if self.project.nodes[p].resource_type in RELATIONS
        )
        return dict.fromkeys(parents)

    def named_by_hooks(self, unique_id: str, node: Node) -> list[str]:
        """The relations that a node's hooks name literally, but those that are made of it.

        Of one that is, a hook sees what an earlier run left, as a model does of itself (rule 6).
        """
        dotted, bare = self.settings.named_by_hooks(node)
        if not dotted and not bare:
            return []
        unique_ids = self.names.nodes_named(dotted, bare) - {unique_id, *self.in_progress}
        return sorted(other for other in unique_ids if not self.is_above(unique_id, other))

    def named_by_jinja(self, unique_id: str, node: Node, looks: WarehouseReads) -> list[str]:
        """The relations that Jinja which looks at the warehouse names in its strings, as above."""
        if not looks.exist and looks.parts != IntrospectedParts.EVERYTHING:
            return []
        named = self.introspection.named(node)
        if not named.dotted and not named.bare:
            return []
        found = self.names.nodes_named(named.dotted, named.bare)
        found -= {unique_id, *self.in_progress, *self.refers_to(unique_id)}
        return sorted(other for other in found if not self.is_above(unique_id, other))

    def is_above(self, unique_id: str, other: str) -> bool:
        """Whether a node is upstream of another one."""
        seen = {other}
        ahead = [other]
        while ahead:
            for parent in self.project.parents.get(ahead.pop(), ()):
                if parent == unique_id:
                    return True
                if parent not in seen:
                    seen.add(parent)
                    ahead.append(parent)
        return False

    def functions_above(self, unique_id: str) -> list[str]:
        """The functions a node calls."""
        nodes = self.project.nodes
        return [
            p
            for p in self.project.parents.get(unique_id, ())
            if nodes[p].resource_type == "function"
        ]

    def function(self, unique_id: str) -> bytes:
        """A fingerprint of a function: its body, its signature, and all that its refs hold."""
        known = self.functions.get(unique_id)
        if known is None:
            self.functions[unique_id] = b""  # where functions call each other, once is enough
            node = self.project.nodes[unique_id]
            parts = [
                code_of(node).encode("utf-8", "surrogatepass"),
                self.macros.variables_of(node).encode(),
                repr(
                    (node.arguments, node.returns, sorted(self.settings.of_function(node)))
                ).encode(),
                self.macros.fingerprint(node.depends_on.macros),
            ]
            for parent in self.relations_above(unique_id):
                relation = self.node(parent).relation
                parts += [relation.all_fp(), relation.rows_fp]
            parts += map(self.function, self.functions_above(unique_id))
            known = self.functions[unique_id] = digest(*parts)
        return known

    def snapshot_columns(
        self,
        node: Node,
        relation: Relation,
        config: bytes,
        names: list[str],
        keys: list[str],
        fps: list[bytes],
        deps: list[Deps],
    ) -> None:
        """The columns dbt adds to a snapshot, and what they come from."""
        renamed = node.config.get("snapshot_meta_column_names") or {}
        added = list(_SNAPSHOT_COLUMNS)
        if node.config.get("hard_deletes") == "new_record":
            added.append("dbt_is_deleted")
        updated: Deps = {}
        updated_at = node.config.get("updated_at")
        if node.config.get("strategy") == "timestamp" and isinstance(updated_at, str):
            column = relation.get(fold(updated_at, False, self.dialect), updated_at)
            updated = column[1] if column is not None else {}
        scd: Deps = dict(through(TRANSFORMATION << MASK_SHIFT, updated))
        for name in listed(node.config.get("unique_key")):
            column = relation.get(fold(name, False, self.dialect), name)
            if column is not None:
                merge(scd, through(TRANSFORMATION << MASK_SHIFT, column[1]))
        of = {
            "dbt_scd_id": scd,
            "dbt_updated_at": updated,
            "dbt_valid_from": updated,
            "dbt_valid_to": through(TRANSFORMATION, updated),
        }
        for column_name in added:
            name = str(renamed.get(column_name) or column_name)
            names.append(name)
            keys.append(fold(name, False, self.dialect))
            fps.append(digest(b"snapshot", column_name.encode(), config))
            deps.append(of.get(column_name, {}))

    def opaque(self, unique_id: str, node: Node, reason: Reason) -> LinkedNode:
        """A node that cannot be analysed: it may use everything its parents hold."""
        named = relations_named(_text_that_names(node), self.names)
        above = dict.fromkeys(self.relations_above(unique_id))
        for other in sorted(named - {unique_id, *above, *self.in_progress}):
            if not self.is_above(unique_id, other):
                above[other] = None
        self.above.setdefault(unique_id, set()).update(above)
        relations = [self.node(p).relation for p in above]
        fingerprint = digest(
            b"opaque",
            self.opaque_text(unique_id, node).encode("utf-8", "surrogatepass"),
            self.settings.of(node, columns=True),
            repr(declared(node) if node.contract_enforced else []).encode(),
            *(self.function(p) for p in self.functions_above(unique_id)),
            *self.made_for(unique_id, node),
            *(fp for r in relations for fp in (r.all_fp(), r.rows_fp)),
        )
        in_catalog = [c.name for c in self.project.catalog.get(unique_id, ())]
        closed = bool(in_catalog)
        names = in_catalog or [c.name for c in node.columns.values()]
        everything: Deps = {}
        pairs = sum(len(r.names) for r in relations) * max(len(names), 1)
        for r in relations:
            merge(everything, through(TRANSFORMATION, r.rows))
            if pairs <= MAX_OPAQUE_EDGES:
                for d in r.deps:
                    merge(everything, through(TRANSFORMATION, d))
        rows: Deps = {}
        for r in relations:
            merge(rows, through(TRANSFORMATION, r.rows))
            for d in r.deps:
                merge(rows, through(TRANSFORMATION, d))
        keys = [fold_stored(n, self.dialect) for n in names]
        relation = Relation(
            list(names),
            keys,
            [digest(fingerprint, k.encode()) for k in keys],
            [{(unique_id, n): IDENTITY} for n in names],
            [] if closed else [OpaqueNodeColumns(self, unique_id, fingerprint, everything)],
            digest(fingerprint, b"rows"),
            {(unique_id, ROWS): IDENTITY},
            digest(b"leaf", unique_id.encode()),
        )
        analysis = NodeAnalysis(
            unique_id,
            "opaque",
            reason,
            names,
            [fp.hex() for fp in relation.fps],
            [None] * len(names),
            relation.rows_fp.hex(),
        )
        return LinkedNode(analysis, relation, [everything for _ in names], rows)

    def made_for(self, unique_id: str, node: Node) -> list[bytes]:
        """What hooks make or write, and the catalog, where a node that was not analysed names it."""
        text = node.compiled_code or node.raw_code
        made = [f"{name}()" for name in self.hooks.called_in(text)]
        if self.hooks.writing:
            made += self.hooks.writing.keys() & set(re.findall(r"\w+", text.lower()))
        self.above.setdefault(unique_id, set()).update(made)
        parts = [part for key in sorted(made) for part in (key.encode(), self.left_in(key))]
        return [*parts, self.all_code] if CATALOG.search(text) else parts

    def opaque_text(self, unique_id: str, node: Node) -> str:
        """The text of a node that cannot be analysed, relations by unique_id (rule 6)."""
        macros = self.macros
        if node.is_python or node.compiled_code is None:
            called = macros.fingerprint(node.depends_on.macros).hex()
            variables = macros.variables_of(node)
            references = self.settings.references.of(node)
            return f"{code_of(node)}{variables}\n{references!r}\n{called}"
        text = node.compiled_code
        for other in (unique_id, *self.project.parents.get(unique_id, ())):
            if name := self.project.nodes[other].relation_name:
                text = text.replace(name, other)
        if self.dialect not in _LAYOUT_SAYS_NOTHING or "/*+" in text or "/*!" in text:
            return text
        return normalised(text)


_LAYOUT_SAYS_NOTHING: Final = frozenset({"databricks", "duckdb", "postgres", "redshift", "spark"})
"""Dialects where comments and white space decide nothing, not even what a column is called.

Snowflake calls a column what its expression looks like, and ``5--3`` is 8 in MySQL.
"""


def _text_that_names(node: Node) -> str:
    """The part of a node's text in which names of relations can stand: of Python, its strings."""
    if node.is_python:
        return " ".join(match[0] for match in _PYTHON_STRING.finditer(node.raw_code))
    return node.compiled_code or ""


def _kind(node: Node) -> list[Any]:
    """What an adapter tells of a relation that is there: whether it is a table, and which."""
    return [node.materialized, node.config.get("table_format"), node.config.get("file_format")]


def _why_unknown(relation: Relation) -> Reason:
    parents = sorted({parent for parent, _ in relation.rows})
    return Code.STAR_UNKNOWN(parents=[*parents[:3]] or ["its source"])
