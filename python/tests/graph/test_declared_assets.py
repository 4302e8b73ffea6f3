"""Declared assets over a dbt project: what their names mean, their columns, and what a change does to them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hand_made import LISTED, RAW, check, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project
from dbt_ripple.artifacts.assets_file import DeclaredAsset, parse_assets
from dbt_ripple.changes import compare
from dbt_ripple.changes.asset_changes import declared_otherwise
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import ImpactReport, impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.assets.asset_lineage import AssetLineage
from dbt_ripple.graph.assets.declared_graph import DeclaredGraph
from dbt_ripple.graph.joined_projects import JoinedProjects, Member
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.pii import pii_columns
from dbt_ripple.selection.select import select

STG = "model.p.stg"
FCT = "model.p.fct"


def shop(fct: str = "select id, amount, status from `s`.`stg`", adapter: str = "spark") -> Project:
    """orders -> stg -> fct, with a test on each."""
    quote = '"' if adapter != "spark" else "`"
    fct = fct.replace("`", quote)
    return project(
        orders(),
        node(
            STG,
            f"select id, amount * 2 as amount, status from {quote}s{quote}.{quote}orders{quote}",
            RAW,
        ),
        node(FCT, fct, STG),
        check(
            "orders_amount",
            f"select amount from {quote}s{quote}.{quote}orders{quote} where amount < 0",
            RAW,
        ),
        check(
            "orders_id",
            f"select id from {quote}s{quote}.{quote}orders{quote} where id is null",
            RAW,
        ),
        check(
            "fct_amount",
            f"select amount from {quote}s{quote}.{quote}fct{quote} where amount < 0",
            FCT,
        ),
        check(
            "fct_status",
            f"select status from {quote}s{quote}.{quote}fct{quote} where status = ''",
            FCT,
        ),
        catalog=LISTED,
        adapter=adapter,
    )


def assets(text: str) -> list[DeclaredAsset]:
    return parse_assets("assets:\n" + text, "f.yml")


def linked(text: str, of: Project | None = None) -> AssetLineage:
    of = of or shop()
    return AssetLineage(DeclaredGraph(of, assets(text)), analyse(of))


def edges(lineage: AssetLineage) -> set[str]:
    """The edges of assets in short: ``KIND parent.column child.column``."""
    return {
        f"{'masked ' if e.masking else ''}{e.subtype}"
        f" {e.parent_id.rpartition('.')[2]}.{e.parent_column} {e.child_id.rpartition('.')[2]}.{e.child_column}"
        for e in lineage.edges
    }


def what_if(text: str, target: str, *changes: Change, of: Project | None = None) -> ImpactReport:
    of = of or shop()
    graph = DeclaredGraph(of, assets(text))
    return impact(of, graph.whole.nodes[target], changes, assets=graph)


def severities(report: ImpactReport) -> dict[str, str]:
    return {a.name: a.severity for a in report.affected_assets}


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *(
            "fct",
            "p.fct",
            "model.p.fct",
            "model:fct",
            "dbt_model:fct",
            "table:fct",
            "s.fct",
            "S.FCT",
        ),
        *("ref('fct')", 'ref("p", "fct")', "`s`.`fct`"),
    ],
)
def test_a_relation_of_dbt_by_its_names(name: str) -> None:
    graph = DeclaredGraph(shop(), assets(f"  - id: dashboard:d\n    reads: [{name!r}]\n"))
    assert [link.unique_id for link in graph.assets["asset.dashboard.d"].reads] == [FCT]


@pytest.mark.parametrize("name", ["orders", "source('raw', 'orders')", "s.orders", "table:orders"])
def test_a_source_of_dbt_by_its_names(name: str) -> None:
    of = shop()
    of.nodes[RAW] = replace(of.nodes[RAW], source_name="raw")
    graph = DeclaredGraph(of, assets(f'  - id: dag:d\n    writes: ["{name}"]\n'))
    assert [link.unique_id for link in graph.assets["asset.dag.d"].writes] == [RAW]


def test_names_fold_as_the_warehouse_does() -> None:
    of = shop(adapter="snowflake")
    of.nodes[FCT] = replace(of.nodes[FCT], relation_name="DB.S.FCT")
    graph = DeclaredGraph(of, assets("  - id: dashboard:d\n    reads: [db.s.fct]\n"))
    assert graph.assets["asset.dashboard.d"].reads[0].unique_id == FCT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "  - id: dag:d\n    reads: [fcts]\n",
            "f.yml:3: nothing is called fcts; did you mean fct?",
        ),
        (
            "  - id: api:shop\n  - id: dag:d\n    reads: [api:shp]\n",
            "f.yml:4: nothing is called api:shp; did you mean api:shop?",
        ),
        (
            "  - id: dag:d\n    writes: [fct]\n",
            "f.yml:3: fct is model.p.fct, which dbt builds; an asset writes a source of dbt or another",
        ),
        (
            "  - id: dag:d\n    sql: insert into s.fct select 1\n",
            "f.yml:2: s.fct is model.p.fct, which dbt builds",
        ),
        (
            "  - id: table:fct\n",
            "f.yml:2: table:fct is model.p.fct of the dbt project; read or write it as fct",
        ),
        (
            "  - id: api:shop\n    retired: 2026-01-01\n  - id: dag:d\n    reads: [api:shop]\n",
            "f.yml:5: api:shop is retired since 2026-01-01; take `retired` out of its entry",
        ),
        (
            "  - id: api:x\n  - id: topic:x\n  - id: dag:d\n    reads: [x]\n",
            "f.yml:5: x is several assets: api:x, topic:x; name one by its id",
        ),
        (
            "  - id: dag:d\n    sql: select 1\n    dialect: sparc\n",
            "f.yml:2: 'sparc' is no dialect of SQL; did you mean spark",
        ),
    ],
)
def test_a_name_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(RippleError) as refused:
        DeclaredGraph(shop(), assets(text))
    assert str(refused.value).startswith(message)


def test_a_bare_name_in_sql_may_not_mean_two_relations() -> None:
    other = node("model.p.other", "select 1 as id")
    other = replace(other, relation_name="`t`.`orders`", alias="orders", schema="t")
    of = project(orders(), other, catalog=LISTED)
    with pytest.raises(
        RippleError, match=r"orders in its SQL may be model\.p\.other or source\.p\.raw"
    ):
        DeclaredGraph(of, assets("  - id: spark:j\n    sql: select id from orders\n"))


# --- columns ---------------------------------------------------------------------------------------

LOAD = """
  - id: api:shop
    columns: [key, cents]
  - id: airflow:load
    reads:
      - node: api:shop
        columns: [key, cents]
    writes:
      - node: orders
        columns:
          - {from: key, to: id}
          - {from: cents, to: amount, transformation: cents / 100}
