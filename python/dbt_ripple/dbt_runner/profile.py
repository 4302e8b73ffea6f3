"""What dbt connects to: the target of the profile, with the values that dbt itself resolves."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.errors import RippleError
from dbt_ripple.openlineage.dataset_names import OPTION, Connection


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
    project_dir = project_dir.resolve()
    fix = f"mend that, or give the namespace of the datasets by {OPTION}"
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
            loaded_profile = load_profile(str(project_dir), variables, profile, target)
        credentials: Any = loaded_profile.credentials
        values = {name: getattr(credentials, name) for name in vars(credentials)}
    except Exception as error:  # whatever dbt or the adapter raise
        message = " ".join(str(error).split())[:300] or type(error).__name__
        raise RippleError(
            f"dbt cannot read the profile ({message})", str(options.profiles_dir), fix
        ) from error
    return Connection(credentials.type, values)


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
    from dbt.adapters.factory import FACTORY

    for adapter in FACTORY.adapters.values():
        credentials = adapter.config.credentials
        values = {name: getattr(credentials, name) for name in vars(credentials)}
        return Connection(credentials.type, values)
    raise RippleError("dbt has no adapter in this process", fix="run a dbt command first")
