"""`dbt-ripple schema COMMAND`: what `--format json` of a command prints."""

from __future__ import annotations

import click

from dbt_ripple.cli.options import Command
from dbt_ripple.rendering.output import answer, as_json

_WITH_JSON = (
    *("analyze", "build", "capture", "diagnose", "diff", "evidence", "explain", "gate"),
    *("impact", "incident", "load", "prune", "register", "report", "run", "select", "trace"),
    "verify",
)


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple schema select
  dbt-ripple schema gate > gate.schema.json
""",
)
@click.argument("command", type=click.Choice(_WITH_JSON))
def schema(command: str) -> None:
    """Print the JSON Schema of what COMMAND prints with --format json.

    The schema lists every field that can be printed. Its schema_version is raised when a field is
    removed or gets another name, type or meaning; new fields do not raise it.
    """
    from dbt_ripple.rendering.json_documents import schema as schema_of

    answer(as_json(schema_of(command)))
