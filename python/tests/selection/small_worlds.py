"""Small random projects, edited at random and executed on DuckDB: what proven tests are judged by.

Every relation has the columns ``id, k, s, v``, so that any of them can stand for any other. The data
has what breaks careless arguments: few values, repeated rows, NULLs, and text that equals a number
in more than one way ('1', '01').
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from dbt_ripple.artifacts import CatalogColumn, DependsOn, Metadata, Node, Project, RunResult

COLUMNS = ("id", "k", "s", "v")
TYPES = {"id": "INTEGER", "k": "INTEGER", "s": "VARCHAR", "v": "INTEGER"}

ORDERS = ["id", "v desc", "k, v", "id, k, s, v", "id desc, k, s, v", "all"]
CUTS = ["", " limit 1", " limit 2", " limit 2 offset 1", " order by k limit 2"]
MORE: dict[str, tuple[str, dict[str, list[str]]]] = {
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
"""More shapes: a text over the inputs, and what may be said at each of its places."""


@dataclass
class Query:
    """A query as a tree: how it is written, its inputs, and what may be changed about it."""

    shape: str
    inputs: list[Query | str] = field(default_factory=list)
    clauses: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> Query:
        inputs = [i if isinstance(i, str) else i.copy() for i in self.inputs]
        return Query(self.shape, inputs, dict(self.clauses))

    def parts(self) -> Iterator[Query]:
        yield self
        for i in self.inputs:
            if isinstance(i, Query):
                yield from i.parts()

    def names(self) -> list[str]:
        return [i for q in self.parts() for i in q.inputs if isinstance(i, str)]


class Writer:
    """Makes queries, edits them, and writes them out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, *items: Any) -> Any:
        return self.random.choice(items)

    def condition(self, a: str = "") -> str:
        column = a + self.of("id", "k", "v")
        return str(
            self.of(
                f"{column} > {self.of(0, 1, 2)}",
                f"{column} = {self.of(0, 1, 2)}",
                f"{column} is not null",
                f"{column} is null",
                f"{a}s <> '{self.of(1, 2)}'",
                f"({column} > 1 or {a}k = 1)",
                f"{a}s is not null",
            )
        )

    def on(self) -> list[str]:
        first = self.of(
            *["l.id = r.id", "l.k = r.id", "l.v = r.id", "r.id = l.k", "l.k = r.k"] * 2,
            "l.s = r.s",
            "l.s = r.id",
            "l.id = r.s",
            "cast(l.s as integer) = r.id",
            "l.id = r.id or l.k = r.k",
            "cast(l.id as double) = r.id",
            "cast(l.id as varchar) = r.s",
            "l.s = r.s collate nocase",
            "trim(l.s) = r.s",
            "l.id = r.id + 0",
            "l.id = coalesce(r.id, r.k)",
            "(l.id, l.k) = (r.id, r.k)",
            "l.id in (r.id)",
            "l.id is not distinct from r.id and l.k = r.k",
            "not l.id <> r.id",
            "l.id = cast(r.s as integer)",
            "l.id is not distinct from r.id",
            "l.id + 0 = r.id",
            "l.id >= r.id",
            "coalesce(l.k, 1) = r.id",
        )
        more = []
        if self.random.random() < 0.25:
            more.append(self.of("r.v > 0", "l.v > 0", "l.s = r.s", "l.k = r.k", "r.k is not null"))
        return [first, *more]

    def query(self, names: list[str], depth: int = 0) -> Query:
        def source() -> Query | str:
            if depth < 2 and self.random.random() < 0.25:
                return self.query(names, depth + 1)
            return str(self.of(*names))

        shape = self.of(
            *["join"] * 5,
            *["filter"] * 2,
            "group",
            "group",
            "distinct",
            "union",
            "first",
            "first",
            "limit",
            "one",
            "exists",
            "twice",
            "anti",
            "window",
            "lateral",
            *MORE,
        )
        clauses: dict[str, Any] = {
            "where": [self.condition()] if self.random.random() < 0.3 else []
        }
        inputs = [source()]
        if shape in MORE:
            text, places = MORE[shape]
            clauses |= {place: self.of(*options) for place, options in places.items()}
            if "{1}" in text + "".join(map(str, clauses.values())) or shape == "array":
                inputs.append(source())
        elif shape == "join":
            inputs.append(source())
            clauses |= {
                "kind": self.of(*["left"] * 4, *["inner"] * 3, "right", "full", "semi", "anti"),
                "on": self.on(),
                "using": self.of(None, None, None, None, "id", "k"),
                "from": [self.of("l", "l", "r") for _ in COLUMNS],
                "kept": [],
            }
        elif shape == "twice":
            inputs += [source(), source()]
            clauses |= {
                "kinds": [self.of("left", "inner"), self.of("left", "inner")],
                "on": self.on(),
                "on2": self.on(),
                "from": [self.of("l", "l", "r", "q") for _ in COLUMNS],
            }
        elif shape == "group":
            clauses |= {
                "keys": self.random.sample(["id", "k", "s"], self.of(1, 1, 2)),
                "having": "",
            }
        elif shape == "union":
            inputs.append(source())
            clauses["op"] = self.of("union all", "union all", "union", "except", "intersect")
        elif shape == "first":
            clauses |= {
                "keys": [self.of("id", "k", "s")],
                "qualify": self.of(True, False),
                "order": self.of("v", "k, v", "s desc, v"),
                "rank": self.of("row_number() = 1", "row_number() = 1", "rank() = 1"),
            }
        elif shape == "limit":
            clauses["limit"] = self.of(1, 3)
        elif shape in ("one", "exists", "anti", "lateral"):
            inputs.append(source())
            clauses["on"] = self.on()
        return Query(shape, inputs, clauses)

    def edit(self, query: Query, names: list[str]) -> Query:
        """Another query: one or two places of a query changed."""
        changed = query.copy()
        for _ in range(self.of(1, 1, 2)):
            part = self.of(*changed.parts())
            self.change(part, names)
            if self.random.random() < 0.15:
                wrapped = self.query(names)
                wrapped.inputs[0] = changed
                changed = wrapped
        return changed

    def change(self, part: Query, names: list[str]) -> None:
        clauses = part.clauses
        ways = ["where", "where", "input"]
        if "on" in clauses:
            ways += ["on", "kind", "kind", "kind", "from"]
        if part.shape == "union":
            ways += ["op", "op", "itself"]
        if part.shape in ("group", "first"):
            ways += ["keys", "keys"]
        if part.shape == "group":
            ways += ["having"]
        if part.shape == "first":
            ways += ["order", "rank"]
        places = MORE[part.shape][1] if part.shape in MORE else {}
        if "{where}" not in MORE.get(part.shape, ("{where}",))[0]:
            ways = ["input"]
        ways += [*places, *places]
        way = self.of(*ways)
        if way in places:
            clauses[way] = self.of(*places[way])
        elif way == "where":
            where = clauses["where"]
            if where and self.random.random() < 0.5:
                clauses["where"] = where[1:]
            else:
                clauses["where"] = [*where, self.condition()]
        elif way == "input":
            i = self.random.randrange(len(part.inputs))
            old = part.inputs[i]
            part.inputs[i] = self.of(
                str(self.of(*names)),
                Query("filter", [old], {"where": [self.condition()]}),
                Query("distinct", [old], {"where": []}),
                Query("limit", [old], {"where": [], "limit": 2}),
                Query(
                    "union",
                    [old, old if isinstance(old, str) else old.copy()],
                    {"where": [], "op": "union all"},
                ),
                self.joined(old, names),
                self.joined(old, names),
            )
        elif way == "on":
            clauses["on"] = self.of(self.on(), [*clauses["on"], "r.v > 0"], clauses["on"][:1])
        elif way == "kind":
            if "kind" in clauses:
                clauses["kind"] = self.of("left", "inner", "right", "full", "semi", "anti")
            elif "kinds" in clauses:
                clauses["kinds"] = [self.of("left", "inner"), self.of("left", "inner")]
        elif way == "from" and "from" in clauses:
            i = self.random.randrange(4)
            clauses["from"] = [*clauses["from"][:i], self.of("l", "r"), *clauses["from"][i + 1 :]]
        elif way == "op":
            clauses["op"] = self.of("union all", "union", "except", "intersect")
        elif way == "itself":
            part.inputs[1] = part.inputs[0]
        elif way == "keys":
            clauses["keys"] = self.random.sample(["id", "k", "s"], self.of(1, 2))
        elif way == "having":
            clauses["having"] = self.of("count(*) > 1", "max(v) > 0", "")
        elif way == "order":
            clauses["order"] = self.of("v", "k, v", "s desc, v")
        elif way == "rank":
            clauses["rank"] = self.of("row_number() = 1", "rank() = 1", "row_number() <= 2")

    def joined(self, old: Query | str, names: list[str]) -> Query:
        kind = self.of("left", "left", "inner", "semi")
        clauses = {
            "where": [],
            "kind": kind,
            "on": self.on(),
            "using": None,
            "from": ["l"] * 4,
        }
        return Query("join", [old, str(self.of(*names))], clauses)


