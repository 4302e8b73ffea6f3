"""What dbt connects to: the target of the profile, with the values that dbt itself resolves."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.dataset_names import OPTION, Connection
from dbt_ripple.spark.load import ADAPTERS
from dbt_ripple.spark.server import AdapterServer
from dbt_ripple.spark.stage import Stage


def connection_of(
    project_dir: Path, options: DbtOptions, run_args: Mapping[str, Any]
) -> Connection:
    """What dbt connects to, as it reads the profile itself; nothing is opened.

    Args:
        project_dir: the project.
        options: how dbt is called; what they leave out is taken from ``run_args``.
        run_args: the arguments of the command that wrote run_results.json.

    Raises:
        RippleError: dbt or the adapter is not installed here, or it cannot read the profile.
    """
    fix = f"mend that, or give the namespace of the datasets by {OPTION}"
    credentials: Any = _read_profile(project_dir, options, run_args, fix).credentials
    return Connection(
        credentials.type, {name: getattr(credentials, name) for name in vars(credentials)}
    )


def adapter_of(project_dir: Path, options: DbtOptions) -> Any | None:
    """Dbt's adapter, where the profile reaches a Spark that runs elsewhere; nothing is opened yet.

    Args:
        project_dir: the project.
        options: how dbt is called.

    Returns:
        The adapter. None where dbt is not installed, where there is no profiles.yml, and where the profile is of
        another adapter or has dbt work on a Spark of its own process (`method: session`).

    Raises:
        RippleError: dbt cannot read the profile.
    """
    folder = options.resolved(project_dir).profiles_dir
    there = folder is not None and (folder / "profiles.yml").is_file()
    if not (there and (project_dir / "dbt_project.yml").is_file() and find_spec("dbt")):
        return None
    profile = _read_profile(
        project_dir, options, {}, "mend that, or name a Spark by --master or --remote"
    )
    if not by_adapter(profile.credentials):
        return None
    from dbt.adapters.factory import get_adapter_by_type, register_adapter, reset_adapters
    from dbt.mp_context import get_mp_context
    from dbt_common.events.event_manager_client import cleanup_event_logger

    cleanup_event_logger()  # nobody has told dbt where its lines go, and it would print them
    reset_adapters()  # one that is there is of another profile
    register_adapter(profile, get_mp_context())
    return get_adapter_by_type(profile.credentials.type)


def by_adapter(credentials: Any) -> bool:
    """Whether dbt reaches, with these credentials, a Spark or Databricks that runs elsewhere."""
    return credentials.type in ADAPTERS and getattr(credentials, "method", None) != "session"


def _read_profile(
    project_dir: Path, options: DbtOptions, run_args: Mapping[str, Any], fix: str
) -> Any:
    """The target of the profile, as dbt reads it.

    Raises:
        RippleError: dbt or the adapter is not installed here, or it cannot read the profile.
    """
    project_dir = project_dir.resolve()
    try:
        from dbt.config.runtime import load_profile
        from dbt.config.utils import parse_cli_vars
        from dbt.flags import set_from_args
        from dbt_common.context import set_invocation_context
    except ImportError as error:
        raise RippleError(
            "dbt is not installed in this Python, and only dbt can read the profile",
            sys.prefix,
            f"install it with your adapter, or give the namespace of the datasets by {OPTION}",
        ) from error
    options = options.resolved(_profiles_dir(project_dir, options, run_args))
    profile, target = (
        given or run_args.get(name)
        for name, given in (("profile", options.profile), ("target", options.target))
    )
    given_vars = run_args.get("vars")
    variables: dict[str, Any] = dict(given_vars) if isinstance(given_vars, dict) else {}
    try:
        if options.variables:
            variables |= parse_cli_vars(options.variables)
        set_invocation_context(os.environ)
        flags = {"MACRO_DEBUGGING": False, "VERSION_CHECK": False, "PROJECT_DIR": str(project_dir)}
        set_from_args(Namespace(PROFILES_DIR=str(options.profiles_dir), **flags), None)
        with contextlib.redirect_stdout(io.StringIO()):  # dbt may complain there of what is old
            return load_profile(str(project_dir), variables, profile, target)
    except Exception as error:  # whatever dbt or the adapter raise
        message = " ".join(str(error).split())[:300] or type(error).__name__
        raise RippleError(
            f"dbt cannot read the profile ({message})", str(options.profiles_dir), fix
        ) from error


def _profiles_dir(project_dir: Path, options: DbtOptions, run_args: Mapping[str, Any]) -> Path:
    """Where profiles.yml is looked for if it is neither here nor given: where the run found it."""
    given_dir = run_args.get("profiles_dir")
    if options.profiles_dir is None and isinstance(given_dir, str):
        folder = project_dir / given_dir
        if (folder / "profiles.yml").exists():
            return folder
    return project_dir


def adapter_connection() -> Connection:
    """What dbt connects to in this process, once it has parsed a project.

    Raises:
        RippleError: it has registered no adapter.
    """
    credentials = registered_adapter().config.credentials
    return Connection(
        credentials.type, {name: getattr(credentials, name) for name in vars(credentials)}
    )


def registered_adapter() -> Any:
    """The adapter of dbt's last command in this process.

    Raises:
        RippleError: it has registered none.
    """
    from dbt.adapters.factory import FACTORY

    for adapter in FACTORY.adapters.values():
        return adapter
    raise RippleError("dbt has no adapter in this process", fix="run a dbt command first")


def server_of(adapter: Any, stage: str | None) -> AdapterServer:
    """The server that an adapter connects to.

    Args:
        adapter: dbt's, of Spark or Databricks.
        stage: the URL of a folder for rows that one statement cannot take.

    Raises:
        RippleError: the stage cannot be used.
    """
    from dbt_common.events.event_manager_client import cleanup_event_logger

    # dbt would write each statement into its log, the rows in it too. Its next command opens the log again.
    cleanup_event_logger()
    return AdapterServer(adapter, Stage(stage, adapter) if stage else None)
