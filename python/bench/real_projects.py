"""Public dbt projects, put up for run_real.py from clones that are at hand; nothing of them is in git.

Guaranteed: each project is a git repository of its own below the working folder, with base
as its only commit and one expression edited in the working copy; base's artifacts lie in
``target/base``, head's in ``target/head``. A project whose clones are not all at hand is left out.

Where a project has no warehouse that a machine without accounts can have, the calls of its adapter
are answered by `stub/dbt_bench_stub.py`: every query returns no rows. dbt imports that module itself,
as it does every top-level module whose name begins with ``dbt_``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

import made_packages
import yaml
from run import ROOT as REPOSITORY
from run import environment as plain

OURS: Final = "dbt_ripple"
MADE: Final = {made_packages.OBSERVER: 1_100, made_packages.UPLOADER: 150}
"""Packages that made_packages.py makes, with how many macros: as many as the two it stands in for."""
SHOP: Final = REPOSITORY / "integration_tests"
_NOT_OF_THE_SHOP: Final = ("target", "dbt_packages", "logs", "twin", "stories", "empty", "expected")
_DOWNLOADS: Final = ("packages.yml", "dependencies.yml")
_UTILS: Final = "dbt-labs/dbt-utils"
_EXPECTATIONS: Final = ("metaplane/dbt-expectations", "godatadriven/dbt-date")
_ELEMENTARY: Final = ("elementary-data/dbt-data-reliability", _UTILS)

PROFILES: Final = {
    "duckdb": {"type": "duckdb", "path": "", "schema": "main", "threads": 4},
    "bigquery": {
        "type": "bigquery",
        "method": "oauth-secrets",
        "token": "none",
        "project": "bench",
        "dataset": "bench",
        "threads": 4,
    },
    "snowflake": {
        "type": "snowflake",
        "account": "bench",
        "user": "bench",
        "password": "none",
        "database": "bench",
        "warehouse": "bench",
        "schema": "bench",
        "threads": 4,
    },
    "trino": {
        "type": "trino",
        "method": "none",
        "user": "bench",
        "host": "localhost",
        "port": 1,
        "database": "hive",
        "schema": "bench",
        "threads": 4,
    },
}
"""What profiles.yml says for each adapter. Nothing listens there, and nothing is asked for a secret."""


@dataclass(frozen=True)
class RealProject:
    """One project: where it comes from, what it is installed with, and the edit.

    Args:
        name: what the table calls it.
        clone: ``owner/name`` of the repository.
        folder: the dbt project in it.
        adapter: of `PROFILES`; all but duckdb are stubbed.
        packages: ``owner/name`` of every package that dbt installs; `OURS` is this checkout.
        local: packages of the repository itself, relative to `folder`.
        edit: file (relative to `folder`), what to replace (once), and by what.
        settings: what is laid over dbt_project.yml.
    """

    name: str
    clone: str
    edit: tuple[str, str, str]
    folder: str = "."
    adapter: str = "duckdb"
    packages: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)


def _jaffle(beside: str, packages: tuple[str, ...] = (), **settings: object) -> RealProject:
    """jaffle-shop with one more package."""
    own = (_UTILS, "godatadriven/dbt-date", "dbt-labs/dbt-audit-helper")
    return RealProject(
        name="jaffle-shop" + (f" + {beside}" if beside else ""),
        clone="dbt-labs/jaffle-shop",
        edit=(
            "models/staging/stg_orders.sql",
            "{{ cents_to_dollars('tax_paid') }} as",
            "{{ cents_to_dollars('tax_paid') }} + 0 as",
        ),
        packages=tuple(dict.fromkeys((*own, *packages))),
        settings=settings,
    )


def _shop(beside: str = "", *, settings: dict[str, object] | None = None) -> RealProject:
    """The shop of this checkout, which needs no clone, with at most one package."""
    return RealProject(
        name="our shop" + (f" + {beside}" if beside else ""),
        clone=OURS,
        edit=(
            "models/staging/stg_orders.sql",
            "coalesce(status_mapping.status, 'unknown')",
            "coalesce(status_mapping.status, 'other')",
        ),
        packages=(beside,) if beside else (),
        settings=settings or {},
    )


def _tuva(name: str, *packages: str) -> RealProject:
    """tuva's integration tests, whose seeds have a hook each."""
    return RealProject(
        name=name,
        clone="tuva-health/tuva",
        folder="integration_tests",
        edit=("../models/core/final/core__patient.sql", "then '0-9'", "then '00-09'"),
        packages=tuple(dict.fromkeys((*packages, _UTILS, *_EXPECTATIONS))),
        local=("..",),
    )


