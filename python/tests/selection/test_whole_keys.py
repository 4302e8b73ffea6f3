"""Keys that are never NULL by how they are made: a hash of columns, each with something for NULL."""

from __future__ import annotations

import duckdb
import pytest
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.selection.select import select

OR = "'_dbt_utils_surrogate_key_null_'"
ID, STATUS = (f"coalesce(cast({c} as text), {OR})" for c in ("id", "status"))
KEYS = {
    f"md5(cast({ID} || '-' || {STATUS} as text))": True,
    f"md5(cast(concat({ID}, '-', {STATUS}) as text))": True,
    f"{ID} || '|' || {STATUS}": True,
    f"cast({ID} as varchar)": True,
    f"md5({ID} || cast(status as text))": False,
    "md5(cast(id as text) || '-' || cast(status as text))": False,
    "coalesce(cast(id as text), cast(status as text))": False,
    f"nullif({ID}, '1')": False,
    f"md5(nullif({ID} || '-', '1-'))": False,
    f"md5(coalesce(try_cast({ID} as integer)::text, cast(status as text)))": False,
    f"case when id > 1 then {ID} end": False,
    f"cast({ID} as varchar) || null": False,
    f"try_cast({ID} as integer)": False,
}


def side(key: str, where: str = "") -> Project:
    made = project(
        orders(),
        node("model.p.a", f"select {key} as k, id from s.orders{where}", RAW),
        check("whole", "select k from s.a where k is null", "model.p.a"),
        catalog=LISTED,
        adapter="duckdb",
    )
    made = made.having(run_results=[RunResult(unique_id="test.p.other", status="pass", failures=0)])
    made.nodes["test.p.other"] = check("other", "select 1", "model.p.a")
    return made


@pytest.mark.parametrize(("key", "whole"), KEYS.items(), ids=range(len(KEYS)))
def test_a_key_that_is_never_null_needs_no_test(key: str, whole: bool) -> None:
    selection = select(side(key), side(key, " where amount > 0"))
    assert ["test.p.whole" in {t.unique_id for t in selection.proven}] == [whole]
    with duckdb.connect() as connection:
        connection.execute(
            "create table orders as select * from (values (1, 2, 'a'), (2, 3, null), "
            "(null, 4, 'b'), (null, 5, null)) t(id, amount, status)"
        )
        nulls = connection.execute(f"select count(*) from orders where ({key}) is null").fetchone()
    assert nulls is not None
    assert (nulls[0] == 0) == whole
