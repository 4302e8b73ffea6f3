"""Data tests as OpenLineage tells of them: an assertion about a dataset, and an executed test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from openlineage.client.facet_v2 import data_quality_assertions_dataset, test_run

from dbt_ripple.artifacts import Node, RunResult
from dbt_ripple.graph.lineage_tables import ROWS

TESTS: Final = frozenset({"test", "unit_test"})
_STATUS: Final = {"pass": "pass", "skipped": "skip"}
_DEFAULT_THRESHOLD: Final = "!=0"


def classification(test: Node) -> str:
    """Which test it is: ``not_null``, ``dbt_utils.equal_rowcount``, or ``custom_sql``."""
    if test.resource_type == "unit_test":
        return "unit_test"
    said = test.test_metadata
    if said is None:
        return "custom_sql"
    return f"{said.namespace}.{said.name}" if said.namespace else said.name


def severity(test: Node) -> str:
    """``error`` or ``warn``."""
    said = test.config.get("severity")
    return said.lower() if isinstance(said, str) and said else "error"


def parameters(test: Node) -> dict[str, Any]:
    """The arguments of a generic test, without what it is about."""
    arguments = test.test_metadata.kwargs if test.test_metadata else {}
    return {key: value for key, value in arguments.items() if key not in ("model", "column_name")}


def tested_column(test: Node, names: dict[str, str], reads: Iterable[str]) -> str | None:
    """The column that a test is about; None where it is about a whole relation.

    Args:
        test: the test.
        names: the columns of the relation, by their names in lower case.
        reads: what the test reads of the relation. A test that names no column is about the only
            one that it reads.
    """
    arguments = test.test_metadata.kwargs if test.test_metadata else {}
    said = test.column_name or arguments.get("column_name")
    if isinstance(said, str) and said:
        plain = said.strip('`"[] ')
        return names.get(plain.lower(), plain)
    columns = {column for column in reads if column != ROWS}
    return next(iter(columns)) if len(columns) == 1 else None


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
        expected=_expected(test, result),
        actual=_actual(result),
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
        expected=_expected(test, result),
        actual=_actual(result),
        content=sql,
        contentType="sql" if sql else None,
        params=parameters(test),
    )


def _actual(result: RunResult) -> str | None:
    return None if result.failures is None else str(result.failures)


def _expected(test: Node, result: RunResult) -> str | None:
    """The number of failing rows that is allowed: dbt's condition, or 0 where it is not said."""
    if result.failures is None:
        return None
    said = test.config.get("warn_if" if severity(test) == "warn" else "error_if")
    return "0" if said is None or "".join(str(said).split()) == _DEFAULT_THRESHOLD else str(said)
