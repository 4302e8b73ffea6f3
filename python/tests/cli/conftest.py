"""What the tests of the commands share."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_shell import Shell
from two_sides import Sides


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """``dbt-ripple`` in a project whose target folder dbt 1.11 has written."""
    return Shell(tmp_path, monkeypatch, capsys)


@pytest.fixture
def sides(shell: Shell) -> Sides:
    """The same, compared with a copy of itself in the folder ``state``."""
    return Sides(shell)
