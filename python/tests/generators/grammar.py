"""Random queries: every clause of the engine's SELECT, every function of its catalogue.

Mostly valid by types; what the engine refuses is thrown away. Every decision is one of `Choices`, so
that an edit is a query with one decision made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from generators.catalogue import Catalogue
from generators.from_clause import distinct_names
from generators.models import Models
from generators.schemas import Column
from generators.shapes import KINDS


class Grammar(Models):
    """Writes a query for DuckDB."""

    query_forms: Sequence[int] = range(35)
    """Of the forms of `query`, those that are written."""

    recursion_steps: tuple[str, ...] = ("+ 1", "+ 2", "* 2 + 1")
    depths: tuple[int, ...] = (1, 1, 2, 2, 3)
    """How deep queries lie in one another."""
    set_operations: tuple[str, ...] = (
        "union all", "union all", "union", "except", "intersect", "except all", "intersect all",
        "union by name", "union all by name",
    )  # fmt: skip

    def query(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("query"):
            way = self.pick("query form", self.query_forms)
            if way > 31 and self.budget >= 15:
                return self.imports(depth) if way == 34 and depth > 1 else self.model()
            if depth <= 0 or self.budget < 15 or way < 16:
                return self.select(depth)
            if way < 20:
                return self.set_operation(depth)
            if way < 23:
                return self.with_(depth)
            if way == 23:
                return self.recursive()
            if way == 24:
                return self.pivot_statement()
            if way == 25:
                return self.unpivot_statement()
            if way == 26:
                self.used("FROM alone")
                return self.from_alone(depth)
            if way in (30, 31):
                self.used("shape of four columns")
                return self.shaped(1), list(KINDS)
            return self.seen_in_order(depth)

    def set_operation(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("set operation"):
            word = self.pick(
                "set operation",
                self.set_operations,
            )
            self.used(word.upper())
            kinds = [
                self.pick("type", ("int", "str", "num")) for _ in range(self.pick("items", (1, 2)))
            ]
            if self.chance("set operation of stars", 0.12):
                return self.stars(word)
            branches = [self.branch(kinds, i) for i in range(self.pick("branches", (2, 2, 3)))]
            text = f"{branches[0]} {word} {branches[1]}"
            if len(branches) > 2:
                again = self.pick("set operation", ("union all", "union", "except", "intersect"))
                if self.chance("set operation in brackets", 0.3):
                    self.used("set operation in brackets")
                    text = f"{branches[0]} {word} ({branches[1]} {again} {branches[2]})"
                else:
                    text += f" {again} {branches[2]}"
            outputs = [("k", kinds[0]), ("v", kinds[-1])][: len(kinds)]
            order = self.order_by([], outputs=outputs) if outputs else ""
            limit = self.limit() if order and self.chance("LIMIT there or not", 0.5) else ""
            return text + order + limit, outputs

    def stars(self, word: str) -> tuple[str, list[Column]]:
        """A set operation of `*`, whose columns meet by position or by name."""
        self.used("set operation of stars")
        columns = [("id", "int"), ("k", "int"), ("v", "int"), ("s", "str")]
        branches = []
        for _ in range(2):
            with self.part("branch"):
                order = self.pick(
                    "star of", ("id, k, v, s", "k, id, v, s", "id, v as k, k as v, s")
                )
                where = self.clause("where", "WHERE", 0.4, columns)
                inner = f"select * from (select {order} from {self.narrow()}{where}) as i"
                branches.append(inner + self.pick("star exclude", ("", "", " where v > 0")))
        text = f"{branches[0]} {word} {branches[1]}"
        order_ = self.order_by([], outputs=columns)
        return text + order_, columns

    def branch(self, kinds: list[str], number: int) -> str:
        with self.part("branch"):
            names = ("k", "v")
            if number and self.chance("branch names", 0.2):
                names = ("v", "k")
            name, atoms = self.table("int")
            items = ", ".join(
                f"{self.of(kind, atoms, 1)} as {names[i]}" for i, kind in enumerate(kinds)
            )
            where = self.clause("where", "WHERE", 0.4, atoms)
            if self.chance("ordered branch", 0.25):
                self.used("ordered branch")
                limit = self.limit() if self.chance("LIMIT there or not", 0.6) else ""
                return (
                    f"(select {items} from {name}{where}{self.order_by(atoms, always=True)}{limit})"
                )
            return f"select {items} from {name}{where}"

    def with_(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("WITH"):
            self.used("WITH")
            ctes = []
            for nth in range(self.pick("CTEs", (1, 1, 1, 2))):
                with self.part("CTE"):
                    inside, columns = self.query(depth - 1)
                    name = self.pick(
                        "CTE name", ("e1", "e2", "a") if not nth else ("e3", "b", "E4")
                    )
                    hidden = self.pick(
                        "MATERIALIZED", ("", "", "", " materialized", " not materialized")
                    )
                    renamed = ""
                    if len(columns) > 1 and self.chance("CTE columns", 0.15):
                        self.used("CTE column list")
                        first = self.pick("column alias", self.names)
                        renamed = f" ({first})"
                        columns = distinct_names([(first, columns[0][1]), *columns[1:]])
                    ctes.append(f"{name}{renamed} as{hidden} ({inside})")
                    self.ctes.append((name, columns))
            if len(ctes) > 1:
                self.used("several CTEs")
            text, outputs = self.select(depth - 1)
            del self.ctes[-len(ctes) :]
            return f"with {', '.join(ctes)} {text}", outputs

    def recursive(self) -> tuple[str, list[Column]]:
        with self.part("recursive CTE"):
            self.used("recursive CTE")
            key = ""
            if self.chance("USING KEY", 0.35):
                self.used("USING KEY")
                key = f" using key ({self.pick('USING KEY', ('k', 'x'))})"
            word = self.pick("set operation", ("union all", "union"))
            start = self.narrow("k", "id")
            step = self.pick("operator", self.recursion_steps)
            bound = self.pick("literal", (3, 4, 5))
            column = self.pick("column", ("k", "x"))
            distinct = self.pick("DISTINCT there or not", ("", "", "distinct "))
            more = self.pick("recursion", ("", "", f" join {start} as i on i.k = r.k"))
            if self.chance("recursion to a set", 0.2):
                self.used("recursion to a set")
                more += self.pick(
                    "recursion", (" where r.k not in (select 2)", " where r.x is not null")
                )
                bound = f"{bound} and r.k < 9" if "where" not in more else bound
            outer = self.pick(
                "function", ("*", "k, x", "max(x) as k, count(*) as x", "k, count(*) as x")
            )
            group = " group by k" if outer.startswith("k, count") else ""
            return (
                f"with recursive r (k, x){key} as (select k, id from {start} where k is not null {word} "
                f"select {distinct}r.k {step}, r.x + 1 from r{more} {'and' if ' where ' in more else 'where'} r.{column} < {bound}) select {outer} from r{group}",
                [("k", "int"), ("x", "int")],
            )

    def pivot_statement(self) -> tuple[str, list[Column]]:
        with self.part("PIVOT"):
            self.used("PIVOT statement")
            on = self.pick("PIVOT on", ("s", "k", "k % 2", "s in ('a', '1')", "s, k", "d"))
            using = [
                f"{self.pick('function', ('sum', 'max', 'count', 'first', 'list', 'avg'))}({self.pick('column', ('id', 'k'))})"
            ]
            if self.chance("PIVOT using", 0.3):
                using.append(
                    f"{self.pick('function', ('sum', 'max', 'count'))}(id) as {self.pick('output alias', ('x', 'X'))}"
                )
            group = self.pick("PIVOT group", ("", "", " group by k", " group by id", " group by s"))
            where = self.clause("where", "WHERE", 0.3, [("id", "int"), ("k", "int"), ("s", "str")])
            source = f"(select * from {self.narrow('id', 'k', 's', 'd')}{where})"
            used = f" using {', '.join(using)}" if self.chance("PIVOT using", 0.85) else ""
            return f"select * from (pivot {source} on {on}{used}{group})", []

    def unpivot_statement(self) -> tuple[str, list[Column]]:
        with self.part("UNPIVOT"):
            self.used("UNPIVOT statement")
            nulls = self.pick("UNPIVOT NULLS", ("", "", " include nulls"))
            on = self.pick(
                "UNPIVOT columns",
                (
                    "id, k",
                    "k",
                    "columns(* exclude (s, d))",
                    "k as x, id as X",
                    "columns('k|id')",
                    "(id, k) as 'first', (k, id) as 'second'",
                ),
            )
            into = self.pick("UNPIVOT into", ("", " into name y value x", " into name Y value v"))
            if on.startswith("("):
                into = " into name y value v, w"
            return (
                f"select * from (unpivot{nulls} {self.narrow('id', 'k', 's', 'd')} on {on}{into})",
                [],
            )

    def from_alone(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("FROM alone"):
            text, atoms, sources, _ = self.from_(depth)
            where = self.clause("where", "WHERE", 0.5, atoms)
            return f"from {text}{where}", distinct_names([c for _, cs in sources for c in cs])

    def seen_in_order(self, depth: int) -> tuple[str, list[Column]]:
        """A query whose order somebody sees: a LIMIT or an ordered aggregate around it."""
        with self.part("order that is seen"):
            self.used("order that is seen")
            text, columns = self.query(depth - 1)
            column = self.pick("column", [c for c, _ in columns]) if columns else "*"
            if column == "*":
                return f"select * from ({text}) as o limit 2", columns
            way = self.pick("way to see", range(6))
            if way < 2:
                return (
                    f"select * from ({text}) as o limit {self.pick('LIMIT number', (1, 2, 3))}",
                    columns,
                )
            function = self.pick(
                "function",
                ("list", "first", "string_agg", "last", "array_agg", "arg_max", "group_concat"),
            )
            if function == "arg_max":
                return f"select arg_max({column}, 1) as x from ({text}) as o", [("x", "int")]
            if way == 2:
                return (
                    f"select * from (select * from ({text}) as o union all select * from ({text}) as o) limit 3",
                    columns,
                )
            return f"select {function}({column}) as x from ({text}) as o", [("x", "list")]


def write(
    catalogue: Catalogue,
    seed: int,
    changed: dict[int, int] | None = None,
    of: type[Grammar] = Grammar,
) -> tuple[str, Grammar]:
    """A query, and the decisions it was made by."""
    grammar = of(catalogue, seed, changed)
    text, _ = grammar.query(grammar.pick("depth", grammar.depths))
    return text, grammar
