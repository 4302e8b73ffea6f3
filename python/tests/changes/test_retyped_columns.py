"""The difference and the gate say the same of types: what one engine calls by two words is one type."""

from __future__ import annotations

import pytest
from hand_made import node, project

from dbt_ripple.artifacts import CatalogColumn, Project
from dbt_ripple.changes import compare
from dbt_ripple.changes.diff import diff
from dbt_ripple.governance.gate import gate
from dbt_ripple.governance.ripple_yml import Config

RAW, PAID = "source.p.raw", "model.p.paid"


def side(listed: str | None, declared: str | None = None, sql: str = "id") -> Project:
    model = node(
        *(PAID, f"select {sql} as id from s.raw", RAW),
        columns={"id": declared},
        access="public",
    )
    made = project(node(RAW), model, catalog={RAW: ["id"]}, adapter="duckdb")
    types = {} if listed is None else {PAID: [CatalogColumn(name="id", type=listed, index=1)]}
    return made.having(catalog={**made.catalog, **types})


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (("INTEGER",), ("BIGINT",), [("INTEGER", "BIGINT")]),
        (("INTEGER",), ("int4",), []),
        ((None, "integer"), (None, "bigint"), [("integer", "bigint")]),
        ((None, "integer"), (None, "int"), []),
        # What a yml file declares and what the warehouse has are no two sides of one thing.
        ((None, "integer"), ("BIGINT",), []),
        # A declaration that is edited is one, whatever the catalog of what was built before says.
        (("INTEGER", "integer"), ("INTEGER", "bigint"), [("integer", "bigint")]),
    ],
)
def test_the_difference_and_the_gate_say_the_same_of_types(
    before: tuple[str | None, ...], after: tuple[str | None, ...], told: list[tuple[str, str]]
) -> None:
    base, head = side(*before), side(*after, sql="id + 1")
    differ = [column for one in diff(compare(base, head)).nodes for column in one.columns]
    retyped = [(c.before, c.after) for c in differ if c.change == "retyped"]
    assert retyped == told
    findings = gate(base, head, config=Config()).findings
    assert len([f for f in findings if f.rule == "column_retyped"]) == len(told)
