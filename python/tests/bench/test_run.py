"""What the benchmark keeps and prints, without running it."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def run() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_run", BENCH / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_run"] = module
    spec.loader.exec_module(module)
    return module


def document(run: ModuleType, models: int) -> dict[str, Any]:
    """A result in which every run takes twice as long as that of the contender before it."""
    keys = (run.FLOOR, run.OURS, run.FLOOR_TESTS, run.OURS_TESTS, run.COMMAND, run.WARM, run.COLD)
    contenders = [
        run.Contender(key, key, [run.Run(*[float(2**i)] * 5, models)]) for i, key in enumerate(keys)
    ]
    return {
        "size": str(models),
        "adapter": "spark",
        "repeat": 1,
        "project": {
            "models": models,
            "sql_bytes": 2_000 * models,
            "columns": 20 * models,
            "sources": 10,
            "tests": models,
            "depth": 5,
            "manifest_bytes": 1_000_000,
        },
        "machine": {"date": "", "python": "", "sqlglot": "", "cores": 2, "load": 0.1},
        "contenders": [asdict(c) for c in contenders],
    }


def test_ratios_are_printed(run: ModuleType) -> None:
    text = "\n".join(run.report(document(run, 100)))
    assert "parse): **2.00**; with the SQL of data tests on both sides **2.00**." in text
    assert "**50.0%** of the wall time of the first one and **50.0%** of its CPU" in text


def test_results_of_an_older_version_are_left_out(
    run: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path
    monkeypatch.setattr(run, "RESULTS", folder)
    without_tests = document(run, 200)
    del without_tests["contenders"][2:4]
    without_floor = document(run, 300)
    del without_floor["contenders"][0]
    for name, content in {
        "good": json.dumps(document(run, 100)),
        "without tests": json.dumps(without_tests),
        "without floor": json.dumps(without_floor),
        "cut": json.dumps(document(run, 400))[:500],
        "other": "[1]",
    }.items():
        (folder / f"{name}.json").write_text(content)
    results = run.load_results()
    assert [d["project"]["models"] for d in results] == [100, 200]
    assert capsys.readouterr().err.count("left out") == 3
    assert "200 models" in run.page()


def test_the_page_has_what_the_other_scripts_left(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path
    monkeypatch.setattr(run, "RESULTS", folder)
    kinds = ("cold", "decode", "select", "facts", "one change", "dbt ls", "CI step")
    selection = {
        "models": 10_000,
        "edited": "stg_x",
        "counts": {"all_tests": 20_000, "impacted_tests": 3, "state_modified_tests": 44},
        "repeat": 1,
        "machine": {"date": "", "python": "", "sqlglot": "", "cores": 2, "load": 0.1},
        "took": {kind: [2.0**i, 4.0**i] for i, kind in enumerate(kinds)},
    }
    (folder / "select-10000.json").write_text(json.dumps(selection))
    (folder / "gate-50.json").write_text(json.dumps({"models": 50, "report": "### The gate"}))
    (folder / "spark-100.json").write_text(json.dumps(document(run, 100)))
    text = run.page()
    assert text.index("### 100 models") < text.index("### The gate") < text.index("### Selection")
    assert "base and head analysed before | 4.00 | 16.0 | 2 | 4 | 0.125 | 0.0156 |" in text
