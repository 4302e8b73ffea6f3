"""A few of the edits of `make attack`, on a small project."""

from __future__ import annotations

import random

import pytest
from attack import attack, harmless, hostile, is_told, worlds
from hand_made import node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project

MODELS = {
    "people": "select 1 as id, 'a' as name, 'b' as email",
    "orders": "select 1 as id, 2 as person, 3.0 as amount",
    "totals": 'select person, sum(amount) as total from "s"."orders" group by person',
    "days": "select date '2026-01-01' as day, 5 as visits",
    "names": 'select id, upper(name) as name from "s"."people"',
}


def small() -> Project:
    above = {"totals": ["model.p.orders"], "names": ["model.p.people"]}
    made = (node(f"model.p.{name}", sql, *above.get(name, ())) for name, sql in MODELS.items())
    return project(
        *(replace(one, relation_name=f'"s"."{one.name}"') for one in made), adapter="duckdb"
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_no_hostile_edit_is_approved_in_silence(seed: int) -> None:
    kinds = hostile()
    for name, world, report in attack(small(), len(kinds), kinds, seed, None):
        assert is_told(world, report), (name, world.shown.unique_id, world.column, report.findings)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_harmless_edit_is_blocked(seed: int) -> None:
    kinds = harmless()
    for name, _, report in attack(small(), len(kinds), kinds, seed, None):
        assert report.decision != "BLOCKED", (name, report.findings)


def test_the_world_promises_something_and_hides_something() -> None:
    world = next(worlds(small(), random.Random(1)))
    assert world.project.nodes[world.shown.unique_id].access == "public"
    assert world.project.nodes[world.hidden.unique_id].columns[world.secret].meta["pii"] == "email"
