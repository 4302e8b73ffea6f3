"""An incident: likely causes in their order, who is reached, what may be said, and what to do."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hand_made import check, node, project
from hostile import PARTS

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.project import Column, RunResult, SourceFreshness, Timing
from dbt_ripple.changes import compare
from dbt_ripple.governance.at_hand import AtHand, FromTables, Past, TableChange
from dbt_ripple.governance.diagnose import diagnosis
from dbt_ripple.governance.incident import incident
from dbt_ripple.governance.incident_document import Incident, LastSuccess
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.git import last_commit
from dbt_ripple.pages.incident import incident_page
from dbt_ripple.rendering.incident import incident_text
from dbt_ripple.rendering.incident_bodies import (
    PAGERDUTY_BYTES,
    PAGERDUTY_SUMMARY,
    SLACK_BLOCKS,
    SLACK_HEADER,
    SLACK_SECTION,
    pagerduty_body,
    sendable,
    slack_body,
    webhook_body,
)
from dbt_ripple.rendering.json_documents import schema
from dbt_ripple.rendering.output import as_document
from dbt_ripple.rendering.selection import dbt_words
from dbt_ripple.rendering.trace import expressions_of

AT = datetime(2026, 1, 1, 9, tzinfo=UTC)
RAW = node("source.p.raw", columns=["id", "price", "note", "kind", "email"])
TEST = "test.p.total"


def result(unique_id: str, status: str, hours: float = 0, **more: Any) -> RunResult:
    at = AT + timedelta(hours=hours)
    timing = [Timing(name="execute", started_at=at, completed_at=at)]
    return RunResult(unique_id=unique_id, status=status, timing=timing, invocation_id="i", **more)


FAILS = result(TEST, "fail", failures=3, message="Got 3 results, configured to fail if != 0")


def world(
    stg: str = "select id, price as price, note from s.raw where kind = 'sold'",
    mid: str = "select id, price from s.stg",
    daily: str = "select id, sum(price) as total from s.mid group by id",
    test: str = "select total from s.daily where total is null",
    results: tuple[RunResult, ...] = (FAILS,),
    fresh: str | None = None,
    **stg_more: Any,
) -> Project:
    """raw > stg > mid > daily, with a test on daily.total; below it two marts, of which one reads total."""
    made = project(
        RAW,
        node("model.p.stg", stg, RAW.unique_id, **stg_more),
        node("model.p.mid", mid, "model.p.stg"),
        node("model.p.daily", daily, "model.p.mid", meta={"owner": "finance@x.example"}),
        node(
            "model.p.mart",
            "select total * 2 as twice from s.daily",
            "model.p.daily",
            meta={"owner": "marts@x.example", "criticality": "tier1"},
        ),
        node("model.p.ids", "select id from s.daily", "model.p.daily", meta={"owner": "ids@x"}),
        node("model.p.aside", "select note from s.stg", "model.p.stg"),
        check("total", test, "model.p.daily", attached_node="model.p.daily"),
        check("stg_price", "select price from s.stg where price is null", "model.p.stg"),
        check("note_of_stg", "select note from s.stg where note is null", "model.p.stg"),
        check("total_too", "select total from s.daily where total < 0", "model.p.daily"),
        check("aside_note", "select note from s.aside where note is null", "model.p.aside"),
        catalog={RAW.unique_id: ["id", "price", "note", "kind", "email"]},
    )
    freshness = [SourceFreshness(unique_id=RAW.unique_id, status=fresh, max_loaded_at=AT)]
    return made.having(run_results=list(results), freshness=freshness if fresh else [])


def of(
    made: Project,
    base: Project | None = None,
    root: str = TEST,
    column: str | None = None,
    **more: Any,
) -> Incident:
    analysis = analyse(made, own=True)
    now = expressions_of(made)
    found = diagnosis(made, analysis, made.nodes[root], column, now)
    past = []
    if base is not None:
        then = analyse(base, own=True)
        comparison = compare(base, made, base_analysis=then, head_analysis=analysis)
        before = expressions_of(comparison.base)
        found.add_changes(comparison, now, before, own=(then.own, analysis.own))
        past.append(Past(comparison, lambda u: u, lambda u: u, base.executed))
    messages = more.pop("messages", False)
    known = AtHand(made, analysis, made.nodes[root], found, own=made, past=past, **more)
    return incident(known, lambda unique_ids: dbt_words(unique_ids, made), messages=messages)


def causes(found: Incident) -> list[tuple[str, str]]:
    return [(suspect.kind, suspect.name) for suspect in found.suspects]


EDITED_STG = "select id, price * 2 as price, note from s.raw where kind = 'sold'"
EDITED_MID = "select id, price + 1 as price from s.stg"
EDITED_NOTE = "select id, price as price, upper(note) as note from s.raw where kind = 'sold'"

# Each with a cause that is known, because it was made here.
KNOWN: dict[str, tuple[Callable[[], Incident], list[tuple[str, str]]]] = {
    "an edit on the way": (lambda: of(world(EDITED_STG), world()), [("definition", "stg")]),
    "an edit beside the way": (lambda: of(world(EDITED_NOTE), world()), []),
    "of two edits the nearer": (
        lambda: of(world(EDITED_STG, EDITED_MID), world()),
        [("definition", "mid"), ("definition", "stg")],
    ),
    "an edit before stale data": (
        lambda: of(world(EDITED_STG, fresh="error"), world()),
        [("definition", "stg"), ("freshness", "raw")],
    ),
    "no edit: of the data what is farthest above": (
        lambda: of(
            world(fresh="error", results=(FAILS, result("test.p.stg_price", "fail"))), world()
        ),
        [("freshness", "raw"), ("failure", "stg")],
    ),
    "a fresh source is none": (lambda: of(world(fresh="pass"), world()), []),
    "a failure beside the way is none": (
        lambda: of(world(results=(FAILS, result("test.p.aside_note", "fail")))),
        [],
    ),
    "what is skipped is skipped for a failure above": (
        lambda: of(
            world(EDITED_MID, results=(result(TEST, "skipped"), result("model.p.stg", "error"))),
            world(),
        ),
        [("failure", "stg"), ("definition", "stg")],
    ),
    "dbt skips for what fails on any column above": (
        lambda: of(
            world(results=(result(TEST, "skipped"), result("test.p.note_of_stg", "fail"))), world()
        ),
        [("failure", "stg")],
    ),
    "what fails on another column above does nothing to what ran": (
        lambda: of(world(results=(FAILS, result("test.p.note_of_stg", "fail")))),
        [],
    ),
    "another test of the same model is no cause": (
        lambda: of(world(results=(FAILS, result("test.p.total_too", "fail")))),
        [],
    ),
    "the test itself": (
        lambda: of(world(test="select total from s.daily where total < 1"), world()),
        [("test", "total")],
    ),
    "the rows": (
        lambda: of(world("select id, price, note from s.raw where kind = 'lost'"), world()),
        [("definition", "stg")],
    ),
}


@pytest.mark.parametrize("case", KNOWN)
def test_a_cause_that_is_known_comes_first(case: str) -> None:
    made, wanted = KNOWN[case]
    assert causes(made()) == wanted


def change(name: str, hours: float, **more: Any) -> TableChange:
    values: dict[str, Any] = {"depth": 2, "column": "price", "change": "redefined"}
    values |= {"before": "price", "after": "price * 2", "git_sha": "abc", **more}
    return TableChange(
        unique_id=f"model.p.{name}", changed_at=AT + timedelta(hours=hours), **values
    )


def test_what_the_tables_date_is_ordered_by_when() -> None:
    passed = {
        TEST: LastSuccess(at=AT - timedelta(hours=30), invocation_id="good", reported_by="tables")
    }
    tables = FromTables(
        changes=[change("mid", -40), change("stg", -2), change("daily", 1, column="total")],
        passed=passed,
        opened_at=AT,
    )
    found = of(world(), tables=tables)
    assert causes(found) == [("definition", "stg"), ("definition", "daily"), ("definition", "mid")]
    assert [s.ruled_out and s.ruled_out.code.value for s in found.suspects] == [
        None,
        "in_use_after_failure",
        "in_use_when_it_passed",
    ]
    first = found.suspects[0]
    assert (first.git_sha, first.reported_by, first.recent) == ("abc", ["tables"], True)
    assert found.failed[0].last_passed == passed[TEST]
    # Older than --since, and since it last passed: it can be the cause, and comes after what is newer.
    tables.changes = [change("mid", -29, depth=1), change("stg", -2)]
    found = of(world(), tables=tables)
    assert [(s.name, s.recent) for s in found.suspects] == [("stg", True), ("mid", False)]
    tables.changes = [change("mid", -3, depth=1), change("stg", -2)]
    assert causes(of(world(), tables=tables))[0] == ("definition", "stg")
    # What the older artifacts know, too, is one cause; they give no other date.
    found = of(world(EDITED_STG), world(), tables=FromTables(changes=[change("stg", -2)]))
    (suspect,) = found.suspects
    assert (suspect.reported_by, len(suspect.changes)) == (["state", "tables"], 1)


def test_a_promise_that_is_not_kept_comes_first_at_one_distance() -> None:
    def two(left: str, right: str) -> Project:
        promised = {"contract_version": 1}
        return project(
            RAW,
            node("model.p.a", left, RAW.unique_id),
            node("model.p.z", right, RAW.unique_id, meta=promised),
            node(
                "model.p.daily",
                "select a.price + z.price as total from s.a join s.z on a.id = z.id",
                *("model.p.a", "model.p.z"),
            ),
            check("total", "select total from s.daily where total is null", "model.p.daily"),
            catalog={RAW.unique_id: ["id", "price"]},
        ).having(run_results=[FAILS])

    was, is_ = "select id, price from s.raw", "select id, price * 2 as price from s.raw"
    found = of(two(is_, is_), two(was, was))
    assert causes(found) == [("definition", "z"), ("definition", "a")]
    assert [v.name for v in found.contract_violations] == ["z"]
    (promise,) = found.suspects[0].promises_broken
    assert promise.message == "price: redefined"


def test_a_source_with_another_type_does_not_keep_its_promise() -> None:
    def typed(price: str) -> Project:
        return project(
            node("source.p.raw", columns=["id", "price"], meta={"contract_version": 1}),
            node("model.p.daily", "select price as total from s.raw", "source.p.raw"),
            check("total", "select total from s.daily where total is null", "model.p.daily"),
            types={"source.p.raw": {"id": "int", "price": price}},
        ).having(run_results=[FAILS])

    found = of(typed("string"), typed("int"))
    (suspect,) = found.suspects
    assert (suspect.name, suspect.kind, suspect.changes) == ("raw", "definition", [])
    assert suspect.reason.message == (
        "it does not keep what it promised: price: retyped from int to string"
    )
    assert [(v.name, v.column, v.rule) for v in found.contract_violations] == [
        ("raw", "price", "column_retyped")
    ]
    # Of a column that the test does not read, nobody hears.
    other = typed("int")
    other.catalog["source.p.raw"][0].type = "string"
    assert of(other, typed("int")).suspects == []


def test_what_is_gone_and_what_only_may_be_on_the_way() -> None:
    python = {"language": "python", "raw": "def model(dbt, session): ..."}
    aside = world(EDITED_STG)
    aside.nodes["model.p.mid"] = node("model.p.mid", "def model(): ...", "model.p.stg", **python)
    then = world()
    then.nodes["model.p.mid"] = aside.nodes["model.p.mid"]
    found = of(aside, then)
    assert [(s.name, s.may_read) for s in found.suspects if s.kind == "definition"] == [
        ("stg", True)
    ]
    assert "not_followed_on_the_way" in [reason.code.value for reason in found.not_at_hand]
    gone = world(daily="select id, sum(price) as total from s.raw group by id")
    gone = project(*(n for u, n in gone.nodes.items() if u not in ("model.p.mid",)))
    found = of(gone.having(run_results=[FAILS]), world())
    assert ("definition", "mid") in causes(found)


def test_who_is_reached_by_the_column_and_nobody_else() -> None:
    found = of(world())
    assert [(i.name, i.columns, i.owner) for i in found.impacted] == [
        ("mart", ["twice"], "marts@x.example")
    ]
    assert found.severity == "critical" and found.owner == "finance@x.example"
    of_all = of(world(), root="model.p.daily")
    assert [i.name for i in of_all.impacted] == ["mart", "ids"]
    one = of(world(), root="model.p.daily", column="id")
    assert [i.name for i in one.impacted] == ["ids"]
    # Its failed tests are what failed, those of the column alone.
    assert [f.name for f in of_all.failed] == ["total"]
    assert [f.name for f in of(world(), root="model.p.daily", column="total").failed] == ["total"]
    assert one.failed == [] and one.state == "unknown" and one.severity == "warning"


def test_states_and_keys() -> None:
    failing, passing = of(world()), of(world(results=(result(TEST, "pass"),)))
    assert (failing.state, passing.state, passing.severity) == ("failing", "passing", "info")
    assert (
        failing.dedup_key
        == passing.dedup_key
        == f"dbt-ripple:{world().name}:{TEST}".replace("::", ":")
    )
    assert of(world(), root="model.p.daily").dedup_key != failing.dedup_key
    warned = of(world(results=(result(TEST, "warn"),)))
    assert (warned.state, warned.severity) == ("failing", "warning")
    long = world()
    name = "test.p." + "x" * 300
    long.nodes[name] = check("x" * 300, "select total from s.daily", "model.p.daily")
    key = of(long, root=name).dedup_key
    assert len(key) <= 255 and key == of(long, root=name).dedup_key


def test_what_was_not_at_hand_is_reported() -> None:
    missing = {reason.code.value for reason in of(world(results=())).not_at_hand}
    assert missing == {"no_older_artifacts", "no_lineage_tables", "no_last_results", "no_freshness"}
    newer = world()
    newer.metadata.generated_at = AT + timedelta(hours=1)
    codes = {r.code.value for r in of(world(EDITED_STG, fresh="pass"), newer).not_at_hand}
    assert codes == {"no_lineage_tables", "state_is_newer"}


def test_the_last_commit_of_a_file(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@x.example", *arguments],
            cwd=tmp_path,
            env={**os.environ, "GIT_COMMITTER_DATE": "2026-01-01T08:00:00+02:00"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "--quiet")
    file = tmp_path / "stg.sql"
    file.write_text("select 1")
    assert last_commit(file) is None
    git("add", "stg.sql")
    git("commit", "--quiet", "-m", "one")
    assert last_commit(file) == (
        git("rev-parse", "--short", "HEAD"),
        datetime(2026, 1, 1, 6, tzinfo=UTC),
    )
    file.write_text("select 2")
    assert last_commit(file) is None  # what is edited since is no commit's
    file.write_text("select 1")
    # Of a suspect it is told, and does not decide about the order.
    found = of(world(EDITED_STG, EDITED_MID), world(), commit_of=lambda node: last_commit(file))
    assert [s.name for s in found.suspects] == ["mid", "stg"]
    assert found.suspects[0].git_sha == git("rev-parse", "--short", "HEAD")


# --- what is said and sent ---------------------------------------------------------------------------

SECRET = "ada.secret@x.example"


def leaking(pii: bool, message: str = "") -> Project:
    """A world whose every value that is written somewhere is secret."""
    says = message or f"Runtime Error\n  Conversion Error: Could not convert string '{SECRET}'"
    stg = f"select id, note, case when email = '{SECRET}' then 491511234567 else price end as price, email from s.raw"
    made = world(stg, results=(result(TEST, "error", message=says),))
    if pii:
        columns = {**RAW.columns, "email": Column(name="email", meta={"pii": "email"})}
        made.nodes[RAW.unique_id] = msgspec.structs.replace(RAW, columns=columns)
    return made


def everything_said(found: Incident) -> dict[str, str]:
    made, left = sendable(found, "spark")
    bodies = {
        "slack": slack_body(made, left, "dbt-ripple incident x"),
        "pagerduty": pagerduty_body(made, left, "KEY"),
        "webhook": webhook_body(made, left),
    }
    return {
        name: json.dumps(body, default=str, ensure_ascii=False) for name, body in bodies.items()
    }


@pytest.mark.parametrize("pii", [False, True])
@pytest.mark.parametrize("messages", [False, True])
def test_nothing_that_is_sent_quotes_a_value(pii: bool, messages: bool) -> None:
    found = of(leaking(pii), world(), messages=messages)
    assert found.suspects and found.suspects[0].changes
    for name, said in everything_said(found).items():
        assert (SECRET in said) == (messages and not pii), name
        assert "491511234567" not in said
        assert "Conversion Error" in said
    local = "\n".join([*incident_text(found), incident_page(found)])
    assert ("Could not convert" in local) == (messages and not pii)
    assert (found.messages_withheld is not None) == (messages and pii)


def test_sql_of_what_holds_personal_data_is_not_sent() -> None:
    found = of(leaking(True), world())
    assert "model.p.stg" in found.sensitive
    made, left = sendable(found, "spark")
    sensitive = [s for s in made.suspects if s.unique_id in made.sensitive]
    assert all(c.after is None and c.before is None for s in sensitive for c in s.changes)
    # The incident itself stays as it was.
    assert any(c.after for s in found.suspects for c in s.changes)
    assert sensitive and left == ["the SQL of 1 change of what holds personal data"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Database Error in test x (y.sql)\n  secret", "Database Error"),
        ("Compilation Error in model x: secret", "Compilation Error"),
        ("This model has an enforced contract that failed. secret", "enforced contract"),
        ("secret", None),
    ],
)
def test_of_a_message_its_kind_is_told(message: str, kind: str | None) -> None:
    found = of(leaking(False, message))
    assert found.failed[0].error_kind == kind
    assert all("secret" not in said.replace(SECRET, "") for said in everything_said(found).values())


def wide(number: int, name: str = "reader") -> Project:
    """A world with many assets below and many sources above."""
    made = world(fresh="error")
    nodes = list(made.nodes.values())
    for i in range(number):
        meta = {"owner": f"{name}{i}", "criticality": "tier1"}
        reader = node(f"model.p.{name}{i}", "select total from s.daily", "model.p.daily", meta=meta)
        nodes.append(msgspec.structs.replace(reader, name=f"{name} {i} {'x' * 500}"))
    return project(
        *nodes, catalog={RAW.unique_id: ["id", "price", "note", "kind", "email"]}
    ).having(run_results=[FAILS])


def test_the_limits_of_slack_and_pagerduty() -> None:
    found = of(wide(600))
    made, left = sendable(found, "spark")
    slack = slack_body(made, left, "dbt-ripple incident x --format json")
    assert len(slack["blocks"]) <= SLACK_BLOCKS == 50
    for block in slack["blocks"]:
        text = block.get("text", {}).get("text", "")
        limit = {"header": SLACK_HEADER, "section": SLACK_SECTION}.get(block["type"], 0)
        assert 0 < len(text) <= limit or block["type"] == "rich_text"
        assert block["type"] in ("header", "section", "rich_text")
    assert (SLACK_SECTION, SLACK_HEADER, PAGERDUTY_SUMMARY) == (3000, 150, 1024)
    last = slack["blocks"][-1]["text"]["text"]
    assert "593 assets" in last and "dbt-ripple incident x --format json" in last
    event = pagerduty_body(made, left, "KEY")
    assert len(json.dumps(event)) <= PAGERDUTY_BYTES == 512 * 1024
    said = event["payload"]["custom_details"]
    told = len(said["Reached below it"])
    assert 0 < told < 601 and f"{601 - told} assets" in said["left_out"]
    assert event["payload"]["severity"] in ("critical", "error", "warning", "info")
    assert len(event["payload"]["summary"]) <= 1024 and len(event["dedup_key"]) <= 255
    # Of so many nodes a command names the topmost, and everything below.
    assert found.containment.pause.command == "dbt build --exclude daily+"
    assert not found.containment.pause.exact
    # With the longest names there can be, too.
    long = of(world())
    long.name = "\N{FIRE}" * 5000
    made, left = sendable(long, "spark")
    assert len(pagerduty_body(made, left)["payload"]["summary"].encode("utf-16-le")) // 2 <= 1024
    header = slack_body(made, left)["blocks"][0]["text"]["text"]
    assert len(header.encode("utf-16-le")) // 2 <= 150


def test_an_alert_is_resolved_where_the_test_passes() -> None:
    for status, action in (("fail", "trigger"), ("pass", "resolve"), ("warn", "trigger")):
        made, left = sendable(of(world(results=(result(TEST, status),))), "spark")
        assert pagerduty_body(made, left)["event_action"] == action
    # A number that somebody doubts is triggered, though its tests pass.
    doubted = of(world(results=(result(TEST, "pass"),)), root="model.p.daily", column="total")
    assert pagerduty_body(*sendable(doubted, "spark"))["event_action"] == "trigger"


@pytest.mark.parametrize(
    "name", [*PARTS, "</script><script>alert(1)</script>", "\ud800", "x" * 500]
)
def test_hostile_names_are_text(name: str) -> None:
    made = world(EDITED_STG)
    for unique_id in ("model.p.daily", "model.p.mart"):
        made.nodes[unique_id] = msgspec.structs.replace(made.nodes[unique_id], name=name)
    made.nodes["model.p.daily"].meta["owner"] = name
    found = of(made, world(), root="model.p.daily")
    body, left = sendable(found, "spark")
    slack = slack_body(body, left)
    for block in slack["blocks"]:
        if "text" in block:
            assert block["text"]["type"] == "plain_text" and block["text"]["emoji"] is False
    assert "<" not in slack["text"] and ">" not in slack["text"]
    json.dumps(pagerduty_body(body, left)).encode()
    page = incident_page(found)
    assert "<script" not in page
    for _ in incident_text(found):
        pass


def test_the_document_keeps_to_its_schema() -> None:
    for found in (
        of(world(EDITED_STG, fresh="error"), world()),
        of(world(results=())),
        of(world(), root="model.p.daily", column="total"),
        of(leaking(True), world(), messages=True),
    ):
        document = json.loads("".join(as_document(found)))
        jsonschema.Draft202012Validator(schema("incident")).validate(document)
        body = webhook_body(*sendable(found, "spark"))
        assert body.keys() - {"left_out"} == document.keys()


# --- the command -------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["text", "json", "slack", "pagerduty", "webhook"])
def test_the_command(twin: Path, command: Any, tmp_path: Path, style: str) -> None:
    page = tmp_path / "incident.html"
    arguments = (
        *("incident", "fct_orders.order_total", "--project-dir", twin / "good"),
        *("--state", twin / "bad" / "target", "--html", page, "--format", style),
    )
    code, out, err = command(*arguments)
    assert (code, err) == (0, "")
    if style == "text":
        assert "likely causes:" in out and "raw_orders" in out
    else:
        document = json.loads(out)
        assert document["dedup_key"] if "dedup_key" in document else document["blocks"]
    assert page.read_text().startswith("<!doctype html>")
    code, out, err = command(*arguments[:1], "no_such_thing", *arguments[2:4])
    assert (code, out, err.count("\n")) == (2, "", 1)
    code, out, err = command(*arguments[:4], "--since", "soon")
    assert code == 2 and "90m" in err
