"""Macros of packages that shops have, of which it is known to which relations they write.

`known_hooks.json` lists the versions of packages that were read: a digest of all their macros, and for each macro
that is called in hooks whether it writes to the relations of its own package, or to none. A package with
any other macro than these, and one of which another package replaces a macro, is read like anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from dbt_ripple.artifacts import Macro
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.macros import OWN, Macros, dispatched

OWN_RELATIONS = "its own relations"


class KnownMacros:
    """The macros of one project of which that is known.

    Attributes:
        writes: the packages to whose relations each of them may write, by unique_id.
    """

    def __init__(self, macros: Macros) -> None:
        self.writes: dict[str, tuple[str, ...]] = {}
        self.tests: set[str] = set()
        packages: dict[str, list[Macro]] = {}
        for unique_id in macros.user:
            macro = macros.macros[unique_id]
            packages.setdefault(macro.package_name, []).append(macro)
        for package, known in known_packages().items():
            of_package = packages.get(package, [])
            if not of_package or (package != OWN and digest_of(of_package) not in known["digests"]):
                continue
            if _is_replaced(package, packages):
                continue
            for macro in of_package:
                if (writes := known["hooks"].get(macro.name)) is not None:
                    self.writes[macro.unique_id] = (package,) if writes == OWN_RELATIONS else ()


def _is_replaced(package: str, packages: dict[str, list[Macro]]) -> bool:
    """Whether another package has a version of one of its macros, which ``dispatch`` may take."""
    names = {dispatched(m.name) for m in packages[package] if dispatched(m.name) != m.name}
    return any(
        dispatched(macro.name) != macro.name and dispatched(macro.name) in names
        for other, macros in packages.items()
        if other != package
        for macro in macros
    )


def digest_of(macros: Iterable[Macro]) -> str:
    """A digest of all macros of a package, whatever their order and the ends of their lines."""
    texts = sorted(f"{m.name}\n{' '.join(m.macro_sql.split())}" for m in macros)
    return digest(*(text.encode("utf-8", "surrogatepass") for text in texts)).hex()


@cache
def known_packages() -> dict[str, Any]:
    """What the file says: by package ``digests`` with the version of each, and ``hooks``."""
    text = (files(__package__) / "known_hooks.json").read_text("utf-8")
    packages: dict[str, Any] = json.loads(text)
    return packages
