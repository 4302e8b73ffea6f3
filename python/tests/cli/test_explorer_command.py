"""`dbt-ripple explorer` on the command line: what it writes, and what it says where it cannot."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import hostile_project
import pytest
from cli_shell import Shell
from hostile import PARTS
from two_sides import FROM_RAW, STG, Sides

from dbt_ripple.pages import explorer


def unpacked(page: Path) -> dict[str, Any]:
    data = re.search(r'id="data">([^<]*)<', page.read_text(encoding="utf-8"))
    assert data is not None
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(data.group(1))))
    return found


def states(document: dict[str, Any]) -> dict[str, str]:
    return {state["unique_id"]: state["state"] for state in document["compare"]["states"]}


def test_it_writes_one_page(shell: Shell) -> None:
    done = shell("explorer", "-o", "site/explorer.html")
    assert (done.code, done.out.split(":")[0]) == (0, "site/explorer.html")
    document = unpacked(shell.folder / "site" / "explorer.html")
    assert document["compare"] is None
    field = document["node_fields"].index("unique_id")
    assert STG in [document["texts"][node[field]] for node in document["nodes"]]
    again = shell("explorer", "-o", "again.html")
    assert again.code == 0
    first, second = shell.folder / "site" / "explorer.html", shell.folder / "again.html"
    assert first.read_bytes() == second.read_bytes()


def test_with_base_it_has_the_change_as_diff_and_select_say_it(sides: Sides) -> None:
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    assert sides("explorer").code == 0
    document = unpacked(sides.shell.folder / "explorer.html")
    found = states(document)
    differing = {node["unique_id"] for node in sides("diff", "--format", "json").json["nodes"]}
    selected = sides("select", "--format", "json").json
    assert found[STG] == "changed"
    assert differing | set(selected["exposures"]) == {
        unique_id for unique_id, state in found.items() if state != "stopped"
    }
    counts = document["compare"]["counts"]
    assert (counts["tests_to_run"], counts["tests"]) == (
        selected["counts"]["impacted_tests"],
        selected["counts"]["all_tests"],
    )
    assert counts["unit_tests_to_run"] == len(selected["unit_tests"])
    assert sides("select").out.startswith(f"{counts['tests_to_run']} of {counts['tests']} tests")
    to_run = {test for state in document["compare"]["states"] for test in state["run"]}
    assert to_run == {test["unique_id"] for test in selected["tests"]} | set(selected["unit_tests"])
    assert document["compare"]["base"] == "state"


def test_a_page_of_hostile_names_is_written(shell: Shell) -> None:
    for artifact in ("catalog.json", "run_results.json", "sources.json"):
        (shell.folder / "target" / artifact).unlink(missing_ok=True)
    for part in ("".join(PARTS[i : i + 8]) for i in range(0, len(PARTS), 8)):
        hostile_project.write(shell.folder, lambda name, part=part: f"{name}{part}")
        done = shell("explorer", "--state", "state")
        assert done.code == 0, (part, done.err)
        text = (shell.folder / "explorer.html").read_text(encoding="utf-8")
        assert text.lower().count("<script") == 2
        assert text.count("</style") == 1
        unpacked(shell.folder / "explorer.html")


def test_without_the_bundle_it_says_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(explorer.resources, "files", lambda package: tmp_path)
    error = shell.refused("explorer")
    assert "make explorer" in error
    assert not (shell.folder / "explorer.html").exists()


def test_a_page_that_cannot_be_written_is_reported(shell: Shell) -> None:
    (shell.folder / "taken").write_text("")
    assert "cannot be written" in shell.refused("explorer", "-o", "taken/explorer.html")


def test_the_lock_file_names_no_address() -> None:
    folder = Path(__file__).parents[2] / "explorer"
    lock = (folder / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "://" not in lock
    packages = json.loads(lock)["packages"]
    assert all("integrity" in package for name, package in packages.items() if name)


def test_what_is_so_at_every_run_is_said_on_the_page_and_if_asked_for(sides: Sides) -> None:
    def with_hook(manifest: dict[str, Any]) -> None:
        hook = {"sql": "insert into log select '{{ env_var(\"REGION\") }}'", "transaction": True}
        manifest["nodes"][STG]["config"]["post-hook"] = [hook]

    for side in ("state", "target"):
        sides.edit(with_hook, f"{side}/manifest.json")
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    quiet, asked = sides("explorer"), sides("explorer", "--verbose")
    (note,) = (
        note
        for note in unpacked(sides.shell.folder / "explorer.html")["compare"]["notes"]
        if "environment variables" in note
    )
    assert note not in quiet.err
    assert note in asked.err
