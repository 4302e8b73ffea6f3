"""Whom the gate says a change reaches: edited readers, early cut-off, versions of models."""

from __future__ import annotations

import pytest
from hand_made import node, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.governance.gate import GateReport, gate

RAW = node("source.p.raw", columns=["id", "amount", "code"], meta={"owner": "o"})
READS_AMOUNT = {"referenced_columns": ["amount"]}


def world(stg: str, top: str = "select id, amount from s.stg", *more: Node) -> Project:
    return project(
        RAW,
        node("model.p.stg", stg, "source.p.raw", meta={"owner": "o"}),
        node("model.p.top", top, "model.p.stg", meta={"owner": "o"}),
        node("exposure.p.report", None, "model.p.top", owner={"name": "r"}, meta=READS_AMOUNT),
        node("exposure.p.unknown", None, "model.p.top", owner={"name": "u"}),
        *more,
        catalog={RAW.unique_id: ["id", "amount", "code"]},
    )


BASE = "select id, amount, code from s.raw"


def reached(report: GateReport) -> dict[str, tuple[str, list[str]]]:
    return {a.name: (a.severity, a.affected_references) for a in report.affected}


def test_a_refactor_reaches_nobody() -> None:
    report = gate(
        world(BASE), world("with r as (select * from s.raw) select id, amount, code from r")
    )
    assert (report.decision, report.affected) == ("APPROVED", [])


def test_a_column_nobody_reads_reaches_nobody() -> None:
    assert (
        gate(world(BASE), world("select id, amount, upper(code) as code from s.raw")).affected == []
    )
    assert gate(world(BASE), world("select id, amount from s.raw")).affected == []


def test_a_redefined_column_reaches_its_readers_only() -> None:
    report = gate(world(BASE), world("select id, amount + 1 as amount, code from s.raw"))
    assert reached(report) == {
        "top": ("warning", ["amount"]),
        "report": ("warning", ["amount"]),
        "unknown": ("warning", ["amount"]),
    }


def test_how_a_side_spells_a_name_does_not_matter() -> None:
    head = world("select id, amount + 1 as AMOUNT, code from s.raw", "select ID, Amount from s.stg")
    assert reached(gate(world(BASE), head)) == {
        name: ("warning", ["AMOUNT"]) for name in ("top", "report", "unknown")
    }


def test_a_reader_of_an_ephemeral_model_is_reached_not_edited() -> None:
    def side(sql: str) -> Project:
        made = world(sql, f"with __dbt__cte__stg as ({sql}) select id, amount from __dbt__cte__stg")
        stg, top = made.nodes["model.p.stg"], made.nodes["model.p.top"]
        stg = replace(stg, config={**stg.config, "materialized": "ephemeral"}, relation_name=None)
        top = replace(top, raw_code="select id, amount from {{ ref('stg') }}")
        return made.having(nodes={**made.nodes, "model.p.stg": stg, "model.p.top": top})

    report = gate(side(BASE), side("select id, amount + 1 as amount, code from s.raw"))
    assert reached(report)["top"] == ("warning", ["amount"])


def test_rows_reach_everything_that_reads_the_rows() -> None:
    report = gate(world(BASE), world(f"{BASE} where id > 1"))
    assert reached(report) == {
        name: ("warning", ["*rows*"]) for name in ("top", "report", "unknown")
    }


def test_a_reader_that_was_adapted_in_the_same_change_is_not_broken() -> None:
    head = world(
        "select id, amount as total, code from s.raw", "select id, total as amount from s.stg"
    )
    report = gate(world(BASE), head)
    assert (report.decision, report.affected) == ("APPROVED", [])


def test_a_reader_that_was_forgotten_is_broken_and_so_is_what_it_made() -> None:
    report = gate(world(BASE), world("select id, amount as total, code from s.raw"))
    assert report.decision == "BLOCKED"
    assert [(f.rule, f.unique_id, f.reason.message) for f in report.findings] == [
        (
            "reader_broken",
            "model.p.top",
            "cannot find amount: stg.amount is gone (renamed to total)",
        ),
        ("blast_radius", None, "reaches 3 assets (top, report, unknown)"),
    ]
    assert reached(report) == {
        "top": ("breaking", ["amount"]),
        "report": ("breaking", ["amount"]),
        "unknown": ("warning", ["amount"]),
    }


def test_a_consumer_that_loses_its_column_is_a_broken_reader() -> None:
    report = gate(world(BASE), world(BASE, "select id from s.stg"))
    assert [(f.rule, f.unique_id, f.column) for f in report.findings] == [
        ("reader_broken", "exposure.p.report", "amount"),
        ("blast_radius", None, None),
    ]
    assert reached(report)["report"] == ("breaking", ["amount"])


def test_what_is_above_a_broken_model_is_not_redefined_below_it() -> None:
    base, head = world(BASE), world("select id, amount as total, code from s.raw")
    for side in (base, head):
        side.nodes["model.p.top"] = replace(side.nodes["model.p.top"], access="public")
    assert [f.rule for f in gate(base, head).findings] == ["reader_broken", "blast_radius"]


def version(number: int, latest: int, **more: object) -> Node:
    made = node(
        f"model.p.dim.v{number}",
        f"select id, amount from s.stg where id > {number}",
        "model.p.stg",
        meta={"owner": "o", **(more.pop("meta", {}))},  # type: ignore[dict-item]
        version=number,
        latest_version=latest,
        **more,
    )
    return replace(made, name="dim", relation_name=f"`s`.`dim_v{number}`")


