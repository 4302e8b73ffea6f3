"""The options that all commands share, how a command is helped with, and how commands open the cache.

Help has what only a command does first, and what most commands have behind one line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from dbt_ripple.errors import RippleError
from dbt_ripple.rendering import terminal
from dbt_ripple.rendering.output import warn
from dbt_ripple.session.open_artifacts import Setting, set_to, setting

if TYPE_CHECKING:
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.session.assets import AssetOptions
    from dbt_ripple.session.project import Project

_Command = TypeVar("_Command", bound=Callable[..., Any])
PARTIAL: Final = "dbt_ripple.partial"
"""Under this name `partial_option` leaves in click's context whether it is given (see `help.Command`)."""


def project_options(command: _Command) -> _Command:
    """Add ``--project-dir`` and ``--target-path``, which mean what they mean to dbt."""
    command = click.option(
        "--target-path",
        envvar="DBT_TARGET_PATH",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="Folder with manifest.json, relative to the project.  [default: target]",
    )(command)
    return click.option(
        "--project-dir",
        envvar="DBT_PROJECT_DIR",
        show_envvar=True,
        default=nearest_project,
        show_default="here, or the nearest folder above with dbt_project.yml",
        type=click.Path(path_type=Path),
        callback=_existing,
        help="The dbt project.",
    )(command)


def _existing(context: click.Context, option: click.Parameter, folder: Path) -> Path:
    """The project's folder: a missing folder is reported before all that would be missing in it."""
    if not context.resilient_parsing and not folder.is_dir():
        what = "is not a folder" if folder.exists() else "no such folder"
        source = context.get_parameter_source(option.name or "")
        given = source is click.core.ParameterSource.ENVIRONMENT and "DBT_PROJECT_DIR"
        where = f"{given or '--project-dir'} {folder}"
        raise RippleError(what, where, "name the folder of dbt_project.yml")
    return folder


def nearest_project() -> Path:
    """The project that dbt takes: the nearest folder with a dbt_project.yml, from here upwards."""
    try:
        here = Path.cwd()
    except OSError:  # it is gone
        return Path()
    for folder in (here, *here.parents):
        if (folder / "dbt_project.yml").exists():
            return Path(os.path.relpath(folder, here))
    return Path()


def format_option(*styles: str, help: str = "Output format.") -> Callable[[_Command], _Command]:
    """Add ``--format``, passed on as ``style``: one of some styles, by default the first."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(styles),
        default=styles[0],
        show_default=True,
        help=help,
    )


def analysis_options(command: _Command) -> _Command:
    """Add ``--threads``, which is dbt's word, and those of `cache_options`."""
    command = click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Number of processes that analyse what is not in the cache.  [default: all cores]",
    )(command)
    return cache_options(command)


def cache_options(command: _Command) -> _Command:
    """Add ``--cache-dir`` and ``--no-cache``, for `open_cache`."""
    command = click.option("--no-cache", is_flag=True, help="Do not read or write the cache.")(
        command
    )
    return click.option(
        "--cache-dir",
        envvar="DBT_RIPPLE_CACHE_DIR",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="Folder of the cache of earlier analyses, at most 1 GB; `dbt clean` does not delete "
        "it.  [default: $XDG_CACHE_HOME/dbt-ripple, ~/.cache/dbt-ripple]",
    )(command)


@contextmanager
def open_cache(cache_dir: Path | None, no_cache: bool) -> Iterator[Cache | None]:
    """The cache, for a command; None where it shall do without."""
    if no_cache:
        with terminal.progress("analysing"):
            yield None
        return
    from dbt_ripple.graph.cache import Cache
    from dbt_ripple.jinja.kept import keep_in

    with Cache(cache_dir, warn=warn) as cache, terminal.progress("analysing"):
        keep_in(cache)
        yield cache


def project_to_ask(
    project_dir: Path,
    target_path: Path | None,
    assets: AssetOptions,
    cache_dir: Path | None,
    no_cache: bool,
    threads: int | None,
    **how: Any,
) -> Project:
    """The project of a process that answers again and again, from several threads; the first question reads it."""
    from dbt_ripple.session.project import Project

    return Project.load(
        project_dir,
        target_path=target_path,
        assets=assets.files,
        events=assets.events or (),
        dataset_namespace=assets.namespace,
        cache=False if no_cache else cache_dir or True,
        threads=threads,
        partial=setting().partial,
        now=False,
        **how,
    )


