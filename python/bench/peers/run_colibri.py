"""dbt-colibri: what its `generate` command extracts, without the report it then writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from common import ROWS, Edge, Job, run


def _analyse(job: Job) -> tuple[int, Any]:
    from dbt_colibri.lineage_extractor.extractor import DbtColumnLineageExtractor

    logging.disable(logging.ERROR)
    job.lap("import")
    extractor = DbtColumnLineageExtractor(
        str(job.target / "manifest.json"), str(job.target / "catalog.json")
    )
    job.lap("load")
    lineage = extractor.extract_project_lineage()
    job.lap("analyse")
    return len(lineage["lineage"]["parents"]), lineage


def _edges(lineage: Any) -> Iterator[Edge]:
    for child, columns in lineage["lineage"]["parents"].items():
        for column, parents in columns.items():
            # What it calls structural: columns of joins and filters.
            name = ROWS if column.startswith("__colibri_") else column
            for parent in parents:
                yield parent["dbt_node"], parent["column"], child, name


run(_analyse, _edges)
