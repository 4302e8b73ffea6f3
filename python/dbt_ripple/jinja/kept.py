"""What was made of a text before: by this process, or by an earlier one where a cache is open.

What is made of a text has to follow from the text alone (and from the code of this package, which is part of
the cache's keys).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

import msgspec

T = TypeVar("T")
P = ParamSpec("P")


class cached_method(Generic[P, T]):  # noqa: N801  (as `functools.cached_property`)
    """A method that is called once for an object and its arguments, which can be hashed."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self.method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Callable[P, T]:
        once = instance.__dict__[self.name] = cache(partial(self.method, instance))
        return cast("Callable[P, T]", once)


class Store(Protocol):
    """Bytes by key, as `graph.cache.Cache` keeps them."""

    def key(self, *parts: bytes) -> bytes:
        """The key of what is made of the parts."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """What is kept under a key, or None."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value."""
        ...


_stores: list[Store] = []


def keep_in(store: Store) -> None:
    """Look for what is made of texts in a store from now on, and keep it there; in the newest one only."""
    _stores[:] = [store]


def kept(as_type: type[T]) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Have a function of a text called once for each text, in all processes that share a cache."""

    def keeping(function: Callable[[str], T]) -> Callable[[str], T]:
        name = function.__qualname__.encode()

        @cache
        @wraps(function)
        def once(text: str) -> T:
            key = name, text.encode("utf-8", "surrogatepass")
            return kept_by(as_type, key, lambda: function(text))

        return once

    return keeping


def kept_by(as_type: type[T], key: tuple[bytes, ...], make: Callable[[], T]) -> T:
    """What an earlier process has kept under a key, or else what a function makes.

    Args:
        as_type: what it is, for msgspec.
        key: all that it follows from.
        make: makes it.
    """
    for store in _stores:
        stored_key = store.key(*key)
        stored = store.get(stored_key)
        if stored is not None:
            return msgspec.msgpack.decode(stored, type=as_type)
        value = make()
        with suppress(UnicodeEncodeError):  # half of a letter, which JSON may hold
            store.put(stored_key, msgspec.msgpack.encode(value))
        return value
    return make()
