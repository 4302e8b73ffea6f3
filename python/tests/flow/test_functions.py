"""The lists of functions by kind against the engines they are of."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_ripple.flow.functions import ENGINES, functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def tool() -> Any:
    """The script that writes the lists."""
    path = Path(__file__).parents[2] / "tools" / "functions.py"
    spec = importlib.util.spec_from_file_location("functions_tool", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def not_as_listed(engine: str, kinds: dict[str, set[str]]) -> dict[str, str]:
    """Functions of an engine that its list does not have under their kind."""
    known = functions(engine)
    wrong = {}
    for kind in ("scalar", "aggregate", "window", "generator"):
        for name in filter(tool().NAME.fullmatch, kinds.get(kind, ())):
            listed = known.kind(name) if name in known.kinds else "not"
            if listed not in (kind, "unknown", "window"):
                wrong[name] = f"{kind}, {listed} listed"
    return wrong


def test_all_functions_of_duckdb_are_listed() -> None:
    _, kinds = tool().duckdb()
    assert len(kinds["scalar"]) > 500 and len(kinds["aggregate"]) > 60
    assert not_as_listed("duckdb", kinds) == {}


@pytest.mark.spark
def test_all_functions_of_spark_are_listed(spark: SparkSession) -> None:
    kinds = tool().spark_kinds(spark)
    assert len(kinds["scalar"]) > 300 and len(kinds["aggregate"]) > 60
    assert not_as_listed("spark", kinds) == {}


def test_all_functions_of_this_sqlite_are_listed() -> None:
    assert not_as_listed("sqlite", tool().sqlite()[1]) == {}


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
