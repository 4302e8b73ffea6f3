"""`dbt-ripple evidence` and `verify`: what a pack says, that its bytes do not change, and bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_shell import FIXTURE, Shell
from test_schemas import valid
from two_sides import FROM_RAW, NOT_NEGATIVE, STG, UNIQUE, V2, Sides

from dbt_ripple.pages.checksummed_folder import SUMS, verify


def evidence(folder: Path, pack: str = "pack") -> Any:
    return json.loads((folder / pack / "evidence.json").read_text(encoding="utf-8"))


def of(said: Any, unique_id: str) -> Any:
    return next(node for node in said["nodes"] if node["unique_id"] == unique_id)


def files(pack: Path) -> dict[str, bytes]:
    return {
        path.relative_to(pack).as_posix(): path.read_bytes()
        for path in sorted(pack.rglob("*"))
        if path.is_file()
    }


def test_a_pack_of_a_model(shell: Shell) -> None:
    printed = valid("evidence", shell("evidence", STG, "-o", "pack", "--format", "json").json)
    said = evidence(shell.folder)
    assert (said["schema_version"], said["root"], said["column"]) == (1, STG, None)
    written = files(shell.folder / "pack")
    assert sorted(written) == sorted([*printed["files"], SUMS])
    assert {"index.html", "evidence.json", "lineage.svg", "openlineage.ndjson"} <= written.keys()
    manifest = json.loads((shell.folder / "target" / "manifest.json").read_text())
    node = of(said, STG)
    assert node["side"] == "root"
    assert written[node["definition"]].decode() == manifest["nodes"][STG]["compiled_code"]
    assert node["checksum"].endswith(manifest["nodes"][STG]["checksum"]["checksum"])
    sides = {n["unique_id"]: (n["side"], n["depth"]) for n in said["nodes"]}
    assert sides["source.shop.raw.orders"] == ("upstream", 1)
    assert sides[V2] == ("downstream", 2)
    assert of(said, V2)["definition"] is None
    columns = {column["name"]: column for column in node["columns"]}
    (source,) = columns["amount"]["comes_from"]
    assert (source["unique_id"], source["column"]) == ("source.shop.raw.orders", "amount")
    assert columns["amount"]["fingerprint"]
    assert {NOT_NEGATIVE, UNIQUE} <= {test["unique_id"] for test in said["tests"]}
    assert all(test["fingerprint"] for test in said["tests"] if test["kind"] != "unit_test")
    dbt = [one for one in said["artifacts"] if one["file"] == "manifest.json"]
    assert dbt[0]["invocation_id"] == manifest["metadata"]["invocation_id"]
    events = [json.loads(line) for line in written["openlineage.ndjson"].splitlines()]
    generated = manifest["metadata"]["generated_at"][:19]
    assert {event["eventTime"][:19] for event in events} == {generated}
    assert verify(shell.folder / "pack", printed["digest"]).intact


def test_a_pack_of_a_column_has_what_belongs_to_the_column(shell: Shell) -> None:
    shell("evidence", "stg_orders.AMOUNT", "-o", "pack")
    said = evidence(shell.folder)
    assert said["column"] == "amount"
    assert [column["name"] for column in of(said, STG)["columns"]] == ["amount"]
    source = of(said, "source.shop.raw.orders")
    assert [column["name"] for column in source["columns"]] == ["amount"]
    tests = {test["unique_id"] for test in said["tests"]}
    assert NOT_NEGATIVE in tests
    assert UNIQUE not in tests
    assert "amount" in (shell.folder / "pack" / "lineage.svg").read_text()


def test_history_of_earlier_states(sides: Sides) -> None:
    sides.edit(lambda m: m["nodes"][STG].update(access="public"), "state/manifest.json")
    sides.edit(lambda m: m["nodes"][STG].update(access="public"))
    sides.edit(
        lambda m: m["metadata"].update(generated_at="2020-01-01T00:00:00Z"), "state/manifest.json"
    )
    sides.write_sql(STG, FROM_RAW.replace("amount,", "amount * 2 as amount,"))
    done = sides("evidence", STG, "-o", "pack")
    assert done.code == 0, done.err
    said = evidence(sides.shell.folder)
    (change,) = (one for one in said["changes"] if one["unique_id"] == STG)
    assert (change["column"], change["change"], change["began_here"]) == (
        "amount",
        "redefined",
        True,
    )
    assert (change["old"], change["new"]) == (None, "amount * 2")
    assert change["after"] == "2020-01-01T00:00:00Z"
    broken = [one for one in said["violations"] if one["unique_id"] == STG]
    assert [(one["rule"], one["column"]) for one in broken] == [("column_redefined", "amount")]
    assert [one["state"] for one in said["artifacts"] if one["file"] == "manifest.json"] == [
        1,
        None,
    ]
    page = (sides.shell.folder / "pack" / "index.html").read_text()
    assert "column_redefined" in page
    assert "Not known: no earlier artifacts" not in page


def test_what_was_not_at_hand_is_reported_and_is_no_zero(shell: Shell) -> None:
    for name in ("catalog.json", "run_results.json", "sources.json"):
        (shell.folder / "target" / name).unlink(missing_ok=True)
    printed = shell("evidence", STG, "-o", "pack", "--format", "json").json
    whys = " ".join(one["why"] for one in printed["absent"])
    for missing in ("catalog.json", "run_results.json", "sources.json", "--state", "--tables"):
        assert missing in whys
    assert evidence(shell.folder)["absent"] == printed["absent"]
    page = (shell.folder / "pack" / "index.html").read_text()
    assert "<b>not known</b>broken promises" in page
    assert "no run at hand built it" in page


MAKE = (
    "import sys; from dbt_ripple.cli import main; sys.argv = ['dbt-ripple', *sys.argv[1:]]; main()"
)


def made(folder: Path, **environment: str) -> dict[str, bytes]:
    """The files of packs made in a process of its own, in a copy of the project in this folder."""
    shutil.copytree(FIXTURE, folder / "project" / "target")
    shutil.copytree(FIXTURE, folder / "project" / "before")
    before = folder / "project" / "before" / "manifest.json"
    manifest = json.loads(before.read_text())
    manifest["metadata"]["generated_at"] = "2020-01-01T00:00:00Z"
    manifest["nodes"][STG]["compiled_code"] = FROM_RAW.replace("amount,", "amount + 1 as amount,")
    before.write_text(json.dumps(manifest))
    found = {}
    for node in (STG, "stg_orders.amount", V2):
        command = ["evidence", node, "--state", "before", "-o", str(folder / "out" / node)]
        done = subprocess.run(
            [sys.executable, "-c", MAKE, *command],
            cwd=folder / "project",
            env={**os.environ, "DBT_RIPPLE_CACHE_DIR": str(folder / "cache"), **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found |= {f"{node}/{name}": c for name, c in files(folder / "out" / node).items()}
    return found


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    one = made(
        tmp_path / "one", PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C", OPENLINEAGE_NAMESPACE="other"
    )
    other = made(
        tmp_path / "elsewhere" / "two",
        PYTHONHASHSEED="4711",
        TZ="Asia/Kathmandu",
        LC_ALL="C.UTF-8",
        GITHUB_ACTIONS="true",
        GITHUB_REF="refs/pull/7/merge",
        COLUMNS="40",
    )
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    for name, content in one.items():
        assert str(tmp_path).encode() not in content, name


def test_one_flipped_byte_is_found_wherever_it_is(shell: Shell) -> None:
    shell("evidence", V2, "-o", "pack")
    pack = shell.folder / "pack"
    chance = random.Random(2026)
    for name, content in files(pack).items():
        for place in {0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(10))}:
            flipped = bytearray(content)
            flipped[place] ^= 1 << chance.randrange(8)
            (pack / name).write_bytes(bytes(flipped))
            assert not verify(pack).intact, (name, place)
        done = shell("verify", "pack", "--format", "json")
        assert done.code == 1
        assert not valid("verify", done.json)["intact"]
        (pack / name).write_bytes(content)
    assert shell("verify", "pack").code == 0


def test_verify_and_its_digest(shell: Shell) -> None:
    digest = shell("evidence", STG, "-o", "pack", "--format", "json").json["digest"]
    done = shell("verify", "pack", "--digest", f"sha256:{digest.upper()}")
    assert (done.code, done.err) == (0, "")
    assert digest in done.out
    assert done.out.count("\n") == 1
    done = shell("verify", "pack")
    assert done.code == 0
    assert "--digest" in done.err
    done = shell("verify", "pack", "--digest", "0" * 64)
    assert done.code == 1
    assert SUMS in done.out
    assert valid("verify", shell("verify", "pack", "--format", "json").json)["intact"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stg_order", "-o", "new"), "stg_orders"),
        (("stg_orders.amont", "-o", "new"), "did you mean amount"),
        ((UNIQUE, "-o", "new"), "not about tests"),
        ((STG, "-o", "target"), "not empty"),
        ((STG, "-o", "target/manifest.json"), "is not a folder"),
        ((STG, "-o", "target/manifest.json/pack"), "target/manifest.json/pack"),
        ((STG, "-o", "new", "--state", "nowhere"), "no such folder"),
        ((STG, "-o", "new", "--project-dir", "nowhere"), "no such folder"),
        ((STG, "-o", "new", "--tables"), "dbt_ripple"),
        ((STG,), "-o"),
    ],
)
def test_bad_input_is_one_line(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    assert said in shell.refused("evidence", *arguments)
    assert not (shell.folder / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "no such folder"),
        (("target",), SUMS),
        (("target/manifest.json",), "is not a folder"),
        (("pack", "--digest", "short"), "no SHA-256 digest"),
    ],
)
def test_what_cannot_be_verified_is_one_line(
    shell: Shell, arguments: tuple[str, ...], said: str
) -> None:
    shell("evidence", STG, "-o", "pack")
    assert said in shell.refused("verify", *arguments)
