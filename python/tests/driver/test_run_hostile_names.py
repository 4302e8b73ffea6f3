"""Hostile names and a real dbt on DuckDB: what is selected is built and tested, and nothing else.

The models and tests have every name that dbt takes (no spaces, what a file may be called).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile import PARTS
from test_run_tests import ripple
from tiny_project import dbt, write

pytestmark = pytest.mark.slow

ALLOWED = [
    part for part in PARTS if not set(part) & {"/", "\0"} and not any(map(str.isspace, part))
]
NAMES = ["n" + "".join(ALLOWED[start::8]) + f"n{start}" for start in range(8)]
COLUMN = """a'b -- ;{0}`c\\ */ x"""
MODEL = """{{{{ config(alias='m{number}', materialized='table') }}}}
select id, {amount} as "{column}" from {{{{ ref('raw') }}}}
"""
TEST = """select * from {{{{ ref({name}) }}}} where "{column}" = -1 - {number}
"""
"""Each finds other rows, so that none is proven by another."""


def project(amount: str) -> dict[str, str]:
    files = {
        "dbt_project.yml": "name: h\nversion: 1.0.0\nprofile: h\n",
        "profiles.yml": "h:\n  target: dev\n  outputs:\n"
        "    dev: {type: duckdb, path: h.duckdb, schema: dev, threads: 1}\n",
        "seeds/raw.csv": "id,amount\n1,10\n2,20\n",
        "models/still.sql": "select id from {{ ref('raw') }}\n",
        "tests/still_here.sql": "select * from {{ ref('still') }} where id < 0\n",
    }
    for number, name in enumerate(NAMES):
        files[f"models/{name}.sql"] = MODEL.format(number=number, amount=amount, column=COLUMN)
        files[f"tests/t{name}.sql"] = TEST.format(
            name=json.dumps(name, ensure_ascii=False), column=COLUMN, number=number
        )
    return files


def outcomes(folder: Path) -> dict[str, str]:
    """What dbt said of each model and test in its last run, by its name."""
    manifest = json.loads((folder / "target" / "manifest.json").read_text())
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    return {
        manifest["nodes"][result["unique_id"]]["name"]: result["status"]
        for result in results
        if result["unique_id"] in manifest["nodes"]
    }


def test_what_is_selected_is_run_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "h"
    write(folder, project("amount"))
    monkeypatch.chdir(folder)
    assert dbt(folder, "build")
    (folder / "target").rename(tmp_path / "state")
    write(folder, project("amount * 2"))
    assert dbt(folder, "compile")
    state = ("--state", "../state")

    code, out, err = ripple(monkeypatch, capsys, "select", *state, "--format", "json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    ids = {test["unique_id"] for test in document["tests"]}
    assert ids == {f"test.h.t{name}" for name in NAMES}

    code, out, err = ripple(monkeypatch, capsys, "select", *state, "--output", "names")
    assert code == 0, err
    words = out.split()
    from dbt.cli.main import dbtRunner

    listed = dbtRunner().invoke(
        ["--quiet", "ls", "--select", *words, "--output", "name", "--profiles-dir", str(folder)]
    )
    capsys.readouterr()
    assert {name for name in listed.result if name.startswith("tn")} == {f"t{n}" for n in NAMES}
    assert "still_here" not in listed.result

    everything = {*NAMES, *(f"t{name}" for name in NAMES)}
    for more in (("select", "--run"), ("run",)):
        (folder / "target" / "run_results.json").unlink(missing_ok=True)
        code, _, err = ripple(monkeypatch, capsys, *more, *state)
        assert code == 0, err
        said_by_dbt = outcomes(folder)
        assert set(said_by_dbt) == everything, more
        assert set(said_by_dbt.values()) == {"pass", "success"}
