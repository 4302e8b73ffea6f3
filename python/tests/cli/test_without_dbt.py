"""`register`, `capture`, `trace` and `impact` in a folder that has assets and no dbt project."""

from __future__ import annotations

import shutil

import pytest
from cli_shell import Shell

DAILY = "insert into orders_daily select day, sum(amount) as total from orders group by day"


@pytest.fixture
def alone(shell: Shell) -> Shell:
    shutil.rmtree(shell.folder / "target")
    return shell


@pytest.fixture
def pipeline(alone: Shell) -> Shell:
    ids = ("airflow:load", "table:raw_orders", "job:clean", "table:orders", "model:churn")
    assert alone("register", *ids, "--pipeline", "churn").code == 0
    assert alone("capture", "--sql", DAILY).code == 0
    return alone


def test_assets_are_registered_captured_and_traced(pipeline: Shell) -> None:
    tree = pipeline("trace", "raw_orders").out
    assert [line.strip("└├─│ ") for line in tree.splitlines()] == [
        *("TABLE raw_orders", "JOB clean", "TABLE orders"),
        *("JOB orders_daily", "TABLE orders_daily", "ML_MODEL churn"),
    ]
    assert "ML_MODEL churn (rows)  may read" in pipeline("trace", "orders.amount").out
    assert "ML_MODEL" not in pipeline("trace", "table:orders_daily.total").out


def test_impact_says_who_reads_and_who_may(pipeline: Shell) -> None:
    report = pipeline("impact", "orders", "--drop", "amount", "--format", "json")
    assert (report.code, report.json["decision"]) == (1, "BLOCKED")
    affected = {one["name"]: one for one in report.json["affected_assets"]}
    assert affected["churn"]["severity"] == "warning"
    assert {one["severity"] for name, one in affected.items() if name == "orders_daily"} == {
        "breaking"
    }
    unknown = pipeline.refused("impact", "orders", "--drop", "foo")
    assert "orders has no column 'foo'; it has day, amount" in unknown


def test_a_wrong_name_is_refused(pipeline: Shell) -> None:
    assert pipeline.refused("trace", "ordrs") == (
        "dbt-ripple: ordrs: no asset of this name, and there is no dbt project here; did you mean orders or"
        " raw_orders or table:orders?\n"
    )


def test_without_an_asset_there_is_nothing_to_trace(alone: Shell) -> None:
    assert "target: no such folder" in alone.refused("trace", "orders")
    assert "target: no such folder" in alone.refused("impact", "orders", "--drop", "a")


def test_a_dbt_project_that_is_not_compiled_is_said(pipeline: Shell) -> None:
    (pipeline.folder / "dbt_project.yml").write_text("name: shop\n")
    assert "target: no such folder" in pipeline.refused("trace", "raw_orders")
    assert "target: no such folder" in pipeline.refused("register", "job:x")


def test_who_names_artifacts_has_some(pipeline: Shell) -> None:
    assert "elsewhere" in pipeline.refused("trace", "orders", "--target-path", "elsewhere")
