"""Random queries: every clause of the engine's SELECT, every function of its catalogue.

Mostly valid by types; what the engine refuses is thrown away. Every decision is one of `Choices`, so
that an edit is a query with one decision made anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from catalogue import LITERALS, PLACE, Call, Catalogue
from choices import Choices
from tables import CLASS, TABLES

Atom = tuple[str, str]
"""An expression that a scope gives, and its class of types."""
Column = tuple[str, str]

TYPES: Final = ("int", "int", "int", "str", "str", "num", "bool", "date", "ts", "list", "slist")
ALL_TYPES: Final = (*TYPES, "struct", "map", "json", "interval", "other")
NAMES: Final = ("k", "v", "x", "s", "y", "id", "w", "n", "K", "d")
"""Aliases, most of them names of columns below, so that they hide one another."""


class Grammar(Choices):
    """Writes a query for DuckDB."""

    literals = LITERALS
    tables = TABLES
    qualifies = True
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
        self.budget = 60
        self.plain_tables: set[str] = set()

    # -- expressions ------------------------------------------------------------------------------

    def of(self, kind: str, atoms: Sequence[Atom], depth: int) -> str:
        """A scalar expression of a class of types."""
        with self.part("expression"):
            self.budget -= 1
            fitting = [text for text, t in atoms if t == kind]
            way = self.pick("way of an expression", range(20))
            if depth <= 0 or self.budget <= 0:
                way = way % 10
            if fitting and way < 8:
                return self.pick("column", fitting)
            if way < 10 and kind in self.literals:
                return self.pick("literal", self.literals[kind])
            if way < 15 or kind not in self.special_kinds:
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
        kind = self.pick("type", TYPES)
        if self.chance("type", 0.15):
            kind = self.pick("type", ALL_TYPES)
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
            from_ = self.pick(
                "FROM there or not", ("", f" from {self.pick('table', ('a', 'b'))} as i")
            )
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
            return f"({one()} {self.pick('operator', ('+', '-', '*', '/'))} {one()})"
        if way == 1:
            return f"cast({one()} as {self.pick('cast type', ('double', 'decimal(9, 2)', 'decimal(12, 4)', 'float'))})"
        if way == 2:
            return f"round({one()}, {self.of('int', atoms, 0)})"
        if way == 3:
            return self.case("num", atoms, depth)
        return f"coalesce({self.of('num', atoms, depth)}, {self.of('num', atoms, depth)})"

    def str_(self, atoms: Sequence[Atom], depth: int) -> str:
        way = self.pick("string", range(17))
        one = lambda: self.of("str", atoms, depth)  # noqa: E731
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
        way = self.pick("condition", range(24))
        one = lambda: self.of("bool", atoms, depth)  # noqa: E731
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
            word = self.pick(
                "pattern",
                ("like", "ilike", "glob", "similar to", "not like", "not ilike", "~~~", "^@"),
            )
            return f"({self.of('str', atoms, depth)} {word} {self.pick('literal', (chr(39) + 'a%' + chr(39), chr(39) + '%1' + chr(39), chr(39) + '[a-b]*' + chr(39), chr(39) + '_' + chr(39), chr(39) + 'A' + chr(39)))})"
        if way == 13:
            negated = self.pick("negation", ("", "not "))
            return f"({self.of('int', atoms, depth)} {negated}between {self.of('int', atoms, 0)} and {self.of('int', atoms, depth)})"
        if way == 14:
            self.used("EXISTS")
            return f"({self.pick('negation', ('', 'not '))}exists ({self.subquery(atoms)[0]}))"
        if way == 15:
            self.used("IN (subquery)")
            negated = self.pick("negation", ("", "not "))
            return f"({self.of('int', atoms, depth)} {negated}in ({self.one_column('int', atoms)}))"
        if way == 16:
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
                table = self.pick("table", ("a", "b"))
                return f"(({self.of('int', atoms, 0)}, {self.of('str', atoms, 0)}) {negated}in (select k, s from {table}))"
            return f"(({self.of('int', atoms, 0)}, {self.of('str', atoms, 0)}) {self.pick('comparison', ('=', '<', '>=', '<>'))} ({self.of('int', atoms, 0)}, {self.of('str', atoms, 0)}))"
        if way == 19:
            return f"list_contains({self.of('list', atoms, depth)}, {self.of('int', atoms, 0)})"
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
            op = self.pick("comparison", ("&&", "@>", "<@"))
            return f"({self.of('list', atoms, depth)} {op} {self.of('list', atoms, 0)})"
        kind = self.pick("type", ("int", "str", "date"))
        return f"({self.of(kind, atoms, 0)} between {self.of(kind, atoms, 0)} and {self.of(kind, atoms, depth)})"

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
            text, columns = self.subquery(atoms)
            fitting = [c for c, t in columns if t == kind] or [c for c, _ in columns[:1]] or ["1"]
            function = self.pick("function", ("max", "min", "count", "any_value"))
            return f"(select {function}({self.pick('column', fitting)}) from ({text}) as o)"

    def one_column(self, kind: str, atoms: Sequence[Atom], ordered: bool = False) -> str:
        """A subquery of one column."""
        with self.part("subquery"):
            self.budget -= 6
            alias, columns = "i", list(self.tables[self.pick("table", ("a", "b"))].items())
            name = "a" if len(columns) == len(self.tables["a"]) else "b"
            inner = [(f"{alias}.{c}", CLASS[t]) for c, t in columns]
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
            name = self.pick("table", tuple(self.tables))
            columns = [(c, CLASS[t]) for c, t in self.tables[name].items()]
            if self.ctes and self.chance("subquery of a CTE", 0.4):
                self.used("CTE in a subquery")
                name, columns = self.pick("CTE", self.ctes)
            inner = [(f"i.{c}", t) for c, t in columns]
            where = self.clause("where", "WHERE", 0.8, [*inner, *atoms])
            return f"select * from {name} as i{where}", columns

    # -- clauses ----------------------------------------------------------------------------------

    def clause(self, word: str, kind: str, share: float, atoms: Sequence[Atom]) -> str:
        if not self.chance(f"{kind} there or not", share):
            return ""
        with self.part(kind):
            self.used(kind)
            return f" {word} {self.of('bool', atoms, 2)}"

    def direction(self) -> str:
        way = self.pick("direction", ("", "", " asc", " desc", " desc"))
        return way + self.pick("NULLS", ("", "", "", " nulls first", " nulls last"))

    def order_by(
        self, atoms: Sequence[Atom], *, outputs: Sequence[Column] = (), always: bool = False
    ) -> str:
        if not always and not self.chance("ORDER BY there or not", 0.3):
            return ""
        with self.part("ORDER BY"):
            self.used("ORDER BY")
            if outputs and self.chance("ORDER BY ALL", 0.12):
                self.used("ORDER BY ALL")
                return f" order by all{self.direction()}"
            keys = []
            for _ in range(self.pick("ORDER BY keys", (1, 2, 2))):
                with self.part("ORDER BY key"):
                    way = self.pick("ORDER BY form", range(8))
                    if outputs and way == 0 and self.chance("#1", 0.15):
                        self.used("ORDER BY #1")
                        key = f"#{1 + self.pick('ordinal', range(len(outputs)))}"
                    elif outputs and way == 0:
                        self.used("ORDER BY ordinal")
                        key = str(1 + self.pick("ordinal", range(len(outputs))))
                    elif outputs and way < 4:
                        self.used("ORDER BY alias")
                        key = self.pick("alias", [c for c, _ in outputs])
                        if way == 3:
                            key = f"({key} {self.pick('test', ('is null', 'is not null', '= 1'))})"
                    elif way == 4:
                        key = self.any(atoms, 1)[0]
                    elif way == 5 and self.chance("ORDER BY COLLATE", 0.3):
                        self.used("ORDER BY COLLATE")
                        key = f"{self.of('str', atoms, 0)} collate {self.pick('collation', ('nocase', 'noaccent', 'de'))}"
                    else:
                        simple = [t for t, _ in atoms]
                        key = self.pick("column", simple) if simple else "1"
                    keys.append(key + self.direction())
            return " order by " + ", ".join(keys)

    def limit(self) -> str:
        with self.part("LIMIT"):
            self.used("LIMIT")
            way = self.pick("LIMIT form", range(8))
            n = self.pick("LIMIT number", (1, 2, 3, 2, 4, 0))
            if way == 0:
                self.used("LIMIT percent")
                return f" limit {self.pick('LIMIT percent', (20, 40, 50, 75))}%"
            if way == 1:
                return f" limit {n} offset {self.pick('OFFSET', (1, 2, 3))}"
            if way == 2:
                self.used("OFFSET alone")
                return f" offset {self.pick('OFFSET', (1, 2, 3))}"
            if way == 3:
                return f" limit (select {n})"
            if way == 4:
                return f" fetch first {n} rows only"
            return f" limit {n}"

    def aggregate(self, atoms: Sequence[Atom], depth: int, kind: str | None = None) -> Atom:
        """An aggregate over a scope, with the clauses it may have inside and after it."""
        with self.part("aggregate"):
            self.used("aggregate")
            kind = kind or self.pick(
                "type", ("int", "int", "num", "str", "list", "date", "other", "map")
            )
            way = self.pick("aggregate form", range(16))
            inside = ""
            if way == 0:
                text, kind = "count(*)", "int"
            elif way == 1:
                self.used("WITHIN GROUP")
                word = self.pick(
                    "function",
                    (
                        "percentile_cont(0.75)",
                        "percentile_cont(0.5)",
                        "percentile_disc(0.25)",
                        "percentile_disc(0.5)",
                        "mode()",
                    ),
                )
                wanted = self.pick("type", ("int", "num"))
                text = (
                    f"{word} within group (order by {self.of(wanted, atoms, 0)}{self.direction()})"
                )
                kind = "num"
            else:
                calls = self.catalogue.of("aggregate", kind) or self.catalogue.of(
                    "aggregate", "int"
                )
                call = self.pick("overload", self.pick("aggregate function", calls))
                self.functions.add(call.name)
                distinct = ""
                if self.chance("DISTINCT inside", 0.12):
                    self.used("DISTINCT inside an aggregate")
                    distinct = "distinct "
                if self.chance("ORDER BY inside", 0.25):
                    self.used("ORDER BY inside an aggregate")
                    inside = self.order_by(atoms, always=True)
                arguments = ", ".join(self.arguments(call, atoms, depth))
                text = f"{call.text(['@@'])}".replace("@@", f"{distinct}{arguments}{inside}")
            if self.chance("FILTER there or not", 0.15):
                self.used("FILTER")
                with self.part("FILTER"):
                    where = self.pick("FILTER word", ("where ", "where ", ""))
                    text += f" filter ({where}{self.of('bool', atoms, 1)})"
            return text, kind

    def over(self, atoms: Sequence[Atom], names: Sequence[str]) -> str:
        with self.part("OVER"):
            if names and self.chance("named window", 0.5):
                self.used("named window")
                name = self.pick("window name", names)
                return f" over {name}" if self.chance("bare name", 0.8) else f" over ({name})"
            return f" over ({self.window_body(atoms)})"

    def window_body(self, atoms: Sequence[Atom]) -> str:
        partition = ""
        if self.chance("PARTITION BY there or not", 0.5):
            with self.part("PARTITION BY"):
                keys = [
                    self.any(atoms, 0)[0] for _ in range(self.pick("PARTITION BY keys", (1, 1, 2)))
                ]
                partition = "partition by " + ", ".join(keys)
        order = ""
        if self.chance("window ORDER BY there or not", 0.75):
            with self.part("window ORDER BY"):
                order = self.order_by(atoms, always=True)
        frame = ""
        if order and self.chance("frame there or not", 0.5):
            with self.part("frame"):
                self.used("window frame")
                unit = self.pick("frame unit", ("rows", "rows", "groups", "range"))
                start = self.pick(
                    "frame start",
                    ("unbounded preceding", "1 preceding", "2 preceding", "current row"),
                )
                end = self.pick(
                    "frame end",
                    ("current row", "1 following", "unbounded following", "2 following"),
                )
                exclude = self.pick(
                    "frame EXCLUDE",
                    (
                        "",
                        "",
                        " exclude current row",
                        " exclude group",
                        " exclude ties",
                        " exclude no others",
                    ),
                )
                if exclude:
                    self.used("EXCLUDE in a frame")
                if self.chance("RANGE of values", 0.12):
                    self.used("RANGE of values")
                    kind, far = self.pick(
                        "RANGE of values",
                        (
                            ("int", "5"),
                            ("int", "1 + 1"),
                            ("date", "interval 1 month"),
                            ("ts", "interval '2' day"),
                        ),
                    )
                    key = (
                        f"order by {self.of(kind, atoms, 0)}{self.pick('direction', ('', ' desc'))}"
                    )
                    return (
                        f"{partition} {key} range between {far} preceding and "
                        f"{self.pick('frame end', ('current row', f'{far} following', 'unbounded following'))}{exclude}"
                    ).strip()
                if self.chance("frame form", 0.15):
                    frame = f" {unit} {start}"
                else:
                    frame = f" {unit} between {start} and {end}{exclude}"
        return (partition + order + frame).strip()

    def window(self, atoms: Sequence[Atom], names: Sequence[str]) -> Atom:
        with self.part("window"):
            self.used("window")
            way = self.pick("window form", range(6))
            if way < 3:
                kind = self.pick("type", ("int", "int", "num"))
                calls = self.catalogue.of("window", kind)
                call = self.pick("overload", self.pick("window function", calls))
                self.functions.add(call.name)
                arguments = ", ".join(self.arguments(call, atoms, 1))
                if call.name in (
                    "lag",
                    "lead",
                    "first_value",
                    "last_value",
                    "nth_value",
                    "first",
                    "last",
                    "fill",
                ):
                    nulls = self.pick("IGNORE NULLS", ("", "", " ignore nulls", " respect nulls"))
                    if nulls:
                        self.used("IGNORE NULLS")
                    arguments += nulls
                text = f"{call.name}({arguments})"
            else:
                text, kind = self.aggregate(atoms, 1)
            return text + self.over(atoms, names), kind

    # -- FROM -------------------------------------------------------------------------------------

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def relation(self, depth: int, outer: Sequence[Atom] = ()) -> tuple[str, str, list[Column]]:
        """Something in FROM: its text with its alias, the alias, and its columns."""
        with self.part("relation"):
            self.budget -= 3
            alias = self.alias()
            way = self.pick("relation form", range(24))
            if depth <= 0 or self.budget <= 0:
                way = way % 9
            if way < 9 or (way < 11 and not self.ctes):
                name = self.pick("table", tuple(self.tables))
                columns = [(c, CLASS[t]) for c, t in self.tables[name].items()]
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
                form = self.pick("table form", range(24))
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
                    other = self.pick("table", tuple(self.tables))
                    second = self.alias()
                    kind = self.pick(
                        "join kind", ("join", "left join", "right join", "full join", "semi join")
                    )
                    theirs = (
                        []
                        if kind == "semi join"
                        else [(c, CLASS[t]) for c, t in self.tables[other].items()]
                    )
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
                        (self.pick("column alias", NAMES) if i < 2 else c, t)
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
                        self.pick("column alias", NAMES),
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
                name = self.pick("table", ("a", "b"))
                kept = "k, s" if name == "a" else "k, q as p"
                field, values = (
                    ("s", ("'a'", "'1'", "'01'", "'A'"))
                    if name == "a"
                    else ("p", ("true", "false"))
                )
                several = [self.pick("PIVOT value", values), self.pick("PIVOT value", values)]
                function = self.pick("function", ("sum", "max", "count", "list"))
                renamed = self.pick("PIVOT names", ("", " as x"))
                group = self.pick("PIVOT group", ("", "", " group by k"))
                return (
                    f"(select {kept}, id from {name}) pivot ({function}(id){renamed} for {field} in "
                    f"({', '.join(dict.fromkeys(several))}){group}) as {alias}",
                    alias,
                    [("k", "int")],
                )
            if way == 21:
                self.used("UNPIVOT in FROM")
                name = self.pick("table", ("a", "b"))
                second = "v" if name == "a" else "w"
                nulls = self.pick("UNPIVOT NULLS", ("", " include nulls", " exclude nulls"))
                columns_ = self.pick(
                    "UNPIVOT columns",
                    (f"k, {second}", f"{second}, k", "k, id", f"k as 'K', {second}"),
                )
                return (
                    f"(select id, k, s, {second} from {name}) unpivot{nulls} (x for y in ({columns_})) as {alias}",
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
                table = self.pick("table", ("a", "b"))
                return (
                    f"query('select k, s from {table}') as {alias}",
                    alias,
                    [("k", "int"), ("s", "str")],
                )
            if name == "histogram_values":
                return (
                    f"histogram_values({self.pick('table', ('a', 'b'))}, {self.pick('column', ('k', 'id'))}) as {alias}",
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
                f"summary((select k, s from {self.pick('table', ('a', 'b'))})) as {alias}",
                alias,
                [],
            )

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
            for _ in range(
                self.pick("joins", (0, 0, 0, 1, 1, 2))
                if depth > 0
                else self.pick("joins", (0, 0, 1))
            ):
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
                    kind = self.pick("join kind", self.join_kinds())
                    self.used(kind.upper() if kind != "," else "comma join")
                    inner_atoms = [(f"{alias}.{c}", t) for c, t in columns]
                    if kind in (",", "cross join", "positional join") or kind.startswith("natural"):
                        text += f"{'' if kind == ',' else ' '}{kind} {right}"
                        condition = ""
                    elif both and self.chance("USING", 0.3):
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

    def join_kinds(self) -> tuple[str, ...]:
        return (
            "join", "join", "left join", "left join", "right join", "full join", "cross join", ",",
            "semi join", "anti join", "positional join", "asof join", "asof left join", "natural join",
            "natural left join", "natural full join", "inner join", "left outer join",
            "natural right join", "asof right join", "asof full join",
        )  # fmt: skip

    def condition(self, left: Sequence[Atom], right: Sequence[Atom], *, asof: bool) -> str:
        with self.part("join condition"):
            pairs = [
                (x, y) for x, t in left for y, u in right if t == u and t in ("int", "str", "date")
            ]
            if not pairs:
                return "true"
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

    # -- SELECT -----------------------------------------------------------------------------------

    def select(self, depth: int, outer: Sequence[Atom] = ()) -> tuple[str, list[Column]]:
        with self.part("SELECT"):
            from_, atoms, sources, bare = self.from_(depth, outer)
            every = [*atoms, *bare]
            if outer and self.chance("correlation", 0.7):
                self.used("correlated subquery")
                every += outer
            shape = self.pick(
                "SELECT form", ("plain", "plain", "plain", "group", "group", "group", "global")
            )
            where = self.clause("where", "WHERE", 0.4, every)
            names = (
                [self.pick("window name", ("w1", "w2"))]
                if self.chance("WINDOW there or not", 0.1)
                else []
            )
            if shape == "plain":
                return self.plain(depth, from_, where, every, sources, names)
            return self.grouped(shape, from_, where, every, names)

    def plain(
        self, depth: int, from_: str, where: str, atoms: list[Atom],
        sources: list[tuple[str, list[Column]]], names: list[str],
    ) -> tuple[str, list[Column]]:  # fmt: skip
        window = f" window {names[0]} as ({self.window_body(atoms)})" if names else ""
        items: list[str] = []
        outputs: list[Column] = []
        lateral: list[Atom] = []
        for _ in range(self.pick("items", (1, 2, 2, 3, 3))):
            with self.part("item"):
                way = self.pick("item form", range(24))
                if way < 3:
                    texts, columns = self.star(sources)
                    items.append(texts)
                    outputs += columns
                    continue
                if way == 3:
                    made = self.generating(atoms)
                    items.append(made[0])
                    outputs += made[1]
                    continue
                if way < 7:
                    text, kind = self.window(atoms, names)
                elif way < 11:
                    text, kind = self.pick("column", atoms)
                else:
                    text, kind = self.any([*atoms, *lateral], 2)
                self.named(text, kind, items, outputs, lateral)
        distinct = ""
        order_atoms = atoms
        if self.chance("DISTINCT there or not", 0.15):
            self.used("DISTINCT")
            distinct = "distinct "
            if self.chance("DISTINCT ON", 0.4):
                self.used("DISTINCT ON")
                keys = [
                    self.pick(
                        "DISTINCT ON key", [*[t for t, _ in atoms], *[c for c, _ in outputs], "1"]
                    )
                    for _ in range(self.pick("DISTINCT ON keys", (1, 1, 2)))
                ]
                if self.chance("DISTINCT ON expression", 0.2):
                    self.used("DISTINCT ON expression")
                    keys[-1] = self.any(atoms, 1)[0]
                key = ", ".join(keys)
                distinct = f"distinct on ({key}) "
            else:
                order_atoms = outputs
        qualify = ""
        if self.chance("QUALIFY there or not", 0.1):
            with self.part("QUALIFY"):
                self.used("QUALIFY")
                text, kind = self.window(atoms, names)
                test = self.pick("comparison", ("= 1", "<= 2", "> 1", "is not null"))
                qualify = f" qualify {text} {test}"
        if not items:
            items = ["*"]
        order = self.order_by(order_atoms, outputs=outputs)
        limit = self.limit() if order and self.chance("LIMIT there or not", 0.5) else ""
        if distinct.startswith("distinct on") and not order:
            order = self.order_by(atoms, outputs=outputs, always=True)
        sample = ""
        if self.chance("sample there or not", 0.02):
            self.used("USING SAMPLE")
            sample = f" using sample {self.pick('sample', ('3 rows', '50%', '2'))} (reservoir, {self.pick('sample seed', (1, 2, 42))})"
        rest = f"{where}{window}{qualify}{sample}{order}{limit}"
        if self.chance("FROM first", 0.06):
            self.used("FROM first")
            text = f"from {from_} select {distinct}{', '.join(items)}{rest}"
        else:
            text = f"select {distinct}{', '.join(items)} from {from_}{rest}"
        return text, distinct_names(outputs)

    def named(
        self, text: str, kind: str, items: list[str], outputs: list[Column], lateral: list[Atom]
    ) -> None:
        """An item with its alias, or without."""
        way = self.pick("alias form", range(12))
        if way == 0:
            items.append(text)
            bare = text.rsplit(".", 1)[-1]
            if bare.isidentifier():
                outputs.append((bare, kind))
            return
        name = self.pick("output alias", NAMES)
        if any(c == name for c, _ in outputs):
            name = f"{name}{len(outputs)}"
        if way == 1:
            self.used("alias: expression")
            items.append(f"{name}: {text}")
        elif way == 2:
            if self.chance("odd name", 0.15):
                self.used("a name with spaces")
                name = self.pick("odd name", ("a b", "K k", "1", "select", "k.v")) + str(
                    len(outputs)
                )
                items.append(f'{text} as "{name}"')
                outputs.append((f'"{name}"', kind))
                return
            items.append(f'{text} "{name}"')
        else:
            items.append(f"{text} as {name}")
        outputs.append((name, kind))
        lateral.append((name, kind))
        if len(lateral) > 1:
            self.used("lateral alias")

    def star(self, sources: list[tuple[str, list[Column]]]) -> tuple[str, list[Column]]:
        """`*` in one of its forms."""
        everything = [column for _, columns in sources for column in columns]
        way = self.pick("star form", range(16))
        alias, columns = self.pick("source", sources)
        names = [c for c, _ in columns]
        if not columns or way < 3:
            self.used("*")
            return "*", everything
        if way < 5:
            self.used("alias.*")
            return f"{alias}.*", columns
        one = self.pick("column", names)
        without = [(c, t) for c, t in everything if c != one]
        if way == 5:
            self.used("* EXCLUDE")
            return f"* exclude ({one})", without
        if way == 6:
            self.used("* REPLACE")
            atoms = [(f"{alias}.{c}", t) for c, t in columns]
            return f"* replace ({self.any(atoms, 1)[0]} as {one})", everything
        if way == 7:
            self.used("* RENAME")
            new = self.pick("output alias", NAMES)
            return f"* rename ({one} as {new})", [*without, (new, dict(columns)[one])]
        if way == 8:
            self.used("* LIKE")
            pattern = self.pick("pattern", ("'k%'", "'%'", "'_'", "'s'", "'K%'"))
            return (
                f"* {self.pick('pattern word', ('like', 'ilike', 'not like', 'similar to', 'glob'))} {pattern}",
                [],
            )
        pattern = self.pick("pattern", ("'k|v'", "'^.$'", "'s|k'", "'[kv]'", "'K'"))
        function = self.pick(
            "function", ("max", "upper", "length", "hash", "typeof", "first", "count")
        )
        if way == 9:
            self.used("COLUMNS(regex)")
            return f"columns({pattern})", []
        if way == 10:
            self.used("f(COLUMNS(*))")
            exclude = self.pick("star exclude", ("", f" exclude ({one})"))
            return f"{function}(columns(*{exclude}))", []
        if way == 11:
            self.used("COLUMNS(lambda)")
            return (
                f"columns(lambda c: c {self.pick('pattern word', ('like', 'ilike', 'not like', '<', '='))} {self.pick('literal', (chr(39) + 'k' + chr(39), chr(39) + 's%' + chr(39), chr(39) + 'K' + chr(39)))})",
                [],
            )
        if way == 12:
            self.used("*COLUMNS(...)")
            return (
                f"{self.pick('function', ('coalesce', 'concat', 'greatest', 'struct_pack', 'list_value', 'hash'))}(*columns({pattern}))",
                [],
            )
        if way == 13:
            self.used("COLUMNS(list)")
            return f"columns(['{one}', '{self.pick('column', names)}'])", []
        if way == 14:
            self.used("alias.COLUMNS")
            return f"{alias}.columns({pattern})", []
        self.used("COLUMNS AS \\1")
        return (
            f"columns('(k|v|s)') as {self.pick('key', (chr(39) + 'a_' + chr(92) + '1' + chr(39), chr(39) + chr(92) + '0_b' + chr(39)))}",
            [],
        )

    def generating(self, atoms: Sequence[Atom]) -> tuple[str, list[Column]]:
        """An item that makes rows or several columns."""
        way = self.pick("generator", range(8))
        name = self.pick("output alias", ("x", "y", "v"))
        if way < 3:
            self.used("UNNEST in the select list")
            return f"unnest({self.of('list', atoms, 1)}) as {name}", [(name, "int")]
        if way == 3:
            self.used("generate_subscripts")
            return f"generate_subscripts({self.of('list', atoms, 1)}, 1) as {name}", [(name, "int")]
        if way == 4:
            self.used("UNNEST of a struct")
            recursive = self.pick("recursive", ("", ", recursive := true", ", max_depth := 2"))
            return f"unnest([{self.of('struct', atoms, 1)}]{recursive})", []
        if way == 5:
            self.used("UNNEST of a struct")
            return f"unnest({self.of('struct', atoms, 1)})", [("x", "int"), ("y", "str")]
        structs = [t for t, k in atoms if k == "struct"]
        if structs:
            self.used("struct.*")
            exclude = self.pick("star exclude", ("", "", " exclude (x)", " exclude (y)"))
            return f"{self.pick('column', structs)}.*{exclude}", [("x", "int"), ("y", "str")]
        self.used("regexp_split_to_table")
        return f"regexp_split_to_table({self.of('str', atoms, 0)}, '') as {name}", [(name, "str")]

    def grouped(
        self, shape: str, from_: str, where: str, atoms: list[Atom], names: list[str]
    ) -> tuple[str, list[Column]]:
        if shape == "group" and self.chance("positions behind a star", 0.06):
            return self.behind_a_star(from_, where, atoms)
        keys: list[Atom] = []
        if shape == "group":
            for _ in range(self.pick("GROUP BY keys", (1, 1, 2, 2))):
                with self.part("GROUP BY key"):
                    if self.chance("GROUP BY expression", 0.25):
                        keys.append(self.any(atoms, 1))
                    else:
                        keys.append(self.pick("column", atoms))
        aggregates = [self.aggregate(atoms, 1) for _ in range(self.pick("aggregates", (1, 1, 2)))]
        inside = [*keys, *aggregates]
        items: list[str] = []
        outputs: list[Column] = []
        lateral: list[Atom] = []
        used_keys: list[str] = []
        for i, (text, kind) in enumerate(keys):
            if self.chance("key in the select list", 0.8):
                self.named(text, kind, items, outputs, lateral)
                used_keys.append(str(len(items)))
                # A key is written again, as an ordinal, or as its alias.
                form = self.pick("GROUP BY form", range(6))
                if form == 0:
                    self.used("GROUP BY ordinal")
                    keys[i] = (str(len(items)), kind)
                elif form == 1 and outputs and items[-1].endswith(outputs[-1][0]):
                    self.used("GROUP BY alias")
                    keys[i] = (outputs[-1][0], kind)
        for text, kind in aggregates:
            with self.part("item"):
                way = self.pick("item form", range(10))
                if way == 0:
                    made, kind = self.any([*inside, *lateral], 1)
                    self.named(made, kind, items, outputs, lateral)
                elif way == 1:
                    self.used("window over groups")
                    made, kind = self.window(inside, [])
                    self.named(made, kind, items, outputs, lateral)
                elif way == 2 and shape == "group":
                    self.used("UNNEST beside GROUP BY")
                    name = self.pick("output alias", ("x", "y"))
                    items.append(f"{self.unnest}({self.of('list', inside, 1)}) as {name}")
                    outputs.append((name, "int"))
                else:
                    self.named(text, kind, items, outputs, lateral)
        if not items:
            items, outputs = ["count(*) as n"], [("n", "int")]
        group = ""
        if shape == "group":
            with self.part("GROUP BY"):
                self.used("GROUP BY")
                listed = ", ".join(t for t, _ in keys)
                form = self.pick(
                    "grouping",
                    ("plain",) * 14
                    + ("all", "rollup", "cube", "sets", "sets", "parts", "nested", "product"),
                )
                if form == "all":
                    self.used("GROUP BY ALL")
                    group = " group by all"
                elif form in ("rollup", "cube"):
                    self.used(form.upper())
                    group = f" group by {form} ({listed})"
                elif form == "sets":
                    self.used("GROUPING SETS")
                    last = self.pick("grouping sets", ("()", f"({keys[0][0]})", f"({keys[-1][0]})"))
                    group = f" group by grouping sets (({listed}), {last})"
                    if self.chance("GROUPING()", 0.5) and not keys[0][0].isdigit():
                        self.used("GROUPING()")
                        items.append(
                            f"{self.pick('function', ('grouping', 'grouping_id'))}({keys[0][0]}) as g"
                        )
                        outputs.append(("g", "int"))
                elif form == "nested" and len(keys) > 1:
                    self.used("nested sets")
                    one, two = keys[0][0], keys[1][0]
                    group = " group by " + self.pick(
                        "nested sets",
                        (
                            f"grouping sets (rollup ({one}, {two}), ())",
                            f"rollup (({one}, {two}), {one})",
                            f"cube (({one}), ({two}, {one}))",
                            f"grouping sets (({one}), ({one}, {two}), {two}, ())",
                        ),
                    )
                elif form == "product" and len(keys) > 1:
                    self.used("product of sets")
                    words = [self.pick("set word", ("rollup", "cube")) for _ in range(2)]
                    group = f" group by {words[0]} ({keys[0][0]}), {words[1]} ({keys[1][0]})"
                elif form == "parts" and len(keys) > 1:
                    self.used("GROUP BY a, ROLLUP (b)")
                    group = f" group by {keys[0][0]}, rollup ({keys[1][0]})"
                else:
                    group = f" group by {listed}"
        having = ""
        if self.chance("HAVING there or not", 0.25):
            with self.part("HAVING"):
                self.used("HAVING")
                atoms_ = [*inside, *outputs] if self.chance("alias in HAVING", 0.5) else inside
                having = f" having {self.of('bool', atoms_, 1)}"
        qualify = ""
        if self.qualifies and self.chance("QUALIFY there or not", 0.06):
            with self.part("QUALIFY"):
                self.used("QUALIFY")
                text, _ = self.window(inside, [])
                qualify = (
                    f" qualify {text} {self.pick('comparison', ('= 1', '<= 2', 'is not null'))}"
                )
        distinct = "distinct " if self.chance("DISTINCT there or not", 0.06) else ""
        tail = self.tail(inside, outputs)
        text = (
            f"select {distinct}{', '.join(items)} from {from_}{where}{group}{having}{qualify}{tail}"
        )
        return text, distinct_names(outputs)

    def behind_a_star(self, from_: str, where: str, atoms: list[Atom]) -> tuple[str, list[Column]]:
        """Groups by positions that count the columns of a `*`."""
        self.used("GROUP BY ordinal behind a star")
        inner: list[str] = []
        outputs: list[Column] = []
        for name in ("k", "v", "s")[: self.pick("columns of a star", (1, 2, 2, 3))]:
            with self.part("item"):
                text, kind = self.any(atoms, 1)
            inner.append(f"{text} as {name}")
            outputs.append((name, kind))
        first = self.pick("item before a star", ("", "", "7 as c, "))
        places = [str(i + 1 + bool(first)) for i in range(len(outputs))]
        if self.chance("positions turned", 0.5):
            places.reverse()
        star = self.pick("star", ("*", "o.*"))
        form = self.pick("grouping by positions", ("{}", "{}", "{}", "rollup ({})"))
        text = (
            f"select {first}{star}, count(*) as n from (select {', '.join(inner)} from {from_}{where}) as o"
            f" group by {form.format(', '.join(places))}"
        )
        return text, [*([("c", "int")] if first else []), *outputs, ("n", "int")]

    def tail(self, atoms: Sequence[Atom], outputs: list[Column]) -> str:
        """ORDER BY and LIMIT."""
        order = self.order_by(atoms, outputs=outputs)
        return order + (self.limit() if order and self.chance("LIMIT there or not", 0.5) else "")

    # -- queries ----------------------------------------------------------------------------------

    def query(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("query"):
            way = self.pick("query form", range(30))
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
            return self.seen_in_order(depth)

    def set_operation(self, depth: int) -> tuple[str, list[Column]]:
        with self.part("set operation"):
            word = self.pick(
                "set operation",
                (
                    "union all",
                    "union all",
                    "union",
                    "except",
                    "intersect",
                    "except all",
                    "intersect all",
                    "union by name",
                    "union all by name",
                ),
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
        columns = [(c, t) for c, t in (("id", "int"), ("k", "int"), ("v", "int"), ("s", "str"))]
        branches = []
        for _ in range(2):
            with self.part("branch"):
                order = self.pick(
                    "star of", ("id, k, v, s", "k, id, v, s", "id, v as k, k as v, s")
                )
                where = self.clause("where", "WHERE", 0.4, columns)
                inner = f"select * from (select {order} from a{where}) as i"
                branches.append(inner + self.pick("star exclude", ("", "", " where v > 0")))
        text = f"{branches[0]} {word} {branches[1]}"
        order_ = self.order_by([], outputs=columns)
        return text + order_, columns

    def branch(self, kinds: list[str], number: int) -> str:
        with self.part("branch"):
            names = ("k", "v")
            if number and self.chance("branch names", 0.2):
                names = ("v", "k")
            name = self.pick("table", ("a", "b"))
            atoms = [(c, CLASS[t]) for c, t in self.tables[name].items()]
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
                        first = self.pick("column alias", NAMES)
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
            start = self.pick("table", ("a", "b"))
            step = self.pick("operator", ("+ 1", "+ 2", "* 2 + 1"))
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
            name = self.pick("table", ("a", "b"))
            on = self.pick("PIVOT on", ("s", "k", "k % 2", "s in ('a', '1')", "s, k", "d"))
            using = [
                f"{self.pick('function', ('sum', 'max', 'count', 'first', 'list', 'avg'))}({self.pick('column', ('id', 'k'))})"
            ]
            if self.chance("PIVOT using", 0.3):
                using.append(
                    f"{self.pick('function', ('sum', 'max', 'count'))}(id) as {self.pick('output alias', ('x', 'X'))}"
                )
            group = self.pick("PIVOT group", ("", "", " group by k", " group by id", " group by s"))
            source = f"(select id, k, s, d from {name}{self.clause('where', 'WHERE', 0.3, [('id', 'int'), ('k', 'int'), ('s', 'str')])})"
            used = f" using {', '.join(using)}" if self.chance("PIVOT using", 0.85) else ""
            return f"select * from (pivot {source} on {on}{used}{group})", []

    def unpivot_statement(self) -> tuple[str, list[Column]]:
        with self.part("UNPIVOT"):
            self.used("UNPIVOT statement")
            name = self.pick("table", ("a", "b"))
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
                f"select * from (unpivot{nulls} (select id, k, s, d from {name}) on {on}{into})",
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


def distinct_names(columns: list[Column]) -> list[Column]:
    """The columns whose name only one has."""
    names = [c.lower() for c, _ in columns]
    return [(c, t) for c, t in columns if names.count(c.lower()) == 1]


def write(
    catalogue: Catalogue,
    seed: int,
    changed: dict[int, int] | None = None,
    of: type[Grammar] = Grammar,
) -> tuple[str, Grammar]:
    """A query, and the decisions it was made by."""
    grammar = of(catalogue, seed, changed)
    text, _ = grammar.query(grammar.pick("depth", (1, 1, 2, 2, 3)))
    return text, grammar
