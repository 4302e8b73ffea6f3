"""What a query proves of its own rows, and the near misses, which repeat values when executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.containment import OpaqueRows
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation
from dbt_ripple.flow.row_constraints import Facts, KnownConstraints, type_family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {"id": "integer", "k": "integer", "x": "integer", "d": "double", "l": "integer[]"}


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        connection.execute(f"create table t ({columns})")
        connection.execute(
            "insert into t values (1, 1, 5, 0.0, [10, 20]), (2, 1, 5, '-0.0', [20]), "
            "(3, 2, 5, 1.5, [30, 30]), (3, 2, 6, 1.5, [40]), (4, null, 7, null, [50]), "
            "(5, 3, 8, 2.5, [])"
        )
        yield connection


def facts(sql: str, dialect: str = "duckdb") -> tuple[Facts, dict[bytes, str]]:
    """What is known of a query's rows, and its columns by fingerprint."""
    known_constraints = KnownConstraints()

    def table(key: str, _: str) -> Relation:
        relation = table_relation(key, TYPES)
        relation.facts = Facts(OpaqueRows(relation.rows.fp))
        for fp, type_ in zip(relation.fps, TYPES.values(), strict=True):
            known_constraints.typed(fp, type_family(type_))
        return relation

    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    linked = link(lowered, table, dialect, known_constraints)
    assert not linked.missing
    assert linked.relation.facts is not None
    return linked.relation.facts, dict(zip(linked.relation.fps, linked.relation.names, strict=True))


def claimed(sql: str, column: str, dialect: str = "duckdb") -> bool:
    facts_of_query, columns = facts(sql, dialect)
    fps = frozenset(fp for fp, name in columns.items() if name == column)
    return facts_of_query.single or facts_of_query.unique_on(fps) is not None


def repeats(connection: duckdb.DuckDBPyConnection, sql: str, column: str) -> bool:
    counts = Counter(
        row for (row,) in connection.execute(f"select {column} from ({sql})").fetchall()
    )
    return any(n > 1 for value, n in counts.items() if value is not None)


UNIQUE = [
    ("select k, count(*) as n from t group by k", "k"),
    ("select k, count(*) as n from t group by 1", "k"),
    ("select k, count(*) as n from t group by all", "k"),
    ("select k + 1 as m, count(*) as n from t group by m", "m"),
    ("select distinct k from t", "k"),
    ("select distinct on (k) * from t", "k"),
    ("select distinct on (2) id, k from t order by 2, 1", "k"),
    ("select distinct on (m) id, k + 0 as m from t", "m"),
    ("select * from t qualify row_number() over (partition by k order by id) = 1", "k"),
    ("select * from (select *, row_number() over (partition by k) as n from t) where n = 1", "k"),
    ("select * from t qualify row_number() over (partition by d order by id) = 1", "d"),
    ("select k from t union select x from t", "k"),
    ("select k from t intersect select x from t", "k"),
    ("select max(id) as m from t", "m"),
    ("select distinct unnest(l) as u from t", "u"),
    ("select distinct on (u) unnest(l) as u, k from t", "u"),
    ("select k from (select k, unnest(l) as u from t) group by k", "k"),
]


@pytest.mark.parametrize(("sql", "column"), UNIQUE)
def test_what_is_unique(sql: str, column: str, data: duckdb.DuckDBPyConnection) -> None:
    assert claimed(sql, column)
    assert not repeats(data, sql, column)


