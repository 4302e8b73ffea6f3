"""`Project.at`: the project of a commit, as a base and by itself; and `check_sql`, which writes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_project

from dbt_ripple import DbtOptions, Project, RippleError

pytestmark = pytest.mark.slow

FILTERED = tiny_project.FILES["models/stg_orders.sql"].rstrip() + " where amount > 0\n"


PROD = DbtOptions(target="prod")


def said(*command: str) -> object:
    done = subprocess.run(
        [sys.executable, "-m", "dbt_ripple", *command, "--target", "prod", "--format", "json"],
        capture_output=True,
    )
    return json.loads(done.stdout)


def test_a_commit_is_a_base(tiny: Path) -> None:
    (tiny / "models" / "stg_orders.sql").write_text(FILTERED)
    project = Project.load(tiny, now=False, dbt=PROD)
    chosen = project.select(Project.at("main", tiny, dbt=PROD))
    assert chosen.document() == said("select", "--base-ref", "main")
    assert {test.name for test in chosen} and chosen.models
    assert project.gate(Project.at("main", tiny, dbt=PROD)).document() == said(
        "gate", "--base-ref", "main"
    )
    why = chosen.why(chosen.tests[0])
    assert why.document() == said("explain", chosen.tests[0].unique_id, "--base-ref", "main")


def test_a_commit_is_asked_by_itself(tiny: Path) -> None:
    (tiny / "models" / "stg_orders.sql").write_text("select 1 as order_id")
    then = Project.at("main", tiny, dbt=PROD)
    above = then["stg_orders.order_id"].upstream()
    assert ("raw_orders", "id") in {(one.name, one.column) for one in above}
    assert then["fct_customers.total"].readers()


def test_a_commit_that_is_not_there(tiny: Path) -> None:
    with pytest.raises(RippleError, match="git knows no commit 'nope'"):
        Project.at("nope", tiny).trace("stg_orders")


def test_an_edit_that_is_not_saved(tiny: Path) -> None:
    assert tiny_project.dbt(tiny, "compile", "--target", "prod")
    file = tiny / "models" / "stg_orders.sql"
    before = {
        path: path.read_bytes()
        for path in tiny.rglob("*")
        if path.is_file() and ".git/" not in str(path)
    }
    project = Project.load(tiny, dbt=PROD)
    renamed = file.read_text().replace("status from", "status as state from")
    checked = project.check_sql("stg_orders", renamed)
    assert checked.decision == "BLOCKED" and "state" in {one.column for one in checked}
    assert any("inc_orders" in unique_id for unique_id in checked.broken)
    same = project.check_sql("stg_orders", file.read_text().replace("select id", "select  id"))
    assert (same.decision, list(same), dict(same.broken)) == ("APPROVED", [], {})
    after = {
        path: path.read_bytes()
        for path in tiny.rglob("*")
        if path.is_file() and ".git/" not in str(path)
    }
    assert {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)} <= {
        path for path in after if "logs" in path.parts
    }
    with pytest.raises(RippleError, match="correct the text"):
        project.check_sql("stg_orders", "select * from {{ ref('nope') }}")
