"""The types of a relation's columns, and which of them differ between two sides."""

from __future__ import annotations

from dbt_ripple.artifacts import Project


def declared_types(project: Project, unique_id: str) -> dict[str, str]:
    """Types as the yml files say them, by lower-case column name."""
    node = project.nodes.get(unique_id)
    return {
        (column.name or name).lower(): column.data_type
        for name, column in (node.columns if node else {}).items()
        if column.data_type
    }


def catalog_types(project: Project, unique_id: str) -> dict[str, str]:
    """Types as the warehouse reported them, by lower-case column name."""
    return {c.name.lower(): c.type for c in project.catalog.get(unique_id, ()) if c.type}


def types_of(project: Project, unique_id: str) -> dict[str, str]:
    """Types as far as they are known; the warehouse's word comes first."""
    return {**declared_types(project, unique_id), **catalog_types(project, unique_id)}


def retyped(base: Project, head: Project, unique_id: str) -> dict[str, tuple[str, str]]:
    """Columns of which both sides know the type, from the same kind of artifact, and differ.

    Returns:
        Base's and head's type, by lower-case column name.
    """
    from dbt_ripple.flow.identifiers import dialect_of

    retyped_columns: dict[str, tuple[str, str]] = {}
    dialect = dialect_of(head.metadata.adapter_type)
    kinds = []
    then, now = base.nodes.get(unique_id), head.nodes.get(unique_id)
    if then is not None and now is not None and then.columns != now.columns:
        kinds.append(declared_types)
    if base.catalog.get(unique_id) != head.catalog.get(unique_id):
        kinds.append(catalog_types)
    for types in kinds:
        before = types(base, unique_id)
        for name, is_ in types(head, unique_id).items():
            was = before.get(name)
            if was is None or was.lower() == is_.lower():
                continue
            from dbt_ripple.flow.data_types import same_type

            if not same_type(was, is_, dialect):
                retyped_columns[name] = (was, is_)
    return retyped_columns
