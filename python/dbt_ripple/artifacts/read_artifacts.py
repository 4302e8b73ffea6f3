"""Artifacts on disk -> one :class:`Project`, whatever dbt version wrote them.

Guarantees: what is returned is complete for the file that was read (every enabled node, every edge
between them), or a :class:`RippleError` says what is wrong. Where a single field has a shape no dbt
version documents, it is left out and named in ``Project.notes``; fields that decide lineage
(ids, dependencies, SQL, config) are never left out: they are refused.

Not guaranteed: that the catalog, run results or freshness are of the same dbt invocation as the
manifest. A catalog of another project is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import xxhash
from msgspec.structs import force_setattr

from dbt_ripple.artifacts.catalog import CatalogColumns, check_catalog, is_older
from dbt_ripple.artifacts.decode_json import (
    NOT_JSON,
    REGENERATE,
    ColumnsOnDemand,
    complete_columns,
    decode,
    entries_of,
    is_absent,
    merged_tags,
    without_lone_surrogates,
)
from dbt_ripple.artifacts.project import (
    WITH_SQL,
    CatalogColumn,
    Group,
    Macro,
    Metadata,
    Node,
    Project,
    RunResult,
    SourceFreshness,
    as_utc,
)
from dbt_ripple.errors import RippleError
from dbt_ripple.tuning import collector_paused

OLDEST_MANIFEST: Final = 10
"""dbt 1.6; older manifests have other names for the SQL and other shapes of ``refs``."""

NEWEST_MANIFEST: Final = 20
"""dbt 2's first manifests say 20 and have the shape of 12, as do its later ones, which say 12."""

OWN: Final = "dbt_ripple"
"""The dbt package that comes with this one."""


_SECTIONS: Final = {
    "nodes": "",
    "sources": "source",
    "exposures": "exposure",
    "metrics": "metric",
    "semantic_models": "semantic_model",
    "saved_queries": "saved_query",
    "unit_tests": "unit_test",
    "functions": "function",
}
"""The manifest's node sections, with the resource type of their entries where it may be unsaid."""


_T = TypeVar("_T")


