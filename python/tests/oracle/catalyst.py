"""The Catalyst oracle: column dependencies of a query as Spark's own analyser sees them.

The analysed plan (`QueryExecution.analyzed().toJSON()`, nothing is run) is read by
`dbt_ripple.spark.plan_lineage`, which shares no code with `dbt_ripple.flow` but the numbers of the
kinds, so that the two can be compared. ``*rows*`` edges (which table's rows) are not: only columns are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dbt_ripple.spark.plan_expressions import Deps, PlanGapError
from dbt_ripple.spark.plan_lineage import Reading, read_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Catalyst", "Deps", "PlanGapError", "Reading"]


class Catalyst:
    """Reads analysed plans of one session; the tables must exist, and stay empty."""

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        self._state = session._jsparkSession.sessionState()
        # A command (CTAS, INSERT) must be analysed, not run.
        self._skip = session._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()

    def read(self, sql: str) -> Reading:
        """Analyse one statement.

        Raises:
            PlanGapError: the plan has a node the oracle does not know.
            Exception: Spark refuses the statement (its own error, through py4j).
        """
        analyzed = self._execution(sql).analyzed()
        reading = read_plan(json.loads(analyzed.toJSON()))
        reading.types = [
            (f.name(), f.dataType().catalogString()) for f in analyzed.schema().fields()
        ]
        return reading

    def same_plan(self, one: str, other: str) -> bool:
        """Whether two statements have the same plan for Spark, before or after it optimises them.

        Names of outputs and of what is inside do not count.

        Raises:
            Exception: Spark refuses one of the statements.
        """
        a, b = self._execution(one), self._execution(other)
        if a.analyzed().sameResult(b.analyzed()):
            return True
        return bool(a.optimizedPlan().sameResult(b.optimizedPlan()))

    def _execution(self, sql: str) -> Any:
        return self._state.executePlan(self._state.sqlParser().parsePlan(sql), self._skip)