"""


def test_a_source_that_an_asset_writes_has_it_above() -> None:
    lineage = linked(LOAD)
    assert edges(lineage) == {
        "IDENTITY shop.key load.key",
        "IDENTITY shop.cents load.cents",
        f"IDENTITY shop.{ROWS} load.{ROWS}",
        "IDENTITY load.key orders.id",
        "TRANSFORMATION load.cents orders.amount",
        f"IDENTITY load.{ROWS} orders.{ROWS}",
    }
    whole = lineage.graph.whole
    assert whole.parents[RAW] == ["asset.airflow.load"]
    assert whole.parents["asset.airflow.load"] == ["asset.api.shop"]
    # dbt's own analysis is as it was.
    assert lineage.analysis.nodes[RAW] is lineage.dbt.nodes[RAW]


@pytest.mark.parametrize(
    ("how", "edge"),
    [
        ("identity", "IDENTITY fct.status d.status"),
        ("Aggregation", "AGGREGATION fct.status d.status"),
        ("upper(status)", "TRANSFORMATION fct.status d.status"),
        ("window", "WINDOW fct.status d.status"),
        ("conditional", "CONDITIONAL fct.status d.status"),
        ("filter", f"FILTER fct.status d.{ROWS}"),
        ("group by", f"GROUP_BY fct.status d.{ROWS}"),
        ("join", f"JOIN fct.status d.{ROWS}"),
        ("sort", f"SORT fct.status d.{ROWS}"),
    ],
)
def test_the_kind_is_what_the_transformation_says(how: str, edge: str) -> None:
    column = f"{{from: status, transformation: {how!r}}}"
    linked_edges = edges(
        linked(f"  - id: dashboard:d\n    reads: [{{node: fct, columns: [{column}]}}]\n")
    )
    assert linked_edges == {edge, f"IDENTITY fct.{ROWS} d.{ROWS}"}


def test_a_masked_value_is_said_to_be() -> None:
    column = "{from: status, to: hash, transformation: sha2(status), masking: true}"
    linked_edges = edges(
        linked(f"  - id: dashboard:d\n    reads: [{{node: fct, columns: [{column}]}}]\n")
    )
    assert "masked TRANSFORMATION fct.status d.hash" in linked_edges


def test_without_a_word_on_columns_all_of_them_count_and_it_is_reported() -> None:
    lineage = linked("  - id: notebook:n\n    columns: [a]\n    reads: [fct]\n")
    seen = lineage.analysis.nodes["asset.notebook.n"]
    assert (seen.status, str(seen.reason)) == (
        "opaque",
        "reads fct and does not say which columns: it may read all columns and rows",
    )
    everything = {"id", "amount", "status", ROWS}
    assert edges(lineage) >= {
        f"TRANSFORMATION fct.{c} n.{own}" for c in everything for own in ("a", ROWS)
    }


def test_what_is_written_without_a_word_on_columns() -> None:
    lineage = linked("  - id: dag:load\n    writes: [orders]\n")
    seen = lineage.analysis.nodes["asset.dag.load"]
    assert str(seen.reason) == (
        "writes orders and does not say which columns: it may write all columns and rows"
    )
    assert edges(lineage) >= {
        f"TRANSFORMATION load.{ROWS} orders.{c}" for c in ("id", "amount", "status")
    }


# --- SQL -------------------------------------------------------------------------------------------


def test_sql_is_followed_like_a_model() -> None:
    lineage = linked(
        """
  - id: table:lake.totals
  - id: spark:totals
    dialect: spark
    sql: |
      create or replace temporary view paid as select id, amount from fct where status = 'paid';
      delete from lake.totals where true;
      insert into lake.totals (key, total) select id, sum(amount) from paid group by id
