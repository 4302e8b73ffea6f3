"""`dbt-ripple explain`: why a test is selected, proven or not, and which test is meant."""

from __future__ import annotations

import pytest
from two_sides import FROM_RAW, NOT_NEGATIVE, STG, UNIQUE, Sides

NO_SUCH = "no_negative_amounts"
UNIT = "unit_test.shop.dim_customers.amounts_are_summed_v1"


def test_a_selected_test_with_the_way_and_both_expressions(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    done = sides("explain", "no_negative_amount", "--no-facts")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "no_negative_amount: selected: stg_orders.amount changed\n"
        "  stg_orders.amount\n"
        "      - amount\n"
        "      + amount * 2\n"
        "      edited: stg_orders (models/stg_orders.sql)\n"
        "    └── no_negative_amount\n"
    )
    document = sides("explain", NOT_NEGATIVE, "--no-facts", "--format", "json").json
    assert document["verdict"] == "selected"
    assert [(step["unique_id"], step["column"]) for step in document["path"]] == [
        (STG, "amount"),
        (NOT_NEGATIVE, None),
    ]
    assert (document["before"], document["after"]) == (["amount"], ["amount * 2"])
    markdown = sides("explain", NOT_NEGATIVE, "--no-facts", "--format", "markdown").out
    assert markdown.startswith("**`no_negative_amount`: selected.** stg_orders.amount changed\n")
    assert "```diff\n- amount\n+ amount * 2\n```\n" in markdown


def test_a_test_the_ripple_did_not_reach(sides: Sides) -> None:
    assert sides("explain", UNIQUE).out == (
        "unique_stg_orders_order_id: not selected: nothing changed\n"
    )
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert sides("explain", UNIQUE, "--no-facts").out == (
        "unique_stg_orders_order_id: not selected: of stg_orders, amount changed; it reads only "
        "order_id and which rows there are\n"
        "  stg_orders.amount\n"
    )
    document = sides("explain", "source_not_null", "--no-facts", "--format", "json").json
    assert document["verdict"] == "not selected"
    assert document["reason"] == "it is not downstream of what changed (stg_orders)"


def test_a_proven_test_with_the_argument_line_by_line(sides: Sides) -> None:
    sides.write_sql(STG, f"{FROM_RAW} where amount < 100")
    sides.passed()
    text = sides("explain", UNIQUE).out
    assert text.startswith(
        "unique_stg_orders_order_id: proven, because\n"
        "  - it reads only rows that were there on base, where it passed\n"
        "  - no_negative_amount, which runs, shows whether stg_orders can be read\n"
        "  stg_orders (rows)\n"
    )
    assert "      + WHERE amount < 100\n" in text
    markdown = sides("explain", UNIQUE, "--format", "markdown").out
    assert markdown.startswith(
        "**`unique_stg_orders_order_id`: proven.** Because\n\n- it reads only rows that were there"
    )
    assert sides("explain", NOT_NEGATIVE, "--no-facts").out.startswith(
        "no_negative_amount: selected: rows of stg_orders changed\n"
    )


def test_a_unit_test(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert "may have another type" in sides("explain", UNIT).out
    sides.write_sql(STG, f"{FROM_RAW} where amount < 100")
    assert "not selected: its model's own query" in sides("explain", UNIT).out
    sides.edit(
        lambda manifest: manifest["unit_tests"][UNIT]["given"][0]["rows"][0].update(amount=3.0)
    )
    assert sides("explain", UNIT).out.endswith(": selected: its fixture changed\n")


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (NO_SUCH, "did you mean no_negative_amount"),
        (
            "qqqqqq",
            "no test or node of this name in project shop; `dbt ls` lists the nodes and the tests",
        ),
        ("order_id", "2 tests have this in their name: "),
    ],
)
def test_which_test_is_meant(sides: Sides, test: str, message: str) -> None:
    assert message in sides.refused("explain", test)


