"""Projects made by hand, for two-sided tests: what an edit selects and what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from dbt_ripple.artifacts import CatalogColumn, Column, Macro, Node, Project
from dbt_ripple.artifacts.project import DependsOn, Metadata, TestMetadata
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select


def node(unique_id: str, sql: str | None = None, *parents: str, **more: Any) -> Node:
    """A node; ``sql`` is its compiled SQL, and its code as written unless ``raw`` is given."""
    kind, name = unique_id.split(".")[0], unique_id.split(".")[-1]
    defaults: dict[str, Any] = {"materialized": "table" if kind == "model" else kind}
    if kind == "test":
        defaults |= {"severity": "ERROR", "fail_calc": "count(*)", "warn_if": "!= 0", "limit": None}
    config = {**defaults, **more.pop("config", {})}
    columns = more.pop("columns", [])
    types = columns if isinstance(columns, dict) else dict.fromkeys(columns)
    relation = kind in ("model", "seed", "snapshot", "source")
    ephemeral = config["materialized"] == "ephemeral"
    return Node(
        unique_id=unique_id,
        name=name,
        resource_type=kind,
        package_name=unique_id.split(".")[1],
        fqn=[unique_id.split(".")[1], name],
        schema="s",
        alias=None if kind == "source" else name,
        identifier=name if kind == "source" else None,
        relation_name=f"`s`.`{name}`" if relation and not ephemeral else None,
        compiled_code=sql,
        raw_code=more.pop("raw", sql or ""),
        config=config,
        unrendered_config=more.pop("unrendered", {}),
        columns={c: Column(name=c, data_type=t) for c, t in types.items()},
        depends_on=DependsOn(nodes=list(parents), macros=more.pop("macros", [])),
        **more,
    )


def check(name: str, sql: str, *parents: str, **more: Any) -> Node:
    """A data test."""
    return node(f"test.p.{name}", sql, *parents, **more)


def generic(name: str, kind: str, sql: str, *parents: str, **more: Any) -> Node:
    """A generic data test."""
    test = check(name, sql, *parents, **more)
    return replace(test, test_metadata=TestMetadata(name=kind))


def macro(unique_id: str, text: str, *calls: str) -> Macro:
    _, package, name = unique_id.split(".")
    return Macro(
        unique_id=unique_id,
        name=name,
        package_name=package,
        original_file_path=f"macros/{name}.sql",
        macro_sql=text,
        depends_on=DependsOn(macros=list(calls)),
    )


def project(
    *nodes: Node,
    catalog: dict[str, list[str]] | None = None,
    types: dict[str, dict[str, str]] | None = None,
    macros: Sequence[Macro] = (),
    adapter: str = "spark",
) -> Project:
    by_id = {n.unique_id: n for n in nodes}
    parents = {u: [p for p in n.depends_on.nodes if p in by_id] for u, n in by_id.items()}
    children: dict[str, list[str]] = {u: [] for u in by_id}
    for child, of in parents.items():
        for parent in of:
            children[parent].append(child)
    listed = {u: dict.fromkeys(columns) for u, columns in (catalog or {}).items()} | (types or {})
    return Project(
        target_path="target",
        metadata=Metadata(
            adapter_type=adapter,
            project_name="p",
            dbt_version="1.11.0",
            generated_at=datetime(2026, 1, 1, tzinfo=UTC),
        ),
        nodes=by_id,
        parents=parents,
        children=children,
        macros={m.unique_id: m for m in macros},
        catalog={
            u: [CatalogColumn(name=c, type=t, index=i) for i, (c, t) in enumerate(columns.items())]
            for u, columns in listed.items()
        },
    )


RAW = "source.p.raw.orders"
LISTED = {RAW: ["id", "amount", "status"]}


def orders() -> Node:
    """A source with the columns id, amount and status (with ``catalog=LISTED``)."""
    return node(RAW, columns=["id", "amount", "status"])


def picked(base: Project, head: Project, **more: Any) -> Selection:
    return select(base, head, facts=False, **more)


def names(base: Project, head: Project, **more: Any) -> list[str]:
    """The names of the selected tests, in order."""
    return [test.name for test in picked(base, head, **more).tests]
