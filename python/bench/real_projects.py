"""Public dbt projects, put up for run_real.py from clones that are at hand; nothing of them is in git.

What is guaranteed: each project is a git repository of its own below the working folder, with base
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

import yaml

REPOSITORY: Final = Path(__file__).parents[2]
OURS: Final = "dbt_ripple"
_UTILS: Final = "dbt-labs/dbt-utils"
_EXPECTATIONS: Final = ("metaplane/dbt-expectations", "godatadriven/dbt-date")
_ELEMENTARY: Final = ("elementary-data/dbt-data-reliability", _UTILS)

PROFILES: Final = {
    "duckdb": {"type": "duckdb", "path": "{work}/{name}.duckdb", "schema": "main", "threads": 4},
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
        edit=("models/staging/stg_products.sql", "'beverage'", "'drink'"),
        packages=tuple(dict.fromkeys((*own, *packages))),
        settings=settings,
    )


PROJECTS: Final = (
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
    RealProject(
        name="tuva",
        clone="tuva-health/tuva",
        folder="integration_tests",
        edit=("../models/core/final/core__patient.sql", "then '0-9'", "then '00-09'"),
        packages=(*_ELEMENTARY, *_EXPECTATIONS),
        local=("..",),
    ),
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


def clone_of(clones: Path, name: str) -> Path | None:
    """The git directory or checkout of a repository, in any of the usual layouts; None: not at hand."""
    owner, repository = name.partition("@")[0].split("/")
    for folder in (f"{owner}+{repository}", f"{owner}/{repository}", repository):
        for inside in ("", "repo", ".git"):
            path = clones / folder / inside
            if (path / "HEAD").is_file() or (path / ".git").is_dir():
                return path
    return None


def missing(project: RealProject, clones: Path) -> list[str]:
    """Which repositories of the project are not at hand."""
    return [
        name
        for name in (project.clone, *project.packages)
        if name != OURS and clone_of(clones, name) is None
    ]


def _checkout(source: Path, into: Path, branch: str = "HEAD") -> None:
    """The newest commit's files, as a folder that knows nothing of where it came from.

    A file whose content the clone lacks (a large one of a partial clone) is left out.
    """
    shutil.rmtree(into, ignore_errors=True)
    git = ["git", "-c", f"safe.directory={source}", "-C", str(source)]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", branch], check=True, capture_output=True, text=True
    ).stdout
    files = [line.split("\t", 1) for line in listed.split("\0") if line]
    blobs = [(*entry.split(), name) for entry, name in files if entry.split()[1] == "blob"]
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{blob}\n" for _, _, blob, _ in blobs).encode())
        asked.seek(0)
        with subprocess.Popen(
            [*git, "cat-file", "--batch"], stdin=asked, stdout=subprocess.PIPE
        ) as contents:
            out = contents.stdout
            assert out is not None
            for mode, _, _, name in blobs:
                header = out.readline().split()
                if header[1] == b"missing":
                    continue
                path = into / name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = out.read(int(header[2]))
                out.read(1)
                if mode == "120000":
                    path.symlink_to(content.decode())
                else:
                    path.write_bytes(content)


def _run(command: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(
            f"{folder.name}: {' '.join(command)} ended with {done.returncode}\n"
            f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )


def _package(name: str, clones: Path, work: Path) -> str:
    """The folder of an installed package, without what it asks dbt to download."""
    if name == OURS:
        return str(REPOSITORY)
    name, _, branch = name.partition("@")
    into = work / "packages" / name.split("/")[1]
    if not into.exists():
        source = clone_of(clones, name)
        assert source is not None
        _checkout(source, into, branch or "HEAD")
        (into / "packages.yml").unlink(missing_ok=True)
        (into / "dependencies.yml").unlink(missing_ok=True)
    return str(into)


def environment(project: RealProject) -> dict[str, str]:
    """What dbt's process needs beside the project: the stub where there is no warehouse."""
    if project.adapter == "duckdb":
        return {}
    return {"PYTHONPATH": str(Path(__file__).parent / "stub")}


def put_up(project: RealProject, clones: Path, work: Path) -> Path:
    """Check the project out, install and compile base and head; returns its dbt project's folder."""
    root = work / re.sub(r"[^a-z0-9_-]+", "-", project.name)
    source = clone_of(clones, project.clone)
    assert source is not None
    _checkout(source, root)
    folder = (root / project.folder).resolve()
    for inner in (folder, *((folder / local).resolve() for local in project.local)):
        for file in ("packages.yml", "dependencies.yml", "package-lock.yml"):
            (inner / file).unlink(missing_ok=True)
    packages = [*project.local, *(_package(p, clones, work) for p in project.packages)]
    (folder / "packages.yml").write_text(
        yaml.safe_dump({"packages": [{"local": p} for p in packages]})
    )
    settings = yaml.safe_load((folder / "dbt_project.yml").read_text())
    with (folder / "dbt_project.yml").open("a") as file:
        file.write("\n")
        for key, value in project.settings.items():
            assert key not in settings, f"{project.name}: dbt_project.yml already has {key}"
            file.write(yaml.safe_dump({key: value}, width=1000))
    output = {
        key: value.format(work=work, name=root.name) if isinstance(value, str) else value
        for key, value in PROFILES[project.adapter].items()
    }
    (folder / "profiles.yml").write_text(
        yaml.safe_dump({settings["profile"]: {"target": "bench", "outputs": {"bench": output}}})
    )
    with (root / ".gitignore").open("a") as file:
        file.write("\ntarget/\nlogs/\ndbt_packages/\n")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    _run(["git", "init", "--quiet"], root)
    _run(["git", "add", "--all", "--force", "."], root)
    _run([*git, "commit", "--quiet", "--message", "base"], root)
    dbt = str(Path(sys.executable).parent / "dbt")
    env = environment(project)
    _run([dbt, "deps", "--quiet"], folder, **env)
    _run([dbt, "compile", "--target-path", "target/base"], folder, **env)
    file_name, old, new = project.edit
    edited = folder / file_name
    text = edited.read_text()
    assert text.count(old) == 1, f"{project.name}: {file_name} has {text.count(old)} times {old}"
    edited.write_text(text.replace(old, new))
    _run([dbt, "compile", "--target-path", "target/head"], folder, **env)
    return folder


def main() -> None:
    """`real_projects.py CLONES WORK [NAME ...]`: put these up, and say where they are."""
    import time

    clones, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for project in PROJECTS:
        if sys.argv[3:] and project.name not in sys.argv[3:]:
            continue
        lacking = missing(project, clones)
        if lacking:
            print(f"{project.name}: left out, not at hand: {', '.join(lacking)}")
            continue
        start = time.monotonic()
        try:
            folder = put_up(project, clones, work)
        except (SystemExit, AssertionError) as error:
            print(f"{project.name}: {error}")
            continue
        print(f"{project.name}: {folder} ({time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
