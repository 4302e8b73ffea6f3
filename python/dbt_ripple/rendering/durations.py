"""How long something is, as people write it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_TIME: Final = re.compile(r"(\d{1,6})\s*([mhd])", re.IGNORECASE)


def timedelta_of(text: str) -> timedelta | None:
    """A time in minutes, hours or days; None of anything else.

    Example:
        >>> timedelta_of("90m"), timedelta_of("soon")
        (datetime.timedelta(seconds=5400), None)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    unit = {"m": "minutes", "h": "hours", "d": "days"}[match[2].lower()]
    return timedelta(**{unit: int(match[1])})
