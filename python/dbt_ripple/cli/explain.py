"""`dbt-ripple explain`: why a test is selected or a column differs, or why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    project_options,
)
from dbt_ripple.cli.shell_completion import names_of_any
from dbt_ripple.cli.sides_options import facts_options, sides_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.rendering.explanation import explanation_markdown, explanation_text
from dbt_ripple.rendering.output import answer, as_document, say


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple explain unique_fct_orders_order_id --state prod-artifacts
  dbt-ripple explain accepted_values_fct_orders_status --state prod-artifacts --format json
  dbt-ripple explain unique_fct_orders_order_id --base-ref origin/main
  dbt-ripple explain fct_orders --base-ref origin/main
  dbt-ripple explain fct_orders.order_total --base-ref origin/main
""",
)
@click.argument("what", metavar="TEST|NODE[.COLUMN]", shell_complete=names_of_any)
@sides_options
@format_option("text", "json", "markdown")
@facts_options
@analysis_options
@project_options
def explain(
    what: str,
    state: Path | None,
    base_ref: str | None,
    style: str,
    facts: bool,
    assume_passed: bool,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> None:
    """Print why TEST is selected, or why NODE or COLUMN differs: the path from the edit, with the SQL before and after.

    Of what is not selected or does not differ, print where the change stops having an effect: nothing
    above it changed, it does not read what changed, or what it reads is the same again. TEST is a
    unique_id, a name, or a part of a name that only one test has.
    """
    from dbt_ripple.session.project import Project

    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with open_cache(cache_dir, no_cache) as cache:
        project = Project(
            *(project_dir, target_path),
            assets=dbt_arguments["assets"],
            cache=cache,
            threads=threads,
            dbt=options,
            aloud=True,
        )
        with project.against(state, base_ref, or_count=True) as sides:
            explained, notes = sides.explain(what, facts=facts, assume_passed=assume_passed)
            head = sides.head.project
    say(notes)
    if style == "json":
        answer(as_document(explained))
    elif style == "markdown":
        answer(explanation_markdown(explained, head))
    else:
        answer(explanation_text(explained, head), fit="wrap")
