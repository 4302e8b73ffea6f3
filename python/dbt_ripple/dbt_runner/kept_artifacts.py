"""What dbt made of a project before, kept in the cache, so that it need not be made again.

* `ParsedBefore`: dbt's own record of its last parsing, from which the next one starts. dbt decides
  whether it accepts it. It is the project's own, which is only read, or the one that was kept.
* `LastComplete`: the artifacts in which last everything was compiled, for those of a part of it.
* `KeptBase`: base at a commit, compiled. It is the same tomorrow if all is that dbt reads for it:
  the files, the packages, what is installed, vars, target and environment, but for what asks the
  warehouse. Nothing of it is a secret: of values only digests are kept, in keys, and the target is
  what Jinja sees of it.

Where there is no cache (``--no-cache``) nothing is kept. The cache is bounded, safe with any number
of processes, and whole after a kill (:mod:`dbt_ripple.graph.cache`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.changes.compile_inputs import asking_the_warehouse, environment_read
from dbt_ripple.changes.dbt_vars import state_of_parsing
from dbt_ripple.dbt_runner.compile_nodes import CompiledText, with_texts
from dbt_ripple.dbt_runner.invoke import Dbt, DbtOptions
from dbt_ripple.graph.cache import Cache
from dbt_ripple.jinja.facts import ANY, facts_of

PARTIAL_PARSE: Final = "partial_parse.msgpack"
_MANIFEST: Final = "manifest.json"
_RUN_RESULTS: Final = "run_results.json"
_LARGEST: Final = 200_000_000
"""Bytes of a value above which it is not kept: it would leave the cache no room for others."""
_SCHEMA: Final = "schema"
_FLAGS: Final = "DBT_"
_NO_FLAGS: Final = ("DBT_CLOUD_", "DBT_ENV_", "DBT_RIPPLE_")
_SECRETS: Final = "DBT_ENV_SECRET"
_PACKAGES: Final = "dbt_packages"
_WRITTEN_BY_DBT: Final = ("logs", "target")
_FOLDER: Final = b"\x00folder\x00"
"""Stands for the temporary folder, which has another name each time."""


# --- parsing ---------------------------------------------------------------------------------------


class _Path(msgspec.Struct):
    searched_path: str = ""
    relative_path: str = ""
    modification_time: float = 0.0
    project_root: str = ""


class _Checksum(msgspec.Struct):
    name: str = ""
    checksum: str = ""


class _File(msgspec.Struct):
    path: _Path | None = None
    checksum: _Checksum = msgspec.field(default_factory=_Checksum)
    parse_file_type: str | None = None


class _StateCheck(msgspec.Struct):
    vars_hash: _Checksum = msgspec.field(default_factory=_Checksum)
    profile_hash: _Checksum = msgspec.field(default_factory=_Checksum)


class _Parsed(msgspec.Struct):
    """What of partial_parse.msgpack says whether it can be used."""

    state_check: _StateCheck = msgspec.field(default_factory=_StateCheck)
    files: dict[str, _File] = {}


class ParsedBefore:
    """What a project was parsed into before.

    Args:
        project_dir: of the project, absolute.
        options: how dbt is called.
        own: the project's own target folder.
        cache: where what was parsed is kept.
    """

    def __init__(
        self, project_dir: Path, options: DbtOptions, own: Path, cache: Cache | None
    ) -> None:
        self._project_dir = project_dir
        self._own = own / PARTIAL_PARSE
        self._cache = cache
        words = json.dumps([str(project_dir), *options.arguments(), *sorted(_flags())])
        self._key = cache.key(b"parsed", words.encode()) if cache is not None else b""

    def parse(self, dbt: Dbt) -> Any:
        """The project, parsed by dbt as far as something differs: dbt's own manifest.

        Raises:
            RippleError: it cannot.
        """
        there = dbt.target_path / PARTIAL_PARSE
        kept = _unpacked(self._cache, self._key)
        before = self._best(_bytes(self._own), kept) if _sees_layout() else None
        if before is not None:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(before)
        manifest = dbt.parse()
        after = _bytes(there)
        if after is not None and after != kept:
            _pack(self._cache, self._key, after)
        return manifest

    def _best(self, own: bytes | None, kept: bytes | None) -> bytes | None:
        """The one to start from: the project's own, if it was parsed with these options."""
        parsed = [_decoded(content) for content in (own, kept)]
        sound = [p is not None and self._is_sound(p) for p in parsed]
        if not sound[0] or own is None or parsed[0] is None:
            return kept if sound[1] else None
        if not sound[1] or parsed[1] is None:
            return own
        return own if parsed[0].state_check == parsed[1].state_check else kept

    def _is_sound(self, parsed: _Parsed) -> bool:
        """Whether each YAML file that dbt will take as unread since is what it has read.

        dbt goes by the time at which the file was written, which a checkout or an archive may set.
        """
        for file in parsed.files.values():
            path = file.path
            if file.parse_file_type != _SCHEMA or path is None:
                continue
            name = Path(path.project_root, path.searched_path, path.relative_path)
            try:
                if name.stat().st_mtime != path.modification_time:
                    continue
                content = name.read_bytes().decode().strip().encode()
            except (OSError, UnicodeDecodeError):
                if name.is_relative_to(self._project_dir):
                    continue  # it is gone, and dbt sees that
                return False  # it was parsed in another place
            if file.checksum.checksum != hashlib.sha256(content).hexdigest():
                return False
        return True


