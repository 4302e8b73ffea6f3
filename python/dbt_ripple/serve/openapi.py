"""What is sent to the REST API and what it answers, and the description that is made of these types: OpenAPI 3.1."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

import msgspec

from dbt_ripple import __version__
from dbt_ripple.governance.hypothetical_changes import ChangesFile
from dbt_ripple.rendering.json_documents import schema
from dbt_ripple.serve.slack import PATH

DEPTH: Final = 10
MOST_STEPS: Final = 100
MOST_NODES: Final = 2_000
"""Nodes of one answer; further ones are left out, which the answer says."""

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
_Long = Annotated[str, msgspec.Meta(max_length=100_000)]


class Asset(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An asset of a pipeline, as it is registered.

    Attributes:
        asset_type: a type that `ripple_assets.yml` knows, or a word that stands for one (``airflow``).
        name: of the asset, without blanks.
        source_ref: where it is defined: a file, an address, a name in its system.
        upstream_assets: what it reads: names or ids of assets, or nodes of dbt.
        sql: the SQL that it runs, which is followed column by column.
        dialect: of the SQL; by default the project's.
    """

    asset_type: _Text
    name: _Text
    source_ref: _Text | None = None
    upstream_assets: Annotated[list[_Text], msgspec.Meta(max_length=1_000)] = []
    owner: _Text | None = None
    description: _Long | None = None
    schedule: _Text | None = None
    tags: Annotated[list[_Text], msgspec.Meta(max_length=100)] = []
    sql: _Long | None = None
    dialect: _Text | None = None


class RegisteredAsset(msgspec.Struct, kw_only=True):
    """An asset that is registered.

    Attributes:
        id: by which it is asked for.
        upstream_assets: the ids of what it reads.
        kept_in: where it is written down: the assets file, or ``dbt`` of a node that dbt knows already.
        change: what became of the file's entry.
    """

    id: str
    asset_type: str
    name: str
    source_ref: str | None
    upstream_assets: list[str]
    kept_in: str
    change: Literal["added", "shown again", "back", "known to dbt"]


class TreeNode(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One node of the graph, with what hangs below it.

    Attributes:
        kinds: how a column depends on the one above it; only of columns.
        repeated: what follows it is shown where it comes first.
    """

    id: str
    name: str
    asset_type: str
    kinds: list[str] = []
    repeated: bool = False
    upstream: list[TreeNode] = []
    downstream: list[TreeNode] = []


class Lineage(msgspec.Struct, kw_only=True):
    """What is upstream or downstream of a node or a column.

    Attributes:
        node_count: how many there are, the one that was asked about included.
        complete: whether the graph has all of them; else its farthest are left out.
    """

    id: str
    direction: Literal["upstream", "downstream", "both"]
    depth: int
    node_count: int
    complete: bool
    graph: TreeNode


_SCHEMAS: Final = "#/components/schemas/"
_WHY: Final = {
    400: "The body is no JSON, or says no change.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page in a browser, or names another machine.",
    404: "Nothing has this id.",
    405: "The path takes other methods.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "What is sent is not valid.",
    429: "The client sends too often.",
    503: "The server is busy, or the project cannot be read now.",
    504: "The answer takes too long to make.",
    507: "No room is left for events.",
}
_ALWAYS: Final = (401, 403, 405, 503)
_OF_BODIES: Final = (400, 408, 413, 415, 422, 429)


class Problem(msgspec.Struct, kw_only=True):
    """A refusal (RFC 9457).

    Attributes:
        detail: what is wrong, and what to do.
    """

    title: str
    status: int
    detail: str


def document(*, with_slack: bool = False) -> dict[str, Any]:
    """The description, as ``GET /openapi.json`` answers it."""
    (asset, registered, lineage, changes, _), schemas = msgspec.json.schema_components(
        [Asset, RegisteredAsset, Lineage, ChangesFile, Problem], ref_template=_SCHEMAS + "{name}"
    )
    schemas["ChangesFile"]["required"] = ["asset_id", "proposed_changes"]
    schemas["ChangesFile"]["properties"]["asset_id"] = {"type": "string"}
    impact, more = _impact()
    components: dict[str, Any] = {"schemas": {**more, **schemas, "Impact": impact}}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    text = {"type": "string"}
    direction = {"type": "string", "enum": ["upstream", "downstream", "both"]}
    depth = {"type": "integer", "minimum": 0, "maximum": MOST_STEPS, "default": DEPTH}
    paths: dict[str, Any] = {
        "/lineage/trace": {
            "post": _operation(
                "Register an asset, and what it reads.", {201: registered}, (504,), asset
            )
        },
        "/lineage/{id}": {
            "get": {
                **_operation("What is upstream or downstream.", {200: lineage}, (404, 422, 504)),
                "parameters": [
                    _parameter("id", "path", {**text, "minLength": 1}, required=True),
                    _parameter("direction", "query", {**direction, "default": "downstream"}),
                    _parameter("depth", "query", depth),
                ],
            }
        },
        "/lineage/impact": {
            "post": _operation(
                "Who would break by a change.",
                {200: {"$ref": f"{_SCHEMAS}Impact"}},
                (404, 504),
                changes,
            )
        },
        "/api/v1/lineage": {
            "post": _operation(
                "Store an event of OpenLineage.", {201: None}, (507,), {"type": "object"}
            )
        },
        "/api/v1/lineage/batch": {
            "post": _operation(
                "Store events of OpenLineage.", {200: {"type": "object"}}, (507,), {"type": "array"}
            )
        },
        "/health": {"get": {"summary": "That it runs.", "responses": {"200": _answer({})}}},
    }
    if with_slack:
        paths[PATH] = {
            "post": {
                "summary": "The slash command of Slack, signed by Slack.",
                "security": [],
                "requestBody": {
                    "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
                },
                "responses": _responses({200: {"type": "object"}}, (401, 408, 413, 415, 429, 405)),
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "dbt-ripple", "version": __version__},
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": components,
    }


def _impact() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of ``impact --format json``, with what this API adds, and the schemas that it refers to."""
    text = json.dumps(schema("impact")).replace("#/$defs/", _SCHEMAS)
    own: dict[str, Any] = json.loads(text)
    own.pop("$schema", None)
    schemas: dict[str, Any] = own.pop("$defs", {})
    if "$ref" in own:
        own = schemas.pop(own["$ref"].removeprefix(_SCHEMAS))
    own["properties"] |= {
        "asset_id": {"type": "string"},
        "not_analysed": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    own["required"] = [*own.get("required", []), "asset_id", "not_analysed"]
    return own, schemas


def _operation(
    summary: str,
    answers: dict[int, dict[str, Any] | None],
    refusals: tuple[int, ...],
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    more = (*_ALWAYS, *(_OF_BODIES if body is not None else ()), *refusals)
    operation: dict[str, Any] = {"summary": summary, "responses": _responses(answers, more)}
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _responses(
    answers: dict[int, dict[str, Any] | None], refusals: tuple[int, ...]
) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": {"$ref": f"{_SCHEMAS}Problem"}}}
    return {
        **{str(status): _answer(content) for status, content in answers.items()},
        **{
            str(status): {"description": _WHY[status], "content": problem}
            for status in sorted(set(refusals))
        },
    }


def _answer(content: dict[str, Any] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "As asked."}
    if content is not None:
        answer["content"] = {"application/json": {"schema": content}}
    return answer


def _parameter(
    name: str, place: str, schema_: dict[str, Any], *, required: bool = False
) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema_}
