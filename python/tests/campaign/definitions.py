"""Copies of models: those in another layout are found, and no pair is named whose values differ.

    python tests/campaign/definitions.py [--copies N] [--labs N] [--seed S]

Of each model of the shop and of random projects that is built whole each time, copies are made: in another layout (the campaign's
refactors), and with an edit in them (its mutations). The gate judges the change that adds them. A
copy in another layout is *missed* if a column that the model computes, and that chance does not
decide, is not named as a duplicate. A pair of columns is *wrong* if it is named and their values
differ in execution: as bags where both relations have the same rows, else where neither column has
only values of the other. Prints the figures; exits 1 where anything was missed or wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from engines import EngineError, plain
from mutations import QUERY_KINDS, Mutator
from refactors import CATALOGUE, has_branches
from world import World
from worlds import lab, shop

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes import compare
from dbt_ripple.governance.duplicate_definitions import Definitions, twin_breaches
from dbt_ripple.graph.analyse_project import analyse

LAYOUTS: Final = (
    "other white space",
    "reformatted",
    "commented",
    "CTEs renamed",
    "CTE split",
    "CTE inlined",
    "CTEs reordered",
    "wrapped in select *",
    "table aliases changed",
)
"""The refactors that change nothing but the layout of one query."""

BATCH: Final = 40
"""So many copies are added by one change; its analysis is what takes the time."""


@dataclass
class Copy:
    """A copy of a model.

    Attributes:
        how: the refactor or the kind of edit.
        same: whether it is the same query in another layout.
    """

    of: str
    how: str
    same: bool
    node: Node


@dataclass
class Found:
    """What came of it.

    Attributes:
        copies: by whether they are the same query, how many were tried.
        expected: columns of copies in another layout that have to be named.
        pairs: pairs of columns that were named and executed: of the same rows, and of others.
        apart: pairs of other rows of which neither has only values of the other.
    """

    copies: Counter[bool] = field(default_factory=Counter)
    expected: int = 0
    missed: list[str] = field(default_factory=list)
    pairs: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.copies[True]} copies in another layout: {self.expected} columns to be named, "
            f"{len(self.missed)} missed; {self.copies[False]} copies with an edit; "
            f"{self.pairs.total()} pairs named and executed ({self.pairs['same rows']} of the same "
            f"rows, {self.pairs['other rows']} of others), {len(self.wrong)} with other values, "
            f"{len(self.apart)} of other rows that cannot be held against each other"
        )


def copies(world: World, rng: random.Random) -> Iterator[Copy]:
    """Copies of the world's models without an end: in another layout and edited, in turn."""
    nodes = world.project.nodes
    # What a model with branches builds on is its own earlier rows, which a copy has not.
    models = [
        u
        for u in world.relations
        if nodes[u].resource_type == "model" and not has_branches(nodes[u])
    ]
    mutator = Mutator(world, rng)
    for number in range(1_000_000):
        of = rng.choice(models)
        node = nodes[of]
        if number % 2:
            how = rng.choice(QUERY_KINDS)
            made = mutator.edit_of(how, of)
        else:
            how = rng.choice(LAYOUTS)
            made = CATALOGUE[how](world, of)
        sql = made.sql.get(of) if made is not None else None
        if sql is not None:
            name = f"{node.alias or node.name}__copy{number}"
            again = msgspec.structs.replace(
                node,
                unique_id=f"{of}__copy{number}",
                name=name,
                alias=name,
                relation_name=f'"{node.database}"."{node.schema}"."{name}"',
                compiled_code=sql,
                raw_code=sql,
                version=None,
                latest_version=None,
            )
            yield Copy(of, how, not number % 2, again)


def with_copies(project: Project, made: list[Copy]) -> Project:
    """The project after a change that adds them."""
    nodes = dict(project.nodes)
    parents, children = dict(project.parents), {u: [*c] for u, c in project.children.items()}
    catalog = dict(project.catalog)
    for copy in made:
        unique_id = copy.node.unique_id
        nodes[unique_id], children[unique_id] = copy.node, []
        parents[unique_id] = [*project.parents[copy.of]]
        for parent in parents[unique_id]:
            children[parent].append(unique_id)
        if copy.same and copy.of in catalog:
            catalog[unique_id] = catalog[copy.of]
    return dataclasses.replace(
        project, nodes=nodes, parents=parents, children=children, catalog=catalog
    )


