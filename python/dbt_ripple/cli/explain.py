"""`dbt-ripple explain`: why a test is selected or a column differs, or why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbt_ripple.cli.help import Command
from dbt_ripple.cli.options import analysis_options, format_option, open_cache, project_options
from dbt_ripple.cli.shell_completion import names_of_any
from dbt_ripple.cli.sides_options import facts_options, sides_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.rendering.explanation import explanation_markdown, explanation_text
from dbt_ripple.rendering.output import answer, as_document, say
from dbt_ripple.session.base_and_head import compare_sides, open_sides
from dbt_ripple.session.typed_names import as_typed


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
    from dbt_ripple.cli.select import tier_asked
    from dbt_ripple.selection import select_from
    from dbt_ripple.selection.explain import TESTS, explain_node, find
    from dbt_ripple.selection.explain import explain as explanation

    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with (
        open_cache(cache_dir, no_cache) as cache,
        open_sides(
            *(project_dir, target_path, state, base_ref, options, cache, threads),
            or_count=True,
            assets=dbt_arguments["assets"],
        ) as (base, head),
    ):
        node, column = find(head.project, as_typed(what, project_dir))
        comparison = compare_sides(base, head, cache)
        if node.resource_type in TESTS:
            selection = select_from(
                comparison,
                critical=tier_asked(None, project_dir),
                facts=facts,
                assume_passed=assume_passed,
                cache=cache,
            )
            explained, notes = explanation(comparison, selection, node), selection.notes
        else:
            explained, notes = explain_node(comparison, node, column), comparison.notes
    say(notes)
    if style == "json":
        answer(as_document(explained))
    elif style == "markdown":
        answer(explanation_markdown(explained, head.project))
    else:
        answer(explanation_text(explained, head.project), fit="wrap")