"""
    )
    assert lineage.analysis.nodes["asset.spark.totals"].status == "analysed"
    assert edges(lineage) == {
        "IDENTITY fct.id totals.key",
        "AGGREGATION fct.amount totals.total",
        f"AGGREGATION fct.{ROWS} totals.{ROWS}",
        f"FILTER fct.status totals.{ROWS}",
        f"GROUP_BY fct.id totals.{ROWS}",
        "IDENTITY totals.key totals.key",
        "IDENTITY totals.total totals.total",
        f"IDENTITY totals.{ROWS} totals.{ROWS}",
    }


def test_sql_of_another_dialect_than_the_projects() -> None:
    sql = 'select \\"ID\\", Amount from S.FCT'
    lineage = linked(f'  - id: spark:j\n    dialect: snowflake\n    sql: "{sql}"\n')
    assert edges(lineage) == {
        "IDENTITY fct.id j.ID",
        "IDENTITY fct.amount j.Amount",
        f"IDENTITY fct.{ROWS} j.{ROWS}",
    }
    assert lineage.analysis.nodes["asset.spark.j"].status == "analysed"


@pytest.mark.parametrize(
    ("sql", "dialect", "why"),
    [
        (
            "merge into t using s.fct f on t.id = f.id when matched then update set a = f.id",
            "spark",
            "MERGE changes existing rows",
        ),
        ("select id from s.fct where (", "spark", "cannot parse"),
        ("select id from s.fct", "drill", "the rules of dialect drill are not known here"),
    ],
)
def test_sql_that_is_not_followed_counts_as_a_whole(sql: str, dialect: str, why: str) -> None:
    lineage = linked(f"  - id: spark:j\n    dialect: {dialect}\n    sql: {sql!r}\n")
    seen = lineage.analysis.nodes["asset.spark.j"]
    assert seen.status == "opaque"
    assert why in str(seen.reason)


def test_statements_around_a_query() -> None:
    sql = """
      -- set things up
      set spark.sql.ansi.enabled = true;
      create table if not exists lake.t (id int);
      truncate table lake.t;
      insert into lake.t select id from fct;
      analyze table lake.t compute statistics;
    """
    seen = linked(f"  - id: spark:j\n    sql: |{sql}")
    assert seen.analysis.nodes["asset.spark.j"].status == "analysed"
    for more in (
        "call load_more()",
        "alter table lake.t rename to lake.u",
        "set x = (select max(id) from fct)",
    ):
        other = linked(f"  - id: spark:j\n    sql: |{sql}      {more};\n")
        reason = other.analysis.nodes["asset.spark.j"].reason
        word = more.split()[0].upper()
        assert f"statement {word} is not a query" in str(reason)


def test_tables_that_nobody_declares_are_nodes() -> None:
    lineage = linked(
        "  - id: spark:j\n    sql: insert into lake.out select id, x from fct join crm.c using (id)\n"
    )
    whole = lineage.graph.whole
    assert whole.nodes["dataset.lake.out"].resource_type == "dataset"
    assert set(whole.parents["asset.spark.j"]) == {FCT, "dataset.crm.c"}
    assert whole.parents["dataset.lake.out"] == ["asset.spark.j"]


# --- what a change does ----------------------------------------------------------------------------

READERS = """
  - id: dashboard:totals
    reads: [{node: fct, columns: [amount]}]
  - id: dashboard:states
    reads: [{node: fct, columns: [status]}]
  - id: notebook:any
    reads: [fct]
  - id: spark:job
    sql: insert into lake.t select id, sum(amount) as total from fct group by id
  - id: table:lake.t
    columns: [id, total]
  - id: model:churn
    reads: [{node: "table:lake.t", columns: [total]}]
