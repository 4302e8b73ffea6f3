"""What tools are asked with: one type a tool, of which its input schema is made. The same word means the same in all.

What `register` is asked with becomes registrations: flows, pipelines, and jobs by their SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dbt_ripple.errors import RippleError
from dbt_ripple.mcp.documents import Registered
from dbt_ripple.rendering.json_documents import CapturedJob
from dbt_ripple.session.registering import pipeline_of

if TYPE_CHECKING:
    from dbt_ripple.governance.asset_edits import Registration
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.session.project import Project

Name = Annotated[
    str,
    Meta(
        description="A node as people write it: fct_orders, raw.orders, dim_customers.v2, exposure:kpis, table:orders, "
        "a unique_id, a file; or a column after a dot: fct_orders.amount.",
        min_length=1,
    ),
]
Cursor = Annotated[
    str | None,
    Meta(description="Of the answer before, for its next part; all else stays the same."),
]
Base = Annotated[
    str,
    Meta(
        description="What this project is compared with: a folder of artifacts, or a commit that dbt compiles "
        "(origin/main). Empty: what the server was started with."
    ),
]


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of a tool."""

    cursor: Cursor = None


class Search(Arguments, kw_only=True):
    """Find nodes and columns by words of their names, columns, tags, owners, paths and descriptions."""

    text: Annotated[
        str, Meta(description="Words, or parts of names; all have to be found.", min_length=1)
    ]


class Node(Arguments, kw_only=True):
    """One node with all its columns: types, descriptions, SQL, what each comes from and how many read it; owner, contract, tests, last run."""

    name: Name


class Trace(Arguments, kw_only=True):
    """What a node or a column comes from, or what comes of it; also as a diagram."""

    name: Name
    direction: Literal["upstream", "downstream", "both"] = "downstream"
    depth: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Number of steps; null for all.")
    ] = None
    tests: Annotated[bool, Meta(description="Whether tests and hooks are there, too.")] = False
    select: Annotated[
        list[str],
        Meta(
            description="Only ways to what dbt selects by these: resource_type:exposure, tag:kpi."
        ),
    ] = []
    format: Annotated[
        Literal["json", "mermaid", "dot", "openlineage"],
        Meta(
            description="json: nodes and edges; mermaid and dot: a diagram as text; openlineage: events."
        ),
    ] = "json"


class Impact(Arguments, kw_only=True):
    """Who would break if columns of a node were renamed, dropped, retyped or added, or the node went. Nothing has to be written yet."""

    name: Name
    rename: Annotated[dict[str, str], Meta(description="New names by columns.")] = {}
    drop: Annotated[list[str], Meta(description="Columns that go.")] = []
    retype: Annotated[dict[str, str], Meta(description="New types by columns.")] = {}
    add: Annotated[dict[str, str], Meta(description="Types by new columns.")] = {}
    required: Annotated[
        list[str], Meta(description="New columns that have a value in each row.")
    ] = []
    deprecate: Annotated[
        bool | str, Meta(description="Announce that the node goes; a day (YYYY-MM-DD) says when.")
    ] = False
    remove: Annotated[bool, Meta(description="The node goes.")] = False


class SelectTests(Arguments, kw_only=True):
    """The tests that the change from base to this project can break, and the models to build for them."""

    base: Base = ""
    critical: Annotated[
        str | None,
        Meta(
            description="Add all tests of nodes of this tier below the change; null: as ripple.yml says."
        ),
    ] = None


class Explain(Arguments, kw_only=True):
    """Why a test is selected, or a node or a column differs from base, or why not: the way of the change, with the SQL before and after."""

    name: Annotated[
        str, Meta(description="A test, a node, or a column after its node and a dot.", min_length=1)
    ]
    base: Base = ""


class Gate(Arguments, kw_only=True):
    """May the change from base to this project be merged? By the rules on contracts, owners, personal data and broken readers."""

    base: Base = ""


class Diagnose(Arguments, kw_only=True):
    """A number looks wrong: all that it is computed from, with last runs, freshness, failed tests, owners, and what changed."""

    name: Name
    since: Annotated[
        list[str], Meta(description="Folders with artifacts of when the number was right.")
    ] = []


class CheckSql(Arguments, kw_only=True):
    """What an edit of a model that is not saved yet would change and break. Nothing is written; dbt compiles a copy."""

    name: Name
    sql: Annotated[
        str, Meta(description="The whole text of the model's file, with its Jinja.", min_length=1)
    ]


class Flow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Data flows from one asset, or node of dbt, to another.

    Attributes:
        source: what is read: table:orders, api:crm, or a node of dbt.
        target: what is written: model:churn, dashboard:kpis, or a source of dbt.
        transformation: what happens on the way, in a sentence.
        columns: the columns of the source that are read, where they are known: ``customer_id``, or with the target's
            name for it ``customer_id:id``.
    """

    source: str
    target: str
    transformation: str = ""
    columns: list[str] = []


class Pipeline(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Assets each of which reads the one before it.

    Attributes:
        name: tags all of them.
        steps: at least two, in order.
        transformations: what happens on each hop, in order; one fewer than steps.
        schedule: when it runs.
        owner: a name or an address.
    """

    name: str
    steps: list[str]
    transformations: list[str] = []
    schedule: str | None = None
    owner: str | None = None


