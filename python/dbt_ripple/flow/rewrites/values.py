"""Rules of values: CASE and its like, operators and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from sqlglot import exp

from dbt_ripple.flow.lowering.parse_tree import IN_ANY_ORDER, verbatim
from dbt_ripple.flow.rewrites.queries import sees_order
from dbt_ripple.flow.rewrites.rules import (
    Rewriting,
    is_not_null,
    is_null,
    is_predicate,
    is_pure,
    is_scalar,
    rule,
    type_of,
)

_PLUS_JOINS_TEXT: Final = frozenset({"tsql", "fabric"})
"""Dialects in which `+` puts texts together, in order."""


@rule("simple CASE", exp.Case)
def simple_case(node: exp.Case, rewriting: Rewriting) -> Any:
    """`case a when b` is `case when a = b`."""
    value = node.this
    if value is None or not is_pure(value, rewriting.dialect) or isinstance(value, exp.Literal):
        return None
    for branch in node.args["ifs"]:
        branch.set("this", exp.EQ(this=value.copy(), expression=branch.this))
    node.set("this", None)
    return node


@rule("ELSE NULL", exp.Case)
def else_null(node: exp.Case, rewriting: Rewriting) -> Any:
    """What no branch of a CASE is met by is NULL without an ELSE."""
    if not isinstance(node.args.get("default"), exp.Null):
        return None
    node.set("default", None)
    return node


@rule("IF", exp.If, exp.Nvl2)
def if_(node: Any, rewriting: Rewriting) -> Any:
    """`if(a, b, c)` is `case when a then b else c end`."""
    if node.arg_key == "ifs":  # a branch of a CASE
        return None
    test = node.this
    if type(node) is exp.Nvl2:
        test = exp.Not(this=exp.Is(this=test, expression=exp.Null()))
    if not {k for k, v in node.args.items() if v} <= {"this", "true", "false"}:
        return None
    branch = exp.If(this=test, true=node.args["true"])
    return exp.Case(ifs=[branch], default=node.args.get("false"))


@rule("NULLIF", exp.Nullif)
def null_if(node: exp.Nullif, rewriting: Rewriting) -> Any:
    """`nullif(a, b)` is `case when a = b then null else a end`."""
    if not is_pure(node.this, rewriting.dialect):
        return None
    test = exp.EQ(this=node.this.copy(), expression=node.expression)
    return exp.Case(ifs=[exp.If(this=test, true=exp.Null())], default=node.this)


def _of_one_type(node: Any, rewriting: Rewriting) -> bool:
    """Whether what is chosen from has one type, however it is put together.

    A number may become a decimal first and a text then; DuckDB refuses a choice of both. There a
    constant takes the type of what it stands beside: put elsewhere, it stands beside something else.
    """
    if type_of(node, rewriting) is not None:
        return True
    return rewriting.dialect == "duckdb" and all(
        any(True for _ in chosen.find_all(exp.Column)) for chosen in _chosen(node)
    )


def _chosen(node: Any) -> Iterator[Any]:
    """What a CASE or COALESCE chooses from, however nested."""
    if isinstance(node, exp.Coalesce):
        parts = [node.this, *node.expressions]
    elif isinstance(node, exp.Case):
        default = node.args.get("default")
        parts = [branch.args["true"] for branch in node.args["ifs"]]
        parts += [] if default is None else [default]
    else:
        yield node
        return
    for part in parts:
        yield from _chosen(part)


@rule("CASE within ELSE", exp.Case)
def case_in_else(node: exp.Case, rewriting: Rewriting) -> Any:
    """A CASE in the ELSE of another is more branches of it."""
    inner = node.args.get("default")
    if node.this is not None or not isinstance(inner, exp.Case) or inner.this is not None:
        return None
    if not _of_one_type(node, rewriting):
        return None
    node.set("ifs", [*node.args["ifs"], *inner.args["ifs"]])
    node.set("default", inner.args.get("default"))
    return node


@rule("branches of one value", exp.Case)
def branches_of_one_value(node: exp.Case, rewriting: Rewriting) -> Any:
    """Neighbouring branches that give the same are one; the last that gives what ELSE does is ELSE."""
    if node.this is not None or not is_pure(node, rewriting.dialect):
        return None
    branches = node.args["ifs"]
    default = node.args.get("default") or exp.Null()
    if len(branches) > 1 and verbatim(branches[-1].args["true"]) == verbatim(default):
        node.set("ifs", branches[:-1])
        return node
    for i in range(len(branches) - 1):
        one, other = branches[i : i + 2]
        if verbatim(one.args["true"]) == verbatim(other.args["true"]):
            one.set("this", exp.Or(this=one.this, expression=other.this))
            node.set("ifs", [*branches[: i + 1], *branches[i + 2 :]])
            return node
    return None


@rule("COALESCE for CASE", exp.Case)
def coalesce_for_case(node: exp.Case, rewriting: Rewriting) -> Any:
    """`case when a is not null then a else b end` is `coalesce(a, b)`."""
    branches, default = node.args["ifs"], node.args.get("default")
    if node.this is not None or len(branches) != 1 or default is None:
        return None
    test, then = branches[0].this, branches[0].args["true"]
    if is_null(test):
        then, default, value = default, then, test.this
    elif is_not_null(test):
        value = test.this.this
    else:
        return None
    if verbatim(value) != verbatim(then) or not is_pure(value, rewriting.dialect):
        return None
    return exp.Coalesce(this=then, expressions=[default])


@rule("CASE WHEN NOT", exp.Case)
def case_when_not(node: exp.Case, rewriting: Rewriting) -> Any:
    """`case when a is not null then b else c end` is `case when a is null then c else b end`.

    Only of a condition that is never NULL.
    """
    branches = node.args["ifs"]
    if node.this is not None or len(branches) != 1 or not is_not_null(branches[0].this):
        return None
    then = branches[0].args["true"]
    default = node.args.get("default") or exp.Null()
    return exp.Case(ifs=[exp.If(this=branches[0].this.this, true=default)], default=then)


@rule("CASE true or false", exp.Case)
def case_true_or_false(node: exp.Case, rewriting: Rewriting) -> Any:
    """`case when a then true else false end` is `coalesce(a, false)`."""
    branches, default = node.args["ifs"], node.args.get("default")
    if node.this is not None or len(branches) != 1 or not isinstance(default, exp.Boolean):
        return None
    test, then = branches[0].this, branches[0].args["true"]
    if not isinstance(then, exp.Boolean) or not then.this or default.this:
        return None
    if not is_predicate(test):
        return None
    return exp.Coalesce(this=test, expressions=[exp.Boolean(this=False)])


@rule("COALESCE within COALESCE", exp.Coalesce)
def coalesces(node: exp.Coalesce, rewriting: Rewriting) -> Any:
    """`coalesce(a, coalesce(b, c))` is `coalesce(a, b, c)`; IFNULL and NVL are COALESCE."""
    plain = {"this", "expressions"}
    flags = {k for k, v in node.args.items() if v is not None and k not in plain}
    if flags:
        if flags - {"is_nvl", "is_null"}:
            return None
        return exp.Coalesce(this=node.this, expressions=node.expressions)
    parts = [node.this, *node.expressions]
    if not any(type(part) is exp.Coalesce for part in parts):
        return None
    if not _of_one_type(node, rewriting):
        return None
    flat: list[Any] = []
    for part in parts:
        flat += [part.this, *part.expressions] if type(part) is exp.Coalesce else [part]
    return exp.Coalesce(this=flat[0], expressions=flat[1:])


@rule(
    "operands in any order",
    exp.Add,
    exp.Mul,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
    at_last=True,
)
def operands(node: Any, rewriting: Rewriting) -> Any:
    """`a + b` is `b + a`, and `a * b` is `b * a`; three of them are not added up in another order.

    Not of lists, which DuckDB puts together.
    """
    if rewriting.dialect in _PLUS_JOINS_TEXT or len(node.args) != 2:
        return None
    if type(node) is exp.Add and not is_scalar(node, rewriting):
        return None
    name = type(node).__name__
    return exp.Anonymous(this=IN_ANY_ORDER + name, expressions=[node.this, node.expression])


_EQUAL_IS_SAME: Final = re.compile(
    r"(u?(tiny|small|big|huge)?int|integer|long|date|boolean|bool|timestamp)", re.I
)
"""Types of which equal values are one value; 0.0 and -0.0 are two, as are texts in a collation."""


@rule("arguments in any order", exp.Greatest, exp.Least, at_last=True)
def arguments(node: Any, rewriting: Rewriting) -> Any:
    """GREATEST and LEAST ask all of their arguments alike."""
    parts = [node.this, *node.expressions]
    if not {k for k, v in node.args.items() if v} <= {
        "this",
        "expressions",
        "ignore_nulls",
    }:
        return None
    if any(not _EQUAL_IS_SAME.fullmatch(type_of(part, rewriting) or "") for part in parts):
        return None
    flag = "ignoring NULLs" if node.args.get("ignore_nulls") else ""
    return exp.Anonymous(this=f"{IN_ANY_ORDER}{type(node).__name__}{flag}", expressions=parts)


@rule("PARTITION BY in any order", exp.Window, at_last=True)
def partitions(node: exp.Window, rewriting: Rewriting) -> Any:
    """Rows are of one partition where they agree in all of its keys.

    An engine sorts by these keys, in their order, and leaves the rows sorted: only where nothing
    else in the query asks for the order of rows, and whoever reads the query has to know.
    """
    keys = node.args.get("partition_by") or []
    if len(keys) < 2 or sees_order(node.root(), rewriting.dialect, beside=node):
        return None
    rewriting.reordered = True
    node.set("partition_by", [exp.Anonymous(this=IN_ANY_ORDER + "keys", expressions=list(keys))])
    return node


_DEFAULT_FRAME: Final = {"kind": "RANGE", "start": "UNBOUNDED", "start_side": "PRECEDING"}
_UP_TO_PEERS: Final = {"end": "CURRENT ROW"}
_FRAMES_ALIKE: Final = frozenset({"bigquery", "databricks", "duckdb", "postgres", "spark", "trino"})
"""Dialects in which every function of a window has this frame; Snowflake's `first_value` has another."""


