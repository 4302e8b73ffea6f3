"""Badges: a figure in a picture, as SVG. The same figure gives the same bytes.

Three of them: ``coverage`` (how much of the lineage is known), ``certified`` and ``slo`` (service levels that are
met). One is red where its figure is below what the project asks for (the var ``ripple_red_below``, which the dbt
package's SQL reads, too), and grey where there is no figure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final, Literal

import msgspec

from dbt_ripple.artifacts import did_you_mean
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.ripple_yml import PROJECT_FILE, package_vars
from dbt_ripple.pages.health import Health, share
from dbt_ripple.pages.project_document import DescribedNode
from dbt_ripple.rendering.escaping import shortened
from dbt_ripple.rendering.output import percent

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
    for name, least in thresholds.items():
        if name not in figures:
            fix = did_you_mean(str(name), figures, f"the figures are {', '.join(figures)}")
            raise RippleError(f"{VAR}: no figure {name!r}", where, fix)
        number = isinstance(least, int | float) and not isinstance(least, bool)
        if not number or not 0 <= least <= 1:
            raise RippleError(
                f"{VAR}: {name} is {least!r}", where, "say a share from 0 to 1, such as 0.9"
            )
    return RedBelow(**{name: float(least) for name, least in thresholds.items()})


Figure = Literal["coverage", "certified", "slo"]

# White text on each has a contrast above 4.5.
_COLOURS: Final = {"good": "#1a7f37", "bad": "#b3261e", "unknown": "#57606a"}
_LABEL: Final = "#3b4048"
_HEIGHT: Final = 20
_NARROW: Final = "filrt "
_MARGIN: Final = 6
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,119}")


class Badge(msgspec.Struct, frozen=True):
    """A figure with its text.

    Attributes:
        value: from 0 to 1; None where there is no figure.
        text: what stands on the right side.
        is_bad: whether it is below what the project asks for.
    """

    figure: Figure
    value: float | None
    text: str
    is_bad: bool

    def svg(self, of: str = "") -> str:
        """The picture; ``of`` is whose it is, for who cannot see it."""
        colour = "unknown" if self.value is None else "bad" if self.is_bad else "good"
        label = self.text
        left, right = (_width(side) + 2 * _MARGIN for side in (self.figure, label))
        width = left + right
        whose = f"{shortened(of, 120)}: " if of else ""
        title = escape(f"{whose}{self.figure} {label}")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" role="img" '
            f'aria-label="{title}"><title>{title}</title>'
            f'<rect width="{width}" height="{_HEIGHT}" rx="3" fill="{_LABEL}"/>'
            f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="{_COLOURS[colour]}"/>'
            '<g fill="#fff" text-anchor="middle" font-size="11" '
            'font-family="Verdana,DejaVu Sans,sans-serif">'
            f'<text x="{left / 2:g}" y="14" textLength="{left - 2 * _MARGIN}">{self.figure}</text>'
            f'<text x="{left + right / 2:g}" y="14" textLength="{right - 2 * _MARGIN}">{escape(label)}</text>'
            "</g></svg>\n"
        )


def _width(text: str) -> int:
    """About how many pixels a text takes; the letters are spaced to just fill them."""
    return sum(4 if char in _NARROW else 7 for char in text)


def percent_or_unknown(value: float | None) -> str:
    """A share as everywhere, or that it is not known."""
    return "unknown" if value is None else percent(value)


def badges_of_health(health: Health, red_below: RedBelow) -> list[Badge]:
    """The badges of a project or a domain."""
    return [
        _badge("coverage", health.node_coverage, red_below.coverage),
        _badge("certified", health.certified_path_integrity, red_below.certified),
        _badge("slo", health.slos.share, red_below.slo),
    ]


def badges_of_node(node: DescribedNode, red_below: RedBelow) -> list[Badge]:
    """The badges of a dataset; coverage only of what has a query."""
    badges = []
    if node.status != "leaf":
        followed = sum(column.is_followed for column in node.columns)
        covered = share(followed, len(node.columns)) if node.status == "analysed" else 0.0
        badges.append(_badge("coverage", covered, red_below.coverage))
    if node.certified:
        certified = "yes" if node.path_is_complete else "path unknown"
        value = float(node.path_is_complete)
        badges.append(Badge("certified", value, certified, value < red_below.certified))
    else:
        badges.append(Badge("certified", None, "no", False))
    badges.append(_badge("slo", node.slos.share, red_below.slo))
    return badges


def _badge(figure: Figure, value: float | None, least: float) -> Badge:
    return Badge(figure, value, percent_or_unknown(value), value is not None and value < least)


def file_name(of: str, badge: Badge) -> str:
    """The file of a badge, whatever its owner is called; two owners never share one.

    Example:
        >>> file_name("model.shop.orders", Badge("slo", 1.0, "100%", False))
        'model.shop.orders.slo.svg'
    """
    name = of
    if not _PLAIN.fullmatch(of) or of.endswith("."):
        tame = re.sub(r"[^a-z0-9_.-]+", "-", of.lower()).strip("-.")[:60]
        digest = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{tame or 'x'}-{digest}"
    return f"{name}.{badge.figure}.svg"


def files(whose: str, badges: list[Badge], of: str) -> Iterator[tuple[str, str]]:
    """Names and contents of the files of badges."""
    for badge in badges:
        yield file_name(whose, badge), badge.svg(of)
