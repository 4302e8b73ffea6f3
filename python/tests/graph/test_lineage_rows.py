"""Rows of a load: keys, orphans, cycles, the order of columns, the closure against brute force."""

from __future__ import annotations

import itertools
import subprocess
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from dbt_ripple.artifacts import CatalogColumn, Column, Metadata, Node, Project, RunResult, Timing
from dbt_ripple.graph.lineage import Analysis, ColumnEdge, NodeAnalysis
from dbt_ripple.graph.lineage_rows import build_rows, git_commit, snapshot_id
from dbt_ripple.graph.lineage_tables import ROWS, TABLES

LOADED_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def project_of(nodes, edges, **fields):
    parents = {unique_id: [] for unique_id in nodes}
    children = {unique_id: [] for unique_id in nodes}
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    fields = {"metadata": Metadata(project_name="shop"), "digest": "d1", **fields}
    return Project(target_path="target", nodes=nodes, parents=parents, children=children, **fields)


def node(unique_id, **fields):
    kind, _, rest = unique_id.partition(".")
    return Node(unique_id=unique_id, name=rest.rpartition(".")[2], resource_type=kind, **fields)


@pytest.fixture
def shop():
    nodes = {
        unique_id: node(unique_id)
        for unique_id in (
            "source.shop.raw.orders",
            "model.shop.orders",
            "test.shop.not_null_orders_id",
            "exposure.shop.board",
            "operation.shop.hook",
        )
    }
    model = nodes["model.shop.orders"]
    nodes[model.unique_id] = replace(
        model,
        tags=["core", "daily"],
        config={"materialized": "table"},
        checksum={"name": "sha256", "checksum": "abc"},
        columns={
            "note": Column(name="note", data_type="string", description="As typed."),
            "id": Column(name="id", meta={"pii": "customer_id"}, description="The key."),
        },
    )
    project = project_of(
        nodes,
        [
            ("source.shop.raw.orders", "model.shop.orders"),
            ("model.shop.orders", "test.shop.not_null_orders_id"),
            ("model.shop.orders", "exposure.shop.board"),
            ("model.shop.orders", "operation.shop.hook"),
        ],
        catalog={
            "model.shop.orders": [
                CatalogColumn(name="ID", type="long", index=1),
                CatalogColumn(name="extra", type="struct", index=2, comment="From the warehouse."),
            ]
        },
        run_results=[
            RunResult(
                unique_id="model.shop.orders",
                invocation_id="i1",
                status="success",
                execution_time=1.5,
                timing=[Timing(name="execute", started_at=LOADED_AT, completed_at=LOADED_AT)],
            )
        ],
        run_args={"target": "prod"},
    )
    analysis = Analysis(
        nodes={
            "source.shop.raw.orders": NodeAnalysis(
                "source.shop.raw.orders", "leaf", None, ["id"], ["f0"], [None], "n0"
            ),
            "model.shop.orders": NodeAnalysis(
                "model.shop.orders",
                "analysed",
                None,
                ["id", "total"],
                ["f1", "f2"],
                [None, "sum(x)"],
                "n1",
            ),
            "dataset.lake.fx": NodeAnalysis("dataset.lake.fx", "leaf"),
        },
        edges=[
            ColumnEdge("source.shop.raw.orders", "ID", "model.shop.orders", "id", "DIRECT", "IDENTITY", False),
            ColumnEdge("source.shop.raw.orders", "id", "model.shop.orders", "ID", "DIRECT", "IDENTITY", False),
            ColumnEdge("source.shop.raw.orders", ROWS, "model.shop.orders", ROWS, "INDIRECT", "FILTER", False),
            ColumnEdge("dataset.lake.fx", "rate", "model.shop.orders", "total", "DIRECT", "AGGREGATION", False),
            ColumnEdge("model.shop.orders", "total", "model.shop.orders", "total", "DIRECT", "IDENTITY", False),
        ],
        test_columns=[("test.shop.not_null_orders_id", "model.shop.orders", "Id")],
        seconds={},
    )  # fmt: skip
    return project, analysis


def rows_of(shop, **options):
    return build_rows(*shop, loaded_at=LOADED_AT, **options).rows


def test_every_table_has_rows_of_its_struct_and_one_snapshot_id(shop):
    snapshot = build_rows(*shop, git_sha="a" * 40)
    assert list(snapshot.rows) == list(TABLES)
    for table, rows in snapshot.rows.items():
        assert rows, table
        assert {type(row) for row in rows} == {TABLES[table]}
        assert {row.snapshot_id for row in rows} == {snapshot.snapshot_id}
    (commit,) = snapshot.rows["snapshots"]
    assert (commit.project_name, commit.target_name, commit.git_sha) == ("shop", "prod", "a" * 40)
    assert commit.loaded_at.tzinfo is UTC


def test_nodes_are_all_that_takes_part_and_a_relation_dbt_does_not_know(shop):
    nodes = {row.unique_id: row for row in rows_of(shop)["nodes"]}
    assert "operation.shop.hook" not in nodes
    unknown = nodes["dataset.lake.fx"]
    assert (unknown.resource_type, unknown.asset_type, unknown.name) == ("dataset", "table", "fx")
    model = nodes["model.shop.orders"]
    assert (model.tags, model.checksum, model.materialized) == ("core,daily", "abc", "table")
    assert (model.analysis_status, model.rows_fingerprint, model.pii) == ("analysed", "n1", True)
    assert nodes["exposure.shop.board"].analysis_status == "leaf"


