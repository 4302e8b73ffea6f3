"""A target folder, analysed. If the cache has the whole result, nothing is decoded.

The key of a whole project is a digest of the bytes of manifest.json and catalog.json, without what
differs between two compilations of the same project (the time, the invocation, who ran it, when
dbt parsed each node), and of the seeds' files. For a manifest of dbt 2 no whole result is kept,
because it does not contain the compiled SQL.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import xxhash

from dbt_ripple.artifacts import (
    CatalogColumn,
    FileContents,
    Project,
    check_compiled,
    read_files,
    read_project,
)
from dbt_ripple.artifacts.read_artifacts import OtherSide, shows_own
from dbt_ripple.graph.analysis_coverage import STAGES, AnalysisCoverage, analysis_coverage
from dbt_ripple.graph.cache import Cache
from dbt_ripple.tuning import collector_paused

if TYPE_CHECKING:
    from dbt_ripple.artifacts.assets_file import DeclaredAsset
    from dbt_ripple.graph.cached_analysis import CachedAnalysis
    from dbt_ripple.graph.lineage import Analysis
    from dbt_ripple.graph.query_cache import LowerMany

T = TypeVar("T")
_Asked = tuple[bool, bool, bool, bool]

_METADATA: Final = re.compile(rb'\s*\{\s*"metadata"\s*:\s*')
_HEAD: Final = 1 << 16
"""Bytes within which the metadata ends; where it does not, all of it counts."""
_VOLATILE: Final = frozenset(
    """
    env generated_at invocation_id invocation_started_at run_started_at send_anonymous_usage_stats
    user_id
    """.split()
)
_CREATED: Final = re.compile(rb'"created_at"\s*:\s*[0-9][0-9.eE+-]*')
"""When dbt has parsed a node. In a string the quotes would be escaped: it is always a key."""


class TargetFolder:
    """The artifacts in a target folder, and their analysis.

    Each thing is taken from the cache, or else made, once, and put there.

    Args:
        folder: where ``manifest.json`` is.
        cache: where to look first; None to make everything anew.
        processes: how many lower what is not in the cache (see `graph.process_pool`); None is all cores.
        lower_many: another way to lower many queries, in place of these.
        on_read: called with the project, if it has to be decoded.
        sources_of: another folder, of whose ``catalog.json`` the columns of the sources are taken in
            place of all that one of this folder says. So a side without a catalog can be compared
            with one that has it: what is outside the project is the same for both.
        late: as for `read_project`; and the text of the manifest is kept until a side like this one
            is read.
        hook_writes: as `Project.hook_writes`.
        like: another side of the project. What the analyses of both that are kept say alike is one
            object in both; if that side is `late`, what both manifests say alike, too.
        hook_writes: as in `Project`.

    Attributes:
        declared: the declared assets, as far as they were asked for.
        project_dir: where the project's own files are at that state, as far as they are at hand.

    Raises:
        RippleError: the folder or the manifest is missing, or a file cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        cache: Cache | None = None,
        *,
        processes: int | None = 1,
        lower_many: LowerMany | None = None,
        on_read: Callable[[Project], None] | None = None,
        sources_of: Path | None = None,
        late: bool = False,
        like: TargetFolder | None = None,
        hook_writes: tuple[str, ...] | None = None,
    ) -> None:
        started = time.perf_counter()
        self.folder = folder
        self._sources_only = sources_of is not None
        self._has_catalog = sources_of == folder
        self.declared: Sequence[DeclaredAsset] = ()
        self.project_dir: Path | None = None
        self.cache = cache
        self.processes = processes
        self._lower_many = lower_many
        self._on_read = on_read
        self._hook_writes = hook_writes
        self._late = late
        self._contents: FileContents = {}
        self._artifacts = b""
        self._key: bytes | None = None
        self._read_before: _ReadBefore | None = None
        self._analyses: dict[_Asked, Analysis] = {}
        self._like = like
        self._manifest: bytes | None = None
        self._decoded: dict[_Asked, tuple[CachedAnalysis, Analysis]] = {}
        if cache is not None or sources_of is not None or late:
            self._contents = read_files(folder)
        if sources_of is not None:
            self._contents["catalog.json"] = (sources_of / "catalog.json").read_bytes()
        if cache is not None:
            self._artifacts = cache.key(
                b"own nodes" if shows_own() else b"",
                repr(hook_writes).encode(),
                b"artifacts" if sources_of is None else b"artifacts, columns of sources only",
                *(
                    _digest_of(content, cache) if content is not None else b""
                    for content in self._contents.values()
                ),
            )
            self._read_before = _read(cache, cache.key(b"seen", self._artifacts), _ReadBefore)
            if self._read_before is not None:
                self._key = self._whole(cache, self._read_before.seed_files)
        self.read_seconds = time.perf_counter() - started

    @classmethod
    def of(
        cls,
        project: Project,
        cache: Cache | None = None,
        *,
        processes: int | None = 1,
        lower_many: LowerMany | None = None,
    ) -> TargetFolder:
        """A project that is not what its folder holds, for example completed from elsewhere.

        Of the cache only what is kept by query is used: the folder's files are not its key.
        """
        target = cls(Path(project.target_path), processes=processes, lower_many=lower_many)
        target.cache = cache
        target.project = project
        return target

    @property
    def content(self) -> bytes:
        """Stands for manifest.json and catalog.json, without what two compilations differ in.

        Empty without a cache.
        """
        return self._artifacts

    def holding(self, project: Project) -> TargetFolder:
        """The same folder with another project in it: its own, completed from elsewhere."""
        return TargetFolder.of(
            project, self.cache, processes=self.processes, lower_many=self._lower_many
        )

    @property
    def was_read(self) -> bool:
        """Whether the project had to be decoded."""
        return "project" in self.__dict__

    @cached_property
    def project(self) -> Project:
        """The project, decoded."""
        started = time.perf_counter()
        preread, self._contents = self._contents, {}
        if self._late and self._like is None:
            self._manifest = preread["manifest.json"]
        project = whole = read_project(
            self.folder,
            preread,
            late=self._late,
            read_before=self._read_before is not None and self._read_before.as_written,
            like=self._like.as_other_side() if self._like is not None else None,
        )
        project = whole = project.having(hook_writes=self._hook_writes)
        if self._read_before is not None:
            project = whole = project.having(with_statements=self._read_before.with_statements)
        if self._sources_only:
            # It is decoded when it is asked for.
            project = project.having(
                catalog=lambda: sources_of_catalog(whole, whole.catalog),
                **({"whole_catalog": lambda: whole.catalog} if self._has_catalog else {}),
            )
        if self.cache is not None and self._key is None and not _is_dbt_2(project):
            # Here, because a warm run does without.
            from dbt_ripple.graph.hooks import with_statements

            hooked = [node.unique_id for node in with_statements(project.nodes.values())]
            seen = _ReadBefore(_seed_files(project), project.as_written, hooked)
            self.cache.put(self.cache.key(b"seen", self._artifacts), msgspec.msgpack.encode(seen))
            self._key = self._whole(self.cache, seen.seed_files)
            project = project.having(with_statements=hooked)
        if self._on_read is not None:
            self._on_read(project)
        self.read_seconds += time.perf_counter() - started
        return project

    def as_other_side(self) -> OtherSide | None:
        """What the next side shares with this one; once, because the text is not kept after that."""
        text, self._manifest = self._manifest, None
        return None if text is None else OtherSide(self.project, text)

    def summary(self) -> AnalysisCoverage:
        """How much of the project can be analysed.

        Raises:
            RippleError: the artifacts cannot be read, or dbt has compiled nothing of them.
        """
        summary = self._kept(b"summary", AnalysisCoverage)
        if summary is None:
            self.project  # noqa: B018  (its time is counted)
            summary = analysis_coverage(self.project, self.analysis(tests=False), self.read_seconds)
            self._keep(b"summary", msgspec.msgpack.encode(summary))
        else:
            summary.seconds = {**dict.fromkeys(STAGES, 0.0), "read": round(self.read_seconds, 3)}
        return summary

    def as_loaded(self) -> Analysis:
        """What a load writes, and compares with what another one wrote: with expressions and own fingerprints.

        Columns of seeds are told apart by their values, and tests by what two sides are compared by, too
        (`graph.test_outcomes`).

        Raises:
            RippleError: as `summary`.
        """
        return self.analysis(expressions=True, own=True, to_load=True)

    def analysis(
        self,
        *,
        tests: bool = True,
        expressions: bool = False,
        own: bool = False,
        to_load: bool = False,
    ) -> Analysis:
        """Everything, as `graph.analyse_project.analyse` says it.

        Raises:
            RippleError: as `summary`.
        """
        asked = tests, expressions, own, to_load
        for options in (asked, (tests, True, own, to_load)):
            if options in self._analyses:
                return self._analyses[options]
        kind = repr(("analysis", *asked)).encode()
        started = time.perf_counter()
        # Here, because to know how much could be analysed takes none of it.
        from dbt_ripple.graph.cached_analysis import CachedAnalysis, encode

        kept = self._kept(kind, CachedAnalysis)
        if kept is not None:
            like = self._like._decoded.get(asked) if self._like is not None else None
            analysis = kept.decoded(like)
            self._decoded[asked] = kept, analysis
            analysis.seconds = {"read": time.perf_counter() - started, "parse": 0.0, "link": 0.0}
        else:
            project = self.project
            check_compiled(project)
            # Here, because a warm run does without.
            from dbt_ripple.graph.analyse_project import analyse
            from dbt_ripple.graph.linking.project_context import ProjectContext
            from dbt_ripple.graph.linking.seeds import SeedFiles
            from dbt_ripple.graph.process_pool import cores, in_processes
            from dbt_ripple.graph.test_outcomes import with_test_outcomes

            processes = cores() if self.processes is None else self.processes
            seeds = SeedFiles.by_their_values(project) if to_load else None
            context = ProjectContext(project)
            analysis = analyse(
                project,
                tests=tests,
                expressions=expressions,
                own=own,
                cache=self.cache,
                lower_many=self._lower_many or in_processes(processes),
                seeds=seeds,
                context=context,
            )
            if seeds is not None:
                analysis = with_test_outcomes(context, analysis, seeds, self.cache)
            if self._key is not None:
                self._keep(kind, encode(analysis))
        self._analyses[asked] = analysis
        return analysis

    def _whole(self, cache: Cache, files: list[str]) -> bytes:
        return cache.key(b"project", self._artifacts, *(_file_digest(Path(file)) for file in files))

    def _kept(self, kind: bytes, as_type: type[T]) -> T | None:
        if self.cache is None or self._key is None:
            return None
        return _read(self.cache, self.cache.key(kind, self._key), as_type)

    def _keep(self, kind: bytes, value: bytes) -> None:
        if self.cache is not None and self._key is not None:
            self.cache.put(self.cache.key(kind, self._key), value)


