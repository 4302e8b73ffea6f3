"""Real dbt in this process: a project's folder -> its artifacts, and the tables it built."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dbt_ripple.artifacts import Project, read_project

REPOSITORY = Path(__file__).parents[3]
SHOP = REPOSITORY / "integration_tests"

_LEFT_BEHIND = (
    "target",
    "logs",
    "dbt_packages",
    "packages.yml",
    "package-lock.yml",
    "empty",
    "expected",
)


class DbtFailed(Exception):  # noqa: N818 - it says what happened
    """A dbt command that did not succeed; holds what dbt printed."""


@dataclass
class Folder:
    """A dbt project on disk with the DuckDB file it builds into.

    Attributes:
        project: the project's folder; its profile has a target ``duckdb`` that reads
            ``RIPPLE_DUCKDB_PATH``.
        work: where dbt writes; ``target`` and the database lie there.
        database: the file's name.
        output: which target of the profile.
        variables: environment variables that dbt's commands have besides its own.
    """

    project: Path
    work: Path
    database: str = "tea.duckdb"
    output: str = "duckdb"
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def duckdb(self) -> Path:
        return self.work / self.database

    @property
    def target(self) -> Path:
        return self.work / "target"

    def dbt(self, *arguments: str, check: bool = True) -> bool:
        """Run one dbt command in this process; its output is kept and shown where it fails."""
        from dbt.cli.main import dbtRunner

        self.work.mkdir(parents=True, exist_ok=True)
        output = io.StringIO()
        environment = {
            "DBT_PROFILES_DIR": str(self.project),
            "DBT_TARGET_PATH": str(self.target),
            "DBT_LOG_PATH": str(self.work / "logs"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "RIPPLE_DUCKDB_PATH": str(self.duckdb),
            "RIPPLE_THREADS": "1",
            **self.variables,
        }
        with _environment(environment), contextlib.redirect_stdout(output):
            result = dbtRunner().invoke(
                [
                    "--no-use-colors",
                    "--log-level-file",
                    "none",
                    *arguments,
                    "--project-dir",
                    str(self.project),
                    "--target",
                    self.output,
                ]
            )
            self.close()
        if check and not result.success:
            raise DbtFailed(f"dbt {' '.join(arguments)}: {result.exception}\n{output.getvalue()}")
        return bool(result.success)

    @staticmethod
    def close() -> None:
        """Let go of the database file, so that others can open or copy it."""
        from dbt.adapters.factory import reset_adapters

        with contextlib.suppress(ImportError, AttributeError):
            from dbt.adapters.duckdb.connections import DuckDBConnectionManager

            DuckDBConnectionManager.close_all_connections()
        reset_adapters()
        gc.collect()

    def build(self, *arguments: str, check: bool = True) -> bool:
        """Everything but the tests, which the campaign runs itself."""
        without = ("--exclude-resource-type", "test", "--exclude-resource-type", "unit_test")
        return self.dbt("build", *without, *arguments, check=check)

    def read(self) -> Project:
        """The artifacts as the last command left them."""
        return read_project(self.target)

    def copy_database(self, to: Path) -> Path:
        """A copy of the database with what is not checkpointed yet."""
        to.parent.mkdir(parents=True, exist_ok=True)
        for suffix in ("", ".wal"):
            file = Path(str(self.duckdb) + suffix)
            copy = Path(str(to) + suffix)
            copy.unlink(missing_ok=True)
            if file.exists():
                shutil.copyfile(file, copy)
        return to


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def copy_shop(to: Path) -> Path:
    """The tea shop without the package it installs: only its own nodes are built and tested."""
    shutil.copytree(SHOP, to, ignore=shutil.ignore_patterns(*_LEFT_BEHIND), dirs_exist_ok=True)
    return to


HOOKS = {
    "dbt_artifacts": "{{ dbt_artifacts.upload_results(results) }}",
    "dbt_ripple": "{{ dbt_ripple.record_run(results) }}",
}
"""What a package tells its users to put into ``on-run-end``; others bring their hooks themselves."""

_OVERRIDES = "require_explicit_package_overrides_for_builtin_materializations: false"


def install(folder: Folder, packages: Iterable[str]) -> None:
    """Install packages from their folders into a project, with the hooks that they ask for."""
    names = [yaml.safe_load(Path(p, "dbt_project.yml").read_text())["name"] for p in packages]
    listed = [{"local": str(Path(p).absolute())} for p in packages]
    (folder.project / "packages.yml").write_text(yaml.safe_dump({"packages": listed}))
    file = folder.project / "dbt_project.yml"
    text = file.read_text().replace("\nflags:\n", f"\nflags:\n  {_OVERRIDES}\n")
    hooks = [HOOKS[name] for name in names if name in HOOKS]
    file.write_text(f"{text}\n{yaml.safe_dump({'on-run-end': hooks})}")
    folder.dbt("deps")
