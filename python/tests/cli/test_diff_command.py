"""`dbt-ripple diff`: what changed, column by column, in every form."""

from __future__ import annotations

from two_sides import FROM_RAW, STG, Sides


def test_nothing_changed_is_reported_and_so_is_a_refactor(sides: Sides) -> None:
    refactored = "no column and no row set changed (edited: stg_orders)"
    for sql, message in (
        (None, "nothing changed"),
        (f"/* why */ with t as ({FROM_RAW}) select * from t", refactored),
    ):
        if sql:
            sides.write_sql(STG, sql)
        for form in ("text", "markdown"):
            done = sides("diff", "--format", form)
            assert (done.code, done.out, done.err) == (0, f"{message}\n", "")
        assert sides("diff", "--format", "json").json["nodes"] == []


def test_columns_and_rows(sides: Sides) -> None:
    sides.write_sql(
        STG,
        "select order_id, customer_id as buyer_id, amount * 2 as amount, ordered_at, 1 as one "
        "from raw.raw_orders where amount > 0",
    )
    text = sides("diff").out
    lines = text.splitlines()
    assert lines[0] == "stg_orders (changed)"
    assert "  rows changed" in lines
    assert "    + WHERE amount > 0" in lines
    assert "  buyer_id: renamed from customer_id" in lines
    at = lines.index("  amount: redefined")
    assert lines[at + 1 : at + 3] == ["    - amount", "    + amount * 2"]
    assert "  one: added" in lines
    at = next(i for i, line in enumerate(lines) if line.startswith("downstream: "))
    gone = "cannot find customer_id: eph_orders.customer_id is gone (renamed to buyer_id)"
    assert lines[at + 1] == "cannot compile:"
    assert f"  dim_customers.v2: {gone}" in lines[at + 2 :]
    nodes = {node["unique_id"]: node for node in sides("diff", "--format", "json").json["nodes"]}
    changes = {column["name"]: column["change"] for column in nodes[STG]["columns"]}
    assert changes["buyer_id"] == "renamed"
    markdown = sides("diff", "--format", "markdown").out
    assert markdown.startswith("### `stg_orders` (changed)\n")
    assert f"- `dim_customers.v2`: {gone}\n" in markdown
    assert "- amount: redefined\n\n  ```diff\n  - amount\n  + amount * 2\n  ```\n" in markdown


def without(manifest: dict[str, dict[str, object]]) -> None:
    del manifest["nodes"]["model.shop.time_spine"]


def test_a_model_that_came(sides: Sides) -> None:
    sides.edit(without, "state/manifest.json")
    assert sides("diff").out == "time_spine (added)\n  1 column\n"
    sides.edit(without)
    assert sides("diff").out == "nothing changed\n"


def test_a_model_that_is_gone(sides: Sides) -> None:
    sides.edit(without)
    assert sides("diff").out == "time_spine (removed)\n"
