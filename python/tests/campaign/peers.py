"""The same edits put to other tools: what each would run, and what it would miss.

    python peers.py [--edits N] [--seed S] [--tools dbt,parrant,guard,recce,sqlmesh] [--out FILE]

Edits of the shop on DuckDB, such as a pull request can make, are executed as in `campaign`. Each
tool gets the artifacts of base and head, head's catalog as if head had been built, and answers in
an environment of its own (``python/bench/peers``).
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from campaign import KINDS, Task, made
from judge import Judge
from report import Report, columns
from world import Outcome, World
from worlds import shop

BENCH: Final = Path(__file__).parents[2] / "bench"
TOOLS: Final = ("dbt", "parrant", "guard", "recce", "sqlmesh")
LEFT_OUT: Final = ("test", "source column")
"""Of a test nobody else says anything; what happens in a source is no pull request."""


@dataclass
class Row:
    """One tool's answers.

    Attributes:
        answered: edits it had an answer to.
        failed: edits at which it failed; they are in none of the other figures.
        missed: edits of which a test that differs would not have run; `tests_missed` all of those.
        tests: how many tests would run, over the answered edits.
        modified: how many ``state:modified+`` runs, over the same edits.
    """

    answered: int = 0
    failed: int = 0
    missed: int = 0
    tests_missed: int = 0
    tests: int = 0
    modified: int = 0
    seconds: float = 0.0
    error: str = ""

    def add(self, tests_selected: set[str], differs: set[str], modified: int) -> None:
        self.answered += 1
        self.missed += bool(differs - tests_selected)
        self.tests_missed += len(differs - tests_selected)
        self.tests += len(tests_selected)
        self.modified += modified


class Sides:
    """Writes base and heads as dbt's artifacts."""

    def __init__(self, world: World, target: Path, to: Path) -> None:
        self.world, self.to = world, to
        self.manifest = json.loads((target / "manifest.json").read_text())
        self.catalog = json.loads((target / "catalog.json").read_text())
        # Nobody edits a macro here, and they are most of the file.
        self.manifest["macros"], self.manifest["docs"] = {}, {}
        self.names = {
            n["relation_name"]: f"{{{{ ref('{n['name']}') }}}}"
            if n["resource_type"] != "source"
            else f"{{{{ source('{n['source_name']}', '{n['name']}') }}}}"
            for n in (*self.manifest["nodes"].values(), *self.manifest["sources"].values())
            if n.get("relation_name") and not n.get("version")
        }
        for unique_id in self.manifest["nodes"]:
            node = world.project.nodes[unique_id]
            if node.resource_type in ("model", "snapshot", "test"):
                self.say(self.manifest, unique_id, node.compiled_code or "")
        self.write("base", self.manifest, self.catalog)

    def say(self, manifest: dict[str, Any], unique_id: str, sql: str) -> None:
        """Give a node another query; its code is the query with ``ref`` and ``source``."""
        node = manifest["nodes"][unique_id]
        node["compiled_code"] = sql
        if node["resource_type"] != "test":
            for name, call in self.names.items():
                sql = sql.replace(name, call)
            node["raw_code"] = sql
            node["checksum"] = {"name": "sha256", "checksum": str(hash(sql))}

    def head(self, name: str, outcome: Outcome) -> None:
        """Write one head."""
        manifest, catalog = copy.deepcopy(self.manifest), copy.deepcopy(self.catalog)
        for unique_id, node in outcome.head.nodes.items():
            before = self.world.project.nodes.get(unique_id)
            if node is before or unique_id not in manifest["nodes"]:
                continue
            entry = manifest["nodes"][unique_id]
            if node.resource_type == "seed":
                entry["checksum"] = node.checksum
            else:
                self.say(manifest, unique_id, node.compiled_code or "")
                entry["depends_on"]["nodes"] = list(node.depends_on.nodes)
            if before is not None and node.config != before.config:
                entry["config"].update(node.config)
                entry["unrendered_config"] = {
                    **entry["unrendered_config"],
                    "post-hook": node.config,
                }
        manifest["parent_map"] = {u: list(p) for u, p in outcome.head.parents.items()}
        manifest["child_map"] = {u: list(c) for u, c in outcome.head.children.items()}
        for unique_id, built in outcome.columns.items():
            if unique_id in catalog["nodes"]:
                catalog["nodes"][unique_id]["columns"] = {
                    n: {"name": n, "type": t, "index": i + 1, "comment": None}
                    for i, (n, t) in enumerate(built)
                }
        self.write(name, manifest, catalog)

    def write(self, name: str, manifest: dict[str, Any], catalog: dict[str, Any]) -> None:
        folder = self.to / name
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "catalog.json").write_text(json.dumps(catalog))


