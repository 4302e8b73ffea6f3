"""One scope being linked: what its names mean, and the fingerprints of its expressions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from dbt_ripple.flow.alias_resolution import (
    ALIAS_IN_FROM,
    EITHER,
    KEY_FIRST,
    NEARER_STRUCT,
    SOURCE,
    SOURCE_FIRST,
)
from dbt_ripple.flow.engine_checks import EXECUTED, NameProblem, is_hidden
from dbt_ripple.flow.fingerprint import COMPARED, compared, digest, hashed
from dbt_ripple.flow.identifiers import MADE_UP
from dbt_ripple.flow.ir import (
    CONDITIONAL,
    DIRECT,
    EXISTS,
    FILTER,
    IDENTITY,
    TRANSFORMATION,
    Expr,
    GeneratedColumns,
    LoweredExpr,
    Out,
    Ref,
    Rel,
    Select,
    Source,
    Star,
    StructShape,
    Table,
    Value,
    names_within,
)
from dbt_ripple.flow.relation import (
    NOTHING,
    ROWS,
    Column,
    Deps,
    Relation,
    UnlistedColumns,
    combine,
    compose,
    in_order,
    merge,
    through,
    unlisted_fp,
)

if TYPE_CHECKING:
    from dbt_ripple.flow.data_types import Fields
    from dbt_ripple.flow.row_constraints import Facts, KnownConstraints
    from dbt_ripple.reasons import Reason


class QueryLinker(Protocol):
    """What scopes and clauses need of the linker (`flow.link`)."""

    dialect: str
    known_constraints: KnownConstraints | None
    """What is known of rows, where that is to be used (rules 14 and 15)."""
    in_any_order: bool
    """Whether joins and unions in another order are to have the same fingerprints."""
    unknown: Reason | None
    """Why some columns cannot be known by position."""
    folds: bool
    """Whether names that are data are folded, too (`flow.identifiers`)."""
    in_subquery: int
    """What a subquery sees of the query around (`flow.alias_resolution`)."""
    looks_farther: bool
    """Whether `a.b` may be of a farther relation a, where the nearest has no b (`flow.alias_resolution`)."""
    row_first: bool
    row_last: bool
    """Where the name of a relation as a value its row is found (`flow.alias_resolution`)."""
    correlated: int
    """How often a query has read a column of one around it."""
    opaque_names: Collection[str]
    """Names that are nowhere, and that are taken to mean anything."""
    all_read: Sequence[Relation]
    """Where there are such names, all the relations that the query reads."""

    def miss(self, name: str, problem: NameProblem = NameProblem.ABSENT) -> None:
        """Note a name that is nowhere, or in two places, and how that came (`Linked.how`)."""

    def rel(self, rel: Rel, env: Env | None) -> Relation:
        """Link a query inside a scope."""


class ColumnsThroughStar:
    """The unknown columns of one source of a scope, seen through ``*``."""

    __slots__ = ("env", "excluded", "source", "unresolved")

    def __init__(
        self, env: Env, source: int, excluded: frozenset[str], unresolved: bool = False
    ) -> None:
        self.env = env
        self.source = source
        self.excluded = excluded
        self.unresolved = unresolved

    def _inner(self) -> list[UnlistedColumns]:
        relation = relation_of(self.env, self.source)
        return relation.unresolved if self.unresolved else relation.unlisted

    def get(self, key: str, name: str) -> Column | None:
        if key in self.excluded:
            return None
        if key in relation_of(self.env, self.source).columns_by_key():
            return None  # named already, or left out on purpose
        columns = [c for r in self._inner() if (c := r.get(key, name)) is not None]
        return self.env.wrap(self.source, combine(columns)) if columns else None

    def fp(self) -> bytes:
        wrapped, _ = self.env.wrap(self.source, (unlisted_fp(self._inner()), {}))
        if not self.excluded:
            return wrapped
        return digest(b"except", wrapped, *(e.encode() for e in sorted(self.excluded)))

    def whole(self) -> Deps:
        deps: Deps = {}
        for r in self._inner():
            merge(deps, r.whole())
        return deps


class StructFields:
    """The fields of a struct of which only the name of the column is known."""

    __slots__ = ("column", "excluded")

    def __init__(self, column: Column, excluded: frozenset[str] = frozenset()) -> None:
        self.column = column
        self.excluded = excluded

    def get(self, key: str, name: str) -> Column | None:
        return None if key in self.excluded else field_of(self.column, key)

    def fp(self) -> bytes:
        return digest(b"fields", self.column[0], *(e.encode() for e in sorted(self.excluded)))

    def whole(self) -> Deps:
        return through(TRANSFORMATION, self.column[1])


def field_of(column: Column, name: str) -> Column:
    """A field of a struct, as `s.name` gives it."""
    fp, deps = column
    field = digest(b"name", name.encode())
    return digest(b"Dot", b"this", fp, b"expression", field), through(TRANSFORMATION, deps)


class ColumnsOfUnreadQuery:
    """The unknown columns of a query with something in it that no rule reads."""

    __slots__ = ("inner", "mark")

    def __init__(self, inner: UnlistedColumns, mark: bytes) -> None:
        self.inner = inner
        self.mark = mark

    def get(self, key: str, name: str) -> Column | None:
        column = self.inner.get(key, name)
        return (digest(self.mark, column[0]), column[1]) if column is not None else None

    def fp(self) -> bytes:
        return digest(self.mark, self.inner.fp())

    def whole(self) -> Deps:
        return self.inner.whole()


class ColumnsOfSetOperation:
    """The columns of a set operation whose branches do not show theirs: any may be any."""

    __slots__ = ("branches",)

    def __init__(self, branches: list[Relation]) -> None:
        self.branches = branches

    def get(self, key: str, name: str) -> Column | None:
        deps = self.whole()
        for branch in self.branches:
            column = branch.get(key, name)
            if column is not None:
                merge(deps, column[1])
        return digest(b"blend", key.encode(), self.fp()), deps

    def fp(self) -> bytes:
        return digest(b"blend", *(b.all_fp() for b in self.branches))

    def whole(self) -> Deps:
        deps: Deps = {}
        for branch in self.branches:
            for column in branch.columns:
                merge(deps, through(TRANSFORMATION, column.deps))
            for k, mask in branch.rows.deps.items():
                if k[1] == ROWS:
                    deps[k] = deps.get(k, 0) | compose(TRANSFORMATION, mask)
        return deps


_NONE: Final[frozenset[int]] = frozenset()


class Env:
    """One scope being linked: its sources, its references, its outputs so far."""

    __slots__ = (
        "aliases",
        "busy",
        "cache",
        "facts",
        "generated",
        "in_from",
        "incidental",
        "inside_keys",
        "joining",
        "keys",
        "late",
        "lifted",
        "lifting",
        "linker",
        "merged",
        "merged_of",
        "order",
        "over",
        "parent",
        "refs",
        "relations",
        "row_deps",
        "select",
        "shown",
        "sorts",
        "sources",
        "sub_relations",
        "subs",
        "tied",
        "visible",
        "win",
        "wraps",
    )

    def __init__(
        self,
        linker: QueryLinker,
        parent: Env | None,
        refs: list[Ref],
        subs: list[Rel],
        sources: list[Source],
        select: Select | None = None,
    ) -> None:
        self.linker = linker
        self.parent = parent
        self.refs = refs
        self.subs = subs
        self.sources = sources
        self.select = select
        self.cache: list[Column | None] = [None] * len(refs)
        self.relations: list[Relation | None] = [None] * len(sources)
        self.wraps: list[tuple[bytes, ...]] = [()] * len(sources)
        self.visible: list[bool] = [True] * len(sources)
        self.merged: dict[str, tuple[str, Column]] = {}
        self.merged_of: dict[str, set[int]] = {}
        self.sub_relations: list[Relation | None] = [None] * len(subs)
        self.aliases: dict[str, list[int]] | None = None
        self.busy: set[int] = set()
        self.in_from = False
        self.joining: tuple[tuple[NameProblem, Sequence[int], Sequence[int]], ...] = ()
        self.late = False
        self.lifted = False
        self.lifting: frozenset[int] = _NONE
        self.shown: dict[str, Column] | None = None
        self.keys: frozenset[bytes] = frozenset()
        self.inside_keys: frozenset[bytes] = frozenset()
        self.over = b""
        self.win = b""
        self.tied = b""
        self.sorts: Collection[bytes] = ()
        self.order = b""
        self.incidental = b""
        self.generated = b""
        self.row_deps: Deps = {}
        self.facts: Facts

    # -- columns --

    def wrap(self, source: int, column: Column) -> Column:
        """Rule 1: the right sides of joins are told apart from the left, and from each other."""
        wraps = self.wraps[source]
        if not wraps:
            return column
        fp, deps = column
        for w in wraps:
            fp = hashed(b"R\x00" + w + fp)
        return fp, deps

    def listed_column(
        self,
        source: int,
        key: str,
        twice: NameProblem = NameProblem.REPEATED,
        *,
        meant: bool = True,
    ) -> Column | None:
        relation = self.relations[source]
        if relation is None:
            return None
        column = (relation.by_key or relation.columns_by_key()).get(key)
        if column is None:
            if relation.unlisted or not (relation.uncertain or ":" in key):
                return None
            columns = relation.renamed_by_engine(key)
            return self.wrap(source, combine(columns)) if columns else None
        if key in relation.duplicates:
            same = [c.value for c in relation.columns if c.key == key]
            alike = len({fp for fp, _ in same}) == 1
            if meant:
                self.linker.miss(
                    f"{key} is ambiguous", NameProblem.SELECTED_TWICE if alike else twice
                )
            column = combine(same)
        return self.wrap(source, column) if self.wraps[source] else column

    def column(self, source: int, key: str, name: str) -> Column | None:
        """One column of one source, known or not."""
        column = self.listed_column(source, key)
        if column is not None:
            return column
        relation = self.relations[source]
        if relation is None or not relation.unlisted:
            return None
        unlisted = relation.get(key, name)
        return self.wrap(source, unlisted) if unlisted is not None else None

    def ref(self, i: int) -> Column:
        """The column a reference means (rules 1, 4, 5, 10)."""
        column = self.cache[i]
        if column is None:
            ref = self.refs[i]
            column = self.cache[i] = self.plain(ref) or self.resolve(ref)
        return column

    def look_up(self) -> None:
        """Find all references at once where there is one source, and it lists its columns.

        A shortcut: `plain` finds the same, one by one.
        """
        if len(self.sources) != 1 or self.merged or not self.visible[0] or self.wraps[0]:
            return
        relation = self.relations[0]
        if relation is None:
            return
        get = (relation.by_key or relation.columns_by_key()).get
        if relation.duplicates:
            return
        self.cache = [
            get(ref.key) if ref.source > -2 and not ref.up and ref.rule <= SOURCE_FIRST else None
            for ref in self.refs
        ]

    def plain(self, ref: Ref) -> Column | None:
        """What nearly every reference is: a column that a source of this very scope lists.

        A shortcut: `resolve` would find the same.
        """
        source = ref.source
        if source < 0:
            if source < -1 or len(self.sources) != 1 or self.merged or not self.visible[0]:
                return None
            if ref.rule > SOURCE_FIRST:
                return None
            source = 0
        elif ref.up or self.joining or not self.visible[source]:
            return None
        relation = self.relations[source]
        key = ref.key
        if relation is None or self.wraps[source]:
            return self.listed_column(source, key)
        column = (relation.by_key or relation.columns_by_key()).get(key)
        if column is None or key in relation.duplicates:
            return self.listed_column(source, key)
        return column

    def resolve(self, ref: Ref) -> Column:
        if ref.source == -2:
            return self.whole_row(ref)
        if ref.source == -3:
            return self.owner(ref)
        if ref.source == -4:
            return self.nth(ref)
        if ref.source >= 0:
            env: Env = self
            for _ in range(ref.up):
                assert env.parent is not None
                env = env.parent
            column = env.column(ref.source, ref.key, ref.name)
            nearer, is_struct = self._nearer_structs(ref, env) if ref.up else ([], False)
            if nearer and (is_struct or column is None):
                return combine(nearer)
            if not env.visible[ref.source]:  # the right side of a semi join
                self.linker.miss(f"{env.sources[ref.source].alias}.{ref.name}", NameProblem.HIDDEN)
            if column is None:
                source = env.sources[ref.source]
                struct = self._struct_named(env, source, ref)
                if struct is not None:
                    return struct
                farther, _ = self._farther(env, source, ref)
                if farther is not None and self.linker.looks_farther:
                    return farther
                is_of_table = type(source.rel) is Table
                name = f"{source.alias}.{ref.name}" if source.alias else ref.name
                self.linker.miss(
                    name, NameProblem.ABSENT_IN_TABLE if is_of_table else NameProblem.ABSENT
                )
                lost = self.lost(ref, [(env, ref.source, ref.up)], name)
                return lost if farther is None else combine([lost, farther])
            if env.joining:
                env.note_left_side(ref.source, ref.name)
            return combine([self.around(column, ref.up), *nearer])
        rule = ref.rule
        if rule == KEY_FIRST:
            key = self.grouping_key(ref)
            if key is not None:
                return key
        alias = self.alias(ref, ref.outputs) if rule > SOURCE_FIRST else None
        if alias is not None and rule != EITHER:
            return alias
        columns: list[Column] = [] if alias is None else [alias]
        env_: Env | None = self
        up = 0
        while env_ is not None:
            # What a query further in may have, the engine need not look for out here.
            listed, unknown = env_.unqualified(ref, meant=not (up and columns))
            if unknown and not up and self.in_from and self.is_in_select_list(ref):
                self.linker.miss(ref.name, NameProblem.MAYBE_ALIAS)
            if up and env_.late and self.linker.in_subquery == EITHER:
                column = env_.any_alias(ref)
                if column is not None:
                    columns.append(self.around(column, up))
            if listed is not None:
                if env_.joining and not columns:
                    for i in range(len(env_.sources)):
                        if env_.visible[i] and env_.listed_column(i, ref.key) is not None:
                            env_.note_left_side(i, ref.name)
                columns.append(self.around(listed, up))
                break
            columns.extend(self.around(c, up) for c in unknown)
            if unknown or not (self.linker.row_first or self.linker.row_last):
                columns.extend(self.around(row, up) for row in env_.rows_named(ref.key))
            if up == 0 and rule == SOURCE_FIRST:
                alias = self.alias(ref, ref.outputs)
                if alias is not None:
                    columns.append(alias)
            if alias is not None and (rule == SOURCE_FIRST or unknown):
                break
            env_ = env_.parent
            up += 1
        if columns:
            return combine(columns)
        env_, up = self.parent if self.linker.in_subquery != SOURCE else None, 1
        while env_ is not None:  # a subquery of HAVING sees the aliases outside
            column = env_.any_alias(ref)
            if column is not None:
                return self.around(column, up)
            env_ = env_.parent
            up += 1
        env_ = self
        up = 0
        while env_ is not None:
            rows = env_.rows_named(ref.key)
            if rows:
                return self.around(combine(rows), up)
            env_ = env_.parent
            up += 1
        is_of_table = any(type(source.rel) is Table for source in self.sources)
        self.linker.miss(
            ref.name, NameProblem.ABSENT_IN_TABLE if is_of_table else NameProblem.ABSENT
        )
        everywhere: list[tuple[Env, int, int]] = []
        env_ = self
        up = 0
        while env_ is not None:
            everywhere.extend((env_, i, up) for i in range(len(env_.sources)))
            env_ = env_.parent
            up += 1
        lost = self.lost(ref, everywhere, ref.name)
        alias = self.any_alias(ref)
        return lost if alias is None else combine([lost, alias])

    def grouping_key(self, ref: Ref) -> Column | None:
        """The source column, or the source as one value, that a name means as a key of GROUP BY.

        Of ROLLUP, CUBE and GROUPING SETS the keys are not told apart from what they are made of. So
        a column inside of them counts as well as an alias of that name.
        """
        if not self.keys:
            return None
        is_set = self.select is not None and bool(self.select.group_tag)
        for i in range(len(self.sources)):
            column = self.listed_column(i, ref.key, meant=False) if self.visible[i] else None
            if column is None:
                continue
            if column[0] in self.keys:
                return column
            if is_set and column[0] in self.inside_keys:
                alias = self.alias(ref, ref.outputs)
                return column if alias is None else combine([column, alias])
        row = self.unqualified(ref, meant=False)[0] if self.linker.row_first else None
        return row if row is not None and row[0] in self.keys else None

    def around(self, column: Column, up: int) -> Column:
        """A column of the query around this one, so many queries outwards."""
        if up:
            self.linker.correlated += 1
        return outer(column, up)

    def note_left_side(self, source: int, name: str) -> None:
        """Note a column of another relation in FROM that a relation there reads, and may not read.

        A query that has lost a column may find one of that name there. Most engines let it be read
        only by what is LATERAL, and only of an inner and a left join may the right side read the
        left one. What stands before a cross join or a comma is of the left side in the one case,
        and not in the other; the parse tree may be the same.
        """
        for problem, left, perhaps in self.joining:
            if source in left:
                self.linker.miss(name, problem)
            elif source in perhaps:
                self.linker.miss(name, NameProblem.BEFORE_CROSS_JOIN)

    def lost_in(self, key: str, sources: list[int]) -> Column:
        """A column that none of these sources of the scope has."""
        ref = Ref(0, -1, key, key)
        return self.lost(ref, [(self, i, 0) for i in sources], key)

    def lost(self, ref: Ref, where: list[tuple[Env, int, int]], name: str) -> Column:
        """A name nobody has: it may be what any of these sources would have had, or anything."""
        columns: list[Column] = []
        for env, source, up in where:
            relation = env.relations[source]
            for unresolved in relation.unresolved if relation is not None else ():
                column = unresolved.get(ref.key, ref.name)
                if column is not None:
                    columns.append(outer(env.wrap(source, column), up))
        missing = digest(b"missing", ref.key.encode())
        deps: Deps = {}
        if name in self.linker.opaque_names:
            # Where we know the rules, the name is gone, and no value is what another column holds.
            kind = CONDITIONAL if self.linker.dialect in EXECUTED else TRANSFORMATION
            for relation in self.linker.all_read:
                merge(deps, relation.whole(kind))
                missing = digest(missing, relation.all_fp(), relation.rows.ordered_fp)
        elif is_hidden(ref.name):  # a hidden column, as the number of a row: it is made of the rows
            relations = [env.relations[source] for env, source, _ in where]
            missing = digest(
                missing, *(r.rows.fp + r.rows.order for r in relations if r is not None)
            )
        return combine([(missing, deps), *columns]) if columns else (missing, deps)

    def _farther(self, env: Env, source: Source, ref: Ref) -> tuple[Column | None, int]:
        """`a.b` where the nearest source a has no column b, but one of a query around has.

        And how many queries outwards that is.
        """
        up = ref.up
        while source.alias is not None and env.parent is not None:
            env, up = env.parent, up + 1
            for i, other in enumerate(env.sources):
                if other.alias == source.alias and env.relations[i] is not None:
                    column = env.column(i, ref.key, ref.name)
                    if column is not None:
                        return outer(column, up), up
        return None, 0

    def _nearer_structs(self, ref: Ref, env: Env) -> tuple[list[Column], bool]:
        """`a.b` where `a` is a relation of the query around `env`: columns `a` of the queries in between.

        And whether one of them certainly is a struct with such a field, and the engine takes it.
        """
        alias = env.sources[ref.source].alias
        columns: list[Column] = []
        between = self
        for up in range(ref.up if alias is not None else 0):
            for i, relation in enumerate(between.relations):
                column = between.listed_column(i, alias or "", meant=False)
                if column is None or relation is None or not between.visible[i]:
                    continue
                field = outer(field_of(column, ref.key), up)
                fields = relation.fields.get(alias or "") or ()
                if self.linker.dialect in NEARER_STRUCT and any(
                    n.lower() == ref.key for n, _ in fields
                ):
                    return [*columns, field], not columns
                columns.append(field)
            assert between.parent is not None
            between = between.parent
        return columns, False

    def _struct_named(self, env: Env, source: Source, ref: Ref) -> Column | None:
        """`a.b` where the source a has no column b, but some source has a struct column a."""
        if source.alias is None:
            return None
        for i in range(len(env.sources)):
            struct = env.listed_column(i, source.alias)
            if struct is not None:
                return StructFields(struct).get(ref.key, ref.name)
        return None

    def owner(self, ref: Ref) -> Column:
        """``x`` of ``x.function()``: a column, a source as one value, or else a schema's name."""
        env: Env | None = self
        up = 0
        while env is not None:
            listed, unknown = env.unqualified(ref)
            columns = [listed] if listed is not None else list(unknown)
            if up == 0 and ref.rule and (listed is None or ref.rule > SOURCE_FIRST):
                alias = env.alias(ref, ref.outputs)
                if alias is not None:
                    columns.append(alias)
            columns += env.rows_named(ref.key)
            if columns:
                return combine([outer(column, up) for column in columns])
            env = env.parent
            up += 1
        return digest(b"name", ref.key.encode()), NOTHING

    def unqualified(self, ref: Ref, *, meant: bool = True) -> tuple[Column | None, list[Column]]:
        """The source column of a bare name, or the candidates of sources not fully known.

        Where no source has such a column, a source of that name may be meant, as one value
        (`alias_resolution.ROW_FIRST`). Unless a column from here is certainly ``meant``, the engine
        need not mind that it is ambiguous.
        """
        key = ref.key
        merged = self.merged.get(key)
        if merged is not None:
            return merged[1], []
        columns: list[Column] = []
        for i in range(len(self.sources)):
            if not self.visible[i]:
                continue
            column = self.listed_column(i, key, meant=meant)
            if column is not None:
                columns.append(column)
        if columns:
            if meant and len(columns) > 1 and self.listed(key) > 1:
                self.linker.miss(f"{ref.name} is ambiguous", NameProblem.AMBIGUOUS)
            return combine(columns), []
        unknown = []
        for i, relation in enumerate(self.relations):
            if relation is not None and relation.unlisted and self.visible[i]:
                column = relation.get(key, ref.name)
                if column is not None:
                    unknown.append(self.wrap(i, column))
        rows = self.rows_named(key) if self.linker.row_first else []
        if rows and not unknown:
            return combine(rows), []
        return None, unknown

    def merges(self, key: str, source: int) -> bool:
        """Whether a column of a source is one that USING or NATURAL has merged with others."""
        return source in self.merged_of.get(key, ())

    def listed(self, key: str) -> int:
        """How many sources list a column of a name, and do not only may have made it up."""
        return sum(
            relation is not None and key in (relation.by_key or relation.columns_by_key())
            for relation, seen in zip(self.relations, self.visible, strict=False)
            if seen
        )

    def alias(self, ref: Ref, among: int) -> Column | None:
        """An output of the same SELECT, by its alias (lateral aliases, GROUP BY, ORDER BY)."""
        if self.shown is not None:
            return self.shown.get(ref.key)
        select = self.select
        if select is None:
            return None
        aliases = self.aliases
        if aliases is None:
            aliases = {}
            for i, (key, out) in enumerate(zip(select.keys, select.outs, strict=True)):
                for name in names_within(out) or (key,):
                    aliases.setdefault(name.removeprefix(MADE_UP), []).append(i)
            self.aliases = aliases
        columns: list[Column] = []
        for i in aliases.get(ref.key, ()):  # of a repeated alias engines take one or another
            out = select.outs[i]
            if i >= among or i in self.busy:
                continue
            self.busy.add(i)
            if isinstance(out, Star):
                columns += self.renamed(out, ref.key)
            elif (x := value_of(out)) is not None:
                columns.append(self.value(x))
            self.busy.discard(i)
        return combine(columns) if columns else None

    def renamed(self, star: Star, name: str) -> Iterator[Column]:
        """The columns that a star gives this name."""
        owner: Env = self
        for _ in range(star.up):
            assert owner.parent is not None
            owner = owner.parent
        sources = range(len(owner.sources)) if star.source == -1 else [star.source]
        for key, (_, new_key) in star.renames.items():
            if new_key != name:
                continue
            if key in star.replaces:
                yield self.value(star.replaces[key])
            elif star.struct is not None:
                yield field_of(self.value(star.struct), key)
            else:
                for i in sources:
                    if owner.visible[i] and (column := owner.column(i, key, key)) is not None:
                        yield column

    def show(self, keys: list[str], columns: list[Column]) -> None:
        """From here on the outputs are known, those of a ``*`` too."""
        shown: dict[str, Column] = {}
        for key, column in zip(keys, columns, strict=True):
            key = key.removeprefix(MADE_UP)
            shown[key] = combine([shown[key], column]) if key in shown else column
        self.shown = shown

    def any_alias(self, ref: Ref) -> Column | None:
        """An output of this SELECT, whatever the place of the name."""
        if self.in_from or self.select is None:
            return None
        return self.alias(ref, len(self.select.outs))

    def is_in_select_list(self, ref: Ref) -> bool:
        """Whether a name in FROM is an alias as well, and the engine sees that there."""
        if self.select is None or self.linker.dialect not in ALIAS_IN_FROM:
            return False
        return any(
            key == ref.key and not (isinstance(out, int) and self.refs[out].key == key)
            for key, out in zip(self.select.keys, self.select.outs, strict=False)
        )

    def is_alias(self, i: int) -> bool:
        """Whether a reference is no column of the sources, but an output."""
        ref = self.refs[i]
        return ref.source == -1 and self.unqualified(ref)[0] is None

    def aggregated_alias(self, i: int) -> bool:
        """Whether a reference means an earlier output that is an aggregate."""
        ref = self.refs[i]
        if ref.source != -1 or not ref.outputs or self.unqualified(ref)[0] is not None:
            return False
        self.alias(ref, 0)  # so that the aliases are there
        outs = self.select.outs if self.select is not None else []
        for out in (self.aliases or {}).get(ref.key, ()):
            x = value_of(outs[out])
            if isinstance(x, LoweredExpr) and has_aggregate(x.e):
                return True
        return False

    def row_of(self, source: int, excluded: frozenset[str] = frozenset()) -> Column:
        """All columns of a source as one value: their names are data there."""
        relation = self.relations[source]
        assert relation is not None
        deps: Deps = {}
        parts = []
        for column in relation.columns:
            if column.key not in excluded:
                name = column.key if self.linker.folds else column.name
                parts.append(digest(name.encode(), self.wrap(source, column.value)[0]))
                merge(deps, through(TRANSFORMATION, column.deps))
        if relation.unlisted:
            for k, mask in relation.rows.deps.items():
                if k[1] == ROWS:
                    deps[k] = deps.get(k, 0) | compose(TRANSFORMATION, mask)
            parts.append(ColumnsThroughStar(self, source, excluded).fp())
        return digest(b"row", *parts), deps

    def rows_named(self, key: str) -> list[Column]:
        """The sources of a name, each as one value."""
        return [
            self.row_of(i)
            for i, source in enumerate(self.sources)
            if source.alias == key and self.visible[i] and self.relations[i] is not None
        ]

    def whole_row(self, ref: Ref) -> Column:
        excluded = frozenset(ref.name.split("\x1f")) if ref.name else frozenset()
        if ref.up >= 0:
            return self.row_of(ref.up, excluded)
        columns = [
            self.row_of(i, excluded)
            for i, relation in enumerate(self.relations)
            if relation is not None and self.visible[i]
        ]
        return combine(columns) if columns else (digest(b"row"), {})

    def nth(self, ref: Ref) -> Column:
        """The column at a position of a source, or of the only one; any of them, if not all are known."""
        source = ref.outputs if ref.outputs >= 0 or len(self.sources) > 1 else 0
        relation = self.relations[source] if 0 <= source < len(self.relations) else None
        position = int(ref.key)
        if relation is not None and not relation.unlisted:
            if 0 < position <= len(relation.columns):
                return self.wrap(source, relation.columns[position - 1].value)
            self.linker.miss(ref.name)
            return self.lost(ref, [(self, source, 0)], ref.name)
        fp, deps = self.whole_row(Ref(source, -2, "*", ""))
        return digest(b"position", ref.key.encode(), fp), deps

    def spelled(self, i: int) -> str:
        """How the column that a reference means is spelled, where that can be seen."""
        ref = self.refs[i]
        for j in [ref.source] if ref.source >= 0 else range(len(self.sources)):
            relation = self.relations[j] if not ref.up else None
            if relation is not None and (column := relation.named(ref.key)) is not None:
                return column.name
        return ref.name

    def fields(self, shape: StructShape | None) -> Fields | None:
        """The fields of a struct: those listed, or those of a column of this very scope."""
        if shape is None:
            return None
        if shape.fields is not None:
            return [(name, self.fields(inner)) for name, inner in shape.fields]
        ref = self.refs[shape.ref]
        if ref.source < -1 or ref.up or ref.rule > SOURCE_FIRST or ref.key in self.merged:
            return None
        fields: Fields | None = None
        for j in [ref.source] if ref.source >= 0 else range(len(self.sources)):
            relation = self.relations[j]
            if relation is not None and ref.key in (relation.by_key or relation.columns_by_key()):
                fields = relation.fields.get(ref.key)
                break
        else:
            rows = [i for i, s in enumerate(self.sources) if s.alias == ref.key and ref.source < 0]
            row = self.relations[rows[0]] if len(rows) == 1 else None
            if row is not None and not row.unlisted:  # the name of a relation is its row
                fields = [(c.name, row.fields.get(c.key)) for c in row.columns]
        for key in shape.path:
            fields = next((inner for name, inner in fields or () if name.lower() == key), None)
        return fields

    # -- expressions --

    def sub(self, i: int) -> Relation:
        relation = self.sub_relations[i]
        if relation is None:
            before, self.lifted = self.lifted, False
            relation = self.sub_relations[i] = self.linker.rel(self.subs[i], self)
            if self.lifted:
                self.lifting |= {i}
            self.lifted = before or self.lifted
        return relation

    def lift(self, used: Sequence[int]) -> bool:
        """Note an aggregate of which all columns are outside: it aggregates the rows there.

        Where a column may be here and is there, it may be either.
        """
        furthest = 0
        for i in used:
            ref = self.refs[i]
            up = ref.up or self.scopes_up(ref)
            if not up:
                return False
            furthest = max(furthest, up)
        env = self.parent
        for _ in range(furthest):
            if env is not None:
                env.lifted = True
                env = env.parent
        return True

    def scopes_up(self, ref: Ref) -> int:
        """How many queries outwards a name is a column; none where that is not known."""
        if ref.source >= 0:
            if self.column(ref.source, ref.key, ref.name) is not None:
                return 0
            return self._farther(self, self.sources[ref.source], ref)[1]
        env: Env | None = self
        up = 0
        while env is not None:
            if env.unqualified(ref, meant=False)[0] is not None:
                return up
            env = env.parent
            up += 1
        return 0

    def fp(self, e: Expr) -> bytes:
        """The fingerprint of an expression, its references replaced by what they refer to."""
        t = type(e)
        if t is int:
            return self.ref(e)[0]
        if t is bytes:
            return e  # type: ignore[no-any-return]
        head = e[0]
        if type(head) is bytes:
            fp = self.fp
            if head in COMPARED and len(e) == 5:
                return compared(head, fp(e[2]), fp(e[4]))
            cache, ref = self.cache, self.ref
            return hashed(
                b"\x00".join(
                    [
                        p
                        if type(p) is bytes
                        else (cache[p] or ref(p))[0]
                        if type(p) is int
                        else fp(p)
                        for p in e
                    ]
                )
            )
        if head == "F":
            tag = e[1]
            value = self.fp(e[2])
            for term in e[3:]:
                value = hashed(b"\x00".join((tag, value, self.fp(term))))
            return value
        if head == "C":
            return hashed(b"\x00".join([e[1], *sorted(map(self.fp, e[2:]))]))
        if head == "L":
            return digest(b"spelled", self.spelled(e[1]).encode())
        if head == "A":
            return digest(b"A", self.fp(e[1]), self.ran_over(e[1]))
        if head == "U":
            return digest(b"U", self.fp(e[1]), self.over)
        if head == "W":
            return digest(b"W", self.fp(e[1]), self.win if len(e) == 2 else self.beside(e[2]))
        if head == "G":
            return digest(b"generated", self.fp(e[1]), self.generated)
        if head == "Q":
            relation = self.sub(e[2])
            if e[1] == "exists":
                return digest(b"exists", relation.rows.fp)
            if e[1] == "names":
                names = (column.name.encode() for column in relation.columns)
                return digest(b"names", *names, *(r.fp() for r in relation.unlisted))
            # ARRAY(select ...), or the first of its rows
            rows = relation.rows.fp if e[1] == "in" else relation.rows.ordered_fp
            value = digest(e[1].encode(), rows, *relation.fps, *(r.fp() for r in relation.unlisted))
            return digest(b"U", value, self.over) if e[2] in self.lifting else value
        pieces = [self.fp(p) for p in e]
        return digest(*pieces)

    def beside(self, own: bytes) -> bytes:
        """The rows a window runs over, in the order in which other windows may have left them."""
        if len(self.sorts) > (own == b"sorted"):
            return digest(b"beside", self.tied, *self.sorts)
        return self.tied

    def ran_over(self, aggregate: Expr) -> bytes:
        """The rows an aggregate ran over, in their order as far as it can see that.

        To count is to see no order. A sum of floating point numbers, and which of equal values is
        the greatest, are up to it; what nobody ordered does not count there.
        """
        if not self.order and not self.incidental:
            return self.over
        name = aggregate[0] if type(aggregate) is list else aggregate
        if name in _COUNTS:
            return self.over
        return in_order(self.over, self.order, b"" if name in _HARDLY_ORDERED else self.incidental)

    def deps_of(self, x: LoweredExpr) -> Deps:
        """What an expression depends on, with kinds."""
        deps = x.deps
        if len(deps) == 1 and not x.subs and not x.rows:
            ((i, kind),) = deps.items()
            return through(kind, (self.cache[i] or self.ref(i))[1])
        all_deps: Deps = {}
        for i, kind in deps.items():
            for key, mask in (self.cache[i] or self.ref(i))[1].items():
                kinds = kind if mask == IDENTITY else compose(kind, mask)
                all_deps[key] = all_deps.get(key, 0) | kinds
        for i, kind in x.subs.items():
            self.sub_deps(i, kind, all_deps)
        if x.rows:
            for key, mask in self.row_deps.items():
                if key[1] == ROWS and mask & DIRECT:
                    all_deps[key] = all_deps.get(key, 0) | compose(x.rows, mask & DIRECT)
        return all_deps

    def sub_deps(self, i: int, kind: int, deps: Deps) -> None:
        """A subquery's value depends on its outputs, and on which rows it saw."""
        relation = self.sub(i)
        columns = () if kind & EXISTS else relation.columns
        kind &= ~EXISTS
        for column in columns:
            for key, mask in column.deps.items():
                deps[key] = deps.get(key, 0) | compose(kind, mask)
        # Which rows it saw: indirect whatever the value is.
        seen = kind if not kind & DIRECT else FILTER
        for key, mask in relation.rows.deps.items():
            kept = compose(kind, mask & ~DIRECT) if mask & ~DIRECT else 0
            if mask & DIRECT:
                kept |= seen
            deps[key] = deps.get(key, 0) | kept

    def value(self, x: Value) -> Column:
        if isinstance(x, int):
            return self.ref(x)
        return self.fp(x.e), self.deps_of(x)


