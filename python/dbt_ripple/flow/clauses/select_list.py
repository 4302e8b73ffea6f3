"""The select list: its columns, those of its stars, and what its positions mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

from dbt_ripple.flow.alias_resolution import MERGED_IN_PLACE
from dbt_ripple.flow.engine_checks import NameProblem
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold, renames_repeated
from dbt_ripple.flow.ir import FromItem, GeneratedColumns, Select, Star, Value, hidden_in
from dbt_ripple.flow.relation import Column, OutputColumn, Relation, UnlistedColumns, combine
from dbt_ripple.flow.scope import (
    ColumnsThroughStar,
    Env,
    QueryLinker,
    StructFields,
    field_of,
    relation_of,
)


class SelectList:
    """The columns of a select list so far.

    Attributes:
        columns: those that are known by name, in order.
        unlisted: the columns that are not.
        unlisted_at: before which of the known columns each of these stands.
    """

    __slots__ = ("columns", "unlisted", "unlisted_at")

    def __init__(self) -> None:
        self.columns: list[OutputColumn] = []
        self.unlisted: list[UnlistedColumns] = []
        self.unlisted_at: list[int] = []

    def add(self, name: str, key: str, value: Column) -> None:
        """Add a known column behind the others."""
        self.columns.append(OutputColumn(name, key, *value))

    def add_unlisted(self, columns: UnlistedColumns) -> None:
        """Add columns that are not known by name."""
        self.unlisted.append(columns)
        self.unlisted_at.append(len(self.columns))


class Positions(NamedTuple):
    """What the positions of a select list mean.

    Attributes:
        items: the expressions, and the columns of each ``*``, in order.
        certain: how many of them, from the first, certainly stand where they stand here.
        unlisted: the columns that are not known; behind them a position may be any.
    """

    items: Sequence[Value | Column]
    certain: int
    unlisted: Sequence[UnlistedColumns]


NO_POSITIONS: Final = Positions((), 0, ())


def positions(linker: QueryLinker, rel: Select, env: Env) -> Positions:
    """What the positions of a select list mean: a ``*`` takes as many as it has columns."""
    items: list[Value | Column] = []
    unlisted: list[UnlistedColumns] = []
    certain = 0
    for out in rel.outs:
        if isinstance(out, Star):
            of_star = SelectList()
            _add_star(linker, rel, env, out, of_star)
            items += (column.value for column in of_star.columns)
            unlisted += of_star.unlisted
        elif not isinstance(out, GeneratedColumns):
            items.append(out)
        elif out.names is not None:
            items += [out.x] * len(out.names)
        else:
            fields = env.fields(out.shape)
            if fields is None:
                unlisted.append(StructFields(env.value(out.x)))
            items += [out.x] * len(fields or ())
        if not unlisted:
            certain = len(items)
    return Positions(items, certain, unlisted)


def select_list(
    linker: QueryLinker, rel: Select, env: Env
) -> tuple[list[OutputColumn], list[UnlistedColumns]]:
    """The columns that are known by name, and those that are not."""
    outs = rel.outs
    if not rel.wide:
        return _expressions(rel, env), []
    if (whole := _whole_relation(rel, env)) is not None:
        through_star = ColumnsThroughStar(env, 0, frozenset())
        return whole.columns, [through_star] if whole.unlisted else []
    result = SelectList()
    as_stored = set(rel.as_stored)
    for place, (name, key, out) in enumerate(zip(rel.names, rel.keys, outs, strict=True)):
        if isinstance(out, Star):
            _add_star(linker, rel, env, out, result)
        elif not isinstance(out, GeneratedColumns):
            spelled = env.spelled(cast("int", out)) if place in as_stored else name
            result.add(spelled, key, env.value(out))
        elif out.names is None or out.keys is None:
            struct = env.value(out.x)
            fields = env.fields(out.shape)
            if fields is None:
                result.add_unlisted(StructFields(struct))
            for name, _ in fields or ():
                result.add(name, fold(name, True, linker.dialect), field_of(struct, name))
        else:
            fp, deps = env.value(out.x)
            for i, (name, key) in enumerate(zip(out.names, out.keys, strict=True)):
                result.add(name, key, (digest(b"generated", str(i).encode(), fp), deps))
    if result.unlisted and len(outs) + len(rel.sources) > 2 and renames_repeated(linker.dialect):
        _tell_from_unlisted(result)
    return result.columns, result.unlisted


def _expressions(rel: Select, env: Env) -> list[OutputColumn]:
    """The columns of a select list without stars."""
    outs = cast("list[Value]", rel.outs)
    names = rel.names
    if rel.as_stored and not (
        names == rel.keys and all(r is None or r.shows_its_keys for r in env.relations)
    ):
        names = list(names)
        for i in rel.as_stored:
            names[i] = env.spelled(cast("int", outs[i]))
    cache = env.cache  # nearly all are a column that was found already
    return [
        OutputColumn(name, key, *((cache[x] if type(x) is int else None) or env.value(x)))
        for name, key, x in zip(names, rel.keys, outs, strict=True)
    ]


def _whole_relation(rel: Select, env: Env) -> Relation | None:
    """The only relation, where the select list is its ``*`` as it is."""
    if len(rel.outs) != 1 or len(rel.sources) != 1:
        return None
    star = rel.outs[0]
    as_it_is = (
        type(star) is Star
        and star.source in (-1, 0)
        and star.struct is None
        and not (star.up or star.except_ or star.renames or star.replaces)
    )
    return env.relations[0] if as_it_is else None


def _tell_from_unlisted(result: SelectList) -> None:
    """A name may be that of a column that is not known: the known one is then `name_1`."""
    columns = result.columns
    places: dict[str, list[int]] = {}
    for i, column in enumerate(columns):
        places.setdefault(column.key, []).append(i)
    for key, same in places.items():
        there = [
            (at - 0.5, other[0])
            for r, at in zip(result.unlisted, result.unlisted_at, strict=True)
            if (other := r.get(key, columns[same[0]].name)) is not None
        ]
        if not there:
            continue
        inside = dict.fromkeys(at for at, _ in there)
        there += [(i, columns[i].fp) for i in same]
        order = [b"?" + fp if at in inside else fp for at, fp in sorted(there)]
        for i in same:
            was = columns[i]
            columns[i] = OutputColumn(was.name, was.key, digest(b"any", was.fp, *order), was.deps)


def _add_struct_star(linker: QueryLinker, env: Env, star: Star, result: SelectList) -> None:
    """The fields of a struct; where we cannot see them, whatever is asked for."""
    assert star.struct is not None
    struct = env.value(star.struct)
    fields = env.fields(star.shape)
    named = {*star.except_, *star.renames, *star.replaces}
    if fields is None:
        result.add_unlisted(StructFields(struct, frozenset(named)))
        fields = [(key, None) for key in (*star.renames, *star.replaces)]
    else:
        have = {fold(name, True, linker.dialect) for name, _ in fields}
        for key in sorted(named - have):
            linker.miss(key)
    for name, _ in fields:
        key = fold(name, True, linker.dialect)
        if key in star.except_:
            continue
        column = field_of(struct, name)
        if key in star.replaces:
            column = env.value(star.replaces[key])
        if key in star.renames:
            name, key = star.renames[key]
        result.add(name, key, column)


def _add_star(linker: QueryLinker, rel: Select, env: Env, star: Star, result: SelectList) -> None:
    """The columns of a ``*``."""
    if star.source == -2:
        _add_struct_star(linker, env, star, result)
        return
    owner = env
    for _ in range(star.up):
        assert owner.parent is not None
        owner = owner.parent
    sources = (
        [star.source] if star.source >= 0 else [i for i in _in_order(rel.items) if owner.visible[i]]
    )
    hidden = set(star.except_)
    columns = result.columns
    first = len(columns)
    replaced: set[str] = set()

    def put(name: str, key: str, column: Column) -> None:
        if key in hidden:
            return
        if key in star.replaces:
            if linker.dialect == "duckdb" and key in replaced:
                return  # of several columns of that name one is left
            replaced.add(key)
            column = env.value(star.replaces[key])
        if key in star.renames:
            name, key = star.renames[key]
        result.add(name, key, column)

    merged = owner.merged if star.source < 0 else {}
    waiting = dict(merged)
    if linker.dialect not in MERGED_IN_PLACE:
        for key, (name, column) in merged.items():
            put(name, key, column)
        waiting = {}
    all_as_they_are = not (hidden or owner.merged or star.renames or star.replaces)
    for i in sources:
        relation = relation_of(owner, i)
        if all_as_they_are:  # nearly always
            if owner.wraps[i]:
                columns += (
                    OutputColumn(c.name, c.key, *owner.wrap(i, c.value)) for c in relation.columns
                )
            else:
                columns += relation.columns
            if relation.unlisted:
                result.add_unlisted(ColumnsThroughStar(owner, i, frozenset()))
            continue
        of_source = relation.columns
        if star.source >= 0 and owner.merged and linker.dialect in ("spark", "databricks"):
            # Spark puts the keys of USING first in the star of one side, too.
            keys = relation.keys
            merged_at = [keys.index(k) for k in owner.merged if k in keys and owner.merges(k, i)]
            others_at = (j for j in range(len(keys)) if j not in merged_at)
            of_source = [of_source[j] for j in (*merged_at, *others_at)]
        for one in of_source:
            is_merged = one.key in merged and owner.merges(one.key, i)
            if is_merged and one.key in waiting:
                name, column = waiting.pop(one.key)
                put(name, one.key, column)
            elif not is_merged and hidden_in(i, one.key) not in hidden:
                put(one.name, one.key, owner.wrap(i, one.value))
        if relation.unlisted:
            left_out = {h.partition("\x1f")[2] for h in hidden if h.startswith(f"{i}\x1f")}
            excluded = frozenset(
                left_out
                | hidden
                | set(star.renames)
                | set(star.replaces)
                | {key for key in merged if owner.merges(key, i)}
            )
            result.add_unlisted(ColumnsThroughStar(owner, i, excluded))
    for key, (name, column) in waiting.items():  # of sources whose columns are not known
        put(name, key, column)
    for key in star.renames:
        if not any(key in relation_of(owner, i).columns_by_key() for i in sources):
            renamed = [c for i in sources if (c := owner.column(i, key, key)) is not None]
            if not renamed:
                linker.miss(key, NameProblem.RENAME)
                renamed = [owner.lost_in(key, sources)]
            put(key, key, combine(renamed))
            # Where it stands is not known: any other column of its new name may come first.
            same = [j for j in range(first, len(columns)) if columns[j].key == columns[-1].key]
            column = combine([columns[j].value for j in same])
            for j in same:
                columns[j] = OutputColumn(columns[j].name, columns[j].key, *column)
    for key in star.replaces:
        if not any(c.key == key for c in columns):
            # of a source whose columns are not known, or a mistake
            if not result.unlisted:
                linker.miss(key, NameProblem.REPLACE)
            put(key, key, env.value(star.replaces[key]))
    for name in star.except_:
        one_source, _, key = name.rpartition("\x1f")
        searched = [int(one_source)] if one_source else sources
        relations = [relation_of(owner, i) for i in searched]
        if key not in merged and not any(
            r.unlisted or key in r.columns_by_key() for r in relations
        ):
            linker.miss(
                key, NameProblem.EXCEPT
            )  # most engines refuse to leave out what is not there


def _in_order(items: Sequence[FromItem]) -> Iterable[int]:
    for item in items:
        if item.nested:
            yield from _in_order(item.nested)
        else:
            yield item.source
