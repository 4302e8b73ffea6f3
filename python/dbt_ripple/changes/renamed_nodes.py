"""Sources and tests that have another name on head: base gets head's names for them.

A source is what its relation holds, not what YAML calls it; and a test is what it asks. So where
base's own node is gone and head has a new one that is the same relation, or the same query over the
same relations, the two are compared as one node. This only says what is compared with what: whether
anything differs is told by fingerprints, as of every other node.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.changes.compile_inputs import rename
from dbt_ripple.changes.compiled_sql_reuse import other_names
from dbt_ripple.graph.linking.sources import where_it_is
from dbt_ripple.jinja.text import normalised


def with_names_of_head(base: Project, head: Project) -> tuple[Project, Project]:
    """Base, with head's unique_id for each source and test that head has under another name.

    Returns:
        Base, and head with the columns of these sources that only base's catalog lists.
    """
    if not base.nodes.keys() - head.nodes.keys() or not head.nodes.keys() - base.nodes.keys():
        return base, head
    gone = [base.nodes[u] for u in base.nodes if u not in head.nodes]
    new = [head.nodes[u] for u in head.nodes if u not in base.nodes]
    names = _same_sources(gone, new)
    if names:
        base = _renamed(base, names)
        listed = base.catalog
        columns = {u: listed[u] for u in names.values() if u in listed and u not in head.catalog}
        if columns:
            head = head.having(catalog={**head.catalog, **columns})
    names = _same_tests(base, head, gone, new)
    return _renamed(base, names) if names else base, head


def _same_sources(gone: Iterable[Node], new: Iterable[Node]) -> dict[str, str]:
    """Base's sources that are gone, each with head's new one that is the same relation."""
    there = [node for node in gone if node.resource_type == "source"]
    names = {}
    for node in new:
        if node.resource_type != "source":
            continue
        same = next((then for then in there if _same_relation(then, node)), None)
        if same is not None:
            there.remove(same)
            names[same.unique_id] = node.unique_id
    return names


def _same_relation(then: Node, now: Node) -> bool:
    """Whether two sources are one relation; the default schema is the name of the source."""
    return where_it_is(then) == where_it_is(now) and (
        now.unrendered_schema is not None
        or (then.relation_name is not None and then.relation_name == now.relation_name)
    )


def _same_tests(
    base: Project, head: Project, gone: Iterable[Node], new: Iterable[Node]
) -> dict[str, str]:
    """Base's tests that are gone, each with head's new one that runs the same SQL."""
    there = [node.unique_id for node in gone if node.resource_type == "test" and node.compiled_code]
    if not there:
        return {}
    relations = other_names(base, head)
    tests: dict[tuple[str, ...], list[str]] = {}
    for unique_id in there:
        sql = rename(base.nodes[unique_id].compiled_code or "", relations)
        asked = (normalised(sql), *sorted(base.parents[unique_id]))
        tests.setdefault(asked, []).append(unique_id)
    names = {}
    for node in new:
        if node.resource_type == "test" and node.compiled_code:
            asked = (normalised(node.compiled_code), *sorted(head.parents[node.unique_id]))
            if same := tests.get(asked):
                names[same.pop(0)] = node.unique_id
    return names


def _renamed(project: Project, names: dict[str, str]) -> Project:
    """A project with other unique_ids of some nodes."""

    def name_on_head(unique_id: str) -> str:
        return names.get(unique_id, unique_id)

    nodes = {}
    for unique_id, node in project.nodes.items():
        if unique_id in names:
            node = replace(node, unique_id=names[unique_id])
        if node.attached_node in names:
            node = replace(node, attached_node=names[node.attached_node])
        if not names.keys().isdisjoint(node.depends_on.nodes):
            above = replace(node.depends_on, nodes=[*map(name_on_head, node.depends_on.nodes)])
            node = replace(node, depends_on=above)
        nodes[name_on_head(unique_id)] = node
    return project.having(
        nodes=nodes,
        parents={
            name_on_head(u): [*map(name_on_head, above)] for u, above in project.parents.items()
        },
        children={
            name_on_head(u): [*map(name_on_head, below)] for u, below in project.children.items()
        },
        catalog={name_on_head(u): columns for u, columns in project.catalog.items()},
        whole_catalog={name_on_head(u): columns for u, columns in project.types.items()},
        run_results=[
            replace(result, unique_id=name_on_head(result.unique_id))
            for result in project.run_results
        ],
    )
