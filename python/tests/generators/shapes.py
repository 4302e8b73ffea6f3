"""Queries of the columns id, k, s and v over relations that have the same columns.

Any of them can stand for any other. They are what careless proofs of rows, keys and order break on:
joins that look a key up or nearly do, groups and ranks that leave one row of each or nearly do, rows that
are made after a GROUP BY, order that somebody sees.
"""

from __future__ import annotations

from typing import Final

from generators.from_clause import Atom
from generators.select_list import SelectList

COLUMNS: Final = ("id", "k", "s", "v")
TYPES: Final = {"id": "INTEGER", "k": "INTEGER", "s": "VARCHAR", "v": "INTEGER"}
KINDS: Final = (("id", "int"), ("k", "int"), ("s", "str"), ("v", "int"))

_MADE: Final = {"id": "min(id)", "k": "count(*)", "s": "max(s)", "v": "sum(v)"}


def _grouped(*keys: str) -> str:
    items = (c if c in keys else f"cast({_MADE[c]} as {TYPES[c].lower()}) as {c}" for c in COLUMNS)
    return (
        f"select {', '.join(items)} from {{0}} as l{{where}} group by {', '.join(keys)}{{having}}"
    )


ORDERS: Final = ["id", "v desc", "k, v", "id, k, s, v", "id desc, k, s, v", "all"]
CUTS: Final = ["", " limit 1", " limit 2", " limit 2 offset 1", " order by k limit 2"]
SHAPES: Final[dict[str, tuple[str, dict[str, list[str]]]]] = {
    "join": (
        "select {side}.id, {side}.k, {side}.s, {side}.v from {0} as l {kind} join {1} as r on {on}",
        {"kind": ["left"] * 4 + ["inner"] * 3 + ["right", "full"], "side": ["l", "l", "r"]},
    ),
    "half a join": (
        "select l.id, l.k, l.s, l.v from {0} as l {kind} join {1} as r {match}",
        {"kind": ["semi", "anti"], "match": ["on {on}", "on {on}", "using (id)", "using (k)"]},
    ),
    "using": (
        "select {columns} from {0} as l {kind} join {1} as r {match}",
        {
            "kind": ["left", "left", "inner", "right", "full"],
            "columns": ["id, l.k, r.s, l.v", "id, r.k, l.s, r.v"],
            "match": ["using (id)"],
        },
    ),
    "using k": (
        "select {side}.id, k, {side}.s, {side}.v from {0} as l {kind} join {1} as r using (k)",
        {"kind": ["left", "left", "inner", "right", "full"], "side": ["l", "l", "r"]},
    ),
    "twice": (
        "select {side}.id, {side}.k, {side}.s, {side}.v from {0} as l {kind} join {1} as r on {on} "
        "{kind} join {2} as q on {on2}",
        {"kind": ["left", "inner"], "side": ["l", "l", "r", "q"]},
    ),
    "filter": ("select id, k, s, v from {0} as l{where}", {}),
    "distinct": ("select distinct id, k, s, v from {0} as l{where}", {}),
    "group": (
        "{grouped}",
        {
            "grouped": [
                *(_grouped(key) for key in ("id", "k", "s")),
                *(_grouped(*keys) for keys in (("id", "k"), ("k", "s"), ("id", "s"))),
            ],
            "having": ["", "", " having count(*) > 1", " having max(v) > 0"],
        },
    ),
    "first": (
        "select id, k, s, v from {first}",
        {
            "first": [
                "{0} as l{where} qualify {rank} {over} {number}",
                "(select id, k, s, v, {rank} {over} as rn from {0} as l{where}) where rn {number}",
            ],
            "rank": ["row_number()", "row_number()", "rank()"],
            "number": ["= 1", "= 1", "<= 2"],
            "over": ["over (partition by {key} order by {order})"],
            "key": ["id", "k", "s", "id, k", "k, s"],
            "order": ["v", "k, v", "s desc, v"],
        },
    ),
    "limit": (
        "select id, k, s, v from {0} as l{where} order by id, k, s, v limit {number}",
        {"number": ["1", "2", "3"]},
    ),
    "union": (
        "select id, k, s, v from {0} as l {op} select id, k, s, v from {1} as l",
        {"op": ["union all", "union all", "union", "except", "intersect"]},
    ),
    "with itself": (
        "select id, k, s, v from {0} as l {op} select id, k, s, v from {0} as l",
        {"op": ["union all", "union", "except", "intersect"]},
    ),
    "one": (
        "select l.id, l.k, l.s, coalesce(l.v, p.m) as v from {0} as l "
        "cross join (select max(v) as m from {1}) as p",
        {},
    ),
    "exists": (
        "select id, k, s, v from {0} as l where {not}exists (select 1 from {1} as r where {on})",
        {"not": ["", "", "", "not "]},
    ),
    "anti": (
        "select l.id, l.k, l.s, l.v from {0} as l left join {1} as r on {on} where r.id is null",
        {},
    ),
    "window": (
        "select id, k, s, cast(sum(v) over (partition by k) as integer) as v from {0} as l",
        {},
    ),
    "lateral": (
        "select l.id, l.k, l.s, p.v from {0} as l left join lateral "
        "(select max(r.v) as v from {1} as r where {on}) as p on true",
        {},
    ),
    "generated": (
        "select {distinct}{columns} from {0} as l{where}{qualify}{cut}",
        {
            "distinct": ["", "", "", "distinct ", "distinct on (k) ", "distinct on (1) "],
            "columns": [
                "unnest([id, k]) as id, k, s, v",
                "id, k, s, unnest([v, 1]) as v",
                "id, unnest([1, 2]) as k, s, v",
                "id, unnest([k]) as k, s, unnest([v, 0, 0]) as v",
                "id, k, s, cast(row_number() over (partition by id order by k, s, v) as integer)"
                " * unnest([1, 1]) as v",
                "id, k, unnest(string_split(s, '1')) as s, v",
            ],
            "qualify": [
                "",
                "",
                " qualify row_number() over (partition by id order by k, s, v) = 1",
                " qualify row_number() over (order by id, k, s, v) = 1",
                " qualify count(*) over (partition by k) = 1",
            ],
            "cut": ["", "", " order by id, v limit 3"],
        },
    ),
    "generated from groups": (
        "select {made}{having}",
        {
            "made": [
                "id, max(k) as k, max(s) as s, unnest([1, 2]) as v from {0} as l{where} group by id",
                "id, unnest(list(k order by k)) as k, max(s) as s, max(v) as v from {0} as l{where} "
                "group by id",
                "unnest([id, k]) as id, max(k) as k, max(s) as s, max(v) as v from {0} as l{where} "
                "group by 1",
                "unnest([id, k]) as id, k, max(s) as s, max(v) as v from {0} as l{where} "
                "group by all",
                "max(id) as id, unnest([k, 1]) as k, max(s) as s, max(v) as v from {0} as l{where} "
                "group by k, v",
                "max(id) as id, unnest([1, 2]) as k, max(s) as s, max(v) as v from {0} as l{where}",
            ],
            "having": ["", "", " having count(*) > 1"],
        },
    ),
    "distinct on": (
        "select distinct on ({keys}) {columns} from {0} as l{where}{order}",
        {
            "keys": ["id", "k", "s", "1", "2", "id, k", "k + 0", "2, 1", "upper(s)"],
            "columns": [
                "id, k, s, v",
                "k as id, id as k, s, v",
                "v as id, k, s, id as v",
                "id + 0 as id, k, s, v",
                "id, v as k, s, v",
                "*",
            ],
            "order": ["", *(f" order by {order}" for order in ORDERS), " order by 1, 2, 3, 4"],
        },
    ),
    "keyed": (
        "select {columns} from {0} as l{where} group by {keys}{having}",
        {
            "columns": [
                "id, min(k) as k, max(s) as s, max(v) as v",
                "k as id, min(id) as k, max(s) as s, max(v) as v",
                "id % 2 as id, min(k) as k, max(s) as s, max(v) as v",
                "min(id) as id, k, max(s) as s, max(v) as v",
                "id, k, max(s) as s, max(v) as v",
                "id, v as k, max(s) as s, cast(count(*) as integer) as v",
                "coalesce(id, 0) as id, min(k) as k, s, max(v) as v",
            ],
            "keys": [
                *("1", "2", "id", "k", "all", "1, 2", "id, k", "1, 3", "id % 2", "v, id"),
                *("rollup (id)", "cube (id, k)", "grouping sets ((id), (k))", "rollup (id, k)"),
                *("grouping sets ((id), ())", "id, rollup (k)", "grouping sets ((id), (id))"),
            ],
            "having": ["", "", " having count(*) > 1", " having count(*) = 1"],
        },
    ),
    "ranked": (
        "select id, k, s, v from (select *, {over} as rn from {0} as l{where}) as o "
        "where rn {number}",
        {
            "over": [
                "row_number() over (partition by id order by k, s, v)",
                "row_number() over (partition by k order by id)",
                "row_number() over (partition by id, k order by v)",
                "row_number() over (partition by id % 2 order by k)",
                "row_number() over (partition by s)",
                "row_number() over (order by v)",
                "row_number() over ()",
                "rank() over (partition by id order by k)",
                "dense_rank() over (partition by id order by k)",
                "count(*) over (partition by id)",
                "count(*) over (partition by k order by v)",
                "count(*) filter (where v > 0) over (partition by id)",
                "row_number() over (partition by id order by k, s, v) + 0",
                "ntile(2) over (partition by id order by k, s, v)",
            ],
            "number": ["= 1", "= 1", "<= 1", "< 2", "> 1", "= 2", "between 0 and 1", "in (1)"],
        },
    ),
    "ordered": (
        "select {columns} from (select * from {0} as l{where} order by {order}) as o{cut}",
        {
            "columns": [
                "id, k, s, v",
                "id, k, s, cast(row_number() over () as integer) as v",
                "id, k, s, lag(v) over () as v",
                "id, unnest([k, 1]) as k, s, v",
            ],
            "order": ORDERS,
            "cut": [*CUTS, " where v > 0 limit 2"],
        },
    ),
    "listed": (
        "select {columns} from (select * from {0} as l{where} order by {order}) as o{group}",
        {
            "columns": [
                "first(id) as id, k, last(s) as s, any_value(v) as v",
                "list(id)[1] as id, k, string_agg(s, '') as s, arg_max(v, id) as v",
                "max(id) as id, k, min(s) as s, cast(sum(v) as integer) as v",
                "min_by(id, v) as id, k, mode(s) as s, cast(median(v) as integer) as v",
            ],
            "order": ORDERS,
            "group": [" group by k", " group by k having count(*) = 1", " group by all"],
        },
    ),
    "stacked": (
        "select * from ((select * from {0} as l{where} order by {order}) {op} "
        "(select * from {1} as r order by {order2})) as o{cut}",
        {
            "order": ORDERS,
            "order2": ORDERS,
            "op": ["union all", "union", "union all by name", "except all", "intersect all"],
            "cut": CUTS,
        },
    ),
    "spread": (
        "select l.id, l.k, l.s, u.x as v from {0} as l {kind} unnest([l.v, {more}]) as u(x)"
        "{on}{where}",
        {
            "kind": ["cross join", "left join", "inner join", ","],
            "more": ["1", "l.k", "l.v", "null"],
            "on": ["", " on true", " on u.x = l.id"],
        },
    ),
    "pivoted": (
        'select id, "1" as k, s, cast("2" as integer) as v from (select id, s, k, v from {0} as l'
        "{where}) pivot ({made}(v) for k in (1, 2){group})",
        {
            "made": ["max", "first", "min", "any_value"],
            "group": ["", " group by id, s"],
        },
    ),
    "unpivoted": (
        "select id, x as k, s, x as v from {0} unpivot{nulls} (x for n in ({columns}))",
        {"nulls": ["", " include nulls"], "columns": ["k, v", "k", "v, k"]},
    ),
    "side by side": (
        "select l.id, r.k, l.s, r.v from {0} as l positional join {1} as r{where}",
        {},
    ),
    "nearest": (
        "select l.id, l.k, r.s, r.v from {0} as l asof {kind} join {1} as r on {on}l.k {by} r.k",
        {"kind": ["", "left"], "on": ["", "l.id = r.id and "], "by": [">=", "<=", ">"]},
    ),
    "array": (
        "select l.id, l.k, l.s, {made} as v from {0} as l{where}",
        {
            "made": [
                "array(select r.v from {1} as r order by r.v)[1]",
                "array(select r.v from {1} as r where r.k = l.k order by r.id)[1]",
                "cast(len(array(select r.v from {1} as r where r.id = l.id)) as integer)",
                "(select r.v from {1} as r order by r.id, r.v limit 1)",
                "(select max(r.v) from {1} as r where r.id = l.id)",
            ],
        },
    ),
    "windowed": (
        "select id, k, s, cast({over} as integer) as v from {0} as l{where}",
        {
            "over": [
                "sum(v) over ()",
                "count(*) over (partition by id)",
                "count(distinct v) over (partition by k)",
                "sum(v) filter (where v > 0) over (partition by k)",
                "first_value(v ignore nulls) over (partition by k order by id)",
                "lag(v) over (order by id, k, s, v)",
                "row_number() over ()",
                "row_number() over (partition by id order by k, s, v)",
                "ntile(2) over (order by id, k, s, v)",
            ]
        },
    ),
    "retyped": (
        "select {id} as id, {k} as k, {s} as s, v from {0} as l{where}",
        {
            "id": ["id", "cast(s as integer)", "-id", "cast(id / 2 as integer)", "coalesce(id, k)"],
            "k": ["k", "cast(s as integer)", "id", "cast(k as integer)"],
            "s": ["s", "cast(id as varchar)", "upper(s)", "trim(s)", "lpad(s, 2, '0')"],
        },
    ),
}
"""Shapes: a text over the relations `0`, `1` and `2`, and what may be said at each of its places."""

