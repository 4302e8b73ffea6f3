"""A node as a tool shows it: made of what pages say of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.mcp.documents import ColumnCard, NodeCard

if TYPE_CHECKING:
    from dbt_ripple.pages.project_document import Link, ProjectDocument


def card_of(document: ProjectDocument, unique_id: str) -> NodeCard:
    """A node with all its columns.

    Args:
        document: of its project.
        unique_id: which it is.
    """
    node = document.nodes[unique_id]

    def sources(column: str) -> list[str]:
        return [*_written(document, document.links_into.get((unique_id, column), ()))]

    return NodeCard(
        unique_id=unique_id,
        name=node.name,
        asset_type=node.asset_type,
        description=node.description,
        owner=node.owner,
        domain=node.domain,
        tags=list(node.tags),
        path=node.path,
        relation=node.relation,
        materialized=node.materialized,
        criticality=node.criticality,
        certified=node.certified,
        contract_version=node.contract_version,
        contract_enforced=node.contract_enforced,
        status=node.status,
        reason=node.reason,
        last_run=node.last_run.status if node.last_run else None,
        freshness=node.freshness.status if node.freshness else None,
        blast_radius=node.blast_radius,
        columns=[
            ColumnCard(
                name=column.name,
                type=column.type,
                description=column.description,
                expression=column.expression,
                comes_from=sources(column.name),
                readers=column.blast_radius,
                personal_data=column.pii is not None,
                tests=[document.tests[test].name for test in column.tests],
            )
            for column in node.columns
        ],
        rows_come_from=sources(ROWS),
        parents=list(node.parents),
        children=list(node.children),
        tests=[document.tests[test].name for test in node.tests],
    )


def _written(document: ProjectDocument, links: Iterable[Link]) -> Iterable[str]:
    for link in links:
        above = document.nodes.get(link.parent_id)
        name = above.name if above is not None else link.parent_id
        place = f"{name} (rows)" if link.parent_column == ROWS else f"{name}.{link.parent_column}"
        kinds = ["may read"] if link.may_read else [kind.subtype for kind in link.kinds]
        yield f"{place} {', '.join(dict.fromkeys(kinds))}"
