"""dbt, the loader and what reads the tables over a real Thrift server: nothing but the profile names it.

One server serves the whole file. It is the pyspark wheel's; the commands run without pyspark and Java.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import rows_of_all_types
from demo_run import without_java
from hostile import PARTS
from snapshots_by_hand import snapshot_by_hand
from thrift_server import ThriftServer, free_port, profile, thrift_server

from dbt_ripple.artifacts import read_project
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.dbt_runner.profile import adapter_of
from dbt_ripple.errors import RippleError
from dbt_ripple.graph.lineage_rows import LineageSnapshot
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.selection.select import select
from dbt_ripple.spark.load import Destination, columns, load
from dbt_ripple.spark.package_models import _rows_of
from dbt_ripple.spark.server import AdapterServer
from dbt_ripple.spark.stage import Stage

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[3]
SHOP = REPOSITORY / "integration_tests"
KILLS = 20


@pytest.fixture(scope="module")
def thrift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThriftServer]:
    with thrift_server(tmp_path_factory.mktemp("thrift"), connect=True) as server:
        yield server


def adapter_at(server: ThriftServer, folder: Path, **settings: str) -> Any:
    """dbt's adapter, as `load` opens it in a project's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    (folder / "profiles.yml").write_text(profile(server, "any"))
    adapter = adapter_of(folder, DbtOptions(profiles_dir=folder))
    # A Thrift server takes settings of a session under this name.
    named = {f"set:hiveconf:{key}": value for key, value in settings.items()}
    adapter.config.credentials.server_side_parameters.update(named)
    return adapter


@pytest.fixture
def reach(thrift: ThriftServer, tmp_path: Path) -> Iterator[Callable[..., AdapterServer]]:
    """Gives the server as `load` reaches it; its connections are closed at the end."""
    with contextlib.ExitStack() as stack:

        def of(kind: type[AdapterServer] = AdapterServer, **more: Any) -> AdapterServer:
            settings = more.pop("settings", {})
            adapter = adapter_at(thrift, tmp_path / "profile", **settings)
            stack.callback(adapter.cleanup_connections)
            return kind(adapter, **more)

        yield of


def visible(server: AdapterServer, to: Destination) -> dict[str, dict[str, int]]:
    """The rows that a reader who comes now sees of each table, by snapshot."""
    server._adapter.cleanup_connections()  # an older connection remembers files
    counts = " union all ".join(
        f"select '{table}' as name, r.snapshot_id, count(*) as n from {to.table(table)} r join"
        f" {to.table('snapshots')} s on r.snapshot_id = s.snapshot_id group by r.snapshot_id"
        for table in TABLES
    )
    seen: dict[str, dict[str, int]] = {table: {} for table in TABLES}
    for row in server.rows(counts):
        seen[row["name"]][row["snapshot_id"]] = row["n"]
    return seen


def sizes(*snapshots: LineageSnapshot) -> dict[str, dict[str, int]]:
    return {
        table: {s.snapshot_id: len(s.rows[table]) for s in snapshots if s.rows[table]}
        for table in TABLES
    }


# --- rows arrive as they were ------------------------------------------------------------------------


def awkward(id_: str) -> LineageSnapshot:
    """Rows of every type, with each text that a literal of SQL could be read otherwise for."""
    snapshot = snapshot_by_hand(id_)
    texts = [
        *PARTS,
        *("", "null", "NULL", "it''s", "\\'", "\\u0041", "${env:HOME}", "${hiveconf:x}", "?", ":a"),
        *(
            "%s",
            "{{ x }}",
            "; drop table t",
            "/* x */",
            "-- x",
            "東京",
            "\U0001f600",
            "x" * 3_000_000,
        ),
    ]
    rows = {**snapshot.rows}
    template: Any = snapshot.rows["nodes"][0]
    rows["nodes"] = [
        msgspec.structs.replace(template, unique_id=str(number), description=text)
        for number, text in enumerate(texts)
    ]
    times = [float("nan"), float("inf"), float("-inf"), -0.0, 1e-300, 0.1, 3.0, None]
    result: Any = snapshot.rows["run_results"][0]
    rows["run_results"] = [
        msgspec.structs.replace(result, execution_time=time_, failures=2**63 - 1, rows_affected=-1)
        for time_ in times
    ]
    return LineageSnapshot(id_, rows, None)


def as_read(row: msgspec.Struct) -> str:
    values = msgspec.structs.asdict(row)
    return repr([v.isoformat() if hasattr(v, "isoformat") else v for v in values.values()])


