"""The nodes of the package dbt_ripple are in no answer about a project, unless the project reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt_ripple.artifacts import Project, masking_functions, read_project

SOURCE = "source.dbt_ripple.ripple_raw.nodes"
OWN = (
    "model.dbt_ripple.ripple_dim_nodes",
    "model.dbt_ripple.ripple_pii_columns",
    "test.dbt_ripple.whole",
)


def written(folder: Path, *, reads: bool = False, name: str = "shop") -> Project:
    def entry(unique_id: str, *parents: str, **more: Any) -> dict[str, Any]:
        kind, package, *rest = unique_id.split(".")
        return {
            "unique_id": unique_id,
            "resource_type": kind,
            "package_name": package,
            "name": rest[-1],
            "depends_on": {"nodes": list(parents)},
            "config": {"materialized": "view"},
            **more,
        }

    nodes = [
        entry("model.shop.orders"),
        entry("model.shop.report", OWN[0] if reads else "model.shop.orders"),
        entry(OWN[0], SOURCE),
        entry(OWN[1], OWN[0], config={"meta": {"masking_functions": ["veil"]}}),
        entry(OWN[2], OWN[1]),
    ]
    manifest = {
        "metadata": {
            "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
            "project_name": name,
            "adapter_type": "spark",
        },
        "nodes": {node["unique_id"]: node for node in nodes},
        "sources": {SOURCE: entry(SOURCE, source_name="ripple_raw")},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return read_project(folder)


def test_they_are_hidden_and_still_say_what_the_project_set(tmp_path: Path) -> None:
    project = written(tmp_path)
    assert set(project.nodes) == {"model.shop.orders", "model.shop.report"}
    assert set(project.hidden) == {*OWN, SOURCE}
    assert project.children["model.shop.orders"] == ["model.shop.report"]
    assert masking_functions(project) == {"veil"}
    assert project.notes == []


def test_what_the_project_reads_is_part_of_it(tmp_path: Path) -> None:
    project = written(tmp_path, reads=True)
    assert {OWN[0], SOURCE} <= set(project.nodes)
    assert set(project.hidden) == {OWN[1], OWN[2]}


def test_they_are_shown_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written(tmp_path, name="dbt_ripple").hidden == {}
    monkeypatch.setenv("DBT_RIPPLE_OWN_NODES", "1")
    assert set(OWN) <= set(written(tmp_path).nodes)
