"""Times `dbt-ripple select` against `dbt ls --select state:modified+`, on one real project, in turn.

    python bench/run_select.py [--models 10000] [--repeat 3] [--write]

The project of generate.py is written out as files (models, sources, two tests a model or so), one
staging model is edited in a copy, and both are compiled by dbt itself, which takes far longer than
all that is timed. Then, in turn:

* ``decode``: a Python that decodes the two manifests with msgspec, and does nothing with them;
* ``select``: ``dbt-ripple select --state base``, base and head analysed before (a warm cache);
* ``facts``: the same with base's tests taken as passed, so that some are proven;
* ``one change``: the same after head has been analysed as it was before the edit;
* ``dbt ls``: ``dbt ls --select state:modified+ --state base``, its partial parse warm;
* ``CI step``: ``dbt compile`` of what dbt calls modified, then ``dbt-ripple select``.

What is measured goes to ``bench/results``; ``--write`` renders all that is there into
BENCHMARKS.md, as ``run.py --write`` does.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import made_packages
import yaml
from generate import PACKAGES, generate
from run import RESULTS, compiled_once, machine, page, select_report, write_page

REPOSITORY: Final = Path(__file__).parents[2]
WORK: Final = REPOSITORY / "target" / "bench"
_DECODE: Final = (
    "import msgspec,sys\nfor p in sys.argv[1:]: msgspec.json.decode(open(p,'rb').read())\n"
)


class Took(NamedTuple):
    """Seconds of a process and its children: on the clock, and of processor time."""

    wall: float
    cpu: float


def write_project(
    folder: Path, manifest: dict[str, Any], catalog: dict[str, Any], tests_each: int
) -> None:
    """Write the files of the dbt project that a made-up manifest tells of.

    Args:
        folder: where; it is made.
        manifest, catalog: as `generate` makes them.
        tests_each: how many `not_null` tests each model gets.
    """
    nodes = manifest["nodes"].values()
    folder.mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(
        "name: bench\nversion: '1.0'\nconfig-version: 2\nprofile: bench\n"
        "on-run-end: '{{ uploader.upload_all(results) }}'\n"
        "vars: {observer_enabled: false, uploader_enabled: false}\n"  # nothing is connected to
        "flags: {send_anonymous_usage_stats: false}\n"
    )
    (folder / "profiles.yml").write_text(
        "bench: {target: t, outputs: {t: {type: spark, method: session, host: none, "
        "schema: bench, threads: 2}}}\n"
    )
    for package, count in PACKAGES.items():  # where `dbt deps` would put them
        made_packages.write(folder / "dbt_packages" / package, package, count)
    properties: dict[Path, dict[str, Any]] = defaultdict(lambda: {"version": 2})
    for node in nodes:
        if node["resource_type"] == "seed":
            file = folder / node["original_file_path"]
            file.parent.mkdir(exist_ok=True)
            file.write_text("code,label,valid_from\n")
            hooks = [hook["sql"] for hook in node["config"]["post-hook"]]
            properties[file.parent / "_seeds.yml"].setdefault("seeds", []).append(
                {"name": node["name"], "config": {"post_hook": hooks}}
            )
        if node["resource_type"] != "model":
            continue
        file = folder / node["original_file_path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        hooks = [hook["sql"] for hook in node["config"]["post-hook"]]
        settings = f"materialized={node['config']['materialized']!r}, post_hook={hooks!r}"
        config = f"{{{{ config({settings}) }}}}\n"
        file.write_text(
            config + re.sub(r"{{\s*config\(.*?\)\s*}}", "", node["raw_code"], flags=re.S)
        )
        columns = list(catalog["nodes"][node["unique_id"]]["columns"])[:tests_each]
        properties[file.parent / "_models.yml"].setdefault("models", []).append(
            {
                "name": node["name"],
                "columns": [{"name": c, "data_tests": ["not_null"]} for c in columns],
            }
        )
    sources: dict[str, dict[str, Any]] = {}
    for source in manifest["sources"].values():
        entry = sources.setdefault(
            source["source_name"],
            {"name": source["source_name"], "schema": source["schema"], "tables": []},
        )
        columns = [{"name": c} for c in source["columns"]]
        entry["tables"].append({"name": source["name"], "columns": columns})
    properties[folder / "models" / "_sources.yml"]["sources"] = list(sources.values())
    for file, content in properties.items():
        file.write_text(yaml.safe_dump(content, sort_keys=False))


def edit(folder: Path, manifest: dict[str, Any]) -> str:
    """Change the first key of the staging model that most read; returns the model's name."""
    children = manifest["child_map"]
    staging = [
        n
        for n in manifest["nodes"].values()
        if n["resource_type"] == "model" and "staging" in n["original_file_path"]
    ]
    pattern = re.compile(r"cast\((\w+) as bigint\)")
    able = [n for n in staging if pattern.search(n["raw_code"])]
    node = max(able, key=lambda n: len(children.get(n["unique_id"], ())))
    file = folder / node["original_file_path"]
    file.write_text(pattern.sub(r"(cast(\1 as bigint) + 1)", file.read_text(), count=1))
    return str(node["name"])


