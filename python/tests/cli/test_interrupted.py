"""Ctrl-C and SIGTERM end every command with the shell's exit code, and clean up on the way."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dbt_ripple import cli


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    def compiling(**_: Any) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path):
            os.kill(os.getpid(), sent)
            pytest.fail("it went on")

    # Where the tests run in the background, the shell has SIGINT ignored.
    monkeypatch.setattr(cli, "cli", compiling)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    of_term = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == code
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == of_term
