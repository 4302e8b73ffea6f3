"""The artifacts of a dbt project as typed values, whatever dbt version wrote them.

A manifest has many more fields than these structs declare. msgspec skips the others without building
them, which makes reading large manifests fast. ``tests/graph/test_manifest_fields.py`` lists the
fields that are skipped and says why each may be. Only `Column` keeps everything: what it does not
declare is in ``more``. Every field has a default, so that the manifest of a dbt version that lacks
some fields, or adds some, can be read.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload

import msgspec

VERSION_TYPES = str | int | float
"""What dbt allows as the version of a model."""

CUSTOM_ENVIRONMENT: Final = "DBT_ENV_CUSTOM_ENV_"
"""What the name of an environment variable begins with that dbt writes into `Metadata.env`, without
these letters."""

WITH_SQL: Final = frozenset({"model", "snapshot", "test"})
"""Resource types whose SQL dbt compiles and whose compiled SQL the analysis reads."""

BUILDS_NOTHING: Final = frozenset(
    {"compile", "docs", "freshness", "generate", "list", "ls", "parse", "show"}
)
"""dbt commands (``args.which``) after which run_results.json tells of nodes that did not run."""


class Column(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A column as declared in a yml file.

    Attributes:
        meta: the column's own ``meta`` merged with its ``config.meta`` (which wins, as in dbt).
        tags: the column's own tags and those of its config, without repeats.
        quote: whether the name is quoted; ``None`` if the project does not say.
        more: the project's own fields beside dbt's, which dbt passes on to macros.
    """

    name: str = ""
    description: str = ""
    meta: dict[str, Any] = {}
    data_type: str | None = None
    constraints: list[dict[str, Any]] = []
    quote: bool | None = None
    config: dict[str, Any] = {}
    tags: list[str] = []
    granularity: str | None = None
    doc_blocks: tuple[str, ...] = ()
    more: dict[str, Any] | None = None


class DependsOn(msgspec.Struct, kw_only=True, gc=False):
    """The nodes and macros a node refers to, by unique_id."""

    nodes: list[str] = []
    macros: list[str] = []


class Ref(msgspec.Struct, kw_only=True, gc=False):
    """The arguments of one ``ref()``."""

    name: str = ""
    package: str | None = None
    version: VERSION_TYPES | None = None


class Contract(msgspec.Struct, kw_only=True, gc=False):
    """A model's contract: whether dbt enforces the declared names and types."""

    enforced: bool = False
    checksum: str | None = None


class TestMetadata(msgspec.Struct, kw_only=True, gc=False):
    """Which generic test a test is made from, and with which arguments."""

    name: str = ""
    namespace: str | None = None
    kwargs: dict[str, Any] = {}


