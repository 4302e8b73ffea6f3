"""`select --run --cutoff` with a real dbt on DuckDB: what comes out equal stops the ripple."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_run_tests import relations, ripple
from tiny_project import dbt, write

pytestmark = pytest.mark.slow

AMOUNT = (
    "select id as order_id, customer, {amount} as amount, status from {{{{ ref('raw_orders') }}}}"
)
SAME = AMOUNT.format(amount="case when amount > 100 then amount * 2 else amount end")
ONE_ROW = AMOUNT.format(amount="case when id = 1 then 11 else amount end")

Patch = pytest.MonkeyPatch
Captured = pytest.CaptureFixture[str]


def run(
    tiny: Path, monkeypatch: Patch, capsys: Captured, *more: str, code: int = 0
) -> tuple[dict[str, Any], str]:
    assert dbt(tiny, "parse")
    said, out, err = ripple(
        monkeypatch,
        capsys,
        *("select", "--state", "../state", "--format", "json", "--run", "--cutoff", *more),
    )
    assert said == code, err
    return json.loads(out), err


def names(listed: list[dict[str, Any]]) -> set[str]:
    return {one.get("name") or one["unique_id"].split(".")[2] for one in listed}


def test_what_comes_out_equal_stops_what_only_reads_that(
    tiny: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    write(tiny, {"models/stg_orders.sql": SAME})
    said, _ = run(tiny, monkeypatch, capsys)
    cut = said["cutoff"]
    assert names(said["tests"]) == {"not_null_fct_customers_total", "not_null_big_orders_amount"}
    assert cut["tests"] == []
    assert names(cut["stopped"]) == names(said["tests"])
    assert all(test["equal"] == ["model.tiny.stg_orders"] for test in cut["stopped"])
    # `pivoted` looks at the warehouse while it compiles: it is built whatever comes out.
    assert {u.split(".")[2] for u in cut["built"]} == {"stg_orders", "pivoted"}
    assert names(cut["stopped_models"]) == {"big_orders", "fct_customers"}
    there = relations(tiny)
    assert there["dev"] == {"stg_orders", "pivoted"}
    assert not [schema for schema in there if "__ripple_base" in schema]
    results = json.loads((tiny / "target" / "run_results.json").read_text())["results"]
    built = {r["unique_id"] for r in results if not r["unique_id"].startswith("operation.")}
    assert built == set(cut["built"])


def test_what_comes_out_otherwise_goes_on(tiny: Path, monkeypatch: Patch, capsys: Captured) -> None:
    write(tiny, {"models/stg_orders.sql": ONE_ROW})
    said, _ = run(tiny, monkeypatch, capsys)
    cut = said["cutoff"]
    assert names(cut["tests"]) == {"not_null_fct_customers_total", "not_null_big_orders_amount"}
    assert {test["rests_on"] for test in cut["tests"]} == {"seen to differ"}
    assert cut["stopped"] == []
    assert "fct_customers" in relations(tiny)["dev"]
