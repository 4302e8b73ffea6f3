"""The query fuzzer itself: it writes what it says, it repeats itself, and it sees a miss."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import fuzz
import pytest
import token_edits
import verdict
from engine import DuckDB, Result
from fuzz import Fuzzer
from pairs import IN_A_VIEW, PLACES, pairs
from verdict import Prints, judge, judge_unbuilt, prints

from dbt_ripple.flow.row_constraints import KnownConstraints

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fuzzer() -> Fuzzer:
    return Fuzzer(7, one_in=5, patience=0.5)


def verdict_of(engine: DuckDB, one: str, other: str, see: Callable[[str], Prints]) -> str:
    base, head = engine.run(one), engine.run(other)
    assert isinstance(base, Result) and isinstance(head, Result)
    return judge(base, head, see(one), see(other), "duckdb").missed


PAIRS = [
    ("select k, v from a", "select k, v + 1 as v from a"),
    ("select k, v from a", "select k, v from a where k = 1"),
    ("select k, v from a", "select k as v, v as k from a"),
    ("select count(*) as n from a", "select count(*) as n from b"),
    ("select first(s) as s from (select * from a order by id)", "select 'x' as s"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_miss_is_seen_and_what_is_right_is_not(fuzzer: Fuzzer, one: str, other: str) -> None:
    assert verdict_of(fuzzer.engine, one, other, lambda sql: prints(sql, "duckdb")) == ""
    blind = prints(one, "duckdb")
    assert verdict_of(fuzzer.engine, one, other, lambda _: blind) != ""
    opaque = Prints("cannot be read")
    assert verdict_of(fuzzer.engine, one, other, lambda _: opaque) == ""


ONCE_MISSED = [
    ("select v + 1 as x, alias.x as y from a", "select v + 2 as x, alias.x as y from a"),
    (
        "select k_1 from (select id as k, k, v as k from a) as t (x)",
        "select k_1 from (select id as k, k, k as k from a) as t (x)",
    ),
    (
        "select min(v) export_state from (values ('a') v)",
        "select min(v) export_state from (values ('b') v)",
    ),
    (
        "select t2.k as v from (values (1)) t1(k) join c t2 using (k) join (a join c t4 on t4.k) on true",
        "select t4.k as v from (values (1)) t1(k) join c t2 using (k) join (a join c t4 on t2.k) on true",
    ),
    (
        "with recursive r (k, x) as (select k, id from a union select 1, 4) from r",
        "with recursive r (k, x) using key (x) as (select k, id from a union select 1, 4) from r",
    ),
    ("select generate_subscripts([1])", "select generate_subscripts([])"),
    ("select 1 as k from a where false", "select arg_min_nulls_last(v, k) as v from a where false"),
    ("select k as k from a", "select bitstring_agg(0, 0, 0) as k from a"),
    ("select weighted_avg(k, v) as x from a", "select k as x from a"),
    ("select d n, * from b", "select *, d n from b"),
    ("select k, (k < 1) K from b", "select k, (k > 1) K from b"),
    ("select s k, * from c, (select s from a)", "select st k, * from c, (select s from a)"),
    ("select * rename (j as v) from c", "select * rename (k as v) from c"),
    ("select *, s K from query_table('a')", "select s K from query_table('a')"),
    ("select {'y': 'B'} as x", "select {'Y': 'B'} as x"),
    (
        "select * from (select * from (select k from a order by id desc) union all select 1 as k) limit 2",
        "select * from (select * from (select k from a order by id asc) union all select 1 as k) limit 2",
    ),
    ("select p from a t1 group by p, rollup (p)", "select p from a t1 group by p, rollup (t1.p)"),
    ("select coalesce(w, 3) as x from b", "select coalesce(w) as x from b"),
    (
        "select n k from b union by name select k from b",
        "select n s from b union by name select k from b",
    ),
    (
        "select k, v from a union all select alias(k) k, v from a",
        "select k, v from a union all select alias(k) v, k from a",
    ),
    (
        "select reverse('01') x, last(k) k from c where null group by 1",
        "select reverse('01') x, last(k) k from c where null group by all",
    ),
    (
        "select v, v from unnest([1]) t (v) group by v, rollup (2)",
        "select v, v from unnest([1]) t (v) group by rollup (2), v",
    ),
    ("select *, id type from json_each('[1, 2]')", "select id type, * from json_each('[1, 2]')"),
    (
        "select unnest([{'x': 'B'}], max_depth := 2), id x from b",
        "select unnest([{'x': 'B'}], max_depth := 2), k x from b",
    ),
    (
        "select x v1 from (select 1 x) group by x, rollup (v1)",
        "select x v1 from (select 1 x) group by x, rollup (x)",
    ),
    (
        "select * rename (w as k) from query_table('b') cross join b join json_tree('[1]') on true",
        "select * rename (value as k) from query_table('b') cross join b join json_tree('[1]') on true",
    ),
    (
        "select struct_update(struct_pack(), x := k) x from a",
        "select struct_update(struct_pack(), X := k) x from a",
    ),
    (
        "from (select q p, id from b) pivot (sum(id) x for p in (true))",
        "from (select q p, id from b) pivot (count(id) x for p in (true))",
    ),
    ("from a asof left join c using (k, v)", "from a asof left join c using (v, k)"),
    (
        "select k s, bit_or(1) K from b group by all having k = 2",
        "select k s, bit_or(1) K from b group by all having s = 2",
    ),
    (
        "select md5(s) x from a natural full join query_table('b')",
        "select md5(a.s) x from a natural full join query_table('b')",
    ),
    (
        "from query_table('b') t1 join c t2 (x, k) on t1.k = t2.k",
        "from query_table('b') t1 join c t2 on t1.k = t2.v",
    ),
    ("select columns(lambda c: c = 'k') from b", "select columns(lambda c: c < 'k') from b"),
    (
        "select row_number() over (partition by k) x, sum(v) over (partition by k order by s) y from a",
        "select row_number() over (partition by k) x, sum(v) over (partition by k order by v) y from a",
    ),
    (
        "select first_value(id) over (partition by k) x, rank() over (order by s) y from a",
        "select first_value(id) over (partition by k) x, rank() over (order by v) y from a",
    ),
    (
        "select *, sum(v) over (order by s desc) x from a qualify row_number() over (partition by k) = 1",
        "select *, sum(v) over (order by s) x from a qualify row_number() over (partition by k) = 1",
    ),
    (
        "select id, lag(id) over (partition by k) x from a order by sum(v) over (partition by k order by s)",
        "select id, lag(id) over (partition by k) x from a order by sum(v) over (partition by k order by v)",
    ),
    (
        "select * rename (type as k) from json_each('[1, 2]') join unnest([3]) t2 (k) on true",
        "select * rename (key as k) from json_each('[1, 2]') join unnest([3]) t2 (k) on true",
    ),
    (
        "with a as (select 1 x) from query_table('a')",
        "with a as (select 2 x) from query_table('a')",
    ),
    (
        "with e as (select 1 x) select k, (from query('select max(x) from E')) x from b",
        "with e as (select 2 x) select k, (from query('select max(x) from E')) x from b",
    ),
    (
        "with e as (select 1 x where true) select * from b, query_table('e' || '')",
        "with e as (select 1 x where false) select * from b, query_table('e' || '')",
    ),
    (
        "select (interval '2 months') x group by grouping sets ((), ((interval '2 months')))",
        "select (interval '2 months') x group by grouping sets ((), ((interval '2 MONTHS')))",
    ),
    (
        "select len(s) x, s from a group by grouping sets ((s, len(s)), s)",
        "select len(s) x, s from a group by grouping sets ((s, length(s)), s)",
    ),
    (
        "select date_trunc('month', d) x, d from a group by cube (d, date_trunc('month', d))",
        "select date_trunc('month', d) x, d from a group by cube (d, date_trunc('MONTH', d))",
    ),
    (
        "select k, v from a group by cube (k, v, k < v) having (k < v) is null",
        "select k, v from a group by cube (k, v, k < v) having (v > k) is null",
    ),
    (
        "select k in (1, 2) x, k from a group by rollup (k, k in (1, 2))",
        "select k in (2, 1) x, k from a group by rollup (k, k in (1, 2))",
    ),
    (
        "select v n, v from unnest([1]) t (v) group by grouping sets ((t.v), (t.v, v), v)",
        "select v n, v from unnest([1]) t (v) group by grouping sets ((n), (n, v), v)",
    ),
    (
        "select k k, count(w) n from b t (id) group by rollup (k, 1)",
        "select v k, count(w) n from b t (id, v) group by rollup (k, 1)",
    ),
    ("select 1 x from a", "select (select count(v) from b limit 1) x from a"),
    (
        "select (select max(v) from b limit 1) x from a",
        "select (select max(w) from b limit 1) x from a",
    ),
    (
        "select (select (select sum(v) from b limit 1) from b limit 1) x from a",
        "select (select (select 1 from b limit 1) from b limit 1) x from a",
    ),
    (
        "with b as (select 5 k, 1 id) from histogram_values(b, k)",
        "with b as (select 5 k, 1 id) from histogram_values(b, id)",
    ),
    (
        "select {'a': k}::struct(a int, c int) x from a",
        "select {'a': k}::struct(A int, c int) x from a",
    ),
    (
        "select reverse(s) s, id from a order by s collate nocase, id limit 2",
        "select upper(s) s, id from a order by s collate nocase, id limit 2",
    ),
    (
        "select y.k from (select upper((select min(s collate nocase) from b where s > '2')) s, k from b) y "
        "left join (select 'a' s union select 'A') x on x.s = y.s",
        "select y.k from (select upper((select min(s collate nocase) from b where s > '2')) s, k from b) y "
        "left join (select 'A' s union select 'c') x on x.s = y.s",
    ),
    (
        "select count(*) n from a join b on a.k = b.k using sample 3 rows (reservoir, 1)",
        "select count(*) n from a cross join b where a.k = b.k using sample 3 rows (reservoir, 1)",
    ),
    ("select [], count(*) x from a group by all", "select [] from a group by all"),
    (
        "(select n k, n v from b) intersect (select n, n::double from b)",
        "(select n v, n k from b) intersect (select n, n::double from b)",
    ),
    (
        "select t.*, * replace (() as k) from b join b t on t.q",
        "select * replace (() as k), t.* from b join b t on t.q",
    ),
    ("select #1 x from (select v, k from a)", "select #1 x from (select k, v from a)"),
    (
        "select sum(v) x from a join b using (k) where #1 > 1",
        "select sum(v) x from b join a using (k) where #1 > 1",
    ),
    ("select k, v from a order by #1 limit 2", "select v, k from a order by #1 limit 2"),
    (
        "select k x from (select k, v, id from a) order by -#2, id limit 2",
        "select k x from (select k, id as v, id from a) order by -#2, id limit 2",
    ),
    ("select bin from histogram(b, id)", "select bin from histogram(b, id, bin_count := 2)"),
    (
        "select *, t.* from summary((from b)) join a t on true",
        "select t.*, * from summary((from b)) join a t on true",
    ),
    (
        "select k from (select k, v > 10 p from a) i where exists (select * from c i where i.p)",
        "select k from (select k, v > 0 p from a) i where exists (select * from c i where i.p)",
    ),
    (
        "select (select max(i.f) from b i limit 1) x from a i",
        "select (select max(i.p) from b i limit 1) x from a i",
    ),
    (
        "from (a t left join b on t.k = b.k) o join a on o.v = a.v",
        "from (a t left join b on t.k = b.k) o join a on o.v = a.id",
    ),
    (
        "select group_concat(s) x from ((select k, id, s from a) order by all)",
        "select group_concat(s) x from ((select k, s, s from a) order by all)",
    ),
    ("select '01' as m, m.bit_length() x from b", "select 'k' as m, m.bit_length() x from b"),
    ("select '01' as m, (m).bit_length() x from b", "select 'k' as m, (m).bit_length() x from b"),
    (
        "select k x from (a) t1 group by x, rollup(k)",
        "select t1.k as x, k x from (a) t1 group by x, rollup(k)",
    ),
    ("from (a) unpivot (x for y in (v))", "from (a) unpivot (id for y in (v))"),
    ("from (a) unpivot (x for y in (k))", "from (a) unpivot (y for y in (k))"),
    (
        "from (unpivot (select k, v from a) on (k, v) into name y value x, w)",
        "from (unpivot (select k, v from a) on (k, v) into name y value x, x)",
    ),
    (
        "select t1 from (select k p from c) pivot(count() for p in (false)) t1",
        "select t1 from (select k p from c) pivot(count() for p in (true)) t1",
    ),
    (
        "select k n, count(*) v from a group by cube(n, k) having n is not null",
        "select k n, count(*) v from a group by cube(n, k) having k is not null",
    ),
    (
        "select k n, k x, count(*) v from a group by cube(n, x) having n is not null",
        "select k n, k x, count(*) v from a group by cube(n, x) having x is not null",
    ),
    (
        "select o.*, k n, count(*) v from (select k from a) o group by cube(1, 2) order by 1, 3 limit 2",
        "select o.*, k n, count(*) v from (select k from a) o group by cube(1, 2) order by 2, 3 limit 2",
    ),
    (
        "select k + 1 k, k + 1 n from a group by rollup(1, k + 1)",
        "select k + 1 n, k + 1 k from a group by rollup(1, k + 1)",
    ),
    (
        "select k + 1 k, 1 + k n from a group by rollup(k + 1, 1 + k)",
        "select k + 1 n, 1 + k k from a group by rollup(k + 1, 1 + k)",
    ),
    (
        "select k k, k n from a group by cube((1), (2, 1))",
        "select k n, k k from a group by cube((1), (2, 1))",
    ),
    (
        "(select s k from a) union by name (select s v from a where p)",
        "(select s v from a) union by name (select s k from a where p)",
    ),
    (
        "from summary((select k s from c)) join b on true",
        "from summary((select k b from c)) join b on true",
    ),
    (
        "with e as (select k s from c) from query_table('e') join b on true",
        "with e as (select k b from c) from query_table('e') join b on true",
    ),
    (
        "select *, t1.* from a t1 natural join b, b t3",
        "select *, t3.* from a t1 natural join b, b t3",
    ),
    (
        "select * from a t1 join b using (id) join b t3 on true",
        "select t1.*, b.* exclude (id), t3.* exclude (id) from a t1 join b using (id) join b t3 on true",
    ),
    (
        "select count(*) x from (from a where false), a t right join b on t.k = b.k",
        "select count(*) x from (from a where false) cross join a t right join b on t.k = b.k",
    ),
    (
        "select m, t1.k from c t1 asof left join b t2 on v >= t2.k"
        " join (select id from b) unpivot(x for y in (id)) on 2 using sample 2 (reservoir, 1)",
        "select y, t1.k from c t1 asof left join b t2 on v >= t2.k"
        " join (select id from b) unpivot(x for y in (id)) on 2 using sample 2 (reservoir, 1)",
    ),
    *(
        (
            f"select y.k from ({y}) y left join (select distinct s from a) x on x.s = y.s",
            f"select y.k from ({y}) y left join (select distinct s from a where s <> 'A') x on x.s = y.s",
        )
        for y in (
            "select k, upper(s collate nocase) s from b",
            "select k, trim(s) s from (select k, s collate nocase s from b)",
            "select k, replace(s, 'x' collate nocase, 'y') s from b",
        )
    ),
    (
        "from (values (2)) t1(x) cross join (c) natural join b t3(x, s)",
        "from (values (2)) t1(k) cross join (c) natural join b t3(x, s)",
    ),
    (
        "from (values (2)) t1(x) cross join (c) natural join b t3(x)",
        "from (values (2)) t1(x) cross join (c) natural join b t3(id)",
    ),
    (
        "with q as (select k, v from a) select x from q as t(x, y)",
        "with q as (select k, v from a) select x from q as t(y, x)",
    ),
    (
        "from b natural join (select k, true p from c) pivot(list(id) for p in (false))",
        "from b natural join (select k, true p from c) pivot(list(id) for p in (false) group by k)",
    ),
    *(
        (
            f"select c3, arbitrary({one}) x from (select d, {key}, grouping(d) from b group by cube(d, {key})) "
            "t1(w, c1, c3) group by all",
            f"select c3, arbitrary({other}) x from (select d, {key}, grouping(d) from b group by cube(d, {key})) "
            "t1(w, c1, c3) group by all",
        )
        for key, one, other in (("true", "c1", "true"), ("upper('x')", "c1", "upper('x')"))
    ),
    (
        "select count(v) filter (v > 1) v from a group by v in [] having v > 1",
        "select count(v) filter (v > 20) v from a group by v in [] having v > 1",
    ),
    *(
        (
            f"select count(v) filter (v > 1) v from a group by {keys} having v > 1",
            f"select count(v) filter (v > 20) v from a group by {keys} having v > 1",
        )
        for keys in ("rollup(v % 2)", "grouping sets ((v % 2), ())")
    ),
    (
        "select date_part(y.p, y.ts) as x from (select 'year' as p, ts from a) y",
        "select date_part('year', ts) as x from a",
    ),
    (
        "select typeof(y.q + y.w) as x from (select 1::tinyint as q, 1 as w) y",
        "select typeof(1::tinyint + 1) as x",
    ),
    (
        "select typeof(1::tinyint + x) x from (select * replace (1 as x) from (select 2::tinyint x))",
        "select typeof(1::tinyint + 1) x",
    ),
    (
        "select typeof(y.q + y.w) as x from (select 1::tinyint as q, -(1) as w) y",
        "select typeof(1::tinyint + -(1)) as x",
    ),
    (
        "select distinct unnest({'x': 1, 'y': 'a'}), k from b",
        "select distinct k, unnest({'x': 1, 'y': 'a'}) from b",
    ),
    ("select k as a, a as z from a", "select k as a, k as z from a"),
    (
        "select (select t from (select 1) u) z from b t",
        "select (select t from (select 1) u) z from (select k as t from b)",
    ),
    ("select id from a where k = some([1, 2])", "select id from a where not (k <> some([1, 2]))"),
    ("select id from a where not (k < all([1, 2]))", "select id from a where k >= all([1, 2])"),
    ("select t.l[t.i] x from (select 1 i, l from b) t", "select l[2] x from b"),
    ("select t.l[t.i] x from (select length(s) i, l from b) t", "select l[length(s) + 1] x from b"),
    (
        "select t.k from (select 1 c, k, id from a) t order by t.c, t.id desc limit 2",
        "select k from a order by 1, id desc limit 2",
    ),
    (
        "select distinct on (t.c) t.k from (select 1 c, k, id from a) t order by t.id",
        "select distinct on (1) k from a order by id",
    ),
    (
        "select count(*) n from (select distinct x from (select interval 1 month x"
        " union all select interval 30 day) t union select s from b)",
        "select count(*) n from (select x from (select interval 1 month x"
        " union all select interval 30 day) t union select s from b)",
    ),
    (
        "select k as n, n + 2 as x from a group by 1, k + 2",
        "select k as n, n + 2 as x from a group by 1, k + 2, n",
    ),
    (
        "select k as n, * rename (v as n) from (select id, k, v from a) where n > 1",
        "select k as n, * rename (v as n) from (select id, k, v + 1 as v from a) where n > 1",
    ),
    (
        "select * rename (k as n), n + 1 as x from (select id, k, v from a)",
        "select * rename (v as n), n + 1 as x from (select id, k, v from a)",
    ),
    ("select typeof(.5) x", "select typeof(0.5) x"),
    ("select typeof(s = s -> 'a') x from a", "select typeof(s = (s -> 'a')) x from a"),
    ("select typeof(p or p -> 'a') x from a", "select typeof(p or (p -> 'a')) x from a"),
    ("select s ^@ s || 'a' x from a", "select s ^@ (s || 'a') x from a"),
    ("select k ! in (1, 2) x from a", "select k not in (1, 2) x from a"),
]


@pytest.mark.parametrize(("one", "other"), ONCE_MISSED)
def test_what_was_missed_once_is_not_missed_again(fuzzer: Fuzzer, one: str, other: str) -> None:
    base, head = fuzzer.engine.run(one), fuzzer.engine.run(other)
    assert isinstance(base, Result) and isinstance(head, Result)
    fuzzer.known_constraints = KnownConstraints()
    before, now = fuzzer.prints(one), fuzzer.prints(other)
    assert before is not None and now is not None
    verdict_ = judge(base, head, before, now, "duckdb")
    assert verdict_.differed
    assert verdict_.missed == ""


@pytest.mark.parametrize(
    "sql",
    [
        "with q as (from a semi join b as t(k, k) on a.id = t.k) "
        "select t4.d as x, t4.* from q as t3 full join q as t4 on t3.id = t4.k",
        "with q as (select k, v from a) select t.x, u.x from q t(x, y) join q u(y, x) on t.y = u.y",
    ],
)
def test_what_is_rewritten_keeps_the_names_of_columns(fuzzer: Fuzzer, sql: str) -> None:
    base = fuzzer.engine.run(sql)
    assert isinstance(base, Result)
    missed, before = len(fuzzer.report.misses), fuzzer.report.reworded
    fuzzer.reword(0, sql, base)
    assert fuzzer.report.reworded == before + 1
    assert len(fuzzer.report.misses) == missed


def test_some_hundred_pairs_without_a_miss() -> None:
    fuzzer = Fuzzer(1, one_in=5, patience=0.5)
    number = 0
    while fuzzer.report.ran() < 300:
        fuzzer.number(number)
        number += 1
    assert fuzzer.report.misses == []


def test_pairs_are_written_of_each_kind_and_some_differ(fuzzer: Fuzzer) -> None:
    ran: Counter[str] = Counter()
    differed: Counter[str] = Counter()
    for kind, base, head in pairs(random.Random(3), 900):
        results = fuzzer.engine.run(base), fuzzer.engine.run(head)
        if fuzz._comparable(kind, *results):
            ran[kind] += 1
            one, other = (r.bag() if isinstance(r, Result) else None for r in results)
            differed[kind.partition(":")[0]] += one != other
    assert {k.partition(": ")[2] for k in ran} >= set(PLACES)
    assert len(differed) == 5
    assert all(differed.values())
    assert ran.total() > 600


def test_a_view_that_fails_when_it_is_read_is_a_miss(fuzzer: Fuzzer) -> None:
    sql = (
        "select max(case when v like '9%' then v::int end) as e from t0",
        "select max(v::int) filter (where v like '9%') as e from t0",
    )
    base, head = map(fuzzer.engine.run, sql)
    assert fuzz._comparable(IN_A_VIEW, base, head)
    assert not fuzz._comparable("case", base, head)
    assert not fuzz._comparable(IN_A_VIEW, base, fuzzer.engine.run("select max(w::int) from t0"))
    seen = [prints(text, "duckdb", in_a_view=True) for text in sql]
    built = [one.canonical for one in seen]
    assert built[0] is not None
    assert built[1] is not None
    assert built[0].fps == built[1].fps  # a build would show it
    assert judge_unbuilt(base, head, *seen).missed == ""
    assert judge_unbuilt(base, head, seen[0], seen[0]).missed == "fails"


def test_what_runs_is_not_called_broken(fuzzer: Fuzzer) -> None:
    for sql in (
        "select s collate nocase.noaccent as x from a",
        "select 1 x from ((select id, k, s, s from a) intersect (select id, k, k, k from a)) order by 1",
        "from repeat_row(3, num_rows = 3)",
        "with unused as (select gone from a) select k from a",
        "select v from a as t (v)",
        "select z from c join (select false) on true",
        "with recursive r as (from r) select k from a",
        "select bin from histogram_values(main.b, id + k)",
        "select * from a order by 8",
        "select k from a order by v, 2 desc",
        "select k from a qualify row_number() over () > 1 order by 2, v + 1",
        "select k from a i where exists (select * from c i where i.p)",
        "from (a t join b on t.k = b.k) o join c on o.v = c.v",
        "select t.k from ((select * from a) t join b on t.k = b.k) join c on t.k = c.k",
        "select max(@ null) as n from a qualify row_number() over () = 1",
        "select countif(t2.p order by t2.id desc) as n from t2 : c natural join t2 : a",
        "select a % 2 as x, sum(a) as s from (values (1)) t(a) group by alias.x having alias.s > 0",
        "select v from (select id as v, k as v from a) as t (x)",
        "select main.a as x from main.a",
        "select main.a.k from a",
        "\ufeffselect k\u200b from a\ufeffwhere v\u2060> 1",
        "with recursive t (x) as (select 1 v, 2 v union select 1, 2 from t) select v from t",
        "select * rename (k as n), n + 1 as x from a where n > 0",
        "select 1 as x, a.* as n from (select k, v from a) a group by 3, 2",
        "select a.* rename (k as n), sum(n) as x from a group by all having n > 0",
        "select * rename (k as n) from a qualify row_number() over (partition by n order by v) = 1",
        "select unnest, ordinality from b, unnest(b.l) with ordinality",
        "select x, t.ordinality from b, unnest(b.l) with ordinality t(x)",
        "select x, o from b, unnest(b.l) with ordinality t(x, o)",
    ):
        assert isinstance(fuzzer.engine.run(sql), Result), sql
        assert verdict.refused(sql, "duckdb") == (), sql


def test_a_position_that_is_not_there_is_broken(fuzzer: Fuzzer) -> None:
    for sql, position in (
        ("select k from a order by 1, 3", "ORDER BY 3"),
        ("select * from a order by 0", "ORDER BY 0"),
        ("select k from a union select w from b order by 2 desc", "ORDER BY 2"),
        ("select distinct on (9) * from a", "DISTINCT ON 9"),
        ("select k from a group by 2", "GROUP BY 2"),
    ):
        assert not isinstance(fuzzer.engine.run(sql), Result), sql
        assert verdict.refused(sql, "duckdb") == (position,), sql


def test_a_pair_can_be_made_again_and_a_miss_is_cut_to_its_core(
    fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = prints("select 1 as k", "duckdb")
    monkeypatch.setattr(fuzz, "prints", lambda sql, dialect, known_constraints=None: blind)
    monkeypatch.setattr(verdict, "prints", lambda sql, dialect, known_constraints=None: blind)
    findings = []
    for _ in range(2):
        fuzzer.report = fuzz.Report(7)
        for number in range(20):
            fuzzer.number(number)
        findings.append(fuzzer.report)
    assert findings[0].kinds == findings[1].kinds
    assert findings[0].misses
    for miss in findings[0].misses:
        cut, whole = (token_edits.tokens_of(miss[w]) for w in ("base", "whole base"))
        assert len(cut) <= len(whole)


def test_what_is_not_decided_by_the_query_is_no_miss(fuzzer: Fuzzer) -> None:
    for sql, decided in (
        ("select first(s) as s from a", False),
        ("select list(id) as l from (select * from a order by id)", True),
        ("select k from a limit 2", False),
        ("select k from a order by id limit 2", True),
    ):
        result = fuzzer.engine.run(sql)
        assert isinstance(result, Result)
        assert fuzzer.engine.determined(sql, result) == decided, sql


def test_what_runs_away_is_stopped(fuzzer: Fuzzer) -> None:
    endless = (
        "with recursive r (n) as (select 1 union all select 1 from r) select count(*) as n from r"
    )
    assert isinstance(fuzzer.engine.run(endless), str)
    assert isinstance(fuzzer.engine.run("select 1 as n"), Result)


def test_tokens_written_again_are_the_same_query(fuzzer: Fuzzer) -> None:
    same = 0
    for number in range(200):
        sql, _ = fuzzer.base(number)
        result = fuzzer.engine.run(sql)
        if isinstance(result, Result):
            again = fuzzer.engine.run(token_edits.joined(token_edits.tokens_of(sql)))
            assert isinstance(again, Result), sql
            assert again.bag() == result.bag() or not fuzzer.engine.determined(sql, result), sql
            same += 1
    assert same > 80
