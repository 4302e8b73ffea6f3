"""`gate` and `diff` of a head that dbt has only parsed: what is left to compile is compiled."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from test_run_tests import DOUBLED, ripple
from tiny_project import dbt, write

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
