"""The options that name what is compared, and what is read beside dbt: `--state`, `--base-ref`, `--assets`, `--events`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from dbt_ripple.cli.options import connection_options
from dbt_ripple.session.assets import STORE, AssetOptions


def assets_option(command: _Command) -> _Command:
    """Add ``--assets``, passed on as ``assets``: `AssetOptions` without events."""

    @functools.wraps(command)
    def with_files(*args: Any, assets: tuple[Path, ...], **more: Any) -> Any:
        return command(*args, assets=AssetOptions(assets, None), **more)

    return cast("_Command", _assets(with_files))


def with_asset_options(command: _Command) -> _Command:
    """Add ``--assets``, ``--events`` and ``--dataset-namespace``, passed on as ``assets``: `AssetOptions`."""

    @functools.wraps(command)
    def with_events(
        *args: Any,
        assets: tuple[Path, ...],
        events: tuple[Path, ...],
        dataset_namespace: str | None,
        **more: Any,
    ) -> Any:
        options = AssetOptions(assets, events, dataset_namespace)
        return command(*args, assets=options, **more)

    namespace = click.option(
        "--dataset-namespace",
        metavar="NAMESPACE",
        help="The namespace of dbt's own datasets in these events, such as postgres://db.internal:5432.  "
        "[default: any of the adapter's engine]",
    )
    events = click.option(
        "--events",
        metavar="DIR|FILE",
        multiple=True,
        envvar="DBT_RIPPLE_EVENTS",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="A folder of OpenLineage events that `dbt-ripple collect` has stored, or a file of events, "
        f"in addition to the folder {STORE} beside the project. May be repeated.",
    )
    return cast("_Command", _assets(events(namespace(with_events))))


def _assets(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--assets",
        "assets",
        metavar="FILE",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A file with assets that dbt does not build, in addition to ripple_assets.yml beside the "
        "project. May be repeated.",
    )(command)


_Command = TypeVar("_Command", bound=Callable[..., Any])


def state_option(command: _Command) -> _Command:
    """Add ``--state``, which means what it means to dbt."""
    return click.option(
        "--state",
        envvar="DBT_STATE",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="Folder with the artifacts of base, for example those of production.",
    )(command)


def sides_options(command: _Command, *, state_with_base_ref: str = "") -> _Command:
    """Add what names the two sides, for `open_sides`; `DbtOptions.taken` takes dbt's of them.

    Args:
        command: the command.
        state_with_base_ref: what the help says of ``--state`` beside ``--base-ref``.
    """
    base_ref = click.option(
        "--base-ref",
        metavar="REF",
        help="Compile base from this commit and head from the working copy; no artifacts are needed."
        + state_with_base_ref,
    )
    no_deps = click.option(
        "--no-deps",
        is_flag=True,
        help="With --base-ref: stop, instead of running `dbt deps`, where base has other packages.",
    )
    return state_option(base_ref(no_deps(with_asset_options(connection_options(command)))))


def sides_of_run_options(command: _Command) -> _Command:
    """The same for a command that can run dbt, which defers to ``--state``."""
    return sides_options(
        command,
        state_with_base_ref=" Whatever dbt then runs defers to --state, if that is given, too.",
    )


def facts_options(command: _Command) -> _Command:
    """Add ``--facts`` and ``--assume-passed``: whether base's passed tests prove others."""
    passed = click.option(
        "--assume-passed",
        is_flag=True,
        help="Count all of base's tests as passed, whatever run_results.json says.",
    )
    return click.option(
        "--facts/--no-facts",
        default=True,
        help="Leave out tests that base's passed tests prove cannot fail (the default), and tests "
        "below a model that cannot be built.",
    )(passed(command))
