"""The projects and edits of the golden record: read or generated, never built.

A `PaperWorld` is a world of the campaign that is not executed, so that the campaign's own generators
make its edits. Nothing here needs a warehouse: the shop is compiled by dbt over an empty DuckDB, the
labs' queries are taken from their generator, and the generated project is written as artifacts.
"""

from __future__ import annotations

import json
import random
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import msgspec

_TESTS: Final = Path(__file__).parents[1]
for _folder in ("", "campaign", "fuzz", "../bench"):
    if str(_TESTS / _folder) not in sys.path:
        sys.path.append(str(_TESTS / _folder))

import generate  # noqa: E402
import hand_made  # noqa: E402
from dbt_builds import Folder, copy_shop  # noqa: E402
from mutations import QUERY_KINDS, Mutator  # noqa: E402
from random_project import TYPES, Maker  # noqa: E402
from random_project import Relation as Written  # noqa: E402
from world import RELATIONS, Edit, World, topological  # noqa: E402

from dbt_ripple.artifacts import (  # noqa: E402
    CatalogColumn,
    Node,
    Project,
    RunResult,
    read_project,
)
from dbt_ripple.governance.hypothetical_changes import Change  # noqa: E402
from dbt_ripple.graph.analyse_project import analyse  # noqa: E402
from dbt_ripple.graph.lineage import Analysis  # noqa: E402

KINDS: Final = (
    *QUERY_KINDS,
    "hook",
    "seed",
    "ephemeral model",
    "snapshot",
    "versioned model",
    "incremental model",
    "test",
)
"""The campaign's edits in memory, but those of a source's table, which is nowhere on paper."""

_ONE_IN: Final = 7
"""One test in so many did not pass on base."""


class PaperWorld(World):
    """A project as a world of the campaign, not executed: what relations hold is not known."""

    def __init__(self, name: str, project: Project, scratch: Path, dialect: str) -> None:
        self.name = name
        self.scratch = scratch
        self.analysis: Analysis = analyse(project)
        quote = '"' if dialect == "duckdb" else "`"
        self.engine: Any = SimpleNamespace(dialect=dialect, quote=quote, kept=lambda u: u)
        nodes = project.nodes
        self.relations = [
            u
            for u in topological(project)
            if nodes[u].resource_type in RELATIONS and nodes[u].package_name == project.name
        ]
        self.tests = [n.unique_id for n in project.of_type("test") if n.compiled_code]
        self.columns = {
            u: project.catalog.get(u)
            or [
                CatalogColumn(name=c, type=None, index=i + 1)
                for i, c in enumerate(self.analysis.nodes[u].columns)
            ]
            for u in self.relations
            if not nodes[u].is_ephemeral
        }
        self.base = dict.fromkeys(self.columns, ())
        self.project = replace(project, run_results=list(_results(self)))
        self.below = {u: self.descendants(u) for u in nodes}

    def edits(self, seed: int, many: int) -> list[tuple[str, str, Edit]]:
        """So many edits, the kinds in turn: name, edited node, edit. Each has its own seed."""
        mutator = Mutator(self, random.Random(seed))
        kinds = [k for k in KINDS if mutator.has(k)]
        edits: list[tuple[str, str, Edit]] = []
        for number in range(3 * many):
            kind = kinds[number % len(kinds)]
            mutator.random = random.Random(f"{seed}/{self.name}/{number}")
            made = mutator.edit(kind)
            if made is not None and len(edits) < many:
                edits.append((f"{self.name}:{number} {kind}", *made))
        return edits

    def thoughts(self, seed: int, many: int) -> list[tuple[str, Node, Change]]:
        """So many changes that nobody has written, for `impact`."""
        changes = []
        relations = [u for u in self.relations if self.columns.get(u)]
        for number in range(many):
            chooser = random.Random(f"{seed}/{self.name}/impact/{number}")
            node = self.project.nodes[chooser.choice(relations)]
            column = chooser.choice(self.columns[node.unique_id]).name
            change = (
                Change("rename", column, "renamed_by_golden"),
                Change("drop", column),
                Change("retype", column, chooser.choice(("decimal(7, 3)", "date", "smallint"))),
                Change("remove"),
            )[number % 4]
            changes.append((f"{self.name}:{number} {change.kind}", node, change))
        return changes


