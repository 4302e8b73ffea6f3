"""What tools answer: one envelope for all, and in it the document of the command that says the same.

A node as a tool shows it (`card_of`) is made of what pages say of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dbt_ripple.governance.gate import Decision
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.rendering import json_documents
from dbt_ripple.rendering.json_documents import DOCUMENTS, GateDocument
from dbt_ripple.session.typed_names import Hit

if TYPE_CHECKING:
    from dbt_ripple.pages.project_document import Link, ProjectDocument


class Truncated(msgspec.Struct, kw_only=True):
    """That there is more than fits.

    Attributes:
        shown: entries that are here.
        total: of how many.
        cursor: for the next ones.
    """

    shown: int
    total: int
    cursor: str


class NotAnalysed(msgspec.Struct, kw_only=True):
    """A node in the answer that could not be analysed: it counts as depending on all that it reads."""

    unique_id: str
    reason: str


class Found(msgspec.Struct, kw_only=True):
    """What words were found in.

    Attributes:
        hits: the best first.
        searched: how many nodes were looked at.
        nearest: names that look most like the text, where nothing was found.
    """

    hits: list[Hit]
    searched: int
    nearest: list[str] = []


class ColumnCard(msgspec.Struct, kw_only=True):
    """A column of a node.

    Attributes:
        expression: the SQL that computes it; null where it is a column of a parent as it is.
        comes_from: columns one step above, each with how it is used.
        readers: how many columns below come of it, however far.
        personal_data: whether it holds any.
        tests: names of the tests that read it.
    """

    name: str
    type: str | None
    description: str | None
    expression: str | None
    comes_from: list[str]
    readers: int
    personal_data: bool
    tests: list[str]


class NodeCard(msgspec.Struct, kw_only=True):
    """A node with all its columns.

    Attributes:
        columns: in its order.
        rows_come_from: what decides which rows there are, one step above.
        parents: unique_ids of what it reads.
        children: of who reads it, tests aside.
        tests: names of its tests.
        status: analysed, opaque, broken or leaf (it has no query).
        reason: why it is opaque or broken.
        last_run: dbt's status of the last command that ran it.
        freshness: of ``dbt source freshness``.
        blast_radius: how many nodes stand below it.
    """

    unique_id: str
    name: str
    asset_type: str
    description: str | None
    owner: str | None
    domain: str | None
    tags: list[str]
    path: str | None
    relation: str | None
    materialized: str | None
    criticality: str | None
    certified: bool
    contract_version: str | None
    contract_enforced: bool
    status: str
    reason: str | None
    last_run: str | None
    freshness: str | None
    blast_radius: int
    columns: list[ColumnCard]
    rows_come_from: list[str]
    parents: list[str]
    children: list[str]
    tests: list[str]


class Exported(msgspec.Struct, kw_only=True):
    """A trace in another form.

    Attributes:
        lines: of the diagram, or one event each.
        nodes: how many are in it; the nearest to the root where not all fit.
    """

    format: str
    lines: list[str]
    nodes: int


class EditedColumn(msgspec.Struct, kw_only=True):
    """A column, or the rows (``*rows*``), that an edit changes."""

    unique_id: str
    column: str
    change: str
    before: str | None
    after: str | None


class CheckedSql(GateDocument, kw_only=True):
    """What an edit would change and break.

    Attributes:
        changes: of the relation itself, column by column.
        broken: what could not compile any more, as ``unique_id: reason``.
    """

    changes: list[EditedColumn]
    broken: list[str]


class Registered(msgspec.Struct, kw_only=True):
    """What was written.

    Attributes:
        file: where.
        changed: the assets, by id: added, shown again or back.
        captured: the jobs that were followed by their SQL, as ``dbt-ripple capture`` has them.
        written: whether it was; not with dry_run.
    """

    file: str
    changed: dict[str, str]
    captured: list[json_documents.CapturedJob]
    written: bool


OF_TOOL: dict[str, type[msgspec.Struct] | tuple[type[msgspec.Struct], ...]] = {
    "search": Found,
    "node": NodeCard,
    "trace": (DOCUMENTS["trace"], Exported),
    "impact": DOCUMENTS["impact"],
    "select_tests": DOCUMENTS["select"],
    "explain": DOCUMENTS["explain"],
    "gate": DOCUMENTS["gate"],
    "diagnose": DOCUMENTS["diagnose"],
    "check_sql": CheckedSql,
    "register": Registered,
}
"""The data of each tool."""

SCHEMA: Final = "ripple://schema/{name}"
"""The resource with the whole schema of a tool's answers."""

