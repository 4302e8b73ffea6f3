"""Queries whose result tells what a name in them means, one or more for each row of `flow.alias_resolution`.

Each is run three times on an engine: with the bare name, with what it means as a column, and with
what it means as an alias. `docs/name-resolution.md` is written from the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbt_ripple.flow import alias_resolution as r

BOTH, ALIAS_ONLY, NOT_A_KEY = "both", "alias only", "not a key"


@dataclass(frozen=True)
class Rule:
    """`sql` has ``{}`` where the name stands; `column` and `alias` are its two meanings."""

    title: str
    place: str
    sql: str
    column: str = "t.k"
    alias: str = "abs(t.k)"
    name: str = "k"
    kind: str = BOTH

    @property
    def __name__(self) -> str:
        return self.title


DATA = {
    "t": ("k int, v int, g int", [(-3, 1, 1), (3, 2, 1), (2, 3, 1), (-1, 4, 2), (1, 5, 2), (0, 6, 3)]),
    "u": ("y int, w int", [(3, 6), (1, 9), (-3, 2), (0, 7)]),
    "u2": ("k int, w int", [(3, 30), (9, 90), (0, 5)]),
}  # fmt: skip


def _only(title: str, place: str, sql: str, alias: str = "abs(t.k)") -> Rule:
    return Rule(title, place, sql, "", alias, "z", ALIAS_ONLY)


RULES = [
    Rule("select list", r.SELECT, "select abs(k) as k, {} + 1 as j from t"),
    _only("select list, alias only", r.SELECT, "select abs(k) as z, {} + 1 as j from t"),
    _only(
        "select list of groups, alias only",
        r.SELECT,
        "select g, sum(v) as z, {} + 1 as j from t group by g",
        "sum(t.v)",
    ),
    Rule("where", r.WHERE, "select abs(k) as k, v from t where {} < 0"),
    _only("where, alias only", r.WHERE, "select abs(k) as z, v from t where {} > 1"),
    Rule(
        "window", r.WINDOW, "select abs(k) as k, v, row_number() over (order by {}, v) as n from t"
    ),
    Rule(
        "partition",
        r.WINDOW,
        "select abs(k) as k, v, row_number() over (partition by {} order by v) as n from t",
    ),
    Rule(
        "named window",
        r.WINDOW,
        "select abs(k) as k, v, row_number() over w as n from t window w as (order by {}, v)",
    ),
    _only(
        "window, alias only",
        r.WINDOW,
        "select abs(k) as z, v, row_number() over (order by {}, v) as n from t",
    ),
    Rule("group by", r.GROUP, "select abs(k) as k, count(*) as c from t group by {}"),
    Rule("group by (name)", r.GROUP, "select abs(k) as k, count(*) as c from t group by ({})"),
    Rule(
        "group by rollup",
        r.GROUP,
        "select 7 as k, count(*) as c from t group by rollup({})",
        alias="7",
    ),
    Rule(
        "group by sets",
        r.GROUP,
        "select 7 as k, count(*) as c from t group by grouping sets (({}), ())",
        alias="7",
    ),
    _only("group by, alias only", r.GROUP, "select abs(k) as z, count(*) as c from t group by {}"),
    Rule(
        "group by expression",
        r.GROUP_IN,
        "select 7 as k, count(*) as c from t group by {} + 0",
        alias="7",
    ),
    _only(
        "group by expression, alias only",
        r.GROUP_IN,
        "select abs(k) as z, count(*) as c from t group by {} + 0, t.k",
    ),
    Rule(
        "having, a key",
        r.HAVING,
        "select abs(k) as k, count(*) as c from t group by t.k having {} < 0",
    ),
    Rule(
        "having, a key in an expression",
        r.HAVING,
        "select abs(k) as k, count(*) as c from t group by t.k having {} + 0 < 0",
    ),
    Rule(
        "having, not a key",
        r.HAVING,
        "select g, sum(v) as k from t group by g having {} > 6",
        "max(t.k)",
        "sum(t.v)",
        kind=NOT_A_KEY,
    ),
    Rule(
        "having, not a key, in an expression",
        r.HAVING,
        "select g, sum(v) as k from t group by g having {} + 0 > 6",
        "max(t.k)",
        "sum(t.v)",
        kind=NOT_A_KEY,
    ),
    Rule(
        "having without group by",
        r.HAVING,
        "select max(v) as k from t having {} > 5",
        "min(t.k)",
        "max(t.v)",
        kind=NOT_A_KEY,
    ),
    _only(
        "having, alias only",
        r.HAVING,
        "select g, sum(v) as z from t group by g having {} > 6",
        "sum(t.v)",
    ),
    Rule(
        "having, in an aggregate",
        r.HAVING_AGGREGATE,
        "select g, 5 as k from t group by g having sum({}) > 2",
        alias="5",
    ),
    _only(
        "having, in an aggregate, alias only",
        r.HAVING_AGGREGATE,
        "select abs(k) as z, count(*) as c from t group by abs(k) having sum({}) > 2",
    ),
    Rule(
        "having, in a subquery",
        r.SUBQUERY,
        "select abs(k) as k, count(*) as c from t group by t.k"
        " having exists (select 1 from u where u.y = {})",
    ),
    Rule(
        "order by, in a subquery",
        r.SUBQUERY,
        "select abs(k) as k, v from t"
        " order by coalesce((select max(u.w) from u where u.y = {}), 99), v desc limit 1",
    ),
    Rule(
        "qualify",
        r.QUALIFY,
        "select abs(k) as k, v from t qualify {} < 0 and row_number() over (order by v) > 0",
    ),
    Rule(
        "qualify, in a window",
        r.QUALIFY,
        "select abs(k) as k, v from t qualify row_number() over (order by {}, v) = 1",
    ),
    Rule(
        "qualify of groups",
        r.QUALIFY,
        "select abs(k) as k, count(*) as c from t group by t.k"
        " qualify row_number() over (order by {}, count(*)) = 1",
    ),
    _only(
        "qualify, alias only",
        r.QUALIFY,
        "select abs(k) as z, v from t qualify {} > 1 and row_number() over (order by v) > 0",
    ),
    Rule("distinct on", r.DISTINCT_ON, "select distinct on ({}) abs(k) as k, 1 as one from t"),
    _only(
        "distinct on, alias only",
        r.DISTINCT_ON,
        "select distinct on ({}) abs(k) as z, 1 as one from t",
    ),
    Rule(
        "distinct on expression",
        r.DISTINCT_ON_IN,
        "select count(*) as c from (select distinct on ({} + 0) abs(k) as k, v from t) as s",
    ),
    Rule("order by", r.ORDER, "select abs(k) as k, v from t order by {}, v limit 2"),
    Rule("order by (name)", r.ORDER, "select abs(k) as k, v from t order by ({}), v limit 2"),
    Rule("order by desc", r.ORDER, "select abs(k) as k, v from t order by {} desc, v limit 1"),
    Rule(
        "order by of groups",
        r.ORDER,
        "select abs(k) as k, count(*) as c from t group by t.k order by {}, c limit 1",
    ),
    Rule(
        "order by under distinct",
        r.ORDER,
        "select distinct abs(k) as k, 3 as j from t order by {}, j limit 1",
    ),
    _only("order by, alias only", r.ORDER, "select abs(k) as z, v from t order by {}, v limit 2"),
    Rule(
        "order by expression",
        r.ORDER_IN,
        "select abs(k) as k, v from t order by {} + 0, v limit 2",
    ),
    Rule(
        "order by function",
        r.ORDER_IN,
        "select abs(k) as k, v from t order by coalesce({}, 0), v limit 2",
    ),
    Rule(
        "order by case",
        r.ORDER_IN,
        "select abs(k) as k, v from t order by case when {} < 0 then 0 else 1 end, v limit 2",
    ),
    Rule(
        "order by expression of groups",
        r.ORDER_IN,
        "select -abs(k) as k, count(*) as c, t.k as j from t group by t.k"
        " order by {} + 0, j desc limit 1",
        alias="-abs(t.k)",
    ),
    _only(
        "order by expression, alias only",
        r.ORDER_IN,
        "select abs(k) as z, v from t order by {} + 0, v limit 2",
    ),
    Rule(
        "order by aggregate",
        r.ORDER_AGGREGATE,
        "select g, 5 as v from t group by g order by -max({}), g limit 1",
        "t.v",
        "5",
        "v",
    ),
    _only(
        "order by aggregate, alias only",
        r.ORDER_AGGREGATE,
        "select abs(k) as z, count(*) as c from t group by abs(k) order by sum({}) limit 1",
    ),
    Rule(
        "order by window",
        r.ORDER_WINDOW,
        "select abs(k) as k, v from t order by row_number() over (order by {}, v) limit 1",
    ),
]

POSITIONS = [
    (
        "select abs(k) as z, count(*) as c from t group by 1",
        "select abs(k) as z, count(*) as c from t group by abs(k)",
        "select abs(v) as z, count(*) as c from t group by 1",
    ),
    (
        "select abs(k) as z, count(*) as c from t group by (1)",
        "select abs(k) as z, count(*) as c from t group by abs(k)",
        "select abs(v) as z, count(*) as c from t group by (1)",
    ),
    (
        "select abs(k) as z, count(*) as c from t group by rollup(1)",
        "select abs(k) as z, count(*) as c from t group by rollup(abs(k))",
        "select abs(v) as z, count(*) as c from t group by rollup(1)",
    ),
    (
        "select v, abs(k) as z from t order by 2, v limit 3",
        "select v, abs(k) as z from t order by abs(k), v limit 3",
        "select v, abs(k + 2) as z from t order by 2, v limit 3",
    ),
    (
        "select v, abs(k) as z from t order by (2), v limit 3",
        "select v, abs(k) as z from t order by abs(k), v limit 3",
        "select v, abs(k + 2) as z from t order by (2), v limit 3",
    ),
    (
        "select *, abs(k) as z from t order by 4, v limit 3",
        "select *, abs(k) as z from t order by abs(k), v limit 3",
        "select *, abs(k + 2) as z from t order by 4, v limit 3",
    ),
    (
        "select *, abs(k) as z from t order by 1, v limit 3",
        "select *, abs(k) as z from t order by t.k, v limit 3",
        "select v, k, g, abs(k) as z from t order by 1, v limit 3",
    ),
]
"""A query that names a position, one that names what stands there, and one where another does."""
CONSTANTS = [
    (
        "select abs(k) as z, v from t order by 1 + 0, v limit 3",
        "select abs(k + 2) as z, v from t order by 1 + 0, v limit 3",
    ),
    (
        "select 3 as z, v, k from t order by 0 + 3, v limit 3",
        "select 3 as z, v, g from t order by 0 + 3, v limit 3",
    ),
]
"""Integers that look like a position and are none: what would stand there says nothing of the rows."""


Run = Callable[[str], list[Any]]


def meaning(rule: Rule, run: Run) -> str:
    """What the name means on an engine: column, alias, refused; or both, where the data is poor."""

    def result(name: str) -> Any:
        rows = run(rule.sql.replace("{}", name))
        return rows if "order by" in rule.sql else sorted(rows, key=repr)

    try:
        bare = result(rule.name)
    except Exception:  # every engine has its own
        return "refused"
    meanings = []
    for what, name in (("column", rule.column), ("alias", rule.alias)):
        try:
            if name and result(name) == bare:
                meanings.append(what)
        except Exception:
            continue
    return " and ".join(meanings) or "neither"


def expected(rule: Rule, says: int) -> str:
    """What the table says a name means there; "missing" where an alias is not seen."""
    if rule.kind == ALIAS_ONLY:
        return "missing" if says == r.SOURCE else "alias"
    if says == r.ALIAS_FIRST or (says == r.KEY_FIRST and rule.kind == NOT_A_KEY):
        return "alias"
    return "either" if says == r.EITHER else "column"
