"""Whether both sides were compiled with the same vars, as far as dbt's files tell.

dbt writes the vars of the command line to run_results.json. It writes those of the project files
nowhere, but partial_parse.msgpack has a digest of each file, and the file may still be where dbt
read it, or in git. What none of these tells counts as not proven.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.paths import text_of_file
from dbt_ripple.artifacts.read_yaml import parse_yaml
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.git import revisions

_FILE: Final = "dbt_project.yml"
_PARTIAL_PARSE: Final = "partial_parse.msgpack"
_SLACK: Final = 2.0
_KEY: Final = re.compile(r"[\w.-]+(?=\s*:)")


class _Hash(msgspec.Struct):
    name: str = ""
    checksum: str = ""


class _StateCheck(msgspec.Struct):
    vars_hash: _Hash = msgspec.field(default_factory=_Hash)
    project_hashes: dict[str, _Hash] = {}


class _Metadata(msgspec.Struct):
    project_name: str | None = None
    invocation_id: str | None = None


class _Parsed(msgspec.Struct):
    created_at: float | None = None


class _ManifestVars(msgspec.Struct):
    """What both the manifest and partial_parse.msgpack say."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    nodes: dict[str, _Parsed] = {}


class _ParsedFile(msgspec.Struct):
    checksum: _Hash = msgspec.field(default_factory=_Hash)


class _PartialParse(_ManifestVars):
    state_check: _StateCheck = msgspec.field(default_factory=_StateCheck)
    files: dict[str, _ParsedFile] = {}


_OF_NODES: Final = (".sql", ".py", ".csv")
_READ: Final = (*_OF_NODES, ".yml", ".yaml")


class FileSeen(NamedTuple):
    """A file as dbt has read it, by what it keeps of it: nothing, where it has neither of these.

    Attributes:
        digest: of all of it without the space around it; since dbt 1.12, with one space for any within it.
        texts: parts of it.
    """

    digest: str = ""
    texts: tuple[str, ...] = ()

    def holds(self, content: bytes) -> bool | None:
        """Whether the file has this content, as far as is known; None where its layout may differ."""
        # Of the project file dbt has read lines without regard to how they end.
        lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self.digest in (_sha256(content.strip()), _sha256(content), _sha256(lines)):
            return True
        text = content.decode("utf-8", "replace").replace("\r\n", "\n")
        one_line = " ".join(text.split())
        verbatim = all(part.strip() in text for part in self.texts)
        if not self.digest:
            alike = all(" ".join(part.split()) in one_line for part in self.texts)
            return True if verbatim else None if alike else False
        if self.digest != _sha256(one_line.encode()):
            return False
        return verbatim if self.texts else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _with_slashes(path: str) -> str:
    """A path that dbt wrote on Windows, as others write it; elsewhere a name may have a backslash."""
    return path if "/" in path else path.replace("\\", "/")


def files_seen(project: Project) -> dict[str, FileSeen]:
    """The project's own files as dbt has read them, by their paths; nothing is said of others.

    Of each file if partial_parse.msgpack is the manifest's, else of those of nodes and macros.
    """
    parsing = _Side(project).parsing
    seen: dict[str, FileSeen] = {}
    for node in project.nodes.values():
        if node.package_name == project.name and node.original_file_path.endswith(_OF_NODES):
            checksum = node.checksum
            kind, digest = (
                (checksum.get("name"), checksum.get("checksum"))
                if isinstance(checksum, dict)
                else ("sha256", checksum)
            )
            known = kind == "sha256" and digest
            path = _with_slashes(node.original_file_path)
            before = seen.get(path, FileSeen())
            texts = (*before.texts, node.raw_code) if node.raw_code else before.texts
            seen[path] = FileSeen(str(digest) if known else before.digest, texts)
    for macro in project.macros.values():
        path = _with_slashes(macro.original_file_path)
        if macro.package_name == project.name and path:
            before = seen.get(path, FileSeen())
            seen[path] = before._replace(texts=(*before.texts, macro.macro_sql))
    own = f"{project.name}://"
    for name, file in parsing.files.items():
        path = _with_slashes(name.removeprefix(own))
        if name.startswith(own) and path.endswith(_READ) and file.checksum.name == "sha256":
            seen[path] = seen.get(path, FileSeen())._replace(digest=file.checksum.checksum)
    digest = parsing.state_check.project_hashes.get(project.name or "")
    if digest is not None and digest.checksum:
        seen[_FILE] = FileSeen(digest.checksum)
    return seen