"""


def test_who_reads_a_column_only_inside_a_job_is_named() -> None:
    report = what_if(READERS, FCT, Change("drop", "amount"))
    assert report.decision == "BLOCKED"
    assert severities(report) == {
        "totals": "breaking",
        "any": "warning",
        "job": "breaking",
        "lake.t": "breaking",
        "churn": "breaking",
    }
    assert {a.name for a in report.affected_assets if a.may_read} == {"any"}


def test_a_column_that_is_there_no_more_breaks_the_asset() -> None:
    report = what_if(READERS, FCT, Change("rename", "amount", "total"))
    assert severities(report)["totals"] == "breaking"
    assert severities(report)["job"] == "breaking"
    assert "states" not in severities(report)


def test_a_change_in_an_asset_goes_on_into_dbt() -> None:
    report = what_if(LOAD, "asset.api.shop", Change("drop", "cents"))
    assert severities(report) == {
        "load": "breaking",
        "orders": "breaking",
        "stg": "breaking",
        "fct": "breaking",
    }
    assert "test.p.fct_amount" in report.tests
    retyped = what_if(LOAD, "asset.api.shop", Change("retype", "key", "string"))
    assert severities(retyped) == dict.fromkeys(("load", "orders", "stg", "fct"), "warning")
    assert retyped.tests == ["test.p.orders_id"]


BACK = """
  - id: stream:back
    reads: [{node: fct, columns: [amount]}]
    writes: [{node: orders, columns: [amount]}]
"""


def test_what_dbt_builds_may_come_back_into_a_source() -> None:
    of = shop()
    graph = DeclaredGraph(of, assets(BACK))
    assert graph.closing == {("asset.stream.back", RAW)}
    report = what_if(BACK, STG, Change("drop", "amount"))
    severity_of = severities(report)
    assert (severity_of["fct"], severity_of["back"], severity_of["orders"]) == ("breaking",) * 3
    lineage = AssetLineage(graph, analyse(of))
    rows = build_rows(graph.acyclic, lineage.analysis)
    closure = {(r.ancestor_id, r.descendant_id) for r in rows.rows["node_closure"]}  # type: ignore[attr-defined]
    assert not [pair for pair in closure if pair[0] != pair[1] and pair[::-1] in closure]


def test_assets_that_read_each_other_in_turn() -> None:
    lineage = linked(
        """
  - id: topic:a
    reads: [{node: topic:b, columns: [x]}]
  - id: topic:b
    reads: [{node: topic:a, columns: [x]}]
"""
    )
    assert edges(lineage) >= {"IDENTITY a.x b.x", "IDENTITY b.x a.x"}


RING = """
  - id: topic:a
    columns: [x]
    reads: [{node: "topic:c", columns: [x]}, {node: fct, columns: {amount: x}}]
  - id: topic:b
    reads: [{node: "topic:a", columns: [x]}]
  - id: topic:c
    reads: [{node: "topic:b", columns: [x]}]
