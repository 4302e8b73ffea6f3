"""What tools answer: one envelope for all, and in it the document of the command that says the same."""

from __future__ import annotations

from typing import Any

import msgspec

from dbt_ripple.governance.gate import Decision
from dbt_ripple.rendering import json_documents
from dbt_ripple.rendering.json_documents import DOCUMENTS, GateDocument
from dbt_ripple.session.search import Hit


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

JUDGED = frozenset({"impact", "gate", "check_sql"})
"""Tools that decide."""


class Verdict(msgspec.Struct, kw_only=True):
    """A decision as a form has it."""

    decision: Decision
    risk: str
    affected_systems: int
    reason: str
    recommendation: str


def output_schema(tool: str) -> dict[str, Any]:
    """The JSON Schema of what a tool answers.

    What the fields of `data` mean is in docs/schemas, and not repeated for each agent: only their types are here.
    """
    types = OF_TOOL[tool]
    parts = [
        json_documents.schema_of(one) for one in (types if isinstance(types, tuple) else (types,))
    ]
    definitions: dict[str, Any] = {}
    for part in parts:
        definitions |= part.pop("$defs")
    parts, definitions = _types_only(parts), _types_only(definitions)
    envelope = json_documents.schema_of(Truncated), json_documents.schema_of(NotAnalysed)
    for name, part in zip(("Truncated", "NotAnalysed"), envelope, strict=True):
        part.pop("$defs")
        definitions[name] = part
    properties: dict[str, Any] = {
        "verdict": {"description": "The answer in one sentence.", "type": "string"},
        "complete": {
            "description": "Whether all of it is here and all was analysed; else the next fields say what is not.",
            "type": "boolean",
        },
        "truncated": {"anyOf": [{"$ref": "#/$defs/Truncated"}, {"type": "null"}]},
        "not_analysed": {
            "description": "Nodes in the answer that could not be analysed.",
            "type": "array",
            "items": {"$ref": "#/$defs/NotAnalysed"},
        },
        "notes": {
            "description": "What the answer had to assume, and what was shortened.",
            "type": "array",
            "items": {"type": "string"},
        },
        "data": parts[0] if len(parts) == 1 else {"anyOf": parts},
    }
    if tool in JUDGED:
        brief = json_documents.schema_of(Verdict)
        brief.pop("$defs")
        properties = {"verdict": properties.pop("verdict"), "brief": brief, **properties}
    return {
        "$schema": json_documents.DIALECT,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "$defs": definitions,
    }


def _types_only(schema: Any) -> Any:
    """A schema without its descriptions."""
    if isinstance(schema, list):
        return [_types_only(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called description; a description is a text.
    kept = {k: v for k, v in schema.items() if k != "description" or not isinstance(v, str)}
    return {key: _types_only(value) for key, value in kept.items()}
