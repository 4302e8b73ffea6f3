"""Columns, fingerprints and edges of declared assets, over a dbt project that is analysed already.

An asset is linked like a model, each after what it reads:

* SQL is followed statement by statement, in its own dialect;
* a declared column comes of the columns that it is declared to come from; OpenLineage's subtype is what
  `transformation` says in one word, TRANSFORMATION where it says anything else, IDENTITY where nothing;
* where the declaration does not name the columns that it reads or writes, all columns and rows count: the asset is opaque.

Nothing of dbt's own analysis changes by it: what an asset writes into a source is an edge into that source.
A column that is certainly not there makes the asset broken, as it makes a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Final

from dbt_ripple.artifacts import masking_functions
from dbt_ripple.artifacts.assets_file import WHOLE, ColumnFlow
from dbt_ripple.flow.engine_checks import EXECUTED, name_is_refused
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import (
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    SORT,
    TRANSFORMATION,
)
from dbt_ripple.flow.link import Linked
from dbt_ripple.flow.relation import (
    Deps,
    OutputColumn,
    Relation,
    RowSet,
    merge,
)
from dbt_ripple.flow.statements import Statement
from dbt_ripple.graph.assets.asset_nodes import (
    AssetColumnParts,
    AssetLink,
    AssetNode,
    Columns,
    LinkedAsset,
    UnlistedAssetColumns,
    as_linked_node,
    dialect_note,
    fingerprint_parts,
    kind_of,
    text_of,
)
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.broken_nodes import BrokenNodeFinder
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.column_edges import WithAssetEdges, edges_of_deps, is_read_whole
from dbt_ripple.graph.hypothetical import (
    HypotheticalChange,
    Supposed,
    relation_after,
)
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, NodeAnalysis, Own, Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.query_cache import Note, QueryCache
from dbt_ripple.graph.relations import (
    LinkedNode,
    rows_of_node,
    topological,
    unknown_relation,
)
from dbt_ripple.reasons import Code, Reason

_ROUNDS: Final = 10
"""How often assets that read each other in turn are linked."""

_HARMLESS: Final = frozenset(
    """
    ANALYZE BEGIN CLEAR COMMENT COMMIT DESC DESCRIBE GRANT MSCK OPTIMIZE PRAGMA REFRESH RESET REVOKE
    ROLLBACK SHOW START UNCACHE USE VACUUM
    """.split()
)
"""First words of statements that change no rows and no values of any relation."""

_SETS: Final = frozenset({"DECLARE", "SET"})
"""Likewise, if they read nothing."""

_OF_ROWS: Final = JOIN | FILTER | GROUP_BY | SORT
"""Kinds by which a column decides which rows there are; it is then no value of any column."""


class AssetLineage:
    """The assets of a project, linked.

    Args:
        graph: the assets and the project.
        analysis: of the project.
        cache: where lowered queries may be found.
        hypothetical: hypothetical changes of relations and assets, by unique_id.
        masking: functions that mask their arguments, besides those known to.

    Attributes:
        written: what assets write into the sources of dbt, by unique_id.
        linked: every asset, and every relation that only their SQL names, by unique_id.
    """

    def __init__(
        self,
        graph: DeclaredGraph,
        analysis: Analysis,
        cache: Cache | None = None,
        hypothetical: Mapping[str, Supposed] | None = None,
    ) -> None:
        self.graph = graph
        self.dbt = analysis
        self.cache = cache
        self.hypothetical = hypothetical or {}
        self.masking = masking_functions(graph.project)
        self.linked: dict[str, LinkedNode] = {}
        self.written: dict[str, Columns] = {}
        self._open = set(analysis.unlisted)
        self._before: dict[str, LinkedNode] = {}
        self._queries: dict[str, QueryCache] = {}
        self._writers: dict[str, list[str]] = {}
        self._jobs: dict[str, LinkedAsset] = {}
        self._guessed: set[tuple[str, str]] = set()
        self._named: dict[str, list[str]] = {}
        for parent, child in graph.edges:
            if parent in graph.assets:
                self._writers.setdefault(child, []).append(parent)
        order = [
            unique_id
            for unique_id in topological(graph.acyclic)
            if unique_id in graph.assets
            or (unique_id in graph.datasets and unique_id not in analysis.nodes)
        ]
        back = graph.closing.intersection((a, b) for a in order for b in graph.whole.children[a])
        # Where assets read each other in turn, each is linked over the others as they were before. Jobs that
        # read what they fill all need one more round, however many there are.
        own = back & graph.self_reads
        rounds = 1 + min(len(back - own) + bool(own), _ROUNDS)
        self._link_all(order, rounds)
        # Who reads all of a relation whose columns nothing lists, reads those that others name.
        self._named = self._named_by_others()
        if self._named:
            self._link_all(order, rounds)
        for unique_id in self._writers:
            if unique_id not in self.linked:
                columns = self.written[unique_id] = Columns()
                for writer in self._writers[unique_id]:
                    self._write(writer, unique_id, columns)

    def _link_all(self, order: list[str], rounds: int) -> None:
        for _ in range(rounds):
            self._before, self.linked = self.linked, {}
            for unique_id in order:
                self.linked[unique_id] = self._link(unique_id)

    def _named_by_others(self) -> dict[str, list[str]]:
        """The columns that some assets name of relations of which others read everything."""
        read_whole = {u for job in self._jobs.values() for u in (*job.everything, *job.into_whole)}
        named: dict[str, dict[str, None]] = {}
        for linked in self.linked.values():
            for deps in (*linked.deps, linked.rows):
                for parent, column in deps:
                    if parent in read_whole and parent in self.linked and column != ROWS:
                        named.setdefault(parent, {})[column] = None
        listed = {u: set(map(str.lower, self.linked[u].analysis.columns)) for u in named}
        new = {u: [c for c in names if c.lower() not in listed[u]] for u, names in named.items()}
        return {u: names for u, names in new.items() if names}

    # -- what is read -------------------------------------------------------------------------------

    def _link(self, unique_id: str) -> LinkedNode:
        """An asset, or a relation that only SQL of assets names; what it comes of is linked already."""
        asset = self.graph.assets.get(unique_id)
        linked = self._asset(asset) if asset is not None else self._dataset(unique_id)
        change = self.hypothetical.get(unique_id)
        if isinstance(change, HypotheticalChange):
            linked = relation_after(linked, change, self.graph.dialect)
        return linked

    def analysed(self, unique_id: str) -> NodeAnalysis | None:
        """A relation as analysed; None of an asset that depends on the one that asks, and is not linked yet."""
        linked = self.linked.get(unique_id) or self._before.get(unique_id)
        return linked.analysis if linked is not None else self.dbt.nodes.get(unique_id)

    def is_open(self, unique_id: str) -> bool:
        """Whether a relation may have columns that nothing lists."""
        if unique_id in self.dbt.nodes:
            return unique_id in self._open or unique_id in self.graph.datasets
        return not isinstance(self.hypothetical.get(unique_id), HypotheticalChange)

    def relation(self, unique_id: str, dialect: str) -> Relation:
        """A relation as SQL of this dialect reads it."""
        analysed = self.analysed(unique_id)
        if analysed is None:
            fingerprint = digest(b"cycle", unique_id.encode())
            return unknown_relation(fingerprint, {(unique_id, ROWS): IDENTITY})
        fps = [bytes.fromhex(fp) for fp in analysed.fingerprints]
        rows_fp = bytes.fromhex(analysed.rows_fingerprint)
        unlisted = UnlistedAssetColumns(
            unique_id, digest(b"rest", unique_id.encode(), rows_fp, *fps), analysed
        )
        gone = analysed.reason == Code.GONE()
        # How one engine stores a name says nothing of how another one spells it.
        own = dialect == self.graph.dialect
        columns = [
            OutputColumn(name, fold(name, own, dialect), fp, {(unique_id, name): IDENTITY})
            for name, fp in zip(analysed.columns, fps, strict=True)
        ]
        side_key = digest(b"asset reads", unique_id.encode())
        return Relation(
            columns,
            RowSet.unjoined(rows_fp, rows_of_node(unique_id), side_key),
            [unlisted] if self.is_open(unique_id) and not gone else [],
            [unlisted],
        )

    @cached_property
    def _certain(self) -> BrokenNodeFinder:
        project = self.graph.project
        hypothetical = {u: s for u, s in self.hypothetical.items() if u in project.nodes}
        return BrokenNodeFinder(ProjectContext(project), self.cache, hypothetical)

    def lacks(self, unique_id: str, column: str) -> bool:
        """Whether a relation certainly has no column of this name."""
        analysed = self.analysed(unique_id)
        if analysed is None or column.lower() in map(str.lower, analysed.columns):
            return False
        if analysed.reason == Code.GONE():
            return True
        if self.is_open(unique_id):
            return False
        if unique_id in self.graph.project.nodes:
            node = self.graph.project.nodes[unique_id]
            if node.resource_type not in ("model", "seed", "snapshot", "source"):
                return True
            certain = self._certain.linker.node(unique_id).relation
            return not certain.unlisted and column.lower() not in map(str.lower, certain.names)
        return True

    def queries(self, dialect: str) -> QueryCache:
        """Where SQL of a dialect is followed."""
        cache = self._queries.get(dialect)
        if cache is None:
            cache = self._queries[dialect] = QueryCache(
                dialect, False, self.cache, None, self.masking
            )
        return cache

    # -- assets -------------------------------------------------------------------------------------

    def _asset(self, asset: AssetNode) -> LinkedNode:
        job = self._jobs[asset.unique_id] = LinkedAsset()
        declared_asset = asset.declared
        for declared in declared_asset.columns:
            type_ = (declared.type or "").lower()
            job.own.column(declared.name).parts.append(digest(b"type", type_.encode()))
        if asset.gone:
            job.missing += asset.gone
        for link in asset.reads:
            self._read(asset, link, job)
        if declared_asset.sql is not None:
            self._sql(asset, job)
        for link in asset.writes:
            for flow in link.flow.columns or ():
                for name in flow.sources:
                    job.own.column(name)
        writers = self._writers.get(asset.unique_id, ())
        for writer in writers:
            self._write(writer, asset.unique_id, job.own, job)
        for name in self._named.get(asset.unique_id, ()):
            job.own.column(name)
        if job.everything:
            whole = self._everything(job.everything)
            for column in (*job.own.by_name.values(), job.own.rows):
                column.add(*whole)
        silent = [
            self._called(link.unique_id)
            for link in asset.writes
            if (link.flow.columns is None and declared_asset.sql is None)
            or any(flow.target == WHOLE for flow in link.flow.columns or ())
        ]
        return self._linked(asset, job, silent, bool(asset.above() or writers or silent))

    def _linked(
        self, asset: AssetNode, job: LinkedAsset, silent: list[str], follows: bool
    ) -> LinkedNode:
        unique_id = asset.unique_id
        declared_asset = asset.declared
        own = digest(
            b"asset",
            unique_id.encode(),
            repr((declared_asset.type, declared_asset.source_ref)).encode(),
        )
        if job.texts:
            own = digest(own, *(t.encode("utf-8", "surrogatepass") for t in job.texts))
        if job.missing:
            own = digest(b"broken", own, *(name.encode() for name in job.missing))
        status: Status = "analysed" if follows else "leaf"
        reason = Code.WRITES_WITHOUT_COLUMNS(names=silent) if silent else None
        if job.written_whole:
            reason = reason or Code.WRITTEN_WITHOUT_COLUMNS(names=job.written_whole)
        if job.unseen:
            status, reason = "opaque", job.unseen[0]
        if job.missing:
            status, reason = "broken", Code.CANNOT_FIND(names=list(dict.fromkeys(job.missing)))
        return as_linked_node(unique_id, own, job.own, self.graph.dialect, status, reason)

    def _called(self, unique_id: str) -> str:
        node = self.graph.project.nodes.get(unique_id)
        if node is not None:
            return node.display_name
        asset = self.graph.declared.get(unique_id)
        return asset.id if asset is not None else unique_id.partition(".")[2]

    def _read(self, asset: AssetNode, link: AssetLink, job: LinkedAsset) -> None:
        """What the declaration says that it reads."""
        unique_id, flow = link
        analysed = self.analysed(unique_id)
        rows_fp = bytes.fromhex(analysed.rows_fingerprint) if analysed is not None else b""
        job.own.rows.add(rows_fp, {(unique_id, ROWS): IDENTITY})
        if analysed is not None and analysed.reason == Code.GONE():
            job.missing.append(self._called(unique_id))
        columns = flow.columns
        if columns is None and is_read_whole(self.graph.project.nodes.get(unique_id)):
            columns = tuple(
                ColumnFlow((n,), n) for n in (analysed.columns if analysed is not None else ())
            )
        if columns is None:
            if asset.declared.sql is None or unique_id not in asset.sql_reads():
                job.everything[unique_id] = None
                job.unseen.append(Code.READS_WITHOUT_COLUMNS(names=[self._called(unique_id)]))
            return
        by_sql = asset.declared.sql is not None and unique_id in asset.sql_reads()
        if asset.declared.kinds_missing and not by_sql:
            job.unseen.append(Code.KINDS_MISSING(names=[self._called(unique_id)]))
        for column_flow in columns:
            kind = kind_of(column_flow)
            into = job.own.rows if kind & _OF_ROWS else job.own.column(column_flow.target)
            for name in column_flow.sources:
                if name == WHOLE:
                    job.into_whole[unique_id] = None
                    whole = self._everything([unique_id])
                    into.add(*whole, kind)
                    continue
                if name == ROWS:
                    into.add(rows_fp, {(unique_id, ROWS): IDENTITY}, kind)
                    continue
                if self.lacks(unique_id, name):
                    if asset.declared.kinds_missing and by_sql:
                        continue  # a parser without the tables at hand guesses whose column it is
                    job.missing.append(f"{self._called(unique_id)}.{name}")
                    continue
                fp, deps = self._column(unique_id, name)
                into.add(fp, deps, kind, column_flow.transformation or "")

    def _everything(self, relations: Iterable[str]) -> tuple[bytes, Deps]:
        """What may come of all that some relations hold: its fingerprint and dependencies."""
        everything: Deps = {}
        parts = []
        for unique_id in relations:
            analysed = self.analysed(unique_id)
            merge(everything, {(unique_id, ROWS): TRANSFORMATION})
            if analysed is not None:
                merge(everything, {(unique_id, name): TRANSFORMATION for name in analysed.columns})
                fps = (*analysed.fingerprints, analysed.rows_fingerprint)
                parts += [unique_id.encode(), *(fp.encode() for fp in fps)]
                parts += [name.encode() for name in analysed.columns]
        return digest(b"everything", *parts), everything

    def _column(self, unique_id: str, name: str) -> tuple[bytes, Deps]:
        analysed = self.analysed(unique_id)
        if analysed is None:
            return digest(b"cycle", unique_id.encode(), name.encode()), {
                (unique_id, name): IDENTITY
            }
        for column, fp in zip(analysed.columns, analysed.fingerprints, strict=False):
            if column.lower() == name.lower():
                return bytes.fromhex(fp), {(unique_id, column): IDENTITY}
        unlisted = UnlistedAssetColumns(
            unique_id, digest(b"rest", unique_id.encode(), analysed.rows_fingerprint.encode())
        )
        return unlisted.get(name.lower(), name)

    def _sql(self, asset: AssetNode, job: LinkedAsset) -> None:
        """What its SQL reads and writes, statement by statement."""
        declared_asset = asset.declared
        if isinstance(asset.statements, Reason):
            job.unseen.append(Code.SQL_NOT_FOLLOWED(because=asset.statements))
            job.texts.append(declared_asset.sql or "")
            return
        targets = asset.sql_targets()
        several = len(set(targets.values())) > 1
        built: dict[str, Relation] = {}
        for statement in asset.statements:
            word = statement.first_word
            sets = word in _SETS and not statement.reads
            if statement.only_deletes or word in _HARMLESS or sets:
                text = statement.sql.encode("utf-8", "surrogatepass")
                job.own.rows.parts.append(digest(b"rows", text))
                continue
            reader = _AssetTableResolver(self, asset, built)
            followed: tuple[dict[str, str], Linked] | Reason
            if statement.is_query:
                followed = self.queries(asset.dialect).follow(statement.sql, reader)
            else:
                followed = dialect_note(asset) or (
                    Code.STATEMENT_NOT_FOLLOWED(statement=word)
                    if statement.writes is not None
                    else Code.NO_QUERY_BUT_A_STATEMENT(statement=word)
                )
            target = targets.get(statement.writes.key) if statement.writes else None
            if isinstance(followed, Reason):
                self._not_followed(asset, job, statement, followed, built, target)
                continue
            linked = followed[1]
            lost = self._certainly(asset, statement, linked, built)
            job.missing += lost
            doubtful = [
                name
                for name in linked.missing
                if name not in lost and name_is_refused(name, asset.dialect, False) is not False
            ]
            if doubtful:
                reason = Code.CANNOT_FOLLOW(names=doubtful)
                self._not_followed(asset, job, statement, reason, built, target)
                continue
            relation = linked.relation
            if statement.writes is not None:
                built[statement.writes.key] = relation
                if statement.temporary:
                    continue
            prefix = f"{self._called(target)}." if several and target is not None else ""
            names: Sequence[str] | None = relation.names
            if target is not None and statement.is_insert and not statement.columns:
                names = self._inserted(target, relation.names)
            places = job.into.setdefault(target, {}) if target is not None else None
            for i, column in enumerate(relation.columns):
                job.own.column(prefix + column.name).add(column.fp, column.deps)
                if places is not None and names is not None:
                    places[names[i]] = prefix + column.name
            if target is not None and names is None:
                job.into[target] = None
            if relation.unlisted:
                job.unseen.append(Code.SQL_NOT_FOLLOWED(because=_star(relation)))
                job.everything |= dict.fromkeys(u for u, _ in relation.rows.deps)
                if target is not None:
                    job.into[target] = None
            job.own.rows.add(relation.rows.fp, relation.rows.deps)

    def _inserted(self, target: str, names: Sequence[str]) -> Sequence[str] | None:
        """Where an INSERT without a list of columns puts what its query returns: engines go by position.

        Where the columns of the relation are not known, by name is what is meant; where they are and neither
        fits, nobody knows.
        """
        columns_of_target = self._columns_of(target)
        if not columns_of_target or all(name.lower() in columns_of_target for name in names):
            return names
        return list(columns_of_target.values()) if len(columns_of_target) == len(names) else None

    def _certainly(
        self, asset: AssetNode, statement: Statement, linked: Linked, built: Mapping[str, Relation]
    ) -> list[str]:
        """The names that its SQL certainly cannot find."""
        if not linked.missing or asset.dialect not in EXECUTED:
            return []
        reader = _AssetTableResolver(self, asset, built, certainly=True)
        again = self.queries(asset.dialect).follow(statement.sql, reader)
        if isinstance(again, Reason):
            return []
        missing = list(again[1].missing)
        if asset.dialect != self.graph.dialect:
            columns = {
                column.lower()
                for name in statement.reads
                if name.key in asset.named and (analysed := self.analysed(asset.named[name.key]))
                for column in analysed.columns
            }
            missing = [n for n in missing if n.rpartition(".")[2].strip('"').lower() not in columns]
        return missing

    def certain_relation(self, unique_id: str, dialect: str) -> Relation:
        """A relation with the columns that it certainly has, and any others where that is not known."""
        relation = self.relation(unique_id, dialect)
        node = self.graph.project.nodes.get(unique_id)
        if node is None or relation.unlisted or node.resource_type not in _RELATIONS:
            return relation
        certain = self._certain.linker.node(unique_id).relation
        if certain.unlisted:
            relation.unlisted = [UnlistedAssetColumns(unique_id, b"certain")]
        return relation

    def _not_followed(
        self,
        asset: AssetNode,
        job: LinkedAsset,
        statement: Statement,
        why: Reason,
        built: dict[str, Relation],
        target: str | None,
    ) -> None:
        job.unseen.append(Code.SQL_NOT_FOLLOWED(because=why))
        job.texts.append(statement.sql)
        for name in statement.reads:
            if name.key in built:
                job.everything |= dict.fromkeys(u for u, _ in built[name.key].rows.deps)
            elif name.key in asset.named:
                job.everything[asset.named[name.key]] = None
        for unique_id in job.everything:
            analysed = self.analysed(unique_id)
            fp = bytes.fromhex(analysed.rows_fingerprint) if analysed is not None else b""
            job.own.rows.add(fp, {(unique_id, ROWS): TRANSFORMATION})
        if target is not None:
            job.into[target] = None
        elif statement.writes is not None:
            built[statement.writes.key] = unknown_relation(
                digest(b"made", statement.sql.encode("utf-8", "surrogatepass")),
                {(unique_id, ROWS): TRANSFORMATION for unique_id in job.everything},
            )

    # -- what is written ----------------------------------------------------------------------------

    def _dataset(self, unique_id: str) -> LinkedNode:
        columns = Columns()
        for writer in self._writers.get(unique_id, ()):
            self._write(writer, unique_id, columns)
        for name in self._named.get(unique_id, ()):
            columns.column(name)
        own = digest(b"dataset", unique_id.encode())
        return as_linked_node(unique_id, own, columns, self.graph.dialect, "leaf", None)

    def _write(
        self, writer: str, unique_id: str, columns: Columns, job: LinkedAsset | None = None
    ) -> None:
        """Add what one asset writes into a relation to the columns of that."""
        asset = self.graph.assets[writer]
        analysis = self.analysed(writer)
        if analysis is None:  # it comes of this, and is linked later
            columns.rows.add(digest(b"cycle", writer.encode()), {(writer, ROWS): IDENTITY})
            return
        fps = {
            n.lower(): (n, bytes.fromhex(fp))
            for n, fp in zip(analysis.columns, analysis.fingerprints, strict=False)
        }
        rows_fp = bytes.fromhex(analysis.rows_fingerprint)
        columns.rows.add(rows_fp, {(writer, ROWS): IDENTITY})
        into = self._jobs[writer].into
        places: dict[str, str] | None = {}
        if unique_id in into:
            places = into[unique_id]
        for link in asset.writes:
            if link.unique_id != unique_id:
                continue
            if link.flow.columns is not None:
                for flow in link.flow.columns:
                    if flow.target == WHOLE:
                        of = [fps.get(name.lower(), (name, rows_fp)) for name in flow.sources]
                        made = {(writer, name): TRANSFORMATION for name, _ in of}
                        self._write_whole(unique_id, columns, digest(*(f for _, f in of)), made)
                        self._guessed.add((writer, unique_id))
                        continue
                    kind = kind_of(flow)
                    target = (
                        columns.rows
                        if kind & _OF_ROWS
                        else self._target(unique_id, flow.target, columns)
                    )
                    for name in flow.sources:
                        spelled, fp = fps.get(name.lower(), (name, rows_fp))
                        target.add(
                            fp, {(writer, spelled): IDENTITY}, kind, flow.transformation or ""
                        )
            elif asset.declared.sql is not None and unique_id not in into:
                columns_of_target = self._columns_of(unique_id)
                outputs = {name: name for name, _ in fps.values()}
                same = {
                    n: o
                    for n, o in outputs.items()
                    if not columns_of_target or n.lower() in columns_of_target
                }
                places = same if same and not self._jobs[writer].unseen else None
            elif asset.declared.sql is None:
                places = None
        if places is None:
            self._guessed.add((writer, unique_id))
            everything: Deps = {(writer, ROWS): TRANSFORMATION}
            merge(everything, {(writer, name): TRANSFORMATION for name, _ in fps.values()})
            all_of_it = digest(rows_fp, *(fp for _, fp in fps.values()))
            self._write_whole(unique_id, columns, all_of_it, everything)
            if job is not None:
                job.written_whole.append(self._called(writer))
            return
        for name, own in places.items():
            spelled, fp = fps.get(own.lower(), (own, rows_fp))
            self._target(unique_id, name, columns).add(fp, {(writer, spelled): IDENTITY})

    def _write_whole(self, unique_id: str, columns: Columns, fp: bytes, deps: Deps) -> None:
        """Let all columns of a relation, and its rows, come of these."""
        for name in (*self._columns_of(unique_id).values(), *self._named.get(unique_id, ())):
            columns.column(name).add(fp, deps)
        columns.rows.add(fp, deps)

    def _columns_of(self, unique_id: str) -> dict[str, str]:
        """The columns that a relation is known to have, by their names in lower case."""
        asset = self.graph.declared.get(unique_id)
        if asset is not None:
            return {column.name.lower(): column.name for column in asset.columns}
        analysed = self.dbt.nodes.get(unique_id)
        return {name.lower(): name for name in (analysed.columns if analysed is not None else ())}

    def _target(self, unique_id: str, name: str, columns: Columns) -> AssetColumnParts:
        return columns.column(self._columns_of(unique_id).get(name.lower(), name))

    # -- all together -------------------------------------------------------------------------------

    @cached_property
    def edges(self) -> list[ColumnEdge]:
        """The edges into assets, and from assets into what they write."""
        edges: list[ColumnEdge] = []
        for unique_id, linked in self.linked.items():
            for name, deps in zip(linked.analysis.columns, linked.deps, strict=False):
                edges += edges_of_deps(deps, unique_id, name)
            edges += edges_of_deps(linked.rows, unique_id, ROWS)
        for unique_id, columns in self.written.items():
            for column in (*columns.by_name.values(), columns.rows):
                edges += edges_of_deps(column.deps, unique_id, column.name)
        return edges

    @cached_property
    def analysis(self) -> Analysis:
        """The project's analysis with the assets in it."""
        place = {u: i for i, u in enumerate(topological(self.graph.acyclic))}
        return dataclasses.replace(
            self.dbt,
            nodes={**self.dbt.nodes, **{u: linked.analysis for u, linked in self.linked.items()}},
            test_columns=[*self.dbt.test_columns, *self._assertions()],
            tests={**self.dbt.tests, **self._checks()},
            own={**self.dbt.own, **self._own()} if self.dbt.own else {},
            edges=WithAssetEdges(self.dbt.edges, self.edges, place, frozenset(self._guessed)),
        )

    def _own(self) -> dict[str, Own]:
        """The own fingerprint of each asset, whatever it reads: if it differs, the asset itself was edited."""
        fingerprints = {}
        for unique_id, asset in self.graph.assets.items():
            own = digest(b"asset", text_of(asset.declared).encode()).hex()
            columns = self.linked[unique_id].analysis.columns
            fingerprints[unique_id] = Own(dict.fromkeys(map(str.lower, columns), own), own)
        return fingerprints

    def _assertions(self) -> list[tuple[str, str, str]]:
        """The columns that collected checks read, as `Analysis.test_columns`."""
        assertions = []
        for assertion in self.graph.assertions.values():
            analysed = self.analysed(assertion.node)
            names = {
                name.lower(): name for name in (analysed.columns if analysed is not None else ())
            }
            column = (
                ROWS
                if assertion.column is None
                else names.get(assertion.column.lower(), assertion.column)
            )
            assertions.append((assertion.unique_id, assertion.node, column))
        return assertions

    def _checks(self) -> dict[str, NodeAnalysis]:
        """These checks as tests, each with the fingerprint of what it reads."""
        analyses = {}
        for test, unique_id, column in self._assertions():
            analysed = self.analysed(unique_id)
            fps = {}
            if analysed is not None:
                fps = dict(
                    zip(map(str.lower, analysed.columns), analysed.fingerprints, strict=False)
                )
                fps[ROWS] = analysed.rows_fingerprint
            fp = digest(b"assertion", test.encode(), fps.get(column.lower(), "").encode()).hex()
            analyses[test] = NodeAnalysis(test, "analysed", rows_fingerprint=fp)
        return analyses

    def changed_since(self, before: AssetLineage) -> dict[str, set[str]]:
        """The columns and rows of dbt's sources that assets write differently than before, by source."""
        changed: dict[str, set[str]] = {}
        for unique_id in {**before.written, **self.written}:
            then = fingerprint_parts(before.written.get(unique_id, Columns()))
            now = fingerprint_parts(self.written.get(unique_id, Columns()))
            names = {name for name in {**then, **now} if then.get(name) != now.get(name)}
            if names:
                changed[unique_id] = names
        return changed


