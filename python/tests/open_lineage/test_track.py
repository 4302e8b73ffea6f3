"""`track`: what Python code tells of its runs, and that nothing else about it is different."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import schemas
from collector import Collector

from dbt_ripple import ColumnLineage, Dataset, track
from dbt_ripple.openlineage import background

RAW, SILVER = "s3://lake/raw/orders", "s3://lake/silver/orders"


class Sent:
    """What this process sends, to a file."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def events(self) -> schemas.Events:
        assert track.flush(20)
        text = self._file.read_text() if self._file.exists() else ""
        return schemas.Events(schemas.read(text))

    def states(self) -> list[tuple[str, str]]:
        return [(e["job"]["name"], e["eventType"]) for e in self.events()]


@pytest.fixture
def sent(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sent]:
    for name in list(os.environ):
        if name.startswith("OPENLINEAGE"):
            monkeypatch.delenv(name)
    file = tmp_path / "sent.ndjson"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openlineage.yml").write_text(
        f"transport: {{type: file, log_file_path: {file}, append: true}}\n"
    )
    fresh(monkeypatch)
    yield Sent(file)
    track.flush(20)


def fresh(monkeypatch: pytest.MonkeyPatch, size: int | None = None) -> background.Background:
    made = background.Background(size)
    monkeypatch.setattr(background, "_at_exit", lambda flush: None)
    monkeypatch.setattr(background, "BACKGROUND", made)
    monkeypatch.setattr("dbt_ripple.openlineage.track.BACKGROUND", made)
    return made


def test_a_function(sent: Sent) -> None:
    @track(inputs=[RAW], outputs=[SILVER], job="clean_orders", namespace="prod")
    def clean(a: int, *, b: int) -> int:
        """Drop what has no id."""
        return a + b

    assert clean(1, b=2) == 3
    assert clean.__name__ == "clean"
    start, end = sent.events()
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("prod", "clean_orders")
    assert [(i["namespace"], i["name"]) for i in end["inputs"]] == [("s3://lake", "raw/orders")]
    assert [(o["namespace"], o["name"]) for o in end["outputs"]] == [("s3://lake", "silver/orders")]
    facets = end["job"]["facets"]
    assert facets["documentation"]["description"] == "Drop what has no id."
    assert facets["jobType"]["integration"] == "PYTHON"
    assert facets["sourceCodeLocation"]["url"].endswith("test_track.py")
    clean(1, b=2)
    assert len({e["run"]["runId"] for e in sent.events()}) == 2


def test_without_arguments(sent: Sent) -> None:
    @track
    def plain() -> None: ...

    plain()
    name = f"{__name__}.test_without_arguments.<locals>.plain"
    assert sent.states() == [(name, "START"), (name, "COMPLETE")]


def test_an_error_is_told_and_raised_again(sent: Sent) -> None:
    error = KeyError("no such order")

    @track(inputs=[RAW], outputs=[SILVER], job="j")
    def fails() -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        fails()
    assert caught.value is error
    end = sent.events().of("j", "FAIL")
    facet = end["run"]["facets"]["errorMessage"]
    assert facet["message"] == "KeyError: 'no such order'"
    assert facet["programmingLanguage"] == "PYTHON"
    assert "raise error" in facet["stackTrace"]
    assert len(end["inputs"]) == 1


def test_a_run_that_fails_names_its_outputs_and_says_nothing_of_what_is_in_them(sent: Sent) -> None:
    column = ColumnLineage("id", ["id"])
    with (
        pytest.raises(ValueError, match="half"),
        track(inputs=[RAW], outputs=[SILVER], columns=[column], job="j") as run,
    ):
        run.wrote(SILVER, 5)
        raise ValueError("half")
    (output,) = sent.events().of("j", "FAIL")["outputs"]
    assert (output["namespace"], output["name"]) == ("s3://lake", "silver/orders")
    assert "columnLineage" not in output["facets"]
    assert not output.get("outputFacets")
    assert "lineage" not in sent.events().of("j", "FAIL")["job"]["facets"]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KeyboardInterrupt(), "ABORT"),
        (asyncio.CancelledError(), "ABORT"),
        (SystemExit(0), "COMPLETE"),
        (SystemExit(3), "FAIL"),
        (MemoryError(), "FAIL"),
    ],
)
def test_other_ends(sent: Sent, error: BaseException, state: str) -> None:
    @track(job="j")
    def ends() -> None:
        raise error

    with pytest.raises(type(error)):
        ends()
    assert sent.states()[-1] == ("j", state)


