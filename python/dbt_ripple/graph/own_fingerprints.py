"""Own fingerprints: what a node itself makes of its parents, whatever these hold.

A column's fingerprint changes if anything does that it is made of. Its own fingerprint is computed in the
same way, but over parents of which only the names count: it changes with the node's query, its
settings and what belongs to it (macros, variables, functions, hooks), not with what is above it. So
where both changed, the change was made here, and where only the fingerprint did, it was made above.

A column of a parent that has another name is another column here, with equal values, too.
"""

from __future__ import annotations

from typing import Final

from dbt_ripple.graph.lineage import NodeAnalysis, Own
from dbt_ripple.graph.linking.data_tests import link_data_test, outcome_fingerprints
from dbt_ripple.graph.linking.linker import Linker
from dbt_ripple.graph.linking.own_mode import OwnMode

LENGTH: Final = 16
"""Characters of one. It is compared with that of the same column in another load and with nothing else,
and it is stored for every column."""


def own_fingerprints(linker: Linker) -> dict[str, Own]:
    """The own fingerprints of every relation that has a query, and of every test, by unique_id.

    Args:
        linker: has linked the project. Everything is linked once more, with its context and queries.
    """
    project = linker.project
    own = Linker(linker.context, linker.queries, OwnMode(), seeds=linker.seeds)
    own.link_all()
    tests = {
        unique_id: link_data_test(own, unique_id, node).analysis
        for unique_id, node in project.nodes.items()
        if node.resource_type == "test"
    }
    fingerprints = {
        unique_id: Own(_by_name(linked.analysis), linked.analysis.rows_fingerprint[:LENGTH])
        for unique_id, linked in own.linked_nodes.items()
        if linked.analysis.status != "leaf"
    }
    outcomes = outcome_fingerprints(linker.context, tests)
    return fingerprints | {
        unique_id: Own({}, outcome[:LENGTH]) for unique_id, outcome in outcomes.items()
    }


def _by_name(analysis: NodeAnalysis) -> dict[str, str]:
    pairs = zip(analysis.columns, analysis.fingerprints, strict=True)
    return {name.lower(): fingerprint[:LENGTH] for name, fingerprint in pairs}
