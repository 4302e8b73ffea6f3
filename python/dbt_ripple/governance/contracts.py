"""What public and contracted relations promise, and whether the change keeps it.

A relation makes promises if, on base, dbt calls it public, its contract is enforced, or it has a
contract_version (a model's version, or ``meta.contract_version``). Its columns may then only be
removed, renamed, retyped or redefined together with the contract_version, and that may only change
with a text on how to migrate. A column is redefined if its fingerprint changed: by its own SQL or by
anything above it, down to the sources. A column that changed only because something above it no
longer compiles is left to `reader_broken`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime
from typing import Final

import msgspec

from dbt_ripple.artifacts import Node, Project, contract_version
from dbt_ripple.changes import Comparison, NodeChange
from dbt_ripple.changes.column_types import retyped
from dbt_ripple.changes.comparison import Vertex
from dbt_ripple.changes.verdict import verdict_of
from dbt_ripple.governance.moved_relations import MovedRelations, is_exposed, is_known
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.reasons import Code, Reason

_DEPRECATED: Final = frozenset({"model", "seed", "snapshot", "source", "metric", "saved_query"})
_RELATIONS: Final = frozenset({"model", "seed", "snapshot", "source"})


class Breach(msgspec.Struct, frozen=True):
    """One place where a rule is not kept.

    Attributes:
        old: base does not keep it there either.
        usual: base keeps it nowhere: it is a finding only where ripple.yml asks for the rule.
        mild: it only warns, where the rule blocks.
    """

    rule: str
    unique_id: str | None
    column: str | None
    reason: Reason
    old: bool = False
    usual: bool = False
    mild: bool = False


def on_base(reason: Reason, old: bool) -> Reason:
    """A reason, and whether it is so on base already."""
    return Code.ALREADY_ON_BASE(because=reason) if old else reason


def promises(node: Node) -> bool:
    """Whether others may rely on the node's columns."""
    return node.access == "public" or node.contract_enforced or contract_version(node) is not None


def promise_ends(node: Node) -> date | None:
    """The day from which the node may be removed: its deprecation_date, or that of its meta."""
    return _date(node.deprecation_date) or _date(node.meta.get("deprecation_date"))


def column_ends(node: Node, column: str) -> date | None:
    """The day from which a column may be removed: the ``deprecation_date`` of its meta."""
    for name, declared in node.columns.items():
        if (declared.name or name).lower() == column.lower():
            return _date(declared.meta.get("deprecation_date"))
    return None


def _date(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value).strip()[:10]) if value else None
    except ValueError:
        return None


def in_grace(node: Node, day: date) -> list[Reason]:
    """Why a node may not be removed yet: it is deprecated, and readers still have time."""
    ends = promise_ends(node)
    if ends is None or day >= ends:
        return []
    return [Code.REMOVED_IN_GRACE(name=node.display_name, date=ends.isoformat())]


def contract_breaches(comparison: Comparison, today: date | None = None) -> Iterator[Breach]:
    """Every promise of base that head does not keep.

    Args:
        comparison: the two sides.
        today: the day by which a grace period is over; by default this one, in UTC.
    """
    day = today or datetime.now(UTC).date()
    base, head = comparison.base, comparison.head
    verdict = verdict_of(comparison)
    gone, broken = verdict.vanished, verdict.relations
    moved = MovedRelations(base, head)
    for unique_id, then in base.nodes.items():
        now = head.nodes.get(unique_id)
        if now is None and then.resource_type in _DEPRECATED:
            for reason in in_grace(then, day):
                yield Breach("column_removed", unique_id, None, reason)
        if then.resource_type not in _RELATIONS:
            continue
        if now is not None:
            removed_now = _removed(comparison, unique_id, gone.get(unique_id, ()))
            yield from _removed_in_grace(then, removed_now, day)
        if now is None:
            if promises(then) and promise_ends(then) is None:
                yield from _without_node(comparison, then, moved)
            continue
        if not promises(then):
            if is_known(then, base):
                yield from _moved(comparison, then, moved)
            continue
        before, after = contract_version(then), contract_version(now)
        if before is not None and before != after:
            yield from _without_migration(unique_id, then, now, before, after)
        if before is not None and after is not None and after != before:
            continue
        breaches = [
            *_moved(comparison, then, moved),
            *_promised(comparison, then, gone.get(unique_id, ()), broken),
        ]
        if after is not None and before is None and breaches:
            # The first version is a step like any other: it allows what comes with a word on migration.
            if not _says_how_to_migrate(then, now):
                unexplained = Code.FIRST_CONTRACT_VERSION_UNEXPLAINED(
                    version=after, broken=[breach.reason for breach in breaches]
                )
                rule = "contract_version_without_migration"
                yield Breach(rule, unique_id, None, unexplained)
            continue
        yield from breaches
    yield from _new_versions(comparison)


