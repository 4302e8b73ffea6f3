"""`impacted_tests` gives from the tables what `select --no-facts` gives from the artifacts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import jinja2
import pytest
from column_macros import columns_of
from hand_made import LISTED, RAW, check, node, orders, project

from dbt_ripple.artifacts import Project
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import TABLES
from dbt_ripple.graph.linking.project_context import ProjectContext
from dbt_ripple.graph.linking.seeds import SeedFiles
from dbt_ripple.graph.test_outcomes import with_test_outcomes
from dbt_ripple.selection.select import select
from dbt_ripple.spark.load import arrow_table

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
MODELS = REPOSITORY / "models"
HOOK = "operation.p.p-on-run-start-0"


def side(*, digest: str, minute: int, **edits: Any) -> Project:
    """A small project; an edit replaces a query, a test's config, or adds a test."""
    nodes = [
        orders(),
        node("model.p.stg", edits.get("stg", "select id, amount, status from s.orders"), RAW),
        node("model.p.top", edits.get("top", "select id, amount from s.stg"), "model.p.stg"),
        check("amount", "select amount from s.top where amount is null", "model.p.top"),
        check("status", "select status from s.stg where status is null", "model.p.stg"),
        check(
            "ids",
            "select id from s.top group by id having count(*) > 1",
            "model.p.top",
            config=edits.get("config", {}),
        ),
        check("free", edits.get("free", "select 1 as one where false")),
        node(HOOK, raw=edits.get("hook", "select 1")),
    ]
    if edits.get("added"):
        nodes.append(check("added", "select id from s.stg where id < 0", "model.p.stg"))
    made = project(*nodes, catalog=LISTED, adapter="duckdb")
    made.metadata.generated_at = datetime(2026, 11, 21, 10, minute, tzinfo=UTC)
    return made.having(digest=digest)


@pytest.fixture
def warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    for table in TABLES:
        connection.register("rows", arrow_table(table, []))
        connection.sql(f'create table "{table}" as select * from rows')
    yield connection
    connection.close()


def loaded(connection: duckdb.DuckDBPyConnection, of: Project) -> str:
    context, seeds = ProjectContext(of), SeedFiles.by_their_values(of)
    analysis = analyse(of, own=True, seeds=seeds, context=context)
    snapshot = build_rows(of, with_test_outcomes(context, analysis, seeds))
    for table, rows in snapshot.rows.items():
        connection.register("rows", arrow_table(table, rows))
        connection.sql(f'insert into "{table}" by name select * from rows')
    return snapshot.snapshot_id


def answered(connection: duckdb.DuckDBPyConnection, **variables: str) -> dict[str, tuple[str, int]]:
    """The model's rows, its staging models rendered below it."""

    def render(path: Path) -> str:
        return jinja2.Template(path.read_text()).render(
            ref=lambda _, name: f"({render(MODELS / 'staging' / f'{name}.sql')})",
            source=lambda _, name: f'"{name}"',
            columns_of=columns_of,
            var=lambda name, default=None: variables.get(name, default),
        )

    rows = connection.sql(render(MODELS / "impact" / "ripple_impacted_tests.sql"))
    assert rows.columns[-4:] == ["unique_id", "name", "change", "moved_reads"]
    return {row[3].rpartition(".")[2]: row[5:] for row in rows.fetchall()}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({}, {}),
        ({"stg": "-- why\nselect id, amount, status from (select * from s.orders) as o"}, {}),
        (
            {"stg": "select id, amount * 2 as amount, status from s.orders"},
            {"amount": ("changed", 1)},
        ),
        (
            {"stg": "select id, amount, status from s.orders where id > 0"},
            {"amount": ("changed", 1), "ids": ("changed", 1), "status": ("changed", 1)},
        ),
        ({"config": {"severity": "warn"}}, {"ids": ("changed", 0)}),
        ({"free": "select 2 as one where false"}, {"free": ("changed", 0)}),
        ({"added": True}, {"added": ("new", 0)}),
        (
            {"hook": "call refresh()"},
            dict.fromkeys(("amount", "status", "ids"), ("changed", 0)) | {"free": ("changed", 0)},
        ),
        (
            {"hook": "delete from s.orders"},
            dict.fromkeys(("amount", "status", "ids"), ("changed", 2)),
        ),
    ],
)
def test_it_is_what_select_says(
    warehouse: duckdb.DuckDBPyConnection,
    edit: dict[str, Any],
    expected: dict[str, tuple[str, int]],
) -> None:
    base = side(digest="base", minute=0)
    head = side(digest="head", minute=1, **edit)
    # Whichever was loaded first: head is what was compiled last.
    loaded(warehouse, head)
    assert answered(warehouse) == {}
    loaded(warehouse, base)
    answers = answered(warehouse)
    assert answers == expected
    selected = select(base, head, facts=False).tests
    assert {test.unique_id.rpartition(".")[2] for test in selected} == set(answers)


