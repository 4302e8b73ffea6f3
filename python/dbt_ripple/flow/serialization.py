"""Lowered queries as bytes, to be stored or sent to another process; this module parses nothing.

What comes back links to exactly what went in links to: sequences come back as lists, nothing else
differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from dbt_ripple.flow.ir import Lowered
from dbt_ripple.tuning import deep_recursion

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Lowered).decode


def pack(lowered: Lowered) -> bytes:
    """The query as bytes."""
    with deep_recursion:
        return _encode(lowered)


def unpack(packed: bytes) -> Lowered:
    """The query that was packed.

    Raises:
        msgspec.DecodeError: these are not the bytes of one.
    """
    with deep_recursion:
        return _decode(packed)


def lower_packed(
    queries: Iterable[str], dialect: str, expressions: bool, masking: Collection[str] = ()
) -> list[bytes]:
    """Lower queries, in order, for another process.

    Args:
        queries: as `lower` takes them.
        dialect: they are written in.
        expressions: whether to write out the SQL behind each output, too.
        masking: functions that mask their arguments, besides those known to.

    Returns:
        Each query, packed; no bytes where that failed, which the reader then sees for itself.
    """
    from dbt_ripple.flow.lower import lower

    packed = []
    for sql in queries:
        try:
            packed.append(pack(lower(sql, dialect, expressions=expressions, masking=masking)))
        except Exception:  # a defect of ours is told where the query is followed
            packed.append(b"")
    return packed
