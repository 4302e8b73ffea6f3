"""Edits that show what an engine does and SQL does not promise: types, order, evaluation, time.

Those of `CHANGES` come out otherwise when they are built on DuckDB, by the rows that a test returns;
those of `ALIKE` are their harmless neighbours, and come out the same.
"""

from __future__ import annotations

from typing import NamedTuple

TABLE, VIEW, EPHEMERAL, INCREMENTAL = (
    f"{{{{ config(materialized='{kind}') }}}}\n"
    for kind in ("table", "view", "ephemeral", "incremental")
)


class Edit(NamedTuple):
    """An edit of a few models.

    Attributes:
        what: it is, in a few words.
        old: the text of each model, by a short name. ``@u`` is a reference to the model ``u`` of the same
            edit, and ``#t`` is the source ``t``.
        new: the texts that are others after the edit.
        test: what is tested, before and after; by default all of ``r``, or of ``u`` where nothing reads it.
    """

    what: str
    old: dict[str, str]
    new: dict[str, str]
    test: tuple[str, str] | None = None


SOURCES = """
create schema raw;
create table raw.t (
  k integer, ti tinyint, si smallint, x integer, bi bigint, f double, v varchar, p boolean, q boolean,
  d date, iv interval, ci varchar collate nocase, z double);
insert into raw.t values
  (1, 100, 1, 3, 1, 1e100, '9', true, null, '2024-01-01', interval 1 day, 'a', '0.0'),
  (2, null, 2, 1, 2, 1, 'b', false, true, '2024-02-01', interval 24 hours, 'A', '-0.0'),
  (3, 7, null, 2, 3, -1e100, '91', null, false, '2024-03-01', interval 1 month, 'b', '1.0'),
  (4, 120, 4, 2, null, 2, 'c', true, true, null, interval 30 days, 'B', '-0.0');
create table raw.w (k integer, y integer, j varchar);
insert into raw.w values (1, 10, '1'), (2, null, '02'), (2, 30, '3');
create table raw.big as select i::int as k, 'v' || (i * 7 % 13) as v, (i * 11 % 5)::int as m from range(3000) as r (i);
create table raw.i (k integer, x integer);
insert into raw.i values (1, 1), (2, 1), (3, 2);
create macro chance() as random();
create macro picked(a) as list(a)::varchar;
create macro upcased(a) as upper(a);
"""
LATER = "insert into raw.i values (4, 2), (5, 1), (6, 3)"
"""What comes in between the first build, of the base, and the next one, of either side."""


def alone(what: str, old: str, new: str, kind: str = VIEW) -> Edit:
    """A model that only its test reads."""
    return Edit(what, {"u": kind + old}, {"u": kind + new})


def read(what: str, old: str, new: str, reader: str, kind: str = TABLE) -> Edit:
    """A model, and a table that reads it."""
    return Edit(what, {"u": kind + old, "r": TABLE + reader}, {"u": kind + new})


def types(what: str, old: str, new: str) -> Edit:
    """An expression over the source, and what reads its type."""
    return read(
        what,
        f"select {old} as e from #t",
        f"select {new} as e from #t",
        "select typeof(e) as t from @u",
    )


def condition(what: str, old: str, new: str) -> Edit:
    """A condition that is compared with false: false and NULL are not the same."""
    texts = (f"select k, case false when {c} then 1 else 0 end as e from #t" for c in (old, new))
    return read(what, *texts, "select * from @u")


def volatile(value: str, kinds: tuple[str, str]) -> Edit:
    """A value that is read twice, as it was stored or made anew."""
    texts = [f"{kind}select k, {value} as a from #t" for kind in kinds]
    twice = f"{TABLE}select count(*) as n from @u as y join @u as z on y.k = z.k and y.a = z.a"
    return Edit(f"{value}, stored otherwise", {"u": texts[0], "r": twice}, {"u": texts[1]})


_BRANCH = "{% if is_incremental() %} where k > (select max(k) from {{ this }}) {% endif %}"
_YEAR = "strptime(case when x >= 2 then '2020' else v end, '%Y')"
_NINES = "select sum(case when v like '9%' then v::int end) as s from #t"
_NINES_FILTERED = "select sum(v::int) filter (where v like '9%') as s from #t"
_SPLIT = tuple(
    f"select {{0}} from #t where k {one} union all select {{0}} from #t where k {other}"
    for one, other in (("< 2", ">= 2"), (">= 2", "< 2"))
)
_KEYS = tuple(
    f"select v from (select v, m, count(*) as n from #big group by {keys}) as g"
    for keys in ("v, m", "m, v")
)


def split(what: str, columns: str, reader: str) -> Edit:
    """The branches of a UNION ALL, swapped: the same bag of rows."""
    return read(what, *(text.format(columns) for text in _SPLIT), reader)


def keys(what: str, reader: str) -> Edit:
    """The keys of a grouping in another order: the same bag of rows."""
    return read(what, *_KEYS, reader)


