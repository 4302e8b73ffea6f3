"""FROM: relations, joins and what stands in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from generators.clauses import Clauses
from generators.expressions import Atom
from generators.schemas import Column

NARROW: Final = {"id": "int", "k": "int", "s": "str", "v": "int", "d": "date", "p": "bool"}
"""Columns that productions of one table count on, and their classes."""
KEYED: Final = (
    *["{x} = {y}"] * 6, *["{p} = {y}"] * 3, "{y} = {p}", "{p} = {q}", "{s} = {t}", "{s} = {y}", "{x} = {t}",
    "cast({s} as integer) = {y}", "{x} = {y} or {p} = {q}", "cast({x} as double) = {y}",
    "cast({x} as {text}) = {t}", "{s} = {t} collate {fold}", "trim({s}) = {t}", "{x} = {y} + 0",
    "{x} = coalesce({y}, {q})", "({x}, {p}) = ({y}, {q})", "{x} in ({y})", "not {x} <> {y}",
    "{x} is not distinct from {y} and {p} = {q}", "{x} = cast({t} as integer)",
    "{x} is not distinct from {y}", "{x} + 0 = {y}", "{x} >= {y}", "coalesce({p}, 1) = {y}",
)  # fmt: skip
"""What rows of two relations meet on, where one may have a key: integers x and p of the left, y and q of
the right, texts s and t."""
LATERAL_JOINS: Final = ("join", "left join", "cross join", ",", "inner join", "left outer join")
"""Joins whose right side may read the left one."""


class FromClause(Clauses):
    """Writes what a SELECT reads."""

    join_kinds: tuple[str, ...] = (
        "join", "join", "left join", "left join", "right join", "full join", "cross join", ",",
        "semi join", "anti join", "positional join", "asof join", "asof left join", "natural join",
        "natural left join", "natural full join", "inner join", "left outer join",
        "natural right join", "asof right join", "asof full join",
    )  # fmt: skip
    joins: tuple[int, ...] = (0, 0, 0, 1, 1, 2)
    """How many joins a FROM has; the first and the last of these not where it lies deepest."""
    using = 0.3
    """The share of joins by USING, where they could be."""
    relation_forms: Sequence[int] = range(24)
    table_forms: Sequence[int] = range(24)
    """Of the forms of `relation`, and of a table in it, those that are written."""
    turned_by: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("s", ("'a'", "'1'", "'01'", "'A'")),
        ("p", ("true", "false")),
    )
    """Columns that a PIVOT is by, and values of them."""

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def relation(self, depth: int, outer: Sequence[Atom] = ()) -> tuple[str, str, list[Column]]:
        """Something in FROM: its text with its alias, the alias, and its columns."""
        with self.part("relation"):
            self.budget -= 3
            alias = self.alias()
            way = self.pick("relation form", self.relation_forms)
            if depth <= 0 or self.budget <= 0:
                way = way % 9
            if way < 9 or (way < 11 and not self.ctes):
                name, columns = self.table()
                sample = ""
                if self.chance("sample there or not", 0.03):
                    self.used("TABLESAMPLE")
                    size = self.pick(
                        "sample",
                        ("reservoir(3 rows)", "reservoir(50%)", "bernoulli(50%)", "system(60%)"),
                    )
                    sample = (
                        f" tablesample {size} repeatable ({self.pick('sample seed', (1, 2, 42))})"
                    )
                form = self.pick("table form", self.table_forms)
                if form == 20 and not sample and name not in self.plain_tables:
                    self.used("table without alias")
                    self.plain_tables.add(name)
                    return name, name, columns
                if form == 21 and not sample:
                    self.used("schema.table")
                    return (
                        f"{self.pick('schema', ('main', 'memory.main', 'memory'))}.{name} as {alias}",
                        alias,
                        columns,
                    )
                if form == 22 and not sample:
                    self.used("TABLE t")
                    return f"(table {name}) as {alias}", alias, columns
                if form == 23 and not sample:
                    self.used("joins in brackets")
                    other, theirs = self.table()
                    second = self.alias()
                    kind = self.pick(
                        "join kind", ("join", "left join", "right join", "full join", "semi join")
                    )
                    theirs = [] if kind == "semi join" else theirs
                    text = (
                        f"({name} as {alias} {kind} {other} as {second} on {alias}.k = {second}.k)"
                    )
                    if self.chance("alias of brackets", 0.5):
                        over = self.alias()
                        return f"{text} as {over}", over, distinct_names([*columns, *theirs])
                    return text, alias, columns
                if form == 0:
                    self.used("FROM alias: table")
                    return f"{alias}: {name}", alias, columns
                if form == 1 and not sample:
                    self.used("column aliases")
                    renamed = [
                        (self.pick("column alias", self.names) if i < 2 else c, t)
                        for i, (c, t) in enumerate(columns)
                    ]
                    return (
                        f"{name} as {alias} ({', '.join(c for c, _ in renamed[:2])})",
                        alias,
                        renamed,
                    )
                if form == 2 and not sample:
                    self.used("query_table")
                    return f"query_table('{name}') as {alias}", alias, columns
                return f"{name} as {alias}{sample}", alias, columns
            if way < 11:
                name, columns = self.pick("CTE", self.ctes)
                return f"{name} as {alias}", alias, columns
            if way < 17:
                self.used("derived table")
                text, columns = self.query(depth - 1)
                if len(columns) > 1 and self.chance("derived column aliases", 0.12):
                    self.used("column aliases of a query")
                    names = [
                        self.pick("column alias", self.names),
                        *(f"c{i}" for i in range(1, len(columns))),
                    ]
                    listed = names[: self.pick("column aliases", (1, len(columns)))]
                    columns = distinct_names(
                        [
                            (listed[i] if i < len(listed) else c, t)
                            for i, (c, t) in enumerate(columns)
                        ]
                    )
                    return f"({text}) as {alias} ({', '.join(listed)})", alias, columns
                return f"({text}) as {alias}", alias, columns
            if way == 17:
                self.used("VALUES")
                rows = ", ".join(
                    f"({self.pick('literal', self.literals['int'])}, {self.pick('literal', self.literals['str'])})"
                    for _ in range(self.pick("VALUES rows", (1, 2, 3)))
                )
                one, two = self.pick("column alias", ("k", "v", "x")), "y"
                return (
                    f"(values {rows}) as {alias} ({one}, {two})",
                    alias,
                    [(one, "int"), (two, "str")],
                )
            if way == 18:
                self.used("table function")
                name = self.pick("table function", ("range", "generate_series"))
                arguments = ", ".join(
                    str(self.pick("literal", (0, 1, 2, 4, 6)))
                    for _ in range(self.pick("arguments", (1, 2, 3)))
                )
                column = self.pick("column alias", ("k", "v", "x"))
                return f"{name}({arguments}) as {alias} ({column})", alias, [(column, "int")]
            if way == 19:
                self.used("UNNEST in FROM")
                column = self.pick("column alias", ("k", "v", "x"))
                source = (
                    self.of("list", outer, 1)
                    if outer
                    else self.pick("literal", self.literals["list"])
                )
                return f"unnest({source}) as {alias} ({column})", alias, [(column, "int")]
            if way == 20:
                self.used("PIVOT in FROM")
                by, values = self.pick("PIVOT by", self.turned_by)
                several = [self.pick("PIVOT value", values), self.pick("PIVOT value", values)]
                function = self.pick("function", ("sum", "max", "count", "list"))
                renamed = self.pick("PIVOT names", ("", " as x"))
                group = self.pick("PIVOT group", ("", "", " group by k"))
                return (
                    f"{self.narrow('k', by, 'id')} pivot ({function}(id){renamed} for {by} in "
                    f"({', '.join(dict.fromkeys(several))}){group}) as {alias}",
                    alias,
                    [("k", "int")],
                )
            if way == 21:
                self.used("UNPIVOT in FROM")
                nulls = self.pick("UNPIVOT NULLS", ("", " include nulls", " exclude nulls"))
                columns_ = self.pick("UNPIVOT columns", ("k, v", "v, k", "k, id", "k as 'K', v"))
                return (
                    f"{self.narrow()} unpivot{nulls} (x for y in ({columns_})) as {alias}",
                    alias,
                    [("s", "str"), ("y", "str"), ("x", "int")],
                )
            if way == 22:
                self.used("json_each")
                name = self.pick("table function", ("json_each", "json_tree"))
                literal = self.pick("literal", self.literals["json"])
                return (
                    f"{name}({literal}) as {alias}",
                    alias,
                    [("key", "str"), ("value", "json"), ("type", "str")],
                )
            name = self.pick(
                "function", ("summary", "histogram_values", "repeat", "repeat_row", "query")
            )
            self.used("table function")
            if name == "query":
                return (
                    f"query('select * from {self.narrow('k', 's')}') as {alias}",
                    alias,
                    [("k", "int"), ("s", "str")],
                )
            if name == "histogram_values":
                table, columns = self.table("int")
                return (
                    f"histogram_values({table}, {self.column('int', columns)}) as {alias}",
                    alias,
                    [("bin", "int"), ("count", "int")],
                )
            if name == "repeat":
                return (
                    f"repeat({self.pick('literal', self.literals['int'])}, {self.pick('literal', (1, 2, 3))}) as {alias} (k)",
                    alias,
                    [("k", "int")],
                )
            if name == "repeat_row":
                return (
                    f"repeat_row({self.pick('literal', self.literals['int'])}, {self.pick('literal', self.literals['str'])}, num_rows = {self.pick('literal', (1, 2, 3))}) as {alias} (k, s)",
                    alias,
                    [("k", "int"), ("s", "str")],
                )
            return (
                f"summary({self.narrow('k', 's')}) as {alias}",
                alias,
                [],
            )

    def narrow(self, *wanted: str) -> str:
        """A derived table of some of the columns `NARROW`, of whatever table in scope."""
        name, columns = self.table("int")
        items = []
        for column in wanted or tuple(NARROW):
            kind = NARROW[column]
            fitting = [c for c, t in columns if t == kind] or [self.literals[kind][0]]
            made = column if (column, kind) in columns else self.pick("column", fitting)
            items.append(made if made == column else f"{made} as {column}")
        return f"(select {', '.join(items)} from {name})"

    def from_(
        self, depth: int, outer: Sequence[Atom] = ()
    ) -> tuple[str, list[Atom], list[tuple[str, list[Column]]], list[Atom]]:
        """A FROM clause: its text, qualified columns, its relations, and columns a bare name means."""
        with self.part("FROM"):
            text, alias, columns = self.relation(depth)
            sources = [(alias, columns)]
            atoms = [(f"{alias}.{c}", t) for c, t in columns]
            bare = dict(columns)
            shared: set[str] = set()
            for _ in range(self.pick("joins", self.joins if depth > 0 else self.joins[1:-1])):
                with self.part("join"):
                    lateral = self.chance("LATERAL", 0.08)
                    if lateral:
                        alias = self.alias()
                        inner, columns = self.subquery([*atoms, *outer])
                        right = f"lateral ({inner}) as {alias}"
                        self.used("LATERAL")
                    else:
                        right, alias, columns = self.relation(depth - 1, atoms)
                    both = [c for c, t in columns if bare.get(c) == t and c not in shared]
                    kind = self.pick("join kind", LATERAL_JOINS if lateral else self.join_kinds)
                    if kind.startswith("natural") and any(
                        bare.get(c) == "ambiguous" for c, _ in columns
                    ):
                        kind = "cross join"  # which of the columns were meant nobody says
                    self.used(kind.upper() if kind != "," else "comma join")
                    inner_atoms = [(f"{alias}.{c}", t) for c, t in columns]
                    if kind in (",", "cross join", "positional join") or kind.startswith("natural"):
                        text += f"{'' if kind == ',' else ' '}{kind} {right}"
                        condition = ""
                    elif both and not lateral and self.chance("USING", self.using):
                        keys = [self.pick("USING column", both)]
                        if self.chance("USING columns", 0.2):
                            keys = list(dict.fromkeys([*keys, self.pick("USING column", both)]))
                        self.used("USING")
                        condition = f" using ({', '.join(keys)})"
                        if "semi" not in kind and "anti" not in kind:
                            shared.update(keys)
                        text += f" {kind} {right}{condition}"
                    else:
                        condition = self.condition(atoms, inner_atoms, asof=kind.startswith("asof"))
                        text += f" {kind} {right} on {condition}"
                    if "semi" not in kind and "anti" not in kind:
                        atoms += inner_atoms
                        sources.append((alias, columns))
                        for c, t in columns:
                            if c in bare and c not in shared and not kind.startswith("natural"):
                                bare[c] = "ambiguous"
                            else:
                                bare[c] = t
            names = [(c, t) for c, t in bare.items() if t != "ambiguous"]
            atoms = atoms or [("1", "int")]
            return text, atoms, sources, names

    def keyed(self, left: Sequence[Atom], right: Sequence[Atom]) -> str:
        """A condition that looks a key up, or nearly does."""
        places: dict[str, Sequence[str]] = {"text": (self.text_type,), "fold": self.collations}
        for names, atoms in (("xps", left), ("yqt", right)):
            ints = [t for t, kind in atoms if kind == "int"] or ["1"]
            # The key comes first, mostly.
            places[names[0]] = [*ints[:1] * 3, *ints]
            places[names[1]] = ints
            places[names[2]] = [t for t, kind in atoms if kind == "str"] or ["'1'"]
        return self.filled(self.pick("keyed condition", KEYED), places)

    def condition(self, left: Sequence[Atom], right: Sequence[Atom], *, asof: bool) -> str:
        with self.part("join condition"):
            pairs = [
                (x, y) for x, t in left for y, u in right if t == u and t in ("int", "str", "date")
            ]
            if not pairs:
                return "true"
            if not asof and self.chance("join condition form", 0.1):
                return self.keyed(left, right)
            x, y = self.pick("join columns", pairs)
            condition = f"{x} = {y}"
            if asof:
                dated = [(p, q) for p, q in pairs if p != x]
                if not dated:
                    return f"{x} {self.pick('comparison', ('>=', '>', '<=', '<'))} {y}"
                p, q = self.pick("join columns", dated)
                return f"{condition} and {p} {self.pick('comparison', ('>=', '>', '<=', '<'))} {q}"
            if self.chance("join condition form", 0.4):
                more = self.of("bool", [*left, *right], 1)
                condition += f" {self.pick('connective', ('and', 'and', 'or'))} {more}"
            elif self.chance("join condition form", 0.15):
                condition = self.of("bool", [*left, *right], 2)
            return condition


def distinct_names(columns: list[Column]) -> list[Column]:
    """The columns whose name only one has."""
    names = [c.lower() for c, _ in columns]
    return [(c, t) for c, t in columns if names.count(c.lower()) == 1]