def outer(column: Column, up: int) -> Column:
    """Rule 4: a correlated column is not the inner column of the same relation."""
    fp, deps = column
    for _ in range(up):
        fp = digest(b"outer", fp)
    return fp, deps


def relation_of(env: Env, source: int) -> Relation:
    """The relation of a source that has been linked."""
    relation = env.relations[source]
    assert relation is not None
    return relation


def value_of(out: Out) -> Value | None:
    """The expression of an item of a select list; None of a ``*``."""
    if isinstance(out, Star):
        return None
    return out.x if isinstance(out, GeneratedColumns) else out


_COUNTS: Final = frozenset(
    {digest(b"count(*)"), b"Count", b"CountIf", b"ApproxDistinct", b"LogicalAnd", b"LogicalOr"}
)
_HARDLY_ORDERED: Final = frozenset(
    b"Avg Max Median Min Stddev StddevPop StddevSamp Sum Variance VariancePop".split()
)


def has_window(e: Expr) -> bool:
    """Whether an expression holds a window of its own scope."""
    return _holds(e, "W")


def has_aggregate(e: Expr) -> bool:
    """Whether an expression holds an aggregate of its own scope."""
    return _holds(e, "A")


def _holds(e: Expr, mark: str) -> bool:
    stack = [e]
    while stack:
        piece = stack.pop()
        if type(piece) is list:
            if piece[0] == mark:
                return True
            if piece[0] != "Q":
                stack.extend(piece)
    return False
