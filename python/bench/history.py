"""What `dbt-ripple select` says of a public project's last commits, against what they changed.

    python python/bench/history.py REPOSITORY [--pairs 10] [--project-dir integration_tests]
        [--until REV] [--vars '{a: b}'] [--package NAME=PATH[@REV]]... [--work DIR]
    python python/bench/history.py --table [--work DIR]

REPOSITORY is a path or a URL. The last commits of its first-parent line that touch the dbt project
are built on DuckDB in a folder of their own, each as CI does it: base by `dbt seed`, `dbt build` and
`dbt docs generate`, head by `dbt compile` over a copy of base's warehouse. Head is then built, too,
and what came out is compared with `dbt-ripple select`:

* relations: rows as bags, each column as a bag, names and types of columns;
* tests: their status, and how many rows they returned;
* what differs between two builds of one commit (a clock, a random number, rows in no order) proves
  nothing: the oldest commit is built twice, and so is every base of which something seems missed.

*Missed* is a relation that differs and is not in `models`, or a test whose outcome differs and that
is neither selected nor proven by a selected test whose outcome differs. (A proven test that passes
on head is not missed, whatever base said of it: that is what was proven.)

Packages are installed by `dbt deps`; with ``--package`` nothing is downloaded, and they are copied
from folders or git repositories instead, those that packages need included. Builds are kept in the
work folder, so that a second run only asks `dbt-ripple` again. ``--table`` prints what is there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import duckdb
import yaml

REPOSITORY: Final = Path(__file__).parents[2]
WORK: Final = REPOSITORY / "target" / "history"
_BIN: Final = Path(sysconfig.get_path("scripts"))
_TOUCH: Final = (".sql", ".yml", ".yaml", ".csv", ".py")
_WHERE: Final = (
    *("models", "seeds", "macros", "snapshots", "tests", "data-tests", "analyses"),
    *("dbt_project.yml", "packages.yml", "dependencies.yml", "data"),
)
_ROWS: Final = "*rows*"
_SELECT: Final = "import sys; from dbt_ripple.cli import main; sys.exit(main())"
_RELATIONS: Final = frozenset({"model", "seed", "snapshot"})


class CannotBuildError(Exception):
    """A commit that dbt cannot parse or a pair that it cannot compile: said, and left out."""


@dataclass
class Built:
    """What a build of a commit left.

    Attributes:
        manifest: the nodes of its manifest.
        outcomes: by test, its status and how many rows it returned.
        built: by model, seed and snapshot, the status of its run.
        holds: by unique_id, the type and a digest of each column, and of the rows.
    """

    manifest: dict[str, Any]
    outcomes: dict[str, tuple[str, int | None]]
    built: dict[str, str]
    holds: dict[str, dict[str, list[str]]]


@dataclass
class Pair:
    """What came out for one pair of commits; numbers are those of the table.

    Attributes:
        unseen_by_dbt: tests that are selected, and not by ``state:modified+``, although a relation
            that they read differs between the two builds: their result can differ.
    """

    base: str
    head: str
    subject: str = ""
    moved: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    selected: list[str] = field(default_factory=list)
    proven: list[str] = field(default_factory=list)
    without_facts: int = 0
    state_modified: int = 0
    seen_by_dbt: list[str] = field(default_factory=list)
    unseen_by_dbt: list[str] = field(default_factory=list)
    differed: list[str] = field(default_factory=list)
    cannot_run: int = 0
    tests: int = 0
    models: int = 0
    seeds: int = 0
    unbuilt: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None
    crashed: bool = False
    reasons: dict[str, str] = field(default_factory=dict)


# -- the commits ----------------------------------------------------------------------------------


class History:
    """One public project: its commits, and what is built of them."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.git = _git_folder(args.repository, args.work)
        self.name = args.name or re.sub(r"\.git$", "", _name_of(args.repository))
        self.work: Path = args.work / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.vars = ["--vars", args.vars] if args.vars else []
        self.selections: dict[str, dict[str, Any]] = {}

    def run_git(self, *args: str) -> bytes:
        """What git prints."""
        command = ["git", f"--git-dir={self.git}", *args]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def commits(self) -> list[str]:
        """The last commits that touch the dbt project, oldest first; one more than pairs."""
        output = self.run_git(
            "log",
            "--first-parent",
            "--format=%x00%H",
            "--name-only",
            "--no-renames",
            self.args.until,
        )
        commits: list[str] = []
        for part in output.decode(errors="replace").split("\0")[1:]:
            commit, *files = part.split()
            if self.touches(commit, files):
                commits.append(commit)
            if len(commits) > self.args.pairs:
                break
        return commits[::-1]

    def touches(self, commit: str, files: list[str]) -> bool:
        """Whether a commit changes what dbt reads."""
        if not files:  # of a merge, git lists no files
            output = self.run_git("diff", "--name-only", "--no-renames", f"{commit}^", commit)
            files = output.decode(errors="replace").split()
        inside = [f.removeprefix(f"{self.args.project_dir}/") for f in files]
        return any(f.split("/")[0] in _WHERE and f.endswith(_TOUCH) for f in inside)

    def extract(self, commit: str, folder: Path) -> None:
        """Write the files of a commit; those that a partial copy lacks come from ``--lacking``."""
        listed = self.run_git("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
        entries = [entry.split(b"\t", 1) for entry in listed if entry]
        blobs = {os.fsdecode(path): line.split()[2] for line, path in entries if b" blob " in line}
        command = ["git", f"--git-dir={self.git}", "cat-file", "--batch"]
        asked = b"\n".join(blobs.values()) + b"\n"
        answer = BytesIO(
            subprocess.run(command, input=asked, capture_output=True, check=True).stdout
        )
        for path in blobs:
            header = answer.readline().split()
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if header[1:] != [b"missing"]:
                file.write_bytes(answer.read(int(header[2])))
                answer.read(1)
            elif self.args.lacking and (self.args.lacking / file.name).exists():
                shutil.copy(self.args.lacking / file.name, file)

    def subject(self, commit: str) -> str:
        """The first line of its message."""
        return self.run_git("log", "-1", "--format=%s", commit).decode(errors="replace").strip()

    def checked_out(self, commit: str) -> Path:
        """The dbt project of a commit, with its packages."""
        folder = self.work / commit[:10] / "src"
        project = folder / self.args.project_dir
        if not (folder / ".done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            self.extract(commit, folder)
            self.install(project)
            (folder / ".done").touch()
        return project

    def install(self, project: Path) -> None:
        """The packages of a project."""
        into = project / "dbt_packages"
        if not self.args.package:
            if any((project / f).exists() for f in ("packages.yml", "dependencies.yml")):
                self.dbt(project, project / "target", "deps")
            return
        into.mkdir(exist_ok=True)
        wanted = _yaml(project / "packages.yml").get("packages") or []
        for file in ("packages.yml", "package-lock.yml"):
            (project / file).unlink(missing_ok=True)  # dbt loads what is in the folder
        for local in (entry["local"] for entry in wanted if "local" in entry):
            place = (project / local).resolve()
            name = _yaml(place / "dbt_project.yml").get("name")
            if name:  # else it is not in the repository; dbt says so, unless --package has it
                (into / name).symlink_to(place)
        for package in self.args.package:
            name, _, place = package.partition("=")
            path, _, rev = place.partition("@")
            if (into / name).exists():
                continue
            if (Path(path) / "dbt_project.yml").exists():
                shutil.copytree(path, into / name)
            else:
                command = ["git", f"--git-dir={path}", "archive", rev or "HEAD"]
                archive = subprocess.run(command, check=True, capture_output=True).stdout
                _extract(archive, into / name)

    # -- dbt ---------------------------------------------------------------------------------------

    def dbt(self, project: Path, target: Path, *command: str) -> str:
        """Run dbt with its artifacts and its warehouse in a folder; what it printed.

        Raises:
            CannotBuildError: it left no manifest.
        """
        target.mkdir(parents=True, exist_ok=True)
        profile = _yaml(project / "dbt_project.yml").get("profile") or "default"
        output = {
            "type": "duckdb",
            "path": str(target / "warehouse.duckdb"),
            "schema": self.args.schema,
            "threads": self.args.threads,
        }
        (target / "profiles.yml").write_text(
            yaml.safe_dump({profile: {"target": "dev", "outputs": {"dev": output}}})
        )
        where = ["--project-dir", str(project), "--profiles-dir", str(target)]
        if command != ("deps",):
            where += ["--target-path", str(target), "--no-partial-parse", *self.vars]
        environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        run = subprocess.run(
            [str(_BIN / "dbt"), "--log-path", str(target / "logs"), *command, *where],
            capture_output=True,
            text=True,
            check=False,
            cwd=project,
            env=environment,
        )
        (target / f"{command[0]}.txt").write_text(run.stdout + run.stderr)
        if command[0] not in ("deps", "docs") and not (target / "manifest.json").exists():
            raise CannotBuildError(_why(run.stdout + run.stderr))
        return run.stdout

    def built(self, commit: str, again: str = "") -> Built:
        """A commit, built; ``again`` names another build of it.

        Raises:
            CannotBuildError: dbt cannot parse it.
        """
        folder = self.work / commit[:10]
        target = folder / f"built{again}"
        if (target / "error.txt").exists():
            raise CannotBuildError((target / "error.txt").read_text())
        if not (target / "holds.json").exists():
            shutil.rmtree(target, ignore_errors=True)
            try:
                project = self.checked_out(commit)
                if self.args.load:
                    target.mkdir(parents=True, exist_ok=True)
                    with duckdb.connect(str(target / "warehouse.duckdb")) as connection:
                        connection.execute(self.args.load.replace("{project}", str(project)))
                self.dbt(project, target, "seed", "--full-refresh")
                for file in ("manifest.json", "run_results.json"):
                    (target / file).unlink(missing_ok=True)
                # Seeds stand in for sources that nothing orders: they are there before.
                self.dbt(project, target, "build", "--exclude-resource-type", "seed")
                if not (target / "run_results.json").exists():
                    raise CannotBuildError(_why((target / "build.txt").read_text()))
            except CannotBuildError as error:
                (target / "error.txt").write_text(str(error))
                raise
            manifest = json.loads((target / "manifest.json").read_text())
            holds = _holds(target / "warehouse.duckdb", manifest)
            (target / "holds.json").write_text(json.dumps(holds))
        if not (target / "catalog.json").exists() and (target / "warehouse.duckdb").exists():
            self.catalogue(self.checked_out(commit), target)
        manifest = json.loads((target / "manifest.json").read_text())
        results = json.loads((target / "run_results.json").read_text())["results"]
        tests = {r["unique_id"]: (r["status"], r["failures"]) for r in results}
        return Built(
            manifest["nodes"],
            {u: outcome for u, outcome in tests.items() if u.startswith("test.")},
            {u: status for u, (status, _) in tests.items() if not u.startswith("test.")},
            json.loads((target / "holds.json").read_text()),
        )

    def catalogue(self, project: Path, target: Path) -> None:
        """Make the catalog that is kept with a state, apart from the artifacts of the build."""
        apart = target / "docs"
        apart.mkdir(exist_ok=True)
        shutil.copy(target / "warehouse.duckdb", apart / "warehouse.duckdb")
        self.dbt(project, apart, "docs", "generate", "--no-compile")
        (apart / "warehouse.duckdb").unlink()
        shutil.move(apart / "catalog.json", target / "catalog.json")

    def compiled(self, base: str, head: str) -> Path:
        """The folder of head's artifacts, compiled as CI does over a copy of base's warehouse."""
        target = self.work / head[:10] / f"on-{base[:10]}"
        if not (target / "manifest.json").exists():
            target.mkdir(parents=True, exist_ok=True)
            if not self.args.empty:
                there = self.work / base[:10] / "built" / "warehouse.duckdb"
                shutil.copy(there, target / "warehouse.duckdb")
            self.dbt(self.checked_out(head), target, "compile")
            (target / "warehouse.duckdb").unlink(missing_ok=True)
        return target

    def select(self, base: str, head: str, *options: str) -> dict[str, Any]:
        """What `dbt-ripple select` says.

        Raises:
            CannotBuildError: it refuses to say anything.
        """
        command = [sys.executable, "-c", _SELECT, "select", "--format", "json", *options]
        command += ["--state", str(self.work / base[:10] / "built")]
        command += ["--project-dir", str(self.checked_out(head))]
        command += ["--target-path", str(self.compiled(base, head))]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1) or not run.stdout.startswith("{"):
            raise CannotBuildError(f"dbt-ripple: {run.stderr.strip()[-500:]}")
        (self.work / head[:10] / "said.txt").write_text(run.stderr)
        document: dict[str, Any] = json.loads(run.stdout)
        return document

    # -- the comparison ----------------------------------------------------------------------------

    def volatile(self, commit: str, *, anew: bool = False) -> set[tuple[str, str]]:
        """What of a commit differs between two builds of it; ``anew`` makes one of them now."""
        then = self.built(commit).holds
        differing = set(_differing(then, self.built(commit, "-again").holds))
        if anew:  # a clock may show only after a while
            shutil.rmtree(self.work / commit[:10] / "built-again")
            differing |= set(_differing(then, self.built(commit, "-again").holds))
        return differing

    def pair(self, base: str, head: str) -> Pair:
        """What a change did, and what was said of it."""
        pair = Pair(base[:10], head[:10], self.subject(head))
        try:
            before, now = self.built(base), self.built(head)
            begun = time.monotonic()
            selection = self.select(base, head)
            pair.seconds = time.monotonic() - begun
            bare = self.select(base, head, "--no-facts")
            full = self.select(base, head, "--full")
        except CannotBuildError as error:
            pair.error = str(error)
            return pair
        pair.selected = [test["unique_id"] for test in selection["tests"]]
        pair.reasons = {test["unique_id"]: test["reason"] for test in selection["tests"]}
        pair.proven = [test["unique_id"] for test in selection["proven"]]
        pair.without_facts = len(bare["tests"])
        pair.state_modified = selection["counts"]["state_modified_tests"]
        pair.tests = selection["counts"]["all_tests"]
        pair.models = len(selection["models"])
        pair.seen_by_dbt = [test["unique_id"] for test in full["tests"]]
        pair.seeds = sum(model.startswith("seed.") for model in selection["models"])
        noise = self.noise()
        self.selections[pair.head] = selection
        self.compare(pair, before, now, selection, noise)
        if pair.missed:
            self.noise(noise | self.volatile(base, anew=True))
            self.compare(pair, before, now, selection, self.noise())
        return pair

    def noise(self, differing: set[tuple[str, str]] | None = None) -> set[tuple[str, str]]:
        """What is known to differ between two builds of one commit."""
        file = self.work / "volatile.json"
        if differing is not None:
            file.write_text(json.dumps(sorted(differing)))
        elif not file.exists():
            return set()
        return {(u, c) for u, c in json.loads(file.read_text())}

    def compare(
        self,
        pair: Pair,
        before: Built,
        now: Built,
        selection: dict[str, Any],
        noise: set[tuple[str, str]],
    ) -> None:
        """Fill in what moved, what differed and what of it was missed."""
        loud = {unique_id for unique_id, _ in noise}
        differing = set(_differing(before.holds, now.holds)) - noise
        # The rows of a relation one column of which is noise are noise.
        moved = {u for u, c in differing if not (c == _ROWS and u in loud)}
        failed = {
            u
            for u, status in now.built.items()
            if status == "error" and before.built.get(u) == "success"
        }
        pair.moved = sorted(moved | failed)
        models = set(selection["models"])
        pair.missed = [u for u in pair.moved if u not in models]
        selected = set(pair.selected)
        pair.unseen_by_dbt = [
            test
            for test in pair.selected
            if test not in pair.seen_by_dbt
            and not set(pair.moved).isdisjoint(now.manifest[test]["depends_on"]["nodes"])
        ]
        rests_on = {test["unique_id"]: test["facts"] for test in selection["proven"]}
        pair.differed = []
        different = {
            test: outcome
            for test, outcome in now.outcomes.items()
            if outcome != before.outcomes.get(test, ("pass", 0))
        }
        for test, (status, _) in different.items():
            if status == "skipped":
                continue  # a model above it failed, and is among those that moved
            pair.differed.append(test)
            grounds = [t for t in rests_on.get(test, ()) if t in selected and t in different]
            reads = set(now.manifest[test]["depends_on"]["nodes"])
            said_to_pass = test in rests_on and status == "pass"
            if test not in selected and not grounds and not said_to_pass and not reads & loud:
                pair.missed.append(test)
        pair.unbuilt = sorted(
            u
            for u in models
            if "error" in (sides := (before.built.get(u), now.built.get(u))) or "skipped" in sides
        )
        pair.cannot_run = sum(status in ("error", "skipped") for status, _ in now.outcomes.values())

    def run(self) -> list[Pair]:
        """All pairs, written to the work folder and said one by one."""
        commits = self.commits()
        print(f"{self.name}: {len(commits) - 1} pairs", file=sys.stderr)
        pairs = []
        for base, head in itertools.pairwise(commits):
            if not (self.work / "volatile.json").exists():
                try:
                    self.noise(self.volatile(base))
                except CannotBuildError as error:
                    print(f"  {base[:10]} cannot be built: {error}", file=sys.stderr)
            try:
                pair = self.pair(base, head)
            except Exception as error:  # the other pairs are not lost by it, and it is told
                traceback.print_exc()
                pair = Pair(base[:10], head[:10], error=f"{type(error).__name__}: {error}")
                pair.crashed = True
            pairs.append(pair)
            print(f"  {_line(pair)}", file=sys.stderr, flush=True)
            self.keep(pairs)
        for pair in pairs:
            if pair.error is None:  # what is noise may have been found out later
                sides = self.built(pair.base), self.built(pair.head)
                self.compare(pair, *sides, self.selections[pair.head], self.noise())
        self.keep(pairs)
        return pairs

    def keep(self, pairs: list[Pair]) -> None:
        """Write what is known of the pairs so far."""
        (self.work / "pairs.json").write_text(json.dumps([vars(p) for p in pairs], indent=1))


# -- what a build holds ---------------------------------------------------------------------------


def _holds(warehouse: Path, manifest: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Each relation's columns and rows: a type, and a digest of the bag."""
    digests_of: dict[str, dict[str, list[str]]] = {}
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        for unique_id, node in manifest["nodes"].items():
            if node["resource_type"] not in _RELATIONS or not node.get("relation_name"):
                continue
            try:
                columns = connection.execute(f"describe {node['relation_name']}").fetchall()
                names = {str(name): str(type_) for name, type_, *_ in columns}
                quoted = ['"' + name.replace('"', '""') + '"' for name in sorted(names)]
                bags = [
                    f"sum(hash({name})::hugeint)" for name in (*quoted, f"({','.join(quoted)})")
                ]
                values = connection.execute(
                    f"select count(*), {', '.join(bags)} from {node['relation_name']}"
                ).fetchone()
            except duckdb.Error:
                continue  # it is not there, or a view that cannot be read
            assert values is not None
            count, *digests = map(str, values)
            digests_of[unique_id] = {
                name: [names[name], digest, count]
                for name, digest in zip(sorted(names), digests, strict=False)
            }
            digests_of[unique_id][_ROWS] = ["", digests[-1], count]
    return digests_of


def _differing(
    before: dict[str, dict[str, list[str]]], now: dict[str, dict[str, list[str]]]
) -> Iterator[tuple[str, str]]:
    """The relations and columns that differ, or are on one side only; a relation that is gone aside."""
    for unique_id, here in now.items():
        then = before.get(unique_id, {})
        for name in {**here, **then}:
            if here.get(name) != then.get(name):
                yield unique_id, name


# -- helpers ---------------------------------------------------------------------------------------


def _git_folder(repository: str, work: Path) -> Path:
    """The git directory of a path, or of a copy of a URL."""
    path = Path(repository)
    if path.exists():
        for inside in (path / ".git", path / "repo", path):
            if (inside / "HEAD").exists():
                return inside
        raise SystemExit(f"{path} is no git repository")
    copy = work / ".git-copies" / _name_of(repository)
    if not copy.exists():
        subprocess.run(["git", "clone", "--bare", repository, str(copy)], check=True)
    return copy


def _name_of(repository: str) -> str:
    return re.split(r"[/+]", repository.rstrip("/"))[-1]


def _extract(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def _yaml(file: Path) -> dict[str, Any]:
    return (yaml.safe_load(file.read_text()) or {}) if file.exists() else {}


def _why(printed: str) -> str:
    """The line of dbt's output that says what is wrong."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
    lines = [line.strip() for line in plain.splitlines()]
    at = next((i for i, line in enumerate(lines) if "Error" in line), len(lines) - 3)
    return " ".join(lines[max(at, 0) : at + 4])[:400]


def _line(pair: Pair) -> str:
    if pair.error:
        return f"{pair.base}..{pair.head} left out: {pair.error[:300]}"
    return (
        f"{pair.base}..{pair.head} moved {len(pair.moved)}, missed {len(pair.missed)}, selected "
        f"{len(pair.selected)} ({pair.without_facts} without facts) of {pair.state_modified}, "
        f"differed {len(pair.differed)}, cannot run {pair.cannot_run} of {pair.tests} "
        f"[{pair.subject[:50]}]"
    )


_HEADER: Final = (
    "| project | pairs | relations moved | missed | tests selected | without facts | of `state:modified+` "
    "| share | tests that differed | pairs that moved nothing: selected | of |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def table(work: Path) -> str:
    """The table of all that is in a work folder."""
    rows = [_HEADER]
    total: list[Pair] = []
    left_out = 0
    for file in sorted(work.glob("*/pairs.json")):
        # A work folder keeps what earlier versions of this script wrote.
        field_names = {one.name for one in fields(Pair)}
        pairs = [
            Pair(**{name: value for name, value in pair.items() if name in field_names})
            for pair in json.loads(file.read_text())
        ]
        left_out += sum(pair.error is not None for pair in pairs)
        pairs = [pair for pair in pairs if pair.error is None]
        total += pairs
        rows.append(_row(file.parent.name, pairs))
    rows.append(_row("all", total))
    above = [pair for pair in total if len(pair.selected) > pair.state_modified]
    missing = [pair for pair in total if pair.unseen_by_dbt]
    without = [
        pair for pair in above if len(pair.selected) - len(pair.unseen_by_dbt) > pair.state_modified
    ]
    unknown = [pair for pair in total if pair.unbuilt and not pair.moved]
    rows.append("")
    rows.append(
        f"{len(above)} pairs select more than `state:modified+`, which does not know that a seed stands "
        f"behind a source; in {sum(pair.seeds > 0 for pair in above)} of them one changed. In {len(missing)} pairs `state:modified+` "
        f"leaves out tests, {sum(len(pair.unseen_by_dbt) for pair in missing)} in all, that read a relation that differs; without "
        f"these tests {len(without)} pairs would select more than it. {left_out} pairs are left out: dbt cannot "
        f"parse or compile one of the two. Of {sum(pair.tests for pair in total):,} tests "
        f"{sum(pair.cannot_run for pair in total):,} cannot run on head. In "
        f"{sum(bool(pair.unbuilt) for pair in total)} pairs a model that is to be built cannot be, on one "
        "side or both, so that nobody knows what moved: they are not among those that moved nothing. "
        f"Of them {len(unknown)} moved nothing else, and select "
        f"{sum(len(pair.selected) for pair in unknown)} tests of "
        f"{sum(pair.state_modified for pair in unknown)}."
    )
    return "\n".join(rows)


def _row(name: str, pairs: list[Pair]) -> str:
    still = [pair for pair in pairs if not pair.moved and not pair.unbuilt]
    selected, modified = (
        sum(len(pair.selected) for pair in pairs),
        sum(pair.state_modified for pair in pairs),
    )
    cells = (
        len(pairs),
        sum(len(pair.moved) for pair in pairs),
        sum(len(pair.missed) for pair in pairs),
        selected,
        sum(pair.without_facts for pair in pairs),
        modified,
        f"{selected / modified:.0%}" if modified else "",
        sum(len(pair.differed) for pair in pairs),
        sum(len(pair.selected) for pair in still),
        sum(pair.state_modified for pair in still),
    )
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    """Build, compare, print; 1 where something was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", nargs="?", help="a path or a URL of a git repository")
    parser.add_argument("--name", help="what to call it; by default the repository's name")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of commits [10]")
    parser.add_argument("--until", default="HEAD", help="the newest commit")
    parser.add_argument("--project-dir", default=".", help="the dbt project in the repository")
    parser.add_argument("--vars", help="vars of dbt, in YAML")
    parser.add_argument("--schema", default="main", help="the schema of the target [main]")
    parser.add_argument("--threads", type=int, default=2, help="threads of dbt [2]")
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME=PATH[@REV]", help="a package"
    )
    parser.add_argument(
        "--lacking", type=Path, help="a folder with the files that a partial copy of it lacks"
    )
    parser.add_argument(
        "--load", metavar="SQL", help="loads sources first; {project} is the folder of the project"
    )
    parser.add_argument(
        "--empty", action="store_true", help="compile head over an empty warehouse, not base's"
    )
    parser.add_argument("--work", type=Path, default=WORK, help=f"[{WORK}]")
    parser.add_argument("--table", action="store_true", help="print what the work folder has")
    args = parser.parse_args()
    args.work = args.work.resolve()
    missed = 0
    if args.repository:
        pairs = History(args).run()
        missed = sum(len(pair.missed) for pair in pairs)
        missed += sum(pair.crashed for pair in pairs)
        for pair in pairs:
            for what in pair.missed:
                print(f"missed {what} in {pair.base}..{pair.head}", file=sys.stderr)
    print(table(args.work))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
