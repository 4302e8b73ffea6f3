"""Runs dbt and dbt-ripple commands one after the other on one embedded Spark, in a process of its own.

    python drive.py FOLDER FORMAT PROJECT_DIR COMMAND...

Each COMMAND is one argument: ``dbt ...``, ``dbt-ripple ...`` or ``sql ...`` (its rows are printed
as a JSON line on stdout; everything else goes to stderr). Everything that is written stays in
FOLDER. Stops with the exit code of the first command that fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from pathlib import Path


def main() -> int:
    folder, file_format, project_dir = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(
        DBT_PROFILES_DIR=str(project_dir),
        DBT_PROJECT_DIR=str(project_dir),
        DBT_TARGET_PATH=str(folder / "dbt"),
        DBT_LOG_PATH=str(folder / "logs"),
        DBT_QUIET="true",
        DBT_SEND_ANONYMOUS_USAGE_STATS="false",
        RIPPLE_FILE_FORMAT=file_format,
    )
    os.chdir(folder)
    with contextlib.redirect_stdout(sys.stderr):
        from dbt_ripple.spark.session import get_session, local_environment

        local_environment(folder / "spark", file_format, short_lived=True)  # type: ignore[arg-type]
        session = get_session()
    for command in sys.argv[4:]:
        tool, *arguments = shlex.split(command, posix=True) if command[:4] != "sql " else ["sql"]
        start = time.perf_counter()
        if tool == "sql":
            rows = [row.asDict() for row in session.sql(command[4:]).collect()]
            print(json.dumps(rows, default=str), flush=True)
            continue
        with contextlib.redirect_stdout(sys.stderr):
            code = dbt(arguments) if tool == "dbt" else ripple(arguments)
        print(f"{command}: {code} in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        if code:
            return code
    return 0


def dbt(arguments: list[str]) -> int:
    from dbt.cli.main import dbtRunner

    result = dbtRunner().invoke(arguments)
    if result.exception is not None:
        print(result.exception, file=sys.stderr)
    return 0 if result.success else 1


def ripple(arguments: list[str]) -> int:
    from dbt_ripple.cli import main as command_line

    sys.argv[:] = ["dbt-ripple", *arguments]
    try:
        command_line()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
