"""Answers as ``--format json`` has them: plain values, and reasons in words with their codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

from dbt_ripple.reasons import Reason

_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """What a command says, as JSON has it.

    A field that is a reason becomes its sentence; its code and arguments stand beside it, in
    ``reason_code`` and ``reason_arguments`` where it is called ``reason``. A list of reasons becomes
    one of sentences, and ``notes_coded`` has the values of ``notes``.
    """
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, Reason):
        arguments = {name: plain(argument) for name, argument in value.arguments.items()}
        return {"code": str(value.code), "arguments": arguments, "message": value.message}
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return msgspec.to_builtins(value)


def _plain_struct(value: msgspec.Struct) -> dict[str, Any]:
    type_ = type(value)
    reasons = of_reasons(type_)
    defaults = _omitted(type_)
    fields: dict[str, Any] = {}
    for field, name in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True):
        item = getattr(value, field)
        if item is msgspec.UNSET or (field in defaults and item == defaults[field]):
            continue
        if reasons.get(field) == "one":
            fields[name] = item.message if item is not None else None
            fields[f"{name}_code"] = str(item.code) if item is not None else None
            fields[f"{name}_arguments"] = plain(item)["arguments"] if item is not None else None
        elif reasons.get(field) == "several":
            fields[name] = [reason.message for reason in item]
            fields[f"{name}_coded"] = plain(item)
        else:
            fields[name] = plain(item)
    return fields


@cache
def _omitted(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields that are left out where they have these values."""
    if not type_.__struct_config__.omit_defaults:
        return {}
    defaults = type_.__struct_defaults__
    late = type_.__struct_fields__[len(type_.__struct_fields__) - len(defaults) :]
    return dict(zip(late, defaults, strict=True))


@cache
def of_reasons(type_: type[msgspec.Struct]) -> dict[str, Literal["one", "several"]]:
    """Which fields of a type are a reason, and which are lists of reasons."""
    fields: dict[str, Literal["one", "several"]] = {}
    for field, annotation in get_type_hints(type_).items():
        if annotation is Reason or Reason in get_args(annotation):
            fields[field] = "several" if get_origin(annotation) is list else "one"
    return fields
