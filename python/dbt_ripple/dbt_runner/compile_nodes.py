"""`dbt compile` of some nodes of a project that dbt has parsed, also where it cannot connect.

* dbt asks the warehouse only what the nodes' Jinja asks: its cache of all relations is not filled.
* ``is_incremental()`` is not asked where ``--full-refresh`` answers it.
* Where dbt cannot connect, all is compiled that asks the warehouse nothing. What asks stays
  uncompiled, and is compared by its code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import Run
from dbt_ripple.changes.compile_inputs import asking_the_warehouse
from dbt_ripple.dbt_runner.invoke import Dbt, failed_nodes

CHOSEN: Final = "dbt_ripple_chosen"
"""The tag by which dbt is told which nodes to take, however many there are: names on a command line
have a limit, and dbt compares each of them with every node."""

_ONLY_CHOSEN: Final = (
    *("--select", f"tag:{CHOSEN}", "--indirect-selection", "empty"),
    "--no-write-json",  # the manifest would have the tags
)
_AT_ONCE: Final = "--fail-fast"
"""Else the threads of a command that could not connect go on with what is left, and their connections are in
the next command's way."""
_IS_INCREMENTAL: Final = "macro.dbt.is_incremental"
_FALSE_IN_A_FULL_REFRESH: Final = "{% if should_full_refresh() %}{{ return(False) }}{% endif %}"
_ASKING_NOTHING: Final = ("--full-refresh", "--no-defer", "--no-introspect")
"""A model that is deferred asks first whether there is one that is not."""
_NAMES_SHOWN: Final = 3
_KIND_OF_ERROR: Final = re.compile(r"(?:\w+ )*Error(?: in .*)?")
"""Lines of dbt's message that say where it happened, and not what."""

CompiledText = tuple[str | None, list[str]]
"""A node's compiled SQL, and the macros that dbt has noted for it."""


@dataclass
class Unanswered:
    """What dbt could not ask the warehouse, because it cannot connect.

    Attributes:
        why: what it says; empty as long as nothing had to be asked, or it connects.
        nodes: the names of what it would have asked for.
    """

    why: str = ""
    nodes: dict[str, None] = field(default_factory=dict)

    @property
    def note(self) -> str | None:
        """What the user should know of it, in one sentence."""
        if not self.nodes:
            return None
        names = list(self.nodes)
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        what = (
            "node that asks the warehouse while dbt compiles is compared by its code"
            if len(names) == 1
            else "nodes that ask the warehouse while dbt compiles are compared by their code"
        )
        shown = ", ".join(names[:_NAMES_SHOWN])
        return f"dbt cannot connect ({self.why}): {len(names)} {what} ({shown}{more})"


def choose(manifest: Any, unique_ids: Collection[str]) -> Any:
    """Tag nodes of a manifest that dbt parsed, so that ``tag:`` + :data:`CHOSEN` means them only.

    Args:
        manifest: dbt's own, changed in place.
        unique_ids: of nodes, sources or unit tests.

    Returns:
        The manifest.
    """
    # dbt before 1.11 has no functions.
    for nodes in (manifest.nodes, getattr(manifest, "functions", {}), manifest.unit_tests):
        for unique_id, node in nodes.items():
            holder = node.config if nodes is manifest.unit_tests else node
            tags = [holder.tags] if isinstance(holder.tags, str) else list(holder.tags)
            chosen = unique_id in unique_ids
            if chosen != (CHOSEN in tags):
                holder.tags = [*tags, CHOSEN] if chosen else [t for t in tags if t != CHOSEN]
    return manifest


