"""The extra ``collect``: whether it is installed."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

from dbt_ripple.errors import RippleError

_MODULES: Final = {
    "jsonschema_rs": "jsonschema-rs",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
    "prometheus_client": "prometheus-client",
}


def require_extra() -> None:
    """Refuse to go on where a part of it is missing.

    Raises:
        RippleError: it names the first one.
    """
    for module, package in _MODULES.items():
        if importlib.util.find_spec(module) is None:
            raise RippleError(
                f"{package} is not installed in this Python",
                sys.prefix,
                'run `pip install "dbt-ripple[collect]"`',
            )
