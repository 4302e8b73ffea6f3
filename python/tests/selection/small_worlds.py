"""Small random projects, edited at random and executed on DuckDB: what proven tests are judged by.

Every relation has the columns ``id, k, s, v``, so that any of them can stand for any other. The data
has what breaks careless arguments: few values, repeated rows, NULLs, and text that equals a number
in more than one way ('1', '01'). The queries are those of `generators.shapes`.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
from generators.catalogue import Catalogue
from generators.grammar import Grammar
from generators.schemas import Column
from generators.shapes import COLUMNS, KINDS, TYPES

from dbt_ripple.artifacts import CatalogColumn, DependsOn, Metadata, Node, Project, RunResult

NO_FUNCTIONS = Catalogue()


class Writer(Grammar):
    """Writes queries over relations of a world, whose names stand in braces."""

    types = all_types = ("int", "int", "str", "bool")
    budget = 12
    joins = (0, 0, 1)
    quantifies = False
    text_forms = range(17)
    rows_of_relations = 0.0

    def __init__(
        self, relations: Sequence[str], seed: int, changed: dict[int, int] | None = None
    ) -> None:
        super().__init__(NO_FUNCTIONS, seed, changed)
        self.relations = relations
        self.read: dict[str, None] = {}
        self.within = ""

    def leaf(self) -> str:
        if self.within:
            text, self.within = self.within, ""
            return text
        name = self.pick("relation", self.relations)
        self.read[name] = None
        return f"{{{name}}}"

    def table(self, *kinds: str) -> tuple[str, list[Column]]:
        return self.leaf(), list(KINDS)

    def model(self, depth: int) -> str:
        """A query of the columns; by chance there is another one around it."""
        text = self.shaped(depth)
        if self.chance("another around it", 0.03):
            self.within = f"({text})"
            text = self.shaped(0)
        return text


@dataclass(frozen=True)
class Query:
    """A query as written, and the decisions it was written by: each of them may be made anew."""

    written: str
    read: tuple[str, ...]
    places: tuple[tuple[int, str], ...]
    again: Callable[[dict[int, int]], Query]
    changed: dict[int, int]


def query(relations: Sequence[str], depth: int, seed: int, changed: dict[int, int]) -> Query:
    """The query of a seed, with some of its decisions made anew."""
    writer = Writer(relations, seed, changed)
    written = writer.model(depth)
    again = functools.partial(query, relations, depth, seed)
    return Query(written, tuple(writer.read), tuple(dict.fromkeys(writer.places)), again, changed)


class World:
    """One random project with its data, and what its tests find."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
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
                made = self.query([*names, *recent])
                if self.runs(made):
                    break
            self.queries[name] = made
            self.kinds[name] = self.random.choice(["view", "table", "table"])
            self.build(name, made)
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

    def query(self, relations: Sequence[str], depth: int = 2) -> Query:
        return query(relations, depth, self.random.getrandbits(60), {})

    def condition(self) -> str:
        return Writer((), self.random.getrandbits(60)).simple(KINDS)

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
            yield f"select * from {{{name}}} where not ({self.condition()})", (name,)
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
            made = self.query([name, rng.choice(names)], 1)
            if self.runs(made):
                text = f"select id, k, s, v from ({made.written}) as l where {self.condition()}"
                yield text, made.read

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
            edited = self.queries[name]
            for _ in range(self.random.choice((1, 1, 2))):
                edited = self.edit(edited)
            if edited.written != self.queries[name].written and self.runs(edited):
                queries = {**self.queries, name: edited}
                return queries, self.project(queries)
        return None

    def edit(self, before: Query) -> Query:
        """A query with one decision made anew: a kind of decisions is chosen first, then one of them."""
        kind = self.random.choice(sorted({kind for _, kind in before.places}))
        place = self.random.choice([p for p, k in before.places if k == kind])
        for _ in range(15):
            after = before.again({**before.changed, place: self.random.getrandbits(60)})
            if after.written != before.written:
                return after
        return before

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
        depends_on=DependsOn(nodes=[uid(n) for n in query.read]),
    )


@functools.cache
def qualified(query: str) -> str:
    for name in ("a", "b", "c", *(f"m{i}" for i in range(9))):
        query = query.replace("{" + name + "}", f'"d"."m"."{name}"')
    return query


@functools.cache
def named(query: str) -> str:
    return re.sub(r"\{(\w+)\}", r"\1", query)


def text(query: Query, write: Any = named) -> str:
    return str(write(query.written))


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