def test_a_coroutine(sent: Sent) -> None:
    @track(job="j")
    async def job(fail: bool) -> int:
        await asyncio.sleep(0)
        if fail:
            raise ValueError("x")
        return 1

    assert inspect.iscoroutinefunction(job)
    assert asyncio.run(job(False)) == 1
    with pytest.raises(ValueError, match="x"):
        asyncio.run(job(True))

    async def cancelled() -> None:
        task = asyncio.ensure_future(asyncio.wait_for(job(False), 10))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    ends = [state for _, state in sent.states() if state != "START"]
    assert ends == ["COMPLETE", "FAIL", "ABORT"]


def test_a_function_that_returns_a_coroutine(sent: Sent) -> None:
    async def inner() -> int:
        assert [s for _, s in sent.states()] == ["START"]
        return 1

    @track(job="j")
    def hidden() -> Any:
        return inner()

    assert asyncio.run(hidden()) == 1
    assert [s for _, s in sent.states()] == ["START", "COMPLETE"]


def test_a_generator_is_what_it_was(sent: Sent) -> None:
    seen: list[Any] = []

    def plain() -> Iterator[Any]:
        try:
            seen.append((yield 1))
        except LookupError:
            seen.append("thrown")
        seen.append((yield 2))
        return 3

    tracked = track(job="j")(plain)
    assert inspect.isgeneratorfunction(tracked)
    for function in (plain, tracked):
        seen.clear()
        made = function()
        assert next(made) == 1
        assert made.throw(LookupError()) == 2
        with pytest.raises(StopIteration) as stop:
            made.send("sent")
        assert (stop.value.value, seen) == (3, ["thrown", "sent"])
    assert [s for _, s in sent.states()] == ["START", "COMPLETE"]


def test_a_generator_that_nobody_asks(sent: Sent) -> None:
    made = track(job="j")(lambda: (yield 1))()
    assert sent.states() == []
    del made
    assert sent.states() == []


def test_a_generator_left_before_its_end(sent: Sent) -> None:
    closed = []

    @track(job="j")
    def many() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.append(True)

    for number in many():
        if number == 3:
            break
    assert closed == [True]
    assert [s for _, s in sent.states()] == ["START", "ABORT"]


def test_a_generator_that_fails(sent: Sent) -> None:
    @track(job="j")
    def fails() -> Iterator[int]:
        yield 1
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        list(fails())
    assert [s for _, s in sent.states()] == ["START", "FAIL"]


def test_an_asynchronous_generator(sent: Sent) -> None:
    closed = []

    @track(job="j")
    async def numbers(fail: bool = False) -> AsyncIterator[int]:
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield number
            if fail:
                raise ValueError("x")
        finally:
            closed.append(True)

    assert inspect.isasyncgenfunction(numbers)

    async def all_of(fail: bool) -> list[int]:
        return [number async for number in numbers(fail)]

    async def one() -> int:
        made = numbers()
        first = await made.asend(None)
        await made.aclose()
        return first

    assert asyncio.run(all_of(False)) == [0, 1, 2]
    with pytest.raises(ValueError, match="x"):
        asyncio.run(all_of(True))
    assert asyncio.run(one()) == 0
    assert closed == [True] * 3
    ends = [state for _, state in sent.states() if state != "START"]
    assert ends == ["COMPLETE", "FAIL", "ABORT"]


def test_methods_and_partials(sent: Sent) -> None:
    class Job:
        @track(job="method")
        def method(self) -> int:
            return 1

        @track(job="static")
        @staticmethod
        def static() -> int:
            return 2

        @classmethod
        @track(job="class")
        def of_class(cls) -> type:
            return cls

    assert (Job().method(), Job.static(), Job.of_class()) == (1, 2, Job)
    assert track(job="partial")(functools.partial(pow, 2))(3) == 8
    with pytest.raises(TypeError, match="decorates functions"):
        track(job="x")(Job)
    assert [j for j, s in sent.states() if s == "COMPLETE"] == [
        "method",
        "static",
        "class",
        "partial",
    ]


