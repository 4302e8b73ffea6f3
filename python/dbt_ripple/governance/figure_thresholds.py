"""Below which share a figure is bad: the var ``ripple_red_below``, which the dbt package's SQL reads, too."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from dbt_ripple.artifacts import did_you_mean
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.ripple_yml import PROJECT_FILE, package_vars

VAR: Final = "ripple_red_below"


class RedBelow(msgspec.Struct, frozen=True):
    """Shares from 0 to 1.

    Attributes:
        coverage: of the nodes, or of a dataset's columns, whose lineage is known.
        certified: of the certified datasets, those whose whole path is known.
        slo: of the service levels, those that are met.
    """

    coverage: float = 0.9
    certified: float = 1.0
    slo: float = 1.0


def read_red_below(project_dir: Path) -> RedBelow:
    """What the project says in ``dbt_project.yml``, and of the rest the defaults.

    Raises:
        RippleError: it names another figure, or what is no share.
    """
    thresholds = package_vars(project_dir).get(VAR) or {}
    where = str(project_dir / PROJECT_FILE)
    figures = RedBelow.__struct_fields__
    if not isinstance(thresholds, dict):
        raise RippleError(f"{VAR} is no mapping", where, "say {coverage: 0.9}")
    for name, share in thresholds.items():
        if name not in figures:
            fix = did_you_mean(str(name), figures, f"the figures are {', '.join(figures)}")
            raise RippleError(f"{VAR}: no figure {name!r}", where, fix)
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 <= share <= 1:
            raise RippleError(
                f"{VAR}: {name} is {share!r}", where, "say a share from 0 to 1, such as 0.9"
            )
    return RedBelow(**{name: float(share) for name, share in thresholds.items()})
