"""`gate --with select --run`: the comment says what the tests said, with a real dbt on DuckDB."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from test_run_tests import BROKEN, DOUBLED, ripple
from tiny_project import commit, dbt, write

from dbt_ripple.rendering.json_documents import schema

pytestmark = pytest.mark.slow


def test_a_failing_test_is_in_the_comment_and_in_the_exit_code(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": BROKEN})
    assert dbt(tiny, "parse")
    arguments = ("gate", "--state", "../state", "--format", "markdown", "--with", "select")
    code, out, _ = ripple(monkeypatch, capsys, *arguments)
    assert "#### Tests it can break\n" in out
    assert "| `not_null_inc_orders_status` |" in out
    code, out, err = ripple(monkeypatch, capsys, *arguments, "--run")
    assert code == 1, err
    assert "#### Tests it can break, and what they said\n" in out
    first = next(line for line in out.splitlines() if line.startswith("| `not_null_"))
    assert first.startswith("| `not_null_inc_orders_status` |")
    assert "| ❌ fail: Got 1 result, configured to fail if != 0 |" in first
    assert " passed, 1 failed." in out


def test_the_json_of_a_run_keeps_to_its_schema(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny, {"models/stg_orders.sql": DOUBLED})
    for command, *flags in (
        ("run", "--state", "../state"),
        ("select", "--state", "../state", "--run", "--cutoff"),
        ("gate", "--state", "../state", "--with", "select", "--run"),
    ):
        assert dbt(tiny, "parse")
        _, out, err = ripple(monkeypatch, capsys, command, *flags, "--format", "json")
        document = json.loads(out)
        jsonschema.Draft202012Validator(schema(command)).validate(document)
        assert "cutoff" in document or document["results"], err


def test_run_takes_what_select_finds(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ripple(monkeypatch, capsys, "gate", "--state", "../state", "--run")
    assert (code, out) == (2, "")
    assert "--with select" in err


def test_the_rules_of_base_judge(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = "rules: {reader_broken: block, blast_radius: block}\n"
    write(tiny, {"ripple.yml": rules})
    commit(tiny)
    write(tiny, {"ripple.yml": rules.replace("block", "off"), "models/stg_orders.sql": DOUBLED})
    arguments = ("gate", "--base-ref", "main", "--target", "prod", "--no-deps", "--no-cache")
    code, out, err = ripple(monkeypatch, capsys, *arguments)
    assert code == 1, err
    assert "rule blast_radius goes from block to off" in out
    write(tiny, {"packages.yml": "packages: []\n"})
    commit(tiny)
    (tiny / "packages.yml").unlink()
    code, out, err = ripple(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert "--no-deps" in err
