"""Words of the ids of collected assets and assertions."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_NO_NAME: Final = re.compile(r"[\s:+@,'\"\x00-\x1f\x7f]+")


def spelled(name: str) -> str:
    """A name as it may stand in an id.

    Example:
        >>> spelled("daily load: 'orders'"), spelled("__main__.f")
        ('daily_load_orders', '__main__.f')
    """
    return "_".join(filter(None, _NO_NAME.split(name))) or "_"


def short_hash(key: object) -> str:
    """Eight characters by which keys differ."""
    return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:8]
