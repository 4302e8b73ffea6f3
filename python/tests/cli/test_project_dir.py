"""A --project-dir that is not there is what every command complains of, before anything else."""

from __future__ import annotations

import pytest
from cli_shell import Shell

from dbt_ripple.cli import COMMANDS

ARGUMENTS = {
    "explain": ("a_test", "--state", "nowhere"),
    "trace": ("orders",),
    "incident": ("orders",),
    "impact": ("orders", "--drop", "amount"),
    "diagnose": ("orders.amount",),
    "evidence": ("orders", "-o", "pack"),
    "select": ("--state", "nowhere"),
    "diff": ("--state", "nowhere"),
    "gate": ("--state", "nowhere"),
    "run": ("--state", "nowhere"),
}


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"collect", "schema", "verify"}))
def test_a_folder_that_is_not_there(
    shell: Shell, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (command, *ARGUMENTS.get(command, ()))
    message = "no such folder; name the folder of dbt_project.yml\n"
    assert shell.refused(*asked, "--project-dir", "gone") == (
        f"dbt-ripple: --project-dir gone: {message}"
    )
    monkeypatch.setenv("DBT_PROJECT_DIR", "gone")
    assert shell.refused(*asked) == f"dbt-ripple: DBT_PROJECT_DIR gone: {message}"


def test_a_file_is_no_folder(shell: Shell) -> None:
    file = str(shell.folder / "target" / "manifest.json")
    assert "is not a folder" in shell.refused("select", "--project-dir", file)
    assert "is not a folder" in shell.refused("gate", "--init", "--project-dir", file)
