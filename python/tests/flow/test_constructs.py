"""Constructs of single dialects: a change of any part of one moves the fingerprints.

What they read is in `tests/fixtures/lineage`.
"""

from __future__ import annotations

import duckdb
import pytest
from linked_tables import table_relation

from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.relation import Relation
from dbt_ripple.reasons import Code


def table(key: str, _: str) -> Relation:
    return table_relation(key, ["a", "b", "c"])


def meaning(sql: str, dialect: str) -> tuple[bytes, list[bytes], list[bytes]]:
    lowered = lower(sql, dialect)
    assert lowered.rel is not None, lowered.reason
    relation = link(lowered, table, dialect).relation
    return relation.rows.fp, relation.fps, [unlisted.fp() for unlisted in relation.unlisted]


MATCH = (
    "select * from t match_recognize (partition by a order by {} measures last(p.{}) as m "
    "one row per match after match skip to {} p pattern ({}) define p as p.c > {})"
)
DIFFERENT = [
    ("tsql", "select * from t pivot (sum(a) for b in ([1], [{}])) as p", ["2", "3"]),
    ("clickhouse", "with a + {} as n select n as x from t", ["1", "2"]),
    ("clickhouse", "with {} as n select (select max(c + n) from t) as x from u", ["1", "2"]),
    ("clickhouse", "with 1 as n, w as (select {} as n) select n as x from w", ["1", "2"]),
    ("clickhouse", "select b from t {} a", ["array join", "left array join"]),
    ("clickhouse", "select a from t{}", ["", " array join a"]),
    ("clickhouse", "select x from t array join {} as x", ["a", "b", "arrayReverse(a)"]),
    ("redshift", "select {} from t, t.a as x at y", ["x as z", "y as z"]),
    ("redshift", "select x from t, {} as x at y", ["t.a", "t.b", "unpivot t.a"]),
    ("redshift", "select * exclude ({}) from t", ["a", "b"]),
    ("bigquery", "select struct({} as x, b as y).{} as z from t", ["a x", "b x"]),
    ("bigquery", "select any_value(a having {} {}) as x from t", ["max b", "min b", "max c"]),
    ("bigquery", "from t |> rename {} as x |> select x", ["a", "b"]),
    ("bigquery", "select a, _table_suffix as s from {}", ["t", "u"]),
    ("bigquery", "select a, {} as s from t", ["_partitiontime", "_partitiondate"]),
    (
        "bigquery",
        "select a, b from t {} union all by name select b, c from u",
        ["", "inner", "left outer", "full outer"],
    ),
    (
        "bigquery",
        "select r.{} from (select array_agg({} order by b {} limit 1)[offset(0)] as r from t as x)",
        ["a x asc", "b x asc", "a x desc"],
    ),
    ("bigquery", "select e.y as x from unnest([struct(1 as x, {} as y)]) as e", ["1", "2"]),
    (
        "bigquery",
        "select e.y as x from unnest([struct(1 as x, 2 as y), {}]) as e",
        ["(1,2)", "struct(1,3)", "struct(1,4)"],
    ),
    ("snowflake", "select * from t pivot (sum(a) for b in ({}))", ["any", "select a from u"]),
    ("snowflake", MATCH, ["b b last p+ 1", "b b last p* 1", "c b last p+ 1"]),
    ("snowflake", MATCH, ["b b last p+ 1", "b c last p+ 1", "b b last p+ 2", "b b first p+ 1"]),
    ("trino", "select a = {} as x from t", ["0x", "0x0a", "0x0b"]),
    ("spark", "select x from t lateral view {}(a) v x", ["explode", "inline"]),
    ("clickhouse", "with (1, {}) as n select n.1 as x from t", ["2", "3"]),
    ("clickhouse", "select count() as x from file('a', {})", ["Parquet", "CSV"]),
    ("clickhouse", "select x from v({} = 1)", ["p", "q"]),
    ("clickhouse", "with {} as n select number as x from numbers(n)", ["3", "4"]),
    ("tsql", "select x from openrowset(bulk 'a', {}) as d", ["format = 'b'", "firstrow = 'b'"]),
    ("oracle", "select * from t unpivot (x for y in (a as 'p' || {}))", ["'1'", "'2'"]),
    (
        "oracle",
        "select min(a) keep (dense_rank first order by b) over (partition by {0}) as x, "
        "rownum from t order by {0}",
        ["b", "c"],
    ),
    ("oracle", "select min(a) keep (dense_rank first order by {}) as x from t", ["b", "c"]),
    ("postgres", "select n from t, f({}) with ordinality as e(v, n)", ["t.a", "t.b"]),
]


@pytest.mark.parametrize(
    ("dialect", "sql", "parts"), DIFFERENT, ids=[f"{d}: {sql[:60]}" for d, sql, _ in DIFFERENT]
)
def test_each_part_counts(dialect: str, sql: str, parts: list[str]) -> None:
    holes = sql.count("{}")
    queries = [sql.format(*(part.split() if holes > 1 else [part])) for part in parts]
    assert len({str(meaning(query, dialect)) for query in queries}) == len(parts)


