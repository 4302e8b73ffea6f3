"""What of a node's config changes data (rule 7).

Whether a node is a view, a table or inlined is the same data, and so is all that only its readers,
its owners or its storage care for. What an incremental model, a snapshot or a hook does with rows
is not in compiled SQL; it is the config and text here that say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.ir import FILTER, JOIN
from dbt_ripple.graph.jinja import both_branches, names, normalised, tags, without_tags
from dbt_ripple.graph.macros import Macros, variables_in

TEST_CONFIG: Final = ("severity", "warn_if", "error_if", "fail_calc", "limit")
"""Config of a test that is not in its compiled SQL and decides its outcome."""

HARMLESS: Final = frozenset(
    """
    access alias auto_liquid_cluster automatic_clustering bind buckets cluster_by clustered_by
    compression concurrent_batches contract copy_grants database databricks_compute databricks_tags
    deprecation_date dist docs enabled file_format freshness grant_access_to grants group
    hours_to_expiration indexes kms_key_name labels liquid_clustered_by location location_root
    materialized meta on_configuration_change options packages persist_docs post-hook pre-hook
    query_tag quoting require_partition_filter schema secure snowflake_warehouse sort sort_type
    sql_header static_analysis table_format table_properties tags tblproperties transient
    unique_tmp_table_suffix unlogged
    """.split()
)
"""Config that changes no row of an incremental model or a snapshot, or that is looked at apart."""

_MICROBATCH: Final = ("begin", "batch_size", "event_time", "lookback")
"""Config that only the microbatch strategy looks at; dbt writes defaults for some of it."""

OF_COLUMNS: Final = ("unique_key", "updated_at", "check_cols")
"""Config that names columns of the node: what counts is what these are, not how they are called."""

_WITHOUT_KEY: Final = frozenset({"append", "insert_overwrite", "microbatch"})
"""Incremental strategies that do not look at unique_key."""


_APPLIES_TAGS: Final = re.compile(r"\s*\{\{-?\s*dbt_ripple\.apply_tags\(\s*\)\s*-?\}\}\s*")
"""See `graph.macros.APPLY_TAGS`."""

_WORDS: Final = re.compile(r"\w+|\*")
_BY_JINJA: Final = "__by_jinja__"
_PART: Final = r"""(?:`[^`]+`|"[^"]+"|\w+)"""
_DOTTED: Final = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})+")
_READ: Final = re.compile(
    r"""\b(?:from|join|into|update|using|table|view)\s+[`"]?(\w+)\b[`"]?(?!\s*\.)""", re.I
)


class Settings:
    """The settings of one project's nodes that change data."""

    def __init__(self, project: Project, macros: Macros) -> None:
        self.macros = macros
        self.adapter_type = project.metadata.adapter_type

    def of(self, node: Node, *, columns: bool = False) -> bytes:
        """A fingerprint of what of the config changes data; empty where nothing does.

        Args:
            node: a model, snapshot, seed or test.
            columns: whether settings that name columns are part of it; otherwise they are up to
                the caller, who knows what the columns are.
        """
        config = node.config
        said: dict[str, Any] = {}
        if hooks := hooks_of(node):
            said["hooks"] = [(when, normalised(sql)) for when, sql in hooks]
            said["hook macros"] = self.macros.fingerprint(self.hook_macros(node))
            said["hook vars"] = self.macros.variables(" ".join(sql for _, sql in hooks))
        if config.get("sql_header"):
            said["sql_header"] = normalised(str(config["sql_header"]))
        materialized = "snapshot" if node.resource_type == "snapshot" else node.materialized or ""
        ours = self.macros.of_materialization(materialized)
        if ours:
            said["materialization"] = ours
        keeps_rows = materialized in ("incremental", "snapshot")
        if keeps_rows or (ours and node.resource_type != "test"):
            microbatch = config.get("incremental_strategy") == "microbatch"
            for name, value in config.items():
                if value in (None, [], {}) or name in HARMLESS or name in OF_COLUMNS:
                    continue
                if name not in _MICROBATCH or microbatch:
                    said[name] = value
            said["kind"] = materialized
        if columns or not keeps_rows:
            for name in OF_COLUMNS if keeps_rows else ():
                if config.get(name):
                    said[name] = config[name]
        if materialized == "incremental":
            if hidden := both_branches(node.raw_code):
                said["branches"] = hidden
                said["branch vars"] = self.macros.variables(hidden)
                said["branch macros"] = self.macros.fingerprint(self.macros.named_in(hidden))
            elif asking := self.macros.that_ask(node.depends_on.macros):
                said["branches"] = normalised(node.raw_code)
                said["branch vars"] = self.macros.variables(node.raw_code)
                said["branch macros"] = self.macros.fingerprint(asking)
        if not said:
            return b""
        return digest(b"config", repr(sorted(said.items())).encode())

    def hook_macros(self, node: Node) -> list[str]:
        """The user's macros that the node's hooks call."""
        return self.macros.named_in(" ".join(sql for _, sql in hooks_of(node)))

    def hooks_read(self, node: Node) -> bool:
        """Whether a hook of the node refers to other relations than the node itself."""
        if not hooks_of(node):
            return False
        called = self.macros.closure(self.hook_macros(node)) & self.macros.user
        texts = [*(sql for _, sql in hooks_of(node)), *map(self.macros.text, called)]
        return any({"ref", "source", "graph"} & names(" ".join(tags(text))) for text in texts)

    def unseen_variables(self, node: Node) -> bool:
        """Whether vars are used where compiled SQL does not show them: in hooks, in branches."""
        texts = [sql for _, sql in hooks_of(node)]
        macros = self.hook_macros(node) if texts else []
        if node.materialized == "incremental":
            hidden = both_branches(node.raw_code)
            texts.append(hidden)
            macros += self.macros.named_in(hidden)
            macros += self.macros.that_ask(node.depends_on.macros)
        called = self.macros.closure(macros) & self.macros.user
        return any(variables_in(text) for text in (*texts, *map(self.macros.text, called)))

    def named_by_hooks(self, node: Node) -> tuple[set[str], set[str]]:
        """The relations that a node's hooks name literally, with a schema and by a bare name.

        A part that Jinja gives (``{{ target.schema }}.orders``) makes a name a bare one.
        """
        hooks = [sql for _, sql in hooks_of(node)]
        if not hooks:
            return set(), set()
        called = self.macros.closure(self.hook_macros(node)) & self.macros.user
        dotted: set[str] = set()
        bare: set[str] = set()
        for text in (*hooks, *map(self.macros.text, called)):
            plain = without_tags(normalised(text), _BY_JINJA)
            for found in _DOTTED.finditer(plain):
                _, _, last = found[0].rpartition(".")
                if _BY_JINJA in found[0]:
                    bare.add(last.strip(' `"'))
                else:
                    dotted.add(found[0])
            bare.update(found[1] for found in _READ.finditer(plain))
        return dotted, bare - {_BY_JINJA}

    def words_of_hooks(self, node: Node) -> set[str]:
        """The words of a node's hooks and of what they call, lower case, ``*`` among them.

        A hook that deletes or updates goes by columns; which ones, these words tell.
        """
        hooks = [sql for _, sql in hooks_of(node)]
        if not hooks:
            return set()
        called = self.macros.closure(self.hook_macros(node)) & self.macros.user
        return words(" ".join([*hooks, *map(self.macros.text, called)]))

    def words_of_branches(self, node: Node) -> set[str]:
        """The words of an incremental model's branches of which one was not compiled."""
        if node.materialized != "incremental":
            return set()
        return words(both_branches(node.raw_code))

    def column_uses(self, node: Node) -> Iterator[tuple[str, int, str]]:
        """The columns that settings name: the setting, the kind of use, the column's name."""
        config = node.config
        strategy = config.get("incremental_strategy")
        if strategy is None and self.adapter_type == "spark":
            strategy = "append"  # dbt-spark's default, which leaves unique_key aside
        if node.resource_type == "snapshot" or strategy not in _WITHOUT_KEY:
            for name in listed(config.get("unique_key")):
                yield "unique_key", JOIN, str(name)
        if node.resource_type == "snapshot":
            updated_at = config.get("updated_at")
            if isinstance(updated_at, str):
                yield "updated_at", FILTER, updated_at
            check = config.get("check_cols")
            if isinstance(check, list):
                for name in check:
                    yield "check_cols", FILTER, str(name)


def words(text: str) -> set[str]:
    """The words of a text, lower case, and ``*`` where it has one.

    Example:
        >>> sorted(words("delete from {{ this }} where Id > 3"))
        ['3', 'delete', 'from', 'id', 'this', 'where']
    """
    return set(_WORDS.findall(text.lower()))


def hooks_of(node: Node) -> list[tuple[str, str]]:
    """The hooks of a node in order, each with when it runs; but those that only apply tags."""
    config = node.config
    if not (config.get("pre-hook") or config.get("post-hook")):
        return []
    hooks = [
        (when, str(hook.get("sql") or "") if isinstance(hook, dict) else str(hook))
        for when in ("pre-hook", "post-hook")
        for hook in listed(config.get(when))
    ]
    return [(when, sql) for when, sql in hooks if not _APPLIES_TAGS.fullmatch(sql)]


def listed(value: Any) -> list[Any]:
    """A setting that may be one or several, as a list."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]