def held(server: AdapterServer, to: Destination, table: str) -> list[str]:
    read = _rows_of(server, to.table(table), "shop")
    return sorted(repr([row[name] for name in columns(table)]) for row in read)


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"},
        {
            "spark.sql.ansi.enabled": "false",
            "spark.sql.parser.escapedStringLiterals": "true",
            "spark.sql.session.timeZone": "Asia/Kathmandu",
            "spark.sql.legacy.timeParserPolicy": "LEGACY",
        },
    ],
    ids=["ansi", "legacy"],
)
def test_rows_arrive_as_they_were(
    reach: Callable[..., AdapterServer], settings: dict[str, str], request: pytest.FixtureRequest
) -> None:
    server = reach(settings=settings)
    for key, value in settings.items():
        assert [row["value"] for row in server.rows(f"set {key}")] == [value]
    to = Destination((f"arrive_{request.node.callspec.id}_raw",))
    snapshot = awkward("s1")
    assert not load(server, snapshot, to).already
    again = load(server, snapshot, to)
    assert again.already
    for table, rows in snapshot.rows.items():
        assert held(server, to, table) == sorted(map(as_read, rows)), table


class Recording(AdapterServer):
    """Keeps what it sends."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sent: list[str] = []

    def execute(self, statement: str) -> None:
        self.sent.append(statement)
        super().execute(statement)


def test_statements_are_of_bounded_size(reach: Callable[..., AdapterServer]) -> None:
    server = reach(Recording, statement_bytes=5_000)
    to = Destination(("bounded_raw",))
    snapshot = snapshot_by_hand("s1", nodes=60)
    load(server, snapshot, to)
    inserts = [text for text in server.sent if text.startswith("insert") and "`nodes`" in text]  # type: ignore[attr-defined]
    assert len(inserts) > 3
    assert [text.startswith("insert overwrite") for text in inserts] == [
        True,
        *[False] * (len(inserts) - 1),
    ]
    # In base64 a third more than as JSON, and the list of columns.
    assert max(map(len, inserts)) < 5_000 * 4 / 3 + 3_500
    # The server keeps the plans of a thousand queries, as texts with the rows in them if it may.
    (kept,) = server.rows("set spark.sql.maxPlanStringLength")
    assert kept["value"] == "10000"
    assert visible(server, to) == sizes(snapshot)


def test_a_stage_holds_files_while_a_load_runs(
    reach: Callable[..., AdapterServer], tmp_path: Path
) -> None:
    folder = tmp_path / "a stage`s 'folder'"
    server = reach(Recording, stage=Stage(str(folder)), statement_bytes=1)
    to = Destination(("staged_raw",))
    snapshot = awkward("s1")
    load(server, snapshot, to)
    sent = " ".join(server.sent)  # type: ignore[attr-defined]
    assert sent.count("from parquet.`file:///") == sum(
        len(rows) > 1 for rows in snapshot.rows.values()
    )
    assert "copy into" not in sent
    assert len([*folder.rglob("*.parquet")]) > 3
    for table, rows in snapshot.rows.items():
        assert held(server, to, table) == sorted(map(as_read, rows)), table
    server.close()
    assert [*folder.iterdir()] == []


def test_an_older_table_gets_its_columns_and_keeps_yours(
    reach: Callable[..., AdapterServer],
) -> None:
    server = reach()
    to = Destination(("older_raw",))
    server.execute(f"create schema {to.schema}")
    server.execute(
        f"create table {to.table('nodes')} (unique_id string, mine int, snapshot_id string)"
        " using parquet partitioned by (snapshot_id)"
    )
    server.execute(f"insert into {to.table('nodes')} values ('old', 1, 's0')")
    load(server, snapshot_by_hand("s1"), to)
    (row,) = server.rows(
        f"select count_if(mine = 1 and name is null) as old, count_if(mine is null and name is not null)"
        f" as new, count(*) as n from {to.table('nodes')}"
    )
    assert row == {"old": 1, "new": 3, "n": 4}


# Spark fetches the jars of these formats.
@pytest.mark.matrix
@pytest.mark.parametrize("file_format", ["delta", "iceberg"])
def test_other_formats_by_thrift(tmp_path: Path, file_format: str) -> None:
    to = Destination(("format_raw",), file_format)
    folder = tmp_path / "project"
    first, second = awkward("s1"), snapshot_by_hand("s2", nodes=9)
    with thrift_server(tmp_path / "server", file_format) as running:
        dead = AdapterServer(adapter_at(running, folder), statement_bytes=500)
        inserted: list[str] = []
        execute = dead.execute

        def dying(statement: str) -> None:
            if statement.startswith(f"insert into {to.table('snapshots')}"):
                raise KeyError
            inserted.append(statement)
            execute(statement)

        dead.execute = dying  # type: ignore[method-assign]
        with pytest.raises(RippleError):
            load(dead, snapshot_by_hand("s2", nodes=4), to)
        assert visible(dead, to) == sizes()
        assert any(f"using {file_format}" in statement for statement in inserted)
        server = AdapterServer(adapter_at(running, folder), statement_bytes=500)
        load(server, first, to)
        load(server, second, to)
        assert visible(server, to) == sizes(first, second)
        of_first = f"select * from {to.table('nodes')} where snapshot_id = 's1'"
        rows = sorted(repr([row[n] for n in columns("nodes")]) for row in server.rows(of_first))
        assert rows == sorted(map(as_read, first.rows["nodes"]))
        staged = AdapterServer(
            adapter_at(running, folder), Stage(str(tmp_path / "stage")), statement_bytes=1
        )
        third = snapshot_by_hand("s3")
        load(staged, third, to)
        assert visible(staged, to) == sizes(first, second, third)
        staged.close()


# --- what goes wrong -----------------------------------------------------------------------------


class Twice(AdapterServer):
    """Runs some statement a second time, as dbt-spark does when the connection is lost while it runs."""

    begins = ""

    def execute(self, statement: str) -> None:
        super().execute(statement)
        if statement.startswith(self.begins):
            super().execute(statement)


def test_a_statement_that_is_sent_twice_is_not_published(
    reach: Callable[..., AdapterServer],
) -> None:
    snapshot = snapshot_by_hand("s1", nodes=40)
    to = Destination(("twice_raw",))
    server = reach(Twice, statement_bytes=2_000)
    server.begins = f"insert into table {to.table('columns')}"  # type: ignore[attr-defined]
    with pytest.raises(
        RippleError, match=r"twice_raw: \d+ rows of columns arrived and 40 were sent"
    ):
        load(server, snapshot, to)
    assert visible(server, to) == sizes()
    server.begins = f"insert into {to.table('snapshots')}"  # type: ignore[attr-defined]
    load(server, snapshot, to)
    assert visible(server, to) == sizes(snapshot)


def test_what_spark_refuses_is_one_line(reach: Callable[..., AdapterServer]) -> None:
    with pytest.raises(RippleError) as caught:
        load(reach(), snapshot_by_hand("s1"), Destination(("refused_raw",), "nosuchformat"))
    said = str(caught.value)
    assert said.startswith(
        "refused_raw: the lineage tables cannot be written ([DATA_SOURCE_NOT_FOUND]"
    )
    assert "\n" not in said


def test_killed_at_any_point_a_load_shows_nothing_and_runs_again(
    reach: Callable[..., AdapterServer], thrift: ThriftServer, tmp_path: Path
) -> None:
    """SIGKILL of the loader before a statement, or while the server works on it."""
    to = Destination(("killed_raw",))
    server = reach()
    before, after = snapshot_by_hand("before"), snapshot_by_hand("after", nodes=30, edges_a_node=5)
    load(server, before, to)

    class Mortal(AdapterServer):
        sent = 0

        def execute(self, statement: str) -> None:
            if not statement.startswith("insert"):
                super().execute(statement)
                return
            Mortal.sent += 1
            if Mortal.sent == at and in_flight:
                signal.setitimer(
                    signal.ITIMER_REAL, 0.05
                )  # SIGALRM ends the process, as SIGKILL does
            elif Mortal.sent == at:
                os.kill(os.getpid(), signal.SIGKILL)
            super().execute(statement)

    def all_of_it() -> int:
        """Load in this process; how many statements that took."""
        load(Mortal(adapter_at(thrift, tmp_path / "child"), statement_bytes=1_500), after, to)
        return Mortal.sent

    # How many there are, without publishing: the last is what publishes.
    statements = 0

    class Counting(AdapterServer):
        def execute(self, statement: str) -> None:
            nonlocal statements
            statements += statement.startswith("insert")
            if statement.startswith(f"insert into {to.table('snapshots')}"):
                raise KeyError
            super().execute(statement)

    counting = reach(Counting, statement_bytes=1_500)
    with pytest.raises(RippleError):
        load(counting, after, to)
    counting.close()  # a fork inherits no open connection
    assert statements > KILLS
    points = random.Random(7).sample(range(1, statements + 1), KILLS - 1)
    for number, at in enumerate([*points, statements]):
        in_flight = number % 2 == 1
        server.close()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                all_of_it()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        # One that worked on the last statement may have been done before the signal came.
        assert os.WIFSIGNALED(status) or (at == statements and in_flight), (at, in_flight)
        seen = visible(server, to)
        if at == statements and in_flight:
            assert seen in (sizes(before), sizes(before, after))
        else:
            assert seen == sizes(before), (at, in_flight)
    load(reach(statement_bytes=1_500), after, to)
    assert visible(server, to) == sizes(before, after)


# --- reading -----------------------------------------------------------------------------------------


def test_rows_are_read_as_they_are(reach: Callable[..., AdapterServer]) -> None:
    """`test_package_models.py` reads the same through a session."""
    server = reach()
    for statement in rows_of_all_types.statements("read_raw"):
        server.execute(statement)
    rows = _rows_of(server, "`read_raw`.`of_all_types`", rows_of_all_types.PROJECT)
    assert sorted(rows, key=lambda row: str(row["many"])) == rows_of_all_types.expected()


# --- the shop ------------------------------------------------------------------------------------------


class Commands:
    """Runs commands in a copy of the shop, on a machine without pyspark and Java."""

    def __init__(self, folder: Path, server: ThriftServer) -> None:
        self.shop = folder / "shop"
        skipped = shutil.ignore_patterns("target", "logs", "dbt_packages", "twin", "stories")
        shutil.copytree(SHOP, self.shop, ignore=skipped)
        (self.shop / "packages.yml").write_text(f"packages:\n  - local: {REPOSITORY}\n")
        (self.shop / "profiles.yml").write_text(profile(server, "shop"))
        absent = folder / "absent" / "pyspark"
        absent.mkdir(parents=True)
        (absent / "__init__.py").write_text("raise ImportError('there is no pyspark here')")
        path = without_java(os.environ["PATH"], folder / "bin")
        assert shutil.which("java", path=path) is None
        kept = ("LANG", "LC_", "SSL_", "TMP", "DBT_RIPPLE")
        self._environment = {
            "HOME": str(folder),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), path]),
            "PYTHONPATH": str(absent.parent),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            **{k: v for k, v in os.environ.items() if k.startswith(kept)},
        }

    def __call__(self, *command: str, code: int = 0) -> str:
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.shop,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=1200,
        )
        assert done.returncode == code, f"{command}: {done.stdout[-2000:]} {done.stderr[-3000:]}"
        print(f"{' '.join(command[:3])}: {time.monotonic() - started:.1f} s", file=sys.stderr)
        return done.stdout + done.stderr if code else done.stdout


def test_the_shop_by_thrift_alone(
    thrift: ThriftServer, tmp_path: Path, reach: Callable[..., AdapterServer]
) -> None:
    run = Commands(tmp_path, thrift)
    run("dbt", "--quiet", "deps")
    run("dbt", "--quiet", "build", "--exclude", "package:dbt_ripple")
    said = json.loads(run("dbt-ripple", "build", "--format", "json"))
    assert said["dbt"].keys() <= {"success", "pass", "no-op"}
    assert (said["schema"], said["already_loaded"]) == ("shop_ripple_raw", False)
    # What dbt wrote down of it has no rows in it.
    assert "unbase64" not in (run.shop / "target" / "ripple" / "logs" / "dbt.log").read_text()

    base = run.shop / "base"
    shutil.copytree(run.shop / "target" / "ripple", base)
    edited = run.shop / "models" / "staging" / "stg_orders.sql"
    text = edited.read_text()
    assert text.count("        orders.channel,") == 1
    edited.write_text(text.replace("orders.channel,", "lower(orders.channel) as channel,"))
    run("dbt", "--quiet", "docs", "generate", "--target-path", "target/ripple")
    first, second = (
        json.loads(run("dbt-ripple", "load", "--target-path", "target/ripple", "--format", "json"))
        for _ in range(2)
    )
    assert (first["already_loaded"], second["already_loaded"]) == (False, True)
    assert first["snapshot_id"] == second["snapshot_id"] != said["snapshot_id"]
    # The tests that the edit can break: by the tables on the server, and by the artifacts.
    run("dbt", "--quiet", "run", "--select", "package:dbt_ripple,ripple_dim_snapshots")
    impacted = reach().rows("select unique_id from shop_ripple.ripple_impacted_tests")
    projects = [read_project(folder) for folder in (base, run.shop / "target" / "ripple")]
    chosen = {test.unique_id for test in select(*projects, facts=False).tests}
    assert {row["unique_id"] for row in impacted} == chosen
    assert chosen

    target = ("--target-path", "target/ripple")
    report = json.loads(run("dbt-ripple", "report", "--weeks", "1", "--format", "json", *target))
    assert report["source"] == "tables"
    assert report["weeks"][0]["node_coverage"] == 1.0
    run("dbt-ripple", "evidence", "fct_orders", "-o", "pack", "--tables", *target)
    assert json.loads((run.shop / "pack" / "evidence.json").read_text())["recorded"]
    incident = json.loads(
        run("dbt-ripple", "incident", "fct_orders", "--tables", "--format", "json", *target)
    )
    assert incident


def test_a_server_that_does_not_answer_is_one_line(thrift: ThriftServer, tmp_path: Path) -> None:
    run = Commands(tmp_path, ThriftServer(free_port(), None, tmp_path))
    said = run("dbt-ripple", "load", "--schema", "raw", code=2).strip()
    assert said.startswith(
        "dbt-ripple: profiles.yml: dbt's connection to spark does not work (failed"
    )
    assert len(said.splitlines()) == 1