def test_a_new_latest_version_says_when_the_older_one_goes() -> None:
    base = world(BASE, "select id, amount from s.stg", version(1, 1))

    def rules(*versions: Node) -> list[str]:
        report = gate(base, world(BASE, "select id, amount from s.stg", *versions))
        return [f.rule for f in report.findings]

    assert rules(version(1, 2), version(2, 2)) == ["contract_version_without_migration"]
    assert rules(version(1, 1), version(2, 1)) == []  # not the latest yet
    assert rules(version(1, 2, deprecation_date="2027-01-01"), version(2, 2)) == []
    assert rules(version(1, 2), version(2, 2, meta={"migration": "read v2"})) == []
    # The older one may not just go.
    assert rules(version(2, 2)) == ["column_removed"]


def test_a_new_latest_version_reaches_who_refers_to_the_latest_one() -> None:
    """Nobody edited that model: its reference means another version."""

    def side(latest: int) -> Project:
        versions = version(1, latest, deprecation_date="2027-01-01"), version(2, latest)
        reader = node(
            "model.p.reader",
            f"select amount from s.dim_v{latest}",
            f"model.p.dim.v{latest}",
            raw="select amount from {{ ref('dim') }}",
            meta={"owner": "o"},
        )
        return world(BASE, "select id, amount from s.stg", *versions, reader)

    report = gate(side(1), side(2))
    assert report.decision == "CAUTION"
    assert reached(report) == {"reader": ("warning", ["*rows*"])}
    assert gate(side(1), side(1)).decision == "APPROVED"


def incremental_world(stg: str, **config: str) -> Project:
    return project(
        RAW,
        node("model.p.stg", stg, "source.p.raw", config={"materialized": "incremental", **config}),
        node("model.p.top", "select id, code from s.stg", "model.p.stg"),
        catalog={RAW.unique_id: ["id", "amount", "code"]},
    )


@pytest.mark.parametrize("on_schema_change", ["ignore", "fail", "sync_all_columns", None])
def test_a_column_that_an_incremental_model_loses_breaks_its_readers_or_the_model(
    on_schema_change: str | None,
) -> None:
    """Either dbt's insert into the table does not find it, or the table has it no longer."""
    config = {} if on_schema_change is None else {"on_schema_change": on_schema_change}
    report = gate(
        incremental_world(BASE, **config),
        incremental_world("select id, amount from s.raw", **config),
    )
    assert report.decision == "BLOCKED"
    broken = [f for f in report.findings if f.rule == "reader_broken"]
    assert [(f.unique_id, f.reason.message) for f in broken] == [
        ("model.p.top", "cannot find code: stg.code is gone")
    ]


def test_a_column_that_an_incremental_model_keeps_breaks_nobody() -> None:
    keeps = {"on_schema_change": "append_new_columns"}
    fewer = "select id, amount from s.raw"
    report = gate(incremental_world(BASE, **keeps), incremental_world(fewer, **keeps))
    assert not [f for f in report.findings if f.rule == "reader_broken"]
    # what nobody reads may go in any case
    unread = "select id, code from s.raw"
    assert gate(incremental_world(BASE), incremental_world(unread)).decision == "APPROVED"


LOOKS = "{% set names = adapter.get_columns_in_relation(ref('raw_seed')) %}"
AMOUNT_RAW = "select {{ names | join(', ') }}, amount_cents as amount from s.raw_seed"


def looking_world(raw: str, compiled: str, seed: str = "id", **more: object) -> Project:
    return project(
        node("seed.p.raw_seed", columns=["id", "amount_cents", seed]),
        node("model.p.stg", compiled, "seed.p.raw_seed", raw=LOOKS + raw),
        node("model.p.through", "select * from s.stg", "model.p.stg"),
        node("model.p.top", "select id, amount from s.through", "model.p.through"),
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("reads", ["amount_cents", "id"], ids=["unread otherwise", "read again"])
def test_a_column_that_an_edit_takes_out_of_sql_beside_jinja_is_gone(reads: str) -> None:
    """The model queries the warehouse as it compiles, but that does not bring the column back."""
    base = looking_world(AMOUNT_RAW, "select id, amount_cents as amount from s.raw_seed")
    new = AMOUNT_RAW.replace("amount_cents as amount", f"{reads} as total")
    head = looking_world(new, f"select id, {reads} as total from s.raw_seed")
    report = gate(base, head)
    assert report.decision == "BLOCKED"
    assert [(f.rule, f.unique_id) for f in report.findings][:1] == [
        ("reader_broken", "model.p.top")
    ]


def test_a_column_that_jinja_may_bring_back_is_not_known_to_be_gone() -> None:
    compiled = "select id, amount_cents as amount from s.raw_seed", "select id from s.raw_seed"
    base = looking_world(AMOUNT_RAW, compiled[0])
    without = AMOUNT_RAW.replace(", amount_cents as amount", "")
    others = {
        "other Jinja": looking_world(without.replace("join(', ')", "join(',')"), compiled[1]),
        "what it looks at": looking_world(without, compiled[1], seed="amount"),
    }
    for head in others.values():
        report = gate(base, head)
        assert "reader_broken" not in [f.rule for f in report.findings]
        assert report.decision == "CAUTION"
