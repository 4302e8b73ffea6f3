"""Scalar expressions, conditions and the subqueries in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from generators.catalogue import LITERALS, PLACE, Call, Catalogue
from generators.choices import Choices
from generators.schemas import TABLES, Column, classes

Atom = tuple[str, str]
"""An expression that a scope gives, and its class of types."""

TYPES: Final = ("int", "int", "int", "str", "str", "num", "bool", "date", "ts", "list", "slist")
ALL_TYPES: Final = (*TYPES, "struct", "map", "json", "interval", "other")
SIMPLE: Final = (
    "{x} > {n}", "{x} = {n}", "{x} is not null", "{x} is null", "{s} <> '{n}'", "({x} > 1 or {y} = 1)",
    "{s} is not null",
)  # fmt: skip
OF_PLACE: Final = {
    "i": "int", "j": "int", "s": "str", "n": "num", "d": "date", "ts": "ts", "l": "list", "m": "map",
    "st": "struct", "json": "json",
}  # fmt: skip
"""Of a place in a text, the class of what stands there."""


class Expressions(Choices):
    """Writes expressions over what a scope gives; the clauses around them are of the classes below."""

    literals = LITERALS
    tables = classes(TABLES)
    """The tables in scope."""
    names: tuple[str, ...] = ("k", "v", "x", "s", "y", "id", "w", "n", "K", "d")
    """Aliases, most of them names of columns below, so that they hide one another."""
    budget = 60
    """How much is written of a query before only its leaves are."""
    deep = 2
    """How deep an expression is."""
    subqueries = 0.0
    """The share of conditions that look into another relation, besides those that do so anyway."""
    shares: tuple[int, int, int] = (8, 10, 15)
    """Of twenty expressions, up to which they are columns, literals and calls of the catalogue."""
    types: tuple[str, ...] = TYPES
    all_types: tuple[str, ...] = ALL_TYPES
    """Classes of types to choose from: mostly, and by chance."""
    qualifies = True
    quantifies = True
    """Whether there is QUALIFY, and ANY and ALL."""
    text_forms: Sequence[int] = range(21)
    """Of the forms of `str_`, those that are written."""
    rows_of_relations = 0.3
    """The share of an item's forms that is the row of a relation."""
    loose: tuple[str, ...] = (
        "{i} | {j} & {i}", "{i} & {j} << {i}", "~{i} + {j}", "-{i} ^ {j}", "{i} + {j} % {i} * {j}",
        "{i} = {j} is null", "not {i} = {j} is null", "{i} between {j} and {i} = ({j} > 1)",
        "{i} = {j} in (true)", "not {i} in ({j}) or {i} > {j}", "{i} > 1 and {j} > 1 or {i} = {j}",
        "{s} || {i} + {j}", "{s} || {s} like {s}", "{s} ^@ {s} || {s}", "{s} = {s} -> 'a'",
        "{s} -> 'a' = {s}", "-{i}::varchar::int", "{i}::int + {j}::double", "{s} ->> 'a' || {s}",
        "{i} ! in ({j})", "{i} * .5", "{i} * 0.5", "{i} * 0.50",
    )  # fmt: skip
    """Operators side by side without a bracket, and the points of numbers."""
    handed_on: tuple[tuple[str, str], ...] = (
        ("1", "{l}[{c}]"), ("2", "{l}[{c}:]"), ("'x'", "{st}[{c}]"), ("'year'", "date_part({c}, {d})"),
        ("'month'", "date_trunc({c}, {ts})"), ("','", "string_split({s}, {c})"), ("1", "{i} / {c}"),
        ("'a'", "{m}[{c}]"), ("'$.a'", "{json} -> {c}"), ("'%Y'", "strftime({d}, {c})"),
        ("2", "round({n}, {c})"), ("1", "typeof({i} + {c})"), ("null", "typeof(coalesce({i}, {c}))"),
    )  # fmt: skip
    """A constant, and what it may be handed on to."""
    handed_to_rows: tuple[tuple[str, str], ...] = (
        ("2", "nth_value({x}, {c}) over ({order})"), ("1", "lag({x}, {c}) over ({order})"),
        ("2", "lead({x}, 1, {c}) over ({order})"), ("3", "ntile({c}) over ({order})"),
        ("2", "max({x}, {c})"), ("2", "arg_min({x}, {y}, {c})"), ("1", "sum({x}) over (partition by {c})"),
        ("1", "count(*) filter (where {x} > {c})"), ("0.5", "quantile_cont({x}, {c})"),
        ("0.5", "quantile_disc({x}, [{c}, 0.75])"), ("','", "string_agg({x}, {c} {order})"),
    )  # fmt: skip
    """Likewise, to an aggregate or a window over the rows of a table."""
    constant_keys: tuple[str, ...] = (
        "1", "2", "(1)", "'x'", "1.5", "null", "true", "1 + 1", "cast(1 as int)", "(select 1)", "-1",
    )  # fmt: skip
    """What names a position as a key, and what looks as if it did."""
    patterns: tuple[str, ...] = (
        "like", "ilike", "glob", "similar to", "not like", "not ilike", "~~~", "^@",
    )  # fmt: skip
    operators: tuple[str, ...] = ("+", "-", "*", "/")
    number_types: tuple[str, ...] = ("double", "decimal(9, 2)", "decimal(12, 4)", "float")
    text_type = "varchar"
    contains = "list_contains"
    list_tests: tuple[str, ...] = ("({} && {})", "({} @> {})", "({} <@ {})")
    unnest = "unnest"
    special_kinds = frozenset({"int", "str", "bool", "list", "struct", "num", "map", "json"})
    """Classes of types that have expressions of their own, besides calls."""

    def __init__(
        self, catalogue: Catalogue, seed: int, changed: dict[int, int] | None = None
    ) -> None:
        super().__init__(seed, changed)
        self.catalogue = catalogue
        self.ctes: list[tuple[str, list[Column]]] = []
        self.aliases = 0
        self.functions: set[str] = set()
        self.plain_tables: set[str] = set()

    def table(self, *kinds: str) -> tuple[str, list[Column]]:
        """A table in scope that has a column of each of these classes, and its columns."""
        name = self.pick(
            "table",
            [name for name, columns in self.tables.items() if {*kinds} <= {t for _, t in columns}],
        )
        return name, list(self.tables[name])

    def column(self, kind: str, columns: Sequence[Column]) -> str:
        """The name of a column of a class."""
        return self.pick("column", [c for c, t in columns if t == kind])

    def of(self, kind: str, atoms: Sequence[Atom], depth: int) -> str:
        """A scalar expression of a class of types."""
        with self.part("expression"):
            self.budget -= 1
            fitting = [text for text, t in atoms if t == kind]
            way = self.pick("way of an expression", range(20))
            columns, literals, calls = self.shares
            if depth <= 0 or self.budget <= 0:
                way = way % literals
            if fitting and way < columns:
                return self.pick("column", fitting)
            if way < literals and kind in self.literals:
                return self.pick("literal", self.literals[kind])
            if way < calls or kind not in self.special_kinds:
                called = self.call("scalar", kind, atoms, depth - 1)
                if called is not None:
                    return called
            special = getattr(self, f"{kind}_", None)
            if special is not None and depth > 0:
                return str(special(atoms, depth - 1))
            if fitting:
                return self.pick("column", fitting)
            if kind in self.literals:
                return self.pick("literal", self.literals[kind])
            return self.pick("literal", self.literals["int"])

    def any(self, atoms: Sequence[Atom], depth: int) -> tuple[str, str]:
        kind = self.pick("type", self.types)
        if self.chance("type", 0.15):
            kind = self.pick("type", self.all_types)
        return self.of(kind, atoms, depth), kind

    def call(self, kind: str, result: str, atoms: Sequence[Atom], depth: int) -> str | None:
        """A call of a function out of the catalogue, and of what fits as its arguments."""
        calls = self.catalogue.of(kind, result)
        if not calls:
            return None
        with self.part("call"):
            call = self.pick("overload", self.pick("function", calls))
            self.functions.add(call.name)
            return call.text(self.arguments(call, atoms, depth))

    def arguments(self, call: Call, atoms: Sequence[Atom], depth: int) -> list[str]:
        texts = []
        for wanted in call.arguments:
            if not wanted.startswith("="):
                texts.append(self.of(wanted, atoms, depth))
            elif PLACE.search(wanted):
                texts.append(PLACE.sub(lambda m: self.placed(m[1], atoms, depth), wanted[1:]))
            elif wanted.startswith("='"):
                with self.part("argument"):
                    if self.chance("argument", 0.1):
                        texts.append(self.of("str", atoms, 0))
                    else:
                        texts.append(wanted[1:])
            else:
                texts.append(wanted[1:])
        return texts

    def placed(self, kind: str, atoms: Sequence[Atom], depth: int) -> str:
        """What stands in a place of a call's text."""
        if kind != "q":
            return self.of(kind, atoms, depth)
        self.used("lambda")
        return self.of(self.pick("type", ("bool", "int")), [*atoms, ("q", "int")], 1)

    def int_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("integer", range(20))
        one = lambda: self.of("int", atoms, depth)  # noqa: E731
        if way == 17:
            self.used("bits")
            op = self.pick("operator", ("&", "|", "<<", ">>"))
            return f"(({one()}) {op} ({one()}))" if self.chance("~", 0.8) else f"(~({one()}))"
        if way == 18:
            self.used("aggregate of outer columns")
            function = self.pick("function", ("max", "min", "count", "sum"))
            from_ = self.pick("FROM there or not", ("", f" from {self.table()[0]} as i"))
            return f"(select {function}({one()}){from_})"
        if way == 19:
            part = self.pick(
                "date part", ("epoch", "isodow", "decade", "century", "hour", "minute", "era")
            )
            return f"extract({part} from {self.of('ts', atoms, depth)})::int"
        if way == 0:
            return f"({one()} {self.pick('operator', ('+', '-', '*', '%', '//'))} {one()})"
        if way == 1:
            return self.case("int", atoms, depth)
        if way == 2:
            word = self.pick("function", ("coalesce", "nullif", "greatest", "least", "ifnull"))
            return f"{word}({one()}, {one()})"
        if way == 3:
            cast = self.pick("cast", ("cast({} as integer)", "try_cast({} as integer)", "{}::int"))
            return cast.format(self.of(self.pick("type", ("str", "bool", "num")), atoms, depth))
        if way == 4:
            part = self.pick("date part", ("year", "month", "day", "dow", "quarter", "week", "doy"))
            return (
                f"extract({part} from {self.of(self.pick('type', ('date', 'ts')), atoms, depth)})"
            )
        if way == 5:
            self.used("list subscript")
            return f"{self.of('list', atoms, depth)}[{one()}]"
        if way == 6:
            self.used("struct field")
            struct = self.of("struct", atoms, depth)
            return self.pick(
                "field access", ("({}).x", "({})['x']", "struct_extract({}, 'x')")
            ).format(struct)
        if way == 7:
            return self.scalar_subquery("int", atoms)
        if way == 8:
            return f"len({self.of(self.pick('type', ('str', 'list', 'slist')), atoms, depth)})"
        if way == 9:
            self.used("map subscript")
            return f"{self.of('map', atoms, depth)}[{self.of('str', atoms, 0)}]"
        if way == 10:
            return f"position({self.of('str', atoms, 0)} in {self.of('str', atoms, depth)})"
        if way == 11:
            return f"({self.of('date', atoms, depth)} - {self.of('date', atoms, depth)})"
        if way == 12:
            self.used("method call")
            return f"({self.of('str', atoms, depth)}).{self.pick('function', ('length', 'ascii', 'strlen', 'unicode', 'bit_length'))}()"
        if way == 13:
            return f"-{one()}" if self.chance("sign", 0.7) else f"abs({one()})"
        if way == 14:
            self.used("TRY")
            return f"try({self.of('str', atoms, depth)}::int)"
        if way == 15:
            return f"list_reduce({self.of('list', atoms, depth)}, lambda q, r: {self.of('int', [*atoms, ('q', 'int'), ('r', 'int')], 1)})"
        return f"if({self.of('bool', atoms, depth)}, {one()}, {one()})"

    def num_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("number", range(5))
        one = lambda: self.of(self.pick("type", ("num", "int")), atoms, depth)  # noqa: E731
        if way == 0:
            return f"({one()} {self.pick('operator', self.operators)} {one()})"
        if way == 1:
            return f"cast({one()} as {self.pick('cast type', self.number_types)})"
        if way == 2:
            return f"round({one()}, {self.of('int', atoms, 0)})"
        if way == 3:
            return self.case("num", atoms, depth)
        return f"coalesce({self.of('num', atoms, depth)}, {self.of('num', atoms, depth)})"

    def side_by_side(self, atoms: Sequence[Atom]) -> str:
        """Operators without the brackets that say what binds to what; its type as text."""
        self.used("operators side by side")
        places = {kind: lambda t=t: self.of(t, atoms, 0) for kind, t in OF_PLACE.items()}
        return f"(({self.filled(self.pick('operators', self.loose), places)})::{self.text_type})"

    def of_a_constant(self, atoms: Sequence[Atom]) -> str:
        """What is made of a constant, which a subquery hands on or which stands there itself."""
        self.used("constant that is handed on")
        constant, use = self.pick("handed on", self.handed_on)
        places = {kind: lambda t=t: self.of(t, atoms, 0) for kind, t in OF_PLACE.items()}
        there = self.pick("constant", (constant, "o.c", "o.c", "o.c"))
        made = self.filled(use.replace("{c}", there), places)
        if self.handed_to_rows and self.chance("handed to rows", 0.3):
            constant, use = self.pick("handed on", self.handed_to_rows)
            there = self.pick("constant", (constant, "o.c", "o.c"))
            name, columns = self.table("int")
            numbers = [f"i.{c}" for c, t in columns if t == "int"]
            order = "order by " + ", ".join(numbers)
            use = use.replace("{c}", there).replace("{order}", order)
            used = self.filled(use, {"x": numbers, "y": numbers})
            made = f"(select max(w) from (select ({used})::{self.text_type} as w from {name} as i) as q)"
        start = self.pick(
            "handed on by",
            (
                "select {} from (select {} as c) as o",
                "select {} from (select c from (select {} as c) as p) as o",
                "with o as (select {1} as c) select {0} from o",
                "with p as (select {1} as c), o as (select c from p) select {0} from o",
                "select {} from (select 0 as z) as p, (select {} as c) as o",
            ),
        )
        return f"({start.format(f'({made})::{self.text_type}', constant)})"

    def str_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("string", self.text_forms)
        one = lambda: self.of("str", atoms, depth)  # noqa: E731
        if way > 18:
            return self.of_a_constant(atoms)
        if way > 16:
            return self.side_by_side(atoms)
        if way == 15:
            self.used("other quotes")
            return self.pick("literal", ("$$a$$", "e'a\\tB'", "$x$01$x$", "E'\\x41'", "'it''s'"))
        if way == 16:
            self.used("AT TIME ZONE")
            zone = self.pick("zone", ("UTC", "America/New_York", "Asia/Tokyo"))
            return f"(({self.of('ts', atoms, depth)} at time zone '{zone}')::varchar)"
        if way == 0:
            return f"({one()} || {one()})"
        if way == 1:
            return f"cast({self.any(atoms, depth)[0]} as varchar)"
        if way == 2:
            return f"{self.pick('function', ('upper', 'lower', 'trim', 'reverse', 'md5', 'initcap'))}({one()})"
        if way == 3:
            return self.case("str", atoms, depth)
        if way == 4:
            return f"trim({self.pick('side', ('both', 'leading', 'trailing'))} {self.of('str', atoms, 0)} from {one()})"
        if way == 5:
            return (
                f"substring({one()} from {self.of('int', atoms, 0)} for {self.of('int', atoms, 0)})"
            )
        if way == 6:
            return f"({one()} collate {self.pick('collation', ('nocase', 'noaccent', 'binary', 'nocase.noaccent'))})"
        if way == 7:
            self.used("struct field")
            return f"({self.of('struct', atoms, depth)}).y"
        if way == 8:
            self.used("JSON path")
            op = self.pick("operator", ("->>", "->"))
            key = self.pick("key", ("'a'", "'A'", "'$.a'", "'$.A[1]'", "0", "1", "'$[1].a'"))
            return f"(({self.of('json', atoms, depth)}) {op} {key})::varchar"
        if way == 9:
            self.used("whole row")
            tables = [t.rsplit(".", 1)[0] for t, _ in atoms if "." in t and "(" not in t]
            row = self.pick("whole row", tables) if tables else "1"
            return f"{self.pick('function', ('to_json', 'cast', 'hash'))}({row})::varchar".replace(
                f"cast({row})", f"cast({row} as varchar)"
            )
        if way == 10:
            return f"strftime({self.of(self.pick('type', ('date', 'ts')), atoms, depth)}, {self.pick('format', ('%Y', '%m-%d', '%H:%M', '%A')).join(chr(39) * 2)})"
        if way == 11:
            self.used("list subscript")
            return f"{self.of('slist', atoms, depth)}[{self.of('int', atoms, 0)}]"
        if way == 12:
            return self.scalar_subquery("str", atoms)
        if way == 13:
            self.used("slice")
            return f"({one()})[{self.of('int', atoms, 0)}:{self.of('int', atoms, 0)}]"
        self.used("JSON of a struct")
        return f"to_json({self.of('struct', atoms, depth)})::varchar"

    def bool_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("condition", range(25))
        if way == 24:
            return f"({self.simple(atoms)})"
        one = lambda: self.of("bool", atoms, depth)  # noqa: E731
        if self.subqueries and self.budget > 20 and self.chance("into another", self.subqueries):
            way = self.pick("subquery", (14, 15, 25))
        if way == 25:
            self.used("comparison with a subquery")
            op = self.pick("comparison", ("=", "<", ">="))
            return f"({self.of('int', atoms, 0)} {op} {self.scalar_subquery('int', atoms)})"
        if way < 6:
            kind = self.pick("type", ("int", "int", "str", "num", "date", "ts"))
            op = self.pick(
                "comparison",
                ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"),
            )
            return f"({self.of(kind, atoms, depth)} {op} {self.of(kind, atoms, depth)})"
        if way < 9:
            return f"({one()} {self.pick('connective', ('and', 'or'))} {one()})"
        if way == 9:
            return f"(not {one()})"
        if way == 10:
            negated = self.pick("negation", ("", "not "))
            return f"({self.any(atoms, depth)[0]} is {negated}null)"
        if way == 11:
            negated = self.pick("negation", ("", "not "))
            items = ", ".join(
                self.of("int", atoms, 0) for _ in range(self.pick("IN list", (1, 2, 3)))
            )
            return f"({self.of('int', atoms, depth)} {negated}in ({items}))"
        if way == 12:
            word = self.pick("pattern", self.patterns)
            return f"({self.of('str', atoms, depth)} {word} {self.pick('literal', (chr(39) + 'a%' + chr(39), chr(39) + '%1' + chr(39), chr(39) + '[a-b]*' + chr(39), chr(39) + '_' + chr(39), chr(39) + 'A' + chr(39)))})"
        if way == 13:
            negated = self.pick("negation", ("", "not "))
            return f"({self.of('int', atoms, depth)} {negated}between {self.of('int', atoms, 0)} and {self.of('int', atoms, depth)})"
        if way == 14:
            self.used("EXISTS")
            return f"({self.pick('negation', ('', 'not '))}exists ({self.subquery(atoms)[0]}))"
        if way in (15, 16) and not (way == 16 and self.quantifies):
            self.used("IN (subquery)")
            negated = self.pick("negation", ("", "not "))
            return f"({self.of('int', atoms, depth)} {negated}in ({self.one_column('int', atoms)}))"
        if way == 16 and self.quantifies:
            self.used("ANY / ALL")
            op = self.pick("comparison", ("=", "<>", "<", ">="))
            word = self.pick("quantifier", ("any", "all"))
            if self.chance("quantified list", 0.4):
                return (
                    f"({self.of('int', atoms, depth)} {op} {word}({self.of('list', atoms, depth)}))"
                )
            return f"({self.of('int', atoms, depth)} {op} {word} ({self.one_column('int', atoms)}))"
        if way == 17:
            word = self.pick(
                "test", ("is true", "is false", "is not true", "is not false", "is unknown")
            )
            return f"({one()} {word})" if word != "is unknown" else f"({one()} is null)"
        if way == 18:
            self.used("row comparison")
            if self.chance("row in a subquery", 0.3):
                negated = self.pick("negation", ("", "not "))
                table, columns = self.table("int", "str")
                row = f"{self.column('int', columns)}, {self.column('str', columns)}"
                return f"(({self.of('int', atoms, 0)}, {self.of('str', atoms, 0)}) {negated}in (select {row} from {table}))"
            return f"(({self.of('int', atoms, 0)}, {self.of('str', atoms, 0)}) {self.pick('comparison', ('=', '<', '>=', '<>'))} ({self.of('int', atoms, 0)}, {self.of('str', atoms, 0)}))"
        if way == 19:
            return f"{self.contains}({self.of('list', atoms, depth)}, {self.of('int', atoms, 0)})"
        if way == 20:
            self.used("IN a list")
            negated = self.pick("negation", ("", "not "))
            return f"({self.of('int', atoms, 0)} {negated}in {self.of('list', atoms, 0)})"
        if way == 21:
            self.used("ESCAPE")
            word = self.pick("pattern", ("like", "ilike", "not like"))
            pattern = self.pick("literal", ("'a!%'", "'%!_'", "'!%%'", "'%'"))
            return f"({self.of('str', atoms, depth)} {word} {pattern} escape '{self.pick('literal', ('!', '%'))}')"
        if way == 22:
            test = self.pick("comparison", self.list_tests)
            return test.format(self.of("list", atoms, depth), self.of("list", atoms, 0))
        kind = self.pick("type", ("int", "str", "date"))
        return f"({self.of(kind, atoms, 0)} between {self.of(kind, atoms, 0)} and {self.of(kind, atoms, depth)})"

    def simple(self, atoms: Sequence[Atom]) -> str:
        """A condition on a column or two, as people write them."""
        fits = lambda kind: [t for t, k in atoms if k == kind] or self.literals[kind]  # noqa: E731
        places = {"x": fits("int"), "y": fits("int"), "s": fits("str"), "n": ("0", "1", "2")}
        return self.filled(self.pick("simple condition", SIMPLE), places)

    def list_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("list", range(8))
        one = lambda: self.of("int", atoms, depth)  # noqa: E731
        if way == 0:
            return f"[{one()}, {one()}]"
        if way == 1:
            self.used("slice")
            step = self.pick("slice step", ("", ":1", ":2"))
            return f"({self.of('list', atoms, depth)})[{self.of('int', atoms, 0)}:{self.of('int', atoms, 0)}{step}]"
        if way == 2:
            self.used("list comprehension")
            inner = [*atoms, ("q", "int")]
            keep = (
                f" if {self.of('bool', inner, 1)}" if self.chance("filter in a list", 0.6) else ""
            )
            return f"[{self.of('int', inner, 1)} for q in {self.of('list', atoms, depth)}{keep}]"
        if way == 3:
            self.used("ARRAY(subquery)")
            return f"array({self.one_column('int', atoms, ordered=True)})"
        if way == 4:
            name = self.pick("function", ("list_filter", "list_transform"))
            body = "bool" if name == "list_filter" else "int"
            self.used("lambda")
            return f"{name}({self.of('list', atoms, depth)}, lambda q: {self.of(body, [*atoms, ('q', 'int')], 1)})"
        if way == 5:
            self.used("subquery of a list")
            return f"(select list(g) from ({self.one_column('int', atoms, ordered=True)}) as o (g))"
        if way == 6:
            return f"{self.pick('function', ('list_sort', 'list_reverse', 'list_distinct', 'list_reverse_sort'))}({self.of('list', atoms, depth)})"
        return f"{self.pick('function', ('range', 'generate_series'))}({self.of('int', atoms, 0)}, {self.of('int', atoms, 0)})"

    def struct_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("struct", range(5))
        x, y = self.of("int", atoms, depth), self.of("str", atoms, depth)
        self.used("struct literal")
        if way == 0:
            return f"{{'x': {x}, 'y': {y}}}"
        if way == 1:
            return f"struct_pack(x := {x}, y := {y})"
        if way == 2:
            return f"{self.case('struct', atoms, 0)}"
        if way == 3:
            self.used("cast to a struct")
            names = self.pick("key", ("x int, y varchar", "X int, y varchar", "x int, Y varchar"))
            return f"({{'x': {x}, 'y': {y}}}::struct({names}))"
        return f"struct_pack(x := {x}, {self.pick('key', ('y', 'Y'))} := {y})"

    def map_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("map", range(2))
        if way == 0:
            return f"map {{{self.of('str', atoms, 0)}: {self.of('int', atoms, depth)}, 'z': 1}}"
        return f"map(['a', 'b'], [{self.of('int', atoms, depth)}, {self.of('int', atoms, 0)}])"

    def json_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("JSON", range(4))
        if way == 0:
            return f"to_json({self.any(atoms, depth)[0]})"
        if way == 1:
            key = self.pick("key", ("'a'", "'A'", "'b'", "0"))
            return f"({self.of('json', atoms, depth)} -> {key})"
        if way == 2:
            key = self.pick("key", ("'a'", "'A'", "'x'"))
            return f"json_object({key}, {self.any(atoms, 0)[0]})"
        return f"json_array({self.any(atoms, depth)[0]}, {self.any(atoms, 0)[0]})"

    def case(self, kind: str, atoms: Sequence[Atom], depth: int) -> str:
        with self.part("CASE"):
            whens = "".join(
                f" when {self.of('bool', atoms, depth)} then {self.of(kind, atoms, depth)}"
                for _ in range(self.pick("CASE branches", (1, 1, 2)))
            )
            other = f" else {self.of(kind, atoms, depth)}" if self.chance("ELSE", 0.6) else ""
            return f"case{whens}{other} end"

    def scalar_subquery(self, kind: str, atoms: Sequence[Atom]) -> str:
        self.used("scalar subquery")
        with self.part("subquery"):
            if self.chance("plain subquery", 0.4):
                return f"({self.aggregated(kind, atoms)})"
            text, columns = self.subquery(atoms)
            fitting = [c for c, t in columns if t == kind] or [c for c, _ in columns[:1]] or ["1"]
            function = self.pick("function", ("max", "min", "count", "any_value"))
            return f"(select {function}({self.pick('column', fitting)}) from ({text}) as o)"

    def aggregated(self, kind: str, atoms: Sequence[Atom]) -> str:
        """One value of a table, of the rows that mostly are chosen by what is around."""
        self.budget -= 6
        name, columns = self.table("int")
        inner = [(f"i.{c}", t) for c, t in columns]
        where = self.clause("where", "WHERE", 0.7, [*inner, *atoms])
        function = self.pick("function", ("max", "min", "count"))
        return f"select {function}({self.of(kind, inner, 1)}) from {name} as i{where}"

    def one_column(self, kind: str, atoms: Sequence[Atom], ordered: bool = False) -> str:
        """A subquery of one column."""
        with self.part("subquery"):
            self.budget -= 6
            alias, (name, columns) = "i", self.table("int")
            inner = [(f"{alias}.{c}", t) for c, t in columns]
            where = self.clause("where", "WHERE", 0.6, [*inner, *atoms])
            order = ""
            if ordered or self.chance("ORDER BY below", 0.2):
                self.used("ORDER BY in a subquery")
                order = self.order_by(inner, always=True)
            limit = self.limit() if self.chance("LIMIT below", 0.3) else ""
            return f"select {self.of(kind, inner, 1)} from {name} as {alias}{where}{order}{limit}"

    def subquery(self, atoms: Sequence[Atom]) -> tuple[str, list[Column]]:
        with self.part("subquery"):
            self.budget -= 6
            if self.budget > 20 and self.chance("rich subquery", 0.25):
                return self.select(1, atoms)
            name, columns = self.table()
            if self.ctes and self.chance("subquery of a CTE", 0.4):
                self.used("CTE in a subquery")
                name, columns = self.pick("CTE", self.ctes)
            inner = [(f"i.{c}", t) for c, t in columns]
            where = self.clause("where", "WHERE", 0.8, [*inner, *atoms])
            return f"select * from {name} as i{where}", columns
