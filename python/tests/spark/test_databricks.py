"""What a load sends to Databricks, beside its documentation. None of it is executed: there is no workspace here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import sqlglot
from snapshots_by_hand import snapshot_by_hand

from dbt_ripple.spark.load import Destination, load
from dbt_ripple.spark.server import AdapterServer
from dbt_ripple.spark.stage import Stage

REPOSITORY: Final = Path(__file__).parents[3]

# The syntax of docs.databricks.com, SQL language reference, as far as it is used here; a name is
# quoted, a query is not looked into.
_NAME: Final = r"`[^`]+`"
_TABLE: Final = rf"{_NAME}(?:\.{_NAME})*"
_LIST: Final = rf"\({_NAME}(?:, {_NAME})*\)"
SYNTAX: Final = {
    "INSERT": rf"insert (?:overwrite|into) (?:table )?{_TABLE}(?: partition \(snapshot_id = '\w+'\))?"
    rf" {_LIST} select .+",
    "COPY INTO": rf"copy into {_TABLE} from \(select .+ from '[^']+'\) fileformat = parquet",
    "DELETE FROM": rf"delete from {_TABLE} where snapshot_id = '\w+'",
    "CREATE SCHEMA": rf"create schema if not exists {_TABLE}",
    "CREATE TABLE": rf"create table if not exists {_TABLE} \(\n.+\n\) using delta(?:\npartitioned by \(snapshot_id\))?",
}


class Adapter:
    """Stands where dbt's adapter of Databricks would be, and keeps what it is sent; a query has no rows."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.config = SimpleNamespace(credentials=SimpleNamespace())
        self.sent: list[str] = []
        self._sizes = sizes

    def type(self) -> str:
        return "databricks"

    def acquire_connection(self, name: str) -> None:
        pass

    def cleanup_connections(self) -> None:
        pass

    def execute(self, statement: str) -> None:
        self.sent.append(statement)

    def add_query(self, query: str, auto_begin: bool) -> tuple[None, Any]:
        if query.startswith("describe schema"):
            raise KeyError(query)
        counted = re.match(r"select count\(\*\) as arrived from .+`(\w+)` where", query)
        rows = [(self._sizes[counted[1]],)] if counted else []
        return None, SimpleNamespace(description=[("arrived",)], fetchall=lambda: rows)


def sent(tmp_path: Path, file_format: str, *, stage: bool) -> list[str]:
    snapshot = snapshot_by_hand("s1", nodes=4)
    adapter = Adapter({table: len(rows) for table, rows in snapshot.rows.items()})
    server = AdapterServer(adapter, Stage(str(tmp_path)) if stage else None, statement_bytes=500)
    load(server, snapshot, Destination(("main", "raw"), file_format))
    server.close()
    return adapter.sent


@pytest.mark.parametrize("stage", [False, True])
def test_every_statement_has_the_documented_syntax(tmp_path: Path, stage: bool) -> None:
    statements = sent(tmp_path, "delta", stage=stage)
    seen = set()
    for statement in statements:
        (kind,) = (
            kind for kind, form in SYNTAX.items() if re.fullmatch(form, statement, re.DOTALL)
        )
        seen.add(kind)
        if kind != "COPY INTO":
            sqlglot.parse_one(statement, read="databricks")
    copied = {"COPY INTO", "DELETE FROM"} if stage else set()
    assert seen == {"INSERT", "CREATE SCHEMA", "CREATE TABLE", *copied}


def test_a_partition_is_emptied_once_and_then_copied_into(tmp_path: Path) -> None:
    of_nodes = [s for s in sent(tmp_path, "delta", stage=True) if "`raw`.`nodes`" in s][1:]
    emptied, copied = of_nodes
    assert emptied == "delete from `main`.`raw`.`nodes` where snapshot_id = 's1'"
    assert copied.startswith(
        "copy into `main`.`raw`.`nodes` from (select 's1' as snapshot_id, `unique_id`, `name`,"
    )
    assert re.search(
        rf" from 'file://{tmp_path}/dbt_ripple_\w+/nodes-0\.parquet'\) fileformat = parquet$",
        copied,
    )


def test_only_delta_tables_are_copied_into(tmp_path: Path) -> None:
    statements = sent(tmp_path, "parquet", stage=True)
    assert not [s for s in statements if s.startswith(("copy", "delete"))]
    assert any("from parquet.`file://" in s for s in statements)


ASKED: Final = """
import inspect
from pathlib import Path
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.dbt_runner.profile import adapter_of
from dbt_ripple.spark.server import AdapterServer, ServerError
from dbt_ripple.spark.stage import Stage

adapter = adapter_of(Path(), DbtOptions(profiles_dir=Path()))
server = AdapterServer(adapter)
assert adapter.type() == "databricks" and server.copies
inspect.signature(adapter.execute).bind("insert ...")
inspect.signature(adapter.add_query).bind("select 1", auto_begin=False)
inspect.signature(adapter.acquire_connection).bind("dbt_ripple")
files = Stage("dbfs:/Volumes/main/raw/stage/x/", adapter)._files._files
inspect.signature(files.upload).bind("/x", None, overwrite=True)
for call in (files.create_directory, files.delete, files.delete_directory):
    inspect.signature(call).bind("/x")
try:
    server.rows("select 1 as one")
except ServerError as error:
    print("refused:", error)
"""


# It installs dbt-databricks into an environment of its own.
@pytest.mark.matrix
def test_the_adapter_of_databricks_has_the_calls_that_a_load_makes(tmp_path: Path) -> None:
    folder = REPOSITORY / ".cache" / "dbt-databricks"
    uv, python = Path(sys.executable).with_name("uv"), folder / "bin" / "python"
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python)]
    subprocess.run([str(uv), "venv", "--quiet", "--clear", str(folder)], check=True)
    wanted = ["-e", str(REPOSITORY / "python"), "dbt-databricks~=1.11.0"]
    subprocess.run([*install, *wanted], check=True)

    shop = tmp_path / "shop"
    shop.mkdir()
    for name in ("dbt_project.yml", "macros", "models", "seeds", "snapshots", "tests"):
        (shop / name).symlink_to(REPOSITORY / "integration_tests" / name)
    (shop / "packages.yml").write_text(f"packages:\n  - local: {REPOSITORY}\n")
    (shop / "profiles.yml").write_text(
        "shop:\n  target: dbx\n  outputs:\n    dbx: {type: databricks, host: 127.0.0.1,"
        " http_path: /sql/1.0/warehouses/abc, token: none, catalog: main, schema: shop,"
        " connect_retries: 0, connection_parameters: {_retry_stop_after_attempts_count: 1}}\n"
    )
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=shop, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    dbt = str(folder / "bin" / "dbt")
    run(dbt, "--quiet", "deps")
    run(dbt, "--quiet", "parse")
    models = run(dbt, "--quiet", "ls", "--resource-type", "model").splitlines()
    assert len(models) > 70
    assert run(str(python), "-c", ASKED).startswith("refused: ")
