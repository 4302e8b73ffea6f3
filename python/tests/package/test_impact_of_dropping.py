"""`impact_of_dropping` gives from the tables what `dbt-ripple impact --drop` gives from the artifacts."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import jinja2
import pyarrow.parquet as pq
import pytest
from hand_made import node, project

from dbt_ripple.artifacts import Project, find_node
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.spark.load import arrow_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
CROSSINGS = """
    select '' as parent_snapshot_id, '' as parent_id, '' as parent_column,
        '' as child_snapshot_id, '' as child_id, '' as child_column
    where false
"""
"""No other project is loaded."""
TABLE_OF = {
    "ripple_dim_nodes": "nodes",
    "ripple_dim_columns": "columns",
    "ripple_fct_column_edges": "column_edges",
    "ripple_fct_node_closure": "node_closure",
    "ripple_fct_cross_project_edges": "crossings",
    "test_columns": "test_columns",
}


class _ReturnedError(Exception):
    """What dbt's `return()` does: it leaves the macro with a value."""


class _Package:
    """The package's macros, as ``dbt_ripple.x`` in one of them finds another."""

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        macro = getattr(self.module, name)

        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return macro(*arguments, **named)
            except _ReturnedError as returned:
                return returned.args[0]

        return call


def _leave(value: object) -> None:
    raise _ReturnedError(value)


def macros_of(
    engine: str,
    ref: Callable[[str], str],
    variables: dict[str, str],
    run: Callable[[str], list[Any]] = lambda _: [],
    *,
    joined: bool = False,
) -> tuple[jinja2.Environment, Any]:
    """Jinja as dbt has it, with the package's macros about ways through the lineage.

    Args:
        engine: whose versions of macros are called.
        ref: the relation of a model or source of the package.
        variables: vars.
        run: runs a query while something is compiled.
        joined: whether several projects are loaded.
    """
    package = _Package()
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    environment.globals.update(
        dbt_ripple=package,
        execute=True,
        project_name="p",
        graph=SimpleNamespace(nodes={}),
        model=SimpleNamespace(resource_type="analysis"),
        adapter=SimpleNamespace(
            dispatch=lambda name, _: getattr(package, f"{engine}__{name}"),
            get_relation=lambda **_: True,
        ),
        dbt=SimpleNamespace(type_string=lambda: "string"),
        run_query=lambda sql: SimpleNamespace(rows=[tuple(row) for row in run(sql)]),
        ref=lambda _, name: ref(name),
        source=lambda _, name: ref(name),
        var=lambda name, default=None: variables.get(name, default),
        **{"return": _leave},
    )
    files = [*(REPOSITORY / "macros" / "closure").glob("*.sql")]
    files.append(REPOSITORY / "macros" / "types" / "text_literal.sql")
    one_project = f"{{% macro projects_are_joined() %}}{{% do return({joined}) %}}{{% endmacro %}}"
    macros = "".join(file.read_text() for file in sorted(files)) + one_project
    package.module = environment.from_string(macros).module
    return environment, package


def rendered(
    unique_id: str,
    column: str,
    run: Callable[[str], list[Any]],
    engine: str = "default",
    schema: str = "main",
    ref: Callable[[str], str] | None = None,
    *,
    joined: bool = False,
) -> str:
    """The analysis as dbt compiles it."""
    variables = {"ripple_node": unique_id, "ripple_column": column}
    if ref is None:

        def ref(name: str) -> str:
            return f"{schema}.{TABLE_OF.get(name, name)}"

    environment, package = macros_of(engine, ref, variables, run, joined=joined)
    analysis = (REPOSITORY / "analyses" / "impact_of_dropping.sql").read_text()
    names = ("asked_nodes", "affected_by_dropping")
    return environment.from_string(analysis).render({n: getattr(package, n) for n in names})


def loaded(world: Project) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    snapshot = build_rows(world, analyse(world))
    connection.sql(f"create table crossings as {CROSSINGS}")
    for table in sorted({*TABLE_OF.values()} - {"crossings"}):
        connection.register("rows", arrow_table(table, snapshot.rows[table]))
        connection.sql(f'create table "{table}" as select * from rows')
    connection.sql("alter table nodes add column project_name varchar default 'p'")
    return connection


