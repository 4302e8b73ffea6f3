"""Pipe operators count in the order in which they are written."""

from __future__ import annotations

import pytest
import sqlglot
from test_dropped_tokens import meaning

from dbt_ripple.flow.reading.text_repairs import without_unknown_pipes

OTHER_QUERIES = [
    ("from t |> order by a |> limit 1 |> where b > 2", "from t |> order by a |> where b > 2 |> limit 1"),
    ("from t |> order by a |> limit 1 |> order by b", "from t |> order by b |> limit 1"),
    (
        "from t |> limit 2 |> aggregate count(*) as n group by a",
        "from t |> aggregate count(*) as n group by a |> limit 2",
    ),
    ("from t |> select distinct a", "from t |> select a"),
    ("from t |> distinct |> select a", "from t |> select a |> distinct"),
    (
        "from t |> where t.a > 1 |> right join u on u.a = t.a",
        "from t |> right join u on u.a = t.a |> where t.a > 1",
    ),
    ("select a from t limit 1 |> where a > 2", "select a from t where a > 2 limit 1"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), OTHER_QUERIES)
def test_operators_in_another_order_are_another_query(one: str, other: str) -> None:
    assert meaning(one, "spark") != meaning(other, "spark")


def test_the_relation_keeps_its_name_where_it_is_put_in_brackets() -> None:
    read = sqlglot.Dialect.get_or_raise("spark").tokenize
    assert (
        without_unknown_pipes("from `T` |> limit 2 |> where `T`.a > 1", read)
        == "FROM (from `T` |> limit 2 ) AS `T` |> where `T`.a > 1"
    )
    assert (
        without_unknown_pipes("from x.t as o |> limit 2 |> where o.a > 1", read)
        == "FROM (from x.t as o |> limit 2 ) AS o |> where o.a > 1"
    )
