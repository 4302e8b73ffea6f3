"""Projects built by hand: what each kind of node comes out as."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dbt_ripple.artifacts import CatalogColumn, Column, Node, Project
from dbt_ripple.artifacts.project import DependsOn, Metadata
from dbt_ripple.graph import query_cache
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_tables import ROWS


def node(unique_id: str, sql: str | None = None, *parents: str, **more: Any) -> Node:
    kind, name = unique_id.split(".")[0], unique_id.split(".")[-1]
    config = {"materialized": "table" if kind == "model" else kind, **more.pop("config", {})}
    return Node(
        unique_id=unique_id,
        name=name,
        resource_type=kind,
        package_name="p",
        schema="s",
        alias=None if kind == "source" else name,
        identifier=name if kind == "source" else None,
        relation_name=None if config["materialized"] == "ephemeral" else f"`s`.`{name}`",
        compiled_code=sql,
        raw_code=sql or "",
        config=config,
        columns={c: Column(name=c) for c in more.pop("columns", [])},
        depends_on=DependsOn(nodes=list(parents)),
        **more,
    )


def project(*nodes: Node, catalog: dict[str, list[str]] | None = None) -> Project:
    by_id = {n.unique_id: n for n in nodes}
    parents = {u: [p for p in n.depends_on.nodes if p in by_id] for u, n in by_id.items()}
    children: dict[str, list[str]] = {u: [] for u in by_id}
    for child, of in parents.items():
        for parent in of:
            children[parent].append(child)
    return Project(
        target_path="target",
        metadata=Metadata(adapter_type="spark", project_name="p"),
        nodes=by_id,
        parents=parents,
        children=children,
        catalog={
            u: [CatalogColumn(name=c, index=i) for i, c in enumerate(columns)]
            for u, columns in (catalog or {}).items()
        },
    )


ORDERS = node("source.p.raw.orders", columns=["id", "amount"])
LISTED = {"source.p.raw.orders": ["id", "amount", "status"]}


def edges(analysis: Any, child: str) -> set[tuple[str, str, str, str]]:
    return {
        (e.parent_id, e.parent_column, e.child_column, e.subtype)
        for e in analysis.edges
        if e.child_id == child and ROWS not in (e.parent_column, e.child_column)
    }


def test_a_star_over_a_listed_source_has_its_columns() -> None:
    analysis = analyse(
        project(
            ORDERS, node("model.p.a", "select * from s.orders", ORDERS.unique_id), catalog=LISTED
        )
    )
    assert analysis.nodes["model.p.a"].columns == ["id", "amount", "status"]
    assert analysis.nodes["model.p.a"].status == "analysed"


def test_a_star_over_an_unlisted_source_says_so_and_loses_nothing() -> None:
    a = node("model.p.a", "select * from s.orders", ORDERS.unique_id)
    b = node("model.p.b", "select status, upper(note) as note from s.a", "model.p.a")
    analysis = analyse(project(ORDERS, a, b))
    assert analysis.nodes["model.p.a"].status == "opaque"
    assert "dbt docs generate" in str(analysis.nodes["model.p.a"].reason)
    assert edges(analysis, "model.p.b") == {
        ("model.p.a", "status", "status", "IDENTITY"),
        ("model.p.a", "note", "note", "TRANSFORMATION"),
    }
    # What only its reader shows is a column of the star, and of the source behind it.
    assert {("source.p.raw.orders", "note", "note", "IDENTITY")} <= edges(analysis, "model.p.a")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"language": "python"}, "Python"),
        ({"sql": None}, "dbt compile"),
        ({"sql": "select ((("}, "cannot parse"),
    ],
)
def test_what_is_not_analysed_depends_on_everything(more: dict[str, Any], reason: str) -> None:
    sql = more.pop("sql", "def model(dbt, session): ...")
    a = node("model.p.a", sql, ORDERS.unique_id, columns=["x"], **more)
    analysis = analyse(project(ORDERS, a, catalog=LISTED))
    assert analysis.nodes["model.p.a"].status == "opaque"
    assert reason in str(analysis.nodes["model.p.a"].reason)
    assert {(p, c) for p, c, _, _ in edges(analysis, "model.p.a")} == {
        ("source.p.raw.orders", c) for c in LISTED["source.p.raw.orders"]
    }


@pytest.mark.parametrize(
    "sql", ["select ((( from s.orders", "select columns('^i'), * from s.orders"]
)
def test_what_is_not_analysed_may_read_columns_by_their_position(sql: str) -> None:
    a = node("model.p.a", sql, ORDERS.unique_id)
    turned = {u: names[::-1] for u, names in LISTED.items()}
    one, same, other = (
        analyse(project(ORDERS, a, catalog=listed)).nodes["model.p.a"]
        for listed in (LISTED, LISTED, turned)
    )
    assert one.status == "opaque"
    assert one.rows_fingerprint == same.rows_fingerprint != other.rows_fingerprint


def test_a_column_that_is_not_there_breaks_its_reader_by_name() -> None:
    a = node("model.p.a", "select id from s.orders", ORDERS.unique_id)
    b = node("model.p.b", "select id, amount from s.a", "model.p.a")
    analysis = analyse(project(ORDERS, a, b, catalog=LISTED))
    assert analysis.nodes["model.p.b"].status == "broken"
    assert "amount" in str(analysis.nodes["model.p.b"].reason)
    assert analysis.nodes["model.p.a"].status == "analysed"


def test_a_source_that_a_node_builds_is_that_node() -> None:
    seed = node("seed.p.orders", checksum={"name": "sha256", "checksum": "1"})
    a = node("model.p.a", "select id from s.orders", ORDERS.unique_id)
    analysis = analyse(project(seed, ORDERS, a, catalog={"seed.p.orders": ["id"]}))
    assert edges(analysis, "model.p.a") == {("seed.p.orders", "id", "id", "IDENTITY")}


def test_an_ephemeral_model_is_a_node_of_its_own() -> None:
    e = node(
        "model.p.e",
        "select id, amount * 2 as twice from s.orders",
        ORDERS.unique_id,
        config={"materialized": "ephemeral"},
    )
    sql = (
        "with __dbt__cte__e as (select id, amount * 2 as twice from s.orders) "
        "select twice + 1 as y from __dbt__cte__e"
    )
    analysis = analyse(project(ORDERS, e, node("model.p.a", sql, "model.p.e"), catalog=LISTED))
    assert edges(analysis, "model.p.a") == {("model.p.e", "twice", "y", "TRANSFORMATION")}


def test_a_node_that_reads_itself_is_not_its_own_parent() -> None:
    sql = "select id from s.orders where id > (select max(id) from s.a)"
    a = node("model.p.a", sql, ORDERS.unique_id, config={"materialized": "incremental"})
    analysis = analyse(project(ORDERS, a, catalog=LISTED))
    assert analysis.nodes["model.p.a"].status == "analysed"
    assert {e.parent_id for e in analysis.edges} == {"source.p.raw.orders"}


def test_a_relation_dbt_does_not_know_is_a_dataset() -> None:
    analysis = analyse(project(node("model.p.a", "select x from elsewhere.t")))
    assert edges(analysis, "model.p.a") == {("dataset.elsewhere.t", "x", "x", "IDENTITY")}
    assert analysis.nodes["dataset.elsewhere.t"].columns == ["x"]


def test_a_table_of_another_schema_changes_no_fingerprint() -> None:
    def at(schema: str) -> Any:
        orders = node("source.p.raw.orders")
        orders = replace(orders, schema=schema, relation_name=f"`{schema}`.`orders`")
        a = node("model.p.a", f"select sum(amount) as s from {schema}.orders", orders.unique_id)
        return analyse(project(orders, a, catalog=LISTED)).nodes["model.p.a"]

    assert at("dev").fingerprints == at("prod").fingerprints
    assert at("dev").rows_fingerprint == at("prod").rows_fingerprint


def test_settings_of_an_incremental_model_are_part_of_its_rows() -> None:
    def rows(**config: Any) -> str:
        config = {"materialized": "incremental", "incremental_strategy": "merge", **config}
        a = node("model.p.a", "select id, amount from s.orders", ORDERS.unique_id, config=config)
        return analyse(project(ORDERS, a, catalog=LISTED)).nodes["model.p.a"].rows_fingerprint

    assert rows(unique_key="id") == rows(unique_key="id", tags=["daily"])
    assert len({rows(), rows(unique_key="id"), rows(unique_key="amount")}) == 3


def test_a_materialization_nobody_knows_is_opaque() -> None:
    a = node("model.p.a", "select id from s.orders", config={"materialized": "vault"})
    analysis = analyse(project(ORDERS, a, catalog=LISTED))
    assert analysis.nodes["model.p.a"].status == "opaque"
    assert "vault" in str(analysis.nodes["model.p.a"].reason)


def test_a_snapshot_has_the_columns_dbt_adds() -> None:
    config = {"strategy": "timestamp", "updated_at": "amount", "unique_key": "id"}
    snap = node("snapshot.p.h", "select id, amount from s.orders", ORDERS.unique_id, config=config)
    analysis = analyse(project(ORDERS, snap, catalog=LISTED))
    assert analysis.nodes["snapshot.p.h"].columns[2:] == [
        "dbt_scd_id",
        "dbt_updated_at",
        "dbt_valid_from",
        "dbt_valid_to",
    ]
    assert ("source.p.raw.orders", "amount", "dbt_valid_from", "IDENTITY") in edges(
        analysis, "snapshot.p.h"
    )


def test_a_cycle_ends() -> None:
    a = node("model.p.a", "select id from s.b", "model.p.b")
    b = node("model.p.b", "select id from s.a", "model.p.a")
    assert set(analyse(project(a, b)).nodes) == {"model.p.a", "model.p.b"}


def test_a_defect_of_ours_is_one_nodes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    link = query_cache.link

    def failing(lowered: Any, table: Any, dialect: str) -> Any:
        if "s.orders" in lowered.tables:
            raise ZeroDivisionError("oops")
        return link(lowered, table, dialect)

    monkeypatch.setattr(query_cache, "link", failing)
    a = node("model.p.a", "select id from s.orders", ORDERS.unique_id, columns=["id"])
    b = node("model.p.b", "select id from s.a", "model.p.a")
    analysis = analyse(project(ORDERS, a, b, catalog=LISTED))
    assert analysis.nodes["model.p.a"].status == "opaque"
    assert "ZeroDivisionError: oops" in str(analysis.nodes["model.p.a"].reason)
    assert analysis.nodes["model.p.b"].status == "analysed"


@pytest.mark.parametrize(
    ("hook", "moves"),
    [
        ("delete from {{ this }} where amount > 3", True),
        ("delete from {{ this }} where ID = 4", False),
        ("create table t as select * from {{ this }}", False),
        ("create or replace table {{ this }} as select * from {{ this }}", True),
    ],
)
def test_a_hook_goes_by_the_columns_it_names(hook: str, moves: bool) -> None:
    def rows(sql: str) -> str:
        config = {"materialized": "table", "post-hook": [{"sql": hook}]}
        a = node("model.p.a", sql, ORDERS.unique_id, config=config)
        return analyse(project(ORDERS, a, catalog=LISTED)).nodes["model.p.a"].rows_fingerprint

    before = rows("select id, amount from s.orders")
    assert (rows("select id, amount + 1 as amount from s.orders") != before) is moves


def test_a_branch_that_was_not_compiled_goes_by_the_columns_it_names() -> None:
    """On the next run `status` decides which rows come in, whatever was compiled."""
    sql = "select id from s.a"
    raw = "select id from {{ ref('a') }} {% if is_incremental() %} where status > 1 {% endif %}"

    def rows(above: str) -> str:
        a = node("model.p.a", above, ORDERS.unique_id)
        b = node("model.p.b", sql, a.unique_id, config={"materialized": "incremental"})
        b = replace(b, raw_code=raw)
        return analyse(project(ORDERS, a, b, catalog=LISTED)).nodes["model.p.b"].rows_fingerprint

    before = rows("select id, amount, status from s.orders")
    assert rows("select id, amount, status + 1 as status from s.orders") != before
    assert rows("select id, amount + 1 as amount, status from s.orders") == before