def dbt(folder: Path, *arguments: str) -> list[str]:
    """The command line of dbt in a project."""
    here = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    return [str(Path(sys.executable).with_name("dbt")), "--quiet", *arguments, *here]


def timed(
    command: list[str], env: dict[str, str], allowed: tuple[int, ...] = (0,)
) -> tuple[Took, str]:
    """What a command took that has to end with one of these codes, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in allowed:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall, cpu), done.stdout


def prepare(models: int, env: dict[str, str]) -> tuple[Path, Path, str]:
    """Both projects, compiled: base and head as folders, and the name of the edited model."""
    place = WORK / "projects" / f"select-{models}"
    base, head = place / "base", place / "head"
    note = place / "ready.json"
    if note.exists():
        return base, head, json.loads(note.read_text())["edited"]
    shutil.rmtree(place, ignore_errors=True)
    made = place / "made"
    generate(made, models, adapter="spark", tests_per_model=2)
    manifest = json.loads((made / "manifest.json").read_bytes())
    catalog = json.loads((made / "catalog.json").read_bytes())
    write_project(base, manifest, catalog, 2)
    shutil.copytree(base, head)
    compiled = ["compile", "--no-populate-cache", "--no-introspect"]
    print(f"dbt compile of {models} models: base", file=sys.stderr)
    timed(dbt(base, *compiled), env)
    shutil.copy(made / "catalog.json", base / "target")
    # Head starts from what base has parsed, as a CI runner with a cache does.
    shutil.copytree(base / "target", head / "target")
    edited = edit(head, manifest)
    print(f"dbt compile of {models} models: head", file=sys.stderr)
    timed(dbt(head, *compiled), env)
    shutil.copytree(base, place / "same")
    note.write_text(json.dumps({"edited": edited}))
    return base, head, edited


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the table into BENCHMARKS.md")
    given = parser.parse_args()
    cache = WORK / "select-cache"
    env = {**compiled_once(), "DBT_RIPPLE_CACHE_DIR": str(cache)}
    base, head, edited = prepare(given.models, env)
    state = str(base / "target")
    ripple = str(Path(sys.executable).with_name("dbt-ripple"))
    select = [ripple, "select", "--state", state, "--project-dir", str(head), "--format", "json"]
    modified = ["--select", "state:modified+", "--state", state]
    ci = ["compile", "--no-populate-cache", "--no-introspect", "--select", "state:modified"]
    scratch = WORK / "select-scratch"
    same = base.with_name("same")  # base once more: a state is not compared with itself
    shutil.rmtree(cache, ignore_errors=True)
    took: dict[str, list[Took]] = defaultdict(list)
    took["cold"] = [timed(select, env)[0]]
    answer: dict[str, Any] = {}
    listed: list[str] = []
    for turn in range(given.repeat):
        print(f"turn {turn + 1} of {given.repeat}", file=sys.stderr)
        manifests = [f"{state}/manifest.json", str(head / "target" / "manifest.json")]
        took["decode"].append(timed([sys.executable, "-c", _DECODE, *manifests], env)[0])
        seconds, out = timed(select, env)
        took["select"].append(seconds)
        answer = json.loads(out)
        took["facts"].append(timed([*select, "--assume-passed"], env)[0])
        # Base alone is in this cache: what a pull request pays.
        shutil.rmtree(scratch, ignore_errors=True)
        other = {**env, "DBT_RIPPLE_CACHE_DIR": str(scratch)}
        timed([ripple, "select", "--state", state, "--project-dir", str(same)], other)
        took["one change"].append(timed(select, other)[0])
        # dbt overwrites its target's manifest: it gets a copy.
        target = WORK / "select-target"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(head / "target", target)
        seconds, out = timed(dbt(head, "ls", *modified, "--target-path", str(target)), env)
        took["dbt ls"].append(seconds)
        listed = [line for line in out.splitlines() if line]
        first, _ = timed(dbt(head, *ci, "--state", state, "--target-path", str(target)), env)
        second, _ = timed([*select, "--target-path", str(target)], env)
        took["CI step"].append(Took(first.wall + second.wall, first.cpu + second.cpu))
    counts = answer["counts"]
    if not counts["impacted_tests"] or not listed:
        raise SystemExit(f"nothing is impacted by the edit of {edited}: nothing is measured")
    document = {
        "models": given.models,
        "edited": edited,
        "counts": counts,
        "repeat": given.repeat,
        "machine": machine(),
        "took": {
            key: [statistics.median(t.wall for t in turns), statistics.median(t.cpu for t in turns)]
            for key, turns in took.items()
        },
    }
    (RESULTS / f"select-{given.models}.json").write_text(json.dumps(document, indent=1))
    print("\n".join(select_report(document)))
    if given.write:
        write_page(page())


if __name__ == "__main__":
    main()
