"""`dbt-ripple diff`: what changed between base and head, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.cli.chosen import chosen, selection_options
from dbt_ripple.cli.dbt import DbtOptions
from dbt_ripple.cli.options import (
    Fit,
    analysis_options,
    answer,
    as_document,
    count,
    format_option,
    open_cache,
    project_options,
    warn,
)
from dbt_ripple.cli.shown import code, prose, styled
from dbt_ripple.cli.state import open_sides, sides_options

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes.diff import ColumnDiff, Diff, NodeDiff


@click.command(
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
    from dbt_ripple.changes import compare
    from dbt_ripple.changes.diff import diff as diff_of
    from dbt_ripple.changes.unchanged import NOTHING, nothing_changed

    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    with (
        open_cache(cache_dir, no_cache) as cache,
        open_sides(*(project_dir, target_path, state, base_ref, options, cache, threads)) as (
            base,
            head,
        ),
    ):
        comparison = compare(
            base.project,
            head.project,
            base_analysis=base.analysis(),
            head_analysis=head.analysis(),
            cache=cache,
        )
        found = diff_of(comparison)
        wanted = chosen(_both(base.project, head.project), selected, excluded, project_dir)
    if wanted is not None:
        found.nodes = [node for node in found.nodes if node.unique_id in wanted]
        found.broken = [node for node in found.broken if node.unique_id in wanted]
    for note in found.notes:
        warn(note.message)
    if style == "json":
        answer(as_document(found))
        return
    nothing = nothing_changed(comparison) or (
        NOTHING if wanted is None else "nothing of what is selected by name changed"
    )
    lines = _markdown if style == "markdown" else _text
    said = list(lines(found, base.project, head.project))
    fit: Fit = "wrap" if style == "text" else None
    answer(said or [nothing], fit=fit)


def _both(base: Project, head: Project) -> Project:
    """Head with what only base has, to select of."""
    return replace(
        head,
        nodes=base.nodes | head.nodes,
        parents={**base.parents, **head.parents},
        children={**base.children, **head.children},
    )


def name_of(unique_id: str, head: Project, base: Project) -> str:
    """A node as people call it."""
    node = head.nodes.get(unique_id) or base.nodes.get(unique_id)
    return node.spoken_name if node else unique_id


def described(column: ColumnDiff) -> Iterator[str]:
    """A column's change: what happened, then what stood there and what stands there now."""
    if column.change == "renamed":
        yield f"{column.name}: renamed from {column.before}"
    elif column.change == "retyped":
        yield f"{column.name}: retyped from {column.before} to {column.after}"
    elif column.before is not None and column.before == column.after:
        yield f"{column.name}: {column.change} through what {column.after} is made of"
    else:
        yield f"{column.name}: {column.change}"
        if column.before is not None:
            yield f"- {_one_line(column.before)}"
        if column.after is not None:
            yield f"+ {_one_line(column.after)}"


def rows_described(node: NodeDiff) -> Iterator[str]:
    """A row set's change, likewise."""
    if node.rows is not None and node.rows.change != "upstream":
        yield "rows changed"
        yield from (f"- {_one_line(text)}" for text in node.rows.before)
        yield from (f"+ {_one_line(text)}" for text in node.rows.after)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."


_WIDTH = 160


def entries(node: NodeDiff) -> Iterator[list[str]]:
    """What changed of a relation: for each the headline, then what stood and what stands there."""
    if found := list(rows_described(node)):
        yield found
    by_the_same = [c for c in node.columns if _by_the_rows(node, c)]
    for column in node.columns:
        if column.change != "upstream" and column not in by_the_same:
            yield list(described(column))
    if by_the_same:
        yield [f"{count(len(by_the_same), 'column')} redefined by that"]
    if node.reordered and node.change == "changed":
        yield ["columns in another order"]


def _by_the_rows(node: NodeDiff, column: ColumnDiff) -> bool:
    """Whether a column reads as before, in a relation whose rows are made in another way."""
    return (
        column.change == "redefined"
        and column.before == column.after
        and node.rows is not None
        and node.rows.change != "upstream"
    )


def below(found: Diff) -> str:
    """What is downstream only, in one line; empty where nothing is."""
    nodes = [node for node in found.nodes if node.change == "downstream"]
    columns = sum(len(node.columns) for node in nodes)
    if not nodes:
        return ""
    return f"downstream: {count(columns, 'column')} of {count(len(nodes), 'node')}"


def _text(found: Diff, base: Project, head: Project) -> Iterator[str]:
    for node in found.nodes:
        if node.change == "downstream":
            continue
        yield styled(f"{name_of(node.unique_id, head, base)} ({node.change})", bold=True)
        if node.change == "added":
            yield f"  {count(len(node.columns), 'column')}"
            continue
        for entry in entries(node):
            yield f"  {entry[0]}"
            for line in entry[1:]:
                yield "    " + styled(line, fg="red" if line.startswith("-") else "green")
    if text := below(found):
        yield text
    if found.broken:
        yield styled("cannot compile:", bold=True)
    for broken in found.broken:
        yield f"  {name_of(broken.unique_id, head, base)}: {broken.reason.message}"


def _markdown(found: Diff, base: Project, head: Project) -> Iterator[str]:
    for node in found.nodes:
        if node.change == "downstream":
            continue
        yield f"### {code(name_of(node.unique_id, head, base))} ({node.change})"
        yield ""
        if node.change == "added":
            yield f"{count(len(node.columns), 'column')}."
            yield ""
            continue
        for entry in entries(node):
            yield f"- {prose(entry[0])}"
            if entry[1:]:
                yield ""
                yield "  ```diff"
                yield from (f"  {line}" for line in entry[1:])
                yield "  ```"
        yield ""
    if text := below(found):
        yield f"{text.capitalize()}."
    if found.broken:
        yield ""
        yield "Cannot compile:"
        yield ""
    for broken in found.broken:
        yield f"- {code(name_of(broken.unique_id, head, base))}: {prose(broken.reason.message)}"
