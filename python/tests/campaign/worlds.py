"""The projects the campaign edits, built by a real dbt: the tea shop and projects nobody wrote."""

from __future__ import annotations

from pathlib import Path

from dbt_builds import Folder, copy_shop
from engines import DuckDB, Spark
from random_project import CATALOG, Maker
from world import World


def shop(work: Path) -> tuple[World, Folder]:
    """The tea shop of integration_tests/."""
    folder = Folder(copy_shop(work / "project"), work)
    return built("shop", folder), folder


def shop_on_spark(work: Path) -> tuple[World, Folder]:
    """The tea shop on an embedded Spark, which is dbt's own session."""
    from dbt_ripple.spark.session import get_session, local_environment

    local_environment(work / "spark")
    session = get_session()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    folder = Folder(copy_shop(work / "project"), work, output="spark")
    folder.build()
    folder.dbt("compile", "--full-refresh")
    return World("spark shop", folder.read(), Spark(session), work / "scratch"), folder


def lab(work: Path, seed: int) -> tuple[World, Folder]:
    """A random project."""
    maker = Maker(seed)
    maker.make()
    maker.write(work / "project")
    folder = Folder(work / "project", work, f"{CATALOG}.duckdb")
    maker.load(folder.duckdb)
    return built(f"lab {seed}", folder), folder


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
