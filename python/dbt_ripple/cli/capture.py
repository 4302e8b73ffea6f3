"""`dbt-ripple capture`: the sources, targets and columns of a job's SQL, written into ripple_assets.yml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dbt_ripple.cli.options import (
    Command,
    cache_options,
    format_option,
    open_cache,
    project_options,
)
from dbt_ripple.cli.register import describing_options, file_option
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, as_document


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple capture jobs/customer_value.sql --id spark:customer_value --dialect spark
  dbt-ripple capture --sql "insert into orders_clean select order_id from raw_orders" --dry-run
  cat job.sql | dbt-ripple capture - --id airflow:nightly_totals --owner data@shop.example
""",
)
@click.argument("sql_file", metavar="[FILE]", required=False)
@click.option("--sql", metavar="SQL", help="The SQL itself, in place of FILE.")
@click.option(
    "--id", "id_", metavar="ID", help="Id of the job.  [default: job:NAME of what it writes]"
)
@click.option(
    "--dialect",
    metavar="NAME",
    help="Dialect of the SQL, as sqlglot calls it.  [default: the project's]",
)
@describing_options
@file_option
@format_option("text", "json")
@cache_options
@project_options
def capture(
    sql_file: str | None,
    sql: str | None,
    id_: str | None,
    dialect: str | None,
    source_ref: str | None,
    owner: str | None,
    schedule: str | None,
    description: str | None,
    tags: tuple[str, ...],
    file: Path | None,
    dry_run: bool,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    project_dir: Path,
    target_path: Path | None,
) -> None:
    """Follow the SQL of a job: print what it reads and writes, column by column, and register it.

    FILE may be - for stdin. The SQL may have several statements, in any dialect that sqlglot reads.
    Tables are named as dbt knows them, as declared assets are called, or as the SQL has them.
    """
    from dbt_ripple.session.project import Project

    text = _text(sql_file, sql)
    with open_cache(cache_dir, no_cache) as cache:
        project = Project(project_dir, target_path, cache=cache, aloud=True)
        document = project.capture(
            text,
            id=id_,
            dialect=dialect,
            file=file,
            dry_run=dry_run,
            source_ref=source_ref or (sql_file if sql_file not in (None, "-") else None),
            owner=owner,
            schedule=schedule,
            description=description,
            tags=tags,
        )
    if style == "json":
        answer(as_document(document))
        return
    sources, targets = (document[key] for key in ("source_tables", "target_tables"))
    answer(
        [
            f"{document['id']}: {', '.join(sources) or '(nothing)'} -> {', '.join(targets) or '(nothing)'}",
            *(f"  {_line(column)}" for column in document["columns"]),
            f"{'would be written to' if dry_run else 'written to'} {document['file']}",
        ]
    )


def _text(file: str | None, sql: str | None) -> str:
    if (file is None) == (sql is None):
        raise click.UsageError("give the SQL by FILE or by --sql")
    if sql is None and file == "-":
        sql = sys.stdin.read()
    if sql is None:
        path = Path(str(file))
        try:
            sql = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = "no such file" if isinstance(error, FileNotFoundError) else "cannot be read"
            raise RippleError(what, str(file), "name a file with SQL") from None
    if not sql.strip():
        raise RippleError("there is no SQL", file or "--sql", "give one statement or more")
    return sql


def _line(column: dict[str, Any]) -> str:
    sources = ", ".join(f"{one['table']}.{one['column']}" for one in column["from"])
    return f"{column['table']}.{column['column']} <- {sources or '(no column)'}"