def test_a_field_that_is_not_read_does_not_count() -> None:
    one, other = (f"select struct(a as x, {e} as y).x as z from t" for e in ("b", "c"))
    assert meaning(one, "bigquery") == meaning(other, "bigquery")


READ_OF_AN_ARRAY = [
    ("[struct(a as x, b as y)]", {"b"}),
    ("[struct(a as x, 1 as y), struct(1, c)]", {"c"}),
    ("[struct(a as x, b as y), (1, c)]", {"a", "b", "c"}),
    ("[struct(a as e, b as y)]", {"a", "b"}),
    ("[struct(a as y, b as Y)]", {"a", "b"}),
    ("[struct(a as y), struct(b as x, c as y)]", {"a", "b", "c"}),
]


@pytest.mark.parametrize(("array", "read"), READ_OF_AN_ARRAY)
def test_what_a_field_of_an_array_that_is_written_out_reads(array: str, read: set[str]) -> None:
    lowered = lower(f"select e.y as z from t, unnest({array}) as e", "bigquery")
    linked = link(lowered, table, "bigquery")
    assert not linked.missing
    assert {column for _, column in linked.relation.columns[0].deps} == read


@pytest.mark.parametrize("twice", ["struct(a as x, {} as x)", "struct(a as x, {} as y, b + 1)"])
def test_a_field_whose_place_is_not_sure_is_the_whole_struct(twice: str) -> None:
    one, other = (f"select {twice.format(e)}.x as z from t" for e in ("b", "c"))
    assert meaning(one, "bigquery") != meaning(other, "bigquery")


def test_duckdb_has_no_hexadecimal_literals() -> None:
    with duckdb.connect() as connection:
        assert connection.execute("select 0xFF").description[0][0] == "xFF"
    assert lower("select 0xFF", "duckdb").rel.keys == ["xff"]


@pytest.mark.parametrize("name", ['"0x"', "`0x`"])
def test_a_quoted_name_is_no_hexadecimal_literal(name: str) -> None:
    dialect = "trino" if name[0] == '"' else "bigquery"
    lowered = lower(f"select {name} as x from t", dialect)
    assert link(lowered, table, dialect).missing == ["0x"]


LEFT_OUT = [
    ("postgres", "select json_serialize(a returning {}) as x from t", ["text", "bytea"]),
    ("postgres", "select a from t order by b using {} limit 1", ["<", ">"]),
    ("postgres", "select a {} b as x from t", ["<#>", "<+>", "&&&", "<<|"]),
    ("postgres", "select a <#> {} as x from t", ["b || c", "(b || c)"]),
    ("postgres", "select {} as x from t", ["a <#> b <+> c", "a <#> (b <+> c)", "(a <#> b) = c"]),
    ("postgres", "select jsonb_agg(a -> 'k' order by {}) as x from t", ["b", "c"]),
    ("postgres", "select jsonb_agg({} -> 'k' order by c) as x from t", ["a", "b"]),
    ("postgres", "select jsonb_agg(a -> {} -> 'n' order by c) as x from t", ["'k'", "1"]),
    ("oracle", "select x from json_table(a, '$' columns (x clob path '$' {}))", ["null on error",
     "error on error", "default 'a' on error", "default 'b' on error", "null on empty"]),
    ("trino", "select json_query(a format json, 'lax $.x' {} wrapper) as x from t", ["with",
     "without", "with conditional array"]),
    ("tsql", "select json_array(a, b {} on null) as x from t", ["null", "absent"]),
    ("tsql", "select a from t with (index = {})", ["x", "y", "(x)"]),
    ("clickhouse", "select a from t left {} outer join u using (b)", ["any", "all", "semi"]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "sql", "parts"), LEFT_OUT)
def test_what_sqlglot_does_not_parse_counts(dialect: str, sql: str, parts: list[str]) -> None:
    meanings = {str(meaning(sql.format(part), dialect)) for part in parts}
    assert len(meanings) == len(parts)


NOT_LEFT_OUT = [
    ("postgres", "select f(a returning b + c) from t"),
    ("postgres", "select returning, a b c from t"),
    ("tsql", "select json_array(a on null) from t"),
    ("tsql", "select a from t where index = x) from t"),
    ("mysql", "select a <#> b from t"),
    ("postgres", "select jsonb_agg(a -> 'k' || 'n' order by c) from t"),
    ("clickhouse", "select a from t left outer outer join u using (b)"),
]


@pytest.mark.parametrize(("dialect", "sql"), NOT_LEFT_OUT)
def test_what_may_read_a_column_is_not_left_out(dialect: str, sql: str) -> None:
    reason = lower(sql, dialect).reason
    assert reason is not None
    assert reason.code is Code.CANNOT_PARSE


