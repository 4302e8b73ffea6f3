"""The build hook: a wheel carries the bundle of the explorer's page, made of explorer/.

An sdist carries it, too, so that a wheel made of an sdist needs neither Node nor npm's registry.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "explorer"))
import bundle

WITHOUT = "DBT_RIPPLE_WITHOUT_EXPLORER"
"""Set to build without the page, where npm's registry cannot be reached."""


class ExplorerBundle(BuildHookInterface):  # type: ignore[type-arg]
    """Makes the bundle where it is missing or older than its sources."""

    def dependencies(self) -> list[str]:
        """What has to be installed to build: Node, where it is needed and the machine has none."""
        needed = not (bundle.is_fresh() or os.environ.get(WITHOUT) or bundle.has_node())
        return [bundle.NODE_WHEEL] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the bundle.

        Raises:
            BundleError: it cannot be made, and a wheel is to carry it. An editable install goes on
                without it: `dbt-ripple explorer` then says what to do.
        """
        if bundle.is_fresh():
            return
        if os.environ.get(WITHOUT):
            self.app.display_warning(f"{WITHOUT} is set: without the explorer's page")
            return
        try:
            bundle.make()
        except bundle.BundleError as error:
            if version != "editable":
                raise bundle.BundleError(
                    f"{error}\n{WITHOUT}=1 builds all but the explorer"
                ) from error
            self.app.display_warning(f"{error}\nInstalled without the explorer's page.")
