"""How a command is helped with: what only it does first, and what most commands have behind one line."""

from __future__ import annotations

from typing import Any, Final

import click

from dbt_ripple.cli.options import PARTIAL
from dbt_ripple.session.setting import Setting, set_to

SHARED: Final = frozenset(
    """
    assets cache_dir dataset_namespace events no_cache no_color partial profile profiles_dir project_dir quiet
    target target_path threads variables verbose
    """.split()
)
"""The options, by the names of their parameters, that say the same of most commands."""

_ALL: Final = "dbt_ripple.help_all"


class Command(click.Command):
    """A command whose ``--help`` names the options of `SHARED` in one line; ``--help-all`` explains them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, with what its options say of all that it opens."""
        own = Setting(
            project_dir=ctx.params.get("project_dir"),
            partial=ctx.meta.get(PARTIAL, False),
            keeps=ctx.obj if isinstance(ctx.obj, list) else None,
        )
        with set_to(own):
            return super().invoke(ctx)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All parameters, with ``--help-all`` before ``--help``."""
        params = super().get_params(ctx)
        shared = [param for param in params if param.name in SHARED]
        names = ", ".join(max(param.opts, key=len) for param in shared)
        help_all = click.Option(
            ["--help-all"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_show_all,
            help=f"Explain these options, too: {names}.",
        )
        *others, own_help = params
        return [*others, help_all, own_help] if shared else params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, or all of them for ``--help-all``."""
        everything = ctx.meta.get(_ALL, False)
        rows: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for param in options:
            row = param.get_help_record(ctx)
            if row is not None and not (everything and param.name == "help_all"):
                rows[param.name in SHARED].append(row)
        with formatter.section("Options"):
            formatter.write_dl(rows[False])
        if everything and rows[True]:
            with formatter.section("Options that most commands have"):
                formatter.write_dl(rows[True])


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    own_help = ctx.command.get_help_option(ctx)
    if value and own_help is not None and own_help.callback is not None:
        ctx.meta[_ALL] = True
        own_help.callback(ctx, param, value)