REPEATED = [
    # A generator multiplies after the groups, the windows and QUALIFY.
    ("select k, unnest([1, 2]) as u from t group by k", "k"),
    ("select k, unnest(list(id)) as u from t group by k", "k"),
    ("select max(id) as m, unnest([1, 2]) as u from t", "m"),
    (
        "select k, unnest(l) as u from t "
        "qualify row_number() over (partition by k order by id, x) = 1",
        "k",
    ),
    ("select distinct k, unnest(l) as u from t", "k"),
    ("select distinct on (u) k, unnest(l) as u from t", "k"),
    (
        "select k from (select k, row_number() over (partition by k) as n, unnest([1, 2]) as u "
        "from t) where n = 1",
        "k",
    ),
    ("select r.k from (select k from t group by k) as r, unnest([1, 2]) as u(x)", "k"),
    # A position or an alias is what it stands for.
    ("select distinct on (1) id, k from t", "k"),
    ("select distinct on (k) id as k, k as m from t", "m"),
    ("select distinct on (k + 0) k, k % 2 as m from t", "m"),
    ("select k % 2 as k, k as m from t group by k", "k"),
    ("select id, k from t group by 1, 2", "k"),
    ("select id, k from t group by all", "k"),
    ("select k, id from t group by rollup (k, id)", "k"),
    ("select k, count(*) as n from t group by grouping sets ((k), (k))", "k"),
    # Windows that are no row_number() = 1 of a partition.
    ("select * from t qualify rank() over (partition by k order by x) = 1", "k"),
    ("select * from t qualify dense_rank() over (partition by k order by x) = 1", "k"),
    ("select * from t qualify row_number() over (partition by k, id order by x) = 1", "k"),
    ("select * from t qualify row_number() over (partition by k order by x) <= 2", "k"),
    ("select * from t qualify count(*) over (partition by id) = 1", "k"),
    ("select * from t qualify row_number() over (partition by k % 2 order by x) = 1", "x"),
    # Two branches, two sides, several rows for one.
    ("select k from t group by k union all select k from t group by k", "k"),
    ("select k from t group by k union by name select 1 as z, k from t", "k"),
    ("select r.k from (select k from t group by k) r join t on r.k = t.k or r.k = 1", "k"),
    ("select r.k from (select k from t group by k) r left join t on r.k >= t.k", "k"),
    ("select r.k from (select k from t group by k) r full join t on r.k = t.k", "k"),
    ("select r.k from t left join (select k from t group by k) r on r.k = t.k", "k"),
    ("select r.k from (select k from t group by k) r, lateral (select t.x from t) s", "k"),
    ("select t.id from t left join (select k from t group by k) r on r.k = t.k", "id"),
    ("select k, x from (select distinct k, x from t) pivot (max(x) for k in (1)) r, t", "k"),
]


@pytest.mark.parametrize(("sql", "column"), REPEATED)
def test_what_comes_again(sql: str, column: str, data: duckdb.DuckDBPyConnection) -> None:
    assert repeats(data, sql, column)
    assert not claimed(sql, column)


NUMBERED = (
    "select k, n from (select k, row_number() over (partition by k order by id, x) as n, {} as u "
    "from t) as o where n = 1"
)
ON_SPARK = [
    # Windows run over the rows of a generator, groups do not.
    (NUMBERED.format("explode(l)"), "k", True),
    ("select k, explode(l) as u from t group by k, l", "k", False),
    ("select k, explode(collect_list(id)) as u from t group by k", "k", False),
    ("select explode(array(k, 1)) as u, count(*) as n from t group by 1", "u", False),
    ("select max(id) as m, explode(array(1, 2)) as u from t", "m", False),
    ("select distinct k, explode(l) as u from t", "k", False),
    ("select distinct explode(l) as u from t", "u", True),
    ("select k, count(*) as n from t lateral view explode(l) as u group by k", "k", True),
    (
        "select o.k from (select distinct k from t) as o lateral view explode(array(1, 2)) as u",
        "k",
        False,
    ),
]


@pytest.mark.spark
def test_spark_repeats_what_is_not_claimed_there(spark: SparkSession) -> None:
    rows = [(1, 1, 5, [10, 20]), (2, 1, 5, [20]), (3, 2, 6, [30, 30]), (4, None, 7, [50])]
    columns = "id int, k int, x int, l array<int>"
    spark.createDataFrame(rows, columns).coalesce(1).createOrReplaceTempView("t")
    try:
        for sql, column, unique in ON_SPARK:
            values = [row[column] for row in spark.sql(sql).collect() if row[column] is not None]
            assert (len(values) == len(set(values))) is unique, sql
            assert claimed(sql, column, "spark") is unique, sql
    finally:
        spark.catalog.dropTempView("t")


def test_where_a_generator_multiplies_is_not_known_of_every_engine() -> None:
    assert not claimed(NUMBERED.format("unnest(l)"), "k", "duckdb")
    assert claimed(NUMBERED.format("explode(l)"), "k", "spark")
    assert not claimed(NUMBERED.format("explode(l)"), "k", "databricks")


def test_calls_of_a_volatile_function_are_not_each_other() -> None:
    _, columns = facts("select distinct floor(random() * 2) as a, floor(random() * 2) as b from t")
    assert len(columns) == 2
    below = "select floor(random() * 2) as a from t"
    _, columns = facts(f"select a, floor(random() * 2) as b from ({below})")
    assert len(columns) == 2
