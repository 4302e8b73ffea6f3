"""Writes the digests of `graph/known_hooks.json`: of each version of a package, one of all its macros.

What a version's hooks and materializations write has to be read before its digest is added: run this with the
folder of a git clone and the tags that were read. dbt parses the macros, and nothing else of the package.

    python python/tools/known_hooks.py PACKAGE CLONE TAG...

A package whose macros only some adapters have is parsed by the dbt of such a one (``--dbt``, ``--adapter``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from dbt_ripple.artifacts import read_project
from dbt_ripple.graph import known_hooks

FILE = Path(known_hooks.__file__).with_name("known_hooks.json")
_PROJECT = "name: reader\nversion: '1.0'\nprofile: reader\nconfig-version: 2\n"
_PROFILE = """
reader:
  target: t
  outputs:
    t: {type: ADAPTER, path: ":memory:", host: h, user: u, password: p, port: 1, dbname: d, schema: s}
"""


def digest_at(package: str, clone: Path, tag: str, dbt: Path, adapter: str) -> str:
    """The digest of a package's macros at a tag of its clone."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "dbt_project.yml").write_text(_PROJECT)
        (root / "profiles.yml").write_text(_PROFILE.replace("ADAPTER", adapter))
        to = root / "dbt_packages" / package
        to.mkdir(parents=True)
        listed = subprocess.run(
            ["git", "-C", clone, "ls-tree", "-r", "--name-only", tag],
            check=True, capture_output=True, text=True,
        ).stdout.split("\n")  # fmt: skip
        # Without its hooks, which would be rendered here.
        (to / "dbt_project.yml").write_text(_PROJECT.replace("reader", package, 1))
        for name in listed:
            if name.startswith(("macros/", "tests/generic/")) and name.endswith(".sql"):
                file = to / name
                file.parent.mkdir(parents=True, exist_ok=True)
                shown = subprocess.run(
                    ["git", "-C", clone, "show", f"{tag}:{name}"], check=True, capture_output=True
                )
                file.write_bytes(shown.stdout)
        subprocess.run(
            [dbt, "-q", "--no-version-check", "parse", "--profiles-dir", root, "--project-dir", root],
            check=True, cwd=root,
        )  # fmt: skip
        project = read_project(root / "target")
    return known_hooks.digest_of(m for m in project.macros.values() if m.package_name == package)


def main() -> None:
    """Add the digests of some versions to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("clone", type=Path)
    parser.add_argument("tags", nargs="+")
    parser.add_argument("--dbt", type=Path, default=Path(sys.executable).with_name("dbt"))
    parser.add_argument("--adapter", default="duckdb")
    asked = parser.parse_args()
    known = json.loads(FILE.read_text("utf-8"))
    digests = known[asked.package]["digests"]
    for tag in asked.tags:
        digest = digest_at(asked.package, asked.clone, tag, asked.dbt, asked.adapter)
        digests[digest] = ", ".join(sorted({*digests.get(digest, tag).split(", "), tag}))
        print(asked.package, tag, digest)
    FILE.write_text(json.dumps(known, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
