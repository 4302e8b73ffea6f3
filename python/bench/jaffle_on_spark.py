"""What the dbt package adds to somebody else's project: dbt's jaffle-shop on Spark.

    python python/bench/jaffle_on_spark.py --clones DIR [--folder FOLDER] [--parts all]

DIR holds clones of dbt-labs/jaffle-shop and of the packages that it asks for (`real_projects.py` says in which
layouts); nothing of them is kept here. Spark reads the seeds' files (a clone without large files has no orders: 5,000 are
made), dbt builds the rest. On one embedded Spark, in one
process: the project's own build without the package and with it, `dbt-ripple build`, the package's own tests; then
one expression is edited and loaded, and ten questions are asked. Printed in Markdown: relations, lines of dbt's log,
seconds with their share of the project's own build, and the answers. It exits with 1 where more relations are made than
a dozen, or where a share is over what docs/package.md promises.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from real_projects import OURS, PROJECTS, RealProject, _checkout, _package

PROJECT: Final = next(project for project in PROJECTS if project.name == "jaffle-shop")
RELATIONS: Final = 12
ORDERS: Final = 5_000
BUILD, TESTED = 0.25, 0.5
"""What `dbt-ripple build` may take of the project's own build, and with the package's tests."""
PROFILE: Final = {
    "type": "spark",
    "method": "session",
    "host": "none",
    "schema": "jaffle",
    "threads": 4,
}
NODES: Final = {
    "downstream_of_node": ("stg_orders", None),
    "columns_that_break": ("customers", "lifetime_spend"),
    "impact_of_dropping": ("stg_products", "product_price"),
    "most_read_models": (None, None),
    "analysis_statuses": (None, None),
}
"""Prepared questions, with what they are asked about."""
SQL: Final = {
    "Is the lineage loaded?": "select status, node_count, column_count, column_edge_count, message"
    " from {s}.ripple_lineage_status",
    "What is orders.order_total made of?": "select edges.parent_id, edges.parent_column, edges.subtype"
    " from {s}.ripple_fct_column_edges as edges where edges.child_id = 'model.jaffle_shop.orders'"
    " and edges.child_column = 'order_total' and edges.type = 'DIRECT'",
    "Which columns does nothing read?": "select columns.node_name, count(*) as columns"
    " from {s}.ripple_dim_columns as columns left join {s}.ripple_fct_column_edges as edges"
    " on columns.snapshot_id = edges.snapshot_id and columns.unique_id = edges.parent_id"
    " and columns.column_name = edges.parent_column"
    " where columns.resource_type = 'model' and columns.node_name like 'stg%' and edges.parent_id is null"
    " group by columns.node_name order by columns.node_name",
    "Which tests can the last change break?": "select name, change, moved_reads"
    " from {s}.ripple_impacted_tests order by name",
    "What changed between the two loads?": "select heads.node_name, heads.column_name, bases.expression as base,"
    " heads.expression as head from {raw}.columns as bases inner join {s}.ripple_dim_columns as heads"
    " on bases.unique_id = heads.unique_id and bases.column_name = heads.column_name"
    " and bases.own_fingerprint != heads.own_fingerprint order by 1, 2",
}


class Shop:
    """The project in a folder, with the package or without it."""

    def __init__(self, clones: Path, folder: Path, *, package: bool, parts: str) -> None:
        self.folder = folder / ("with" if package else "without")
        self.schema = f"jaffle_{self.folder.name}"
        _checkout(clones, PROJECT.clone, self.folder)
        packages = (*PROJECT.packages, *([OURS] if package else []))
        listed = [{"local": _package(name, clones, folder)} for name in packages]
        self.write("packages.yml", {"packages": listed})
        (self.folder / "package-lock.yml").unlink(missing_ok=True)
        output = {**PROFILE, "schema": self.schema}
        self.write("profiles.yml", {"default": {"target": "dev", "outputs": {"dev": output}}})
        if package and parts:
            file = self.folder / "dbt_project.yml"
            settings = yaml.safe_load(file.read_text())
            settings["vars"]["dbt_ripple"] = {"ripple_parts": parts}
            file.write_text(yaml.safe_dump(settings, sort_keys=False))
        self.dbt("deps")

    def write(self, name: str, content: object) -> None:
        (self.folder / name).write_text(yaml.safe_dump(content, sort_keys=False))

    def dbt(self, *arguments: str) -> str:
        """What a command prints."""
        from dbt.cli.main import dbtRunner

        os.chdir(self.folder)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            done = dbtRunner().invoke(
                ["--no-use-colors", *arguments, "--profiles-dir", str(self.folder)]
            )
        if not done.success:
            sys.exit(f"dbt {arguments[0]}: {done.exception or ''}\n{output.getvalue()[-3000:]}")
        return output.getvalue()

    def ripple_build(self) -> str:
        from dbt_ripple.cli.build import build

        os.chdir(self.folder)
        os.environ["DBT_PROFILES_DIR"] = str(self.folder)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            build.main(["--project-dir", str(self.folder)], standalone_mode=False)
        return output.getvalue()


def timed(work: Callable[[], str]) -> tuple[float, int]:
    """Seconds, and lines that were printed."""
    begun = time.perf_counter()
    lines = len([line for line in work().splitlines() if line.strip()])
    return time.perf_counter() - begun, lines


def orders(folder: Path) -> None:
    """Orders and their items of the shop's customers, stores and products: a clone may lack these large files."""

    def ids(name: str, *columns: str) -> list[tuple[str, ...]]:
        with (folder / f"{name}.csv").open(newline="") as file:
            return [tuple(row[column] for column in columns) for row in csv.DictReader(file)]

    pick = random.Random(1)
    customers, stores = ids("raw_customers", "id"), ids("raw_stores", "id")
    products = ids("raw_products", "sku", "price")
    with (
        (folder / "raw_orders.csv").open("w", newline="") as of_orders,
        (folder / "raw_items.csv").open("w", newline="") as of_items,
    ):
        order_rows, item_rows = csv.writer(of_orders), csv.writer(of_items)
        order_rows.writerow("id customer ordered_at store_id subtotal tax_paid order_total".split())
        item_rows.writerow(["id", "order_id", "sku"])
        for number in range(ORDERS):
            bought = pick.choices(products, k=pick.randint(1, 4))
            subtotal = sum(int(price) for _, price in bought)
            tax = round(subtotal * 0.06)
            day = datetime(2024, 9, 1, 8) + timedelta(minutes=97 * number)
            of = (*pick.choice(customers), day.isoformat(), *pick.choice(stores))
            order_rows.writerow([f"o{number}", *of, subtotal, tax, subtotal + tax])
            item_rows.writerows(
                [f"i{number}-{at}", f"o{number}", sku] for at, (sku, _) in enumerate(bought)
            )


