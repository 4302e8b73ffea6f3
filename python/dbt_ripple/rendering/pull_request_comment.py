"""The gate's comment for a pull request: what a reviewer needs to know.

It consists of parts, each a list of entries that can be cut at any length. Long lists are folded.
If the comment is still too long, the longest lists are cut, and each says how many entries are
left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from dbt_ripple.changes.diff import diff
from dbt_ripple.changes.removed_columns import RemovedColumn
from dbt_ripple.governance.sentences import deciding, in_few_words, to_do
from dbt_ripple.reasons import Reason
from dbt_ripple.rendering.causes import cause_markdown
from dbt_ripple.rendering.diff import Edits, below, entries, name_of
from dbt_ripple.rendering.escaping import code, in_one_line, prose, shown
from dbt_ripple.rendering.findings import known_findings, new_findings, reach, subject
from dbt_ripple.rendering.output import count

if TYPE_CHECKING:
    from dbt_ripple.artifacts import Project
    from dbt_ripple.governance.affected_assets import Affected
    from dbt_ripple.governance.gate import Finding, GateAnswer
    from dbt_ripple.selection.result import BlockedTest, ProvenTest, Selection, SelectionRun

MARKER: Final = "<!-- dbt-ripple gate -->"
"""First line of the comment: who posts the next one looks for it, and replaces the comment."""

LONGEST: Final = 60_000
"""Bytes of a comment: GitHub takes 65,536 characters, and the caller may want to add a few."""

ICONS: Final = {"APPROVED": "✅", "CAUTION": "⚠️", "BLOCKED": "⛔"}
_FOLDED: Final = 10
"""Entries above which a list is folded."""
_AT_MOST: Final = 500
"""Entries of one list that are looked at."""
_WIDTH: Final = 240
_NAME: Final = 120


@dataclass
class _Part:
    """One list of the comment.

    Attributes:
        title: its heading.
        entries: what is listed.
        render: the lines of some of them.
        noun: what one of them is called.
        before: lines that stand before the list, and are never cut.
        after: likewise, after it.
        folded: whether it is folded whatever its length.
    """

    title: str
    entries: Sequence[Any]
    render: Callable[[Sequence[Any]], Iterable[str]]
    noun: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    folded: bool = False

    def lines(self, number: int) -> Iterator[str]:
        """The part with so many of its entries."""
        yield ""
        yield f"#### {self.title}"
        yield ""
        yield from self.before
        body = list(self.render(self.entries[:number]))
        if (left := len(self.entries) - number) > 0:
            body += ["", f"and {left:,} more; `--format json` has them all"]
        if not self.entries:
            return
        if self.folded or len(self.entries) > _FOLDED:
            noun = count(len(self.entries), self.noun)
            body = [f"<details><summary>{noun}</summary>", "", *body, "", "</details>"]
        if self.before:
            yield ""
        yield from body
        if self.after:
            yield ""
            yield from self.after


def comment(gate_answer: GateAnswer, longest: int = LONGEST) -> Iterator[str]:
    """The comment, line by line."""
    parts = [part for part in _parts(gate_answer) if part.entries or part.before]
    heading = list(_heading(gate_answer))
    numbers = [min(len(part.entries), _AT_MOST) for part in parts]
    texts = [list(part.lines(number)) for part, number in zip(parts, numbers, strict=True)]
    while _size(heading) + sum(map(_size, texts)) > longest and any(numbers):
        longest_part = max(
            (i for i, number in enumerate(numbers) if number), key=lambda i: _size(texts[i])
        )
        numbers[longest_part] = numbers[longest_part] * 2 // 3
        texts[longest_part] = list(parts[longest_part].lines(numbers[longest_part]))
    yield from heading
    for text in texts:
        yield from text


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode(errors="surrogatepass")) + 1 for line in lines)


# --- what stands first -----------------------------------------------------------------------------


def _heading(gate_answer: GateAnswer) -> Iterator[str]:
    yield MARKER
    yield f"### {ICONS[gate_answer.report.decision]} {gate_answer.report.decision}: {why(gate_answer)}"
    facts = [
        f"Risk {gate_answer.report.risk_level}",
        f"reaches {reach(gate_answer.report.affected)}",
    ]
    if gate_answer.ran is not None and gate_answer.selection is not None:
        facts.append(run_in_short(gate_answer.selection, gate_answer.ran))
    elif gate_answer.selection is not None:
        tests = count(gate_answer.selection.counts.impacted_tests, "test")
        units = len(gate_answer.selection.unit_tests)
        facts.append(
            f"{tests} and {count(units, 'unit test')} to run" if units else f"{tests} to run"
        )
    yield ""
    yield f"{', '.join(facts)}."


def why(gate_answer: GateAnswer) -> str:
    """What decided, in a few words: the findings of the gravest level, counted."""
    from dbt_ripple.changes.comparison import nothing_changed

    report = gate_answer.report
    if counted := deciding(report.decision, new_findings(report)):
        return counted
    if unchanged := nothing_changed(gate_answer.comparison):
        return prose(unchanged)
    return in_few_words(report.findings, report.approved_by, lambda who: prose(_cut(who, _NAME)))


# --- the parts -------------------------------------------------------------------------------------


def _parts(gate_answer: GateAnswer) -> Iterator[_Part]:
    findings = new_findings(gate_answer.report)
    broken = [f for f in findings if f.rule == "reader_broken"]
    others = [f for f in findings if f.rule != "reader_broken"]
    yield _Part(
        "What was edited",
        gate_answer.report.causes,
        lambda shown: cause_markdown(shown, gate_answer.shown),
        "edit",
    )
    yield _changes(gate_answer)
    yield _Part(
        *("What breaks", broken, lambda shown: _broken(shown, gate_answer), "reader"),
    )
    todo = dict.fromkeys(
        step for f in others if f.level != "approved" and (step := to_do(f)) is not None
    )
    yield _Part(
        *(
            "What the rules say",
            list(_grouped(others)),
            lambda g: _rules(g, gate_answer),
            "finding",
        ),
        after=[f"What to do: {'; '.join(todo)}."] if todo else [],
    )
    if on_base_already := known_findings(gate_answer.report):
        yield _Part("Already so on base", [], _bullets, "", [on_base_already])
    yield _affected(gate_answer)
    if gate_answer.selection is not None:
        yield from _tests(gate_answer.selection, gate_answer.ran, gate_answer.head)
    unseen = [
        f"{code(_cut(name_of(u, gate_answer.shown, gate_answer.base), _NAME))}: {prose(_cut(reason.message))}"
        for u, reason in gate_answer.report.opaque.items()
    ]
    yield _Part("Not analysed, so they count as changed", unseen, _bullets, "node", folded=True)
    notes = [prose(_cut(note.message, 2 * _WIDTH)) for note in gate_answer.report.notes]
    yield _Part("What the answer had to assume", notes, _bullets, "note", folded=True)


def _bullets(entries: Sequence[str]) -> Iterator[str]:
    yield from (f"- {entry}" for entry in entries)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _cut(text: str, width: int = _WIDTH) -> str:
    line = in_one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _name(finding: Finding, gate_answer: GateAnswer) -> str:
    if finding.unique_id is None:
        return "the change"
    return code(_cut(subject(finding, gate_answer.shown, gate_answer.base), _NAME))


def _broken(findings: Sequence[Finding], gate_answer: GateAnswer) -> Iterator[str]:
    def rows() -> Iterator[Sequence[str]]:
        for finding in findings:
            gone = gate_answer.gone(finding)
            yield (
                finding.level,
                _name(finding, gate_answer),
                prose(_cut(finding.reason.message)),
                _mend(finding, gone, gate_answer),
            )

    yield from _table(("", "reader", "why", "what to do"), rows())


def _mend(finding: Finding, gone: list[RemovedColumn], gate_answer: GateAnswer) -> str:
    """What to do about a reader of what is gone."""
    renamed = [column for column in gone if column.renamed_to]
    dropped = [column for column in gone if not column.renamed_to]
    steps = [
        f"read {code(_cut(c.renamed_to or '', _NAME))} for {code(_cut(c.column, _NAME))}"
        for c in renamed
    ]
    steps += [
        f"do without {code(_cut(c.column, _NAME))}, or bring it back to "
        f"{code(_cut(name_of(c.unique_id, gate_answer.head, gate_answer.base), _NAME))}"
        for c in dropped
    ]
    return "; ".join(steps[:3]) or (
        "take it out of `meta.referenced_columns`, or bring it back"
        if (finding.unique_id or "").startswith("exposure.")
        else "correct the name, or bring the column back"
    )


_Group = tuple["Finding", list[str]]


def _grouped(findings: Iterable[Finding]) -> Iterator[_Group]:
    """Findings that say the same of several columns of a node as one."""
    of: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.rule, finding.level, finding.unique_id or "", finding.reason.message)
        of.setdefault(key, []).append(finding)
    for of_one_node in of.values():
        yield (
            of_one_node[0],
            [finding.column for finding in of_one_node if finding.column is not None],
        )


def _rules(groups: Sequence[_Group], gate_answer: GateAnswer) -> Iterator[str]:
    def rows() -> Iterator[Sequence[str]]:
        for finding, columns in groups:
            message = finding.reason.message
            if finding.rule == "blast_radius":  # which these are stands under "Who is affected"
                inner = finding.reason.arguments.get("because")  # where somebody approved it
                reach = inner.message if isinstance(inner, Reason) else message
                message = message.replace(reach, reach.partition(" (")[0])
            where, what = _name(finding, gate_answer), prose(_cut(message))
            if len(columns) > 1:
                node = name_of(finding.unique_id or "", gate_answer.head, gate_answer.base)
                where = f"{code(_cut(node, _NAME))}: {_some(columns)}"
            yield finding.level, f"`{finding.rule}`", where, what

    yield from _table(("", "rule", "where", "what"), rows())


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(code(_cut(name, _NAME)) for name in names[:8]) + more


def _changes(gate_answer: GateAnswer) -> _Part:
    """What changed, column by column, with what stood there and stands there now."""
    difference = diff(gate_answer.comparison)
    # What was not edited and does not compile stands under "What breaks".
    only_broken = {b.unique_id for b in difference.broken} - gate_answer.comparison.modified
    listed_changes: list[tuple[str, list[str]]] = []
    edits = Edits(difference, gate_answer.head)
    for node in difference.nodes:
        if node.change == "downstream" or node.unique_id in only_broken:
            continue
        name = f"{name_of(node.unique_id, gate_answer.head, gate_answer.base)} ({edits.what_it_is(node)})"
        listed = [[count(len(node.columns), "column")]] if node.change == "added" else entries(node)
        listed_changes += [(name, entry) for entry in listed] or [(name, [])]

    def render(shown_entries: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
        for name, group in groupby(shown_entries, key=lambda entry: entry[0]):
            lines = [line for _, entry in group for line in _diff_lines(entry)]
            node, _, change = name.rpartition(" ")
            yield f"{code(_cut(node, _NAME))} {change}"
            if lines:
                ticks = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
                fence = "`" * max(3, ticks + 1)
                yield ""
                yield f"{fence}diff"
                yield from lines
                yield fence
            yield ""
        if text := below(difference):
            yield f"{text.capitalize()}."

    return _Part("What changed", listed_changes, render, "change")


_TICKS: Final = re.compile("`+")


def _diff_lines(entry: list[str]) -> Iterator[str]:
    if entry:
        yield f"  {shown(_cut(entry[0]))}"
        yield from (shown(_cut(line)) for line in entry[1:])


def _affected(gate_answer: GateAnswer) -> _Part:
    from dbt_ripple.rendering.mermaid import mermaid

    affected = gate_answer.report.affected
    before = []
    if affected:
        before = ["```mermaid", *mermaid(affected, gate_answer.shown, gate_answer.base), "```"]
        if owners := sorted({asset.owner for asset in affected if asset.owner and asset.counts}):
            some = ", ".join(prose(_cut(owner, _NAME)) for owner in owners[:20])
            more = f" and {len(owners) - 20:,} more" if len(owners) > 20 else ""
            before += ["", f"To notify: {some}{more}."]
    return _Part("Who is affected", affected, affected_table, "asset", before)


def affected_table(affected: Sequence[Affected]) -> Iterator[str]:
    """The assets a change reaches, as a table."""
    yield from _table(
        ("severity", "asset", "reads", "owner"),
        (
            (
                asset.severity,
                f"{code(_cut(asset.full_name, _NAME))} ({asset.asset_type})",
                _references(asset),
                prose(_cut(asset.owner or "", _NAME)),
            )
            for asset in affected
        ),
    )


def _references(asset: Affected) -> str:
    """What an asset reads of the change, or what of itself changes; of many columns of one node their number."""
    by_node: dict[str, list[str]] = {}
    for name in asset.affected_references:
        by_node.setdefault(name.rpartition(".")[0], []).append(name)
    texts = [
        f"{code(_cut(node, _NAME))} ({count(len(names), 'column')})"
        if node and len(names) > _ALL_NAMED
        else _some(names)
        for node, names in by_node.items()
    ]
    verb = {"reads": ""}.get(asset.verb(), f"{asset.verb()} ")
    return f"{verb}{', '.join(texts)}".rstrip()


_ALL_NAMED: Final = 3
"""Columns of one node that are named where there are others' too."""


