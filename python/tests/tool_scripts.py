"""The scripts of python/tools, which no package holds, as modules."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).parents[1] / "tools"


@cache
def tool(name: str) -> Any:
    """A script by its name, without running what it does as a command."""
    spec = importlib.util.spec_from_file_location(f"{name}_tool", TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
