"""Random edits of a query that mean to change what it returns, one method a kind of edit.

Each takes the parse tree of a model's compiled SQL, changes it in place (or answers another tree)
and says None where there is nothing of its kind to edit. They know names, not types: some edits do
not build, which is counted and has its own check.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import sqlglot
from engines import quoted
from sqlglot import exp
from world import Edit, World, plain_name, relation, seed_rows, with_inlined, without_inlined

from dbt_ripple.flow.ir import EPHEMERAL_PREFIX

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))  # as pytest does
from token_edits import TokenEdits

Tree = Any
"""A sqlglot expression; the compiled build of sqlglot has no usable stubs for what is done here."""

AGGREGATES: Final = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.ArgMax, exp.ArgMin)
COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
RANKS: Final = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead)

QUERY_KINDS: Final = (
    "expression",
    "null",
    "filter",
    "join kind",
    "join condition",
    "union",
    "distinct",
    "limit",
    "literal",
    "comparison",
    "aggregate",
    "window",
    "group key",
    "dropped column",
    "renamed column",
    "swapped columns",
    "added column",
    "duplicated rows",
    "table swap",
    "order",
    "rows in another order",
    "word",
    "case",
    "inside a CTE",
)
"""Edits of one query's text."""

NAME_KINDS: Final = ("absent name", "alias elsewhere")
"""Edits that write names which cannot be found, or only by the rules of some engines."""

WORD_KINDS: Final = {"word": "word replaced", "case": "string's case"}
"""Edits of a text's words, as the fuzzer of queries makes them."""

VALUE_KINDS: Final = frozenset({"expression", "null", "literal", "swapped columns"})
"""Edits of values; the issue gives them a bound of their own."""


WORDS: Final = TokenEdits([])


