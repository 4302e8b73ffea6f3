"""The answer of the selector, as `--format json` prints it."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from dbt_ripple.changes.causes import Cause
from dbt_ripple.changes.verdict import Broken
from dbt_ripple.reasons import Reason


class SelectedTest(msgspec.Struct, kw_only=True):
    """A test the change can break.

    Attributes:
        reason: one phrase: what changed, where it began.
        path: vertices from where it began down to the test, as ``unique_id.column`` (``*rows*`` for
            the row set); the last is the test itself.
        not_proven: what is missing to prove by base's passed tests that it cannot fail; left
            out where that was not looked at.
    """

    unique_id: str
    name: str
    reason: Reason
    path: list[str] = []
    not_proven: Reason | msgspec.UnsetType = msgspec.UNSET


class ProvenTest(msgspec.Struct, kw_only=True):
    """An impacted test that need not run: base's passed tests prove that it cannot fail.

    More exactly, it cannot fail unless one of the tests it rests on fails, too (rules 14-16).

    Attributes:
        facts: the tests it rests on.
    """

    unique_id: str
    reason: Reason
    facts: list[str] = []


class BlockedTest(msgspec.Struct, kw_only=True):
    """An impacted test that dbt would skip: it is below a relation that cannot be built.

    Attributes:
        blocked_by: unique_id of that relation, the nearest one above the test.
    """

    unique_id: str
    reason: Reason
    blocked_by: str


class Opaque(msgspec.Struct, kw_only=True):
    """A node that could not be analysed on a side; the reason says on which, and why."""

    unique_id: str
    reason: Reason


class Counts(msgspec.Struct, kw_only=True):
    """How many tests; ``impacted_tests`` are those in ``tests``, to run.

    Attributes:
        state_modified_tests: what dbt's ``state:modified+`` would run.
    """

    impacted_tests: int = 0
    proven_tests: int = 0
    blocked_tests: int = 0
    state_modified_tests: int = 0
    all_tests: int = 0


class Selection(msgspec.Struct, kw_only=True):
    """What a change can break. Lists are in the order of head's manifest.

    Attributes:
        tests: data tests to run.
        proven: impacted data tests that need not run: base's passed tests prove them.
        blocked: impacted data tests below a relation that cannot be built.
        models: unique_ids of the models, seeds, snapshots and functions CI must build (rule 13).
        broken: what cannot compile on head and could (or did not exist) on base.
        exposures: unique_ids of the exposures that read something that changed.
        unit_tests: unique_ids of the unit tests to run.
        opaque: what could not be analysed, on either side.
        notes: what the answer had to assume.
        causes: what was edited, each with the nodes that are not the same because of it: those at
            which a change began, and tests that were edited themselves.
        critical: unique_ids of the tests that are there only because they are of critical assets
            below the change; there where these were asked for.
        assets: unique_ids of the declared assets that read something that changed; there where any asset
            is declared.
    """

    tests: list[SelectedTest] = []
    proven: list[ProvenTest] = []
    blocked: list[BlockedTest] = []
    models: list[str] = []
    broken: list[Broken] = []
    exposures: list[str] = []
    unit_tests: list[str] = []
    opaque: list[Opaque] = []
    counts: Counts = msgspec.field(default_factory=Counts)
    notes: list[Reason] = []
    causes: list[Cause] = []
    critical: list[str] | msgspec.UnsetType = msgspec.UNSET
    assets: list[str] | msgspec.UnsetType = msgspec.UNSET


class RunTest(SelectedTest, kw_only=True):
    """A test that was run with ``--cutoff``.

    Attributes:
        rests_on: ``seen to differ`` where a relation it reads was compared with base's and is not
            equal; else ``can differ``.
        because: why it was run all the same, one phrase.
        relations: those that were seen to differ.
    """

    rests_on: str
    because: str
    relations: list[str] = []


class StoppedTest(msgspec.Struct, kw_only=True):
    """A test that can differ and was not run: what it reads was seen to be equal.

    Attributes:
        equal: the rebuilt relations that stopped what changed, each equal to base's in what is read
            of it.
    """

    unique_id: str
    name: str
    reason: Reason
    equal: list[str] = []


class StoppedModel(msgspec.Struct, kw_only=True):
    """A model that can differ and was not built, as `StoppedTest`."""

    unique_id: str
    equal: list[str] = []


class CutOff(msgspec.Struct, kw_only=True):
    """What became of a selection with ``--cutoff``: what was seen, relation by relation.

    Attributes:
        tests: the tests that ran.
        stopped: those that did not, because of what was seen to be equal.
        skipped: those that could not, each with the relation that was not built.
        built: the models, seeds and snapshots that were built, each with why.
        stopped_models: those that were not.
        equal: how many comparisons came out equal, and of how many.
        compared: see there.
    """

    tests: list[RunTest] = []
    stopped: list[StoppedTest] = []
    skipped: dict[str, str] = {}
    built: dict[str, str] = {}
    stopped_models: list[StoppedModel] = []
    equal: int = 0
    compared: int = 0


class CutSelection(Selection, kw_only=True):
    """A selection with what became of it."""

    cutoff: CutOff


PASSED = frozenset({"pass", "success", "no-op"})
"""Statuses of dbt that prove what a node says; ``warn`` does not: a test that warns returned rows."""


@dataclass
class SelectionRun:
    """dbt's results.

    Attributes:
        statuses: of every node that was to run, by unique_id.
        messages: dbt's messages of those that did not pass.
        left_out: the proven and blocked tests that were run after all.
        failed: whether dbt counts any of it as a failure.
    """

    statuses: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failed: bool = False
