"""What another project's sources read of this one: `trace`, `impact` and `gate` go on there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hand_made import check, node, project
from msgspec.structs import replace
from twin_project import Command

from dbt_ripple.artifacts import Node, Project, find_node
from dbt_ripple.artifacts.project import RunResult
from dbt_ripple.changes import compare
from dbt_ripple.governance.gate import GateReport, gate_from
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import ImpactReport, impact
from dbt_ripple.governance.ripple_yml import Config
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.joined_projects import JoinedProjects, Member
from dbt_ripple.graph.lineage import Analysis
from dbt_ripple.rendering.escaping import line as printed
from dbt_ripple.rendering.json_documents import schema
from dbt_ripple.rendering.trace import column_view, node_view, render

RAW = "source.core.raw.raw"
RAW_COLUMNS = ["id", "amount", "code"]


def made(name: str, *nodes: Node, adapter: str = "spark", **catalog: list[str]) -> Project:
    """A project of a name; ``catalog`` is by the name of the node."""
    ids = {n.name: n.unique_id for n in nodes}
    built = project(
        *nodes, catalog={ids[n]: columns for n, columns in catalog.items()}, adapter=adapter
    )
    built.metadata.project_name = name
    return built.having(target_path=f"/{name}/target")


def core(stg: str = "select id, amount, code, amount * 2 as twice from s.raw") -> Project:
    return made(
        "core",
        node(RAW, columns=RAW_COLUMNS),
        node("model.core.stg", stg, RAW),
        node("model.core.fct", "select id, amount, twice from s.stg", "model.core.stg"),
        raw=RAW_COLUMNS,
    )


def reads(name: str, sql: str = "select id, amount as total from s.fct") -> Project:
    """A project with a source `core.fct`, a model over it, a mart and a dashboard."""
    source = node(f"source.{name}.core.fct", columns=["id", "amount", "twice"], source_name="core")
    return made(
        name,
        source,
        node(f"model.{name}.report", sql, source.unique_id),
        node(
            f"model.{name}.mart",
            "select sum(total) as total from s.report",
            f"model.{name}.report",
        ),
        node(
            f"exposure.{name}.board",
            None,
            f"model.{name}.mart",
            type="dashboard",
            meta={"referenced_columns": ["mart.total"]},
            owner={"name": "Finance", "email": "finance@x.example"},
        ),
    )


def together(*projects: Project, formerly: Project | None = None) -> JoinedProjects:
    def analysis(of: Project) -> Callable[[], Analysis]:
        return lambda: analyse(of)

    return JoinedProjects([Member(p, analysis(p)) for p in projects], formerly)


def of(joined: JoinedProjects, name: str, *changes: Change) -> ImpactReport:
    world = joined.members[0].project
    return impact(world, find_node(world, name)[0], changes, joined=joined)


def severities_of(report: ImpactReport) -> dict[str, str]:
    return {a.full_name: a.severity for a in report.affected_assets}


# --- what is joined --------------------------------------------------------------------------------


def joints(*projects: Project) -> dict[str, str]:
    joined = together(*projects)
    return {r.unique_id: b.unique_id for r, b in joined.built_by.items()}


def test_a_source_is_joined_with_the_relation_of_its_name() -> None:
    assert joints(core(), reads("finance")) == {"source.finance.core.fct": "model.core.fct"}
    assert joints(reads("finance"), core()) == {"source.finance.core.fct": "model.core.fct"}


@pytest.mark.parametrize(
    ("adapter", "built", "read", "is_one"),
    [
        ("snowflake", '"DB"."S"."FCT"', "DB.S.fct", True),
        ("snowflake", '"DB"."S"."fct"', "DB.S.FCT", False),
        ("postgres", '"db"."s"."fct"', '"db"."s"."fct"', True),
        ("postgres", '"db"."s"."Fct"', '"db"."s"."fct"', False),
        ("spark", "`S`.`FCT`", "s.fct", True),
        ("duckdb", '"db"."s"."fct"', '"other"."s"."fct"', False),
    ],
)
def test_names_are_folded_as_the_adapter_does(
    adapter: str, built: str, read: str, is_one: bool
) -> None:
    sides = []
    for name, kind, relation in (("core", "model", built), ("finance", "source.finance", read)):
        one = node(
            f"{kind}.{name}.fct" if kind == "model" else f"{kind}.core.fct", "select 1 as id"
        )
        database = relation.split(".")[0].strip('"`') if relation.count(".") == 2 else None
        schema, table = (part.strip('"`') for part in relation.split(".")[-2:])
        one = msgspec.structs.replace(
            one,
            relation_name=relation,
            database=database,
            schema=schema,
            alias=table,
            identifier=table,
        )
        sides.append(made(name, one, adapter=adapter))
    assert bool(joints(*sides)) == is_one


def test_the_own_project_comes_first() -> None:
    finance = reads("finance")
    own = node("model.finance.fct", "select 1 as id, 2 as amount")
    finance = made("finance", *finance.nodes.values(), own)
    assert joints(core(), finance) == {}


def test_a_node_that_a_plugin_took_over_is_the_node_of_that_id() -> None:
    finance = made(
        "finance",
        node("model.core.fct"),
        node("model.finance.report", "select id, amount as total from s.fct", "model.core.fct"),
    )
    finance.nodes["model.core.fct"] = replace(
        finance.nodes["model.core.fct"], relation_name="`elsewhere`.`fct`"
    )
    finance.nodes["model.finance.report"] = replace(
        finance.nodes["model.finance.report"],
        compiled_code="select id, amount as total from elsewhere.fct",
    )
    finance.nodes["model.core.fct"] = replace(finance.nodes["model.core.fct"], schema="elsewhere")
    joined = together(core(), finance)
    assert len(joined.built_by) == 1
    report = of(joined, "fct", Change("drop", "amount"))
    assert severities_of(report) == {"finance.report": "breaking"}
    assert report.decision == "BLOCKED"


def test_what_is_not_joined_is_reported() -> None:
    other_schema = reads("finance")
    source = other_schema.nodes["source.finance.core.fct"]
    source = other_schema.nodes["source.finance.core.fct"] = replace(
        source, schema="prod", relation_name="`prod`.`fct`"
    )
    assert "another target" in "".join(together(core(), other_schema).notes)
    elsewhere = made("finance", *reads("finance").nodes.values(), adapter="snowflake")
    notes = together(core(), elsewhere).notes
    assert "it is on snowflake, core on spark" in notes[0]
    assert not together(core(), reads("finance")).notes


def test_a_source_that_both_declare() -> None:
    """Nobody builds it: what is asked of it in one project is asked in the other, too."""
    theirs = made(
        "growth",
        node("source.growth.raw.raw"),
        node("model.growth.codes", "select distinct code from s.raw", "source.growth.raw.raw"),
    )
    assert joints(core(), theirs) == {"source.growth.raw.raw": RAW}
    report = of(together(core(), theirs), "raw", Change("drop", "code"))
    assert severities_of(report)["growth.codes"] == "breaking"


def test_a_relation_that_two_projects_build() -> None:
    twice = together(
        reads("finance"), core(), made("core2", node("model.core2.fct", "select 1 as id"))
    )
    assert [b.unique_id for b in twice.built_by.values()] == ["model.core.fct"]
    assert "is built by core (model.core.fct) and core2 (model.core2.fct)" in twice.notes[0]


# --- impact ----------------------------------------------------------------------------------------


def test_impact_goes_on_in_the_other_project() -> None:
    report = of(together(core(), reads("finance")), "raw", Change("rename", "amount", "total"))
    assert severities_of(report) == {
        "stg": "breaking",
        "fct": "breaking",
        "finance.report": "breaking",
        "finance.mart": "breaking",
        "finance.board": "breaking",
    }
    board = next(a for a in report.affected_assets if a.name == "board")
    assert board.owner == "Finance"
    assert board.project == "finance"
    assert board.path == [
        *(RAW, "model.core.stg", "model.core.fct", "source.finance.core.fct"),
        *("model.finance.report", "model.finance.mart", "exposure.finance.board"),
    ]
    assert report.risk_level == "high"
    assert "finance.report" not in report.recommendation  # what asks for the name is stg


def test_a_reader_elsewhere_that_asks_for_what_goes() -> None:
    report = of(together(core(), reads("finance")), "fct", Change("drop", "amount"))
    assert report.decision == "BLOCKED"
    assert severities_of(report) == {
        "finance.report": "breaking",
        "finance.mart": "breaking",
        "finance.board": "breaking",
    }
    assert "finance.report" in report.recommendation
    unread = of(together(core(), reads("finance")), "fct", Change("drop", "twice"))
    assert (unread.decision, unread.affected_assets) == ("APPROVED", [])
    alone = impact(core(), core().nodes["model.core.fct"], [Change("drop", "amount")])
    assert alone.decision == "APPROVED"


def test_contracts_of_the_other_project() -> None:
    finance = reads("finance")
    contracted = node(
        "model.finance.kept",
        "select * from s.fct",
        "source.finance.core.fct",
        columns={"id": "bigint", "amount": "decimal(12,2)", "twice": "double"},
        config={"contract": {"enforced": True}},
    )
    joined = together(core(), made("finance", *finance.nodes.values(), contracted))
    retyped = of(joined, "fct", Change("retype", "amount", "double"))
    assert severities_of(retyped)["finance.kept"] == "breaking"
    assert retyped.decision == "BLOCKED"
    added = of(joined, "fct", Change("add", "note", "string"))
    assert severities_of(added)["finance.kept"] == "breaking"
    assert "finance.kept" in added.recommendation


def test_a_relation_that_is_removed() -> None:
    report = of(together(core(), reads("finance")), "fct", Change("remove"))
    assert report.decision == "BLOCKED"
    assert severities_of(report)["finance.report"] == "breaking"
    waits = of(together(core(), reads("finance")), "fct", Change("deprecate"))
    assert waits.decision == "CAUTION"
    assert severities_of(waits)["finance.report"] == "warning"


def test_tests_of_the_other_project() -> None:
    finance = reads("finance")
    asks = check("asks", "select amount from s.fct where amount < 0", "source.finance.core.fct")
    joined = together(core(), made("finance", *finance.nodes.values(), asks))
    report = of(joined, "fct", Change("drop", "amount"))
    assert report.broken_tests == ["test.p.asks"]


def test_three_projects_in_a_row_and_back() -> None:
    """A project in the middle passes on; one that reads back what it gave away is reached again."""
    third = made(
        "growth",
        node("source.growth.finance.mart"),
        node("model.growth.kpi", "select total from s.mart", "source.growth.finance.mart"),
    )
    back = node("source.core.growth.kpi")
    home = made(
        "core",
        *core().nodes.values(),
        back,
        node("model.core.summary", "select total from s.kpi", back.unique_id),
        raw=RAW_COLUMNS,
    )
    report = of(together(home, reads("finance"), third), "fct", Change("drop", "amount"))
    assert {"finance.mart", "growth.kpi", "summary"} <= severities_of(report).keys()
    summary = next(a for a in report.affected_assets if a.name == "summary")
    assert summary.project is None
    assert summary.path[:2] == ["model.core.fct", "source.finance.core.fct"]
    assert summary.path[-2:] == [back.unique_id, "model.core.summary"]


def test_one_id_in_two_projects() -> None:
    """A package that both install is built by each in its own schema."""
    shared = node("model.shared.dates", "select id from s.raw", RAW)
    theirs = node("model.shared.dates", "select amount as d from s.fct", "source.finance.core.fct")
    theirs = replace(theirs, schema="f", relation_name="`f`.`dates`")
    joined = together(
        made("core", *core().nodes.values(), shared, raw=RAW_COLUMNS),
        made("finance", *reads("finance").nodes.values(), theirs),
    )
    report = of(joined, "fct", Change("drop", "amount"))
    assert "finance.dates" in severities_of(report)
    assert "dates" not in severities_of(report)
    ids = [a.unique_id for a in report.affected_assets if a.name == "dates"]
    assert ids == ["model.shared.dates@finance"]


SPLIT = {
    "stg": "select id, amount, code from s.raw",
    "all_of_it": "select * from s.stg",
    "paid": "select id, amount from s.stg where code = 'x'",
    "sums": "select code, sum(amount) as total from s.all_of_it group by code",
    "joined": "select p.id, s.total from s.paid p join s.sums s on s.code = p.id",
    "counted": "select count(*) as n from s.paid",
    "named": "select code as kind, amount as value from s.all_of_it",
    "top": "select n from s.counted union all select total from s.joined",
}
PARENTS = {
    "stg": ["raw"],
    "all_of_it": ["stg"],
    "paid": ["stg"],
    "sums": ["all_of_it"],
    "joined": ["paid", "sums"],
    "counted": ["paid"],
    "named": ["all_of_it"],
    "top": ["counted", "joined"],
}


EXPOSURES = {"board": "sums", "silent": "top", "chart": "counted"}


def split(*theirs: str) -> list[Project]:
    """The models above in two projects: those that are named, and all others."""
    whose = {name: "two" if name in theirs else "one" for name in SPLIT} | {"raw": "one"}
    ids: dict[str, dict[str, Node]] = {"one": {}, "two": {}}
    ids["one"]["raw"] = node("source.one.raw.raw", columns=RAW_COLUMNS)
    for name, sql in SPLIT.items():
        own = ids[whose[name]]
        for parent in PARENTS[name]:
            if parent not in own and whose[parent] != whose[name]:
                own[parent] = node(f"source.{whose[name]}.other.{parent}")
        above = [
            own[p].unique_id if p in own else f"model.{whose[name]}.{p}" for p in PARENTS[name]
        ]
        own[name] = node(f"model.{whose[name]}.{name}", sql, *above)
    for name, parent in EXPOSURES.items():
        own = ids[whose[parent]]
        meta = {} if name == "silent" else {"referenced_columns": ["total", "n"]}
        own[name] = node(f"exposure.{whose[parent]}.{name}", None, own[parent].unique_id, meta=meta)
    return [made("one", *ids["one"].values(), raw=RAW_COLUMNS), made("two", *ids["two"].values())]


CHANGES = [
    Change("drop", "amount"),
    Change("drop", "code"),
    Change("rename", "amount", "value"),
    Change("add", "total", "double"),
    Change("retype", "id", "string"),
    Change("remove"),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.kind} {change.column}")
@pytest.mark.parametrize(
    "theirs",
    [("sums",), ("paid", "counted"), ("all_of_it", "joined", "top"), ("stg",), ("named", "top")],
    ids="+".join,
)
def test_two_projects_answer_as_one_does(theirs: tuple[str, ...], change: Change) -> None:
    """Where a project is cut in two, whom a change reaches and how badly stays the same."""
    (whole, _), parts = split(), split(*theirs)
    one = impact(whole, find_node(whole, "raw")[0], [change])
    two = of(together(*parts), "raw", change)
    assert {a.name: a.severity for a in two.affected_assets} == {
        a.name: a.severity for a in one.affected_assets
    }
    assert (two.decision, two.risk_level) == (one.decision, one.risk_level)
    may = {a.name: a.may_read for a in two.affected_assets}
    assert may == {a.name: a.may_read for a in one.affected_assets}


# --- the gate --------------------------------------------------------------------------------------


def gated(base: Project, head: Project, *others: Project) -> GateReport:
    comparison = compare(base, head)
    joined = together(head, *others, formerly=base) if others else None
    return gate_from(comparison, Config(), None, joined)


def test_the_gate_names_the_reader_elsewhere() -> None:
    head = core("select id, amount as value, code, amount * 2 as twice from s.raw")
    for name in ("fct",):
        head.nodes[f"model.core.{name}"] = replace(
            head.nodes[f"model.core.{name}"],
            compiled_code="select id, value, twice from s.stg",
            raw_code="select id, value, twice from s.stg",
        )
    assert gated(core(), head).decision == "APPROVED"
    report = gated(core(), head, reads("finance"))
    assert report.decision == "BLOCKED"
    broken = [f for f in report.findings if f.rule == "reader_broken"]
    assert [(f.unique_id, f.project, f.level) for f in broken] == [
        ("model.finance.report", "finance", "block")
    ]
    assert "amount" in broken[0].reason.message
    assert {a.full_name for a in report.affected} == {
        "finance.report",
        "finance.mart",
        "finance.board",
    }
    assert report.blast_radius == 3


def test_the_gate_finds_what_ci_builds_in_another_schema() -> None:
    head = core("select id, code, amount * 2 as twice from s.raw")
    head.nodes["model.core.fct"] = replace(
        head.nodes["model.core.fct"],
        compiled_code="select id, twice from pr_1.stg",
        raw_code="select id, twice from s.stg",
    )
    for name in ("stg", "fct"):
        moved = head.nodes[f"model.core.{name}"]
        moved = head.nodes[f"model.core.{name}"] = replace(
            moved, schema="pr_1", relation_name=f"`pr_1`.`{name}`"
        )
    report = gated(core(), head, reads("finance"))
    assert "model.finance.report" in {f.unique_id for f in report.findings}


def test_the_gate_says_nothing_of_what_does_not_move() -> None:
    head = core("select id, amount, code, amount * 3 as twice from s.raw")
    assert gated(core(), core(), reads("finance")).decision == "APPROVED"
    report = gated(core(), head, reads("finance"))
    assert {a.full_name for a in report.affected} == {"fct"}


def test_a_model_that_is_removed_while_another_project_reads_it() -> None:
    without = made("core", *(n for n in core().nodes.values() if n.name != "fct"), raw=RAW_COLUMNS)
    report = gated(core(), without, reads("finance"))
    assert report.decision == "BLOCKED"
    assert "finance.report" in {a.full_name for a in report.affected}


def test_what_the_other_project_asks_in_vain_already_decides_nothing() -> None:
    broken = reads("finance", "select id, amount as total, nobody from s.fct")
    head = core("select id, amount, code, amount * 2 as twice from s.raw where id > 0")
    report = gated(core(), head, broken)
    assert not [f for f in report.findings if f.rule == "reader_broken"]
    assert "finance.report" in {a.full_name for a in report.affected}  # its rows may differ


def test_a_column_that_nothing_lists_is_not_called_gone() -> None:
    """Without a catalog a model that passes on `*` may have any column."""
    star = made("core", node(RAW), node("model.core.fct", "select * from s.raw", RAW))
    filtered = made(
        "core", node(RAW), node("model.core.fct", "select * from s.raw where id > 0", RAW)
    )
    report = gated(star, filtered, reads("finance"))
    assert not [f for f in report.findings if f.rule == "reader_broken"]
    assert "finance.report" in {a.full_name for a in report.affected}


def test_an_incremental_model_keeps_its_columns() -> None:
    def of_columns(columns: str) -> Project:
        fct = node(
            "model.core.fct",
            f"select {columns} from s.raw",
            RAW,
            config={"materialized": "incremental"},
        )
        return made("core", node(RAW, columns=RAW_COLUMNS), fct, raw=RAW_COLUMNS)

    report = gated(of_columns("id, amount"), of_columns("id"), reads("finance"))
    assert "finance.report" in {a.full_name for a in report.affected}


# --- personal data ---------------------------------------------------------------------------------


def holder(shown: str) -> Project:
    """A project with an address, of which a model hands something on."""
    raw = node(RAW, columns=["id", "email"])
    raw.columns["email"].meta["pii"] = "email"
    return made(
        "core",
        raw,
        node("model.core.fct", f"select id, {shown} as contact from s.raw", RAW),
        raw=["id", "email"],
    )


def shows(sql: str) -> Project:
    source = node("source.finance.core.fct", columns=["id", "contact"], source_name="core")
    return made(
        "finance",
        source,
        node("model.finance.report", sql, source.unique_id),
        node(
            "exposure.finance.board",
            None,
            "model.finance.report",
            type="dashboard",
            meta={"public": True, "referenced_columns": ["report.contact"]},
            owner={"name": "Finance", "email": "finance@x.example"},
        ),
    )


def personal(report: GateReport) -> set[tuple[str, str, str, str | None]]:
    return {
        (f.rule, f.level, f.unique_id or "", f.project)
        for f in report.findings
        if f.rule.startswith("pii_")
    }


READS = "select id, contact from s.fct"


def test_personal_data_that_comes_from_another_project() -> None:
    """finance begins to read an address: nobody there declared that it is one."""
    base, head = shows("select id, id as contact from s.fct"), shows(READS)
    assert personal(gated(base, head)) == set()
    here = {("pii_untagged", "model.finance.report"), ("pii_exposed", "exposure.finance.board")}
    assert personal(gated(base, head, holder("email"))) == {(r, "warn", u, None) for r, u in here}
    assert personal(gated(base, head, holder("sha2(email, 256)"))) == set()
    # It was so before this change.
    report = gated(head, shows(f"{READS} where id > 0"), holder("email"))
    assert personal(report) == {(r, "known", u, None) for r, u in here}


def test_personal_data_that_goes_to_another_project() -> None:
    """core begins to hand on an address, and somebody else shows it to all."""
    report = gated(holder("sha2(email, 256)"), holder("email"), shows(READS))
    assert personal(report) == {
        ("pii_untagged", "warn", "model.core.fct", None),
        ("pii_untagged", "warn", "model.finance.report", "finance"),
        ("pii_exposed", "warn", "exposure.finance.board", "finance"),
    }
    (board,) = [f for f in report.findings if f.rule == "pii_exposed"]
    assert board.owner_email == "finance@x.example"
    # What is there already is that project's own affair.
    again = gated(holder("email"), holder("lower(email)"), shows(READS))
    assert {finding[3] for finding in personal(again)} == {None}


# --- trace -----------------------------------------------------------------------------------------


def tree(joined: JoinedProjects, unique_id: str, column: str | None, direction: Any) -> list[str]:
    root = joined.union.nodes[unique_id]
    whose = joined.project_of
    if column is None:
        view: Any = node_view(joined.union, root, direction, None, False, None, whose)
    else:
        united = joined.united(joined.analyses())
        view = column_view(
            *(joined.union, united, root, column, direction, None, False, None, whose)
        )
    return [printed(line, colours=False) for line in render(view, "text")]


def test_trace_crosses_in_both_directions() -> None:
    joined = together(core(), reads("finance"))
    down = "\n".join(tree(joined, RAW, None, "downstream"))
    assert "TABLE finance.fct" in down
    assert "finance.board" in down
    up = "\n".join(tree(joined, "exposure.finance.board", None, "upstream"))
    assert "TABLE raw" in up


def test_trace_of_a_column_crosses() -> None:
    joined = together(core(), reads("finance"))
    down = "\n".join(tree(joined, RAW, "amount", "downstream"))
    assert "DBT_MODEL finance.report.total" in down
    assert "finance.board" in down
    up = "\n".join(tree(joined, "model.finance.mart", "total", "upstream"))
    assert "TABLE raw.amount" in up
    assert "raw.code" not in up


def test_trace_and_impact_on_the_command_line(
    tmp_path: Path, command: Command, on_disk: Callable[[Project, Path], None]
) -> None:
    on_disk(core(), tmp_path / "core" / "target")
    on_disk(reads("finance"), tmp_path / "finance" / "target")
    (tmp_path / "finance" / "dbt_project.yml").write_text("name: finance\n")
    (tmp_path / "core" / "dbt_project.yml").write_text("name: core\n")
    at = ("--project-dir", tmp_path / "core", "--other-project", tmp_path / "finance")
    code, out, err = command("trace", "raw.amount", *at, "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    assert {n.get("project") for n in document["nodes"]} == {None, "finance"}
    code, out, err = command("impact", "fct", "--drop", "amount", *at)
    assert code == 1, err
    assert "finance.report" in out
    code, out, err = command("impact", "fct", "--drop", "amount", *at, "--format", "markdown")
    assert "finance.report" in out
    code, out, err = command("trace", "finance.mart", *at, "--direction", "upstream")
    assert "raw" in out
    code, _, err = command("trace", "raw", *at[:3], tmp_path / "nowhere")
    assert code == 2
    assert "no such folder" in err


def test_diagnose_goes_on_where_the_number_comes_from(
    tmp_path: Path, command: Command, on_disk: Callable[[Project, Path], None]
) -> None:
    ran = RunResult(unique_id="model.core.stg", status="error")
    edited = "select id, amount * 3 as amount, code, amount * 2 as twice from s.raw"
    on_disk(core(edited), tmp_path / "core" / "target")
    results = {"metadata": {}, "results": [msgspec.to_builtins(ran)]}
    (tmp_path / "core" / "target" / "run_results.json").write_text(json.dumps(results))
    on_disk(core(), tmp_path / "core" / "state")
    for folder in ("target", "state"):
        on_disk(reads("finance"), tmp_path / "finance" / folder)
    asked = ("diagnose", "mart.total", "--project-dir", tmp_path / "finance")
    at = (*asked, "--other-project", tmp_path / "core" / "target")
    since = ("--state", tmp_path / "core" / "state", "--state", tmp_path / "finance" / "state")
    code, out, err = command(*at, *since, "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    jsonschema.Draft202012Validator(schema("diagnose")).validate(document)
    steps = {(step.get("project"), step["name"]): step for step in document["steps"]}
    assert {place: step["depth"] for place, step in steps.items()} == {
        (None, "mart"): 0,
        (None, "report"): 1,
        (None, "fct"): 2,
        ("core", "fct"): 3,
        ("core", "stg"): 4,
        ("core", "raw"): 5,
    }
    assert [place for place, step in steps.items() if step["changes"]] == [
        ("core", "fct"),
        ("core", "stg"),
    ]
    (change,) = steps["core", "stg"]["changes"]
    assert (change["column"], change["began_here"], change["after"]) == (
        *("amount", True, "amount * 3"),
    )
    assert steps["core", "stg"]["last_run"]["status"] == "error"
    assert {c["name"] for c in steps["core", "raw"]["columns"]} == {"amount", "*rows*"}
    code, out, err = command(*at, *since)
    assert (code, "4  DBT_MODEL core.stg  " in out) == (0, True), err
    # Alone it ends at its own source; and a state that is of none of them is refused.
    code, out, _ = command(*asked)
    assert (code, "core.stg" in out) == (0, False)
    on_disk(reads("sales"), tmp_path / "sales")
    code, out, err = command(*at, "--state", tmp_path / "sales")
    assert (code, out) == (2, "")
    assert "artifacts of sales" in err and "finance or core" in err


@pytest.fixture
def edited(tmp_path: Path, on_disk: Callable[[Project, Path], None]) -> Path:
    """Core and finance, both edited since `state`, and a dashboard beside finance."""
    on_disk(
        core("select id, amount * 3 as amount, code, amount * 2 as twice from s.raw"),
        tmp_path / "core" / "target",
    )
    on_disk(core(), tmp_path / "core" / "state")
    on_disk(
        reads("finance", "select id, amount + 1 as total from s.fct"), tmp_path / "finance/target"
    )
    on_disk(reads("finance"), tmp_path / "finance" / "state")
    declared = {
        "id": "dashboard:numbers",
        "reads": [{"node": "mart", "columns": ["total"]}],
        "writes": [{"node": "api:out", "columns": [{"from": "total", "to": "total"}]}],
    }
    (tmp_path / "finance" / "ripple_assets.yml").write_text(
        json.dumps({"assets": [{"id": "api:out", "columns": ["total"]}, declared]})
    )
    return tmp_path


def test_changes_of_assets_are_told_with_other_projects(edited: Path, command: Command) -> None:
    at = ("--project-dir", edited / "finance", "--other-project", edited / "core" / "target")
    since = ("--state", edited / "core" / "state", "--state", edited / "finance" / "state")
    code, out, err = command("diagnose", "api:out", *at, *since, "--format", "json")
    assert code == 0, err
    steps = {step["name"]: step for step in json.loads(out)["steps"]}
    changed = {name: [c["began_here"] for c in step["changes"]] for name, step in steps.items()}
    assert changed["out"] == [False] and changed["mart"] == [False]
    assert changed["report"] == [True] and changed["stg"] == [True]


def test_an_incident_goes_on_in_both_directions(edited: Path, command: Command) -> None:
    at = ("--project-dir", edited / "finance", "--other-project", edited / "core" / "target")
    since = ("--state", edited / "core" / "state", "--state", edited / "finance" / "state")
    code, out, err = command("incident", "mart.total", *at, *since, "--format", "json")
    assert code == 0, err
    document = json.loads(out)
    jsonschema.Draft202012Validator(schema("incident")).validate(document)
    assert [s["name"] for s in document["suspects"]] == ["report", "core.stg"]
    assert "numbers" in [asset["name"] for asset in document["impacted"]]
    # What is to be built is of the project that is asked; what is to be paused elsewhere is named.
    assert document["containment"]["rebuild"]["words"] == ["report", "mart"]
    asked = ("--project-dir", edited / "core", "--other-project", edited / "finance" / "target")
    code, out, err = command("incident", "stg.amount", *asked, "--format", "json")
    document = json.loads(out)
    reached = {(asset["project"], asset["name"]) for asset in document["impacted"]}
    assert {("finance", "mart"), ("finance", "board"), (None, "fct")} <= reached, err
    assert document["containment"]["elsewhere"] == [
        "model.finance.report",
        "model.finance.mart",
    ]
    assert document["containment"]["pause"]["words"] == ["stg", "fct"]


@pytest.mark.parametrize("style", ["text", "json", "markdown", "github", "sarif"])
def test_the_gate_on_the_command_line(
    style: str, tmp_path: Path, command: Command, on_disk: Callable[[Project, Path], None]
) -> None:
    head = core()
    fct = head.nodes["model.core.fct"]
    fct = head.nodes["model.core.fct"] = replace(
        fct, compiled_code="select id, twice from s.stg", raw_code="select id, twice from s.stg"
    )
    on_disk(core(), tmp_path / "core" / "state")
    on_disk(head, tmp_path / "core" / "target")
    on_disk(reads("finance"), tmp_path / "finance")
    (tmp_path / "core" / "dbt_project.yml").write_text("name: core\n")
    asked = ("gate", "--project-dir", tmp_path / "core", "--state", "state", "--format", style)
    code, out, err = command(*asked)
    assert (code, "finance" in out) == (0, False), err
    code, out, err = command(*asked, "--other-project", tmp_path / "finance")
    assert code == 1, err
    assert "finance.report" in out
    if style == "json":
        document = json.loads(out)
        jsonschema.Draft202012Validator(schema("gate")).validate(document)
        broken_readers = [f for f in document["findings"] if f["rule"] == "reader_broken"]
        assert [f["project"] for f in broken_readers] == ["finance"]
        assert {a.get("project") for a in document["affected"]} == {"finance"}


@pytest.fixture
def on_disk() -> Callable[[Project, Path], None]:
    """Write a project made by hand as a target folder."""

    def write(made_by_hand: Project, folder: Path) -> None:
        folder.mkdir(parents=True)
        sections: dict[str, dict[str, Any]] = {"nodes": {}, "sources": {}, "exposures": {}}
        for unique_id, one in made_by_hand.nodes.items():
            of_type = {"source": "sources", "exposure": "exposures"}.get(one.resource_type, "nodes")
            sections[of_type][unique_id] = msgspec.to_builtins(one)
        manifest = {
            "metadata": {
                "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
                "dbt_version": "1.11.0",
                "project_name": made_by_hand.name,
                "adapter_type": "spark",
            },
            **sections,
            "macros": {},
            "parent_map": made_by_hand.parents,
        }
        (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))

    return write
