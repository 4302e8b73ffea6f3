"""From the good twin to the bad one: the broken promises are those that the gate finds."""

from __future__ import annotations

import csv
import os
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, loaded, rows
from twin_project import TWIN, build

from dbt_ripple.artifacts import read_project

pytestmark = pytest.mark.slow


def test_contract_violations_of_the_bad_twin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("DBT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    package = duck_project.make(tmp_path, {})
    dbt(package, "run", "--select", "ripple_dim_snapshots")
    good, bad = (read_project(build(side, tmp_path) / "target") for side in ("good", "bad"))
    assert good.metadata.generated_at is not None
    bad.metadata.generated_at = good.metadata.generated_at + timedelta(hours=1)
    loaded(package, good, "good")
    dbt(package, "run", "--select", "package:dbt_ripple")
    query = "select violation, unique_id, column_name from dev_ripple.ripple_contract_violations order by 1"
    assert rows(package, query) == []
    loaded(package, bad, "bad")
    dbt(package, "run", "--select", "package:dbt_ripple")
    with (TWIN / "expected" / "gate_findings.csv").open(newline="") as file:
        expected = sorted(
            (row["rule"], row["unique_id"], row["column_name"])
            for row in csv.DictReader(file)
            if row["rule"].startswith("column_")
        )
    assert len(expected) == 4
    assert rows(package, query) == expected
