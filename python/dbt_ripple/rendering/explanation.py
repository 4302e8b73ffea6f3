"""Why a test is selected or a column differs, as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dbt_ripple.reasons import Code, parts_of
from dbt_ripple.rendering.causes import edited_lines
from dbt_ripple.rendering.escaping import code, one_line, prose, styled, two_lines
from dbt_ripple.selection.explain import Beginning, Explanation, PathStep

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project


def _spoken(step: PathStep, head: Project) -> str:
    node = head.nodes.get(step.unique_id)
    name = node.display_name if node else step.unique_id
    if step.column is None:
        return name
    return f"{name} (rows)" if step.column == "*rows*" else f"{name}.{step.column}"


def _before_and_after_lines(explanation: Beginning | Explanation) -> tuple[list[str], list[str]]:
    """What base has at the beginning of the path and what head has, a line each."""
    before, after = explanation.before, explanation.after
    if len(before) == len(after) == 1:
        pair = two_lines(before[0], after[0])
        return [pair[0] or ""], [pair[1] or ""]
    return [one_line(text) for text in before], [one_line(text) for text in after]


def _tests_behind(explanation: Explanation, head: Project) -> Iterator[tuple[str, str]]:
    """What a proven test rests on, and what blocks a blocked one."""
    for title, unique_ids in (
        ("rests on", explanation.facts),
        ("blocked by", [explanation.blocked_by] if explanation.blocked_by else []),
    ):
        for unique_id in unique_ids:
            node = head.nodes.get(unique_id)
            yield title, node.display_name if node else unique_id


def _arguments(explanation: Explanation) -> list[str]:
    """What shows that a proven test cannot fail, or why a blocked one cannot run."""
    if explanation.verdict not in {"proven", "blocked"}:
        return []
    parts = (
        parts_of(explanation.reason)
        if explanation.reason.code is Code.PROVEN
        else [explanation.reason]
    )
    return [part.message for part in parts]


def explanation_text(explanation: Explanation, head: Project) -> Iterator[str]:
    """An explanation as text, line by line."""
    arguments = _arguments(explanation)
    reason = f": {explanation.reason.message}" if not arguments else ", because"
    yield f"{styled(explanation.name, bold=True)}: {explanation.verdict}{reason}"
    yield from (f"  - {argument}" for argument in arguments)
    if explanation.broken and explanation.broken != explanation.reason:
        yield f"  cannot compile: {explanation.broken.message}"
    if explanation.causes:
        for cause in explanation.causes:
            yield from _cause(cause, explanation.unique_id, head)
    else:
        yield from _path(explanation, explanation.path, head)
    yield from _names(explanation)
    yield from (f"  {title} {name}" for title, name in _tests_behind(explanation, head))
    if explanation.not_proven:
        yield f"  not proven: {explanation.not_proven.message}"


_REACHED_SHOWN: Final = 20
"""Columns of a relation that one change reaches; the rest is counted."""


def _cause(cause: Beginning, unique_id: str, head: Project) -> Iterator[str]:
    """Where a change began, and the columns of a relation that differ because of it, as a table."""
    if len(cause.reaches) == 1:
        yield from _path(cause, cause.path, head)
        return
    yield from _path(cause, cause.path[:1], head)
    reached = [step for step in cause.reaches if step != cause.path[0]]
    shown = reached[:_REACHED_SHOWN]
    names = [_spoken(step, head) for step in shown]
    width = max(map(len, names))
    for name, step in zip(names, shown, strict=True):
        sql = styled(f"  {one_line(step.expression)}", dim=True) if step.expression else ""
        yield f"    └── {name.ljust(width) if sql else name}{sql}"
    if len(reached) > len(shown):
        yield f"    and {len(reached) - len(shown)} more columns"


def _names(explanation: Explanation) -> Iterator[str]:
    """The columns that went, and those that only have another name."""
    if explanation.removed:
        yield f"  removed: {', '.join(explanation.removed)}"
    yield from (f"  renamed: {one.before} to {one.after}" for one in explanation.renamed)


def _path(of: Beginning | Explanation, path: list[PathStep], head: Project) -> Iterator[str]:
    """A path as a tree, with what base and head have where it begins."""
    for depth, step in enumerate(path):
        arrow = "  " * depth + ("└── " if depth else "")
        text = f"  {arrow}{_spoken(step, head)}"
        if step.expression and depth:
            text += styled(f"  {one_line(step.expression)}", dim=True)
        yield text
        if depth == 0:
            before, after = _before_and_after_lines(of)
            yield from (styled(f"      - {text}", fg="red") for text in before)
            yield from (styled(f"      + {text}", fg="green") for text in after)
            yield from (f"      edited: {line}" for line in edited_lines(of.edited, head))


def explanation_markdown(explanation: Explanation, head: Project) -> Iterator[str]:
    """An explanation as Markdown, line by line."""
    arguments = _arguments(explanation)
    because = "Because" if arguments else prose(explanation.reason.message)
    yield f"**{code(explanation.name)}: {explanation.verdict}.** {because}"
    if arguments:
        yield ""
        yield from (f"- {prose(argument)}" for argument in arguments)
    if explanation.broken and explanation.broken != explanation.reason:
        yield ""
        yield f"It cannot compile: {prose(explanation.broken.message)}."
    parts: Sequence[Beginning | Explanation] = explanation.causes or [explanation]
    for cause in parts:
        if cause.path:
            yield ""
        for step in cause.path:
            text = f"1. {code(_spoken(step, head))}"
            yield text + (f": {code(one_line(step.expression))}" if step.expression else "")
        if cause.before or cause.after:
            yield ""
            yield "```diff"
            before, after = _before_and_after_lines(cause)
            yield from (f"- {text}" for text in before)
            yield from (f"+ {text}" for text in after)
            yield "```"
        if cause.edited:
            yield ""
            edited = edited_lines(cause.edited, head, markdown=True)
            yield from (f"- edited: {line}" for line in edited)
        if isinstance(cause, Beginning) and len(cause.reaches) > 1:
            yield ""
            yield "| column | SQL |"
            yield "| --- | --- |"
            for step in cause.reaches:
                sql = code(one_line(step.expression)) if step.expression else ""
                yield f"| {code(_spoken(step, head))} | {sql} |"
    if explanation.removed or explanation.renamed:
        yield ""
        yield from (f"- {prose(line.strip())}" for line in _names(explanation))
    yield from (f"- {title} {code(name)}" for title, name in _tests_behind(explanation, head))
    if explanation.not_proven:
        yield ""
        yield f"Not proven: {prose(explanation.not_proven.message)}."
