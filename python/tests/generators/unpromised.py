"""Queries, and the same in other words, that rest on what an engine does and SQL does not define.

They read ``#t``, ``#w`` and ``#big``, tables that their user has: with columns as in `schemas.OF_PAIRS`.
"""

from __future__ import annotations

import random
from typing import Any, Final

import sqlglot
from generators.rewordings import REWORDINGS
from sqlglot import exp

# -- what may fail ----------------------------------------------------------------------------------------

FALLIBLE: Final = (
    ("v like '9%'", "v::int"), ("x > 1", "ln(x - 1)"), ("x < 3", "sqrt(2 - x)"), ("k <> 1", "(ti * ti)"),
    ("p", "case when p then 1 else error('no')::int end"), ("k < 3", "(k * 40)::tinyint"),
    ("v in ('9', '91')", "cast(v as decimal(4, 1))"), ("k = 1", "(select y from #w as w where w.k <= t.k)"),
    ("d is null", "(d + interval (k * 300000) year)"), ("v = '9'", "(v || '')::json ->> 0"),
    ("k < 4", "[1, 2, 3][k] + (300 - k * 100)::utinyint"), ("x >= 2", "strptime(case when x >= 2 then '2020' else v end, '%Y')"),
    ("bi is not null", "bi"), ("k > 1", "(bi + 9223372036854775805)"), ("q", "upcased(v)"),
)  # fmt: skip
"""Conditions, and expressions that fail of some rows: of none that meet the condition, most of them."""

SHAPES_THAT_TELL: Final = (
    "select k, max(case when {g} then {e} end) as e from #t as t group by k",
    "select max(case when {g} then {e} end) as e, count(*) as n from #t as t",
    "select min({e}) filter (where {g}) as e from #t as t",
    "select k from #t as t where {g} and {e} is not null",
    "select k from #t as t where not ({g}) or {e} is null",
    "select k from #t as t where t.k in (select w.k from #w as w where w.k < 3) and {g} and {e} is not null",
    "select k, count(*) filter (where {g} and {e} is not null) as e from #t as t group by k",
    "select max(case when not ({g}) then null else {e} end) as e from #t as t",
    "select k from #t as t where (not ({g}) or {e} is not null) and {c}",
    "select k, max({e}) filter (where {g} and {c}) as e from #t as t group by k",
)  # fmt: skip
"""Queries of a condition, an expression that may fail, and another condition, of which DuckDB shows it soonest."""
SHAPES: Final = (
    "select k, case when {g} then {e} end as e from #t as t",
    "select k, case when not ({g}) then null else {e} end as e from #t as t",
    "select count(case when {g} then {e} end) as e from #t as t",
    "select k, {e} as e from #t as t where {g} and {c}",
    "select k, {e} as e from #t as t where {g} or {c}",
    "select t.k, {e} as e from #t as t inner join #w as w on t.k = w.k where {g}",
    "select t.k, w.y from #t as t inner join #w as w on t.k = w.k and {g} where {e} is not null",
    "select t.k, w.y from #t as t left join #w as w on t.k = w.k and {e} is not null where {g}",
    "select k, coalesce(case when {g} then {e} end, null) as e from #t as t",
    "select k, case when {g} then {e} when {c} then null else null end as e from #t as t",
    "select k, max({e}) over (partition by k, x) as e from #t as t where {g}",
    "select distinct k, {e} as e from #t as t where {g} and {c}",
    "select k, {e} as e from #t as t where {g} union all select k, null as e from #t as t where {c}",
    "select k, max({e}) as e from #t as t where {g} group by k having max({e}) is not null and {c}",
    "select k from #t as t where case when {g} then {e} is not null else {c} end",
    "with c as (select * from #t where {c}) select k, {e} as e from c as t where {g}",
)  # fmt: skip
"""Other such queries."""
CONDITIONS: Final = (
    "k > 0",
    "k > 2",
    "k between 1 and 3",
    "k in (1, 2)",
    "not (k = 2)",
    "coalesce(k, 0) < 4",
    "k < 3 or k = 4",
)


def turned(tree: Any) -> Any:
    """The sides of each AND and OR the other way round."""
    made = False
    for node in list(tree.find_all(exp.And, exp.Or)):
        if node.root() is tree:
            one, two = node.this.copy(), node.expression.copy()
            node.replace(type(node)(this=exp.paren(two), expression=exp.paren(one)))
            made = True
    return tree if made else None


IN_WORDS: Final = {**REWORDINGS, "AND and OR turned": turned, "turned, too": turned}


TELLING: Final = (
    "FILTER for CASE", "CASE for FILTER", "AND and OR turned", "De Morgan", "turned, too",
)  # fmt: skip
"""Those after which DuckDB evaluates an expression of other rows."""


