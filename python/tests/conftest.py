"""What tests of several rooms share: one embedded Spark and one run of the demo."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import demo_run
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytest_plugins = ["produced_reasons", "browsers"]

TESTS = Path(__file__).parent
LONGEST_FILES = (
    # Of `make spark`; the first makes the demo, which the second reads at its end.
    *("integration/test_shop.py", "spark/test_thrift.py", "oracle/test_catalyst.py"),
    "spark/test_load_killed.py",
    *("integration/test_game_day_on_spark.py", "spark/test_load.py"),
    *("open_lineage/test_track_dataframe.py", "open_lineage/test_build_emit.py"),
    *("spark/test_hostile_rows.py", "spark/test_session.py"),
    # Of `make slow`.
    *("driver/test_causes_by_dbt.py", "driver/test_causes_of_states.py"),
    *("campaign/test_campaign.py", "package/test_keeps_out.py", "package/test_operations.py"),
    *("package/test_volume.py", "selection/test_worlds.py", "package/test_two_projects.py"),
    *("package/test_game_day.py", "cli/test_shuffled_manifests.py", "driver/test_ci_recipes.py"),
    *("package/test_twin_contracts.py", "package/test_lineage_tests.py"),
    *("package/test_report_of_artifacts.py", "package/test_incident_stories_in_tables.py"),
    *("selection/test_cutoff.py", "governance/test_pull_request_comment.py", "fuzz/test_fuzz.py"),
    # Of `make unit`.
    *("golden/test_golden.py", "collector/test_collect_survives.py"),
    *("collector/test_collect_http.py", "package/test_collected_jobs_in_tables.py"),
)
"""Files that take the longest, as `--durations` says. One process does a file: they come first, so that none
is left alone with one of them when the other has ended."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the others follow as they were collected."""
    place = {TESTS / file: number for number, file in enumerate(LONGEST_FILES)}
    if gone := [str(path) for path in place if not path.is_file()]:
        raise pytest.UsageError(f"LONGEST_FILES of conftest.py names files that are gone: {gone}")
    items.sort(key=lambda item: place.get(item.path, len(place)))


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test looks into, or leaves anything in, the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBT_RIPPLE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _macros_parsed_once() -> None:
    """dbt parses the text of a macro, most of them its own, once a process and not in every project."""
    with contextlib.suppress(ImportError):
        from dbt_common.tests import enable_test_caching

        enable_test_caching()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The run's Spark session (parquet, Hive, its own metastore); make your own schema in it."""
    from dbt_ripple.spark.session import get_session, local_environment

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SPARK_REMOTE", raising=False)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        for name in ("JAVA_HOME", "SPARK_CONF_DIR"):  # so that they are put back at the end
            patch.setenv(name, os.environ.get(name, ""))
        if not os.environ["JAVA_HOME"]:
            del os.environ["JAVA_HOME"]
        local_environment(tmp_path_factory.mktemp("spark"), short_lived=True)
        session = get_session()
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def _no_temporary_views_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test leaves no temporary view in the session that all Spark tests of a process share."""
    yield
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        session._jsparkSession.sessionState().catalog().clearTempTables()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What `make demo` said; what it made is in integration_tests/target/demo.

    It is run once, by the first of several processes that asks for it; the others wait.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of all processes
    done = folder / "demo.pickle"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            done.write_bytes(pickle.dumps(demo_run.run(tmp_path_factory.mktemp("demo"))))
    made: subprocess.CompletedProcess[str] = pickle.loads(done.read_bytes())
    return made
