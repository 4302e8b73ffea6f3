"""A project's artifacts -> every node's columns, fingerprints and edges.

Each query is lowered on its own (`flow.lower`), then linked after its parents (`flow.link`), so a
``*`` or a bare name is resolved against the columns that were found for the parents. A node that
cannot be analysed is *opaque*: it depends on everything in its parents, and has a reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache as once

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.broken_nodes import BrokenNodeFinder, judge
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.column_edges import edges_of
from dbt_ripple.graph.hypothetical import Supposed
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.graph.lineage_tests import judge_lineage
from dbt_ripple.graph.linking.data_tests import link_data_test, may_discover
from dbt_ripple.graph.linking.functions import function_fingerprint, marked_calls
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.own_mode import own_fingerprints
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.linking.unit_tests import link_unit_test
from dbt_ripple.graph.query_cache import LowerMany, QueryCache
from dbt_ripple.graph.relations import LinkedNode
from dbt_ripple.graph.semantic_layer import SemanticLayer
from dbt_ripple.graph.semantic_references import SEMANTIC
from dbt_ripple.tuning import collector_relaxed


def analyse(
    project: Project,
    *,
    read_seconds: float = 0.0,
    expressions: bool = False,
    own: bool = False,
    tests: bool = True,
    cache: Cache | None = None,
    lower_many: LowerMany | None = None,
    seeds: SeedFiles | None = None,
    hypothetical: Mapping[str, Supposed] | None = None,
    context: ProjectContext | None = None,
) -> Analysis:
    """Analyse a whole project.

    Args:
        project: its artifacts.
        read_seconds: what reading them took, to be passed on in `Analysis.seconds`.
        expressions: whether to write out the SQL behind each column, which takes its time.
        own: whether to give own fingerprints, too (`graph.linking.own_mode`): everything is linked twice.
        tests: whether to say what tests read. Columns and edges are the same without: a test is
            then followed only where it can show a column that nothing else lists.
        cache: where to look for what was analysed before, and to put what is now.
        lower_many: lowers queries on other cores or machines, all at once before the first is
            linked (see `graph.process_pool`); by default each is lowered here, in its turn.
        seeds: the files of seeds, where more is to be seen of them than their checksums.
        hypothetical: relations whose columns are to be taken as other than they are, or as another
            project has them, by unique_id.
        context: of this project, where it is at hand.

    Returns:
        Columns, fingerprints and edges of every relation, and what every test reads. Never raises
        on what a model says: that model is then opaque or broken, with the reason.
    """
    with collector_relaxed():
        context = context or ProjectContext(project)
        queries = QueryCache(context.dialect, expressions, cache, lower_many, context.masking)
        queries.again = own
        linker = Linker(context, queries, seeds=seeds, hypothetical=hypothetical)
        result = _run(linker, read_seconds, tests)
        if own:
            start = time.perf_counter()
            result.own = own_fingerprints(linker)
            result.seconds["link"] += time.perf_counter() - start
        return result


def _run(linker: Linker, read_seconds: float, every_test: bool) -> Analysis:
    start = time.perf_counter()
    project = linker.project
    wanted = ("model", "snapshot", "test") if every_test else ("model", "snapshot")
    linker.queries.prepare(
        marked_calls(linker, node, node.compiled_code).sql
        for node in project.nodes.values()
        if node.resource_type in wanted and node.compiled_code and not node.is_python
    )
    linker.link_all()

    @once
    def certain() -> BrokenNodeFinder:
        return BrokenNodeFinder(linker.context, linker.queries.cache, linker.hypothetical)

    semantic = _semantic_layer(linker, certain)
    tests = {
        unique_id: link_data_test(linker, unique_id, node)
        for unique_id, node in project.nodes.items()
        if node.resource_type == "test" and (every_test or may_discover(linker, unique_id))
    }
    seen = [
        *(linked.analysis for linked in linker.linked_nodes.values()),
        *(analysis for analysis, _ in tests.values()),
    ]
    judge(certain, seen)
    test_columns = [
        (test, parent, column) for test, (_, reads) in tests.items() for parent, column in reads
    ]
    seconds = {
        "read": read_seconds,
        "parse": linker.queries.parse_seconds,
        "link": time.perf_counter() - start - linker.queries.parse_seconds,
    }
    analysis = Analysis(
        nodes={u: linked.analysis for u, linked in (linker.linked_nodes | semantic).items()},
        edges=edges_of(linker, semantic),
        test_columns=test_columns,
        seconds=seconds,
        tests={unique_id: analysis for unique_id, (analysis, _) in tests.items()},
        unit_tests={
            unique_id: node_analysis
            for unique_id, node in project.nodes.items()
            if every_test
            and node.resource_type == "unit_test"
            and (node_analysis := link_unit_test(linker, unique_id, node)) is not None
        },
        unlisted=[u for u, linked in linker.linked_nodes.items() if linked.relation.unlisted],
        functions={u: function_fingerprint(linker, u).hex() for u in linker.context.functions},
    )
    if every_test:
        judge_lineage(project, analysis)
    return analysis


def _semantic_layer(
    linker: Linker, certain: Callable[[], BrokenNodeFinder]
) -> dict[str, LinkedNode]:
    """Semantic models, metrics and saved queries, over the relations as they are linked."""
    project = linker.project
    if not project.of_type(*SEMANTIC):
        return {}

    return SemanticLayer(
        project,
        linker.dialect,
        linker.queries,
        lambda unique_id: linker.node(linker.names.canonical.get(unique_id, unique_id)).relation,
        lambda unique_id: certain().linker.node(unique_id).relation,
    ).link()
