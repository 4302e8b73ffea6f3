"""Duplicates of a definition, and readers that pass by the canonical one: named exactly."""

from __future__ import annotations

import pytest
from hand_made import LISTED, RAW, node, orders, project
from semantic_world import filtered, shop, simple

from dbt_ripple.artifacts import Project
from dbt_ripple.governance.gate import gate
from dbt_ripple.reasons import Code

KPI = "select id, amount * 2 as net, status, 1 as one from s.orders"
RULES = ("duplicate_introduced", "canonical_bypassed")


def side(canonical: bool = False, **models: str) -> Project:
    made = [
        node(
            f"model.p.{name}",
            sql,
            *(f"model.p.{other}" for other in models if f"s.{other}" in sql),
            *([RAW] if "s.orders" in sql else []),
            meta={"canonical": canonical and name == "kpi"},
        )
        for name, sql in models.items()
    ]
    return project(orders(), *made, catalog=LISTED, adapter="duckdb")


def findings_of(base: Project, head: Project) -> list[tuple[str, str, str | None, str]]:
    findings = [f for f in gate(base, head).findings if f.rule in RULES]
    return [(f.rule, f.unique_id or "", f.column, f.reason.message) for f in findings]


SAME = "computes the same as kpi.net"


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("select amount * 2 as net from s.orders", "net"),
        ("with x as (select * from s.orders), y as (select x.amount*2 as b from x) select b as total from y", "total"),
        ("select o.amount * 2 as n from s.orders as o join s.kpi on kpi.id = o.id where o.id > 7", "n"),
        # Other rows, in which a join pairs what the value is made of in another way.
        ("select o.amount * 2 as n from s.orders as x left join s.orders as o on x.id = o.amount", None),
        ("select o.amount * 2 as n from s.kpi left join s.orders as o on kpi.id = o.id", None),
        # Not the same, or not computed there.
        ("select amount * 3 as net from s.orders", None),
        ("select net from s.kpi", None),
        ("select net, 1 as one, status from s.kpi where net > 0", None),
        ("select kpi.net from s.kpi join s.orders using (id)", None),
        ("select net * 2 as net from s.kpi", None),
        ("select amount as net from s.orders", None),
    ],
)  # fmt: skip
def test_a_duplicate_is_what_is_computed_again(sql: str, column: str | None) -> None:
    duplicates = findings_of(side(kpi=KPI), side(kpi=KPI, other=sql))
    wanted = [("duplicate_introduced", "model.p.other", column, SAME)] if column else []
    assert duplicates == wanted


def test_a_duplicate_that_base_has_is_not_named_again() -> None:
    again = "select amount * 2 as net from s.orders"
    both = side(kpi=KPI, other=again)
    assert findings_of(both, both) == []
    assert (
        findings_of(both, side(kpi=KPI.replace("id,", "id, id as id2,"), other=f"{again} limit 3"))
        == []
    )
    # Both moved, and together.
    moved = side(kpi=KPI.replace("2", "5"), other=again.replace("2", "5"))
    assert findings_of(both, moved) == []
    # Two new ones are one finding.
    assert len(findings_of(side(kpi=KPI), side(kpi=KPI, other=again, third=again))) == 2


def test_an_incremental_model_that_reads_itself_has_other_values() -> None:
    grows = "select max(amount) as top from s.{0} union all select amount as top from s.orders"
    sides = [side(a=grows.format("a")), side(a=grows.format("a"), b=grows.format("b"))]
    assert findings_of(*sides) == []


@pytest.mark.parametrize(
    "expression",
    ["amount * random()", "amount + extract(epoch from now())", "concat(status, uuid())"],
)
def test_what_chance_or_the_time_decides_is_no_duplicate(expression: str) -> None:
    sql = f"with x as (select {expression} as a from s.orders) select a from x"
    assert findings_of(side(a=sql), side(a=sql, b=sql)) == []


def test_the_canonical_one_is_the_twin_that_stays() -> None:
    base = side(canonical=True, a="select amount as x from s.orders")
    head = side(canonical=True, a="select amount * 2 as x from s.orders", kpi=KPI)
    ((rule, unique_id, column, message),) = findings_of(base, head)
    assert (rule, unique_id, column, message) == ("duplicate_introduced", "model.p.a", "x", SAME)


@pytest.mark.parametrize(
    ("copy", "code"),
    [
        ("select id, amount * 2 as mine from s.orders", Code.BYPASSES_SAME),
        ("select id, amount * 3 as net from s.orders", Code.BYPASSES_OTHER),
        ("select id, amount * 3 as mine from s.orders", None),
        ("select id, net from s.kpi", None),
    ],
)
def test_a_new_reader_of_another_definition(copy: str, code: Code | None) -> None:
    column = "net" if "net" in copy else "mine"
    base = side(canonical=True, kpi=KPI, copy=copy, report="select id from s.copy")
    head = side(canonical=True, kpi=KPI, copy=copy, report=f"select id, {column} from s.copy")
    findings = [f for f in gate(base, head).findings if f.rule in RULES]
    wanted = [("canonical_bypassed", "model.p.report", code)] if code else []
    assert [(f.rule, f.unique_id, f.reason.code) for f in findings] == wanted
    # Where nothing is canonical, or the reader was there, nobody passes by it.
    assert findings_of(side(kpi=KPI, copy=copy, report="select id from s.copy"),
                 side(kpi=KPI, copy=copy, report=f"select id, {column} from s.copy")) == []  # fmt: skip
    assert findings_of(head, head) == []
    edited = f"select id, {column} from s.copy where id > 1"
    assert findings_of(head, side(canonical=True, kpi=KPI, copy=copy, report=edited)) == []


def test_what_the_canonical_one_is_made_of_passes_nobody_by() -> None:
    """A mart reads the staging model below the canonical one, as every mart does."""
    models = {
        "copy": "select id, amount * 3 as net from s.orders",
        "kpi": "select id, net / 100 as net from s.copy",
    }
    base = side(canonical=True, **models, report="select id from s.copy")
    head = side(canonical=True, **models, report="select id, net from s.copy")
    assert [f for f in gate(base, head).findings if f.rule in RULES] == []


def test_a_metric_is_a_duplicate_of_the_one_that_asks_the_same() -> None:
    base = shop()
    again = {
        "revenue": simple("sales", "revenue"),
        "": simple("sales", "revenue", filter=filtered("{{ Dimension('order__status') }} = 'x'")),
    }
    for name, new in again.items():
        head = shop(more=(new,))
        duplicates = [f for f in gate(base, head).findings if f.rule == "duplicate_introduced"]
        wanted = [("metric.p.sales", f"computes the same as {name}.{name}")] if name else []
        assert [(f.unique_id, f.reason.message) for f in duplicates] == wanted
        assert [f for f in gate(head, head).findings if f.rule == "duplicate_introduced"] == []
