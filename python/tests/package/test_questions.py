"""The questions in `analyses/`, as dbt compiles them: what a name means, and which removed columns are told of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from hand_made import RAW, check, node, orders, project
from msgspec.structs import replace

from dbt_ripple.artifacts import Project, find_node
from dbt_ripple.errors import RippleError
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import build_rows

pytestmark = pytest.mark.slow

NOW = datetime.now(UTC).replace(microsecond=0)
STG, MART, TOP = "model.duck.stg", "model.duck.customers", "model.duck.top"
SEMANTIC = "semantic_model.duck.customers"
VERSIONS = ("model.duck.wide.v1", "model.duck.wide.v2")


def loads(*, stg: str, mart: str, hours_ago: int) -> Project:
    """orders -> stg -> customers -> top, with a semantic model that has the name of a model."""
    made = project(
        replace(orders(), source_name="raw"),
        node(STG, f"select {stg} from s.orders", RAW, original_file_path="models/stg.sql"),
        node(MART, f"select {mart} from s.stg", STG),
        node(TOP, "select id, total from s.customers", MART),
        node(SEMANTIC, None, MART),
        node("exposure.duck.top", None, TOP),
        *(
            replace(node(u, "select id from s.stg", STG), name="wide", version=u[-1])
            for u in VERSIONS
        ),
        check("totals", "select total from s.top where total < 0", TOP),
        adapter="duckdb",
        catalog={RAW: ["id", "amount", "status"]},
    )
    made.metadata.project_name = "duck"
    made.metadata.generated_at = NOW - timedelta(hours=hours_ago)
    return made.having(digest=f"{stg} {mart}")


FIRST = loads(stg="id, amount, status", mart="id, amount as total", hours_ago=2)
READ = loads(stg="id, status", mart="id, 0 as total", hours_ago=1)
"""`amount`, which customers.total was made of, is gone; and so is what reads it."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        duck_project.make(folder, {"models/mine.sql": "select 1 as id"})
        duck_project.dbt(folder, "run", "--select", "ripple_dim_snapshots")
        duck_project.loaded(folder, FIRST, "one")
        duck_project.loaded(folder, READ, "two")
        duck_project.dbt(folder, "run", "--select", "package:dbt_ripple")
        yield folder


def asked(folder: Path, analysis: str, **variables: str) -> list[dict[str, Any]]:
    """What an analysis answers."""
    names = {f"ripple_{name}": value for name, value in variables.items()}
    duck_project.dbt(folder, "compile", "--select", analysis, "--vars", json.dumps(names))
    (file,) = (folder / "target" / "compiled").rglob(f"{analysis}.sql")
    with duckdb.connect(str(folder / "duck.duckdb")) as connection:
        frame = connection.sql(file.read_text())
        return [dict(zip(frame.columns, row, strict=True)) for row in frame.fetchall()]


def refused(folder: Path, analysis: str, node_name: str) -> str:
    """What dbt says of a question that is refused."""
    from dbt_here import run_dbt

    said, output = run_dbt(
        folder, "compile", "--select", analysis, "--vars", json.dumps({"ripple_node": node_name})
    )
    assert not said
    return " ".join(output.split())


@pytest.mark.parametrize(
    "name",
    [
        *("customers", "CUSTOMERS", MART, "model:customers", "duck.customers", "s.customers"),
        *("semantic_model:customers", "orders", "raw.orders", "models/stg.sql", "stg.sql"),
        *("wide.v1", "test.p.totals", "exposure:top"),
    ],
)
def test_a_name_means_what_it_means_on_the_command_line(store: Path, name: str) -> None:
    found, _ = find_node(READ, name)
    rows = asked(store, "downstream_of_node", node=name)
    assert {row["node"] for row in rows} <= {found.name, "top"}
    assert len(rows) == len({row["unique_id"] for row in rows})
    if found.unique_id == MART:
        assert {row["unique_id"] for row in rows} >= {TOP, SEMANTIC, "exposure.duck.top"}
    if found.unique_id == SEMANTIC:
        assert rows == []


