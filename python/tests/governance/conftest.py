"""What the tests of the gate share: the twin projects, built once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import twin_project
from twin_project import Command

from dbt_ripple import cli
from dbt_ripple.artifacts import Project, read_project


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built projects ``good`` and ``bad``."""
    pytest.importorskip("dbt.adapters.duckdb")
    folder = tmp_path_factory.mktemp("twin")
    for side in ("good", "bad"):
        twin_project.build(side, folder)
    return folder


@pytest.fixture
def good(twin: Path) -> Project:
    return read_project(twin / "good" / "target")


@pytest.fixture
def bad(twin: Path) -> Project:
    return read_project(twin / "bad" / "target")


@pytest.fixture
def friday(twin: Path, tmp_path: Path) -> Path:
    """Artifacts of ``good`` after somebody renamed a column of raw_orders in the warehouse."""
    folder = tmp_path / "friday"
    folder.mkdir()
    manifest = (twin / "good" / "target" / "manifest.json").read_text()
    (folder / "manifest.json").write_text(manifest)
    catalog = json.loads((twin / "good" / "target" / "catalog.json").read_text())
    columns = catalog["sources"]["source.twin.raw.raw_orders"]["columns"]
    renamed = {**columns.pop("order_total"), "name": "total_amount"}
    columns["total_amount"] = renamed
    (folder / "catalog.json").write_text(json.dumps(catalog))
    return folder


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """``dbt-ripple``, as a shell would run it: the exit code, stdout and stderr."""
    for name in ("DBT_PROJECT_DIR", "DBT_TARGET_PATH", "DBT_STATE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["dbt-ripple", *map(str, arguments)])
        capsys.readouterr()
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code
        out, err = capsys.readouterr()
        return code or 0, out, err

    return run
