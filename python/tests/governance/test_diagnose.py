"""What a number comes from: `diagnose`, from artifacts alone."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
from hand_made import check, node, project
from msgspec.structs import replace
from twin_project import Command

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import RunResult, SourceFreshness, Timing
from dbt_ripple.changes import compare
from dbt_ripple.governance.diagnose import Diagnosis, diagnosis
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.rendering.json_documents import schema
from dbt_ripple.rendering.trace import expressions_of

AT = datetime(2026, 1, 1, 9, tzinfo=UTC)
RAW = node("source.p.raw", columns=["id", "price", "note", "kind"])


def result(unique_id: str, status: str) -> RunResult:
    timing = [Timing(name="execute", started_at=AT, completed_at=AT)]
    return RunResult(unique_id=unique_id, status=status, timing=timing)


def world(total: str = "sum(price)", price: str = "price") -> Project:
    made = project(
        RAW,
        node("source.p.other", columns=["id"]),
        node(
            "model.p.stg",
            f"select id, {price} as price, note from s.raw where kind = 'sold'",
            "source.p.raw",
            meta={"owner": {"name": "Ann", "email": "ann@x.example", "slack": "#ann"}},
        ),
        node("model.p.daily", f"select id, {total} as total from s.stg group by id", "model.p.stg"),
        node("model.p.aside", "select id from s.other", "source.p.other"),
        check("price", "select price from s.stg where price is null", "model.p.stg"),
        check("note", "select note from s.stg where note is null", "model.p.stg"),
        catalog={RAW.unique_id: ["id", "price", "note", "kind"], "source.p.other": ["id"]},
    )
    return made.having(
        run_results=[result("model.p.stg", "success"), result("test.p.price", "fail")],
        freshness=[SourceFreshness(unique_id=RAW.unique_id, status="warn", max_loaded_at=AT)],
    )


def of(made: Project, base: Project | None = None) -> Diagnosis:
    analysis = analyse(made)
    now = expressions_of(made)
    diagnosis_of_column = diagnosis(made, analysis, made.nodes["model.p.daily"], "total", now)
    if base is not None:
        diagnosis_of_column.add_changes(
            compare(base, made, head_analysis=analysis), now, expressions_of(base)
        )
    return diagnosis_of_column


def test_each_step_of_a_number() -> None:
    diagnosis_of_total = of(world())
    assert [(step.name, step.depth) for step in diagnosis_of_total.steps] == [
        ("daily", 0),
        ("stg", 1),
        ("raw", 2),
    ]
    daily, stg, raw = diagnosis_of_total.steps
    assert {c.name: c.expression for c in daily.columns}["total"] == "SUM(price)"
    # What decides on the rows is among them; what it does not depend on is not.
    assert {c.name for c in raw.columns} == {"price", "kind", "id", "*rows*"}
    assert [(t.name, t.status) for t in stg.tests] == [("price", "fail")]
    assert (stg.owner, stg.owner_email, stg.owner_channel) == ("Ann", "ann@x.example", "#ann")
    assert stg.last_run is not None and (stg.last_run.at, stg.last_run.succeeded) == (AT, True)
    assert raw.freshness is not None
    assert (raw.freshness.status, raw.freshness.max_loaded_at) == ("warn", AT)
    assert daily.last_run is None and daily.freshness is None
    assert not any(step.changes or step.may_read for step in diagnosis_of_total.steps)


def test_what_changed_on_the_way_and_where_it_began() -> None:
    diagnosis_of_total = of(world(price="price * 2"), world())
    changes = {
        s.name: [(c.column, c.change, c.began_here) for c in s.changes]
        for s in diagnosis_of_total.steps
    }
    assert changes == {
        "daily": [("total", "redefined", False)],
        "stg": [("price", "redefined", True)],
        "raw": [],
    }
    (change,) = diagnosis_of_total.steps[1].changes
    assert (change.before, change.after) == (None, "price * 2")
    # A column that the number is not made of.
    aside = world()
    aside.nodes["model.p.stg"] = replace(
        aside.nodes["model.p.stg"],
        compiled_code="select id, price, upper(note) as note from s.raw where kind = 'sold'",
    )
    assert not any(step.changes for step in of(aside, world()).steps)


def test_of_a_test_what_it_reads_is_followed() -> None:
    made = world()
    analysis = analyse(made)
    found = diagnosis(made, analysis, made.nodes["test.p.price"], None, expressions_of(made))
    assert [(step.name, step.depth) for step in found.steps] == [
        *(("price", 0), ("stg", 1), ("raw", 2)),
    ]
    assert {c.name for c in found.steps[1].columns} == {"price", "*rows*"}
    assert found.spoken == "price"


def test_an_edit_is_told_where_something_above_was_edited_too() -> None:
    base, head = world(), world("sum(price) + 1", "price * 2")
    then, now = analyse(base, own=True), analyse(head, own=True)
    found = diagnosis(
        *(head, now, head.nodes["model.p.daily"], "total", expressions_of(head)),
    )
    comparison = compare(base, head, base_analysis=then, head_analysis=now)
    found.add_changes(
        *(comparison, expressions_of(head), expressions_of(base)), own=(then.own, now.own)
    )
    began = {s.name: [(c.column, c.began_here) for c in s.changes] for s in found.steps}
    assert began["daily"] == [("total", True)] and began["stg"] == [("price", True)]


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_the_command(twin: Path, command: Command, tmp_path: Path, style: str) -> None:
    shutil.copytree(twin / "good" / "target", tmp_path / "target")
    arguments = ("diagnose", "fct_orders.ORDER_TOTAL", "--project-dir", tmp_path)
    state = ("--state", twin / "bad" / "target")
    code, out, _ = command(*arguments, *state, "--format", style)
    assert code == 0
    if style == "json":
        document = json.loads(out)
        jsonschema.Draft202012Validator(schema("diagnose")).validate(document)
        assert [step["name"] for step in document["steps"]] == [
            *("fct_orders", "stg_orders", "raw_orders")
        ]
        assert document["compared_with"]
    else:
        assert "raw_orders" in out and "changed" in out and "Finance Analytics" in out
    code, out, err = command("diagnose", "fct_orders.order_totl", "--project-dir", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "order_total" in err
