"""What no engine takes for SQL: said of nothing that DuckDB can parse, whatever is done to a query."""

from __future__ import annotations

import random
import re

import duckdb
import pytest
import sqlglot
from lineage_fixtures import read_fixtures
from sqlglot.errors import SqlglotError

from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.syntax_errors import is_close_to, syntax_error

COLUMNS = {"a", "b", "c"}

WRONG = [
    ("select (a / 100 as d from t", "`(` is not closed"),
    ("with x as (\nselect (a as d\nfrom t)\nselect * from x", "`(` is not closed"),
    ("select a) as x from t", "`)` closes nothing"),
    ("select [1, 2 from t", "`[` is not closed"),
    ("select f(a] from t", "`]` closes nothing"),
    ("select case when b then 1 as y, c from t", "`case` is not closed"),
    ("select f(case when b then 1) as y from t", "`case` is not closed"),
    ("select 'a from t", "`'` is not closed"),
    ("select a,, b from t", "a comma too many"),
    ("select , a from t", "a comma too many"),
    ("select f(, a) from t", "a comma too many"),
    ("select a b c from t", "a comma is missing before `c`"),
    ("select a b, t.c d t.e from t", "a comma is missing before `t`"),
    ("select sum(a) as d count(*) as n from t", "a comma is missing before `count`"),
    ("select sum(a) d count(*) n from t", "a comma is missing before `count`"),
    ("select a, b upper(c) as c from t", "a comma is missing before `upper`"),
    ("select a as x b.c as y from t b", "a comma is missing before `b`"),
    ("select a as x b from t", "a comma is missing before `b`"),
    ("select a as x case when b then 1 end as y from t", "a comma is missing before `case`"),
    ("select a as x 1 as y from t", "a comma is missing before `1`"),
    ("select a from t where a in (1 2)", "a comma is missing before `2`"),
    ("with x as (select 1 as a) y as (select 2 as b) select * from x", "missing before `y`"),
    ("select a from t where", "nothing follows `where`"),
    ("select a from t where and b = 1", "nothing follows `where`"),
    ("select a from t where b = 1 and group by a", "nothing follows `and`"),
    ("select a / from t", "nothing follows `/`"),
    ("select a from t where a =", "nothing follows `=`"),
    ("select a from t join u on", "nothing follows `on`"),
    ("select a from t join on t.a = u.a", "nothing follows `join`"),
    ("select a from t group by", "nothing follows `group by`"),
    ("select a from t union", "nothing follows `union`"),
    ("select case when then 1 end from t", "nothing follows `when`"),
    ("slect a from t", "`slect` for `select`"),
    ("select a form t", "`form` for `from`"),
    ("select a from t gruop by a", "`gruop` for `group`"),
    ("select a from t whre a = 1", "`whre` for `where`"),
    ("select a from t left jion u on true", "`jion` for `join`"),
]


def problem_in(sql: str, dialect: str = "duckdb") -> str:
    unread = lower(sql, dialect).rel is None
    return str(syntax_error(sql, dialect, unread=unread, columns=COLUMNS) or "")


def duckdb_takes(sql: str) -> bool:
    """Whether DuckDB parses it, in any of the statements that dbt puts around a query."""
    with duckdb.connect() as connection:
        for around in (
            "create table x as (\n{}\n)",
            "create view x as\n{}",
            "select 1 from (\n{}\n) x",
        ):
            try:
                connection.extract_statements(around.format(sql))
            except duckdb.ParserException:
                continue
            return True
    return False


