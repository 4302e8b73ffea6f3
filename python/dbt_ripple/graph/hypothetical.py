"""A hypothetical relation: with columns renamed, dropped, added or of another type."""

from __future__ import annotations

from typing import Final

import msgspec

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.ir import IDENTITY
from dbt_ripple.flow.relation import Relation
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.relations import LinkedNode
from dbt_ripple.reasons import Code

GONE: Final = "is gone"
"""Reason of a relation that is supposed to be removed."""


class HypotheticalChange(msgspec.Struct, frozen=True):
    """What a relation is supposed to become.

    Attributes:
        seen: the relation as it was analysed.
        renamed: new names by old ones.
        dropped: columns that are no more.
        retyped: new types by column.
        gone: the relation is no more.
        added: the types of new columns, by name; they stand behind the others.
    """

    seen: NodeAnalysis
    renamed: dict[str, str] = {}
    dropped: frozenset[str] = frozenset()
    retyped: dict[str, str] = {}
    gone: bool = False
    added: dict[str, str] = {}


def relation_after(
    linked: LinkedNode, hypothetical: HypotheticalChange, dialect: str
) -> LinkedNode:
    """The relation as supposed; of all its columns, those that only their use showed included.

    A renamed column keeps its fingerprint: whoever passes it on by ``*`` hands on the same values
    under another name. Nothing else can be read from it than its columns.
    """
    seen, was = hypothetical.seen, linked.relation
    deps_of = dict(zip(linked.analysis.columns, linked.deps, strict=False))
    names, fps, deps = [], [], []
    for name, fingerprint in zip(seen.columns, seen.fingerprints, strict=True):
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
    rows_fp = digest(b"gone", was.rows_fp) if hypothetical.gone else was.rows_fp
    relation = Relation(
        names,
        [fold_stored(name, dialect) for name in names],
        fps,
        [{(seen.unique_id, name): IDENTITY} for name in names],
        [],
        rows_fp,
        was.rows,
        was.side_key,
        was.joins,
        was.order,
        incidental=was.incidental,
    )
    analysis = NodeAnalysis(
        seen.unique_id,
        "broken" if hypothetical.gone else seen.status,
        Code.GONE() if hypothetical.gone else seen.reason,
        list(names),
        [fp.hex() for fp in fps],
        [None] * len(names),
        rows_fp.hex(),
        seen.order,
        list(seen.introspects),
        seen.incidental,
    )
    return LinkedNode(analysis, relation, deps, linked.rows)
