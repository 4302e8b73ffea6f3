"""What `--format json` prints for each command: one type each, and the JSON Schema made from it.

Every document begins with `output.SCHEMA_VERSION`.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Final, Literal

import msgspec

from dbt_ripple.changes.causes import Cause
from dbt_ripple.changes.diff import Diff
from dbt_ripple.governance.affected_assets import Affected, RiskLevel
from dbt_ripple.governance.diagnose import Diagnosis
from dbt_ripple.governance.gate import Decision, Finding
from dbt_ripple.governance.impact import Deprecation
from dbt_ripple.governance.incident_document import Incident
from dbt_ripple.reasons import Code, Reason
from dbt_ripple.rendering.output import SCHEMA_VERSION, of_reasons
from dbt_ripple.rendering.page_documents import ReportDocument, Verification, WrittenEvidence
from dbt_ripple.selection.explain import Explanation
from dbt_ripple.selection.result import CutOff, CutSelection, Selection

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class UnanalysedModel(msgspec.Struct, kw_only=True):
    """A model that could not be followed, or that is broken; the reason says which, and why."""

    unique_id: str
    reason: Reason


class AnalyzeDocument(msgspec.Struct, kw_only=True):
    """How well a project can be seen.

    Attributes:
        models: how many there are.
        analysed: those that were followed column by column.
        opaque: the others, each with the reason.
        columns: of all relations.
        edges: between them.
        seconds: wall time by stage.
        assets: how many assets are declared; there where any is.
    """

    models: int
    analysed: int
    opaque: list[UnanalysedModel]
    columns: int
    edges: int
    seconds: dict[str, float]
    assets: int | msgspec.UnsetType = msgspec.UNSET


class TracedNode(msgspec.Struct, kw_only=True):
    """A node, or a column of it, that was reached.

    Attributes:
        depth: steps from the root.
        column: where a column was asked for; ``*rows*`` is the row set.
        asset_type: there where the node is a declared asset.
        project: there where the node is of another project (``--other-project``).
        may_read: there where it is only known that it may depend on the root.
        expression: the SQL that computes the column, over the relations its model reads; there where
            it is more than a column of one of them.
    """

    unique_id: str
    name: str
    resource_type: str
    depth: int
    column: str | msgspec.UnsetType = msgspec.UNSET
    asset_type: str | msgspec.UnsetType = msgspec.UNSET
    expression: str | msgspec.UnsetType = msgspec.UNSET
    project: str | msgspec.UnsetType = msgspec.UNSET
    may_read: bool | msgspec.UnsetType = msgspec.UNSET


class TracedEdge(msgspec.Struct, kw_only=True, rename={"parent": "from", "child": "to"}):
    """One dependency between two of the nodes.

    Attributes:
        parent: unique_id of what is read.
        child: unique_id of the reader.
        from_column: where a column was asked for, like all that follow.
        type: OpenLineage's DIRECT or INDIRECT; TEST of what a test reads.
        subtype: OpenLineage's, such as IDENTITY or FILTER; of a test DATA_TEST or UNIT_TEST.
        masking: whether the value is hidden.
        may_read: there where it is only known that it may read it.
    """

    parent: str
    child: str
    from_column: str | msgspec.UnsetType = msgspec.UNSET
    to_column: str | msgspec.UnsetType = msgspec.UNSET
    type: str | msgspec.UnsetType = msgspec.UNSET
    subtype: str | msgspec.UnsetType = msgspec.UNSET
    masking: bool | msgspec.UnsetType = msgspec.UNSET
    may_read: bool | msgspec.UnsetType = msgspec.UNSET


class TraceDocument(msgspec.Struct, kw_only=True):
    """What is upstream or downstream of a node or of a column.

    Attributes:
        root: unique_id of the node.
        column: the column, where one was asked for.
        depth: how many steps were gone; null for all.
        nodes: the root first, then by distance.
    """

    root: str
    direction: Literal["upstream", "downstream", "both"]
    depth: int | None
    nodes: list[TracedNode]
    edges: list[TracedEdge]
    column: str | msgspec.UnsetType = msgspec.UNSET


class GateDocument(msgspec.Struct, kw_only=True):
    """What the gate says.

    Attributes:
        blast_radius: how many assets break or may change.
        reason: what decided, in one sentence made of the findings.
        recommendation: what to do next, in one sentence.
        findings: by rule, then by node and column.
        affected: these, and those that only stand below them (severity info), nearest first.
        removed: unique_ids of what base has and head has not, except sources and tests, ordered by id.
        causes: what was edited, each with the nodes that are not the same because of it.
        selection: the tests the change can break, with ``--with select``.
        results: dbt's status of what was built and run, by unique_id, with ``--run``.
    """

    decision: Decision
    risk_level: RiskLevel
    blast_radius: int
    reason: str
    recommendation: str
    findings: list[Finding]
    affected: list[Affected]
    removed: list[str]
    causes: list[Cause]
    selection: Selection | msgspec.UnsetType = msgspec.UNSET
    results: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class ImpactDocument(msgspec.Struct, kw_only=True):
    """Who breaks if a change were made.

    Attributes:
        affected_count: how many assets would break or may change.
        affected_assets: these, and those that only stand below them (severity info), nearest first.
        reason: why it is decided so, in one sentence.
        recommendation: what to do next, in one sentence.
        broken_tests: the data tests that will not compile.
        affected_tests: the other data tests, and the unit tests, that read something of the change.
        broken_promises: what is promised of the relation and would not be kept.
        deprecation: what is announced, there where that is the change.
    """

    decision: Decision
    risk_level: RiskLevel
    affected_count: int
    affected_assets: list[Affected]
    reason: str
    recommendation: str
    broken_tests: list[str]
    affected_tests: list[str]
    broken_promises: list[Reason]
    deprecation: Deprecation | msgspec.UnsetType = msgspec.UNSET


class SelectDocument(Selection, kw_only=True):
    """A selection.

    Attributes:
        cutoff: what became of it, with ``--run --cutoff``.
    """

    cutoff: CutOff | msgspec.UnsetType = msgspec.UNSET


class LoadedTables(msgspec.Struct, kw_only=True):
    """What was loaded.

    Attributes:
        schema: where the tables are.
        already_loaded: whether the snapshot was there before.
        rows: by table.
        closure_depth: how deep the closure of nodes goes where it was cut; None where it is whole.
        seconds: wall time by stage.
    """

    snapshot_id: str
    schema: str
    already_loaded: bool
    rows: dict[str, int]
    closure_depth: int | None
    seconds: dict[str, float]


class BuiltTables(LoadedTables, kw_only=True):
    """What was loaded, and dbt's results.

    Attributes:
        dbt: how many nodes ended with each status.
    """

    dbt: dict[str, int]


class EditedAssets(msgspec.Struct, kw_only=True):
    """What became of an assets file.

    Attributes:
        file: which it is.
        changed: the assets that were changed, by id: added, shown again, back, or retired.
        written: whether it was written; not with ``--dry-run``.
    """

    file: str
    changed: dict[str, str]
    written: bool


class CapturedSource(msgspec.Struct, kw_only=True):
    """A column that a written one comes of; ``*rows*`` is which rows there are."""

    table: str
    column: str


class CapturedColumn(msgspec.Struct, kw_only=True, rename={"sources": "from"}):
    """A column that a job writes, or the rows of a table; it comes of those."""

    table: str
    column: str
    sources: list[CapturedSource]


class CapturedJob(msgspec.Struct, kw_only=True):
    """What the SQL of a job reads and writes.

    Attributes:
        id: of the job.
        source_tables: as dbt calls them, as assets are called, or as the SQL has them.
        target_tables: likewise.
        columns: of the target tables.
        file: the assets file.
        written: whether it was written; not with ``--dry-run``.
    """

    id: str
    source_tables: list[str]
    target_tables: list[str]
    columns: list[CapturedColumn]
    file: str
    written: bool


DOCUMENTS: Final[dict[str, type[msgspec.Struct]]] = {
    "analyze": AnalyzeDocument,
    "build": BuiltTables,
    "capture": CapturedJob,
    "diagnose": Diagnosis,
    "diff": Diff,
    "evidence": WrittenEvidence,
    "explain": Explanation,
    "gate": GateDocument,
    "impact": ImpactDocument,
    "incident": Incident,
    "load": LoadedTables,
    "prune": EditedAssets,
    "register": EditedAssets,
    "report": ReportDocument,
    "run": CutSelection,
    "select": SelectDocument,
    "trace": TraceDocument,
    "verify": Verification,
}
"""What each command prints as JSON."""


def schema(command: str) -> dict[str, Any]:
    """The JSON Schema of what a command prints. No field is left out, and none is not listed."""
    root = schema_of(DOCUMENTS[command])
    return {
        "$schema": DIALECT,
        "$id": f"dbt-ripple/{command}.v{SCHEMA_VERSION}.json",
        "title": f"dbt-ripple {command} --format json",
        **root,
    }


def schema_of(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a type; a document begins with its version."""
    (components,), definitions = msgspec.json.schema_components(
        [type_], ref_template="#/$defs/{name}"
    )
    types = {struct.__name__: struct for struct in _types_in(type_)}
    if Reason.__name__ in definitions:
        del definitions[Code.__name__]
        definitions |= _REASON
    for name, definition in definitions.items():
        if name not in _REASON:
            _complete(definition, types[name])
    root = definitions.pop(components["$ref"].rpartition("/")[2])
    is_document = issubclass(type_, tuple(DOCUMENTS.values()))
    version = {"schema_version": {"const": SCHEMA_VERSION}} if is_document else {}
    return {
        "description": root["description"],
        "type": "object",
        "properties": {**version, **root["properties"]},
        "required": [*version, *root["required"]],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _complete(definition: dict[str, Any], type_: type[msgspec.Struct]) -> None:
    """Say of an object which fields it always has, what they mean, and that there are no others."""
    names = dict(zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True))
    defaults = type_.__struct_defaults__
    late = type_.__struct_fields__[len(names) - len(defaults) :] if defaults else ()
    may_lack = {
        field
        for field, default in zip(late, defaults, strict=True)
        if default is msgspec.UNSET or type_.__struct_config__.omit_defaults
    }
    definition.pop("title", None)
    definition["description"], meanings = _documented(type_)
    definition["required"] = [name for field, name in names.items() if field not in may_lack]
    definition["additionalProperties"] = False
    for field, name in names.items():
        schema = definition["properties"][name]
        schema.pop("default", None)
        if field in meanings:
            definition["properties"][name] = {"description": meanings[field], **schema}
    for field, how in of_reasons(type_).items():
        _describe_reason(definition, names[field], how)


