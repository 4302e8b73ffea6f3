"""A dbt project nobody wrote: random SQL over random data, every model of it run before it is kept.

Domains are small and NULLs many, so that joins repeat rows, keys are nearly unique and tests both
pass and fail. Each window and each LIMIT orders by all there is, so that the same project returns
the same rows whatever the engine does; what is left open by SQL would be no oracle.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import jinja2
import yaml
from constructs import Column, Constructs

TYPES: Final = {"i": "integer", "t": "varchar", "d": "date", "b": "boolean", "n": "decimal(12, 2)"}
"""The SQL type of each kind of column."""

CATALOG: Final = "lab"
SCHEMA: Final = "main_lab"
RAW: Final = "raw"

MAX_ROWS: Final = 1500
"""Rows a model may have; one with more is written again."""

WORDS: Final = ("ash", "birch", "cedar", "elm", "fir", "")


@dataclass
class Relation:
    """Something a query can read: its text in Jinja, its name in SQL, its columns."""

    jinja: str
    name: str
    columns: list[Column]
    unique_id: str = ""
    ephemeral: bool = False
    rows: int = 0

    def of(self, kinds: str) -> list[Column]:
        return [c for c in self.columns if c.kind in kinds]


@dataclass
class Item:
    """A relation in a FROM, under the alias its columns are read by."""

    alias: str
    columns: list[Column]


@dataclass
class Model:
    """A model as written."""

    name: str
    raw: str
    config: dict[str, Any]
    relation: Relation
    tests: list[Any] = field(default_factory=list)
    column_tests: dict[str, list[Any]] = field(default_factory=dict)
    column_meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: int | None = None


class Maker(Constructs):
    """Writes one project.

    Args:
        seed: the same seed writes the same project.
        models: how many models it has.
    """

    def __init__(self, seed: int, models: int = 26) -> None:
        self.random = random.Random(seed)
        self.wanted = models
        self.connection = duckdb.connect()
        self.run = self.connection.execute
        self.run("set threads = 1")
        self.names = 0
        self.relations: list[Relation] = []
        self.models: list[Model] = []
        self.singular: dict[str, str] = {}
        self.sources: dict[str, tuple[list[Column], list[tuple[Any, ...]]]] = {}
        self.seeds: dict[str, tuple[list[Column], list[list[str]]]] = {}

    # -- small choices ------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}_{self.names}"

    def choose(self, items: Any) -> Any:
        return self.random.choice(list(items))

    # -- data ---------------------------------------------------------------------------------------

    def value(self, kind: str, domain: int) -> Any:
        if self.chance(0.12):
            return None
        if kind == "i":
            return self.random.randrange(domain)
        if kind == "t":
            return self.random.choice(WORDS)
        if kind == "d":
            return f"2026-01-{self.random.randrange(1, 8):02d}"
        if kind == "b":
            return self.chance(0.5)
        return self.random.randrange(0, 400) / 4

    def make_sources(self) -> None:
        self.run(f"create schema {RAW}")
        for number in range(5):
            columns = [Column("id", "i"), Column("k1", "i"), Column("k2", "i")]
            for kind in self.random.sample("tdbnitn", 4):
                columns.append(
                    Column(
                        self.name(
                            {"i": "num", "t": "word", "d": "day", "b": "flag", "n": "amount"}[kind]
                        ),
                        kind,
                    )
                )
            size = self.random.randrange(25, 60)
            unique = self.chance(0.6)
            rows = []
            for row in range(size):
                key = row if unique else self.random.randrange(size)
                rows.append(
                    (key, *(self.value(c.kind, 6 if c.name == "k1" else 12) for c in columns[1:]))
                )
            name = f"src_{number}"
            self.sources[name] = (columns, rows)
            self.create(f"{RAW}.{name}", columns, rows)
            self.relations.append(
                Relation(f"{{{{ source('raw', '{name}') }}}}", f"{RAW}.{name}", columns, rows=size)
            )
        for number in range(2):
            columns = [
                Column("k1" if number else "k2", "i"),
                Column(f"label_{number}", "t"),
                Column(f"rate_{number}", "n"),
            ]
            rows = [(i, self.value("t", 0) or f"w{i}", self.value("n", 0) or 1.5) for i in range(8)]
            name = f"seed_{number}"
            self.seeds[name] = (columns, [[str(v) for v in row] for row in rows])
            self.create(f"main.{name}", columns, rows)
            self.relations.append(
                Relation(f"{{{{ ref('{name}') }}}}", f"main.{name}", columns, rows=8)
            )

    def create(
        self, name: str, columns: list[Column], rows: list[tuple[Any, ...]], run: Any = None
    ) -> None:
        run = run or self.run
        listed = ", ".join(f"{c.name} {TYPES[c.kind]}" for c in columns)
        run(f"create table {name} ({listed})")
        for row in rows:
            values = ", ".join(
                "null" if v is None else repr(v) if not isinstance(v, bool) else str(v) for v in row
            )
            run(f"insert into {name} values ({values})")

    # -- expressions ----------------------------------------------------------------------------------

    def columns(self, items: list[Item], kinds: str) -> list[str]:
        """Columns of some kinds, qualified where two relations are read or by chance."""
        names = []
        counts: dict[str, int] = {}
        for item in items:
            for column in item.columns:
                counts[column.name] = counts.get(column.name, 0) + 1
        for item in items:
            for column in item.columns:
                if column.kind in kinds:
                    bare = counts[column.name] == 1 and self.chance(0.4)
                    names.append(column.name if bare else f"{item.alias}.{column.name}")
        return names

    def literal(self, kind: str) -> str:
        if kind == "i":
            return str(self.random.randrange(8))
        if kind == "t":
            return f"'{self.random.choice(WORDS)}'"
        if kind == "d":
            return f"date '2026-01-{self.random.randrange(1, 8):02d}'"
        if kind == "b":
            return self.choose(("true", "false"))
        return f"{self.random.randrange(100)}.25"

    def expression(self, items: list[Item], kind: str, depth: int = 2) -> str:
        """A scalar expression of a kind."""
        columns = self.columns(items, kind)
        if depth <= 0 or (columns and self.chance(0.4)):
            return self.choose(columns) if columns else self.literal(kind)
        e = lambda k, d=depth - 1: self.expression(items, k, d)  # noqa: E731
        general = [
            lambda: f"coalesce({e(kind)}, {self.literal(kind)})",
            lambda: f"case when {self.condition(items, 1)} then {e(kind)} else {e(kind)} end",
            lambda: f"case when {self.condition(items, 1)} then {e(kind)} end",
            lambda: f"nullif({e(kind)}, {self.literal(kind)})",
            lambda: (
                f"case {e('i')} when 1 then {e(kind)} when 2 then {self.literal(kind)} else {e(kind)} end"
            ),
        ]
        special = {
            "i": [
                lambda: f"({e('i')} + {e('i')})",
                lambda: f"({e('i')} - {self.literal('i')})",
                lambda: f"({e('i')} * 2)",
                lambda: f"abs({e('i')} % 5)",
                lambda: f"length({e('t')})",
                lambda: f"extract(day from {e('d')})",
                lambda: f"greatest({e('i')}, {e('i')})",
                lambda: f"cast({e('b')} as integer)",
                lambda: (
                    f"{{{{ plus_offset('{self.choose(self.columns(items, 'i') or ['1'])}') }}}}"
                ),
            ],
            "t": [
                lambda: f"upper({e('t')})",
                lambda: f"concat({e('t')}, '-', {e('t')})",
                lambda: f"left({e('t')}, 2)",
                lambda: f"{e('t')} || {self.literal('t')}",
                lambda: f"cast({e('i')} as varchar)",
                lambda: f"replace({e('t')}, 'e', 'E')",
                lambda: f"{{{{ tidy('{self.choose(self.columns(items, 't') or ['null'])}') }}}}",
            ],
            "d": [
                lambda: f"({e('d')} + 1)",
                lambda: f"cast(date_trunc('week', {e('d')}) as date)",
                lambda: f"least({e('d')}, {self.literal('d')})",
            ],
            "b": [lambda: f"({self.condition(items, 1)})", lambda: f"not {e('b')}"],
            "n": [
                lambda: f"round({e('n')} * 1.5, 1)",
                lambda: f"({e('n')} + {e('i')})",
                lambda: f"cast({e('i')} as decimal(12, 2))",
                lambda: f"abs({e('n')})",
            ],
        }[kind]
        return self.choose([*special, *special, *general])()

    def condition(self, items: list[Item], depth: int = 2) -> str:
        e = lambda k: self.expression(items, k, depth - 1)  # noqa: E731
        kind = self.choose("iitdn")
        ways = [
            lambda: (
                f"{e(kind)} {self.choose(('=', '<>', '<', '>', '<=', '>='))} {self.literal(kind)}"
            ),
            lambda: f"{e('i')} {self.choose(('=', '<>', '<', '>='))} {e('i')}",
            lambda: f"{e(kind)} is {self.choose(('', 'not '))}null",
            lambda: (
                f"{e('i')} {self.choose(('', 'not '))}in ({self.literal('i')}, {self.literal('i')}, {self.literal('i')})"
            ),
            lambda: f"{e('t')} {self.choose(('like', 'not like'))} '%{self.choose('aeir')}%'",
            lambda: f"{e('i')} between {self.literal('i')} and {self.literal('i')} + 4",
            lambda: f"coalesce({e('b')}, false)",
            lambda: f"{e('i')} is distinct from {self.literal('i')}",
            lambda: f"{e('i')} <= {{{{ var('threshold') }}}}",
        ]
        if depth > 1:
            ways += [
                lambda: (
                    f"({self.condition(items, depth - 1)} and {self.condition(items, depth - 1)})"
                ),
                lambda: (
                    f"({self.condition(items, depth - 1)} or {self.condition(items, depth - 1)})"
                ),
                lambda: f"not ({self.condition(items, depth - 1)})",
                lambda: self.subquery_condition(items),
                lambda: self.subquery_condition(items),
            ]
        return str(self.choose(ways)())

    def subquery_condition(self, items: list[Item]) -> str:
        other = self.choose(self.visible())
        alias = self.name("s")
        inner = [Item(alias, other.columns)]
        mine, theirs = self.columns(items, "i"), [f"{alias}.{c.name}" for c in other.of("i")]
        if not mine or not theirs:
            return "true"
        own = self.qualified(items, "i")
        extra = f" and {self.condition(inner, 1)}" if self.chance(0.5) else ""
        return str(
            self.choose(
                (
                    f"{self.choose(('', 'not '))}exists (select 1 from {other.jinja} as {alias} "
                    f"where {self.choose(theirs)} = {self.choose(own)}{extra})",
                    f"{self.choose(own)} in (select {self.choose(theirs)} from {other.jinja} as {alias} "
                    f"where {self.condition(inner, 1)})",
                    f"{self.choose(own)} < (select max({self.choose(theirs)}) from {other.jinja} as {alias}{' where ' + self.condition(inner, 1) if extra else ''})",
                    f"(select count(*) from {other.jinja} as {alias} where {self.choose(theirs)} = {self.choose(own)}{extra}) > 1",
                )
            )
        )

    def qualified(self, items: list[Item], kinds: str) -> list[str]:
        return [f"{i.alias}.{c.name}" for i in items for c in i.columns if c.kind in kinds]

    def visible(self) -> list[Relation]:
        """Relations a query may read: later ones more often."""
        latest = self.relations[-10:]
        return [*latest, *self.relations, *(self.ctes[-2:] * (len(self.relations) // 2 + 8))]

    # -- queries --------------------------------------------------------------------------------------

    def query(self) -> tuple[str, list[Column]]:
        """One SELECT or set operation, of one of many shapes."""
        shape = self.choose(
            (
                self.plain, self.plain, self.join, self.join, self.join, self.grouped, self.grouped,
                self.union, self.union, self.windowed, self.windowed, self.deduplicated, self.star,
                self.star, self.top, self.pivoted, self.unnested, self.self_join, self.rolled, self.natural,
                self.construct, self.construct, self.construct, self.construct, self.construct, self.construct,
            )
        )  # fmt: skip
        made: tuple[str, list[Column]] = shape()
        return made

    def source(self) -> tuple[str, Item]:
        """A relation with its alias, as a FROM has it."""
        relation = self.choose(self.visible())
        if self.chance(0.15):
            alias, inner = self.name("d"), self.name("e")
            condition = self.condition([Item(inner, relation.columns)], 1)
            text = f"(select * from {relation.jinja} as {inner} where {condition}) as {alias}"
            return text, Item(alias, list(relation.columns))
        alias = self.name(self.choose("abcr"))
        return f"{relation.jinja} as {alias}", Item(alias, list(relation.columns))

    def outputs(
        self, items: list[Item], count: int | None = None
    ) -> tuple[list[str], list[Column]]:
        """Select items: some columns as they are, some expressions."""
        texts, columns = [], []
        pairs = [(i, c) for i in items for c in i.columns]
        self.random.shuffle(pairs)
        used: set[str] = set()
        for item, column in pairs[: count or self.random.randrange(3, 7)]:
            if column.name in used:
                new = self.name("c")
                texts.append(f"{item.alias}.{column.name} as {new}")
                columns.append(Column(new, column.kind))
            else:
                used.add(column.name)
                texts.append(f"{item.alias}.{column.name}")
                columns.append(column)
        for kind in self.random.sample("itdbn", self.random.randrange(1, 4)):
            name = self.name("x")
            texts.append(f"{self.expression(items, kind)} as {name}")
            columns.append(Column(name, kind))
        return texts, columns

    def where(self, items: list[Item], share: float = 0.5) -> str:
        return f" where {self.condition(items)}" if self.chance(share) else ""

    def plain(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        outputs, columns = self.outputs([item])
        distinct = "distinct " if self.chance(0.15) else ""
        return f"select {distinct}{', '.join(outputs)} from {text}{self.where([item])}", columns

    def join(self) -> tuple[str, list[Column]]:
        text, first = self.source()
        items = [first]
        for _ in range(self.random.choice((1, 1, 2))):
            other_text, other = self.source()
            kind = self.choose(
                (
                    "join",
                    "left join",
                    "left join",
                    "left join",
                    "full join",
                    "right join",
                    "cross",
                    "semi join",
                    "anti join",
                )
            )
            common = {c.name for i in items for c in i.columns} & {
                c.name for c in other.columns if c.kind == "i"
            }
            once = [n for n in common if sum(c.name == n for i in items for c in i.columns) == 1]
            mine, theirs = self.qualified(items, "i"), self.qualified([other], "i")
            if kind == "cross":
                columns = other.columns[:2] or other.columns
                inner = ", ".join(f"max({c.name}) as {c.name}" for c in columns)
                source = other_text.rsplit(" as ", 1)[0]
                text += (
                    f" cross join (select {inner} from {source} as {other.alias}) as {other.alias}"
                )
                other.columns = columns
                items.append(other)
                continue
            if (
                kind not in ("semi join", "anti join")
                and once
                and self.chance(0.25)
                and len(items) == 1
            ):
                key = self.choose(sorted(once))
                text += f" {kind} {other_text} using ({key})"
                items[0] = Item(items[0].alias, [c for c in items[0].columns if c.name != key])
                other = Item(other.alias, [c for c in other.columns if c.name != key])
                items.append(other)
                continue
            if not mine or not theirs:
                continue
            same = [(m, t) for m in mine for t in theirs if m.split(".")[1] == t.split(".")[1]]
            left, right = (
                self.choose(same)
                if same and self.chance(0.8)
                else (self.choose(mine), self.choose(theirs))
            )
            on = f"{left} = {right}"
            if self.chance(0.3):
                on += f" and {self.choose(mine)} {self.choose(('<>', '<=', '='))} {self.choose(theirs)}"
            if self.chance(0.15):
                on += f" and {self.choose(theirs)} is not null"
            text += f" {kind} {other_text} on {on}"
            if kind not in ("semi join", "anti join"):
                items.append(other)
        outputs, columns = self.outputs(items)
        return f"select {', '.join(outputs)} from {text}{self.where(items, 0.35)}", columns

    def natural(self) -> tuple[str, list[Column]]:
        """A USING join whose merged column is read bare."""
        text, first = self.source()
        other_text, other = self.source()
        common = [c for c in first.columns if c.kind == "i" and c in other.columns]
        if not common:
            return self.plain()
        key = self.choose(common)
        kind = self.choose(("join", "left join", "full join"))
        one = [c for c in first.columns if c.kind == "i" and c != key][:1]
        two = [c for c in other.columns if c != key][:2]
        a, b = self.name("m"), [self.name("m") for _ in two]
        outputs = [key.name, *(f"{first.alias}.{c.name} as {a}" for c in one)]
        outputs += [f"{other.alias}.{c.name} as {n}" for c, n in zip(two, b, strict=True)]
        columns = [
            key,
            *(Column(a, c.kind) for c in one),
            *(Column(n, c.kind) for c, n in zip(two, b, strict=True)),
        ]
        return (
            f"select {', '.join(outputs)} from {text} {kind} {other_text} using ({key.name})",
            columns,
        )

    def aggregates(self, items: list[Item]) -> tuple[list[str], list[Column]]:
        texts, columns = [], []
        for _ in range(self.random.randrange(1, 4)):
            name = self.name("agg")
            way = self.random.randrange(8)
            text, kind = {
                0: lambda: ("count(*)", "i"),
                1: lambda: (f"count({self.expression(items, 't', 1)})", "i"),
                2: lambda: (f"count(distinct {self.expression(items, 'i', 1)})", "i"),
                3: lambda: (f"cast(sum({self.expression(items, 'i', 1)}) as integer)", "i"),
                4: lambda: (f"sum({self.expression(items, 'n', 1)})", "n"),
                5: lambda: (f"max({self.expression(items, 'd', 1)})", "d"),
                6: lambda: (f"min({self.expression(items, 't', 1)})", "t"),
                7: lambda: (f"max(case when {self.condition(items, 1)} then 1 else 0 end)", "i"),
            }[way]()
            if way in (0, 4) and self.chance(0.3):
                text += f" filter (where {self.condition(items, 1)})"
            texts.append(f"{text} as {name}")
            columns.append(Column(name, kind))
        return texts, columns

    def grouped(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        keys = [c for c in item.columns if c.kind in "itd"]
        self.random.shuffle(keys)
        keys = keys[: self.random.choice((1, 1, 2))]
        if self.chance(0.3) and keys:
            renamed = self.name("key")
            spelled = [(self.expression([item], "i", 1), Column(renamed, "i"))]
        else:
            spelled = [(f"{item.alias}.{c.name}", c) for c in keys]
        texts, columns = self.aggregates([item])
        outputs = [t if t.endswith("." + c.name) else f"{t} as {c.name}" for t, c in spelled]
        ordinals = ", ".join(str(i + 1) for i in range(len(spelled)))
        by = self.choose(
            (
                ordinals,
                "all",
                ordinals
                if any(" " in t or "{" in t for t, _ in spelled)
                else ", ".join(t for t, _ in spelled),
            )
        )
        having = (
            f" having {self.choose(('count(*) > 1', 'count(*) < 9', 'max(' + (self.columns([item], 'i') or ['1'])[0] + ') > 2'))}"
            if self.chance(0.3)
            else ""
        )
        if not spelled:
            return f"select {', '.join(texts)} from {text}{self.where([item], 0.4)}", columns
        return (
            f"select {', '.join([*outputs, *texts])} from {text}{self.where([item], 0.4)} group by {by}{having}",
            [*(c for _, c in spelled), *columns],
        )

    def rolled(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        keys = [c for c in item.columns if c.kind in "itd"][:2]
        if len(keys) < 2:
            return self.grouped()
        texts, columns = self.aggregates([item])
        one, two = (f"{item.alias}.{c.name}" for c in keys)
        total = self.name("is_total")
        how = self.choose(
            (
                f"rollup ({one}, {two})",
                f"cube ({one}, {two})",
                f"grouping sets (({one}), ({one}, {two}))",
            )
        )
        return (
            f"select {one}, {two}, cast(grouping({one}) as integer) as {total}, {', '.join(texts)} from {text} group by {how}",
            [*keys, Column(total, "i"), *columns],
        )

    def union(self) -> tuple[str, list[Column]]:
        kinds = [self.choose("iitdn") for _ in range(self.random.randrange(2, 4))]
        columns = [Column(self.name("u"), k) for k in kinds]
        operator = self.choose(
            (
                "union all",
                "union all",
                "union all",
                "union",
                "union",
                "except",
                "intersect",
                "except all",
            )
        )
        branches = []
        for _ in range(self.choose((2, 2, 3)) if operator.startswith("union") else 2):
            text, item = self.source()
            picked = [self.expression([item], k, 1) for k in kinds]
            named = [
                f"{p} as {c.name}" if not branches or self.chance(0.5) else p
                for p, c in zip(picked, columns, strict=True)
            ]
            branches.append(f"select {', '.join(named)} from {text}{self.where([item], 0.4)}")
        return f" {operator} ".join(branches), columns

    def total_order(self, item: Item, first: list[str]) -> str:
        """An ORDER BY that leaves no two different rows in either order."""
        rest = [f"{item.alias}.{c.name}" for c in item.columns]
        return ", ".join([*first, *(r for r in rest if r not in first)])

    def windowed(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        outputs, columns = self.outputs([item], 4)
        by = (
            f"partition by {self.choose(self.qualified([item], 'itdbn'))} "
            if self.chance(0.7)
            else ""
        )
        first = [
            self.choose(self.qualified([item], "itdn") or self.qualified([item], "itdbn"))
            + self.choose(("", " desc"))
        ]
        order = self.total_order(item, first)
        for _ in range(self.choose((1, 2))):
            name = self.name("w")
            i = self.expression([item], "i", 1)
            window, kind = self.choose(
                (
                    (f"row_number() over ({by}order by {order})", "i"),
                    (f"rank() over ({by}order by {first[0]})", "i"),
                    (f"dense_rank() over ({by}order by {first[0]})", "i"),
                    (f"lag({i}) over ({by}order by {order})", "i"),
                    (
                        f"cast(sum({i}) over ({by}order by {order} rows between unbounded preceding and current row) as integer)",
                        "i",
                    ),
                    (f"count(*) over ({by.strip()})", "i"),
                    (f"max({self.expression([item], 'd', 1)}) over ({by.strip()})", "d"),
                    (
                        f"first_value({self.expression([item], 't', 1)}) over ({by}order by {order})",
                        "t",
                    ),
                    (f"cast(ntile(3) over ({by}order by {order}) as integer)", "i"),
                )
            )
            outputs.append(f"{window} as {name}")
            columns.append(Column(name, kind))
        qualify = ""
        if self.chance(0.3):
            qualify = f" qualify row_number() over ({by}order by {order}) <= {self.choose((1, 2))}"
        return f"select {', '.join(outputs)} from {text}{self.where([item], 0.3)}{qualify}", columns

    def deduplicated(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        key = self.choose(self.qualified([item], "it") or self.qualified([item], "itdbn"))
        order = self.total_order(item, [key])
        inner = self.name("ranked")
        names = ", ".join(c.name for c in item.columns)
        source, alias = text, item.alias
        way = self.random.randrange(3)
        if way == 0:
            return (
                f"select {alias}.* from {source} qualify row_number() over (partition by {key} order by {order}) = 1",
                item.columns,
            )
        if way == 1:
            rank = self.name("rn")
            return (
                f"select {names} from (select *, row_number() over (partition by {key} order by {order}) as {rank} from {source}) as {inner} where {rank} = 1",
                item.columns,
            )
        return f"select distinct on ({key}) {alias}.* from {source} order by {order}", item.columns

    def star(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        way = self.random.randrange(4)
        if way == 0 and len(item.columns) > 2:
            dropped = self.choose(item.columns)
            return (
                f"select * exclude ({dropped.name}) from {text}{self.where([item], 0.6)}",
                [c for c in item.columns if c != dropped],
            )
        if way == 1:
            replaced = self.choose(item.columns)
            value = self.expression([item], replaced.kind, 1)
            return (
                f"select * replace ({value} as {replaced.name}) from {text}{self.where([item], 0.4)}",
                item.columns,
            )
        if way == 2:
            name = self.name("x")
            return (
                f"select {item.alias}.*, {self.expression([item], 'i')} as {name} from {text}{self.where([item], 0.4)}",
                [*item.columns, Column(name, "i")],
            )
        return f"select * from {text}{self.where([item], 0.8)}", item.columns

    def top(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        first = self.choose(
            self.qualified([item], "itdn") or self.qualified([item], "itdbn")
        ) + self.choose(("", " desc"))
        offset = f" offset {self.random.randrange(4)}" if self.chance(0.3) else ""
        return (
            f"select * from {text}{self.where([item], 0.3)} order by {self.total_order(item, [first])} limit {self.random.randrange(5, 25)}{offset}",
            item.columns,
        )

    def pivoted(self) -> tuple[str, list[Column]]:
        relation = self.choose(self.visible())
        keys, values = relation.of("i"), relation.of("in")
        over = relation.of("t") or relation.of("i")
        if not keys or len(values) < 2 or not over:
            return self.grouped()
        key = self.choose(keys)
        value = self.choose([v for v in values if v != key])
        by = self.choose([o for o in over if o not in (key, value)] or [None])
        if by is None:
            return self.grouped()
        options = ["'ash'", "'elm'"] if by.kind == "t" else ["1", "2"]
        names = [self.name("p"), self.name("p")]
        listed = ", ".join(f"{o} as {n}" for o, n in zip(options, names, strict=True))
        alias = self.name("narrow")
        return (
            f"select * from (select {key.name}, {value.name}, {by.name} from {relation.jinja}) as {alias} "
            f"pivot (max({value.name}) for {by.name} in ({listed}))",
            [key, *(Column(n, value.kind) for n in names)],
        )

    def unnested(self) -> tuple[str, list[Column]]:
        text, item = self.source()
        name, alias = self.name("el"), self.name("un")
        values = ", ".join(self.expression([item], "i", 1) for _ in range(2))
        outputs, columns = self.outputs([item], 3)
        return (
            f"select {', '.join(outputs)}, {alias}.{name} from {text} cross join unnest([{values}]) as {alias} ({name})",
            [*columns, Column(name, "i")],
        )

    def self_join(self) -> tuple[str, list[Column]]:
        relation = self.choose(self.visible())
        ints = relation.of("i")
        if not ints:
            return self.plain()
        key, other = self.choose(ints), self.choose(relation.columns)
        one, two, name, count = (
            self.name("earlier"),
            self.name("later"),
            self.name("mate"),
            self.name("agg"),
        )
        return (
            f"select {one}.{key.name}, max({two}.{other.name}) as {name}, count(*) as {count} from {relation.jinja} as {one} "
            f"{self.choose(('join', 'left join'))} {relation.jinja} as {two} on {one}.{key.name} = {two}.{key.name} "
            f"and {self.condition([Item(two, relation.columns)], 1)} group by 1",
            [key, Column(name, other.kind), Column(count, "i")],
        )

    # -- models ---------------------------------------------------------------------------------------

    def body(self) -> tuple[str, list[Column]]:
        """A model's query: CTEs on CTEs, or one SELECT."""
        self.ctes: list[Relation] = []
        parts: list[str] = []
        style = self.random.randrange(4)
        if style == 0:
            return self.query()
        if style == 1:
            for relation in self.random.sample(self.visible(), 2):
                name = self.name("imported")
                parts.append(f"{name} as (\n    select * from {relation.jinja}\n)")
                self.ctes.append(Relation(name, name, list(relation.columns)))
        for _ in range(self.random.choice((1, 1, 2, 3))):
            sql, columns = self.query()
            name = self.name("step")
            comment = "-- one step\n" if self.chance(0.2) else ""
            parts.append(f"{comment}{name} as (\n    {sql}\n)")
            # DuckDB does not look into a CTE that nobody reads: each is tried on its own.
            self.run(self.render(f"with {', '.join(parts)} select * from {name} limit 0"))
            self.ctes.append(Relation(name, name, columns))
        if self.chance(0.5):
            last = self.ctes[-1]
            sql, columns = f"select * from {last.name}", last.columns
        else:
            sql, columns = self.query()
        return "with\n\n" + ",\n\n".join(parts) + "\n\n" + sql, columns

    def good(self) -> tuple[str, list[Column]]:
        """A query that runs, returns some rows and not too many, and names its columns once."""
        while True:
            try:
                sql, columns = self.body()
                names = [c.name for c in columns]
                if len(set(names)) != len(names):
                    continue
                text = self.render(sql)
                count = self.run(f"select count(*) from ({text}\n)").fetchone()[0]
                described = [r[0] for r in self.run(f"describe {text}").fetchall()]
            except duckdb.Error:
                continue
            if 2 <= count <= MAX_ROWS and sorted(described) == sorted(names):
                order = {c.name: c for c in columns}
                return sql, [order[n] for n in described]

    def render(self, text: str, **more: Any) -> str:
        """The SQL of a Jinja text, as the generator's own DuckDB reads it."""
        given = {
            "ref": lambda name, v=None: (
                f"main.{name}_v{v}" if v else self.latest.get(name, f"main.{name}")
            ),
            "source": lambda schema, name: f"{schema}.{name}",
            "var": lambda name: VARS[name],
            "plus_offset": lambda text: f"({text} + {VARS['offset']})",
            "tidy": lambda text: f"coalesce(lower({text}), 'none')",
            "is_incremental": lambda: False,
            "columns_of": self.columns_of,
            "values_of": self.values_of,
            **more,
        }
        return jinja2.Environment().from_string(text).render(**given)

    def columns_of(self, relation: str) -> list[str]:
        return [str(r[0]) for r in self.run(f"describe {relation}").fetchall()]

    def values_of(self, relation: str, column: str) -> list[Any]:
        rows = self.run(
            f"select distinct {column} from {relation} where {column} is not null order by 1 limit 4"
        ).fetchall()
        return [r[0] for r in rows]

    def add(
        self,
        name: str,
        raw: str,
        columns: list[Column],
        config: dict[str, Any],
        *,
        version: int | None = None,
    ) -> Model:
        table = f"{name}_v{version}" if version else name
        self.run(f"create table main.{table} as {self.render(raw)}")
        count = self.run(f"select count(*) from main.{table}").fetchone()[0]
        jinja = f"{{{{ ref('{name}', v={version}) }}}}" if version else f"{{{{ ref('{name}') }}}}"
        relation = Relation(jinja, f"main.{table}", columns, rows=count)
        model = Model(name, raw, config, relation, version=version)
        self.models.append(model)
        self.relations.append(relation)
        return model

    def make_models(self) -> None:
        for number in range(self.wanted):
            sql, columns = self.good()
            name = f"m_{number:02d}"
            kind = self.choose(("view", "view", "table", "table", "ephemeral", "incremental"))
            config: dict[str, Any] = {"materialized": kind}
            ints = [c.name for c in columns if c.kind == "i"]
            if kind == "incremental" and not ints:
                config["materialized"] = kind = "table"
            if kind == "incremental":
                config["incremental_strategy"] = "delete+insert"
                config["unique_key"] = ints[0]
                over, listed = self.name("src"), ", ".join(c.name for c in columns)
                sql = (
                    f"select {listed} from (\n{sql}\n) as {over}\n"
                    f"{{% if is_incremental() %}}\nwhere {ints[0]} >= (select max({ints[0]}) - 3 from {{{{ this }}}})\n{{% endif %}}"
                )
            if kind == "table" and ints and self.chance(0.3):
                config["post_hook"] = (
                    f"delete from {{{{ this }}}} where {ints[0]} = {self.random.randrange(8)}"
                )
            if number == self.wanted // 2:
                self.versioned(name)
                continue
            self.add(name, sql, columns, config)
        self.introspective()
        self.reading_properties()

    def versioned(self, name: str) -> None:
        """One model in two versions; who says none gets the second."""
        for version in (1, 2):
            sql, columns = self.good()
            model = self.add(name, sql, columns, {"materialized": "table"}, version=version)
        self.latest[name] = f"main.{name}_v2"
        self.relations.append(Relation(f"{{{{ ref('{name}') }}}}", model.relation.name, columns))

    def introspective(self) -> None:
        """Two models that look at the warehouse while they compile."""
        of = [
            r
            for r in self.relations
            if "ref(" in r.jinja and "seed" not in r.jinja and "v=" not in r.jinja
        ]
        stored = {m.relation.jinja for m in self.models if m.config["materialized"] != "ephemeral"}
        of = [r for r in of if r.jinja in stored]
        for r in of[:1]:
            columns = self.columns_of(r.name)
            raw = f"select {{% for c in columns_of({r.jinja[3:-3]}) %}}{{{{ c }}}}{{{{ ', ' if not loop.last }}}}{{% endfor %}} from {r.jinja}"
            self.add(
                "m_star",
                raw,
                [c for n in columns for c in r.columns if c.name == n],
                {"materialized": "view"},
            )
        # The values stand in its SQL, and dbt's rows are those here where no hook deletes any.
        hooked = {m.relation.jinja for m in self.models if "post_hook" in m.config}
        listed = [
            (r, c.name)
            for r in of
            if r.jinja not in hooked and r.of("i")
            for c in r.of("t")
            if self.are_words(r, c.name)
        ]
        for r, t in listed[:1]:
            i = r.of("i")[0].name
            raw = (
                f"select {i}{{% for v in values_of({r.jinja[3:-3]}, '{t}') %}}, "
                f"count(case when {t} = '{{{{ v }}}}' then 1 end) as of_{{{{ loop.index }}}}{{% endfor %}} from {r.jinja} group by {i}"
            )
            names = self.columns_of(f"({self.render(raw)})")
            self.add("m_turned", raw, [Column(n, "i") for n in names], {"materialized": "table"})

    def are_words(self, r: Relation, column: str) -> bool:
        """Whether a column has values, and each can stand in quotes as it is."""
        distinct = f"select distinct {column} from {r.name} where {column} is not null"
        rows = self.run(distinct).fetchall()
        return bool(rows) and all(re.fullmatch(r"[\w ]+", str(value)) for (value,) in rows)

    def reading_properties(self) -> None:
        """Models whose hooks go by a property: of meta, of a column, of a key of their own."""
        stored = [m.relation for m in self.models if m.config["materialized"] != "ephemeral"]
        of = [r for r in stored if r.of("i") and "v=" not in r.jinja]
        for name, read in BOUNDS.items():
            relation = self.choose(of)
            column = self.choose(relation.of("i")).name
            meta = {"bound": self.random.randrange(3, 6)}
            hook = f"delete from {{{{ this }}}} where {column} >= {{{{ {read} }}}}"
            config = {"materialized": "table", "post_hook": hook.replace("COLUMN", column)}
            if name == "m_by_meta":
                config["meta"] = meta
            elif name == "m_by_config":
                config["lab_bound"] = meta["bound"]
            model = self.add(name, f"select * from {relation.jinja}", relation.columns, config)
            if name == "m_by_column":
                model.column_meta[column] = meta

    # -- tests ----------------------------------------------------------------------------------------

    def make_tests(self) -> None:
        """Tests that mostly pass, read off the data, and some that do not."""
        for model in self.models:
            relation = model.relation
            rows = relation.rows
            if self.chance(0.5):
                low = max(0, rows - self.random.randrange(3))
                model.tests.append(
                    {"rows_between": {"at_least": low, "at_most": rows + self.random.randrange(3)}}
                )
            for column in relation.columns:
                self.column_tests(model, column)
            ints = relation.of("i")
            if ints and self.chance(0.4):
                condition = self.condition([Item("checked", relation.columns)], 1).replace(
                    "checked.", ""
                )
                if "{" not in condition:
                    model.tests.append({"holds_everywhere": {"expression": condition}})
            if len(relation.columns) > 1 and self.chance(0.3):
                pair = [c.name for c in self.random.sample(relation.columns, 2)]
                model.tests.append({"unique_together": {"columns": pair}})
        for number in range(max(6, self.wanted // 3)):
            sql = self.singular_test()
            if sql is not None:
                self.singular[f"check_{number}"] = sql

    def column_tests(self, model: Model, column: Column) -> None:
        name, c = model.relation.name, column.name
        tests = model.column_tests.setdefault(c, [])
        total, present, distinct = self.run(
            f"select count(*), count({c}), count(distinct {c}) from {name}"
        ).fetchone()
        where = {"where": self.choose((f"{c} is not null", f"length(cast({c} as varchar)) < 3"))}
        config = {"config": where} if self.chance(0.15) else {}
        if (present == total and self.chance(0.35)) or self.chance(0.04):
            tests.append({"not_null": config} if config else "not_null")
        if (distinct == present and self.chance(0.8)) or self.chance(0.04):
            tests.append({"unique": config} if config else "unique")
        if column.kind in "it" and distinct <= 9 and self.chance(0.25):
            rows = self.run(
                f"select distinct {c} from {name} where {c} is not null order by 1"
            ).fetchall()
            # dbt writes the values as they are: a quotation mark in one ends the text.
            values = [r[0] for r in rows if not isinstance(r[0], (dict, list))]
            values = [] if any("'" in str(value) for value in values) else values
            if self.chance(0.15) and values:
                values.pop()
            if values:
                tests.append(
                    {"accepted_values": {"values": values, "quote": column.kind == "t", **config}}
                )
        if column.kind == "i" and self.chance(0.25):
            for other in self.random.sample(self.relations, len(self.relations)):
                if "source" in other.jinja or other.name == name:
                    continue
                parents = [p.name for p in other.of("i")]
                for parent in parents:
                    orphans = self.run(
                        f"select count(*) from {name} where {c} is not null and {c} not in (select {parent} from {other.name} where {parent} is not null)"
                    ).fetchone()[0]
                    if orphans == 0 and present:
                        tests.append({"relationships": {"to": other.jinja[3:-3], "field": parent}})
                        return
        if column.kind in "in" and self.chance(0.25):
            low = self.run(f"select min({c}) from {name}").fetchone()[0]
            tests.append({"at_least": {"bound": int(low or 0) - (0 if self.chance(0.8) else -1)}})
        if column.kind == "i" and self.chance(0.2):
            total = self.run(f"select sum({c}) from {name}").fetchone()[0]
            tests.append({"sum_is": {"total": int(total or 0)}})

    def singular_test(self) -> str | None:
        """A test with a query of its own: joins, windows, EXISTS, sums compared."""
        self.ctes = []
        stored = [m.relation for m in self.models]
        one, two = self.random.sample(stored, 2)
        a, b = Item("one_side", one.columns), Item("other_side", two.columns)
        ints, others = self.qualified([a], "i"), self.qualified([b], "i")
        if not ints or not others:
            return None
        key, other = self.choose(ints), self.choose(others)
        sql = self.choose(
            (
                f"select {key}, count(*) as n from {one.jinja} as one_side join {two.jinja} as other_side on {key} = {other} group by 1 having count(*) > 3",
                f"select * from {one.jinja} as one_side where not exists (select 1 from {two.jinja} as other_side where {other} = {key}) and {self.condition([a], 1)}",
                f"select {key}, {other} from {one.jinja} as one_side left join {two.jinja} as other_side on {key} = {other} where {other} is null",
                f"select 1 as wrong where (select coalesce(sum({key}), 0) from {one.jinja} as one_side) < (select coalesce(sum({other}), 0) from {two.jinja} as other_side)",
                f"select * from (select {key} as k, row_number() over (partition by {key} order by {self.total_order(a, [])}) as n from {one.jinja} as one_side) as numbered where n > 2",
                f"with both_sides as (select {key} as k from {one.jinja} as one_side union all select {other} from {two.jinja} as other_side) select k from both_sides group by k having count(*) > 12",
                f"select {key} from {one.jinja} as one_side except select {other} from {two.jinja} as other_side",
                f"select one_side.* from {one.jinja} as one_side where {self.condition([a], 2)}",
            )
        )
        try:
            self.run(self.render(sql))
        except duckdb.Error:
            return None
        return str(sql)

    # -- what is written --------------------------------------------------------------------------------

    def make(self) -> None:
        """Everything, in this process' own DuckDB."""
        self.ctes = []
        self.latest: dict[str, str] = {}
        self.make_sources()
        self.make_models()
        self.make_tests()

    def write(self, folder: Path) -> None:
        """The dbt project as files."""
        files: dict[str, str] = {
            "dbt_project.yml": yaml.safe_dump(
                {
                    "name": "lab",
                    "version": "1.0.0",
                    "profile": "lab",
                    "vars": dict(VARS),
                    "flags": {
                        "send_anonymous_usage_stats": False,
                        "require_generic_test_arguments_property": False,
                    },
                }
            ),
            "profiles.yml": PROFILE,
            "macros/macros.sql": MACROS,
            "tests/generic/generic.sql": GENERIC,
        }
        listed: dict[str, dict[str, Any]] = {}
        for model in self.models:
            config = ", ".join(f"{k}={v!r}" for k, v in model.config.items())
            name = f"{model.name}_v{model.version}" if model.version else model.name
            files[f"models/{name}.sql"] = f"{{{{ config({config}) }}}}\n\n{model.raw}\n"
            columns: list[dict[str, Any]] = [
                {"name": c, "data_tests": t, **self.meta_of(model, c)}
                for c, t in model.column_tests.items()
                if t or c in model.column_meta
            ]
            if model.version:
                entry = listed.setdefault(
                    model.name, {"name": model.name, "latest_version": 2, "versions": []}
                )
                entry["versions"].append(
                    {"v": model.version, "columns": columns, "data_tests": model.tests}
                )
            else:
                listed[model.name] = {
                    "name": model.name,
                    "columns": columns,
                    "data_tests": model.tests,
                }
        for name, (columns, rows) in self.seeds.items():
            lines = [",".join(c.name for c in columns), *(",".join(r) for r in rows)]
            files[f"seeds/{name}.csv"] = "\n".join(lines) + "\n"
        for name, sql in self.singular.items():
            files[f"tests/{name}.sql"] = sql + "\n"
        tables = [
            {"name": n, "columns": [{"name": c.name} for c in columns], "data_tests": []}
            for n, (columns, _) in self.sources.items()
        ]
        snapshots = self.snapshots(files)
        files["models/models.yml"] = yaml.safe_dump(
            {
                "version": 2,
                "models": list(listed.values()),
                "snapshots": snapshots,
                "sources": [{"name": "raw", "schema": RAW, "tables": tables}],
            },
            sort_keys=False,
        )
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    @staticmethod
    def meta_of(model: Model, column: str) -> dict[str, Any]:
        meta = model.column_meta.get(column)
        return {"config": {"meta": meta}} if meta else {}

    def snapshots(self, files: dict[str, str]) -> list[dict[str, Any]]:
        """Snapshots of models that have a key, one of each strategy."""
        made: list[dict[str, Any]] = []
        for model in self.models:
            if len(made) == 2 or model.version or model.config["materialized"] == "ephemeral":
                continue
            for column in model.relation.of("i"):
                total, distinct = self.run(
                    f"select count(*), count(distinct {column.name}) from {model.relation.name}"
                ).fetchone()
                days = model.relation.of("d")
                if total == distinct and (made or days):
                    name = f"snap_{len(made)}"
                    how = (
                        "strategy='check', check_cols='all'"
                        if made
                        else f"strategy='timestamp', updated_at='{days[0].name}'"
                    )
                    files[f"snapshots/{name}.sql"] = (
                        f"{{% snapshot {name} %}}\n{{{{ config(target_schema=target.schema, unique_key='{column.name}', {how}) }}}}\n"
                        f"select * from {model.relation.jinja}\n{{% endsnapshot %}}\n"
                    )
                    made.append(
                        {
                            "name": name,
                            "columns": [
                                {"name": column.name, "data_tests": ["not_null", "unique"]}
                            ],
                        }
                    )
                    break
        for number in range(len(made), 2):
            name, source = f"snap_{number}", f"src_{number}"
            files[f"snapshots/{name}.sql"] = (
                f"{{% snapshot {name} %}}\n{{{{ config(target_schema=target.schema, unique_key='k1', strategy='check', check_cols='all') }}}}\n"
                f"select k1, count(*) as n, max(k2) as top from {{{{ source('raw', '{source}') }}}} where k1 is not null group by k1\n"
                "{% endsnapshot %}\n"
            )
            columns = [
                {"name": "k1", "data_tests": ["not_null", "unique"]},
                {"name": "n", "data_tests": [{"sum_is": {"total": 50}}]},
            ]
            made.append({"name": name, "columns": columns})
        return made

    def load(self, database: Path) -> None:
        """The sources' tables in a database file, as a loader would bring them."""
        database.parent.mkdir(parents=True, exist_ok=True)
        with duckdb.connect(str(database)) as connection:
            connection.execute(f"create schema if not exists {RAW}")
            for name, (columns, rows) in self.sources.items():
                self.create(f"{RAW}.{name}", columns, rows, connection.execute)


BOUNDS: Final = {
    "m_by_meta": "model.meta.bound",
    "m_by_column": "model.columns['COLUMN'].meta.bound",
    "m_by_config": "config.get('lab_bound')",
}
"""Models with hooks that delete by a bound, and where each is said."""

VARS: Final = {"threshold": 5, "offset": 2}

PROFILE: Final = """lab:
  target: duckdb
  outputs:
    duckdb:
      type: duckdb
      path: "{{ env_var('RIPPLE_DUCKDB_PATH') }}"
      schema: main_lab
      threads: 1
      settings: {threads: 1}  # a sum of floating-point numbers depends on how many share it
"""

MACROS: Final = """{% macro plus_offset(expression) %}({{ expression }} + {{ var('offset') }}){% endmacro %}

{% macro tidy(expression) %}coalesce(lower({{ expression }}), 'none'){% endmacro %}

{% macro columns_of(relation) %}
    {% if not execute %}{{ return(['1']) }}{% endif %}
    {{ return(adapter.get_columns_in_relation(relation) | map(attribute='name') | list) }}
{% endmacro %}

{% macro values_of(relation, column) %}
    {% if not execute %}{{ return([]) }}{% endif %}
    {% set found = run_query('select distinct ' ~ column ~ ' from ' ~ relation ~ ' where ' ~ column ~ ' is not null order by 1 limit 4') %}
    {{ return(found.columns[0].values() | list) }}
{% endmacro %}
"""

GENERIC: Final = """{% test rows_between(model, at_least, at_most) %}
select count(*) as n from {{ model }} having count(*) not between {{ at_least }} and {{ at_most }}
{% endtest %}

{% test holds_everywhere(model, expression) %}
select 1 as broken from {{ model }} where not ({{ expression }})
{% endtest %}

{% test unique_together(model, columns) %}
select {{ columns | join(', ') }}, count(*) as n from {{ model }} group by {{ columns | join(', ') }} having count(*) > 1
{% endtest %}

{% test at_least(model, column_name, bound) %}
select {{ column_name }} from {{ model }} where {{ column_name }} < {{ bound }}
{% endtest %}

{% test sum_is(model, column_name, total) %}
select sum({{ column_name }}) as total from {{ model }} having coalesce(sum({{ column_name }}), 0) <> {{ total }}
{% endtest %}
"""