def compile_nodes(
    dbt: Dbt,
    manifest: Any,
    project: Project,
    unique_ids: Collection[str],
    *arguments: str,
    unanswered: Unanswered,
) -> Project:
    """A project with some of its nodes compiled, and no others.

    Args:
        dbt: on the project.
        manifest: dbt's own, as it parsed the project.
        project: what is compiled.
        unique_ids: of these nodes.
        arguments: more of them for ``dbt compile``.
        unanswered: what could not be asked so far, for another project with this connection; it is
            told what can not be asked here. That is left uncompiled.

    Raises:
        RippleError: dbt could not compile them.
    """
    if not unique_ids:
        return project
    if not unanswered.why:
        result = _compile(dbt, manifest, unique_ids, (*arguments, _AT_ONCE))
        if result.success:
            return _compiled(project, manifest, unique_ids)
        if dbt.attempt("debug", "--connection").success:
            # What stops at once may tell of a thread that was stopped, and not of what failed.
            manifest = dbt.parse(write=False)
            dbt.check(_compile(dbt, manifest, unique_ids, arguments), ("compile", *arguments))
            return _compiled(project, manifest, unique_ids)
        unanswered.why = _what_happened(result)
        manifest = dbt.parse(write=False)  # the other has nodes that are half compiled
    asking = asking_the_warehouse(project, unique_ids)
    unanswered.nodes.update((project.nodes[u].display_name, None) for u in sorted(asking))
    rest = [unique_id for unique_id in unique_ids if unique_id not in asking]
    if not rest:
        return project
    with _never_connected(manifest):
        dbt.check(_compile(dbt, manifest, rest, _ASKING_NOTHING), ("compile", *_ASKING_NOTHING))
    return _compiled(project, manifest, rest)


def with_texts(project: Project, texts: Mapping[str, CompiledText]) -> Project:
    """A project with the compiled SQL of some nodes, and the macros that dbt noted as it compiled them."""
    nodes = dict(project.nodes)
    for unique_id, (text, macros) in texts.items():
        nodes[unique_id] = msgspec.structs.replace(
            nodes[unique_id].calling(macros), compiled_code=text, compiled=text is not None
        )
    return project.having(nodes=nodes)


def _compiled(project: Project, manifest: Any, unique_ids: Collection[str]) -> Project:
    """A project with what dbt has just compiled of it."""
    from dbt.tracking import active_user

    nodes = {unique_id: manifest.nodes[unique_id] for unique_id in unique_ids}
    texts = {
        unique_id: (getattr(node, "compiled_code", None), node.depends_on.macros)
        for unique_id, node in nodes.items()
    }
    run = [Run(active_user.invocation_id, active_user.run_started_at)] if active_user else []
    return with_texts(project, texts).having(runs=[*project.runs, *run])


def _compile(
    dbt: Dbt, manifest: Any, unique_ids: Collection[str], arguments: tuple[str, ...]
) -> Any:
    """The result of dbt's command, failed or not."""
    macro = manifest.macros.get(_IS_INCREMENTAL)
    as_it_is = macro and macro.macro_sql
    if macro is not None:
        # dbt's own asks first whether the relation is there, and then whether that matters.
        signature, end, body = macro.macro_sql.partition("%}")
        macro.macro_sql = f"{signature}{end}{_FALSE_IN_A_FULL_REFRESH}{body}"
    try:
        chosen = dbt.on(choose(manifest, set(unique_ids)))
        return chosen.attempt("compile", *_ONLY_CHOSEN, *arguments)
    finally:
        if macro is not None:
            macro.macro_sql = as_it_is


@contextmanager
def _never_connected(manifest: Any) -> Iterator[None]:
    """Without the connection that dbt names before it begins: BigQuery's opens it to close it."""
    from dbt.adapters.factory import get_adapter_by_type

    # Of the class: each command of dbt makes its adapter anew.
    adapter: Any = type(get_adapter_by_type(manifest.metadata.adapter_type))
    named = adapter.connection_named
    adapter.connection_named = lambda *_, **__: nullcontext()
    try:
        yield
    finally:
        adapter.connection_named = named


def _what_happened(result: Any) -> str:
    """What dbt says of the first thing that failed, without the lines that say where it was."""
    told = [result.exception, *(node.message for node in failed_nodes(result))]
    lines = [line.strip() for line in str(next(filter(None, told), "")).splitlines()]
    said = [line for line in lines if line and not _KIND_OF_ERROR.fullmatch(line)]
    return (
        shorten(said[0].rstrip(". "), 200, placeholder=" ...")
        if said
        else type(result.exception).__name__
    )
