"""What some commands need besides: whether it is installed, and what installs it."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

from dbt_ripple.errors import RippleError

_MODULES: Final = {
    "collect": {
        "jsonschema_rs": "jsonschema-rs",
        "starlette": "starlette",
        "uvicorn": "uvicorn",
        "prometheus_client": "prometheus-client",
    },
    "datahub": {"datahub.emitter": "acryl-datahub"},
    "kafka": {"confluent_kafka": "confluent-kafka"},
    "mcp": {"mcp.server": "mcp", "uvicorn": "uvicorn"},
    "mlflow": {"mlflow": "mlflow-skinny"},
    "openlineage": {"openlineage.client": "openlineage-python"},
    "send": {"requests": "requests"},
}
"""By extra of the package, the modules it brings and what they are installed by."""


def require_extra(extra: str) -> None:
    """Refuse to go on where a part of an extra is missing.

    Raises:
        RippleError: it names the first missing part, and the command that installs all of them. That command
            does not name this package, which need not come from where ``pip`` looks.
    """
    for module, package in _MODULES[extra].items():
        if not _is_there(module):
            raise RippleError(
                f"{package} is not installed in this Python", sys.prefix, f"run `{_install(extra)}`"
            )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is what it is a part of
        return False


def _install(extra: str) -> str:
    try:
        wanted = [
            one.partition(";")[0].strip()
            for one in requires("dbt-ripple") or ()
            if one.partition(";")[2].strip().replace('"', "'") == f"extra == '{extra}'"
        ]
    except PackageNotFoundError:  # its folder is on the path
        wanted = []
    return "pip install " + " ".join(f'"{one}"' for one in wanted or _MODULES[extra].values())
