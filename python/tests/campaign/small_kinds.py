"""The kinds of small edits: what each writes, before and after.

Whatever is written compiles; whether it can be built, and what comes out, the engine decides.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Final

import sqlglot
import yaml
from small_edits import SmallEdit, Writer
from unpromised_edits import EPHEMERAL, INCREMENTAL, TABLE, VIEW

sys.path.append(str(Path(__file__).parents[1]))  # as pytest does
from generators.unpromised import (
    FALLIBLE,
    SAME_BAG,
    SEES_ORDER,
    TYPED_READERS,
    chosen,
    fallible,
    restructured,
)

# -- volatile values, stored or made anew ---------------------------------------------------------------

VOLATILE: Final = (
    "random()", "uuid()", "gen_random_uuid()::varchar", "chance()", "now()", "current_timestamp",
    "txid_current()", "nextval('raw.numbers')", "current_query()", "(select random())", "random() + k",
    "round(random(), 9)", "case when k > 0 then random() end", "md5(uuid()::varchar)", "chance() * 2",
    "hash(random())", "get_current_timestamp()", "list_value(random(), k)", "max(random()) over ()",
)  # fmt: skip
"""Values that are others each time, or in each transaction."""
STEADY: Final = ("k + 1", "v", "upcased(v)", "hash(k)", "pi()")
"""Their near misses: in a table and in a view they are the same."""

EQUAL: Final = (
    "select count(*) as n from {0} as y join {1} as z on y.k = z.k and y.by_chance is not distinct from z.by_chance",
    "select count(*) filter (where y.by_chance <> z.by_chance) as n from {0} as y join {1} as z using (k)",
    "select bool_and(y.by_chance = z.by_chance) as n from {0} as y, {1} as z where y.k = z.k",
    "with c as (select k, by_chance from {0}) select count(*) as n from c join {1} as d using (k, by_chance)",
    "select count(*) as n from {0} as y where exists (select 1 from {1} as z where z.by_chance = y.by_chance)",
    "select count(distinct by_chance) as n from (from {0} union all from {1})",
)
"""Queries over two relations that see whether values which may be others are."""
OF_ONE: Final = (
    "select count(*) as n from {0} where by_chance::varchar = now()::varchar",
    "select count(*) filter (where by_chance::varchar like '%create%') as n from {0}",
    "select count(*) as n from {0} where by_chance::varchar = txid_current()::varchar",
)
"""Likewise, over one."""


def volatile(rng: random.Random) -> SmallEdit:
    """A model with a volatile value, or above one, is a table, a view or ephemeral; or an expression over it is edited."""
    value = rng.choice(VOLATILE) if rng.random() < 0.85 else rng.choice(STEADY)
    kinds = [TABLE, VIEW, EPHEMERAL]
    s = f"select k, {value} as by_chance from #t"
    if rng.random() < 0.1:
        some = f"(select k * 100 + n as k from #big, range({rng.choice((90, 99))}) as r (n))"
        s = f"select k, k::double as by_chance from {some} using sample {rng.choice((5, 9))} rows"
    over = rng.choice(
        ("select k, by_chance from @s", "select * from @s where k > 1", "select k, max(by_chance) as by_chance from @s group by k",
         "select s.k, s.by_chance from @s as s join #w as w on w.k = s.k", "select distinct k, by_chance from @s",
         "with c as (select * from @s) select k, by_chance from c")
    )  # fmt: skip
    of_s, of_u = rng.choice(kinds), rng.choice(kinds)
    before = {"models/s.sql": of_s + s, "models/u.sql": of_u + over}
    pairs = [("@u", "@u"), ("@s", "@u"), ("@u", "@s"), ("@s", "@s")]
    if rng.random() < 0.4:
        # Two tables that have read it one after the other.
        before["models/one.sql"] = f"{TABLE}select k, by_chance from {rng.choice(('@s', '@u'))}"
        before["models/two.sql"] = (
            f"{rng.choice(kinds)}select k, by_chance from {rng.choice(('@u', '@one'))}"
        )
        pairs = [("@one", "@two"), ("@one", "@u"), ("@two", "@s")]
    query = rng.choice(OF_ONE if rng.random() < 0.15 else EQUAL).format(*rng.choice(pairs))
    reader = rng.choice(kinds)
    if rng.random() < 0.6:
        before["models/r.sql"] = reader + query
        before["tests/t.sql"] = "select * from @r"
    else:
        before["tests/t.sql"] = query
    way = rng.randrange(5)
    after: dict[str, str] = {}
    stored = [p for p in before if p.startswith("models/") and "r.sql" not in p]
    if way < 3:
        path = rng.choice(stored)
        old = next(k for k in kinds if before[path].startswith(k))
        after[path] = rng.choice([k for k in kinds if k != old]) + before[path].removeprefix(old)
    elif way == 3:
        # What is stored, or made elsewhere, is made here again, or the other way about.
        again = of_u + over.replace("@s", f"({s})")
        texts = (before["models/u.sql"], again)
        before["models/u.sql"], after["models/u.sql"] = texts if rng.random() < 0.5 else texts[::-1]
    else:
        wrapped = rng.choice(
            (
                "coalesce({0}, {0})",
                "greatest({0}, {0})",
                "case when {0} = {0} then {0} end",
                "(select {0})",
            )
        )
        after["models/s.sql"] = of_s + s.replace(value, wrapped.format(value), 1)
    return SmallEdit("volatile, stored or not", before, after)


def row_ids(rng: random.Random) -> SmallEdit:
    """A table has row ids, a view of one passes on those of the table below it, if it has any."""
    kinds = [TABLE, VIEW, EPHEMERAL]
    text = rng.choice(
        (
            "select k, v from #big where k % 7 = 3",
            "select k, v from #big",
            "select v, max(k) as k from #big group by v order by v",
        )
    )
    before = {
        "models/s.sql": rng.choice(kinds) + text,
        "models/u.sql": rng.choice(kinds) + rng.choice(("select k from @s", "select * from @s", "select k, rowid as r from @s")),
        "tests/t.sql": rng.choice(("select max(rowid) as n from @u", "select sum(k * rowid) as n from @s", "select count(*) as n from @s where rowid = k",
                                   "select max(r) as n from @u")),
    }  # fmt: skip
    path = rng.choice(("models/s.sql", "models/u.sql"))
    old = next(k for k in kinds if before[path].startswith(k))
    after = {path: rng.choice([k for k in kinds if k != old]) + before[path].removeprefix(old)}
    return SmallEdit("volatile, stored or not", before, after)


def volatile_or_row_ids(rng: random.Random) -> SmallEdit:
    return row_ids(rng) if rng.random() < 0.12 else volatile(rng)


# -- views in other words -------------------------------------------------------------------------------


def views(rng: random.Random) -> SmallEdit | None:
    """A view, or what a view or a test inlines, in other words; what it has may fail if it is evaluated."""
    texts = fallible(rng)
    if texts is None:
        return None
    kind = rng.choice((VIEW, VIEW, VIEW, EPHEMERAL, TABLE))
    before = {"models/u.sql": kind + texts[0]}
    after = {"models/u.sql": kind + texts[1]}
    read = rng.choice(
        (
            "select * from @{0}",
            "select count(*) as n from @{0}",
            "select max(columns(*)) from @{0}",
            "select 1 from (select * from @{0}) as all_of having count(*) > 2",
        )
    )
    reads = "u"
    if rng.random() < 0.5:
        before["models/r.sql"] = rng.choice((VIEW, TABLE)) + rng.choice(
            ("select * from @u", "select columns(*) from @u", "select *, 1 as one from @u")
        )
        reads = "r"
    before["tests/t.sql"] = read.format(reads)
    if kind == EPHEMERAL and reads == "u" and rng.random() < 0.5:
        before["tests/t.sql"] = (
            "select * from @u where k is not null" if " k" in texts[0] else "select * from @u"
        )
    if rng.random() < 0.15:  # the test itself in other words
        before, after = {"models/v.sql": f"{VIEW}select * from #t"}, {}
        before["tests/t.sql"], after["tests/t.sql"] = (s.replace("#t", "@v") for s in texts)
    return SmallEdit("views in other words", before, after)


# -- views evaluated otherwise --------------------------------------------------------------------------


def evaluated_otherwise(rng: random.Random) -> SmallEdit:
    """The same rows; but something has the engine evaluate what a reader of a view does not read, or its filter does."""
    condition, expression = rng.choice(FALLIBLE)
    aggregate = f"select k, max({expression}) as e from #t as t group by k"
    filtered = f"select k, {expression} as e from #t as t where {condition}"
    plain = rng.choice((f"select k, {expression} as e from #t as t", filtered))
    texts = [plain, plain]
    kinds = [VIEW, VIEW]
    way = rng.randrange(10)
    if way == 9:
        sorted_by = rng.choice((" order by e", " order by 2", " order by k", ""))
        texts = [f"select k, {item} as e from #t as t{sorted_by}" for item in ("k", expression)]
    elif way >= 6:
        plain = f"select k, {expression} as e, {condition} as g from #t as t"
        texts = list(guarded_otherwise(rng, f"({plain}) as c" if way == 6 else "@above as c"))
    elif way == 0:
        texts[1] += rng.choice(
            (" order by e", " order by all", " order by k", f" order by {expression}")
        )
    elif way == 1:
        texts[1] = (
            f"with c as {rng.choice(('materialized', 'not materialized', ''))} ({plain}) select k, e from c"
        )
    elif way == 2:
        texts = [aggregate, aggregate.replace("select", "select distinct", 1)]
    elif way == 3:
        texts[1] = (
            f"select k, e from (select * from ({plain}) as s order by {rng.choice(('e', 'k'))}) as o"
        )
    else:
        kinds[1] = TABLE
    before = {"models/u.sql": kinds[0] + texts[0]}
    after = {"models/u.sql": kinds[1] + texts[1]}
    if rng.random() < 0.5:
        before, after = after, before
    if way in (7, 8):
        before["models/above.sql"] = VIEW + plain
    reads = "u"
    if rng.random() < 0.5:
        before["models/r.sql"] = rng.choice((VIEW, VIEW, TABLE)) + rng.choice(
            (
                "select * from @u",
                "select k, e from @u where k > 0",
                "select k, e is null as e from @u",
            )
        )
        reads = "r"
    before["tests/t.sql"] = rng.choice(
        ("select k from @{0} group by k having count(*) > 9", "select k from @{0} where e is null", "select count(*) as n from @{0} having count(*) > 99",
         "select k from @{0} where k is null", "select e from @{0} where e is not null and k > 9")
    ).format(reads)  # fmt: skip
    return SmallEdit("views evaluated otherwise", before, after)


GUARDS: Final = (
    ("g", "not (not g)"),
    ("g and k < 99", "k < 99 and g"),
    ("g", "coalesce(g, false)"),
    ("g and k in (1, 2, 3)", "g and (k = 1 or k = 2 or k = 3)"),
    ("g and k between 1 and 3", "k >= 1 and k <= 3 and g"),
    ("g and e is not null", "e is not null and g"),
    ("g and k < 3", "not (not g or k >= 3)"),
)
"""Conditions that are the same, of which one may take an engine more to ask."""


def guarded_otherwise(rng: random.Random, of: str) -> tuple[str, str]:
    """The same rows of a relation, or fewer, of which an engine may evaluate others."""
    one, other = rng.choice(GUARDS)
    query = f"select k, e from {of} where {{}}"
    return rng.choice(
        (
            (query.format(one), query.format(other)),
            (query.format(one), f"select k, e from (select *, row_number() over (order by k) as r from {of}) as w where {one}"),
            (query.format(one), f"select k, e from (select *, row_number() over (order by k) as r from {of}) as w where {one} and r < 5"),
            (query.format(one), f"select k, e from (select * from {of} order by k limit 9999) as w where {one}"),
            (query.format(one), query.format(f"({one}) and k <> 2")),
            (f"select k, max(case when {one} then e end) as e from {of} group by k", f"select k, max(e) filter (where {one}) as e from {of} group by k"),
        )
    )  # fmt: skip


# -- types of literals ----------------------------------------------------------------------------------


def types_of_literals(rng: random.Random) -> SmallEdit | None:
    """A constant or a branch of another type, or of the same one put together otherwise; a reader tells them apart."""
    try:
        old = sqlglot.parse_one(chosen(rng), dialect="duckdb").sql("duckdb")
        new = restructured(rng, old)
    except sqlglot.ParseError:
        return None
    if old == new:
        return None
    shape = rng.choice(
        (
            "select k, {e} as e from #t", "select {e} as e from #t union all select ti from #t",
            "select ti as e from #t union all select {e} from #t", "select max({e}) as e from #t group by k",
            "with c as (select k, {e} as e from #t) select k, e from c", "select k, {e} as e from #t where k < 3",
            "select y.e from (select {e} as e from #t) as y", "select {e} as e from #t intersect select k from #w",
            "select x.e from #t, lateral (select {e} as e) as x", "select {e} as e from #t except all select 300",
            "select e from #t, unnest([{e}, 2]) as z (e)", "select k, first_value({e}) over (order by k) as e from #t",
            "select distinct {e} as e from #t", "select k, {e} as e from #t order by k limit 2",
        )
    )  # fmt: skip
    kind = rng.choice((TABLE, TABLE, VIEW, EPHEMERAL))
    texts = [kind + shape.format(e=e) for e in (old, new)]
    rng.shuffle(texts)
    reader = rng.choice(TYPED_READERS)
    if "ONE_u" in reader:
        reader = f"-- depends_on: @u\n{reader}"
    before = {"models/u.sql": texts[0]}
    if rng.random() < 0.4:
        before["models/r.sql"] = rng.choice((TABLE, VIEW)) + reader
        before["tests/t.sql"] = "select * from @r"
    else:
        before["tests/t.sql"] = reader
    return SmallEdit("types of literals", before, {"models/u.sql": texts[1]})


# -- what sees an order ---------------------------------------------------------------------------------


def order_seen(rng: random.Random) -> SmallEdit:
    """The same rows in another order, perhaps, and what reads them in the order that they have."""
    texts = list(rng.choice(SAME_BAG))
    rng.shuffle(texts)
    kind = rng.choice((TABLE, VIEW, EPHEMERAL))
    reader = rng.choice(SEES_ORDER).format(c=rng.choice("vm"))
    before = {"models/u.sql": kind + texts[0]}
    if rng.random() < 0.4:
        before["models/w.sql"] = rng.choice((TABLE, VIEW, EPHEMERAL)) + rng.choice(
            (
                "select v, m from @u",
                "select * from @u where m < 4",
                "select m, v from @u where v is not null",
            )
        )
        reader = reader.replace("@u", "@w")
    if rng.random() < 0.6:
        before["models/r.sql"] = rng.choice((TABLE, VIEW)) + reader
        reader = "select * from @r"
    before["tests/t.sql"] = reader
    after = {"models/u.sql": kind + texts[1]}
    if rng.random() < 0.15:
        after = {
            "models/u.sql": rng.choice([k for k in (TABLE, VIEW, EPHEMERAL) if k != kind])
            + texts[0]
        }
    return SmallEdit("order seen by a reader", before, after)


# -- hooks ----------------------------------------------------------------------------------------------

WRITES: Final = (
    "insert into @log values (2, 'b')", "update @log set n = n + 1", "delete from @log where n = 1",
    "insert into @log select count(*), 'it''s' from {{ this }}", "update @log set s = 'x; y'",
    "delete from @log where not (n in (1, 3))", "truncate @log", "delete from @log where s = ';'",
    "insert into @log select k, v from {{ this }} where v <> ''''", "update @log set s = replace(s, '\\', '/')",
    "create or replace table main_lab.ONE_x as select 1 as n",
)  # fmt: skip
HIDES: Final = (
    ("select 'a; {w}; b'", False), ("select 'it''s', '{w}'", False), ('select 1 as "it\'s"; {w}', True), ('select 1 as "a;b"; {w}', True),
    ("select replace('a\\b', '\\', '/'); {w}", True), ("select replace('a', '\\', '{w}')", False), ("select $$it's$$; {w}", True), ("select $$; {w};$$", False),
    ("select $x$ ' $$ $x$; {w}", True), ("select E'it\\'s'; {w}", True), ("-- it's\n{w}", True), ("-- {w}\nselect 1", False), ("/* it's ; */ {w}", True),
    ("/* {w} */ select 1", False), ("/* a /* b */ ' */ {w}", True), ("select ''''; {w}", True), ("select '\"'; {w}; select '\"'", True), ('select 1 as "a""b;\'"; {w}', True),
    ("{w}", True), ("{w};", True), (";{w}", True), ("select 1; {w}; select 2", True), ("select E'\\\\'; {w}", True), ("select 'a' -- '\n; {w}", True), ("select '$$'; {w}; select '$$'", True),
    ("select 1 as \"$$\"; {w}; select 2 as \"$$\"", True), ("with c as (select 1) select * from c; {w}", True), ("select '--'; {w}", True), ("select '/*'; {w}; select '*/'", True),
)  # fmt: skip
"""Texts in which a statement stands, and whether it is one there."""


def hooks(rng: random.Random) -> SmallEdit:
    """A hook whose statement stands beside quotes, or in them; another statement, or another place."""
    written = rng.choice(WRITES)
    hide, _ = rng.choice(HIDES)
    way = rng.randrange(4)
    inner = written.replace("'", "''") if "'{w}'" in hide or "; {w}; b'" in hide else written
    if "$$; {w}" in hide or "-- {w}" in hide or "/* {w}" in hide:
        inner = written.split("'")[0] if "'" in written else written
    old = hide.replace("{w}", inner)
    if way == 0:
        other = rng.choice([w for w in WRITES if w != written])
        new = hide.replace("{w}", other.replace("'", "''") if inner != written else other)
    elif way == 1:
        new = rng.choice(
            [h for h, _ in HIDES if h != hide and "'{w}'" not in h and "{w}; b'" not in h]
        ).replace("{w}", inner)
    elif way == 2:
        new = hide.replace("{w}", "select 1")
    else:
        new = (
            old.replace("n = 1", "n = 3")
            .replace("n + 1", "n + 2")
            .replace("(2, 'b')", "(2, 'c')")
            .replace("(1, 3)", "(1, 3, null)")
            .replace("x; y", "x; z")
            .replace("'/'", "'|'")
            .replace("<> ''''", "<> ''")
            .replace("count(*)", "count(*) + 1")
        )
    texts = [old, new]
    rng.shuffle(texts)
    place = rng.choice(("post_hook", "post_hook", "pre_hook"))

    def properties(text: str) -> str:
        named = text.replace("@log", '{{ ref("ONE_log") }}')
        return yaml.safe_dump({"models": [{"name": "ONE_u", "config": {place: [named]}}]})

    # What follows is built after the hook has run.
    before = {
        "models/log.sql": f"{TABLE}select 1 as n, 'a' as s union all select 3, ';'",
        "models/u.sql": f"-- depends_on: @log\n{rng.choice((TABLE, VIEW))}select k, v from #t",
        "models/r.sql": f"-- depends_on: @u\n{rng.choice((TABLE, VIEW))}select n, s from @log",
        "models/u.yml": properties(texts[0]),
        "tests/t.sql": rng.choice(
            (
                "select * from @r",
                "select count(*) as n, max(s) as s from @r",
                "select sum(n) as n from @log",
            )
        ),
    }
    if "@log" in before["tests/t.sql"]:
        before["tests/t.sql"] = f"-- depends_on: @u\n{before['tests/t.sql']}"
    return SmallEdit("hooks with quotes", before, {"models/u.yml": properties(texts[1])})


# -- Jinja ----------------------------------------------------------------------------------------------

NAMED: Final = (
    "{{ ref('ONE_ua') | replace('_ua', '_ub') }}", "{{ ref('ONE_ub') }}", "{{ ref('ONE_UB' | lower) }}", "{{ (ref('ONE_ua') | string)[:-2] ~ 'b\"' }}",
    "{{ ref('ONE_ua').schema }}.{{ 'ONE_ub' }}", "{{ ref('ONE_ub') | upper }}", "{{ ref(['ONE_ua', 'ONE_ub'] | last) }}", "{{ ref('ONE_u' ~ 'b') }}",
    "{{ ref('ONE_ua') | string | replace('ua', 'ub') }}", "{% set names = ['ONE_ua', 'ONE_ub'] %}{{ ref(names[1]) }}", "{{ ref(('ONE_ua,ONE_ub').split(',')[-1]) }}",
    "{{ ref('ONE_ua').schema ~ '.' ~ ref('ONE_ua').identifier | replace('a', 'b') }}", "{{ ref('ONE_ua') | string | reverse | replace('\"au', '\"bu') | reverse }}",
    "{{ ref('ONE_ua').include(database=false) | replace('_ua', '_ub') }}", "{{ (ref('ONE_ua') | string).rpartition('ua')[0] }}ub\"",
    "{{ ref('ONE_ua') | lower | replace('_ua', '_ub') | upper }}", "{{ api.Relation.create(schema=target.schema, identifier='ONE_ub') }}",
)  # fmt: skip
"""Ways to name the model `ub`, most of them by way of another."""

LOOKED: Final = (
    "map(attribute='dtype') | join(',')", "map(attribute='name') | join(',')", "map(attribute='data_type') | list | length", "length",
    "selectattr('dtype', 'equalto', 'INTEGER') | list | length", "map(attribute='column') | first", "map(attribute='name') | map('upper') | sort | join('')",
    "rejectattr('name', 'equalto', 'a') | list | length", "groupby('dtype') | map('first') | join(',')", "map(attribute='numeric_scale') | list", "list | string | length",
    "map(attribute='dtype') | unique | list | length", "first", "last", "map('string') | join(',')", "map(attribute='quoted') | join(',') | replace('\"', '')",
)  # fmt: skip

BRANCH: Final = "{% if is_incremental() %} where k > (select max(k) from {{ this }}) {% endif %}"
INCREMENTALS: Final = (
    "select k, x from #i {b}", "select * from (select k, x from #i {b}) as z", "select * from (select k, x from #i) as z {b}",
    "select k, x, row_number() over (order by k) as x2 from #i {b}", "select * from (select k, x, row_number() over (order by k) as x2 from #i) as z {b}",
    "with c as (select k, x from #i {b}) select max(k) as k, x from c group by x", "with c as (select k, x from #i) select * from (select max(k) as k, x from c group by x) as g {b}",
    "select k, sum(x) over () as x from #i {b}", "select * from (select k, sum(x) over () as x from #i) as z {b}", "select k, x from #i {b} order by k limit 2",
    "select * from (select k, x from #i order by k limit 2) as z {b}", "select k, x from #i {b} union all select 0, 0", "select * from (select k, x from #i union all select 0, 0) as z {b}",
    "select distinct on (x) k, x from #i {b} order by x, k", "select * from (select distinct on (x) k, x from #i order by x, k) as z {b}",
)  # fmt: skip
"""An incremental model's query, with what later runs ask in one place or another."""
BRANCHES: Final = (
    BRANCH, BRANCH.replace("is_incremental()", "not is_incremental()").replace("> (select max(k) from {{ this }})", "< 3"), BRANCH.replace("max(k)", "min(k)"),
    "{% if not is_incremental() %} where true {% else %} where k > (select max(k) from {{ this }}) {% endif %}", "{{ 'where k > (select max(k) from ' ~ this ~ ')' if is_incremental() }}",
    "where k > {% if is_incremental() %}(select max(k) from {{ this }}){% else %}-1{% endif %}", BRANCH.replace("k > ", "k >= "), BRANCH.replace("{{ this }}", "{{ this | string | replace('a', 'a') }}"),
    BRANCH.replace("{{ this }}", "{{ this | upper }}"), BRANCH.replace("{{ this }}", "{{ this.include(database=false) }}"), "",
)  # fmt: skip

