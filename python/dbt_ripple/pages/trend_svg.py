"""Trends of some weeks as small static pictures: SVG for pages, characters for Markdown and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape, quoteattr

_WIDTH: Final = 300.0
_HEIGHT: Final = 74.0
_LEFT: Final = 12.0
_TOP: Final = 8.0
_BOTTOM: Final = 18.0
_BARS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = "·"
"""Stands for a week of which the figure is not known."""


def trend(
    title: str,
    weeks: Sequence[str],
    values: Sequence[float | None],
    spelled: Callable[[float], str],
    top: float | None = None,
) -> str:
    """A line over the weeks; where a figure is not known there is a gap, and never a zero.

    Args:
        title: what is shown, for who cannot see it.
        weeks: as they are written below.
        values: one for each week.
        spelled: how a value is written.
        top: the largest value there can be, where there is one.

    Example:
        >>> "not known" in trend("t", ["a", "b"], [1.0, None], str)
        True
    """
    numbers = [value for value in values if value is not None]
    highest = top if top is not None else max([*numbers, 0.0])
    label = ", ".join(
        f"{week}: {'not known' if value is None else spelled(value)}"
        for week, value in zip(weeks, values, strict=True)
    )
    step = (_WIDTH - 2 * _LEFT) / max(len(weeks) - 1, 1)
    space = _HEIGHT - _TOP - _BOTTOM
    # One value alone stands in the middle; a line of zeros lies on the ground.
    points = [
        None
        if value is None
        else (
            _LEFT + step * number if len(weeks) > 1 else _WIDTH / 2,
            _TOP + space * (1 - (value / highest if highest > 0 else 0.0)),
        )
        for number, value in enumerate(values)
    ]
    baseline = _HEIGHT - _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="trend" role="img" aria-label={quoteattr(f"{title}. {label}")}'
        f' viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}">',
        f"<style>{_STYLE}</style>",
        f'<path class="ground" d="M{_LEFT:g} {baseline:g}H{_WIDTH - _LEFT:g}"/>',
    ]
    lines += [
        f'<path class="line" d="M{one[0]:g} {one[1]:g}L{other[0]:g} {other[1]:g}"/>'
        for one, other in pairwise(points)
        if one is not None and other is not None
    ]
    for week, value, point in zip(weeks, values, points, strict=True):
        if value is not None and point is not None:
            about = escape(f"{week}: {spelled(value)}")
            lines.append(
                f'<circle class="point" cx="{point[0]:g}" cy="{point[1]:g}" r="3"><title>{about}</title></circle>'
            )
    if not numbers:
        lines.append(f'<text class="none" x="{_LEFT:g}" y="{_HEIGHT / 2:g}">not known</text>')
    if weeks:
        below = _HEIGHT - 5
        lines.append(f'<text class="week" x="{_LEFT:g}" y="{below:g}">{escape(weeks[0])}</text>')
        if len(weeks) > 1:
            lines.append(
                f'<text class="week" x="{_WIDTH - _LEFT:g}" y="{below:g}" text-anchor="end">{escape(weeks[-1])}</text>'
            )
    return "\n".join([*lines, "</svg>"])


def sparkline(values: Sequence[float | None], top: float | None = None) -> str:
    """The same in characters, one a week.

    Example:
        >>> sparkline([0, None, 2, 4])
        '▁·▅█'
        >>> sparkline([0.5, 1.0], top=1)
        '▅█'
    """
    numbers = [value for value in values if value is not None]
    highest = top if top is not None else max(numbers, default=0.0)
    return "".join(
        GAP
        if value is None
        else _BARS[
            min(round(value / highest * (len(_BARS) - 1) + 0.01), len(_BARS) - 1)
            if highest > 0
            else 0
        ]
        for value in values
    )


_STYLE: Final = (
    ".trend{--line:#0b4ea2;--small:#4b5563;--ground:#8b93a0;font-family:system-ui,sans-serif;max-width:100%}"
    "@media screen and (prefers-color-scheme:dark){.trend{--line:#8ab8ff;--small:#b6bcc6;--ground:#7b8492}}"
    ".trend .line{stroke:var(--line);stroke-width:2;fill:none}.trend .point{fill:var(--line)}"
    ".trend .ground{stroke:var(--ground);stroke-width:1}"
    ".trend .week,.trend .none{font-size:11px;fill:var(--small)}"
)