def from_tables(
    connection: duckdb.DuckDBPyConnection, unique_id: str, column: str
) -> dict[str, str]:
    def run(sql: str) -> list[Any]:
        return connection.sql(sql).fetchall()

    frame = run(rendered(unique_id, column, run))
    return {row[1]: row[4] for row in frame}


def from_artifacts(world: Project, unique_id: str, column: str) -> dict[str, str]:
    report = impact(world, find_node(world, unique_id)[0], [Change("drop", column)])
    return {asset.unique_id: asset.severity for asset in report.affected_assets}


RAW = node("source.p.raw", columns=["id", "k", "v", "w"])


def worlds(seed: int) -> Project:
    """A random project of lists of columns, filters, groups, joins, opaque nodes and consumers."""
    pick = random.Random(seed)
    columns: dict[str, list[str]] = {"raw": ["id", "k", "v", "w"]}
    nodes = [RAW]
    for number in range(pick.randint(3, 8)):
        name = f"m{number}"
        parent = pick.choice([*columns])
        have = columns[parent]
        kept = sorted(pick.sample(have, pick.randint(1, len(have))))
        shape = pick.choice(["plain", "filter", "group", "join", "made", "case", "python"])
        parents = [parent]
        sql: str | None = f"select {', '.join(kept)} from s.{parent}"
        if shape == "filter":
            sql += f" where {pick.choice(have)} > 1"
        elif shape == "group":
            kept = [kept[0], "n"]
            sql = f"select {kept[0]}, count(*) as n from s.{parent} group by {kept[0]}"
        elif shape == "join":
            other = pick.choice([*columns])
            by, to = pick.choice(have), pick.choice(columns[other])
            own = ", ".join(f"a.{column}" for column in kept)
            sql = f"select {own} from s.{parent} as a join s.{other} as b on a.{by} = b.{to}"
            parents.append(other)
        elif shape == "made":
            sql = f"select {' || '.join(kept)} as {kept[0]} from s.{parent}"
            kept = kept[:1]
        elif shape == "case":
            sql = f"select case when {pick.choice(have)} = 1 then {kept[0]} end as {kept[0]} from s.{parent}"
            kept = kept[:1]
        ids = ["source.p.raw" if p == "raw" else f"model.p.{p}" for p in dict.fromkeys(parents)]
        if shape == "python":
            nodes.append(node(f"model.p.{name}", None, *ids, language="python", columns=kept))
        else:
            nodes.append(node(f"model.p.{name}", sql, *ids))
        columns[name] = kept
    for number, name in enumerate(pick.sample([*columns][1:], 2)):
        meta = {"referenced_columns": columns[name][:1]} if pick.random() < 0.6 else {}
        nodes.append(
            node(f"exposure.p.e{number}", None, f"model.p.{name}", type="dashboard", meta=meta)
        )
    return project(*nodes, catalog={RAW.unique_id: columns["raw"]}, adapter="duckdb")


@pytest.mark.spark
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    def run(sql: str) -> list[Any]:
        return spark.sql(sql).collect()

    spark.sql("create database if not exists dropping")
    # Spark plans each for many seconds. What they answer is tried on many more worlds by DuckDB, below.
    for seed, column in ((3, "id"), (11, "v")):
        world = worlds(seed)
        snapshot = build_rows(world, analyse(world))
        spark.sql(f"create or replace view dropping.crossings as {CROSSINGS}")
        for table in {*TABLE_OF.values()} - {"crossings"}:
            file = str(tmp_path / f"{table}-{seed}.parquet")
            pq.write_table(arrow_table(table, snapshot.rows[table]), file)
            spark.sql(
                f"create or replace view dropping.{table} as"
                f" select *, 'p' as project_name from parquet.`{file}`"
            )
        rows = spark.sql(rendered("source.p.raw", column, run, "spark", "dropping")).collect()
        severity_of = {row["unique_id"]: row["severity"] for row in rows}
        assert severity_of == from_artifacts(world, "source.p.raw", column), (seed, column)


@pytest.mark.parametrize("seed", range(25))
def test_tables_and_artifacts_agree(seed: int) -> None:
    world = worlds(seed)
    with loaded(world) as connection:
        for column in ("id", "k", "v", "w"):
            expected = from_artifacts(world, "source.p.raw", column)
            assert from_tables(connection, "source.p.raw", column) == expected, column