PLAIN: Final = (
    ("{{ 'ab' | upper }}", "{{ 'ab' | lower }}"), ("{{ [3, 1, 2] | first }}", "{{ [3, 1, 2] | sort | first }}"), ("{{ 'abc'[1:] }}", "{{ 'abc'[:1] }}"),
    ("{{ '1,2' | replace(',', '') }}", "{{ '1,2' | replace(',', '0') }}"), ("{{ [1, 2] | join('0') }}", "{{ [1, 2] | join('') }}"), ("{{ model.name | length }}", "{{ this.identifier | length }}"),
    ("{{ '7' | int + 1 }}", "{{ '7' ~ 1 }}"), ("{{ none | default(4, true) }}", "{{ 0 | default(4) }}"), ("{{ target.name | length }}", "{{ target.schema | length }}"),
    ("{% for n in [1, 2] %}{{ loop.index }}{% endfor %}", "{% for n in [1, 2] %}{{ loop.index0 }}{% endfor %}"), ("{{ 5 // 2 }}", "{{ 5 / 2 }}"), ("{{ 2.5 | round | int }}", "{{ 2.5 | int }}"),
    ("{{ graph.nodes | length > 3 }}", "{{ graph.nodes | length > 999999 }}"),
)  # fmt: skip


def jinja(rng: random.Random) -> SmallEdit:
    """What a filter, a slice or a branch makes of a name, of types or of a text; what it stands on is edited, or it."""
    way = rng.randrange(4)
    kind = rng.choice((TABLE, VIEW))
    if way == 0:
        forms = rng.sample(NAMED, 2)
        before = {
            "models/ua.sql": f"{TABLE}select 1 as a", "models/ub.sql": f"{TABLE}select 2 as a",
            "models/r.sql": f"-- depends_on: @ua @ub\n{kind}select a from {forms[0]}",
            "tests/t.sql": "select * from @r",
        }  # fmt: skip
        after = rng.choice(
            (
                {"models/ub.sql": f"{TABLE}select 3 as a"}, {"models/ua.sql": f"{TABLE}select 3 as a"}, {"models/ub.sql": f"{TABLE}select 2::bigint as a, 1 as b"},
                {"models/r.sql": f"-- depends_on: @ua @ub\n{kind}select a from {forms[1]}"},
                {"models/r.sql": f"-- depends_on: @ua @ub\n{kind}select a from {{{{ ref('ONE_ua') }}}}"},
            )
        )  # fmt: skip
    elif way == 1:
        filters = rng.sample(LOOKED, 2)
        text = (
            f"{kind}select '{{{{ adapter.get_columns_in_relation(ref('ONE_u')) | FILTER }}}}' as t"
        )
        columns = rng.sample(
            (
                "1 as a",
                "1::bigint as a",
                "'x' as b",
                "1.5 as a",
                "2 as a",
                "1 as b",
                "1::decimal(9, 3) as a",
                "'y'::varchar(3) as b, 1 as c",
            ),
            2,
        )
        before = {
            "models/u.sql": f"{rng.choice((TABLE, VIEW))}select {columns[0]}",
            "models/r.sql": text.replace("FILTER", filters[0]),
            "tests/t.sql": "select * from @r",
        }
        after = (
            {"models/u.sql": f"{TABLE}select {columns[1]}"}
            if rng.random() < 0.7
            else {"models/r.sql": text.replace("FILTER", filters[1])}
        )
    elif way == 2:
        one = rng.randrange(len(INCREMENTALS))
        two = one ^ 1 if rng.random() < 0.5 and one ^ 1 < len(INCREMENTALS) else one
        first = rng.choice(BRANCHES)
        second = first if two != one else rng.choice(BRANCHES)
        before = {
            "models/u.sql": INCREMENTAL + INCREMENTALS[one].format(b=first),
            "tests/t.sql": rng.choice(
                ("select * from @u", "select count(*) as n from @u", "select max(x) as n from @u")
            ),
        }
        after = {"models/u.sql": INCREMENTAL + INCREMENTALS[two].format(b=second)}
    else:
        old, new = rng.choice(PLAIN)
        before = {"models/u.sql": f"{kind}select '{old}' as a", "tests/t.sql": "select * from @u"}
        after = {"models/u.sql": f"{kind}select '{new}' as a"}
    return SmallEdit("Jinja filters", before, after)