def try_copies(world: World, wanted: int, seed: int, counts: Found) -> None:
    """Add so many copies to a world, and hold what is named against what is executed."""
    base = world.project
    base_analysis = analyse(base, tests=False)
    ahead = copies(world, random.Random(f"{seed}/{world.name}"))
    while wanted > 0:
        made = [next(ahead) for _ in range(min(BATCH, wanted))]
        wanted -= len(made)
        head = with_copies(base, made)
        analysis = analyse(head, tests=False)
        comparison = compare(base, head, base_analysis=base_analysis, head_analysis=analysis)
        named = {
            (breach.unique_id, (breach.column or "").lower())
            for breach in twin_breaches(comparison)
            if breach.rule == "duplicate_introduced"
        }
        side = Definitions(head, analysis)
        columns: dict[str, dict[str, list[str]] | None] = {}
        for copy in made:
            counts.copies[copy.same] += 1
            if copy.same:
                look_for(copy, side, named, counts)
            execute(world, copy, side, columns, counts)


def look_for(
    copy: Copy, side: Definitions, named: set[tuple[str | None, str]], counts: Found
) -> None:
    """Whether each column that a copied model computes is named."""
    for column in side.fingerprints(copy.of):
        vertex = (copy.of, column)
        if not side.computes(vertex) or not side.is_repeatable(vertex):
            continue
        counts.expected += 1
        if (copy.node.unique_id, column) not in named:
            counts.missed.append(f"{copy.of}.{column} in the copy {copy.how!r}")


def execute(
    world: World,
    copy: Copy,
    side: Definitions,
    columns: dict[str, dict[str, list[str]] | None],
    counts: Found,
) -> None:
    """Run each pair that is named of a copy, and compare its values."""
    nodes, seen = side.project.nodes, side.analysis.nodes
    for name in side.fingerprints(copy.node.unique_id):
        vertex = (copy.node.unique_id, name)
        for other in side.twins(vertex):
            values = []
            for unique_id, column in (vertex, other):
                if unique_id not in columns:
                    columns[unique_id] = values_of(world, nodes[unique_id])
                of = columns[unique_id]
                values.append(None if of is None else of.get(column))
            one, two = values
            if one is None or two is None:
                continue  # it builds no more: it has no values
            where = f"{vertex} ({copy.how}) and {other}"
            if seen[vertex[0]].rows_fingerprint == seen[other[0]].rows_fingerprint:
                counts.pairs["same rows"] += 1
                if one != two:
                    counts.wrong.append(where)
            else:
                counts.pairs["other rows"] += 1
                if not (set(one) <= set(two) or set(two) <= set(one)):
                    counts.apart.append(where)


def values_of(world: World, node: Node) -> dict[str, list[str]] | None:
    """The values of each column of a model, in order; None where it does not build."""
    sql = world.executable(node)
    try:
        names = [name.lower() for name, _ in world.engine.columns(sql)]
        rows: list[tuple[Any, ...]] = world.engine.rows(sql)
    except EngineError:
        return None
    return {
        name: sorted(repr(plain(row[place])) for row in rows) for place, name in enumerate(names)
    }


def main() -> int:
    """Try copies in the shop and in random projects."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, default=500)
    parser.add_argument("--labs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=16)
    asked = parser.parse_args()
    counts = Found()
    each = asked.copies // (asked.labs + 1)
    with tempfile.TemporaryDirectory(prefix="definitions") as work:
        for number in range(asked.labs + 1):
            folder = Path(work) / str(number)
            folder.mkdir()
            seed = asked.seed * 1000 + number
            world, _ = lab(folder, seed) if number else shop(folder)
            share = each if number else asked.copies - each * asked.labs
            try_copies(world, share, asked.seed, counts)
            print(f"{world.name}: {counts}", flush=True)
    for line in (*counts.missed, *counts.wrong, *counts.apart):
        print(line)
    return 1 if counts.missed or counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
