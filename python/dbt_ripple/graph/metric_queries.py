"""A metric or a saved query while it is put together, and what the parameters of a metric name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.relation import Deps, merge
from dbt_ripple.reasons import Reason


@dataclass(slots=True)
class MetricQuery:
    """A metric or a saved query while it is put together.

    Attributes:
        columns: what it shows, with the SQL-like text of each.
        rows: what its rows depend on, with a fingerprint of each part.
        own: the semantic models whose measures it aggregates.
        times: the dimensions its metrics are told by.
        missing: what it asks for that is not there.
        unread: why any of it cannot be read.
    """

    columns: dict[str, tuple[bytes, Deps, str]] = field(default_factory=dict)
    rows: Deps = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    own: dict[str, None] = field(default_factory=dict)
    times: dict[tuple[str, str], bytes] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    unread: dict[Reason, None] = field(default_factory=dict)

    def row(self, kind: bytes, fp: bytes, deps: Deps) -> None:
        """Add something that the rows depend on."""
        self.parts.append(digest(kind, fp))
        merge(self.rows, deps)

    def rows_fp(self) -> bytes:
        """A fingerprint of all that the rows depend on."""
        return digest(b"rows", *sorted(self.parts))


_InputParameters = dict[str, Any]
"""A measure or a metric as a metric's parameters name it."""


def measures_of(params: dict[str, Any]) -> Iterator[tuple[str, _InputParameters]]:
    """The measures a metric is made of, and what each is to it."""
    conversion = params.get("conversion_type_params") or {}
    by_role = {
        "measure": params.get("measure"),
        "base": conversion.get("base_measure"),
        "conversion": conversion.get("conversion_measure"),
    }
    yield from ((role, _input(definition)) for role, definition in by_role.items() if definition)


def metrics_of(params: dict[str, Any]) -> Iterator[tuple[str, _InputParameters]]:
    """The metrics a metric is made of, and what each is to it."""
    conversion = params.get("conversion_type_params") or {}
    by_role = {
        "numerator": params.get("numerator"),
        "denominator": params.get("denominator"),
        "cumulative": (params.get("cumulative_type_params") or {}).get("metric"),
        "base": conversion.get("base_metric"),
        "conversion": conversion.get("conversion_metric"),
    }
    yield from ((role, _input(definition)) for role, definition in by_role.items() if definition)
    inputs = sorted(map(_input, params.get("metrics") or ()), key=repr)
    yield from (("input", definition) for definition in inputs)


def _input(definition: Any) -> _InputParameters:
    """A measure or a metric, which may be given by its name alone."""
    return definition if isinstance(definition, dict) else {"name": definition}
