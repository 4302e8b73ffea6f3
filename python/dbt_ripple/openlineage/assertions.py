"""Data tests as OpenLineage tells of them: an assertion about a dataset, and an executed test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from openlineage.client.facet_v2 import data_quality_assertions_dataset, test_run

from dbt_ripple.artifacts import Node, RunResult
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.data_tests import (
    actual,
    classification,
    expected,
    parameters,
    severity,
)

TESTS: Final = frozenset({"test", "unit_test"})
_STATUS: Final = {"pass": "pass", "skipped": "skip"}


def assertion(
    test: Node, result: RunResult, column: str | None, columns: Iterable[str]
) -> data_quality_assertions_dataset.Assertion:
    """What a test found, as an assertion about a dataset.

    It is no success where the test could not be executed, either: nobody knows.

    Args:
        test: the test.
        result: how it ended.
        column: that it is about, if it is about one.
        columns: all that it reads, for one that is about several.
    """
    params = parameters(test)
    several = sorted({name for name in columns if name != ROWS})
    if column is None and several and "columns" not in params:
        params = {**params, "columns": several}
    return data_quality_assertions_dataset.Assertion(
        assertion=classification(test),
        success=result.status == "pass",
        column=column,
        severity=severity(test),
        name=test.name,
        description=test.description or None,
        expected=expected(test, result),
        actual=actual(result),
        params=params,
    )


def assertions_facet(
    assertions: list[data_quality_assertions_dataset.Assertion], producer: str
) -> Any:
    """The facet ``dataQualityAssertions`` of an input."""
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        assertions, producer=producer
    )


def execution(test: Node, result: RunResult) -> test_run.TestExecution:
    """What a test found, whatever it is about. One that ended in an error has the status ``fail``."""
    sql = test.compiled_code
    return test_run.TestExecution(
        name=test.unique_id,
        status=_STATUS.get(result.status, "fail"),
        severity=severity(test),
        type=classification(test),
        description=test.description or None,
        expected=expected(test, result),
        actual=actual(result),
        content=sql,
        contentType="sql" if sql else None,
        params=parameters(test),
    )
