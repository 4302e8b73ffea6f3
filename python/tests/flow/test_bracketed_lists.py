"""A list in brackets is a value: what IN says of it is not what it says of values in parentheses."""

from __future__ import annotations

import duckdb
import pytest
from hand_made import node, project

from dbt_ripple.graph.analyse_project import analyse

RAW = node("source.p.raw.r", columns=["v", "l"])


def rows_fingerprint(condition: str) -> str:
    model = node("model.p.m", f"select v from s.r where {condition}", RAW.unique_id)
    seen = analyse(project(RAW, model, adapter="duckdb")).nodes["model.p.m"]
    assert seen.status == "analysed"
    return seen.rows_fingerprint


def rows(condition: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("create schema s; create table s.r (v int, l int[])")
        connection.execute("insert into s.r values (1, [1]), (5, [2]), (null, null)")
        return connection.sql(f"select v from s.r where {condition} order by v").fetchall()


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("v not in [1, 2, null]", "v not in (1, 2, null)", False),
        ("(v in [1, null]) is null", "(v in (1, null)) is null", False),
        ("v + 4 not in [v, [2, null][2]]", "v + 4 not in (v, [2, null][2])", False),
        ("v not in [1, null]", "v not in list_value(1, null)", True),
        ("v in [1, 5][1:1]", "v in list_value(1, 5)[1:1]", True),
        ("v in [x for x in [1, 2]]", "v in [x for x in [1, 2]]", True),
    ],
)
def test_a_list_in_brackets_is_told_from_values_in_parentheses(
    one: str, other: str, alike: bool
) -> None:
    assert (rows(one) == rows(other)) is alike
    assert (rows_fingerprint(one) == rows_fingerprint(other)) is alike
