"""The options `--select` and `--exclude`, as commands that run no dbt have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def selection_options(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--select`` and ``--exclude``, for `chosen`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--exclude",
            "excluded",
            metavar="SPEC",
            multiple=True,
            help="Leave out what dbt selects by SPEC.",
        )(command)
        return click.option("--select", "selected", metavar="SPEC", multiple=True, help=help)(
            command
        )

    return add