def sources(session: Any, project: Path) -> None:
    """The tables that the project's sources are, from its seeds' files."""
    session.sql("create database if not exists raw")
    folder = project / "seeds" / "jaffle-data"
    if not (folder / "raw_orders.csv").exists() or not (folder / "raw_items.csv").exists():
        orders(folder)
    for file in sorted(folder.glob("*.csv")):
        rows = session.read.csv(str(file), header=True, inferSchema=True)
        rows.write.mode("overwrite").saveAsTable(f"raw.{file.stem}")


def relations(session: Any, schema: str) -> list[str]:
    """The package's models that are there; views and tables."""
    names = {
        row["tableName"]
        for (database,) in session.sql("show databases").collect()
        if database == schema or database == f"{schema}_ripple"
        for row in session.sql(f"show tables in {database}").collect()
    }
    return sorted(name for name in names if name.startswith("ripple_"))


def shown(rows: list[Any]) -> str:
    """An answer in short."""
    if not rows:
        return "nothing"
    cells = [", ".join(str(value) for value in row if value is not None) for row in rows[:3]]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return "; ".join(cells)[:240] + more


def ask(session: Any, shop: Shop, models: str) -> None:
    """Ten questions with their answers and seconds."""
    print("\n| question | seconds | rows | answer |\n| --- | ---: | ---: | --- |")
    raw = f"{shop.schema}_ripple_raw"
    asked = {words: text.format(s=models, raw=raw) for words, text in SQL.items()}
    for name, (node, column) in NODES.items():
        named = {"ripple_node": node, "ripple_column": column}
        variables = {key: value for key, value in named.items() if value is not None}
        shop.dbt("compile", "--select", name, "--vars", json.dumps(variables))
        (file,) = (shop.folder / "target" / "compiled").rglob(f"{name}.sql")
        of = f" of `{node}{f'.{column}' if column else ''}`" if node else ""
        asked[f"`{name}`{of}"] = file.read_text()
    for words, text in asked.items():
        session.sql(text).collect()  # Java is compiled for the first answer
        begun = time.perf_counter()
        rows = session.sql(text).collect()
        print(f"| {words} | {time.perf_counter() - begun:.1f} | {len(rows)} | {shown(rows)} |")