class CapturedSql(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A job by its SQL, whose columns are followed.

    Attributes:
        sql: one or more statements.
        id: of the job; by default job: and the name of what it writes.
        dialect: of the SQL; by default the project's.
        transformation: what it does, in a sentence.
    """

    sql: str
    id: str | None = None
    dialect: str | None = None
    transformation: str | None = None


class Register(Arguments, kw_only=True):
    """Write flows, pipelines and jobs outside of dbt into ripple_assets.yml. What is there already stays; a name that matches nothing is refused."""

    flows: list[Flow] = []
    pipelines: list[Pipeline] = []
    sql: Annotated[list[CapturedSql], Meta(description="Jobs by their SQL.")] = []
    dry_run: Annotated[bool, Meta(description="Say what would be written, and write nothing.")] = (
        False
    )


def write(project: Project, given: Register) -> Registered:
    """Write all of it, or nothing of the flows and pipelines where one is not valid.

    Raises:
        RippleError: nothing is given, or a name or an id is not valid.
    """
    pipelines = [*map(_as_pipeline, given.flows), *given.pipelines]
    for pipeline in pipelines:
        if len(pipeline.steps) < 2:
            raise RippleError("has no hop", f"pipeline {pipeline.name}", "give at least two steps")
        if len(pipeline.transformations) not in (0, len(pipeline.steps) - 1):
            raise RippleError(
                f"{len(pipeline.transformations)} transformations of {len(pipeline.steps) - 1} hops",
                f"pipeline {pipeline.name}",
                "give one for each hop, or none",
            )
    if not pipelines and not given.sql:
        raise RippleError("nothing is to be registered", "register", "give flows, pipelines or sql")

    def all_of_them(graph: DeclaredGraph, analysis: Analysis) -> list[Registration]:
        made = [pipeline_of(p.steps, _properties(p))(graph, analysis) for p in pipelines]
        for flow, registrations in zip(given.flows, made, strict=False):
            if flow.columns:
                registrations[:] = [_with_columns(flow, one) for one in registrations]
        return _joined([one for registrations in made for one in registrations])

    file, changed = "", {}
    if pipelines:
        edited = project.register(all_of_them, dry_run=given.dry_run)
        file, changed = str(edited.file), dict(edited.changed)
    captured = []
    for job in given.sql:
        document = project.capture(
            job.sql,
            id=job.id,
            dialect=job.dialect,
            description=job.transformation,
            dry_run=given.dry_run,
        )
        file, changed[document["id"]] = document["file"], "captured"
        captured.append(msgspec.convert(document, CapturedJob))
    return Registered(file=file, changed=changed, captured=captured, written=not given.dry_run)


def _as_pipeline(flow: Flow) -> Pipeline:
    return Pipeline(
        name="", steps=[flow.source, flow.target], transformations=[flow.transformation]
    )


def _with_columns(flow: Flow, one: Registration) -> Registration:
    """What reads a source, with the columns that it reads."""
    if flow.source not in one.reads:
        return one
    columns = [
        {
            "from": name.partition(":")[0].strip(),
            "to": (name.partition(":")[2] or name).strip(),
            **({"transformation": flow.transformation} if flow.transformation else {}),
        }
        for name in flow.columns
    ]
    reads = [
        {"node": flow.source, "columns": columns} if r == flow.source else r for r in one.reads
    ]
    return msgspec.structs.replace(one, reads=reads)


def _properties(pipeline: Pipeline) -> dict[str, Any]:
    return {
        "description": pipeline.transformations or None,
        "schedule": pipeline.schedule,
        "owner": pipeline.owner,
        "tags": (pipeline.name,) if pipeline.name else (),
    }


def _joined(registrations: list[Registration]) -> list[Registration]:
    """One registration an asset, with all that it reads and writes."""
    by_id: dict[str, Registration] = {}
    for one in registrations:
        before = by_id.get(one.id.casefold())
        if before is not None:
            one = msgspec.structs.replace(
                one,
                reads=_each_once([*before.reads, *one.reads]),
                writes=_each_once([*before.writes, *one.writes]),
                tags=[*dict.fromkeys([*before.tags, *one.tags])],
                description="; ".join(filter(None, [before.description, one.description])) or None,
                schedule=one.schedule or before.schedule,
                owner=one.owner or before.owner,
            )
        by_id[one.id.casefold()] = one
    return list(by_id.values())


def _each_once(flows: Sequence[Any]) -> list[Any]:
    """What is read or written, each once; with columns, if they are given."""
    by_node: dict[str, Any] = {}
    for flow in flows:
        node = flow if isinstance(flow, str) else flow["node"]
        if not isinstance(flow, str) or node not in by_node:
            by_node[node] = flow
    return list(by_node.values())
