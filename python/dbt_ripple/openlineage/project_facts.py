"""What every catalogue gets of a project: its relations, who made them, where their files are, and its data tests.

Of a data test: its kind, severity, arguments, column and limit. Of a file: where it is in its repository on the web,
or below the project's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from dbt_ripple.artifacts import (
    Node,
    Project,
    RunResult,
    contract_version,
    criticality,
    domain,
    is_canonical,
    is_certified,
    owner,
    owner_email,
)
from dbt_ripple.graph.git import git_text
from dbt_ripple.graph.lineage import Analysis, column_names
from dbt_ripple.graph.lineage_rows import data_type_of
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import pii_columns

_TYPES: Final = {
    "view": ("VIEW", None),
    "materialized_view": ("VIEW", "MATERIALIZED"),
    "dynamic_table": ("TABLE", "DYNAMIC"),
    "table": ("TABLE", None),
    "incremental": ("TABLE", None),
    "seed": ("TABLE", None),
    "snapshot": ("TABLE", None),
    "external": ("TABLE", "EXTERNAL"),
}
"""Materialization -> type and sub-type of the dataset; other materializations have none."""


class RelationColumn(NamedTuple):
    """A column of a relation, by the name that the warehouse or the project has for it."""

    name: str
    type: str | None
    description: str | None


class ProjectFacts:
    """What is known of a project's nodes.

    Args:
        project: the artifacts.
        analysis: what was seen in them; None where there is no SQL to be followed.
    """

    def __init__(self, project: Project, analysis: Analysis | None) -> None:
        self.project = project
        self._analysis = analysis

    @cached_property
    def pii(self) -> dict[str, list[tuple[str, str]]]:
        """Of each node the columns that hold personal data, declared or inherited, with the kind."""
        columns: dict[str, list[tuple[str, str]]] = {}
        analysis = self._analysis or Analysis({}, [], [], {})
        for pii in pii_columns(self.project, analysis):
            if pii.origin != "declassified":
                columns.setdefault(pii.unique_id, []).append((pii.column, pii.pii))
        return columns

    def column_names(self, unique_id: str) -> dict[str, str]:
        """The columns of a relation in order, by their names in lower case."""
        return column_names(
            self.project.nodes.get(unique_id),
            self._analysis.nodes.get(unique_id) if self._analysis else None,
            self.project.catalog.get(unique_id, ()),
        )

    def has_all_columns(self, node: Node) -> bool:
        """Whether `columns` has all that there are: from catalog.json, the query, or a declared asset."""
        if node.unique_id in self.project.catalog or node.resource_type == "asset":
            return True
        analysed = self._analysis.nodes.get(node.unique_id) if self._analysis else None
        return analysed is not None and analysed.status == "analysed"

    def columns(self, unique_id: str) -> list[RelationColumn]:
        """The columns of a relation in order; the types are the warehouse's, as far as they are known."""
        node = self.project.nodes.get(unique_id)
        catalog = {c.name.lower(): c for c in self.project.catalog.get(unique_id, ())}
        declared = {
            (column.name or name).lower(): column
            for name, column in (node.columns if node else {}).items()
        }
        columns = []
        for key, name in self.column_names(unique_id).items():
            there, declared_column = catalog.get(key), declared.get(key)
            description = (declared_column.description if declared_column else "") or (
                there.comment if there else ""
            )
            data_type = data_type_of(declared_column, there.type if there else None)
            columns.append(RelationColumn(name, data_type, description or None))
        return columns

    def owners(self, node: Node) -> list[tuple[str, str | None]]:
        """Name and type of the owner, and where one writes to, if that is another text."""
        name, email = owner(node, self.project), owner_email(node, self.project)
        people: list[tuple[str, str | None]] = [(name, "OWNER")] if name else []
        return [*people, (email, "CONTACT")] if email and email != name else people

    def tags(self, node: Node) -> list[tuple[str, str]]:
        """Keys and values: what the gate and the tables read of ``meta``, and dbt's own tags."""
        pairs = [
            ("contract_version", contract_version(node)),
            ("criticality", criticality(node)),
            ("domain", domain(node, self.project)),
            ("certified", "true" if is_certified(node) else None),
            ("canonical", "true" if is_canonical(node) else None),
        ]
        return [
            *((key, value) for key, value in pairs if value),
            *((tag, "true") for tag in node.tags),
        ]

    def dataset_type(self, node: Node) -> tuple[str, str | None] | None:
        """Type and sub-type of what a node is in the warehouse; None where its materialization does not say."""
        kind = node.resource_type if node.resource_type != "model" else node.materialized
        return _TYPES.get(kind or "")


DID_NOT_RUN: Final = frozenset({"skipped", "no-op", "reused"})
_DEFAULT_THRESHOLD: Final = "!=0"


def reads_of_tests(analysis: Analysis | None) -> Mapping[str, Mapping[str, list[str]]]:
    """Of each test the columns that it reads of each relation; empty where that is not known."""
    reads: dict[str, dict[str, list[str]]] = {}
    for test, unique_id, column in analysis.test_columns if analysis else ():
        reads.setdefault(test, {}).setdefault(unique_id, []).append(column)
    return reads


def classification(test: Node) -> str:
    """Which test it is: ``not_null``, ``dbt_utils.equal_rowcount``, or ``custom_sql``."""
    if test.resource_type == "unit_test":
        return "unit_test"
    metadata = test.test_metadata
    if metadata is None:
        return "custom_sql"
    return f"{metadata.namespace}.{metadata.name}" if metadata.namespace else metadata.name


