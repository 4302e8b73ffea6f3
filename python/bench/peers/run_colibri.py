"""dbt-colibri: what its `generate` command extracts, without the report it then writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import ROWS, Clock, Edge, run


def _analyse(target: Path, clock: Clock) -> tuple[int, Any]:
    from dbt_colibri.lineage_extractor.extractor import DbtColumnLineageExtractor

    logging.disable(logging.ERROR)
    clock.lap("import")
    extractor = DbtColumnLineageExtractor(
        str(target / "manifest.json"), str(target / "catalog.json")
    )
    clock.lap("load")
    found = extractor.extract_project_lineage()
    clock.lap("analyse")
    return len(found["lineage"]["parents"]), found


def _edges(found: Any) -> Iterator[Edge]:
    for child, columns in found["lineage"]["parents"].items():
        for column, parents in columns.items():
            # What it calls structural: columns of joins and filters.
            name = ROWS if column.startswith("__colibri_") else column
            for parent in parents:
                yield parent["dbt_node"], parent["column"], child, name


run(_analyse, _edges)
