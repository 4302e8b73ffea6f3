"""A game day: a contract is broken on purpose, and the tables tell what happened and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, loaded, rows, statuses

from dbt_ripple.artifacts import read_project

pytestmark = pytest.mark.slow

STG = "{{ config(materialized='table') }} select 1 as id, 10 as amount, 'new' as status"
FILES = {
    "models/stg.sql": STG,
    "models/fct.sql": "select id, amount from {{ ref('stg') }}",
    "models/models.yml": """
models:
  - name: fct
    access: public
    config: {materialized: table, contract: {enforced: true}, meta: {owner: ann}}
    columns:
      - {name: id, data_type: integer}
      - {name: amount, data_type: integer, data_tests: [not_null]}
""",
}
OURS = ("build", "--exclude", "package:dbt_ripple")
INCIDENT = (
    "select name, state, owner, failed_runs, cause_unique_id, cause_column, cause_git_sha"
    " from dev_ripple.ripple_incidents"
)


def test_a_broken_contract_opens_an_incident_that_names_its_cause_and_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("DBT_", "GITHUB_SHA", "CI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    folder = duck_project.make(tmp_path, FILES)

    def day(git_sha: str, stg: str) -> dict[str, str]:
        """A commit is deployed and built; then its lineage is loaded and the models are built."""
        (folder / "models" / "stg.sql").write_text(stg)
        status_of = statuses(dbt(folder, *OURS))
        deployed = read_project(folder / "target")
        if git_sha == "a":
            dbt(folder, "build", "--select", "package:dbt_ripple")  # makes the tables
        loaded(folder, deployed, git_sha)
        dbt(folder, "build", "--select", "package:dbt_ripple")
        return status_of

    fine = {"stg": "success", "fct": "success", "not_null_fct_amount": "pass"}
    assert day("a", STG) == fine
    assert rows(folder, INCIDENT) == []
    # Amounts become text, and a status nobody downstream reads is written otherwise.
    broken = STG.replace("10 as amount, 'new'", "'10' as amount, 'NEW'")
    refused = {"stg": "success", "fct": "error", "not_null_fct_amount": "skipped"}
    assert day("b", broken) == refused
    assert rows(folder, INCIDENT) == [("fct", "open", "ann", 1, "model.duck.stg", "amount", "b")]
    violations = (
        "select violation, name, column_name from dev_ripple.ripple_contract_violations where {}"
    )
    assert ("contract_refused", "fct", "*") in rows(folder, violations.format("is_latest"))
    assert day("c", STG) == fine
    assert rows(folder, INCIDENT) == [("fct", "closed", "ann", 1, "model.duck.stg", "amount", "b")]
    assert ("contract_refused", "fct", "*") not in rows(folder, violations.format("is_latest"))
    ((failed_at, built_at),) = rows(
        folder,
        "select max(completed_at) filter (status = 'error'),"
        " max(completed_at) filter (status = 'success')"
        " from dev_ripple_raw.run_history where name = 'fct'",
    )
    ((opened_at, closed_at, seconds, mttr),) = rows(
        folder,
        "select opened_at, closed_at, seconds_to_recovery, mttr_minutes"
        " from dev_ripple.ripple_incidents join dev_ripple.ripple_lineage_kpis"
        " on week = date_trunc('week', closed_at)",
    )
    assert (opened_at, closed_at) == (failed_at, built_at)
    assert abs(seconds - (built_at - failed_at).total_seconds()) <= 1
    assert mttr == pytest.approx(seconds / 60)