class Variables:
    """The vars of both sides."""

    def __init__(self, base: Project, head: Project) -> None:
        self.sides = (_Side(base), _Side(head))
        self._same: dict[str, bool] = {}
        self._compared = base.variables is not None and head.variables is not None
        self._differ = bool(base.variables or head.variables)

    def same(self, package: str) -> bool:
        """Whether every var that code of a package can ask for is proved to be the same."""
        if self._compared:
            return not self._differ
        same = self._same.get(package)
        if same is None:
            root = self.sides[1].name
            same = self._same[package] = self.same_arguments and all(
                map(self._same_file, dict.fromkeys((root, package)))
            )
        return same

    @cached_property
    def same_arguments(self) -> bool:
        """Whether the vars of the command line are the same."""
        before, now = (side.arguments for side in self.sides)
        return (before is not None and before == now) or self._same_command_line

    @cached_property
    def _same_command_line(self) -> bool:
        """Whether vars, profile and target of the command line are the same, by dbt's digest."""
        before, now = (side.state_check.vars_hash.checksum for side in self.sides)
        return bool(before) and before == now

    @cached_property
    def same_target(self) -> bool:
        """Whether both were compiled for one target, by all that the artifacts tell of it.

        That is the name of the target and of the profile, and the place of every relation.
        """
        before, now = (side.target for side in self.sides)
        base, head = (side.project.nodes for side in self.sides)
        return ((before is not None and before == now) or self._same_command_line) and all(
            (then.database, then.schema) == (node.database, node.schema)
            for unique_id, node in head.items()
            if (then := base.get(unique_id)) is not None and node.relation_name
        )

    def differing(self) -> tuple[dict[str, str], dict[str, str]] | None:
        """The vars of both sides by name, without those of files that are the same; None where not known."""
        values: list[list[tuple[str, Any]]] = [[], []]
        head = self.sides[1]
        given = [side.run_args.get("vars") for side in self.sides]
        known = [of_side for of_side in given if isinstance(of_side, dict)]
        if self.same_arguments:  # though one side may not tell them
            given = [known[0] if known else None] * 2
        elif len(known) < len(given):
            return None
        for package in dict.fromkeys((head.name, *sorted(head.packages))):
            then, now = self._of_files(package)
            if then is None or now is None or then.dispatch != now.dispatch:
                return None
            for of_side, file in zip(values, (then, now), strict=True):
                of_side.append(("" if package == head.name else package, file.variables))
        of_base, of_head = map(vars_by_name, values, given)
        return of_base, of_head

    def _same_file(self, package: str) -> bool:
        before, now = self._of_files(package)
        return before is not None and before == now

    def _of_files(self, package: str) -> tuple[_FileVars | None, _FileVars | None]:
        """What each side's project file sets, as far as it differs; None where that is not known."""
        before, now = (side.digest(package) for side in self.sides)
        if before is not None and before == now:
            return _NOTHING, _NOTHING
        texts = [side.vars_in_file(package) for side in self.sides]
        if before is None and self.sides[0].file(package) == self.sides[1].file(package):
            texts[0] = None  # the file is head's, however old it looks: base may be of elsewhere
        elif texts[0] is None:  # it may have been overwritten by head's, and git still have it
            texts[0] = self.sides[0].vars_in_git(self.sides[1].file(package), package)
        return texts[0], texts[1]