CHANGES = [
    # -- what is evaluated, and of which rows
    alone("FILTER for CASE in a view", _NINES, _NINES_FILTERED),
    alone(
        "OR in another order in a view",
        "select k from #t where v not like '9%' or v::int > 5",
        "select k from #t where v::int > 5 or v not like '9%'",
    ),
    alone(
        "De Morgan in a view",
        f"select k from #t where x >= 2 and not {_YEAR} is null",
        f"select k from #t where not (not (x >= 2) or not (not {_YEAR} is null))",
    ),
    alone(
        "FILTER for CASE in a view, of a product that overflows",
        "select max(case when ti < 10 then ti * ti end) as e from #t",
        "select max(ti * ti) filter (where ti < 10) as e from #t",
    ),
    Edit(
        "FILTER for CASE in an ephemeral model",
        {"u": EPHEMERAL + _NINES, "r": f"{VIEW}select s from @u"},
        {"u": EPHEMERAL + _NINES_FILTERED},
    ),
    Edit(
        "FILTER for CASE in a test",
        {"u": f"{TABLE}select v from #t"},
        {},
        tuple(text.replace("#t", "@u") + " having s = 0" for text in (_NINES, _NINES_FILTERED)),
    ),
    # -- types
    types("COALESCE of constants", "coalesce(ti, coalesce(2, 3))", "coalesce(ti, 2, 3)"),
    types("IFNULL of constants", "ifnull(ti, ifnull(2, 3))", "coalesce(ti, 2, 3)"),
    types(
        "CASE of constants",
        "case when p then ti else case when q then 2 else 3 end end",
        "case when p then ti when q then 2 else 3 end",
    ),
    types(
        "constants beside a decimal",
        "coalesce(x::decimal(4, 1), coalesce(ti, 2))",
        "coalesce(x::decimal(4, 1), ti, 2)",
    ),
    read(
        "EXISTS for IN, of JSON and a number",
        "select k from #t where '  1'::json in (select k from #w)",
        "select k from #t where exists (select 1 from #w as w where w.k = '  1'::json)",
        "select k from @u",
    ),
    # -- where false is not NULL
    condition("COALESCE", "coalesce(bi > 1, false)", "bi > 1"),
    condition(
        "IS NOT DISTINCT FROM",
        "bi is not distinct from si",
        "bi = si or (bi is null and si is null)",
    ),
    condition(
        "EXISTS",
        "bi in (select y from #w)",
        "exists (select 1 from #w as w where w.y = bi)",
    ),
    condition("a clause that another implies", "bi > 1 and bi is not null", "bi > 1"),
    # -- the order of rows
    keys("a list", "select list(v)::varchar as a from @u"),
    keys("a text of all", "select string_agg(v, '') as a from @u"),
    keys("a macro of the database", "select picked(v) as a from @u"),
    keys("a number of each row", "select v, row_number() over () as n from @u"),
    keys("a number of rows that tie", "select v, row_number() over (order by 1) as n from @u"),
    keys("the row before", "select v, lag(v) over (order by 1) as n from @u"),
    keys(
        "counted so far",
        "select v, count(*) over (order by 1 rows unbounded preceding) as n from @u",
    ),
    Edit(
        "a list of a list's reader",
        {
            "u": TABLE + _KEYS[0],
            "w": f"{TABLE}select v from @u where v <> 'x'",
            "r": f"{TABLE}select list(v)::varchar as a from @w",
        },
        {"u": TABLE + _KEYS[1]},
    ),
    # -- equal, and not the same
    split("a sum of floats", "f", "select sum(f) as s from @u"),
    read(
        "a sum of floats under a window",
        "select k, f from #t",
        "select k, f, row_number() over (order by x desc) as n from #t",
        "select sum(f) as s from @u",
    ),
    read(
        "a sum of floats under keys in another order",
        "select v, f, k from #t group by all",
        "select k, v, f from #t group by all",
        "select sum(f) as s from @u",
    ),
    split("zeros", "z", "select z::varchar as a from (select z from @u group by z) as g"),
    split("intervals", "iv", "select iv::varchar as a from (select distinct iv from @u) as g"),
    split("collated text", "ci", "select ci::varchar as a from (select distinct ci from @u) as g"),
    split("the least of collated text", "ci", "select min(ci)::varchar as a from @u"),
    # -- given once, or each time
    volatile("random()", (VIEW, TABLE)),
    volatile("uuid()", (TABLE, VIEW)),
    volatile("chance()", (VIEW, TABLE)),
    volatile("gen_random_uuid()", (VIEW, EPHEMERAL)),
    Edit(
        "a sample, stored otherwise",
        {
            "u": f"{TABLE}select k from #big using sample 5",
            "r": f"{TABLE}select count(*) as n from @u as y join @u as z using (k)",
        },
        {"u": f"{VIEW}select k from #big using sample 5"},
    ),
    Edit(
        "what reads it is stored, or not",
        {
            "s": f"{VIEW}select k, random() as a from #t",
            "u": f"{VIEW}select k, a from @s",
            "r": f"{TABLE}select count(*) as n from @u as y join @u as z on y.k = z.k and y.a = z.a",
        },
        {"u": f"{TABLE}select k, a from @s"},
    ),
    Edit(
        "what is stored is not made again",
        {
            "u": f"{TABLE}select k, random() as a from #t",
            "w": f"{TABLE}select k, a from @u",
            "r": f"{TABLE}select count(*) as n from @u as y join @w as z on y.k = z.k and y.a = z.a",
        },
        {"w": f"{TABLE}select k, random() as a from #t"},
    ),
    # -- later runs, and what Jinja makes of names and types
    alone(
        "a branch behind a window",
        f"with c as (select k, row_number() over (order by k) as n from #i {_BRANCH}) select k, n from c",
        f"with c as (select k, row_number() over (order by k) as n from #i) select k, n from c {_BRANCH}",
        INCREMENTAL,
    ),
    alone(
        "a branch behind groups",
        f"select x, max(k) as k, count(*) as n from #i {_BRANCH} group by x",
        f"select * from (select x, max(k) as k, count(*) as n from #i group by x) as z {_BRANCH}",
        INCREMENTAL,
    ),
    Edit(
        "a reference that a filter makes another one",
        {
            "ua": f"{TABLE}select 1 as a",
            "ub": f"{TABLE}select 2 as a",
            "r": f"-- depends_on: @ub\n{TABLE}select a from {{{{ ref('ONE_ua') | replace('_ua', '_ub') }}}}",
        },
        {"ub": f"{TABLE}select 3 as a"},
    ),
    read(
        "a reference in capitals",
        "select 1 as a",
        "select 3 as a",
        "select a from {{ ref('ONE_u') | upper }}",
    ),
    read(
        "types that Jinja reads",
        "select 1 as a",
        "select 1::bigint as a",
        "select '{{ adapter.get_columns_in_relation(ref('ONE_u')) | map(attribute='dtype') | join(',') }}' as t",
    ),
]
ALIKE = [
    alone(
        "FILTER for CASE in a view, of what cannot fail",
        "select sum(case when v like '9%' then x end) as s from #t",
        "select sum(x) filter (where v like '9%') as s from #t",
    ),
    alone(
        "FILTER for CASE in a table, which is built",
        "select sum(case when k = 1 then v::int end) as s from #t where k <> 2 and k <> 4",
        "select sum(v::int) filter (where k = 1) as s from #t where k <> 2 and k <> 4",
        TABLE,
    ),
    alone(
        "De Morgan in a view, of what cannot fail",
        "select k from #t where not (v like '9%' or x > 1)",
        "select k from #t where not v like '9%' and not x > 1",
    ),
    alone(
        "AND in another order in a view, of what cannot fail",
        "select k from #t where v like '9%' and x > 1",
        "select k from #t where x > 1 and v like '9%'",
    ),
    types("COALESCE of columns", "coalesce(ti, coalesce(si, x))", "coalesce(ti, si, x)"),
    types("CASE for COALESCE", "case when ti is not null then ti else 2 end", "coalesce(ti, 2)"),
    read(
        "EXISTS for IN, of numbers",
        "select k from #t where x in (select k from #w)",
        "select k from #t where exists (select 1 from #w as w where w.k = x)",
        "select k from @u",
    ),
    read(
        "COALESCE where NULL is as false",
        "select k, case when coalesce(bi > 1, false) then 1 else 0 end as e from #t",
        "select k, case when bi > 1 then 1 else 0 end as e from #t",
        "select * from @u",
    ),
    keys("the order is no matter: counts", "select m, count(*) as n from (select 1 as m, v from @u) as o group by m"),
    keys("the order is no matter: a macro of one row", "select v, length(upcased(v)) as n from @u"),
    keys("the order is no matter: ranks", "select v, rank() over (order by v) as n from @u"),
    keys("the order is no matter: all of a group", "select v, count(*) over (partition by v) as n from @u"),
    split("whole numbers are the same", "x", "select x, count(*) as n, sum(x) as s from @u group by x"),
    Edit(
        "a table for a view, of what is the same each time",
        {"u": f"{VIEW}select k, x + 1 as a from #t", "r": f"{TABLE}select count(*) as n, sum(a) as s from @u"},
        {"u": f"{TABLE}select k, x + 1 as a from #t"},
    ),
    Edit(
        "a table for a view, beside a column that is another each time",
        {"u": f"{VIEW}select k, random() as a from #t", "r": f"{TABLE}select k from @u"},
        {"u": f"{TABLE}select k, random() as a from #t"},
    ),
    Edit(
        "an ephemeral model for a view, beside a column that is another each time",
        {"u": f"{VIEW}select k, random() as a from #t", "r": f"{TABLE}select k from @u"},
        {"u": f"{EPHEMERAL}select k, random() as a from #t"},
    ),
    read(
        "names that Jinja reads",
        "select 1 as a",
        "select 2 as a",
        "select '{{ adapter.get_columns_in_relation(ref('ONE_u')) | map(attribute='name') | join(',') }}' as t",
    ),
]  # fmt: skip
