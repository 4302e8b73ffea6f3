"""Queries of a random dbt project: the grammar's, over what ``ref`` and ``source`` name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from generators.catalogue import LITERALS, Call, Catalogue
from generators.expressions import Atom
from generators.grammar import Grammar
from generators.schemas import Column

WORDS: Final = ("ash", "birch", "cedar", "elm", "fir", "")
"""The texts in the data."""

MACROS: Final = {"int": '{{ plus_offset("%s") }}', "str": '{{ tidy("%s") }}'}
"""Calls of the project's macros, by the class of what they take and give."""

FUNCTIONS: Final = (
    *(Call(f, "scalar", ("int",), "int") for f in ("abs", "sign")),
    *(Call(f, "scalar", ("int", "int"), "int") for f in ("gcd", "lcm", "greatest", "coalesce")),
    *(Call(f, "scalar", ("str",), "str") for f in ("upper", "lower", "trim", "reverse")),
    Call("length", "scalar", ("str",), "int"),
    Call("levenshtein", "scalar", ("str", "str"), "int"),
    Call("concat", "scalar", ("str", "str"), "str"),
    Call("format", "scalar", ("='{}-{}'", "int", "str"), "str"),
    Call("left", "scalar", ("str", "=2"), "str"),
    Call("replace", "scalar", ("str", "='e'", "='E'"), "str"),
    Call("round", "scalar", ("num", "=1"), "num"),
    Call("abs", "scalar", ("num",), "num"),
    Call("greatest", "scalar", ("date", "date"), "date"),
    Call("week", "scalar", ("=cast(date_trunc('week', {date}) as date)",), "date", whole=True),
    Call("next_day", "scalar", ("=({date} + 1)",), "date", whole=True),
    *(Call(f, "aggregate", ("int",), "int") for f in ("sum", "max", "min", "count")),
    *(Call(f, "aggregate", ("num",), "num") for f in ("sum", "max", "min")),
    *(Call(f, "aggregate", (k,), k) for f in ("max", "min") for k in ("str", "date")),
    # What is on no list of harmless functions.
    Call("bit_xor", "aggregate", ("int",), "int"),
    Call("quantile_disc", "aggregate", ("int", "=0.5"), "int"),
    *(
        Call(f, "aggregate", (f"=cast({f}({{int}}) as integer)",), "int", whole=True)
        for f in ("kahan_sum", "mad", "favg")
    ),
    Call("arg_max_null", "aggregate", ("int", "int"), "int"),
    Call("histogram", "aggregate", ("int",), "map"),
    Call("list", "aggregate", ("int",), "list"),
    *(Call(f, "window", (), "int") for f in ("row_number", "rank", "dense_rank")),
    *(
        Call(f, "window", (kind,), kind)
        for kind in ("int", "num")
        for f in ("lag", "lead", "first_value", "last_value")
    ),
)

CATALOGUE: Final = Catalogue()
for _call in FUNCTIONS:
    CATALOGUE.add(_call)


class ProjectQueries(Grammar):
    """Writes queries over the relations of a project, whose names are calls of ``ref`` and ``source``.

    Args:
        relations: what a query may read, in Jinja, and its columns; the latest are read most.
        number: stands in the names of new columns, so that few models have the same ones.
        seed: of all decisions.
        runs: tells whether a query runs.
    """

    text_forms = range(17)
    rows_of_relations = 0.0
    literals: Final = {
        **LITERALS,
        "int": (
            *map(str, range(8)),
            *["{{ var('threshold') }}"] * 3,
            *["{{ env_var('LAB_FLOOR', '1') }}"] * 2,
        ),
        "str": tuple(f"'{word}'" for word in WORDS),
        "date": tuple(f"date '2026-01-{day:02d}'" for day in range(1, 8)),
        "num": ("0.25", "12.25", "40.25", "75.00"),
    }
    types = ("int", "int", "int", "str", "str", "num", "date", "bool")
    all_types = (*types, "list", "struct")
    budget = 100
    depths = (1, 1, 1, 2)
    shares = (6, 8, 13)
    items = (3, 4, 5, 6)
    joins = (0, 0, 0, 1, 2)
    join_kinds = (
        *["join"] * 3, *["left join"] * 4, "right join", "full join", "cross join", ",", "semi join", "anti join",
        "asof join", "asof left join", "positional join", "natural left join",
    )  # fmt: skip
    # A sum of floating-point numbers depends on the order they come in.
    operators = ("+", "-", "*")
    models = (*Grammar.models, *["looked up"] * 4)
    recursion_steps = ("+ 1", "+ 2")  # others may have no end
    number_types = ("decimal(9, 2)", "decimal(12, 4)")
    turned_by = (("s", ("'ash'", "'elm'", "'fir'")), ("p", ("true", "false")))
    other_forms = (*[0] * 8, *[16] * 3, 20, 23, 24, 25, *[27] * 2, *[30] * 2)
    query_forms = (*other_forms, *[32] * 30)
    alias_forms = (1, *[3] * 9)
    relation_forms = (*[0] * 10, 9, *[11] * 3, *range(17, 22))
    table_forms = (*[3] * 14, 0, 1, 20, 22, 23)

    def __init__(
        self,
        relations: dict[str, list[Column]],
        number: int,
        seed: int,
        runs: Callable[[str], bool],
    ) -> None:
        super().__init__(CATALOGUE, seed)
        self.tables = relations
        self.runs = runs
        stems = ("al", "n", "total", "label", "day", "is_so", "amount", "rank", "mate", "x", "y")
        self.names = (*(f"{stem}_{number}" for stem in stems * 2), "k", "v", "id")

    def of(self, kind: str, atoms: Sequence[Atom], depth: int) -> str:
        columns = [text for text, t in atoms if t == kind and "{" not in text and '"' not in text]
        if kind in MACROS and columns and depth > 0 and self.chance("macro there or not", 0.1):
            return MACROS[kind] % self.pick("column", columns)
        if depth > 0 and kind in self.types and self.chance("CASE there or not", 0.25):
            return self.case(kind, atoms, depth - 1)
        return super().of(kind, atoms, depth)

    def any(self, atoms: Sequence[Atom], depth: int) -> Atom:
        """Mostly of a class that there are columns of: a column of literals tells little."""
        kinds = {kind for _, kind in atoms}
        kind = self.pick("type", [t for t in self.types if t in kinds] or self.types)
        if self.chance("type", 0.1):
            kind = self.pick("type", self.all_types)
        return self.of(kind, atoms, depth), kind

    def stands(self, text: str) -> bool:
        return self.runs(text)

    def table(self, *kinds: str) -> tuple[str, list[Column]]:
        names = [n for n, columns in self.tables.items() if {*kinds} <= {t for _, t in columns}]
        ctes = [name for name in names if "{" not in name]
        stored = [name for name in names if "{" in name]
        ctes = ctes[-2:] * (len(stored) // 2 + 8)
        name = self.pick("table", [*stored, *stored[-10:], *ctes] or [*self.tables])
        return name, list(self.tables[name])

    def written(self, form: str) -> str:
        """A query of CTEs, of one SELECT, or of whatever the grammar has."""
        depth = self.pick("depth", self.depths)
        if form == "imports":
            return self.imports(depth)[0]
        if form == "model":
            return self.model()[0]
        self.query_forms = self.other_forms
        return self.query(depth)[0]
