"""Agreement with Spark's own analyser, corpus by corpus; it must not fall below the level reached."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlglot
from flow.lineage_fixtures import read_fixtures
from oracle.agreement import (
    Case,
    Corpus,
    Report,
    agreement,
    compare,
    create_tables,
    dbt_target,
    drop_schemas,
    fingerprints,
    fixtures,
    read_ours,
    tpc,
)
from oracle.catalyst import Catalyst
from oracle.random_edits import Editor
from oracle.random_queries import statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# `make demo` compiles the shop here, as the tests of integration/ do before these; another place can
# be named by the variable.
SHOP = Path(__file__).parents[3] / "integration_tests" / "target" / "demo" / "dbt" / "ripple"
DBT_TARGET = Path(os.environ.get("DBT_RIPPLE_ORACLE_TARGET", SHOP))


LISTED = {f.id for f in read_fixtures() if {"exception", "open"} & {*f.pragmas}}
"""Fixtures that say in the file why the two differ."""


def compared(spark: SparkSession, corpus: Corpus) -> Report:
    """The agreement over a corpus, every case of it compared."""
    report = agreement(spark, corpus)
    print(report)
    assert report.queries == len(corpus.cases) > 0
    return report


@pytest.fixture(scope="module")
def construct_report(spark: SparkSession) -> Report:
    return compared(spark, fixtures())


def test_construct_fixtures_agree(construct_report: Report) -> None:
    differ = [str(d) for d in construct_report.disagreements if d.case.name not in LISTED]
    assert differ == []


def test_what_is_listed_as_an_exception_does_differ(construct_report: Report) -> None:
    differ = {d.case.name for d in construct_report.disagreements}
    judged = {c.name for c in fixtures().cases}
    assert LISTED & judged <= differ


def test_exceptions_are_at_most_one_in_a_hundred(construct_report: Report) -> None:
    judged = {c.name for c in fixtures().cases}
    assert len(LISTED & judged) <= construct_report.queries / 100


def test_a_wrong_answer_is_noticed(spark: SparkSession) -> None:
    """The comparison is no formality: our answer to another query is told from Spark's."""
    corpus = fixtures()
    right = Case("right", "select a, b + x as bx from t where y > 1")
    wrong = "select b as a, b + case when x > 1 then 1 end as bx from t where z > 1"
    report = Report("wrong")
    made = create_tables(spark, corpus)
    try:
        spark.sql(f"use {corpus.schema}")
        compare(right, read_ours(wrong, corpus), Catalyst(spark).read(right.sql), report)
    finally:
        drop_schemas(spark, made)
    assert [(d.what, d.where) for d in report.disagreements] == [
        ("direct", "column 1 (a)"),
        ("direct", "column 2 (bx)"),
        ("indirect", "column 2 (bx)"),
        ("rows", ""),
    ]


SPARK_ALONE = {
    "random 120": "a name of two outputs that are one column is not ambiguous to Spark",
    "random 62": "an aggregate of the outer query in EXISTS: we count the columns of the subquery, too",
}
"""Random queries on which the two differ, and why."""


@pytest.mark.slow
def test_random_queries_agree(spark: SparkSession) -> None:
    corpus = fixtures()
    corpus.cases = [Case(f"random {i}", statement(500_000 + i)) for i in range(300)]
    report = compared(spark, corpus)
    refused = [d for d in report.disagreements if d.catalyst.startswith("Spark: ")]
    assert len(refused) < len(corpus.cases) / 3, "the grammar should write valid queries"
    differ = {d.case.name: f"{d}\n{d.case.sql}" for d in report.disagreements if d not in refused}
    assert [text for name, text in differ.items() if name not in SPARK_ALONE] == []
    assert set(SPARK_ALONE) <= differ.keys()


@pytest.mark.slow
def test_what_spark_plans_otherwise_has_another_fingerprint(spark: SparkSession) -> None:
    """A random edit that Spark's plan shows moves at least one fingerprint."""
    corpus = fixtures()
    oracle = Catalyst(spark)
    editor = Editor(9, {c: kind for columns in corpus.tables.values() for c, kind in columns})
    made = create_tables(spark, corpus)
    checked = 0
    unmoved = []
    try:
        spark.sql(f"use {corpus.schema}")
        for case in corpus.cases:
            try:
                base = sqlglot.parse_one(case.sql, dialect="spark").sql("spark")
            except sqlglot.ParseError:  # pipe operators that lower.py works around
                continue
            for edited in (editor.edit(base), editor.edit(base)):
                if edited is None or edited == base:
                    continue
                try:
                    differs = not oracle.same_plan(base, edited)
                except Exception:  # not every edit leaves a valid query
                    continue
                checked += 1
                if differs and fingerprints(base, corpus) == fingerprints(edited, corpus):
                    unmoved.append(f"{case.name}\n  {base}\n  {edited}")
    finally:
        drop_schemas(spark, made)
    print(f"{checked} edits of {len(corpus.cases)} queries")
    assert checked > len(corpus.cases) / 2
    assert unmoved == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tpch", "tpcds"])
def test_benchmark_queries_agree(spark: SparkSession, name: str) -> None:
    corpus = tpc(name)
    if corpus is None:
        pytest.fail("run python/tests/oracle/make_tpc.py first, or `make spark`")
    assert [str(d) for d in compared(spark, corpus).disagreements] == []


@pytest.mark.slow
def test_the_shop_agrees(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    if DBT_TARGET == SHOP:
        request.getfixturevalue("demo")
    corpus = dbt_target(DBT_TARGET)
    assert len(corpus.cases) > 100
    assert [str(d) for d in compared(spark, corpus).disagreements] == []
