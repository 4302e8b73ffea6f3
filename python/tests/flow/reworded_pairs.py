"""The same query in other words, as an engineer rewrites it: pairs that mean the same on DuckDB.

Each form is named, with a query and the query it is rewritten to. `NEAR_MISSES` look alike and mean
something else on some data.
"""

from __future__ import annotations

from typing import Final

COLUMNS: Final = {
    **dict.fromkeys(("k", "x", "y"), "integer"),
    **dict.fromkeys(("p", "q", "r"), "boolean"),
    "s": "varchar",
    "d": "date",
    "f": "double",
}
"""Of each of the tables a, b and c."""

FORMS: Final[dict[str, tuple[str, str]]] = {
    # -- conditions
    "De Morgan, AND": (
        "select x from a where not (x = 1 and y = 2)",
        "select x from a where x <> 1 or y <> 2",
    ),
    "De Morgan, OR": (
        "select x from a where not (x > 1 or y is null)",
        "select x from a where x <= 1 and y is not null",
    ),
    "a comparison negated": (
        "select x, not (x > y) as v from a",
        "select x, x <= y as v from a",
    ),
    "NOT twice": (
        "select x from a where not (not (p and q))",
        "select x from a where p and q",
    ),
    "IN for OR": (
        "select x from a where x = 1 or x = 2 or x = 0",
        "select x from a where x in (0, 1, 2)",
    ),
    "IN for OR, text": (
        "select x, s = 'u' or s = 'v' as e from a",
        "select x, s in ('u', 'v') as e from a",
    ),
    "NOT IN for AND": (
        "select x from a where x <> 1 and x <> 2",
        "select x from a where x not in (1, 2)",
    ),
    "IN of one": ("select x from a where s in ('u')", "select x from a where s = 'u'"),
    "BETWEEN": (
        "select x from a where x between 0 and 1 and p",
        "select x from a where x >= 0 and x <= 1 and p",
    ),
    "NOT BETWEEN": (
        "select x from a where x not between 0 and 1",
        "select x from a where x < 0 or x > 1",
    ),
    "where true": ("select x from a where true", "select x from a"),
    "where 1 = 1": ("select x from a where 1 = 1 and p", "select x from a where p"),
    "or false": (
        "select x from a where (x = 1 or false) and q",
        "select x from a where x = 1 and q",
    ),
    "not false": ("select x from a where not false and p", "select x from a where p"),
    "ON true": (
        "select a.x, b.y from a join b on true where a.k = b.k",
        "select a.x, b.y from a join b on a.k = b.k",
    ),
    "ON 1 = 1": ("select a.x, b.y from a join b on 1 = 1", "select a.x, b.y from a cross join b"),
    "a condition twice": (
        "select x from a where x = 1 and y = 2 and x = 1",
        "select x from a where x = 1 and y = 2",
    ),
    "factored out": (
        "select x from a where (p and x = 1) or (p and y = 1)",
        "select x from a where p and (x = 1 or y = 1)",
    ),
    "absorbed": (
        "select x from a where p or (p and x = 1)",
        "select x from a where p",
    ),
    "not null that is implied": (
        "select x from a where x is not null and x > 0",
        "select x from a where x > 0",
    ),
    "<> and !=": ("select x from a where x != 1", "select x from a where x <> 1"),
    "not (a is null)": (
        "select x from a where not (x is null)",
        "select x from a where x is not null",
    ),
    "coalesced condition": (
        "select x from a where coalesce(x > 1, false)",
        "select x from a where x > 1",
    ),
    "equal or both NULL": (
        "select x from a where x is not distinct from y",
        "select x from a where x = y or (x is null and y is null)",
    ),
    # -- CASE and its like
    "simple CASE": (
        "select case x when 1 then 'a' when 2 then 'b' end as v from a",
        "select case when x = 1 then 'a' when x = 2 then 'b' end as v from a",
    ),
    "ELSE NULL": (
        "select case when p then x else null end as v from a",
        "select case when p then x end as v from a",
    ),
    "NULLIF": (
        "select nullif(x, 0) as v from a",
        "select case when x = 0 then null else x end as v from a",
    ),
    "COALESCE for CASE": (
        "select case when x is not null then x else y end as v from a",
        "select coalesce(x, y) as v from a",
    ),
    "COALESCE for CASE IS NULL": (
        "select case when x is null then y else x end as v from a",
        "select coalesce(x, y) as v from a",
    ),
    "COALESCE nested": (
        "select coalesce(x, coalesce(y, 0)) as v from a",
        "select coalesce(x, y, 0) as v from a",
    ),
    "CASE on NULL turned round": (
        "select case when x is null then 'none' else s end as v from a",
        "select case when x is not null then s else 'none' end as v from a",
    ),
    "CASE true or false": (
        "select case when x > 1 then true else false end as v from a",
        "select coalesce(x > 1, false) as v from a",
    ),
    "CASE branches of one value": (
        "select case when x = 1 then 'low' when x = 2 then 'low' else 'high' end as v from a",
        "select case when x in (1, 2) then 'low' else 'high' end as v from a",
    ),
    "CASE in ELSE": (
        "select case when x = 1 then 'a' else case when y = 1 then 'b' else 'c' end end as v from a",
        "select case when x = 1 then 'a' when y = 1 then 'b' else 'c' end as v from a",
    ),
    "IF for CASE": (
        "select if(x > 1, 'a', 'b') as v from a",
        "select case when x > 1 then 'a' else 'b' end as v from a",
    ),
    "a branch that gives what ELSE gives": (
        "select case when x = 1 then 'a' when x = 2 then 'b' else 'b' end as v from a",
        "select case when x = 1 then 'a' else 'b' end as v from a",
    ),
    # -- operators and functions
    "sum the other way round": ("select x + y as v from a", "select y + x as v from a"),
    "product the other way round": ("select x * f as v from a", "select f * x as v from a"),
    "a comparison the other way round": (
        "select x from a where x + 1 > y",
        "select x from a where y < 1 + x",
    ),
    "GREATEST the other way round": (
        "select greatest(x, y, 0) as v from a",
        "select greatest(0, y, x) as v from a",
    ),
    "IFNULL": ("select ifnull(x, 0) as v from a", "select coalesce(x, 0) as v from a"),
    "::": ("select x::varchar as v from a", "select cast(x as varchar) as v from a"),
    "EXTRACT": (
        "select extract(year from d) as v from a",
        "select year(d) as v from a",
    ),
    "date_part": (
        "select date_part('month', d) as v from a",
        "select extract(month from d) as v from a",
    ),
    "mod": ("select mod(x, 2) as v from a", "select x % 2 as v from a"),
    "LEFT": ("select left(s, 2) as v from a", "select substring(s, 1, 2) as v from a"),
    "length": ("select len(s) as v from a", "select length(s) as v from a"),
    "upper": ("select ucase(s) as v from a", "select upper(s) as v from a"),
    "a typed date": (
        "select x from a where d >= date '2024-01-02'",
        "select x from a where d >= cast('2024-01-02' as date)",
    ),
    # -- aggregates
    "FILTER for CASE, count": (
        "select k, count(*) filter (where x > 1) as n from a group by k",
        "select k, count(case when x > 1 then 1 end) as n from a group by k",
    ),
    "what COUNT counts": (
        "select k, count(case when p then x is null end) as m, count(case when p then 'x' end) as n"
        " from a group by k",
        "select k, count(case when p then x is null end) as m, count(*) filter (where p) as n"
        " from a group by k",
    ),
    "FILTER for CASE, sum": (
        "select k, sum(y) filter (where x > 1) as n from a group by k",
        "select k, sum(case when x > 1 then y end) as n from a group by k",
    ),
    "FILTER for CASE, distinct": (
        "select k, count(distinct y) filter (where p) as n from a group by k",
        "select k, count(distinct case when p then y end) as n from a group by k",
    ),
    "HAVING on a key": (
        "select k, count(*) as n from a group by k having k > 0",
        "select k, count(*) as n from a where k > 0 group by k",
    ),
    "HAVING on a key that is NULL": (
        "select k, count(*) as n from a group by k having k is null",
        "select k, count(*) as n from a where k is null group by k",
    ),
    "HAVING on a key in a list": (
        "select s, count(*) as n from a group by s having s in ('u', 'v')",
        "select s, count(*) as n from a where s in ('u', 'v') group by s",
    ),
    "GROUP BY for DISTINCT": (
        "select distinct k, x from a",
        "select k, x from a group by k, x",
    ),
    "GROUP BY positions": (
        "select k, x, count(*) as n from a group by 1, 2",
        "select k, x, count(*) as n from a group by x, k",
    ),
    "DISTINCT beside GROUP BY": (
        "select distinct k, count(*) as n from a group by k",
        "select k, count(*) as n from a group by k",
    ),
    "a filter above the groups": (
        "select * from (select k, sum(x) as t from a group by k) as o where k > 0",
        "select k, sum(x) as t from a where k > 0 group by k",
    ),
    "HAVING for a filter above": (
        "select * from (select k, sum(x) as t from a group by k) as o where t > 1",
        "select k, sum(x) as t from a group by k having sum(x) > 1",
    ),
    # -- joins
    "inner joins in another order": (
        "select a.x, b.y, c.s from a join b on a.k = b.k join c on b.k = c.k",
        "select a.x, b.y, c.s from b join c on b.k = c.k join a on a.k = b.k",
    ),
    "two inner joins swapped": (
        "select a.x, b.y from a join b on a.k = b.k where b.x > 0",
        "select a.x, b.y from b join a on a.k = b.k where b.x > 0",
    ),
    "WHERE for ON": (
        "select a.x, b.y from a, b where a.k = b.k and a.p",
        "select a.x, b.y from a join b on a.k = b.k and a.p",
    ),
    "RIGHT JOIN for LEFT": (
        "select a.x, b.y from a left join b on a.k = b.k",
        "select a.x, b.y from b right join a on a.k = b.k",
    ),
    "FULL JOIN the other way round": (
        "select a.x, b.y from a full join b on a.k = b.k",
        "select a.x, b.y from b full join a on a.k = b.k",
    ),
    "left joins in another order": (
        "select a.x, b.y, c.s from a left join b on a.k = b.k left join c on a.k = c.k",
        "select a.x, b.y, c.s from a left join c on a.k = c.k left join b on a.k = b.k",
    ),
    "filter before the inner join": (
        "select a.x, o.y from a join (select * from b where x > 0) as o on a.k = o.k",
        "select a.x, b.y from a join b on a.k = b.k where b.x > 0",
    ),
    "filter in a CTE before the inner join": (
        "with o as (select k, y as z from b where x > 0 and y is not null)"
        " select a.x, o.z from a join o on a.k = o.k",
        "with o as (select k, x, y as z from b)"
        " select a.x, o.z from a join o on a.k = o.k where o.x > 0 and o.z is not null",
    ),
    "filter before the left side of a left join": (
        "select o.x, b.y from (select * from a where x > 0) as o left join b on o.k = b.k",
        "select a.x, b.y from a left join b on a.k = b.k where a.x > 0",
    ),
    "filter before the right side of a left join": (
        "select a.x, o.y from a left join (select * from b where x > 0) as o on a.k = o.k",
        "select a.x, b.y from a left join b on a.k = b.k and b.x > 0",
    ),
    "LEFT JOIN and IS NOT NULL": (
        "select a.x, b.y from a left join b on a.k = b.k where b.k is not null",
        "select a.x, b.y from a join b on a.k = b.k",
    ),
    "LEFT JOIN and a filter on the right": (
        "select a.x, b.y from a left join b on a.k = b.k where b.y > 0",
        "select a.x, b.y from a join b on a.k = b.k where b.y > 0",
    ),
    "CROSS JOIN and WHERE": (
        "select a.x, b.y from a cross join b where a.k = b.k",
        "select a.x, b.y from a inner join b on b.k = a.k",
    ),
    "join of a join": (
        "select a.x, o.y, o.s from a join (select b.k, b.y, c.s from b join c on b.k = c.k) as o"
        " on a.k = o.k",
        "select a.x, b.y, c.s from a join b on a.k = b.k join c on b.k = c.k",
    ),
    # -- subqueries
    "EXISTS for IN": (
        "select x from a where k in (select k from b where p)",
        "select x from a where exists (select 1 from b where b.k = a.k and b.p)",
    ),
    "semi join for IN": (
        "select x from a where k in (select k from b)",
        "select a.x from a semi join b on a.k = b.k",
    ),
    "semi join for EXISTS": (
        "select x from a where exists (select 1 from b where b.k = a.k and b.y > 0)",
        "select a.x from a semi join b on a.k = b.k and b.y > 0",
    ),
    "anti join for NOT EXISTS": (
        "select x from a where not exists (select 1 from b where b.k = a.k)",
        "select a.x from a anti join b on a.k = b.k",
    ),
    "LEFT JOIN and IS NULL for NOT EXISTS": (
        "select x from a where not exists (select 1 from b where b.k = a.k)",
        "select a.x from a left join b on a.k = b.k where b.k is null",
    ),
    "DISTINCT in IN": (
        "select x from a where k in (select distinct k from b)",
        "select x from a where k in (select k from b)",
    ),
    "what EXISTS selects": (
        "select x from a where exists (select * from b where b.k = a.k)",
        "select x from a where exists (select 1 from b where b.k = a.k)",
    ),
    # -- set operations
    "UNION ALL in another order": (
        "select k, x from a where p union all select k, y from b union all select k, 0 from c",
        "select k, 0 as x from c union all select k, x from a where p union all select k, y from b",
    ),
    "DISTINCT over UNION ALL": (
        "select k, x from a union select k, y from b",
        "select distinct * from (select k, x from a union all select k, y from b) as o",
    ),
    "UNION in another order": (
        "select k, x from a union select k, y from b",
        "select k, y as x from b union select k, x from a",
    ),
    "DISTINCT inside UNION": (
        "select distinct k from a union select distinct k from b",
        "select k from a union select k from b",
    ),
    "UNION ALL nested": (
        "select k from a union all (select k from b union all select k from c)",
        "select k from a union all select k from b union all select k from c",
    ),
    "a filter above UNION ALL": (
        "select * from (select k, x from a union all select k, y from b) as o where k > 0",
        "select k, x from a where k > 0 union all select k, y from b where k > 0",
    ),
    # -- windows
    "QUALIFY for a filter above": (
        "select k, x from (select k, x, row_number() over (partition by k order by x, y) as n from a)"
        " as o where n = 1",
        "select k, x from a qualify row_number() over (partition by k order by x, y) = 1",
    ),
    "the frame that a window has": (
        "select sum(x) over (partition by k order by y range between unbounded preceding and current row) as v from a",
        "select sum(x) over (partition by k order by y) as v from a",
    ),
    "PARTITION BY in another order": (
        "select sum(x) over (partition by k, y) as v from a",
        "select sum(x) over (partition by y, k) as v from a",
    ),
    "a window with a name": (
        "select sum(x) over (partition by k) as v from a",
        "select sum(x) over w as v from a window w as (partition by k)",
    ),
    # -- layout
    "an expression named below": (
        "with o as (select x + 1 as z, k from a) select z * 2 as v from o where z > 1",
        "select (x + 1) * 2 as v from a where x + 1 > 1",
    ),
    "CTE read twice": (
        "with o as (select k, x from a where p) select l.x, r.x as z from o as l join o as r on l.k = r.k",
        "select l.x, r.x as z from (select k, x from a where p) as l"
        " join (select k, x from a where p) as r on l.k = r.k",
    ),
}

