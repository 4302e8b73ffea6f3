"""Queries lowered by other processes come out as they do in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from graph.test_warm import told

from dbt_ripple.artifacts import read_project
from dbt_ripple.flow.ir import lower_packed
from dbt_ripple.graph import process_pool
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.cache import Cache
from dbt_ripple.graph.process_pool import balanced, cores, in_processes

QUERIES = ["select a from t", "select (((", "", *(f"select a + {i} as a from t" for i in range(40))]


def test_every_query_comes_back_in_its_place() -> None:
    lower_many = in_processes(2, least=1)
    assert lower_many is not None
    assert lower_many(QUERIES, "spark", True) == lower_packed(QUERIES, "spark", True)


def test_a_project_comes_out_the_same(generated: Path, tmp_path: Path) -> None:
    of = read_project(generated)
    alone = told(analyse(of))
    lower_many = in_processes(2, least=1)
    assert told(analyse(of, lower_many=lower_many)) == alone
    with Cache(tmp_path) as cache:
        assert told(analyse(of, cache=cache, lower_many=lower_many)) == alone

    def never(*_: object) -> list[bytes]:
        raise AssertionError("all of it is in the cache")

    with Cache(tmp_path) as cache:
        analysis = analyse(
            of, cache=cache, lower_many=lambda queries, *_: never() if queries else []
        )
    assert told(analysis) == alone


def test_few_queries_and_one_process_are_done_here() -> None:
    assert in_processes(1) is None
    lower_many = in_processes(2)
    assert lower_many is not None
    assert lower_many(QUERIES, "spark", False) == []
    assert cores() >= 1


def test_where_no_process_can_be_started_it_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
    generated: Path,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError("no semaphores here")

    monkeypatch.setattr(process_pool, "ProcessPoolExecutor", refused)
    of = read_project(generated)
    assert told(analyse(of, lower_many=in_processes(2, least=1))) == told(analyse(of))


def test_a_script_without_a_guard_ends_with_the_right_answer(
    generated: Path,
    tmp_path: Path,
) -> None:
    """Each process loads the script, which starts the analysis again: that one starts none."""
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from dbt_ripple.artifacts import read_project\n"
        "from dbt_ripple.graph.analyse_project import analyse\n"
        "from dbt_ripple.graph.process_pool import in_processes\n"
        "of = read_project(Path(sys.argv[1]))\n"
        "edges = analyse(of, lower_many=in_processes(2, least=1)).edges\n"
        "sys.stdout.write(f'{len(edges)}\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, script, generated], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    edges = len(analyse(read_project(generated)).edges)
    assert set(done.stdout.split()) == {str(edges)}


def test_parts_are_about_as_long() -> None:
    queries = ["x" * n for n in (1000, 500, 300, 200, *[1] * 50)]
    parts = balanced(queries, 2)
    assert sorted(i for part in parts for i in part) == list(range(len(queries)))
    first, second = (sum(len(queries[i]) for i in part) for part in parts)
    assert abs(first - second) < 100
    assert balanced([], 3) == []
