"""Real dbt in this process: what a command in a shell would do, without the seconds that it takes to start."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from unittest import mock


def run_dbt(folder: Path, *arguments: str, **variables: str) -> tuple[bool, str]:
    """Whether a dbt command succeeds in a project's folder, and all that it says.

    Args:
        folder: where it runs, as if one were there.
        arguments: the command line.
        variables: of the environment, which has no other that dbt reads.
    """
    from dbt.adapters.factory import reset_adapters
    from dbt.cli.main import dbtRunner
    from dbt.deprecations import reset_deprecations

    reset_deprecations()  # dbt adds up what it has seen in this process, of other projects, too
    environment = {name: value for name, value in os.environ.items() if name[:4] != "DBT_"}
    environment |= {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", **variables}
    output = io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(output),
    ):
        try:
            done = dbtRunner().invoke(["--no-use-colors", *arguments])
        finally:
            with contextlib.suppress(ImportError):
                from dbt.adapters.duckdb.connections import DuckDBConnectionManager

                DuckDBConnectionManager.close_all_connections()
            reset_adapters()
    error = f"\n{done.exception}" if done.exception else ""
    return bool(done.success), output.getvalue() + error
