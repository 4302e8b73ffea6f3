"""dbt_ripple in one process, by phase, as its command line does it.

The command line itself is timed by run.py, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from common import Edge, Job, run

if TYPE_CHECKING:
    from dbt_ripple.graph.lineage import Analysis


def _analyse(job: Job) -> tuple[int, Analysis]:
    # The command imports these when the first query is lowered; a run from the cache does without.
    import dbt_ripple.flow.link
    import dbt_ripple.flow.lower  # noqa: F401
    from dbt_ripple.artifacts import read_project
    from dbt_ripple.graph.analyse_project import analyse
    from dbt_ripple.tuning import keep_all, relax_collector

    job.lap("import")
    relax_collector()
    project = read_project(job.target)
    keep_all()
    job.lap("load")
    analysis = analyse(project, tests=job.tests)
    assert len(analysis.edges)  # they are made when they are first asked for
    job.lap("analyse")
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