def test_what_is_asked_of_all_nodes(store: Path) -> None:
    """Of the latest load alone: an earlier one is in the tables, too."""
    loaded = build_rows(READ, analyse(READ)).rows
    kinds = {row.unique_id: row.resource_type for row in loaded["nodes"]}
    answered = {row["unique_id"]: row for row in asked(store, "most_read_models")}
    below = Counter(row.ancestor_id for row in loaded["node_closure"] if row.depth)
    assert {unique_id: row["all_readers"] for unique_id, row in answered.items()} == {
        unique_id: count for unique_id, count in below.items() if kinds[unique_id] == "model"
    }
    assert next(iter(answered)) == STG
    for unique_id, row in answered.items():
        readers = [kinds[e.child_id] for e in loaded["edges"] if e.parent_id == unique_id]
        read = [e for e in loaded["column_edges"] if e.parent_id == unique_id]
        assert (row["tests"], row["direct_readers"]) == (
            readers.count("test"),
            len(readers) - readers.count("test"),
        )
        assert row["columns_read"] == len({e.parent_column for e in read} - {"*rows*"})
        assert row["columns"] == sum(1 for c in loaded["columns"] if c.unique_id == unique_id)
    statuses = asked(store, "analysis_statuses")
    assert {row["project_name"] for row in statuses} == {"duck"}
    found = Counter((n.resource_type, n.analysis_status) for n in loaded["nodes"])
    assert {(row["resource_type"], row["analysis_status"]): row["nodes"] for row in statuses} == {
        kind: count for kind, count in found.items() if kind[0] != "test"
    }
    models = [row for row in statuses if row["resource_type"] == "model"]
    assert sum(row["percent_of_type"] for row in models) == 100
    assert sum(row["columns"] for row in models) == sum(
        1 for c in loaded["columns"] if kinds[c.unique_id] == "model"
    )


def test_dropping_a_column_as_dbt_compiles_it(store: Path) -> None:
    rows = asked(store, "impact_of_dropping", node="raw.orders", column="id")
    # A semantic model that declares nothing may read anything, as far as the tables tell.
    rows = [row for row in rows if row["unique_id"] != SEMANTIC]
    report = impact(READ, find_node(READ, "raw.orders")[0], [Change("drop", "id")])
    assert {row["unique_id"]: row["severity"] for row in rows} == {
        one.unique_id: one.severity for one in report.affected_assets if one.unique_id != SEMANTIC
    }
    assert len(rows) > 3


def test_columns_that_break_are_those_of_the_model(store: Path) -> None:
    rows = asked(store, "columns_that_break", node="customers", column="total")
    assert [(row["node"], row["column_name"], row["through"]) for row in rows] == [
        ("top", "total", "value")
    ]


@pytest.mark.parametrize("analysis", ["columns_that_break", "who_to_page", "impact_of_dropping"])
def test_an_ambiguous_name_is_an_error_with_the_candidates(store: Path, analysis: str) -> None:
    for name, candidates in (("wide", VERSIONS), ("top", (TOP, "exposure.duck.top"))):
        with pytest.raises(RippleError, match="2 nodes have this name"):
            find_node(READ, name)
        said = refused(store, analysis, name)
        assert f"{name}: 2 nodes have this name" in said
        assert all(candidate in said for candidate in candidates)


def test_a_name_of_nothing_is_an_error(store: Path) -> None:
    assert "customer: no node of this name is loaded" in refused(
        store, "downstream_of_node", "customer"
    )


def changed(folder: Path, **variables: str) -> set[tuple[str, str, str]]:
    rows = asked(folder, "changed_upstream", **variables)
    return {(row["name"], row["column_name"], row["change"]) for row in rows}


def test_a_removed_column_is_told_where_something_on_the_way_read_it(store: Path) -> None:
    total = {("stg", "amount", "removed"), ("customers", "total", "redefined")}
    assert changed(store, node="customers", column="total") == total
    assert changed(store, node=TOP, column="total") == total
    assert changed(store, node="totals") == total
    # Nobody on the way to `id` ever read `amount`.
    assert changed(store, node=TOP, column="id") == set()
    assert changed(store, node="stg") == {("stg", "amount", "removed")}


def test_a_question_before_the_first_load_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    duck_project.make(tmp_path, {"models/mine.sql": "select 1 as id"})
    said = refused(tmp_path, "downstream_of_node", "mine")
    assert "mine: no lineage is loaded yet: run dbt-ripple build" in said
