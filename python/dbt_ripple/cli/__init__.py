"""The command line: one thin command a file, loaded only when it is called."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from dbt_ripple import __version__
from dbt_ripple.errors import EXIT_CANNOT_RUN, TRACEBACK, RippleError, mistake
from dbt_ripple.rendering import terminal
from dbt_ripple.tuning import interrupted_by_term, keep_all

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Before a merge": {
        "select": "Which tests a change can break, and which models to build for them.",
        "run": "Build and test what the change affects, and stop where rows come out equal.",
        "gate": "May this change be merged? Checks contracts, owners, personal data and readers.",
        "diff": "Which columns changed between base and head.",
        "explain": "Why a test is selected or a column differs, or why not.",
        "impact": "Who would break if a column were renamed, dropped, retyped or added.",
    },
    "Look around": {
        "explorer": "The lineage as one page to search and follow; opens from disk, without a server.",
        "trace": "What is upstream and downstream of a node or a column.",
        "analyze": "How much of this project can be analysed, and why the rest cannot.",
        "docs": "Write a copy of dbt's docs site that shows lineage, owners and health.",
    },
    "A number is wrong, or somebody asks": {
        "diagnose": "What a number comes from, step by step down to the sources.",
        "incident": "What on-call has to know about a failed test or a wrong number; sent to Slack, PagerDuty or a webhook.",
        "report": "Coverage, incidents, downtime, contracts and blast radius of the last weeks.",
        "evidence": "What an auditor asks of a model or a column, in one folder with SHA-256 sums.",
        "verify": "Is an evidence pack unchanged since it was written.",
    },
    "What dbt does not build, and other tools": {
        "register": "Write an asset that dbt does not build into ripple_assets.yml.",
        "mcp": "Answer agents the same questions, over the Model Context Protocol.",
        "capture": "What a job's SQL reads and writes; written into ripple_assets.yml.",
        "prune": "Retire declared assets that nothing has reported for some days.",
        "collect": "Take in OpenLineage events of other programs: from files, over HTTP or from Kafka.",
        "serve": "Lineage over HTTP: a REST API, the collector and the explorer in one process.",
        "emit": "Send runs and lineage as OpenLineage events to a catalogue.",
        "datahub": "Send lineage, schemas, owners, tags and test results to DataHub.",
    },
    "Tables on Spark, and JSON": {
        "load": "Load the lineage of the project into Spark tables.",
        "build": "Load the lineage into Spark tables, and build the dbt models on them.",
        "schema": "The JSON Schema of what a command prints with --format json.",
    },
}
"""The commands by the question that they answer, each with its one-line help."""

COMMANDS: Final = {name: help for group in GROUPS.values() for name, help in group.items()}
"""Each command and its one-line help; the code is in the module of the same name."""


_NO_ROOM: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def _stopping_where_it_cannot_print() -> Iterator[None]:
    """Ends as `answer` does where click cannot print its help: click's own 1 would mean BLOCKED."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        from dbt_ripple.rendering.output import stop_printing

        stop_printing(error)


class _Commands(click.Group):
    """A group that imports a command's module only when that command is asked for."""

    @_stopping_where_it_cannot_print()
    def make_context(self, *given: Any, **also: Any) -> click.Context:
        return super().make_context(*given, **also)

    @_stopping_where_it_cannot_print()
    def invoke(self, ctx: click.Context) -> Any:
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dbt_ripple.cli.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        own_options = {option for parameter in command.params for option in parameter.opts}
        command.params += [o for o in terminal.options() if own_options.isdisjoint(o.opts)]
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # click would import the module of every command for its help.
        matching = [item for item in sorted(COMMANDS.items()) if item[0].startswith(incomplete)]
        commands = [CompletionItem(name, help=help) for name, help in matching]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise click.UsageError(f"no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for question, commands in GROUPS.items():
            with formatter.section(question):
                formatter.write_dl([(name.ljust(width), help) for name, help in commands.items()])


@click.group(
    cls=_Commands,
    params=terminal.options(),
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
New here?
  dbt-ripple select --base-ref main   the tests that your edits can break
  dbt-ripple gate --base-ref main     may it be merged? for CI, too
  dbt-ripple trace MODEL.COLUMN       where it comes from, and who uses it
  dbt-ripple explorer                 all of it as a picture
""",
)
@click.version_option(__version__, "--version", prog_name="dbt-ripple")
def cli() -> None:
    """Find out, column by column, what a change to a dbt project can break."""


def _complain(message: str) -> None:
    from dbt_ripple.rendering.output import complain

    complain(message)


def main() -> None:
    """Run the command line; whatever is wrong is one line on stderr and exit code 2."""
    # What a command hangs here is not freed at the end, because it holds itself and is frozen: to
    # free a large project object by object takes nearly as long as to answer.
    terminal.begin()
    to_the_end: list[object] = []
    to_the_end.append(to_the_end)
    try:
        with interrupted_by_term():
            code = cli(prog_name="dbt-ripple", standalone_mode=False, obj=to_the_end)
    except RippleError as error:
        _complain(str(error))
        sys.exit(EXIT_CANNOT_RUN)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(EXIT_CANNOT_RUN)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "dbt-ripple"
        message = error.format_message().rstrip(".")
        _complain(f"{message}; see `{path} --help`")
        sys.exit(EXIT_CANNOT_RUN)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        # Exit code 1 is an answer (BLOCKED): what went wrong here is none.
        if os.environ.get(TRACEBACK):
            raise
        _complain(mistake(error))
        sys.exit(EXIT_CANNOT_RUN)
    if "dbt" not in sys.modules:  # engines it drives complain of what they find left
        keep_all()
    sys.exit(code if isinstance(code, int) else 0)