def test_a_part_of_a_name_that_only_one_test_has_is_enough(sides: Sides) -> None:
    assert sides("explain", "UNIQUE_stg").out.startswith("unique_stg_orders_order_id: ")


def test_without_a_test_its_help_is_named(sides: Sides) -> None:
    assert (
        "Missing argument 'TEST|NODE[.COLUMN]'; see `dbt-ripple explain --help`"
        in sides.refused("explain")
    )


def test_a_relation_with_where_its_change_began(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert sides("explain", "stg_orders").out == (
        "stg_orders: changed: stg_orders.amount changed\n"
        "  stg_orders.amount\n"
        "      - amount\n"
        "      + amount * 2\n"
        "      edited: stg_orders (models/stg_orders.sql)\n"
    )
    affected = sides("explain", "dim_customers.v1")
    assert affected.out.startswith("dim_customers.v1: affected: stg_orders.amount changed\n")
    assert "    └── dim_customers.v1." in affected.out
    document = sides("explain", "stg_orders", "--format", "json").json
    assert document["verdict"] == "changed"
    [cause] = document["causes"]
    assert (cause["before"], cause["after"]) == (["amount"], ["amount * 2"])
    assert [step["column"] for step in cause["reaches"]] == ["amount"]


def test_a_change_that_reaches_many_columns_is_a_table(sides: Sides) -> None:
    sides.write_sql(
        STG,
        FROM_RAW.replace("ordered_at", "ordered_at || '' as ordered_at") + " where amount < 100",
    )
    text = sides("explain", "stg_orders").out
    assert text.startswith("stg_orders: changed: rows of stg_orders changed\n")
    assert "      + WHERE amount < 100\n" in text
    markdown = sides("explain", "dim_customers.v1", "--format", "markdown").out
    assert "| column | SQL |" in markdown


def test_a_column(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert sides("explain", "stg_orders.amount").out.startswith("stg_orders.amount: changed: ")
    assert sides("explain", "stg_orders.order_id").out == (
        "stg_orders.order_id: not changed: of stg_orders, only amount changed\n"
        "  stg_orders.amount\n"
    )
    assert "stg_orders has no column 'nosuch'" in sides.refused("explain", "stg_orders.nosuch")


def test_columns_that_went(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount as total,"))
    assert sides("explain", "stg_orders").out == (
        "stg_orders: changed: stg_orders no longer has amount\n  renamed: amount to total\n"
    )
    sides.write_sql(STG, FROM_RAW.replace("amount,", ""))
    gone = sides("explain", "stg_orders.amount").out
    assert gone == (
        "stg_orders.amount: changed: stg_orders no longer has amount\n  removed: amount\n"
    )


def test_what_did_not_change(sides: Sides) -> None:
    assert sides("explain", "stg_orders").out == "stg_orders: not changed: nothing changed\n"
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert (
        "not changed: it is not downstream of what changed (stg_orders)"
        in sides("explain", "raw.raw_orders").out
    )


def test_an_exposure_is_affected_by_what_it_reads(sides: Sides) -> None:
    exposure = "exposure:daily_revenue_report"  # it names the column amount of dim_customers.v2
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    done = sides("explain", exposure)
    assert done.out.startswith("daily_revenue_report: affected: stg_orders.amount changed\n")
    assert done.err == ""
    sides.write_sql(STG, FROM_RAW.replace("ordered_at", "ordered_at || '' as ordered_at"))
    assert "daily_revenue_report: not changed: " in sides("explain", exposure).out


def test_a_relation_that_base_does_not_have_is_new(sides: Sides) -> None:
    sides.edit(
        lambda manifest: [manifest["nodes"].pop(STG), manifest["parent_map"].pop(STG)],
        "state/manifest.json",
    )
    text = sides("explain", "stg_orders").out
    assert text.startswith("stg_orders: new: stg_orders is new\n")
