"""Random queries in Spark's SQL: its clauses, its functions, its names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from generators.expressions import Atom
from generators.from_clause import distinct_names
from generators.grammar import Grammar
from generators.schemas import SPARK_TABLES, Column, classes

LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2", "3", "-1", "7", "null"),
    "num": ("0.5", "1.25", "2.0", "-0.0D", "1e1", "-2.5"),
    "str": ("'a'", "'A'", "'1'", "'01'", "''", "'b c'", "'ab'", "null", "'x'"),
    "bool": ("true", "false", "cast(null as boolean)"),
    "date": ("date '2024-02-29'", "date '2023-12-31'", "date '2024-01-01'"),
    "ts": ("timestamp '2024-02-29 12:30:00'", "timestamp '2023-12-31 23:59:59.5'"),
    "list": ("array(1, 2, null)", "array(2, 1)", "array(3, 1, 1)"),
    "slist": ("array('a', 'B', null)", "array('1', '01')", "array('b')"),
    "struct": ("named_struct('x', 1, 'y', 'a')", "named_struct('x', 2, 'y', '01')"),
    "map": ("map('a', 1, 'b', 2)", "map('b', 2)"),
}


class SparkGrammar(Grammar):
    """Writes a query for Spark; what it does not write otherwise is as in DuckDB's."""

    literals = LITERALS
    tables = classes(SPARK_TABLES)
    qualifies = quantifies = star_counts = False
    patterns = ("like", "ilike", "rlike", "not like", "not ilike", "not rlike")
    text_forms = range(13)
    loose = (
        "{i} | {j} & {i}", "{i} & {j} ^ {i}", "~{i} | {j}", "{i} + {j} % {i} * {j}", "{i} div {j} * {i}",
        "{i} = {j} is null", "not {i} = {j} is null", "{i} = {j} < true", "{i} = {j} in (true)",
        "not {i} in ({j}) or {i} > {j}", "{i} > 1 and {j} > 1 or {i} = {j}", "! {i} = {j}",
        "{s} || {i} || {j}", "{s} || {s} like {s}", "-{i}::string::int", "{i} ! in ({j})",
        "{i} <=> {j} is null", "{i} * .5", "{i} * 0.5", "{i} * 0.50", "{i} * 5BD", "{i} * 5D",
    )  # fmt: skip
    handed_on = (
        ("1", "element_at({l}, {c})"), ("2", "get({l}, {c})"), ("'year'", "date_part({c}, {d})"),
        ("'month'", "date_trunc({c}, {ts})"), ("','", "split({s}, {c})"), ("1", "{i} / {c}"),
        ("'a'", "{m}[{c}]"), ("'yyyy'", "date_format({d}, {c})"), ("1", "typeof({i} + {c})"),
        ("null", "typeof(coalesce({i}, {c}))"), ("2", "lpad({s}, {c}, 'x')"),
    )  # fmt: skip
    handed_to_rows = (
        ("1", "lag({x}, {c}) over ({order})"), ("2", "lead({x}, 1, {c}) over ({order})"),
        ("1", "sum({x}) over (partition by {c})"), ("1", "count(*) filter (where {x} > {c})"),
    )  # fmt: skip
    contains = "array_contains"
    list_tests = ("arrays_overlap({}, {})",)
    generators: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    """Of the forms of `generating`, those that are written."""
    recursion_levels: tuple[str, ...] = ("", "", " max recursion level 20")
    collations = ("utf8_lcase", "unicode", "de")
    set_operations = (
        "union all", "union all", "union", "except", "intersect", "except all", "intersect all", "minus",
    )  # fmt: skip
    join_kinds = (
        "join", "join", "left join", "left join", "right join", "full join", "cross join", ",",
        "left semi join", "left anti join", "natural join", "natural left join", "natural full join",
    )  # fmt: skip
    unnest = "explode"
    text_type = "string"

    # -- expressions ------------------------------------------------------------------------------

    def int_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("integer", range(13))
        one = lambda: self.of("int", atoms, depth)  # noqa: E731
        if way == 0:
            return f"({one()} {self.pick('operator', ('+', '-', '*', '%', 'div'))} {one()})"
        if way == 1:
            return self.case("int", atoms, depth)
        if way == 2:
            word = self.pick(
                "function", ("coalesce", "nullif", "greatest", "least", "ifnull", "nvl")
            )
            return f"{word}({one()}, {one()})"
        if way == 3:
            cast = self.pick("cast", ("try_cast({} as int)", "cast({} as int)", "({})::int"))
            return cast.format(self.of(self.pick("type", ("str", "bool", "num")), atoms, depth))
        if way == 4:
            part = self.pick("date part", ("year", "month", "day", "dow", "quarter", "week", "doy"))
            return (
                f"extract({part} from {self.of(self.pick('type', ('date', 'ts')), atoms, depth)})"
            )
        if way == 5:
            self.used("list subscript")
            return f"get({self.of('list', atoms, depth)}, {self.of('int', atoms, 0)})"
        if way == 6:
            self.used("struct field")
            return f"{self.of('struct', atoms, 0)}.x"
        if way == 7:
            return self.scalar_subquery("int", atoms)
        if way == 8:
            return f"{self.pick('function', ('length', 'char_length', 'octet_length', 'ascii'))}({self.of('str', atoms, depth)})"
        if way == 9:
            return f"element_at({self.of('map', atoms, depth)}, {self.of('str', atoms, 0)})"
        if way == 10:
            return f"aggregate({self.of('list', atoms, depth)}, 0, (q, r) -> cast({self.of('int', [*atoms, ('q', 'int'), ('r', 'int')], 1)} as int))"
        if way == 11:
            unit = self.pick("date part", ("second", "day", "month", "hour"))
            function = self.pick("function", ("timestampdiff", "datediff"))
            return f"{function}({unit}, {self.of('ts', atoms, 0)}, {self.of('ts', atoms, 0)})"
        return f"if({self.of('bool', atoms, depth)}, {one()}, {one()})"

    def num_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("number", range(4))
        one = lambda: self.of(self.pick("type", ("num", "int")), atoms, depth)  # noqa: E731
        if way == 0:
            return f"({one()} {self.pick('operator', ('+', '-', '*'))} {one()})"
        if way == 1:
            return f"cast({one()} as {self.pick('cast type', ('double', 'decimal(9, 2)', 'decimal(12, 4)', 'float'))})"
        if way == 2:
            return f"round({one()}, {self.pick('literal', ('0', '1', '-1'))})"
        return self.case("num", atoms, depth)

    def str_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("string", self.text_forms)
        one = lambda: self.of("str", atoms, depth)  # noqa: E731
        if way == 11:
            return self.side_by_side(atoms)
        if way == 12:
            return self.of_a_constant(atoms)
        if way == 0:
            return f"({one()} || {one()})"
        if way == 1:
            return f"cast({self.any(atoms, depth)[0]} as string)"
        if way == 2:
            return f"{self.pick('function', ('upper', 'lower', 'trim', 'reverse', 'md5', 'initcap', 'soundex'))}({one()})"
        if way == 3:
            return self.case("str", atoms, depth)
        if way == 4:
            return f"trim({self.pick('side', ('both', 'leading', 'trailing'))} {self.of('str', atoms, 0)} from {one()})"
        if way == 5:
            return (
                f"substring({one()} from {self.of('int', atoms, 0)} for {self.of('int', atoms, 0)})"
            )
        if way == 6:
            self.used("struct field")
            return f"{self.of('struct', atoms, 0)}.y"
        if way == 7:
            self.used("JSON of a struct")
            key = self.pick("key", ("'a'", "'A'", "'b'"))
            return f"to_json(named_struct({key}, {one()}))"
        if way == 8:
            self.used("whole row")
            return f"to_json(struct({self.pick('whole row', ('*', *[t for t, _ in atoms if '.' in t][:3]))}))"
        if way == 9:
            return f"date_format({self.of(self.pick('type', ('date', 'ts')), atoms, depth)}, {self.pick('format', (repr('yyyy'), repr('MM-dd'), repr('E')))})"
        return self.scalar_subquery("str", atoms)

    def list_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("list", range(6))
        one = lambda: self.of("int", atoms, depth)  # noqa: E731
        if way == 0:
            return f"array({one()}, {one()})"
        if way == 1:
            return f"slice({self.of('list', atoms, depth)}, {self.pick('literal', (1, 2))}, {self.pick('literal', (1, 2))})"
        if way == 2:
            self.used("lambda")
            return f"filter({self.of('list', atoms, depth)}, q -> {self.of('bool', [*atoms, ('q', 'int')], 1)})"
        if way == 3:
            self.used("lambda")
            return f"transform({self.of('list', atoms, depth)}, q -> {self.of('int', [*atoms, ('q', 'int')], 1)})"
        if way == 4:
            self.used("subquery of a list")
            return f"(select collect_list(g) from ({self.one_column('int', atoms, ordered=True)}) as o (g))"
        return f"{self.pick('function', ('array_sort', 'reverse', 'array_distinct', 'array_compact'))}({self.of('list', atoms, depth)})"

    def struct_(self, atoms: Sequence[Atom], depth: int) -> str:
        self.used("struct literal")
        key = self.pick("key", ("'y'", "'Y'"))
        return f"named_struct('x', {self.of('int', atoms, depth)}, {key}, {self.of('str', atoms, depth)})"

    def map_(self, atoms: Sequence[Atom], depth: int) -> str:
        return f"map('a', {self.of('int', atoms, depth)}, 'z', {self.of('int', atoms, 0)})"

    # -- clauses ----------------------------------------------------------------------------------

    def limit(self) -> str:
        with self.part("LIMIT"):
            self.used("LIMIT")
            n = self.pick("LIMIT number", (1, 2, 3, 2, 4, 0))
            way = self.pick("LIMIT form", range(6))
            if way == 0:
                return f" limit {n} offset {self.pick('OFFSET', (1, 2, 3))}"
            if way == 1:
                self.used("OFFSET alone")
                return f" offset {self.pick('OFFSET', (1, 2, 3))}"
            return f" limit {n}"

    def aggregate(
        self, atoms: Sequence[Atom], depth: int, kind: str | None = None, over: bool = False
    ) -> Atom:
        with self.part("aggregate"):
            self.used("aggregate")
            kind = kind or self.pick("type", ("int", "int", "num", "str", "list", "date", "other"))
            if self.chance("aggregate form", 0.08):
                text, kind = "count(*)", "int"
            else:
                if not self.catalogue.of("aggregate", kind):
                    kind = "int"
                calls = self.catalogue.of("aggregate", kind)
                call = self.pick("overload", self.pick("aggregate function", calls))
                self.functions.add(call.name)
                text = call.text(self.arguments(call, atoms, depth))
                if self.chance("DISTINCT inside", 0.12) and not call.whole and not over:
                    self.used("DISTINCT inside an aggregate")
                    text = text.replace("(", "(distinct ", 1)
            if not over and self.chance("FILTER there or not", 0.15):
                self.used("FILTER")
                with self.part("FILTER"):
                    text += f" filter (where {self.of('bool', atoms, 1)})"
            return text, kind

    def window_body(self, atoms: Sequence[Atom], framed: bool = True) -> str:
        partition = ""
        if self.chance("PARTITION BY there or not", 0.5):
            with self.part("PARTITION BY"):
                partition = f"partition by {self.any(atoms, 0)[0]}"
        with self.part("window ORDER BY"):
            order = self.order_by(atoms, always=True)
        frame = ""
        if framed and self.chance("frame there or not", 0.3):
            with self.part("frame"):
                self.used("window frame")
                unit = self.pick("frame unit", ("rows", "rows", "range"))
                start = self.pick(
                    "frame start", ("unbounded preceding", "1 preceding", "current row")
                )
                end = self.pick("frame end", ("current row", "1 following", "unbounded following"))
                frame = f" {unit} between {start} and {end}"
        return (partition + order + frame).strip()

    def window(self, atoms: Sequence[Atom], names: Sequence[str]) -> Atom:
        with self.part("window"):
            self.used("window")
            if self.chance("window form", 0.5):
                kind = "int"
                calls = self.catalogue.of("window", kind)
                call = self.pick("overload", self.pick("window function", calls))
                self.functions.add(call.name)
                text = call.text(self.arguments(call, atoms, 1))
                if call.name in ("lag", "lead", "first_value", "last_value", "nth_value"):
                    nulls = self.pick("IGNORE NULLS", ("", "", " ignore nulls", " respect nulls"))
                    if nulls:
                        self.used("IGNORE NULLS")
                    text += nulls
            else:
                text, kind = self.aggregate(atoms, 1, over=True)
                return text + self.over(atoms, names), kind
            # Spark's own window functions have the frame that they need.
            return text + self.over(atoms, names, framed=False), kind

    # -- FROM -------------------------------------------------------------------------------------

    def relation(self, depth: int, outer: Sequence[Atom] = ()) -> tuple[str, str, list[Column]]:
        with self.part("relation"):
            self.budget -= 3
            alias = self.alias()
            way = self.pick("relation form", range(20))
            if depth <= 0 or self.budget <= 0:
                way = way % 9
            if way < 9 or (way < 11 and not self.ctes):
                name, columns = self.table()
                form = self.pick("table form", range(20))
                if form == 0:
                    self.used("TABLESAMPLE")
                    size = self.pick("sample", ("3 rows", "50 percent", "bucket 1 out of 2"))
                    return (
                        f"{name} tablesample ({size}) repeatable ({self.pick('sample seed', (1, 2, 42))}) as {alias}",
                        alias,
                        columns,
                    )
                if form == 1:
                    self.used("column aliases")
                    renamed = [
                        (self.pick("column alias", self.names) if i < 2 else c, t)
                        for i, (c, t) in enumerate(columns)
                    ]
                    return f"{name} as {alias} ({', '.join(c for c, _ in renamed)})", alias, renamed
                if form == 2:
                    self.used("LATERAL VIEW")
                    word = self.pick("LATERAL VIEW", ("", "outer "))
                    function = self.pick("function", ("explode", "posexplode"))
                    made = "pos, x" if function == "posexplode" else "x"
                    inner = [(f"{alias}.{c}", t) for c, t in columns]
                    view = f"lateral view {word}{function}({self.of('list', inner, 1)}) {alias}v as {made}"
                    return f"{name} as {alias} {view}", alias, columns
                return f"{name} as {alias}", alias, columns
            if way < 11:
                name, columns = self.pick("CTE", self.ctes)
                return f"{name} as {alias}", alias, columns
            if way < 16:
                self.used("derived table")
                text, columns = self.query(depth - 1)
                return f"({text}) as {alias}", alias, columns
            if way == 16:
                self.used("VALUES")
                rows = ", ".join(
                    f"({self.pick('literal', LITERALS['int'])}, {self.pick('literal', LITERALS['str'])})"
                    for _ in range(self.pick("VALUES rows", (1, 2, 3)))
                )
                one = self.pick("column alias", ("k", "v", "x"))
                return f"values {rows} as {alias} ({one}, y)", alias, [(one, "int"), ("y", "str")]
            if way == 17:
                self.used("table function")
                numbers = ", ".join(
                    str(self.pick("literal", (1, 2, 4, 6)))
                    for _ in range(self.pick("arguments", (1, 2)))
                )
                return f"range({numbers}) as {alias} (k)", alias, [("k", "int")]
            if way == 18:
                self.used("PIVOT in FROM")
                function = self.pick("function", ("sum", "max", "count", "first"))
                values = self.pick("PIVOT value", ("'a', '1'", "'1', '01'", "'a' as a, '01' as b"))
                return (
                    f"(select * from {self.narrow('k', 's', 'id')} pivot ({function}(id) for s in ({values}))) as {alias}",
                    alias,
                    [("k", "int")],
                )
            self.used("UNPIVOT in FROM")
            nulls = self.pick("UNPIVOT NULLS", ("", " include nulls", " exclude nulls"))
            listed = self.pick("UNPIVOT columns", ("k, v", "v, k", "k as `K`, v", "k, id"))
            return (
                f"(select * from {self.narrow()} unpivot{nulls} (x for y in ({listed}))) as {alias}",
                alias, [("s", "str"), ("y", "str"), ("x", "int")],
            )  # fmt: skip

    # -- SELECT -----------------------------------------------------------------------------------

    def star(self, sources: list[tuple[str, list[Column]]]) -> tuple[str, list[Column]]:
        everything = [column for _, columns in sources for column in columns]
        alias, columns = self.pick("source", sources)
        way = self.pick("star form", range(6))
        if not columns or way < 2:
            self.used("*")
            return "*", everything
        if way < 4:
            self.used("alias.*")
            return f"{alias}.*", columns
        one = self.pick("column", [c for c, _ in columns])
        self.used("* EXCEPT")
        return f"* except ({one})", [(c, t) for c, t in everything if c != one]

    def generating(self, atoms: Sequence[Atom]) -> tuple[str, list[Column]]:
        way = self.pick("generator", self.generators)
        name = self.pick("output alias", ("x", "y", "v"))
        if way < 2:
            self.used("explode in the select list")
            word = self.pick("function", ("explode", "explode_outer"))
            return f"{word}({self.of('list', atoms, 1)}) as {name}", [(name, "int")]
        if way == 2:
            self.used("posexplode in the select list")
            return f"posexplode({self.of('list', atoms, 1)}) as (p, {name})", [
                ("p", "int"),
                (name, "int"),
            ]
        if way == 3:
            self.used("inline in the select list")
            return f"inline(array({self.of('struct', atoms, 1)}, {self.of('struct', atoms, 0)}))", [
                ("x", "int"),
                ("y", "str"),
            ]
        if way == 4:
            self.used("stack in the select list")
            return (
                f"stack(2, {self.of('int', atoms, 0)}, {self.of('int', atoms, 0)}) as ({name})",
                [(name, "int")],
            )
        structs = [t for t, k in atoms if k == "struct"]
        if structs:
            self.used("struct.*")
            return f"{self.pick('column', structs)}.*", [("x", "int"), ("y", "str")]
        return f"explode({self.of('list', atoms, 1)}) as {name}", [(name, "int")]

    def plain(
        self, depth: int, from_: str, where: str, atoms: list[Atom],
        sources: list[tuple[str, list[Column]]], names: list[str],
    ) -> tuple[str, list[Column]]:  # fmt: skip
        window = f" window {names[0]} as ({self.window_body(atoms)})" if names else ""
        items: list[str] = []
        outputs: list[Column] = []
        lateral: list[Atom] = []
        for _ in range(self.pick("items", (1, 2, 2, 3))):
            with self.part("item"):
                way = self.pick("item form", range(20))
                if way < 3:
                    text, columns = self.star(sources)
                    items.append(text)
                    outputs += columns
                    continue
                if way == 3:
                    text, columns = self.generating(atoms)
                    items.append(text)
                    outputs += columns
                    continue
                if way < 7:
                    text, kind = self.window(atoms, names)
                elif way < 11:
                    text, kind = self.pick("column", atoms)
                else:
                    text, kind = self.any([*atoms, *lateral], self.deep)
                self.named(text, kind, items, outputs, lateral)
        distinct = ""
        order_atoms: Sequence[Atom] = atoms
        if self.chance("DISTINCT there or not", 0.12):
            self.used("DISTINCT")
            distinct, order_atoms = "distinct ", outputs
        tail = self.tail(order_atoms or outputs, outputs)
        return (
            f"select {distinct}{', '.join(items or ['*'])} from {from_}{where}{window}{tail}",
            distinct_names(outputs),
        )

    def tail(self, atoms: Sequence[Atom], outputs: list[Column]) -> str:
        """ORDER BY or one of its relatives, and LIMIT."""
        if self.chance("SORT BY", 0.06) and (outputs or atoms):
            word = self.pick("SORT BY", ("sort by", "distribute by", "cluster by"))
            self.used(word.upper())
            return f" {word} {self.pick('column', [t for t, _ in outputs or atoms])}"
        order = self.order_by(atoms, outputs=outputs) if atoms else ""
        return order + (self.limit() if order and self.chance("LIMIT there or not", 0.5) else "")

    def named(
        self, text: str, kind: str, items: list[str], outputs: list[Column], lateral: list[Atom]
    ) -> None:
        name = self.pick("output alias", self.names)
        if any(c.lower() == name.lower() for c, _ in outputs):
            name = f"{name}{len(outputs)}"
        if self.chance("alias form", 0.08):
            items.append(text)
            return
        items.append(f"{text} as {name}")
        outputs.append((name, kind))
        lateral.append((name, kind))
        if len(lateral) > 1:
            self.used("lateral alias")

    # -- queries ----------------------------------------------------------------------------------

    def query(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("query"):
            way = self.pick("query form", range(26))
            if depth <= 0 or self.budget < 15 or way < 15:
                return self.select(depth)
            if way < 19:
                return self.set_operation(depth)
            if way < 22:
                return self.with_(depth)
            if way == 22:
                return self.recursive()
            if way == 23:
                return self.piped()
            return self.seen_in_order(depth)

    def with_(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("WITH"):
            self.used("WITH")
            inside, columns = self.query(depth - 1)
            name = self.pick("CTE name", ("e1", "e2", "a"))
            self.ctes.append((name, columns))
            text, outputs = self.select(depth - 1)
            self.ctes.pop()
            return f"with {name} as ({inside}) {text}", outputs

    def recursive(self) -> tuple[str, list[Column]]:
        with self.part("recursive CTE"):
            self.used("recursive CTE")
            levels = self.pick("MAX RECURSION LEVEL", self.recursion_levels)
            start = self.narrow("k", "id")
            step = self.pick("operator", ("+ 1", "+ 2"))
            outer = self.pick("function", ("*", "k, x", "max(x) as k, count(*) as x"))
            return (
                f"with recursive r (k, x){levels} as (select k, id from {start} where k is not null union all "
                f"select r.k {step}, r.x + 1 from r where r.k < {self.pick('literal', (3, 4, 5))}) select {outer} from r",
                [("k", "int"), ("x", "int")],
            )

    def piped(self) -> tuple[str, list[Column]]:
        with self.part("pipe syntax"):
            self.used("pipe syntax")
            atoms = [("id", "int"), ("k", "int"), ("s", "str"), ("d", "date")]
            text = f"from {self.narrow(*(c for c, _ in atoms))}"
            for _ in range(self.pick("pipes", (1, 2, 3))):
                with self.part("pipe"):
                    way = self.pick("pipe", range(6))
                    if way == 0:
                        text += f" |> where {self.of('bool', atoms, 1)}"
                    elif way == 1:
                        text += f" |> extend {self.of('int', atoms, 1)} as x"
                    elif way == 2:
                        text += f" |> order by {self.pick('column', ('k', 'id', 's'))}{self.direction()} |> limit {self.pick('LIMIT number', (1, 2, 3))}"
                    elif way == 3:
                        text += f" |> set k = {self.of('int', atoms, 1)}"
                    elif way == 4:
                        text += f" |> drop {self.pick('column', ('d', 's'))}"
                    else:
                        text += f" |> aggregate {self.aggregate(atoms, 0)[0]} as x group by k"
                        break
            return text, []

    def seen_in_order(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("order that is seen"):
            self.used("order that is seen")
            text, columns = self.query(depth - 1)
            if not columns or self.chance("way to see", 0.5):
                return (
                    f"select * from ({text}) as o limit {self.pick('LIMIT number', (1, 2, 3))}",
                    columns,
                )
            column = self.pick("column", [c for c, _ in columns])
            function = self.pick("function", ("collect_list", "first", "last", "array_agg"))
            return f"select {function}({column}) as x from ({text}) as o", [("x", "list")]
