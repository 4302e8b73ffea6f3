"""The SQL that is shown of a column: through CTEs, and through the `*` of CTEs."""

from __future__ import annotations

from dbt_ripple.flow.query_text import text_of_query


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
