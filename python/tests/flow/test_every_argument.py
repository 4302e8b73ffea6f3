"""Every argument of every class of sqlglot's parse tree moves a fingerprint, or the query is refused.

Nothing here is a list of what the lowering reads. Arguments are set and changed in parse trees, and
what that does to the fingerprints is looked at:

* a class that `flow` names by itself (it may have a rule of its own) is changed where it stands in
  the SAMPLES, once for each place it is found in: below this class, in this argument;
* every other class is put into a select list, with one argument set, and with another value.

What changes nothing must stand in HARMLESS, with the reason. A class or an argument that sqlglot
gets tomorrow, and a rule that `flow` gets for one more class, fail here until there is a sample.

Run as a script, this prints each argument with what reads it.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import sqlglot
from linked_tables import table_relation
from sqlglot import exp

from dbt_ripple.flow import lowering
from dbt_ripple.flow.link import link
from dbt_ripple.flow.lowering.query import Lowering
from dbt_ripple.flow.reading.refusals import Unsupported
from dbt_ripple.flow.relation import Relation

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of trees no dialect can say

COLUMNS: Final = ["a", "b", "c", "d"]
NAMES_A_PLACE: Final = "names what is made, which is the node, whatever it is called"
SAID_OF_TABLES: Final = "said of the names of tables only (#temporary), and read there"
HARMLESS: Final[dict[tuple[str, ...], str]] = {
    ("Alias", "alias", "Pivot.expressions"): "the names are in `columns`, made by sqlglot",
    ("Column", "table", "Select.expressions"): "of one source: t.a is a",
    ("Column", "table", "Kwarg.expression"): "of one source: t.a is a",
    ("Column", "table", "Unnest.expressions"): "of one source: t.a is a",
    ("Column", "table", "Alias.this"): "* RENAME (c AS e): of any source",
    ("Column", "table", "In.expressions"): "UNPIVOT has one source",
    ("Column", "table", "PivotAlias.this"): "UNPIVOT has one source",
    ("Column", "table", "Tuple.expressions"): "UNPIVOT has one source",
    ("Count", "big_int"): "COUNT_BIG is the same number of another type",
    ("Count", "this", "Alias.this"): "count('x') is count(*)",
    ("Create", "exists"): "IF NOT EXISTS: where, not what",
    ("Create", "kind"): "a table or a view of one query holds the same",
    ("Create", "replace"): "OR REPLACE: where, not what",
    ("Create", "this"): NAMES_A_PLACE,
    ("Group", "rollup", "Select.group"): "a literal is no ROLLUP; WITH ROLLUP is read",
    ("Identifier", "global_"): SAID_OF_TABLES,
    ("Identifier", "temporary"): SAID_OF_TABLES,
    ("Identifier", "quoted"): "how a name is written; where quotes keep case, `fold` reads them",
    ("Identifier", "this", "PivotAlias.alias"): "the names are in `columns`, made by sqlglot",
    ("If", "false", "Case.ifs"): "a branch of CASE has none, ELSE is `default`",
    ("Insert", "exists"): "IF EXISTS: where, not what",
    ("Join", "kind", "Table.joins"): "a join without a condition is a CROSS JOIN",
    ("Lateral", "alias", "Join.this"): "nothing in the sample says the alias",
    ("Lateral", "cross_apply", "Join.this"): "CROSS APPLY is a lateral join",
    ("Pivot", "alias", "Table.pivots"): "nothing in the sample says the alias",
    ("Pivot", "columns", "Table.pivots"): "UNPIVOT has its names in `expressions` and `fields`",
    ("Pivot", "include_nulls", "Table.pivots"): "a word of UNPIVOT, not of PIVOT",
    ("Pivot", "identify_pivot_strings"): "how sqlglot makes the names in `columns`",
    ("Pivot", "pivot_column_naming"): "how sqlglot makes the names in `columns`",
    ("Pivot", "prefixed_pivot_columns"): "how sqlglot makes the names in `columns`",
    ("Pivot", "value_columns_first"): "the order of UNPIVOT's columns: names say which is which",
    ("PivotAlias", "alias", "In.expressions"): "the names are in `columns`, made by sqlglot",
    ("Schema", "expressions", "Insert.this"): "one more name than the query has columns",
    ("Schema", "this", "Insert.this"): NAMES_A_PLACE,
    ("Select", "windows"): "a window nobody names",
    ("Star", "except_"): "the same column left out twice",
    ("Star", "rename"): "the same column renamed twice",
    ("Star", "replace"): "the same column replaced twice",
    (
        "Subquery",
        "alias",
    ): "a subquery that is a value or a whole query has nobody who says its name",
    ("Table", "alias"): "nothing in the sample says the alias",
    ("Table", "catalog"): "the dbt node is told by the name; a word is no name of a catalog",
    ("Table", "db"): "the dbt node is told by the name; a word is no name of a schema",
    ("Table", "this", "Create.this"): NAMES_A_PLACE,
    ("Table", "this", "Insert.this"): NAMES_A_PLACE,
    ("Table", "this", "Schema.this"): NAMES_A_PLACE,
    ("Table", "joins", "Create.this"): "what is made has no joins",
    ("Table", "joins", "Insert.this"): "what is made has no joins",
    ("Table", "joins", "Schema.this"): "what is made has no joins",
    ("Table", "pivots", "Create.this"): "what is made has no pivots",
    ("Table", "pivots", "Insert.this"): "what is made has no pivots",
    ("Table", "pivots", "Schema.this"): "what is made has no pivots",
    ("TableFromRows", "alias", "From.this"): "nothing in the sample says the alias",
    ("TableFromRows", "joins"): "tried with what no parser makes; joins are joined or refused",
    ("Unnest", "alias", "Lateral.this"): "LATERAL has the alias",
    ("Values", "alias", ""): "nobody says the name of a whole query",
    ("Window", "over"): "the word OVER; any other counts (KEEP)",
    ("With", "expressions", "Select.with_"): "the same CTE twice",
    ("With", "recursive", "Select.with_"): "no CTE of the sample reads itself",
}
"""(class, argument[, where it stands]): why it may change and nothing moves."""
SAMPLES: Final[dict[str, list[str]]] = {
    "duckdb": [
        "select a, t.b, 1 as one, 'x' as s, (a) as p, null, true from t where a = 1 and b > 2 or c",
        "select count(*) as n, sum(a) as s, max(b) from t group by a, rollup (b, c) having sum(a) > 1",
        "select a from t group by grouping sets ((a), cube (a, b))",
        "select a, sum(b) from t group by all order by all desc limit 1",
        "select distinct on (a) a, b from t order by b desc, 1",
        "select distinct a from t limit 3 offset 2",
        "from (select a, b from t) as s join u on s.a = u.a",
        "select #1 + a as x, b from t order by #2 limit 1",
        "select * from t limit 10 percent",
        "select * exclude (a) replace (b + 1 as b) rename (c as e) from t",
        "select t.*, u.* exclude (a) from t join u on t.a = u.a",
        "select count(*) from t, u",
        "select sum(a) over (partition by b order by c rows between 1 preceding and current row) s, "
        "sum(a) filter (where b > 1) over w as f, lag(a ignore nulls) over (order by b) as l, "
        "first_value(a respect nulls) over (w rows 1 preceding) as g, "
        "row_number() over (partition by a, b order by c desc) as r "
        "from t qualify row_number() over w = 1 window w as (partition by a order by b)",
        "select quantile_cont(0.5) within group (order by a) as q, mode() within group (order by b) "
        "from t",
        "select list(a order by b desc) as l, count(distinct a) as n, count(a, b) as m from t",
        "select case a when 1 then b else c end, if(a, b, c), nullif(a, b), coalesce(a, b) from t",
        "select a in (1, b), a in (select b from u), exists (select 1 from u where u.a = t.a), "
        "(select max(b) from u) as m, a between 1 and 2, a is null, not b from t",
        "select a + b - c * d / 2 % 3, a || b, a ** 2, list_transform(a, (x, i) -> x + i) from t",
        "select [x + i for x, i in a if x > 1] as l, struct_pack(k := a) as s, f(a, b) as g from t",
        "select cast(a as decimal(10, 2)) c1, a::int[] c2, cast(b as varchar) c3 from t",
        "with r as materialized (select a from t), s (x) as (select b from u) select * from r, s",
        "with recursive r (n) as (select 1 union all select n + 1 from r where n < 3) select n from r",
        "select a from t union all by name select b from u",
        "select a, b from t union select a, b from u order by 1 limit 2",
        "select a from t except all (select a from u limit 3) intersect select b from u",
        "select * from (select a from t where b limit 3) as q (z) where z > 1",
        "select x.a from (t as x join u as y using (a)) left join u as z on z.b = x.b",
        "select * from (t cross join u) as q (e, f)",
        "(select a from t) limit 1",
        "select * from t as r (p, q) semi join u on u.a = p",
        "select * from t asof join u on t.a >= u.a natural join u as v",
        "select * from (values (1, 2), (3, 4)) as v (x, y)",
        "values (1, 2), (3, 4) order by 1 limit 1",
        "select * from t, unnest(t.a) as n (x)",
        "select unnest(a) as x, unnest(b) from t",
        "select * from range(3) as r (i), lateral (select i + 1) as l",
        "select * from t tablesample reservoir (10 rows) repeatable (1)",
        "select sum(a) from t using sample 10 percent (bernoulli, 3)",
        "select * from t at (version => 3)",
        "select * from t pivot (sum(a) as s, max(b) for c in (1 as one, 2))",
        "select * from t unpivot include nulls (v for n in (a as x, b))",
        "select * from t unpivot ((v, w) for n in ((a, b), (c, d)))",
        "select columns('a.*') from t",
        "create table made as select a from t",
        "insert into made (x) select a from t",
        "select a, grouping(a) as g from t group by cube (a)",
        "select $1, md5(a), sha256(a) from t",
        "select a.f.g, a[1], t.a.f from t",
        "select decode(a), f(*), array_agg(t) from t",
        "select a from u where a > all (select a from t) and a = any (select a from t)",
    ],
    "spark": [
        "select /*+ broadcast(u) */ a from t join u using (a) sort by a limit 1",
        "select a from t distribute by a sort by b limit 1",
        "select a from t cluster by a limit 2",
        "select * from t lateral view outer explode(a) x as y lateral view posexplode(b) z as p, q",
        "select stack(2, a, b, c, d) as (x, y), inline(a), explode(b) as e from t",
        "select * from t lateral view stack(2, a, b) s as v",
        "select transform(a, b) using 'cat' as (c string, d) from t",
        "select * from t version as of 3",
        "select * from t tablesample (bucket 1 out of 10 on a)",
        "select a, count(1) from t group by a, b with rollup",
        "select a, count(1) from t group by a, b grouping sets ((a), (b))",
        "select decode(a, 1, b, 2, c, d), nvl2(a, b, c), transform(a, (x, i) -> x + i) from t",
        "select grouping_id(a), percentile(a, 0.5), any_value(b) ignore nulls from t group by a",
        "insert overwrite table made partition (d = 1) select a from t",
        "select from_json(a, 'x int'), max_by(a, b), mask(a) from t",
        "select posexplode(a) as (p, x) from t",
        "select * from json_tuple(a, 'x') as j (x)",
    ],
    "postgres": [
        "select * from t left join lateral (select b from u where u.a = t.a) as x (z) on true",
        "select * from t, lateral unnest(b) with ordinality as x (p, q)",
        "select * from unnest(array[1]) with ordinality as x (p, q)",
        "select * from f(1) with ordinality as x (p, q)",
        "select * from json_to_recordset('[]') as x (p int, q text)",
        "select a from t for update of t skip locked",
        "select a from t order by a fetch first 2 rows with ties",
        "select a from t group by distinct rollup (a), rollup (b)",
        "select * from only t tablesample system (10) repeatable (3)",
        "with recursive r as (select 1 as n union all select n + 1 from r) search depth first by n "
        "set o select * from r",
        "select string_agg(a, ',' order by b), percentile_disc(0.5) within group (order by a) from t",
    ],
    "snowflake": [
        "select * ilike 'a%' from t",
        "select level, a from t start with a = 1 connect by prior a = b",
        "select * from t asof join u match_condition (t.a >= u.a) on t.b = u.b",
        "select f.value, f.index from t, lateral flatten(input => t.a, outer => true) f",
        "select * from table(flatten(input => 1)) sample (10)",
        "select * from t changes (information => default) at (timestamp => 1)",
        "select * from t pivot (sum(a) for b in (1, 2) default on null (0))",
        "select * from t match_recognize (partition by a measures b as m pattern (x) define x as a > 1)",
        "select a:x.y::int, iff(a, b, c), nullifzero(a), object_construct('k', a) from t",
    ],
    "tsql": [
        "select top 10 percent with ties a from t order by a",
        "select a from t order by a offset 1 rows fetch next 2 rows only",
        "select a into made from t option (maxrecursion 10)",
        "select a from t for json path",
        "select x.a from #t as x with (nolock) inner hash join u on x.a = u.a",
        "select * from t cross apply (select max(b) as m from u where u.a = t.a) as x",
        "select * from t outer apply f(t.a) as x",
    ],
    "bigquery": [
        "select array(select as struct a, b from u) as l, t.a from t",
        "select as value a from t",
        "select * from t, unnest(a) as x with offset as o where b in unnest(c)",
        "select x from t, t.a as x",
        "select a from t full outer union all by name on (a) select a from u",
        "select * except (a) replace (b + 1 as b) from t",
        "select * from t for system_time as of '2020-01-01'",
        "from t |> aggregate sum(a) as s group by b as g |> where s > 1",
        "select struct(a as x, b), approx_quantiles(a, 2)[offset(1)], any_value(a having max b) from t",
    ],
    "clickhouse": [
        "select x.a from t as x final prewhere a = 1",
        "select sum(a) from t prewhere b = 1 settings x = 1 format json",
        "select * from t global any left join u on t.a = u.a",
        "select * from t left array join a",
        "select a from t order by a with fill from 1 to 10 step 1 interpolate (b as b + 1)",
        "select a from t limit 1 by b",
        "select a, sum(b) from t group by a with totals",
        "with 1 as x select x from t",
        "select a from t where a in (u) and b global in (select b from u)",
        "select quantile(0.9)(a), sumIf(a, b), cast(a as Nullable(Int32)) from t",
        "select columns('a') apply(sum) from t",
    ],
    "oracle": [
        "select t.a from t, u where t.a = u.a(+)",
        "select max(a) keep (dense_rank last order by b) from t group by c",
        "select a from t start with a = 1 connect by nocycle prior a = b order siblings by c",
        "select listagg(a, ',') within group (order by b) from t",
    ],
    "mysql": [
        "select straight_join sql_no_cache a from t partition (p0) use index (i)",
        "select group_concat(distinct a order by b separator ';') from t group by a with rollup",
    ],
    "databricks": ["select a:b.c, * except (a) from t"],
    "redshift": ["select * exclude a from t"],
}


def harmless(name: str, arg: str, place: str) -> bool:
    return (name, arg) in HARMLESS or (name, arg, place) in HARMLESS


def table(key: str, _: str) -> Relation:
    return table_relation(key, COLUMNS)


def meaning(tree: Any, dialect: str) -> Any:
    """What is known of a query: names and fingerprints; or why it is refused."""
    limit = sys.getrecursionlimit()
    try:
        lowered = Lowering(dialect, ()).statement(tree)
        assert lowered.rel is not None
        linked = link(lowered, table, dialect)
    except Unsupported as why:
        return f"refused: {why}"
    finally:
        sys.setrecursionlimit(limit)
    relation = linked.relation
    rest = [r.fp() for r in relation.unlisted]
    return relation.keys, relation.fps, rest, relation.rows.fp, linked.missing, linked.unknown


def named_classes() -> set[str]:
    """The classes that `flow.lowering` names: a rule of its own may read them."""
    text = "".join(p.read_text() for p in Path(lowering.__path__[0]).glob("*.py"))
    return {n for n in re.findall(r"\bexp\.([A-Z]\w+)", text) if isinstance(getattr(exp, n), type)}


def classes() -> list[type[exp.Expression]]:
    types = {t for t in vars(exp).values() if isinstance(t, type) and issubclass(t, exp.Expression)}
    return sorted(types, key=lambda t: t.__name__)


def marker(kind: str, mark: str) -> Any:
    if kind == "word":
        return mark
    if kind == "literal":
        return exp.Literal.string(mark)
    if kind == "name":
        return exp.to_identifier(mark)
    if kind == "names":
        return [exp.to_identifier(mark)]
    if kind == "literals":
        return [exp.Literal.string(mark)]
    if kind == "condition":
        return exp.Where(this=exp.column("a"))
    if kind == "alias":
        return exp.TableAlias(this=exp.to_identifier(mark))
    return True


KINDS: Final = ("word", "flag", "literal", "name", "names", "literals", "condition", "alias")


def changes(value: Any) -> Iterator[Any]:
    """Other values of an argument."""
    if not value:
        for kind in KINDS:
            yield marker(kind, "marked")
        return
    yield None
    if isinstance(value, list):
        yield value[:-1]
        yield [*value, *(v.copy() if isinstance(v, exp.Expression) else v for v in value[-1:])]
        yield [exp.Literal.string("marked")]
    elif isinstance(value, exp.Expression):
        yield exp.Literal.string("marked")
        yield exp.to_identifier("marked")
    elif isinstance(value, str):
        yield value + "marked"


class Seen:
    """What changing an argument did, over all its places."""

    def __init__(self) -> None:
        self.moved = 0
        self.refused: set[str] = set()
        self.same: dict[str, str] = {}
        self.failed: set[str] = set()

    def read_by(self) -> str:
        return "a rule" if self.moved else "; ".join(sorted(self.refused))


def sampled() -> dict[tuple[str, str], Seen]:
    """Every argument of the classes `flow` names, changed wherever the samples have one."""
    named = named_classes()
    seen_of: dict[tuple[str, str], Seen] = {}
    places: set[tuple[str, str, str, str, bool]] = set()
    for dialect, queries in SAMPLES.items():
        for sql in queries:
            tree: Any = sqlglot.parse_one(sql, dialect=dialect)
            before = meaning(tree.copy(), dialect)
            for position, node in enumerate(tree.walk()):
                name = type(node).__name__
                if name not in named:
                    continue
                for arg in node.arg_types:
                    value = node.args.get(arg)
                    parent = type(node.parent).__name__ if node.parent else ""
                    place = (name, arg, parent, node.arg_key or "", bool(value))
                    if place in places:
                        continue
                    places.add(place)
                    seen = seen_of.setdefault((name, arg), Seen())
                    for change in changes(value):
                        try_change(seen, tree, position, arg, change, before, dialect, sql)
    return seen_of


def try_change(
    seen: Seen, tree: Any, position: int, arg: str, change: Any, before: Any, dialect: str, sql: str
) -> None:
    edited = tree.copy()
    node = list(edited.walk())[position]
    place = f"{type(node.parent).__name__}.{node.arg_key}" if node.parent else ""
    node.set(arg, change)
    try:
        after = meaning(edited, dialect)
    except Exception as error:  # no tree that a parser makes
        seen.failed.add(f"{type(error).__name__} {error}")
        return
    if isinstance(after, str):
        seen.refused.add(after)
    elif after == before:
        seen.same.setdefault(place, f"{arg} = {change!r} in {sql}")
    else:
        seen.moved += 1


@pytest.fixture(scope="module")
def samples() -> dict[tuple[str, str], Seen]:
    return sampled()


def test_a_changed_argument_of_a_class_with_a_rule_changes_something(
    samples: dict[tuple[str, str], Seen],
) -> None:
    silent = {
        f"{name}.{arg} in {place or 'the statement'}": example
        for (name, arg), seen in samples.items()
        for place, example in seen.same.items()
        if not harmless(name, arg, place)
    }
    assert not silent
    untried = {
        f"{name}.{arg}": seen.failed
        for (name, arg), seen in samples.items()
        if not seen.moved and not seen.refused and not any(h[:2] == (name, arg) for h in HARMLESS)
    }
    assert not untried


def in_a_select_list(node: Any) -> Any:
    named = exp.Alias(this=node, alias=exp.to_identifier("x"))
    select = exp.Select(expressions=[named], from_=exp.From(this=exp.to_table("t")))
    return meaning(select, "duckdb")


def unlike(of: type[exp.Expression], arg: str) -> str:
    """Whether an argument that is set, and one that is set otherwise, make a difference."""
    needed = {k: exp.column("c") for k, required in of.arg_types.items() if required}
    results = []
    for value in (None, exp.Literal.string("one"), exp.Literal.string("two"), [exp.column("b")]):
        node = of(**{k: v.copy() for k, v in needed.items() if k != arg})
        if value is not None:
            node.set(arg, value)
        try:
            results.append(in_a_select_list(node))
        except (AttributeError, KeyError, TypeError, ValueError):  # no tree that a parser makes
            continue
    told = [r for r in results if not isinstance(r, str)]
    if any(a == b for i, a in enumerate(told) for b in told[:i]):
        return ""
    if len(told) > 1:
        return "every argument"
    return "; ".join(sorted({r for r in results if isinstance(r, str)}))


def test_an_argument_of_every_other_class_is_read_where_it_stands(
    samples: dict[tuple[str, str], Seen],
) -> None:
    tried = {name for name, _ in samples}
    others = [t for t in classes() if t.__name__ not in tried]
    assert len(others) > 800
    lost = [
        f"{t.__name__}.{arg}"
        for t in others
        for arg in t.arg_types
        if not unlike(t, arg) and not harmless(t.__name__, arg, "")
    ]
    assert not lost


def test_what_is_called_harmless_is_in_a_sample(samples: dict[tuple[str, str], Seen]) -> None:
    idle = [
        entry
        for entry in HARMLESS
        if entry[:2] not in samples
        or (len(entry) == 3 and entry[2] not in samples[entry[0], entry[1]].same)
    ]
    assert not idle


def listed() -> Iterator[str]:
    """Each argument with what reads it."""
    samples = sampled()
    for t in classes():
        for arg in t.arg_types:
            seen = samples.get((t.__name__, arg))
            read = seen.read_by() if seen else unlike(t, arg)
            reasons = [why for entry, why in HARMLESS.items() if entry[:2] == (t.__name__, arg)]
            yield f"{t.__name__}.{arg}: " + "; but not: ".join(
                [read, *reasons] if read else reasons
            )


if __name__ == "__main__":
    print(*listed(), sep="\n")
