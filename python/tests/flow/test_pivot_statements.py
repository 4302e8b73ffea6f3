"""PIVOT and UNPIVOT as statements, and PIVOT with GROUP BY: names and meaning, executed on DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.link import Linked, link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation

NAMES = ["g", "v", "w", "b", "h"]
TABLE = """create table t as select * from (values
    (1, 10, 'ash', true, 1), (1, 20, 'elm', false, 2), (2, 30, 'ash', true, 1), (3, null, 'oak', null, 3)
) as t(g, v, w, b, h)"""


def linked(sql: str) -> Linked:
    def table(key: str, _: str) -> Relation:
        return table_relation(key, NAMES)

    lowered = lower(sql, "duckdb")
    assert lowered.rel is not None, lowered.reason
    return link(lowered, table, "duckdb")


def executed(sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with duckdb.connect() as connection:
        connection.execute(TABLE)
        result = connection.execute(sql)
        return [column[0] for column in result.description], sorted(result.fetchall(), key=repr)


FOLLOWED = [
    "pivot t on w in ('ash', 'elm') using max(v) group by h, g",
    "pivot t on w in ('ash', 'elm') using max(v)",
    "pivot t on w in ('Ash', 'elm') using max(v) as m group by g",
    "pivot t on w in ('ash', 'elm') using max(v) as m, count(*) as n group by g",
    "pivot t on w in ('ash', 'elm'), h in (1, 2) using max(v) group by g",
    "pivot t on w in ('ash'), h in (1, 2) using max(v) as m, min(v) as n group by g",
    "pivot t on w in ('ash', 'elm') group by g",
    "pivot t on w in ('ash', 'elm')",
    "pivot t on upper(w) in ('ASH', 'ELM') using max(v) group by g",
    "pivot t on w in ('ash', 'elm') using max(v) filter (where h < 2) group by g",
    "pivot t on w in ('ash', 'elm') using max(v) group by G",
    "pivot t as x on w in ('ash', 'elm') using max(v) group by g",
    "pivot (select * from t) as x(a, bb, c, d, e) on c in ('ash', 'elm') using max(bb) group by a",
    "with c as (select * from t where h < 3) pivot c on w in ('ash') using max(v) group by g",
    "with c as (pivot t on w in ('ash') using max(v) group by g) select ash, g from c",
    "select * from (pivot t on w in ('ash') using max(v) group by g) as p(one, two)",
    "select * from t pivot (max(v) for w in ('ash', 'elm') group by h, g)",
    "select * from t pivot (max(v) for w in ('ash' as p, 'elm' as q) group by g)",
    "select * from t as x(a, bb, c, d, e) pivot (max(bb) for c in ('ash', 'elm') group by a)",
    "select * from t pivot (max(v) for w in ('ash', 'elm') group by g) as p",
    "select p.one from t pivot (max(v) for w in ('ash', 'elm') group by g) as p(one, two, three)",
    "unpivot t on g, h into name n value x",
    "unpivot t on g, h",
    "unpivot t on (g, h), (v, h) into name n value x, y",
    "unpivot t on g as a, h into name n value x",
    "select n, x from (unpivot (select g, h from t) on g, h into name n value x) as q",
]


@pytest.mark.parametrize("sql", FOLLOWED)
def test_columns_are_those_of_the_engine(sql: str) -> None:
    linked_query = linked(sql)
    assert not linked_query.missing
    assert not linked_query.relation.unlisted
    assert linked_query.relation.names == executed(sql)[0]


NOT_FOLLOWED = [
    "pivot t on w in ('ash', 'elm') using max(v) + 1 group by g",  # sqlglot cannot parse it
    "pivot t on w using max(v) group by g",  # its columns are data
    "pivot t on w in (select 'ash') using max(v) group by g",
    "pivot t on w in ('ash', 'elm') using max(v), min(v) group by g",  # named after the aggregates
    "pivot t on w in ('ash', 'elm') using max(v) group by v",
    "pivot t on w in ('ash', 'elm') using max(v) group by w",
    "pivot t on w in ('ash', 'elm') using max(v) group by g, g",
    "pivot t on w in ('ash', 'g') using max(v) group by g",  # the second is called g_1
    "pivot t on h in (1, -1) using max(v) group by g",
    "unpivot t on columns('g|h') into name n value x",
    "unpivot t on g + 1, h into name n value x",
]


@pytest.mark.parametrize("sql", NOT_FOLLOWED)
def test_what_the_text_does_not_tell_is_not_followed(sql: str) -> None:
    executed(sql)
    assert lower(sql, "duckdb").rel is None


def test_a_value_named_as_a_column_that_is_kept_is_not_followed() -> None:
    sql = "select * from (pivot t on w in ('ash', 'g') using max(v))"
    assert executed(sql)[0] == ["g", "b", "h", "ash", "g_1"]
    assert linked(sql).unknown is not None


# What is the same for the engine, whatever the rows, and what is not.
SAME = [
    (
        "pivot t on w in ('ash', 'elm') using max(v) group by g",
        "select * from (select g, v, w from t) pivot (max(v) for w in ('ash', 'elm'))",
    ),
    (
        "pivot t on w in ('ash', 'elm') using max(v) group by g",
        "select * from t pivot (max(v) for w in ('ash', 'elm') group by g)",
    ),
    (
        "unpivot t on g, h into name n value x",
        "select * from t unpivot (x for n in (g, h))",
    ),
    (
        "pivot t on w in ('ash', 'elm') group by g",
        "pivot t on w in ('ash', 'elm') using count(*) group by g",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_statement_means_its_clause(one: str, other: str) -> None:
    assert executed(one) == executed(other)
    a, b = linked(one).relation, linked(other).relation
    assert (a.names, a.fps, a.rows.fp) == (b.names, b.fps, b.rows.fp)


ROWS_DIFFER = [
    (
        "pivot t on w in ('ash') using max(v) group by g",
        "pivot t on w in ('ash') using max(v) group by g, h",
    ),
    ("pivot t on w in ('ash') using max(v) group by g", "pivot t on w in ('ash') using max(v)"),
    ("unpivot t on g, v into name n value x", "unpivot t on g, h into name n value x"),
]


@pytest.mark.parametrize(("one", "other"), ROWS_DIFFER)
def test_other_keys_are_other_rows(one: str, other: str) -> None:
    assert len(executed(one)[1]) != len(executed(other)[1])
    assert linked(one).relation.rows.fp != linked(other).relation.rows.fp


VALUES_DIFFER = [
    ("max(v)", "min(v)", "'ash'"),
    ("max(v)", "max(h)", "'ash'"),
    ("max(v)", "count(*)", "'ash'"),
    ("count(*)", "count(v)", "'oak'"),
]


@pytest.mark.parametrize(("one", "other", "value"), VALUES_DIFFER)
def test_another_aggregate_changes_its_columns_alone(one: str, other: str, value: str) -> None:
    texts = [f"pivot t on w in ({value}) using {u} as u group by g" for u in (one, other)]
    a, b = (linked(text).relation for text in texts)
    assert a.rows.fp == b.rows.fp
    assert a.fps[0] == b.fps[0]
    assert a.fps[1] != b.fps[1]


def test_values_of_another_column_move_the_turned_column() -> None:
    texts = [f"pivot t on {on} in ('ash') using max(v) group by g" for on in ("w", "b")]
    a, b = (linked(text).relation for text in texts)
    assert a.rows.fp == b.rows.fp and a.fps[1] != b.fps[1]
