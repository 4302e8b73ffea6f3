"""Why a test is selected, as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dbt_ripple.reasons import Code, parts_of
from dbt_ripple.rendering.escaping import code, one_line, prose, styled, two_lines

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.selection.explain import Explanation, PathStep


def _spoken(step: PathStep, head: Project) -> str:
    node = head.nodes.get(step.unique_id)
    name = node.display_name if node else step.unique_id
    if step.column is None:
        return name
    return f"{name} (rows)" if step.column == "*rows*" else f"{name}.{step.column}"


def _before_and_after_lines(explanation: Explanation) -> tuple[list[str], list[str]]:
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
    for depth, step in enumerate(explanation.path):
        arrow = "  " * depth + ("└── " if depth else "")
        text = f"  {arrow}{_spoken(step, head)}"
        if step.expression and depth:
            text += styled(f"  {one_line(step.expression)}", dim=True)
        yield text
        if depth == 0:
            before, after = _before_and_after_lines(explanation)
            yield from (styled(f"      - {text}", fg="red") for text in before)
            yield from (styled(f"      + {text}", fg="green") for text in after)
    yield from (f"  {title} {name}" for title, name in _tests_behind(explanation, head))
    if explanation.not_proven:
        yield f"  not proven: {explanation.not_proven.message}"


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
    if explanation.path:
        yield ""
    for step in explanation.path:
        text = f"1. {code(_spoken(step, head))}"
        yield text + (f": {code(one_line(step.expression))}" if step.expression else "")
    if explanation.before or explanation.after:
        yield ""
        yield "```diff"
        before, after = _before_and_after_lines(explanation)
        yield from (f"- {text}" for text in before)
        yield from (f"+ {text}" for text in after)
        yield "```"
    yield from (f"- {title} {code(name)}" for title, name in _tests_behind(explanation, head))
    if explanation.not_proven:
        yield ""
        yield f"Not proven: {prose(explanation.not_proven.message)}."
