"""Each code of `dbt_ripple.reasons` is produced by some test: a run with `--every-reason` fails otherwise.

`make unit` asks for it. Where tests run in several processes, each tells the first.
"""

from __future__ import annotations

from typing import Any

import pytest

from dbt_ripple.reasons import Code, Reason

_produced: set[str] = set()
_plain_call = Code.__call__


def _noting_call(self: Code, **arguments: Any) -> Reason:
    _produced.add(self.value)
    return _plain_call(self, **arguments)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-reason", action="store_true", help="fail if no test produces some reason"
    )


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
    if not config.option.every_reason or exitstatus:
        return
    if missing := sorted({code.value for code in Code} - _produced):
        print(f"\nno test produces the reasons {', '.join(missing)} (see dbt_ripple/reasons.py)")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