def sql(query: Query | str) -> str:
    """A query as text; relations are written in braces."""
    if isinstance(query, str):
        return "{" + query + "}"
    clauses = query.clauses
    sources = [sql(i) if isinstance(i, str) else f"({sql(i)})" for i in query.inputs]
    where = f" where {' and '.join(clauses['where'])}" if clauses["where"] else ""
    columns = ", ".join(COLUMNS)

    def chosen(sides: list[str], only_left: bool) -> str:
        return ", ".join(
            f"{'l' if only_left else side}.{c}" for side, c in zip(sides, COLUMNS, strict=True)
        )

    text = ""
    if query.shape in MORE:
        text = MORE[query.shape][0]
        for place in (p for p in clauses if p != "where"):
            text = text.replace("{" + place + "}", clauses[place])
        text = text.replace("{where}", where)
        for i, source in enumerate(sources):
            text = text.replace("{" + str(i) + "}", source)
        return text
    if query.shape == "join":
        kind, using = clauses["kind"], clauses["using"]
        condition = f"using ({using})" if using else f"on {' and '.join(clauses['on'])}"
        half = kind in ("semi", "anti")
        picked = chosen(clauses["from"], half)
        if using and kind not in ("semi", "anti"):
            picked = picked.replace(f"l.{using}", using).replace(f"r.{using}", using)
        text = f"select {picked} from {sources[0]} as l {kind} join {sources[1]} as r {condition}"
    elif query.shape == "twice":
        on2 = " and ".join(clauses["on2"]).replace("r.", "q.")
        text = (
            f"select {chosen(clauses['from'], False)} from {sources[0]} as l "
            f"{clauses['kinds'][0]} join {sources[1]} as r on {' and '.join(clauses['on'])} "
            f"{clauses['kinds'][1]} join {sources[2]} as q on {on2}"
        )
    elif query.shape == "filter":
        return f"select {columns} from {sources[0]} as l{where}"
    elif query.shape == "group":
        keys = clauses["keys"]
        made = {"id": "min(id)", "k": "count(*)", "s": "max(s)", "v": "sum(v)"}
        picked = ", ".join(
            c if c in keys else f"cast({made[c]} as {TYPES[c]}) as {c}" for c in COLUMNS
        )
        having = f" having {clauses['having']}" if clauses["having"] else ""
        return f"select {picked} from {sources[0]} as l{where} group by {', '.join(keys)}{having}"
    elif query.shape == "distinct":
        return f"select distinct {columns} from {sources[0]} as l{where}"
    elif query.shape == "union":
        a, b = (f"select {columns} from {s} as l" for s in sources)
        text = f"{a} {clauses['op']} {b}"
    elif query.shape == "first":
        function, number = clauses["rank"].split(" ", 1)
        over = f"{function} over (partition by {', '.join(clauses['keys'])} order by {clauses['order']})"
        if clauses["qualify"]:
            return f"select {columns} from {sources[0]} as l{where} qualify {over} {number}"
        inner = f"select {columns}, {over} as rn from {sources[0]} as l{where}"
        return f"select {columns} from ({inner}) where rn {number}"
    elif query.shape == "limit":
        return (
            f"select {columns} from {sources[0]} as l{where} order by id, k, s, v "
            f"limit {clauses['limit']}"
        )
    elif query.shape == "one":
        text = (
            f"select l.id, l.k, l.s, coalesce(l.v, p.m) as v from {sources[0]} as l "
            f"cross join (select max(v) as m from {sources[1]}) as p"
        )
    elif query.shape == "exists":
        on = " and ".join(clauses["on"])
        return (
            f"select {columns} from {sources[0]} as l where exists "
            f"(select 1 from {sources[1]} as r where {on})"
        )
    elif query.shape == "anti":
        text = (
            f"select l.id, l.k, l.s, l.v from {sources[0]} as l left join {sources[1]} as r "
            f"on {' and '.join(clauses['on'])} where r.id is null"
        )
    elif query.shape == "window":
        text = (
            f"select id, k, s, cast(sum(v) over (partition by k) as integer) as v "
            f"from {sources[0]} as l"
        )
    elif query.shape == "lateral":
        text = (
            f"select l.id, l.k, l.s, p.v from {sources[0]} as l left join lateral "
            f"(select max(r.v) as v from {sources[1]} as r where {clauses['on'][0]}) as p on true"
        )
    return f"select {columns} from ({text}) as o{where}" if where else text


