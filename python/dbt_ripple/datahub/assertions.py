"""dbt's data tests as DataHub's assertions, and what they found as run events of these."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from datahub.emitter.mce_builder import datahub_guid, make_assertion_urn, make_data_platform_urn
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.metadata.schema_classes import (
    AssertionInfoClass,
    AssertionResultClass,
    AssertionResultErrorClass,
    AssertionResultErrorTypeClass,
    AssertionResultTypeClass,
    AssertionRunEventClass,
    AssertionRunStatusClass,
    AssertionSourceClass,
    AssertionSourceTypeClass,
    AssertionStdAggregationClass,
    AssertionStdOperatorClass,
    AssertionStdParameterClass,
    AssertionStdParametersClass,
    AssertionStdParameterTypeClass,
    AssertionTypeClass,
    DataPlatformInstanceClass,
    DatasetAssertionInfoClass,
    DatasetAssertionScopeClass,
)

from dbt_ripple.artifacts import Node, RunResult
from dbt_ripple.datahub.proposals import DBT, DatasetUrns, proposal
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.invocation import Invocation
from dbt_ripple.openlineage.project_facts import (
    DID_NOT_RUN,
    ProjectFacts,
    classification,
    expected,
    parameters,
    reads_of_tests,
    severity,
    tested_column,
)

_RESULTS: Final = {
    "pass": AssertionResultTypeClass.SUCCESS,
    "fail": AssertionResultTypeClass.FAILURE,
    "warn": AssertionResultTypeClass.FAILURE,
}
"""dbt's status -> DataHub's; of any other the test could not be executed."""


class TestProposals:
    """The assertions of a project.

    Args:
        facts: of the project.
        analysis: says what tests read; None where it is not known.
        urns: of the datasets.
    """

    __test__ = False

    def __init__(self, facts: ProjectFacts, analysis: Analysis | None, urns: DatasetUrns) -> None:
        self._facts = facts
        self._project = facts.project
        self._urns = urns
        self._reads = reads_of_tests(analysis)

    def all(
        self, results: list[RunResult], invocation: Invocation | None
    ) -> Iterator[MetadataChangeProposalWrapper]:
        """Each test as an assertion about each relation that it is about; then what they found.

        Args:
            results: of a run; those of other nodes are passed over.
            invocation: that gave them; None where there are none.
        """
        about: dict[str, list[tuple[str, str]]] = {}
        for test in self._project.of_type("test"):
            for parent in self._tested(test):
                asserted = self._urns.of(parent)
                if asserted is None:
                    continue
                guid = {"platform": DBT, "name": test.unique_id, "dataset": asserted}
                urn = make_assertion_urn(datahub_guid(guid))
                about.setdefault(test.unique_id, []).append((urn, asserted))
                yield proposal(urn, self._info(test, parent, asserted))
                yield proposal(urn, DataPlatformInstanceClass(platform=make_data_platform_urn(DBT)))
        for result in results if invocation else ():
            test_node = self._project.nodes.get(result.unique_id)
            if test_node is None or result.status in DID_NOT_RUN or invocation is None:
                continue
            for urn, asserted in about.get(result.unique_id, ()):
                yield proposal(urn, _run_event(test_node, result, invocation, urn, asserted))

    def _tested(self, test: Node) -> list[str]:
        if test.attached_node:
            return [test.attached_node]
        return list(self._project.parents.get(test.unique_id, ()))

    def _info(self, test: Node, parent: str, asserted: str) -> AssertionInfoClass:
        reads = self._reads.get(test.unique_id, {}).get(parent, [])
        column = tested_column(test, self._facts.column_names(parent), reads)
        columns = [column] if column else sorted({name for name in reads if name != ROWS})
        fields = dict.fromkeys(self._urns.field_urn(parent, name) for name in columns)
        operator, aggregation, values = _standard(test) if column else _NATIVE
        return AssertionInfoClass(
            type=AssertionTypeClass.DATASET,
            customProperties={
                "dbt_unique_id": test.unique_id,
                "dbt_test_name": test.name,
                "dbt_file_path": test.original_file_path,
                "severity": severity(test),
            },
            description=test.description or None,
            source=AssertionSourceClass(type=AssertionSourceTypeClass.EXTERNAL),
            datasetAssertion=DatasetAssertionInfoClass(
                dataset=asserted,
                scope=(
                    DatasetAssertionScopeClass.DATASET_COLUMN
                    if column
                    else DatasetAssertionScopeClass.DATASET_ROWS
                ),
                fields=[field for field in fields if field] or None,
                operator=operator,
                aggregation=aggregation,
                parameters=values,
                nativeType=classification(test),
                nativeParameters={key: _text(value) for key, value in parameters(test).items()},
                logic=test.compiled_code,
            ),
        )


_NATIVE: Final = (AssertionStdOperatorClass._NATIVE_, AssertionStdAggregationClass._NATIVE_, None)


def _standard(test: Node) -> tuple[str, str, AssertionStdParametersClass | None]:
    """The tests of dbt itself in DataHub's words, where it has them."""
    kind = AssertionStdParameterTypeClass
    match classification(test):
        case "not_null":
            operator = AssertionStdOperatorClass.NOT_NULL
            return operator, AssertionStdAggregationClass.IDENTITY, None
        case "unique":
            all_of_them = AssertionStdParameterClass("1.0", kind.NUMBER)
            return (
                AssertionStdOperatorClass.EQUAL_TO,
                AssertionStdAggregationClass.UNIQUE_PROPOTION,
                AssertionStdParametersClass(value=all_of_them),
            )
        case "accepted_values":
            values = AssertionStdParameterClass(_text(parameters(test).get("values")), kind.SET)
            return (
                AssertionStdOperatorClass.IN,
                AssertionStdAggregationClass.IDENTITY,
                AssertionStdParametersClass(value=values),
            )
    return _NATIVE


def _run_event(
    test: Node, result: RunResult, invocation: Invocation, urn: str, asserted: str
) -> AssertionRunEventClass:
    ended = result.completed_at or invocation.ended_at or invocation.started_at
    kind = _RESULTS.get(result.status, AssertionResultTypeClass.ERROR)
    native_values: Mapping[str, str | None] = {
        "status": result.status,
        "severity": severity(test),
        "message": result.message,
        "failures": None if result.failures is None else str(result.failures),
        "expected": expected(test, result),
    }
    native = {key: value for key, value in native_values.items() if value is not None}
    error = None
    if kind == AssertionResultTypeClass.ERROR:
        properties = {"message": result.message or f"dbt says {result.status}"}
        error = AssertionResultErrorClass(AssertionResultErrorTypeClass.UNKNOWN_ERROR, properties)
    return AssertionRunEventClass(
        timestampMillis=int(ended.timestamp() * 1000),
        runId=invocation.invocation_id,
        assertionUrn=urn,
        asserteeUrn=asserted,
        status=AssertionRunStatusClass.COMPLETE,
        result=AssertionResultClass(
            type=kind, unexpectedCount=result.failures, nativeResults=native, error=error
        ),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
