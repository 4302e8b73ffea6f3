"""What is an event, and what is none: bytes to the line that is stored."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
import served_collector

from dbt_ripple.collector.event_schemas import NOT_GIVEN, SCHEMAS, documents, problems_of
from dbt_ripple.collector.intake import (
    Limits,
    RefusedError,
    not_given_in,
    read_batch,
    read_event,
)

EVENT = served_collector.event(1)
BASE = {"_producer": "https://example.com/p", "_schemaURL": "https://example.com/s"}
SPEC = "https://openlineage.io/spec/facets"


def read(value: Any, **limits: int) -> Any:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return json.loads(read_event(text, Limits(**limits)))


def accepted(event: dict[str, Any]) -> bool:
    """Whether an event is stored as it was sent."""
    return bool(read(event) == event)


def refused(value: Any, **limits: int) -> tuple[str, list[tuple[str, str]], str]:
    with pytest.raises(RefusedError) as error:
        read(value, **limits)
    refusal = error.value
    return refusal.reason, [tuple(problem) for problem in refusal.problems], refusal.detail


def accepted_with_notes(event: Any) -> bool:
    return not_given_in([read_event(json.dumps(event).encode(), Limits())]) == 1


def with_facet(name: str, facet: dict[str, Any], holder: str = "job") -> dict[str, Any]:
    return {**EVENT, holder: {**EVENT[holder], "facets": {name: facet}}}


def test_the_three_kinds_of_event() -> None:
    common = {key: EVENT[key] for key in ("eventTime", "producer", "schemaURL")}
    job = {**common, "job": EVENT["job"], "outputs": EVENT["outputs"]}
    dataset = {**common, "dataset": {"namespace": "a", "name": "b"}}
    for event in (EVENT, job, dataset):
        assert read(event) == event


def test_an_accepted_event_is_one_line_with_sorted_keys() -> None:
    pretty = json.dumps({**EVENT, "x": "\n\u2028"}, indent=4).encode()
    line = read_event(pretty, Limits())
    turned = json.dumps(dict(reversed({**EVENT, "x": "\n\u2028"}.items())), ensure_ascii=False)
    assert line == read_event(turned.encode(), Limits())
    assert b"\n" not in line


def test_numbers_are_kept() -> None:
    numbers = [0, -1, 2**53 + 1, 2**63 - 1, 10**40, 0.1, 1e300, -0.0]
    assert read(with_facet("ours", {**BASE, "n": numbers}))["job"]["facets"]["ours"]["n"] == numbers


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        (b"", "json", "no JSON"),
        (b"{", "json", "no JSON"),
        (b"{} {}", "json", "trailing"),
        (b"\xff\xfe", "json", "no JSON"),
        (b'"\xed\xa0\x80"', "json", "no UTF-8"),
        (b'"\\ud800"', "json", "no JSON"),
        (b"[NaN]", "json", "no JSON"),
        (b'{"a": 1e999}', "json", "number out of range"),
        (b"1" * 5000, "json", "integer value out of range"),
        (b"[" * 101 + b"]" * 101, "depth", "nested more than 100 deep"),
        (b'{"a":' * 2_400_000, "size", "more than 5,000,000 bytes"),
        (b"[" * 4_000_000, "depth", "nested more than 100 deep"),
        (b"[[]" * 1_600_000, "depth", "nested more than 100 deep"),
        (b'"\\' * 2_400_000, "json", "no JSON"),
        (b'"' + b'\\"' * 2_400_000, "json", "no JSON"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_json(body: bytes, reason: str, message: str) -> None:
    began = time.monotonic()
    output, _, detail = refused(body)
    assert (output, message in detail) == (reason, True), detail
    # Not a time to hold, but quadratic work on five megabytes takes hours.
    assert time.monotonic() - began < 60


def test_brackets_in_strings_are_not_nested() -> None:
    assert accepted(with_facet("ours", {**BASE, "x": "[" * 1000 + '\\"' + "{" * 1000}))


def test_as_deep_as_may_be() -> None:
    deep: Any = 1
    for _ in range(16):  # event, job, facets, ours, and these
        deep = [deep]
    event = with_facet("ours", {**BASE, "x": deep})
    read(event, depth=20)
    assert refused(event, depth=19)[0] == "depth"


@pytest.mark.parametrize(
    ("changes", "pointer", "message"),
    [
        ({"eventTime": "2026-11-23T06:00:00"}, "/eventTime", "date-time"),
        ({"eventTime": 3}, "/eventTime", "string"),
        ({"eventType": "DONE"}, "/eventType", "START"),
        ({"producer": "no uri"}, "/producer", "uri"),
        ({"run": {"runId": "7"}}, "/run/runId", "uuid"),
        ({"job": {"name": "x"}}, "/job", "namespace"),
        ({"inputs": [{"namespace": "a", "name": "b"}, 3]}, "/inputs/1", "object"),
        (
            {"job": {"namespace": "a", "name": "b", "facets": {"x/~y": {"_producer": 3}}}},
            "/job/facets/x~1~0y/_producer",
            "string",
        ),
        (with_facet("sql", {**BASE, "query": 3}), "/job/facets/sql/query", "string"),
        (with_facet("sql", BASE), "/job/facets/sql", "query"),
    ],
)
def test_where_it_is_wrong(changes: dict[str, Any], pointer: str, message: str) -> None:
    reason, problems, _ = refused({**EVENT, **changes})
    assert reason == "schema"
    assert any(where == pointer and message in what for where, what in problems), problems


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (3, "a number"),
        (None, "null"),
        ("x", "a string"),
        ([], "the batch path takes arrays"),
        ({}, "an event has run and job, or job, or dataset"),
        (
            {
                **{k: v for k, v in EVENT.items() if k != "run"},
                "dataset": {"namespace": "a", "name": "b"},
            },
            "not of both",
        ),
    ],
)
def test_what_is_no_event(event: Any, message: str) -> None:
    _, problems, _ = refused(event)
    assert message in problems[0][1]


def test_messages_are_short() -> None:
    _, problems, _ = refused({**EVENT, "eventType": "x" * 100_000, "inputs": ["y" * 1000] * 1000})
    assert len(problems) <= 10
    assert max(len(what) for _, what in problems) < 500


class TestFacets:
    """A published facet is judged by its schema, others by what all facets have."""

    wrong: ClassVar = {**BASE, "query": 3}

    def test_an_unknown_one_passes(self) -> None:
        assert accepted(with_facet("my_sql", self.wrong))

    def test_a_known_one_elsewhere_passes(self) -> None:
        assert accepted(with_facet("sql", self.wrong, "run"))

    def test_who_made_it_need_not_be_said(self) -> None:
        made = with_facet("errorMessage", {"message": "m", "programmingLanguage": "python"}, "run")
        bare = {key: made[key] for key in made if key not in ("producer", "schemaURL")}
        stored = read(bare)
        assert stored["producer"] == NOT_GIVEN
        assert stored["schemaURL"].endswith("#/$defs/RunEvent")
        facet = stored["run"]["facets"]["errorMessage"]
        assert facet["_producer"] == NOT_GIVEN
        assert (facet["message"], facet["_schemaURL"][-9:]) == ("m", "/RunFacet")
        assert not_given_in([read_event(json.dumps(made).encode(), Limits())]) == 1
        assert not_given_in([read_event(json.dumps(EVENT).encode(), Limits())]) == 0

    def test_what_it_is_about_is_not_guessed_at(self) -> None:
        wrong = with_facet("errorMessage", {"programmingLanguage": "python"}, "run")
        assert refused(wrong)[1] == [
            ("/run/facets/errorMessage", '"message" is a required property')
        ]
        assert refused({**EVENT, "run": {}})[1] == [("/run", '"runId" is a required property')]

    def test_many_are_not_filled_in(self) -> None:
        facets: dict[str, Any] = {f"f{number}": {} for number in range(400)}
        datasets = [{"namespace": "a", "name": str(n), "facets": facets} for n in range(3)]
        assert accepted_with_notes({**EVENT, "inputs": datasets[:2]})
        assert refused({**EVENT, "inputs": datasets})[0] == "schema"

    @pytest.mark.parametrize("version", ["1-0-0", "1-0-1", "1-1-0"])
    def test_a_version_of_ours_or_before(self, version: str) -> None:
        url = f"{SPEC}/{version}/SQLJobFacet.json#/$defs/SQLJobFacet"
        assert refused(with_facet("sql", {**self.wrong, "_schemaURL": url}))[0] == "schema"

    @pytest.mark.parametrize("version", ["1-1-1", "1-99-0", "2-0-0", "0-1-0"])
    def test_a_version_that_we_do_not_have(self, version: str) -> None:
        url = f"{SPEC}/{version}/SQLJobFacet.json#/$defs/SQLJobFacet"
        assert accepted(with_facet("sql", {**self.wrong, "_schemaURL": url}))

    def test_a_deleted_one(self) -> None:
        assert accepted(with_facet("sql", {**BASE, "_deleted": True}))

    def test_a_uri_of_a_facet_may_be_an_address_of_git(self) -> None:
        location = {**BASE, "type": "git", "url": "git@example.com:shop/dbt.git"}
        assert accepted(with_facet("sourceCodeLocation", location))

    def test_lineage_is_another_facet_of_a_job_than_of_a_dataset(self) -> None:
        assert refused(with_facet("lineage", BASE))[1][0][0] == "/job/facets/lineage"


def test_a_batch_is_judged_event_by_event() -> None:
    taken = read_batch(json.dumps([EVENT, 3, EVENT]).encode(), Limits())
    assert len(taken.lines) == 2
    assert [number for number, _ in taken.refused] == [1]
    with pytest.raises(RefusedError, match="a batch is an array"):
        read_batch(json.dumps(EVENT).encode(), Limits())
    with pytest.raises(RefusedError, match="more than 2 events"):
        read_batch(b"[1,2,3]", Limits(batch_events=2))


def test_every_published_facet_is_known() -> None:
    from dbt_ripple.collector.event_schemas import _known_facets

    judged = {facet.document for facet in _known_facets().values()}
    named = {reference.rpartition("/")[2].removesuffix(".json") for reference in documents()}
    assert named - judged == {"OpenLineage"}
    assert {"LICENSE", "NOTICE"} <= {file.name for file in SCHEMAS.iterdir()}


def examples() -> list[Path]:
    folder = os.environ.get("OPENLINEAGE_SPEC")
    return sorted(Path(folder, "tests").rglob("*.json")) if folder else []


@pytest.mark.skipif(not examples(), reason="OPENLINEAGE_SPEC names no spec folder of OpenLineage")
def test_the_examples_of_the_specification() -> None:
    """Events are taken as they are; examples of a facet, in an event where the facet belongs."""
    from dbt_ripple.collector.event_schemas import _known_facets

    judged = 0
    for file in examples():
        example = json.loads(file.read_text("utf-8"))
        if "eventTime" in example:
            assert problems_of(example) == [], file
            judged += 1
            continue
        document = file.parent.name
        bases = {base for (base, _), f in _known_facets().items() if f.document == document}
        assert bases, file
        # The examples of LineageFacet and of subsets are of one of the two kinds they are for.
        problems = [problems_of(_with_facets(base, example)) for base in sorted(bases)]
        assert [] in problems, (file, problems)
        judged += 1
    assert judged == len(examples())


def _with_facets(base: str, facets: dict[str, Any]) -> dict[str, Any]:
    dataset: dict[str, Any] = {"namespace": "a", "name": "b"}
    event = {key: EVENT[key] for key in ("eventTime", "producer", "schemaURL", "run", "job")}
    if base in ("RunFacet", "JobFacet"):
        holder = base.removesuffix("Facet").lower()
        return {**event, holder: {**event[holder], "facets": facets}}
    if base == "DatasetFacet":
        return {**event, "outputs": [{**dataset, "facets": facets}]}
    side = base.removesuffix("DatasetFacet").lower()
    return {**event, f"{side}s": [{**dataset, f"{side}Facets": facets}]}