def severity(test: Node) -> str:
    """``error`` or ``warn``."""
    configured = test.config.get("severity")
    return configured.lower() if isinstance(configured, str) and configured else "error"


def parameters(test: Node) -> dict[str, Any]:
    """The arguments of a generic test, without what it is about."""
    arguments = test.test_metadata.kwargs if test.test_metadata else {}
    return {key: value for key, value in arguments.items() if key not in ("model", "column_name")}


def tested_column(test: Node, names: dict[str, str], reads: Iterable[str]) -> str | None:
    """The column that a test is about; None where it is about a whole relation.

    Args:
        test: the test.
        names: the columns of the relation, by their names in lower case.
        reads: what the test reads of the relation. A test that names no column is about the only
            one that it reads.
    """
    arguments = test.test_metadata.kwargs if test.test_metadata else {}
    column = test.column_name or arguments.get("column_name")
    if isinstance(column, str) and column:
        plain = column.strip('`"[] ')
        return names.get(plain.lower(), plain)
    columns = {column for column in reads if column != ROWS}
    return next(iter(columns)) if len(columns) == 1 else None


def actual(result: RunResult) -> str | None:
    """The number of failing rows; None where the test could not be executed."""
    return None if result.failures is None else str(result.failures)


def expected(test: Node, result: RunResult) -> str | None:
    """The number of failing rows that is allowed: dbt's condition, or 0 by default."""
    if result.failures is None:
        return None
    threshold = test.config.get("warn_if" if severity(test) == "warn" else "error_if")
    return (
        "0"
        if threshold is None or "".join(str(threshold).split()) == _DEFAULT_THRESHOLD
        else str(threshold)
    )


_SCP: Final = re.compile(r"(?:[^@/\s]+@)?([^:/\s]+\.[^:/\s]+):(?!//)(.+)")
_WEB: Final = frozenset({"http", "https", "ssh", "git"})


@dataclass(frozen=True)
class SourceLocation:
    """The fields of OpenLineage's facet ``sourceCodeLocation``.

    Attributes:
        type: ``git``, or ``file`` where no repository on the web is known.
        url: of the file at the commit; of type ``file``, its path below the project's folder.
    """

    type: str
    url: str
    repo_url: str | None = None
    path: str | None = None
    version: str | None = None
    branch: str | None = None


class Repository:
    """The git repository of a project, as far as there is one.

    Args:
        project_dir: the folder of dbt_project.yml.
        project_name: of the root project; files of other packages are not in its repository.
    """

    def __init__(self, project_dir: Path, project_name: str) -> None:
        self._name = project_name
        top = git_text(project_dir, "rev-parse", "--show-toplevel")
        self.version = git_text(project_dir, "rev-parse", "--verify", "HEAD") if top else None
        self._web = web_address(git_text(project_dir, "config", "remote.origin.url") or "")
        self._branch = git_text(project_dir, "symbolic-ref", "--short", "--quiet", "HEAD")
        self._below = ""
        if top:
            below = project_dir.resolve().relative_to(Path(top).resolve()).as_posix()
            self._below = "" if below == "." else f"{below}/"

    def of(self, node: Node | None) -> SourceLocation:
        """Where a node is written; None stands for the project as a whole."""
        if node is None:
            return self.of_file("dbt_project.yml")
        if node.package_name == self._name:
            return self.of_file(node.original_file_path)
        path = f"dbt_packages/{node.package_name}/{node.original_file_path}"
        return self.root() or SourceLocation("file", f"file:{_quoted(path)}", version=self.version)

    def of_file(self, path: str) -> SourceLocation:
        """Where a file is, whose path is below the folder."""
        if self._web is None or self.version is None:
            return SourceLocation("file", f"file:{_quoted(path)}", version=self.version)
        path = self._below + path
        host = urlsplit(self._web).netloc
        folder = "-/blob" if "gitlab" in host else "src" if "bitbucket" in host else "blob"
        url = f"{self._web}/{folder}/{self.version}/{_quoted(path)}"
        return SourceLocation(
            type="git",
            url=url,
            repo_url=self._web,
            path=path,
            version=self.version,
            branch=self._branch,
        )

    def root(self) -> SourceLocation | None:
        """The repository as a whole; None where it is not on the web."""
        if self._web is None or self.version is None:
            return None
        return SourceLocation(
            type="git",
            url=self._web,
            repo_url=self._web,
            path=None,
            version=self.version,
            branch=self._branch,
        )


def web_address(remote: str) -> str | None:
    """The address of a repository on the web, without credentials; None for a folder.

    Example:
        >>> web_address("git@github.com:shop/dbt.git")
        'https://github.com/shop/dbt'
        >>> web_address("https://me:secret@gitlab.shop.com:8443/data/dbt.git")
        'https://gitlab.shop.com:8443/data/dbt'
        >>> web_address("/srv/git/dbt.git") is None
        True
    """
    remote = remote.strip().removesuffix("/").removesuffix(".git")
    url = urlsplit(remote)
    if url.scheme in _WEB and url.hostname:
        try:
            port = f":{url.port}" if url.port and url.scheme in ("http", "https") else ""
        except ValueError:
            return None
        scheme = "http" if url.scheme == "http" else "https"
        return f"{scheme}://{url.hostname}{port}{_quoted(url.path)}"
    if scp := _SCP.fullmatch(remote):
        return f"https://{scp[1]}/{_quoted(scp[2].lstrip('/'))}"
    return None


def _quoted(path: str) -> str:
    return quote(path, errors="replace")  # half a character, as dbt writes it, has no bytes
