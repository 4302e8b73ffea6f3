"""The properties of nodes, and what each can change: data, whether a node builds, or nothing.

Everything that a manifest says of a node besides its code is a property: its config, whether dbt
knows the key or not, and what is declared of it and of its columns. What is not listed here counts for
both. What is listed is known not to change data, or not to be looked at by anything that dbt runs,
*unless something does read it*: a hook, a macro that stands in for one of dbt's, a branch that was
not compiled (see `jinja.reads`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from dbt_ripple.artifacts import Column, Node
from dbt_ripple.graph.normalized_code import type_text
from dbt_ripple.jinja.facts import configured, facts_of
from dbt_ripple.jinja.reads import Reads

DESCRIBING: Final = frozenset(
    """
    access deprecation_date description docs enabled event_time freshness group loaded_at_field
    loaded_at_query loader meta static_analysis tags
    """.split()
)
"""Said to people, to dbt's selection of nodes or to its parser: dbt runs the same without. (A parent's
``event_time`` counts for a microbatch model, which is filtered by it: see `graph.linking.query_result`.)"""

OF_KEPT_ROWS: Final = frozenset(
    """
    batch_size begin check_cols concurrent_batches dbt_valid_to_current full_refresh hard_deletes
    incremental_predicates incremental_strategy invalidate_hard_deletes lookback
    merge_exclude_columns merge_update_columns on_schema_change predicates
    snapshot_meta_column_names strategy target_database target_schema unique_key
    unique_tmp_table_suffix updated_at
    """.split()
)
"""Looked at where rows are kept from run to run; a view or a table is made anew."""

OF_PYTHON: Final = frozenset(
    """
    additional_libs cluster_id config_keys_defaults config_keys_used create_notebook
    dataproc_cluster_name enable_list_inference external_access_integrations imports index_url
    intermediate_format jar_file_uri job_cluster_config meta_keys_defaults meta_keys_used
    notebook_template_id packages python_job_config python_version secrets submission_method
    timeout use_anonymous_sproc user_folder_for_python
    """.split()
)
"""Looked at where a model in Python is run."""

STORING: Final = frozenset(
    """
    alias auto_liquid_cluster automatic_clustering backup base_location_root base_location_subpath
    bind buckets cluster_by clustered_by compression concurrent_batches contract copy_grants
    database databricks_compute databricks_tags dist external_volume grant_access_to grants
    hours_to_expiration include_full_name_in_path indexes kms_key_name labels labels_from_meta
    liquid_clustered_by location location_root materialized on_configuration_change persist_docs
    query_tag quoting resource_tags schema secure snowflake_warehouse sort sort_type table_tag
    transient unique_tmp_table_suffix unlogged
    """.split()
)
"""How a relation is stored, where, by what, and who may use it: its rows and values are the same.

``contract`` and ``materialized`` are looked at apart where they change more than that. What an engine
does with free words (``tblproperties``, ``options``), what drops rows with time or forbids queries
(``partition_expiration_days``, ``require_partition_filter``) and what shows readers less
(``row_access_policy``) is not among them.
"""

LAYING_OUT: Final = frozenset(
    """
    auto_liquid_cluster automatic_clustering buckets cluster_by clustered_by compression dist
    file_format indexes liquid_clustered_by partition_by partitioned_by sort sort_type
    """.split()
)
"""Of what changes no row and no value, what may decide in which order an engine finds the rows it stored."""

_APART: Final = frozenset({"post-hook", "pre-hook", "sql_header"})
_APART_OF: Final = {
    "incremental": frozenset({"check_cols", "unique_key", "updated_at"}),
    "snapshot": frozenset({"check_cols", "unique_key", "updated_at"}),
    "seed": frozenset({"column_types", "delimiter", "quote_columns"}),
}
"""Config that counts by more than its own words: see `ConfigFingerprints`, `graph.linking.query_result` and `graph.linking.seeds`."""

_MICROBATCH: Final = frozenset({"batch_size", "begin", "event_time", "lookback"})
"""Config that only the microbatch strategy looks at; dbt writes defaults for some of it."""

_MADE_ANEW: Final = frozenset({"table", "view"})
KEEPING_ROWS: Final = frozenset({"incremental", "snapshot"})
"""Materializations whose relation has rows of earlier runs, as long as it stays in its place."""

_SAME_VALUES: Final = frozenset({"delta", "iceberg", "orc", "parquet"})
"""File formats that give back what was written; text formats do not, and hudi adds columns."""

_KEEPS_COLUMNS_IN_PLACE: Final = frozenset(
    {"bigquery", "duckdb", "postgres", "redshift", "snowflake", "trino"}
)
"""Where a partition column stays in its place among the columns; Spark's tables have it last."""