def fallible(rng: random.Random) -> tuple[str, str] | None:
    """A query that has what may fail, and the same in other words."""
    condition, expression = rng.choice(FALLIBLE)
    if rng.random() < 0.2:
        condition = rng.choice(CONDITIONS)
    shape = rng.choice(SHAPES_THAT_TELL if rng.random() < 0.5 else SHAPES)
    return reworded(rng, shape.format(g=condition, e=expression, c=rng.choice(CONDITIONS)))


def reworded(rng: random.Random, text: str) -> tuple[str, str] | None:
    """A query as sqlglot writes it, and in other words."""
    # A source is a name while it is reworded.
    tree = sqlglot.parse_one(text.replace("#", "raw_"), dialect="duckdb")
    before = tree.sql("duckdb")
    names = rng.sample(list(IN_WORDS), len(IN_WORDS))
    if rng.random() < 0.7:
        names.sort(key=lambda name: name not in TELLING)
    for name in names:
        made = IN_WORDS[name](tree.copy())
        if made is not None and made.sql("duckdb") != before:
            if rng.random() < 0.3:
                more = next(
                    (m for n in names if n != name and (m := IN_WORDS[n](made.copy()))), None
                )
                made = more or made
            texts = [s.replace("raw_", "#") for s in (before, made.sql("duckdb"))]
            rng.shuffle(texts)
            return texts[0], texts[1]
    return None


# -- types of literals ----------------------------------------------------------------------------------

COLUMNS: Final = (
    "ti",
    "si",
    "x",
    "bi",
    "f",
    "k",
    "x::decimal(4, 1)",
    "d",
    "v",
    "p",
    "iv",
    "ti::utinyint",
    "bi::hugeint",
    "f::float",
    "d::timestamp",
    "null",
)
LITERALS: Final = (
    "2", "0", "300", "70000", "3000000000", "1.0", "2.50", "1e2", "'7'", "'2020-01-01'", "true", "null",
    "-1", "date '2024-01-01'", "1::bigint", "2::tinyint", "99999999999999999999", "interval 1 day",
)  # fmt: skip
SPELLED: Final = (
    ("2", "2.0"), ("2", "(1 + 1)"), ("2", "2::int"), ("2", "+2"), ("2", "'2'"), ("0", "-0"), ("1.0", "1.00"),
    ("1e2", "100"), ("300", "300::smallint"), ("2.50", "2.5"), ("1.0", "1"), ("true", "1"), ("null", "null::int"),
    ("2", "(select 2)"), ("70000", "7e4"), ("2", "0x2"), ("2", "2::tinyint"), ("'7'", "'7'::varchar"),
    ("0", "null"), ("2", "3"), ("2", "200"), ("300", "30000"), ("70000", "3000000000"), ("1.0", "10.0"),
)  # fmt: skip


