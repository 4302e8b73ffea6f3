"""`dbt-ripple select` between two target folders: what it prints, in every form, and refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from cli_shell import Done
from two_sides import FROM_RAW, NOT_NEGATIVE, STG, UNIQUE, V1, V2, Sides

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import Metadata
from dbt_ripple.reasons import Code
from dbt_ripple.rendering.selection import selection_lines
from dbt_ripple.selection.result import Opaque, Selection

COMMAND = "from dbt_ripple.cli import main; main()"
DOUBLED = FROM_RAW.replace("amount,", "amount * 2 as amount,")


def counts(done: Done) -> tuple[int, ...]:
    return tuple(done.json["counts"].values())


def test_equal_sides_say_so_to_people_and_have_empty_lists_for_machines(sides: Sides) -> None:
    for form in ((), ("--format", "markdown")):
        done = sides("select", *form)
        assert (done.code, done.out, done.err) == (0, "nothing changed\n", ""), form
    done = sides("select", "--output", "names")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert counts(sides("select", "--format", "json")) == (0, 0, 0, 0, 3)


def test_an_edit_as_text_markdown_and_names(sides: Sides) -> None:
    sides.write_sql(STG, DOUBLED)
    done = sides("select", "--no-facts")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "1 of 3 tests; dbt's state:modified+ would run 2\n"
        "changed:\n"
        "  stg_orders (models/stg_orders.sql): select order_id, customer_id, amount, ordered_at from "
        "{{ source('raw', 'orders') }} -> select order_id, customer_id, amount * 2 as amount, ordered_at "
        "from raw.raw_orders\n"
        "tests:\n"
        "  no_negative_amount  stg_orders.amount changed\n"
        "to build: dim_customers.v1, dim_customers.v2, eph_orders, py_model, stg_orders, "
        "orders_snapshot\n"
        "unit tests: amounts_are_summed\n"
        "exposures: daily_revenue_report\n"
        "not analysed, so each counts as depending on all that it reads:\n"
        "  py_model: a Python model\n"
    )
    markdown = sides("select", "--no-facts", "--format", "markdown").out
    assert markdown.startswith("**1 of 3 tests; dbt's state:modified+ would run 2**\n")
    assert "| `no_negative_amount` | stg_orders.amount changed |\n" in markdown
    assert "Exposures:\n\n- `daily_revenue_report`\n" in markdown
    assert sides("select", "--no-facts", "--output", "names").out.splitlines() == [
        "shop.dim_customers.v1",
        "shop.dim_customers.v2",
        "eph_orders",
        "py_model",
        "stg_orders",
        "orders_snapshot",
        "amounts_are_summed",
        "no_negative_amount",
    ]


def test_json_has_the_fields_of_the_contract(sides: Sides) -> None:
    sides.write_sql(STG, DOUBLED)
    document = sides("select", "--no-facts", "--format", "json").json
    assert set(document) >= {
        *("tests", "proven", "blocked", "models", "broken", "exposures", "unit_tests", "opaque"),
        "counts",
    }
    assert document["tests"] == [
        {
            "unique_id": NOT_NEGATIVE,
            "name": "no_negative_amount",
            "reason": "stg_orders.amount changed",
            "reason_code": "column_changed",
            "reason_arguments": {"name": "stg_orders", "column": "amount"},
            "path": [f"{STG}.amount", NOT_NEGATIVE],
        }
    ]
    assert {STG, V1, V2} < set(document["models"])
    assert document["exposures"] == ["exposure.shop.daily_revenue_report"]
    assert [opaque["unique_id"] for opaque in document["opaque"]] == ["model.shop.py_model"]
    assert document["counts"] == {
        "impacted_tests": 1,
        "proven_tests": 0,
        "blocked_tests": 0,
        "state_modified_tests": 2,
        "all_tests": 3,
    }


def test_what_passed_on_base_holds_and_says_what_it_rests_on(sides: Sides) -> None:
    # A filter: no test that found no row among more of them can find one.
    sides.write_sql(STG, f"{FROM_RAW} where amount < 100")
    done = sides("select", "--format", "json")
    assert (counts(done)[:2], done.err.count("\n")) == ((2, 0), 1)
    assert "base has no results of tests" in done.err
    sides.passed()
    done = sides("select", "--format", "json")
    # It is a view: one test runs it.
    assert (counts(done)[:2], done.err) == ((1, 1), "")
    (proven,) = done.json["proven"]
    assert (proven["unique_id"], proven["facts"]) == (UNIQUE, [NOT_NEGATIVE])
    assert proven["reason"] == (
        "it reads only rows that were there on base, where it passed; "
        "no_negative_amount, which runs, shows whether stg_orders can be read"
    )
    assert counts(sides("select", "--format", "json", "--no-facts"))[:2] == (2, 0)
    text = sides("select").out
    assert text.startswith("1 of 3 tests, 1 proven; dbt's state:modified+ would run 2\n")
    assert "\nproven:\n  unique_stg_orders_order_id: rests on no_negative_amount\n" in text


def test_results_of_another_command_prove_nothing_and_that_is_reported(sides: Sides) -> None:
    sides.write_sql(STG, f"{FROM_RAW} where amount < 100")
    sides.passed()
    sides.edit(lambda m: m["metadata"].update(invocation_id="another"), "state/manifest.json")
    done = sides("select", "--format", "json")
    assert counts(done)[:2] == (2, 0)
    assert "of another dbt command than manifest.json" in done.err
    done = sides("select", "--format", "json", "--assume-passed")
    # `unique` only warns: nothing says that it has found no row.
    assert (counts(done)[:2], done.err) == ((1, 1), "")


def test_a_missing_column_is_broken_with_its_name(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount, ", ""))
    done = sides("select")
    # Each once, the cause before the tests: of a test that is selected, beside it.
    head, _, tests = done.out.partition("tests:\n")
    assert "cannot be built:\n" in head
    cause = "cannot find amount: stg_orders.amount is gone\n"
    assert "no_negative_amount" not in head
    assert [line.split()[0] for line in tests.splitlines() if cause.strip() in line] == [
        "no_negative_amount"
    ]
    models = [line.split(":")[0] for line in head.splitlines()[2:]]
    assert len(models) == len(set(models)) > 0
    document = sides("select", "--format", "json").json
    assert {broken["unique_id"] for broken in document["broken"]} >= {NOT_NEGATIVE, V1}
    assert NOT_NEGATIVE in {test["unique_id"] for test in document["tests"]}


def test_blocked_tests_are_counted_at_what_cannot_be_built(sides: Sides) -> None:
    def reads_v1(manifest: dict[str, Any]) -> None:
        test, model = manifest["nodes"][NOT_NEGATIVE], manifest["nodes"][V1]
        sql = f"select * from {model['relation_name']} where amount < 0"
        test |= {"compiled_code": sql, "raw_code": sql, "depends_on": {"macros": [], "nodes": [V1]}}
        manifest["parent_map"][NOT_NEGATIVE] = [V1]
        manifest["child_map"][V1].append(NOT_NEGATIVE)

    for side in ("state", "target"):
        sides.edit(reads_v1, f"{side}/manifest.json")
    sides.write_sql(STG, FROM_RAW.replace("amount, ", "amount as total, "))
    done = sides("select")
    assert "1 blocked by what cannot be built; dbt's" in done.out.splitlines()[0]
    assert (
        "cannot be built:\n  dim_customers.v1: cannot find amount: eph_orders.amount is gone (renamed to total); 1 test blocked\n"
        in done.out
    )
    assert "proven" not in done.out
    text = sides("explain", "no_negative_amount").out
    assert text.startswith(
        "no_negative_amount: blocked, because\n  - dim_customers.v1 cannot be built"
    )
    assert "  blocked by dim_customers.v1" in text
    assert (
        "- blocked by `dim_customers.v1`"
        in sides("explain", "no_negative_amount", "--format", "markdown").out
    )


def test_full_is_what_dbt_would_run(sides: Sides) -> None:
    sides.write_sql(STG, DOUBLED)
    document = sides("select", "--full", "--format", "json").json
    assert [test["unique_id"] for test in document["tests"]] == [NOT_NEGATIVE, UNIQUE]
    assert document["counts"]["impacted_tests"] == document["counts"]["state_modified_tests"] == 2


def test_critical_adds_the_tests_of_impacted_nodes_and_a_typo_is_reported(sides: Sides) -> None:
    def tier(manifest: dict[str, Any]) -> None:
        manifest["nodes"][STG]["config"]["meta"] |= {"criticality": "tier1"}
        manifest["nodes"][STG]["meta"] |= {"criticality": "tier1"}

    for side in ("target", "state"):
        sides.edit(tier, f"{side}/manifest.json")
    sides.write_sql(STG, DOUBLED)
    done = sides("select", "--critical", "tier1", "--no-facts", "--format", "json")
    assert {test["name"]: test["reason"] for test in done.json["tests"]} == {
        "no_negative_amount": "stg_orders.amount changed",
        "unique_stg_orders_order_id": "stg_orders is impacted and tier1",
    }
    assert done.err == ""
    assert done.json["critical"] == [
        test["unique_id"] for test in done.json["tests"] if test["name"].startswith("unique")
    ]
    (sides.shell.folder / "ripple.yml").write_text("select: {critical: tier1}\n")
    by_default = sides("select", "--no-facts", "--format", "json")
    assert by_default.json == done.json
    assert "1 only because critical assets are below" in sides("select", "--no-facts").out
    without = sides("select", "--critical", "none", "--no-facts", "--format", "json")
    assert counts(without)[0] == 1 and "critical" not in without.json
    (sides.shell.folder / "ripple.yml").unlink()
    done = sides("select", "--critical", "tier-1", "--no-facts", "--format", "json")
    assert counts(done)[0] == 1
    assert done.err == (
        "dbt-ripple: no node of this project has meta.criticality 'tier-1'; there are high, tier1\n"
    )


def test_a_side_without_a_catalog_knows_the_sources_by_the_other_ones(sides: Sides) -> None:
    for side in ("target", "state"):
        sides.write_sql(STG, "select * from raw.raw_orders", side)
    columns = {
        name: {"name": name, "type": "int", "index": index}
        for index, name in enumerate(("order_id", "customer_id", "amount", "ordered_at"))
    }

    def listed(catalog: dict[str, Any]) -> None:
        catalog["sources"]["source.shop.raw.orders"] = {
            "metadata": {"type": "table", "schema": "raw", "name": "raw_orders"},
            "columns": columns,
            "stats": {},
            "unique_id": "source.shop.raw.orders",
        }

    sides.edit(listed, "state/catalog.json")
    (sides.shell.folder / "target" / "catalog.json").unlink()
    for cache in ((), ("--no-cache",), ()):
        done = sides("select", *cache)
        assert (done.code, done.out, done.err) == (0, "nothing changed\n", "")
    sides.write_sql(STG, "select order_id, customer_id, amount, ordered_at from raw.raw_orders")
    assert counts(sides("select", "--format", "json"))[:4] == (0, 0, 0, 2)


def test_it_answers_within_a_process_of_its_own(sides: Sides) -> None:
    sides.write_sql(STG, DOUBLED)
    run = subprocess.run(
        [sys.executable, "-c", COMMAND, "select", "--state", "state", "--output", "names"],
        cwd=sides.shell.folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no_negative_amount" in run.stdout.splitlines()
    assert run.stderr.count("\n") == 1  # no results of tests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "names", "--format", "json"), "--output and --format"),
        (("--format", "yaml"), "Invalid value for '--format'"),
        (("--stat", "x"), "No such option '--stat'"),
    ],
)
def test_options_that_make_no_sense(sides: Sides, arguments: tuple[str, ...], message: str) -> None:
    assert message in sides.refused("select", *arguments)


def test_what_is_so_at_every_run_is_said_only_when_asked(sides: Sides) -> None:
    """Without a catalog.json types are not compared: a note that nobody reads a second time."""
    sides.write_sql(STG, f"{FROM_RAW} where amount > 0")
    for side in ("target", "state"):
        (sides.shell.folder / side / "catalog.json").unlink()
    quiet, detailed = (sides("gate", *more) for more in ((), ("-v",)))
    assert quiet.out == detailed.out
    assert "no catalog.json" not in quiet.err
    assert "base and head have no catalog.json" in detailed.err


def test_a_long_list_is_counted_and_nothing_untouched_is_listed() -> None:
    selection = Selection(
        models=[f"model.shop.m{number}" for number in range(139)],
        opaque=[Opaque(unique_id=u, reason=Code.PYTHON_MODEL()) for u in ("model.shop.m1", "x")],
    )
    project = Project(target_path="", metadata=Metadata(), nodes={}, parents={}, children={})
    lines = [*selection_lines(selection, project)]
    (built,) = (line for line in lines if line.startswith("to build"))
    assert built.count("model.shop.") == 25
    assert built.endswith(" and 114 more (--output names has them all)")
    assert lines[-2:] == [
        "not analysed, so each counts as depending on all that it reads:",
        "  model.shop.m1: a Python model",
    ]