def _results(world: PaperWorld) -> list[RunResult]:
    """A made-up run on base: most tests passed."""
    failed = {t for t in world.tests if zlib.crc32(t.encode()) % _ONE_IN == 0}
    return [
        *(
            RunResult(unique_id=t, status="fail", failures=1)
            if t in failed
            else RunResult(unique_id=t, status="pass", failures=0)
            for t in world.tests
        ),
        *(RunResult(unique_id=u, status="success") for u in world.relations if u in world.base),
    ]


def shop(work: Path) -> PaperWorld:
    """The tea shop of integration_tests/, compiled by dbt over nothing but its sources."""
    folder = Folder(copy_shop(work / "shop" / "project"), work / "shop")
    folder.dbt("seed")
    folder.dbt("compile", "--full-refresh")
    return PaperWorld("shop", folder.read(), work / "shop" / "scratch", "duckdb")


def lab(work: Path, seed: int) -> PaperWorld:
    """The models of a random project of the campaign, with the tests that need no macro."""
    maker = Maker(seed)
    maker.make()
    ids: dict[str, str] = {}
    nodes: list[Node] = []
    columns: dict[str, dict[str, str]] = {}

    def add(node: Node, name: str, of: Written | None) -> None:
        schema, _, table = name.partition(".")
        nodes.append(
            msgspec.structs.replace(
                node,
                schema=schema,
                alias=table,
                identifier=table,
                relation_name=f'"{schema}"."{table}"' if of else None,
            )
        )
        if of is not None:
            ids[name] = node.unique_id
            columns[node.unique_id] = {c.name: TYPES[c.kind] for c in of.columns}

    def parents(sql: str) -> list[str]:
        return list(dict.fromkeys(ids[n] for n in re.findall(r"\b\w+\.\w+\b", sql) if n in ids))

    for relation in maker.relations:
        kind = relation.name.partition(".")[0]
        name = relation.name.partition(".")[2]
        if kind == "raw":
            add(hand_made.node(f"source.p.raw.{name}"), relation.name, relation)
        elif name in maker.seeds:
            header, rows = maker.seeds[name]
            file = work / f"lab{seed}" / "seeds" / f"{name}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = [",".join(c.name for c in header), *(",".join(row) for row in rows)]
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            path = {"root_path": str(file.parents[1]), "original_file_path": f"seeds/{name}.csv"}
            add(hand_made.node(f"seed.p.{name}", **path), relation.name, relation)
    for model in maker.models:
        sql, name = maker.render(model.raw), model.relation.name
        table = name.partition(".")[2]
        unique_id = f"model.p.{table}"
        node = hand_made.node(unique_id, sql, *parents(sql), raw=model.raw)
        add(node, name, model.relation)
        for column, tests in model.column_tests.items():
            for test in (t for t in tests if t in ("unique", "not_null")):
                where = f"select {column} from {name} where {column} is"
                check = (
                    f"{where} null"
                    if test == "not_null"
                    else f"select {column} as unique_field, count(*) as n_records from {name} "
                    f"where {column} is not null group by {column} having count(*) > 1"
                )
                made = hand_made.generic(
                    f"{test}_{table}_{column}", test, check, unique_id, column_name=column
                )
                add(made, f"tests.{made.name}", None)
    for name, raw in maker.singular.items():
        sql = maker.render(raw)
        add(hand_made.check(name, sql, *parents(sql), raw=raw), f"tests.{name}", None)
    project = hand_made.project(*nodes, types=columns, adapter="duckdb")
    world = PaperWorld(f"lab {seed}", project, work / f"lab{seed}", "duckdb")
    maker.connection.close()
    return world


def generated(work: Path, models: int) -> PaperWorld:
    """The benchmark's project, for Spark."""
    folder = work / f"generated{models}"
    generate.generate(folder, models, adapter="spark")
    manifest = folder / "manifest.json"
    written = manifest.read_text(encoding="utf-8")
    root = json.dumps(str(folder))
    manifest.write_text(written.replace('"root_path": null', f'"root_path": {root}'), "utf-8")
    return PaperWorld(f"generated {models}", read_project(folder), folder / "scratch", "spark")
