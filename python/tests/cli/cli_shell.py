"""Running the command line in this process, as a shell would."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dbt_ripple import cli

FIXTURE = Path(__file__).parent.parent / "artifacts" / "fixtures" / "v12_dbt_1_11"


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """``shell("trace", "x")`` runs ``dbt-ripple trace x`` on a copy of a real target folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        shutil.copytree(FIXTURE, folder / "target")
        for name in ("DBT_PROJECT_DIR", "DBT_TARGET_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str) -> Done:
        self._monkeypatch.setattr("sys.argv", ["dbt-ripple", *arguments])
        code: Any = 0
        self._capsys.readouterr()
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
        out, err = self._capsys.readouterr()
        return Done(code or 0, out, err)

    def refused(self, *arguments: str) -> str:
        """Run it, expecting one line of error, nothing else, and exit code 2."""
        done = self(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("dbt-ripple: ")
        assert done.err.count("\n") == 1
        return done.err
