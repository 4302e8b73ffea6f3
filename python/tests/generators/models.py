"""Queries as people write the models of a project, and the queries that check one.

Columns keep their names, keys stay keys, and what SQL leaves open is mostly decided by an ORDER BY of all
columns: staging, look-ups, groups, the latest row of a key, columns by CASE, rows of several relations, and
import CTEs with steps on them. The relations may have any columns, if one of them is an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from generators.choices import Place
from generators.expressions import Atom
from generators.schemas import Column
from generators.shapes import Shapes

Options = Mapping[str, Sequence[str]]

JOINS: Final = (*["left join"] * 6, "join", "full join")
_LATEST: Final = "row_number() over (partition by {key} order by {total})"

MODELS: Final[dict[str, tuple[str, Options]]] = {
    "staged": ("select {distinct}{kept}, {made} from {l}{where}", {"distinct": ("",) * 6 + ("distinct ",)}),
    "whole": ("select {whole} from {l}{where}", {"whole": ("{*}", "{*}", "{l*}, {made}", "{exclude}", "{replace}")}),
    "looked up": ("select {kept}, {taken}{more} from {l} {join} {r} on {on}{where}", {"more": ("", ", {both}")}),
    "looked up by USING": ("select {merged}, {kept}, {taken} from {l} {join} {r} using ({common})", {}),
    "half a join of models": (
        "select {kept}, {made} from {l} {half} join {r} on {on}{where}",
        {"half": ("semi", "anti")},
    ),
    "grouped model": (
        "select {keys}, {aggregates} from {l}{where} group by {by}{having}",
        {
            "by": ("{ordinals}", "{ordinals}", "all", "{bare}"),
            "having": ("", "", " having count(*) > 1", " having count(*) < 9", " having max({li}) > 2"),
        },
    ),
    "rolled up model": (
        "select {keys}, cast(grouping({first}) as integer) as {int}, {aggregates} from {l}{where} group by {sets}",
        {"sets": ("rollup ({bare})", "cube ({bare})", "grouping sets (({first}), ({bare}))")},
    ),
    "latest of a key": (
        "{latest}",
        {
            "latest": (
                f"select {{l*}} from {{l}}{{where}} qualify {_LATEST} = 1",
                f"select {{names}} from (select *, {_LATEST} as rn from {{l}}{{where}}) as o where rn = 1",
                "select distinct on ({key}) {l*} from {l}{where} order by {total}",
            )
        },
    ),
    "columns by CASE": (
        "select {keys}, {turned}, {turned} from {l}{where} group by {ordinals}",
        {
            "turned": (
                "max(case when {s} = {word} then {i} end) as {int}",
                "count(case when {condition} then 1 end) as {int}",
                "cast(sum(case when {condition} then {i} else 0 end) as integer) as {int}",
            )
        },
    ),
    "spread over a list": (
        "select {kept}, u.x as {int} from {l} {over} unnest([{i}, {i}]) as u (x){true}",
        {"over": ("cross join", ","), "true": ("",)},
    ),
    "joined with itself": (
        "select {keys}, max({ri}) as {int}, count(*) as {int} from {l} {join} {same} on {on} group by {ordinals}",
        {"join": ("join", "left join")},
    ),
    "ranked model": (
        "select {kept}, {window} as {int}, {window} as {int} from {l}{where}{qualify}",
        {
            "window": (
                "row_number() over ({partition} order by {total})",
                "rank() over ({partition} order by {li})",
                "dense_rank() over ({partition} order by {li})",
                "lag({i}) over ({partition} order by {total})",
                "first_value({i}{nulls}) over ({partition} order by {total})",
                "cast(sum({i}) over ({partition} order by {total} rows between {frame}) as integer)",
                "count(*) over ({partition})",
                "max({i}) over ({partition})",
                "cast(ntile(3) over ({partition} order by {total}) as integer)",
            ),
            "partition": ("", "partition by {key}", "partition by {key}"),
            "nulls": ("", " ignore nulls"),
            "frame": (
                "unbounded preceding and current row",
                "1 preceding and 1 following exclude current row",
            ),
            "qualify": ("", "", f" qualify {_LATEST} <= 2"),
        },
    ),
    "top of a model": (
        "select {*} from {l}{where} order by {li}{direction}, {total} limit {number}{offset}",
        {"number": ("9", "14", "24"), "offset": ("", "", " offset 2")},
    ),
    "struct spread": ("select st.* from (select {'{int}': {i}, '{str}': {s}} as st from {l}{where}) as o", {}),
    "keys as data": (
        "select {kept}, cast({keyed} as varchar) as {str} from {l}{where}",
        {
            "keyed": (
                "{'Key': {i}, 'Other': {s}}",
                "to_json({'{word key}': {s}})",
                "json_extract_string(to_json({'Keys': {i}, 'k': {'Key': {li}}}), '$.k.Key')",
            ),
            "word key": ("Key", "Word", "KEY"),
        },
    ),
    "two columns of a name": (
        "select * from (select * from (select {li} as k, {i} as v from {l}) as a {join} "
        "(select {ri} as k, count(*) as v from {r} group by 1) as b on a.k = b.k) as twice",
        {"join": ("join", "left join")},
    ),
    "models one below the other": (
        "select {wide} from {l}{where} {op} select {alike} from {r}",
        {"op": (*["union all"] * 4, "union", "except", "intersect")},
    ),
}  # fmt: skip
"""Models: a text over the relations ``l`` and ``r``, and what may be said at each of its places."""

OFTEN: Final = (
    "staged", "staged", "whole", "whole", "looked up", "looked up", "grouped model", "models one below the other",
)  # fmt: skip
"""Models that are written more often than the others."""

CHECKS: Final = (
    "select {li}, count(*) as n from {l} join {r} on {on} group by 1 having count(*) > 3",
    "select * from {l} where not exists (select 1 from {r} where {on}) and {condition}",
    "select {li} as one_side, {ri} as other_side from {l} left join {r} on {li} = {ri} where {ri} is null",
    "select 1 as wrong where (select coalesce(sum({li}), 0) from {l}) < (select coalesce(sum({ri}), 0) from {r})",
    "select * from (select {li} as k, row_number() over (partition by {li} order by {total}) as n from {l}) as o "
    "where n > 2",
    "with both_sides as (select {li} as k from {l} union all select {ri} from {r}) "
    "select k from both_sides group by k having count(*) > 12",
    "select {li} from {l} except select {ri} from {r}",
    "select l.* from {l} where {condition}",
    "select l.* from {l} where {any condition}",
)
"""Queries of a test, which return the rows that are wrong."""


class Models(Shapes):
    """Writes such queries."""

    models: tuple[str, ...] = (*MODELS, *OFTEN)

    def model(self) -> tuple[str, list[Column]]:
        """A query of one SELECT, or two below each other."""
        with self.part("model"):
            name = self.pick("model", self.models)
            self.used(name)
            text, options = MODELS[name]
            sides = _Sides(self, itself="{same}" in text)
            return self.filled(text, sides.places(options)), sides.outputs

    def check(self) -> str:
        """The query of a test."""
        with self.part("check"):
            return self.filled(self.pick("check", CHECKS), _Sides(self).places({}))

    def imports(self, depth: int) -> tuple[str, list[Column]]:
        """Import CTEs, steps on them and a query of them; some are read by nobody, as in real models."""
        with self.part("imports"):
            self.used("import CTEs")
            outside = self.tables
            read = {
                f"imported_{n}": self.table("int")
                for n in range(self.pick("imports", (1, 2, 2, 3)))
            }
            ctes = [
                f"{name} as (\n    select * from {whole}\n)" for name, (whole, _) in read.items()
            ]
            self.tables = {**outside, **{name: columns for name, (_, columns) in read.items()}}
            for number in range(self.pick("steps", (1, 2, 2, 3))):
                text, columns = self.step(ctes, depth)
                if any(kind == "int" for _, kind in columns):
                    comment = "-- one step\n" if self.chance("comment", 0.1) else ""
                    ctes.append(f"{comment}step_{number} as (\n    {text}\n)")
                    self.tables[f"step_{number}"] = columns
            name, columns = list(self.tables.items())[-1]
            text = f"select * from {name}"
            if self.chance("query of the steps", 0.5):
                text, columns = self.step(ctes, depth)
            self.tables = outside
            return "with\n\n" + ",\n\n".join(ctes) + "\n\n" + text, columns

    def step(self, ctes: Sequence[str], depth: int) -> tuple[str, list[Column]]:
        """A query of the CTEs; its columns are none where it cannot stand."""
        for _ in range(12):
            with self.part("step"):
                text, columns = self.query(max(depth - 1, 1))
                if self.stands(f"with {', '.join(ctes)} {text}"):
                    return text, columns
        return text, []

    def stands(self, text: str) -> bool:
        """Whether a step may stay; who can execute it knows better."""
        return True

    def query(self, depth: int) -> tuple[str, list[Column]]:
        raise NotImplementedError


class _Sides:
    """What the places of one text are filled with: inputs ``l`` and ``r`` (or one for both), and columns it gives."""

    def __init__(self, grammar: Models, itself: bool = False) -> None:
        self.grammar = grammar
        self.itself = itself
        self.outputs: list[Column] = []
        self.inputs: dict[str, tuple[str, list[Column]]] = {}
        self.chosen: dict[str, str] = {}
        self.grouped: list[str] = []

    def places(self, options: Options) -> dict[str, Place]:
        """Each place, and what writes there."""
        grammar = self.grammar
        once: dict[str, Callable[[], str]] = {
            "li": partial(self.column, "l", "int"), "ri": partial(self.column, "r", "int"),
            "key": lambda: grammar.pick("key", [t for t, k in self.atoms("l") if k in ("int", "str", "date")]),
            "common": self.common, "where": self.where,
        }  # fmt: skip
        every: dict[str, Place] = {
            "join": JOINS,
            "l": lambda: self.input("l"), "r": lambda: self.input("r"), "same": lambda: self.input("r"),
            "*": lambda: self.star("*"), "l*": lambda: self.star("l.*"),
            "exclude": self.exclude, "replace": self.replace, "names": lambda: self.star(""),
            "kept": self.kept, "taken": self.taken, "merged": self.merged, "keys": self.keys,
            "made": lambda: self.made("l"), "both": lambda: self.made("lr"),
            "wide": self.wide, "alike": self.alike, "aggregates": self.aggregates,
            "int": lambda: self.name("int"),
            "str": lambda: self.name("str"),
            "on": self.on,
            "i": lambda: grammar.of("int", self.atoms("l"), 1), "s": partial(self.column, "l", "str"),
            "word": lambda: grammar.pick("literal", grammar.literals["str"]),
            "condition": lambda: grammar.row_condition(self.atoms("l")),
            "any condition": lambda: grammar.of("bool", self.atoms("l"), grammar.deep),
            "direction": grammar.direction,
            "total": lambda: ", ".join(t for t, _ in self.atoms("l")),
            "first": lambda: self.grouped[0], "bare": lambda: ", ".join(self.grouped),
            "ordinals": lambda: ", ".join(str(i + 1) for i in range(len(self.grouped))),
        }  # fmt: skip
        return {
            **every,
            **{name: partial(self.once, name, write) for name, write in once.items()},
            **options,
        }

    # -- what is read -----------------------------------------------------------------------------

    def once(self, name: str, write: Callable[[], str]) -> str:
        if name not in self.chosen:
            self.chosen[name] = write()
        return self.chosen[name]

    def side(self, alias: str) -> tuple[str, list[Column]]:
        if alias == "r" and self.itself:
            return self.side("l")
        if alias not in self.inputs:
            grammar = self.grammar
            with grammar.part("input"):
                grammar.budget -= 3
                name, columns = grammar.table("int")
                for _ in range(3):  # the same one is read twice elsewhere
                    if alias == "r" and name == self.side("l")[0]:
                        name, columns = grammar.table("int")
                if grammar.chance("filtered input", 0.05):
                    inner = [(f"f.{c}", t) for c, t in columns]
                    name = f"(select * from {name} as f where {grammar.row_condition(inner)})"
                self.inputs[alias] = name, columns
        return self.inputs[alias]

    def input(self, alias: str) -> str:
        return f"{self.side(alias)[0]} as {alias}"

    def atoms(self, aliases: str) -> list[Atom]:
        return [(f"{a}.{c}", t) for a in aliases for c, t in self.side(a)[1]]

    def column(self, alias: str, kind: str) -> str:
        texts = [t for t, k in self.atoms(alias) if k == kind] or self.grammar.literals[kind]
        return self.grammar.pick("column", texts)

    def common(self) -> str:
        right = self.side("r")[1]
        both = [c for c, t in self.side("l")[1] if t == "int" and (c, t) in right]
        return self.grammar.pick("USING column", both or ["id"])

    def on(self) -> str:
        left, right = self.atoms("l"), self.atoms("r")
        ints = [y for y, t in right if t == "int"]
        same = [x for x, t in left if t == "int" and f"r{x[1:]}" in ints]
        if not same or self.grammar.chance("join condition form", 0.15):
            return self.grammar.condition(left, right, asof=False)
        with self.grammar.part("join condition"):
            x = self.grammar.pick("join columns", [*same[:1] * 4, *same])  # the key comes first
            more = ""
            if self.grammar.chance("more to join on", 0.15):
                more = f" and {self.grammar.simple([*left, *right])}"
            return f"{x} = r{x[1:]}{more}"

    def where(self) -> str:
        return self.grammar.clause("where", "WHERE", 0.2, self.atoms("l"))

    # -- what is given ----------------------------------------------------------------------------

    def name(self, kind: str, wanted: str = "") -> str:
        """A new column's name: the wanted one if it is free."""
        taken = {c.lower() for c, _ in self.outputs}
        name = wanted or self.grammar.pick("output alias", self.grammar.names)
        name = f"{name}_{len(self.outputs)}" if name.lower() in taken else name
        self.outputs.append((name, kind))
        return name

    def item(self, text: str, kind: str, wanted: str = "") -> str:
        name = self.name(kind, wanted)
        return text if text.endswith(f".{name}") else f"{text} as {name}"

    def star(self, star: str) -> str:
        columns = self.side("l")[1]
        self.outputs += columns
        return star or ", ".join(c for c, _ in columns)

    def exclude(self) -> str:
        columns = self.side("l")[1]
        one = self.grammar.pick("column", columns)
        self.outputs += [c for c in columns if c != one or len(columns) == 1]
        return f"* exclude ({one[0]})"

    def replace(self) -> str:
        columns = self.side("l")[1]
        self.outputs += columns
        name, kind = self.grammar.pick("column", columns)
        return f"* replace ({self.grammar.of(kind, self.atoms('l'), 1)} as {name})"

    def kept(self) -> str:
        """Most columns of ``l`` under their names."""
        merged = self.chosen.get("common")
        columns = [c for c in self.side("l")[1] if c[0] != merged]
        kept = [c for c in columns if self.grammar.chance("column kept", 0.7)][:7] or columns[:1]
        return ", ".join(self.item(f"l.{c}", t, c) for c, t in kept) or self.made("l")

    def taken(self) -> str:
        columns = self.side("r")[1]
        several = [
            self.grammar.pick("column", columns)
            for _ in range(self.grammar.pick("columns taken", (1, 2)))
        ]
        return ", ".join(self.item(f"r.{c}", t, c) for c, t in several)

    def merged(self) -> str:
        """The column of a USING, which neither side qualifies."""
        self.outputs.append((self.once("common", self.common), "int"))
        return self.chosen["common"]

    def made(self, aliases: str) -> str:
        items = []
        for _ in range(self.grammar.pick("items", (1, 2, 2, 3))):
            with self.grammar.part("item"):
                items.append(self.item(*self.grammar.any(self.atoms(aliases), self.grammar.deep)))
        return ", ".join(items)

    def keys(self) -> str:
        items = []
        for _ in range(self.grammar.pick("GROUP BY keys", (1, 1, 2))):
            with self.grammar.part("GROUP BY key"):
                fitting = [
                    (t, k) for t, k in self.atoms("l") if k in ("int", "str", "date", "bool")
                ]
                text, kind = self.grammar.pick("column", fitting)
                wanted = text[2:]
                if self.grammar.chance("GROUP BY expression", 0.2):
                    (text, kind), wanted = self.grammar.any(self.atoms("l"), 1), ""
                if text not in self.grouped:
                    self.grouped.append(text)
                    items.append(self.item(text, kind, wanted))
        return ", ".join(items)

    def aggregates(self) -> str:
        several = [
            self.grammar.aggregate(self.atoms("l"), 1)
            for _ in range(self.grammar.pick("aggregates", (1, 2, 3)))
        ]
        return ", ".join(self.item(*one) for one in several)

    def wide(self) -> str:
        items = []
        for _ in range(self.grammar.pick("items", (2, 3, 4))):
            kind = self.grammar.pick("type", self.grammar.types)
            items.append(self.item(self.grammar.of(kind, self.atoms("l"), 1), kind))
        return ", ".join(items)

    def alike(self) -> str:
        items = []
        for name, kind in self.outputs:
            text = self.grammar.of(kind, self.atoms("r"), 1)
            items.append(f"{text} as {name}" if self.grammar.chance("branch names", 0.5) else text)
        return ", ".join(items)
