"""The promise of rules 14-16, executed: nothing that is proven could have turned CI red by itself.

Small random projects on DuckDB are edited at random and built; every test runs on both sides.
"""

from __future__ import annotations

from collections import Counter

import pytest
from small_worlds import World

from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select

SEEDS = range(24, 48)
"""Of the worlds: in these, defects that were put into the proofs for a trial are found."""
EDITS = 6
"""Edits of each world."""


def missed(
    selection: Selection,
    before: dict[str, list[str] | None],
    after: dict[str, list[str] | None],
) -> list[str]:
    """Tests that would have changed and are neither selected nor rest on one that says so."""
    selected = {test.name for test in selection.tests}
    proven = {test.unique_id: test for test in selection.proven}
    wrong = []
    for test, rows in after.items():
        if test in selected or rows == before[test]:
            continue
        resting = proven.get(f"test.w.{test}")
        if resting is None:
            wrong.append(f"{test} changed and is not impacted")
        elif rows == []:
            wrong.append(f"{test} was proven though it did not pass on base")
        elif not any(
            ground.rpartition(".")[2] in selected and after[ground.rpartition(".")[2]] != []
            for ground in resting.facts
        ):
            wrong.append(f"{test} fails, proven because {resting.reason}")
    return wrong


@pytest.mark.slow
def test_what_is_proven_cannot_fail_alone() -> None:
    counted: Counter[str] = Counter()
    for seed in SEEDS:
        world = World(seed)
        for _ in range(EDITS):
            edited = world.edited()
            after = world.after(edited[0]) if edited is not None else None
            if edited is None or after is None:
                continue
            selection = select(world.base, edited[1])
            assert missed(selection, world.before, after) == [], f"seed {seed}"
            counted["edits"] += 1
            counted["proven"] += len(selection.proven)
            counted["selected"] += len(selection.tests)
            counted["resting on others"] += sum(bool(test.facts) for test in selection.proven)
            counted["changed"] += sum(after[t] != rows for t, rows in world.before.items())
        world.connection.close()
    # A run that holds nothing, or changes nothing, would prove nothing.
    assert counted["edits"] > 60
    assert counted["proven"] > 50
    assert counted["resting on others"] > 5
    assert counted["changed"] > 50
    assert counted["selected"] > counted["changed"]