def _same_format(value: Any, adapter: str | None) -> bool:
    return str(value).lower() in _SAME_VALUES


def _same_places(value: Any, adapter: str | None) -> bool:
    # By the time of ingestion BigQuery adds a column of its own.
    return adapter in _KEEPS_COLUMNS_IN_PLACE and "ingestion" not in repr(value)


_BY_VALUE: Final[dict[str, Callable[[Any, str | None], bool]]] = {
    "file_format": _same_format,
    "partition_by": _same_places,
    "partitioned_by": _same_places,
}
"""Whether this value, of a relation that is made anew, stores the same rows as none."""

OF_TESTS: Final = DESCRIBING | OF_KEPT_ROWS | OF_PYTHON | {"materialized", "where"}
"""Config of a data test that does not decide its outcome: ``where`` stands in its compiled SQL."""

_STORING_FAILURES: Final = frozenset(
    {"alias", "database", "schema", "store_failures", "store_failures_as"}
)

_KNOWN: Final = DESCRIBING.union(
    OF_KEPT_ROWS, OF_PYTHON, STORING, _APART, *_APART_OF.values(), _BY_VALUE
)
_OF_ENVIRONMENT: Final = frozenset({"target", "env_var"})
_EMPTY: Final[tuple[Any, ...]] = (None, [], {})


def kind_of(node: Node) -> str:
    """The materialization, or what stands for one."""
    if node.resource_type in ("snapshot", "seed", "source"):
        return node.resource_type
    return node.materialized or ""


def counted(node: Node, adapter: str | None) -> Iterator[tuple[str, Any]]:
    """The config of a model, seed or snapshot that can change its data by its own words.

    Sorted by name.
    """
    kind = kind_of(node)
    for name, value in _given(node, _harmless(kind, node.is_python)):
        same = _BY_VALUE.get(name)
        if kind in KEEPING_ROWS:
            if name != "file_format" or not _same_format(value, adapter):
                yield name, _by_clock(node, name) or value
        elif same is None or not same(value, adapter):
            yield name, as_configured(node, name, value)


def _by_clock(node: Node, name: str) -> str | None:
    """What a setting is given in ``config()``, where only the time decides what that is worth."""
    given = configured(node.raw_code) if name in node.raw_code else ()
    of_name = [argument for argument in given if argument.name == name]
    return of_name[-1].expression if of_name and of_name[-1].by_clock else None


@cache
def _harmless(kind: str, python: bool) -> frozenset[str]:
    harmless = DESCRIBING | STORING | _APART | _APART_OF.get(kind, frozenset())
    if kind in _MADE_ANEW:
        harmless |= OF_KEPT_ROWS
    if kind == "seed":
        harmless |= OF_KEPT_ROWS - {"full_refresh"}
    return harmless if python else harmless | OF_PYTHON


def run_with(node: Node) -> Iterator[tuple[str, Any]]:
    """All config that dbt or an adapter may look at when it builds a node. Sorted by name."""
    ignored = DESCRIBING.union(
        _PLACE,
        OF_KEPT_ROWS if kind_of(node) in _MADE_ANEW else (),
        () if node.is_python else OF_PYTHON,
    )
    return ((name, as_configured(node, name, value)) for name, value in _given(node, ignored))


def of_test(node: Node) -> dict[str, Any]:
    """The config of a data test that can decide its outcome by its own words."""
    stored_as = node.config.get("store_failures_as")
    stores = stored_as != "ephemeral" if stored_as else bool(node.config.get("store_failures"))
    return dict(_given(node, OF_TESTS if stores else OF_TESTS | _STORING_FAILURES))


