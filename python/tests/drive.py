"""dbt, dbt-ripple and SQL commands, one after the other on one embedded Spark.

Each command is one string: ``dbt ...``, ``dbt-ripple ...``, ``cp FROM TO`` (an edit between two
commands) or ``sql ...``, whose rows are printed as a JSON line on stdout; everything else goes to
stderr. One that has to fail begins with ``! ``. It ends with the exit code of the first command that
does not do as it should. Everything that is written stays in a folder, and in the Spark.

In the tests' own Spark by :func:`on_shared_spark`; in a process of its own by :func:`on_own_spark`:

    python drive.py FOLDER FORMAT PROJECT_DIR COMMAND...
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def on_shared_spark(
    session: SparkSession, folder: Path, project_dir: Path, *commands: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run commands on the Spark that all tests of this process share: name schemas of your own.

    Args:
        more: variables of the environment, which has no other that dbt or OpenLineage reads.
    """
    from dbt.adapters.factory import reset_adapters
    from dbt.deprecations import reset_deprecations

    reset_deprecations()  # dbt adds up what it has seen in this process, of other projects, too
    read = ("DBT_", "OPENLINEAGE")
    kept = {
        k: v for k, v in os.environ.items() if k[:11] == "DBT_RIPPLE_" or not k.startswith(read)
    }
    folder.mkdir(parents=True, exist_ok=True)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, {**kept, **settings(folder, project_dir), **more}, clear=True),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = run(session, commands, out)
        finally:
            reset_adapters()
    return subprocess.CompletedProcess(commands, code, out.getvalue(), err.getvalue())


def on_own_spark(
    folder: Path, file_format: str, project_dir: Path, *commands: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run commands on a Spark of their own, in a process of its own.

    Where its metastore and warehouse lie, and its table format, are fixed when the JVM starts.

    Args:
        more: variables of the environment; ``python`` is the Python that runs them.
    """
    python = more.pop("python", sys.executable)
    return subprocess.run(
        [python, __file__, str(folder), file_format, str(project_dir), *commands],
        capture_output=True,
        text=True,
        env={**os.environ, **more},
        check=False,
        timeout=1800,
    )


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What each dbt and dbt-ripple command said, in their order."""
    return re.split(r"^.*: \d+ in [\d.]+ s\n", done.stderr, flags=re.MULTILINE)[:-1]


def settings(folder: Path, project_dir: Path, file_format: str = "parquet") -> dict[str, str]:
    """What dbt reads of the environment."""
    return {
        "DBT_PROFILES_DIR": str(project_dir),
        "DBT_PROJECT_DIR": str(project_dir),
        "DBT_TARGET_PATH": str(folder / "dbt"),
        "DBT_LOG_PATH": str(folder / "logs"),
        "DBT_QUIET": "true",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "RIPPLE_FILE_FORMAT": file_format,
    }


def main() -> int:
    folder, file_format, project_dir = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(settings(folder, project_dir, file_format))
    os.chdir(folder)
    with contextlib.redirect_stdout(sys.stderr):
        from dbt_ripple.spark.session import get_session, local_environment

        local_environment(folder / "spark", file_format, short_lived=True)  # type: ignore[arg-type]
        session = get_session()
    return run(session, sys.argv[4:], sys.stdout)


def run(session: SparkSession, commands: tuple[str, ...] | list[str], out: io.TextIOBase) -> int:
    """Run the commands: the exit code of the last one, 0 where all did as they should."""
    for command in commands:
        fails, text = command[:2] == "! ", command.removeprefix("! ")
        start = time.perf_counter()
        if text.startswith("sql "):
            rows = [row.asDict() for row in session.sql(text[4:]).collect()]
            print(json.dumps(rows, default=str), file=out, flush=True)
            continue
        tool, *arguments = shlex.split(text)
        if tool == "cp":
            shutil.copy(*arguments)
            continue
        with contextlib.redirect_stdout(sys.stderr):
            code = dbt(arguments) if tool == "dbt" else ripple(arguments)
        print(f"{command}: {code} in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        if bool(code) != fails:
            return code or 1
    return 0


def dbt(arguments: list[str]) -> int:
    from dbt.cli.main import dbtRunner

    result = dbtRunner().invoke(arguments)
    if result.exception is not None:
        print(result.exception, file=sys.stderr)
    return 0 if result.success else 1


def ripple(arguments: list[str]) -> int:
    from dbt_ripple.cli import main as command_line

    with mock.patch.object(sys, "argv", ["dbt-ripple", *arguments]):
        try:
            command_line()
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
