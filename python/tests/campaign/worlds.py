"""The projects the campaign edits, built by a real dbt: the tea shop and projects nobody wrote."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dbt_builds import Folder, copy_shop, install
from engines import DuckDB, Spark
from random_project import CATALOG, Maker
from world import World, plain_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_ripple.artifacts import Project

FEW_ROWS: Final = {
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings that change no result: one task a query, and no Java compiled for some thousand rows."""


def shop(work: Path, packages: Sequence[str] = ()) -> tuple[World, Folder]:
    """The tea shop of integration_tests/, with the packages of these folders and their hooks."""
    folder = Folder(copy_shop(work / "project"), work)
    if packages:
        install(folder, packages)
    return built("shop", folder), folder


def shop_on_spark(work: Path) -> tuple[World, Folder]:
    """The tea shop on an embedded Spark, with every setting that dbt had when it compiled.

    The shop's only snapshot is left out: it needs a table format that knows merges, which parquet
    is not. Nothing is built by dbt but seeds and sources, as a world makes the rest itself.
    """
    from dbt_ripple.spark.session import get_session, local_environment

    local_environment(work / "spark")
    session = get_session(config=FEW_ROWS)
    folder = Folder(copy_shop(work / "project"), work, output="spark")
    folder.dbt("seed")
    folder.dbt("compile", "--full-refresh")
    project = folder.read()
    session = without_metastore(session, project, work / "spark")
    return World("spark shop", project, Spark(session), work / "scratch"), folder


def without_metastore(session: SparkSession, project: Project, folder: Path) -> SparkSession:
    """A Spark in the place of dbt's, in the same Java: it reads the same seeds and sources.

    Its catalog lies in memory: a metastore on disk takes as long for a view as a query for its rows.
    """
    settings = {k: v for k, v in session.conf.getAll.items() if k.startswith("spark.sql.")}
    settings["spark.sql.catalogImplementation"] = "in-memory"
    settings["spark.sql.warehouse.dir"] = str(folder / "campaign")
    session.stop()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    loaded = [n for n in project.nodes.values() if n.resource_type in ("seed", "source")]
    for schema in {n.schema for n in project.nodes.values() if n.schema}:
        session.sql(f"create schema if not exists {schema}")
    for node in loaded:
        name = plain_name(node)
        schema, table = name.split(".")
        path = folder / "warehouse" / f"{schema}.db" / table
        session.sql(f"create table {name} using parquet location '{path}'")
    return session


def lab(work: Path, seed: int) -> tuple[World, Folder]:
    """A random project."""
    maker = Maker(seed)
    maker.make()
    maker.order_readers()
    maker.write(work / "project")
    folder = Folder(work / "project", work, f"{CATALOG}.duckdb")
    maker.load(folder.duckdb)
    world = built(f"lab {seed}", folder)
    if seed % 4 == 3:
        world.forget_a_column(random.Random(seed))
    return world, folder


def built(name: str, folder: Folder) -> World:
    """Build a project with dbt and make it the base of a world."""
    folder.build()
    folder.dbt("docs", "generate")
    folder.dbt("compile", "--full-refresh")
    database = folder.copy_database(folder.work / "base" / folder.database)
    project = folder.read()
    nodes = project.nodes.values()
    catalog = next(n.database for n in nodes if n.resource_type == "model" and n.database)
    engine = DuckDB.in_memory(catalog, {n.schema for n in nodes if n.schema}, database)
    return World(name, project, engine, folder.work / "scratch")