# -- seeds ----------------------------------------------------------------------------------------------

CELLS: Final = (
    "1", "2", "10", "007", "1.5", "2.50", "a", "b", "it's", '"a"', '""', "", "", '"a,b"', '"a ""b"" c"', "'a'", "'a,b'", " a", "a ", '" a "', "\\", 'a\\"b', '"a\\""', "NULL", "null", "None", "nan",
    "true", "false", "yes", "2024-01-01", "2024-01-01 10:00:00", "01/02/2024", "1e3", "-0", "0.0", "-0.0", "+1", "1,000", '"1,000"', '"x\ny"', "#a", "a;b", "a|b", "é", "'", '"it\'s"', "\\N", "1_000", "0x1F", "10:00", "€", "\t", "$1",
)  # fmt: skip
GOOD: Final = tuple(c for c in CELLS if "," not in c or c.startswith('"'))


def seed_text(rng: random.Random, cells: list[list[str]], end: str, layout: int) -> str:
    lines = ["k,s,z", *(",".join(row) for row in cells)]
    text = end.join(lines)
    return text if layout == 3 else text + end


def seeds(rng: random.Random) -> SmallEdit:
    """A seed's file, with quotes, escapes, nothing, blank lines and white space that a loader may read otherwise."""
    size = rng.randrange(2, 6)
    # Few strange cells in a file: of many, no loader reads it.
    usual = rng.choice(
        (
            ("1", "2", "10"),
            ("a", "b", "c"),
            ("1.5", "2.50"),
            ("2024-01-01", "2024-02-29"),
            ("true", "false"),
        )
    )
    cell = lambda: rng.choice(GOOD) if rng.random() < 0.2 else rng.choice(usual)  # noqa: E731
    rows = [[str(i + 1), cell(), cell()] for i in range(size)]
    after_rows = [list(row) for row in rows]
    end = rng.choice(("\n", "\n", "\n", "\r\n"))
    way = rng.randrange(8)
    row, column = rng.randrange(size), rng.choice((1, 1, 2, 2, 0))
    old = rows[row][column]
    end_after = end
    if way == 0:
        after_rows[row][column] = rng.choice(GOOD)
    elif way == 1:
        after_rows[row][column] = old.strip('"') if old.startswith('"') else f'"{old}"'
    elif way == 2:
        rows[row][column], after_rows[row][column] = rng.choice(
            (
                ("", '""'),
                ('""', ""),
                ("NULL", ""),
                (" ", ""),
                ('" "', '""'),
                ("''", ""),
                ("null", "NULL"),
            )
        )
    elif way == 3:
        after_rows[row][column] = rng.choice((f" {old}", f"{old} ", f"\t{old}"))
    elif way == 4:
        after_rows.insert(
            rng.randrange(size + 1), rng.choice(([""], [" "], ["#"], [",,"], ['""', "", ""], ["9"]))
        )
    elif way == 5:
        after_rows.append([str(size + 1), rng.choice(GOOD), rng.choice(GOOD)])
    elif way == 6:
        rng.shuffle(after_rows)
    else:
        end_after = "\r\n" if end == "\n" else "\n"
    texts = [seed_text(rng, rows, end, 0), seed_text(rng, after_rows, end_after, rng.randrange(4))]
    if rng.random() < 0.08:
        texts[1] = "\ufeff" + texts[1]
    if rng.random() < 0.5:
        texts.reverse()
    before = {"seeds/s.csv": texts[0]}
    if rng.random() < 0.25:
        types = rng.choice(
            ({"s": "varchar"}, {"z": "varchar", "s": "varchar"}, {"k": "bigint"}, {"z": "double"})
        )
        before["seeds/s.yml"] = yaml.safe_dump(
            {
                "seeds": [
                    {
                        "name": "ONE_s",
                        "config": {"column_types": types, "quote_columns": rng.random() < 0.3},
                    }
                ]
            }
        )
    reader = rng.choice(
        ("select * from @s", "select k, s::varchar as s, typeof(s) as t from @s", "select count(*) as n, count(z) as z from @s", "select typeof(z) as t, z from @s",
         "select k, length(s::varchar) as n from @s", "select max(z) as z from @s", "select s from @s where s is null", "select k from @s", "select list(k)::varchar as k from @s")
    )  # fmt: skip
    if rng.random() < 0.5:
        before["models/r.sql"] = rng.choice((TABLE, VIEW)) + reader
        reader = "select * from @r"
    before["tests/t.sql"] = reader
    return SmallEdit("seeds loaded by the adapter", before, {"seeds/s.csv": texts[1]})


WRITERS: Final[dict[str, Writer]] = {
    "volatile, stored or not": volatile_or_row_ids,
    "views in other words": views,
    "views evaluated otherwise": evaluated_otherwise,
    "types of literals": types_of_literals,
    "order seen by a reader": order_seen,
    "hooks with quotes": hooks,
    "Jinja filters": jinja,
    "seeds loaded by the adapter": seeds,
}
"""Each kind by the name that the report has."""
