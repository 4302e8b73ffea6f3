"""`--state`: what cannot be compared is refused in one line, and never an empty answer."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest
from cli_shell import FIXTURE, Shell
from two_sides import FROM_RAW, STG, Sides

PROJECT = FIXTURE.parents[1] / "project"
COMMANDS = (("select",), ("diff",), ("explain", "unique_stg_orders_order_id"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_is_missing_is_reported_with_what_makes_it(
    shell: Shell, command: tuple[str, ...]
) -> None:
    (shell.folder / "empty").mkdir()
    for state, message in (
        ((), "--state: nothing to compare with"),
        (("--state", "nowhere"), "--state nowhere: no such folder"),
        (("--state", "empty"), "--state empty: no manifest.json in this folder"),
        (("--state", "target/manifest.json"), "not a folder"),
        (("--state", "target"), "target: is the project's own target folder"),
    ):
        error = shell.refused(*command, *state)
        assert message in error, state
        assert "`dbt build`" in error and "--base-ref" in error


def test_state_may_come_from_dbts_variable(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    sides.write_sql(STG, f"{FROM_RAW} where amount > 0")
    monkeypatch.setenv("DBT_STATE", "state")
    assert sides.shell("select").out == sides("select").out != ""


def test_a_folder_that_is_no_project_is_said_to_be_none(sides: Sides) -> None:
    elsewhere = sides.shell.folder / "elsewhere"
    elsewhere.mkdir()
    error = sides.refused("select", "--project-dir", str(elsewhere))
    assert "no dbt_project.yml and no artifacts in this folder" in error
    assert "--project-dir" in error
    (elsewhere / "dbt_project.yml").write_text("name: shop\n")
    assert "run `dbt docs generate`" in sides.refused("select", "--project-dir", str(elsewhere))


def test_artifacts_that_are_no_json_or_of_another_project(sides: Sides) -> None:
    manifest = sides.shell.folder / "state" / "manifest.json"
    kept = manifest.read_text()
    manifest.write_text(kept[:1000])
    assert "manifest.json" in sides.refused("select")
    manifest.write_text(kept.replace('"project_name": "shop"', '"project_name": "store"'))
    error = sides.refused("select")
    assert "store" in error and "shop" in error


def test_a_base_that_was_not_compiled_is_refused_and_a_part_of_it_said(sides: Sides) -> None:
    sides.write_sql(STG, f"{FROM_RAW} where amount > 0")
    sides.edit(
        lambda manifest: manifest["nodes"]["model.shop.time_spine"].update(compiled_code=None),
        "state/manifest.json",
    )
    done = sides("select", "--no-facts")
    assert done.code == 0
    assert "1 model of 5 on base not compiled (time_spine), taken as changed" in done.err
    sides.parsed_only("state")
    error = sides.refused("select")
    assert "dbt has parsed base but not compiled it: none of its 5 SQL models" in error


def test_of_a_head_that_was_only_parsed_what_is_the_same_is_taken_over(sides: Sides) -> None:
    sides.write_sql(STG, f"{FROM_RAW} where amount > 0")
    sides.parsed_only()
    done = sides("select", "--no-facts", "--format", "json")
    assert done.code == 0
    assert "1 node of head is not compiled, and dbt cannot compile here (" in done.err
    assert "it counts as changed; compile by `dbt compile --select shop.stg_orders`" in done.err
    opaque = {node["unique_id"]: node["reason"] for node in done.json["opaque"]}
    assert opaque[STG].startswith("on head: not compiled: run `dbt compile`")
    # It counts as changed, and everything that reads it.
    assert done.json["counts"]["impacted_tests"] == 2


def test_a_head_that_is_older_than_its_files_is_refused(sides: Sides) -> None:
    folder = sides.shell.folder
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    manifest = json.loads((folder / "target" / "manifest.json").read_text())
    python = manifest["nodes"]["model.shop.py_model"]  # the project's file was formatted since
    (folder / python["original_file_path"]).write_text(python["raw_code"])
    later = time.time() + 3600
    model = folder / "models" / "stg_orders.sql"
    for file in folder.rglob("*.*"):
        os.utime(file, (1, 1))
    # A checkout touches files: what dbt has read is not newer.
    os.utime(model, (later, later))
    assert sides("select").code == 0
    (folder / "profiles.yml").write_text("{}\n")  # dbt, which would parse it anew, cannot
    model.write_text("select 1 as another")
    os.utime(model, (later, later))
    error = sides.refused("select")
    assert "is older than the project: models/stg_orders.sql is not as dbt has read it" in error
    assert "on the whole project again" in error
    model.unlink()
    assert "is older than the project: models/stg_orders.sql is gone" in sides.refused("select")