"""


def test_a_change_goes_round_a_ring_of_assets() -> None:
    severity_of = severities(what_if(RING, FCT, Change("retype", "amount", "string")))
    assert severity_of == dict.fromkeys("abc", "warning")
    assert severities(what_if(RING, "asset.topic.b", Change("drop", "x"))).keys() >= {"c", "a"}


def test_a_long_ring_is_no_deep_call() -> None:
    text = "".join(
        f"  - id: topic:t{i}\n    reads: [{{node: 'topic:t{(i - 1) % 1500}', columns: [x]}}]\n"
        for i in range(1500)
    )
    assert len(edges(linked(text))) == 3000


# --- selection -------------------------------------------------------------------------------------


def moved(then: str, now: str, of: Project | None = None) -> dict[str, set[str]]:
    of = of or shop()
    changed_columns = declared_otherwise(of, of, assets(then), assets(now), lambda: analyse(of))
    return {u: set(names) for u, names in changed_columns.items()}


def picked(then: str, now: str) -> Sequence[str]:
    base = shop()
    head = base.having(
        written_otherwise=declared_otherwise(
            base, base, assets(then), assets(now), lambda: analyse(base)
        )
    )
    return [test.name for test in select(base, head, facts=True, assume_passed=True).tests]


def test_a_source_changes_only_where_it_is_declared_otherwise() -> None:
    assert moved(LOAD, LOAD) == {}
    for harmless in (
        "\n    schedule: '@daily'",
        "\n    owner: me",
        "\n    tags: [x]",
        "\n    description: d",
    ):
        assert (
            moved(LOAD, LOAD.replace("- id: airflow:load", f"- id: airflow:load{harmless}")) == {}
        )
    assert moved(LOAD, LOAD.replace("cents / 100", "cents / 10")) == {RAW: {"amount"}}
    other = LOAD.replace("- id: airflow:load", "- id: airflow:load\n    source_ref: dags/v2.py")
    assert moved(LOAD, other) == {RAW: {"id", "amount", ROWS}}
    assert moved("", LOAD) == {RAW: {"id", "amount", ROWS}}
    assert moved(LOAD, "") == {RAW: {"id", "amount", ROWS}}


def test_what_stands_above_the_writer_counts_too() -> None:
    assert moved(
        LOAD,
        LOAD.replace(
            "columns: [key, cents]\n  - id", "columns: [key, {name: cents, type: int}]\n  - id"
        ),
    ) == {RAW: {"amount"}}


def test_tests_of_what_is_written_otherwise_are_selected() -> None:
    assert picked(LOAD, LOAD) == []
    assert picked(LOAD, LOAD.replace("cents / 100", "cents / 10")) == [
        "orders_amount",
        "fct_amount",
    ]
    assert picked("", LOAD) == ["orders_amount", "orders_id", "fct_amount", "fct_status"]


def test_an_edited_model_changes_no_source_by_way_of_an_asset() -> None:
    base = shop()
    head = shop("select id, amount + 1 as amount, status from `s`.`stg`")
    text = BACK
    assert declared_otherwise(base, head, assets(text), assets(text), lambda: analyse(head)) == {}
    plain = [test.name for test in select(base, head, facts=False).tests]
    assert plain == ["fct_amount"]


def test_assets_leave_the_fingerprints_of_dbt_as_they_are() -> None:
    of = shop()
    with_them = AssetLineage(DeclaredGraph(of, assets(LOAD + READERS + BACK)), analyse(of)).analysis
    alone = analyse(shop())
    for unique_id, seen in alone.nodes.items():
        assert with_them.nodes[unique_id] == seen
    assert with_them.tests == alone.tests
    assert compare(of, of).changed == {}


def test_a_table_that_nobody_declares_hands_on_what_an_asset_writes() -> None:
    of = project(
        node("model.p.m", "select x, y from lake.t"),
        check("x", "select x from `s`.`m` where x is null", "model.p.m"),
        check("y", "select y from `s`.`m` where y is null", "model.p.m"),
        orders(),
        catalog=LISTED,
    )
    text = "  - id: spark:j\n    sql: insert into lake.t select id as x, {} as y from s.orders\n"
    now = assets(text.format("amount + 1"))
    columns_moved = declared_otherwise(
        of, of, assets(text.format("amount")), now, lambda: analyse(of)
    )
    assert {u: set(names) for u, names in columns_moved.items()} == {"dataset.lake.t": {"y"}}
    head = of.having(written_otherwise=columns_moved)
    # Nothing lists its columns: any of them may be the one.
    assert [test.name for test in select(of, head, facts=False).tests] == ["x", "y"]
    report = what_if(text.format("amount"), RAW, Change("retype", "amount", "string"), of=of)
    assert severities(report) == {"j": "warning", "lake.t": "warning", "m": "warning"}


def test_sql_that_reads_what_is_removed_is_broken() -> None:
    base = shop()
    head = project(orders(), node(STG, base.nodes[STG].compiled_code, RAW), catalog=LISTED)
    text = assets("  - id: spark:j\n    sql: select count(*) as n from s.fct\n")
    graph = DeclaredGraph(head, text, formerly=base)
    seen = AssetLineage(graph, analyse(head)).analysis.nodes["asset.spark.j"]
    assert (seen.status, str(seen.reason)) == ("broken", "cannot find s.fct")


def test_personal_data_goes_through_assets() -> None:
    lineage = linked(
        """
  - id: api:shop
    columns: [key, {name: mail, pii: email}]
  - id: dag:load
    reads: [{node: "api:shop", columns: [key, mail]}]
    writes: [{node: orders, columns: {mail: status, key: id}}]
  - id: notebook:all
    reads: [fct]
  - id: dashboard:hashed
    reads: [{node: fct, columns: [{from: status, transformation: sha2(status), masking: true}]}]
