"""dbt_ripple in one process, by phase; what a user runs, the command line, is timed by run.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from common import Clock, Edge, run

if TYPE_CHECKING:
    from dbt_ripple.graph.analysis import Analysis


def _analyse(target: Path, clock: Clock) -> tuple[int, Analysis]:
    from dbt_ripple.artifacts import read_project
    from dbt_ripple.graph.analyse import analyse as analyse_project

    clock.lap("import")
    project = read_project(target)
    clock.lap("load")
    analysis = analyse_project(project)
    clock.lap("analyse")
    seen = [
        node
        for node in analysis.nodes.values()
        if node.status == "analysed" and project.nodes[node.unique_id].resource_type == "model"
    ]
    return len(seen), analysis


def _edges(analysis: Analysis) -> Iterator[Edge]:
    for edge in analysis.edges:
        yield edge.parent_id, edge.parent_column, edge.child_id, edge.child_column


run(_analyse, _edges)