def listening_options(
    port: int, who: str, variable: str, when: str = ""
) -> Callable[[_Command], _Command]:
    """The options of a command that listens: where, and the token that is asked for.

    Args:
        port: by default.
        who: sends requests.
        variable: of the environment, which may have the token itself.
        when: what the help of each begins with.
    """

    def told(text: str) -> str:
        return f"{when}{text}" if when else text[0].upper() + text[1:]

    options = (
        click.option(
            "--host", default="127.0.0.1", show_default=True, help=told("address to listen on.")
        ),
        click.option(
            "--port",
            default=port,
            show_default=True,
            type=click.IntRange(0, 65535),
            help=told("port to listen on; 0 takes a free one."),
        ),
        click.option(
            "--token-file",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help=told(
                f"file with a token that {who} have to send as `Authorization: Bearer ...`.  "
            )
            + f"[env var: {variable} has the token itself]",
        ),
    )

    def with_options(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


def other_projects_option(what: str) -> Callable[[_Command], _Command]:
    """Add ``--other-project``, passed on as ``others``, for `open_joined`.

    Args:
        what: what the command does with them, as the help says it.
    """
    return click.option(
        "--other-project",
        "others",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        help=f"The artifacts of another dbt project, or its folder: {what}. May be repeated.",
    )


def states_option(what: str) -> Callable[[_Command], _Command]:
    """Add ``--state`` that may be repeated, passed on as ``states``.

    Args:
        what: which folders these are, as the help says it.
    """
    return click.option(
        "--state",
        "states",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        help=what,
    )


def partial_option(command: _Command) -> _Command:
    """Add ``--partial``: models whose SQL is not known are answered without (`session.complete_artifacts`)."""

    def note(context: click.Context, _option: click.Parameter, value: bool) -> None:
        context.meta[PARTIAL] = value

    return click.option(
        "--partial",
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Answer although some models are not compiled and cannot be here: they may read anything.",
    )(command)


def read_token(file: Path | None, variable: str, option: str = "--token-file") -> str | None:
    """What clients of a server have to send; None if nothing is asked for.

    Args:
        file: that has it, as the option says.
        variable: of the environment, which has it where no file is named.
        option: that names the file.

    Raises:
        RippleError: the file cannot be read, or there is nothing in it.
    """
    if file is None:
        token, where = os.environ.get(variable), variable
    else:
        where = f"{option} {file}"
        try:
            token = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RippleError("cannot be read", where) from error
    if token is None:
        return None
    if not (token := token.strip()):
        raise RippleError("has no token in it", where, "an empty token would let nobody in")
    return token


def selection_options(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--select`` and ``--exclude``, for `chosen`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--exclude",
            "excluded",
            metavar="SPEC",
            multiple=True,
            help="Leave out what dbt selects by SPEC.",
        )(command)
        return click.option("--select", "selected", metavar="SPEC", multiple=True, help=help)(
            command
        )

    return add


def threads_option(command: _Command) -> _Command:
    """Add ``--threads`` of a command that runs dbt."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Threads of dbt, and processes for the analysis.",
    )(command)


def connection_options(command: _Command) -> _Command:
    """Add the options that say what dbt connects to, and its vars; :meth:`DbtOptions.taken` takes them."""
    for option in reversed(
        (
            click.option(
                "--profiles-dir",
                envvar="DBT_PROFILES_DIR",
                show_envvar=True,
                type=click.Path(path_type=Path),
                help="Folder with profiles.yml.  [default: dbt's]",
            ),
            click.option(
                "--profile", envvar="DBT_PROFILE", help="The profile.  [default: the project's]"
            ),
            click.option(
                "--target",
                envvar="DBT_TARGET",
                help="The target of the profile.  [default: the profile's]",
            ),
            click.option(
                "--vars", "variables", metavar="YAML", help="Vars for dbt, written as for dbt."
            ),
        )
    ):
        command = option(command)
    return command


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
