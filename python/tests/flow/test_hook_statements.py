"""What statements of hooks do: to which relations they write, and what counts because it is not known."""

from __future__ import annotations

import pytest

from dbt_ripple.flow.hook_statements import effects_of

DIALECTS = ("bigquery", "duckdb", "postgres", "snowflake", "spark")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("insert into s.b select id from c", "s.b"),
        ("insert into s.b (a, b) __unknown__ x y", "s.b"),
        ("insert into s.b __unknown__", "s.b"),
        ("insert overwrite table s.b select 1", "s.b"),
        ("update s.b set id = 0 where true", "s.b"),
        ("delete from s.b where id in (select id from c)", "s.b"),
        ("merge into s.b as t using c on t.id = c.id when matched then delete", "s.b"),
        ("truncate table s.b", "s.b"),
        ("create or replace view s.b as select 1 as x", "s.b"),
        ("create table if not exists s.b (id int)", "s.b"),
        ("drop table if exists s.b", "s.b"),
        ("alter table s.b rename to c", "s.b"),
        ("alter table s.b add column x int", "s.b"),
        ("alter table s.b owner to me", "s.b"),
        ("refresh materialized view s.b", "s.b"),
        ("copy into s.b from '@stage'", "s.b"),
        ("revoke select on s.b from me", "s.b"),
        ("grant select on c to me; delete from s.b where true", "s.b"),
        ("select 1; ; delete from s.b where true;", "s.b"),
        ("insert into __relation0__ select ';' as x, 'delete from c'", "__relation0__"),
    ],
)
def test_what_is_written(sql: str, written: str, dialect: str) -> None:
    done = effects_of(sql, dialect)
    assert written in {name.replace("`", "").replace('"', "") for name in done.writes}
    assert not done.anything


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";",
        "-- delete from s.b",
        "select count(*) from s.b",
        "with x as (select 1 as id) select * from x",
        "grant select on s.b to me",
        "begin transaction; start transaction; commit; end",
        "grant usage on schema __unknown__ to __unknown__",
        "analyze s.b",
        "analyze table s.b compute statistics",
        "optimize s.b zorder by (id)",
        "vacuum s.b",
        "comment on table s.b is 'delete from s.c'",
        "alter table s.b add constraint c primary key (id)",
        "alter table s.b set tblproperties ('a' = 'b')",
        "create index i on s.b (id)",
        "create schema if not exists s",
        "commit",
        "begin",
        "alter default privileges in schema s grant select on tables to me",
    ],
)
def test_what_keeps_rows(sql: str, dialect: str) -> None:
    done = effects_of(sql, dialect)
    assert not (done.writes or done.makes or done.anything or done.of_session)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "sql",
    [
        "call refresh()",
        "execute immediate 'x'",
        "exec x",
        "do $$ begin end $$",
        "select my_procedure()",
        "frobnicate everything",
        "__unknown__",
        "__unknown__ s.b",
        "begin call refresh(); end",
        "drop schema s cascade",
        "attach 'x.db' as x",
        "install x",
        "load x",
        "create masking policy p as (v int) returns int -> 0",
        "explain analyze delete from s.b",
        "grant select on s.b to me; call refresh()",
        "insert into",
        "'unterminated",
    ],
)
def test_what_may_do_anything(sql: str, dialect: str) -> None:
    assert effects_of(sql, dialect).anything


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("create or replace macro f() as (select 1)", "f"),
        ("create function s.f(x int) returns int return 1", "f"),
        ("create function __unknown__(x int) returns int return 1", "*"),
        ("set variable cut = 1", "cut"),
        ("create sequence s.f", "f"),
    ],
)
def test_what_is_made(sql: str, made: str) -> None:
    assert effects_of(sql, "duckdb").makes == {made}


@pytest.mark.parametrize("sql", ["set timezone = 'UTC'", "use schema x", "alter session set x = 1"])
def test_what_is_of_the_session(sql: str) -> None:
    done = effects_of(sql, "spark")
    assert done.of_session and not done.anything


def test_what_is_read() -> None:
    done = effects_of(
        "insert into s.b with x as (select id from c) select * from x, __relation0__", "duckdb"
    )
    assert done.reads == {"c", "__relation0__"}
    assert "id" in done.words and "x" in done.words


HIDING = [
    ("duckdb", """select 1 as "it's" """),
    ("duckdb", r"select replace(a, '\', '/') from c"),
    ("duckdb", r"select replace(a, '\\', '/') from c"),
    ("duckdb", "select $$ it's; $$"),
    ("duckdb", "select $a$ ' $$ $a$"),
    ("duckdb", r"select E'it\'s;'"),
    ("duckdb", "select 1 -- it's\n"),
    ("duckdb", "select 1 /* /* */ it's */"),
    ("duckdb", "call f('a;b', $$'$$)"),
    ("postgres", "select $$ it's; $$"),
    ("postgres", r"select replace(a, '\', '/') from c"),
    ("snowflake", "select $$it's$$"),
    ("snowflake", r"select replace(a, '\\', '/') from c"),
    ("snowflake", "select 1 // it's\n"),
    ("spark", "select 1 as `it's`"),
    ("spark", """select "it's" """),
    ("spark", r"select r'\', 'b'"),
    ("spark", r"select replace(a, '\\', '/') from c"),
    ("bigquery", "select r'''it's''', '''it's'''"),
    ("bigquery", "select 1 # it's\n"),
    ("tsql", "select 1 as [it's]"),
]


@pytest.mark.parametrize(("dialect", "before"), HIDING)
def test_no_quotation_mark_hides_a_statement(dialect: str, before: str) -> None:
    done = effects_of(f"{before}; update s.w set x = 1; select 'y'", dialect)
    assert done.anything or "s.w" in done.writes
    if not before.startswith("call"):
        assert "s.w" in done.writes


@pytest.mark.parametrize(("dialect", "before"), HIDING)
def test_what_stands_in_quotation_marks_is_no_statement(dialect: str, before: str) -> None:
    done = effects_of(f"{before}; select '; update s.w set x = 1; '", dialect)
    assert not done.writes


def test_a_deeply_nested_statement_may_do_anything() -> None:
    deep = f"insert into s.b select {'(' * 300}1{')' * 300}"
    done = effects_of(f"{deep}; update s.w set x = 1", "duckdb")
    assert done.anything or done.writes == {"s.b", "s.w"}