PROJECTS: Final = (
    _shop(),
    _shop("observer"),
    _shop("uploader", settings={"on-run-end": ["{{ uploader.upload_all(results) }}"]}),
    _shop(OURS, settings={"on-run-end": ["{{ dbt_ripple.record_run(results) }}"]}),
    _jaffle(""),
    _jaffle(
        "elementary",
        _ELEMENTARY,
        flags={"require_explicit_package_overrides_for_builtin_materializations": False},
    ),
    _jaffle(
        "dbt_artifacts",
        ("brooklyn-data/dbt_artifacts",),
        **{"on-run-end": ["{{ dbt_artifacts.upload_results(results) }}"]},
    ),
    _jaffle("dbt_expectations", _EXPECTATIONS),
    _jaffle(
        "dbt_project_evaluator",
        ("dbt-labs/dbt-project-evaluator",),
        dispatch=[{"macro_namespace": "dbt", "search_order": ["dbt_project_evaluator", "dbt"]}],
    ),
    _jaffle("dbt_ripple", (OURS,), **{"on-run-end": ["{{ dbt_ripple.record_run(results) }}"]}),
    _tuva("tuva"),
    _tuva("tuva + elementary", *_ELEMENTARY),
    RealProject(
        name="dbt_shopify",
        clone="fivetran/dbt_shopify",
        folder="integration_tests",
        adapter="snowflake",
        edit=(
            "../models/rest/staging/stg_shopify__order_line.sql",
            "gift_card as is_gift_card",
            "not gift_card as is_gift_card",
        ),
        packages=("fivetran/dbt_fivetran_utils@releases/v0.4.latest", _UTILS),
        local=("..",),
    ),
    RealProject(
        name="dbt-project-evaluator",
        clone="dbt-labs/dbt-project-evaluator",
        folder="integration_tests",
        edit=("models/staging/source_1/stg_model_3.sql", "'blue'", "'green'"),
        packages=(_UTILS,),
        local=("..", "exclude_package"),
    ),
    RealProject(
        name="cal-itp",
        clone="cal-itp/data-infra",
        folder="warehouse",
        adapter="bigquery",
        edit=(
            "models/staging/payments/littlepay/stg_littlepay__refunds.sql",
            "{{ trim_make_empty_string_null('reason') }} AS reason",
            "UPPER({{ trim_make_empty_string_null('reason') }}) AS reason",
        ),
        packages=(_UTILS, *_EXPECTATIONS),
    ),
    RealProject(
        name="spellbook",
        clone="duneanalytics/spellbook",
        folder="dbt_subprojects/daily_spellbook",
        adapter="trino",
        edit=(
            "models/tornado_cash/ethereum/tornado_cash_ethereum_deposits.sql",
            ", 'ETH' AS currency_symbol",
            ", 'WETH' AS currency_symbol",
        ),
        packages=(_UTILS, "starburstdata/dbt-trino-utils"),
    ),
)


class PutUpError(Exception):
    """A project cannot be put up; says why."""


def clone_of(clones: Path | None, name: str) -> Path | None:
    """The git directory or checkout of a repository, in any of the usual layouts; None: not at hand."""
    owner, repository = name.partition("@")[0].split("/")
    if clones is None:
        return None
    for folder in (f"{owner}+{repository}", f"{owner}/{repository}", repository):
        for inside in ("", "repo", ".git"):
            path = clones.resolve() / folder / inside
            if (path / "HEAD").is_file() or (path / ".git").is_dir():
                return path
    return None


def _cloned(project: RealProject) -> list[str]:
    return [n for n in (project.clone, *project.packages) if n not in (OURS, *MADE)]


def missing(project: RealProject, clones: Path | None) -> list[str]:
    """Which repositories of the project are not at hand."""
    return [name for name in _cloned(project) if clone_of(clones, name) is None]


def _head(clones: Path | None, name: str) -> tuple[str, str]:
    """The git directory of ``owner/name[@branch]``, and the commit that is taken of it."""
    found = clone_of(clones, name)
    assert found is not None
    branch = name.partition("@")[2] or "HEAD"
    git = ["git", "-c", "safe.directory=*", "-C", str(found), "rev-parse", "--verify"]
    for ref in (branch, f"origin/{branch}"):
        done = subprocess.run([*git, f"{ref}^{{commit}}"], capture_output=True, text=True)
        if done.returncode == 0:
            return str(found), done.stdout.strip()
    raise PutUpError(f"{name}: the clone has no branch {branch}")