class Node(msgspec.Struct, kw_only=True, gc=False, frozen=True):
    """Any node of dbt's graph: one struct for all resource types.

    A field that does not apply to a resource type has its default. A node is not written into: another
    one is made of it by `msgspec.structs.replace`, and laid over the project by `Project.having`.

    Attributes:
        unique_id: dbt's id, for example ``model.shop.fct_orders``.
        resource_type: model, seed, snapshot, test, unit_test, analysis, operation, source,
            exposure, metric, semantic_model, saved_query or function; asset and dataset are not dbt's
            (`graph.assets.declared_graph`).
        compiled_code: the SQL dbt would run; ``None`` where dbt has only parsed the node.
        config: dbt's resolved config, as it is.
        unrendered_config: the config as the project has it, before Jinja; likewise
            ``unrendered_database`` and ``unrendered_schema`` of a source (dbt 1.9 and later).
        meta: the node's ``meta`` merged with its ``config.meta`` (which wins, as in dbt).
        tags: the node's tags and those of its config, without repeats.
        checksum: of the file the node is defined in; ``{"name": ..., "checksum": ...}``, a plain
            string for unit tests.
        owner: of an exposure: ``{"name": ..., "email": ...}``.
        model: of a unit test, the name of the model it tests.
        given: of a unit test, its input fixtures; ``expect`` is the expected result.
        entities: of a semantic model, with its ``dimensions``, ``measures`` and ``defaults``.
        type_params: of a metric, the parameters of its ``type``; ``filter`` says which rows count.
        query_params: of a saved query, its metrics, group_by and where.
        root_path: of a seed, the folder ``original_file_path`` is relative to.
    """

    # In dbt's order, in which fields are found fastest.
    database: str | None = None
    schema: str | None = None
    name: str = ""
    resource_type: str = ""
    package_name: str = ""
    path: str = ""
    original_file_path: str = ""
    unique_id: str = ""
    fqn: list[str] = []
    alias: str | None = None
    checksum: dict[str, Any] | str | None = None
    tags: list[str] = []
    description: str = ""
    columns: Mapping[str, Column] = {}
    meta: dict[str, Any] = {}
    group: str | None = None
    patch_path: str | None = None
    unrendered_config: dict[str, Any] = {}
    language: str | None = None
    sources: list[list[str]] = []
    contract: Contract = msgspec.field(default_factory=Contract)
    compiled: bool = False
    config: dict[str, Any] = {}
    relation_name: str | None = None
    raw_code: str = ""
    refs: list[Ref] = []
    depends_on: DependsOn = msgspec.field(default_factory=DependsOn)
    compiled_code: str | None = None
    access: str | None = None
    constraints: list[dict[str, Any]] = []
    version: VERSION_TYPES | None = None
    latest_version: VERSION_TYPES | None = None
    deprecation_date: str | None = None
    time_spine: dict[str, Any] | None = None

    column_name: str | None = None
    file_key_name: str | None = None
    attached_node: str | None = None
    test_metadata: TestMetadata | None = None

    root_path: str | None = None
    identifier: str | None = None
    unrendered_database: str | None = None
    unrendered_schema: str | None = None

    source_name: str | None = None
    source_description: str | None = None
    loader: str | None = None
    loaded_at_field: str | None = None
    loaded_at_query: str | None = None
    freshness: dict[str, Any] | None = None
    quoting: dict[str, Any] = {}
    external: Any = None

    type: str | None = None
    owner: dict[str, Any] = {}
    label: str | None = None
    url: str | None = None
    maturity: str | None = None

    model: str | None = None
    given: list[dict[str, Any]] = []
    expect: dict[str, Any] = {}
    overrides: dict[str, Any] | None = None

    entities: list[dict[str, Any]] = []
    dimensions: list[dict[str, Any]] = []
    measures: list[dict[str, Any]] = []
    defaults: dict[str, Any] | None = None
    primary_entity: str | None = None
    type_params: dict[str, Any] = {}
    filter: Any = None
    query_params: dict[str, Any] = {}

    arguments: list[dict[str, Any]] = []
    returns: dict[str, Any] | None = None

    @property
    def materialized(self) -> str | None:
        """The materialization, for example ``table``; ``None`` where dbt gives none."""
        value = self.config.get("materialized")
        return value if isinstance(value, str) else None

    def calling(self, macros: Iterable[str]) -> Node:
        """The same node with other macros that it calls."""
        depends_on = DependsOn(nodes=self.depends_on.nodes, macros=sorted(macros))
        return msgspec.structs.replace(self, depends_on=depends_on)

    @property
    def is_ephemeral(self) -> bool:
        """Whether the node is inlined into its readers and never becomes a relation."""
        return self.resource_type == "model" and self.config.get("materialized") == "ephemeral"

    @property
    def contract_enforced(self) -> bool:
        """Whether dbt enforces the declared columns when it builds the node."""
        declared = self.config.get("contract")
        return self.contract.enforced or (
            isinstance(declared, dict) and declared.get("enforced") is True
        )

    @property
    def is_python(self) -> bool:
        """Whether the node is written in Python and so has no SQL to read."""
        return self.language == "python" or self.original_file_path.endswith(".py")

    @property
    def display_name(self) -> str:
        """The name on the command line: a versioned model is ``dim_customers.v2``."""
        if self.resource_type == "model" and self.version is not None:
            return f"{self.name}.v{version_text(self.version)}"
        return self.name

    @property
    def spoken_name(self) -> str:
        """The display name; of the semantic layer with the resource type: ``metric:revenue``.

        Semantic models often have the name of their model. An asset has its id: ``airflow:load_orders``.
        The command line takes this name, too.
        """
        if self.resource_type in ("semantic_model", "metric", "saved_query"):
            return f"{self.resource_type}:{self.display_name}"
        if self.resource_type == "asset":
            return self.label or self.name
        return self.display_name


