"""The differences between base and head as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from dbt_ripple.rendering.causes import EDITED_THERE, OF_A_NODE, edited_lines
from dbt_ripple.rendering.escaping import code, one_line, prose, styled, two_lines
from dbt_ripple.rendering.output import count

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.changes.causes import Cause
    from dbt_ripple.changes.diff import ColumnDiff, Diff, NodeDiff


def name_of(unique_id: str, head: Project, base: Project) -> str:
    """A node as people call it."""
    node = head.nodes.get(unique_id) or base.nodes.get(unique_id)
    return node.spoken_name if node else unique_id


def described(columns: Sequence[ColumnDiff]) -> Iterator[str]:
    """The change of a column, or of several alike: what happened, then what stood there and what stands there now."""
    column = columns[0]
    if column.change == "renamed":
        yield f"{column.name}: renamed from {column.before}"
    elif column.change == "retyped":
        yield f"{column.name}: retyped from {column.before} to {column.after}"
    elif column.before is not None and column.before == column.after:
        yield f"{column.name}: {column.change} through what {column.after} is made of"
    else:
        yield f"{', '.join(c.name for c in columns)}: {column.change}"
        before, after = two_lines(column.before, column.after)
        if before is not None:
            yield f"- {before}"
        if after is not None:
            yield f"+ {after}"


def rows_described(node: NodeDiff) -> Iterator[str]:
    """A row set's change, likewise."""
    if node.rows is not None and node.rows.change != "upstream":
        yield "rows changed"
        yield from (f"- {one_line(text)}" for text in node.rows.before)
        yield from (f"+ {one_line(text)}" for text in node.rows.after)


def entries(node: NodeDiff) -> Iterator[list[str]]:
    """What changed of a relation: for each the headline, then what stood and what stands there."""
    if lines := list(rows_described(node)):
        yield lines
    by_the_same = [c for c in node.columns if _by_the_rows(node, c)]
    own = [c for c in node.columns if c.change != "upstream" and c not in by_the_same]
    for _, alike in groupby(own, key=_said_of):
        yield list(described([*alike]))
    if by_the_same:
        yield [f"{count(len(by_the_same), 'column')} redefined by that"]
    if node.reordered and node.change == "changed":
        yield ["columns in another order"]


def _said_of(column: ColumnDiff) -> tuple[str | None, ...]:
    """What is said of a column; of columns that stand together and of which the same is said, it is said once."""
    with_its_name = column.change in ("renamed", "retyped") or column.before == column.after
    name = column.name if with_its_name else None
    return name, column.change, column.before, column.after


def _by_the_rows(node: NodeDiff, column: ColumnDiff) -> bool:
    """Whether a column reads as before, in a relation whose rows are made in another way."""
    return (
        column.change == "redefined"
        and column.before == column.after
        and node.rows is not None
        and node.rows.change != "upstream"
    )


def below(differences: Diff) -> str:
    """What is downstream only, in one line; empty where nothing is."""
    nodes = [node for node in differences.nodes if node.change == "downstream"]
    columns = sum(len(node.columns) for node in nodes)
    if not nodes:
        return ""
    return f"downstream: {count(columns, 'column')} of {count(len(nodes), 'node')}"


class Edits:
    """What was edited, by the nodes that differ because of it."""

    def __init__(self, differences: Diff, head: Project) -> None:
        self._head = head
        self._causes: dict[str, list[Cause]] = {}
        for cause in differences.causes:
            for unique_id in cause.nodes:
                self._causes.setdefault(unique_id, []).append(cause)

    def what_it_is(self, node: NodeDiff) -> str:
        """A change in a word: changed is what somebody edited, affected what differs because of that."""
        there = any(cause.kind in EDITED_THERE for cause in self._causes.get(node.unique_id, ()))
        return node.change if there or node.change != "changed" else "affected"

    def of(self, unique_id: str, *, markdown: bool = False) -> list[str]:
        """What was edited that makes a node differ, a line each."""
        causes = [
            msgspec.structs.replace(cause, nodes=[unique_id] if cause.kind in OF_A_NODE else [])
            for cause in self._causes.get(unique_id, ())
            if cause.kind not in ("compiled", "new", "removed")
        ]
        return edited_lines(causes, self._head, markdown=markdown)


def diff_text(differences: Diff, base: Project, head: Project) -> Iterator[str]:
    """The differences as text, line by line."""
    edits = Edits(differences, head)
    for node in differences.nodes:
        if node.change == "downstream":
            continue
        what = edits.what_it_is(node)
        yield styled(f"{name_of(node.unique_id, head, base)} ({what})", bold=True)
        yield from (f"  edited: {line}" for line in edits.of(node.unique_id))
        if node.change == "added":
            yield f"  {count(len(node.columns), 'column')}"
            continue
        for entry in entries(node):
            yield f"  {entry[0]}"
            for line in entry[1:]:
                yield "    " + styled(line, fg="red" if line.startswith("-") else "green")
    if text := below(differences):
        yield text
    if differences.broken:
        yield styled("cannot compile:", bold=True)
    for broken in differences.broken:
        yield f"  {name_of(broken.unique_id, head, base)}: {broken.reason.message}"


def diff_markdown(differences: Diff, base: Project, head: Project) -> Iterator[str]:
    """The differences as Markdown, line by line."""
    edits = Edits(differences, head)
    for node in differences.nodes:
        if node.change == "downstream":
            continue
        what = edits.what_it_is(node)
        yield f"### {code(name_of(node.unique_id, head, base))} ({what})"
        yield ""
        if edited := edits.of(node.unique_id, markdown=True):
            yield from (f"- edited: {line}" for line in edited)
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
    if text := below(differences):
        yield f"{text.capitalize()}."
    if differences.broken:
        yield ""
        yield "Cannot compile:"
        yield ""
    for broken in differences.broken:
        yield f"- {code(name_of(broken.unique_id, head, base))}: {prose(broken.reason.message)}"
