"""CTEs that nothing refers to: DuckDB does not look into them, so they hide nothing from us."""

from __future__ import annotations

import duckdb
import pytest

from dbt_ripple.flow.lower import lower

UNKNOWN = "select columns('a') from nowhere"
"""What cannot be followed, and fails where it is looked into: there is no such table."""

UNUSED = [
    f"with x as ({UNKNOWN}) select a from t",
    f"with x as materialized ({UNKNOWN}) select a from t",
    f"with x (n) as ({UNKNOWN}) select a from t",
    f"with x as ({UNKNOWN}), y as (select * from x) select a from t",
    f"with z as (select a from t), x as ({UNKNOWN}) select a from z",
    "with recursive x (n) using key (n) as (select b from nowhere union select n + 1 from x) "
    "select a from t",
    f"select a from (with x as ({UNKNOWN}) select a from t) as inside",
    f"select a from t where a in (with x as ({UNKNOWN}) select a from t)",
    f"select a from t union all (with x as ({UNKNOWN}) select a from t)",
]
LOOKED_INTO = [
    f"with x as ({UNKNOWN}) select a from t, x",
    f"with x as ({UNKNOWN}), y as (select * from x) select a from y",
    f"with x as ({UNKNOWN}) select a from query_table('x')",
    f"with xyz as ({UNKNOWN}) select a from query_table('x' || 'yz')",
    f'with "X" as ({UNKNOWN}) select a from x',
    "with x as (pivot nowhere on b using count(*)) select a from t",
    "with x as (insert into nowhere select 1 returning *) select a from t",
]


@pytest.mark.parametrize("sql", UNUSED)
def test_what_duckdb_does_not_look_into_is_nothing(sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("create table t as select * from (values (1), (1), (null)) as v (a)")
        assert {row[0] for row in connection.execute(sql).fetchall()} <= {1, None}
    lowered = lower(sql, "duckdb")
    assert lowered.rel is not None, lowered.reason
    assert set(lowered.tables) == {"t", "nowhere"}, "its parents are those that dbt knows"


@pytest.mark.parametrize("sql", LOOKED_INTO)
def test_what_it_looks_into_hides_something(sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("create table t as select 1 as a")
        with pytest.raises(duckdb.Error):
            connection.execute(sql).fetchall()
    assert lower(sql, "duckdb").rel is None


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake"])
def test_engines_that_look_into_all_or_may(dialect: str) -> None:
    assert lower("with x as (select a from t lateral view 1) select 1", dialect).rel is None
    reads = "with x as (select * ilike 'a%' from t), y as (select 1) select b from y"
    assert lower(reads.replace("* ilike 'a%'", "columns('a')"), dialect).rel is None


def test_a_parent_that_only_such_a_cte_names_does_not_count_whole() -> None:
    plain, more = (
        lower(sql, "duckdb")
        for sql in ("select a from t", f"with x as ({UNKNOWN}) select a from t")
    )
    assert plain.rel is not None
    assert more.rel is not None
    assert more.rel.body == plain.rel  # type: ignore[union-attr]
