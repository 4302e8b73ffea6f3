"""Random Spark queries over the fixtures' tables, mostly valid ones.

The generator knows which names are in scope, so that most of what it writes passes Spark's
analyser; it leans on what is easy to get wrong: aliases that shadow columns, USING, stars, grouping
by alias and position, correlation, set operations, windows over groups, laterals.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

TABLES: Final[dict[str, tuple[list[str], list[str]]]] = {
    # name: (int columns, string columns)
    "p": (["id", "a", "b"], []),
    "q": (["id", "c"], []),
    "v": (["id", "n"], []),
    "u": (["id", "c"], ["k"]),
    "months": (["jan", "feb", "mar"], ["k"]),
}
AGGREGATES: Final = ("sum", "max", "min", "count", "avg", "any_value")


@dataclass
class Relation:
    """A relation in scope: its alias, its int columns and its string columns."""

    alias: str
    ints: list[str]
    texts: list[str]

    @property
    def columns(self) -> list[str]:
        return self.ints + self.texts


@dataclass
class Scope:
    """What a SELECT can name: its relations, the merged columns of USING, the scope around it."""

    relations: list[Relation] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)
    outer: Scope | None = None

    def count(self, name: str) -> int:
        return sum(name in r.columns for r in self.relations)


class Generator:
    """Writes queries; the same seed writes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0
        self.ctes: list[Relation] = []

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    # -- queries --------------------------------------------------------------------------------

    def statement(self) -> str:
        """One query, with CTEs half of the time."""
        self.ctes = []
        definitions = []
        for _ in range(self.random.choice((0, 0, 1, 2))):
            sql, made = self.query(2)
            name = self.random.choice((self.name("cte"), self.name("cte"), "q"))
            if any(c.alias == name for c in self.ctes):
                continue
            definitions.append(f"{name} as ({sql})")
            self.ctes.append(Relation(name, made.ints, made.texts))
        sql, _ = self.query(3)
        return (f"with {', '.join(definitions)} " if definitions else "") + sql

    def query(self, depth: int, outer: Scope | None = None) -> tuple[str, Relation]:
        """A SELECT or a set operation, and its columns (names without repetition)."""
        if depth > 0 and outer is None and self.chance(0.2):
            operator = self.random.choice(
                ("union all", "union", "except", "intersect", "except all", "union all")
            )
            left, made = self.select(depth - 1, None, width=2)
            right, _ = self.select(depth - 1, None, width=2)
            sql = (
                f"({left}) {operator} ({right})"
                if self.chance(0.5)
                else (f"select * from ({left}) {operator} select * from ({right})")
            )
            return sql, made
        return self.select(depth, outer)

    def relation(self, depth: int) -> tuple[str, Relation]:
        """A source without its alias."""
        if self.ctes and self.chance(0.3):
            cte = self.random.choice(self.ctes)
            return cte.alias, Relation("", list(cte.ints), list(cte.texts))
        if depth > 0 and self.chance(0.35):
            sql, made = self.query(depth - 1)
            return f"({sql})", made
        if depth > 0 and self.chance(0.12):
            return self.pivoted(depth - 1)
        hidden = {c.alias for c in self.ctes}
        name = self.random.choice([t for t in TABLES if t not in hidden])
        return name, Relation("", list(TABLES[name][0]), list(TABLES[name][1]))

    def pivoted(self, depth: int) -> tuple[str, Relation]:
        """A relation turned: a PIVOT of one column by another, or an UNPIVOT of two."""
        for _ in range(5):
            sql, made = self.query(depth)
            if len(made.ints) == len(set(made.columns)) > 2:
                break
        else:
            return "p", Relation("", *TABLES["p"])
        one, two, *rest = self.random.sample(made.ints, len(made.ints))
        rest = [c for c in made.ints if c in rest]
        first, second = self.name("pv"), self.name("pv")
        if self.chance(0.5):
            call = f"{self.random.choice(('sum', 'max', 'count'))}({one})"
            turned = f"pivot ({call} for {two} in (1 as {first}, 2 as {second}))"
            return f"(select * from ({sql}) {turned})", Relation("", [*rest, first, second], [])
        nulls = " include nulls" if self.chance(0.5) else ""
        turned = f"unpivot{nulls} ({first} for {second} in ({one}, {two} as other))"
        return f"(select * from ({sql}) {turned})", Relation("", [*rest, first], [second])

    def sources(self, depth: int, scope: Scope) -> str:
        sql, made = self.relation(depth)
        made.alias = self.name("r")
        scope.relations.append(made)
        text = f"{sql} as {made.alias}"
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            if self.chance(0.1):
                text += self.lateral(scope)
                continue
            sql, other = self.relation(depth)
            other.alias = self.name("r")
            kind = self.random.choice(
                ("join", "left join", "right join", "full join", "cross join", "left semi join",
                 "left anti join", "natural join", ",")
            )  # fmt: skip
            common = [
                c
                for c in other.ints
                if scope.count(c) == 1 or (c in scope.merged and scope.count(c))
            ]
            semi = "semi" in kind or "anti" in kind
            shared = {c for c in other.columns if scope.count(c)}
            if kind == "natural join":
                if any(scope.count(c) > 1 for c in shared):
                    continue  # Spark takes the first of them, whatever that means
                text += f" natural join {sql} as {other.alias}"
                scope.relations.append(other)
                scope.merged |= shared
                continue
            if kind in (",", "cross join"):
                text += f"{',' if kind == ',' else ' cross join'} {sql} as {other.alias}"
                scope.relations.append(other)
                continue
            if common and self.chance(0.5):
                key = self.random.choice(common)
                text += f" {kind} {sql} as {other.alias} using ({key})"
                if not semi:
                    scope.relations.append(other)
                    scope.merged.add(key)
                continue
            both = Scope([*scope.relations, other], set(), scope.outer)
            text += f" {kind} {sql} as {other.alias} on {self.condition(both, 1)}"
            if not semi:
                scope.relations.append(other)
        return text

    def lateral(self, scope: Scope) -> str:
        """A lateral subquery that computes from the row before it."""
        alias, column = self.name("l"), self.name("c")
        inner = self.integer(scope, 1, plain=True)
        scope.relations.append(Relation(alias, [column], []))
        return f", lateral (select {inner} as {column}) as {alias}"

    def select(
        self, depth: int, outer: Scope | None, width: int | None = None
    ) -> tuple[str, Relation]:
        scope = Scope(outer=outer)
        source = self.sources(depth, scope)
        clauses = [f"from {source}"]
        if self.chance(0.15):
            column = self.name("e")
            values = ", ".join(self.integer(scope, 0, plain=True) for _ in range(2))
            view = self.name("x")
            clauses.append(f"lateral view explode(array({values})) {view} as {column}")
            scope.relations.append(Relation(view, [column], []))
        if self.chance(0.5):
            clauses.append(f"where {self.condition(scope, 2)}")
        grouped = self.chance(0.35)
        count = width or self.random.randint(1, 4)
        items: list[str] = []
        made = Relation("", [], [])
        keys: list[str] = []
        if grouped:
            for _ in range(self.random.randint(1, 2)):
                keys.append(self.integer(scope, 1, plain=True))
            for i in range(count):
                if i < len(keys) and self.chance(0.7):
                    value = keys[i]
                elif self.chance(0.2):
                    value = f"{keys[0]} + {self.aggregate(scope)}"
                else:
                    value = self.aggregate(scope)
                items.append(f"{value} as {self.output(scope, made)}")
            clauses.append("group by " + self.grouping(keys, items))
            if self.chance(0.3):
                clauses.append(f"having {self.aggregate(scope)} > {self.random.randint(0, 9)}")
        else:
            star = self.star(scope) if width is None and self.chance(0.25) else None
            if star is not None:
                items.append(star[0])
                made = star[1]
            for _ in range(count - len(items) if width is None else count):
                if self.chance(0.15):
                    value = self.window(scope)
                elif made.ints and self.chance(0.15) and star is None:
                    free = [m for m in made.ints if not scope.count(m)]
                    value = f"{self.random.choice(free)} * 2" if free else "1"
                else:
                    value = self.integer(scope, 2)
                items.append(f"{value} as {self.output(scope, made)}")
        distinct = "distinct " if self.chance(0.1) else ""
        if self.chance(0.25):
            choices = [*made.ints, str(self.random.randint(1, len(items)))]
            clauses.append(f"order by {self.random.choice(choices)}")
            if self.chance(0.5):
                clauses.append(f"limit {self.random.randint(1, 9)}")
        return f"select {distinct}{', '.join(items)} {' '.join(clauses)}", made

    def grouping(self, keys: list[str], items: list[str]) -> str:
        shown = [
            i for i, item in enumerate(items) if any(item.startswith(k + " as ") for k in keys)
        ]
        style = self.random.random()
        if style < 0.2 and len(shown) >= len(keys):
            return "all"
        if style < 0.4 and shown:
            return ", ".join([*keys, str(shown[0] + 1)])
        if style < 0.5:
            return f"rollup ({', '.join(keys)})"
        if style < 0.6 and len(keys) == 2:
            return f"grouping sets (({keys[0]}, {keys[1]}), ({keys[0]}))"
        return ", ".join(keys)

    def star(self, scope: Scope) -> tuple[str, Relation] | None:
        """A star whose columns have no name twice."""
        if self.chance(0.4):
            relation = self.random.choice(scope.relations)
            if len(set(relation.columns)) == len(relation.columns):
                made = Relation("", list(relation.ints), list(relation.texts))
                return f"{relation.alias}.*", made
        every = [c for r in scope.relations for c in r.columns]
        if len(set(every)) != len(every):
            return None
        ints = [c for r in scope.relations for c in r.ints]
        texts = [c for r in scope.relations for c in r.texts]
        if len(every) > 1 and self.chance(0.3):
            left_out = self.random.choice(every)
            ints, texts = [c for c in ints if c != left_out], [c for c in texts if c != left_out]
            return f"* except ({left_out})", Relation("", ints, texts)
        return "*", Relation("", ints, texts)

    def output(self, scope: Scope, made: Relation) -> str:
        """A name for an output: often one that a source column has too."""
        if self.chance(0.3):
            taken = [c for r in scope.relations for c in r.ints if c not in made.columns]
            if taken:
                made.ints.append(self.random.choice(taken))
                return made.ints[-1]
        made.ints.append(self.name("o"))
        return made.ints[-1]

    # -- expressions ----------------------------------------------------------------------------

    def column(self, scope: Scope) -> str:
        relations = [r for r in scope.relations if r.ints]
        relation = self.random.choice(relations)
        name = self.random.choice(relation.ints)
        if (scope.count(name) == 1 and self.chance(0.6)) or (
            name in scope.merged and self.chance(0.3)
        ):
            return name
        return f"{relation.alias}.{name}"

    def integer(self, scope: Scope, depth: int, plain: bool = False) -> str:
        """An int expression; a plain one has no subquery."""
        if depth <= 0 or self.chance(0.35):
            return self.column(scope) if self.chance(0.9) else str(self.random.randint(0, 9))
        inner = depth - 1
        shape = self.random.randint(0, 7 if plain else 8)
        one, two = (self.integer(scope, inner, plain) for _ in range(2))
        if shape == 0:
            test = self.condition(scope, 0) if plain else self.condition(scope, inner)
            return f"case when {test} then {one} else {two} end"
        if shape == 1:
            return f"coalesce({one}, {two})"
        if shape == 2:
            return f"if({self.condition(scope, 0)}, {one}, {two})"
        if shape == 3:
            return f"nullif({one}, {two})"
        if shape == 4:
            return f"abs({one})"
        if shape == 5:
            return f"cast({one} as bigint)"
        if shape == 8:
            return self.scalar(scope)
        return f"({one} {self.random.choice('+-*')} {two})"

    def aggregate(self, scope: Scope) -> str:
        function = self.random.choice(AGGREGATES)
        if function == "count" and self.chance(0.4):
            return "count(*)"
        call = f"{function}({self.integer(scope, 1, plain=True)})"
        return f"{call} filter (where {self.condition(scope, 0)})" if self.chance(0.15) else call

    def window(self, scope: Scope) -> str:
        function = self.random.choice(
            ("row_number()", "rank()", f"sum({self.column(scope)})", f"lag({self.column(scope)})")
        )
        return (
            f"{function} over (partition by {self.integer(scope, 1, plain=True)} "
            f"order by {self.column(scope)})"
        )

    def inner(self, scope: Scope, item: str) -> str:
        """The rest of a subquery after its select list: correlated more often than not."""
        sql, made = self.relation(0)
        made.alias = self.name("s")
        own = Scope([made])
        item = item.format(self.random.choice(made.ints) if made.ints else "1")
        text = f"select {item} from {sql} as {made.alias}"
        tests = []
        if self.chance(0.6) and made.ints:
            tests.append(f"{self.column(own)} > {self.random.randint(0, 9)}")
        if self.chance(0.7) and made.ints:
            relation = self.random.choice([r for r in scope.relations if r.ints])
            seen = f"{relation.alias}.{self.random.choice(relation.ints)}"
            tests.append(f"{made.alias}.{self.random.choice(made.ints)} = {seen}")
        return f"{text} where {' and '.join(tests)}" if tests else text

    def scalar(self, scope: Scope) -> str:
        return f"({self.inner(scope, 'max({})')})"

    def condition(self, scope: Scope, depth: int) -> str:
        shape = self.random.randint(0, 3 if depth <= 0 else 8)
        one = self.integer(scope, min(depth, 1), plain=True)
        if shape <= 1:
            return f"{one} > {self.integer(scope, 0, plain=True)}"
        if shape == 2:
            return f"{one} is not null"
        if shape == 3:
            return f"{one} between {self.column(scope)} and {self.random.randint(0, 9)}"
        if shape == 4:
            return f"{one} in ({self.inner(scope, '{}')})"
        if shape == 5:
            negation = "not " if self.chance(0.4) else ""
            return f"{negation}exists ({self.inner(scope, '*' if self.chance(0.5) else '{}')})"
        if shape == 6:
            return f"{one} = {self.scalar(scope)}"
        joined = self.random.choice(("and", "or"))
        return f"({self.condition(scope, depth - 1)} {joined} {self.condition(scope, depth - 1)})"
