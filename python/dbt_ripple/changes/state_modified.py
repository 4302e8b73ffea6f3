"""The nodes that dbt calls modified, from two manifests: ``state:modified`` and ``state:modified+``.

The comparison is dbt's own (``same_contents`` of each kind of node and ``modified.macros``), without
importing dbt. Fingerprints do not depend on it. It is used

* to compare a selection with what dbt would run (``state_modified_tests``, ``--full``),
* to find nodes that were edited although their fingerprints are equal: such models are built, and
  such tests run, because only that shows that the new text works (`selection.models_to_build`),
* to say in reasons whether a node was edited itself (`changes.diff`, `selection.impact_paths`).
"""

from __future__ import annotations

from typing import Any, Final

from dbt_ripple.artifacts import Macro, Node, Project
from dbt_ripple.graph.traversal import reach_all

_NOT_COMPARED: Final = frozenset({"alias", "database", "group", "schema", "tags"})
"""Config of nodes and tests that dbt leaves out; it compares a node's location separately."""

_LOCATION: Final = ("database", "schema", "alias")

_WITHOUT_TESTS: Final = frozenset(
    {"exposure", "metric", "saved_query", "semantic_model", "unit_test"}
)
"""Resource types that no data test is downstream of."""


def modified(base: Project, head: Project) -> set[str]:
    """The nodes of head that dbt calls modified, if a data test can be downstream of them."""
    macros = modified_macros(base.macros, head.macros | head.edited_macros)
    unique_ids = set()
    for unique_id, node in head.nodes.items():
        if node.resource_type in _WITHOUT_TESTS:
            continue
        if (macros and not macros.isdisjoint(node.depends_on.macros)) or not _same(
            base.nodes.get(unique_id), node
        ):
            unique_ids.add(unique_id)
    return unique_ids


def modified_tests(head: Project, modified: set[str]) -> set[str]:
    """The data tests of ``state:modified+``, given what is modified."""
    below = reach_all(modified, head.children)
    return {u for u in below if head.nodes[u].resource_type == "test"}


def modified_macros(base: dict[str, Macro], head: dict[str, Macro]) -> set[str]:
    """The macros of head that differ from base's or reach one that does, or that is gone."""
    changed = {
        unique_id
        for unique_id, macro in head.items()
        if (then := base.get(unique_id)) is None or then.macro_sql != macro.macro_sql
    }
    changed.update(unique_id for unique_id in base if unique_id not in head)
    if not changed:
        return changed
    callers: dict[str, list[str]] = {}
    for unique_id, macro in head.items():
        for called in macro.depends_on.macros:
            callers.setdefault(called, []).append(unique_id)
    return set(reach_all(changed, callers))


def _same(then: Node | None, now: Node) -> bool:
    if then is now:
        return True
    if now.resource_type == "source":
        return then is None or _same_source(then, now)
    if then is None:
        return False
    same = then.fqn == now.fqn and _same_config(
        then.unrendered_config, now.unrendered_config, _NOT_COMPARED
    )
    if not same or now.test_metadata is not None:
        return same
    if now.resource_type == "seed":
        if then.checksum != now.checksum:
            return False
    elif then.raw_code != now.raw_code:
        return False
    before, here = then.unrendered_config, now.unrendered_config
    return (
        (before == here or all(before.get(k) == here.get(k) for k in _LOCATION))
        and _same_descriptions(then, now)
        and (
            now.resource_type != "model"
            or (
                (then.latest_version, then.access, then.deprecation_date)
                == (now.latest_version, now.access, now.deprecation_date)
                and then.contract.enforced == now.contract.enforced
                and (not now.contract.enforced or then.contract.checksum == now.contract.checksum)
            )
        )
    )


def _same_source(then: Node, now: Node) -> bool:
    return (
        (then.database, then.schema, then.identifier) == (now.database, now.schema, now.identifier)
        and then.fqn == now.fqn
        and then.quoting == now.quoting
        and then.freshness == now.freshness
        and then.loaded_at_field == now.loaded_at_field
        and then.external == now.external
        and _same_config(then.unrendered_config, now.unrendered_config, frozenset())
    )


def _same_config(then: dict[str, Any], now: dict[str, Any], without: frozenset[str]) -> bool:
    if then == now:
        return True
    missing = object()
    return all(
        then.get(key, missing) == now.get(key, missing)
        for key in {*then, *now}
        if key not in without
    )


def _same_descriptions(then: Node, now: Node) -> bool:
    """Descriptions count where dbt writes them into the warehouse."""
    persist = now.config.get("persist_docs")
    if not isinstance(persist, dict):
        return True
    if persist.get("relation") and then.description != now.description:
        return False
    return not persist.get("columns") or {
        name: column.description for name, column in then.columns.items()
    } == {name: column.description for name, column in now.columns.items()}