def state_of_parsing(folder: Path) -> bytes:
    """What of a folder's partial_parse.msgpack tells of vars; empty without one."""
    try:
        content = (folder / _PARTIAL_PARSE).read_bytes()
        return msgspec.msgpack.encode(msgspec.msgpack.decode(content, type=_PartialParse))
    except (OSError, msgspec.DecodeError):
        return b""


class _FileVars(NamedTuple):
    """The vars and the macro order that a project file sets."""

    variables: Any
    dispatch: Any


_NOTHING: Final = _FileVars(None, None)


def vars_by_name(sources: Iterable[tuple[str, Any]], given: Any = None) -> dict[str, str]:
    """Vars by name, each with all its values: it may have another one in each package.

    Args:
        sources: the vars that a package sets, or under no name the project.
        given: the vars of the command line: dbt looks there first, whatever the files say.
    """
    values_of: dict[str, list[Any]] = {}
    for package, variables in sources:
        for name, value in variables.items() if isinstance(variables, dict) else ():
            values_of.setdefault(str(name), []).append((package, value) if package else value)
            for inner, of_package in value.items() if isinstance(value, dict) else ():
                values_of.setdefault(str(inner), []).append((package, name, of_package))
    for name, value in given.items() if isinstance(given, dict) else ():
        if not (isinstance(value, str) and "{" in value):  # Jinja may ask for another var
            values_of[str(name)] = [value]
    return {name: repr(values) for name, values in values_of.items()}


