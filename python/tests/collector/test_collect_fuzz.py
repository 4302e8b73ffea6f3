"""Events made after the schemas, whole and broken, and any bytes: judged rightly, never a 5xx.

The judge is another validator (jsonschema) with the same schemas.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from event_strategies import broken_events, valid_events, values
from fuzz_collector import MEGABYTES, SECONDS, measure
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from served_collector import BATCH, EVENTS, Served, asked

from dbt_ripple.collector.event_schemas import CORE, complete, documents, problems_of
from dbt_ripple.collector.intake import Limits, RefusedError, read_event

FORMATS = ["date-time", "uri", "uuid"]
ours = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@cache
def _judge(reference: str, formats: tuple[str, ...]) -> Draft202012Validator:
    resources = [(name, Resource.from_contents(each)) for name, each in documents().items()]
    return Draft202012Validator(
        {"$ref": reference},
        registry=Registry().with_resources(resources),
        format_checker=FormatChecker(formats),
    )


@cache
def _published() -> dict[tuple[str, str], str]:
    """The schema of each published facet by its kind and name, by how the files are called."""
    references = {}
    for reference, schema in documents().items():
        for definition, contents in schema["$defs"].items():
            for part in contents.get("allOf", ()):
                base = part.get("$ref", "").partition(f"{CORE}#/$defs/")[2]
                for name in schema.get("properties", ()) if base else ():
                    references[base, name] = f"{reference}#/$defs/{definition}"
    return references


def _facets(event: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for holder, base in (("run", "RunFacet"), ("job", "JobFacet"), ("dataset", "DatasetFacet")):
        if isinstance(event.get(holder), dict):
            for name, facet in event[holder].get("facets", {}).items():
                yield base, name, facet
    for side in ("input", "output"):
        datasets = event.get(f"{side}s")
        for dataset in datasets if isinstance(datasets, list) else ():
            if isinstance(dataset, dict):
                for name, facet in dataset.get("facets", {}).items():
                    yield "DatasetFacet", name, facet
                for name, facet in dataset.get(f"{side}Facets", {}).items():
                    yield f"{side.capitalize()}DatasetFacet", name, facet


def completed(event: Any) -> Any:
    """The event with the producers and schemas that it does not name."""
    whole = copy.deepcopy(event)
    complete(whole)
    return whole


def is_valid(event: Any) -> bool:
    if not _judge(CORE, tuple(FORMATS)).is_valid(event):
        return False
    return all(
        facet.get("_deleted") is True
        or _judge(_published()[base, name], ("date-time", "uuid")).is_valid(facet)
        for base, name, facet in _facets(event)
        if (base, name) in _published()
    )


@ours
@given(valid_events)
def test_valid_events_are_taken(event: dict[str, Any]) -> None:
    assert is_valid(event)
    assert problems_of(event) == []
    assert json.loads(read_event(json.dumps(event).encode(), Limits())) == event


@ours
@given(broken_events())
def test_broken_events_are_judged_as_another_validator_does(event: Any) -> None:
    problems = problems_of(event)
    assert (problems == []) == is_valid(event), problems
    for where, _ in problems:
        value = event
        for step in where.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]


@ours
@given(st.binary(max_size=300) | values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes(body: bytes) -> None:
    with pytest.raises(RefusedError) as error:
        read_event(body, Limits())
    assert error.value.detail


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("fuzz") / "s", "--rate", "0") as server:
        yield server
        assert server.stop()[2] == ""


@settings(ours, suppress_health_check=[*HealthCheck])
@given(
    event=valid_events | broken_events(),
    cut=st.none() | st.tuples(st.floats(0, 1), st.binary(max_size=3)),
    path=st.sampled_from([EVENTS, BATCH]),
    headers=st.dictionaries(
        st.sampled_from(["Content-Type", "Content-Encoding", "Authorization", "Expect", "X-Any"]),
        st.sampled_from(
            ["application/json", "gzip", "", "text/html; charset=x", "é", "100-continue"]
        ),
        max_size=2,
    ),
)
def test_over_http(
    served: Served,
    event: Any,
    cut: tuple[float, bytes] | None,
    path: str,
    headers: dict[str, str],
) -> None:
    body = json.dumps([event] if path == BATCH else event).encode()
    assume("Expect" not in headers or headers["Expect"] == "100-continue")
    if cut is not None:
        place = int(cut[0] * len(body))
        body = body[:place] + cut[1] + body[place + len(cut[1]) :]
    connection = served.connection()
    sent = headers or {"Content-Type": "application/json"}
    answer = asked(connection, "POST", path, body, sent)
    connection.close()
    assert answer.status in (200, 201) or 400 <= answer.status < 500, answer
    if answer.status >= 400:
        assert answer.json()["detail"]
    if cut is None and not headers:
        assert (answer.status in (200, 201)) == is_valid(completed(event)), answer


@pytest.mark.parametrize(
    "number", [60, pytest.param(5_000, marks=pytest.mark.campaign)], ids=["a few", "thousands"]
)
def test_a_running_collector(number: int, tmp_path: Path) -> None:
    """What `make fuzz-events` measures."""
    seen = measure(tmp_path / "s", number, chance=7, large=5)
    assert seen.wrong == []
    assert seen.lost == 0 < seen.accepted
    assert seen.megabytes < MEGABYTES
    assert seen.late < SECONDS
