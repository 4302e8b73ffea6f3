"""Where a transformation is shown, it is written out over the relations that its query reads."""

from __future__ import annotations

import csv
import json

import pytest
from two_sides import NOT_NEGATIVE, STG, UNIQUE, Sides

THROUGH_CTES = (
    "with raw as (select * from raw.raw_orders),"
    " priced as (select order_id, customer_id, ordered_at, amount * {rate} as net from raw),"
    " final as (select order_id, customer_id, net as amount, ordered_at from priced)"
    " select order_id, customer_id, amount, ordered_at from final"
)
LONG = " + ".join(f"amount * {number}" for number in range(60))


@pytest.fixture
def edited(sides: Sides) -> Sides:
    sides.write_sql(STG, THROUGH_CTES.format(rate="1.2"), "state")
    sides.write_sql(STG, THROUGH_CTES.format(rate="1.3"))
    return sides


def test_diff_and_explain(edited: Sides) -> None:
    (node,) = (
        node
        for node in edited("diff", "--format", "json").json["nodes"]
        if node["unique_id"] == STG
    )
    (column,) = node["columns"]
    assert (column["before"], column["after"]) == ("amount * 1.2", "amount * 1.3")
    assert "    - amount * 1.2\n    + amount * 1.3\n" in edited("diff").out
    document = edited("explain", NOT_NEGATIVE, "--no-facts", "--format", "json").json
    assert (document["before"], document["after"]) == (["amount * 1.2"], ["amount * 1.3"])
    assert document["path"][0]["expression"] == "amount * 1.3"


def test_where_long_expressions_differ_is_in_sight(edited: Sides) -> None:
    edited.write_sql(STG, THROUGH_CTES.format(rate=f"({LONG} + 7)"), "state")
    edited.write_sql(STG, THROUGH_CTES.format(rate=f"({LONG} + 8)"))
    for command in (("diff",), ("explain", NOT_NEGATIVE, "--no-facts")):
        lines = [line.strip() for line in edited(*command).out.splitlines()]
        before, after = (next(x for x in lines if x.startswith(sign)) for sign in ("- …", "+ …"))
        assert before.endswith("+ 7)")
        assert after.endswith("+ 8)")
        assert max(len(before), len(after)) < 250
    (column,) = edited("diff", "--format", "json").json["nodes"][0]["columns"]
    assert len(column["after"]) > len(LONG)


def test_impact_says_how_what_would_change_is_read(edited: Sides) -> None:
    source = "source:raw.orders"
    options = ("--retype", "amount:string")
    done = edited.shell("impact", source, *options, "--format", "json")
    assert done.out, done.err
    document = done.json
    (stg,) = (a for a in document["affected_assets"] if a["unique_id"] == STG)
    assert stg["expressions"] == [{"column": "amount", "expression": "amount * 1.3"}]
    assert "\n           amount = amount * 1.3\n" in edited.shell("impact", source, *options).out


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_edges_have_the_expression_of_what_reads(edited: Sides, suffix: str) -> None:
    path = edited.shell.folder / f"edges.{suffix}"
    assert edited.shell("analyze", "--edges", str(path)).code == 0
    if suffix == "csv":
        rows = list(csv.DictReader(path.open(newline="")))
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    into = {row["child_column"]: row["expression"] for row in rows if row["child_id"] == STG}
    assert into["amount"] == "amount * 1.3"
    assert not into.get("*rows*")
    assert UNIQUE not in {row["child_id"] for row in rows}
