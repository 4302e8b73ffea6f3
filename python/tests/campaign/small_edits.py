"""Edits that rest on what an engine does and SQL does not define: small projects, many built at once by dbt.

Each edit has a few models of its own over the same sources. dbt builds those of many edits in one project,
as they were and as they are, on top of base's tables and from scratch; the selector is asked about each edit
alone, so that none hides what is missed of another.
"""

from __future__ import annotations

import difflib
import random
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import yaml
from dbt_builds import Folder
from random_project import CATALOG, PROFILE
from rebuilds import WAYS, Built, Rebuild, compare_rebuilds, rebuild, restore
from world import Outcome, World, verdict

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import RunResult

sys.path.append(str(Path(__file__).parents[1] / "driver"))  # as pytest does
from unpromised_edits import LATER, SOURCES

AT_ONCE: Final = 60
"""Edits that dbt builds in one project."""

TABLES: Final = ("t", "w", "big", "i")
"""The sources' tables, which `unpromised_edits` makes."""

FILES: Final = {
    "dbt_project.yml": yaml.safe_dump(
        {
            "name": "lab",
            "version": "1.0.0",
            "profile": "lab",
            "flags": {"send_anonymous_usage_stats": False},
        }
    ),
    "profiles.yml": PROFILE,
    "models/sources.yml": yaml.safe_dump(
        {"sources": [{"name": "raw", "schema": "raw", "tables": [{"name": t} for t in TABLES]}]}
    ),
}


@dataclass(frozen=True)
class SmallEdit:
    """A few files of a project, before and after.

    A text has ``@u`` for a reference to the node ``u`` of the same edit, ``#t`` for the source ``t``, and ``ONE``
    for what the names of all nodes of the edit begin with.

    Attributes:
        kind: of edit.
        before: each text by its path without that beginning, as in ``models/u.sql``.
        after: the texts that are others then; empty for a file that is gone.
    """

    kind: str
    before: dict[str, str]
    after: dict[str, str]

    def files(self, number: int, *, after: bool) -> dict[str, str]:
        """The files as dbt reads them."""
        one = name_of(number)
        texts = self.before | (self.after if after else {})
        written = {}
        for path, text in texts.items():
            folder, _, name = path.rpartition("/")
            if text:
                written[f"{folder}/{one}_{name}"] = (
                    placed(text, one) if ".csv" not in name else text
                )
        return written

    def diff(self) -> str:
        """What is edited, line by line, and the other files."""
        lines = []
        for path, text in self.before.items():
            lines.append(f"--- {path}")
            after = self.after.get(path, text)
            lines += (
                text.splitlines()
                if text == after
                else difflib.ndiff(text.splitlines(), after.splitlines())
            )
        lines += [f"+++ {p}\n{t}" for p, t in self.after.items() if p not in self.before]
        return "\n".join(lines)


def placed(text: str, one: str) -> str:
    """A text with the names of an edit."""
    text = re.sub(r"@(\w+)", rf"{{{{ ref('{one}_\1') }}}}", text.replace("ONE", one))
    return re.sub(r"#(\w+)", r"{{ source('raw', '\1') }}", text)


def name_of(number: int) -> str:
    return f"e{number}"


Writer = Callable[[random.Random], SmallEdit | None]


def written(
    writers: dict[str, Writer],
    rng_of: Callable[[int], random.Random],
    wanted: int,
    *,
    kinds: Collection[str] = (),
    only: int | None = None,
) -> Iterator[tuple[int, SmallEdit]]:
    """So many edits with their numbers, the kinds in turn.

    Args:
        writers: every kind; the number of an edit says which is its.
        rng_of: the generator of each number.
        wanted: how many edits.
        kinds: those that are made; empty for all.
        only: the number of the one edit that is made.
    """
    names, done = list(writers), 0
    for number in range(40 * len(names) * wanted) if only is None else [only]:
        kind = names[number % len(names)]
        if done >= wanted:
            return
        if kinds and only is None and kind not in kinds:
            continue
        rng = rng_of(number)
        edit = next(filter(None, (writers[kind](rng) for _ in range(40))), None)
        if edit is not None and any(edit.before.get(p) != t for p, t in edit.after.items()):
            done += 1
            yield number, edit


