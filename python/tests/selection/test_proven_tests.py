"""Rules 14-16: each way a test is proven, and the near miss of each, which must not be."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import check, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.changes import compare
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.reasons import Reason
from dbt_ripple.selection.result import ProvenTest, Selection
from dbt_ripple.selection.select import select

ORDERS, PRODUCTS = "source.p.raw.orders", "source.p.raw.products"
TYPES = {
    ORDERS: {"id": "bigint", "product_id": "bigint", "amount": "bigint"},
    PRODUCTS: {"product_id": "bigint", "name": "string"},
    "model.p.stg_orders": {"id": "bigint", "product_id": "bigint", "amount": "bigint"},
    "model.p.stg_products": {"product_id": "bigint", "name": "string"},
    "model.p.orders": {"id": "bigint", "product_id": "bigint", "amount": "bigint"},
}
STG_ORDERS = "select id, product_id, amount from s.raw_orders"
STG_PRODUCTS = "select product_id, name from s.raw_products"
PLAIN = "select o.id, o.product_id, o.amount from s.stg_orders as o"
JOINED = PLAIN + " {kind} join s.stg_products as p on o.product_id = p.product_id"


def not_null(column: str, of: str = "orders", **more: Any) -> Node:
    sql = f"select {column} from s.{of} where {column} is null"
    return check(f"not_null_{of}_{column}", sql, f"model.p.{of}", **more)


def unique(column: str, of: str = "orders", where: str = "", **more: Any) -> Node:
    source = f"(select * from s.{of} where {where}) dbt_subquery" if where else f"s.{of}"
    sql = (
        f"select {column} as unique_field, count(*) as n_records from {source} "
        f"where {column} is not null group by {column} having count(*) > 1"
    )
    return check(f"unique_{of}_{column}", sql, f"model.p.{of}", **more)


def accepted(column: str, of: str = "orders") -> Node:
    sql = (
        f"with all_values as (select {column} as value_field, count(*) as n_records from s.{of} "
        f"group by {column}) select * from all_values where value_field not in (1, 2)"
    )
    return check(f"accepted_{of}_{column}", sql, f"model.p.{of}")


def related(column: str, of: str, parent: str, key: str, **more: Any) -> Node:
    sql = (
        f"with child as (select {column} as from_field from s.{of} where {column} is not null), "
        f"parent as (select {key} as to_field from s.{parent}) "
        "select from_field from child left join parent on child.from_field = parent.to_field "
        "where parent.to_field is null"
    )
    return check(f"related_{of}_{column}", sql, f"model.p.{of}", f"model.p.{parent}", **more)


def source(unique_id: str, name: str) -> Node:
    made_node = node(unique_id, columns=list(TYPES[unique_id]))
    return replace(made_node, identifier=name, relation_name=f"`s`.`{name}`")


def shop(
    *tests: Node,
    orders: str = PLAIN,
    stg_orders: str = STG_ORDERS,
    stg_products: str = STG_PRODUCTS,
    more: tuple[Node, ...] = (),
) -> Project:
    """raw_orders -> stg_orders, raw_products -> stg_products; what orders names of both -> orders."""
    named = [u for u in ("stg_orders", "stg_products") if f"s.{u}" in orders]
    return project(
        source(ORDERS, "raw_orders"),
        source(PRODUCTS, "raw_products"),
        node("model.p.stg_orders", stg_orders, ORDERS),
        node("model.p.stg_products", stg_products, PRODUCTS),
        node("model.p.orders", orders, *(f"model.p.{u}" for u in named)),
        *more,
        *tests,
        types=TYPES,
    )


def passed(base: Project, **but: int | None) -> Project:
    """Base with results: each test passed without a row, but those named, with so many failures."""
    base = base.having(run_results=[])
    for unique_id, node_of_base in base.nodes.items():
        if node_of_base.resource_type == "test":
            failures = but.get(node_of_base.name, 0)
            if failures is not None:
                status = "pass" if failures == 0 else "fail"
                base.run_results.append(
                    RunResult(unique_id=unique_id, status=status, failures=failures)
                )
    return base


def picked(base: Project, head: Project, **more: Any) -> tuple[list[str], dict[str, ProvenTest]]:
    """The names of the selected tests, and the proven ones by name."""
    selection: Selection = select(base, head, **more)
    return (
        [test.name for test in selection.tests],
        {test.unique_id.rpartition(".")[2]: test for test in selection.proven},
    )


def facts(test: ProvenTest) -> list[str]:
    return [fact.rpartition(".")[2] for fact in test.facts]


# --- rule 15: how head's rows stand to base's ------------------------------------------------------

FILTER = STG_ORDERS + " where amount > 0"
FEWER = [
    pytest.param({"stg_orders": FILTER}, id="a filter"),
    pytest.param({"stg_orders": STG_ORDERS + " order by id limit 5"}, id="a limit"),
    pytest.param({"stg_orders": STG_ORDERS.replace("select", "select distinct")}, id="a distinct"),
    pytest.param({"orders": JOINED.format(kind="left semi")}, id="a semi join"),
]


@pytest.mark.parametrize("edit", FEWER)
def test_what_is_true_of_every_row_is_true_of_fewer(edit: dict[str, str]) -> None:
    tests = (not_null("id"), unique("id"), accepted("amount"))
    selected, proven = picked(passed(shop(*tests)), shop(*tests, **edit))
    assert selected == []
    assert list(proven) == ["not_null_orders_id", "unique_orders_id", "accepted_orders_amount"]
    assert "it reads only rows that were there on base" in str(proven["not_null_orders_id"].reason)
    assert facts(proven["not_null_orders_id"]) == []


def test_a_result_without_a_number_proves_nothing() -> None:
    """dbt writes none where it did not count: `pass` alone does not say that no row was returned."""
    tests = (not_null("id"), unique("id"))
    base = passed(shop(*tests))
    base.run_results[0] = replace(base.run_results[0], failures=None)
    selected, proven = picked(base, shop(*tests, stg_orders=FILTER))
    assert (selected, list(proven)) == (["not_null_orders_id"], ["unique_orders_id"])


def test_a_join_that_may_meet_several_makes_nothing_unique() -> None:
    """Each id comes once on base; the join repeats it for every product of that number."""
    tests = (not_null("id"), unique("id"))
    for kind in ("inner", "left", "cross"):
        joined = JOINED.format(kind=kind)
        head = shop(*tests, orders=joined.partition(" on ")[0] if kind == "cross" else joined)
        selected, proven = picked(passed(shop(*tests)), head)
        assert (selected, list(proven)) == (["unique_orders_id"], ["not_null_orders_id"]), kind
    key = (*tests, unique("product_id", "stg_products"))
    using = PLAIN + " {kind} join s.stg_products as p using (product_id)"
    for kind in ("inner", "left"):
        for join in (JOINED, using):
            selected, _ = picked(passed(shop(*key)), shop(*key, orders=join.format(kind=kind)))
            assert selected == [], join
        selected, _ = picked(passed(shop(*tests)), shop(*tests, orders=using.format(kind=kind)))
        assert selected == ["unique_orders_id"], kind


def test_rows_that_come_again_are_no_new_rows_and_yet_not_unique() -> None:
    tests = (not_null("id"), unique("id"), accepted("amount"))
    twice = f"{STG_ORDERS} union all {STG_ORDERS}"
    selected, proven = picked(passed(shop(*tests)), shop(*tests, stg_orders=twice))
    assert selected == ["unique_orders_id"]
    assert list(proven) == ["not_null_orders_id", "accepted_orders_amount"]


def test_more_rows_prove_nothing() -> None:
    tests = (not_null("id"), unique("id"), accepted("amount"))
    selected, proven = picked(passed(shop(*tests, stg_orders=FILTER)), shop(*tests))
    assert (len(selected), proven) == (3, {})


def test_a_value_that_moved_is_another_value() -> None:
    tests = (not_null("id"), not_null("amount"))
    edit = FILTER.replace("product_id, amount", "product_id, nullif(amount, 1) as amount")
    selected, proven = picked(passed(shop(*tests)), shop(*tests, stg_orders=edit))
    assert (selected, list(proven)) == (["not_null_orders_amount"], ["not_null_orders_id"])


@pytest.mark.parametrize("made", ["sum(amount)", "max(amount)", "count(*)"])
def test_an_aggregate_is_of_the_rows_it_ran_over(made: str) -> None:
    of = node(
        "model.p.totals",
        f"select product_id, {made} as total from s.stg_orders group by product_id",
        "model.p.stg_orders",
    )
    tests = (
        not_null("product_id", "totals"),
        not_null("total", "totals"),
        accepted("total", "totals"),
    )
    selected, proven = picked(
        passed(shop(*tests, more=(of,))), shop(*tests, more=(of,), stg_orders=FILTER)
    )
    assert "not_null_totals_product_id" in proven
    assert "accepted_totals_total" in selected


def test_a_window_is_of_the_rows_it_ran_over() -> None:
    of = node(
        "model.p.totals",
        "select product_id, sum(amount) over () as total from s.stg_orders",
        "model.p.stg_orders",
    )
    tests = (not_null("product_id", "totals"), not_null("total", "totals"))
    selected, proven = picked(
        passed(shop(*tests, more=(of,))), shop(*tests, more=(of,), stg_orders=FILTER)
    )
    assert (selected, list(proven)) == (["not_null_totals_total"], ["not_null_totals_product_id"])


def test_a_singular_test_is_held_where_its_query_asks_something_of_every_row() -> None:
    tests = (
        check("no_free_order", "select * from s.orders where not (amount >= 0)", "model.p.orders"),
        check(
            "some_orders",
            "select count(*) as n from s.orders having count(*) < 3",
            "model.p.orders",
        ),
    )
    selected, proven = picked(passed(shop(*tests)), shop(*tests, stg_orders=FILTER))
    assert (selected, list(proven)) == (["some_orders"], ["no_free_order"])


def test_groups_that_are_divided_may_be_too_small_for_having() -> None:
    of_groups = "select product_id, count(*) as id, 1 as amount from s.stg_orders group by {} having count(*) > 1"
    test = related("product_id", "stg_orders", "orders", "product_id")
    base = passed(shop(test, orders=of_groups.format("product_id, amount")))
    selected, proven = picked(base, shop(test, orders=of_groups.format("product_id, amount, id")))
    assert (selected, list(proven)) == ([test.name], [])


def test_the_one_group_of_fewer_rows_may_be_too_small_for_having() -> None:
    test = check(
        "counted",
        "select o.id from s.stg_orders o left join (select 1 as k, count(*) as n from s.orders "
        "having count(*) > 1) p on o.id > 0 where p.k is null",
        "model.p.stg_orders",
        "model.p.orders",
    )
    base = passed(shop(test, orders="select * from s.stg_orders"))
    head = shop(test, orders="select * from s.stg_orders where amount > 5")
    selected, proven = picked(base, head)
    assert (selected, list(proven)) == ([test.name], [])


OF = "from s.orders"
OF_EVERY_ROW = {
    "expression_is_true": f"select 1 {OF} where not (amount >= 0)",
    "accepted_range": f"with m as (select * {OF}), v as (select * from m where 1 = 2 or not "
    "amount >= 0 or not amount <= 9) select * from v",
    "not_accepted_values": f"with a as (select distinct amount as f {OF}), v as (select f from a "
    "where f in (1, 2)) select * from v",
    "not_empty_string": f"with e as (select * {OF} where trim(id) = '') select * from e",
    "not_constant_pair": f"select id, amount {OF} where id = amount and amount is not null",
    "unique_combination_of_columns": f"with v as (select id, amount {OF} group by id, amount "
    "having count(*) > 1) select * from v",
    "relationships_where": f"with l as (select product_id as id {OF} where product_id is not null "
    "and 1 = 1), r as (select product_id as id from s.stg_products where product_id is not null), "
    "e as (select l.id, r.id as right_id from l left join r on l.id = r.id where r.id is null) "
    "select * from e",
    "where": f"select amount from (select * {OF} where id > 3) dbt_subquery where amount is null",
}
NOT_OF_EVERY_ROW = {
    "not_null_proportion": "with v as (select sum(case when amount is null then 0 else 1 end) / "
    f"count(*) as p {OF}) select p from v where p < 0.9",
    "at_least_one": f"select * from (select count(amount) as f from (select amount {OF} where "
    "amount is not null limit 1) as p having count(amount) = 0) as v",
    "sequential_values": f"with w as (select id, lag(id) over (order by id) as b {OF}) "
    "select * from w where not (id = b + 1)",
    "equal_rowcount": f"with a as (select count(*) as n {OF}), b as (select count(*) as n from "
    "s.stg_products) select 1 from a cross join b where a.n <> b.n",
    "everyone has an order": "select p.product_id from s.stg_products as p left join s.orders as o "
    "on p.product_id = o.product_id where o.product_id is null",
    "limited": f"select id from (select id, amount {OF} order by id limit 3) as o where amount < 0",
    "at most 3 each": f"select id, count(amount) as n {OF} group by id having count(amount) < 3",
}


def asked(sql: str) -> tuple[list[str], list[str]]:
    """What is selected and what is proven of a test on orders, once orders has fewer rows."""
    named = [f"model.p.{u}" for u in ("orders", "stg_products") if f"s.{u}" in sql]
    test = check("asks", sql, *named)
    selected, proven = picked(passed(shop(test)), shop(test, stg_orders=FILTER))
    return selected, list(proven)


@pytest.mark.parametrize("name", OF_EVERY_ROW)
def test_queries_that_ask_something_of_every_row(name: str) -> None:
    assert asked(OF_EVERY_ROW[name]) == ([], ["asks"])


@pytest.mark.parametrize("name", NOT_OF_EVERY_ROW)
def test_queries_that_ask_something_of_all_rows_together(name: str) -> None:
    assert asked(NOT_OF_EVERY_ROW[name]) == (["asks"], [])


# --- rule 14: joins that keep rows -----------------------------------------------------------------

LEFT, INNER = JOINED.format(kind="left"), JOINED.format(kind="inner")


def test_a_left_join_to_what_is_unique_keeps_the_rows() -> None:
    tests = (unique("id"), unique("product_id", "stg_products"))
    selected, proven = picked(passed(shop(*tests)), shop(*tests, orders=LEFT))
    assert selected == []
    assert facts(proven["unique_orders_id"]) == ["unique_stg_products_product_id"]
    assert str(proven["unique_orders_id"].reason) == (
        "orders keeps its rows: stg_products is unique on product_id, "
        "by unique_stg_products_product_id, which passed on base"
    )


def test_a_ground_that_is_impacted_itself_runs_and_is_named_so() -> None:
    tests = (unique("id"), unique("product_id", "stg_products"))
    fewer = STG_PRODUCTS + " where name is not null"
    base = passed(shop(*tests, stg_products=fewer))
    selected, proven = picked(base, shop(*tests, orders=LEFT))
    assert selected == ["unique_stg_products_product_id"]
    assert str(proven["unique_orders_id"].reason) == (
        "orders keeps its rows: stg_products is unique on product_id, "
        "by unique_stg_products_product_id, which runs"
    )


def test_nothing_rests_on_a_ground_that_will_not_run() -> None:
    tests = (unique("id"), unique("product_id", "stg_products"))
    base = passed(shop(*tests, stg_products=STG_PRODUCTS + " where name is not null"))
    only = ["test.p.unique_orders_id"]
    assert picked(base, shop(*tests, orders=LEFT), only=only) == (["unique_orders_id"], {})


def test_what_another_test_finds_further_up_needs_to_be_asked_once() -> None:
    tests = (accepted("amount", "stg_orders"), accepted("amount"))
    selected, proven = picked(passed(shop(*tests, stg_orders=FILTER)), shop(*tests))
    assert (selected, list(proven)) == (["accepted_stg_orders_amount"], ["accepted_orders_amount"])
    assert facts(proven["accepted_orders_amount"]) == ["accepted_stg_orders_amount"]
    assert "is one of accepted_stg_orders_amount, which runs" in (
        str(proven["accepted_orders_amount"].reason)
    )


def test_of_two_tests_that_ask_the_same_one_runs() -> None:
    again = replace(accepted("amount"), unique_id="test.p.again", name="again")
    tests = (accepted("amount"), again)
    selected, proven = picked(passed(shop(*tests, stg_orders=FILTER)), shop(*tests))
    assert len(selected) == len(proven) == 1


NOT_THE_SAME = {
    "it asks for less": ("value_field not in (1, 2)", "value_field not in (1, 2, 3)"),
    "it asks something else": ("value_field not in (1, 2)", "value_field not in (1, 3)"),
    "of some rows": ("value_field not in (1, 2)", "value_field not in (1, 2) and n_records > 1"),
}


@pytest.mark.parametrize("name", NOT_THE_SAME)
def test_a_test_that_finds_less_is_no_ground(name: str) -> None:
    above = accepted("amount", "stg_orders")
    sql = (above.compiled_code or "").replace(*NOT_THE_SAME[name])
    above = replace(above, compiled_code=sql)
    tests = (above, accepted("amount"))
    selected, _ = picked(passed(shop(*tests, stg_orders=FILTER)), shop(*tests))
    assert "accepted_orders_amount" in selected


@pytest.mark.parametrize(
    "orders",
    [
        PLAIN.replace("o.amount", "o.amount + 1 as amount"),
        PLAIN.replace("o.amount", "coalesce(o.amount, 1) as amount"),
        JOINED.format(kind="left").replace("o.amount", "p.product_id as amount"),
        f"{PLAIN} union all select 1, 2, 3",
    ],
)
def test_a_column_made_anew_is_not_the_one_further_up(orders: str) -> None:
    tests = (accepted("amount", "stg_orders"), accepted("amount"))
    given = {"orders": orders}
    selected, proven = picked(
        passed(shop(*tests, stg_orders=FILTER, **given)), shop(*tests, **given)
    )
    assert (len(selected), proven) == (2, {})


def test_a_ground_that_may_pass_with_rows_or_does_not_run_finds_nothing() -> None:
    above = accepted("amount", "stg_orders")
    above.config["severity"] = "warn"
    tests = (above, accepted("amount"))
    selected, _ = picked(passed(shop(*tests, stg_orders=FILTER)), shop(*tests))
    assert "accepted_orders_amount" in selected
    tests = (accepted("amount", "stg_orders"), accepted("amount"))
    selection = select(
        passed(shop(*tests, stg_orders=FILTER)),
        shop(*tests),
        only={"test.p.accepted_orders_amount"},
    )
    assert [t.name for t in selection.tests] == ["accepted_orders_amount"]


def test_a_test_that_failed_on_base_is_not_proven_on_another() -> None:
    tests = (accepted("amount", "stg_orders"), accepted("amount"))
    base = passed(shop(*tests, stg_orders=FILTER), accepted_orders_amount=3)
    selected, _ = picked(base, shop(*tests))
    assert "accepted_orders_amount" in selected


@pytest.mark.parametrize(
    "stg_products",
    [
        "select product_id, max(name) as name from s.raw_products group by product_id",
        "select distinct product_id from s.raw_products",
        "select product_id, name from s.raw_products "
        "qualify row_number() over (partition by product_id order by name) = 1",
    ],
)
def test_what_is_unique_by_its_own_query_needs_no_test(stg_products: str) -> None:
    test = unique("id")
    sides = (
        passed(shop(test, stg_products=stg_products)),
        shop(test, orders=LEFT, stg_products=stg_products),
    )
    assert picked(*sides) == ([], {})
    (words,) = compare(*sides).reworded["model.p.orders"]
    assert "stg_products is unique on product_id, by its" in words


@pytest.mark.parametrize(
    "stg_products",
    [
        STG_PRODUCTS,
        "select product_id, name from s.raw_products group by product_id, name",
        "select product_id, name from s.raw_products "
        "qualify rank() over (partition by product_id order by name) = 1",
    ],
)
def test_what_is_not_unique_repeats_rows(stg_products: str) -> None:
    test = unique("id")
    selected, proven = picked(
        passed(shop(test, stg_products=stg_products)),
        shop(test, orders=LEFT, stg_products=stg_products),
    )
    assert (selected, proven) == (["unique_orders_id"], {})


def test_an_inner_join_keeps_the_rows_where_every_key_has_its_match() -> None:
    some = check("some", "select count(*) as n from s.orders having count(*) < 3", "model.p.orders")
    grounds = (
        unique("product_id", "stg_products"),
        not_null("product_id", "stg_orders"),
        related("product_id", "stg_orders", "stg_products", "product_id"),
    )
    selected, proven = picked(passed(shop(some, *grounds)), shop(some, *grounds, orders=INNER))
    assert selected == []
    assert sorted(facts(proven["some"])) == sorted(test.name for test in grounds)
    for left_out in grounds:
        rest = [test for test in grounds if test is not left_out]
        selected, proven = picked(passed(shop(some, *rest)), shop(some, *rest, orders=INNER))
        assert (selected, proven) == (["some"], {}), left_out.name


def test_columns_of_other_types_match_more_than_what_is_equal() -> None:
    tests = (unique("id"), unique("product_id", "stg_products"))
    base, head = passed(shop(*tests)), shop(*tests, orders=LEFT)
    for side in (base, head):
        for column in side.catalog["model.p.stg_products"]:
            if column.name == "product_id":
                column.type = "string"
    assert picked(base, head) == (["unique_orders_id"], {})


@pytest.mark.parametrize(
    "key",
    ["lower(trim(o.product_id))", "cast(o.product_id as string)", "md5(o.product_id)"],
)
def test_what_a_function_gives_is_of_a_known_type(key: str) -> None:
    join = f"{PLAIN} left join s.stg_products as p on {key} = p.product_id"
    tests = (unique("id"), unique("product_id", "stg_products"))
    base, head = passed(shop(*tests)), shop(*tests, orders=join)
    assert picked(base, head)[0] == ["unique_orders_id"]  # p.product_id is a number
    texts(base, head)
    selected, proven = picked(base, head)
    assert selected == []
    assert facts(proven["unique_orders_id"]) == ["unique_stg_products_product_id"]


def texts(*sides: Project) -> None:
    """Make the columns of the products strings."""
    for side in sides:
        for unique_id in (PRODUCTS, "model.p.stg_products"):
            for column in side.catalog[unique_id]:
                column.type = "string"


def test_a_key_made_upstream_is_of_the_type_its_function_gives() -> None:
    keyed = STG_PRODUCTS.replace("product_id", "upper(name) as product_id")
    join = f"{PLAIN} left join s.stg_products as p on upper(o.product_id) = p.product_id"
    tests = (unique("id"), unique("product_id", "stg_products"))
    base = passed(shop(*tests, stg_products=keyed + " where name <> ''", orders=join))
    more = shop(*tests, stg_products=keyed, orders=join)
    texts(base, more)
    selected, proven = picked(base, more)
    assert selected == ["unique_stg_products_product_id"]
    assert facts(proven["unique_orders_id"]) == ["unique_stg_products_product_id"]


# --- what proves nothing ---------------------------------------------------------------------------


def test_unique_says_nothing_of_nulls() -> None:
    repeated = check(
        "no_repeated_key",
        "select product_id from s.orders group by product_id having count(*) > 1",
        "model.p.orders",
    )
    tests = (unique("product_id"), repeated, unique("product_id", "stg_products"))
    of_products = "select product_id as id, product_id, 1 as amount from s.stg_products"
    selected, proven = picked(passed(shop(*tests)), shop(*tests, orders=of_products))
    assert selected == ["no_repeated_key"]
    assert facts(proven["unique_orders_product_id"]) == ["unique_stg_products_product_id"]
    never_null = not_null("product_id", "stg_products")
    selected, proven = picked(
        passed(shop(*tests, never_null)), shop(*tests, never_null, orders=of_products)
    )
    assert selected == []
    assert len(facts(proven["no_repeated_key"])) == 2


@pytest.mark.parametrize(
    "ground",
    [
        pytest.param(
            unique("product_id", "stg_products", config={"severity": "warn"}), id="severity: warn"
        ),
        pytest.param(
            unique("product_id", "stg_products", config={"error_if": "> 5"}), id="error_if"
        ),
        pytest.param(unique("product_id", "stg_products", config={"limit": 10}), id="limit"),
        pytest.param(
            unique("product_id", "stg_products", config={"fail_calc": "sum(n_records)"}),
            id="fail_calc",
        ),
        pytest.param(unique("product_id", "stg_products", where="name = 'a'"), id="where"),
        pytest.param(
            unique("product_id", "stg_products", config={"enabled": False}), id="not enabled"
        ),
    ],
)
def test_a_test_that_can_pass_with_rows_is_no_ground(ground: Node) -> None:
    tests = (unique("id"), ground)
    assert picked(passed(shop(*tests)), shop(*tests, orders=LEFT)) == (["unique_orders_id"], {})


@pytest.mark.parametrize("failures", [1, None])
def test_a_ground_that_failed_or_did_not_run_is_none(failures: int | None) -> None:
    tests = (unique("id"), unique("product_id", "stg_products"))
    base = passed(shop(*tests), unique_stg_products_product_id=failures)
    assert picked(base, shop(*tests, orders=LEFT)) == (["unique_orders_id"], {})


@pytest.mark.parametrize("failures", [1, None])
def test_a_test_that_failed_or_did_not_run_is_not_proven(failures: int | None) -> None:
    tests = (not_null("id"), not_null("amount"))
    base = passed(shop(*tests), not_null_orders_id=failures)
    selected, proven = picked(base, shop(*tests, stg_orders=FILTER))
    assert (selected, list(proven)) == (["not_null_orders_id"], ["not_null_orders_amount"])


@pytest.mark.parametrize(
    "config", [{"error_if": "< 1"}, {"warn_if": "= 0"}, {"fail_calc": "max(id)"}, {"limit": 5}]
)
def test_a_test_that_may_fail_without_rows_is_not_proven_by_fewer(config: dict[str, Any]) -> None:
    test = not_null("id", config=config)
    selected, proven = picked(passed(shop(test)), shop(test, stg_orders=FILTER))
    assert (selected, proven) == (["not_null_orders_id"], {})


def test_a_test_that_warned_on_base_is_not_proven() -> None:
    test = not_null("id", config={"severity": "warn"})
    base = passed(shop(test))
    base.run_results[0].status, base.run_results[0].failures = "warn", 2
    assert picked(base, shop(test, stg_orders=FILTER)) == (["not_null_orders_id"], {})


def test_what_is_missing_to_hold_a_test_is_reported() -> None:
    fewer = PLAIN + " where o.amount > 0"
    more = PLAIN + " union all select 1, 2, 3"

    def missing(head: str, test: Node | None = None, failures: int | None = 0) -> str:
        test = test or not_null("id")
        tests = (test, not_null("product_id", of="stg_orders"))
        base = passed(shop(*tests), **{test.name: failures})
        (selection,) = select(base, shop(*tests, orders=head)).tests
        assert isinstance(selection.not_proven, Reason)
        return selection.not_proven.message

    assert missing(more).startswith("it may read rows that base does not have")
    assert missing(fewer, failures=1) == "on base its result was fail"
    limited = not_null("id", config={"limit": 5})
    assert "warn_if, error_if, limit" in missing(fewer, limited)
    frobnicated = replace(not_null("id"), compiled_code="frobnicate", raw_code="frobnicate")
    assert missing(fewer, frobnicated).startswith("its query cannot be followed on base: ")
    python = node("model.p.orders", None, "model.p.stg_orders", raw="x", language="python")
    base = passed(shop(not_null("id")), not_null_orders_id=0)
    head = shop(not_null("id"))
    (selection,) = select(base, project(*{**head.nodes, python.unique_id: python}.values())).tests
    assert str(selection.not_proven).startswith("orders cannot be analysed: ")
    ran = passed(shop(not_null("id"), unique("id")), not_null_orders_id=None)
    (other,) = (
        t
        for t in select(ran, shop(not_null("id"), unique("id"), orders=fewer)).tests
        if t.name == "not_null_orders_id"
    )
    assert str(other.not_proven) == "it was not run on base"
    assert picked(base, shop(not_null("id"), orders=fewer))[0] == []


def test_results_of_another_invocation_are_not_used_and_that_is_reported() -> None:
    test = not_null("id")
    base, head = passed(shop(test)), shop(test, stg_orders=FILTER)
    base.metadata.invocation_id, base.run_results[0].invocation_id = "now", "then"
    selection = select(base, head)
    assert [t.name for t in selection.tests] == ["not_null_orders_id"]
    assert any("another dbt command" in note.message for note in selection.notes)
    assert select(base, head, assume_passed=True).counts.proven_tests == 1
    assert select(base, head, facts=False).notes == []


def test_without_a_catalog_that_is_reported_where_more_might_be_held() -> None:
    tests = (unique("id"), unique("product_id", "stg_products"))
    base, head = passed(shop(*tests)), shop(*tests, orders=LEFT)
    assert select(base, head).notes == []
    base = base.having(catalog={})
    head = head.having(catalog={PRODUCTS: head.catalog[PRODUCTS]})
    selection = select(base, head)
    assert [test.name for test in selection.tests] == ["unique_orders_id"]
    assert "base has no catalog.json" in selection.notes[0].message
    # Nothing more can be proven: nothing is said.
    fewer = shop(*tests, stg_orders=FILTER)
    fewer = fewer.having(catalog={})
    assert (select(base, fewer).tests, select(base, fewer).notes) == ([], [])


def views(*tests: Node, **sql: Any) -> Project:
    """The same with views, whose queries nobody has run once they are built."""
    built = shop(*tests, **sql)
    for unique_id in ("model.p.stg_orders", "model.p.orders"):
        built.nodes[unique_id].config["materialized"] = "view"
    return built


def test_what_is_held_of_a_view_rests_on_a_test_that_runs_it() -> None:
    tests = (not_null("id"), unique("id"), accepted("amount"))
    selected, proven = picked(passed(views(*tests)), views(*tests, stg_orders=FILTER))
    assert selected == ["not_null_orders_id"]
    for name in ("unique_orders_id", "accepted_orders_amount"):
        assert facts(proven[name]) == ["not_null_orders_id"]
        assert proven[name].reason.message.endswith(
            "not_null_orders_id, which runs, shows whether orders, stg_orders can be read"
        )


def test_a_test_that_runs_anyway_is_the_one_that_looks_at_a_view() -> None:
    moved = check("moved", "select amount from s.orders where amount > 5", "model.p.orders")
    tests = (not_null("id"), moved)
    edited = STG_ORDERS.replace("amount", "amount * 2 as amount") + " where id > 0"
    selected, proven = picked(passed(views(*tests)), views(*tests, stg_orders=edited))
    assert selected == ["moved"]
    assert facts(proven["not_null_orders_id"]) == ["moved"]
    only = {"test.p.not_null_orders_id", "model.p.orders", "model.p.stg_orders"}
    selection = picked(passed(views(*tests)), views(*tests, stg_orders=edited), only=only)
    assert selection == (["not_null_orders_id"], {})


@pytest.mark.parametrize(
    ("amount", "runs"), [("coalesce(amount::int, 0)", True), ("coalesce(abs(amount), 0)", False)]
)
def test_a_column_of_a_view_that_may_fail_is_read_by_a_test_that_runs(
    amount: str, runs: bool
) -> None:
    """DuckDB does not evaluate what is not read, and base has not read these rows."""
    few = "select count(*) as n from s.orders having count(*) < 2"
    moved = check("moved", few, "model.p.orders")
    tests = (not_null("amount"), moved)
    now = STG_ORDERS.replace("amount", f"{amount} as amount")
    base = passed(views(*tests, stg_orders=now + " where id > 0"))
    selected, proven = picked(base, views(*tests, stg_orders=now))
    assert selected == (["not_null_orders_amount", "moved"] if runs else ["moved"])
    assert list(proven) == ([] if runs else ["not_null_orders_amount"])


@pytest.mark.parametrize(("column", "runs"), [("amount", True), ("id", False)])
def test_a_column_that_may_fail_counts_where_a_test_reads_it_through_a_view(
    column: str, runs: bool
) -> None:
    few = "select count(*) as n from s.passed_on having count(*) < 2"
    tests = (not_null(column, "passed_on"), check("moved", few, "model.p.passed_on"))
    passed_on = node("model.p.passed_on", "select id, amount from s.orders", "model.p.orders")
    passed_on.config["materialized"] = "view"
    now = "select coalesce(id, 0) as id, product_id, coalesce(amount::int, 0) as amount from s.raw_orders"
    base = passed(views(*tests, more=(passed_on,), stg_orders=now + " where id > 0"))
    selected, proven = picked(base, views(*tests, more=(passed_on,), stg_orders=now))
    name = f"not_null_passed_on_{column}"
    assert (name in selected) is runs
    assert (name in proven) is not runs


def test_what_base_has_evaluated_of_more_rows_does_not_fail_of_fewer() -> None:
    few = "select count(*) as n from s.orders having count(*) < 2"
    tests = (not_null("amount"), check("moved", few, "model.p.orders"))
    was = STG_ORDERS.replace("amount", "amount::int as amount")
    base = passed(views(*tests, stg_orders=was))
    selected, proven = picked(base, views(*tests, stg_orders=was + " where id > 0"))
    assert selected == ["moved"]
    assert facts(proven["not_null_orders_amount"]) == ["moved"]


# --- which rows a claim is of ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "stg_products",
    [
        "select product_id, unnest([1, 2]) as name from s.raw_products group by product_id",
        "select distinct product_id, unnest([1, 2]) as name from s.raw_products",
        "select product_id, unnest([1, 2]) as name from s.raw_products "
        "qualify row_number() over (partition by product_id order by name) = 1",
        "select distinct on (1) name as n, product_id from s.raw_products",
        "select distinct on (product_id) name as product_id, product_id as p from s.raw_products",
    ],
)
def test_what_is_repeated_after_it_was_unique_is_not(stg_products: str) -> None:
    test = unique("id")
    join = JOINED.format(kind="left")
    if "as p from" in stg_products:
        join = join.replace("= p.product_id", "= p.p")
    sides = [shop(test, stg_products=stg_products, orders=sql) for sql in (PLAIN, join)]
    for side in sides:
        side.metadata.adapter_type = "duckdb"
    assert picked(passed(sides[0]), sides[1]) == (["unique_orders_id"], {})


@pytest.mark.parametrize(
    ("first", "proven"),
    [
        ("select id from s.orders", True),
        ("select id from s.orders limit 3", False),
        ("select id from s.orders qualify row_number() over (partition by amount) = 1", False),
    ],
)
def test_a_join_that_keeps_the_rows_may_bring_them_in_another_order(
    first: str, proven: bool
) -> None:
    more = (node("model.p.first", first, "model.p.orders"),)
    tests = (unique("product_id", "stg_products"), not_null("id", "first"))
    sides = [shop(*tests, orders=sql, more=more) for sql in (PLAIN, LEFT)]
    selected, selection = picked(passed(sides[0]), sides[1])
    assert ("not_null_first_id" in selection) is proven
    assert ("not_null_first_id" in selected) is not proven


def test_a_column_that_came_by_a_join_is_not_that_of_the_next_join() -> None:
    """An unchanged child has the key from a join above it; the parent is cut on head alone."""

    def side(cut: str) -> Project:
        return shop(
            related("product_id", "stg_orders", "stg_products", "product_id"),
            stg_orders=(
                "select o.id, p.product_id, o.amount from s.raw_orders as o "
                "left join s.raw_products as p on o.amount = p.product_id"
            ),
            stg_products=STG_PRODUCTS + cut,
        )

    selected, _ = picked(passed(side("")), side(" order by product_id limit 2"))
    assert selected == ["related_stg_orders_product_id"]


NULLED = "update s.orders set product_id = null where again > 1"
INCREMENTAL = {"materialized": "incremental"}


@pytest.mark.parametrize(
    ("config", "hooks_of_another", "one_tells_of_the_other"),
    [
        ({}, [], True),
        ({"post-hook": [{"sql": NULLED}]}, [], False),
        ({}, [{"sql": NULLED}], False),
        (INCREMENTAL, [], False),
    ],
    ids=["neither", "hook", "hook of another node", "incremental"],
)
def test_columns_of_one_value_may_differ_where_more_than_the_query_writes(
    config: dict[str, Any], hooks_of_another: list[dict[str, Any]], one_tells_of_the_other: bool
) -> None:
    """A hook, or a run in the past, writes by name: neither column tells what the other holds."""

    def side(cut: str, orders: dict[str, Any], another: list[dict[str, Any]]) -> Project:
        sql = PLAIN.replace("o.amount", "o.product_id as again") + cut
        base = shop(
            *(not_null(column) for column in ("product_id", "again")),
            more=(node("model.p.another", "select 1 as a", config={"post-hook": another}),),
        )
        edited = node("model.p.orders", sql, "model.p.stg_orders", PRODUCTS, config=orders)
        return base.having(nodes=base.nodes | {edited.unique_id: edited})

    kept = config if config == INCREMENTAL else {}
    more = " union all select p.product_id, p.product_id, p.product_id from s.raw_products as p"
    base, head = side("", kept, []), side(more, config, hooks_of_another)
    selected, proven = picked(passed(base), head)
    if one_tells_of_the_other:
        assert (selected, [*proven]) == (["not_null_orders_again"], ["not_null_orders_product_id"])
    else:
        assert sorted(selected) == ["not_null_orders_again", "not_null_orders_product_id"]


@pytest.mark.parametrize(("value", "alike"), [("1", True), ("random()", False)])
def test_hooks_of_one_text_give_two_relations_other_values_by_chance(
    value: str, alike: bool
) -> None:
    hook = {"post-hook": [{"sql": f"update {{{{ this }}}} set amount = {value}"}]}
    of_one_query = [node(f"model.p.{n}", STG_ORDERS, ORDERS, config=hook) for n in ("a", "b")]
    one, other = map(analyse(shop(more=(*of_one_query,))).nodes.get, ("model.p.a", "model.p.b"))
    assert one is not None and other is not None
    assert (one.fingerprints == other.fingerprints) is alike
