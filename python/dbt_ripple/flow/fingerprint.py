"""The hash everything is fingerprinted with."""

from __future__ import annotations

from typing import Final

import xxhash

hashed: Final = xxhash.xxh3_128_digest
"""16 bytes of XXH3: no cryptography is needed, nobody forges their own lineage."""


def digest(*parts: bytes) -> bytes:
    """Return the 16-byte fingerprint of the parts, in order.

    Example:
        >>> digest(b"a", b"b") == digest(b"ab")
        False
    """
    return hashed(b"\x00".join(parts))


def where(rows: bytes, condition: bytes) -> bytes:
    """Return ``N`` of the rows that meet one more condition.

    A sum, so that it does not matter in which order, nor in how many nested queries, rows are
    filtered: a row is kept where all conditions are true.

    Example:
        >>> n, p, q = digest(b"n"), digest(b"p"), digest(b"q")
        >>> where(where(n, p), q) == where(where(n, q), p), where(n, p) == where(n, q)
        (True, False)
    """
    more = int.from_bytes(hashed(b"where\x00" + condition), "big")
    return ((int.from_bytes(rows, "big") + more) & _MASK).to_bytes(16, "big")


_MASK: Final = (1 << 128) - 1


_SYMMETRIC: Final = frozenset({b"EQ", b"NEQ", b"NullSafeEQ", b"NullSafeNEQ"})
_MIRRORED: Final = {b"GT": b"LT", b"GTE": b"LTE"}
COMPARED: Final = _SYMMETRIC | _MIRRORED.keys()
"""The comparisons that `compared` knows."""


def compared(operator: bytes, left: bytes, right: bytes) -> bytes:
    """The fingerprint of a comparison: ``a = b`` is ``b = a``, and ``a > b`` is ``b < a``."""
    if operator in _SYMMETRIC:
        left, right = sorted((left, right))
    elif (mirrored := _MIRRORED.get(operator)) is not None:
        operator, left, right = mirrored, right, left
    return digest(operator, b"this", left, b"expression", right)
