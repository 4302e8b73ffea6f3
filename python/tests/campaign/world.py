"""A base project built on an engine, and what happens to its tests when something is edited.

`World.try_head` builds what an edit reaches, runs the tests that could see it, and puts base's
tables back from a copy: some milliseconds an edit (a transaction would not do, as DuckDB ends it at
the first error, and errors are what many edits are for). A relation that comes out with the same names, types
and rows, which lie in the same order, stops the ripple there: nothing below it can tell the difference.
"""

from __future__ import annotations

import csv
import random
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import jinja2
import msgspec
import sqlglot
from cutoffs import Cut
from engines import Engine, EngineError, Interrupted, bag_of_rows
from sqlglot import exp

from dbt_ripple.artifacts import CatalogColumn, Node, Project, RunResult
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX
from dbt_ripple.jinja.text import pieces

MAX_ROWS: Final = 400_000
"""Rows a relation of a head may have; above that the edit is given up."""

RELATIONS: Final = ("model", "snapshot", "seed", "source")


BELOW: Final = "a model it reads was not built"
"""Why a node is not built that has nothing wrong itself."""


_INCREMENTAL: Final = re.compile(
    r"\{%-?\s*if\s+is_incremental\(\)\s*-?%\}.*?\{%-?\s*endif\s*-?%\}", re.S
)


class TooLong(Exception):  # noqa: N818 - it says what happened
    """An edit whose build took longer than its engine may, or made too many rows."""


class Unreadable(Exception):  # noqa: N818
    """An edit whose text sqlglot, which wrote it, cannot read."""


