"""What statements of SQL do besides giving rows (see `flow.hook_statements`)."""

from __future__ import annotations

import re
from operator import or_
from typing import Final, NamedTuple

ANY_NAME: Final = "*"
"""Among names that are made: it may be any."""

UNKNOWN: Final = "__unknown__"
"""A word in a text for what is not known."""

MARK: Final = re.compile(r"__(?:unknown|relation\d+)__", re.I)
"""Such a word, or one for a relation that is known by other means than its name."""


class Effects(NamedTuple):
    """What statements do.

    Attributes:
        writes: the names of the relations that they write to.
        makes: the functions, variables and other things that they make, by the last part of the name.
        reads: the names of the relations that they name besides.
        words: in them, lower case, without what stands in literals.
        anything: whether they may do anything else.
        of_session: whether they change settings of their session.
    """

    writes: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    anything: bool = False
    of_session: bool = False

    def __or__(self, other: Effects) -> Effects:
        return Effects(*map(or_, self, other))


ANYTHING: Final = Effects(anything=True)
