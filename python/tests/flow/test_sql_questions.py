"""`lineage` and `equivalent`: SQL that is in no project."""

from __future__ import annotations

import pytest
from reworded_pairs import COLUMNS, FORMS, NEAR_MISSES

from dbt_ripple import RippleError, equivalent, lineage

TABLES = dict.fromkeys("abc", COLUMNS)


@pytest.mark.parametrize("form", FORMS)
def test_other_words_are_proven_with_the_rules(form: str) -> None:
    found = equivalent(*FORMS[form], TABLES, "duckdb")
    assert found.proven and found, found


@pytest.mark.parametrize("miss", NEAR_MISSES)
def test_a_near_miss_is_not_proven(miss: str) -> None:
    found = equivalent(*NEAR_MISSES[miss], TABLES, "duckdb")
    assert not found and found.reason


def test_the_rules_are_named() -> None:
    found = equivalent(
        "select x from a where not (x = 1 and y = 2)",
        "select x from a where x <> 1 or y <> 2",
        TABLES,
    )
    assert found.rules == ("De Morgan", "NOT of a comparison")
    assert equivalent("select x from a", "SELECT a.x FROM a -- the same", TABLES).rules == ()


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        ("select x from a", "select x from a where p", ("*rows*",)),
        ("select x, y from a", "select x, y + 1 as y from a", ("y",)),
        ("select x from a", "select x as z from a", ("x", "z")),
        ("select x, y from a", "select y, x from a", ()),
        ("select x from a", "select x from (", ()),
        ("select x from a", "select nope from a", ()),
    ],
)
def test_what_is_not_proven_is_said(a: str, b: str, differs: tuple[str, ...]) -> None:
    found = equivalent(a, b, TABLES, "duckdb")
    assert not found.proven and set(found.differs) == set(differs) and found.reason


def test_chance_is_said() -> None:
    found = equivalent(
        "select random() as r from a", "select  random() as r from a", TABLES, "duckdb"
    )
    assert found.proven and found.may_vary
    assert equivalent("select x from a", "select  x from a", TABLES, "duckdb").may_vary is None


def test_a_column_comes_from() -> None:
    found = lineage(
        "select o.id, sum(amount) as total from shop.orders o join c on c.id = o.id where o.status = 'x' group by 1",
        {"shop.orders": {"id": "int", "amount": "int", "status": "text"}, "c": ["id"]},
    )
    assert (found.columns, found.missing) == (("id", "total"), None)
    (total,) = found.of("TOTAL")
    assert (total.table, total.column, total.kind, total.transformation) == (
        *("shop.orders", "amount", "AGGREGATION", "SUM(amount)"),
    )
    rows = {(e.table, e.column, e.kind) for e in found.of("*rows*")}
    assert rows >= {
        ("shop.orders", "status", "FILTER"),
        ("c", "id", "JOIN"),
        ("shop.orders", "id", "GROUP_BY"),
    }
    assert found.to_arrow().num_rows == len(found.edges)


def test_a_star_needs_the_schema() -> None:
    assert lineage("select * from a", {"a": ["x", "y"]}).columns == ("x", "y")
    unknown = lineage("select * from nowhere")
    assert unknown.columns == () and "are not known" in (unknown.missing or "")
    assert lineage("select nope from a", {"a": ["x"]}).missing == "cannot find nope"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("select 1", {}, "sprak"), "did you mean spark"),
        (("  ", {}), "there is no SQL"),
        (("select 1", {"a": "x"}), "are no columns"),
        (("select 1", {"a": [1]}), "are no columns"),
    ],
)
def test_what_is_asked_is_checked(arguments: tuple[object, ...], said: str) -> None:
    with pytest.raises(RippleError, match=said):
        lineage(*arguments)  # type: ignore[arg-type]