@dataclass
class Edit:
    """What head says instead of base.

    Attributes:
        sql: compiled SQL by unique_id, of models, snapshots and tests.
        raw: raw code by unique_id where it is not the compiled SQL.
        seeds: new rows of a seed's file, the header first.
        sources: a query over the base table that makes a source's table anew.
        added: nodes base does not have, with their compiled SQL.
        config: settings by unique_id to be changed.
    """

    sql: dict[str, str] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    seeds: dict[str, list[list[str]]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    added: list[Node] = field(default_factory=list)
    config: dict[str, dict[str, Any]] = field(default_factory=dict)

    def changed(self) -> set[str]:
        return {
            *self.sql,
            *self.seeds,
            *self.sources,
            *self.config,
            *(n.unique_id for n in self.added),
        }


@dataclass
class Outcome:
    """What an edit did, as executed.

    Attributes:
        head: the project as edited.
        relations: nodes whose relation differs from base's.
        reordered: those whose relation has the same rows in another order.
        unbuilt: nodes that build on base and not on head, with the engine's words.
        tests: tests whose rows differ, or whose query now fails.
        failing: tests that return rows on head (among those run again).
        blocked: tests that could not be run because a model under them was not built.
        outdated: for each of `tests`, which tests passed in base's results and fail on base's code, too,
            on the data on which it differs: what rests on those results is not so any more.
        columns: names and types of what was built anew.
        cut: what ``--cutoff`` left of the selections, with facts and without, where it was tried.
    """

    head: Project
    relations: set[str] = field(default_factory=set)
    reordered: set[str] = field(default_factory=set)
    unbuilt: dict[str, str] = field(default_factory=dict)
    tests: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    blocked: set[str] = field(default_factory=set)
    outdated: dict[str, set[str]] = field(default_factory=dict)
    columns: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    cut: list[Cut] = field(default_factory=list)

    @property
    def moved(self) -> set[str]:
        """What a reader may see another of."""
        return self.relations | self.reordered


class World:
    """One base project, executed.

    Args:
        name: what the report calls it.
        project: its artifacts, compiled with ``--full-refresh`` so that an incremental model's SQL
            makes all of it.
        engine: where it is executed; it holds sources and seeds as dbt has built them.
        scratch: a folder for files that edits write.
    """

    def __init__(self, name: str, project: Project, engine: Engine, scratch: Path) -> None:
        self.name = name
        self.project = project
        self.scratch = scratch
        self.engine = engine
        self.touched: set[str] = set()
        self.added: dict[str, Node] = {}
        nodes = project.nodes
        self.relations = [
            u
            for u in topological(project)
            if nodes[u].resource_type in RELATIONS and nodes[u].package_name == project.name
        ]
        self.tests = [
            n.unique_id
            for n in project.of_type("test")
            if n.compiled_code and n.package_name == project.name
        ]
        self.base: dict[str, tuple[Any, ...]] = {}
        self.order: dict[str, str] = {}
        for unique_id in self.relations:
            self.make_base(nodes[unique_id])
        self.rows = {t: self.result(nodes[t].compiled_code or "") for t in self.tests}
        bad = {t: r for t, r in self.rows.items() if isinstance(r, str)}
        if bad:
            raise AssertionError(f"tests of the base cannot run: {bad}")
        self.columns = {u: self.described(nodes[u]) for u in self.relations if self.stored(u)}
        self.project = replace(
            project, catalog=dict(self.columns), run_results=list(self.run_results())
        )
        self.below = {u: self.descendants(u) for u in nodes}

    # -- the base ---------------------------------------------------------------------------------

    def stored(self, unique_id: str) -> bool:
        """Whether a node becomes a relation."""
        return not self.project.nodes[unique_id].is_ephemeral

    def make_base(self, node: Node) -> None:
        if node.is_ephemeral:
            return
        name = relation(node)
        if node.resource_type in ("source", "seed"):
            disk = "disk." if self.engine.dialect == "duckdb" else ""
            sql = f"select * from {disk}{node.schema}.{node.identifier or node.alias or node.name}"
        else:
            sql = self.executable(node)
        self.engine.keep(node.unique_id, name, sql)
        self.run_hooks(node)
        self.engine.remember(node.unique_id, name)
        self.base[node.unique_id] = self.engine.signature(name)
        self.order[node.unique_id] = self.engine.order(name)

    def run_hooks(self, node: Node) -> None:
        """What a model does to its own table once it is built."""
        table = self.engine.written(node.unique_id, relation(node))
        columns = {name: {"meta": column.meta} for name, column in node.columns.items()}
        given = {"meta": node.meta, "columns": columns, "config": node.config}
        for hook in node.config.get("post-hook") or ():
            text = jinja2.Environment().from_string(str(hook["sql"]))
            self.engine.rows(text.render(this=table, model=given, config=node.config))

    def described(self, node: Node) -> list[CatalogColumn]:
        columns = self.engine.columns(f"select * from {relation(node)}")
        return [CatalogColumn(name=n, type=t, index=i + 1) for i, (n, t) in enumerate(columns)]

    def result(self, sql: str) -> list[str] | str:
        """A query's rows as a sorted bag, or the engine's error."""
        return bag_of_rows(self.engine, sql)

    def run_results(self) -> Iterable[RunResult]:
        """What dbt would have written of a run of all tests on base."""
        for test in self.tests:
            node = self.project.nodes[test]
            status, failures = verdict(node, self.rows[test])
            yield RunResult(unique_id=test, status=status, failures=failures)
        for unique_id in self.relations:
            if self.project.nodes[unique_id].resource_type != "source":
                yield RunResult(unique_id=unique_id, status="success")

    def forget_a_column(self, rng: random.Random) -> None:
        """Let the catalog be older than a column of a source: whoever reads it was built all the same.

        Names are then found on neither side of an edit, though the engine knows them.
        """
        nodes = self.project.nodes
        wide = [
            u
            for u, columns in self.columns.items()
            if nodes[u].resource_type == "source" and len(columns) > 2
        ]
        source = rng.choice(wide)
        listed = list(self.columns[source])
        listed.pop(rng.randrange(len(listed)))
        self.project = replace(self.project, catalog={**self.project.catalog, source: listed})

    def descendants(self, unique_id: str) -> set[str]:
        below: set[str] = set()
        ahead = [unique_id]
        while ahead:
            for child in self.project.children.get(ahead.pop(), ()):
                if child not in below:
                    below.add(child)
                    ahead.append(child)
        return below

    # -- a head -----------------------------------------------------------------------------------

    def head(self, edit: Edit) -> Project:
        """The project's artifacts as an edit leaves them."""
        nodes = dict(self.project.nodes)
        # An ephemeral model's text goes into its readers' once those are as edited.
        inlined_last = sorted(edit.sql.items(), key=lambda item: nodes[item[0]].is_ephemeral)
        for unique_id, sql in inlined_last:
            node = nodes[unique_id]
            for reader, text in self.inlined(node, sql, nodes).items():
                nodes[reader] = msgspec.structs.replace(nodes[reader], compiled_code=text)
            node = nodes[unique_id]
            raw = edit.raw.get(unique_id, config_of(node) + sql + branches_of(node))
            nodes[unique_id] = msgspec.structs.replace(
                node, compiled_code=sql, raw_code=raw, checksum=checksum(raw)
            )
        for unique_id, values in edit.config.items():
            node = nodes[unique_id]
            nodes[unique_id] = msgspec.structs.replace(
                node,
                config={**node.config, **values},
                # What dbt compares to call a node modified.
                unrendered_config={**node.unrendered_config, **values},
            )
        for unique_id, rows in edit.seeds.items():
            nodes[unique_id] = self.write_seed(nodes[unique_id], rows)
        parents, children = self.project.parents, self.project.children
        if edit.added or edit.sql:
            parents, children = dict(parents), {u: list(c) for u, c in children.items()}
            for node in edit.added:
                nodes[node.unique_id] = node
                children.setdefault(node.unique_id, [])
            for unique_id in (*(n.unique_id for n in edit.added), *edit.sql):
                read = self.reads(nodes[unique_id], nodes)
                read = list(dict.fromkeys([*read, *self.unseen_parents(unique_id, nodes)]))
                if set(read) == set(parents.get(unique_id, ())):
                    continue
                for parent in parents.get(unique_id, ()):
                    if parent not in read:
                        children[parent].remove(unique_id)
                for parent in read:
                    if unique_id not in children[parent]:
                        children[parent].append(unique_id)
                parents[unique_id] = read
                depends = msgspec.structs.replace(nodes[unique_id].depends_on, nodes=read)
                nodes[unique_id] = msgspec.structs.replace(nodes[unique_id], depends_on=depends)
        return replace(
            self.project, nodes=nodes, parents=parents, children=children, run_results=[]
        )

    def unseen_parents(self, unique_id: str, nodes: Mapping[str, Node]) -> list[str]:
        """Parents that compiled SQL does not name: ephemeral models are inlined."""
        return [p for p in self.project.parents.get(unique_id, ()) if nodes[p].is_ephemeral]

    def reads(self, node: Node, nodes: Mapping[str, Node]) -> list[str]:
        """The nodes whose relation a query names."""
        tree, _ = without_inlined(
            sqlglot.parse_one(node.compiled_code or "", dialect=self.engine.dialect)
        )
        named = {".".join(part.name for part in table.parts) for table in tree.find_all(exp.Table)}
        return [
            other.unique_id
            for other in nodes.values()
            if other.resource_type in RELATIONS
            and not other.is_ephemeral
            and plain_name(other) in named
            and other.unique_id != node.unique_id
        ]

    def inlined(self, node: Node, sql: str, nodes: Mapping[str, Node]) -> dict[str, str]:
        """The readers' compiled SQL with an ephemeral model's new text in it."""
        if not node.is_ephemeral:
            return {}
        texts = {}
        name = EPHEMERAL_PREFIX + (node.alias or node.name)
        own, above = without_inlined(sqlglot.parse_one(sql, dialect=self.engine.dialect))
        for reader in self.below[node.unique_id]:
            text = nodes[reader].compiled_code or ""
            if name not in text:
                continue
            tree, inlined = without_inlined(sqlglot.parse_one(text, dialect=self.engine.dialect))
            anew = exp.CTE(this=own.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))
            # dbt puts a model after those that it reads, and each of them once.
            new = {c.alias: c for c in above}
            there = {c.alias for c in inlined}
            ctes = []
            for cte in inlined:
                if cte.alias == name:
                    ctes += [*(a.copy() for a in above if a.alias not in there), anew]
                else:
                    ctes.append(new.get(cte.alias, cte).copy())
            texts[reader] = with_inlined(tree, ctes).sql(self.engine.dialect)
        return texts

    def write_seed(self, node: Node, rows: list[list[str]]) -> Node:
        root = self.scratch / "seeds"
        file = root / node.original_file_path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, lineterminator="\n").writerows(rows)
        return msgspec.structs.replace(
            node, root_path=str(root), checksum=checksum(file.read_text(encoding="utf-8"))
        )

    def try_head(self, edit: Edit, look: Callable[[Outcome], None] | None = None) -> Outcome:
        """Build what the edit reaches, run the tests that could see it, and put everything back.

        Args:
            edit: what head says instead of base.
            look: is shown what happened while head's relations are there.

        Raises:
            TooLong: it was given up.
            Unreadable: so that it is not known what the edit reads.
        """
        try:
            head = self.head(edit)
        except sqlglot.ParseError as error:
            raise Unreadable(str(error)) from error
        outcome = Outcome(head)
        timer = threading.Timer(self.engine.time_limit, self.engine.interrupt)
        timer.start()
        self.added = {n.unique_id: n for n in edit.added}
        try:
            self.execute(edit, outcome)
            if edit.sources:
                seen = {u: self.described(head.nodes[u]) for u in edit.sources}
                outcome.head = outcome.head.having(catalog={**head.catalog, **seen})
            if look is not None:
                look(outcome)
        except Interrupted as error:
            raise TooLong(str(error)) from error
        finally:
            timer.cancel()
            timer.join()
            self.put_back()
        return outcome

    def execute(self, edit: Edit, outcome: Outcome) -> None:
        head = outcome.head
        changed = edit.changed()
        # Readers of an edited ephemeral model hold its text.
        told = {
            u
            for u, n in head.nodes.items()
            if u not in self.project.nodes or n.compiled_code != self.project.nodes[u].compiled_code
        } | changed
        for unique_id in topological(head):
            node = head.nodes[unique_id]
            if node.resource_type not in RELATIONS:
                continue
            parents = [*self.stored_parents(head, unique_id), *self.inlines(head, unique_id)]
            moved = not outcome.moved.isdisjoint(parents)
            if any(p in outcome.unbuilt for p in parents):
                outcome.unbuilt[unique_id] = BELOW
            elif node.is_ephemeral:
                if unique_id in told or moved:
                    self.probe(node, outcome)
            elif unique_id in told or moved:
                self.rebuild(node, edit, outcome)
        for test in self.tests:
            parents = [*self.stored_parents(head, test), *self.inlines(head, test)]
            if any(p in outcome.unbuilt for p in parents):
                outcome.blocked.add(test)
            elif test in told or not outcome.moved.isdisjoint(parents):
                rows = self.result(head.nodes[test].compiled_code or "")
                if rows:
                    outcome.failing.add(test)
                if rows != self.rows[test]:
                    outcome.tests.add(test)

    @staticmethod
    def stored_parents(head: Project, unique_id: str) -> list[str]:
        """The relations a node reads, through ephemeral models."""
        parents: list[str] = []
        ahead = list(head.parents.get(unique_id, ()))
        while ahead:
            parent = ahead.pop()
            node = head.nodes[parent]
            if node.is_ephemeral:
                ahead.extend(head.parents.get(parent, ()))
            elif node.resource_type in RELATIONS and parent not in parents:
                parents.append(parent)
        return parents

    @staticmethod
    def inlines(head: Project, unique_id: str) -> list[str]:
        """The ephemeral models whose text stands in a node's compiled SQL."""
        ephemerals: list[str] = []
        ahead = list(head.parents.get(unique_id, ()))
        while ahead:
            parent = ahead.pop()
            if head.nodes[parent].is_ephemeral and parent not in ephemerals:
                ephemerals.append(parent)
                ahead.extend(head.parents.get(parent, ()))
        return ephemerals

    def probe(self, node: Node, outcome: Outcome) -> None:
        """Whether an ephemeral model still runs; it is part of whatever inlines it."""
        try:
            self.engine.rows(f"select count(*) from ({self.executable(node)}\n)")
        except EngineError as error:
            outcome.unbuilt[node.unique_id] = str(error)

    def rebuild(self, node: Node, edit: Edit, outcome: Outcome) -> None:
        unique_id, name = node.unique_id, relation(node)
        if unique_id in edit.sources:
            sql = edit.sources[unique_id]
        elif unique_id in edit.seeds:
            sql = self.seed_sql(node)
        elif node.resource_type in ("seed", "source"):
            return
        else:
            sql = self.executable(node)
        try:
            if node.contract_enforced:
                problem = against_contract(node, [name for name, _ in self.engine.columns(sql)])
                if problem:
                    outcome.unbuilt[unique_id] = problem
                    return
            self.touched.add(unique_id)
            self.engine.make(unique_id, name, sql)
            self.run_hooks(node)
        except EngineError as error:
            outcome.unbuilt[unique_id] = str(error)
            return
        signature = self.engine.signature(name)
        outcome.columns[unique_id] = signature[0]
        if signature[1][0] > MAX_ROWS:
            raise TooLong(f"{unique_id} has {signature[1][0]} rows")
        if self.base.get(unique_id) != signature:
            outcome.relations.add(unique_id)
        elif self.order[unique_id] != self.engine.order(name):
            outcome.reordered.add(unique_id)

    def put_back(self) -> None:
        """Make base's tables again as they were."""
        for unique_id in self.touched:
            of_base = unique_id in self.base
            node = self.project.nodes[unique_id] if of_base else self.added[unique_id]
            self.engine.put_back(unique_id, relation(node), of_base=of_base)
        self.touched.clear()

    def seed_sql(self, node: Node) -> str:
        """A seed's file as a query, with the types that base's table has."""
        _, *rows = seed_rows(node)
        types = self.columns[node.unique_id]
        quoted = [f"{self.engine.quote}{c.name}{self.engine.quote}" for c in types]
        casts = ", ".join(
            f"cast({q} as {c.type}) as {q}" for q, c in zip(quoted, types, strict=True)
        )
        values = ", ".join(f"({', '.join(map(sql_text, row))})" for row in rows)
        return f"select {casts} from (values {values}) as lines ({', '.join(quoted)})"

    def executable(self, node: Node) -> str:
        """The query that makes all of a node's rows at once."""
        sql = (node.compiled_code or "").strip().rstrip(";")
        if node.resource_type == "snapshot":
            return first_snapshot(node, sql)
        if node.contract_enforced and node.materialized in ("table", "incremental"):
            quote = self.engine.quote
            columns = ", ".join(f"{quote}{c}{quote}" for c in node.columns)
            return f"select {columns} from ({sql}\n)"
        return sql


