"""The gate's rules about personal data: where it is not tagged, who sees it, and which tags go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec

from dbt_ripple.artifacts import Column, Node, Project, declassified, is_public, referenced_columns
from dbt_ripple.changes import Comparison
from dbt_ripple.governance.contracts import Breach, on_base
from dbt_ripple.graph.column_edges import value_edges
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import BUILT, PersonalData, PiiColumn, declared_columns
from dbt_ripple.reasons import Code


class Sides(NamedTuple):
    """What the rules about personal data look at: one project before and after, or several in one.

    Attributes:
        own: the names of the packages that are judged.
    """

    base: Project
    base_analysis: Analysis
    head: Project
    head_analysis: Analysis
    own: frozenset[str]


def pii_breaches(comparison: Comparison) -> Iterator[Breach]:
    """Personal data in columns that nobody tagged, and in what anybody may see."""
    base, head = comparison.base, comparison.head
    own = frozenset({str(head.name)}) | head.local_packages
    yield from pii_breaches_of(
        Sides(base, comparison.base_analysis, head, comparison.head_analysis, own)
    )


def pii_breaches_of(sides: Sides) -> Iterator[Breach]:
    """The same of whatever is on the two sides.

    What base tags and head does not is a finding, and counts as on base in this change: whoever takes a
    tag away does not judge what it was there for. So does what base calls public.
    """
    for unique_id in _reading_less(sides):
        yield Breach("pii_tag_removed", unique_id, None, Code.READS_LESS())
    removed = _removed_tags(sides)
    sides = sides._replace(head=_with_tags_of_base(sides, removed))
    data = PersonalData(sides.head, sides.head_analysis)
    for unique_id, tags in removed.items():
        for tag in tags:
            if tag.is_own:
                reason = Code.PII_TAG_REMOVED(pii=tag.pii)
                yield Breach("pii_tag_removed", unique_id, tag.column, reason)
    yield from _declassified(sides, data.columns)
    yield from _may_pass_on(sides, data.columns)
    findings = _pii(sides.head, data.columns, sides.own)
    if not findings:
        return
    declared = _declared_as_on_head(sides, findings.values(), removed)
    # Who may see it is another matter: that is as it was.
    before = _pii(sides.base, data.certain_on(declared, sides.base_analysis), sides.own)
    asked = {pii.unique_id for key, pii in findings.items() if key not in before}
    if asked:
        columns = PersonalData(declared, sides.base_analysis, asked).columns
        before |= _pii(sides.base, columns, sides.own)
    for (rule, unique_id, key), pii in findings.items():
        old = (rule, unique_id, key) in before
        shown = rule == "pii_exposed"
        if pii.source_id == unique_id and pii.source_column == pii.column:
            reason = (Code.SHOWS_PII if shown else Code.UNTAGGED_PII)(pii=pii.pii)
        else:
            source = sides.head.nodes.get(pii.source_id)
            reason = (Code.SHOWS_PII_OF if shown else Code.UNTAGGED_PII_OF)(
                pii=pii.pii,
                name=source.display_name if source else pii.source_id,
                column=pii.source_column,
            )
        yield Breach(rule, unique_id, pii.column, on_base(reason, old), old=old)


def _declared_as_on_head(
    sides: Sides, pii_columns: Iterable[PiiColumn], removed: dict[str, list[_Tag]]
) -> Project:
    """Base with head's declarations of personal data: declaring what is there already is no change.

    Where a value went on base before anybody called it personal, it is no finding of this change.
    """
    nodes = dict(sides.base.nodes)
    for unique_id in dict.fromkeys(pii.source_id for pii in pii_columns):
        then, now = nodes.get(unique_id), sides.head.nodes[unique_id]
        if then is not None:
            moved = {tag.column.lower() for tag in removed.get(unique_id, ()) if tag.has_moved}
            columns = {n: c for n, c in now.columns.items() if (c.name or n).lower() not in moved}
            nodes[unique_id] = msgspec.structs.replace(
                then, columns=columns, meta=now.meta, tags=now.tags
            )
    return sides.base.having(nodes=nodes)


def _pii(
    project: Project, columns: Iterable[PiiColumn], own: Collection[str]
) -> dict[tuple[str, str, str], PiiColumn]:
    findings = {}
    for pii in columns:
        node = project.nodes.get(pii.unique_id)
        if node is None or node.package_name not in own:
            continue
        key = (pii.unique_id, pii.column.lower())
        if pii.origin == "inherited" and node.resource_type in BUILT:
            findings["pii_untagged", *key] = pii
        if pii.origin != "declassified" and is_public(node):
            findings["pii_exposed", *key] = pii
    return findings


class _Tag(NamedTuple):
    """A tag that base has and head does not.

    Attributes:
        is_own: whether the value is there without it; else it went with its column, or stayed where
            something else stands now, and is laid on what that column was computed from.
        has_moved: whether the value was somewhere else on base.
    """

    column: str
    pii: str
    is_own: bool
    has_moved: bool = False


def _removed_tags(sides: Sides) -> dict[str, list[_Tag]]:
    """What base tags as personal data and head does not, by the nodes of head that it is laid on."""
    before = declared_columns(sides.base, sides.base_analysis)
    if not before:
        return {}
    now = declared_columns(sides.head, sides.head_analysis)
    removed: dict[str, dict[str, _Tag]] = {}
    # What its column does not hold any more.
    gone: dict[tuple[str, str], str] = {}
    for unique_id, columns in before.items():
        present = _columns_of(sides, unique_id)
        edited = _is_edited(sides, unique_id)
        for key, (column, kind) in columns.items():
            if key in now.get(unique_id, {}):
                if edited and _value(sides.base_analysis, unique_id, key) != _value(
                    sides.head_analysis, unique_id, key
                ):
                    gone[unique_id, key] = kind
            elif key in present:
                removed.setdefault(unique_id, {})[key] = _Tag(column, kind, True)
            else:
                gone[unique_id, key] = kind
    # Where its column holds something else now, it goes with the value; what has none left, likewise.
    stayed = {k: kind for k, kind in gone.items() if k[1] in now.get(k[0], {})}
    moved = _moved(sides, stayed)
    laid = {k for k in stayed if _value(sides.base_analysis, *k) in moved}
    left = {k: kind for k, kind in gone.items() if k not in laid}
    for (parent, column), child, child_column in (
        value_edges(sides.base_analysis.edges, {unique_id for unique_id, _ in left}) if left else ()
    ):
        lost = left.get((child, child_column.lower()))
        key = column.lower()
        if lost is None or column == ROWS or parent not in sides.head.nodes:
            continue
        laid.add((child, child_column.lower()))
        if key not in before.get(parent, {}):
            removed.setdefault(parent, {}).setdefault(key, _Tag(column, lost, False))
    moved |= _moved(sides, {k: kind for k, kind in left.items() if k not in laid})
    for unique_id, key, tag in (place for places in moved.values() for place in places):
        if key not in now.get(unique_id, {}):
            removed.setdefault(unique_id, {})[key] = tag
    return {unique_id: [*tags.values()] for unique_id, tags in removed.items()}


def _moved(
    sides: Sides, gone: dict[tuple[str, str], str]
) -> dict[str, list[tuple[str, str, _Tag]]]:
    """Where values stand now, by the value: the first columns that hold it, and did not."""
    kinds = {
        value: kind
        for (unique_id, key), kind in gone.items()
        if (value := _value(sides.base_analysis, unique_id, key)) is not None
    }
    if not kinds:
        return {}
    found = {
        (unique_id, column.lower()): (value, _Tag(column, kind, True, has_moved=True))
        for unique_id, analysed in sides.head_analysis.nodes.items()
        if unique_id in sides.head.nodes
        for column, value in zip(analysed.columns, analysed.fingerprints, strict=False)
        if (kind := kinds.get(value)) is not None
    }
    holders = {unique_id for unique_id, _ in found}
    below = {
        (child, column.lower())
        for (parent, parent_column), child, column in value_edges(
            sides.head_analysis.edges, holders
        )
        if (parent, parent_column.lower()) in found
    }
    moved: dict[str, list[tuple[str, str, _Tag]]] = {}
    for place, (value, tag) in found.items():
        if place not in below and value != _value(sides.base_analysis, *place):
            moved.setdefault(value, []).append((*place, tag))
    return moved


def _is_edited(sides: Sides, unique_id: str) -> bool:
    then, node = sides.base.nodes[unique_id], sides.head.nodes.get(unique_id)
    return node is not None and node.compiled_code != then.compiled_code


def _value(analysis: Analysis, unique_id: str, key: str) -> str | None:
    """The fingerprint of a column; None where it has none."""
    analysed = analysis.nodes.get(unique_id)
    if analysed is None:
        return None
    columns = zip(analysed.columns, analysed.fingerprints, strict=False)
    return next((value for column, value in columns if column.lower() == key), None)


def _columns_of(sides: Sides, unique_id: str) -> Collection[str]:
    """The columns that a node has on head, in lower case; where that is not known, base's.

    What a source holds is not up to the project: to declare less of it takes nothing out of it.
    """
    then, node = sides.base.nodes[unique_id], sides.head.nodes.get(unique_id)
    listed = sides.head.catalog.get(unique_id, ())
    analysed = sides.head_analysis.nodes.get(unique_id)
    if then.resource_type == "source" and (node is None or not listed):
        return column_names(then, sides.base_analysis.nodes.get(unique_id), ())
    return column_names(node, analysed, listed) if node is not None else ()


def _reading_less(sides: Sides) -> Iterator[str]:
    """Public consumers that are said to read less of what holds personal data than on base."""
    for unique_id, then in sides.base.nodes.items():
        now = sides.head.nodes.get(unique_id)
        if then.resource_type != "exposure" or now is None or not is_public(then):
            continue
        before, after = referenced_columns(then), referenced_columns(now)
        if after is not None and (before is None or not {*before} <= {*after}):
            yield unique_id


def _with_tags_of_base(sides: Sides, removed: dict[str, list[_Tag]]) -> Project:
    """Head with the tags that base has, too, and public what is so on base."""
    head = sides.head
    nodes: dict[str, Node] = {}
    now = declared_columns(head, sides.head_analysis, removed.keys() & head.nodes.keys())
    for unique_id, tags in removed.items():
        if (node := head.nodes.get(unique_id)) is None:
            continue
        keys = {(column.name or name).lower(): name for name, column in node.columns.items()}
        columns = dict(node.columns)
        # A tag on a single column takes the place of one on the node: that is written out.
        kinds = dict(now.get(unique_id, {}).values()) | {tag.column: tag.pii for tag in tags}
        for name, kind in kinds.items():
            key = keys.get(name.lower(), name)
            column = columns.get(key, Column(name=name))
            columns[key] = msgspec.structs.replace(column, meta={**column.meta, "pii": kind})
        nodes[unique_id] = msgspec.structs.replace(node, columns=columns)
    for unique_id, then in sides.base.nodes.items():
        hidden = nodes.get(unique_id) or head.nodes.get(unique_id)
        if hidden is not None and is_public(then) and not is_public(hidden):
            meta = {**hidden.meta, "public": True}
            nodes[unique_id] = msgspec.structs.replace(hidden, meta=meta)
    return head.having(nodes={**head.nodes, **nodes}) if nodes else head


def _may_pass_on(sides: Sides, columns: Iterable[PiiColumn]) -> Iterator[Breach]:
    """Nodes that cannot be analysed, of which no column is known, below personal data."""
    held: dict[str, PiiColumn] = {}
    for pii in columns:
        if pii.origin != "declassified":
            held.setdefault(pii.unique_id, pii)
    for unique_id, node in sides.head.nodes.items():
        analysed = sides.head_analysis.nodes.get(unique_id)
        if (
            node.package_name not in sides.own
            or node.resource_type not in BUILT
            or analysed is None
            or not analysed.is_unanalysed
            or unique_id in held
            or column_names(node, analysed, sides.head.catalog.get(unique_id, ()))
        ):
            continue
        above = [held[u] for u in sides.head.parents.get(unique_id, ()) if u in held]
        if not above:
            continue
        before = sides.base_analysis.nodes.get(unique_id)
        old = before is not None and before.is_unanalysed and unique_id in sides.base.nodes
        because = analysed.reason or Code.NO_REASON_GIVEN()
        name = sides.head.nodes[above[0].unique_id].display_name
        column, kind = above[0].column, above[0].pii
        reason = Code.MAY_PASS_ON(name=name, column=column, pii=kind, because=because)
        rule = "pii_exposed" if is_public(node) else "pii_untagged"
        yield Breach(rule, unique_id, None, on_base(reason, old), old=old, mild=True)


def _declassified(sides: Sides, columns: Iterable[PiiColumn]) -> Iterator[Breach]:
    """What personal data reaches, and head newly says to hold none."""
    for pii in columns:
        node = sides.head.nodes.get(pii.unique_id)
        if pii.origin != "declassified" or node is None or node.package_name not in sides.own:
            continue
        then = sides.base.nodes.get(pii.unique_id)
        declared = {
            (column.name or name).lower(): column
            for name, column in (then.columns if then is not None else {}).items()
        }
        before = declared.get(pii.column.lower())
        if before is None or not declassified(before):
            reason = Code.PII_DECLASSIFIED(reason=pii.reason or "")
            yield Breach("pii_tag_removed", pii.unique_id, pii.column, reason)