"""
    )
    personal = {
        f"{p.unique_id.rpartition('.')[2]}.{p.column}"
        for p in pii_columns(lineage.graph.whole, lineage.analysis)
    }
    assert personal == {
        "shop.mail",
        "load.mail",
        "orders.status",
        "stg.status",
        "fct.status",
        "all.status",
    }


def test_assets_and_another_dbt_project_at_once() -> None:
    first = shop()
    there = node("source.q.s.fct", columns=["id", "amount"])
    there = replace(there, schema="s", identifier="fct", relation_name="`s`.`fct`")
    other = project(there, node("model.q.far", "select amount from `s`.`fct`", "source.q.s.fct"))
    other.metadata.project_name = "q"
    joined = JoinedProjects([Member(p, lambda p=p: analyse(p)) for p in (first, other)])  # type: ignore[misc]
    graph = DeclaredGraph(first, assets(READERS))
    report = impact(
        first, first.nodes[FCT], [Change("drop", "amount")], assets=graph, joined=joined
    )
    severity_of = {a.full_name: a.severity for a in report.affected_assets}
    assert (severity_of["totals"], severity_of["q.far"]) == ("breaking", "breaking")


def test_an_asset_changes_no_fingerprint_of_a_test() -> None:
    """A hook that asks for all nodes is part of each test's fingerprint: assets are no nodes of dbt."""
    hook = node(
        "operation.p.p-on-run-end-0",
        raw="{% set all = graph %}{% for node in all.nodes.values() %}{{ f(node.description) }}{% endfor %}",
    )
    base = shop()
    of = project(*base.nodes.values(), hook, catalog=LISTED)
    rows = [
        build_rows(of, analyse(of)).rows["nodes"],
        build_rows((lineage := linked(LOAD, of)).graph.acyclic, lineage.analysis).rows["nodes"],
    ]
    alone, with_assets = (
        {n.unique_id: n.test_fingerprint for n in side if n.resource_type == "test"}  # type: ignore[attr-defined]
        for side in rows
    )
    assert len(rows[0]) < len(rows[1])
    assert alone == with_assets
    described = replace(of.nodes[STG], description="other words")
    nodes = [described if n.unique_id == STG else n for n in of.nodes.values()]
    other = project(*nodes, catalog=LISTED)
    near_miss = build_rows(other, analyse(other)).rows["nodes"]
    assert {n.test_fingerprint for n in near_miss if n.resource_type == "test"}.isdisjoint(  # type: ignore[attr-defined]
        alone.values()
    )