# --- tests -----------------------------------------------------------------------------------------

_PASSED: Final = ("pass", "success", "no-op")
_RESULTS: Final = {"pass": "✅ pass", "success": "✅ built", "no-op": "✅", "warn": "⚠️ warn"}


def _result(status: str | None) -> str:
    if status is None:
        return "not run"
    return _RESULTS.get(status) or ("⏭️ skipped" if status == "skipped" else f"❌ {status}")


def run_in_short(selection: Selection, ran: SelectionRun) -> str:
    """The results of what dbt built and ran, in a few words."""
    tests = {
        *(test.unique_id for test in selection.tests),
        *(test.unique_id for test in _left_out(selection) if test.unique_id in ran.statuses),
        *selection.unit_tests,
    }
    statuses = [ran.statuses.get(unique_id, "skipped") for unique_id in tests]
    passed = sum(status in _PASSED for status in statuses)
    text = f"{passed:,} of {count(len(statuses), 'test')} passed"
    for word, kinds in (("warned", ("warn",)), ("failed", ("fail", "error", "runtime error"))):
        if number := sum(status in kinds for status in statuses):
            text += f", {number:,} {word}"
    models = [ran.statuses.get(unique_id, "skipped") for unique_id in selection.models]
    if failed := sum(status not in (*_PASSED, "skipped") for status in models):
        text += f"; {count(failed, 'model')} could not be built"
    return text


