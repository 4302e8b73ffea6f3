"""Macros of packages that shops have, of which it is known to which relations they write.

`known_hooks.json` lists the versions of packages that were read: a digest of all their macros, and for each macro
that is called in hooks whether it writes to the relations of its own package, or to none. A package with
any other macro than these, and one of which the project replaces a macro, is read like anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from dbt_ripple.artifacts import Macro
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.graph.macros import OWN, Macros, dispatched

OWN_RELATIONS: Final = "its own relations"
"""What the file says of a macro that writes to what the package itself has; ``nothing`` of one that writes to none."""


class KnownMacros(NamedTuple):
    """The macros of one project of which that is known.

    Attributes:
        writes: the packages to whose relations each of them may write when a hook calls it, by unique_id.
        beside: those of packages whose materializations give what dbt's own do.
    """

    writes: dict[str, tuple[str, ...]]
    beside: frozenset[str]


def known_macros(macros: Macros) -> KnownMacros:
    """Those of a project."""
    writes: dict[str, tuple[str, ...]] = {}
    beside: set[str] = set()
    root = macros.project.name
    packages: dict[str, list[Macro]] = {}
    for unique_id in macros.user:
        macro = macros.project.macros[unique_id]  # whole, as the digests are
        packages.setdefault(macro.package_name, []).append(macro)
    for package, known in known_packages().items():
        of_package = packages.get(package, [])
        is_known = package == OWN or digest_of(of_package) in known["digests"]
        if not of_package or not is_known:
            continue
        if package != root and _is_replaced(of_package, packages.get(root, ())):
            continue
        if known.get("beside"):
            beside.update(macro.unique_id for macro in of_package)
        for macro in of_package:
            if (what := known["hooks"].get(macro.name)) is not None:
                writes[macro.unique_id] = (package,) if what == OWN_RELATIONS else ()
    return KnownMacros(writes, frozenset(beside))


def _is_replaced(of_package: Iterable[Macro], of_project: Iterable[Macro]) -> bool:
    """Whether the project has a version of a macro of the package, which ``dispatch`` takes."""
    names = {dispatched(m.name) for m in of_package if dispatched(m.name) != m.name}
    return any(
        dispatched(macro.name) != macro.name and dispatched(macro.name) in names
        for macro in of_project
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
