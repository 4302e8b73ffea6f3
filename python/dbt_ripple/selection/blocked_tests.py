"""Tests that are blocked: a relation above them cannot be built, so dbt would skip them.

A relation whose query names a column that does not exist fails in CI, and dbt skips everything below
it. So does one whose text no engine accepts, whatever its sources hold (`engine_checks.BY_TEXT_ALONE`). So does one that failed in base's build for a reason that has not changed (`changes.repeated_failures`).
Running the tests there would show nothing more. They are listed with the relation that blocks
them: its failure makes CI red, and where it is built after all (``--run`` notices), they run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dbt_ripple.artifacts import CatalogColumn
from dbt_ripple.changes import Comparison
from dbt_ripple.changes.removed_columns import MissingNames, RemovedColumn, broken_by
from dbt_ripple.changes.repeated_failures import fail_again
from dbt_ripple.flow.identifiers import dialect_of
from dbt_ripple.graph.broken_nodes import BrokenNodeFinder
from dbt_ripple.graph.cache import Cache
from dbt_ripple.reasons import Code, Reason, names_missing
from dbt_ripple.selection.models_to_build import inlined_by
from dbt_ripple.selection.result import BlockedTest


def cannot_be_built(comparison: Comparison, cache: Cache | None = None) -> dict[str, list[str]]:
    """The relations of head that certainly cannot be built, and could on base.

    Returns:
        By unique_id, the names that are missing, or what else its engine refuses.
    """
    before, now = comparison.base_analysis.nodes, comparison.head_analysis.nodes
    head = comparison.head
    broken: dict[str, None] = {}
    for unique_id, analysed in now.items():
        then = before.get(unique_id)
        if analysed.status != "broken" or (then is not None and then.status == "broken"):
            continue
        # An ephemeral model is not built: what it is inlined into is.
        ephemeral = head.nodes[unique_id].is_ephemeral
        broken.update(dict.fromkeys(inlined_by(head, unique_id)[0] if ephemeral else (unique_id,)))
    if not broken:
        return {}
    context = comparison.head_context
    finder = BrokenNodeFinder(context, _unchanged_sources(comparison), cache)
    by_text = BrokenNodeFinder(context, {}, cache, by_text_alone=True)

    def lost(unique_id: str, finder: BrokenNodeFinder) -> list[str]:
        """The names that are missing, without those that base could not find either."""
        parts = [before[part] for part in finder.parts(unique_id) if part in before]
        never = {name for part in parts for name in names_missing(part.reason)}
        return [name for name in finder.of(unique_id) if name not in never]

    looked_for = {
        unique_id: names
        for unique_id in broken
        if (
            names := _looked_for_on_base(comparison, unique_id, lost(unique_id, finder))
            or lost(unique_id, by_text)
        )
    }
    return {unique_id: looked_for[unique_id] for unique_id in head.nodes if unique_id in looked_for}


def _unchanged_sources(comparison: Comparison) -> dict[str, list[CatalogColumn]]:
    """The columns of the sources that are the same table on both sides, and look the same."""
    base, head = comparison.base.catalog, comparison.head.catalog
    before, now = comparison.base_analysis.nodes, comparison.head_analysis.nodes
    return {
        unique_id: head[unique_id]
        for unique_id in head
        if unique_id.startswith("source.")
        and head[unique_id] == base.get(unique_id)
        and (then := before.get(unique_id)) is not None
        and (here := now.get(unique_id)) is not None
        and then.rows_fingerprint == here.rows_fingerprint
    }


def _looked_for_on_base(comparison: Comparison, unique_id: str, names: list[str]) -> list[str]:
    """Of these names, those that the query named on base, too, and found there.

    Then no column that a source has got since the catalog was written can be meant, and the way the
    query comes to its names is one that was followed to the end.
    """
    from dbt_ripple.flow.query_text import names_in

    then = comparison.base.nodes.get(unique_id)
    if not names or then is None or not then.compiled_code:
        return []
    words = names_in(then.compiled_code, dialect_of(comparison.head.metadata.adapter_type))
    return [name for name in names if name.rpartition(".")[2].lower() in words]


def blocked_tests(
    comparison: Comparison,
    impacted: Iterable[str],
    models: Collection[str],
    cache: Cache | None = None,
) -> list[BlockedTest]:
    """The impacted tests below a relation that cannot be built.

    Args:
        comparison: of base and head.
        impacted: unique_ids of tests.
        models: what CI builds; everything else is deferred to base, where it exists.
        cache: where lowered queries may be found.

    Returns:
        In the order of ``impacted``, each with the nearest relation that blocks it.
    """
    head, built = comparison.head, frozenset(models)
    impacted = list(impacted)
    if not impacted:
        return []
    missing = {u: m for u, m in cannot_be_built(comparison, cache).items() if u in built}
    refused = fail_again(comparison.base, head)
    if not missing and not refused:
        return []
    skipped = {r.unique_id for r in comparison.base.run_results if r.status == "skipped"}
    blocked_by = {unique_id: unique_id for unique_id in (*missing, *refused)}
    causes = dict(blocked_by)
    ahead = list(blocked_by)
    while ahead:  # the nearest first
        following = []
        for parent in ahead:
            for child in head.children.get(parent, ()):
                node = head.nodes.get(child)
                if node is None or child in blocked_by:
                    continue
                # What base skipped is not there either, though nothing builds it.
                gone = child in skipped and causes[parent] in refused
                if node.resource_type == "test" or node.is_ephemeral or child in built or gone:
                    above = blocked_by[parent]
                    blocked_by[child] = child if child in built and above not in built else above
                    causes[child] = causes[parent]
                    following.append(child)
        ahead = following
    unfound = MissingNames(comparison)
    return [
        BlockedTest(
            unique_id=test,
            reason=_why(unfound, model, causes[test], missing, refused),
            blocked_by=model,
        )
        for test in impacted
        if (model := blocked_by.get(test)) in built and model is not None
    ]


def _why(
    unfound: MissingNames,
    model: str,
    cause: str,
    missing: Mapping[str, list[str]],
    refused: Mapping[str, str],
) -> Reason:
    """Why a relation cannot be built, because of itself or of one above it."""
    nodes = unfound.comparison.head.nodes
    name = nodes[model].display_name
    if cause in missing:
        names = missing[cause]
        code = Code.CANNOT_FIND if any(" " in name for name in names) else Code.THERE_IS_NO
        because = code(names=names)
        if gone := unfound.of(cause) or _gone_in_inlined(unfound, cause):
            because = broken_by(because, map(unfound.what_became_of, gone))
    elif cause != model:
        because = Code.READS_FAILED(name=nodes[cause].display_name, error=refused[cause])
    else:
        because = Code.FAILED_ON_BASE(error=refused[cause])
    return Code.CANNOT_BE_BUILT(name=name, because=because)


def _gone_in_inlined(unfound: MissingNames, model: str) -> list[RemovedColumn]:
    """The names that the ephemeral models inlined into a relation cannot find."""
    head = unfound.comparison.head
    return [
        gone
        for unique_id in unfound.new
        if head.nodes[unique_id].is_ephemeral and model in inlined_by(head, unique_id)[0]
        for gone in unfound.of(unique_id)
    ]