def _promised(
    comparison: Comparison, then: Node, gone: Collection[str], broken: Collection[str]
) -> Iterator[Breach]:
    """What is not kept of a relation that is there on both sides."""
    unique_id = then.unique_id
    change = comparison.changed.get(unique_id)
    for name in gone:
        if column_ends(then, name) is None and (change is None or name not in change.removed):
            yield Breach("column_removed", unique_id, name, Code.REMOVED_FROM_SOURCE())
    types = retyped(comparison.base, comparison.head, unique_id)
    for name, (was, is_) in types.items():
        yield Breach("column_retyped", unique_id, name, Code.RETYPED(was=was, now=is_))
    if change is not None:
        yield from _columns(comparison, change, broken)


def _without_node(comparison: Comparison, then: Node, moved: MovedRelations) -> Iterator[Breach]:
    """What is not kept of a relation whose node is gone.

    Another one may be what its name means now (a version of it), or stand in its place.
    """
    latest = _now_versioned(then, comparison.head)
    others = [latest] if latest is not None else moved.there_now(then)
    if others:
        yield from _stands_for(comparison, then, others)
    else:
        removed = Code.RELATION_REMOVED(name=then.display_name)
        yield Breach("column_removed", then.unique_id, None, removed)
    if latest is not None and not moved.there_now(then):
        place = moved.place(latest)
        moved_to = Code.RELATION_MOVED(was=moved.place(then), now=place)
        yield Breach("column_removed", then.unique_id, None, moved_to, mild=True)


def _moved(comparison: Comparison, then: Node, moved: MovedRelations) -> Iterator[Breach]:
    """What is not kept of a relation that is elsewhere now."""
    now = comparison.head.nodes[then.unique_id]
    if not moved.is_elsewhere(then, now):
        return
    others = [node for node in moved.there_now(then) if node.unique_id != then.unique_id]
    if others:
        yield from _stands_for(comparison, then, others)
        return
    if now.is_ephemeral:
        reason = Code.RELATION_NOT_BUILT(name=then.display_name)
    else:
        reason = Code.RELATION_MOVED(was=moved.place(then), now=moved.place(now))
    certain = promises(then) or is_exposed(then, comparison.base)
    yield Breach("column_removed", then.unique_id, None, reason, mild=not certain)


def _stands_for(comparison: Comparison, then: Node, others: Collection[Node]) -> Iterator[Breach]:
    """What readers of a relation miss who find another one under its name."""
    base, head = comparison.base_analysis.nodes, comparison.head_analysis.nodes
    before = base.get(then.unique_id)
    for other in others:
        now = head.get(other.unique_id)
        if before is None or now is None:
            continue
        names = dict(zip(map(str.lower, now.columns), now.fingerprints, strict=False))
        fingerprints = dict(zip(before.columns, before.fingerprints, strict=False))
        unlisted = now.is_unanalysed and not now.columns
        gone = [] if unlisted else [name for name in before.columns if name.lower() not in names]
        for name in gone:
            if column_ends(then, name) is None:
                reason = Code.REMOVED_BY_OTHER(name=other.display_name)
                yield Breach("column_removed", then.unique_id, name, reason)
        same = before.rows_fingerprint == now.rows_fingerprint and all(
            names.get(name.lower()) in (fingerprint, None)
            for name, fingerprint in fingerprints.items()
        )
        if unlisted or not same:
            reason = Code.OTHER_STANDS_THERE(name=other.display_name)
            yield Breach("column_redefined", then.unique_id, None, reason)


def _removed(comparison: Comparison, unique_id: str, gone: Collection[str]) -> dict[str, str]:
    """The columns that a relation has no more, each with its new name, if it has one."""
    change = comparison.changed.get(unique_id)
    if change is None:
        return dict.fromkeys(gone, "")
    renamed = {was: name for name, was in change.renamed.items()}
    return {name: renamed.get(name, "") for name in dict.fromkeys([*gone, *change.removed])}


