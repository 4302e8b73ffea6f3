"""What executing a pair of queries shows, compared with their fingerprints."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from engine import Result
from generators.schemas import OF_DIALECT
from tables import table

from dbt_ripple.flow.canonical import canonical, in_other_words
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold_stored
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.row_constraints import KnownConstraints
from dbt_ripple.flow.unused_ctes import checked
from dbt_ripple.graph.unresolved_names import engine_refuses, without_words


@dataclass
class Prints:
    """A query as the analysis sees it: opaque with a reason, or its relation with fingerprints.

    `proven` is the relation as linked with what is known of the tables' rows (rules 14 and 15).
    """

    opaque: str | None
    relation: Relation | None = None
    proven: Relation | None = None
    missing: tuple[str, ...] = ()
    canonical: Relation | None = None
    """In the form of the second comparison, where it has one."""
    unbuilt: Relation | None = None
    """In the form of the second comparison where no build evaluates it, as of a view."""
    refused: tuple[str, ...] = ()
    """Of what is missing, the names for which the engine is said to refuse the query."""
    raised: str = ""


@dataclass
class Seen:
    """One relation's fingerprints, as a reader finds them."""

    relation: Relation
    missing: tuple[str, ...]
    dialect: str

    def rows(self) -> bytes:
        return self.written(self.relation.rows.fp)

    def column(self, names: list[str], at: int) -> bytes | None:
        """The fingerprint of a column that the engine shows under a name."""
        relation = self.relation
        ours = relation.names
        if not relation.unlisted and len(ours) == len(names) and not ours[at].isidentifier():
            # Of a name that the engine makes up, the warehouse knows better (`graph.linking.query_result`).
            return self.written(relation.fps[at])
        of_column = relation.get(fold_stored(names[at], self.dialect), names[at])
        return None if of_column is None else self.written(of_column[0])

    def written(self, fp: bytes) -> bytes:
        if not self.missing:
            return fp
        return digest(digest(b"broken", *(m.encode() for m in self.missing)), fp)


def prints(
    sql: str,
    dialect: str,
    known_constraints: KnownConstraints | None = None,
    *,
    in_a_view: bool = False,
) -> Prints:
    """Lower and link a query.

    Args:
        sql: the query.
        dialect: of it.
        known_constraints: what is known of rows; both queries of a pair have to be given the same.
        in_a_view: whether it is asked, too, how it is compared where no build evaluates it.

    Raises:
        UnknownTableError: it reads something else than the small tables.
    """
    lowered = lower(sql, dialect)
    if lowered.rel is None:
        return Prints(str(lowered.reason))
    tables = OF_DIALECT[dialect]
    linked = link(lowered, functools.partial(table, tables=tables), dialect)
    proven = None
    if known_constraints is not None:
        table_with_facts = functools.partial(
            table, known_constraints=known_constraints, tables=tables
        )
        proven = link(lowered, table_with_facts, dialect, known_constraints).relation
        known_constraints.steps.clear()
    missing = tuple(linked.missing)
    names = refused(sql, dialect) if missing else ()
    table_with_facts = functools.partial(table, tables=tables)

    def form(*, is_built: bool) -> Relation | None:
        types = lambda key: tables.get(key, {})  # noqa: E731
        found = canonical(sql, dialect, linked, table_with_facts, types=types, is_built=is_built)
        return found.linked.relation if found is not None else None

    unbuilt = form(is_built=False) if in_a_view else None
    return Prints(
        None, linked.relation, proven, missing, form(is_built=True), unbuilt, refused=names
    )


def reworded(sql: str, dialect: str) -> tuple[str, str] | None:
    """A query as it is, and as the rules of the second comparison rewrite it; None without them."""
    lowered = lower(sql, dialect)
    if lowered.rel is None:
        return None
    tables = OF_DIALECT[dialect]
    resolver = functools.partial(table, tables=tables)
    linked = link(lowered, resolver, dialect)
    return in_other_words(sql, dialect, linked, resolver, lambda key: tables.get(key, {}))


