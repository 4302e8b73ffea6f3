"""What executing a pair of queries shows, held against their fingerprints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from engine import Result
from tables import table

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.names import fold_stored
from dbt_ripple.flow.relation import Relation


@dataclass
class Prints:
    """A query as the analysis sees it: opaque with a reason, or a relation with its fingerprints."""

    opaque: str | None
    relation: Relation | None = None
    missing: tuple[str, ...] = ()

    def rows(self) -> bytes:
        assert self.relation is not None
        return self.said(self.relation.rows_fp)

    def column(self, names: list[str], at: int, dialect: str) -> bytes | None:
        """The fingerprint of a column that the engine shows under a name, as a reader finds it."""
        relation = self.relation
        assert relation is not None
        ours = relation.names
        if not relation.rest and len(ours) == len(names) and not ours[at].isidentifier():
            # Of a name that the engine makes up, the warehouse knows better (`graph.linker`).
            return self.said(relation.fps[at])
        found = relation.get(fold_stored(names[at], dialect), names[at])
        return None if found is None else self.said(found[0])

    def said(self, fp: bytes) -> bytes:
        if not self.missing:
            return fp
        return digest(digest(b"broken", *(m.encode() for m in self.missing)), fp)


def prints(sql: str, dialect: str) -> Prints:
    """Lower and link a query.

    Raises:
        LookupError: it reads something else than the small tables.
    """
    lowered = lower(sql, dialect)
    if lowered.rel is None:
        return Prints(lowered.reason or "no query")
    linked: Linked = link(lowered, table, dialect)
    return Prints(None, linked.relation, tuple(linked.missing))


@dataclass
class Verdict:
    """What became of a pair."""

    differed: bool
    missed: str = ""
    opaque: bool = False
    broken: bool = False


def judge(base: Result, head: Result, b: Prints, h: Prints, dialect: str) -> Verdict:
    """Rows or a column differ -> a fingerprint differs, or one side is opaque."""
    theirs = {fold_stored(n, dialect): i for i, n in enumerate(head.names)}
    pairs = [
        (i, theirs[key])
        for i, n in enumerate(base.names)
        if (key := fold_stored(n, dialect)) in theirs
    ]
    ones, others = [i for i, _ in pairs], [j for _, j in pairs]
    differed = (
        base.names != head.names
        and sorted(map(str.lower, base.names)) != sorted(map(str.lower, head.names))
    ) or projected(base, ones) != projected(head, others)
    if b.opaque is not None or h.opaque is not None:
        return Verdict(differed, opaque=True)
    broken = bool(b.missing or h.missing)
    if not differed or b.rows() != h.rows():
        return Verdict(differed, broken=broken)
    if len(base.rows) != len(head.rows):
        return Verdict(True, "rows", broken=broken)
    same = [
        (i, j)
        for i, j in pairs
        if b.column(base.names, i, dialect) == h.column(head.names, j, dialect)
    ]
    if projected(base, [i for i, _ in same]) == projected(head, [j for _, j in same]):
        return Verdict(differed, broken=broken)
    wrong = [base.names[i] for i, j in same if projected(base, [i]) != projected(head, [j])] or [
        "together"
    ]
    unknown = all(b.column(base.names, i, dialect) is None for i, _ in same)
    return Verdict(
        True, ("unknown " if unknown else "") + f"column {', '.join(wrong)}", broken=broken
    )


def projected(result: Result, at: list[int]) -> Counter[Any]:
    return Counter(tuple(row[i] for i in at) for row in result.rows)
