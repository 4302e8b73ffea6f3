"""Events against OpenLineage's published JSON schemas.

An event has to be what the core schema says. Each of its facets is checked by its own schema if
that is a published one: by the name under which it stands and the kind of thing that it is about,
because readers find it by these. A facet passes with what the core schema says of facets

* if its name is not a published one, or not there (the specification allows facets of any name);
* if its ``_schemaURL`` names the published schema in a version that cannot be judged by ours: of
  another MODEL number, or a newer one;
* if it is deleted (``_deleted``): the event no longer has its content.

Formats of times, UUIDs and URIs count in the core schema. In facets URIs do not: producers put
``git@github.com:org/repo.git`` there, and a format is an annotation in JSON Schema 2020-12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonschema_rs

SCHEMAS: Final = Path(__file__).parent / "schemas"
CORE: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json"

Event = dict[str, Any]

_MOST_COMPLETED: Final = 1_000
"""Facets of an event above which nothing is filled in."""

NOT_GIVEN: Final = "urn:dbt-ripple:not-given"
"""Stands for the producer of an event or of a facet that does not name it."""

_PUBLISHED: Final = re.compile(
    r"https?://openlineage\.io/spec/facets/(\d{1,9})-(\d{1,9})-(\d{1,9})/(\w+)\.json"
)
_MOST_MESSAGES: Final = 10
_LONGEST_MESSAGE: Final = 300


class EventProblem(NamedTuple):
    """Something wrong with an event.

    Attributes:
        pointer: where, as a JSON pointer (RFC 6901) into the event; empty is the event itself.
        detail: what, as a phrase.
    """

    pointer: str
    detail: str


class _Facet(NamedTuple):
    document: str
    version: tuple[int, int, int]
    validator: jsonschema_rs.Draft202012Validator


@cache
def documents() -> dict[str, dict[str, Any]]:
    """The published schemas by their ``$id``."""
    read = [json.loads(file.read_text(encoding="utf-8")) for file in SCHEMAS.glob("*.json")]
    return {schema["$id"]: schema for schema in read}


def most_parts(event: object) -> tuple[int, int, int]:
    """How many datasets an event has, how many facets at most in one place, and how many in all."""
    if not isinstance(event, dict):
        return 0, 0, 0
    sides = [event.get(side) for side in ("inputs", "outputs")]
    datasets = [dataset for side in sides if isinstance(side, list) for dataset in side]
    holders = [event.get(name) for name in ("run", "job", "dataset")] + datasets
    facets = [
        len(found)
        for holder in holders
        if isinstance(holder, dict)
        for name in ("facets", "inputFacets", "outputFacets")
        if isinstance(found := holder.get(name), (dict, list))
    ]
    return len(datasets), max(facets, default=0), sum(facets)


def complete(event: object) -> None:
    """Fill in what an event does not say of itself: who made it, and by which schema; so of each facet.

    OpenLineage asks for both, its clients write them, and what people write by hand often lacks them. What
    the event is about is not guessed at. Who made it is then `NOT_GIVEN`, also for those who read it later.
    """
    if not isinstance(event, dict):
        return
    holders = [(base, facets) for _, base, facets in _holders(event) if isinstance(facets, dict)]
    if sum(len(facets) for _, facets in holders) > _MOST_COMPLETED:
        return  # a small body of empty facets would become a large one
    kind = "RunEvent" if "run" in event else "JobEvent" if "job" in event else "DatasetEvent"
    event.setdefault("producer", NOT_GIVEN)
    event.setdefault("schemaURL", f"{CORE}#/$defs/{kind}")
    for base, facets in holders:
        for facet in facets.values():
            if isinstance(facet, dict):
                facet.setdefault("_producer", NOT_GIVEN)
                facet.setdefault("_schemaURL", f"{CORE}#/$defs/{base}")


def problems_of(event: object) -> list[EventProblem]:
    """What is wrong with an event, as far as its schemas say; at most ten, nothing if it is valid.

    Args:
        event: what was parsed from JSON, whatever it is, within the bounds of `most_parts`.
    """
    problems = _core_problems(event)
    if problems or not isinstance(event, dict):
        return problems
    for path, base, facets in _holders(event):
        for name, facet in facets.items():
            published = _known_facets().get((base, name))
            if (
                published is None
                or not _is_judged(facet, published)
                or published.validator.is_valid(facet)
            ):
                continue
            problems += _problems(published.validator, facet, (*path, name))
    return problems[:_MOST_MESSAGES]


def _core_problems(event: object) -> list[EventProblem]:
    if not isinstance(event, dict):
        return [EventProblem("", f"an event is an object, not {_kind(event)}")]
    if _core("").is_valid(event):
        return []
    # A list of three schemas, none of which holds, would say nothing: it is told by the kind of
    # event that was meant.
    if "run" in event:
        kind = "RunEvent"
    elif "job" in event and "dataset" in event:
        return [EventProblem("", "an event without a run is of a job or of a dataset, not of both")]
    elif "job" in event:
        kind = "JobEvent"
    elif "dataset" in event:
        kind = "DatasetEvent"
    else:
        return [EventProblem("", "an event has run and job, or job, or dataset")]
    return _problems(_core(f"#/$defs/{kind}"), event, ())


@cache
def _registry() -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([*documents().items()])


@cache
def _core(part: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {"$ref": CORE + part}, registry=_registry(), validate_formats=True
    )


@cache
def _known_facets() -> dict[tuple[str, str], _Facet]:
    """Published facets by the core schema's name of their kind and the name they stand under."""
    facets = {}
    for reference, schema in documents().items():
        names = list(schema.get("properties") or ())
        _, version, file = reference.rsplit("/", 2)
        model, revision, addition = (int(part) for part in version.split("-"))
        for definition, contents in schema["$defs"].items():
            for part in contents.get("allOf") or ():
                document, _, base = part.get("$ref", "").partition("#/$defs/")
                if document != CORE or not base.endswith("Facet"):
                    continue
                validator = jsonschema_rs.Draft202012Validator(
                    {"$ref": f"{reference}#/$defs/{definition}"},
                    registry=_registry(),
                    validate_formats=True,
                    formats={"uri": lambda _: True},
                )
                facet = _Facet(file.removesuffix(".json"), (model, revision, addition), validator)
                facets.update({(base, name): facet for name in names})
    return facets


