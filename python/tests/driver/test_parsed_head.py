"""`gate` and `diff` of a head that dbt has only parsed: what is left to compile is compiled."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_run_tests import DOUBLED, ripple
from tiny_project import commit, dbt, git, write

pytestmark = pytest.mark.slow


FLAGS = "\nflags: {warn_error_options: {error: [LogTestResult]}}\n"


def test_without_an_edit_nothing_changed(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbt(tiny, "parse")
    for command, expected in (("diff", '"nodes":[]'), ("gate", '"decision":"APPROVED"')):
        code, out, err = ripple(
            monkeypatch, capsys, command, "--state", "../state", "--format", "json"
        )
        assert code == 0, err
        assert expected in "".join(out.split()), command
        assert "not compiled" not in err


def test_an_edit_is_judged_as_after_a_compile(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    answers = []
    for command in (["parse"], ["compile", "--target", "prod"]):
        assert dbt(tiny, *command)
        code, out, err = ripple(
            monkeypatch, capsys, "diff", "--state", "../state", "--format", "json"
        )
        assert code == 0, err
        # What queries the warehouse while it compiles may see another one in another target.
        nodes = [n for n in json.loads(out)["nodes"] if n["unique_id"] != "model.tiny.pivoted"]
        decision = ripple(monkeypatch, capsys, "gate", "--state", "../state")[1].split()[0]
        answers.append((nodes, decision))
    assert answers[0] == answers[1]
    assert answers[0][0]


def test_where_dbt_cannot_compile_it_is_refused_with_the_command(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    assert dbt(tiny, "parse")
    (tiny / "profiles.yml").write_text("tiny: {}\n")
    for command in ("diff", "gate"):
        code, out, err = ripple(monkeypatch, capsys, command, "--state", "../state")
        assert (code, out) == (2, "")
        assert "parsed but not compiled, and could not be compiled here" in err
        assert "`dbt compile`" in err
    code, out, err = ripple(monkeypatch, capsys, "impact", "raw_orders", "--drop", "amount")
    assert (code, out) == (2, "")
    assert "dbt has parsed this project but not compiled it" in err


def test_warnings_that_the_project_file_makes_errors_count(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project, results = tiny / "dbt_project.yml", tiny.parent / "state" / "run_results.json"
    results.write_text(results.read_text().replace('"status": "pass"', '"status": "warn"'))
    write(tiny, {"dbt_project.yml": project.read_text() + FLAGS})
    assert dbt(tiny, "parse")
    arguments = ("select", "--state", "../state", "--format", "json")
    tests = json.loads(ripple(monkeypatch, capsys, *arguments)[1])["tests"]
    assert tests and {str(test["reason"]) for test in tests} == {"its own warn_error changed"}


def test_an_edited_var_is_the_cause_in_a_checkout_without_artifacts(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tiny / "dbt_project.yml"
    write(tiny, {"dbt_project.yml": project.read_text().replace("cutoff: 10", "cutoff: 20")})
    shutil.rmtree(tiny / "target", ignore_errors=True)
    out = ripple(monkeypatch, capsys, "select", "--state", "../state")[1]
    assert "var cutoff (dbt_project.yml:4) in big_orders: 10 -> 20" in out


def test_what_a_failed_dbt_still_writes_is_no_error(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    write(tiny, {"models/stg_orders.sql": DOUBLED})
    assert dbt(tiny, "parse")
    (tiny / "profiles.yml").write_text("tiny: {}\n")
    monkeypatch.setattr(
        os, "rmdir", refused
    )  # as where a thread has written another file meanwhile
    code, out, err = ripple(monkeypatch, capsys, "diff", "--state", "../state")
    assert (code, out) == (2, "")
    assert "could not be compiled here" in err


@pytest.mark.parametrize("side", [("--state", "../state"), ("--base-ref", "HEAD")])
def test_white_space_in_a_literal_is_an_edit(side: tuple[str, str], tmp_path: Path) -> None:
    """dbt 1.12 takes such a file as unchanged, and what it has parsed before as up to date."""
    project = tmp_path / "project"
    files = {
        "dbt_project.yml": "name: small\nversion: 1.0.0\nprofile: small\n",
        "profiles.yml": "small: {target: d, outputs: {d: {type: duckdb, path: small.duckdb}}}\n",
        ".gitignore": "target/\nlogs/\n",
        "models/m.sql": "select 'a b' as x\n",
    }
    write(project, files)
    git(tmp_path, "init", "-q", "-b", "main", str(project))
    commit(project)
    # Each a process: within one, dbt parses all anew.
    program = [sys.executable, "-m", "dbt_ripple", "diff", *side, "--cache-dir", "../cache"]
    dbt_of_here = str(Path(sys.executable).with_name("dbt"))

    def said(*command: str) -> str:
        run = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr + run.stdout
        return run.stdout

    said(dbt_of_here, "-q", "compile", "--target-path", "../state")
    if "--state" in side:
        said(dbt_of_here, "-q", "parse")
    assert said(*program) == "nothing changed\n"
    write(project, {"models/m.sql": "select 'a  b' as x\n"})
    out = said(*program)
    assert "- 'a b'\n" in out
    assert "+ 'a  b'\n" in out
