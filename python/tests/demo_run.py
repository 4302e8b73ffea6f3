"""`make demo`, run once for all tests that look at what it made: as on a machine without Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SHOP = REPOSITORY / "integration_tests"


def changes() -> str:
    """What git sees in the repository that was not there before."""
    return subprocess.run(
        ["git", "status", "--porcelain"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout


def without_java(path: str, folder: Path) -> str:
    """`path` with the folders that hold a `java` mirrored without it (`/usr/bin` holds more than Java)."""
    entries = []
    for number, entry in enumerate(map(Path, path.split(os.pathsep))):
        if not (entry / "java").exists():
            entries.append(str(entry))
            continue
        mirror = folder / str(number)
        mirror.mkdir(parents=True)
        for program in entry.iterdir():
            if program.name != "java":
                (mirror / program.name).symlink_to(program)
        entries.append(str(mirror))
    return os.pathsep.join(entries)


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo with an empty home; it runs on the Java that comes with the install."""
    home = folder / "home"
    home.mkdir()
    path = without_java(os.environ["PATH"], folder / "bin")
    assert shutil.which("java", path=path) is None
    environment = {
        "HOME": str(home),
        "PATH": path,
        **{k: v for k, v in os.environ.items() if k.startswith(("LANG", "LC_", "SSL_", "TMP"))},
    }
    before = changes()
    result = subprocess.run(
        [sys.executable, str(SHOP / "demo.py")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=1800,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    assert changes() == before
    return result
