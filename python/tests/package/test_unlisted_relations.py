"""What somebody made past dbt, in the schemas of the project, is counted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from duck_project import dbt, rows

pytestmark = pytest.mark.slow


def test_relations_that_no_node_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DBT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    model = {"models/known.sql": "{{ config(materialized='table') }} select 1 as id"}
    folder = duck_project.make(tmp_path, model)
    query = (
        "select schema_name, relation_name, relation_type from dev_ripple.ripple_unlisted_relations"
    )
    dbt(folder, "run", "--select", "known", "ripple_unlisted_relations")
    assert rows(folder, query) == []
    rows(folder, "create table dev.by_hand as select 1 as id")
    rows(folder, "create schema elsewhere; create table elsewhere.theirs as select 1 as id")
    dbt(folder, "run", "--select", "ripple_unlisted_relations")
    assert rows(folder, query) == [("dev", "by_hand", "table")]
