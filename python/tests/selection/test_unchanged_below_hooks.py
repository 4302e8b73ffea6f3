"""What is proven below relations that hooks write to: these are the same where nothing changed."""

from __future__ import annotations

import pytest
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.selection.select import select


def side(where: str, hook: str, writes: str = RAW) -> Project:
    """A hook writes to the source, or to a model, that the test's model reads."""
    name = writes.rpartition(".")[2]
    made = project(
        orders(),
        node("model.p.b", "select id, amount from s.orders", RAW),
        node("model.p.a", f"select id, amount from s.{name} where {where}", writes),
        check("whole", "select id from s.a where id is null", "model.p.a"),
        node("operation.p.p-on-run-start-0", None, raw=hook.format(name)),
        catalog=LISTED,
        adapter="duckdb",
    )
    return made.having(run_results=[RunResult(unique_id="test.p.whole", status="pass", failures=0)])


WRITES = "delete from s.{} where id = 1"


@pytest.mark.parametrize("writes", [RAW, "model.p.b"])
@pytest.mark.parametrize(
    ("where", "hook", "proven"),
    [
        ("amount > 0 and id > 2", WRITES, True),
        ("amount > 1", WRITES, False),
        ("amount > 0 and id > 2", "insert into s.{} values (null, 1, 'a')", False),
        ("amount > 0 and id > 2", "delete from s.{} where id = 2", False),
    ],
)
def test_fewer_rows_of_what_hooks_write(writes: str, where: str, hook: str, proven: bool) -> None:
    selection = select(side("amount > 0", WRITES, writes), side(where, hook, writes))
    assert [t.unique_id for t in selection.proven] == ["test.p.whole"] * proven
    assert [t.unique_id for t in selection.tests] == ["test.p.whole"] * (not proven)