class World:
    """One random project with its data, and what its tests find."""

    def __init__(self, seed: int) -> None:
        self.writer = Writer(seed)
        self.random = self.writer.random
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        self.sources = ["a", "b", "c"]
        self.queries: dict[str, Query] = {}
        self.kinds: dict[str, str] = {}
        for name in self.sources:
            self.fill(name)
        names = list(self.sources)
        for i in range(self.random.choice([3, 4, 5])):
            name = f"m{i}"
            while True:
                recent = names[-3:]
                query = self.writer.query([*names, *recent])
                if self.runs(query):
                    break
            self.queries[name] = query
            self.kinds[name] = self.random.choice(["view", "table", "table"])
            self.build(name, query)
            names.append(name)
        self.tests = {f"t{i}": t for i, t in enumerate(dict.fromkeys(self.make_tests(names)))}
        self.base = self.project(self.queries)
        self.before = self.results()
        self.base = self.base.having(
            run_results=[
                RunResult(
                    unique_id=f"test.w.{test}",
                    status="error" if rows is None else "pass" if not rows else "fail",
                    failures=None if rows is None else len(rows),
                )
                for test, rows in self.before.items()
            ]
        )

    def fill(self, name: str) -> None:
        rng = self.random
        distinct = rng.random() < 0.7
        more = ["a", "A", "a "] if rng.random() < 0.15 else ["3", " 3"]
        ids: list[Any] = rng.sample(range(6), rng.choice([2, 4, 5])) if distinct else []
        rows = []
        for i in range(rng.choice([1, 4, 6])):
            id_ = ids[i] if i < len(ids) else None if distinct else rng.choice([None, 0, 1, 2, 3])
            if distinct and id_ is None and rng.random() < 0.6:
                continue
            s = rng.choice([None, "1", "01", "2", *more]) if rng.random() < 0.6 else str(i)
            rows.append((id_, rng.choice([None, 0, 1, 2]), s, rng.choice([None, 0, 1, 2])))
        self.connection.execute(
            f"create table {name} (id integer, k integer, s varchar, v integer)"
        )
        for row in rows:
            self.connection.execute(f"insert into {name} values (?, ?, ?, ?)", row)

    def runs(self, query: Query) -> bool:
        """Whether a query can be built: it runs, stays small, and its columns are what they were."""
        try:
            self.connection.execute(f"create or replace temp table probe as {text(query)}")
            described = self.connection.execute("describe probe").fetchall()
            count = self.connection.execute("select count(*) from probe").fetchone()
        except duckdb.Error:
            return False
        types = {name: type_ for name, type_, *_ in described}
        return types == TYPES and count is not None and count[0] < 200

    def build(self, name: str, query: Query) -> None:
        self.connection.execute(f"drop table if exists {name}")
        self.connection.execute(f"create table {name} as {text(query)}")

    def make_tests(self, names: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        rng = self.random
        for name in names:
            for column in COLUMNS:
                yield unique(name, column), (name,)
                yield not_null(name, column), (name,)
            yield accepted(name, rng.choice(["id", "k", "v"])), (name,)
            other, key = rng.choice(names), rng.choice(["id", "id", "k"])
            if other != name:
                yield relationships(name, rng.choice(["id", "k", "v"]), other, key), (name, other)
            yield f"select * from {{{name}}} where not ({self.writer.condition()})", (name,)
            keys = ", ".join(rng.sample(COLUMNS, 2))
            made = rng.choice(["id % 2", "upper(s)", "coalesce(k, 0)", "id + k", "trim(s)"])
            yield unique(name, made), (name,)
            yield not_null(name, made), (name,)
            yield unique(name, rng.choice(COLUMNS), " and v > 0"), (name,)
            yield (
                (
                    f"with e as (select {keys} from {{{name}}} group by {keys} having count(*) > 1) "
                    "select * from e"
                ),
                (name,),
            )
            query = self.writer.query([name, rng.choice(names)], 1)
            if self.runs(query):
                read = tuple(dict.fromkeys(query.names()))
                yield sql(Query("filter", [query], {"where": [self.writer.condition()]})), read

    def results(self) -> dict[str, list[str] | None]:
        results: dict[str, list[str] | None] = {}
        for test, (query, _) in self.tests.items():
            try:
                rows = self.connection.execute(named(query)).fetchall()
                results[test] = sorted(map(repr, rows))
            except duckdb.Error:
                results[test] = None
        return results

    def project(self, queries: dict[str, Query]) -> Project:
        nodes: dict[str, Node] = {}
        catalog = {}
        for name in self.sources:
            nodes[f"source.w.raw.{name}"] = Node(
                unique_id=f"source.w.raw.{name}",
                name=name,
                resource_type="source",
                relation_name=f'"d"."m"."{name}"',
                database="d",
                schema="m",
                identifier=name,
            )
        for name, query in queries.items():
            nodes[f"model.w.{name}"] = model(name, text(query, qualified), self.kinds[name], query)
        for test, (query, read) in self.tests.items():
            nodes[f"test.w.{test}"] = Node(
                unique_id=f"test.w.{test}",
                name=test,
                resource_type="test",
                compiled_code=qualified(query),
                raw_code=query,
                config={"materialized": "test", "severity": "ERROR"},
                depends_on=DependsOn(nodes=[uid(r) for r in read]),
            )
        for name in (*self.sources, *queries):
            catalog[uid(name)] = [
                CatalogColumn(name=c, type=TYPES[c], index=i) for i, c in enumerate(COLUMNS)
            ]
        parents = {u: list(dict.fromkeys(n.depends_on.nodes)) for u, n in nodes.items()}
        children: dict[str, list[str]] = {u: [] for u in nodes}
        for u, above in parents.items():
            for p in above:
                children[p].append(u)
        return Project(
            target_path="",
            metadata=Metadata(adapter_type="duckdb", project_name="w"),
            nodes=nodes,
            parents=parents,
            children=children,
            catalog=catalog,
        )

    def edited(self) -> tuple[dict[str, Query], Project] | None:
        """Another state of the project: one model edited."""
        names = list(self.queries)
        for _ in range(20):
            name = self.random.choice(names)
            above = [*self.sources, *names[: names.index(name)]]
            query = self.writer.edit(self.queries[name], above)
            if text(query) != text(self.queries[name]) and self.runs(query):
                queries = {**self.queries, name: query}
                return queries, self.project(queries)
        return None

    def after(self, queries: dict[str, Query]) -> dict[str, list[str] | None] | None:
        """What the tests find once everything is built anew; None where a model does not build."""
        try:
            for name, query in queries.items():
                if not self.runs(query):
                    return None
                self.build(name, query)
            return self.results()
        except duckdb.Error:
            return None
        finally:
            for name, query in self.queries.items():
                self.build(name, query)


def uid(name: str) -> str:
    return f"model.w.{name}" if name.startswith("m") else f"source.w.raw.{name}"


def model(name: str, code: str, kind: str, query: Query) -> Node:
    return Node(
        unique_id=f"model.w.{name}",
        name=name,
        alias=name,
        resource_type="model",
        database="d",
        schema="m",
        relation_name=f'"d"."m"."{name}"',
        compiled_code=code,
        raw_code=code,
        checksum={"name": "sha256", "checksum": code},
        config={"materialized": kind},
        depends_on=DependsOn(nodes=[uid(n) for n in dict.fromkeys(query.names())]),
    )


@functools.cache
def qualified(query: str) -> str:
    for name in ("a", "b", "c", *(f"m{i}" for i in range(9))):
        query = query.replace("{" + name + "}", f'"d"."m"."{name}"')
    return query


@functools.cache
def named(query: str) -> str:
    return query.replace("{", "").replace("}", "")


def text(query: Query, write: Any = named) -> str:
    return str(write(sql(query)))


def unique(name: str, column: str, where: str = "") -> str:
    return (
        f"select {column} as unique_field, count(*) as n_records from {{{name}}} "
        f"where {column} is not null{where} group by {column} having count(*) > 1"
    )


def not_null(name: str, column: str) -> str:
    return f"select {column} from {{{name}}} where {column} is null"


def accepted(name: str, column: str) -> str:
    return (
        f"with all_values as (select {column} as value_field, count(*) as n_records "
        f"from {{{name}}} group by {column}) "
        "select * from all_values where value_field not in (0, 1, 2)"
    )


def relationships(name: str, column: str, parent: str, key: str) -> str:
    return (
        f"with child as (select {column} as from_field from {{{name}}} "
        f"where {column} is not null), "
        f"parent as (select {key} as to_field from {{{parent}}}) "
        "select from_field from child left join parent "
        "on child.from_field = parent.to_field where parent.to_field is null"
    )