def _sees_layout() -> bool:
    """Whether dbt reads a file again of which only the white space differs, as that of a literal; since 1.12 not."""
    from dbt.parser import read_files

    return not hasattr(read_files, "normalize_file_contents")


def _decoded(content: bytes | None) -> _Parsed | None:
    try:
        return msgspec.msgpack.decode(content, type=_Parsed) if content else None
    except msgspec.DecodeError:
        return None


# --- base ------------------------------------------------------------------------------------------


class _Base(msgspec.Struct, array_like=True):
    """A compiled project.

    Attributes:
        manifest: manifest.json, as dbt wrote it.
        texts: the compiled SQL.
        asking: the nodes that ask the warehouse while dbt compiles them.
        parsed: partial_parse.msgpack, if there are such nodes.
    """

    manifest: bytes
    texts: dict[str, CompiledText]
    asking: list[str]
    parsed: bytes


class KeptBase:
    """Base at a commit, as it was compiled before.

    Args:
        base_dir: base's worktree, with its packages.
        folder: the temporary folder in which that is.
        target_path: where base's artifacts go.
        tree: git's hash of all files of the commit, and which folder of them is the project.
        options: how dbt is called.
        config: dbt's configuration for this profile and target.
        packages: the folder of installed packages.
        cache: where it is kept.
    """

    def __init__(
        self,
        base_dir: Path,
        folder: Path,
        target_path: Path,
        tree: str,
        options: DbtOptions,
        config: Any,
        packages: Path,
        cache: Cache | None,
    ) -> None:
        self._base_dir = base_dir
        self._folder = _in_json(folder)
        self._target_path = target_path
        self._packages = sorted(packages.iterdir()) if packages.is_dir() else []
        self._cache = cache
        if cache is not None:
            self._key = cache.key(
                b"base",
                tree.encode(),
                repr((options.variables, sorted(_flags()), _target(config))).encode(),
                *_installed(),
                *_code_of_this_room(),
                *_contents(p for p in self._packages if not _is_link_into(p, folder)),
            )

    def read(self) -> tuple[Project, list[str]] | None:
        """The project, and the nodes whose compiled SQL is what the warehouse said then.

        None where it is not kept.
        """
        if self._cache is None or (names := _unpacked(self._cache, self._key)) is None:
            return None
        content = _unpacked(self._cache, self._key_with(json.loads(names)))
        if content is None:
            return None
        try:
            kept = msgspec.msgpack.decode(content, type=_Base)
        except msgspec.DecodeError:
            return None
        self._target_path.mkdir(parents=True, exist_ok=True)
        manifest = self._target_path / _MANIFEST
        manifest.write_bytes(kept.manifest.replace(_FOLDER, self._folder))
        if kept.parsed:
            (self._target_path / PARTIAL_PARSE).write_bytes(kept.parsed)
        folder = self._folder.decode()
        texts = {
            unique_id: (text and text.replace(_FOLDER.decode(), folder), macros)
            for unique_id, (text, macros) in kept.texts.items()
        }
        return with_texts(read_project(self._target_path), texts), kept.asking

    def keep(self, project: Project) -> None:
        """Keep a project that was compiled."""
        if self._cache is None or not self._is_of_the_commit(project):
            return
        folder = self._folder.decode()
        texts: dict[str, CompiledText] = {
            unique_id: (text.replace(folder, _FOLDER.decode()), node.depends_on.macros)
            for unique_id, node in project.nodes.items()
            if (text := node.compiled_code) is not None
        }
        uncompiled = [node.unique_id for node in project.uncompiled()]
        asking = sorted(asking_the_warehouse(project, (*texts, *uncompiled)))
        manifest, parsed = (
            _bytes(self._target_path / name) or b"" for name in (_MANIFEST, PARTIAL_PARSE)
        )
        kept = _Base(
            manifest.replace(self._folder, _FOLDER), texts, asking, parsed if asking else b""
        )
        names = sorted(environment_read(project) | self._asked_by_files())
        _pack(self._cache, self._key, json.dumps(names).encode())
        _pack(self._cache, self._key_with(names), msgspec.msgpack.encode(kept))

    def _key_with(self, names: list[str]) -> bytes:
        assert self._cache is not None
        asked = os.environ.keys() if ANY in names else names
        values = [(n, os.environ.get(n)) for n in sorted(asked) if not n.startswith(_SECRETS)]
        return self._cache.key(b"base compiled", self._key, repr(values).encode())

    def _asked_by_files(self) -> set[str]:
        """The environment variables that the YAML of base and its packages asks for."""
        names: set[str] = set()
        for project in (self._base_dir, *self._packages):
            for file in _files(project):
                if file.suffix in (".yml", ".yaml"):
                    text = file.read_bytes().decode("utf-8", "replace")
                    names |= facts_of(text).environment if "env_var" in text else set()
        return names

    def _is_of_the_commit(self, project: Project) -> bool:
        """Whether dbt has read nothing from outside the commit and its packages."""
        paths = {node.original_file_path for node in project.nodes.values()}
        paths |= {macro.original_file_path for macro in project.macros.values()}
        return not any(path.startswith(("/", "..")) for path in paths if path)


