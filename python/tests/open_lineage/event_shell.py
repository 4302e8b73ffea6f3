"""Running `dbt-ripple` in this process, in a folder where nothing of OpenLineage is configured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import schemas

from dbt_ripple import cli


class EventShell:
    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self._capsys = capsys
        for name in list(os.environ):
            configures = name.startswith(("DBT_", "OPENLINEAGE", "GITHUB_", "CI_"))
            if configures and name != "DBT_RIPPLE_CACHE_DIR":
                monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self.monkeypatch.setattr("sys.argv", ["dbt-ripple", *arguments])
        code: Any = 0
        self._capsys.readouterr()
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
        out, err = self._capsys.readouterr()
        return code or 0, out, err

    def refused(self, *arguments: str) -> str:
        """Run it, expecting one line of error, nothing else, and exit code 2."""
        code, out, err = self(*arguments)
        assert (code, out) == (2, ""), err
        assert err.startswith("dbt-ripple: "), err
        assert err.count("\n") == 1, err
        return err

    def events(self, *arguments: str) -> schemas.Events:
        """The events that `emit` writes, each valid."""
        code, out, err = self("emit", *arguments, "--output", "-")
        assert code == 0, err
        return schemas.Events(schemas.read(out))
