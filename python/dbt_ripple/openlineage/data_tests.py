"""What every catalogue gets of a data test: its kind, severity, arguments, column and limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dbt_ripple.artifacts import Node, RunResult
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS

DID_NOT_RUN: Final = frozenset({"skipped", "no-op", "reused"})
_DEFAULT_THRESHOLD: Final = "!=0"


def reads_of_tests(analysis: Analysis | None) -> Mapping[str, Mapping[str, list[str]]]:
    """Of each test the columns that it reads of each relation; empty where that is not known."""
    reads: dict[str, dict[str, list[str]]] = {}
    for test, unique_id, column in analysis.test_columns if analysis else ():
        reads.setdefault(test, {}).setdefault(unique_id, []).append(column)
    return reads


def classification(test: Node) -> str:
    """Which test it is: ``not_null``, ``dbt_utils.equal_rowcount``, or ``custom_sql``."""
    if test.resource_type == "unit_test":
        return "unit_test"
    metadata = test.test_metadata
    if metadata is None:
        return "custom_sql"
    return f"{metadata.namespace}.{metadata.name}" if metadata.namespace else metadata.name


def severity(test: Node) -> str:
    """``error`` or ``warn``."""
    configured = test.config.get("severity")
    return configured.lower() if isinstance(configured, str) and configured else "error"


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
    column = test.column_name or arguments.get("column_name")
    if isinstance(column, str) and column:
        plain = column.strip('`"[] ')
        return names.get(plain.lower(), plain)
    columns = {column for column in reads if column != ROWS}
    return next(iter(columns)) if len(columns) == 1 else None


def actual(result: RunResult) -> str | None:
    """The number of failing rows; None where the test could not be executed."""
    return None if result.failures is None else str(result.failures)


def expected(test: Node, result: RunResult) -> str | None:
    """The number of failing rows that is allowed: dbt's condition, or 0 by default."""
    if result.failures is None:
        return None
    threshold = test.config.get("warn_if" if severity(test) == "warn" else "error_if")
    return (
        "0"
        if threshold is None or "".join(str(threshold).split()) == _DEFAULT_THRESHOLD
        else str(threshold)
    )