def test_columns_are_the_union_in_the_order_of_the_relation(shop):
    columns = [row for row in rows_of(shop)["columns"] if row.unique_id == "model.shop.orders"]
    assert [(row.position, row.column_name, row.data_type) for row in columns] == [
        (1, "id", "bigint"),
        (2, "total", None),
        (3, "extra", "struct"),
        (4, "note", "string"),
    ]
    assert [row.description for row in columns] == [
        "The key.",
        None,
        "From the warehouse.",
        "As typed.",
    ]
    assert columns[0].pii == "customer_id"
    assert [row.fingerprint for row in columns] == ["f1", "f2", None, None]
    assert columns[1].expression == "sum(x)"


def test_column_edges_are_spelt_as_their_columns_and_never_orphans(shop):
    rows = rows_of(shop)
    columns = {(row.unique_id, row.column_name) for row in rows["columns"]}
    edges = rows["column_edges"]
    assert len(edges) == 4  # the first two are one
    for edge in edges:
        for end in ((edge.parent_id, edge.parent_column), (edge.child_id, edge.child_column)):
            assert end in columns or end[1] == ROWS
    assert ("dataset.lake.fx", "rate") in columns
    assert [(row.unique_id, row.column_name) for row in rows["test_columns"]] == [
        ("model.shop.orders", "id")
    ]


def test_edges_are_dbts_and_those_only_the_sql_tells_of(shop):
    rows = rows_of(shop)
    edges = {(row.parent_id, row.child_id) for row in rows["edges"]}
    assert edges == {
        ("source.shop.raw.orders", "model.shop.orders"),
        ("model.shop.orders", "test.shop.not_null_orders_id"),
        ("model.shop.orders", "exposure.shop.board"),
        ("dataset.lake.fx", "model.shop.orders"),
    }
    ids = {row.unique_id for row in rows["nodes"]}
    assert all(end in ids for edge in edges for end in edge)


def test_an_edge_that_would_close_a_cycle_stays_out_of_the_node_edges(shop):
    project, analysis = shop
    back = ColumnEdge(
        "model.shop.orders", "id", "source.shop.raw.orders", "id", "DIRECT", "IDENTITY", False
    )
    analysis.edges.append(back)
    rows = build_rows(project, analysis).rows
    pairs = {(row.parent_id, row.child_id) for row in rows["edges"]}
    assert ("model.shop.orders", "source.shop.raw.orders") not in pairs
    assert any(row.child_id == "source.shop.raw.orders" for row in rows["column_edges"])


def test_closure_leaves_tests_out_and_holds_every_node_with_itself(shop):
    closure = {
        (row.ancestor_id, row.descendant_id): row.depth for row in rows_of(shop)["node_closure"]
    }
    assert closure["source.shop.raw.orders", "exposure.shop.board"] == 2
    assert closure["dataset.lake.fx", "model.shop.orders"] == 1
    assert closure["model.shop.orders", "model.shop.orders"] == 0
    assert not any("test." in end for pair in closure for end in pair)


def test_run_results_carry_their_times(shop):
    (row,) = rows_of(shop)["run_results"]
    assert (row.started_at, row.execution_time, row.status) == (LOADED_AT, 1.5, "success")


def test_same_artifacts_same_rows_other_artifacts_another_id(shop):
    assert rows_of(shop) == rows_of(shop)
    project, _ = shop
    first = snapshot_id(project)
    project = project.having(digest="d2")
    assert snapshot_id(project) != first


def test_closure_is_cut_at_the_deepest_depth_that_fits():
    nodes = {unique_id: node(unique_id) for unique_id in (f"model.shop.m{i}" for i in range(10))}
    chain = project_of(nodes, list(itertools.pairwise(nodes)))
    nothing = Analysis(nodes={}, edges=[], test_columns=[], seconds={})
    whole = build_rows(chain, nothing)
    assert (whole.closure_depth, len(whole.rows["node_closure"])) == (None, 55)
    cut = build_rows(chain, nothing, max_closure=10 + 9 + 8)
    assert cut.closure_depth == 2
    assert [row.depth for row in cut.rows["node_closure"]] == [0] * 10 + [1] * 9 + [2] * 8
    assert build_rows(chain, nothing, max_closure=28).closure_depth == 2
    assert build_rows(chain, nothing, max_closure=0).rows["node_closure"] == []


def test_git_commit_is_the_head_or_nothing(tmp_path):
    assert git_commit(tmp_path / "missing") is None
    run = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    subprocess.run([*run, "init", "-q"], check=True)
    assert git_commit(tmp_path) is None
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "feat: first"], check=True)
    assert len(git_commit(tmp_path) or "") == 40


@pytest.mark.parametrize(
    ("which", "rows"), [("build", 1), ("test", 1), ("compile", 0), ("generate", 0)]
)
def test_what_was_only_compiled_did_not_run(which, rows):
    """dbt writes a result of success for each node that it compiles, tests among them."""
    unique_id = "test.shop.not_null_orders_id"
    made = project_of(
        {unique_id: node(unique_id)},
        [],
        run_results=[RunResult(unique_id=unique_id, status="success")],
        run_args={"which": which},
    )
    tables = build_rows(made, Analysis({}, [], [], {}), loaded_at=LOADED_AT)
    assert len(tables.rows["run_results"]) == rows