def edit(project: RealProject, folder: Path) -> None:
    name, before, after = project.edit
    file = folder / name
    text = file.read_text()
    assert text.count(before) == 1, name
    file.write_text(text.replace(before, after))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="kept; by default a temporary one")
    parser.add_argument("--parts", default="", help="what ripple_parts says; by default nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        over = measure(options.clones.resolve(), folder, options.parts)
    sys.exit(1 if over else 0)


def measure(clones: Path, folder: Path, parts: str) -> list[str]:
    """What is over its bound."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g pyspark-shell")
    from dbt_ripple.spark.session import get_session, local_environment

    local_environment(folder / "spark", short_lived=True)
    session = get_session()
    plain = Shop(clones, folder, package=False, parts=parts)
    ours = Shop(clones, folder, package=True, parts=parts)
    sources(session, plain.folder)
    own, lines = timed(lambda: plain.dbt("build"))
    beside, lines_beside = timed(lambda: ours.dbt("build"))
    first, _ = timed(ours.ripple_build)
    again, lines_again = timed(ours.ripple_build)
    tests, _ = timed(lambda: ours.dbt("test", "--select", f"package:{OURS}"))
    warm, _ = timed(lambda: plain.dbt("build"))
    made = relations(session, ours.schema)
    print("| what | figure |\n| --- | --- |")
    print(f"| the project's own `dbt build`, Spark cold, and again | {own:.1f} s, {warm:.1f} s |")
    print(f"| a plain `dbt build` with the package installed | {beside:.1f} s |")
    for what, seconds in (
        ("`dbt-ripple build`, the first", first),
        ("`dbt-ripple build` again", again),
        ("the package's own tests", tests),
        ("both", again + tests),
    ):
        shares = f"{seconds / own:.2f} of the own build, {seconds / warm:.2f} of it again"
        print(f"| {what} | {seconds:.1f} s ({shares}) |")
    print(f"| relations that the package makes | {len(made)}: {', '.join(made)} |")
    print(
        f"| lines of a plain `dbt build`, without the package and with it | {lines}, {lines_beside} |"
    )
    print(f"| lines that `dbt-ripple build` prints besides dbt's log | {lines_again} |", flush=True)
    edit(PROJECT, ours.folder)
    ours.ripple_build()
    ask(session, ours, ours.schema)
    session.stop()
    bounds = {
        "relations": len(made) > RELATIONS and not parts,
        "dbt-ripple build": again > BUILD * own and not parts,
        "with the package's tests": again + tests > TESTED * own and not parts,
    }
    over = [what for what, is_over in bounds.items() if is_over]
    print("\n" + ("OVER its bound: " + ", ".join(over) if over else "all within their bounds"))
    return over


if __name__ == "__main__":
    main()
