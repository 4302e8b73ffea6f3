"""The extras ``collect`` and ``kafka``: whether they are installed."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final, Literal

from dbt_ripple.errors import RippleError

_MODULES: Final = {
    "collect": {
        "jsonschema_rs": "jsonschema-rs",
        "starlette": "starlette",
        "uvicorn": "uvicorn",
        "prometheus_client": "prometheus-client",
    },
    "kafka": {"confluent_kafka": "confluent-kafka"},
}


def require_extra(extra: Literal["collect", "kafka"]) -> None:
    """Refuse to go on where a part of it is missing.

    Raises:
        RippleError: it names the first one.
    """
    for module, package in _MODULES[extra].items():
        if importlib.util.find_spec(module) is None:
            raise RippleError(
                f"{package} is not installed in this Python",
                sys.prefix,
                f'run `pip install "dbt-ripple[{extra}]"`',
            )
