"""The SQL that is shown of a column: through CTEs, and through the `*` of CTEs."""

from __future__ import annotations

import pytest

from dbt_ripple.flow.query_text import folded, text_of_query


def test_a_column_is_shown_through_stars_of_ctes() -> None:
    columns = text_of_query(
        """
        with items as (select order_id, sum(price) as cost from order_items group by order_id),
        joined as (
            select o.* except (id), i.cost, i.cost > 0 as is_priced
            from (select 1 as id) as x join orders as o on true left join items as i on true
        ),
        renamed as (select *, cost as total from joined),
        final as (select * from renamed)
        select f.* from final as f
        """,
        "databricks",
    ).columns
    assert columns == {
        "cost": ["i.cost", "SUM(price)"],
        "is_priced": ["i.cost > 0"],
        "total": ["cost", "i.cost", "SUM(price)"],
    }


def test_what_a_star_leaves_out_is_not_shown_as_it_was_below() -> None:
    query = "with a as (select x + 1 as x, y * 2 as y from t) select * except (x) from a"
    assert text_of_query(query, "databricks").columns == {"y": ["y * 2"]}


def test_a_recursive_cte_is_looked_at_once() -> None:
    query = "with recursive r as (select 1 as n union all select n + 1 from r) select * from r"
    assert text_of_query(query, "duckdb").columns == {"n": ["1"]}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a from t where 1 = 1", "SELECT a FROM t"),
        ("select a from t where a = a", "SELECT a FROM t WHERE a = a"),  # not where it is NULL
        ("select a from t where 1 = 2", "SELECT a FROM t WHERE 1 = 2"),
        ("select sum(a) from t having true", "SELECT SUM(a) FROM t HAVING TRUE"),  # one row of all
        ("select a from t where a and (b or a) and a", "SELECT a FROM t WHERE a AND (b OR a)"),
        (
            "select a from t where a in (select b from u) and a in (select b from u)",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u) AND a IN (SELECT b FROM u)",
        ),
        (
            "select case when a then b else 0 end from t",
            "SELECT CASE WHEN a THEN b ELSE 0 END FROM t",
        ),
        ("select case when", "select case when"),
    ],
)
def test_only_what_is_true_or_said_twice_is_folded(sql: str, expected: str) -> None:
    assert folded(sql, "duckdb") == expected