class Mutator:
    """Makes edits of one world; the same generator of random numbers makes the same ones."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.dialect = world.engine.dialect
        self.random = rng
        self.kinds: dict[str, Callable[[Tree], Tree | None]] = {
            "expression": self.expression,
            "null": self.null,
            "filter": self.filter,
            "join kind": self.join_kind,
            "join condition": self.join_condition,
            "union": self.union,
            "distinct": self.distinct,
            "limit": self.limit,
            "literal": self.literal,
            "comparison": self.comparison,
            "aggregate": self.aggregate,
            "window": self.window,
            "group key": self.group_key,
            "dropped column": self.dropped_column,
            "renamed column": self.renamed_column,
            "swapped columns": self.swapped_columns,
            "added column": self.added_column,
            "duplicated rows": self.duplicated_rows,
            "table swap": self.table_swap,
            "order": self.order,
            "rows in another order": self.rows_in_another_order,
        }
        self.names = {"absent name": self.absent_name, "alias elsewhere": self.alias_elsewhere}
        project = world.project
        self.queries = [
            u
            for u in world.relations
            if project.nodes[u].resource_type in ("model", "snapshot")
            and project.nodes[u].compiled_code
        ]

    # -- what is asked for ------------------------------------------------------------------------

    def edit(self, kind: str) -> tuple[str, Edit] | None:
        """An edit of a kind: the node it was made on and what changes, or None after some tries."""
        for _ in range(40):
            if kind == "two edits":
                if (both := self.two_edits()) is not None:
                    return both
                continue
            unique_id = self.random.choice(self.nodes(kind))
            made = self.edit_of(kind, unique_id)
            if made is not None:
                return unique_id, made
        return None

    def has(self, kind: str) -> bool:
        """Whether the world has a node of the sort that a kind of edit is made on."""
        return bool(self.nodes(kind))

    def nodes(self, kind: str) -> list[str]:
        """The nodes an edit of a kind can be made on."""
        nodes = self.world.project.nodes
        if kind == "seed":
            return [u for u in nodes if nodes[u].resource_type == "seed"]
        if kind == "test":
            # A generic test's query is its macro's: who edits that edits a macro (`dbt_edits`).
            return [t for t in self.world.tests if nodes[t].test_metadata is None]
        if kind == "hook":
            return [
                u
                for u in self.queries
                if nodes[u].materialized == "table" and not nodes[u].contract_enforced
            ]
        if kind == "source column":
            return [u for u in nodes if nodes[u].resource_type == "source" and u in self.world.base]
        of = {
            "ephemeral model": lambda n: n.is_ephemeral,
            "snapshot": lambda n: n.resource_type == "snapshot",
            "versioned model": lambda n: n.version is not None,
            "incremental model": lambda n: n.materialized == "incremental",
        }.get(kind)
        return [u for u in self.queries if of is None or of(nodes[u])]

    def two_edits(self) -> tuple[str, Edit] | None:
        """Edits of two models at once, as a pull request has them: each may hide what the other does."""
        nodes = self.world.project.nodes
        stored = [u for u in self.queries if not nodes[u].is_ephemeral]
        chosen = self.random.sample(stored, 2)
        edits = [self.edit_of(self.random.choice(QUERY_KINDS[:-1]), u) for u in chosen]
        if any(edit is None for edit in edits):
            return None
        return chosen[0], Edit(
            sql={u: sql for edit in edits if edit for u, sql in edit.sql.items()}
        )

    def edit_of(self, kind: str, unique_id: str) -> Edit | None:
        """An edit of a kind on a node, or None where this try found nothing."""
        if kind == "seed":
            return self.seed(unique_id)
        if kind == "source column":
            return self.source_column(unique_id)
        if kind == "hook":
            return self.hook(unique_id)
        node = self.world.project.nodes[unique_id]
        if kind in ("ephemeral model", "snapshot", "versioned model", "incremental model", "test"):
            inner = self.random.choice(QUERY_KINDS[:-1])
        else:
            inner = kind
        sql = node.compiled_code or ""
        edited = self.edit_sql(inner, sql)
        return None if edited is None else Edit(sql={unique_id: edited})

    def edit_sql(self, kind: str, sql: str) -> str | None:
        """A query's text with one edit of a kind."""
        if kind in WORD_KINDS:
            return self.edit_words(kind, sql)
        try:
            tree, inlined = without_inlined(sqlglot.parse_one(sql, dialect=self.dialect))
        except sqlglot.ParseError:  # DuckDB reads more than sqlglot, as `[]::integer[]`
            return None
        before = tree.sql("duckdb")
        try:
            edited = self.edit_tree(kind, tree)
        except sqlglot.ParseError:  # what was written around an expression, as `a in (1, 2) % 3`
            return None
        if edited is None:
            return None
        tree = edited
        if tree.sql("duckdb") == before:
            return None
        after: str = with_inlined(tree, inlined).sql(
            self.dialect, pretty=self.random.random() < 0.5
        )
        try:
            sqlglot.parse_one(after, dialect=self.dialect)
        except sqlglot.ParseError:
            return None
        return after

    def edit_tree(self, kind: str, tree: Tree) -> Tree | None:
        """A query with one edit of a kind, in a CTE of it or in all of it."""
        if kind != "inside a CTE":
            return (self.kinds | self.names)[kind](tree)
        ctes = [c for c in tree.find_all(exp.CTE) if isinstance(c.this, exp.Query)]
        if not ctes:
            return None
        cte = self.random.choice(ctes)
        made = self.kinds[self.random.choice(list(self.kinds))](cte.this)
        if made is None:
            return None
        if made is not cte.this:
            cte.set("this", made)
        return tree

    def edit_words(self, kind: str, sql: str) -> str | None:
        """A query's text with one word of it changed, which no parser was asked about."""
        if EPHEMERAL_PREFIX in sql:
            return None  # a part of it is another model's
        after = WORDS.edit(WORD_KINDS[kind], sql, self.random)
        if after is None:
            return None
        try:
            sqlglot.parse_one(after, dialect=self.dialect)
        except sqlglot.ParseError:
            return None
        return after

    # -- helpers ----------------------------------------------------------------------------------

    def pick(self, items: list[Any]) -> Any | None:
        return self.random.choice(items) if items else None

    def select(self, tree: Tree, wanted: Callable[[Tree], bool] = lambda s: True) -> Tree | None:
        return self.pick([s for s in tree.find_all(exp.Select) if wanted(s)])

    def outputs(self, select: Tree) -> list[Tree]:
        """The items of a select list that are one named column each."""
        return [
            e
            for e in select.expressions
            # A literal without an alias has a name in sqlglot, one that nobody can write.
            if not e.is_star and e.alias_or_name and not isinstance(e, exp.Literal)
        ]

    def columns(self, select: Tree) -> list[Tree]:
        """Columns a SELECT's own clauses name, and those of the relations it reads."""
        names = [
            c.copy()
            for c in select.find_all(exp.Column)
            if not c.is_star and c.find_ancestor(exp.Select) is select
        ]
        for table in self.tables(select):
            node = self.node_of(table)
            if node is not None:
                names += [
                    exp.column(c.name, table=table.alias_or_name) for c in self.world.columns[node]
                ]
        return names

    def tables(self, select: Tree) -> list[Tree]:
        """The tables in a SELECT's own FROM."""
        of = []
        start = select.args.get("from_")
        if start is not None and isinstance(start.this, exp.Table):
            of.append(start.this)
        of += [j.this for j in select.args.get("joins") or () if isinstance(j.this, exp.Table)]
        return of

    def node_of(self, table: Tree) -> str | None:
        name = ".".join(p.name for p in table.parts)
        for unique_id in self.world.columns:
            if plain_name(self.world.project.nodes[unique_id]) == name:
                return unique_id
        return None

    def column(self, select: Tree) -> Tree | None:
        return self.pick(self.columns(select))

    def condition(self, select: Tree) -> Tree | None:
        """A condition over a SELECT's columns that some rows pass and some do not, more or less."""
        column = self.column(select)
        if column is None:
            return None
        text = column.sql("duckdb")
        spelled = self.random.choice(
            (
                f"{text} is not null",
                f"{text} is null",
                f"hash({text}) % 3 <> 0",
                f"hash({text}) % 2 = 0",
                f"cast({text} as varchar) > 'c'",
                f"cast({text} as varchar) < '5'",
                f"coalesce(cast({text} as varchar), 'x') <> '1'",
            )
        )
        return sqlglot.parse_one(spelled, dialect="duckdb")

    def put(self, item: Tree, expression: Tree) -> None:
        """Give an output another expression and the name it had."""
        name = item.alias_or_name
        quoted = item.args["alias"].args.get("quoted") if item.args.get("alias") else False
        item.replace(exp.alias_(expression, name, quoted=bool(quoted)))

    @staticmethod
    def inner(item: Tree) -> Tree:
        return item.this if isinstance(item, exp.Alias) else item

    @staticmethod
    def derived(tree: Tree, text: str) -> Tree:
        """A query around another, which is `edited` in it."""
        outer = sqlglot.parse_one(text, dialect="duckdb")
        for place in outer.find_all(exp.Table):
            if place.name == "edited":
                place.replace(exp.Subquery(this=tree.copy(), alias=place.args.get("alias")))
        return outer

    # -- values -----------------------------------------------------------------------------------

    def expression(self, tree: Tree) -> Tree | None:
        select = self.select(tree, lambda s: bool(self.outputs(s)))
        if select is None:
            return None
        item = self.random.choice(self.outputs(select))
        inner = self.inner(item).copy()
        way = self.random.randrange(7)
        if way == 0:
            for kind, other in ((exp.Add, exp.Sub), (exp.Mul, exp.Add), (exp.Sub, exp.Add)):
                picked = self.pick(list(inner.find_all(kind)))
                if picked is not None:
                    swapped = other(this=picked.this.copy(), expression=picked.expression.copy())
                    if picked is inner:
                        inner = swapped
                    else:
                        picked.replace(swapped)
                    self.put(item, inner)
                    return tree
        if way == 1:
            columns = [c for c in inner.find_all(exp.Column) if c.find_ancestor(exp.Select) is None]
            old, new = self.pick(columns), self.column(select)
            if old is not None and new is not None:
                if old is inner:
                    inner = new
                else:
                    old.replace(new)
                self.put(item, inner)
                return tree
        if way == 2:
            cases = list(inner.find_all(exp.Case))
            case = self.pick(cases)
            if case is not None and len(case.args["ifs"]) > 1:
                case.args["ifs"].reverse()
                self.put(item, inner)
                return tree
        text = inner.sql("duckdb")
        spelled = self.random.choice(
            (
                f"{text} + 1",
                f"{text} * 2",
                f"-{text}",
                f"concat({text}, 'x')",
                f"upper({text})",
                f"not {text}",
                f"greatest({text}, {text})",
                f"coalesce({text}, {text}) + 1",
                f"abs({text})",
                f"round({text}, 1)",
                f"{text} % 3",
                f"left(cast({text} as varchar), 1)",
            )
        )
        self.put(item, sqlglot.parse_one(spelled, dialect="duckdb"))
        return tree

    def null(self, tree: Tree) -> Tree | None:
        places: list[Tree] = [
            *tree.find_all(exp.Coalesce),
            *(i for i in tree.find_all(exp.Is) if isinstance(i.expression, exp.Null)),
        ]
        place = self.pick(places)
        if place is not None and self.random.random() < 0.5:
            if isinstance(place, exp.Coalesce):
                place.replace(place.this.copy())
            else:
                place.replace(exp.Not(this=exp.paren(place.copy())))
            return tree
        select = self.select(tree, lambda s: bool(self.outputs(s)))
        if select is None:
            return None
        item = self.random.choice(self.outputs(select))
        inner = self.inner(item).copy()
        if inner.find(exp.AggFunc) or inner.find(exp.Window) or select.args.get("group"):
            self.put(item, exp.func("nullif", inner, inner.copy()))
            return tree
        condition = self.condition(select)
        if condition is None:
            return None
        text = f"case when {condition.sql('duckdb')} then {inner.sql('duckdb')} end"
        self.put(item, sqlglot.parse_one(text, dialect="duckdb"))
        return tree

    def literal(self, tree: Tree) -> Tree | None:
        literal = self.pick(list(tree.find_all(exp.Literal)))
        if literal is None:
            return None
        if literal.is_string:
            value = str(literal.this)
            others = [str(o.this) for o in tree.find_all(exp.Literal) if o.is_string]
            new = self.random.choice([value + "x", value[:-1], value.upper(), *others])
            literal.replace(exp.Literal.string(new))
        else:
            by = self.random.choice((-1, 1, 2, 10))
            text = str(literal.this)
            number = float(text) + by if "." in text else int(float(text)) + by
            if number < 0:
                number = 0
            literal.replace(exp.Literal.number(str(number)))
        return tree

    def comparison(self, tree: Tree) -> Tree | None:
        place = self.pick(
            [
                place
                for place in tree.find_all(*COMPARISONS, exp.Between, exp.In, exp.Like)
                if place.find_ancestor(exp.Pivot) is None
            ]
        )
        if place is None:
            return None
        if isinstance(place, COMPARISONS):
            kind = self.random.choice([c for c in COMPARISONS if c is not type(place)])
            place.replace(kind(this=place.this.copy(), expression=place.expression.copy()))
        else:
            place.replace(exp.Not(this=place.copy()))
        return tree

    def swapped_columns(self, tree: Tree) -> Tree | None:
        """Two outputs change places, or keep their names and change their expressions."""
        select = self.select(tree, lambda s: len(self.outputs(s)) > 1)
        if select is None:
            return None
        one, two = self.random.sample(self.outputs(select), 2)
        first, second = one.copy(), two.copy()
        if self.random.random() < 0.5:
            one.replace(second)
            two.replace(first)
        else:
            self.put(one, self.inner(second))
            self.put(two, self.inner(first))
        return tree

    # -- rows -------------------------------------------------------------------------------------

    def filter(self, tree: Tree) -> Tree | None:
        way = self.random.randrange(5)
        if way < 2:
            select = self.select(tree, lambda s: bool(s.args.get("where") or s.args.get("having")))
            if select is not None:
                clause = self.pick(
                    [c for c in ("where", "having", "qualify") if select.args.get(c)]
                )
                place = select.args[clause]
                if isinstance(place.this, exp.And) and self.random.random() < 0.6:
                    kept = self.random.choice((place.this.this, place.this.expression))
                    place.set("this", kept.copy())
                elif self.random.random() < 0.5:
                    select.set(clause, None)
                else:
                    place.set("this", exp.Not(this=exp.paren(place.this.copy())))
                return tree
        if way == 2:
            place = self.pick(list(tree.find_all(exp.And, exp.Or)))
            if place is not None:
                other = exp.Or if isinstance(place, exp.And) else exp.And
                place.replace(other(this=place.this.copy(), expression=place.expression.copy()))
                return tree
        select = self.select(tree)
        if select is None:
            return None
        condition = self.condition(select)
        if condition is None:
            return None
        select.where(condition, copy=False)
        return tree

    def join_kind(self, tree: Tree) -> Tree | None:
        join = self.pick(
            [j for j in tree.find_all(exp.Join) if j.args.get("on") or j.args.get("using")]
        )
        if join is None:
            return None
        now = (join.side or "", join.kind or "")
        ways = [
            ("LEFT", ""),
            ("", "INNER"),
            ("RIGHT", ""),
            ("FULL", ""),
            ("", "SEMI"),
            ("", "ANTI"),
        ]
        side, kind = self.random.choice([w for w in ways if w != now])
        join.set("side", side or None)
        join.set("kind", kind or None)
        return tree

    def join_condition(self, tree: Tree) -> Tree | None:
        joins = [j for j in tree.find_all(exp.Join) if j.args.get("on") or j.args.get("using")]
        join = self.pick(joins)
        if join is None:
            return None
        using = join.args.get("using")
        if using:
            if len(using) > 1:
                using.pop(self.random.randrange(len(using)))
            else:
                join.set("using", None)
                join.set("kind", "CROSS")
                join.set("side", None)
            return tree
        on = join.args["on"]
        select = join.find_ancestor(exp.Select)
        way = self.random.randrange(4)
        if way == 0 and isinstance(on, exp.And):
            join.set("on", self.random.choice((on.this, on.expression)).copy())
        elif way == 1 and select is not None and (condition := self.condition(select)) is not None:
            join.set("on", exp.and_(on.copy(), condition))
        elif way == 2 and (place := self.pick(list(on.find_all(*COMPARISONS)))) is not None:
            kind = self.random.choice([c for c in COMPARISONS if c is not type(place)])
            place.replace(kind(this=place.this.copy(), expression=place.expression.copy()))
        elif (
            select is not None and (column := self.pick(list(on.find_all(exp.Column)))) is not None
        ):
            new = self.column(select)
            if new is None:
                return None
            column.replace(new)
        return tree

    def union(self, tree: Tree) -> Tree | None:
        place = self.pick(list(tree.find_all(exp.SetOperation)))
        if place is None:
            return None
        way = self.random.randrange(4)
        distinct = place.args.get("distinct")
        left, right = place.this.copy(), place.expression.copy()
        if way == 0:
            place.set("distinct", not distinct)
            return tree
        if way == 1:
            made: Tree = self.random.choice((left, right))
        else:
            ways = [exp.Except, exp.Intersect, exp.Union]
            kind = self.random.choice([w for w in ways if not isinstance(place, w)])
            made = kind(this=left, expression=right, distinct=True)
        if place.args.get("with_") is not None:
            made.set("with_", place.args["with_"].copy())
        if place is tree:
            return made
        place.replace(made)
        return tree

    def distinct(self, tree: Tree) -> Tree | None:
        """DISTINCT where there was none or the other way about, in a SELECT or in an aggregate.

        Mostly where it means something: few SELECTs return a row twice.
        """
        meaning: list[Tree] = [
            *(s for s in tree.find_all(exp.Select) if s.args.get("distinct")),
            *(
                a
                for a in tree.find_all(exp.Sum, exp.Avg, exp.Count)
                if not a.this.is_star and not isinstance(a.parent, exp.Window)
            ),
        ]
        place = self.pick(meaning) if self.random.random() < 0.8 else self.select(tree)
        if place is None:
            return None
        if isinstance(place, exp.Select):
            place.set("distinct", None if place.args.get("distinct") else exp.Distinct())
        elif isinstance(place.this, exp.Distinct):
            place.set("this", place.this.expressions[0].copy())
        else:
            place.set("this", exp.Distinct(expressions=[place.this.copy()]))
        return tree

    def limit(self, tree: Tree) -> Tree | None:
        limits = list(tree.find_all(exp.Limit))
        if limits and self.random.random() < 0.8:
            place = self.random.choice(limits)
            owner = place.parent
            if self.random.random() < 0.3:
                owner.set("limit", None)
            elif owner.args.get("order") and self.random.random() < 0.4:
                ordered = owner.args["order"].expressions[0]
                ordered.set("desc", not ordered.args.get("desc"))
            else:
                owner.limit(self.random.choice((0, 1, 3, 7)), copy=False)
            return tree
        count = self.random.choice((0, 1, 2, 5, 20))
        offset = f" offset {self.random.randrange(3)}" if self.random.random() < 0.3 else ""
        return self.derived(tree, f"select * from edited as e order by all limit {count}{offset}")

    def order(self, tree: Tree) -> Tree | None:
        """The other way round, or NULLs at the other end, wherever rows are put in order."""
        place = self.pick(list(tree.find_all(exp.Ordered)))
        if place is None:
            return None
        way = self.random.choice(("desc", "nulls_first"))
        place.set(way, not place.args.get(way))
        return tree

    def rows_in_another_order(self, tree: Tree) -> Tree | None:
        """The same bag of rows, which may lie in another order: who reads them may see that."""
        for way in (*self.random.sample(("grouped", "swapped"), 2), "sorted"):
            if way == "sorted" and not any(tree.args.get(n) for n in ("order", "limit", "offset")):
                place = exp.Literal.number(self.random.randrange(len(tree.selects)) + 1)
                ordered = exp.Ordered(this=place, desc=self.random.random() < 0.7)
                tree.set("order", exp.Order(expressions=[ordered]))
                return tree
            if way == "grouped":
                groups = [g for g in tree.find_all(exp.Group) if len(g.expressions) > 1]
                if (group := self.pick(groups)) is not None:
                    group.set("expressions", [k.copy() for k in reversed(group.expressions)])
                    return tree
            if way == "swapped":
                of = lambda branch: [s.alias_or_name for s in branch.selects]  # noqa: E731
                unions = [
                    u
                    for u in tree.find_all(exp.Union)
                    if not u.args.get("distinct")
                    and not u.this.args.get("with_")
                    and isinstance(u.expression, exp.Select)
                    and of(u.this) == of(u.expression)
                ]
                if (union := self.pick(unions)) is not None:
                    first, second = union.this.copy(), union.expression.copy()
                    union.set("this", second)
                    union.set("expression", first)
                    return tree
        return None

    def duplicated_rows(self, tree: Tree) -> Tree | None:
        way = self.random.randrange(3)
        if way == 0:
            return self.derived(
                tree, "select * from edited as e union all select * from edited as e"
            )
        if way == 1:
            return self.derived(
                tree, "select e.* from edited as e cross join (values (1), (2)) as twice (n)"
            )
        return self.derived(
            tree,
            "select * from edited as e union all (select * from edited as e order by all limit 1)",
        )

    # -- grouping and windows -----------------------------------------------------------------------

    def aggregate(self, tree: Tree) -> Tree | None:
        aggregates: list[Tree] = list(tree.find_all(*AGGREGATES))
        filters = list(tree.find_all(exp.Filter))
        if filters and self.random.random() < 0.3:
            place = self.random.choice(filters)
            place.replace(place.this.copy())
            return tree
        place = self.pick(aggregates)
        if place is None:
            return None
        if isinstance(place, (exp.ArgMax, exp.ArgMin)):
            other = exp.ArgMin if isinstance(place, exp.ArgMax) else exp.ArgMax
            place.replace(other(this=place.this.copy(), expression=place.expression.copy()))
            return tree
        inner = place.this
        if isinstance(place, exp.Count):
            select = place.find_ancestor(exp.Select)
            column = self.column(select) if select is not None else None
            if isinstance(inner, exp.Star) and column is not None:
                inside: Tree = column
            elif isinstance(inner, exp.Distinct):
                inside = inner.expressions[0].copy()
            else:
                inside = exp.Distinct(expressions=[inner.copy()])
            place.replace(exp.Count(this=inside, big_int=True))
            return tree
        others = [a for a in (exp.Sum, exp.Avg, exp.Min, exp.Max) if not isinstance(place, a)]
        if isinstance(inner, exp.Distinct):
            inner = inner.expressions[0]
        place.replace(self.random.choice([*others, exp.Count])(this=inner.copy()))
        return tree

    def window(self, tree: Tree) -> Tree | None:
        place = self.pick(list(tree.find_all(exp.Window)))
        if place is None:
            return None
        select = place.find_ancestor(exp.Select)
        way = self.random.randrange(5)
        partition = place.args.get("partition_by")
        order = place.args.get("order")
        if way == 0 and partition:
            partition.pop(self.random.randrange(len(partition)))
        elif way == 1 and select is not None and (column := self.column(select)) is not None:
            place.set("partition_by", [*(partition or ()), column])
        elif way == 2 and order is not None:
            ordered = self.random.choice(order.expressions)
            ordered.set("desc", not ordered.args.get("desc"))
        elif way == 3 and place.args.get("spec") is not None:
            place.set("spec", None)
        elif isinstance(place.this, RANKS):
            others = [exp.RowNumber, exp.Rank, exp.DenseRank]
            if isinstance(place.this, (exp.Lag, exp.Lead)):
                other = exp.Lead if isinstance(place.this, exp.Lag) else exp.Lag
                place.set("this", other(this=place.this.this.copy()))
            else:
                kinds = [o for o in others if not isinstance(place.this, o)]
                place.set("this", self.random.choice(kinds)())
        elif isinstance(place.this, AGGREGATES):
            return self.aggregate(tree)
        elif partition:
            place.set("partition_by", None)
        else:
            return None
        return tree

    def group_key(self, tree: Tree) -> Tree | None:
        select = self.select(
            tree, lambda s: bool(s.args.get("group") and s.args["group"].expressions)
        )
        if select is None:
            return None
        group = select.args["group"]
        keys = group.expressions
        if self.random.random() < 0.5:
            column = self.column(select)
            if column is None:
                return None
            group.append("expressions", column)
            return tree
        dropped = keys[self.random.randrange(len(keys))]
        rest = [k.copy() for k in keys if k is not dropped]
        for item in self.outputs(select):
            inner = self.inner(item)
            if inner.sql() == dropped.sql() or item.alias_or_name == dropped.sql():
                self.put(item, exp.Min(this=inner.copy()))
        select.set("group", exp.Group(expressions=rest) if rest else None)
        return tree

    # -- columns ----------------------------------------------------------------------------------

    def dropped_column(self, tree: Tree) -> Tree | None:
        select = self.select(tree, lambda s: len(s.expressions) > 1)
        if select is None:
            return None
        select.expressions.pop(self.random.randrange(len(select.expressions)))
        return tree

    def renamed_column(self, tree: Tree) -> Tree | None:
        select = self.select(tree, lambda s: bool(self.outputs(s)))
        if select is None:
            return None
        item = self.random.choice(self.outputs(select))
        names = [o.alias_or_name for o in self.outputs(select)]
        name = self.random.choice((f"{item.alias_or_name}_2", self.random.choice(names)))
        if name == item.alias_or_name:
            name += "_2"
        item.replace(exp.alias_(self.inner(item).copy(), name))
        return tree

    def absent_name(self, tree: Tree) -> Tree | None:
        """A name that no relation has, with the column's qualifier or without."""
        column = self.pick([c for c in tree.find_all(exp.Column) if not c.is_star])
        if column is None:
            return None
        table = column.table if self.random.random() < 0.5 else None
        column.replace(exp.column(self.random.choice(("nowhere", "rowid", "x")), table=table))
        return tree

    def alias_elsewhere(self, tree: Tree) -> Tree | None:
        """An alias of the select list in the place of a column, as only some engines take it."""
        select = self.select(tree, lambda s: any(isinstance(o, exp.Alias) for o in self.outputs(s)))
        if select is None:
            return None
        alias = self.random.choice(
            [o.alias for o in self.outputs(select) if isinstance(o, exp.Alias)]
        )
        column = self.pick(
            [c for c in select.find_all(exp.Column) if c.find_ancestor(exp.Select) is select]
        )
        if column is None:
            return None
        column.replace(exp.column(alias))
        return tree

    def added_column(self, tree: Tree) -> Tree | None:
        """A column more: of a name that readers may have, at the end or in front."""
        select = self.select(tree)
        if select is None:
            return None
        column = self.column(select)
        readers = [c.name for u in self.world.columns.values() for c in u]
        name = self.random.choice(("added", self.random.choice(readers)))
        inner = column if column is not None else exp.Literal.number("1")
        if select.args.get("group"):
            inner = exp.Max(this=inner)
        place = self.random.choice((0, len(select.expressions)))
        select.expressions.insert(place, exp.alias_(inner, name))
        select.set("expressions", list(select.expressions))
        return tree

    def table_swap(self, tree: Tree) -> Tree | None:
        """Another relation of the project, one that has the columns if there is one."""
        tables = [t for t in tree.find_all(exp.Table) if self.node_of(t) is not None]
        table = self.pick(tables)
        if table is None:
            return None
        now, asked = self.node_of(table), self.asked_of(table)
        nodes = self.world.project.nodes
        others = [u for u in self.world.columns if u != now and self.may_read(table, u)]
        fitting = [u for u in others if asked <= {c.name for c in self.world.columns[u]}]
        # One that does not fit does not build, which is worth a try now and then.
        if not others or (not fitting and self.random.random() < 0.9):
            return None
        other = nodes[self.random.choice(fitting or others)]
        alias = table.alias or table.name
        new = exp.to_table(relation(other), dialect=self.dialect)
        table.replace(exp.alias_(new, alias, table=True))
        return tree

    def asked_of(self, table: Tree) -> set[str]:
        """The names a query asks a table for, those that might be another's included."""
        select = table.find_ancestor(exp.Select)
        if select is None:
            return set()
        held = {c.name for c in self.world.columns[self.node_of(table) or ""]}
        tree, stars = select, any(e.is_star for e in select.expressions)
        if stars:  # what it passes on is asked for further out
            tree = table.root()
        columns_named = {c.name for c in tree.find_all(exp.Column) if not c.is_star}
        using = {i.name for j in tree.find_all(exp.Join) for i in j.args.get("using") or ()}
        return (columns_named | using) & held

    def may_read(self, table: Tree, unique_id: str) -> bool:
        """Only what is built before what the table is now, so that no cycle appears."""
        order = self.world.relations
        now = self.node_of(table)
        return now is not None and order.index(unique_id) <= order.index(now)

    # -- what is not a query ------------------------------------------------------------------------

    def seed(self, unique_id: str) -> Edit | None:
        node = self.world.project.nodes[unique_id]
        if node.resource_type != "seed":
            return None
        header, *rows = seed_rows(node)
        way = self.random.randrange(4)
        index = self.random.randrange(len(rows))
        if way == 0:
            rows.pop(index)
        elif way == 1:
            rows.append(list(self.random.choice(rows)))
        else:
            column = self.random.randrange(len(header))
            values = sorted({r[column] for r in rows} - {rows[index][column]})
            rows[index][column] = self.random.choice([*values, ""])
        return Edit(seeds={unique_id: [header, *rows]})

    def hook(self, unique_id: str) -> Edit:
        """A hook more, less, or other, that changes the table's rows."""
        node = self.world.project.nodes[unique_id]
        hooks = list(node.config.get("post-hook") or ())
        if hooks and self.random.random() < 0.4:
            hooks.pop()
        else:
            columns = [c.name for c in self.world.columns[unique_id]]
            column, other = (
                quoted(self.random.choice(columns), self.world.engine.quote) for _ in range(2)
            )
            text = self.random.choice(self.hooks(column, other))
            hooks = [{"sql": text, "transaction": True, "index": None}]
        return Edit(config={unique_id: {"post-hook": hooks}})

    def hooks(self, column: str, other: str) -> tuple[str, ...]:
        """Statements that change a table's rows; parquet on Spark takes no delete or update."""
        if self.dialect == "spark":
            again = "insert into {{ this }} select * from {{ this }} where"
            return (
                f"{again} hash({column}) % 3 = 0",
                f"{again} {other} is not null",
                "truncate table {{ this }}",
            )
        return (
            f"delete from {{{{ this }}}} where hash({column}) % 3 = 0",
            f"update {{{{ this }}}} set {column} = null where {other} is not null",
            f"insert into {{{{ this }}}} select * from {{{{ this }}}} where {column} is null",
        )

    def source_column(self, unique_id: str) -> Edit | None:
        """A source's table with a column more, less, renamed or elsewhere."""
        name, quote = self.world.engine.kept(unique_id), self.world.engine.quote
        columns = [quoted(c.name, quote) for c in self.world.columns[unique_id]]
        way = self.random.randrange(4)
        index = self.random.randrange(len(columns))
        if way == 0:
            columns.pop(index)
        elif way == 1:
            readers = [c.name for u in self.world.columns.values() for c in u]
            added = self.random.choice(("added", self.random.choice(readers)))
            if f"{quote}{added}{quote}" in columns:
                return None
            place = self.random.choice((0, len(columns)))
            columns.insert(place, f"{self.random.choice(columns)} as {quote}{added}{quote}")
        elif way == 2:
            columns[index] += " as renamed"
        else:
            self.random.shuffle(columns)
        return Edit(sources={unique_id: f"select {', '.join(columns)} from {name}"})
