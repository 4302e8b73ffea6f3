"""The facets of datasets, jobs and data tests, as a project's artifacts and their analysis tell of them.

A data test is an assertion about a dataset, and an executed test.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from openlineage.client.event_v2 import InputDataset, OutputDataset, StaticDataset
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    data_quality_assertions_dataset,
    dataset_type_dataset,
    documentation_dataset,
    documentation_job,
    job_type_job,
    lineage,
    ownership_dataset,
    ownership_job,
    schema_dataset,
    source_code_location_job,
    sql_job,
    symlinks_dataset,
    tags_dataset,
    tags_job,
    test_run,
)
from openlineage.client.git import get_ci_pr_number

from dbt_ripple.artifacts import Node, Project, RunResult
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.openlineage.client import faceted
from dbt_ripple.openlineage.column_lineage import DatasetDependency, NodeLineage
from dbt_ripple.openlineage.dataset_names import DatasetNames, is_job
from dbt_ripple.openlineage.project_facts import (
    ProjectFacts,
    Repository,
    actual,
    classification,
    expected,
    parameters,
    severity,
)

Facets = dict[str, Any]

SOURCE_OF_TAGS: Final = "DBT"


def with_older_words(
    inputs: list[column_lineage_dataset.InputField],
) -> column_lineage_dataset.Fields:
    """What a column is made of, also in the words from before there were `transformations`: Marquez shows these."""
    every = [one for field in inputs for one in field.transformations or ()]
    values = [one for one in every if one.type == "DIRECT"]
    kinds = {one.subtype for one in values or every}
    kind: str | None = "AGGREGATION" if "AGGREGATION" in kinds else "TRANSFORMATION"
    if values and all(one.masking for one in values):
        kind = "MASKED"
    elif len(kinds) == 1:
        (kind,) = kinds
    texts = dict.fromkeys(one.description for one in every if one.description)
    return column_lineage_dataset.Fields(inputs, next(iter(texts), None), kind)


class ProjectFacets:
    """The facets of a project's datasets and jobs.

    Args:
        project: the artifacts.
        analysis: what was seen in them; None where there is no SQL to be followed.
        names: of the datasets.
        project_dir: the folder of dbt_project.yml.
    """

    def __init__(
        self,
        project: Project,
        analysis: Analysis | None,
        names: DatasetNames,
        project_dir: Path,
    ) -> None:
        self.project = project
        self.names = names
        self.facts = ProjectFacts(project, analysis)
        self._repository = Repository(project_dir, project.name)

    def column_names(self, unique_id: str) -> dict[str, str]:
        """The columns of a relation in order, by their names in lower case."""
        return self.facts.column_names(unique_id)

    # --- datasets ------------------------------------------------------------------------------

    def input(self, unique_id: str, **input_facets: Any) -> InputDataset | None:
        """A relation that is read; None for a node that is no dataset."""
        name = self.names.of(unique_id)
        if name is None:
            return None
        facets = {**self._schema(unique_id), **self._symlinks(unique_id)}
        return InputDataset(*name, facets=facets, inputFacets=input_facets)

    def output(
        self, unique_id: str, of: NodeLineage | None = None, **output_facets: Any
    ) -> OutputDataset | None:
        """A relation that is written; with its lineage, if the run was a success."""
        name = self.names.of(unique_id)
        if name is None:
            return None
        facets = self._dataset(unique_id)
        if of is not None and (facet := self.column_lineage(of)) is not None:
            facets["columnLineage"] = facet
        return OutputDataset(*name, facets=facets, outputFacets=output_facets)

    def static(self, unique_id: str, of: NodeLineage | None = None) -> StaticDataset | None:
        """A relation as it is declared, without any run."""
        name = self.names.of(unique_id)
        if name is None:
            return None
        facets = self._dataset(unique_id)
        if of is not None and of.parents:
            facets["lineage"] = faceted(
                lineage.LineageDatasetFacet,
                inputs=self._entity_inputs(of),
                fields=self._field_entries(of),
            )
            if (facet := self.column_lineage(of)) is not None:
                facets["columnLineage"] = facet
        return StaticDataset(*name, facets=facets)

    def _dataset(self, unique_id: str) -> Facets:
        node = self.project.nodes.get(unique_id)
        facets = {**self._schema(unique_id), **self._symlinks(unique_id)}
        if node is None:
            return facets
        if node.description:
            facets["documentation"] = faceted(
                documentation_dataset.DocumentationDatasetFacet,
                description=node.description,
                contentType="text/markdown",
            )
        if kind := self.facts.dataset_type(node):
            what, more = kind
            facets["datasetType"] = faceted(
                dataset_type_dataset.DatasetTypeDatasetFacet, datasetType=what, subType=more
            )
        if people := self.facts.owners(node):
            owners = [ownership_dataset.Owner(*person) for person in people]
            facets["ownership"] = faceted(ownership_dataset.OwnershipDatasetFacet, owners=owners)
        tags = [
            tags_dataset.TagsDatasetFacetFields(key, value, SOURCE_OF_TAGS)
            for key, value in self.facts.tags(node)
        ]
        tags += [
            tags_dataset.TagsDatasetFacetFields("pii", kind, SOURCE_OF_TAGS, field=column)
            for column, kind in self.facts.pii.get(unique_id, ())
        ]
        if tags:
            facets["tags"] = faceted(tags_dataset.TagsDatasetFacet, tags=tags)
        return facets

    def _schema(self, unique_id: str) -> Facets:
        columns = self.facts.columns(unique_id)
        if not columns or not all(column.type for column in columns):
            return {}  # Marquez stores a field without a type anew with each event, and fails on them
        fields = [
            schema_dataset.SchemaDatasetFacetFields(*column, position)
            for position, column in enumerate(columns, start=1)
        ]
        return {"schema": faceted(schema_dataset.SchemaDatasetFacet, fields=fields)}

    def _symlinks(self, unique_id: str) -> Facets:
        node = self.project.nodes.get(unique_id)
        places = self.names.locations(node) if node else []
        if not places:
            return {}
        identifiers = [symlinks_dataset.Identifier(*place, "LOCATION") for place in places]
        return {"symlinks": faceted(symlinks_dataset.SymlinksDatasetFacet, identifiers=identifiers)}

    # --- lineage -------------------------------------------------------------------------------

    def column_lineage(self, of: NodeLineage) -> Any:
        """The facet ``columnLineage``; None where no column is known to be read."""
        fields = {}
        for column, dependencies in of.columns.items():
            inputs = self._input_fields(dependencies, of.expressions.get(column))
            if inputs:
                fields[column] = with_older_words(inputs)
        whole = self._input_fields(of.rows, None)
        if not fields and not whole:
            return None
        return faceted(
            column_lineage_dataset.ColumnLineageDatasetFacet, fields=fields, dataset=whole
        )

    def _input_fields(
        self, dependencies: list[DatasetDependency], expression: str | None
    ) -> list[column_lineage_dataset.InputField]:
        return [
            column_lineage_dataset.InputField(
                *name,
                column,
                [
                    column_lineage_dataset.Transformation(kind, subtype, expression, masking)
                    for kind, subtype, masking in kinds
                ],
            )
            for parent, column, kinds in dependencies
            if column is not None and (name := self.names.of(parent)) is not None
        ]

    def _entity_inputs(self, of: NodeLineage) -> list[lineage.LineageInput]:
        """The relations that are read, and the columns of them on which it depends which rows there are."""
        inputs = [
            lineage.LineageDatasetInput(*name, "DATASET")
            for name in dict.fromkeys(map(self.names.of, of.parents))
            if name is not None
        ]
        return [*inputs, *(self._inputs([d for d in of.rows if d.column is not None], None))]

    def _field_entries(self, of: NodeLineage) -> dict[str, lineage.LineageFieldEntry]:
        return {
            column: lineage.LineageFieldEntry(inputs)
            for column, dependencies in of.columns.items()
            if (inputs := self._inputs(dependencies, of.expressions.get(column)))
        }

    def _inputs(
        self, dependencies: list[DatasetDependency], expression: str | None
    ) -> list[lineage.LineageInput]:
        """Dependencies as inputs; without a field it is the rows of a relation that count."""
        return [
            lineage.LineageDatasetInput(
                *name,
                "DATASET",
                column,
                [
                    lineage.LineageTransformation(kind, subtype, expression, masking)
                    for kind, subtype, masking in kinds
                ],
            )
            for parent, column, kinds in dependencies
            if (name := self.names.of(parent)) is not None
        ]

    def job_lineage(self, targets: list[tuple[str, NodeLineage]]) -> Facets:
        """The facet ``lineage`` of the job that makes relations, or that only reads."""
        entries: list[lineage.LineageEntry] = []
        for unique_id, of in targets:
            target = self.names.of(unique_id)
            if target is not None:
                entry: lineage.LineageEntry = lineage.LineageDatasetEntry(
                    *target,
                    "DATASET",
                    inputs=self._entity_inputs(of),
                    fields=self._field_entries(of),
                )
                entries.append(entry)
            elif of.parents:
                inputs = [*self._entity_inputs(of)]
                inputs += [
                    i
                    for inputs_of_column in of.columns.values()
                    for i in self._inputs(inputs_of_column, None)
                ]
                entries.append(lineage.LineageJobEntry("JOB", inputs=inputs))
        return {"lineage": faceted(lineage.LineageJobFacet, entries=entries)} if entries else {}

    # --- jobs ----------------------------------------------------------------------------------

    def job(self, node: Node, sql: str | None) -> Facets:
        """What is known of a node as a job: its type, SQL, place, owner, tags and description."""
        kind = (node.type if is_job(node) and node.type else node.resource_type).upper()
        facets = {**self._job_type(kind, "DECLARED" if is_job(node) else "DBT"), **self.place(node)}
        if sql:
            dialect = self.project.metadata.adapter_type
            facets["sql"] = faceted(sql_job.SQLJobFacet, query=sql, dialect=dialect)
        if node.description:
            facets["documentation"] = faceted(
                documentation_job.DocumentationJobFacet,
                description=node.description,
                contentType="text/markdown",
            )
        if people := self.facts.owners(node):
            owners = [ownership_job.Owner(*person) for person in people]
            facets["ownership"] = faceted(ownership_job.OwnershipJobFacet, owners=owners)
        tags = [
            tags_job.TagsJobFacetFields(key, value, SOURCE_OF_TAGS)
            for key, value in self.facts.tags(node)
        ]
        if tags:
            facets["tags"] = faceted(tags_job.TagsJobFacet, tags=tags)
        return facets

    def invocation_job(self) -> Facets:
        """The same of a whole invocation of dbt."""
        return {**self._job_type("JOB"), **self.place(None)}

    def _job_type(self, kind: str, integration: str = "DBT") -> Facets:
        facet = faceted(
            job_type_job.JobTypeJobFacet,
            processingType="BATCH",
            integration=integration,
            jobType=kind,
        )
        return {"jobType": facet}

    def place(self, node: Node | None) -> Facets:
        """Where a node is written."""
        place = self._repository.of(node)
        facet = faceted(
            source_code_location_job.SourceCodeLocationJobFacet,
            type=place.type,
            url=place.url,
            repoUrl=place.repo_url,
            path=place.path,
            version=place.version,
            branch=place.branch,
            pullRequestNumber=get_ci_pr_number(),
        )
        return {"sourceCodeLocation": facet}


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