def layers(*, minute: int, catalog: bool = True, **edits: str) -> Project:
    """A table that joins a count, and one that takes the first row that comes."""
    columns = {"id": "INTEGER", "amount": "INTEGER", "status": "VARCHAR"}
    stg, counted = "model.p.stg", "model.p.counted"
    made = project(
        orders(),
        node(stg, edits.get("stg", "select id, amount, status from s.orders"), RAW),
        node(counted, "select {} id, count(*) as n from s.orders {} group by id".format(edits.get("of", ""), edits.get("where", "")), RAW),
        node("model.p.joined", "select s.id, c.n from s.stg s left join s.counted c on s.amount = c.id", stg, counted),
        node("model.p.same", "select s.id, c.n from s.stg s left join s.counted c on s.id = c.id", stg, counted),
        node("model.p.first", edits.get("first", "select id from s.stg limit 1"), stg),
        node("model.p.added", "select sum(id) as total from s.stg", stg),
        node("model.p.firsts", "select cast(id as bigint) as id, count(*) as n from s.first group by 1", "model.p.first"),
        node("model.p.with_first", "select s.id, f.n from s.stg s left join s.firsts f on cast(s.id as bigint) = f.id", stg, "model.p.firsts"),
        node("model.p.listed", "select id, collect_list(amount) as l from s.stg group by id", stg),
        check("kept", "select id from s.joined where id is null", "model.p.joined"),
        check("same", "select id from s.same where id is null", "model.p.same"),
        check("counted", "select n from s.joined where n > 9", "model.p.joined"),
        check("first", "select id from s.first where id < 5", "model.p.first"),
        check("total", "select total from s.added where total < 5", "model.p.added"),
        check("with_first", "select id from s.with_first where id is null", "model.p.with_first"),
        check("with_n", "select n from s.with_first where n > 9", "model.p.with_first"),
        check("list_ids", "select id from s.listed where id is null", "model.p.listed"),
        check("lists", "select l from s.listed where size(l) > 9", "model.p.listed"),
        types={RAW: columns, stg: columns, counted: {"id": "INTEGER", "n": "BIGINT"}} if catalog else {},
        adapter="spark",
    )  # fmt: skip
    made.metadata.generated_at = datetime(2026, 11, 21, 10, minute, tzinfo=UTC)
    return made.having(digest=repr((minute, catalog, edits)))


EVERY = {"kept", "same", "counted", "first", "total", "with_first", "with_n", "list_ids", "lists"}


@pytest.mark.parametrize("catalogs", [(True, True), (False, False), (True, False), (False, True)])
@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({}, set()),
        ({"stg": "select  id, amount,  status from s.orders -- laid out"}, set()),
        ({"where": "where amount > 1"}, {"counted"}),
        ({"stg": "select id, amount, upper(status) as status from s.orders"}, {"first", "with_n", "lists"}),
        ({"stg": "select id + 1 as id, amount, status from s.orders"}, EVERY - {"counted"}),
        ({"first": "select id from s.stg order by id limit 1"}, {"first", "with_n"}),
        ({"of": "distinct"}, set()),
        ({"of": "distinct", "where": "where amount > 1"}, {"counted"}),
    ],
)  # fmt: skip
def test_what_joins_keep_and_who_sees_an_order_with_a_catalog_or_without(
    warehouse: duckdb.DuckDBPyConnection,
    edit: dict[str, str],
    expected: set[str],
    catalogs: tuple[bool, bool],
) -> None:
    base, head = (
        layers(minute=minute, catalog=catalog, **of)
        for minute, catalog, of in zip((0, 1), catalogs, ({}, edit), strict=True)
    )
    loaded(warehouse, base)
    loaded(warehouse, head)
    # That the keys are of one type is known by a catalog; by one that only one load has, nothing is shown.
    more = {"kept"} if "where" in edit and not all(catalogs) else set()
    if edit.get("of") and catalogs[0] != catalogs[1]:
        more = {"kept", "counted"}
    assert set(answered(warehouse)) == expected | more
    if catalogs[0] == catalogs[1]:
        selected = select(base, head, facts=False).tests
        assert {test.unique_id.rpartition(".")[2] for test in selected} == expected | more


def test_a_catalog_that_is_older_than_the_manifest_tells_no_types(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    base, head = layers(minute=0), layers(minute=1, where="where amount > 1")
    for side in (base, head):
        loaded(warehouse, side.having(catalog_is_older=True))
    assert set(answered(warehouse)) == {"counted", "kept"}


def test_other_loads_by_their_names_and_loads_without_fingerprints(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    doubled = {"stg": "select id, amount * 2 as amount, status from s.orders"}
    first = loaded(warehouse, side(digest="1", minute=0))
    second = loaded(warehouse, side(digest="2", minute=1, **doubled))
    third = loaded(warehouse, side(digest="3", minute=2, **doubled))
    assert answered(warehouse) == {}
    assert set(answered(warehouse, ripple_base_snapshot=first)) == {"amount"}
    assert set(answered(warehouse, ripple_head_snapshot=second)) == {"amount"}
    pair = {"ripple_base_snapshot": third, "ripple_head_snapshot": first}
    assert set(answered(warehouse, **pair)) == {"amount"}
    # An older version of the loader: wider, never wrong.
    warehouse.sql(
        "update nodes set test_fingerprint = null, typed_fingerprint = null, orders_seen = null"
        f" where snapshot_id = '{second}'"
    )
    assert set(answered(warehouse)) == {"amount", "status", "ids", "free"}


def test_a_check_of_collected_events_is_no_test_that_dbt_runs(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    doubled = {"stg": "select id, amount * 2 as amount, status from s.orders"}
    loaded(warehouse, side(digest="1", minute=0))
    head = loaded(warehouse, side(digest="2", minute=1, **doubled))
    checked = "select * replace ('test.p.row_count' as unique_id, null as test_fingerprint)"
    warehouse.sql(
        f"insert into nodes {checked} from nodes"
        f" where snapshot_id = '{head}' and unique_id = 'test.p.ids'"
    )
    assert set(answered(warehouse)) == {"amount"}
