"""A source, or a test, that only has another name is the same one."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import generic, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project, RunResult
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select

RELATION = "`raw`.`orders`"
WHERE = {"identifier": "orders", "schema": "raw", "relation_name": RELATION}
TESTS = ["not_null_star_status", "not_null_stg_id", "unique_d_id"]
ON_SOURCE = "source_not_null"


def shop(source: str, listed: bool = True, where: str = "", **changes: Any) -> Project:
    """Two models over a source, one over these, and tests of all of them."""
    name = source.split(".")[-1]
    properties = WHERE | {k: v for k, v in changes.items() if k != "test"}
    above = replace(node(source, columns=["id", "amount", "status"]), **properties)
    of, test = properties["relation_name"], changes.get("test", {})
    made = project(
        above,
        node("model.p.stg", f"select id, amount from {of} {where}", source, raw=f"stg of {name}"),
        node("model.p.star", f"select * from {of}", source, raw=f"star of {name}"),
        node("model.p.d", "select id, sum(amount) as a from `s`.`stg` group by 1", "model.p.stg"),
        generic(
            TESTS[0], "not_null", "select 1 from `s`.`star` where status is null", "model.p.star"
        ),
        generic(TESTS[1], "not_null", "select 1 from `s`.`stg` where id is null", "model.p.stg"),
        generic(
            TESTS[2], "unique", "select id from `s`.`d` group by 1 having count(*) > 1", "model.p.d"
        ),
        generic(
            f"{ON_SOURCE}_{name}",
            "not_null",
            f"select 1 from {of} where {test.get('column', 'id')} is null",
            source,
            config=test.get("config", {}),
            attached_node=source,
        ),
        types={source: {"id": "int", "amount": "int", "status": "text"}} if listed else None,
    )
    return made.having(
        run_results=[
            RunResult(unique_id=n.unique_id, status="pass", failures=0)
            for n in made.of_type("test")
        ]
    )


def selected(selection: Selection) -> list[str]:
    return sorted(test.name for test in selection.tests)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("facts", [True, False])
def test_a_source_with_another_name_over_the_same_relation(listed: bool, facts: bool) -> None:
    base, head = shop("source.p.raw.orders", listed), shop("source.p.erp.sales", listed)
    selection = select(base, head, facts=facts)
    assert not selection.tests
    assert not selection.models
    assert selection.counts.state_modified_tests == 4, "dbt does not know it"


@pytest.mark.parametrize("others", [True, False])
def test_base_knows_the_columns_of_a_source_by_its_former_name(others: bool) -> None:
    """Where head has no catalog, it has base's, and that does not know the new name."""
    base, head = shop("source.p.raw.orders"), shop("source.p.erp.sales", False)
    head = head.having(catalog={"source.p.raw.other": []} if others else {})
    selection = select(base, head)
    assert not selection.tests
    assert not selection.models
    assert not selection.opaque


ANOTHER: dict[str, dict[str, Any]] = {
    "another table": {"identifier": "orders_v2", "relation_name": "`raw`.`orders_v2`"},
    "another schema": {"schema": "old", "relation_name": "`old`.`orders`"},
    "another schema, said by a var": {"unrendered_schema": "{{ var('s') }}", "schema": "old"},
    "quoted otherwise": {"quoting": {"identifier": True}},
    "a file in place of a table": {"external": {"location": "x.parquet"}},
}


@pytest.mark.parametrize("changes", ANOTHER.values(), ids=ANOTHER)
def test_a_source_that_is_another_relation_is_new(changes: dict[str, Any]) -> None:
    selection = select(
        shop("source.p.raw.orders"), shop("source.p.erp.sales", **changes), facts=False
    )
    assert set(TESTS) <= set(selected(selection))


def test_what_changes_beside_it_is_seen() -> None:
    selection = select(
        shop("source.p.raw.orders"), shop("source.p.erp.sales", where="where id > 1"), facts=False
    )
    assert selected(selection) == TESTS[1:]


@pytest.mark.parametrize(
    "test",
    [{"column": "amount"}, {"config": {"severity": "warn"}}, {"config": {"error_if": "> 3"}}],
    ids=str,
)
def test_a_test_that_asks_something_else_is_not_the_same(test: dict[str, Any]) -> None:
    selection = select(shop("source.p.raw.orders"), shop("source.p.erp.sales", test=test))
    assert selected(selection) == [f"{ON_SOURCE}_sales"]


def test_a_test_with_another_name_still_sees_what_changed() -> None:
    """It is compared with itself, and what base found of it counts for it."""
    source = "source.p.raw.orders"
    base, head = shop(source), shop(source)
    old, new = f"test.p.{TESTS[1]}", "test.p.ids_are_given"
    for nodes in (head.nodes, head.parents, head.children):
        nodes[new] = nodes.pop(old)  # type: ignore[attr-defined]
    head.nodes[new] = replace(head.nodes[new], unique_id=new, name="ids_are_given")
    head.children["model.p.stg"] = ["model.p.d", new]
    assert not select(base, head).tests
    stg = head.nodes["model.p.stg"]
    stg = head.nodes["model.p.stg"] = replace(
        stg,
        raw_code=f"{stg.compiled_code} where amount > 1",
        compiled_code=f"{stg.compiled_code} where amount > 1",
    )
    assert selected(select(base, head, facts=False)) == ["ids_are_given", TESTS[2]]
    proven = select(base, head)
    assert new in {test.unique_id for test in proven.proven}
    stg = head.nodes["model.p.stg"] = replace(
        stg,
        raw_code=stg.compiled_code.replace("id,", "id + amount as id,"),
        compiled_code=stg.compiled_code.replace("id,", "id + amount as id,"),
    )
    assert "ids_are_given" in selected(select(base, head))
