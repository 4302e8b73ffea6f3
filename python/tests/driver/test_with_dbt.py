"""What `select`, `explain` and `diff` ask of a real dbt: its selection grammar, and commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_run_tests import DOUBLED, listed, ripple
from tiny_project import dbt, git, write

from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions

pytestmark = pytest.mark.slow
AT_STATE = ("--state", "../state")


@pytest.fixture
def doubled(tiny: Path) -> Path:
    """The project with one expression edited, and of it compiled what `select` asks for."""
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    moved = ("stg_orders", "big_orders", "pivoted")
    assert dbt(tiny, "compile", "--target", "prod", "--select", *moved)
    return tiny


def test_select_and_exclude_are_dbts_own_and_only_narrow(
    doubled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def names(*arguments: str) -> tuple[list[str], str]:
        asked = ("select", *AT_STATE, "--output", "names", *arguments)
        code, out, err = ripple(monkeypatch, capsys, *asked)
        assert code == 0
        messages = err.splitlines(keepends=True)
        return out.split(), "".join(t for t in messages if "base has no catalog.json" not in t)

    whole, err = names()
    total, amount = "not_null_fct_customers_total", "not_null_big_orders_amount"
    assert set(whole) == {
        *("stg_orders", "big_orders", "fct_customers", "pivoted", total, amount),
    }
    assert err == ""
    assert names("--select", "fct_customers") == (["fct_customers", total], "")
    assert names("--select", "big_orders fct_customers", "--exclude", "test_type:data") == (
        ["big_orders", "fct_customers"],
        "",
    )
    assert set(names("--exclude", "big_orders")[0]) == set(whole) - {"big_orders", amount}
    assert set(names("--select", "state:modified+")[0]) == set(whole)
    # What dbt called empty is said: it may be a typo.
    assert names("--select", "fct_costumers") == (
        [],
        "dbt-ripple: dbt itself selects nothing by `--select fct_costumers`\n",
    )
    # dbt ls leaves manifest.json without compiled SQL: it is not let near it.
    assert names()[0] == whole

    asked = ("select", *AT_STATE, "--select", "no_such_method:x")
    code, out, err = ripple(monkeypatch, capsys, *asked)
    assert (code, out) == (2, "")
    assert "'no_such_method' is not a valid method name" in err.splitlines()[-1]


def test_the_selector_is_written_and_named(
    doubled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("select", *AT_STATE)
    code, out, _ = ripple(monkeypatch, capsys, *asked, "--output", "selector")
    assert (code, out) == (0, "dbt_ripple\n")
    _, text, _ = ripple(monkeypatch, capsys, *asked, "--format", "json", "--no-facts")
    document = json.loads(text)
    assert listed(doubled, capsys) == {
        *document["models"],
        *(test["unique_id"] for test in document["tests"]),
    }


def test_explain_and_diff_between_two_commits(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    since_main = ("--base-ref", "main", "--target", "prod")
    code, out, err = ripple(monkeypatch, capsys, "diff", *since_main)
    assert code == 0, err
    assert out == (
        "stg_orders (changed)\n  edited: stg_orders (models/stg_orders.sql:1)\n"
        "  amount: redefined\n    - amount\n    + amount * 2\n"
        "downstream: 5 columns of 3 nodes\n"
    )
    asked = ("explain", "not_null_fct_customers_total", *since_main)
    code, out, err = ripple(monkeypatch, capsys, *asked, "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    assert document["verdict"] == "selected"
    assert [step["unique_id"].split(".")[2] for step in document["path"]] == [
        *("stg_orders", "fct_customers", "not_null_fct_customers_total"),
    ]
    assert git(tiny, "worktree", "list").count("\n") == 0
    code, out, err = ripple(monkeypatch, capsys, "diff", "--base-ref", "no-such-branch")
    assert (code, out) == (2, "")
    assert "git knows no commit 'no-such-branch' here" in err and err.count("\n") == 1


def test_a_manifest_is_written_as_dbt_writes_it(tiny: Path) -> None:
    parsed = Dbt(tiny, tiny / "target", DbtOptions()).parse()
    written = (tiny / "target" / "manifest.json").read_text(encoding="utf-8")
    parsed.write(str(tiny / "target" / "by_dbt.json"))
    assert written == (tiny / "target" / "by_dbt.json").read_text(encoding="utf-8")