def _target(config: Any) -> Any:
    """All that Jinja sees of the profile's target."""
    target = config.to_target_dict()
    places = [getattr(config.credentials, name, None) for name in ("database", "schema")]
    return sorted((str(name), repr(value)) for name, value in target.items()), places


def _flags() -> list[tuple[str, str]]:
    """The environment variables that dbt may take as flags."""
    variables = os.environ.items()
    return [(n, v) for n, v in variables if n.startswith(_FLAGS) and not n.startswith(_NO_FLAGS)]


def _installed() -> Iterator[bytes]:
    """Every package of this Python, with its version: dbt, the adapter and what these call."""
    for folder in filter(None, sys.path):
        if Path(folder).is_dir():
            for name in sorted(os.listdir(folder)):  # noqa: PTH208  (Path takes ten times as long)
                if name.endswith((".dist-info", ".egg-info")):
                    yield name.encode()


def _code_of_this_room() -> Iterator[bytes]:
    """What decides how base is compiled, besides the versions."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        yield file.read_bytes()


def _is_link_into(package: Path, folder: Path) -> bool:
    """Whether a package is one of the commit's own: git's hash stands for its files."""
    return package.is_symlink() and package.resolve().is_relative_to(folder)


def _contents(folders: Iterable[Path]) -> Iterator[bytes]:
    """The files of some projects and their contents."""
    for folder in folders:
        for file in _files(folder):
            yield f"{folder.name}/{file.relative_to(folder)}".encode()
            yield hashlib.sha256(file.read_bytes()).digest()


def _files(project: Path) -> Iterator[Path]:
    """All files of a project in one order, those behind links, too; not what git and dbt write there."""
    seen: set[Path] = set()
    for where, inside, names in os.walk(project, followlinks=True):
        folder = Path(where)
        seen.add(folder.resolve())
        if folder == project:
            inside[:] = (n for n in inside if n not in _WRITTEN_BY_DBT and not n.startswith("."))
        inside[:] = sorted(
            n for n in inside if n != _PACKAGES and (folder / n).resolve() not in seen
        )
        yield from filter(Path.is_file, map(folder.joinpath, sorted(names)))


def _in_json(path: Path) -> bytes:
    return json.dumps(str(path))[1:-1].encode()


# --- the last complete artifacts -------------------------------------------------------------------


class _OfWhom(msgspec.Struct):
    """What manifest.json and run_results.json say of the command that wrote them."""

    metadata: dict[str, Any] = {}
    args: dict[str, Any] = {}


class _Complete(msgspec.Struct, array_like=True):
    """Artifacts, as far as they decide compiled SQL, and what was compiled besides."""

    files: dict[str, bytes]
    texts: dict[str, CompiledText]


class LastComplete:
    """The last artifacts of a project in which everything was compiled, or came to be.

    A later run of a part of it takes from them what is proved to be the same.

    Args:
        project_dir: of the project.
        cache: where they are kept.
    """

    def __init__(self, project_dir: Path, cache: Cache | None) -> None:
        self._cache = cache
        self._key = cache.key(b"complete", str(project_dir.resolve()).encode()) if cache else b""

    def keep(self, content: bytes, as_read: Project, project: Project) -> None:
        """Keep a project of which everything is compiled.

        Args:
            content: stands for what was read, without what differs between two compilations of it.
            as_read: the artifacts.
            project: the same with what was compiled besides.
        """
        if self._cache is None or self._cache.get(self._key) == content:
            return
        folder = Path(as_read.target_path)
        manifest, results = (_bytes(folder / name) or b"" for name in (_MANIFEST, _RUN_RESULTS))
        try:
            written_by = msgspec.json.decode(manifest, type=_OfWhom).metadata
            run = (
                msgspec.json.encode(msgspec.json.decode(results, type=_OfWhom)) if results else b""
            )
        except msgspec.DecodeError:
            return
        if written_by.get("invocation_id") != as_read.metadata.invocation_id:
            return  # another command of dbt has written it since
        compiled = {n.unique_id: project.nodes[n.unique_id] for n in as_read.uncompiled()}
        texts = {u: (node.compiled_code, node.depends_on.macros) for u, node in compiled.items()}
        files = {_MANIFEST: manifest, PARTIAL_PARSE: state_of_parsing(folder), _RUN_RESULTS: run}
        kept = _Complete({name: text for name, text in files.items() if text}, texts)
        _pack(self._cache, self._content_key(content), msgspec.msgpack.encode(kept))
        self._cache.put(self._key, content)

    def read(self, folder: Path) -> Project | None:
        """The project that was kept last; None if none was. Its files are written into a folder."""
        which = self._cache.get(self._key) if self._cache is not None else None
        content = _unpacked(self._cache, self._content_key(which)) if which is not None else None
        if content is None:
            return None
        try:
            kept = msgspec.msgpack.decode(content, type=_Complete)
        except msgspec.DecodeError:
            return None
        for name, text in kept.files.items():
            (folder / name).write_bytes(text)
        return with_texts(read_project(folder), kept.texts)

    def _content_key(self, content: bytes) -> bytes:
        assert self._cache is not None
        return self._cache.key(b"complete artifacts", self._key, content)


# --- the cache -------------------------------------------------------------------------------------


def _pack(cache: Cache | None, key: bytes, content: bytes) -> None:
    if cache is not None and len(packed := zlib.compress(content, 1)) < _LARGEST:
        cache.put(key, packed)


def _unpacked(cache: Cache | None, key: bytes) -> bytes | None:
    packed = cache.view(key) if cache is not None else None
    try:
        return zlib.decompress(packed) if packed is not None else None
    except zlib.error:
        return None


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