@pytest.mark.parametrize(("sql", "expected"), WRONG)
def test_a_mistake_is_named_and_duckdb_refuses_it(sql: str, expected: str) -> None:
    assert expected in problem_in(sql)
    assert not duckdb_takes(sql)


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("select a,\n  (b + 1 as d,\n  c\nfrom t", 2),
        ("with x as (\n  select\n    (a as d\n  from t\n)\nselect *\nfrom x", 3),
        ("select a,\n  b as d\n  c\nfrom t", 3),
        ("select a\nfrom t\nwhere a = 'x\n", 3),
        ("select a\nfrom t\nwhere", 3),
    ],
)
def test_the_line_is_that_of_the_mistake(sql: str, line: int) -> None:
    assert f"(line {line} of the compiled SQL)" in problem_in(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 5! as a",
        "with x as (select 1 as a), select a from x",
        "select format '{}' as a from t",
        "with recursive x(n) using key (n) as (select 1 union select 2) select n from x",
    ],
)
def test_a_clause_that_sqlglot_does_not_know_is_no_mistake(sql: str) -> None:
    assert lower(sql, "duckdb").rel is None
    assert duckdb_takes(sql)
    assert problem_in(sql) == ""


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("snowflake", "select connect_by_root a b from t start with c is null"),
        ("postgres", "select a from t where a operator(pg_catalog.=) b"),
        ("bigquery", "select as struct t.a, t.b from t"),
        ("duckdb", "select $$it's (a$$ as a"),
        ("duckdb", "select e'it\\'s (a' as a"),
        ("spark", "select 'it\\'s' as a"),
        ("duckdb", "select 1 as a) union all (select 2 as a"),
        ("oracle", "select a from t, u where t.a = u.a(+)"),
        ("duckdb", "select a, from t"),
        ("clickhouse", "select a from t limit 1 by a"),
        ("tsql", "select [a (b] from t"),
    ],
)
def test_what_is_written_unlike_the_rest_is_none(dialect: str, sql: str) -> None:
    assert syntax_error(sql, dialect, unread=True, columns=COLUMNS) is None


def test_a_comma_after_the_last_column_is_one_where_the_engine_takes_none() -> None:
    assert "a comma too many" in problem_in("select a, from t", "postgres")


def test_of_several_statements_nothing_is_reported() -> None:
    assert problem_in("select (a from t; select b) from t") == ""


def test_no_query_of_the_fixtures_has_one() -> None:
    for fixture in read_fixtures():
        words = set(re.findall(r"\w+", fixture.sql.lower()))
        error = syntax_error(fixture.sql, fixture.dialect, unread=True, columns=words)
        read = lower(fixture.sql, fixture.dialect).rel is not None
        assert not (error and read), (fixture.id, str(error))


_PUT_IN = """
    from where group by order having join left on and or as select , ( ) [ ] case when then else end =
    <> || / * 1 'x' a b count( cast( window final union all in not null is limit offset qualify . :
""".split()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_to_a_query_only_what_duckdb_refuses_is_named(seed: int) -> None:
    draw = random.Random(seed)
    queries = [f.sql for f in read_fixtures() if f.dialect == "duckdb" and duckdb_takes(f.sql)]
    named = 0
    for _ in range(250):
        sql = draw.choice(queries)
        try:
            tokens = sqlglot.tokenize(sql, dialect="duckdb")
        except SqlglotError:
            continue
        parts = [sql[token.start : token.end + 1] for token in tokens]
        at = draw.randrange(len(parts))
        kind = draw.randrange(4)
        if kind == 0:
            del parts[at]
        elif kind == 1:
            parts.insert(at, draw.choice(_PUT_IN))
        elif kind == 2:
            parts[at] = draw.choice(_PUT_IN)
        else:
            parts.insert(at, draw.choice(parts))
        edited = " ".join(parts)
        unread = lower(edited, "duckdb").rel is None
        words = set(re.findall(r"\w+", edited.lower()))
        if error := syntax_error(edited, "duckdb", unread=unread, columns=words):
            named += 1
            assert not duckdb_takes(edited), (str(error), edited)
    assert named > 25


@pytest.mark.parametrize(
    ("word", "keyword", "close"),
    [
        ("fro", "from", True),
        ("fromm", "from", False),
        ("form", "from", True),
        ("frim", "from", True),
        ("fmor", "from", False),
        ("orders", "order", False),
        ("oder", "order", True),
        ("from", "from", False),
        ("", "from", False),
    ],
)
def test_one_letter_off(word: str, keyword: str, close: bool) -> None:
    assert is_close_to(word, keyword) is close
