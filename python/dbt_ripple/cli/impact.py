"""`dbt-ripple impact NODE --rename a:b ...`: who would break."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    format_option,
    open_cache,
    other_projects_option,
    partial_option,
    project_options,
)
from dbt_ripple.cli.shell_completion import column_names, node_names
from dbt_ripple.cli.sides_options import with_asset_options
from dbt_ripple.errors import RippleError
from dbt_ripple.rendering.impact import impact_markdown, impact_text
from dbt_ripple.rendering.output import answer, as_document, warn
from dbt_ripple.session.assets import AssetOptions

if TYPE_CHECKING:
    from dbt_ripple.governance.hypothetical_changes import Change


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple impact raw_orders --rename order_total:total_amount --drop legacy_discount_code
  dbt-ripple impact fct_orders --retype 'order_total:decimal(18,2)' --format json
  dbt-ripple impact orders_clean --add currency:string:required
  dbt-ripple impact raw_orders --changes proposed_changes.json --format json
  dbt-ripple impact dim_customers.v1 --deprecate --date 2027-03-31 --format markdown
  dbt-ripple impact metric:revenue --remove
  dbt-ripple impact fct_orders --drop channel --other-project ../finance/target
  dbt-ripple impact semantic_model:orders --drop order__status
  dbt-ripple impact api:checkout --drop amount_cents
""",
)
@click.argument("node", metavar="NODE", shell_complete=node_names, default="")
@click.option(
    "--rename",
    "renames",
    metavar="A:B",
    shell_complete=column_names,
    multiple=True,
    help="Rename column A to B.",
)
@click.option(
    "--drop",
    "drops",
    metavar="COLUMN",
    shell_complete=column_names,
    multiple=True,
    help="Remove a column.",
)
@click.option(
    "--retype",
    "retypes",
    metavar="A:TYPE",
    shell_complete=column_names,
    multiple=True,
    help="Give column A the type TYPE.",
)
@click.option(
    "--add",
    "adds",
    metavar="A:TYPE[:required]",
    multiple=True,
    help="Add column A of the type TYPE; `required`: every row has a value.",
)
@click.option(
    "--deprecate",
    is_flag=True,
    help="Announce that NODE will be removed; until then nothing breaks.",
)
@click.option(
    "--date",
    "ends",
    metavar="DATE",
    default="",
    help="With --deprecate: the day from which NODE may be removed (YYYY-MM-DD); by default its "
    "deprecation_date, or 30 days from now.",
)
@click.option("--remove", is_flag=True, help="Remove NODE itself.")
@click.option(
    "--changes",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take the changes from FILE, JSON with `proposed_changes`; NODE may be its `asset_id`.",
)
@other_projects_option("the answer also has its nodes that read what this project builds")
@with_asset_options
@format_option("text", "json", "markdown")
@partial_option
@analysis_options
@project_options
def impact(
    node: str,
    renames: tuple[str, ...],
    drops: tuple[str, ...],
    retypes: tuple[str, ...],
    adds: tuple[str, ...],
    deprecate: bool,
    ends: str,
    remove: bool,
    file: Path | None,
    others: tuple[Path, ...],
    assets: AssetOptions,
    style: str,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
) -> int:
    """Print who would break if NODE's columns were renamed, dropped, retyped or added, or NODE removed.

    NODE is a model, seed, snapshot or source, or a metric, a semantic model (its columns are its
    entities, dimensions and measures), a saved query or a declared asset, named as in `trace`. Nothing has to be written
    yet: the project's artifacts are enough. The exit code is 1 if anything certainly breaks. Exposures
    without meta.referenced_columns get a warning, and nodes that cannot be analysed are listed.
    """
    from dbt_ripple.governance.hypothetical_changes import Change
    from dbt_ripple.session.project import Project

    changes = [
        *(Change("rename", *_pair("--rename", pair, "new name")) for pair in renames),
        *(Change("drop", column) for column in drops),
        *(Change("retype", *_pair("--retype", pair, "type")) for pair in retypes),
        *(_added(pair) for pair in adds),
        *([Change("deprecate", to=ends)] if deprecate else []),
        *([Change("remove")] if remove else []),
    ]
    if ends and not deprecate:
        raise click.UsageError("--date is the day of a deprecation: give --deprecate, too")
    if file is not None:
        from dbt_ripple.governance.hypothetical_changes import read_proposed

        asset, proposed = read_proposed(file)
        changes += proposed
        node = node or asset or ""
    if not node:
        raise click.UsageError("Missing argument 'NODE'.")
    with open_cache(cache_dir, no_cache) as cache:
        project = Project(
            *(project_dir, target_path),
            assets=assets,
            others=others,
            cache=cache,
            threads=threads,
            aloud=True,
        )
        answered = project.impact(node, changes)
    for unique_id, reason in answered.not_analysed.items():
        warn(f"{unique_id} cannot be analysed ({reason}): it may read any column")
    name = answered.shown.nodes[answered.node].spoken_name
    if style == "json":
        answer(as_document(answered.report.document()))
    elif style == "markdown":
        answer(impact_markdown(answered.report, name, changes, answered.shown))
    else:
        answer(impact_text(answered.report, name, changes, answered.shown), fit="wrap")
    return int(answered.decision == "BLOCKED")


def _pair(option: str, text: str, second: str) -> tuple[str, str]:
    column, colon, to = text.partition(":")
    if not colon or not column.strip() or not to.strip():
        raise RippleError(
            f"{text!r} is not COLUMN:{second.upper().replace(' ', '_')}",
            option,
            f"give the column, a colon and the {second}",
        )
    return column.strip(), to.strip()


def _added(text: str) -> Change:
    from dbt_ripple.governance.hypothetical_changes import Change

    column, to = _pair("--add", text, "type")
    kind, colon, rest = to.rpartition(":")
    if colon and rest.strip().lower() == "required":
        return Change("add", column, kind.strip(), True)
    return Change("add", column, to)