def _removed_in_grace(then: Node, removed: dict[str, str], day: date) -> Iterator[Breach]:
    """The columns that are removed before the day that was announced, promised or not."""
    for name, renamed in removed.items():
        ends = column_ends(then, name)
        if ends is not None and day < ends:
            rule = "column_renamed" if renamed else "column_removed"
            reason = Code.REMOVED_IN_GRACE(name=name, date=ends.isoformat())
            yield Breach(rule, then.unique_id, name, reason)


def _columns(
    comparison: Comparison, change: NodeChange, broken: Collection[str]
) -> Iterator[Breach]:
    unique_id = change.unique_id
    then = comparison.base.nodes[unique_id]
    renamed = set(change.renamed.values())
    # What is announced to go is promised until its day, and no longer.
    for name in change.removed:
        if name not in renamed and column_ends(then, name) is None:
            yield Breach("column_removed", unique_id, name, Code.REMOVED())
    for name, was in change.renamed.items():
        if column_ends(then, was) is None:
            yield Breach("column_renamed", unique_id, was, Code.RENAMED(to=name))
    if unique_id in broken:
        return
    sides = (comparison.base_analysis, comparison.head_analysis)
    if any(side.nodes[unique_id].status == "opaque" for side in sides):
        if change.rows or change.redefined:
            yield Breach(
                "column_redefined",
                unique_id,
                None,
                Code.MAY_BE_REDEFINED(),
            )
        return
    changed: list[tuple[str | None, Vertex]] = [(c, (unique_id, c)) for c in change.redefined]
    if change.rows:
        changed.append((None, (unique_id, ROWS)))
    for column, vertex in changed:
        start, reader, *_ = (*comparison.way_to(vertex), None)
        if start[0] in broken or (reader and reader[0] in broken and _is_new(comparison, start)):
            continue  # who cannot find a column is told, and has not read one that is new
        if start[0] == unique_id:
            reason = Code.ROWS_REDEFINED() if column is None else Code.REDEFINED()
        else:
            code = Code.ROWS_REDEFINED_BY if column is None else Code.REDEFINED_BY
            reason = code(where=comparison.spoken(start))
        yield Breach("column_redefined", unique_id, column, reason)


def _is_new(comparison: Comparison, vertex: Vertex) -> bool:
    change = comparison.changed.get(vertex[0])
    return change is not None and vertex[1] in change.added


def _without_migration(
    unique_id: str, then: Node, now: Node, before: str, after: str | None
) -> Iterator[Breach]:
    if after is not None and _says_how_to_migrate(then, now):
        return
    what = (
        Code.CONTRACT_VERSION_REMOVED(version=before)
        if after is None
        else Code.CONTRACT_VERSION_UNEXPLAINED(was=before, now=after)
    )
    yield Breach("contract_version_without_migration", unique_id, None, what)


def _says_how_to_migrate(then: Node, now: Node) -> bool:
    migration = now.meta.get("migration")
    return bool(migration) and migration != then.meta.get("migration")


def _now_versioned(then: Node, head: Project) -> Node | None:
    """The version that the name of a model means which had none: the latest one."""
    if then.version is not None:
        return None
    versions = [
        node
        for node in head.of_type("model")
        if (node.name, node.package_name) == (then.name, then.package_name)
        and node.version is not None
    ]
    latest = (node for node in versions if str(node.version) == str(node.latest_version))
    return next(latest, versions[-1] if versions else None)


def _is_latest(node: Node) -> bool:
    return str(node.version) == str(node.latest_version)


def _new_versions(comparison: Comparison) -> Iterator[Breach]:
    """A version that is newly the latest has to say when the older ones will be removed."""
    base, head = comparison.base, comparison.head
    for unique_id, node in head.nodes.items():
        if (
            node.resource_type != "model"
            or node.version is None
            or not _is_latest(node)
            or ((then := base.nodes.get(unique_id)) is not None and _is_latest(then))
            or node.meta.get("migration")
        ):
            continue
        older = [
            other
            for other in head.of_type("model")
            if (other.name, other.package_name) == (node.name, node.package_name)
            and other.version is not None
            and other.unique_id in base.nodes
            and other.unique_id != unique_id
            and other.deprecation_date is None
        ]
        if older:
            names = sorted(other.display_name for other in older)
            yield Breach(
                "contract_version_without_migration",
                unique_id,
                None,
                Code.NEW_VERSION_UNEXPLAINED(name=node.display_name, names=names),
            )
