"""What the tests of the graph share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GENERATE = Path(__file__).resolve().parents[2] / "bench" / "generate.py"


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifacts of a made-up project of 120 models; leave them as they are."""
    folder = tmp_path_factory.mktemp("generated")
    subprocess.run(
        [sys.executable, GENERATE, folder, "--models", "120"], check=True, capture_output=True
    )
    return folder
