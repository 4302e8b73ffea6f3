"""Columns that would come, deprecations, and files of proposed changes."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hand_made import node, project
from msgspec.structs import replace
from twin_project import Command

from dbt_ripple.artifacts import Node, Project, find_node
from dbt_ripple.artifacts.project import Column
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.contracts import contract_breaches
from dbt_ripple.governance.gate import gate
from dbt_ripple.governance.hypothetical_changes import Change, read_proposed
from dbt_ripple.governance.impact import ImpactReport, impact
from dbt_ripple.reasons import Code

RAW = node("source.p.raw", columns={"id": "bigint", "code": "string"})
TWO = node("source.p.two", columns={"id": "bigint", "note": "string"})
LISTED = {RAW.unique_id: ["id", "code"], TWO.unique_id: ["id", "note"]}
DAY = date(2026, 1, 1)


def world(*nodes: Node) -> Project:
    return project(RAW, TWO, *nodes, catalog=LISTED)


def of(world: Project, name: str, *changes: Change, day: date = DAY) -> ImpactReport:
    return impact(world, find_node(world, name)[0], changes, today=day)


BOTH = "select raw.id, note from s.raw join s.two on raw.id = two.id"
UNION = "select * from s.raw union all select * from s.two"
STAR, PARENTS = "select * from s.raw", ("source.p.raw", "source.p.two")
INSERTS = {"post-hook": [{"sql": "insert into s.t select * from s.raw"}]}
FAILS = {"materialized": "incremental", "on_schema_change": "fail"}
APPENDS = {"materialized": "incremental", "on_schema_change": "append_new_columns"}
SNAPSHOT = {"strategy": "check", "check_cols": "all", "unique_key": "id"}

NEW_NOTE: dict[str, tuple[Node, str | None, list[str], str]] = {
    "a name that means two columns now": (
        *(node("model.p.m", BOTH, *PARENTS), "breaking", ["note"], "mend m (note is ambiguous)"),
    ),
    "a union by position": (
        *(node("model.p.m", UNION, *PARENTS), "breaking", ["note"]),
        "mend m (UNION of 3 columns with 2)",
    ),
    "a natural join": (
        node("model.p.m", "select count(*) as n from s.raw natural join s.two", *PARENTS),
        *("warning", [], "look at m"),
    ),
    "an insert by position": (
        *(node("model.p.m", "select 1 as id", PARENTS[0], config=INSERTS), "warning", []),
        "look at m",
    ),
    "a star into an enforced contract": (
        node(
            *("model.p.m", STAR, PARENTS[0]),
            columns={"id": "bigint", "code": "string"},
            config={"contract": {"enforced": True}},
        ),
        *("breaking", ["note"], "add note to the contract of m"),
    ),
    "a star into an incremental model that refuses": (
        *(node("model.p.m", STAR, PARENTS[0], config=FAILS), "breaking", ["note"]),
        "set on_schema_change of m",
    ),
    "a star into an incremental model that takes it": (
        *(node("model.p.m", STAR, PARENTS[0], config=APPENDS), "warning", ["note"], "look at m"),
    ),
    "a snapshot of all columns": (
        *(node("snapshot.p.m", STAR, PARENTS[0], config=SNAPSHOT), "warning", ["note"]),
        "expect a new version of every row in m",
    ),
    "who names what is read": (
        *(node("model.p.m", "select id, code from s.raw", PARENTS[0]), None, [], "nothing known"),
    ),
    "a consumer of the others": (
        node("exposure.p.m", None, PARENTS[0], meta={"referenced_columns": ["id"]}),
        *(None, [], "nothing known"),
    ),
}


@pytest.mark.parametrize("what", NEW_NOTE)
def test_a_new_column(what: str) -> None:
    """What it breaks is blocked, what may differ is looked at; the gate says the same afterwards."""
    reader, severity, references, todo = NEW_NOTE[what]
    report = of(world(reader), "raw", Change("add", "note", "string"))
    severities = [(a.severity, a.affected_references) for a in report.affected_assets]
    assert severities == ([] if severity is None else [(severity, references)])
    assert report.decision == {"breaking": "BLOCKED", "warning": "CAUTION"}.get(
        severity or "", "APPROVED"
    )
    assert todo.lower() in report.recommendation.lower()


def test_a_new_column_is_followed_as_far_as_it_goes() -> None:
    below = [
        node("model.p.star", STAR, "source.p.raw"),
        node("model.p.again", "select * from s.star", "model.p.star"),
        node("model.p.ends", "select id from s.again", "model.p.again"),
    ]
    report = of(world(*below), "raw", Change("add", "fresh", "string", required=True))
    assert [(a.name, a.affected_references, len(a.path)) for a in report.affected_assets] == [
        ("star", ["fresh"], 2),
        ("again", ["fresh"], 3),
    ]
    assert "let what writes to raw fill fresh first" in report.recommendation
    now = project(RAW, TWO, *below, catalog={**LISTED, RAW.unique_id: ["id", "code", "fresh"]})
    judged = gate(world(*below), now)
    assert (judged.decision, judged.blast_radius) == (report.decision, 2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([Change("add", "CODE", "string")], "has a column code already"),
        ([Change("add", "x", "sting")], "did you mean string"),
        ([Change("add", "x", "int"), Change("add", "X", "int")], "no new name"),
        ([Change("add", " ", "int")], "no new name"),
        ([Change("deprecate", to="soon")], "no date"),
        ([Change("deprecate", to="2020-01-01")], "is over"),
        ([Change("deprecate"), Change("drop", "code")], "give it alone"),
    ],
)
def test_what_is_refused(changes: list[Change], says: str) -> None:
    with pytest.raises(RippleError, match=says):
        of(world(), "raw", *changes)


def test_a_dropped_columns_name_is_free() -> None:
    report = of(world(), "raw", Change("drop", "code"), Change("add", "code", "int"))
    assert report.decision == "APPROVED"


# --- deprecations ----------------------------------------------------------------------------------


def old(**more: object) -> Node:
    return node("model.p.old", "select id from s.raw", "source.p.raw", **more)


READER = node("model.p.reader", "select id from s.old", "model.p.old", meta={"owner": "ann"})


def test_a_deprecation_announces() -> None:
    report = of(world(old(), READER), "old", Change("deprecate"))
    assert (report.decision, report.promises, report.broken_tests) == ("CAUTION", [], [])
    assert [(a.name, a.severity) for a in report.affected_assets] == [("reader", "warning")]
    assert report.deprecation is not None
    assert (report.deprecation.date, report.deprecation.grace_days) == ("2026-01-31", 30)
    assert "reader" in report.recommendation and "ann" in report.recommendation
    announcement = of(world(old(), READER), "old", Change("deprecate", to="2026-03-01"))
    assert announcement.document()["deprecation"] == announcement.deprecation
    assert announcement.deprecation is not None and announcement.deprecation.grace_days == 59
    # Nobody reads it, nothing is promised: it may as well go.
    assert of(world(old()), "old", Change("deprecate")).decision == "APPROVED"
    assert of(world(old(access="public")), "old", Change("deprecate")).decision == "CAUTION"


@pytest.mark.parametrize(
    ("day", "readers", "decision"),
    [
        ("2026-05-31", [], "BLOCKED"),  # in the period, whether it is read or not
        ("2026-05-31", [READER], "BLOCKED"),
        ("2026-06-01", [], "APPROVED"),  # after it as any drop
        ("2026-06-01", [READER], "BLOCKED"),
    ],
)
@pytest.mark.parametrize("promised", [{}, {"access": "public"}])
@pytest.mark.parametrize("declared", [{"deprecation_date": "2026-06-01T00:00:00+00:00"}, {}])
def test_a_removal_waits_for_the_end_of_the_period(
    day: str,
    readers: list[Node],
    decision: str,
    promised: dict[str, str],
    declared: dict[str, str],
) -> None:
    more = {**promised, **(declared or {"meta": {"deprecation_date": "2026-06-01"}})}
    base = world(old(**more), *readers)
    then = date.fromisoformat(day)
    report = of(base, "old", Change("remove"), day=then)
    assert report.decision == decision
    waits = then < date(2026, 6, 1)
    assert report.recommendation.startswith("Wait: old is deprecated") is waits
    # And the gate of the removal itself.
    from dbt_ripple.changes import compare

    breaches = list(contract_breaches(compare(base, world(*readers)), then))
    assert [b.rule for b in breaches] == (["column_removed"] if waits else [])


# --- on the command line ---------------------------------------------------------------------------

PROPOSED = [
    {"type": "column_rename", "from": "order_total", "to": "total_amount"},
    {"type": "column_drop", "column": "legacy_discount_code"},
]


@pytest.mark.parametrize("alone", [True, False])
def test_the_tutorials_file(twin: Path, command: Command, tmp_path: Path, alone: bool) -> None:
    file = tmp_path / "changes.json"
    document = {"asset_id": "raw_orders", "proposed_changes": PROPOSED}
    file.write_text(json.dumps(PROPOSED if alone else document))
    name = ("raw_orders",) if alone else ()
    options = ("--project-dir", twin / "good", "--format", "json")
    code, out, _ = command("impact", *name, "--changes", file, *options)
    by_options = command(
        *("impact", "raw_orders", *options, "--rename", "order_total:total_amount"),
        *("--drop", "legacy_discount_code"),
    )
    assert (code, out) == by_options[:2]
    assert json.loads(out)["affected_count"] == 4


def test_every_type_of_change(tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    entries = [
        *PROPOSED,
        {"type": "column_type_change", "column": "a", "to": "double"},
        {"type": "column_add", "column": "b", "data_type": "int", "required": True},
        {"type": "deprecation", "date": "2027-01-01"},
        {"type": "removal"},
    ]
    file.write_text(json.dumps(entries))
    assert read_proposed(file) == (
        None,
        [
            Change("rename", "order_total", "total_amount"),
            Change("drop", "legacy_discount_code"),
            Change("retype", "a", "double"),
            Change("add", "b", "int", True),
            Change("deprecate", to="2027-01-01"),
            Change("remove"),
        ],
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "cannot be read"),
        ("{}", "proposed_changes"),
        ('[{"type": "colum_drop", "column": "x"}]', "did you mean column_drop"),
        ('[{"type": "column_drop"}]', "column"),
        ('[{"type": "column_drop", "column": "x", "to": "y"}]', "unknown field `to`"),
        ('{"proposed_changes": [], "asset": "x"}', "unknown field `asset`"),
    ],
)
def test_a_malformed_file_is_refused(
    twin: Path, command: Command, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "changes.json"
    file.write_text(text)
    arguments = ("impact", "raw_orders", "--changes", file, "--project-dir", twin / "good")
    code, out, err = command(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_the_words_of_the_command(twin: Path, command: Command) -> None:
    good = ("--project-dir", twin / "good")
    code, out, _ = command("impact", "raw_orders", "--add", "note:decimal(9,2):required", *good)
    assert code == 0
    assert out.startswith("APPROVED  raw_orders: note decimal(9,2) added, required\n")
    code, out, _ = command("impact", "stg_orders", "--deprecate", "--date", "2999-12-31", *good)
    assert code == 0
    assert out.startswith("CAUTION  stg_orders: deprecated\n")
    assert "\ngoes on 2999-12-31: " in out
    arguments = ("impact", "stg_orders", "--deprecate", "--format")
    _, out, _ = command(*arguments, "markdown", *good)
    assert "\ngoes on " in out and ": 30 days for its readers to move.\n" in out
    assert json.loads(command(*arguments, "json", *good)[1])["deprecation"]["grace_days"] == 30
    assert "give --deprecate" in command("impact", "stg_orders", "--date", "2999-12-31", *good)[2]
    assert "Missing argument" in command("impact", "--remove", *good)[2]
    assert command("impact", "stg_orders", "--remove", *good)[0] == 1


@pytest.mark.parametrize("access", ["public", "protected"])
@pytest.mark.parametrize("ends", ["2999-01-31", "2001-01-31"])
@pytest.mark.parametrize("sql", ["select 1 as id", "select 1 as id, 2 as newer"])
def test_a_column_that_is_announced_to_go(access: str, ends: str, sql: str) -> None:
    announced = Column(name="older", meta={"deprecation_date": ends})
    sides = []
    for text, columns in (("select 1 as id, 2 as older", {"older": announced}), (sql, {})):
        model = node("model.p.old", text, access=access)
        model = replace(model, columns=columns)
        sides.append(project(model, adapter="duckdb"))
    findings = [
        (f.rule, f.column, f.reason.code)
        for f in gate(*sides).findings
        if f.rule in ("column_removed", "column_renamed")
    ]
    rule = "column_renamed" if "newer" in sql else "column_removed"
    in_time = [(rule, "older", Code.REMOVED_IN_GRACE)]
    assert findings == (in_time if ends.startswith("29") else [])
    report = impact(sides[0], sides[0].nodes["model.p.old"], [Change("drop", "older")])
    assert report.decision == ("BLOCKED" if ends.startswith("29") else "APPROVED")
