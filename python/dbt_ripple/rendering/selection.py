"""A selection as text, Markdown, JSON and names for `dbt build --select`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dbt_ripple.reasons import Code, Reason
from dbt_ripple.rendering.causes import cause_lines, cause_markdown
from dbt_ripple.rendering.escaping import code, dbt_word, prose, styled
from dbt_ripple.rendering.output import answer, as_document, count, say
from dbt_ripple.selection.result import CutSelection, Selection

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.selection.cutoff import Cutoff
    from dbt_ripple.selection.result import BlockedTest, ProvenTest


def show(
    selection: Selection, head: Project, style: str, output: str | None = None, nothing: str = ""
) -> None:
    """Print a selection on stdout, and what it had to assume on stderr.

    Args:
        selection: what is printed.
        head: has the names.
        style: how.
        output: what is printed instead.
        nothing: what people are told where it is empty.
    """
    say(selection.notes)
    if output == "selector":
        return
    if output == "names":
        lines = names(selection, head)
    elif style == "json":
        lines = as_document(selection)
    elif is_empty(selection):
        lines = [nothing] if nothing else []
    else:
        lines = list(
            _markdown(selection, head) if style == "markdown" else selection_lines(selection, head)
        )
    if lines:
        answer(lines, fit="wrap" if style == "text" and not output else None)


def names(selection: Selection, head: Project) -> list[str]:
    """What is selected, as dbt's ``--select`` takes it: models to build first, tests last.

    A name that dbt would also find elsewhere (it matches folders and other packages, too) is spelled
    out from its package down.
    """
    tests = [test.unique_id for test in selection.tests]
    return dbt_words([*selection.models, *selection.unit_tests, *tests], head)


def dbt_words(unique_ids: Iterable[str], head: Project) -> list[str]:
    """Nodes as dbt's ``--select`` and ``--exclude`` take them, as `names` says.

    Args:
        unique_ids: models, seeds, snapshots and tests.
        head: has them.
    """
    fqns = [node.fqn for node in head.nodes.values() if node.fqn]
    elsewhere = {part for fqn in fqns for part in fqn[:-1]}
    often = Counter(fqn[-1] for fqn in fqns)
    words = []
    for unique_id in unique_ids:
        node = head.nodes[unique_id]
        name = node.display_name
        unclear = name in elsewhere or node.name in elsewhere or dbt_word(name) != name
        if node.fqn and (unclear or often[node.fqn[-1]] > 1):
            words.append(".".join(map(dbt_word, node.fqn)))
        else:
            words.append(dbt_word(name))
    return words


def headline(selection: Selection) -> str:
    """One line: how many tests, against what dbt would run."""
    counts = selection.counts
    counted = f", {counts.proven_tests:,} proven" if counts.proven_tests else ""
    if counts.blocked_tests:
        counted += f", {counts.blocked_tests:,} blocked by what cannot be built"
    if selection.critical:
        counted += f", {len(selection.critical):,} only because critical assets are below"
    return (
        f"{counts.impacted_tests:,} of {count(counts.all_tests, 'test')}{counted}; dbt's "
        f"state:modified+ would run {counts.state_modified_tests:,}"
    )


def is_empty(selection: Selection) -> bool:
    """Whether there is nothing to say: base and head are equal."""
    parts: tuple[object, ...] = (
        selection.tests,
        selection.proven,
        selection.blocked,
        selection.models,
    )
    parts += (selection.broken, selection.exposures, selection.assets, selection.unit_tests)
    return not any(parts) and (selection.counts.state_modified_tests == 0)


_Items = list[tuple[str, str]]


def spoken(unique_id: str, head: Project) -> str:
    """A node of head as people call it; what is no node of it by its id."""
    node = head.nodes.get(unique_id)
    return node.spoken_name if node else unique_id


def _cannot_be_built(selection: Selection, head: Project) -> _Items:
    """What comes before the tests, because they rest on it: each node once, with its cause.

    Of a test that is selected the cause stands beside it.
    """
    blocked: dict[str, list[BlockedTest]] = {}
    for test in selection.blocked:
        blocked.setdefault(test.blocked_by, []).append(test)
    selected = {
        test.unique_id for test in selection.tests if test.reason.code is not Code.DBT_MODIFIED
    }
    causes = {
        b.unique_id: b.reason.message for b in selection.broken if b.unique_id not in selected
    }
    for unique_id, tests in blocked.items():
        causes[unique_id] = (
            f"{causes.get(unique_id) or _cause(tests[0])}; {count(len(tests), 'test')} blocked"
        )
    return [(spoken(u, head), cause) for u, cause in causes.items()]


def _sections(selection: Selection, head: Project) -> Iterator[tuple[str, _Items]]:
    """What follows the tests: a title, and names with a text for each."""

    def name(unique_id: str) -> str:
        return spoken(unique_id, head)

    yield (
        "proven",
        [(name(test.unique_id), _proof_in_short(test, name)) for test in selection.proven],
    )
    yield "not proven", _not_proven(selection)
    yield "to build", [(name(u), "") for u in selection.models]
    yield "unit tests", [(name(u), "") for u in selection.unit_tests]
    yield "exposures", [(name(u), "") for u in selection.exposures]
    yield "assets", [(name(u), "") for u in selection.assets or ()]
    touched = {*selection.models, *selection.unit_tests}
    for items in (selection.tests, selection.proven, selection.blocked, selection.broken):
        touched.update(item.unique_id for item in items)
    unread = [o for o in selection.opaque if o.unique_id in touched]  # the answer rests on no other
    yield (
        "not analysed, so each counts as depending on all that it reads",
        [(name(o.unique_id), o.reason.message) for o in unread],
    )


def _cause(test: BlockedTest) -> str:
    """Why the relation above a blocked test cannot be built."""
    because = test.reason.arguments["because"]
    return because.message if isinstance(because, Reason) else ""


def _not_proven(selection: Selection) -> list[tuple[str, str]]:
    """What is missing to prove the selected tests, and of how many; a note says it where of all."""
    missing = (test.not_proven for test in selection.tests if test.not_proven)
    reasons = Counter(m.message for m in missing if m.code is not Code.NO_RESULTS)
    return [(count(number, "test"), reason) for reason, number in reasons.most_common()]


def _proof_in_short(test: ProvenTest, name: Callable[[str], str]) -> str:
    """What a proven test rests on, short: `explain` gives the whole argument."""
    if not test.facts:
        message = test.reason.message
        return message if len(message) <= _SHORT else "by how its rows are made (`explain`)"
    shown = ", ".join(name(fact) for fact in test.facts[:_FACTS])
    more = len(test.facts) - _FACTS
    return f"rests on {shown}" + (f" and {more:,} more" if more > 0 else "")


_SHORT = 120
_FACTS = 2


def selection_lines(selection: Selection, head: Project, *, causes: bool = True) -> Iterator[str]:
    """A selection as text; without the causes where these are told already."""
    yield headline(selection)
    if selection.causes and causes:
        yield "changed:"
        yield from cause_lines(selection.causes, head)
    yield from section_lines("cannot be built", _cannot_be_built(selection, head))
    if selection.tests and (selection.causes or selection.broken or selection.blocked):
        yield "tests:"
    width = min(60, max((len(test.name) for test in selection.tests), default=0))
    for test in selection.tests:
        yield f"  {test.name:<{width}}  {styled(test.reason.message, dim=True)}"
    for title, items in _sections(selection, head):
        yield from section_lines(title, items)


def section_lines(title: str, items: _Items) -> Iterator[str]:
    """A heading, and what stands below it with its reasons: the first few, and how many more there are."""
    if any(reason for _, reason in items):
        yield f"{title}:"
        for item, reason in items[:_SHOWN]:
            yield f"  {item}: {reason}"
        if len(items) > _SHOWN:
            yield f"  and {len(items) - _SHOWN:,} more (--format json has them all)"
    elif items:
        more = f" and {len(items) - _NAMED:,} more (--output names has them all)"
        names_ = ", ".join(item for item, _ in items[:_NAMED])
        yield f"{title}: {names_}" + (more if len(items) > _NAMED else "")


_SHOWN = 10
_NAMED = 25
"""Names of a line: more of them nobody reads."""


def _markdown(selection: Selection, head: Project) -> Iterator[str]:
    yield f"**{headline(selection)}**"
    if selection.causes:
        yield from ("", "Changed:", "", *cause_markdown(selection.causes, head))
    yield from _markdown_section("cannot be built", _cannot_be_built(selection, head))
    if selection.tests:
        yield ""
        yield "| test | reason |"
        yield "| --- | --- |"
        for test in selection.tests:
            yield f"| {code(test.name)} | {prose(test.reason.message)} |"
    for title, items in _sections(selection, head):
        yield from _markdown_section(title, items)


def _markdown_section(title: str, items: _Items) -> Iterator[str]:
    if items:
        yield ""
        yield f"{title.capitalize()}:"
        yield ""
        for item, reason in items:
            yield f"- {code(item)}" + (f": {prose(reason)}" if reason else "")


def show_cutoff(cutoff: Cutoff, head: Project, style: str, nothing: str) -> None:
    """Print what became of a selection, on stdout; ``nothing`` where there is none."""
    outcome = cutoff.result()
    selection = cutoff.selection
    if style == "json":
        fields = {name: getattr(selection, name) for name in Selection.__struct_fields__}
        answer(as_document(CutSelection(**fields, cutoff=outcome)))
        return
    if is_empty(selection):
        answer(nothing)
        return

    def name(unique_id: str) -> str:
        return head.nodes[unique_id].display_name

    mark = "**" if style == "markdown" else ""
    lines = [
        f"{mark}{len(outcome.tests):,} of {count(selection.counts.all_tests, 'test')} ran, "
        f"{len(outcome.stopped):,} could differ and did not run, because what they read is equal; dbt's "
        f"state:modified+ would run {selection.counts.state_modified_tests:,}{mark}"
    ]
    sections = [
        (
            "ran",
            [(t.name, f"{t.reason.message}; {t.rests_on}: {t.because}") for t in outcome.tests],
        ),
        ("did not run", [(t.name, t.reason.message) for t in outcome.stopped]),
        (
            "could not run",
            [(name(u), f"{name(v)} was not built") for u, v in outcome.skipped.items()],
        ),
        ("built", [(name(u), why) for u, why in outcome.built.items()]),
        (
            "not built",
            [
                (
                    name(m.unique_id),
                    f"what it reads is equal to base's: {', '.join(map(name, m.equal))}",
                )
                for m in outcome.stopped_models
            ],
        ),
        ("proven", [(name(t.unique_id), t.reason.message) for t in selection.proven]),
        ("blocked", [(name(t.unique_id), t.reason.message) for t in selection.blocked]),
    ]
    for title, items in sections:
        if not items:
            continue
        lines += ["", f"{title.capitalize()}:", ""] if mark else [f"{title}:"]
        lines += [f"- {code(n)}: {prose(why)}" if mark else f"  {n}: {why}" for n, why in items]
    answer(lines, fit=None if mark else "wrap")