def seed_rows(node: Node) -> list[list[str]]:
    """The lines of a seed's file, the header first."""
    file = Path(node.root_path or "") / node.original_file_path
    with file.open(encoding="utf-8", newline="") as text:
        return [row for row in csv.reader(text) if row]


def sql_text(value: str) -> str:
    """A cell of a seed's file as a literal; an empty one is NULL."""
    return "'" + value.replace("'", "''") + "'" if value else "null"


def relation(node: Node) -> str:
    """The quoted three-part name of a node's relation."""
    if node.relation_name:
        return node.relation_name
    return f'"{node.database}"."{node.schema}"."{node.identifier or node.alias or node.name}"'


def plain_name(node: Node) -> str:
    """The name of a node's relation without quotes."""
    return relation(node).replace('"', "").replace("`", "")


def first_snapshot(node: Node, sql: str) -> str:
    """What a snapshot holds after its first run: each row of its query, valid since it changed."""
    key = node.config.get("unique_key")
    keys = key if isinstance(key, list) else [key]
    strategy = node.config.get("strategy")
    updated = (
        str(node.config["updated_at"]) if strategy == "timestamp" else "timestamp '2026-01-01'"
    )
    parts = ", '|', ".join(f"coalesce(cast({k} as varchar), '')" for k in [*keys, updated])
    return (
        f"select *, md5(concat({parts})) as dbt_scd_id, {updated} as dbt_updated_at, "
        f"{updated} as dbt_valid_from, nullif({updated}, {updated}) as dbt_valid_to\nfrom ({sql}\n)"
    )


