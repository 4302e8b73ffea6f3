"""Every lineage fixture, without Spark: what is written down is what the engine says."""

from __future__ import annotations

import pytest
from flow.lineage_fixtures import Deps, Fixture, read_fixtures, read_tables, written
from linked_tables import table_relation

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.flow.ir import EPHEMERAL_PREFIX
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import ROWS, Column, Relation

TABLES = {name: [c for c, _ in columns] for name, columns in read_tables().items()}


class Unknown:
    """The columns of a relation of which only the name is known."""

    def __init__(self, base: str) -> None:
        self.base = base

    def get(self, key: str, name: str) -> Column | None:
        return digest(self.base.encode(), key.encode()), {(self.base, name): 1}

    def fp(self) -> bytes:
        return digest(self.base.encode())


def table(key: str, name: str) -> Relation:
    """A table of the fixtures, whatever its schema; ``dark`` is one whose columns are not known.

    An ephemeral model's CTE stands for the node, which has the columns of the table of its name.
    """
    base = key.rpartition(".")[2].strip('"').removeprefix(EPHEMERAL_PREFIX)
    if base == "dark":
        return table_relation(base, [], [Unknown(base)])
    return table_relation(base, TABLES[base])


def as_expected(deps: Deps, expected: Deps) -> Deps:
    """What was found, without the rows of tables where the expectation does not name any."""
    if any(column == ROWS for _, column in expected):
        return deps
    return {key: mask for key, mask in deps.items() if key[1] != ROWS}


def told(fixture: Fixture) -> str:
    """The expectation as text, output by output."""
    lines = [f"{name} <- {written(deps)}" for name, deps in fixture.outputs]
    return "\n".join([*lines, f"rows <- {written(fixture.rows)}"])


def lineage_of(fixture: Fixture) -> str:
    """What the engine says, in the same words."""
    lowered = lower(fixture.sql, dialect_of(fixture.dialect))
    assert lowered.rel is not None, lowered.reason
    linked = link(lowered, table, dialect_of(fixture.dialect))
    relation = linked.relation
    missing = fixture.pragmas.get("missing")
    assert linked.missing == (missing.split(", ") if missing else [])
    assert (str(linked.unknown) if linked.unknown else "") == fixture.pragmas.get("unknown", "")
    assert bool(relation.unlisted) == ("rest" in fixture.pragmas)
    lines = []
    for i, (name, deps) in enumerate((c.name, c.deps) for c in relation.columns):
        name_told, deps_told = fixture.outputs[i] if i < len(fixture.outputs) else ("", {})
        shown = "?" if name_told == "?" else name
        lines.append(f"{shown} <- {written(as_expected(deps, deps_told))}")
    return "\n".join([*lines, f"rows <- {written(as_expected(relation.rows.deps, fixture.rows))}"])


@pytest.mark.parametrize(
    "fixture", [f for f in read_fixtures() if "opaque" not in f.pragmas], ids=lambda f: f.id
)
def test_lineage_is_as_written(fixture: Fixture, request: pytest.FixtureRequest) -> None:
    if "open" in fixture.pragmas:
        request.applymarker(pytest.mark.xfail(reason=fixture.pragmas["open"], strict=True))
    assert lineage_of(fixture) == told(fixture), f"\n{fixture.path}:{fixture.line}\n{fixture.sql}"


@pytest.mark.parametrize(
    "fixture", [f for f in read_fixtures() if "opaque" in f.pragmas], ids=lambda f: f.id
)
def test_what_is_not_followed_says_why(fixture: Fixture) -> None:
    lowered = lower(fixture.sql, dialect_of(fixture.dialect))
    assert lowered.rel is None
    assert fixture.pragmas["opaque"] in str(lowered.reason)
