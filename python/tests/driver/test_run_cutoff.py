"""`select --run --cutoff` with a real dbt on DuckDB: what comes out equal stops the ripple."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_run_tests import relations, ripple
from tiny_project import dbt, write

from dbt_ripple.dbt_runner.run_cutoff import check_adapter
from dbt_ripple.errors import RippleError

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
    exit_code, out, err = ripple(
        monkeypatch,
        capsys,
        *("select", "--state", "../state", "--format", "json", "--run", "--cutoff", *more),
    )
    assert exit_code == code, err
    return json.loads(out), err


def names(listed: list[dict[str, Any]]) -> set[str]:
    return {one.get("name") or one["unique_id"].split(".")[2] for one in listed}


def test_what_comes_out_equal_stops_what_only_reads_that(
    tiny: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    write(tiny, {"models/stg_orders.sql": SAME})
    output, _ = run(tiny, monkeypatch, capsys)
    cut = output["cutoff"]
    assert names(output["tests"]) == {"not_null_fct_customers_total", "not_null_big_orders_amount"}
    assert cut["tests"] == []
    assert names(cut["stopped"]) == names(output["tests"])
    # Without a catalog the sum of `fct_customers` may be of floats: it sees the order of a view's rows.
    assert {test["name"]: test["equal"] for test in cut["stopped"]} == {
        "not_null_fct_customers_total": ["model.tiny.fct_customers"],
        "not_null_big_orders_amount": ["model.tiny.stg_orders"],
    }
    # `pivoted` queries the warehouse while it compiles: it is built whatever comes out.
    assert {u.split(".")[2] for u in cut["built"]} == {"stg_orders", "pivoted", "fct_customers"}
    assert names(cut["stopped_models"]) == {"big_orders"}
    there = relations(tiny)
    assert there["dev"] == {"stg_orders", "pivoted", "fct_customers"}
    assert not [schema for schema in there if "__ripple_base" in schema]
    results = json.loads((tiny / "target" / "run_results.json").read_text())["results"]
    built = {r["unique_id"] for r in results if not r["unique_id"].startswith("operation.")}
    assert built == set(cut["built"])


def test_what_comes_out_otherwise_goes_on(tiny: Path, monkeypatch: Patch, capsys: Captured) -> None:
    write(tiny, {"models/stg_orders.sql": ONE_ROW})
    output, _ = run(tiny, monkeypatch, capsys)
    cut = output["cutoff"]
    assert names(cut["tests"]) == {"not_null_fct_customers_total", "not_null_big_orders_amount"}
    assert {test["rests_on"] for test in cut["tests"]} == {"seen to differ"}
    assert cut["stopped"] == []
    assert "fct_customers" in relations(tiny)["dev"]


def test_a_failing_model_leaves_what_is_below_and_is_exit_code_1(
    tiny: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    write(tiny, {"models/stg_orders.sql": AMOUNT.format(amount="no_such_function(amount)")})
    output, _ = run(tiny, monkeypatch, capsys, code=1)
    cut = output["cutoff"]
    assert set(cut["built"]) == {"model.tiny.stg_orders"}
    assert cut["tests"] == cut["stopped"] == []
    assert "model.tiny.fct_customers" in cut["skipped"]


def test_a_failing_test_is_exit_code_1(tiny: Path, monkeypatch: Patch, capsys: Captured) -> None:
    write(tiny, {"models/stg_orders.sql": AMOUNT.format(amount="nullif(amount, 20)")})
    output, _ = run(tiny, monkeypatch, capsys, code=1)
    assert "not_null_big_orders_amount" not in names(output["cutoff"]["stopped"])


def test_base_is_built_beside_also_below_what_changed(
    tiny: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    # What base has in `prod` is of older data: only the same inputs count.
    write(
        tiny,
        {
            "models/stg_orders.sql": AMOUNT.format(amount="amount + 0 * id").replace(
                "status from", "upper(status) as status from"
            ),
        },
    )
    output, _ = run(tiny, monkeypatch, capsys, "--no-facts", code=1)
    cut = output["cutoff"]
    assert "model.tiny.big_orders" in {m["unique_id"] for m in cut["stopped_models"]}
    assert "accepted_values_stg_orders_status__new__paid" in names(cut["tests"])


def test_run_is_select_run_cutoff(tiny: Path, monkeypatch: Patch, capsys: Captured) -> None:
    write(tiny, {"models/stg_orders.sql": SAME})
    code, out, err = ripple(monkeypatch, capsys, "run", "--base-ref", "main", "--target", "prod")
    assert code == 0, err
    assert out.startswith("0 of 7 tests ran, ")
    assert "did not run:" in out
    assert not [schema for schema in relations(tiny) if "__ripple_base" in schema]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cutoff"], "--cutoff looks at what is built: give --run, too"),
        (["--cutoff-base", "state"], "--cutoff-base says what --cutoff compares with"),
        (["--run", "--cutoff", "--full"], "and --full does not compute them"),
        (["--run", "--cutoff", "--output", "names"], "with --cutoff that is known only afterwards"),
        (["--run", "--cutoff", "--cutoff-base", "x"], "'x' is not one of 'beside', 'state'"),
    ],
)
def test_what_says_nothing_together_is_refused(
    options: list[str], message: str, monkeypatch: Patch, capsys: Captured
) -> None:
    code, out, err = ripple(monkeypatch, capsys, "select", "--state", "x", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_an_adapter_that_cannot_be_hashed_is_refused() -> None:
    with pytest.raises(RippleError, match="relations of adapter oracle cannot be hashed"):
        check_adapter("oracle")
