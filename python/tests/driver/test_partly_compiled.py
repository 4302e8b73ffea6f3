"""A manifest of which dbt has compiled a part: no command answers by what is missing in it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_run_tests import DOUBLED, ripple
from tiny_project import dbt, write

pytestmark = pytest.mark.slow

Ripple = Callable[..., tuple[int, str, str]]
# One of its tests fails, so that dbt skips what is below.
OTHER_STATUS = "select id as order_id, customer, amount, status || '?' as status from {{ ref('raw_orders') }}\n"
NO_PROFILE = "tiny: {}\n"
TRACE = ("trace", "raw_orders.amount")


@pytest.fixture
def asked(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ripple:
    monkeypatch.setenv("DBT_RIPPLE_CACHE_DIR", str(tiny.parent / "cache"))
    return lambda *arguments: ripple(monkeypatch, capsys, *arguments)


def test_a_build_that_failed_blames_only_what_was_edited(tiny: Path, asked: Ripple) -> None:
    write(tiny, {"models/stg_orders.sql": OTHER_STATUS})
    assert not dbt(tiny, "build", "--target", "prod")
    (tiny / "profiles.yml").write_text(NO_PROFILE)  # base says all that is missing
    about = ("fct_customers.total", "--state", "../state", "--format", "json")
    code, out, err = asked("incident", *about)
    assert code == 0, err
    answer = json.loads(out)
    # The edit of status is not on the way to total, whose own test was skipped, not changed.
    assert [(s["name"], s["kind"]) for s in answer["suspects"]] == [("stg_orders", "failure")]
    assert "cannot be analysed" not in out
    code, out, err = asked("diagnose", *about)
    assert [s["changes"] for s in json.loads(out)["steps"] if s["changes"]] == []


def test_a_report_counts_no_change_in_what_a_failed_build_skipped(
    tiny: Path, asked: Ripple
) -> None:
    assert dbt(tiny, "build", "--target", "prod")
    shutil.copytree(tiny / "target", tiny.parent / "history" / "1")
    write(tiny, {"models/stg_orders.sql": OTHER_STATUS})
    assert not dbt(tiny, "build", "--target", "prod")
    week = json.loads(
        asked("report", "--history", "../history", "--weeks", "1", "--format", "json")[1]
    )
    skipped = json.loads(json.dumps(week))
    assert dbt(tiny, "compile", "--target", "prod")
    whole = json.loads(
        asked("report", "--history", "../history", "--weeks", "1", "--format", "json")[1]
    )
    assert skipped["weeks"][0]["median_blast_radius"] == whole["weeks"][0]["median_blast_radius"]


@pytest.mark.parametrize(
    "command",
    [TRACE, ("diagnose", "fct_customers.total"), ("impact", "raw_orders", "--drop", "amount")],
)
def test_a_run_of_one_model_is_completed_by_dbt_or_by_what_was_complete_before(
    tiny: Path, asked: Ripple, command: tuple[str, ...]
) -> None:
    assert dbt(tiny, "build", "--target", "prod")
    whole = _answer(asked(*command))
    assert dbt(tiny, "run", "--target", "prod", "--select", "inc_orders")
    (tiny / "profiles.yml").rename(tiny / "kept.yml")
    # pivoted and inc_orders ask the warehouse, but not for what their code is.
    assert _answer(asked(*command)) == whole
    shutil.rmtree(tiny.parent / "cache")
    code, out, err = asked(*command)
    assert (code, out) == (2, "")
    assert err.startswith("dbt-ripple: target/manifest.json: ")
    assert "of a project of 5 models not compiled (" in err and "--partial" in err
    code, out, err = asked(*command, "--partial")
    assert code in (0, 1) and out
    assert "they may read anything" in err.partition("\n")[0]
    (tiny / "kept.yml").rename(tiny / "profiles.yml")
    assert _answer(asked(*command)) == whole


def test_what_dbt_compiles_now_is_not_taken_for_an_older_manifest(
    tiny: Path, asked: Ripple
) -> None:
    assert dbt(tiny, "run", "--target", "prod", "--select", "inc_orders")
    write(tiny, {"models/stg_orders.sql": OTHER_STATUS})
    code, out, err = asked(*TRACE)
    assert (code, out) == (2, "")
    assert "stg_orders is not as it was then" in err


def test_an_edit_that_dbt_has_not_seen_is_parsed_and_compiled(tiny: Path, asked: Ripple) -> None:
    assert dbt(tiny, "build", "--target", "prod")
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    long_ago = tiny / "models" / "stg_orders.sql"
    os.utime(long_ago, (1, 1))  # as an archive or a sync leaves it: no clock tells
    select = ("select", "--state", "../state", "--format", "json")
    code, out, err = asked(*select)
    assert code == 0, err
    answer = json.loads(out)
    assert dbt(tiny, "compile", "--target", "prod")
    assert json.loads(asked(*select)[1])["tests"] == answer["tests"] != []
    long_ago.write_text(long_ago.read_text() + " -- again")
    (tiny / "profiles.yml").write_text(NO_PROFILE)
    code, out, err = asked(*select)
    assert (code, out) == (2, "")
    assert "stg_orders.sql is not as dbt has read it, and dbt cannot parse it here" in err


def test_a_checkout_without_artifacts_is_parsed_and_compiled(tiny: Path, asked: Ripple) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    select = ("select", "--state", "../state", "--format", "json")
    assert dbt(tiny, "compile", "--target", "prod")
    compiled = json.loads(asked(*select)[1])
    shutil.rmtree(tiny / "target")
    code, out, err = asked(*select)
    assert code == 0, err
    assert json.loads(out)["tests"] == compiled["tests"] != []
    code, out, err = asked(*select, "--target-path", "target")
    assert (code, out) == (2, ""), "a folder that is named has to be there"
    assert "--target-path target: no such folder" in err
    (tiny / "profiles.yml").write_text(NO_PROFILE)
    code, out, err = asked(*select)
    assert (code, out) == (2, "")
    assert "has no manifest.json, and dbt cannot parse the project here" in err
    assert "; mend that and try again" in err


def test_a_checkout_younger_than_its_artifacts_is_no_edit(tiny: Path, asked: Ripple) -> None:
    shutil.copytree(tiny.parent / "state", tiny / "target", dirs_exist_ok=True)
    (tiny / "profiles.yml").write_text(NO_PROFILE)
    later = time.time() + 3600
    for file in tiny.rglob("*.*"):
        os.utime(file, (later, later))
    code, out, err = asked("select", "--state", "../state")
    assert (code, out.startswith("nothing changed")) == (0, True), err
    # Each kind of file counts, by what dbt keeps of it.
    for name in (
        "models/models.yml",
        "dbt_project.yml",
        "macros/macros.sql",
        "seeds/raw_orders.csv",
    ):
        file = tiny / name
        kept = file.read_text()
        file.write_text(kept + "\n# another line\n")
        code, out, err = asked("select", "--state", "../state")
        assert (code, out) == (2, ""), name
        assert f"{name} is not as dbt has read it" in err
        file.write_text(kept)


def _answer(ran: tuple[int, str, str]) -> tuple[int, str]:
    code, out, err = ran
    assert code in (0, 1), err
    lines = [line for line in out.splitlines() if "last run" not in line and "guarded" not in line]
    return code, "\n".join(lines)
