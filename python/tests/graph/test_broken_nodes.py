"""Broken is what the engine refuses, and nothing else: executed where the engine is at hand."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hand_made import check, macro, node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import CatalogColumn, Node, Project
from dbt_ripple.artifacts.project import RunResult
from dbt_ripple.changes.compare import compare, node_change
from dbt_ripple.flow.engine_checks import EXECUTED, UNUSED_CTES, NameProblem, refuses
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage import NodeAnalysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.selection.select import select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T, U = "source.p.raw.t", "source.p.raw.u"
COLUMNS = {T: ["id", "v", "st"], U: ["id", "w"]}


def of(sql: str, adapter: str = "duckdb") -> NodeAnalysis:
    """A table made of two sources whose columns are known."""
    model = node("model.p.m", sql, T, U)
    sides = project(node(T), node(U), model, catalog=COLUMNS, adapter=adapter)
    return analyse(sides).nodes["model.p.m"]


# --- what engines look into: executed -------------------------------------------------------------

QUERIES = {
    "a CTE that nothing reads": "with d as (select gone from s.t) select id from s.t",
    "a CTE that only such a one reads": (
        "with d as (select gone from s.t), e as (select gone from d) select id from s.t"
    ),
    "such a CTE within a CTE": (
        "with a as (with d as (select gone from s.t) select id from s.t) select id from a"
    ),
    "such a CTE, and the name elsewhere": "with d as (select gone from s.t) select gone from s.t",
    "a column of a CTE that nothing reads": "with d as (select id, gone from s.t) select id from d",
    "a column of a subquery that nothing reads": "select id from (select id, gone from s.t) as q",
    "under EXISTS": "select id from s.t where exists (select gone from s.u)",
    "in a branch that is folded away": "select case when false then gone else id end x from s.t",
    "behind FALSE": "select id from s.t where false and gone = 1",
    "in a subquery's ORDER BY": "select id from (select id from s.t order by gone) as q",
    "in a branch without rows": "select id from s.t union all select gone from s.t where false",
    "a side that nothing reads": (
        "select t.id from s.t left join (select id, gone from s.u) as q on q.id = t.id"
    ),
    "of two tables": "select id from s.t join s.u on t.id = u.id",
    "of USING": "select id from s.t join s.u using (id)",
    "twice in a subquery": "select id from (select t.id, u.id from s.t, s.u) as q",
    "twice in a CTE": "with q as (select * from s.t, s.u) select id from q",
    "the same twice": "select id from (select id, id from s.t) as q",
    "a key that is no column": "select id from s.t group by 3",
    "two widths": "select id, v from s.t union all select id from s.u",
    "a row as a value": "select t as x from s.t",
    "a field": "select st.a as x from s.t",
    "an outer name": "select id from s.t where id in (select v from s.u)",
    "nothing missing": "select id, v from s.t",
    "of a table beside it": (
        "select a.id as x from s.t as a join (select id, v from s.u) as r on a.id = r.id"
    ),
    "of one before a comma": "select a.id as x from s.t as a, (select id, a.v from s.u) as r",
    "of one around brackets": (
        "select a.id as x from s.t as a left join "
        "(select q.id from (select id, w from s.u) as q where q.w = v) as r on a.id = r.id"
    ),
    "in a condition beside": (
        "select a.id as x from s.t as a join (select id from s.u where exists "
        "(select 1 from s.u where w = v)) as r on a.id = r.id"
    ),
    "in the condition of a join": (
        "select a.id as x from s.t as a join s.u as r on exists (select v from s.u where w = r.id)"
    ),
    "a qualified name": "select t.gone from s.t",
    "USING a column one side has": "select 1 as x from s.t join s.u using (v)",
    "the number of a row": "select rowid as x from s.t",
    "the number of a row of a query": "select rowid as x from (select id from s.t) as q",
    "a clock without brackets": "select current_date as x from s.t",
    "a name that is text": 'select "no name" as x from s.t',
}
ONLY_DUCKDB = (
    {
        "left out of a star": "select * exclude (gone) from s.t",
        "put into a star": "select * replace (1 as gone) from s.t",
        "renamed in a star": "select * rename (gone as g) from s.t",
        "the user": "select user as x from s.t",
        "of a list of its own": "select [y + id for y in [1, 2] if y > id] as x from s.t",
        "a parameter": "select list_transform([1], lambda y, i: y + i + id) as x from s.t",
        "an array's own name": "select unnest from s.t, unnest([1])",
        "a file's name": "select filename from s.t",
        "the hidden side of a semi join": "select u.w from s.t semi join s.u on t.id = u.id",
        "that of an anti join": "select t.id from s.t anti join s.u on t.id = u.id where u.w = 1",
        "hidden from a later join": (
            "select t.id from s.t semi join s.u on t.id = u.id join s.t as x on x.id = u.w"
        ),
        "hidden from a subquery": "select (select u.w) as x from s.t semi join s.u on t.id = u.id",
        "seen by its own semi join": "select t.id from s.t semi join s.u on t.id = u.id and u.w > 1",
        "seen again by another name": (
            "select x.w from s.t semi join s.u on t.id = u.id join s.u as x on t.id = x.id"
        ),
        "an aggregate as a key": "select sum(v) as s from s.t group by sum(v)",
        "an aggregate as a key by place": "select v, sum(id) as s from s.t group by 1, 2",
        "a column beside an aggregate": "select id, sum(v) as s from s.t",
        "a part of it beside an aggregate": "select id + 1 as x, count(*) as n from s.t",
        "a column that is no key": "select id, v, count(*) as n from s.t group by id",
        "a key in another place": "select id + 1 as x, count(*) as n from s.t group by id",
        "a key as it is written": "select id + v as x, count(*) as n from s.t group by id + v",
        "a key by place": "select id, v, count(*) as n from s.t group by 2, 1",
        "a key with a table": "select t.id, count(*) as n from s.t group by id",
        "a key by alias": "select id + 1 as k, k * 2 as l, count(*) as n from s.t group by k",
        "an alias that is a column, too": "select v + 1 as id, count(*) as n from s.t group by v",
        "of the other side": "select u.id, count(*) as n from s.t join s.u on t.id = u.id group by t.id",
        "of the key both have": "select t.id, count(*) as n from s.t join s.u using (id) group by id",
        "one of a group": "select id, first(v) as f, any_value(v) as a, list(v) as l from s.t group by id",
        "of a group filtered": "select id, count(*) filter (where v > 1) as n from s.t group by id",
        "of all groups": "select id, v, count(*) as n from s.t group by all",
        "of grouping sets": "select id, v, count(*) as n from s.t group by rollup (id, v)",
        "of a query around": "select id, (select count(*) from s.u where u.id = t.id) as n from s.t",
        "an aggregate of a query around": "select (select sum(t.v)) as x, count(*) as n from s.t",
        "a window over groups": "select id, sum(sum(v)) over (order by id) as x from s.t group by id",
        "a window alone": "select id, sum(v) over (order by id) as x from s.t",
        "a struct by its field": "select st.a as x, count(*) as n from s.t group by st",
        "a constant": "select 1 as k, count(*) as n from s.t",
        "a list of its own, grouped": "select [y for y in [1, 2]] as l, count(*) as n from s.t",
        "nothing in HAVING but a key": "select id from s.t group by id having id > 1",
        "keys behind a star": "select *, count(*) as n from (select id, v from s.t) as q group by 1, 2",
        "a key behind all of a star": (
            "select *, count(*) as n from (select id, v from s.t) as q group by 1, 2, 4"
        ),
        "a key that is the second of an alias": (
            "select id as K, v as k, count(*) as n from s.t group by id, k"
        ),
        "a key beside columns that nobody lists": (
            "select t.v as k, count(*) as n from s.t, json_each('[1]') as j where j.key = '0' group by k"
        ),
        "a key in brackets": "select id, v, count(*) as n from s.t group by (id), (v)",
    }
    | {
        f"{what}, beside another column of its values": sql.replace(
            "twins", "(select id as g, id as k, v from s.t) as q"
        )
        for what, sql in {
            "a key": "select g, count(*) as n from twins group by g",
            "a key with a table": "select q.g as x, count(*) as n from twins group by g",
            "a key by place": "select g as k, count(*) as n from twins group by 1",
            "a key by alias": "select g as x, count(*) as n from twins group by x",
            "a key in an expression": "select g + 1 as x, count(*) as n from twins group by g + 1",
            "a key in HAVING": "select g, count(*) as n from twins group by g having g > 0",
            "both keys": "select g, k, count(*) as n from twins group by g, k",
            "the other as a key": "select g as x, count(*) as n from twins group by k",
            "an alias that is a column": "select g as k, count(*) as n from twins group by k",
            "the other in an expression": "select g + 1 as x, count(*) as n from twins group by k + 1",
            "the other within": "select g + v as x, count(*) as n from twins group by k, v",
            "the other aggregated": "select k, max(g) as n from twins group by k",
            "an alias of an expression": "select g + 1 as y, count(*) as n from twins group by y",
        }.items()
    }
    | {
        f"{what} of a {kind} join": f"select 1 as x from s.t as a {kind} join {right} on a.id {'>' if 'asof' in kind else ''}= r.id"
        for kind in ("inner", "left", "right", "full", "semi", "anti", "asof", "asof left")
        for what, right in {
            "the left side's column on the right": "(select id, v from s.u) as r",
            "that by its table": "(select id, a.v from s.u) as r",
            "that in a subquery": "(select id from s.u where w in (select v)) as r",
            "that in EXISTS": "(select id from s.u where exists (select 1 from s.u where w = v)) as r",
            "that in a set operation": "(select id from s.u union all select v) as r",
            "that in a CTE": "(with q as (select v from s.u) select u.id from s.u, q) as r",
            "that in a function": "range(v) as r(id)",
            "that in UNNEST": "unnest([v]) as r(id)",
            "that by its table in UNNEST": "unnest([a.v]) as r(id)",
            "that in brackets": "(s.u as r join (select v as z) as q on true)",
            "that in a nested condition": "(s.u as r join s.u as o on o.id = a.v)",
            "none of that": "(select id, w from s.u) as r",
        }.items()
    }
    | {
        "read from before a comma": (
            "select 1 as x from s.t, s.u as b right join (select v as id) as r on b.id = r.id"
        ),
        "read from before brackets": (
            "select 1 as x from s.t cross join (s.u as b full join (select v as id) as r on true)"
        ),
        "read in a condition": (
            "select 1 as x from s.t as a right join s.u as r on exists (select v from s.u where w = r.id)"
        ),
        "read by a later join": (
            "select 1 as x from s.t as a right join s.u as r on true join (select a.v) as q on true"
        ),
        "read from two joins before": (
            "select 1 as x from s.t as a join s.u as b on true full join (select a.v as y) as q on true"
        ),
        "read from a query around": (
            "select (select max(w) from s.u right join (select t.v as y) as q on true) as x from s.t"
        ),
    }
)


def runs(connection: Any, sql: str) -> bool:
    try:
        connection.execute(sql).fetchall()
    except (duckdb.Error, sqlite3.Error):
        return False
    return True


@pytest.mark.parametrize("what", [*QUERIES, *ONLY_DUCKDB])
def test_broken_is_what_duckdb_refuses(what: str) -> None:
    connection = duckdb.connect()
    connection.execute(
        "create schema s; create table s.t (id int, v int, st struct(a int));"
        "create table s.u (id int, w int)"
    )
    seen = of(QUERIES.get(what) or ONLY_DUCKDB[what])
    if runs(connection, QUERIES.get(what) or ONLY_DUCKDB[what]):
        # In the parse tree a comma is a cross join, over which it could not be read.
        assert seen.status == ("opaque" if what == "read from before a comma" else "analysed")
    elif what in ("the number of a row of a query", "a file's name"):  # some tables have it
        assert seen.status == "opaque"
    else:
        assert seen.status == "broken"


@pytest.mark.parametrize("what", [w for w in QUERIES if w not in ("a field", "a row as a value")])
def test_broken_is_what_sqlite_refuses(what: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("attach ':memory:' as s")
    connection.executescript("create table s.t (id int, v int); create table s.u (id int, w int)")
    assert (of(QUERIES[what], "sqlite").status == "broken") != runs(connection, QUERIES[what])


IN_VAIN = "with d as (select gone from s.t) select id from s.t"
RECURSIVE = (
    "with recursive d as (select gone from s.t union all select gone from d) select id from s.t"
)


@pytest.mark.parametrize(
    ("adapter", "status"),
    [
        ("duckdb", "analysed"),
        ("sqlite", "analysed"),
        ("spark", "broken"),
        ("databricks", "broken"),
        ("postgres", "opaque"),
        ("bigquery", "opaque"),
        ("trino", "opaque"),
        ("clickhouse", "opaque"),
        ("redshift", "opaque"),
    ],
)
def test_whether_a_cte_that_nothing_reads_is_looked_into_is_told_by_dialect(
    adapter: str, status: str
) -> None:
    assert of(IN_VAIN, adapter).status == status
    assert (UNUSED_CTES.get(adapter) is False) == (status == "analysed")
    if adapter == "spark":
        assert of(RECURSIVE, adapter).status == "analysed"
    moves = (
        of(IN_VAIN, adapter).rows_fingerprint != of("select id from s.t", adapter).rows_fingerprint
    )
    assert moves == (status != "analysed")


def test_an_adapter_that_is_not_known_refuses_nothing_for_certain() -> None:
    assert of("select gone from s.t", "spark").status == "broken"
    assert of("select gone from s.t", "firebolt").status == "opaque"


def test_what_may_not_build_says_so() -> None:
    assert str(of(IN_VAIN, "redshift").reason) == "may not build: cannot follow `gone`"
    assert of("select id from (select t.id, u.id from s.t, s.u) q", "exasol").status == "opaque"


# --- words and names of the engine's own ---------------------------------------------------------

TAKEN = [
    ("databricks", "timestampadd(second, 1, v)"),
    ("databricks", "timediff(hour, v, v)"),
    ("spark", "date_diff(week, v, v)"),
    ("spark", "extract(dayofweek from v)"),
    ("tsql", "date_bucket(week, 2, v)"),
    ("tsql", "datename(weekday, v)"),
    ("tsql", "try_convert(int, v)"),
    ("tsql", "next value for numbers"),
    ("mysql", "get_format(date, 'usa')"),
    ("mysql", "timestampdiff(minute, v, v)"),
    ("mysql", "utc_timestamp"),
    ("redshift", "datediff(day, v, v)"),
    ("redshift", "date_part(dow, v)"),
    ("dremio", "timestampadd(second, 1, v)"),
    ("vertica", "timestampadd(second, 1, v)"),
    ("vertica", "datediff(day, v, v)"),
    ("exasol", "timestampadd(quarter, 1, v)"),
    ("bigquery", "date_trunc(v, month)"),
    ("bigquery", "date_diff(v, v, week(monday))"),
    ("trino", "current_schema"),
    ("bigquery", "_PARTITIONTIME"),
    ("bigquery", "_TABLE_SUFFIX"),
    ("databricks", "_metadata.file_path"),
    ("snowflake", "metadata$filename"),
    ("trino", '"$path"'),
    ("clickhouse", "_part"),
    ("postgres", "session_user"),
    ("postgres", "ctid"),
    ("oracle", "rownum"),
    ("oracle", "numbers.nextval"),
    ("oracle", "nvl(v, level)"),
    ("snowflake", "numbers.nextval"),
    ("snowflake", "dateadd(day, 1, v)"),
    ("singlestore", "timestampdiff(second, v, v)"),
    ("teradata", "extract(second from v)"),
    ("tsql", "isjson(v, object)"),
    ("trino", "json_object('k': v returning varchar format json)"),
    ("postgres", "our_function(variadic arr := array[v])"),
]
UNSURE = [
    ("databricks", "_change_type"),
    ("databricks", "_commit_version"),
    ("spark", "t._metadata.file_name"),
    ("snowflake", "level"),
    ("duckdb", "filename"),
    ("duckdb", "our_function(gone)"),
    ("dremio", "our_function(word, v)"),
    ("redshift", "our_function(word)"),
    ("postgres", "oid"),
    ("exasol", "rowid"),
]
REFUSED = [
    ("duckdb", "gone"),
    ("duckdb", "max(gone)"),
    ("duckdb", "upper(gone)"),
    ("duckdb", "sysdate"),
    ("spark", "rowid"),
    ("spark", "our_function(gone)"),
    ("spark", "timestampadd(second, 1, gone)"),
    ("postgres", "coalesce(gone, v)"),
    ("redshift", "datediff(day, gone, v)"),
    ("bigquery", "date_trunc(gone, month)"),
    ("snowflake", "upper(gone)"),
    ("tsql", "gone + 1"),
    ("redshift", "our_function(v) + gone"),
    ("tsql", "isjson(object, value)"),
    ("trino", "json_object('k': gone format json)"),
    ("postgres", "our_function(variadic array[gone])"),
]


@pytest.mark.parametrize(
    ("behind", "status"),
    [("", "opaque"), ("start with V is null connect by prior ID = V", "analysed")],
)
def test_level_is_of_a_tree_of_rows_on_snowflake(behind: str, status: str) -> None:
    model = node("model.p.m", f'select level as x from "s"."t" {behind}', T)
    made = project(node(T), model, catalog={T: ["ID", "V"]}, adapter="snowflake")
    assert analyse(made).nodes["model.p.m"].status == status


@pytest.mark.parametrize(
    ("adapter", "sql"),
    [("bigquery", "_table_suffix"), ("trino", '"$path"'), ("clickhouse", "_part")],
)
def test_a_view_has_no_hidden_columns(adapter: str, sql: str) -> None:
    view = node("model.p.v", "select id, v from s.t", T, config={"materialized": "view"})
    model = node("model.p.m", f"select {sql} as x from s.v", "model.p.v")
    made = project(node(T), view, model, catalog=COLUMNS, adapter=adapter)
    assert analyse(made).nodes["model.p.m"].status == "opaque"


@pytest.mark.parametrize(
    ("adapter", "sql", "status"),
    [
        *((adapter, sql, "analysed") for adapter, sql in TAKEN),
        *((adapter, sql, "opaque") for adapter, sql in UNSURE),
        *(
            (adapter, sql, "broken" if adapter in EXECUTED else "opaque")
            for adapter, sql in REFUSED
        ),
    ],
)
def test_a_name_is_missing_only_where_it_is_one(adapter: str, sql: str, status: str) -> None:
    adapter = {"tsql": "sqlserver"}.get(adapter, adapter)
    upper = adapter in ("oracle", "snowflake")
    columns = {T: ["ID", "V"]} if upper else COLUMNS
    model = node("model.p.m", f"select {sql} as x from " + ('"s"."t"' if upper else "s.t"), T)
    analysis = analyse(project(node(T), model, catalog=columns, adapter=adapter))
    assert (analysis.nodes["model.p.m"].status, sql) == (status, sql)


def test_a_hidden_column_is_made_of_the_rows() -> None:
    def number(where: str) -> list[str]:
        return of(f"select rowid as x from (select * from s.t {where}) q").fingerprints

    assert number("") != number("where v > 1")


@pytest.mark.parametrize(
    ("array", "status"),
    [
        ("t.v", "analysed"),  # an array of structs, for all that is known
        ("[struct(1 as part)]", "analysed"),
        ("['a', 'b']", "opaque"),
        ("split(t.v)", "opaque"),
        ("generate_array(1, 9)", "opaque"),
    ],
)
def test_what_is_unnested_may_have_fields_of_any_name_on_bigquery(array: str, status: str) -> None:
    for element in ("select x from", "select count(*) from"):
        query = f"select array({element} unnest({array}) as x order by part) as p from s.t as t"
        assert of(query, "bigquery").status == status
    assert of(f"select part from s.t as t, unnest({array}) as x", "bigquery").status == status


@pytest.mark.parametrize("known", [True, False])
def test_what_a_subquery_may_have_is_not_ambiguous_around_it(known: bool) -> None:
    sql = "select (select max(id) from s.x where x.w = u.w) as m from s.t join s.u on t.id = u.id"
    x = "source.p.raw.x"
    catalog = COLUMNS | ({x: ["w"]} if known else {})
    model = node("model.p.m", sql, T, U, x)
    analysis = analyse(project(node(T), node(U), node(x), model, catalog=catalog, adapter="duckdb"))
    assert analysis.nodes["model.p.m"].status == ("broken" if known else "analysed")


def test_names_are_reported_so_that_they_can_be_read() -> None:
    # What one engine reads as text is a name to another.
    seen = of('select split(sprint, ", ") as a, Sprint as b, "" as c from s.t')
    assert str(seen.reason) == 'cannot find sprint, ", ", ""'
    both = of("select id, gone from s.t join s.u on t.id = u.id")
    assert str(both.reason) == "cannot find gone; id is ambiguous"
    twice = of("select id from s.t join s.u on t.id = u.id")
    assert str(twice.reason) == "id is ambiguous"


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "postgres", "sqlite", "bigquery", "none"])
def test_every_way_not_to_find_a_name_has_an_answer(dialect: str) -> None:
    assert {refuses(problem, dialect) for problem in NameProblem} <= {True, False, None}


# --- relations whose text is not all there is ----------------------------------------------------


def chain(
    *,
    stg: str = "select id from s.t",
    mart: str = "select id, kind from s.stg",
    stg_more: dict[str, Any] | None = None,
    mart_more: dict[str, Any] | None = None,
    others: tuple[Node, ...] = (),
    macros: tuple[Any, ...] = (),
    adapter: str = "duckdb",
) -> Project:
    return project(
        node(T),
        node("model.p.stg", stg, T, **(stg_more or {})),
        node("model.p.mart", mart, "model.p.stg", **(mart_more or {})),
        *others,
        catalog=COLUMNS,
        macros=macros,
        adapter=adapter,
    )


def status(project_: Project, unique_id: str = "model.p.mart") -> str:
    analysis = analyse(project_)
    return {**analysis.nodes, **analysis.tests}[unique_id].status


ALTERS = {"post-hook": [{"sql": "alter table {{ this }} add column kind int"}]}
LOOKS = "{% for c in adapter.get_columns_in_relation(ref('stg')) %}{{ c.name }},{% endfor %}"
MAY_BUILD: dict[str, dict[str, Any]] = {
    "a hook adds it": {"stg_more": {"config": ALTERS}},
    "another model's hook adds it": {
        "others": (
            node(
                "model.p.z",
                "select 1 as x",
                config={"post-hook": [{"sql": "alter table s.stg add column kind int"}]},
            ),
        ),
    },
    "an on-run hook adds it": {
        "others": (node("operation.p.h", raw="alter table {{ ref('stg') }} add column kind int"),),
    },
    "the table keeps it": {"stg_more": {"config": {"materialized": "incremental"}}},
    "a snapshot keeps it": {"stg_more": {"config": {"materialized": "snapshot"}}},
    "its own text is compiled anew": {"mart_more": {"raw": LOOKS}},
    "what it reads is compiled anew": {"stg_more": {"raw": LOOKS.replace("stg", "t")}},
    "the materialization is ours": {"mart_more": {"config": {"materialized": "ours"}}},
    "the view is bound late": {
        "mart_more": {"config": {"materialized": "view", "bind": False}},
        "adapter": "redshift",
    },
    "only in the branch that was compiled": {
        "mart": "select id from s.stg where kind > 1",
        "mart_more": {
            "config": {"materialized": "incremental"},
            "raw": "select id from {{ ref('stg') }} {% if is_incremental() %} where kind > 1 {% endif %}",
        },
    },
    "the project makes its tables itself": {
        "macros": (
            macro("macro.p.create_table_as", "{% macro create_table_as() %}{% endmacro %}"),
            macro("macro.dbt.materialization_table_default", "", "macro.p.create_table_as"),
        ),
    },
    "an ephemeral model that nothing inlines": {
        "mart_more": {"config": {"materialized": "ephemeral"}},
        "others": (node("model.p.z", "select 1 as x", "model.p.mart"),),
    },
    "an ephemeral model in a CTE that nothing reads": {
        "mart_more": {"config": {"materialized": "ephemeral"}},
        "others": (
            node(
                "model.p.z",
                "with __dbt__cte__mart as (select id, kind from s.stg) select 1 as x",
                "model.p.mart",
            ),
        ),
    },
}


@pytest.mark.parametrize("why", MAY_BUILD)
def test_what_may_be_built_is_not_broken(why: str) -> None:
    assert status(chain(**MAY_BUILD[why])) in ("opaque", "analysed")


BROKEN: dict[str, dict[str, Any]] = {
    "as it stands": {},
    "a hook that grants": {
        "stg_more": {"config": {"post-hook": [{"sql": "grant usage on {{ this }} to kind"}]}}
    },
    "an incremental model": {"mart_more": {"config": {"materialized": "incremental"}}},
    "in both branches": {
        "mart": "select kind from s.stg where kind > 1",
        "mart_more": {
            "config": {"materialized": "incremental"},
            "raw": "select kind from {{ ref('stg') }} {% if is_incremental() %} where kind > 1 {% endif %}",
        },
    },
    "a snapshot": {"mart_more": {"config": {"materialized": "snapshot"}}},
    "an ephemeral model that a table inlines": {
        "mart_more": {"config": {"materialized": "ephemeral"}},
        "others": (
            node(
                "model.p.z",
                "with __dbt__cte__mart as (select id, kind from s.stg) select * from __dbt__cte__mart",
                "model.p.mart",
            ),
        ),
    },
    "an ephemeral model that a test inlines": {
        "mart_more": {"config": {"materialized": "ephemeral"}},
        "others": (
            check(
                "z",
                "with __dbt__cte__mart as (select id, kind from s.stg) select * from __dbt__cte__mart",
                "model.p.mart",
            ),
        ),
    },
    "an ephemeral model in between": {
        "stg_more": {"config": {"materialized": "ephemeral"}},
        "mart": "with __dbt__cte__stg as (select id from s.t) select kind from __dbt__cte__stg",
    },
}


@pytest.mark.parametrize("why", BROKEN)
def test_what_certainly_cannot_be_built_is_broken(why: str) -> None:
    assert status(chain(**BROKEN[why])) == "broken"


def test_a_test_is_broken_by_what_it_reads() -> None:
    test = check("z", "select kind from s.stg where kind is null", "model.p.stg")
    assert status(chain(mart="select id from s.stg", others=(test,)), "test.p.z") == "broken"


def test_an_old_catalog_does_not_say_what_is_gone() -> None:
    sides = project(node(T), node("model.p.m", "select later from s.t", T), catalog=COLUMNS)
    assert status(sides, "model.p.m") == "broken"
    sides = sides.having(catalog_is_older=True)
    assert status(sides, "model.p.m") == "opaque"


def test_what_the_engine_does_not_look_into_is_built_and_does_not_move() -> None:
    def side(stg: str) -> Project:
        dead = "with d as (select kind from s.stg) select id from s.stg"
        return project(
            node(T),
            node("model.p.stg", stg, T),
            node("model.p.mart", dead, "model.p.stg"),
            check("z", "select id from s.mart where id is null", "model.p.mart"),
            catalog=COLUMNS,
            adapter="duckdb",
        )

    selection = select(
        side("select id, v as kind from s.t"), side("select id from s.t"), facts=False
    )
    assert (selection.models, selection.tests) == (["model.p.stg", "model.p.mart"], [])
    assert (selection.broken, selection.opaque) == ([], [])


# --- a name that is not found is not nothing ------------------------------------------------------

STG, OTHER, M = "model.p.stg", "model.p.other", "model.p.m"
NOWHERE = {
    # The name in a query over stg (id, v) and other (id, w); and whether the rows hang on it.
    "an item": ("select a.id, nowhere as x from s.stg as a, s.other as o", False),
    "a qualified item": ("select a.id, a.nowhere as x from s.stg as a, s.other as o", False),
    "a part of an item": ("select a.id, abs(nowhere) as x from s.stg as a, s.other as o", False),
    "an item of a CTE": (
        "with q as (select a.id, nowhere as x from s.stg as a, s.other as o) select * from q",
        False,
    ),
    "an item of a subquery": (
        "select a.id, (select max(nowhere) from s.other as o) as x from s.stg as a",
        False,
    ),
    "WHERE": ("select a.id, 1 as x from s.stg as a, s.other as o where nowhere = 1", True),
    "ON": ("select a.id, 1 as x from s.stg as a join s.other as o on a.id = nowhere", True),
    "USING": ("select a.id, 1 as x from s.stg as a join s.other as o using (nowhere)", True),
    "GROUP BY": ("select a.id, 1 as x from s.stg as a, s.other as o group by a.id, nowhere", True),
    "HAVING": (
        "select a.id, 1 as x from s.stg as a, s.other as o group by 1 having max(nowhere) = 1",
        True,
    ),
    "LIMIT": ("select a.id, 1 as x from s.stg as a, s.other as o order by nowhere limit 1", True),
    "EXISTS": (
        "select a.id, 1 as x from s.stg as a where exists (select 1 from s.other where nowhere = 1)",
        True,
    ),
    "ambiguous": ("select a.v as id, id as x from s.stg as a, s.other as o", True),
}


def over_models(
    sql: str, adapter: str, *, v: str = "v", w: str = "w", built: bool = True
) -> Project:
    """A model over two models, with tests of its columns and of its rows."""
    sides = project(
        node(T),
        node(U),
        node(STG, f"select id, {v} as v from s.t", T),
        node(OTHER, f"select id, {w} as w from s.u", U),
        node(M, sql, STG, OTHER),
        check("id", "select id from s.m where id is null", M),
        check("x", "select x from s.m where x is null", M),
        check("rows", "select count(*) as n from s.m having count(*) = 0", M),
        catalog=COLUMNS,
        adapter=adapter,
    )
    results = [RunResult(unique_id=M, status="success")] if built else []
    return sides.having(run_results=results)


@pytest.mark.parametrize("adapter", ["bigquery", "duckdb", "postgres", "spark"])
@pytest.mark.parametrize("where", NOWHERE)
def test_a_name_that_is_not_found_may_mean_anything(where: str, adapter: str) -> None:
    sql, in_rows = NOWHERE[where]
    base = over_models(sql, adapter)
    everything = {"id", "x", "rows"}

    def selected(head: Project) -> set[str]:
        selection = select(base, head, facts=False)
        assert not selection.blocked
        return {test.name for test in selection.tests}

    assert selected(base) == set()
    if adapter != "bigquery":  # where layout may decide what a column is called
        assert selected(over_models(sql + " -- not of the query", adapter)) == set()
    assert (
        selected(over_models(sql.replace("1", "2").replace(" as x", " + 1 as x"), adapter))
        == everything
    )
    for change in ({"v": "v + 1"}, {"w": "w + 1"}):  # a column that the query does not read
        touched = selected(over_models(sql, adapter, **change, built=False))  # type: ignore[arg-type]
        assert touched == (
            everything if in_rows else {"x"} | (touched & {"id"} if "*" in sql else set())
        )


@pytest.mark.parametrize("adapter", ["bigquery", "duckdb", "postgres", "spark"])
def test_what_base_has_built_is_not_broken(adapter: str) -> None:
    sql, _ = NOWHERE["an item"]
    for base, broken in (
        (over_models(sql, adapter), False),  # by the results of its run
        (listing_itself(over_models(sql, adapter, built=False)), False),  # by its catalog
        (over_models(sql, adapter, built=False), adapter in EXECUTED),  # nothing says so
    ):
        comparison = compare(base, over_models(sql + " where a.id > 1", adapter, built=False))
        for side in (comparison.base_analysis, comparison.head_analysis):
            assert side.nodes[M].status == ("broken" if broken else "opaque")
            assert broken or str(side.nodes[M].reason).endswith("cannot follow `nowhere`")
    # What head has lost besides is what it cannot find.
    lost = compare(over_models(sql, adapter), over_models(sql.replace("a.id", "a.gone"), adapter))
    executed = (
        "cannot find a.gone"
        if adapter in EXECUTED
        else "may not build: cannot follow `a.gone`, `nowhere`"
    )
    assert str(lost.head_analysis.nodes[M].reason) == executed


@pytest.mark.parametrize("kind", ["test", "snapshot", "unit_test"])
@pytest.mark.parametrize("name", ["nowhere", "id"])  # `id` is ambiguous
def test_so_it_is_of_tests_and_snapshots(kind: str, name: str) -> None:
    def side(query: str, v: str = "v") -> Project:
        of = M.replace("model", "snapshot") if kind == "snapshot" else M
        nodes = [
            node(STG, f"select id, {v} as v from s.t", T),
            node(OTHER, "select id from s.u", U),
        ]
        if kind == "test":
            nodes.append(check("t", query, STG, OTHER))
        else:
            nodes += [node(of, query, STG, OTHER), check("t", "select x from s.m", of)]
        if kind == "unit_test":
            rows = [{"input": "ref('stg')", "rows": [{"id": 1}]}]
            nodes[-1] = node("unit_test.p.m.t", None, M, model="m", given=rows, expect={"rows": []})
        return project(node(T), node(U), *nodes, catalog=COLUMNS, adapter="bigquery")

    def selected(base: Project, head: Project) -> bool:
        selection = select(base, head, facts=False)
        return bool(selection.tests or selection.unit_tests)

    query = f"select {name} as x from s.stg as a, s.other as b where a.id > 1"
    assert not selected(side(query), side(query))
    assert selected(side(query), side(query.replace("> 1", "> 2")))
    if kind != "unit_test":  # which has its own rows in the place of its parents
        assert selected(side(query), side(query, "v + 1"))


def listing_itself(side: Project) -> Project:
    """The same project, of which the catalog lists the model, too."""
    return side.having(catalog={**side.catalog, M: [CatalogColumn(name=c) for c in ("id", "x")]})


STRANGE = [
    # A name by rules that are not followed, or by a word of the engine's; the same edited; what changes.
    (
        "snowflake",
        "select id, year(v) as x from s.t join s.u on x = u.w",
        "year",
        "month",
        "rows x",
    ),
    ("snowflake", "select id, v + 1 as x from s.t where x > 1", "+ 1", "+ 2", "rows x"),
    ("snowflake", "select id, t.$1 as x from s.t", "$1", "$2", "x"),
    ("snowflake", "select id, $1 as x from s.t", "$1", "$2", "x"),
    ("snowflake", "select id, $9 as x from s.t", "$9", "$8", "rows id x"),
    ("snowflake", "select t.id, $1 as x from s.t, s.u", "$1", "$2", "x"),
    ("clickhouse", "select (v + 1 as n) + 2 as x, n as id from s.t", "+ 1", "+ 3", "rows id x"),
    ("clickhouse", "with v + 1 as n select n as x, id from s.t", "+ 1", "+ 3", "x"),
    ("clickhouse", "select id + 1 as x, v + 1 as id from s.t", "v + 1", "v + 2", "x id"),
    (
        "clickhouse",
        "select v + 1 as id, 2 as x from s.t join s.u on id = w",
        "+ 1",
        "+ 3",
        "rows id",
    ),
    (
        "clickhouse",
        "select id, v as x from s.t where (v + 1 as n) > 1 and n < 5",
        "+ 1",
        "+ 3",
        "rows",
    ),
    ("bigquery", "from s.t as p |> drop v |> select id, p.v as x", "p.v as", "p.v + 1 as", "x"),
    ("bigquery", "select 1 as id, v as x from s.t, unnest(st) as v", "1 as", "2 as", "id"),
    (
        "sqlserver",
        "select id, 1 as x from s.t where isjson(v, object) = 1",
        "object",
        "array",
        "rows",
    ),
    (
        "trino",
        "select id, json_object('k': v returning varchar format json) as x from s.t",
        "varchar",
        "varbinary",
        "x",
    ),
    ("postgres", "select id, f(variadic arr := array[v]) as x from s.t", "[v]", "[v + 1]", "x"),
]


@pytest.mark.parametrize(("adapter", "sql", "was", "now", "changes"), STRANGE)
def test_a_name_by_another_rule_is_followed_or_may_mean_anything(
    adapter: str, sql: str, was: str, now: str, changes: str
) -> None:
    def side(sql: str) -> NodeAnalysis:
        upper = adapter == "snowflake"
        columns = {T: ["ID", "V", "ST"], U: ["ID", "W"]} if upper else COLUMNS
        parents = [node(T), node(U)]
        if upper:
            parents = [replace(n, relation_name=f"S.{n.name.upper()}") for n in parents]
        model = node("model.p.m", sql, T, U, columns=["id", "x"])
        sides = project(*parents, model, catalog=columns, adapter=adapter)
        return analyse(sides).nodes["model.p.m"]

    one, other = side(sql), side(sql.replace(was, now))
    changed = node_change(one, other)
    assert changed is not None
    assert set(changes.split()) <= {*changed.redefined, *(["rows"] if changed.rows else [])}
    assert {one.status, other.status} <= {"analysed", "opaque"}


@pytest.mark.parametrize(
    ("columns", "item", "status"),
    [
        (["ID", "Y"], "v + 1 as y", "analysed"),  # a column wins
        (["ID"], "v + 1 as y", "opaque"),
        (None, "v + 1 as y", "opaque"),
        (None, "y", "analysed"),
        (None, "u.y as y", "analysed"),
    ],
)
def test_a_name_in_from_that_may_be_an_alias(
    columns: list[str] | None, item: str, status: str
) -> None:
    parents = [replace(node(u), relation_name=f"S.{u[-1].upper()}") for u in (T, U)]
    model = node("model.p.m", f"select {item} from s.u as u join s.t as t on y = t.w", T, U)
    catalog = {T: ["V", "W"], U: columns} if columns else {}
    analysis = analyse(project(*parents, model, catalog=catalog, adapter="snowflake"))
    assert analysis.nodes["model.p.m"].status == status


def test_a_position_is_a_column_of_the_relation() -> None:
    def sources(sql: str) -> set[tuple[str, str]]:
        raw = replace(node(T), relation_name="S.T")
        model = node("model.p.m", sql, T)
        catalog = {T: ["ID", "V", "ST"]}
        analysis = analyse(project(raw, model, catalog=catalog, adapter="snowflake"))
        assert analysis.nodes["model.p.m"].status == "analysed"
        return {
            (e.parent_column, e.child_column)
            for e in analysis.edges
            if e.child_column != ROWS and e.type == "DIRECT"
        }

    assert sources("select $2 as x, t.$1 as y from s.t") == {("V", "x"), ("ID", "y")}
    assert sources("select q.$2 as x from (select st, v from s.t) as q") == {("V", "x")}


@pytest.mark.spark
def test_broken_by_another_key_is_what_spark_refuses(spark: SparkSession) -> None:
    spark.sql("select 1 as id, 2 as v").createOrReplaceTempView("t")
    try:
        for sql in [sql for what, sql in ONLY_DUCKDB.items() if what.endswith("of its values")]:
            try:
                spark.sql(sql.replace("s.t", "t")).collect()
            except Exception:  # what it is called differs from version to version
                assert of(sql, "spark").status == "broken", sql
            else:
                assert of(sql, "spark").status == "analysed", sql
    finally:
        spark.catalog.dropTempView("t")
