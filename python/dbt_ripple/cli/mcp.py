"""`dbt-ripple mcp`: the same answers for agents, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbt_ripple.cli.options import (
    Command,
    analysis_options,
    connection_options,
    listening_options,
    other_projects_option,
    partial_option,
    project_options,
    project_to_ask,
    read_token,
)
from dbt_ripple.cli.sides_options import state_option, with_asset_options
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.extras import require_extra
from dbt_ripple.rendering.output import answer
from dbt_ripple.session.assets import AssetOptions

TOKEN = "DBT_RIPPLE_MCP_TOKEN"


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple mcp --base-ref origin/main
  dbt-ripple mcp --state prod-artifacts --allow-writes
  DBT_RIPPLE_MCP_TOKEN=... dbt-ripple mcp --http --port 8765
""",
)
@click.option(
    "--http", "serves", is_flag=True, help="Serve streamable HTTP, in place of stdin and stdout."
)
@listening_options(8765, "clients", TOKEN, "With --http: ")
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Let the tool `register` write ripple_assets.yml; no other tool writes anything.",
)
@state_option
@click.option(
    "--base-ref",
    metavar="REF",
    help="Compare with this commit, which dbt compiles, where a question names no base.",
)
@other_projects_option("answers go on where these read what this one builds")
@with_asset_options
@partial_option
@connection_options
@analysis_options
@project_options
def mcp(
    serves: bool,
    host: str,
    port: int,
    token_file: Path | None,
    allow_writes: bool,
    state: Path | None,
    base_ref: str | None,
    others: tuple[Path, ...],
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    project_dir: Path,
    target_path: Path | None,
    **dbt_arguments: Any,
) -> None:
    """Answer agents, over stdin and stdout or, with --http, over streamable HTTP.

    The tools are search, node, trace, impact, select_tests, explain, gate, diagnose, check_sql and register; docs/agents.md
    says how to set up clients. Artifacts are read again when dbt has written them anew. An answer has at most
    25,000 characters, and says what it leaves out.
    """
    require_extra("mcp")
    from dbt_ripple.mcp.server import over_http, over_stdio
    from dbt_ripple.mcp.tools import Tools
    from dbt_ripple.session.base_and_head import state_folder

    options = DbtOptions.taken({**dbt_arguments, "threads": threads})
    where = (project_dir, target_path, assets, cache_dir, no_cache, threads)
    project = project_to_ask(*where, others=others, dbt=options)
    base = str(state_folder(project_dir, state)) if state is not None else base_ref or ""
    tools = Tools(project, base, allow_writes)
    if not serves:
        if token_file is not None:
            raise click.UsageError("--token-file is for --http: over stdin nobody else can ask")
        over_stdio(tools)
        return
    token = read_token(token_file, TOKEN)
    if token is None:
        raise RippleError(
            "whoever reaches the port could ask, because no token is set",
            "--http",
            f"give --token-file or set {TOKEN}",
        )
    over_http(tools, host, port, token, lambda url: answer([f"listening on {url}"]))
