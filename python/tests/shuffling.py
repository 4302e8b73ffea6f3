"""Artifacts in another order: every mapping and list of which the order means nothing.

What carries meaning keeps its order: the columns of a declaration (they stand for the relation's),
the arguments of `ref` and `source` (in the order of the code), what a test or a unit test is given,
hooks, and all that a project says under names of its own.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

ENTRIES = ("nodes", "sources", "exposures", "metrics", "semantic_models", "saved_queries")
ENTRIES += ("unit_tests", "functions", "macros", "groups", "docs", "selectors", "disabled")


def shuffled(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A mapping with the same entries in another order."""
    keys = list(value)
    rng.shuffle(keys)
    return {key: value[key] for key in keys}


def manifest_in_another_order(manifest: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    reordered = dict(manifest)
    for section in (*ENTRIES, "parent_map", "child_map", "group_map"):
        if isinstance(reordered.get(section), dict):
            reordered[section] = shuffled(reordered[section], rng)
    for section in ("parent_map", "child_map", "group_map", "disabled"):
        entries = reordered.get(section) or {}
        reordered[section] = {key: rng.sample(ids, len(ids)) for key, ids in entries.items()}
    for section in ENTRIES[:-1]:
        for unique_id, entry in (reordered.get(section) or {}).items():
            reordered[section][unique_id] = node_in_another_order(entry, rng)
    return reordered


def node_in_another_order(node: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    reordered = shuffled(node, rng)
    for name in ("config", "unrendered_config", "meta", "depends_on", "test_metadata"):
        if isinstance(reordered.get(name), dict):
            reordered[name] = shuffled(reordered[name], rng)
    if isinstance(reordered.get("depends_on"), dict):
        for of, ids in reordered["depends_on"].items():
            reordered["depends_on"][of] = rng.sample(ids, len(ids)) if ids else ids
    if isinstance(reordered.get("columns"), dict):
        reordered["columns"] = {
            name: shuffled(column, rng) for name, column in reordered["columns"].items()
        }
    return reordered


def shuffle_folder(folder: Path, kept: Path, rng: random.Random) -> None:
    manifest = json.loads((kept / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest_in_another_order(manifest, rng)))
    if (kept / "run_results.json").exists():
        results = json.loads((kept / "run_results.json").read_text())
        rng.shuffle(results["results"])
        (folder / "run_results.json").write_text(json.dumps(results))
    if (kept / "catalog.json").exists():
        catalog = json.loads((kept / "catalog.json").read_text())
        for section in ("nodes", "sources"):
            catalog[section] = shuffled(catalog[section], rng)
            for table in catalog[section].values():  # their order is in `index`
                table["columns"] = shuffled(table["columns"], rng)
        (folder / "catalog.json").write_text(json.dumps(catalog))