JUDGED = frozenset({"impact", "gate", "check_sql"})
"""Tools that decide."""


class Verdict(msgspec.Struct, kw_only=True):
    """A decision as a form has it."""

    decision: Decision
    risk: str
    affected_systems: int
    reason: str
    recommendation: str


def whole_schema(tool: str) -> dict[str, Any]:
    """The JSON Schema of what a tool answers, with all that is in it."""
    types = OF_TOOL[tool]
    parts = [
        json_documents.schema_of(one) for one in (types if isinstance(types, tuple) else (types,))
    ]
    definitions: dict[str, Any] = {}
    for part in parts:
        definitions |= part.pop("$defs")
    data = parts[0] if len(parts) == 1 else {"anyOf": parts}
    schema = _envelope(tool, data)
    schema["properties"]["not_analysed"]["items"] = _struct(NotAnalysed)
    schema["properties"]["truncated"] |= {"properties": _struct(Truncated)["properties"]}
    return {"$schema": json_documents.DIALECT, **schema, "$defs": definitions}


def output_schema(tool: str) -> dict[str, Any]:
    """The JSON Schema of what a tool answers, as it is listed.

    Every agent pays for the list in each session, so it has the fields and their types alone, and the server's
    instructions say what they are for. What is in each field of `data` is in `whole_schema`, which is a resource.
    """
    whole = whole_schema(tool)
    data, definitions = whole["properties"]["data"], whole["$defs"]
    parts = [_fields_alone(part, definitions) for part in data.get("anyOf", [data])]
    short = parts[0] if len(parts) == 1 else {"anyOf": parts}
    short["description"] = f"What is in its fields: {SCHEMA.format(name=tool)}"
    return _envelope(tool, short)


def _envelope(tool: str, data: dict[str, Any]) -> dict[str, Any]:
    """What the answers of all tools have in common, around the data."""
    properties: dict[str, Any] = {
        "verdict": {"type": "string"},
        **({"brief": _struct(Verdict)} if tool in JUDGED else {}),
        "complete": {"type": "boolean"},
        "truncated": {"type": ["object", "null"]},
        "not_analysed": {"type": "array"},
        "notes": {"type": "array", "items": {"type": "string"}},
        "data": data,
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _struct(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """A small type, without descriptions: the server's instructions say what it is for."""
    fields = json_documents.schema_of(type_)["properties"].items()
    return {
        "type": "object",
        "properties": {
            name: {key: value for key, value in one.items() if key != "description"}
            for name, one in fields
        },
    }


def _fields_alone(schema: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A type of which only the kinds of its fields are said."""
    fields = {}
    for name, one in schema["properties"].items():
        kinds = list(dict.fromkeys(_kinds(one, definitions)))
        fields[name] = {"type": kinds if len(kinds) > 1 else kinds[0]} if kinds else {}
    return {"type": "object", "properties": fields}


def _kinds(schema: dict[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    """The JSON types that a value may have; none where it may be anything."""
    if "$ref" in schema:
        return _kinds(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return [kind for one in schema["anyOf"] for kind in _kinds(one, definitions)]
    if "type" in schema:
        return [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return [_KIND_OF[type(value)] for value in values]


_KIND_OF: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}


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