@rule("default frame", exp.Window)
def default_frame(node: exp.Window, rewriting: Rewriting) -> Any:
    """A frame up to the peers of the current row is what a sorted window has without one."""
    spec = node.args.get("spec")
    if spec is None or rewriting.dialect not in _FRAMES_ALIKE or node.args.get("order") is None:
        return None
    frame = {k: v.upper() if isinstance(v, str) else v for k, v in spec.args.items() if v}
    if node.args.get("alias") or frame not in (_DEFAULT_FRAME, _DEFAULT_FRAME | _UP_TO_PEERS):
        return None
    node.set("spec", None)
    return node


_BY_CONDITION: Final = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


@rule("FILTER", exp.Filter)
def filter_(node: exp.Filter, rewriting: Rewriting) -> Any:
    """`sum(a) filter (where b)` is `sum(case when b then a end)`: of aggregates that skip NULLs."""
    call, where = node.this, node.expression
    if type(call) not in _BY_CONDITION or not isinstance(where, exp.Where):
        return None
    if any(v for k, v in call.args.items() if k not in ("this", "big_int")):
        return None
    value = call.this
    if isinstance(value, exp.Star) and not any(value.args.values()):
        value = exp.Literal.number(1)
    if isinstance(value, exp.Distinct):
        if len(value.expressions) != 1 or value.args.get("on"):
            return None
        case = exp.Case(ifs=[exp.If(this=where.this, true=value.expressions[0])])
        return type(call)(**{**call.args, "this": exp.Distinct(expressions=[case])})
    if not isinstance(value, exp.Expression) or isinstance(value, (exp.Tuple, exp.Star, exp.Order)):
        return None
    case = exp.Case(ifs=[exp.If(this=where.this, true=value)])
    return type(call)(**{**call.args, "this": case})


