"""`dbt-ripple diff`: what changed between base and head, column by column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    project_options,
    selection_options,
)
from dbt_ripple.cli.sides_options import sides_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.rendering.diff import diff_markdown, diff_text
from dbt_ripple.rendering.output import Fit, answer, as_document, say
from dbt_ripple.session.typed_names import chosen

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple diff --state prod-artifacts
  dbt-ripple diff --state prod-artifacts --format markdown
  dbt-ripple diff --base-ref origin/main
  dbt-ripple diff --state prod-artifacts --select models/staging
""",
)
@sides_options
@format_option("text", "json", "markdown")
@selection_options("Only nodes that dbt selects by SPEC.")
@analysis_options
@project_options
def diff(
    state: Path | None,
    base_ref: str | None,
    style: str,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> None:
    """Print what changed from base to this project, column by column.

    A column is added, removed, renamed (the same definition under another name), redefined or
    retyped. Rows change with a join, a filter, a grouping or a config. Nodes that only read
    something that changed are counted, not listed. A refactor with the same meaning is no change.
    """
    from dbt_ripple.changes.comparison import NOTHING, nothing_changed
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
        with project.against(state, base_ref) as sides:
            differences = sides.diff()
            comparison, base, head = sides.comparison, sides.base.project, sides.head.project
            wanted = chosen(_both(base, head), selected, excluded, project_dir)
    if wanted is not None:
        differences.nodes = [node for node in differences.nodes if node.unique_id in wanted]
        differences.broken = [node for node in differences.broken if node.unique_id in wanted]
        differences.causes = [c for c in differences.causes if not wanted.isdisjoint(c.nodes)]
    say(differences.notes)
    if style == "json":
        answer(as_document(differences))
        return
    nothing = nothing_changed(comparison) or (
        NOTHING if wanted is None else "nothing of what is selected by name changed"
    )
    lines = diff_markdown if style == "markdown" else diff_text
    printed = list(lines(differences, base, head))
    fit: Fit = "wrap" if style == "text" else None
    answer(printed or [nothing], fit=fit)


def _both(base: Project, head: Project) -> Project:
    """Head with what only base has, to select of."""
    return replace(
        head,
        nodes=base.nodes | head.nodes,
        parents={**base.parents, **head.parents},
        children={**base.children, **head.children},
    )
