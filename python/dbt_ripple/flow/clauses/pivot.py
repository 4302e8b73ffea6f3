"""PIVOT and UNPIVOT in FROM."""

from __future__ import annotations

from collections.abc import Collection

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import (
    AGGREGATION,
    CONDITIONAL,
    DIRECT,
    FILTER,
    GROUP_BY,
    Pivot,
    Source,
    Unpivot,
)
from dbt_ripple.flow.relation import (
    Column,
    Deps,
    OutputColumn,
    Relation,
    UnlistedColumns,
    compose,
    merge,
    through,
)
from dbt_ripple.flow.scope import ColumnsThroughStar, Env, QueryLinker, StructFields
from dbt_ripple.reasons import Code


def pivot(linker: QueryLinker, rel: Pivot, env: Env | None) -> Relation:
    """A row for each combination of the columns it does not use, a column for each value it names."""
    source = linker.rel(rel.rel, env)
    scope = Env(linker, env, rel.refs, rel.subs, [Source(None, rel.rel, None)])
    scope.relations[0] = source
    scope.row_deps = source.rows.deps
    used: set[str] = set()
    for x in (*rel.aggregates, *rel.fields):
        used.update(scope.refs[i].key for i in x.deps)
    fields = [scope.value(x) for x in rel.fields]
    columns = [column for column in source.columns if column.key not in used]
    kept = [column.fp for column in columns]
    unlisted = _unlisted(scope, source, used)
    rows_fp = digest(b"G", source.rows.fp, *sorted(set(kept)), *(r.fp() for r in unlisted))
    scope.over = digest(b"pivot", rows_fp, rel.flags)
    scope.order, scope.incidental = source.rows.order, source.rows.incidental
    rows = {k: compose(AGGREGATION, m) if m & DIRECT else m for k, m in source.rows.deps.items()}
    for column in columns:
        merge(rows, through(GROUP_BY, column.deps))
    aggregates = [scope.value(x) for x in rel.aggregates]
    field_fp = digest(b"fields", *(f[0] for f in fields))
    outputs: list[Column] = []
    for value in rel.values:
        for fp, d in aggregates:
            pivoted = dict(d)
            for _, more in fields:
                merge(pivoted, through(CONDITIONAL, more))
            outputs.append((digest(b"pivot", fp, field_fp, value, rel.flags), pivoted))
    # Where a name is there already, the engine makes up another one.
    taken = {column.key for column in columns}
    if rel.names and len(rel.names) == len(outputs) and taken.isdisjoint(rel.keys):
        columns += (
            OutputColumn(name, key, *output)
            for name, key, output in zip(rel.names, rel.keys, outputs, strict=True)
        )
    else:
        linker.unknown = linker.unknown or Code.PIVOT_UNKNOWN()
        whole: Deps = {}
        for _, d in (*aggregates, *fields):
            merge(whole, d)
        # The values, as a row of the relation has columns of their names.
        fp = digest(b"pivot", field_fp, rel.flags, *(a[0] for a in aggregates), b"|", *rel.values)
        unlisted.append(StructFields((fp, whole)))
    relation = Relation(
        columns, source.rows.after(rows_fp, rows), unlisted, _unresolved(scope, source, used)
    )
    if linker.known_constraints is not None and not source.unlisted:
        of_source = linker.known_constraints.of(source)
        relation.facts = linker.known_constraints.grouped_by_others(of_source, kept, rows_fp)
    return relation


def unpivot(linker: QueryLinker, rel: Unpivot, env: Env | None) -> Relation:
    """Each row once for each of the columns it names, with the name of the column and its value."""
    source = linker.rel(rel.rel, env)
    scope = Env(linker, env, rel.refs, [], [Source(None, rel.rel, None)])
    scope.relations[0] = source
    used = {rel.refs[i].key for group in rel.groups for i in group}
    columns = [column for column in source.columns if column.key not in used]
    groups = [[scope.ref(i) for i in group] for group in rel.groups]
    labels = digest(rel.labels, *(scope.spelled(i).encode() for i in rel.stored))
    flags = digest(labels, b"nulls" if rel.include_nulls else b"")
    parts = [b"unpivot", source.rows.fp, flags]
    beside = {rel.name_key, *(column.key for column in columns)}
    twice = len(set(rel.value_keys)) < len(rel.value_keys)
    if source.unlisted or twice or not beside.isdisjoint(rel.value_keys):
        # NULLs are looked for in the first column of that name, which may be another one.
        parts.append(digest(b"named alike", *(key.encode() for key in rel.value_keys)))
    rows = dict(source.rows.deps)
    if not rel.include_nulls:
        for group in groups:
            parts += [fp for fp, _ in group]
            for _, d in group:
                merge(rows, through(FILTER, d))
    label = OutputColumn(rel.name_column, rel.name_key, digest(b"unpivot name", labels), {})
    values: list[OutputColumn] = []
    for name, key, group in zip(rel.value_names, rel.value_keys, groups, strict=True):
        deps: Deps = {}
        for _, d in group:
            merge(deps, d)
        values.append(OutputColumn(name, key, digest(b"unpivot", *(fp for fp, _ in group)), deps))
    columns += (*values, label) if rel.values_first else (label, *values)
    return Relation(
        columns,
        source.rows.after(digest(*parts), rows),
        _unlisted(scope, source, used),
        _unresolved(scope, source, used),
    )


def _unlisted(scope: Env, source: Relation, used: Collection[str]) -> list[UnlistedColumns]:
    return [ColumnsThroughStar(scope, 0, frozenset(used))] if source.unlisted else []


def _unresolved(scope: Env, source: Relation, used: Collection[str]) -> list[UnlistedColumns]:
    if not source.unresolved:
        return []
    return [ColumnsThroughStar(scope, 0, frozenset(used), unresolved=True)]
