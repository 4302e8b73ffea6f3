"""What sqlglot drops of a text is said, or moves the fingerprints by itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
import sqlglot
from lineage_fixtures import read_fixtures
from sqlglot import parse_one
from test_every_argument import table

from dbt_ripple.flow.identifiers import DIALECTS
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.lowering.clause_helpers import refuse_unread
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.reasons import Code

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of what it cannot write

DROPPED = [
    ("spark", "select percentile(a, 0.5, 3) as x from t", "3"),
    ("spark", "select percentile(a, 0.5, b) as x from t limit 3", "b"),
    ("spark", "select a from t where percentile(a, 0.5, 3) > 3", "3"),
    ("duckdb", "select quantile_cont(a, 0.5, c) as x from t", "c"),
    ("snowflake", "select array_contains(a, b, 7) as x from t", "7"),
    ("trino", "select date_format(a, '%Y', d) as x from t", "d"),
    ("duckdb", "from t |> aggregate quantile_cont(a, 0.5, 9) as q", "9"),
    ("spark", "select cast(a as varchar(3)) as x, percentile(a, 0.5, 3) as y from t", "3"),
    ("spark", "select cast(a as array<varchar(3)>) as x from t", "3"),
    ("tsql", "select datediff(day, 0, a) as x, left(a, 1, 0) as y from t", "0"),
    ("tsql", "select datediff(day, '1900-01-01', a) as x, left(a, 1, 0) as y from t", "0"),
]


@pytest.mark.parametrize(("dialect", "sql", "word"), DROPPED)
def test_a_dropped_name_or_number_makes_a_query_opaque(dialect: str, sql: str, word: str) -> None:
    assert str(lower(sql, dialect).reason) == f"what `{word}` means there is not known here"


TWICE = [
    "with rate as (select a, r from t) select json_extract_path_text(r, 'a', '0', 'rate') as x from rate",
    "with rate as (select a, r from t) select coalesce(cast(nullif(json_extract_path_text(r, 'a', '0', 'rate'), "
    "'') as numeric), 1) as x from rate",
    "select json_extract_path_text(r, 'a', 'rate') as x, t.rate, rate as y from t",
]


@pytest.mark.parametrize("sql", TWICE)
@pytest.mark.parametrize("dialect", ["duckdb", "redshift", "snowflake", "spark"])
def test_a_name_is_not_blamed_for_the_key_of_a_path(dialect: str, sql: str) -> None:
    """What is dropped of a word that is there twice is what the tree does not hold, here the key."""
    assert lower(sql, dialect).reason is None
    assert meaning(sql, dialect) != meaning(sql.replace("'rate'", "'rates'"), dialect)


def test_a_dropped_name_is_not_hidden_by_the_same_name_elsewhere() -> None:
    for sql in (
        "with c as (select a, c from t) select quantile_cont(a, 0.5, c) as x, 'c' as y from c",
        "select c, quantile_cont(a, 0.5, c) as x, 'c' as y, d as c from t as c",
    ):
        assert str(lower(sql, "duckdb").reason) == "what `c` means there is not known here"


def meaning(sql: str, dialect: str) -> Any:
    lowered = lower(sql, dialect)
    if lowered.rel is None:
        reason = lowered.reason
        return None if reason is None or reason.code is Code.CANNOT_PARSE else reason.message
    linked = link(lowered, table, dialect)
    relation = linked.relation
    return relation.fps, relation.rows.fp, [r.fp() for r in relation.unlisted], linked.missing


def test_a_string_that_is_written_otherwise_counts_as_it_stands() -> None:
    one, other = (f"select to_char(a, '{f}') as x from t" for f in ("%Y-%m", "%Y-%d"))
    assert lower(one, "postgres").reason is None
    assert meaning(one, "postgres") != meaning(other, "postgres")


SAID_OTHERWISE = {
    "duckdb": [
        "select date_trunc('month', a), a + interval '1 day', interval 3 hours, date '2020-01-01' "
        "from t where a != 1 and b <> 2.50 order by 1 desc nulls last limit 10",
        "select a::int, cast(b as decimal(10, 2)), strftime(a, '%Y-%m'), datediff('mon', a, b) from t",
        "select extract(epoch from a), a->>'$.x.y', list_value(1, 2), a[1:2], 1e3, .5, 0x1F from t",
        "select mode() within group (order by a), count(*) filter (where b) from t group by all",
        "with x (p, q) as materialized (select a, b from t) select * from x fetch first 3 rows only",
    ],
    "spark": [
        "select from_unixtime(a, 'yyyy-MM-dd HH:mm:ss'), to_date(b, 'yyyy-MM-dd'), 10L, 1.5BD, "
        "date_format(c, 'yyyy-MM'), get_json_object(d, '$.x[0].y'), nvl(a, 0), `a` from t",
        "select datediff(a, b), add_months(a, 1), date_add(a, 7), trunc(a, 'MM'), if(a, 1, 2), "
        "r'a\\\\d', split(a, ',')[0], named_struct('x', 1), cast(a as timestamp_ntz) from t",
        "select timestampadd(day, 1, a), date_trunc('mm', b), to_timestamp(c, 'dd/MM/yyyy') from t",
    ],
    "snowflake": [
        "select dateadd('days', 1, a), datediff(mm, a, b), to_char(a, 'YYYY-MM-DD'), a:x.y::string, "
        "iff(a, 1, 2), date_trunc(week, c), try_to_number(b, 10, 2), a::timestamp_ntz from t",
        "select \"A\", $1, listagg(a, ',') within group (order by b), array_agg(a) from t sample (10)",
    ],
    "postgres": [
        "select a at time zone 'UTC', b::timestamp without time zone, substring(c from 1 for 2), "
        "to_char(a, 'YYYY-MM-DD HH24:MI:SS'), now() - interval '2 weeks', e'x\\n', a ~ '^x' from t",
        "select cast(a as double precision), cast(b as character varying(3)), position('x' in c), "
        "trim(both ' ' from c), coalesce(a, 0), a ->> 'k', a #>> '{x,y}' from t for update",
    ],
    "bigquery": [
        "select date_add(a, interval 1 day), timestamp_trunc(b, month), format_date('%Y', c), "
        "safe_cast(a as float64), json_value(b, '$.x.y'), r'a\\d', b'x', date '2020-01-01' from t",
        "select * except (a), array_agg(b order by c limit 3), extract(week from a) from `t` as t",
    ],
    "tsql": [
        "select top 3 dateadd(dd, 1, a), datediff(month, a, b), convert(varchar(10), a, 120), "
        "isnull(a, 0), [b], format(a, 'yyyy-MM-dd'), datename(weekday, a), N'x' from t",
    ],
    "oracle": [
        "select json_object(key 'a' value a null on null) as x from t fetch first 3 rows only"
    ],
    "redshift": ["select dateadd(day, -1, a), nvl2(a, 1, 2), getdate(), a::varchar(3) from t"],
    "trino": [
        "select date_add('day', 1, a), date_trunc('month', b), date_format(a, '%Y'), "
        "json_extract_scalar(c, '$.x'), try_cast(a as varchar), a at time zone 'UTC' from t",
    ],
    "clickhouse": [
        "select toStartOfMonth(a), dateDiff('day', a, b), toDate(a), sumIf(a, b) from t"
    ],
}


@pytest.mark.parametrize(
    ("dialect", "sql"), [(d, sql) for d, queries in SAID_OTHERWISE.items() for sql in queries]
)
def test_what_is_only_said_otherwise_is_followed(dialect: str, sql: str) -> None:
    assert lower(sql, dialect).reason is None


def test_no_fixture_loses_a_word() -> None:
    lost = [f.id for f in read_fixtures() if "drops" in str(lower(f.sql, f.dialect).reason)]
    assert not lost


def test_the_length_of_text_says_nothing_on_duckdb() -> None:
    con = duckdb.connect()
    con.execute("create table t as select 'abcdef' as a, 'xyz' as b")
    written = "select cast(a as {0}) as x, b::{0} as y, try_cast(null as {0}) as z from t"
    results = set()
    meanings = set()
    for text in ("varchar", "varchar(2)", "varchar(3)", "char(1)", "text(20)", "string"):
        sql = written.format(text)
        results.add(str(con.execute(sql).fetchall()))
        assert lower(sql, "duckdb").reason is None
        meanings.add(str(meaning(sql, "duckdb")))
    assert len(results) == len(meanings) == 1


def test_the_length_of_text_counts_on_spark() -> None:
    one, other = (f"select cast(a as varchar({n})) as x from t" for n in (3, 4))
    assert lower(one, "spark").reason is None
    assert meaning(one, "spark") != meaning(other, "spark")


def test_the_unit_of_datename_counts_and_no_other_name_behind_a_bracket() -> None:
    units = [
        f"select datename({u}, a) as x from t" for u in ("month", "year", "weekday", "quarter")
    ]
    assert all(lower(sql, "tsql").reason is None for sql in units)
    assert len({str(meaning(sql, "tsql")) for sql in units}) == len(units)
    one, other = (f"select left(a, 1, ({u})) as x from t" for u in ("month", "year"))
    assert all("means there is not known" in str(lower(s, "tsql").reason) for s in (one, other))


def test_the_number_of_a_day_counts() -> None:
    days = [f"select datediff(day, {n}, a) as x from t" for n in ("0", "1", "-1", "'1900-01-01'")]
    assert all(lower(sql, "tsql").reason is None for sql in days)
    assert meaning(days[0], "tsql") == meaning(days[3], "tsql")
    assert len({str(meaning(sql, "tsql")) for sql in days}) == 3


@pytest.mark.parametrize(
    "kept", ["a::varchar(3)[]", "text(3)", "varchar(3, 4)"], ids=["array", "call", "two"]
)
def test_a_length_hides_no_other_number(kept: str) -> None:
    sql = f"select b::varchar(3) as y, {kept} as z, quantile_cont(a, 0.5, 3) as x from t"
    assert str(lower(sql, "duckdb").reason) == "what `3` means there is not known here"


def builders() -> Iterator[tuple[str, str]]:
    """Each way in which sqlglot makes a function out of its arguments: a dialect, and a name."""
    seen = set()
    for dialect in sorted(set(DIALECTS.values())):
        parser = sqlglot.Dialect.get_or_raise(dialect).parser()
        for name, builder in (*parser.FUNCTIONS.items(), *parser.FUNCTION_PARSERS.items()):
            if (name, builder) not in seen:
                seen.add((name, builder))
                yield dialect, name


def test_no_function_loses_an_argument_unnoticed() -> None:
    silent, noticed = [], 0
    given = ["a", "12", "b", "'z'"]
    other = ["", "97", "a + 1", "'other'"]
    for dialect, name in builders():
        for last in (1, 2, 3):
            call = f"select {name}({', '.join(given[: last + 1])}) as x from t"
            before = meaning(call, dialect)
            if before is None or isinstance(before, str):
                noticed += before is not None
                continue
            changed = f"select {name}({', '.join([*given[:last], other[last]])}) as x from t"
            if meaning(changed, dialect) == before:
                silent.append(f"{dialect}: {call}")
    assert not silent
    assert noticed > 200


def test_what_is_not_followed_is_said_in_the_words_of_the_query() -> None:
    query = parse_one("select a from t limit 5")
    with pytest.raises(Unsupported) as refused:
        refuse_unread(query, frozenset({"kind", "expressions", "from_", "from"}))
    assert str(refused.value.reason) == "cannot follow `LIMIT 5`"
