"""Names that show in the data: keys of structs and of JSON, what UNPIVOT writes, rows as one value.

Each pair differs in a name, or only in its case. What DuckDB gives must differ where it says so, and
then so do the fingerprints of what is read from it.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from flow.test_name_resolution import fingerprints, linked

ROW = "select to_json(q) as j from (select {}) as q"
DATA = [
    # The alias of a column, of a row as one value.
    (ROW.format("v as A from t"), ROW.format("v as a from t")),
    (ROW.format("v as a from t"), ROW.format("v as b from t")),
    (
        "with a as (select v as Kk from t), b as (select kk from a) select to_json(b) as j from b",
        "with a as (select v as KK from t), b as (select kk from a) select to_json(b) as j from b",
    ),
    (
        "with a as (select v as Kk from t), b as (select * from a) select row_to_json(b) as j from b",
        "with a as (select v as kk from t), b as (select * from a) select row_to_json(b) as j from b",
    ),
    (
        "select to_json(list(q)) as j from (select v as A from t) as q",
        "select to_json(list(q)) as j from (select v as a from t) as q",
    ),
    ("select q as j from (select v as A from t) as q", "select q as j from (select v as a from t) as q"),
    # Keys of structs.
    ("select to_json({'A': v}) as j from t", "select to_json({'a': v}) as j from t"),
    ("select to_json(struct_pack(A := v)) as j from t", "select to_json(struct_pack(a := v)) as j from t"),
    (
        "select to_json(struct_pack(w)) as j from (select v as W from t) as q",
        "select to_json(struct_pack(w)) as j from (select v as w from t) as q",
    ),
    (
        "select to_json(struct_pack(w)) as j from (select v as w from t) as q",
        "select to_json(struct_pack(x)) as j from (select v as x from t) as q",
    ),
    ("select json_object('A', v) as j from t", "select json_object('a', v) as j from t"),
    ("select j.Ab as x from (select '{\"Ab\": 1}'::json as j) as q",
     "select j.ab as x from (select '{\"Ab\": 1}'::json as j) as q"),
    # Keys of maps are expressions.
    ("select to_json(map {v: 1}) as j from t", "select to_json(map {k: 1}) as j from t"),
    ("select to_json(map {v + 1: 1}) as j from t", "select to_json(map {v + 2: 1}) as j from t"),
    (
        "with a as (select v as w from t) select to_json(map {w: 1}) as j from a",
        "with a as (select v + 1 as w from t) select to_json(map {w: 1}) as j from a",
    ),
    # What UNPIVOT writes.
    (
        "select n from (select v as A, k from t) as q unpivot (x for n in (a, k))",
        "select n from (select v as a, k from t) as q unpivot (x for n in (a, k))",
    ),
    (
        "select n from (select v, k from t) as q unpivot (x for n in (v as A, k))",
        "select n from (select v, k from t) as q unpivot (x for n in (v as a, k))",
    ),
    # Columns that PIVOT makes of values.
    (
        "select to_json(p) as j from (select * from t pivot (sum(v) for k in (1 as One, 2))) as p",
        "select to_json(p) as j from (select * from t pivot (sum(v) for k in (1 as one, 2))) as p",
    ),
    # A repeated name, told apart.
    (
        "select to_json(q) as j from (select v, k as v from t) as q",
        "select to_json(q) as j from (select v, k as V from t) as q",
    ),
]  # fmt: skip
NO_DATA = [
    ("select a from (select v as A from t) as q", "select A as a from (select v as a from t) as q"),
    ("select v as A from t", "select V as a from T"),
    (
        "select sum(A) as s from (select v as A from t) as q group by a",
        "select sum(a) as s from (select v as a from t) as q group by A",
    ),
    (  # DuckDB gives a column as it is called, not as it is read.
        "select to_json(q) as j from (select K, t.V from t) as q",
        "select to_json(q) as j from (select k, t.v from t) as q",
    ),
    (
        "select n from t unpivot (x for n in (V, K))",
        "select n from t unpivot (x for n in (v, k))",
    ),
    (
        "select to_json(struct_pack(V, k)) as j from t",
        "select to_json(struct_pack(v, K)) as j from t",
    ),
]


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("create table t (k int, v int, g int)")
        connection.execute("insert into t values (1, 2, 3), (2, 5, 7)")
        yield connection


@pytest.mark.parametrize(("one", "other"), DATA)
def test_a_name_that_is_data_counts_as_written(
    one: str, other: str, data: duckdb.DuckDBPyConnection
) -> None:
    first, second = (sorted(map(repr, data.execute(q).fetchall())) for q in (one, other))
    assert first != second or " q as j" in f" {one}"  # a row: Python sees it without its names
    assert not linked(one, "duckdb").missing
    assert fingerprints(one, "duckdb") != fingerprints(other, "duckdb")


@pytest.mark.parametrize(("one", "other"), NO_DATA)
def test_the_case_of_another_name_says_nothing(
    one: str, other: str, data: duckdb.DuckDBPyConnection
) -> None:
    first, second = (sorted(map(repr, data.execute(q).fetchall())) for q in (one, other))
    assert first == second
    assert fingerprints(one, "duckdb") == fingerprints(other, "duckdb")


SPELLED = {
    "spark": True, "databricks": True, "bigquery": True,
    "postgres": False, "redshift": False, "snowflake": False,
}  # fmt: skip


@pytest.mark.parametrize(("dialect", "kept"), SPELLED.items())
def test_a_name_is_data_in_the_case_the_engine_keeps(dialect: str, kept: bool) -> None:
    for one, other in (
        (ROW.format("v as A from t"), ROW.format("v as a from t")),
        (
            "select to_json(struct(v as A)) as j from t",
            "select to_json(struct(v as a)) as j from t",
        ),
    ):
        moves = fingerprints(one, dialect) != fingerprints(other, dialect)
        assert moves == kept


STRUCTS = [
    ("bigquery", "select array(select as struct v, k from t) as j", "v, k", "v as w, k"),
    ("bigquery", "select to_json(struct(v, k)) as j from (select v, k from t) as q", "v, k", "x, k"),
    ("spark", "select to_json(struct(v, k)) as j from (select v, k, v as w from t) as q", "(v, k", "(w, k"),
    ("tsql", "select v, k from t for json path", "v, k", "v as w, k"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "sql", "here", "there"), STRUCTS)
def test_a_field_is_called_as_the_column_it_is_made_of(
    dialect: str, sql: str, here: str, there: str
) -> None:
    assert fingerprints(sql, dialect) != fingerprints(sql.replace(here, there, 1), dialect)
