"""What a function does to rows decides what is proven: aggregates, generators, and the unknown.

Each case is executed on DuckDB, on base and on head: the test must fail there, and be selected here.
"""

from __future__ import annotations

import duckdb
import pytest
from hand_made import node, project
from msgspec.structs import replace
from test_proven_tests import ORDERS, PRODUCTS, TYPES, not_null, passed, picked, source, unique

from dbt_ripple.artifacts import Node, Project

DATA = """
create schema s;
create table s.raw_orders as
  select * from (values (1, 1, -5), (2, 1, -7)) as t (id, product_id, amount);
create table s.raw_products as select * from (values (1, 'a'), (2, 'b')) as t (product_id, name);
create macro total(x) as sum(x);
create macro s.total(x) as max(x);
create macro s.upper(x) as min(x);
create macro twice(x) as unnest([x, x]);
create macro positive(x) as x > 0;
"""
STG_ORDERS = "select id, product_id, amount from s.raw_orders"
STG_PRODUCTS = "select product_id, name from s.raw_products"


def shop(*tests: Node, orders: str, stg_orders: str = STG_ORDERS) -> Project:
    named = [f"model.p.{u}" for u in ("stg_orders", "stg_products") if f"s.{u}" in orders]
    made = project(
        source(ORDERS, "raw_orders"),
        source(PRODUCTS, "raw_products"),
        node("model.p.stg_orders", stg_orders, ORDERS),
        node("model.p.stg_products", STG_PRODUCTS, PRODUCTS),
        node("model.p.orders", orders, *named),
        *tests,
        types=TYPES,
        adapter="duckdb",
    )
    for children_of in made.nodes.values():
        if children_of.relation_name:
            made.nodes[children_of.unique_id] = replace(
                children_of, relation_name=children_of.relation_name.replace("`", '"')
            )
    return made


def failures(side: Project, test: Node) -> int:
    """How many rows a test returns when its project is built."""
    with duckdb.connect() as connection:
        connection.execute(DATA)
        for name in ("stg_orders", "stg_products", "orders"):
            sql = side.nodes[f"model.p.{name}"].compiled_code
            connection.execute(f"create table s.{name} as {sql}")
        return len(connection.execute(test.compiled_code or "").fetchall())


AGGREGATES = [
    "kahan_sum(amount)",
    "arg_max_null(amount, id)",
    "bitstring_agg(id, 1, 9)",
    "list(amount)",
    "geometric_mean(amount)",
    "histogram(amount)",
    "first(amount)",
    "any_value(amount)",
    "weighted_avg(amount, id)",
    "list_sum(list(amount))",
    "total(amount)",
    "-total(amount)",
    "s.total(amount)",
    "s.upper(amount)",
    "kahan_sum(distinct amount)",
    "kahan_sum(amount) filter (where id > 0)",
    "total(-amount)",
    "amount.sum()",
    "o.amount.total()",
    "(amount).max()",
    "abs(amount).total()",
    "(select sum(o.amount))",
    "(select s.total(o.amount))",
    "(select sum(amount))",
    "(select amount.sum())",
    "(select total(o.amount) + 1)",
]


@pytest.mark.parametrize("made", AGGREGATES)
def test_a_filter_below_an_aggregate_holds_nothing_of_it(made: str) -> None:
    test = not_null("amount")
    orders = f"select {made} as amount from s.stg_orders as o"
    base = shop(test, orders=orders)
    head = shop(test, orders=orders, stg_orders=STG_ORDERS + " where amount > 0")
    assert (failures(base, test), failures(head, test)) == (0, 1)
    assert picked(passed(base), head)[0] == [test.name]


JOIN = "select o.id, o.amount from s.stg_orders as o {join}"
REPEATED = [
    "left join (select product_id, twice(1) as n from s.stg_products group by product_id) as p"
    " on o.product_id = p.product_id",
    "left join (select product_id, generate_subscripts([7, 8], 1) as n from s.stg_products"
    " group by product_id) as p on o.product_id = p.product_id",
    "left join (select product_id, twice(1) as n from s.stg_products"
    " qualify row_number() over (partition by product_id order by name) = 1) as p"
    " on o.product_id = p.product_id",
    "left join (select count(*) as n, twice(1) as m from s.stg_products) as p on true",
    "left join (select product_id from s.stg_products group by product_id order by twice(1)) as p"
    " on o.product_id = p.product_id",
    "left join (select 1 as product_id from s.stg_products group by all) as p"
    " on o.product_id = p.product_id",
]


@pytest.mark.parametrize("join", REPEATED)
def test_a_join_to_what_may_give_several_rows_does_not_keep_the_rows(join: str) -> None:
    test = unique("id")
    base = shop(test, orders=JOIN.format(join=""))
    head = shop(test, orders=JOIN.format(join=join))
    assert failures(base, test) == 0 < failures(head, test)
    assert picked(passed(base), head)[0] == [test.name]


OF_ONE_ROW = [
    "select id, amount from s.stg_orders where not isfinite(amount)",
    "select id, upper(amount::text) as amount from s.stg_orders",
    "select id, list_sum([amount]) as amount from s.stg_orders",
    "select id, list_transform([amount], lambda x: x + 1)[1] as amount from s.stg_orders",
]


@pytest.mark.parametrize("orders", OF_ONE_ROW)
def test_what_is_a_value_of_its_row_still_holds(orders: str) -> None:
    tests = not_null("id"), not_null("amount")
    base = shop(*tests, orders=orders)
    head = shop(*tests, orders=orders, stg_orders=STG_ORDERS + " where product_id = 1")
    selected, proven = picked(passed(base), head)
    assert selected == [] and len(proven) == 2


def test_beside_an_unknown_function_the_other_columns_keep_their_values() -> None:
    """A column that only got another filter below it moves by its rows, not by its value."""
    test = not_null("id")
    base = shop(test, orders="select id, total(1) over () as amount from s.stg_orders")
    head = shop(test, orders="select id, s.total(2) over () as amount from s.stg_orders")
    assert picked(passed(base), head)[0] == []


@pytest.mark.parametrize(
    "called", ["positive(amount)", "s.isfinite(amount)", "s.upper(amount::text) = 'A'"]
)
def test_what_the_database_defines_may_be_another_value_each_time(called: str) -> None:
    """A macro of DuckDB, or a function of a schema, may be `random()`: a table has kept what it gave."""
    orders = f"select id, amount from s.stg_orders where not {called}"
    tests = not_null("id"), not_null("amount")
    base = shop(*tests, orders=orders)
    head = shop(*tests, orders=orders, stg_orders=STG_ORDERS + " where product_id = 1")
    selected, proven = picked(passed(base), head)
    assert len(selected) == 2 and not proven