def _checkout(clones: Path | None, name: str, into: Path) -> None:
    """The files of a commit, as a folder that knows nothing of where it came from.

    A file whose content the clone lacks (a large one of a partial clone) is left out.
    """
    shutil.rmtree(into, ignore_errors=True)
    source, commit = _head(clones, name)
    git = ["git", "-c", "safe.directory=*", "-C", source]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", commit], check=True, capture_output=True, text=True
    ).stdout
    entries = [line.split("\t", 1) for line in listed.split("\0") if line]
    files = [(*entry.split(), path) for entry, path in entries if entry.split()[1] == "blob"]
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{blob}\n" for _, _, blob, _ in files).encode())
        asked.seek(0)
        with subprocess.Popen(
            [*git, "cat-file", "--batch"], stdin=asked, stdout=subprocess.PIPE
        ) as contents:
            out = contents.stdout
            assert out is not None
            for mode, _, _, name in files:
                header = out.readline().split()
                if header[1] == b"missing":
                    continue
                content = out.read(int(header[2]))
                out.read(1)
                path = into / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if mode == "120000":
                    path.symlink_to(content.decode())
                else:
                    path.write_bytes(content)


def _run(command: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env={**plain(), **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise PutUpError(
            f"{folder.name}: {' '.join(command)} ended with {done.returncode}\n"
            f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )


def _package(name: str, clones: Path | None, work: Path) -> str:
    """The folder of an installed package, without what it asks dbt to download."""
    if name == OURS:
        return str(REPOSITORY)
    into = work / "packages" / name.partition("@")[0].split("/")[-1]
    if name in MADE:
        shutil.rmtree(into, ignore_errors=True)
        made_packages.write(into, name, MADE[name])
    elif not into.exists():
        _checkout(clones, name, into)
        for file in _DOWNLOADS:
            (into / file).unlink(missing_ok=True)
    return str(into)


def environment(project: RealProject) -> dict[str, str]:
    """The environment of its processes: with this checkout, and the stub where it has no warehouse."""
    stub = [] if project.adapter == "duckdb" else [str(Path(__file__).parent / "stub")]
    return {**plain(), "PYTHONPATH": os.pathsep.join([*stub, str(REPOSITORY / "python")])}


def put_up(project: RealProject, clones: Path | None, work: Path, python: str) -> Path:
    """Check the project out, install and compile base and head, unless that is done.

    Args:
        python: the interpreter of the environment with dbt and the project's adapter.

    Returns:
        The dbt project's folder, absolute.

    Raises:
        PutUpError: a command failed; says which, and its last lines.
    """
    root = work / re.sub(r"[^a-z0-9_-]+", "-", project.name)
    folder = (root / project.folder).resolve()
    stamp = work / f"{root.name}.put-up"
    made_of = repr((project, [_head(clones, name) for name in _cloned(project)]))
    of_this_checkout = {OURS, *MADE} & {project.clone, *project.packages}
    if not of_this_checkout and stamp.exists() and stamp.read_text() == made_of:
        return folder
    stamp.unlink(missing_ok=True)
    if project.clone == OURS:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(SHOP, root, ignore=shutil.ignore_patterns(*_NOT_OF_THE_SHOP))
    else:
        _checkout(clones, project.clone, root)
    for inner in (folder, *((folder / local).resolve() for local in project.local)):
        for file in (*_DOWNLOADS, "package-lock.yml"):
            (inner / file).unlink(missing_ok=True)
    packages = [*project.local, *(_package(p, clones, work) for p in project.packages)]
    listed = {"packages": [{"local": package} for package in packages]}
    (folder / "packages.yml").write_text(yaml.safe_dump(listed))
    settings = yaml.safe_load((folder / "dbt_project.yml").read_text())
    with (folder / "dbt_project.yml").open("a") as file:
        file.write("\n")
        for key, value in project.settings.items():
            assert key not in settings, f"{project.name}: dbt_project.yml already has {key}"
            file.write(yaml.safe_dump({key: value}, width=1000))
    output = dict(PROFILES[project.adapter])
    if "path" in output:
        output["path"] = str(work / f"{root.name}.duckdb")
    (folder / "profiles.yml").write_text(
        yaml.safe_dump({settings["profile"]: {"target": "bench", "outputs": {"bench": output}}})
    )
    with (root / ".gitignore").open("a") as file:
        file.write("\ntarget/\nlogs/\ndbt_packages/\n")
    dbt = str(Path(python).with_name("dbt"))
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    _run([*git, "init", "--quiet"], root)
    _run(
        [*git, "add", "--all", "--force", "."], root
    )  # what a project ignores it may have all the same
    _run([dbt, "deps", "--quiet"], folder, **environment(project))
    _run([*git, "add", "--all"], root)
    _run([*git, "commit", "--quiet", "--message", "base"], root)
    _run([dbt, "compile", "--target-path", "target/base"], folder, **environment(project))
    name, old, new = project.edit
    text = (folder / name).read_text()
    if text.count(old) != 1:
        raise PutUpError(f"{project.name}: {name} has {old!r} {text.count(old)} times, not once")
    (folder / name).write_text(text.replace(old, new))
    # Head starts from what base has parsed, as a CI runner with a cache does.
    shutil.copytree(folder / "target" / "base", folder / "target" / "head")
    _run([dbt, "compile", "--target-path", "target/head"], folder, **environment(project))
    stamp.write_text(made_of)
    return folder
