"""What a campaign found: counted by kind of edit, and written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from constructs import CONSTRUCTS
from mutations import VALUE_KINDS
from small_kinds import WRITERS

from dbt_ripple import __version__


@dataclass
class Count:
    """What became of the edits of one kind.

    Attributes:
        tried: edits made.
        built: of these, those after which everything still built.
        changed: those after which a relation or a test's rows were others.
        missed: those of which something was missed.
        selected: tests that run, over all edits; `without_facts` without what passed on base.
        modified: tests that ``state:modified+`` runs.
        truly: tests whose rows differ.
        unseen: of `selected` and of `without_facts`, those of edits that ``state:modified+`` does not
            see (of sources, vars, project hooks): it would run none.
        unseen_without_facts: see there.
        cut: tests that run with ``--cutoff``, over all edits; `cut_without_facts` without what passed on
            base.
        cut_without_facts: see there.
        models: models to build; `cut_models` with ``--cutoff``, `truly_models` those that differ.
        cut_models: see there.
        truly_models: see there.
        due: tests that run with ``--cutoff`` and differ, were edited or read something that differs.
        due_models: likewise, of models.
        given_up: edits that took too long, made too many rows or were written as sqlglot cannot read
            them; not among those tried.
    """

    tried: int = 0
    built: int = 0
    changed: int = 0
    missed: int = 0
    selected: int = 0
    without_facts: int = 0
    modified: int = 0
    truly: int = 0
    unseen: int = 0
    unseen_without_facts: int = 0
    given_up: int = 0
    cut: int = 0
    cut_without_facts: int = 0
    models: int = 0
    cut_models: int = 0
    truly_models: int = 0
    due: int = 0
    due_models: int = 0

    def add(self, other: Count) -> None:
        _add(self, other)


IN_WORDS: Final = "in other words: "
"""Begins the names of refactors that only the second comparison sees through."""
WORDS: Final = 0.1
"""The share of these that may select something."""


@dataclass
class Refactored:
    """What became of the refactors of one kind: on how many models, how many selected something.

    ``evaluated`` are apart: they select tests that may fail by what their engine evaluates, and none by values. Left out are those that reach further than a refactor may, and those of queries that are opaque.
    """

    made: int = 0
    selected: int = 0
    evaluated: int = 0
    not_one: int = 0
    opaque: int = 0

    def add(self, other: Refactored) -> None:
        _add(self, other)


def _add(one: Count | Refactored, other: Count | Refactored) -> None:
    for name, value in asdict(other).items():
        setattr(one, name, getattr(one, name) + value)


@dataclass
class Report:
    """A campaign's result."""

    seed: int
    engine: str
    kinds: dict[str, Count] = field(default_factory=dict)
    constructs: dict[str, Count] = field(default_factory=dict)
    refactors: dict[str, Refactored] = field(default_factory=dict)
    misses: list[dict[str, Any]] = field(default_factory=list)
    selecting: list[dict[str, Any]] = field(default_factory=list)
    worlds: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    selector_seconds: float = 0.0
    cut_why: dict[str, int] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Take in what another found, in other worlds."""
        for kind, count in other.kinds.items():
            self.kinds.setdefault(kind, Count()).add(count)
        for construct, count in other.constructs.items():
            self.constructs.setdefault(construct, Count()).add(count)
        for name, refactored in other.refactors.items():
            self.refactors.setdefault(name, Refactored()).add(refactored)
        for why, number in other.cut_why.items():
            self.cut_why[why] = self.cut_why.get(why, 0) + number
        self.misses += other.misses
        self.selecting += other.selecting
        self.worlds |= other.worlds
        self.stopped |= other.stopped
        self.selector_seconds += other.selector_seconds

    def total(self, of: Callable[[str], bool] = lambda kind: True) -> Count:
        sum_ = Count()
        for kind, count in self.kinds.items():
            if of(kind):
                sum_.add(count)
        return sum_

    def idle(self) -> list[str]:
        """Kinds of edit that never changed anything, nor kept it from being built: they prove nothing."""
        return [k for k, n in self.kinds.items() if not n.changed and n.built == n.tried]

    def wrong(self) -> bool:
        return bool(
            self.misses or self.alike() or self.words() > WORDS or self.stopped or self.idle()
        )

    def alike(self) -> list[dict[str, Any]]:
        """The refactors that select, but those that only say the same in other words."""
        return [s for s in self.selecting if not s["refactor"].startswith(IN_WORDS)]

    def words(self) -> float:
        """The share of refactors in other words that select."""
        in_words = [c for name, c in self.refactors.items() if name.startswith(IN_WORDS)]
        return sum(c.selected for c in in_words) / max(1, sum(c.made for c in in_words))


def table(report: Report) -> str:
    """The report as text: one row a kind of edit, one a refactor."""
    head = (
        "kind of edit", "tried", "built", "changed", "missed", "selected", "no facts",
        "state:modified+", "truly", "selected/modified", "no facts/modified", "truly/modified",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [head]
    named = [*sorted(report.kinds.items())]
    named.append(("edits of values", report.total(lambda k: k in VALUE_KINDS)))
    named.append(("all", report.total()))
    for kind, c in named:
        figures = (c.tried, c.built, c.changed, c.missed, c.selected, c.without_facts, c.modified)
        shares = [
            f"{n / c.modified:.0%}" if c.modified else "-"
            for n in (c.selected, c.without_facts, c.truly)
        ]
        rows.append((kind, *map(str, figures), str(c.truly), *shares))
    lines = [columns(rows), ""]
    lines.append(
        columns(
            [
                (
                    "refactor",
                    "models",
                    "selected something",
                    "may fail",
                    "reached further",
                    "opaque",
                ),
                *(
                    (name, *map(str, (c.made, c.selected, c.evaluated, c.not_one, c.opaque)))
                    for name, c in report.refactors.items()
                ),
            ]
        )
    )
    edited = sorted(report.constructs.items())
    lines += [
        "",
        columns(
            [
                ("edits of queries with", "tried", "built", "changed", "missed"),
                *((n, *map(str, (c.tried, c.built, c.changed, c.missed))) for n, c in edited),
            ]
        ),
        f"no edited query has: {', '.join(c for c in CONSTRUCTS if c not in report.constructs) or '-'}",
    ]
    given_up = report.total().given_up
    lines += [
        "",
        f"dbt_ripple {__version__}, {report.engine}, seed {report.seed}, "
        f"{report.total().tried} edits in {report.seconds:.0f} s, of which the selector "
        f"{report.selector_seconds:.0f} s (asked twice an edit); {given_up} given up",
        *(f"{name}: {what}" for name, what in report.worlds.items()),
        *(f"{name}: stopped by {why}" for name, why in report.stopped.items()),
        *bounds(report),
        *cut_off(report),
        f"misses: {len(report.misses)}; refactors that select: {len(report.alike())}; "
        f"in other words: {report.words():.0%}; "
        f"kinds that changed nothing: {', '.join(report.idle()) or 'none'}",
        *(
            f"missed, --seed {report.seed} --repeat '{m['repeat']}' ({m['kind']}): "
            + "; ".join(m["missed"])
            for m in report.misses
        ),
        *(f"selects, {r['refactor']} on {r['node']} of {r['world']}" for r in report.selecting),
    ]
    return "\n".join(lines)


def bounds(report: Report) -> list[str]:
    """What is selected of ``state:modified+`` against the bounds; where over, which kinds weigh most.

    Only edits count that ``state:modified+`` sees, without those of small projects.
    """
    # Small edits are made where something is left open: more of them change something than of others.
    every = report.total(lambda k: k not in WRITERS)
    values = report.total(lambda k: k in VALUE_KINDS)
    asked: list[tuple[str, Count, Callable[[Count], int], float]] = [
        ("with facts", every, lambda c: c.selected - c.unseen, 0.4),
        ("without facts", every, lambda c: c.without_facts - c.unseen_without_facts, 0.7),
        ("edits of values, with facts", values, lambda c: c.selected - c.unseen, 0.3),
    ]
    lines = []
    for name, count, of, bound in asked:
        if not count.modified:
            continue
        share = of(count) / count.modified
        line = f"{name}: {share:.1%} of state:modified+, at most {bound:.0%} asked"
        if share > bound:
            kinds = [
                k
                for k in report.kinds
                if (k not in WRITERS if count is every else k in VALUE_KINDS)
            ]
            kinds.sort(key=lambda k: bound * report.kinds[k].modified - of(report.kinds[k]))
            line += f"; furthest over: {', '.join(kinds[:5])}"
        lines.append(line)
    if every.unseen:
        lines.append(f"{every.unseen} tests more, of edits that state:modified+ does not see")
    return lines


def cut_off(report: Report) -> list[str]:
    """What ``--cutoff`` left, and the commonest reasons why something ran that had not changed."""
    every = report.total()
    if not every.cut_models:
        return []
    rows = [("with --cutoff", "selected", "run", "due", "truly changed", "run/due", "run/truly")]
    for name, *figures in (
        ("tests", every.selected, every.cut, every.due, every.truly),
        ("models", every.models, every.cut_models, every.due_models, every.truly_models),
    ):
        _, ran, due, truly = figures
        shares = [f"{ran / n:.2f}" if n else "-" for n in (due, truly)]
        rows.append((name, *map(str, figures), *shares))
    rows.append(
        ("tests, no facts", str(every.without_facts), str(every.cut_without_facts), *[""] * 4)
    )
    why = sorted(report.cut_why.items(), key=lambda item: -item[1])[:25]
    return ["", columns(rows), *(f"{number} ran and were not due: {w}" for w, number in why)]


def columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