def compare(edits: int, seed: int, tools: list[str], work: Path) -> dict[str, Row]:
    """Make the edits and put them to the tools."""
    world, folder = shop(work / "shop")
    judge, sides = Judge(world), Sides(world, folder.target, work / "sides")
    ours = {"dbt-ripple": Row(), "dbt-ripple, --no-facts": Row(), "truly changed": Row()}
    differs: dict[str, tuple[set[str], int]] = {}
    kinds = [k for k in KINDS if k not in LEFT_OUT]
    for number, _, _, _, outcome in made(world, Task("shop", seed, edits), Report(seed, ""), kinds):
        verdict = judge.judge(outcome)
        chosen = (verdict.selected, verdict.selected_without_facts, verdict.changed)
        for row, selected_tests in zip(ours.values(), chosen, strict=True):
            # A proven test that differs is no miss where what it rests on runs and shows it.
            seen = verdict.changed if verdict.missed else verdict.changed & selected_tests
            row.add(selected_tests, seen, verdict.modified)
        differs[f"{number:05}"] = verdict.changed, verdict.modified
        sides.head(f"{number:05}", outcome)
    print(f"... {len(differs)} edits", file=sys.stderr)
    with ThreadPoolExecutor() as asked:
        answers = asked.map(lambda tool: ask(tool, sides.to, differs), tools)
        return {**ours, **dict(zip(tools, answers, strict=True))}


def ask(tool: str, sides: Path, differs: dict[str, tuple[set[str], int]]) -> Row:
    """Put all edits to one tool."""
    row = Row()
    try:
        python = sys.executable if tool == "dbt" else environment(f"{tool}.txt")
        runner = str(BENCH / "peers" / "run_selection.py")
        subprocess.run([python, runner, tool, str(sides)], check=True, capture_output=True)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        row.error = (getattr(error, "stderr", b"") or str(error).encode()).decode()[-300:]
        return row
    for name, answer in json.loads((sides / f"{tool}.json").read_text()).items():
        row.seconds += answer["seconds"]
        if isinstance(answer["said"], str):
            row.failed += 1
            row.error = answer["said"]
        else:
            row.add(set(answer["said"]), *differs[name])
    print(f"... {tool}: {row}", file=sys.stderr)
    return row


def environment(requirements: str) -> str:
    """A peer's own environment, as the benchmark makes it."""
    sys.path.insert(0, str(BENCH))
    from run import python_of  # type: ignore[import-not-found]

    python: str = python_of(requirements)
    return python


def table(rows: dict[str, Row]) -> str:
    """The comparison as text."""
    head = ("tool", "answered", "failed", "edits missed", "tests missed", "tests", "of modified+")
    lines = [head]
    for name, row in rows.items():
        figures = (row.answered, row.failed, row.missed, row.tests_missed, row.tests)
        share = f"{row.tests / row.modified:.0%}" if row.modified else "-"
        lines.append((name, *map(str, figures), share))
    errors = [f"{name} failed: {row.error}" for name, row in rows.items() if row.error]
    return "\n".join([columns(lines), *errors])


def main() -> None:
    """Compare from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--out", type=Path, default=Path("target/campaign/peers.txt"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="peers") as work:
        text = table(compare(given.edits, given.seed, given.tools.split(","), Path(work)))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(f"{given.edits} edits of the shop, seed {given.seed}\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
