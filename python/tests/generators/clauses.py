"""Clauses of a SELECT but FROM, aggregates and windows."""

from __future__ import annotations

from collections.abc import Sequence

from generators.expressions import Atom, Expressions
from generators.schemas import Column


class Clauses(Expressions):
    """Writes clauses over what a scope gives."""

    collations: tuple[str, ...] = ("nocase", "noaccent", "de")

    def clause(self, word: str, kind: str, share: float, atoms: Sequence[Atom]) -> str:
        if not self.chance(f"{kind} there or not", share):
            return ""
        with self.part(kind):
            self.used(kind)
            return f" {word} {self.of('bool', atoms, self.deep)}"

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
                            key = f"({key} {self.pick('test', ('is null', 'is not null', f'= {key}'))})"
                    elif way == 4 and self.chance("constant key", 0.2):
                        self.used("constant key")
                        key = self.pick("constant key", self.constant_keys)
                    elif way == 4:
                        key = self.any(atoms, 1)[0]
                    elif way == 5 and self.chance("ORDER BY COLLATE", 0.3):
                        self.used("ORDER BY COLLATE")
                        key = f"{self.of('str', atoms, 0)} collate {self.pick('collation', self.collations)}"
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
                if not self.catalogue.of("aggregate", kind):
                    kind = "int"
                calls = self.catalogue.of("aggregate", kind)
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

    def over(self, atoms: Sequence[Atom], names: Sequence[str], framed: bool = True) -> str:
        with self.part("OVER"):
            if names and framed and self.chance("named window", 0.5):
                self.used("named window")
                name = self.pick("window name", names)
                return f" over {name}" if self.chance("bare name", 0.8) else f" over ({name})"
            return f" over ({self.window_body(atoms, framed)})"

    def window_body(self, atoms: Sequence[Atom], framed: bool = True) -> str:
        partition = ""
        if self.chance("PARTITION BY there or not", 0.5):
            with self.part("PARTITION BY"):
                keys = [
                    self.any(atoms, 0)[0] for _ in range(self.pick("PARTITION BY keys", (1, 1, 2)))
                ]
                if self.chance("constant key", 0.05):
                    self.used("constant key")
                    keys[-1] = self.pick("constant key", self.constant_keys)
                partition = "partition by " + ", ".join(keys)
        order = ""
        if self.chance("window ORDER BY there or not", 0.75):
            with self.part("window ORDER BY"):
                order = self.order_by(atoms, always=True)
        frame = ""
        if order and framed and self.chance("frame there or not", 0.5):
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