_RELATIONS: Final = ("model", "seed", "snapshot", "source")


def _star(relation: Relation) -> Reason:
    parents = sorted({parent for parent, _ in relation.rows.deps})
    return Code.STAR_UNKNOWN(parents=[*parents[:3]] or ["its source"])


class _AssetTableResolver:
    """An asset whose SQL is followed, to `QueryCache`."""

    def __init__(
        self,
        lineage: AssetLineage,
        asset: AssetNode,
        built: Mapping[str, Relation],
        certainly: bool = False,
    ) -> None:
        self.lineage = lineage
        self.asset = asset
        self.built = built
        self.relation_of: Callable[[str, str], Relation] = (
            lineage.certain_relation if certainly else lineage.relation
        )

    def table(self, key: str, name: str) -> Relation:
        """The relation behind a name in its SQL."""
        built = self.built.get(key)
        if built is not None:
            return built
        unique_id = self.asset.named.get(key)
        if unique_id is None:
            return unknown_relation(digest(b"unnamed", key.encode()), {})
        return self.relation_of(unique_id, self.asset.dialect)

    def view(self, key: str, name: str) -> bytes | None:
        """Linked queries are not cached: no digest covers what assets read."""
        return None

    def noting(self) -> AbstractContextManager[dict[Note, None]]:
        """No notes are taken."""
        return nullcontext({})

    def repeat(self, note: Note) -> bool:
        """There are none."""
        return False