def _describe_reason(definition: dict[str, Any], name: str, how: str) -> None:
    """Say of a field that is a reason what stands for it (see `plain`)."""
    properties = definition["properties"]
    meaning = properties[name].get("description")
    described = {"description": meaning} if meaning else {}
    more: dict[str, Any]
    if how == "several":
        properties[name] = {**described, "type": "array", "items": {"type": "string"}}
        more = {
            f"{name}_coded": {
                "description": f"The same as {name}, as values.",
                "type": "array",
                "items": {"$ref": "#/$defs/Reason"},
            }
        }
    else:
        nothing = "anyOf" in properties[name] and {"type": "null"} in properties[name]["anyOf"]
        text = {"type": ["string", "null"] if nothing else "string"}
        properties[name] = {**described, **text}
        more = {
            f"{name}_code": {"description": f"The code of {name} (docs/reasons.md).", **text},
            f"{name}_arguments": {
                "description": f"The names and numbers in {name}.",
                "type": ["object", "null"] if nothing else "object",
                "additionalProperties": {"$ref": "#/$defs/Argument"},
            },
        }
    properties.update(more)
    if name in definition["required"]:
        definition["required"] += more


_REASON: Final = {
    "Reason": {
        "description": "Why something is so: a code, its arguments, and the sentence.",
        "type": "object",
        "properties": {
            "code": {"description": "Stable; docs/reasons.md lists all.", "type": "string"},
            "arguments": {
                "description": "The names and numbers in it.",
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/Argument"},
            },
            "message": {"description": "The sentence.", "type": "string"},
        },
        "required": ["code", "arguments", "message"],
        "additionalProperties": False,
    },
    "Argument": {
        "description": "A name, a number, another reason, or several names and reasons.",
        "anyOf": [
            {"type": "string"},
            {"type": "integer"},
            {"$ref": "#/$defs/Reason"},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Reason"}]}},
        ],
    },
}


