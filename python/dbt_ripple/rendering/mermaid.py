"""What a change affects, as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from dbt_ripple.artifacts import Node, Project, asset_type
from dbt_ripple.rendering.escaping import mermaid as quoted
from dbt_ripple.rendering.findings import SHOWN

if TYPE_CHECKING:
    from dbt_ripple.governance.affected_assets import Affected


_SHAPES: Final = {"table": ("[(", ")]"), "dbt_model": ("[", "]")}


def mermaid(affected: Iterable[Affected], head: Project, base: Project) -> Iterator[str]:
    """The ripple: where it began, and along which nodes it goes."""
    shown = list(affected)[:SHOWN]
    edges: dict[tuple[str, str], None] = {}
    of_others = {asset.unique_id: asset.full_name for asset in shown if asset.project}
    severity = {asset.unique_id: asset.severity for asset in shown}
    for asset in shown:
        edges |= dict.fromkeys(zip(asset.path, asset.path[1:], strict=False))
    names = list(dict.fromkeys(name for asset in shown for name in asset.path))
    ids = {unique_id: f"n{number}" for number, unique_id in enumerate(names)}
    yield "flowchart LR"
    for unique_id in names:
        node = head.nodes.get(unique_id) or base.nodes.get(unique_id)
        name, kind = (node.display_name, _kind(node)) if node else (unique_id, "table")
        name = of_others.get(unique_id, name)
        opening, closing = _SHAPES.get(kind, ("([", "])"))
        style = severity.get(unique_id, "changed")
        yield f'  {ids[unique_id]}{opening}"{quoted(name)}"{closing}:::{style}'
    for parent, child in edges:
        yield f"  {ids[parent]} --> {ids[child]}"
    yield "  classDef changed stroke-width:4px"
    yield "  classDef breaking fill:#f8d7da,stroke:#b02a37,color:#58151c"
    yield "  classDef warning fill:#fff3cd,stroke:#997404,color:#332701"
    yield "  classDef info fill:#e2e3e5,stroke:#6c757d,color:#2b2f32"


def _kind(node: Node) -> str:
    return asset_type(node)
