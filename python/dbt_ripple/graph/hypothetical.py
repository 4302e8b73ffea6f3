"""Relations that are replaced in an analysis: hypothetical ones, or those that another project builds."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import msgspec

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.relation import Relation, RowSet, UnlistedColumns
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import (
    ColumnDiscoverer,
    LinkedNode,
    UnlistedSourceColumns,
    columns_of_node,
    rows_of_node,
)
from dbt_ripple.reasons import Code


class HypotheticalChange(msgspec.Struct, frozen=True):
    """A relation after a hypothetical change.

    Attributes:
        analysed: the relation as it was analysed.
        renamed: new names by old ones.
        dropped: columns that are no more.
        retyped: new types by column.
        gone: the relation is no more.
        added: the types of new columns, by name; they stand behind the others.
    """

    analysed: NodeAnalysis
    renamed: dict[str, str] = {}
    dropped: frozenset[str] = frozenset()
    retyped: dict[str, str] = {}
    gone: bool = False
    added: dict[str, str] = {}


class BuiltElsewhere(msgspec.Struct, frozen=True):
    """A source, as the project that builds its relation has it.

    Attributes:
        analysed: the relation, as it was analysed there; None where it is there no more.
        is_open: whether it may have columns that nothing lists.
        is_certain: whether its columns are known for sure, so that a query for another one cannot be
            built. An incremental model keeps columns that its query does not have any more.
    """

    analysed: NodeAnalysis | None
    is_open: bool = False
    is_certain: bool = True

    @property
    def is_gone(self) -> bool:
        """Whether there is no such relation any more."""
        analysed = self.analysed
        return analysed is None or (analysed.status == "broken" and analysed.reason == Code.GONE())


def written_otherwise(
    unique_id: str, analysed: NodeAnalysis, rewritten: Collection[str], is_open: bool
) -> BuiltElsewhere:
    """A source of which some columns, or the rows, may hold something else than they did.

    Args:
        unique_id: of the source.
        analysed: as it was analysed.
        rewritten: columns in lower case, and ``*rows*``.
        is_open: whether it may have columns that nothing lists.
    """
    own = digest(b"written otherwise", unique_id.encode())
    fps = [
        digest(own, bytes.fromhex(fp)).hex() if name.lower() in rewritten else fp
        for name, fp in zip(analysed.columns, analysed.fingerprints, strict=True)
    ]
    rows = bytes.fromhex(analysed.rows_fingerprint)
    rows_fp = digest(own, rows).hex() if ROWS in rewritten else analysed.rows_fingerprint
    changed = dataclasses.replace(analysed, fingerprints=fps, rows_fingerprint=rows_fp)
    return BuiltElsewhere(changed, is_open=is_open, is_certain=False)


Supposed = HypotheticalChange | BuiltElsewhere
"""What stands for what a relation's own project says of it."""


def relation_of_builder(
    linked: LinkedNode, built: BuiltElsewhere, analyser: ColumnDiscoverer
) -> LinkedNode:
    """The relation with the columns, rows and fingerprints that its builder gives it.

    What tells the sides of a join apart stays, so that of a join only those columns change that its builder changed. A
    column that nothing lists counts as changed where anything of the relation did.
    """
    was, unique_id = linked.relation, linked.analysis.unique_id
    if built.is_gone or built.analysed is None:
        gone = dataclasses.replace(linked.analysis, columns=[], fingerprints=[], expressions=[])
        return relation_after(linked, HypotheticalChange(gone, gone=True), analyser.dialect)
    analysed = built.analysed
    names, fps = list(analysed.columns), [bytes.fromhex(fp) for fp in analysed.fingerprints]
    rows_fp = bytes.fromhex(analysed.rows_fingerprint)
    unlisted: list[UnlistedColumns] = []
    if built.is_open:
        everything = digest(b"elsewhere", unique_id.encode(), rows_fp, *fps)
        unlisted = [UnlistedSourceColumns(analyser, unique_id, everything)]
        # What this project knows of it besides.
        also = {name.lower() for name in names}
        more = [name for name in was.names if name.lower() not in also]
        names += more
        fps += [digest(everything, name.lower().encode()) for name in more]
    relation = Relation(
        columns_of_node(unique_id, names, fps, analyser.dialect),
        RowSet(rows_fp, rows_of_node(unique_id), was.rows.side_key, was.rows.joins),
        unlisted,
    )
    relation.fields = was.fields
    analysis = NodeAnalysis(
        unique_id,
        "leaf",
        None,
        columns=list(names),
        fingerprints=[fp.hex() for fp in fps],
        expressions=[None] * len(names),
        rows_fingerprint=rows_fp.hex(),
    )
    return LinkedNode(analysis, relation, [{} for _ in names], {})


def relation_after(
    linked: LinkedNode, hypothetical: HypotheticalChange, dialect: str
) -> LinkedNode:
    """The relation as it would be; of all its columns, those that only their use showed included.

    A renamed column keeps its fingerprint: whoever passes it on by ``*`` passes on the same values
    under another name. Nothing else can be read from it than its columns.
    """
    analysed, was = hypothetical.analysed, linked.relation
    deps_of = dict(zip(linked.analysis.columns, linked.deps, strict=False))
    names, fps, deps = [], [], []
    for name, fingerprint in zip(analysed.columns, analysed.fingerprints, strict=True):
        if hypothetical.gone or name in hypothetical.dropped:
            continue
        fp = bytes.fromhex(fingerprint)
        if name in hypothetical.retyped:
            fp = digest(b"retyped", fp, hypothetical.retyped[name].encode())
        names.append(hypothetical.renamed.get(name, name))
        fps.append(fp)
        deps.append(deps_of.get(name, {}))
    for name, type_ in hypothetical.added.items():
        names.append(name)
        fps.append(digest(b"added", name.lower().encode(), type_.encode()))
        deps.append({})
    rows_fp = digest(b"gone", was.rows.fp) if hypothetical.gone else was.rows.fp
    relation = Relation(
        columns_of_node(analysed.unique_id, names, fps, dialect),
        was.rows.after(rows_fp, was.rows.deps),
    )
    analysis = NodeAnalysis(
        analysed.unique_id,
        "broken" if hypothetical.gone else analysed.status,
        Code.GONE() if hypothetical.gone else analysed.reason,
        columns=list(names),
        fingerprints=[fp.hex() for fp in fps],
        expressions=[None] * len(names),
        rows_fingerprint=rows_fp.hex(),
        order=analysed.order,
        introspects=list(analysed.introspects),
        incidental=analysed.incidental,
    )
    return LinkedNode(analysis, relation, deps, linked.rows)