NAMES_NO_COLUMN = [
    ("clickhouse", "select count() as x from file('a', Parquet)"),
    ("clickhouse", "select x from v(p = 1)"),
    ("tsql", "select x from openrowset(bulk 'a', format = 'b') as d"),
]


@pytest.mark.parametrize(("dialect", "sql"), NAMES_NO_COLUMN)
def test_the_name_of_an_argument_is_no_column(dialect: str, sql: str) -> None:
    missing = link(lower(sql, dialect), table, dialect).missing
    assert not {"Parquet", "p", "format"}.intersection(missing)


def test_a_relation_that_a_function_of_clickhouse_is_given_is_told() -> None:
    assert "s.t" in lower("select a from remote('h', s.t)", "clickhouse").called


ARROWS = [
    "f({})",
    "coalesce({}, 'x')",
    "jsonb_array_length({})",
    "f('x', {} -> 'n')",
    "f({} = 'x')",
    "lower({} || 'x')",
    "count(distinct {})",
]


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "redshift", "duckdb"])
@pytest.mark.parametrize("call", ARROWS)
def test_an_arrow_in_a_call_reads_a_column(dialect: str, call: str) -> None:
    sql = "select " + call.format("{} -> 'k'") + " as x from t"
    lowered = lower(sql.format("b"), dialect)
    if lowered.rel is None:  # what binds first is not known there
        assert dialect == "duckdb"
        assert "-> beside another operator" in str(lowered.reason)
        return
    (x,) = link(lowered, table, dialect).relation.columns
    assert {column for _, column in x.deps} == {"b"}
    assert meaning(sql.format("b"), dialect) != meaning(sql.format("c"), dialect)


def test_an_arrow_in_a_call_reads_a_column_on_duckdb_itself() -> None:
    with duckdb.connect() as connection:
        connection.execute("""create table t as select '{"k": 1}'::json as b""")
        values = [("coalesce(b -> 'k', 'x')", "1"), ("json_type(b -> 'k')", "UBIGINT")]
        for call, value in values:
            assert connection.execute(f"select {call} from t").fetchall() == [(value,)]
        names = connection.execute(
            "select distinct function_name from duckdb_functions() "
            "where list_contains(parameter_types, 'LAMBDA')"
        ).fetchall()
    for (name,) in names:  # those are given lambdas, and what they are given is no column
        lowered = lower(f"select {name}(a, b -> b + c) as x from t", "duckdb")
        if lowered.rel is not None:
            (x,) = link(lowered, table, "duckdb").relation.columns
            assert {column for _, column in x.deps} == {"a", "c"}, name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(b -> 'k' || 'x')", "f(b -> ('k' || 'x'))"),
        ("f(b -> 'k' = 'x')", "f(b -> ('k' = 'x'))"),
        ("f(b -> 'k' -> 'x')", "f(b -> ('k' -> 'x'))"),
    ],
)
def test_brackets_behind_an_arrow_count(one: str, other: str) -> None:
    queries = [f"select {call} as x from t" for call in (one, other)]
    assert meaning(queries[0], "postgres") != meaning(queries[1], "postgres")


@pytest.mark.parametrize("dialect", ["spark", "snowflake", "trino", "databricks", "clickhouse"])
def test_the_parameter_of_a_lambda_is_no_column(dialect: str) -> None:
    lowered = lower("select transform(a, b -> b + c) as x from t", dialect)
    (x,) = link(lowered, table, dialect).relation.columns
    assert {column for _, column in x.deps} == {"a", "c"}


@pytest.mark.parametrize(("dialect", "space"), [("clickhouse", "\u200d"), ("duckdb", "\u200b")])
def test_a_character_without_width_is_a_space_where_it_is_one(dialect: str, space: str) -> None:
    plain = "select a as x, ' ' as y from t where b > 1"
    assert meaning("\ufeff" + plain.replace("a as", f"a{space}as"), dialect) == meaning(
        plain, dialect
    )
    assert meaning(plain.replace("' '", f"'{space}'"), dialect) != meaning(plain, dialect)
    assert lower("\ufeff" + plain, "spark").reason is not None


OF_SQL_SERVER = [
    ("select dateadd(month, datediff(month, 0, a), 0) as x from t", [{"a"}]),
    ("select * from t pivot (sum(a) for b in ([1], [2])) as p", [{"c"}, {"a", "b"}, {"a", "b"}]),
    (
        "select x, y from (select [x] = (select max(a) from t), y = b from t) s",
        [{"a", "*rows*"}, {"b"}],
    ),
]


@pytest.mark.parametrize(("sql", "read"), OF_SQL_SERVER)
def test_what_is_read_on_sql_server(sql: str, read: list[set[str]]) -> None:
    linked = link(lower(sql, "tsql"), table, "tsql")
    assert not linked.missing
    assert [{name for _, name in column.deps} for column in linked.relation.columns] == read