OFTEN: Final = (*["join"] * 4, "half a join", "using", "filter", "group", "first", "union")
"""Shapes that are written more often than the others."""

WRAPPED: Final = (
    "(select id, k, s, v from {it} as l where {condition})",
    "(select distinct id, k, s, v from {it} as l)",
    "(select id, k, s, v from {it} as l order by id, k, s, v limit 2)",
    "(select id, k, s, v from {it} as l union all select id, k, s, v from {it} as l)",
    *["(select l.id, l.k, l.s, l.v from {it} as l {kind} join {leaf} as r on {on})"] * 2,
)
"""What may be written around a relation, so that it still has the columns."""


class Shapes(SelectList):
    """Writes such queries."""

    def leaf(self) -> str:
        """A relation of the columns, as it stands in FROM before its alias."""
        return self.narrow()

    def source(self, depth: int) -> str:
        """A relation, or a query in its place."""
        with self.part("input"):
            below = depth > 0 and self.chance("query below", 0.25)
            text = f"({self.shaped(depth - 1)})" if below else self.leaf()
            if self.chance("wrapped", 0.04):
                places = {
                    "it": lambda: text,
                    "leaf": self.leaf,
                    "condition": lambda: self.simple(KINDS),
                    "kind": ("left", "left", "inner", "semi"),
                    "on": lambda: self.matched("l", "r"),
                }
                text = self.filled(self.pick("wrapping", WRAPPED), places)
            return text

    def matched(self, left: str, right: str) -> str:
        """What a join of two of the relations is on."""
        sides = [[(f"{alias}.{c}", kind) for c, kind in KINDS] for alias in (left, right)]
        text = self.keyed(*sides)
        if self.chance("more to join on", 0.25):
            text = f"({text}) and {self.simple([*sides[0], *sides[1]])}"
        return text

    def shaped(self, depth: int) -> str:
        """A query of the columns."""
        with self.part("shape"):
            shape = self.pick("shape", (*SHAPES, *OFTEN, "anything", "anything"))
            sources: dict[str, str] = {}
            where = ""
            for _ in range(self.pick("conditions", (0,) * 13 + (1,) * 5 + (2,))):
                where += f"{' and' if where else ' where'} {self.row_condition(KINDS)}"
            if shape == "anything":
                return self.anything(where)
            text, options = SHAPES[shape]

            def source(name: str) -> str:
                if name not in sources:
                    sources[name] = self.source(depth)
                return sources[name]

            written = self.filled(
                text,
                {
                    "0": lambda: source("0"),
                    "1": lambda: source("1"),
                    "2": lambda: source("2"),
                    "where": lambda: where,
                    "on": lambda: self.matched("l", "r"),
                    "on2": lambda: self.matched("l", "q"),
                    **options,
                },
            )
            if where and "{where}" not in text + str(options):
                return f"select id, k, s, v from ({written}) as o{where}"
            return written

    def row_condition(self, atoms: tuple[Atom, ...]) -> str:
        """A condition on one row: simple, but not always."""
        return (
            self.of("bool", atoms, 1) if self.chance("any condition", 0.1) else self.simple(atoms)
        )

    def anything(self, where: str) -> str:
        """The columns of whatever may stand in FROM."""
        from_, atoms, _, _ = self.from_(0)
        items = []
        for column, kind in KINDS:
            made = self.of(kind, atoms, 0)
            items.append(f"cast({made} as {TYPES[column].lower()}) as {column}")
        return f"select * from (select {', '.join(items)} from {from_}) as o{where}"
