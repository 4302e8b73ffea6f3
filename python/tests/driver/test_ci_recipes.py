"""The CI recipes of the docs, step by step in a shell, as a pull request runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tiny_project import FILES, commit, git, write

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[3] / "docs"
NOT_HERE = ("pip install", "dbt deps")
"""Steps that install: what they bring is here already."""


def recipe(page: str, says: str) -> dict[str, Any]:
    """The workflow on a page that holds some words."""
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    (block,) = [block for block in blocks if says in block]
    workflow: dict[str, Any] = YAML(typ="safe").load(block)
    return workflow


def steps(workflow: dict[str, Any]) -> Iterator[str]:
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "run" in step and not step["run"].startswith(NOT_HERE):
                yield step["run"]


class Runner:
    """Runs steps as GitHub does, with a `gh` that only writes down what it was asked."""

    def __init__(self, project: Path, aside: Path) -> None:
        aside.mkdir()
        self.project, self.aside = project, aside
        programs = Path(sys.executable).parent
        gh = aside / "gh"
        gh.write_text(f'#!/bin/sh\necho "$@" >> {aside / "asked"}\n')
        gh.chmod(0o755)
        ripple = aside / "dbt-ripple"
        ripple.write_text(
            f'#!/bin/sh\nexec {sys.executable} -c "from dbt_ripple.cli import main; main()" "$@"\n'
        )
        ripple.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{aside}:{programs}:{os.environ['PATH']}",
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": str(aside / "summary"),
            "GITHUB_OUTPUT": str(aside / "output"),
            "GITHUB_REPOSITORY": "o/r",
            "ISSUE": "repos/o/r/issues/1/comments",
        }

    def __call__(self, step: str) -> tuple[int, str]:
        output_file = self.aside / "output"
        code = output_file.read_text().rpartition("=")[2].strip() if output_file.exists() else ""
        step = step.replace("${{ steps.gate.outputs.code }}", code)
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step]
        done = subprocess.run(
            shell, cwd=self.project, env=self.environment, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def runner(tiny: Path, tmp_path: Path) -> Runner:
    """Of a pull request's checkout: a branch, and ``origin/main``, which is where it began."""
    ci = "    ci: {type: duckdb, path: tiny.duckdb, schema: ci, threads: 1}\n"
    write(tiny, {"profiles.yml": FILES["profiles.yml"] + ci})
    (tiny / "models" / "pivoted.sql").unlink()  # it compiles only where its parent is built
    commit(tiny)
    git(tiny, "update-ref", "refs/remotes/origin/main", "HEAD")
    return Runner(tiny, tmp_path / "aside")


def test_the_gates_recipe_comments_and_fails_where_it_is_blocked(runner: Runner) -> None:
    broken = "select id as order_id, customer, amount status from {{ ref('raw_orders') }}\n"
    write(runner.project, {"models/stg_orders.sql": broken})
    commit(runner.project)
    *before, last = steps(recipe("gate.md", "name: ripple"))
    assert len(before) == 2
    for step in before:
        code, output = runner(step)
        assert code == 0, output
    assert runner(last)[0] == 1
    summary = (runner.aside / "summary").read_text()
    assert summary.startswith("<!-- dbt-ripple gate -->\n### ⛔ BLOCKED")
    assert summary == (runner.project / "comment.md").read_text()
    asked = (runner.aside / "asked").read_text()
    assert "--method POST repos/o/r/issues/1/comments -F body=@comment.md" in asked


def test_the_recipe_without_kept_artifacts_runs_what_can_break(runner: Runner) -> None:
    edited = FILES["models/stg_orders.sql"].replace("amount,", "amount * 2 as amount,")
    write(runner.project, {"models/stg_orders.sql": edited})
    commit(runner.project)
    (step,) = steps(recipe("select.md", "fetch-depth: 0"))
    code, output = runner(step)
    assert code == 0, output
    assert "not_null_big_orders_amount" in output
    assert "Completed successfully" in output
