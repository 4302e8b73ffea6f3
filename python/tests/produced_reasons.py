"""Each code of `dbt_ripple.reasons` is produced by some test: a run of all tests fails otherwise.

A run of some of them only gathers. Where tests run in several processes, each tells the first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt_ripple.reasons import Code, Reason

_produced: set[str] = set()
_TESTS = Path(__file__).parent
_plain_call = Code.__call__


def _noting_call(self: Code, **arguments: Any) -> Reason:
    _produced.add(self.value)
    return _plain_call(self, **arguments)


def pytest_configure() -> None:
    Code.__call__ = _noting_call  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    Code.__call__ = _plain_call  # type: ignore[method-assign]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended."""
    _produced.update(getattr(node, "workeroutput", {}).get("reasons", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["reasons"] = sorted(_produced)
        return
    asked = [Path(argument).resolve() for argument in config.args]
    if asked != [_TESTS] or exitstatus or config.option.keyword or config.option.collectonly:
        return
    if missing := sorted({code.value for code in Code} - _produced):
        print(f"\nno test produces the reasons {', '.join(missing)} (see dbt_ripple/reasons.py)")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
