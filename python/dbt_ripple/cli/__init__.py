"""The command line: one thin command a file, loaded only when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Final

import click

from dbt_ripple import __version__
from dbt_ripple.errors import EXIT_CANNOT_RUN, RippleError

COMMANDS: Final[dict[str, str]] = {
    "analyze": "How well this project can be seen: models, opaque ones, columns, edges.",
    "build": "Artifacts -> lineage tables -> `dbt build` of the lineage models, in one process.",
    "load": "Load the lineage of a dbt project into Spark tables.",
    "trace": "Upstream and downstream of a node or a column.",
}
"""Each command and its one-line help; the code is in the module of the same name."""


class _Commands(click.Group):
    """A group that imports a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dbt_ripple.cli.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="dbt-ripple")
def cli() -> None:
    """Column by column: what breaks if I change this dbt project?"""


def main() -> None:
    """Run the command line; a `RippleError` is one line on stderr and exit code 2."""
    try:
        cli()
    except RippleError as error:
        click.echo(f"dbt-ripple: {error}", err=True)
        sys.exit(EXIT_CANNOT_RUN)