class CatalogColumn(msgspec.Struct, kw_only=True, gc=False):
    """A column as the warehouse reported it. ``index`` orders it; adapters count from 0 or 1."""

    name: str = ""
    type: str | None = None
    index: int = 0
    comment: str | None = None


class Macro(msgspec.Struct, kw_only=True, gc=False):
    """A macro: its text, and the macros it calls."""

    unique_id: str = ""
    name: str = ""
    package_name: str = ""
    original_file_path: str = ""
    macro_sql: str = ""
    depends_on: DependsOn = msgspec.field(default_factory=DependsOn)


class Group(msgspec.Struct, kw_only=True, gc=False):
    """A group of nodes and who owns it: ``{"name": ..., "email": ...}``."""

    unique_id: str = ""
    name: str = ""
    package_name: str = ""
    owner: dict[str, Any] = {}
    description: str | None = None
    config: dict[str, Any] = {}


class Metadata(msgspec.Struct, kw_only=True):
    """Which dbt version wrote an artifact, when, and in which invocation. Times are UTC."""

    dbt_schema_version: str = ""
    dbt_version: str | None = None
    generated_at: datetime | None = None
    invocation_id: str | None = None
    user_id: str | None = None
    env: dict[str, Any] = {}
    project_name: str | None = None
    adapter_type: str | None = None
    quoting: dict[str, Any] = {}
    run_started_at: datetime | None = None
    invocation_started_at: datetime | None = None

    @property
    def runs(self) -> list[Run]:
        """The command that wrote the artifact, as it may tell of itself in compiled SQL."""
        times = dict.fromkeys(filter(None, (self.run_started_at, self.invocation_started_at)))
        return [Run(self.invocation_id or "", as_utc(time)) for time in times]


class Run(NamedTuple):
    """A command of dbt, by what compiled SQL may show of it. The time is UTC."""

    invocation_id: str
    started_at: datetime


class Timing(msgspec.Struct, kw_only=True, gc=False):
    """One phase (``compile`` or ``execute``) of a node's run."""

    name: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None


class RunResult(msgspec.Struct, kw_only=True, gc=False):
    """The result of one node in one invocation.

    Attributes:
        invocation_id: of the run, taken from the file's metadata.
        status: success, error, skipped, pass, fail, warn, ...
        execution_time: seconds.
        failures: rows a test returned; ``None`` where there is no such number.
    """

    unique_id: str = ""
    invocation_id: str = ""
    status: str = ""
    execution_time: float | None = None
    timing: list[Timing] = []
    message: str | None = None
    failures: int | None = None
    adapter_response: dict[str, Any] = {}

    @property
    def started_at(self) -> datetime | None:
        """When the first phase began, in UTC; ``None`` when dbt gave no timing (skipped nodes)."""
        return min((as_utc(t.started_at) for t in self.timing if t.started_at), default=None)

    @property
    def completed_at(self) -> datetime | None:
        """When the last phase ended, in UTC; ``None`` when dbt gave no timing."""
        return max((as_utc(t.completed_at) for t in self.timing if t.completed_at), default=None)

    @property
    def rows_affected(self) -> int | None:
        """Rows the adapter says it wrote; ``None`` if it does not say (Spark never does)."""
        rows = self.adapter_response.get("rows_affected")
        return rows if isinstance(rows, int) and not isinstance(rows, bool) and rows >= 0 else None


class SourceFreshness(msgspec.Struct, kw_only=True, gc=False):
    """The result of `dbt source freshness` for one source."""

    unique_id: str = ""
    status: str = ""
    max_loaded_at: datetime | None = None
    max_loaded_at_time_ago_in_s: float | None = None
    error: Any = None


_T = TypeVar("_T")


