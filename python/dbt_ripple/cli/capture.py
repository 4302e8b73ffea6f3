"""`dbt-ripple capture`: the sources, targets and columns of a job's SQL, written into ripple_assets.yml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_ripple.cli.help import Command
from dbt_ripple.cli.options import cache_options, format_option, open_cache, project_options
from dbt_ripple.cli.register import describing_options, file_option, files_of
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.output import answer, as_document, warn
from dbt_ripple.session.assets import open_dbt_or_assets

if TYPE_CHECKING:
    from dbt_ripple.graph.assets.asset_lineage import AssetLineage


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
    from dbt_ripple.artifacts.assets_file import parse_assets
    from dbt_ripple.governance.asset_edits import Registration, registered
    from dbt_ripple.graph.assets.asset_lineage import AssetLineage
    from dbt_ripple.graph.assets.declared_graph import DeclaredGraph

    text = _text(sql_file, sql)
    _check_dialect(dialect)
    where, others = files_of(file, project_dir)
    with open_cache(cache_dir, no_cache) as cache:
        target = open_dbt_or_assets(project_dir, target_path, None, cache)
        name = _named_after(text, dialect or _dialect_of(target.project), id_)
        one = Registration(
            id=name,
            type=None,
            source_ref=source_ref or (sql_file if sql_file not in (None, "-") else None),
            owner=owner,
            schedule=schedule,
            description=description,
            tags=tags,
            sql=text,
            dialect=dialect,
        )
        analysis = target.analysis(tests=False)
        edited = registered(where, [one], target.project, analysis, others)
        declared = [*parse_assets(edited.text, str(where)), *others]
        lineage = AssetLineage(DeclaredGraph(target.project, declared), analysis, cache)
    unique_id = "asset." + one.id.replace(":", ".", 1)
    document = _document(lineage, unique_id, one.id)
    reason = lineage.analysis.nodes[unique_id].reason
    if reason is not None:
        warn(f"{one.id}: {reason.message}")
    if not dry_run:
        edited.write()
    if style == "json":
        answer(as_document({**document, "file": str(where), "written": not dry_run}))
        return
    sources, targets = (document[key] for key in ("source_tables", "target_tables"))
    answer(
        [
            f"{one.id}: {', '.join(sources) or '(nothing)'} -> {', '.join(targets) or '(nothing)'}",
            *(f"  {_line(column)}" for column in document["columns"]),
            f"{'would be written to' if dry_run else 'written to'} {where}",
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


def _check_dialect(dialect: str | None) -> None:
    """Refuse a dialect that nobody knows."""
    from dbt_ripple.artifacts import did_you_mean
    from dbt_ripple.flow.statements import dialects

    if dialect is not None and dialect not in dialects():
        fix = did_you_mean(dialect, dialects(), f"the dialects are {', '.join(dialects())}")
        raise RippleError(f"{dialect!r} is no dialect of SQL", "--dialect", fix)


def _dialect_of(project: Any) -> str:
    from dbt_ripple.flow.identifiers import dialect_of

    return dialect_of(project.metadata.adapter_type)


def _named_after(text: str, dialect: str, given: str | None) -> str:
    """The id of a job: of one that has none, what it writes to is its name.

    Raises:
        RippleError: the SQL cannot be read, or writes to nothing.
    """
    from dbt_ripple.flow.statements import statements
    from dbt_ripple.reasons import Reason

    parsed = statements(text, dialect)
    targets = (
        []
        if isinstance(parsed, Reason)
        else [s.writes.spelled for s in parsed if s.writes is not None and not s.temporary]
    )
    if isinstance(parsed, Reason):
        raise RippleError(parsed.message, "the SQL", "correct it, or say its --dialect")
    if given is not None:
        return given
    if not targets:
        raise RippleError("the SQL writes to nothing it could be named after", "--id", "give an id")
    return f"job:{targets[-1]}"


def _document(lineage: AssetLineage, unique_id: str, id_: str) -> dict[str, Any]:
    graph = lineage.graph
    asset = graph.assets[unique_id]

    def name(of: str) -> str:
        node = graph.whole.nodes.get(of)
        if node is None:
            return of
        return f"{node.source_name}.{node.name}" if node.source_name else node.spoken_name

    linked = lineage.linked[unique_id]
    deps_of_columns = dict(zip(linked.analysis.columns, linked.deps, strict=False))
    columns = []
    for edge in lineage.edges:
        if edge.parent_id == unique_id and edge.parent_column in deps_of_columns:
            sources = [
                {"table": name(table), "column": column}
                for table, column in deps_of_columns[edge.parent_column]
            ]
            columns.append(
                {"table": name(edge.child_id), "column": edge.child_column, "from": sources}
            )
    return {
        "id": id_,
        "source_tables": [name(u) for u in asset.above()],
        "target_tables": [name(u) for u in asset.below()],
        "columns": columns,
    }


def _line(column: dict[str, Any]) -> str:
    sources = ", ".join(f"{one['table']}.{one['column']}" for one in column["from"])
    return f"{column['table']}.{column['column']} <- {sources or '(no column)'}"