def against_contract(node: Node, names: list[str]) -> str | None:
    """What dbt would refuse: columns other than those that the contract lists."""
    if not node.contract_enforced or node.resource_type != "model":
        return None
    listed = {c.lower() for c in node.columns}
    return None if listed == {n.lower() for n in names} else "the contract lists other columns"


def verdict(node: Node, rows: list[str] | str) -> tuple[str, int | None]:
    """dbt's status of a test from the rows its query returned."""
    if isinstance(rows, str):
        return "error", None
    count = len(rows)
    config = node.config
    severity = str(config.get("severity", "error")).lower()
    for level, condition in (("fail", config.get("error_if")), ("warn", config.get("warn_if"))):
        if level == "fail" and severity != "error":
            continue
        if eval(f"{count} {(condition or '!= 0').replace('<>', '!=')}"):
            return level, count
    return "pass", count


def config_of(node: Node) -> str:
    """What a node's file says of its config, which an edit of its query leaves as it is."""
    tags_of_node = (piece.text for piece in pieces(node.raw_code) or () if piece.kind == "{{")
    return "".join(f"{tag}\n" for tag in tags_of_node if tag.startswith("{{ config ("))


def branches_of(node: Node) -> str:
    """What an incremental model asks of its own table, which compiled SQL does not hold.

    Who edits the query leaves it there. It comes behind the query, as it is only read as Jinja.
    """
    branches = _INCREMENTAL.findall(node.raw_code) if node.materialized == "incremental" else ()
    return "".join(f"\n{branch}" for branch in branches)