class Later(Generic[_T]):
    """A field of a dataclass that may be given as a function: called once, when it is asked for.

    Example:
        >>> @dataclass
        ... class Answer:
        ...     value: Later[list[int]] = Later(list)
        >>> Answer().value, Answer([1]).value, Answer(lambda: [42]).value
        ([], [1], [42])
    """

    def __init__(self, default: Callable[[], _T]) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[[], _T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: object | None, owner: type) -> Callable[[], _T] | _T:
        if instance is None:
            return self._default  # so that it is the field's
        value = instance.__dict__[self._name]
        if callable(value):
            value = instance.__dict__[self._name] = value()
        return value  # type: ignore[no-any-return]

    def __set__(self, instance: object, value: _T | Callable[[], _T]) -> None:
        instance.__dict__[self._name] = value


@dataclass(kw_only=True, frozen=True)
class Project:
    """One dbt project, read from the artifacts in one target folder; nothing writes into it.

    Attributes:
        target_path: the folder, as it was given.
        metadata: of the manifest.
        nodes: every enabled node by unique_id, section by section of the manifest (nodes, sources,
            exposures, ...), each in the order of the ids.
        parents: the direct parents of every node, by unique_id, in the order of the ids; only those
            that are in ``nodes``.
        children: the inverse of ``parents``, in the order of ``nodes``.
        hidden: the nodes of the dbt package dbt_ripple that nothing outside of it reads; they are in none
            of the others.
        edited_macros: those macros as they are written for which ``macros`` has the other side's text,
            because they give the same (`changes.equivalent_macros`).
        catalog: the columns of every relation in catalog.json, in order; empty without one.
        whole_catalog: the same of all relations where ``catalog`` is limited to the sources, because the
            other side has none; else None.
        catalog_is_older: whether catalog.json was written before the manifest, by another command:
            what it lists may not be all that there is.
        run_results: of run_results.json; empty without one.
        run_args: the arguments of the command that wrote run_results.json.
        run_invocation: the id of its invocation; empty where that is not known.
        runs: the commands that may have compiled its SQL, as far as the artifacts tell when they began.
        variables: the vars that are not the same on the two sides of a comparison, with their
            values here; None where that is not known (dbt writes no vars into its manifest).
        macro_order: what the project file says of which package's macro runs; None where that is not
            known (dbt writes it nowhere), or the same on the two sides.
        macro_order_known: whether it was compared.
        environment: the environment variables that are known not to be the same on the two sides, with
            their values here; dbt writes only those of `CUSTOM_ENVIRONMENT` into its manifest.
        same_environment: whether the others are known to be the same, too.
        session: what profiles.yml says of the target's session that is not the same on the two sides of
            a comparison, with the values here, empty where there is none.
        files: the files that queries and Python models read, of those that were compared: each with
            what stands for its content here, empty where it is the same on both sides.
        warning_flags: what the project file says of warnings that count as errors, where no command
            has run that would say it in its arguments.
        project_dir: where its files are, where its artifacts do not tell: dbt has only parsed it.
        blind: the nodes whose compiled SQL may not say what their edited code means, because what they
            look at was not there when they were compiled.
        written_otherwise: the sources that declared assets write otherwise than on the other side of a
            comparison, each with the columns (in lower case), and ``*rows*``, that may differ by it.
        freshness: of sources.json; empty without one.
        disabled: the unique_ids of disabled nodes, and the ids of retired assets.
        as_written: whether nothing in the manifest's nodes, sources and macros has a type that dbt does
            not give it.
        with_statements: the nodes for which dbt may run a statement beside their query (a hook, a header,
            ``run_query``), in the order of ``nodes``; None where that was not looked for.
        hook_writes: the relations that hooks may write to which cannot be followed, by name, as
            ``ripple.yml`` lists them; None where it lists none, so that these may be any.
        local_packages: the names of the packages that the project's own repository holds.
        masking: the functions that mask, where another side of the project decides it; None where its own
            declarations do.
        of_dbt: the same as dbt alone has it, where declared assets and collected jobs are nodes of this one; else
            None.
        digest: XXH3 over manifest.json, catalog.json and run_results.json as they were read.
        notes: what the reader had to leave out or assume, one sentence each.

    What is not of the manifest may be given as a function that makes it when it is asked for.
    """

    target_path: str
    metadata: Metadata
    nodes: dict[str, Node]
    parents: dict[str, list[str]]
    children: dict[str, list[str]]
    macros: dict[str, Macro] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    hidden: dict[str, Node] = field(default_factory=dict)
    catalog: Later[Mapping[str, list[CatalogColumn]]] = Later(dict)
    whole_catalog: Later[Mapping[str, list[CatalogColumn]] | None] = Later(lambda: None)
    catalog_is_older: Later[bool] = Later(bool)
    run_results: Later[list[RunResult]] = Later(list)
    run_args: Later[dict[str, Any]] = Later(dict)
    run_invocation: Later[str] = Later(str)
    runs: Later[list[Run]] = Later(list)
    variables: dict[str, str] | None = None
    macro_order: str | None = None
    macro_order_known: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    same_environment: bool = False
    session: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    warning_flags: dict[str, Any] = field(default_factory=dict)
    project_dir: Path | None = None
    blind: frozenset[str] = frozenset()
    written_otherwise: dict[str, frozenset[str]] = field(default_factory=dict)
    freshness: Later[list[SourceFreshness]] = Later(list)
    disabled: list[str] = field(default_factory=list)
    as_written: bool = True
    with_statements: list[str] | None = None
    hook_writes: tuple[str, ...] | None = None
    local_packages: frozenset[str] = frozenset()
    masking: frozenset[str] | None = None
    edited_macros: dict[str, Macro] = field(default_factory=dict)
    of_dbt: Project | None = None
    digest: Later[str] = Later(str)
    notes: list[str] = field(default_factory=list)

    @property
    def types(self) -> Mapping[str, list[CatalogColumn]]:
        """The columns and types that the warehouse has of relations, as far as catalog.json says."""
        return self.catalog if self.whole_catalog is None else self.whole_catalog

    @property
    def name(self) -> str:
        """The root project's name."""
        return self.metadata.project_name or ""

    @property
    def executed(self) -> list[RunResult]:
        """Of `run_results` those of nodes that ran: dbt also calls it a success to compile one."""
        return [] if self.run_args.get("which") in BUILDS_NOTHING else self.run_results

    def having(self, **changes: Any) -> Project:
        """The same project but for some fields. This one stays as it is.

        What only one question knows of a project (what differs from another side of it, or text
        that is compiled elsewhere) is laid over it in this way.
        """
        fields = vars(self)
        assert changes.keys() <= fields.keys(), changes.keys()
        changed = copy.copy(self)
        for name, value in fields.items():
            if callable(value):  # a `Later` that nobody has asked for: both ask it once
                vars(changed)[name] = partial(getattr, self, name)
        if "nodes" in changes:
            vars(changed).pop("_by_type", None)
            changes.setdefault("with_statements", None)
        vars(changed).update(changes)
        return changed

    def with_compiled(self, texts: Mapping[str, str | None]) -> Project:
        """The same project with other compiled SQL of some nodes, by unique_id."""
        if not texts:
            return self
        nodes = dict(self.nodes)
        for unique_id, text in texts.items():
            nodes[unique_id] = msgspec.structs.replace(nodes[unique_id], compiled_code=text)
        return self.having(nodes=nodes)

    def of_type(self, *resource_types: str) -> list[Node]:
        """The nodes of the given resource types, in the order of ``nodes``."""
        if len(resource_types) == 1:
            return [*self._by_type.get(resource_types[0], ())]
        return [node for node in self.nodes.values() if node.resource_type in resource_types]

    @cached_property
    def _by_type(self) -> dict[str, list[Node]]:
        nodes: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            nodes.setdefault(node.resource_type, []).append(node)
        return nodes

    def uncompiled(self) -> list[Node]:
        """The SQL models, snapshots and tests that dbt has parsed but not compiled.

        dbt writes a manifest without compiled SQL when it parses, and at the end of a run only the
        selected nodes have theirs.
        """
        return [
            node
            for node in self.nodes.values()
            if node.compiled_code is None and node.resource_type in WITH_SQL and not node.is_python
        ]


def as_utc(moment: datetime) -> datetime:
    """The same moment in UTC; dbt writes UTC where it leaves the zone out."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def version_text(version: VERSION_TYPES) -> str:
    """A version as dbt spells it in names: ``2.0`` is ``2``.

    Example:
        >>> version_text(2), version_text(2.0), version_text("2024_1")
        ('2', '2', '2024_1')
    """
    return (
        str(int(version)) if isinstance(version, float) and version.is_integer() else str(version)
    )