def _left_out(selection: Selection) -> list[ProvenTest | BlockedTest]:
    return [*selection.proven, *selection.blocked]


def _tests(selection: Selection, ran: SelectionRun | None, head: Project) -> Iterator[_Part]:
    from dbt_ripple.rendering.selection import headline, is_empty

    if is_empty(selection):
        return
    statuses = ran.statuses if ran is not None else {}
    messages = ran.messages if ran is not None else {}
    again = [t for t in _left_out(selection) if t.unique_id in statuses]
    rows = [
        *((test.unique_id, test.reason.message) for test in selection.tests),
        *((unique_id, "unit test") for unique_id in selection.unit_tests),
        *(
            (test.unique_id, "left out at first; what it rests on changed its result")
            for test in again
        ),
        *((u, "to build") for u in selection.models if statuses.get(u, "success") not in _PASSED),
    ]
    if ran is not None:  # what failed first
        rows.sort(key=lambda row: statuses.get(row[0], "skipped") in (*_PASSED, "skipped"))

    def render(shown_rows: Sequence[tuple[str, str]]) -> Iterator[str]:
        def cells() -> Iterator[Sequence[str]]:
            for unique_id, reason in shown_rows:
                cells = [code(_cut(name_of(unique_id, head, head), _NAME)), prose(_cut(reason))]
                if ran is not None:
                    message = prose(_cut(messages.get(unique_id, "")))
                    cells.append(
                        f"{_result(statuses.get(unique_id))}{': ' if message else ''}{message}"
                    )
                yield cells

        columns = ("test", "why", *(["what dbt said"] if ran is not None else []))
        yield from _table(columns, cells())

    title = "Tests it can break" if ran is None else "Tests it can break, and what they said"
    yield _Part(title, rows, render, "test", [f"{headline(selection)}."])
    models = [code(_cut(name_of(u, head, head), _NAME)) for u in selection.models]
    yield _Part("To build", models, lambda names: [", ".join(names)], "node", folded=True)
    left_out: dict[str, list[str]] = {}
    for test in _left_out(selection):
        if test.unique_id not in statuses:
            left_out.setdefault(test.reason.message, []).append(name_of(test.unique_id, head, head))
    reasons = [f"{prose(_cut(reason))}: {_some(names)}" for reason, names in left_out.items()]
    yield _Part(
        "Not run, because they would show nothing more", reasons, _bullets, "reason", folded=True
    )
