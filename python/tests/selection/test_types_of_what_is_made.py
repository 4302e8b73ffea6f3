"""A column that is one of several of one type is of that type, so that joins on it are looked up."""

from __future__ import annotations

import duckdb
import pytest
from hand_made import RAW, check, node, orders, project

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.selection.select import select

TYPES = {RAW: {"id": "INTEGER", "amount": "INTEGER", "status": "VARCHAR"}}
ONE_TYPE = {
    "select id as k from s.orders where {} union all select amount from s.orders": True,
    "select id as k from s.orders where {} union select amount from s.orders": True,
    "select id as k from s.orders where {} except select amount from s.orders": True,
    "select id as k from s.orders where {} union all (select amount from s.orders union select 7 + id "
    "from s.orders)": False,
    "select id as k from s.orders where {} union all select status from s.orders": False,
    "select status as k from s.orders where {} union all select id from s.orders": False,
    "select case when amount > 1 then id else amount end as k from s.orders where {}": True,
    "select case when amount > 1 then id else 4 end as k from s.orders where {}": True,
    "select case when amount > 1 then id end as k from s.orders where {}": True,
    "select nullif(id, amount) as k from s.orders where {}": True,
    "select case when amount > 1 then id else null end as k from s.orders where {}": True,
    "select lag(id) over (order by amount) as k from s.orders where {}": True,
    "select max(id) as k from s.orders where {} group by amount": True,
    "select max_by(id, status) as k from s.orders where {} group by amount": True,
    "select case when amount > 1 then id else '4' end as k from s.orders where {}": False,
    "select case when amount > 1 then status else id::text end as k from s.orders where {}": False,
    "select coalesce(status, '0') as k from s.orders where {}": False,
    "select id + 1 as k from s.orders where {}": False,
}


def side(made: str, where: str = "true", types: dict[str, dict[str, str]] | None = None) -> Project:
    """Each order with a group of keys that are made, which are unique; its own id is, too."""
    sql = f"select k from ({made.format(where)}) as made group by k"
    built = project(
        orders(),
        node("model.p.keys", sql, RAW),
        node(
            "model.p.a",
            "select l.id from s.orders as l left join s.keys as r on l.id = r.k",
            RAW,
            "model.p.keys",
        ),
        check("once", "select id from s.orders group by id having count(*) > 1", RAW),
        check("still", "select id from s.a group by id having count(*) > 1", "model.p.a"),
        types=TYPES | (types or {}),
        adapter="duckdb",
    )
    return built.having(
        run_results=[
            RunResult(unique_id=t, status="pass", failures=0)
            for t in ("test.p.once", "test.p.still")
        ]
    )


@pytest.mark.parametrize(("made", "one_type"), ONE_TYPE.items(), ids=range(len(ONE_TYPE)))
def test_a_join_on_what_is_of_one_type_repeats_nothing(made: str, one_type: bool) -> None:
    selection = select(side(made), side(made, "amount is not null"))
    assert ("test.p.still" not in {t.unique_id for t in selection.tests}) == one_type
    if not one_type:
        return
    with duckdb.connect() as connection:
        connection.execute("create schema s")
        connection.execute(
            "create table s.orders as select * from (values (1, 1, '1'), (2, null, '01'), "
            "(3, 2, null), (4, 4, '4'), (5, 1, 'x')) as v (id, amount, status)"
        )
        for where in ("true", "amount is not null"):
            keys = f"select k from ({made.format(where)}) as made group by k"
            (type_,) = {t for _, t, *_ in connection.execute(f"describe {keys}").fetchall()}
            assert type_ == "INTEGER"
            rows = f"from s.orders as l left join ({keys}) as r on l.id = r.k"
            twice = f"select l.id {rows} group by l.id having count(*) > 1"
            assert connection.execute(twice).fetchall() == []


@pytest.mark.parametrize(("type_", "one_type"), [("INTEGER", True), ("VARCHAR", False)])
def test_the_catalog_of_base_has_the_type_where_the_relation_moved(
    type_: str, one_type: bool
) -> None:
    made = "select id + 1 as k from s.orders where {}"
    base = side(made, types={"model.p.keys": {"k": type_}})
    selection = select(base, side(made, "amount is not null"))
    assert ("test.p.still" not in {t.unique_id for t in selection.tests}) == one_type
    # As in CI, where head has no catalog: of base's then the sources count for columns, all for types.
    sources = {unique_id: base.catalog[unique_id] for unique_id in (RAW,)}
    base = base.having(catalog=sources, whole_catalog=base.catalog)
    selection = select(base, side(made, "amount is not null").having(catalog=sources))
    assert ("test.p.still" not in {t.unique_id for t in selection.tests}) == one_type