def test_a_block_can_say_more_when_it_knows_more(sent: Sent) -> None:
    with track(inputs=[RAW], job="block") as run:
        run.add(outputs=[Dataset("s3://lake", "silver/orders", {"id": "bigint"})])
        run.add(columns=[ColumnLineage("id", ["order_id"])])
        run.wrote(SILVER, 42)
    end = sent.events().of("block")
    (output,) = end["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 42
    assert [f["name"] for f in output["facets"]["schema"]["fields"]] == ["id"]
    (field,) = output["facets"]["columnLineage"]["fields"]["id"]["inputFields"]
    assert (field["name"], field["field"]) == ("raw/orders", "order_id")


@pytest.mark.parametrize(
    ("columns", "types"),
    [
        ({"id": "bigint", "total": "double"}, ["bigint", "double"]),
        (["id", "total"], None),
        ({"id": "bigint", "total": None}, None),
    ],
)
def test_a_schema_has_the_types_of_all_columns_or_is_not_told(
    sent: Sent, columns: Any, types: list[str] | None
) -> None:
    with track(outputs=[Dataset("s3://lake", "silver", columns)], job="j"):
        pass
    (output,) = sent.events().of("j", "COMPLETE")["outputs"]
    schema = output["facets"].get("schema")
    assert (schema and [f["type"] for f in schema["fields"]]) == types


def test_what_is_said_wrong_in_a_run_does_not_break_it(
    sent: Sent, caplog: pytest.LogCaptureFixture
) -> None:
    with track(job="block") as run:
        run.add(columns=[ColumnLineage("id", ["order_id"])])
        run.wrote(SILVER, "many")  # type: ignore[arg-type]
    assert [s for _, s in sent.states()] == ["START", "COMPLETE"]
    assert len(caplog.messages) == 2


def test_an_asynchronous_block_and_blocks_at_once(sent: Sent) -> None:
    shared = track(job="shared")

    async def block(number: int) -> str:
        async with shared as run:
            await asyncio.sleep(0.01 * (3 - number))
            if number == 1:
                raise ValueError("x")
        return run.run_id

    async def several() -> list[Any]:
        return await asyncio.gather(*map(block, range(3)), return_exceptions=True)

    first, _, third = asyncio.run(several())
    ends = {e["run"]["runId"]: e["eventType"] for e in sent.events() if e["eventType"] != "START"}
    assert sorted(ends.values()) == ["COMPLETE", "COMPLETE", "FAIL"]
    assert ends[first] == ends[third] == "COMPLETE"


def test_a_run_in_a_run_has_a_parent(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    @track(job="inner")
    def inner() -> None: ...

    @track(job="generator")
    def numbers() -> Iterator[None]:
        inner()
        yield

    @track(job="outer")
    def outer() -> None:
        list(numbers())
        inner()

    outer()
    made = numbers()
    next(made)
    inner()  # beside the generator, not in it
    made.close()
    events = sent.events()
    names = {e["run"]["runId"]: e["job"]["name"] for e in events}
    parents = [
        (e["job"]["name"], names[e["run"]["facets"]["parent"]["run"]["runId"]])
        for e in events
        if e["eventType"] == "START" and "parent" in e["run"]["facets"]
    ]
    assert parents == [
        ("generator", "outer"),
        ("inner", "generator"),
        ("inner", "outer"),
        ("inner", "generator"),
    ]
    run = "0198c3a4-9c6e-7b1c-9b57-3f1ea2a3c001"
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/dag.task/{run}")
    outer()
    later = sent.events()[len(events) :]
    roots = {e["run"]["facets"]["parent"]["root"]["run"]["runId"] for e in later}
    assert roots == {run}


def test_the_lineage_of_columns(sent: Sent) -> None:
    @track(
        inputs=["silver.orders", "silver.customers"],
        outputs=["gold.daily_revenue"],
        columns=[
            ColumnLineage(
                "total_revenue",
                ["silver.orders.amount"],
                "SUM(amount) GROUP BY date, region",
                subtype="AGGREGATION",
            ),
            ColumnLineage("region", ["silver.customers.region"]),
            ColumnLineage("buyer", [("silver.customers", "email")], "sha2", masking=True),
            ColumnLineage(None, ["silver.orders.status"], "status = 'paid'"),
        ],
        job="revenue",
        namespace="prod",
    )
    def revenue() -> None: ...

    revenue()
    end = sent.events().of("revenue")
    (output,) = end["outputs"]
    assert (output["namespace"], output["name"]) == ("prod", "gold.daily_revenue")
    facet = output["facets"]["columnLineage"]
    how = {
        column: field["inputFields"][0]["transformations"][0]
        for column, field in facet["fields"].items()
    }
    assert how["total_revenue"] == {
        "type": "DIRECT",
        "subtype": "AGGREGATION",
        "description": "SUM(amount) GROUP BY date, region",
        "masking": False,
    }
    assert how["region"]["subtype"] == "IDENTITY"
    assert (how["buyer"]["subtype"], how["buyer"]["masking"]) == ("TRANSFORMATION", True)
    (status,) = facet["dataset"]
    assert (status["name"], status["transformations"][0]["subtype"]) == ("silver.orders", "FILTER")
    (entry,) = end["job"]["facets"]["lineage"]["entries"]
    assert set(entry["fields"]) == set(facet["fields"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([ColumnLineage("total", ["silver.order.amount"])], "did you mean silver.orders?"),
        ([ColumnLineage("total", ["amount"])], "There are 2"),
        ([ColumnLineage("gold.x.total", ["silver.orders.amount"])], "gold.x is no output"),
        ([("total", "amount")], "columns are ColumnLineage"),
    ],
)
def test_a_declaration_that_is_wrong(columns: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        track(inputs=["silver.orders", "silver.x"], outputs=["gold.revenue"], columns=columns)


def test_other_declarations_that_are_wrong() -> None:
    with pytest.raises(ValueError, match="did you mean AGGREGATION"):
        ColumnLineage("a", ["b"], subtype="aggregate")
    with pytest.raises(ValueError, match="a list of columns"):
        ColumnLineage("a", "b")
    with pytest.raises(ValueError, match="a dataset is a text"):
        track(inputs=[3])  # type: ignore[list-item]


# --- a collector that is not well ----------------------------------------------------------------


def test_nobody_listens(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openlineage.yml").write_text(
        "transport: {type: http, url: 'http://127.0.0.1:1', retry: {total: 1, backoff_factor: 0}}"
    )
    fresh(monkeypatch)

    @track(job="j")
    def job() -> int:
        return 1

    assert [job() for _ in range(3)] == [1, 1, 1]
    assert track.flush(60)
    assert (track.sent, track.dropped) == (0, 6)
    at_once, warning = caplog.messages  # not one for each
    assert at_once == "dbt_ripple: nobody answers at http://127.0.0.1:1 (connection refused)"
    assert "events are dropped" in warning
    assert "Connection refused" in warning


def test_a_slow_collector_slows_nothing(
    monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    collector.seconds = 0.2
    monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    made = fresh(monkeypatch, size=10)

    @track(job="j")
    def job() -> None: ...

    job()
    while not collector.taken:
        time.sleep(0.01)
    begun = time.perf_counter()
    for _ in range(1000):
        job()
    assert time.perf_counter() - begun < 1
    assert made.dropped > 1900
    assert not track.flush(0.05)
    assert track.flush(30)
    assert made.sent + made.dropped == 2002
    assert len(collector.events) == made.sent


def test_disabled(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    with track(job="j"):
        pass
    assert sent.states() == []
    assert (track.sent, track.dropped) == (0, 0)


PROGRAM = """
from dbt_ripple import track
import os, sys, threading

@track(job="main")
def job(): {body}

{call}
"""


def program(
    url: str, body: str = "pass", call: str = "job()", **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body, call=call)],
        env={**environment, "OPENLINEAGE_URL": url, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_end_of_a_program(collector: Collector) -> None:
    done = program(collector.url, call="for _ in range(20): job()")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(collector.events) == 40
    failed = program(collector.url, body="sys.exit(3)")
    assert failed.returncode == 3
    assert [e["eventType"] for e in collector.events[40:]] == ["START", "FAIL"]


def test_a_collector_that_is_down_is_named_at_once() -> None:
    done = program("http://127.0.0.1:1", DBT_RIPPLE_TRACK_FLUSH_SECONDS="1")
    assert done.returncode == 0
    said = done.stderr.splitlines()
    assert said[0] == "dbt_ripple: nobody answers at http://127.0.0.1:1 (connection refused)"
    assert said[-1].endswith("2 OpenLineage events were not sent to http://127.0.0.1:1")


def test_the_end_is_not_put_off_for_long(collector: Collector) -> None:
    collector.seconds = 60
    begun = time.perf_counter()
    done = program(collector.url, DBT_RIPPLE_TRACK_FLUSH_SECONDS="1")
    assert time.perf_counter() - begun < 20 * 2
    assert done.returncode == 0
    assert "2 OpenLineage events were not sent to http" in done.stderr


def test_a_child_process(collector: Collector) -> None:
    call = (
        "job()\n"
        "import multiprocessing\n"
        "context = multiprocessing.get_context('fork')\n"
        "child = context.Process(target=job)\nchild.start()\nchild.join()"
    )
    done = program(collector.url, call=call)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(collector.events) == 4


def test_a_thread(sent: Sent) -> None:
    with track(job="main"):
        thread = threading.Thread(target=track(job="thread")(lambda: None))
        thread.start()
        thread.join()
    assert len(sent.states()) == 4


def test_the_import_is_cheap() -> None:
    code = (
        "import sys; before = set(sys.modules); import dbt_ripple;"
        "print(sorted(set(sys.modules) - before));"
        "dbt_ripple.track;"
        "print([m for m in sys.modules if m.partition('.')[0] in"
        " ('openlineage', 'attr', 'sqlglot', 'requests', 'msgspec', 'click', 'asyncio')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['dbt_ripple']\n[]\n"


def test_unknown_names() -> None:
    import dbt_ripple

    with pytest.raises(AttributeError, match="no attribute 'trak'"):
        dbt_ripple.trak  # noqa: B018


def test_a_call_costs_little(sent: Sent) -> None:
    @track(inputs=[RAW], outputs=[SILVER], job="j")
    def job() -> None: ...

    job()
    sent.events()
    begun = time.perf_counter()
    for _ in range(100):
        job()
    assert time.perf_counter() - begun < 0.5