NEAR_MISSES: Final[dict[str, tuple[str, str]]] = {
    "WHEN of a CASE with a value is no condition": (
        "select case p when coalesce(x > 1, false) then 1 else 0 end as v from a",
        "select case p when x > 1 then 1 else 0 end as v from a",
    ),
    "constants by themselves are of another type": (
        "select typeof(coalesce(x::tinyint, coalesce(2, 3))) as v from a",
        "select typeof(coalesce(x::tinyint, 2, 3)) as v from a",
    ),
    "IN compares values of two types otherwise than =": (
        "select k from a where '  1'::json in (select k from b)",
        "select k from a where exists (select 1 from b where b.k = '  1'::json)",
    ),
    "a frame of rows": (
        "select x, sum(x) over (order by y rows between unbounded preceding and current row) as v from a",
        "select x, sum(x) over (order by y) as v from a",
    ),
    "a frame without the current row": (
        "select x, sum(x) over (order by y range unbounded preceding exclude current row) as v from a",
        "select x, sum(x) over (order by y) as v from a",
    ),
    "De Morgan, the other way": (
        "select x from a where not (x = 1 and y = 2)",
        "select x from a where x <> 1 and y <> 2",
    ),
    "NOT of NULL is not true": (
        "select x from a where not (x > 1) or y = 1",
        "select x from a where (x > 1) is not true or y = 1",
    ),
    "NOT IN with NULL": (
        "select x from a where x not in (1, null)",
        "select x from a where x not in (1)",
    ),
    "BETWEEN the other way round": (
        "select x from a where x between 2 and 0",
        "select x from a where x >= 0 and x <= 2",
    ),
    "a condition that is NULL as a value": (
        "select x = y or (x is null and y is null) as v from a",
        "select x is not distinct from y as v from a",
    ),
    "IS NOT NULL as a value": (
        "select x is not null and x > 0 as v from a",
        "select x > 0 as v from a",
    ),
    "IS NOT NULL of another column": (
        "select x from a where y is not null and x > 0",
        "select x from a where x > 0",
    ),
    "absorbed by another": (
        "select x from a where p or (q and x = 1)",
        "select x from a where p",
    ),
    "OR of one side": (
        "select x from a where (p and x = 1) or (q and y = 1)",
        "select x from a where p and (x = 1 or y = 1)",
    ),
    "CASE turned round on what may be NULL": (
        "select case when not (x = 1) then 'a' else 'b' end as v from a",
        "select case when x = 1 then 'b' else 'a' end as v from a",
    ),
    "CASE without ELSE": (
        "select case when x = 1 then true end as v from a",
        "select case when x = 1 then true else false end as v from a",
    ),
    "CASE branches apart": (
        "select case when x = 1 then 'a' when y = 1 then 'b' when x = 2 then 'a' end as v from a",
        "select case when x = 1 or x = 2 then 'a' when y = 1 then 'b' end as v from a",
    ),
    "COALESCE in another order": (
        "select coalesce(x, y) as v from a",
        "select coalesce(y, x) as v from a",
    ),
    "NULLIF the other way round": (
        "select nullif(x, y) as v from a",
        "select nullif(y, x) as v from a",
    ),
    "difference the other way round": (
        "select x - y as v from a",
        "select y - x as v from a",
    ),
    "a sum of floats in another order": (
        "select (f + 1e16::double) + -1e16::double as v from a",
        "select f + (1e16::double + -1e16::double) as v from a",
    ),
    "texts the other way round": (
        "select s || 'u' as v from a",
        "select 'u' || s as v from a",
    ),
    "FILTER and ELSE 0": (
        "select sum(y) filter (where x > 5) as n from a",
        "select sum(case when x > 5 then y else 0 end) as n from a",
    ),
    "FILTER of a list": (
        "select array_agg(y order by y, k, x) filter (where x > 1) as n from a",
        "select array_agg(case when x > 1 then y end order by y, k, x) as n from a",
    ),
    "volatile, twice": (
        "select count(*) as n from a where random() between 2 and 3 or k = 1",
        "select count(*) as n from a where k = 1 and x = 1",
    ),
    "HAVING on an aggregate": (
        "select k, count(*) as n from a group by k having count(*) > 3",
        "select k, count(*) as n from a where k > 3 group by k",
    ),
    "HAVING without keys": (
        "select count(*) as n from a having 1 = 0",
        "select count(*) as n from a where 1 = 0",
    ),
    "LEFT JOIN for INNER": (
        "select a.x, b.y from a left join b on a.k = b.k",
        "select a.x, b.y from a join b on a.k = b.k",
    ),
    "LEFT JOIN and a filter that lets NULL by": (
        "select a.x, b.y from a left join b on a.k = b.k where coalesce(b.y, 1) > 0",
        "select a.x, b.y from a join b on a.k = b.k where coalesce(b.y, 1) > 0",
    ),
    "LEFT JOIN and IS NOT NULL of a column that may be": (
        "select a.x, b.y from a left join b on a.k = b.k where b.y is not null",
        "select a.x, b.y from a join b on a.k = b.k",
    ),
    "LEFT JOIN and IS NULL of a column that may be": (
        "select a.x from a left join b on a.k = b.k where b.y is null",
        "select x from a where not exists (select 1 from b where b.k = a.k)",
    ),
    "ON for WHERE, left join": (
        "select a.x, b.y from a left join b on a.k = b.k and a.x > 0",
        "select a.x, b.y from a left join b on a.k = b.k where a.x > 0",
    ),
    "filter on the right side of a left join": (
        "select a.x, o.y from a left join (select * from b where x > 0) as o on a.k = o.k",
        "select a.x, b.y from a left join b on a.k = b.k where b.x > 0",
    ),
    "an expression on the right side of a left join": (
        "select a.x, o.z from a left join (select k, coalesce(y, 7) as z from b) as o on a.k = o.k",
        "select a.x, coalesce(b.y, 7) as z from a left join b on a.k = b.k",
    ),
    "the sides of a left join": (
        "select a.x, b.y from a left join b on a.k = b.k",
        "select a.x, b.y from b left join a on a.k = b.k",
    ),
    "the sides of a self join": (
        "select l.x, r.y from a as l join a as r on l.k = r.x",
        "select l.x, r.y from a as l join a as r on l.x = r.k",
    ),
    "join for semi join": (
        "select a.x from a join b on a.k = b.k",
        "select x from a where k in (select k from b)",
    ),
    "NOT IN for NOT EXISTS": (
        "select x from a where k not in (select k from b)",
        "select x from a where not exists (select 1 from b where b.k = a.k)",
    ),
    "IN as a value": (
        "select x, k in (select k from b) as v from a",
        "select x, exists (select 1 from b where b.k = a.k) as v from a",
    ),
    "IN a LIMIT": (
        "select x from a where k in (select k from b order by k, x, y limit 1)",
        "select x from a where k in (select k from b)",
    ),
    "UNION for UNION ALL": (
        "select k from a union select k from b",
        "select k from a union all select k from b",
    ),
    "UNION ALL after UNION": (
        "select k from a union select k from b union all select k from c",
        "select k from a union all select k from b union select k from c",
    ),
    "columns of one branch swapped": (
        "select k, x from a union all select x, k from b",
        "select x as k, k as x from a union all select x, k from b",
    ),
    "LIMIT over branches in another order": (
        "select * from (select k, x from a union all select k + 10, y from b) as o limit 3",
        "select * from (select k + 10 as k, y as x from b union all select k, x from a) as o limit 3",
    ),
    "DISTINCT ON": (
        "select distinct on (k) k, x from a order by k, x, y",
        "select distinct k, x from a",
    ),
    "a filter above LIMIT": (
        "select * from (select k, x from a order by k, x, y limit 3) as o where x > 0",
        "select k, x from a where x > 0 order by k, x, y limit 3",
    ),
    "a filter above a window": (
        "select * from (select k, x, count(*) over () as n from a) as o where x > 0",
        "select k, x, count(*) over () as n from a where x > 0",
    ),
    "a filter above groups, not on a key": (
        "select * from (select k, sum(x) as x from a group by k) as o where x < 2",
        "select k, sum(x) as x from a where x < 2 group by k",
    ),
    "DISTINCT beside a key that is not shown": (
        "select distinct count(*) as n from a group by k",
        "select count(*) as n from a group by k",
    ),
    "left joins that ask each other": (
        "select a.x, b.y, c.s from a left join b on a.k = b.k left join c on b.x = c.k",
        "select a.x, b.y, c.s from a left join b on a.k = b.k left join c on a.x = c.k",
    ),
    "OR of which one side asks the joined table": (
        "select a.x, b.y from a left join b on a.k = b.k where b.y > 0 or a.x = 0",
        "select a.x, b.y from a join b on a.k = b.k where b.y > 0 or a.x = 0",
    ),
    "a volatile value shown twice": (
        "select o.r = o.q as v from (select i.r, i.r as q from (select random() as r from a) as i) as o",
        "select random() = random() as v from a",
    ),
    "a volatile CTE read twice": (
        "with o as (select random() as v from a) select count(*) as n from o as l join o as r on l.v = r.v",
        "select count(*) as n from (select random() as v from a) as l"
        " join (select random() as v from a) as r on l.v = r.v",
    ),
    "volatile, asked twice": (
        "select count(*) as n from a, b, c where random() < 0.5 and random() < 0.5",
        "select count(*) as n from a, b, c where random() < 0.5",
    ),
    "BETWEEN of what is volatile": (
        "select count(*) as n from a, b, c where random() between 0.25 and 0.75",
        "select count(*) as n from a, b, c where random() >= 0.25 and random() <= 0.75",
    ),
    "a volatile condition below a join": (
        "select count(*) as n from (select k from a where random() < 0.5) as o cross join b cross join c",
        "select count(*) as n from a cross join b cross join c where random() < 0.5",
    ),
    "a condition of a user's function below a join": (
        "select count(*) as n from a cross join (select k from b where draw(1) = 1) as o cross join c",
        "select count(*) as n from a cross join b cross join c where draw(1) = 1",
    ),
    "a volatile ON below a join": (
        "select count(*) as n from c cross join (select a.k from a join b on random() < 0.5) as o",
        "select count(*) as n from c cross join a join b on random() < 0.5",
    ),
    "a user's function, twice": (
        "select sum(case when draw(1) is not null then draw(1) else 0 end) as n from a, b, c",
        "select sum(coalesce(draw(1), 0)) as n from a, b, c",
    ),
    "a user's function, asked twice": (
        "select count(*) as n from a, b, c where draw(1) = 1 and draw(1) = 1",
        "select count(*) as n from a, b, c where draw(1) = 1",
    ),
    "a function of a schema, twice": (
        "select sum(case when m.draw(1) is not null then m.draw(1) else 0 end) as n from a, b, c",
        "select sum(coalesce(m.draw(1), 0)) as n from a, b, c",
    ),
    "NOT twice of a number": (
        "select not (not x) as v from a",
        "select x as v from a",
    ),
    "a coalesced condition as a value": (
        "select coalesce(x = 1, false) as v from a",
        "select x = 1 as v from a",
    ),
    "a quantified operand that is not NULL": (
        "select x from a where x = all (select y from b where y > 5) and x is not null",
        "select x from a where x = all (select y from b where y > 5)",
    ),
    "NOT of = ANY": (
        "select x from a where not (x = any (select y from b))",
        "select x from a where x <> any (select y from b)",
    ),
    "NOT of < ANY": (
        "select x from a where not (x < any (select y from b))",
        "select x from a where x >= any (select y from b)",
    ),
    "lists the other way round": (
        "select [x] + [y] as v from a",
        "select [y] + [x] as v from a",
    ),
    "columns of lists the other way round": (
        "select l + m as v from (select [x] as l, [y] as m from a) as o",
        "select m + l as v from (select [x] as l, [y] as m from a) as o",
    ),
    "CASE with another default": (
        "select case when x > 1 then true else true end as v from a",
        "select coalesce(x > 1, false) as v from a",
    ),
    "CASE false or false": (
        "select case when x > 1 then false else false end as v from a",
        "select coalesce(x > 1, false) as v from a",
    ),
    "CASE that no constant ends": (
        "select case when x > 1 then true else p end as v from a",
        "select coalesce(x > 1, false) as v from a",
    ),
    "COUNT of a CASE with ELSE": (
        "select count(case when p then 'x' else 'y' end) as n from a",
        "select count(case when p then 1 end) as n from a",
    ),
    "COUNT of what may be NULL": (
        "select count(case when p then s end) as n from a",
        "select count(case when p then 1 end) as n from a",
    ),
    "COUNT of a CASE that gives NULL": (
        "select count(case when p then null end) as n from a",
        "select count(case when p then 1 end) as n from a",
    ),
    "LEFT of less than nothing": (
        "select left(s, -1) as v from a",
        "select substring(s, 1, -1) as v from a",
    ),
    "where false": (
        "select x from a where false",
        "select x from a",
    ),
    "IS TRUE for IS NULL": (
        "select case when p is true then q else p end as v from a",
        "select coalesce(p, q) as v from a",
    ),
    "a LIMIT that is left": (
        "select * from (select k, x from a order by k, x, y limit 3) as o where x > 0",
        "select k, x from a where x > 0",
    ),
    "a DISTINCT that is left": (
        "select * from (select distinct k, x from a) as o where x > 0",
        "select k, x from a where x > 0",
    ),
    "a GROUP BY that is left": (
        "select o.k from (select k from a group by k) as o where o.k > 0",
        "select k from a where k > 0",
    ),
    "a QUALIFY that is left": (
        "select o.k from (select k from a qualify row_number() over (partition by k order by x, y, s) = 1) as o where o.k > 0",
        "select k from a where k > 0",
    ),
    "a filter above UNION, a window in a branch": (
        "select * from (select k, x from a union all select k, count(*) over () as x from b) as o where k > 0",
        "select k, x from a where k > 0 union all select k, count(*) over () as x from b where k > 0",
    ),
    "a filter above UNION BY NAME": (
        "select * from (select k, x from a union all by name select x, k from b) as o where k > 0",
        "select k, x from a where k > 0 union all select x, k from b where x > 0",
    ),
    "DISTINCT before LIMIT in a UNION": (
        "(select distinct k from a order by k limit 2) union select k from b where k > 1",
        "(select k from a order by k limit 2) union select k from b where k > 1",
    ),
    "IN a DISTINCT ON": (
        "select x from a where k in (select distinct on (q) k from b order by q, k, x, y)",
        "select x from a where k in (select k from b)",
    ),
    "EXISTS of no row": (
        "select x from a where exists (select 1 from b where b.k = a.k limit 0)",
        "select x from a where exists (select 1 from b where b.k = a.k)",
    ),
    "EXISTS of an aggregate": (
        "select x from a where exists (select count(*) from b where b.k = a.k)",
        "select x from a where exists (select 1 from b where b.k = a.k)",
    ),
    "EXISTS of groups": (
        "select x from a where exists (select b.x from b where b.k = a.k group by b.x having count(*) > 1)",
        "select x from a where exists (select 1 from b where b.k = a.k)",
    ),
    "LEFT JOIN ON true": (
        "select a.x, o.y from a left join (select y from b where k > 5) as o on true",
        "select a.x, o.y from a cross join (select y from b where k > 5) as o",
    ),
    "simple CASE of what is volatile": (
        "select count(case floor(random() * 2) when 0 then 1 when 1 then 2 end) as n from a, b, c",
        "select count(case when floor(random() * 2) = 0 then 1 when floor(random() * 2) = 1 then 2 end) as n from a, b, c",
    ),
    "NULLIF of what is volatile": (
        "select sum(nullif(floor(random() * 2), 0)) as n from a, b, c",
        "select sum(case when floor(random() * 2) = 0 then null else floor(random() * 2) end) as n from a, b, c",
    ),
    "IN of what is volatile": (
        "select count(*) as n from a, b, c where floor(random() * 3) in (0, 1)",
        "select count(*) as n from a, b, c where floor(random() * 3) = 0 or floor(random() * 3) = 1",
    ),
    "a column of the joined table beside IS NULL": (
        "select a.x, b.y from a left join b on a.k = b.k where b.k is null or b.x = 0",
        "select a.x, b.y from a left join b on a.k = b.k where b.k is null",
    ),
    "HAVING of ROLLUP": (
        "select k, count(*) as n from a group by rollup (k) having k is null",
        "select k, count(*) as n from a where k is null group by rollup (k)",
    ),
    "DISTINCT of groups of which a key is shown otherwise": (
        "select distinct k % 2 as v from a group by k",
        "select k % 2 as v from a group by k",
    ),
    "DISTINCT of groups with a generator": (
        "select distinct k, unnest([1, 1]) as v from a group by k",
        "select k, unnest([1, 1]) as v from a group by k",
    ),
    "IF without ELSE": (
        "select if(p, 'a', 'b') as v from a",
        "select case when p then 'a' end as v from a",
    ),
    "COUNT DISTINCT of what is filtered": (
        "select count(distinct y) filter (where p) as n from a",
        "select count(case when p then y end) as n from a",
    ),
    "COUNT of rows that are filtered": (
        "select count(y) filter (where p) as n from a",
        "select count(case when p then 1 end) as n from a",
    ),
    "numbers compared as text": (
        "select x from a where x = 1 and '1' = '01'",
        "select x from a where x = 1 and 1 = 01",
    ),
    "a key of grouping sets that is spelled otherwise": (
        "select len(s) as v, count(*) as n from a group by grouping sets ((s), (len(s)))",
        "select length(s) as v, count(*) as n from a group by grouping sets ((s), (len(s)))",
    ),
    "a key of grouping sets that HAVING spells otherwise": (
        "select count(*) as n from a group by grouping sets ((s), (len(s))) having len(s) > 0",
        "select count(*) as n from a group by grouping sets ((s), (len(s))) having length(s) > 0",
    ),
    "keys of grouping sets that are spelled alike": (
        "select count(*) as n from a group by grouping sets ((len(s), len(s)), (s))",
        "select count(*) as n from a group by grouping sets ((len(s), s), (s))",
    ),
    "UNION within UNION ALL": (
        "select k from a union all (select k from b union select k from c)",
        "select k from a union all (select k from b union all select k from c)",
    ),
    "UNION BY NAME within UNION ALL": (
        "select k, x from a union all (select k, x from b union all by name select x, k from c)",
        "select k, x from a union all (select k, x from b union all select x, k from c)",
    ),
    "EXCEPT within UNION ALL": (
        "select k from a union all (select k from b except select k from c where x > 0)",
        "select k from a union all (select k from b union all select k from c where x > 0)",
    ),
    "EXCEPT the other way round": (
        "select x from a except select y from b where p",
        "select y as x from b where p except select x from a",
    ),
}