class _Manifest(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw()
    nodes: msgspec.Raw = msgspec.Raw()
    sources: msgspec.Raw = msgspec.Raw()
    exposures: msgspec.Raw = msgspec.Raw()
    metrics: msgspec.Raw = msgspec.Raw()
    semantic_models: msgspec.Raw = msgspec.Raw()
    saved_queries: msgspec.Raw = msgspec.Raw()
    unit_tests: msgspec.Raw = msgspec.Raw()
    functions: msgspec.Raw = msgspec.Raw()
    macros: msgspec.Raw = msgspec.Raw()
    groups: msgspec.Raw = msgspec.Raw()
    disabled: msgspec.Raw = msgspec.Raw()
    parent_map: msgspec.Raw = msgspec.Raw()


class _WithRawColumns(Node, kw_only=True, gc=False, frozen=True):
    """A node whose columns are not decoded yet."""

    columns: msgspec.Raw = msgspec.Raw(b"{}")  # type: ignore[assignment]


class _AsWritten(_Manifest):
    """A manifest whose large sections are as dbt writes them and are decoded in one go.

    Any surprise in these sends us to `_Manifest`. In the others dbt itself writes null here and there.
    """

    nodes: dict[str, _WithRawColumns] = {}  # type: ignore[assignment]
    sources: dict[str, _WithRawColumns] = {}  # type: ignore[assignment]
    macros: dict[str, Macro] = {}  # type: ignore[assignment]
    parent_map: dict[str, list[str]] = {}  # type: ignore[assignment]


class _NodeTexts(msgspec.Struct):
    """The nodes and sources of a manifest, not decoded."""

    nodes: dict[str, msgspec.Raw] = {}
    sources: dict[str, msgspec.Raw] = {}


class _WithNodeTexts(_AsWritten):
    """A manifest as dbt writes it, whose nodes and sources are not decoded yet."""

    nodes: dict[str, msgspec.Raw] = {}  # type: ignore[assignment]
    sources: dict[str, msgspec.Raw] = {}  # type: ignore[assignment]


class OtherSide(NamedTuple):
    """Another state of a project that was read before, and the text of its manifest."""

    project: Project
    manifest: bytes


class _Run(msgspec.Struct):
    """What run_results.json says of the command."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    args: dict[str, Any] = {}


class _RunResults(_Run):
    results: list[RunResult] = []


class _Sources(msgspec.Struct):
    results: list[SourceFreshness] = []


FileContents = dict[str, bytes | None]
"""What the files of a target folder hold, by name; None where there is no such file."""


def read_files(target_path: Path) -> FileContents:
    """Read ``manifest.json`` and ``catalog.json`` as they are, without decoding them.

    Raises:
        RippleError: the folder or the manifest is missing, or a file cannot be read.
    """
    target_path = Path(target_path)
    manifest_path = target_path / "manifest.json"
    return {
        "manifest.json": _required(target_path, manifest_path),
        "catalog.json": _optional(target_path / "catalog.json"),
    }


def read_project(
    target_path: Path,
    contents: FileContents | None = None,
    *,
    late: bool = False,
    read_before: bool = False,
    like: OtherSide | None = None,
) -> Project:
    """Read the artifacts of a dbt project.

    Args:
        target_path: the folder dbt wrote them to. ``manifest.json`` must be there;
            ``catalog.json``, ``run_results.json`` and ``sources.json`` are read where they are.
        contents: what `read_files` has read of it, which is then not read again. It is taken out, so
            that it need not stay in memory.
        late: decode only the manifest now, the rest when it is asked for. What is wrong with the
            rest is raised then, and noted then.
        read_before: whether this manifest was read before, by this version, and was
            `Project.as_written`: then the columns of a node are decoded when they are asked for.
        like: another state of the project. A node of which both manifests have the same text may be
            one object in both, decoded once.

    Returns:
        The project.

    Raises:
        RippleError: the folder or the manifest is missing or unreadable, a file is not the JSON it
            should be, the manifest's version is not known, or the catalog is another project's.
    """
    target_path = Path(target_path)
    with collector_paused():
        project = _read(target_path, {} if contents is None else contents, read_before, like)
        if not late:
            _ = project.catalog, project.run_results, project.freshness
        return project


def check_compiled(project: Project) -> None:
    """Refuse a project of which dbt has compiled nothing.

    Raises:
        RippleError: there are SQL models and none has compiled SQL; says which command mends it.
    """
    models = [node for node in project.of_type("model") if not node.is_python]
    if models and all(node.compiled_code is None for node in models):
        raise RippleError(
            "dbt has parsed this project but not compiled it: none of its "
            f"{len(models)} SQL models has compiled SQL",
            str(Path(project.target_path) / "manifest.json"),
            "run `dbt docs generate --target-path target-ripple` (or `dbt compile`) on the whole "
            "project and pass that --target-path, because `dbt parse`, `ls` and `run` overwrite it",
        )


def _read(
    target_path: Path, contents: FileContents, read_before: bool, like: OtherSide | None
) -> Project:
    notes: list[str] = []
    path = target_path / "manifest.json"
    content = contents.pop("manifest.json", None) or _required(target_path, path)
    manifest, shared, as_written = _decoded_manifest(content, path, read_before, like)
    other = None if like is None else like.project  # its text is not kept for the catalog
    del like
    metadata = _metadata(manifest.metadata, path)
    disabled = _by_id(entries_of(manifest.disabled, None, path, "disabled", notes))
    nodes = _nodes(manifest, shared, as_written, disabled, path, notes)
    macros = _by_id(entries_of(manifest.macros, Macro, path, "macros", notes))
    for macro in macros.values():
        macro.depends_on.macros.sort()
    groups = _by_id(entries_of(manifest.groups, Group, path, "groups", notes))
    parent_map = entries_of(manifest.parent_map, list[str], path, "parent_map", notes)
    hidden = _hidden(nodes, parent_map, metadata)
    for unique_id in hidden:
        del nodes[unique_id]
    _compiled_files(target_path, metadata, nodes, notes)
    parents, children = _maps(nodes, parent_map, notes)
    if not metadata.project_name:
        metadata.project_name = _likely_name(nodes)
        if metadata.project_name:
            notes.append(
                f"manifest.json does not name its project; taken to be {metadata.project_name}, "
                "which has the most nodes"
            )
    hasher = xxhash.xxh3_128(content)
    del content, manifest
    beside = _FilesBeside(
        target_path=target_path,
        hasher=hasher,
        metadata=metadata,
        nodes=nodes,
        not_nodes={*disabled, *hidden},
        without_results={*macros, *hidden},
        other=other,
        notes=notes,
    )
    beside.take_catalog(contents)
    return Project(
        target_path=str(target_path),
        metadata=metadata,
        nodes=nodes,
        parents=parents,
        children=children,
        macros=macros,
        groups=groups,
        hidden=hidden,
        catalog=beside.catalog,
        catalog_is_older=beside.catalog_is_older,
        run_results=beside.run_results,
        run_args=lambda: beside.run().args,
        run_invocation=lambda: beside.run().metadata.invocation_id or "",
        runs=lambda: [*metadata.runs, *beside.run().metadata.runs],
        freshness=beside.freshness,
        disabled=list(disabled),
        as_written=as_written,
        digest=beside.digest,
        notes=notes,
    )


def _decoded_manifest(
    content: bytes, path: Path, read_before: bool, like: OtherSide | None
) -> tuple[_AsWritten | _Manifest, Mapping[str, dict[str, Node]], bool]:
    """The manifest; nodes that are taken from another side, by section; and whether it is as dbt writes it."""
    try:
        if like is None or not _may_be_shared(content, like):
            return _as_written(content, read_before), {}, True
        return *_as_written_like(content, read_before, like), True
    except (msgspec.ValidationError, *NOT_JSON):
        return decode(without_lone_surrogates(content), _Manifest, path), {}, False


def _nodes(
    manifest: _AsWritten | _Manifest,
    shared: Mapping[str, dict[str, Node]],
    as_written: bool,
    disabled: dict[str, Any],
    path: Path,
    notes: list[str],
) -> dict[str, Node]:
    """The nodes of all sections; those that only a disabled node has go into `disabled`."""
    nodes: dict[str, Node] = {}
    idle: list[str] = []
    for section, resource_type in _SECTIONS.items():
        entries = entries_of(getattr(manifest, section), Node, path, section, notes)
        idle += _complete(entries, resource_type, disabled)
        for node in entries.values() if not as_written else ():
            complete_columns(node.columns)
        if section in shared:
            entries |= shared[section]
            if disabled:
                idle += [u for u, n in shared[section].items() if n.attached_node in disabled]
        nodes.update(_by_id(entries))
    for unique_id in sorted(idle):
        disabled[unique_id] = nodes.pop(unique_id)
    return nodes


@dataclass(kw_only=True)
class _FilesBeside:
    """The files beside manifest.json, each decoded when it is first asked for.

    Attributes:
        hasher: has the content of each file once that is read.
        not_nodes: unique_ids that the catalog may name though they are not in `nodes`.
        without_results: unique_ids of which results are passed over.
        other: another side of the project, whose equal catalog entries are shared.
    """

    target_path: Path
    hasher: xxhash.xxh3_128
    metadata: Metadata
    nodes: dict[str, Node]
    not_nodes: set[str]
    without_results: set[str]
    other: Project | None
    notes: list[str]
    _catalog_text: bytes | None = None
    _catalog: Mapping[str, list[CatalogColumn]] | None = None
    _run_text: bytes | None = None
    _run: _Run | None = None

    def take_catalog(self, contents: FileContents) -> None:
        """Read catalog.json, or take it from what is read already."""
        name = "catalog.json"
        text = contents.pop(name) if name in contents else _optional(self.target_path / name)
        if text is not None:
            self.hasher.update(name.encode())
            self.hasher.update(text)
        self._catalog_text = text

    def catalog(self) -> Mapping[str, list[CatalogColumn]]:
        if self._catalog is None:
            text = self._catalog_text
            self._catalog = {} if text is None else self._decoded_catalog(text)
            self._catalog_text = None
        return self._catalog

    def _decoded_catalog(self, text: bytes) -> CatalogColumns:
        path = self.target_path / "catalog.json"
        with collector_paused():
            shared = self.other.catalog if self.other else None
            columns = CatalogColumns(text, path, self.nodes, shared)
            check_catalog(columns, path, self.nodes, self.metadata, self.not_nodes)
        return columns

    def catalog_is_older(self) -> bool:
        columns = self.catalog()
        return isinstance(columns, CatalogColumns) and is_older(columns.metadata, self.metadata)

    def run(self) -> _Run:
        """What run_results.json says of the run; its results are decoded by `run_results`."""
        if self._run is None:
            path = self.target_path / "run_results.json"
            self._run_text = _optional(path)
            if self._run_text is None:
                self._run = _Run()
            else:
                self.hasher.update(b"run_results.json")
                self.hasher.update(self._run_text)
                self._run = decode(self._run_text, _Run, path)
        return self._run

    def run_results(self) -> list[RunResult]:
        self.run()
        text = self._run_text
        if text is None:
            return []
        path = self.target_path / "run_results.json"
        with collector_paused():
            results = _run_results(text, path, self.nodes, self.without_results, self.notes)
        self._run_text = None
        return results

    def freshness(self) -> list[SourceFreshness]:
        path = self.target_path / "sources.json"
        content = _optional(path)
        return decode(content, _Sources, path).results if content is not None else []

    def digest(self) -> str:
        self.run()
        return self.hasher.hexdigest()


# --- files -----------------------------------------------------------------------------------------


def _required(target_path: Path, manifest_path: Path) -> bytes:
    fix = "run `dbt docs generate` in the project, or say where its artifacts are by --target-path"
    if not target_path.exists():
        raise RippleError("no such folder", str(target_path), fix)
    if not target_path.is_dir():
        raise RippleError(
            "is a file, not the folder dbt writes its artifacts to",
            str(target_path),
            "give the folder that holds manifest.json",
        )
    content = _optional(manifest_path)
    if content is None:
        raise RippleError("no manifest.json in this folder", str(target_path), fix)
    return content


def _optional(path: Path) -> bytes | None:
    """The file's bytes, ``None`` where there is no such file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise RippleError("is a folder, not a file", str(path), REGENERATE) from None
    except PermissionError:
        raise RippleError(
            "no permission to read it", str(path), "make it readable for this user"
        ) from None
    except OSError as error:
        raise RippleError(
            f"cannot be read ({error.strerror or error})", str(path), REGENERATE
        ) from None
    if not content.strip():
        raise RippleError("is empty", str(path), REGENERATE)
    return content


def _as_written(content: bytes, read_before: bool) -> _AsWritten:
    manifest = msgspec.json.decode(content, type=_AsWritten)
    for node in (*manifest.nodes.values(), *manifest.sources.values()):
        _take_columns(node, read_before)
    return manifest


def _as_written_like(
    content: bytes, read_before: bool, like: OtherSide
) -> tuple[_AsWritten, dict[str, dict[str, Node]]]:
    """A manifest without the nodes of which another one says the same; and these, by section."""
    manifest = msgspec.json.decode(content, type=_WithNodeTexts)
    there = msgspec.json.decode(like.manifest, type=_NodeTexts)
    before = like.project.nodes
    shared: dict[str, dict[str, Node]] = {}
    for section in ("nodes", "sources"):
        texts_there: dict[str, msgspec.Raw] = getattr(there, section)
        new: dict[str, Node] = {}
        same: dict[str, Node] = {}
        for unique_id, text in getattr(manifest, section).items():
            if unique_id in before and texts_there.get(unique_id) == text:
                same[unique_id] = before[unique_id]
            else:
                new[unique_id] = node = msgspec.json.decode(text, type=_WithRawColumns)
                _take_columns(node, read_before)
        shared[section] = same
        setattr(manifest, section, new)
    return manifest, shared


def _take_columns(node: _WithRawColumns, read_before: bool) -> None:
    raw = node.columns
    if len(memoryview(raw)) == len("{}"):
        force_setattr(node, "columns", {})
        return
    columns = ColumnsOnDemand(bytes(raw))  # a copy, so that not all of the file stays in memory
    if not read_before:
        columns.decode()
    force_setattr(node, "columns", columns)


def _may_be_shared(content: bytes, like: OtherSide) -> bool:
    """Whether it pays to look for nodes of which another manifest says the same.

    It does where dbt has parsed both sides together, as it does on a machine that keeps its partial
    parse: else each node has another ``created_at``. Nodes of dbt 2 have their SQL in other files.
    """
    if not like.project.as_written or (like.project.metadata.dbt_version or "").startswith("2."):
        return False
    ours, theirs = (
        {match[0] for match in islice(_CREATED.finditer(text), _PROBED)}
        for text in (content, like.manifest)
    )
    return not ours.isdisjoint(theirs)


_CREATED: Final = re.compile(rb'"created_at"\s*:\s*[0-9][0-9.eE+-]*')
_PROBED: Final = 100


# --- what the manifest means -----------------------------------------------------------------------


def _metadata(raw: msgspec.Raw, path: Path) -> Metadata:
    not_one = "is it the manifest.json of a dbt project? " + REGENERATE
    if is_absent(raw):
        raise RippleError("JSON, but not a dbt manifest: it has no `metadata`", str(path), not_one)
    metadata = decode(raw, Metadata, path)
    schema_version = metadata.dbt_schema_version
    match = re.search(r"/dbt/([\w-]+)/v(\d+)(?:\.json)?$", schema_version)
    if not match or match.group(1) != "manifest":
        raise RippleError(
            f"not a dbt manifest of a known schema version (it says {schema_version!r})",
            str(path),
            not_one,
        )
    version = int(match.group(2))
    if version < OLDEST_MANIFEST:
        raise RippleError(
            f"manifest version {version} is too old (dbt {metadata.dbt_version}); "
            f"versions {OLDEST_MANIFEST} to {NEWEST_MANIFEST} can be read",
            str(path),
            "use dbt 1.6 or newer",
        )
    if version > NEWEST_MANIFEST:
        raise RippleError(
            f"manifest version {version} (dbt {metadata.dbt_version}) is newer than this "
            f"dbt-ripple knows; versions {OLDEST_MANIFEST} to {NEWEST_MANIFEST} can be read",
            str(path),
            "upgrade dbt-ripple",
        )
    if metadata.generated_at:
        metadata.generated_at = as_utc(metadata.generated_at)
    return metadata


def _complete(
    nodes: dict[str, Node], resource_type: str, disabled: Collection[str]
) -> Iterator[str]:
    """Fill in what dbt versions say in different places, or not at all; yields the nodes that are idle.

    dbt keeps the generic tests of a node that dbt_project.yml disables, and some that are disabled
    themselves, and never compiles them. Nobody else has seen these nodes: they are still being read.
    """
    for unique_id, node in nodes.items():
        if node.unique_id != unique_id:
            force_setattr(node, "unique_id", unique_id)
        if not node.resource_type:
            kind = resource_type or unique_id.partition(".")[0]
            force_setattr(node, "resource_type", kind)
        config = node.config
        if isinstance(meta := config.get("meta"), dict) and meta:
            force_setattr(node, "meta", {**node.meta, **meta})
        if tags := config.get("tags"):
            force_setattr(node, "tags", merged_tags(node.tags, tags))
        if node.group is None and (group := config.get("group")) is not None:
            force_setattr(node, "group", group)
        if node.access is None and (access := config.get("access")) is not None:
            force_setattr(node, "access", access)
        # `refs` and `sources` say what refers to what, in the order of the code.
        depends_on = node.depends_on
        depends_on.nodes.sort()
        depends_on.macros.sort()
        if node.attached_node in disabled or config.get("enabled") is False:
            yield unique_id


def _compiled_files(
    target_path: Path, metadata: Metadata, nodes: dict[str, Node], notes: list[str]
) -> None:
    """Take the SQL that dbt 2 compiled from its files: its manifest does not hold it.

    dbt 2 writes its manifest when it has parsed and the compiled files after that, so a file that
    is older than the manifest is of another invocation and is not believed.
    """
    if not (metadata.dbt_version or "").startswith("2.") or metadata.generated_at is None:
        return
    taken = 0
    for node in nodes.values():
        if node.compiled_code is not None or node.resource_type not in WITH_SQL:
            continue
        if not node.original_file_path.endswith(".sql"):
            continue
        file = target_path / "compiled" / node.package_name / node.original_file_path
        try:
            if file.stat().st_mtime >= metadata.generated_at.timestamp():
                force_setattr(node, "compiled_code", file.read_text(encoding="utf-8"))
                taken += 1
        except (OSError, UnicodeDecodeError):
            continue
    if taken:
        notes.append(f"took the compiled SQL of {taken} nodes from {target_path / 'compiled'}")


def _by_id(entries: dict[str, _T]) -> dict[str, _T]:
    """Entries in the order of their ids: no answer depends on the order of a manifest.

    dbt keeps none: where it parses only what has changed, that comes last.
    """
    return {unique_id: entries[unique_id] for unique_id in sorted(entries)}


def _hidden(
    nodes: dict[str, Node], parent_map: dict[str, list[str]], metadata: Metadata
) -> dict[str, Node]:
    """The nodes of the package `OWN` that nothing else reads: they are no part of what one asks about."""
    if metadata.project_name == OWN or shows_own():
        return {}
    ids = [unique_id for unique_id in nodes if f".{OWN}." in unique_id]  # the package is in the id
    own = {unique_id for unique_id in ids if nodes[unique_id].package_name == OWN}
    if not own:
        return {}

    def parents(unique_id: str) -> list[str]:
        listed = parent_map.get(unique_id)
        return nodes[unique_id].depends_on.nodes if listed is None else listed

    waiting = [unique_id for unique_id in nodes if unique_id not in own]
    while waiting:
        read = [parent for parent in parents(waiting.pop()) if parent in own]
        own.difference_update(read)
        waiting += read
    return {unique_id: node for unique_id, node in nodes.items() if unique_id in own}


def shows_own() -> bool:
    """Whether the nodes of the package `OWN` are asked for."""
    return bool(os.environ.get(_SHOWS_OWN))


@contextmanager
def own_nodes_shown() -> Iterator[None]:
    """Ask for them, for a while."""
    before = os.environ.get(_SHOWS_OWN)
    os.environ[_SHOWS_OWN] = "1"
    try:
        yield
    finally:
        os.environ.pop(_SHOWS_OWN)
        if before is not None:
            os.environ[_SHOWS_OWN] = before


_SHOWS_OWN: Final = "DBT_RIPPLE_OWN_NODES"


def _maps(
    nodes: dict[str, Node], parent_map: dict[str, list[str]], notes: list[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Parents and children of every node, between nodes that exist only."""
    parents: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {unique_id: [] for unique_id in nodes}
    missing: dict[str, None] = {}
    for unique_id, node in nodes.items():
        listed = parent_map.get(unique_id)
        if listed is None:
            listed = [*node.depends_on.nodes]
        if len(listed) > 1:
            listed = sorted({*listed})
        parents[unique_id] = listed
        for parent in listed:
            if (below := children.get(parent)) is not None:
                below.append(unique_id)
            else:
                missing[parent] = None
                parents[unique_id] = [one for one in listed if one in nodes]
    if missing:
        some = ", ".join(list(missing)[:3])
        notes.append(
            f"manifest.json refers to {len(missing)} node{'' if len(missing) == 1 else 's'} it does "
            f"not hold ({some}), left out of the graph"
        )
    return parents, children


def _likely_name(nodes: dict[str, Node]) -> str | None:
    count: dict[str, int] = {}
    for node in nodes.values():
        count[node.package_name] = count.get(node.package_name, 0) + 1
    return max(count, key=lambda name: count[name], default=None)


def _run_results(
    content: bytes, path: Path, nodes: dict[str, Node], others: Collection[str], notes: list[str]
) -> list[RunResult]:
    run = decode(content, _RunResults, path)
    results = [item for item in run.results if item.unique_id in nodes]
    if run.results and not (results or any(item.unique_id in others for item in run.results)):
        notes.append("run_results.json names no node of this manifest; it is ignored")
    for item in results:
        item.invocation_id = run.metadata.invocation_id or ""
    return results
