"""Times `dbt-ripple gate` against `dbt-ripple select`, warm, in turn, on one made-up project.

    python bench/run_gate.py [--models 2000] [--repeat 5] [--write]

The project of generate.py with two tests a model, some of it governed: every fourth mart is public
with a contract_version, every tenth of those certified and of tier 1, and every source column that
sounds like an address or a name is declared personal data. On head one staging model is edited.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from generate import generate
from run import RESULTS, compiled_once, page, write_page
from run_select import WORK, timed

TARGET: Final = 2.0
"""What the gate may take of what the selection takes."""
_PERSONAL: Final = re.compile(r"email|phone|name|address")


def govern(manifest: dict[str, Any]) -> None:
    """Give the project owners, contracts, criticality and personal data."""
    for source in manifest["sources"].values():
        source["meta"] = {"owner": "platform@bench.example"}
        for name, column in source["columns"].items():
            if _PERSONAL.search(name):
                column["meta"] = {"pii": "personal"}
    models = [n for n in manifest["nodes"].values() if n["resource_type"] == "model"]
    for number, model in enumerate(models):
        meta = {"owner": f"team-{number % 20}@bench.example"}
        if number % 4 == 0:
            model["access"] = "public"
            meta["contract_version"] = "1"
        if number % 40 == 0:
            meta |= {"certified": True, "criticality": "tier1"}
        model["meta"] = model["config"]["meta"] = meta


def edit(manifest: dict[str, Any]) -> str:
    """Change the first key of the staging model that most read; returns the model's name."""
    pattern = re.compile(r"cast\((\w+) as bigint\)")
    able = [
        n
        for n in manifest["nodes"].values()
        if n["resource_type"] == "model"
        and "staging" in n["original_file_path"]
        and pattern.search(n["compiled_code"])
    ]
    node = max(able, key=lambda n: len(manifest["child_map"].get(n["unique_id"], ())))
    for field in ("compiled_code", "raw_code"):
        node[field] = pattern.sub(r"(cast(\1 as bigint) + 1)", node[field], count=1)
    return str(node["name"])


def prepare(models: int) -> tuple[Path, Path, str]:
    """Write the artifacts of both sides, unless they are there."""
    place = WORK / "projects" / f"gate-{models}"
    base, head = place / "base", place / "head"
    note = place / "ready.json"
    if not note.exists():
        shutil.rmtree(place, ignore_errors=True)
        generate(base, models, adapter="spark", tests_per_model=2)
        manifest = json.loads((base / "manifest.json").read_bytes())
        govern(manifest)
        (base / "manifest.json").write_text(json.dumps(manifest))
        shutil.copytree(base, head / "target")
        edited = edit(manifest)
        (head / "target" / "manifest.json").write_text(json.dumps(manifest))
        note.write_text(json.dumps({"edited": edited}))
    return base, head, json.loads(note.read_text())["edited"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the figures into BENCHMARKS.md")
    given = parser.parse_args()
    base, head, edited = prepare(given.models)
    env = {**compiled_once(), "DBT_RIPPLE_CACHE_DIR": str(WORK / "gate-cache")}
    ripple = str(Path(sys.executable).with_name("dbt-ripple"))
    sides = ["--state", str(base), "--project-dir", str(head), "--format", "json"]
    took: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, Any] = {}
    for turn in range(given.repeat + 1):
        for name in ("select", "gate"):
            (seconds, _), out = timed([ripple, name, *sides], env, allowed=(0, 1))
            answers[name] = json.loads(out)
            if turn:  # the first fills the cache
                took[name].append(seconds)
    if not answers["gate"]["affected"]:
        raise SystemExit(f"nothing is affected by the edit of {edited}: nothing is measured")
    ratio = statistics.median(
        gate / select for gate, select in zip(took["gate"], took["select"], strict=True)
    )
    report = table(given.models, took, answers, edited, ratio)
    print(report)
    kept = {"models": given.models, "report": report}
    (RESULTS / f"gate-{given.models}.json").write_text(json.dumps(kept, indent=1))
    if given.write:
        write_page(page())
    if ratio >= TARGET:
        raise SystemExit(f"the gate takes {ratio:.2f} of the selection, not under {TARGET}")


def table(
    models: int,
    took: dict[str, list[float]],
    answers: dict[str, Any],
    edited: str,
    ratio: float,
) -> str:
    """The section of BENCHMARKS.md."""
    gate = answers["gate"]
    return "\n".join(
        [
            f"### The gate, {models:,} models",
            "",
            f"One expression of `{edited}` is edited: {gate['blast_radius']:,} assets reached, "
            f"{len(gate['findings']):,} findings, {answers['select']['counts']['impacted_tests']:,} "
            f"tests selected. Warm, in turn, {len(took['gate'])} times in one run of "
            f"`python python/bench/run_gate.py`; the gate takes {ratio:.2f} of the selection "
            f"(median of the turns; to stay under {TARGET:g}).",
            "",
            "|  | wall s, median | least |",
            "| --- | ---: | ---: |",
            *(
                f"| `dbt-ripple {name}` | {statistics.median(took[name]):.2f} "
                f"| {min(took[name]):.2f} |"
                for name in ("select", "gate")
            ),
        ]
    )


if __name__ == "__main__":
    main()
