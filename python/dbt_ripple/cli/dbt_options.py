"""The options by which commands are told how to call dbt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def threads_option(command: _Command) -> _Command:
    """Add ``--threads`` of a command that runs dbt."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Threads of dbt, and processes for the analysis.",
    )(command)


def connection_options(command: _Command) -> _Command:
    """Add the options that say what dbt connects to, and its vars; :meth:`DbtOptions.taken` takes them."""
    for option in reversed(
        (
            click.option(
                "--profiles-dir",
                envvar="DBT_PROFILES_DIR",
                show_envvar=True,
                type=click.Path(path_type=Path),
                help="Folder with profiles.yml.  [default: dbt's]",
            ),
            click.option(
                "--profile", envvar="DBT_PROFILE", help="The profile.  [default: the project's]"
            ),
            click.option(
                "--target",
                envvar="DBT_TARGET",
                help="The target of the profile.  [default: the profile's]",
            ),
            click.option(
                "--vars", "variables", metavar="YAML", help="Vars for dbt, written as for dbt."
            ),
        )
    ):
        command = option(command)
    return command
