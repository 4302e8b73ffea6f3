"""The options that name the two sides of a comparison: `--state DIR`, `--base-ref REF`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dbt_ripple.cli.asset_options import with_asset_options
from dbt_ripple.cli.dbt_options import connection_options

_Command = TypeVar("_Command", bound=Callable[..., Any])


def state_option(command: _Command) -> _Command:
    """Add ``--state``, which means what it means to dbt."""
    return click.option(
        "--state",
        envvar="DBT_STATE",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="Folder with the artifacts of base, for example those of production.",
    )(command)


def sides_options(command: _Command, *, state_with_base_ref: str = "") -> _Command:
    """Add what names the two sides, for `open_sides`; `DbtOptions.taken` takes dbt's of them.

    Args:
        command: the command.
        state_with_base_ref: what the help says of ``--state`` beside ``--base-ref``.
    """
    base_ref = click.option(
        "--base-ref",
        metavar="REF",
        help="Compile base from this commit and head from the working copy; no artifacts are needed."
        + state_with_base_ref,
    )
    no_deps = click.option(
        "--no-deps",
        is_flag=True,
        help="With --base-ref: stop, instead of running `dbt deps`, where base has other packages.",
    )
    return state_option(base_ref(no_deps(with_asset_options(connection_options(command)))))


def sides_of_run_options(command: _Command) -> _Command:
    """The same for a command that can run dbt, which defers to ``--state``."""
    return sides_options(
        command,
        state_with_base_ref=" Whatever dbt then runs defers to --state, if that is given, too.",
    )


def facts_options(command: _Command) -> _Command:
    """Add ``--facts`` and ``--assume-passed``: whether base's passed tests prove others."""
    passed = click.option(
        "--assume-passed",
        is_flag=True,
        help="Count all of base's tests as passed, whatever run_results.json says.",
    )
    return click.option(
        "--facts/--no-facts",
        default=True,
        help="Leave out tests that base's passed tests prove cannot fail (the default), and tests "
        "below a model that cannot be built.",
    )(passed(command))
