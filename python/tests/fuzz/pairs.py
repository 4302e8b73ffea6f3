"""Pairs of queries that ask one question each: what is the type, the order, NULL or false, evaluated at all?

A grammar seldom writes two queries that differ in nothing but what an engine leaves open. These are
written in pairs, over tables of their own (`generators.unpromised`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Final

import sqlglot
from generators.schemas import NAME_OF_PAIRS
from generators.unpromised import (
    SAME_BAG,
    SEES_ORDER,
    TYPED_READERS,
    chosen,
    fallible,
    restructured,
    reworded,
)

IN_A_VIEW: Final = "may fail, in a view"
"""The kind of which it counts that a query fails: nobody builds it."""

PLACES: Final = {
    "WHERE": "select k from #t as t where {c}",
    "WHERE NOT": "select k from #t as t where not ({c})",
    "HAVING": "select t.k from #t as t group by all having bool_and({c})",
    "ON": "select t.k, w.y from #w as w join #t as t on {c}",
    "ON of a LEFT JOIN": "select t.k, w.y from #t as t left join #w as w on {c} and w.k = t.k",
    "WHEN": "select k, case when {c} then 1 else 2 end as e from #t as t",
    "WHEN of a CASE with a value": "select k, case {b} when {c} then 1 else 2 end as e from #t as t",
    "value of a CASE": "select k, case {c} when true then 1 when false then 2 else 3 end as e from #t as t",
    "FILTER": "select count(*) filter (where {c}) as e from #t as t",
    "SELECT": "select k, {c} as e from #t as t",
    "argument": "select k, coalesce(({c})::varchar, 'none') as e from #t as t",
    "compared": "select k, ({c}) is not distinct from {b} as e from #t as t",
    "IS NULL": "select k from #t as t where ({c}) is null",
    "IS NOT TRUE": "select k from #t as t where ({c}) is not true",
    "QUALIFY": "select k from #t as t qualify {c} and row_number() over (order by k) < 9",
    "ORDER BY": "select k from #t as t order by {c}, k limit 2",
    "GROUP BY": "select count(*) as e from #t as t group by {c}",
    "an aggregate": "select count({c}) as e, bool_or({c}) as o from #t as t",
    "IN": "select k from #t as t where ({c}) in (true, null)",
    "NOT IN": "select k from #t as t where ({c}) not in (false)",
    "IF": "select k, if({c}, 1, 2) as e from #t as t",
    "PARTITION BY": "select k, count(*) over (partition by {c}) as e from #t as t",
    "ELSE": "select k, case when p then true else {c} end as e from #t as t",
    "a lambda": "select k, list_filter([1, 2], lambda i: {c}) as e from #t as t",
    "EXISTS": "select k from #t as t where exists (select 1 from #w as w where w.k = t.k and {c})",
    "NULLIF": "select k, nullif({c}, false) as e from #t as t",
    "a subquery": "select k, (select max(w.y) from #w as w where {c}) as e from #t as t",
    "a list": "select k, [{c}, null] as e from #t as t",
    "DISTINCT": "select distinct {c} as e from #t as t",
    "a branch": "select {c} as e from #t as t union all select p from #t",
}  # fmt: skip
"""Every syntactic place in which a condition can stand."""

ATOMS: Final = (
    "t.p", "t.q", "t.x > 1", "t.bi = t.si", "t.v in ('9', 'b')", "t.x in (select y from #w)", "t.x not in (select k from #w)",
    "t.x between 1 and 2", "t.v like '9%'", "coalesce(t.p, t.q)", "t.ti > t.si", "t.p is null", "t.p = t.q", "t.x <> 2",
    "null::boolean", "t.v is not null", "not t.q", "t.bi > 1", "t.x in (1, null)", "t.d >= '2024-02-01'", "t.ti is not null",
)  # fmt: skip
ALIKE: Final = (
    ("t.bi is not distinct from t.si", "t.bi = t.si or (t.bi is null and t.si is null)"),
    ("t.x in (select y from #w)", "exists (select 1 from #w as o where o.y = t.x)"),
    ("t.x not in (select y from #w)", "not exists (select 1 from #w as o where o.y = t.x)"),
    ("t.bi > 1", "t.bi > 1 and t.bi is not null"),
    ("t.bi > 1", "coalesce(t.bi, 0) > 1"),
    ("t.x = 1 or t.x = 2", "t.x in (1, 2)"),
    ("t.x <> 1 and t.x <> 2", "t.x not in (1, 2)"),
    ("t.x <> 1", "t.x is distinct from 1"),
    ("t.x = any (select k from #w)", "t.x in (select k from #w)"),
    ("t.v like '9%'", "starts_with(t.v, '9')"),
    ("t.x between 1 and 2", "t.x >= 1 and t.x <= 2"),
    ("(t.x, t.k) = (1, 2)", "t.x = 1 and t.k = 2"),
)  # fmt: skip
WRAPPED: Final = (
    "coalesce({0}, false)", "({0}) is true", "({0}) = true", "not not ({0})", "case when {0} then true else false end", "case when {0} then true end",
    "if({0}, true, false)", "({0}) is not false", "nullif({0}, false)", "({0}) or false", "({0}) and true", "({0}) is not distinct from true", "ifnull({0}, false)",
    "({0}) or null", "({0}) in (true)", "({0}) <> false", "({0}) and ({0}) is not null", "case {0} when true then true else false end", "({0})::int = 1",
    "({0}) and ({0})", "not ({0}) is not true", "(select {0})", "coalesce({0}, null)", "case when not ({0}) then false else true end",
)  # fmt: skip
"""A condition in other words, which tell false and NULL apart or do not."""
OTHERWISE: Final = (
    "not ({0})", "({0}) is null", "({0}) is not false", "coalesce({0}, true)", "({0}) is distinct from true",
)  # fmt: skip
"""Another condition, by which each place shows something."""

VOLATILE: Final = (
    "random()",
    "uuid()",
    "gen_random_uuid()",
    "random() * k",
    "now()",
    "nextval('numbers')",
)
ONCE_OR_TWICE: Final = (
    "with c as (select k, {v} as r from #t) select count(*) as e from c as y join c as z on y.k = z.k and y.r = z.r",
    "with c as materialized (select k, {v} as r from #t) select count(*) as e from c as y join c as z on y.k = z.k and y.r = z.r",
    "with c as not materialized (select k, {v} as r from #t) select count(*) as e from c as y join c as z on y.k = z.k and y.r = z.r",
    "with c as (select k, {v} as r from #t), d as (select k, {v} as r from #t) select count(*) as e from c as y join d as z on y.k = z.k and y.r = z.r",
    "select count(*) as e from (select k, {v} as r from #t) as y join (select k, {v} as r from #t) as z on y.k = z.k and y.r = z.r",
    "with c as (select k, {v} as r from #t), d as (select * from c), o as (select * from c) select count(*) as e from d as y join o as z on y.k = z.k and y.r = z.r",
    "select count(*) filter (where r = r) as e from (select k, {v} as r from #t) as y",
    "select count(*) filter (where {v} = {v}) as e from #t",
    "select count(*) filter (where r = s) as e from (select {v} as r, {v} as s, k from #t) as y",
    "select count(*) filter (where r = s) as e from (select r, r as s from (select {v} as r, k from #t) as o) as y",
    "select count(*) filter (where r = s) as e from (select {v} as r, r as s, k from #t) as y",
    "select count(distinct r) as e from (select {v} as r from #t) as y",
    "select count(distinct r) as e from (select (select {v} from #w where k = 1) as r from #t) as y",
    "select count(*) as e from (select k, {v} as r from #t group by all) as y where r = r",
)  # fmt: skip
"""Queries in which a value that is another each time is made once or more often."""


def conditions(rng: random.Random) -> tuple[str, str, str] | None:
    """A condition in other words, in a place: kind, and both queries."""
    parts = rng.sample(ATOMS, 2)
    whole = rng.choice(
        (
            "{0}",
            "{0}",
            "({0}) and ({1})",
            "({0}) or ({1})",
            "not ({0})",
            "case when {0} then {1} else {0} end",
        )
    )
    place = rng.choice(list(PLACES))
    if rng.random() < 0.3:
        texts = list(rng.choice(ALIKE))
        if rng.random() < 0.4:
            texts = [whole.format(text, parts[1]) for text in texts]
    elif rng.random() < 0.6:
        text = rng.choice(OTHERWISE if rng.random() < 0.2 else WRAPPED)
        if rng.random() < 0.5:  # a part, or the whole
            texts = [whole.format(p, parts[1]) for p in (parts[0], text.format(parts[0]))]
        else:
            one = whole.format(*parts)
            texts = [one, text.format(one)]
    else:
        one = PLACES[place].format(
            c=whole.format(*parts), b=rng.choice(("true", "false", "t.p", "null"))
        )
        made = reworded(rng, one)
        return None if made is None else (f"in other words: {place}", *made)
    rng.shuffle(texts)
    b = rng.choice(("true", "false", "t.p", "null"))
    return (f"in other words: {place}", *(PLACES[place].format(c=text, b=b) for text in texts))


def types(rng: random.Random) -> tuple[str, str, str] | None:
    """A constant written otherwise, or what is chosen from put together otherwise."""
    try:
        old = sqlglot.parse_one(chosen(rng), dialect="duckdb").sql("duckdb")
        new = restructured(rng, old)
    except sqlglot.ParseError:
        return None
    shape = rng.choice(
        (
            "select {e} as e from #t",
            "select {e} as e from #t union all select ti from #t",
            "select ti as e from #t union all select {e} from #t",
            "select max({e}) as e from #t group by k",
        )
    )
    reader = rng.choice([r for r in TYPED_READERS if "describe" not in r and "ONE" not in r])
    texts = [reader.replace("@u", f"({shape.format(e=e)}) as u") for e in (old, new)]
    rng.shuffle(texts)
    return "types of literals", texts[0], texts[1]


def order(rng: random.Random) -> tuple[str, str, str] | None:
    """The same rows in another order, below what sees it."""
    reader = rng.choice([r for r in SEES_ORDER if "picked" not in r]).format(c=rng.choice("vm"))
    if rng.random() < 0.7:
        texts = [
            f"select v, m from #big order by {o}"
            for o in rng.sample(("k", "k desc", "m, k", "v, k", "v desc, m, k", "hash(k)"), 2)
        ]
    else:
        texts = list(rng.choice(SAME_BAG))
    rng.shuffle(texts)
    return (
        "order that is seen, of the same rows",
        *(reader.replace("@u", f"({text}) as u") for text in texts),
    )


def failing(rng: random.Random) -> tuple[str, str, str] | None:
    """A query in other words, of which an expression may fail if it is evaluated."""
    made = fallible(rng)
    return None if made is None else (IN_A_VIEW, *made)


def volatile(rng: random.Random) -> tuple[str, str, str] | None:
    """A volatile value that is made once, or more often."""
    value = rng.choice(VOLATILE)
    one, two = rng.sample(ONCE_OR_TWICE, 2)
    return "volatile, once or twice", one.replace("{v}", value), two.replace("{v}", value)


Writer = Callable[[random.Random], tuple[str, str, str] | None]
WRITERS: Final[tuple[Writer, ...]] = (
    conditions,
    conditions,
    conditions,
    types,
    types,
    order,
    failing,
    failing,
    volatile,
)


def pairs(rng: random.Random, wanted: int) -> Iterator[tuple[str, str, str]]:
    """So many pairs: kind, and both queries."""
    done = 0
    while done < wanted:
        pair = rng.choice(WRITERS)(rng)
        if pair is not None and pair[1] != pair[2]:
            done += 1
            kind, *texts = pair
            base, head = (re.sub(r"#(\w+)", lambda m: NAME_OF_PAIRS[m[1]], text) for text in texts)
            yield kind, base, head