def checksum(text: str) -> dict[str, str]:
    """A checksum as dbt writes it."""
    import hashlib

    return {"name": "sha256", "checksum": hashlib.sha256(text.strip().encode()).hexdigest()}


def topological(project: Project) -> list[str]:
    """Every node after its parents."""
    waiting = {u: len(set(project.parents.get(u, ()))) for u in project.nodes}
    ready = [u for u, n in waiting.items() if n == 0]
    order: list[str] = []
    while ready:
        unique_id = ready.pop(0)
        order.append(unique_id)
        for child in dict.fromkeys(project.children.get(unique_id, ())):
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    return order


def without_inlined(tree: Any) -> tuple[Any, list[Any]]:
    """A model's query without the ephemeral models that dbt has put in front, and those.

    They are nodes of their own: nobody edits them in a reader's text.
    """
    with_ = tree.args.get("with_")
    if with_ is None:
        return tree, []
    inlined = [c for c in with_.expressions if c.alias.startswith(EPHEMERAL_PREFIX)]
    own = [c for c in with_.expressions if not c.alias.startswith(EPHEMERAL_PREFIX)]
    if own:
        with_.set("expressions", own)
    else:
        tree.set("with_", None)
    return tree, inlined


def with_inlined(tree: Any, inlined: list[Any]) -> Any:
    """A model's query with the ephemeral models in front again."""
    if not inlined:
        return tree
    with_ = tree.args.get("with_")
    if with_ is None:
        tree.set("with_", exp.With(expressions=inlined))
    else:
        with_.set("expressions", [*inlined, *with_.expressions])
    return tree
