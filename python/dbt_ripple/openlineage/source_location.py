"""Where the file of a node is: in its repository on the web, or below the project's folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from dbt_ripple.artifacts import Node
from dbt_ripple.graph.git import git_text

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