def chosen(rng: random.Random, depth: int = 2) -> str:
    """An expression that is put together of columns and constants of many types."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(COLUMNS) if rng.random() < 0.45 else rng.choice(LITERALS)
    of = lambda: chosen(rng, depth - 1)  # noqa: E731
    condition = rng.choice(("p", "k > 1", "q", "x = 2", "ti is null"))
    return rng.choice(
        (
            f"coalesce({of()}, {of()})", f"coalesce({of()}, {of()}, {of()})", f"ifnull({of()}, {of()})",
            f"case when {condition} then {of()} else {of()} end", f"case when {condition} then {of()} end",
            f"case when {condition} then {of()} when {rng.choice(('p', 'k > 2'))} then {of()} else {of()} end",
            f"greatest({of()}, {of()})", f"nullif({of()}, {of()})", f"case k when 1 then {of()} else {of()} end",
            f"if({condition}, {of()}, {of()})", f"least({of()}, {of()}, {of()})", f"({of()}) + ({of()})",
            f"[{of()}, {of()}][1]", f"(select {of()})", f"({of()}) * ({of()})", f"list_value({of()}, {of()})[2]",
        )
    )  # fmt: skip


def restructured(rng: random.Random, expression: str) -> str:
    """An expression put together otherwise: nested, flattened, or a constant written otherwise."""
    tree = sqlglot.parse_one(expression, dialect="duckdb")
    way = rng.randrange(4)
    calls = [c for c in tree.find_all(exp.Coalesce) if c.expressions]
    if way == 0 and calls:
        call = rng.choice(calls)
        parts = [call.this, *call.expressions]
        nested = [p for p in parts[1:] if isinstance(p, exp.Coalesce)]
        if nested:
            flat = [q for p in parts for q in ([p.this, *p.expressions] if p in nested else [p])]
            made = exp.Coalesce(this=flat[0].copy(), expressions=[q.copy() for q in flat[1:]])
        elif len(parts) > 2:
            inner = exp.Coalesce(this=parts[1].copy(), expressions=[q.copy() for q in parts[2:]])
            made = exp.Coalesce(this=parts[0].copy(), expressions=[inner])
        else:
            made = exp.Coalesce(this=parts[0].copy(), expressions=[q.copy() for q in parts[1:] * 2])
        text: str = made.sql("duckdb") if call is tree else call.replace(made).root().sql("duckdb")
        return text
    if way == 1:
        wrapped = rng.choice(
            (
                "coalesce({0}, null)",
                "case when true then {0} end",
                "coalesce({0}, {0})",
                "({0})",
                "case when true then {0} else {0} end",
                "(select {0})",
                "coalesce({0}, 0)",
                "if(true, {0}, null)",
            )
        )
        return wrapped.format(expression)
    pairs = [p for p in SPELLED for p in (p, p[::-1])]
    literals = list(tree.find_all(exp.Literal, exp.Boolean, exp.Null))
    rng.shuffle(literals)
    for literal in literals:
        others = [new for old, new in pairs if old == literal.sql("duckdb")]
        if others:
            new = sqlglot.parse_one(rng.choice(others), dialect="duckdb")
            if literal is tree:
                return new.sql("duckdb")
            literal.replace(new)
            return str(tree.sql("duckdb"))
    for reword in rng.sample(list(REWORDINGS.values()), len(REWORDINGS)):
        made = reword(sqlglot.parse_one(f"select {expression} as e", dialect="duckdb"))
        if made is not None:
            return str(made.expressions[0].unalias().sql("duckdb"))
    return expression


TYPED_READERS: Final = (
    "select typeof(e) as t from @u", "select max(e / 2)::varchar as t from @u", "select sum(e)::varchar as t from @u",
    "select max(e) * 100 as t from @u", "select max(e + e)::varchar as t from @u", "select e::varchar as t from @u",
    "select count(*) as t from (select e from @u union all select 0.5) as both_of where typeof(e) = 'DOUBLE'",
    "select max(e // 2)::varchar as t from @u", "select typeof(sum(e)) as t from @u", "select typeof(coalesce(e, null)) as t from @u",
    "select data_type as t from information_schema.columns where table_name = 'ONE_u' and column_name = 'e'",
    "select [e, 1]::varchar as t from @u", "select to_json(struct_pack(e := e))::varchar as t from @u", "select hash(e) as t from @u",
    "select sum(length(e::varchar)) as t from @u", "select max(column_type) as t from (describe @u)",
    "select e as t from @u", "select * from @u",
)  # fmt: skip
"""Queries that see the type of ``e`` in ``@u``, by its name, its values, or what is computed with it."""

# -- what sees an order ---------------------------------------------------------------------------------

SEES_ORDER: Final = (
    "select list({c})::varchar as a from @u", "select string_agg({c}::varchar, ',') as a from @u", "select first({c}) as a from @u",
    "select {c} as a from @u limit 3", "select {c} as a, row_number() over () as n from @u", "select any_value({c}) as a from @u",
    "select arg_max({c}, 1) as a from @u", "select {c} as a, lag({c}) over () as n from @u", "select array_agg({c})[1:3]::varchar as a from @u",
    "select distinct on (true) {c} as a from @u", "select last({c}) as a from @u", "select picked({c}) as a from @u",
    "select mode({c}) as a from (select distinct {c} from @u)", "select {c} as a from @u offset 2", "select row_number() over (order by m) as a, {c} from (select *, 1 as m from @u)",
    "select sum({c}::varchar::varchar::double / 3)::varchar as a from (select hash({c})::varchar as {c} from @u)", "select {c} as a from @u qualify row_number() over () < 4",
    "select rank() over (order by {c}) as a, {c} from @u", "select count(*) as a, max({c}) as b from @u", "select array(select {c} from @u)::varchar as a",
    "select {c} as a from (select {c} from @u order by true) limit 2", "select histogram({c})::varchar as a from @u",
)  # fmt: skip
SAME_BAG: Final = (
    ("select v, m from #big group by v, m", "select v, m from #big group by m, v"),
    ("select distinct v, m from #big", "select v, m from #big group by v, m"),
    ("select v, m from #big where k < 900 union all select v, m from #big where k >= 900", "select v, m from #big where k >= 900 union all select v, m from #big where k < 900"),
    ("select v, m from #big order by k", "select v, m from #big order by k desc"),
    ("select v, m from #big order by v", "select v, m from #big order by m, v"),
    ("select b.v, b.m from #big as b join #w as w on w.k = b.m", "select b.v, b.m from #w as w join #big as b on w.k = b.m"),
    ("select v, m from #big", "select v, m from #big order by v, m, k"),
    ("select v, m from (select v, m, row_number() over (partition by v order by k) as n from #big) where n <= 2", "select v, m from #big qualify row_number() over (partition by v order by k) <= 2"),
    ("select v, m from #big where m in (select k from #w)", "select v, m from #big as b where exists (select 1 from #w as w where w.k = b.m)"),
    ("select v, max(m) as m from #big group by v", "select v, max(m) as m from #big group by all"),
    ("select v, m from #big where k > 5 and m > 1", "select v, m from #big where m > 1 and k > 5"),
    ("select v, m from #big union select v, k from #big where k < 9", "select v, k as m from #big where k < 9 union select v, m from #big"),
)  # fmt: skip