class Batch:
    """Some edits, built by dbt.

    Args:
        edits: by number.
        work: where projects and warehouses are written.

    Attributes:
        scratch: a folder for files.
        inlines: see `World`.
    """

    inlines = staticmethod(World.inlines)

    def __init__(self, edits: dict[int, SmallEdit], work: Path) -> None:
        self.edits = edits
        self.scratch = work / "scratch"
        self.base, self.head = (
            self.folder(work / side, after=side == "head") for side in ("base", "head")
        )
        with duckdb.connect(str(self.base.duckdb)) as connection:
            connection.execute(f"{SOURCES}; create sequence raw.numbers")
        self.base.build(check=False)
        self.base.dbt("docs", "generate")
        first = self.base.copy_database(work / "first" / self.base.database)
        base = self.base.read()
        built = Built(first, base)
        self.projects = (self.with_results(base, built.rows), self.compiled_head(first))
        before, after = (
            {way: rebuild(folder, first, project, way, [LATER]) for way in WAYS}
            for folder, project in zip((self.base, self.head), self.projects, strict=True)
        )
        self.rebuilds: list[tuple[Rebuild, Rebuild]] = [(before[w], after[w]) for w in WAYS]
        # What chance decides, and no edit: the same text over the same data gives something else.
        again = before["afresh"].built
        self.undetermined = {
            u
            for then, now in ((built.tables, again.tables), (built.rows, again.rows))
            for u in then
            if then[u] != now[u]
        }

    def folder(self, work: Path, *, after: bool) -> Folder:
        project = work / "project"
        files = dict(FILES)
        for number, edit in self.edits.items():
            files |= edit.files(number, after=after)
        for name, text in files.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return Folder(project, work, f"{CATALOG}.duckdb")

    def compiled_head(self, first: Path) -> Project:
        """Head as CI compiles it, against base's warehouse."""
        restore(self.head, first)
        self.head.dbt("compile")
        return self.head.read().having(run_results=[])

    @staticmethod
    def with_results(project: Project, rows: dict[str, list[str] | str]) -> Project:
        """Base's artifacts with what its tests returned."""
        invocation = project.metadata.invocation_id or ""
        results = []
        for test, found in rows.items():
            status, failures = verdict(project.nodes[test], found)
            results.append(
                RunResult(
                    unique_id=test, status=status, failures=failures, invocation_id=invocation
                )
            )
        return project.having(run_results=results)

    def outcome(self, number: int) -> tuple[Project, Outcome]:
        """Base's part of one edit, and what the edit did."""
        base, head = (part(project, name_of(number) + "_") for project in self.projects)
        outcome = Outcome(head)
        passed = {r.unique_id for r in base.run_results if r.status == "pass"}
        for before, after in self.rebuilds:
            mine = [
                Rebuild(
                    r.built,
                    {u: why for u, why in r.failed.items() if u in {**base.nodes, **head.nodes}},
                )
                for r in (before, after)
            ]
            compare_rebuilds((base, head), (mine[0], mine[1]), passed, outcome)
        outcome.relations -= self.undetermined
        outcome.tests -= self.undetermined
        return base, outcome


def part(project: Project, beginning: str) -> Project:
    """The sources of a project and the nodes whose names begin so."""
    nodes = {
        u: n
        for u, n in project.nodes.items()
        if n.resource_type == "source" or n.name.startswith(beginning)
    }

    def mine(edges: dict[str, list[str]]) -> dict[str, list[str]]:
        return {u: [o for o in edges.get(u, ()) if o in nodes] for u in nodes}

    return project.having(
        nodes=nodes,
        parents=mine(project.parents),
        children=mine(project.children),
        catalog={u: c for u, c in project.catalog.items() if u in nodes},
        run_results=[r for r in project.run_results if r.unique_id in nodes],
    )


def batches(
    edits: Sequence[tuple[int, SmallEdit]], work: Path
) -> Iterator[tuple[int, SmallEdit, Batch]]:
    """Build edits, so many at once; each with the batch that it is in."""
    for start in range(0, len(edits), AT_ONCE):
        some = dict(edits[start : start + AT_ONCE])
        batch = Batch(some, work / str(start))
        for number, edit in some.items():
            yield number, edit, batch
