"""The lists of functions by kind against the engines they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlglot import exp
from tool_scripts import tool

from dbt_ripple.flow.functions import ENGINES, functions
from dbt_ripple.flow.ir import Select
from dbt_ripple.flow.lower import lower
from dbt_ripple.flow.lowering.expressions import Expressions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TOOL = tool("functions")
"""The script that writes the lists."""


def not_as_listed(engine: str, kinds: dict[str, set[str]]) -> dict[str, str]:
    """Functions of an engine that its list does not have under their kind."""
    functions_of_engine = functions(engine)
    wrong = {}
    for kind in ("scalar", "aggregate", "window", "generator"):
        for name in filter(TOOL.NAME.fullmatch, kinds.get(kind, ())):
            listed = functions_of_engine.kind(name) if name in functions_of_engine.kinds else "not"
            if listed not in (kind, "unknown", "window"):
                wrong[name] = f"{kind}, {listed} listed"
    return wrong


def test_all_functions_of_duckdb_are_listed() -> None:
    _, kinds = TOOL.duckdb()
    assert len(kinds["scalar"]) > 500 and len(kinds["aggregate"]) > 60
    assert not_as_listed("duckdb", kinds) == {}


@pytest.mark.spark
def test_all_functions_of_spark_are_listed(spark: SparkSession) -> None:
    kinds = TOOL.spark_kinds(spark)
    assert len(kinds["scalar"]) > 300 and len(kinds["aggregate"]) > 60
    assert not_as_listed("spark", kinds) == {}


def test_all_functions_of_this_sqlite_are_listed() -> None:
    assert not_as_listed("sqlite", TOOL.sqlite()[1]) == {}


@pytest.mark.parametrize("dialect", [*ENGINES, "presto", "fabric", "exasol"])
def test_what_every_engine_has_is_of_its_kind(dialect: str) -> None:
    kinds = functions(dialect)
    assert kinds.kind("sum") == kinds.kind("count") == "aggregate"
    assert kinds.kind("coalesce") == kinds.kind("upper") == "scalar"
    assert kinds.kind("no_such_function") == "unknown"


KINDS = [
    ("duckdb", "arg_max_null", "aggregate"),
    ("duckdb", "bitstring_agg", "aggregate"),
    ("duckdb", "geometric_mean", "aggregate"),  # a macro around an aggregate
    ("duckdb", "generate_subscripts", "generator"),  # a macro around unnest
    ("duckdb", "list_sum", "scalar"),
    ("duckdb", "generate_series", "scalar"),  # a list, in an expression
    ("postgres", "generate_series", "generator"),
    ("postgres", "jsonb_agg", "aggregate"),
    ("spark", "schema_of_variant_agg", "aggregate"),
    ("spark", "json_tuple", "generator"),
    ("spark", "window", "generator"),
    ("clickhouse", "arrayjoin", "generator"),
    ("clickhouse", "sumifornull", "aggregate"),
    ("clickhouse", "nosuchif", "unknown"),
    ("databricks", "explode", "generator"),
    ("databricks", "st_union_agg", "aggregate"),
    ("bigquery", "hll_count.merge", "aggregate"),
    ("snowflake", "st_collect", "unknown"),  # of one argument it aggregates, of two it does not
    ("exasol", "any_value", "unknown"),  # in MySQL it does not aggregate by itself
    ("mysql", "any_value", "unknown"),
]


@pytest.mark.parametrize(("dialect", "name", "kind"), KINDS)
def test_the_kind_of_a_function(dialect: str, name: str, kind: str) -> None:
    assert functions(dialect).kind(name) == kind


def lowered_as(call: str, dialect: str) -> str | None:
    """What a call in a select list was taken for; None where it is not one."""
    select = lower(f"select {call} as v from t", dialect).rel
    if not isinstance(select, Select):
        return None
    if select.uncertain:
        return "unknown"
    if select.generators:
        return "generator"
    return "aggregate" if select.aggregated else "scalar"


@pytest.mark.parametrize("dialect", ENGINES)
def test_every_listed_function_is_lowered_as_its_kind(dialect: str) -> None:
    """However sqlglot reads it: as a class of its own, an operator, or a call it does not know."""
    wrong = {}
    never_read = []
    for name, kind in functions(dialect).kinds.items():
        calls = [f"{name}{arguments}" for arguments in ("(a)", "(a, b)", "(a, b, c)", "()")]
        taken = {call: lowered_as(call, dialect) for call in calls}
        if not any(taken.values()):
            never_read.append(name)
        if kind != "window":
            wrong |= {call: (kind, as_) for call, as_ in taken.items() if as_ not in (None, kind)}
    # sqlglot reads AI.GENERATE_BOOL(...) and its like as a call on a model, under no name.
    assert {call: how for call, how in wrong.items() if not call.startswith("ai.")} == {}
    assert len(never_read) < 12  # keywords that are no calls: MATCH, DIV, ...


@pytest.mark.parametrize("dialect", [*ENGINES, "exasol"])
@pytest.mark.parametrize("name", ["no_such_function", "s.no_such_function", "s.sum", "db.s.upper"])
def test_a_function_on_no_list_may_aggregate_or_generate(name: str, dialect: str) -> None:
    assert lowered_as(f"{name}(a)", dialect) == "unknown"
    # What only an aggregate can be told.
    if dialect not in ("mysql", "tsql"):
        assert lowered_as(f"{name}(distinct a)", dialect) == "aggregate"
        assert lowered_as(f"{name}(a) filter (where b)", dialect) == "aggregate"
    for query in (
        f"select a from t where {name}(a) = 1",
        f"select sum({name}(a)) as v from t",
        f"select {name}(a) over (partition by b) as v from t",
        f"select v from {name}(1) as u",
    ):
        select = lower(query, dialect).rel
        assert isinstance(select, Select), query
        # ClickHouse's arrayJoin may stand anywhere, and so may a function that calls it.
        anywhere = dialect == "clickhouse" and (" where " in query or "select sum" in query)
        assert bool(select.uncertain) == anywhere, query


BY_NAME_ONLY = {
    ("ANY_VALUE", "mysql"),  # does not aggregate by itself there
    ("MAX", "sqlite"),  # of several arguments it is a function of the row
    ("MIN", "sqlite"),
    ("ROW_NUMBER", "clickhouse"),  # the catalogue has windows among the aggregates
    ("LIST", "duckdb"),  # read as ARRAY_AGG; the class is another engine's constructor
    ("GENERATE_SERIES", "postgres"),  # read as a class of its own
    ("GENERATE_SERIES", "redshift"),
}
"""Where the name says something else than the class: the name decides."""


def test_every_function_class_of_sqlglot_is_of_the_kind_its_engines_say() -> None:
    """sqlglot does not keep every name, so that a class has to have a kind by itself, too."""
    walk = Expressions("duckdb")
    differs = set()
    classes = [t for t in vars(exp).values() if isinstance(t, type) and issubclass(t, exp.Func)]
    assert len(classes) > 500
    for t in classes:
        handler = walk.by_class.get(t, Expressions.generic)
        kind = {
            Expressions.aggregate: "aggregate",
            Expressions.grouping: "aggregate",
            Expressions.generator: "generator",
        }.get(handler, "scalar")
        names = t.sql_names() if t not in (exp.Func, exp.AggFunc) else []
        for name in names:
            for engine in ENGINES:
                if functions(engine).kinds.get(name.lower(), kind) not in (kind, "window"):
                    differs.add((name, engine))
    assert differs == BY_NAME_ONLY