def _documented(type_: type[msgspec.Struct]) -> tuple[str, dict[str, str]]:
    """What a type is, and what its fields are, by its own docstring and those it is derived from."""
    meanings: dict[str, str] = {}
    for base in reversed(type_.__mro__):
        if base.__doc__ and base is not msgspec.Struct and issubclass(base, msgspec.Struct):
            listed = inspect.cleandoc(base.__doc__).partition("Attributes:")[2]
            for name, text in _ATTRIBUTE.findall(listed):
                meanings[name] = re.sub(r"\bNone\b", "null", " ".join(text.split()))
    description = inspect.cleandoc(type_.__doc__ or "").partition("\n\nAttributes:")[0]
    return " ".join(description.split()), meanings


_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _types_in(type_: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """A type and all that are part of it."""
    types: dict[type[msgspec.Struct], None] = {}

    def walk(annotation: Any) -> None:
        if isinstance(annotation, msgspec.inspect.StructType):
            if annotation.cls in types:
                return
            types[annotation.cls] = None
            for field in annotation.fields:
                walk(field.type)
        for part in ("item_type", "value_type", "key_type"):
            if hasattr(annotation, part):
                walk(getattr(annotation, part))
        for part in getattr(annotation, "types", ()):
            walk(part)

    walk(msgspec.inspect.type_info(type_))
    return list(types)