def _given(node: Node, besides: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """The config of a node that is set and looked at, besides some of it. Sorted by name."""
    by_time = node.config.get("incremental_strategy") == "microbatch"
    if by_time and kind_of(node) in KEEPING_ROWS:
        besides -= {"event_time"}  # it deletes by it
    for name in sorted([name for name in node.config if name not in besides]):
        value = node.config[name]
        # An empty value under a name that dbt knows is its default.
        is_set = value not in _EMPTY or (name not in _KNOWN and name in node.unrendered_config)
        if is_set and (by_time or name not in _MICROBATCH):
            yield name, value


# -- what something reads ---------------------------------------------------------------------------


def of_name(node: Node, name: str) -> Any:
    """A property by name, wherever it is given: in the config or besides it.

    Names of relations are as the project says them (`place`), so that another target is the same.
    """
    if name in SAYING_PLACE:
        return place(node)
    if name == "columns":
        return columns(node)
    if name in ("checksum", "compiled_code", "compiled_sql", "raw_sql"):
        return node.raw_code
    if name in ("depends_on", "refs", "sources"):
        macros = _macros_it_names(node) if name == "depends_on" else []
        return node.refs, node.sources, node.depends_on.nodes, macros
    if name in _OWN_FIELDS:
        own = getattr(node, name)
        return (own, node.config.get(name)) if name in node.config else own
    return node.config.get(name)


def _macros_it_names(node: Node) -> list[str]:
    """The macros that a node calls by name: an override of `ref` is another one, though no code was edited.

    dbt adds those to it that it calls itself to build or to test the node, so that there are more after
    ``dbt build`` than after ``dbt compile``.
    """
    macros = sorted(node.depends_on.macros)
    if not macros:
        return []
    facts = facts_of(node.raw_code)
    if not facts.readable or facts.calls_any_macro:
        return macros
    return [
        m for m in macros if (name := m.rpartition(".")[2]) in facts.said or name in _CALLED_BY_DBT
    ]


def property_names(nodes: Iterable[Node]) -> frozenset[str]:
    """All names under which any of these nodes may have a property (see `of_name`)."""
    return _BESIDES_CONFIG.union(*(node.config for node in nodes))


def read_of(node: Node, reads: Reads) -> list[Any]:
    """What some Jinja reads of a node (see `jinja.reads`), as the node has it."""
    if reads.everything:
        names = {*node.config, *_OWN_FIELDS, "alias", "columns", "refs"}
        return [(name, of_name(node, name)) for name in sorted(names)]
    values: list[Any] = [(name, of_name(node, name)) for name in sorted(reads.names)]
    for name, key in sorted(reads.parts):
        value = of_name(node, name)
        if isinstance(value, tuple) and all(isinstance(v, dict) or not v for v in value):
            value = [(v or {}).get(key) for v in value]
        elif isinstance(value, dict):
            value = value.get(key)
        values.append((name, key, value))
    return [value for value in values if value[-1] is not None]


def columns(node: Node) -> list[tuple[Any, ...]]:
    """All properties of the columns, in the order of the file."""
    return [
        (
            *(c.name, c.description, c.data_type, c.meta, c.tags, c.quote),
            *(c.constraints, c.config, c.granularity, c.more),
        )
        for c in node.columns.values()
    ]


_OWN_FIELDS: Final = (
    *("name", "package_name", "original_file_path", "path", "patch_path", "fqn", "language"),
    *("raw_code", "meta", "tags", "description", "constraints", "group", "access", "version"),
    *("latest_version", "deprecation_date", "time_spine", "contract", "loaded_at_field"),
    *("loaded_at_query", "freshness", "quoting", "external", "loader", "source_name"),
    *("source_description", "arguments", "returns"),
)
_CALLED_BY_DBT: Final = frozenset({"get_where_subquery"})
"""Macros that dbt calls while it parses a test."""
_PLACE: Final = ("alias", "schema", "database")
SAYING_PLACE: Final = frozenset({*_PLACE, "identifier", "relation_name"})
"""Names under which `of_name` finds one and the same: where a relation is."""
_BESIDES_CONFIG: Final = frozenset(
    (
        *(*_OWN_FIELDS, *SAYING_PLACE, "columns", "depends_on", "refs"),
        *("sources", "checksum", "compiled_code", "compiled_sql", "raw_sql"),
    )
)
"""What `of_name` finds in other places than the config."""


def of_source(node: Node, adapter: str | None) -> list[Any]:
    """What is declared of a source, besides where it is, that can change what a query finds there."""
    values: list[Any] = [*counted(node, adapter)]
    if node.external:
        # Where a table outside of the warehouse has its data, and which columns it has.
        values.append((node.external, [(c.name, c.data_type) for c in node.columns.values()]))
    if quoted := {k: v for k, v in node.quoting.items() if v is not None}:
        values.append(sorted(quoted.items()))
    if adapter == "duckdb" and not _READ_ELSEWHERE.isdisjoint(node.meta):
        values.append(node.meta)
    return values


_READ_ELSEWHERE: Final = frozenset({"external_location", "formatter", "plugin"})
"""Keys of ``meta`` by which dbt-duckdb reads a source from files or by a plugin."""


# -- where a relation is ----------------------------------------------------------------------------


def place(node: Node) -> tuple[Any, ...]:
    """What the project says of where a relation is, without what only the target decides (rule 6)."""
    values: list[Any] = [node.name]
    for name in (*_PLACE, "target_schema", "target_database"):
        values.append(as_configured(node, name, node.config.get(name)))
    return tuple(values)


def as_configured(node: Node, name: str, value: Any) -> Any:
    """A config value as it is configured: before Jinja, where only the target decides it.

    Which it does is told by the words: those of the value in a yml file, or of the ``config()`` of
    the node.
    """
    unrendered = node.unrendered_config.get(name)
    if unrendered is None or value is None:
        return value
    if isinstance(unrendered, str) and "{{" in unrendered:
        by_target = not _OF_ENVIRONMENT.isdisjoint(facts_of(unrendered).words)
        return unrendered if by_target else (unrendered, value)
    if name in node.raw_code:
        arguments = configured(node.raw_code)
        # Where the name is not found it may be in a dict that is passed on whole.
        for argument in [a for a in arguments if a.name == name] or arguments:
            if argument.by_target and argument.name in (name, ""):
                return argument.expression
    return value


# -- what a build does with it ----------------------------------------------------------------------

_ONLY_CHECKED: Final = frozenset({"check", "foreign_key", "not_null", "primary_key", "unique"})
"""Constraints that hold or stop the build; a ``custom`` one may as well be a default or a mask."""


def constraints(node: Node) -> list[tuple[str, Any]]:
    """The constraints of a node, each with the column it is of, empty for the node's own."""
    of_columns = [(c.name, each) for c in node.columns.values() for each in c.constraints or ()]
    of_all = [*(("", each) for each in node.constraints), *of_columns]
    return [(name, _without_nothing(constraint)) for name, constraint in of_all]


def written_by_declaration(node: Node) -> list[Any]:
    """What is declared that may change what is stored or shown, not only whether it is.

    Constraints, and what is declared of columns under names that dbt does not know, and an adapter may
    (masks).
    """
    writing: list[Any] = [
        (column, constraint)
        for column, constraint in constraints(node)
        if constraint.get("type") not in _ONLY_CHECKED
        or (constraint.get("type") != "check" and constraint.get("expression"))
    ]
    columns = node.columns.values()
    return writing + [(column.name, more) for column in columns if (more := _more_of(column))]


def declared(node: Node) -> list[Any]:
    """What of the columns a build looks at: under a contract, in comments, and what we do not know."""
    persisted = node.config.get("persist_docs")
    comments = isinstance(persisted, dict) and persisted.get("columns")
    result: list[Any] = []
    if isinstance(persisted, dict) and persisted.get("relation"):
        result.append(node.description)
    for column in node.columns.values():
        more = _more_of(column)
        values: list[Any] = [more] if more else []
        if comments:
            values += [column.description, column.quote]
        if node.contract_enforced:
            values += [type_text(column.data_type or ""), column.quote]
        if values:
            result.append((column.name, values))
    return result


def _more_of(column: Column) -> list[Any]:
    config = column.config
    if column.more is None and (not config or config.keys() <= _OF_COLUMN_CONFIG):
        return []
    return [column.more, {k: v for k, v in config.items() if k not in _OF_COLUMN_CONFIG and v}]


_OF_COLUMN_CONFIG: Final = frozenset({"meta", "tags"})


def _without_nothing(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v not in _EMPTY and not k.startswith("warn_")}


def hooks_in(config: dict[str, Any]) -> list[tuple[str, str]]:
    """All hooks that a config names, in order."""
    return [
        (when, str(hook.get("sql") or "") if isinstance(hook, dict) else str(hook))
        for when in ("pre-hook", "post-hook")
        for hook in listed(config.get(when))
    ]


def listed(value: Any) -> list[Any]:
    """A setting that may be one or several, as a list."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]
