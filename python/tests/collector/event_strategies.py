"""Events as hypothesis makes them after OpenLineage's schemas, and ways to break them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from hypothesis import strategies as st

from dbt_ripple.collector.event_schemas import CORE, _known_facets, documents

FORMATS = {
    "date-time": ["2026-11-23T06:00:00Z", "2026-11-23T06:00:00.123456789+02:00"],
    "uuid": ["01993333-0000-7000-8000-000000000000"],
    "uri": ["https://example.com/a?b=c#/d", "urn:a:b", "s3://bucket/key"],
    "date": ["2026-11-23"],
}
ODD = [None, True, 0, -1, 1e300, 2**70, "", "x", "\0", "ä\u2028", [], {}, [[]], {"a": [1]}, [None]]
"""What stands where something else is expected; no string of them has a format."""

values = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b/~", "_producer", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


@cache
def _referred(reference: str) -> st.SearchStrategy[Any]:
    document, _, part = reference.partition("#")
    schema: Any = documents()[document]
    for step in part.split("/")[1:]:
        schema = schema[step]
    # Schemas refer to themselves.
    return st.deferred(lambda: after(schema, document))


def after(schema: dict[str, Any], document: str) -> st.SearchStrategy[Any]:
    """Values that a schema allows, as far as the constructs of OpenLineage's schemas go."""
    if "$ref" in schema:
        where, _, part = schema["$ref"].partition("#")
        return _referred(f"{where or document}#{part}")
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema and "properties" not in schema:
            return st.one_of([after(each, document) for each in schema[choice]])
    if "allOf" in schema:
        parts = [after(each, document) for each in schema["allOf"]]
        own = {key: value for key, value in schema.items() if key != "allOf"}
        if "properties" in own:
            parts.append(after(own, document))
        return st.tuples(*parts).map(
            lambda drawn: {k: v for part in drawn for k, v in part.items()}
        )
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return st.one_of([after({**schema, "type": kind}, document) for kind in kinds])
    if kinds == "object" or "properties" in schema:
        return _object(schema, document)
    if kinds == "array":
        items = after(schema.get("items", {"type": "string"}), document)
        least = schema.get("minItems", 0)
        return st.lists(items, min_size=least, max_size=least + 2)
    if kinds == "string":
        if schema.get("format") in FORMATS:
            return st.sampled_from(FORMATS[schema["format"]])
        return st.sampled_from(["", "orders", "ä\u2028\0", "[{" * 60, '"\\'])
    if kinds == "integer":
        return st.integers(schema.get("minimum", -(2**70)), schema.get("maximum", 2**70))
    if kinds == "number":
        return st.floats(0, 1e300) | st.integers(0, 2**60)
    return {"boolean": st.booleans(), "null": st.none()}.get(kinds, st.sampled_from(ODD))


def _object(schema: dict[str, Any], document: str) -> st.SearchStrategy[Any]:
    properties = schema.get("properties") or {}
    needed = set(schema.get("required") or ())
    fixed = st.fixed_dictionaries(
        {name: after(properties.get(name, {}), document) for name in sorted(needed)},
        optional={n: after(each, document) for n, each in properties.items() if n not in needed},
    )
    together = schema.get("dependentRequired") or {}
    if together:
        fixed = fixed.filter(
            lambda drawn: all(
                drawn.keys() >= set(together[name]) for name in together.keys() & drawn
            )
        )
    more = schema.get("additionalProperties")
    if not isinstance(more, dict):
        return fixed
    further = st.dictionaries(st.sampled_from(["a", "b c", "ä"]), after(more, document), max_size=2)
    return st.tuples(fixed, further).map(lambda drawn: {**drawn[1], **drawn[0]})


def facets(base: str) -> st.SearchStrategy[dict[str, Any]]:
    """Facets of a kind of thing, published ones and others."""
    own = {"_producer": "https://example.com/p", "_schemaURL": "https://example.com/s"}
    strategies: list[st.SearchStrategy[tuple[str, Any]]] = [
        st.tuples(st.just("ours"), st.fixed_dictionaries({"x": values})).map(
            lambda drawn: (drawn[0], {**drawn[1], **own})
        )
    ]
    for (of, name), published in _known_facets().items():
        if of == base:
            (reference,) = [r for r in documents() if r.endswith(f"/{published.document}.json")]
            for definition, contents in documents()[reference]["$defs"].items():
                if any(
                    part.get("$ref") == f"{CORE}#/$defs/{base}"
                    for part in contents.get("allOf", ())
                ):
                    drawn = after({"$ref": f"{reference}#/$defs/{definition}"}, reference)
                    strategies.append(
                        drawn.map(lambda facet, name=name: (name, {**facet, **own}))  # type: ignore[misc]
                    )
    return st.lists(st.one_of(strategies), max_size=3).map(dict)


def _dataset(side: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"namespace": st.just("postgres://db:5432"), "name": st.sampled_from(["a", "b.c", ""])},
        optional={
            "facets": facets("DatasetFacet"),
            f"{side}Facets": facets(f"{side.capitalize()}DatasetFacet"),
        },
    )


_common = {
    "eventTime": st.sampled_from(FORMATS["date-time"]),
    "producer": st.sampled_from(FORMATS["uri"]),
    "schemaURL": st.just(f"{CORE}#/$defs/RunEvent"),
}
_job = st.fixed_dictionaries(
    {"namespace": st.just("shop"), "name": st.text(st.characters(codec="utf-8"), max_size=5)},
    optional={"facets": facets("JobFacet")},
)
_run = st.fixed_dictionaries(
    {"runId": st.uuids().map(str)}, optional={"facets": facets("RunFacet")}
)
_sides = {f"{side}s": st.lists(_dataset(side), max_size=2) for side in ("input", "output")}
valid_events: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {**_common, "run": _run, "job": _job},
        optional={
            **_sides,
            "eventType": st.sampled_from(
                ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
            ),
        },
    ),
    st.fixed_dictionaries({**_common, "job": _job}, optional=_sides),
    st.fixed_dictionaries({**_common, "dataset": _dataset("input")}),
)


@st.composite
def broken_events(draw: st.DrawFn) -> Any:
    """Events with something else at one or two places, something missing, or something more."""
    event: Any = copy.deepcopy(draw(valid_events))
    for _ in range(draw(st.integers(1, 2))):
        places: list[tuple[Any, Any]] = []
        pending = [event]
        while pending:
            holder = pending.pop()
            keys = [*holder] if isinstance(holder, dict) else range(len(holder))
            places += [(holder, key) for key in keys]
            pending += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
        if not places:
            break
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        how = draw(st.sampled_from(["other", "gone", "more"]))
        if how == "gone":
            del holder[key]
        elif how == "more" and isinstance(holder, dict):
            name = draw(st.sampled_from(["run", "job", "dataset", "facets", "x"]))
            # A copy: what is drawn is shared, and the next break may be in it.
            holder[name] = copy.deepcopy(draw(values))
        else:
            holder[key] = copy.deepcopy(draw(values))
    return event