@rule("what COUNT counts", exp.Count)
def counted(node: exp.Count, rewriting: Rewriting) -> Any:
    """`count(case when a then 'x' end)` counts as `count(case when a then 1 end)` does."""
    case = node.this
    if not isinstance(case, exp.Case) or case.args.get("default") is not None:
        return None
    thens = [branch.args["true"] for branch in case.args["ifs"]]
    if not all(isinstance(then, (exp.Literal, exp.Boolean)) for then in thens):
        return None
    if all(verbatim(then) == verbatim(exp.Literal.number(1)) for then in thens):
        return None
    for branch in case.args["ifs"]:
        branch.set("true", exp.Literal.number(1))
    return node


@rule("parts of a date", exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute)
def parts_of_a_date(node: Any, rewriting: Rewriting) -> Any:
    """`year(a)` is `extract(year from a)`."""
    if {k for k, v in node.args.items() if v} != {"this"}:
        return None
    return exp.Extract(this=exp.Var(this=type(node).__name__.upper()), expression=node.this)


@rule("date_part", exp.Anonymous)
def date_part(node: exp.Anonymous, rewriting: Rewriting) -> Any:
    """DuckDB's and Postgres's `date_part('year', a)` is `extract(year from a)`."""
    parts = node.expressions
    if str(node.this).lower() not in ("date_part", "datepart") or len(parts) != 2:
        return None
    if rewriting.dialect != "duckdb" or not isinstance(parts[0], exp.Literal):
        return None
    return exp.Extract(this=parts[0], expression=parts[1]) if parts[0].is_string else None


_PARTS: Final = frozenset({"YEAR", "MONTH", "DAY", "QUARTER", "HOUR", "MINUTE"})


@rule("EXTRACT", exp.Extract)
def extract(node: exp.Extract, rewriting: Rewriting) -> Any:
    """The part of a date that EXTRACT names, in one spelling."""
    part = node.this
    name = (
        str(part.name).upper() if isinstance(part, (exp.Var, exp.Literal, exp.Identifier)) else ""
    )
    if name not in _PARTS or (type(part) is exp.Var and part.this == name):
        return None
    return exp.Extract(this=exp.Var(this=name), expression=node.expression)


@rule("LEFT", exp.Left)
def left(node: exp.Left, rewriting: Rewriting) -> Any:
    """`left(a, 2)` is `substring(a, 1, 2)`, of a length that is no less than zero."""
    length = node.expression
    if not isinstance(length, exp.Literal) or not length.is_int or int(length.this) < 1:
        return None
    return exp.Substring(this=node.this, start=exp.Literal.number(1), length=length)