def refused(sql: str, dialect: str) -> tuple[str, ...]:
    """The names for which a model of this query would be called broken (`graph.broken_nodes`)."""
    lowered, follows = without_words(sql, dialect, unsure=True)
    if lowered.rel is None or not follows:
        return ()
    tables = functools.partial(table, tables=OF_DIALECT[dialect])
    linked = link(checked(lowered, dialect, surely=True), tables, dialect)
    return tuple(n for n in linked.missing if engine_refuses(linked, n, dialect, True) is True)


@dataclass
class Verdict:
    """What became of a pair."""

    differed: bool
    missed: str = ""
    opaque: bool = False
    broken: str = ""


def judge(base: Result, head: Result, b: Prints, h: Prints, dialect: str) -> Verdict:
    """Rows or a column differ -> a fingerprint differs, or one side is opaque."""
    theirs = {fold_stored(n, dialect): i for i, n in enumerate(head.names)}
    pairs = [
        (i, theirs[key])
        for i, n in enumerate(base.names)
        if (key := fold_stored(n, dialect)) in theirs
    ]
    differed = set(map(str.lower, base.names)) != set(map(str.lower, head.names)) or projected(
        base, [i for i, _ in pairs]
    ) != projected(head, [j for _, j in pairs])
    raised = b.raised or h.raised
    if raised:
        return Verdict(differed, f"raised {raised}")
    if b.opaque is not None or h.opaque is not None:
        return Verdict(differed, opaque=True)
    broken = ", ".join((*b.refused, *h.refused))
    missed = ""
    if differed:
        ways = (
            (b.relation, h.relation, ""),
            (b.proven, h.proven, "proven "),
            (b.canonical, h.canonical, "reworded "),
        )
        for one, other, how in ways:
            if one is not None and other is not None and not missed:
                seen = Seen(one, b.missing, dialect), Seen(other, h.missing, dialect)
                missed = not_seen(base, head, pairs, *seen)
                missed = how + missed if missed else ""
    return Verdict(differed, missed, broken=broken)


def judge_unbuilt(base: Result | str, head: Result | str, b: Prints, h: Prints) -> Verdict:
    """Of a view: where one of both fails when it is read, a fingerprint differs, or one side is opaque."""
    differed = isinstance(base, str) != isinstance(head, str)
    raised = b.raised or h.raised
    if raised:
        return Verdict(differed, f"raised {raised}")
    if b.opaque is not None or h.opaque is not None:
        return Verdict(differed, opaque=True)
    ways = ((b.relation, h.relation, "fails"), (b.unbuilt, h.unbuilt, "reworded, fails"))
    for one, other, how in ways if differed else ():
        if (
            one is not None
            and other is not None
            and (one.rows.fp, one.fps) == (other.rows.fp, other.fps)
        ):
            return Verdict(True, how)
    return Verdict(differed)


def not_seen(
    base: Result, head: Result, pairs: list[tuple[int, int]], before: Seen, now: Seen
) -> str:
    """What of a difference no fingerprint shows; empty where all of it is shown.

    Where the row sets are said to be the same, there are as many rows; where columns are, too, they
    have the same values in the same rows.
    """
    if before.rows() != now.rows():
        return ""
    if len(base.rows) != len(head.rows):
        return "rows"
    same = [(i, j) for i, j in pairs if before.column(base.names, i) == now.column(head.names, j)]
    if projected(base, [i for i, _ in same]) == projected(head, [j for _, j in same]):
        return ""
    wrong = [(i, j) for i, j in same if projected(base, [i]) != projected(head, [j])]
    if not wrong:
        return "columns together"
    unknown = all(before.column(base.names, i) is None for i, _ in wrong)
    names = ", ".join(base.names[i] for i, _ in wrong)
    return f"{'unknown ' if unknown else ''}column {names}"


def projected(result: Result, at: list[int]) -> Counter[Any]:
    return Counter(tuple(row[i] for i in at) for row in result.rows)
