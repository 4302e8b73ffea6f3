"""The options `--assets`, `--events` and `--dataset-namespace`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from dbt_ripple.session.assets import STORE, AssetOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])


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
