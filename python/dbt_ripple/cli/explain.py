"""`dbt-ripple explain`: why a test is selected, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.cli.complete import names_of_tests
from dbt_ripple.cli.dbt import DbtOptions
from dbt_ripple.cli.options import (
    analysis_options,
    answer,
    as_document,
    format_option,
    open_cache,
    project_options,
    warn,
)
from dbt_ripple.cli.shown import code, prose, styled
from dbt_ripple.cli.state import facts_options, open_sides, sides_options
from dbt_ripple.reasons import Code, parts_of

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.selection.explain import Explanation, Step


@click.command(
    epilog="""\b
Examples:
  dbt-ripple explain unique_fct_orders_order_id --state prod-artifacts
  dbt-ripple explain accepted_values_fct_orders_status --state prod-artifacts --format json
  dbt-ripple explain unique_fct_orders_order_id --base-ref origin/main
""",
)
@click.argument("test", shell_complete=names_of_tests)
@sides_options
@format_option("text", "json", "markdown")
@facts_options
@analysis_options
@project_options
def explain(
    test: str,
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
    """Print why TEST is selected: the path from the edit to it, with the SQL before and after.

    For a test that is not selected, print where the change stops having an effect: nothing above it
    changed, it does not read what changed, or what it reads is the same again. TEST is a unique_id,
    a name, or a part of a name that only one test has.
    """
    from dbt_ripple.changes import compare
    from dbt_ripple.selection import select_from
    from dbt_ripple.selection.explain import explain as explanation
    from dbt_ripple.selection.explain import find_test

    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with (
        open_cache(cache_dir, no_cache) as cache,
        open_sides(
            *(project_dir, target_path, state, base_ref, options, cache, threads),
            or_count=True,
        ) as (base, head),
    ):
        node = find_test(head.project, test)
        comparison = compare(
            base.project,
            head.project,
            base_analysis=base.analysis(),
            head_analysis=head.analysis(),
            cache=cache,
        )
        selection = select_from(comparison, facts=facts, assume_passed=assume_passed, cache=cache)
        found = explanation(comparison, selection, node)
    for note in selection.notes:
        warn(note.message)
    if style == "json":
        answer(as_document(found))
    elif style == "markdown":
        answer(_markdown(found, head.project))
    else:
        answer(_text(found, head.project), fit="wrap")


def _spoken(step: Step, head: Project) -> str:
    node = head.nodes.get(step.unique_id)
    name = node.display_name if node else step.unique_id
    if step.column is None:
        return name
    return f"{name} (rows)" if step.column == "*rows*" else f"{name}.{step.column}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _grounds(found: Explanation, head: Project) -> Iterator[tuple[str, str]]:
    """What a proven test rests on, and what blocks a blocked one."""
    for said, unique_ids in (
        ("rests on", found.facts),
        ("blocked by", [found.blocked_by] if found.blocked_by else []),
    ):
        for unique_id in unique_ids:
            node = head.nodes.get(unique_id)
            yield said, node.display_name if node else unique_id


def _arguments(found: Explanation) -> list[str]:
    """What shows that a proven test cannot fail, or why a blocked one cannot run."""
    if found.verdict not in {"proven", "blocked"}:
        return []
    parts = parts_of(found.reason) if found.reason.code is Code.PROVEN else [found.reason]
    return [part.message for part in parts]


def _text(found: Explanation, head: Project) -> Iterator[str]:
    arguments = _arguments(found)
    reason = f": {found.reason.message}" if not arguments else ", because"
    yield f"{styled(found.name, bold=True)}: {found.verdict}{reason}"
    yield from (f"  - {argument}" for argument in arguments)
    if found.broken and found.broken != found.reason:
        yield f"  cannot compile: {found.broken.message}"
    for depth, step in enumerate(found.path):
        arrow = "  " * depth + ("└── " if depth else "")
        text = f"  {arrow}{_spoken(step, head)}"
        if step.expression and depth:
            text += styled(f"  {_one_line(step.expression)}", dim=True)
        yield text
        if depth == 0:
            yield from (styled(f"      - {_one_line(t)}", fg="red") for t in found.before)
            yield from (styled(f"      + {_one_line(t)}", fg="green") for t in found.after)
    yield from (f"  {said} {name}" for said, name in _grounds(found, head))
    if found.not_proven:
        yield f"  not proven: {found.not_proven.message}"


def _markdown(found: Explanation, head: Project) -> Iterator[str]:
    arguments = _arguments(found)
    because = "Because" if arguments else prose(found.reason.message)
    yield f"**{code(found.name)}: {found.verdict}.** {because}"
    if arguments:
        yield ""
        yield from (f"- {prose(argument)}" for argument in arguments)
    if found.broken and found.broken != found.reason:
        yield ""
        yield f"It cannot compile: {prose(found.broken.message)}."
    if found.path:
        yield ""
    for step in found.path:
        text = f"1. {code(_spoken(step, head))}"
        yield text + (f": {code(_one_line(step.expression))}" if step.expression else "")
    if found.before or found.after:
        yield ""
        yield "```diff"
        yield from (f"- {_one_line(t)}" for t in found.before)
        yield from (f"+ {_one_line(t)}" for t in found.after)
        yield "```"
    yield from (f"- {said} {code(name)}" for said, name in _grounds(found, head))
    if found.not_proven:
        yield ""
        yield f"Not proven: {prose(found.not_proven.message)}."