def sources_of_catalog(
    project: Project, catalog: Mapping[str, list[CatalogColumn]] | None = None
) -> dict[str, list[CatalogColumn]]:
    """What a catalog (by default the project's own) says of the sources of a project."""
    columns_of = project.catalog if catalog is None else catalog
    return {
        node.unique_id: columns_of[node.unique_id]
        for node in project.of_type("source")
        if node.unique_id in columns_of
    }


class _ReadBefore(msgspec.Struct):
    """What is kept of a target folder that was read: see `_seed_files` and `Project`."""

    seed_files: list[str]
    as_written: bool
    with_statements: list[str]


def _read(cache: Cache, key: bytes, as_type: type[T]) -> T | None:
    stored = cache.view(key)
    if stored is None:
        return None
    try:
        with collector_paused():
            return msgspec.msgpack.decode(stored, type=as_type)
    except msgspec.DecodeError:
        return None


def _is_dbt_2(project: Project) -> bool:
    return (project.metadata.dbt_version or "").startswith("2.")


def _seed_files(project: Project) -> list[str]:
    """The files besides the artifacts that the analysis looks at, there or not."""
    return [
        str(Path(node.root_path) / node.original_file_path)
        for node in project.of_type("seed")
        if node.root_path
    ]


def _file_digest(file: Path) -> bytes:
    try:
        return xxhash.xxh3_128_digest(file.read_bytes())
    except OSError:
        return b"none"