class _Side:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.name = project.metadata.project_name or ""

    @cached_property
    def packages(self) -> set[str]:
        """The packages whose code may ask for vars."""
        return {node.package_name for node in self.project.nodes.values()}

    @cached_property
    def run_args(self) -> dict[str, Any]:
        """The arguments of the command that wrote the manifest; empty where they are not known."""
        invocation = self.project.metadata.invocation_id
        known = invocation and self.project.run_invocation == invocation
        return self.project.run_args if known else {}

    @cached_property
    def arguments(self) -> str | None:
        """The vars of the command line."""
        known = self.run_args or self._had_no_arguments
        arguments = self.run_args.get("vars", {} if known else None)
        return None if arguments is None else repr(_sorted(arguments))

    @property
    def _had_no_arguments(self) -> bool:
        """Whether dbt's digest of what it was given is that of no vars, and of some target.

        After ``dbt parse`` there is nothing else that tells. Which target it was, is not known: it is
        one of those of a profiles.yml where dbt looks for it.
        """
        wanted = self.state_check.vars_hash
        version = self.project.metadata.dbt_version
        if not wanted.checksum or not version:
            return False
        folder = Path(self.project.target_path).absolute().parent
        places = (os.environ.get("DBT_PROFILES_DIR") or folder, Path.cwd(), Path.home() / ".dbt")
        texts = [text_of_file(Path(place) / "profiles.yml") or "" for place in places]
        names = ["", *dict.fromkeys(name for text in texts for name in _KEY.findall(text))]
        return any(
            _has_digest("\0".join(("{}", profile, target, version)), wanted)
            for profile, target in product(names, names)
        )

    @cached_property
    def target(self) -> tuple[Any, ...] | None:
        """What the command line says of the target."""
        args = self.run_args
        return (args.get("target"), args.get("profile")) if args else None

    @cached_property
    def state_check(self) -> _StateCheck:
        """What dbt knows its parsing by; empty where it is not known to be the manifest's."""
        return self.parsing.state_check

    @cached_property
    def parsing(self) -> _PartialParse:
        """What partial_parse.msgpack says; empty where it is not known to be the manifest's.

        A command for which nothing has changed does not parse again, and leaves the file alone. One
        for which a project file, a var or the target has, parses every node again.
        """
        folder = Path(self.project.target_path)
        try:
            content = (folder / _PARTIAL_PARSE).read_bytes()
            partial_parse = msgspec.msgpack.decode(content, type=_PartialParse)
            if partial_parse.metadata.invocation_id != self.project.metadata.invocation_id:
                content = (folder / "manifest.json").read_bytes()
                there = msgspec.json.decode(content, type=_ManifestVars)
                if there.metadata.invocation_id != self.project.metadata.invocation_id:
                    return _PartialParse()  # of a command that has run since the project was read
                nodes = there.nodes
                if not nodes or any(
                    partial_parse.nodes.get(u) != node for u, node in nodes.items()
                ):
                    return _PartialParse()
        except (OSError, msgspec.DecodeError):
            return _PartialParse()
        return partial_parse

    def digest(self, package: str) -> tuple[str, str] | None:
        """The digest of a package's project file, and its kind."""
        checksum = self.state_check.project_hashes.get(package)
        return (
            (checksum.name, checksum.checksum)
            if checksum is not None and checksum.checksum
            else None
        )

    def file(self, package: str) -> Path | None:
        """Where the project file of a package is, or was."""
        folder = self.run_args.get("project_dir")
        if not isinstance(folder, str):
            if self.digest(package) is None:
                return None
            # if the file has that digest
            folder = self.project.project_dir or Path(self.project.target_path).absolute().parent
        root = Path(folder)
        if package == self.name:
            return root / _FILE
        content = _parsed(text_of_file(root / _FILE)) or {}
        return root / str(content.get("packages-install-path") or "dbt_packages") / package / _FILE

    def vars_in_file(self, package: str) -> _FileVars | None:
        """What a package's project file says of vars, where it is the one that dbt has read."""
        file = self.file(package)
        text = text_of_file(file) if file is not None else None
        if file is None or text is None:
            return None
        digest = self.digest(package)
        if digest is not None:
            return _vars_of(text, file) if _has_digest(text, digest) else None
        generated_at = self.project.metadata.generated_at
        written = file.stat().st_mtime
        return (
            _vars_of(text, file)
            if generated_at and written <= generated_at.timestamp() + _SLACK
            else None
        )

    def vars_in_git(self, file: Path | None, package: str) -> _FileVars | None:
        """The same of the commit of a file that has the digest of what dbt has read."""
        digest = self.digest(package)
        if digest is None or file is None:
            return None
        for content in revisions(file):
            text = content.decode("utf-8", "replace")
            if _has_digest(text, digest):
                return _vars_of(text, file)
        return None


def warning_flags(project_dir: Path) -> dict[str, Any]:
    """What a project file says of warnings that count as errors."""
    text = text_of_file(project_dir / _FILE)
    flags = (_parsed(text) or {}).get("flags") if text and "warn_error" in text else None
    names = ("warn_error", "warn_error_options")
    return {n: flags[n] for n in names if flags.get(n)} if isinstance(flags, dict) else {}


def _vars_of(text: str, file: Path) -> _FileVars | None:
    """The vars and the macro order that a project file sets; None where it is not YAML."""
    content = _parsed(text)
    if content is None or (file.parent / "vars.yml").exists():
        return None
    return _FileVars(content.get("vars"), content.get("dispatch"))


def _sorted(value: Any) -> Any:
    """A value of YAML, its keys in one order."""
    if isinstance(value, dict):
        return [(repr(key), _sorted(value[key])) for key in sorted(value, key=repr)]
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _parsed(text: str | None) -> dict[str, Any] | None:
    try:
        content = parse_yaml(text or "", "", as_dbt=True)
    except RippleError:
        return None
    return content if isinstance(content, dict) else None


def _has_digest(text: str, digest: _Hash | tuple[str, str]) -> bool:
    kind, wanted = (digest.name, digest.checksum) if isinstance(digest, _Hash) else digest
    available = kind in hashlib.algorithms_available
    return available and hashlib.new(kind, text.encode("utf-8")).hexdigest() == wanted