def _holders(event: Event) -> Iterator[tuple[tuple[str | int, ...], str, Mapping[str, Any]]]:
    """Where facets are in an event that is valid: the path, the kind of facet, and the facets."""
    for name, base in (("run", "RunFacet"), ("job", "JobFacet"), ("dataset", "DatasetFacet")):
        if isinstance(holder := event.get(name), dict) and holder.get("facets"):
            yield (name, "facets"), base, holder["facets"]
    for side, of_side, base in (
        ("inputs", "inputFacets", "InputDatasetFacet"),
        ("outputs", "outputFacets", "OutputDatasetFacet"),
    ):
        datasets = event.get(side)
        for number, dataset in enumerate(datasets if isinstance(datasets, list) else ()):
            if not isinstance(dataset, dict):
                continue
            if dataset.get("facets"):
                yield (side, number, "facets"), "DatasetFacet", dataset["facets"]
            if dataset.get(of_side):
                yield (side, number, of_side), base, dataset[of_side]


def _is_judged(facet: Any, published: _Facet) -> bool:
    if facet.get("_deleted") is True:
        return False
    named_schema = _PUBLISHED.match(str(facet.get("_schemaURL")))
    if named_schema is None or named_schema[4] != published.document:
        return True
    version = (int(named_schema[1]), int(named_schema[2]), int(named_schema[3]))
    return version[0] == published.version[0] and version <= published.version


def _problems(
    validator: jsonschema_rs.Draft202012Validator, value: Any, path: tuple[str | int, ...]
) -> list[EventProblem]:
    problems: list[EventProblem] = []
    for error in _errors(validator, value):
        for deepest in _deepest(error):
            message = deepest.message
            if len(message) > _LONGEST_MESSAGE:
                # The value comes first and the rule last.
                message = f"{message[:100]} ... {message[100 - _LONGEST_MESSAGE :]}"
            problem = EventProblem(pointer((*path, *deepest.instance_path)), message)
            if problem not in problems:
                problems.append(problem)
        if len(problems) >= _MOST_MESSAGES:
            break
    return problems[:_MOST_MESSAGES]


def _errors(
    validator: jsonschema_rs.Draft202012Validator, value: Any
) -> Iterator[jsonschema_rs.ValidationError]:
    """What is wrong with a value; of a large one the first thing only.

    The validator makes all errors before it gives one, each with a copy of what it is about.
    """
    if not _is_larger(value, _ALL_ERRORS):
        yield from validator.iter_errors(value)
        return
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        yield error


_ALL_ERRORS: Final = 2_000


def _is_larger(value: Any, most: int) -> bool:
    """Whether it has more parts than so many."""
    parts, number = [value], 0
    while parts:
        part = parts.pop()
        number += 1
        if isinstance(part, (dict, list)):
            number += len(part)
            parts += part.values() if isinstance(part, dict) else part
        if number > most:
            return True
    return False


def _deepest(error: jsonschema_rs.ValidationError) -> list[jsonschema_rs.ValidationError]:
    """The errors behind "none of these schemas": those of the branch that came furthest."""
    branches = [branch for branch in getattr(error.kind, "context", None) or () if branch]
    if not branches:
        return [error]
    nearest = max(branches, key=lambda branch: max(len(e.instance_path) for e in branch))
    return [deeper for each in nearest for deeper in _deepest(each)]


def pointer(path: tuple[str | int, ...]) -> str:
    """A JSON pointer.

    Example:
        >>> pointer(("run", "facets", "a/b", 0))
        '/run/facets/a~1b/0'
    """
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