def _digest_of(content: bytes, cache: Cache) -> bytes:
    """As `digest_of`, from the cache for bytes that were digested before."""
    key = cache.key(b"content", xxhash.xxh3_128_digest(content))
    digest = cache.get(key)
    if digest is None:
        digest = digest_of(content)
        cache.put(key, digest)
    return digest


def digest_of(content: bytes) -> bytes:
    """A digest of an artifact without what differs between two compilations of one project.

    Example:
        >>> one = b'{"metadata": {"generated_at": "now", "dbt_version": "1.11"}, "nodes": {}}'
        >>> digest_of(one) == digest_of(one.replace(b"now", b"then"))
        True
        >>> digest_of(one) == digest_of(one.replace(b"1.11", b"1.10"))
        False
    """
    hasher = xxhash.xxh3_128()
    view = memoryview(content)
    start = 0
    if (head := _METADATA.match(content)) is not None:
        try:
            # As Latin-1 each byte is one character, whatever the strings in it come out as.
            text = bytes(view[head.end() : head.end() + _HEAD]).decode("latin-1")
            manifest, length = json.JSONDecoder().raw_decode(text)
        except ValueError:
            pass
        else:
            if isinstance(manifest, dict):
                kept = {key: value for key, value in manifest.items() if key not in _VOLATILE}
                hasher.update(json.dumps(kept, sort_keys=True).encode())
                start = head.end() + length
    for created in _CREATED.finditer(content, start):
        hasher.update(view[start : created.start()])
        start = created.end()
    hasher.update(view[start:])
    return hasher.digest()
