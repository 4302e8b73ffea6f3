"""Events against OpenLineage's published schemas: the event, and each facet by its own schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

SPEC = Path(__file__).parents[2] / "dbt_ripple" / "collector" / "schemas"
CORE = "https://openlineage.io/spec/2-0-2/OpenLineage.json"

FORMATS = FormatChecker(["date-time", "uri", "uuid"])
# Without a library for it a format would be passed over in silence.
assert {"date-time", "uri", "uuid"} <= FORMATS.checkers.keys()


@cache
def _schemas() -> Registry:
    document = [json.loads(file.read_text(encoding="utf-8")) for file in SPEC.glob("*.json")]
    return Registry().with_resources([(s["$id"], Resource.from_contents(s)) for s in document])


@cache
def _validator(reference: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": reference}, registry=_schemas(), format_checker=FORMATS)


def facets_of(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every facet of an event, with its name; those of a parent's job are forwarded ones."""
    for holder in (event.get("run"), event.get("job"), event.get("dataset")):
        yield from ((holder or {}).get("facets") or {}).items()
    for dataset in (*event.get("inputs", ()), *event.get("outputs", ())):
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from (dataset.get(kind) or {}).items()


def valid(event: dict[str, Any]) -> dict[str, Any]:
    """The event, if it is what its schemas say."""
    assert event["schemaURL"].startswith(f"{CORE}#/$defs/"), event["schemaURL"]
    _validator(event["schemaURL"]).validate(event)
    _validator(CORE).validate(event)
    for name, facet in facets_of(event):
        assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/"), name
        _validator(facet["_schemaURL"]).validate(facet)
        document = facet["_schemaURL"].partition("#")[0]
        # The schema also says under which name the facet stands.
        assert name in _schemas()[document].contents["properties"], name
    return event


def read(text: str) -> list[dict[str, Any]]:
    """Events as NDJSON, each valid."""
    return [valid(json.loads(line)) for line in text.splitlines()]


class Events(list[dict[str, Any]]):
    """Events, to be asked by what they are of."""

    def of(self, job: str, state: str | None = "COMPLETE") -> dict[str, Any]:
        """The one of a job in a state; None for a JobEvent."""
        matching = [
            e for e in self if e.get("eventType") == state and e.get("job", {}).get("name") == job
        ]
        assert len(matching) == 1, (job, state, [e.get("job", {}).get("name") for e in self])
        return matching[0]

    def dataset(self, name: str) -> dict[str, Any]:
        """The dataset of a DatasetEvent."""
        (dataset,) = [e["dataset"] for e in self if e.get("dataset", {}).get("name") == name]
        assert isinstance(dataset, dict)
        return dataset

    def states(self) -> dict[str, list[str]]:
        """The states of each job, in order."""
        states_of: dict[str, list[str]] = {}
        for event in self:
            states_of.setdefault(event["job"]["name"], []).append(event["eventType"])
        return states_of
