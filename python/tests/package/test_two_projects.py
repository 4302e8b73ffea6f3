"""Two projects in one set of lineage tables: a source of one that the other builds, and the ways across."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest
from column_macros import columns_of
from hand_made import check, node, project
from msgspec.structs import replace
from test_impact_of_dropping import macros_of, rendered

from dbt_ripple.artifacts import Node, Project, find_node
from dbt_ripple.governance.hypothetical_changes import Change
from dbt_ripple.governance.impact import impact
from dbt_ripple.graph.analyse_project import analyse
from dbt_ripple.graph.joined_projects import JoinedProjects, Member
from dbt_ripple.graph.lineage_rows import build_rows
from dbt_ripple.graph.lineage_tables import RunHistoryRow
from dbt_ripple.spark.load import arrow_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
NOW = datetime.now(UTC).replace(microsecond=0)


def made(
    name: str, *nodes: Node, schema: str = "s", hours_ago: int = 1, **catalog: list[str]
) -> Project:
    """A project; what it builds is in a schema."""
    ids = {n.name: n.unique_id for n in nodes}
    built = project(
        *(
            msgspec.structs.replace(n, schema=schema, relation_name=f"`{schema}`.`{n.name}`")
            if n.resource_type == "model" and n.relation_name == f"`s`.`{n.name}`"
            else n
            for n in nodes
        ),
        catalog={ids[n]: columns for n, columns in catalog.items()},
        adapter="duckdb",
    )
    built.metadata.project_name = name
    built.metadata.generated_at = NOW - timedelta(hours=hours_ago)
    built = built.having(digest=f"{name} {schema} {hours_ago}")
    for n in built.nodes.values():
        built.nodes[n.unique_id] = replace(
            n, original_file_path=n.original_file_path or f"models/{n.name}.sql"
        )
    return built


def core(factor: int = 2, schema: str = "s", hours_ago: int = 3) -> Project:
    stg = f"select id, amount * {factor} as amount, code from s.raw"
    raw = node("source.core.raw.raw", columns=["id", "amount", "code"])
    raw.columns["code"].meta["pii"] = "name"
    own = node("model.shared.dates", f"select id from {schema}.stg", "model.core.stg")
    return made(
        "core",
        raw,
        node("model.core.stg", stg, raw.unique_id, checksum={"checksum": str(factor)}),
        node("model.core.fct", f"select id, amount, code from {schema}.stg", "model.core.stg"),
        own,
        check("stg_code", f"select code from {schema}.stg where code is null", "model.core.stg"),
        schema=schema,
        hours_ago=hours_ago,
        raw=["id", "amount", "code"],
    )


def finance(hours_ago: int = 1) -> Project:
    source = node("source.finance.core.fct", columns=["ID", "amount", "code"])
    source = replace(source, relation_name="S.FCT", schema="S")
    theirs = node("model.shared.dates", "select code from s.fct", source.unique_id)
    theirs = replace(theirs, relation_name="`f`.`dates`", schema="f")
    return made(
        "finance",
        source,
        theirs,
        node("model.finance.report", "select id, amount as total from s.fct", source.unique_id),
        node(
            "model.finance.mart",
            "select sum(total) as total from s.report",
            "model.finance.report",
        ),
        node("model.finance.codes", "select code from s.fct", source.unique_id),
        *(
            node(
                f"exposure.finance.{name}",
                None,
                f"model.finance.{parent}",
                meta={"referenced_columns": [f"{parent}.{column}"]},
                owner={"name": f"Owner of {name}", "email": f"{name}@x.example"},
            )
            for name, parent, column in (("board", "mart", "total"), ("list", "codes", "code"))
        ),
        check("total", "select total from s.mart where total < 0", "model.finance.mart"),
        check("known", "select code from s.codes where code > 9", "model.finance.codes"),
        schema="s",
        hours_ago=hours_ago,
    )


MODELS = (
    "ripple_dim_snapshots",
    "ripple_dim_nodes",
    "ripple_dim_columns",
    "ripple_fct_cross_project_edges",
)


def as_compiled(
    text: str, raw: str, models: str, target: str = "prod", engine: str = "default"
) -> str:
    """A model as dbt compiles it, over tables and models with these words before their names."""

    def ref(name: str) -> str:
        return f"{raw}{name.removeprefix('stg_ripple__')}" if "__" in name else f"{models}{name}"

    environment, package = macros_of(engine, ref, {})
    package.text_literal = lambda text: f"'{text}'"
    environment.globals.update(
        target=SimpleNamespace(name=target),
        config=lambda **_: "",
        source=lambda _, name: f"{raw}{name}",
        columns_of=columns_of,
        type_of=lambda name: name,
        part_is_on=lambda _: True,
        projects_are_joined=lambda: True,
        walk_columns=package.walk_columns,
        column_edges_in_direction=package.column_edges_in_direction,
    )
    order = (REPOSITORY / "macros" / "lineage" / "newest_first.sql").read_text()
    environment.globals["newest_first"] = environment.from_string(order).module.newest_first
    return environment.from_string(text).render()


def question(
    column: str,
    raw: str,
    models: str,
    run: Callable[[str], list[Any]],
    engine: str = "default",
) -> str:
    """`impact_of_dropping` of a column of core's source, over these."""
    names = {
        name: f"{models}{name}"
        for name in ("ripple_dim_nodes", "ripple_dim_columns", "ripple_fct_cross_project_edges")
    }
    names |= {
        "ripple_fct_column_edges": f"{raw}column_edges",
        "ripple_fct_node_closure": f"{raw}node_closure",
    }
    return rendered(
        "source.core.raw.raw",
        column,
        run,
        engine,
        ref=lambda name: names.get(name, f"{raw}{name}"),
        joined=True,
    )


class Store:
    """The lineage tables in DuckDB, with the models that the walks read, as their SQL says."""

    def __init__(self, *loads: Project, target: str = "prod") -> None:
        self.target = target
        self.connection = duckdb.connect()
        self.connection.sql("create schema raw")
        for number, load in enumerate(loads):
            snapshot = build_rows(
                load,
                analyse(load),
                loaded_at=load.metadata.generated_at,
                target_name=load.nodes[next(iter(load.nodes))].meta.get("target"),
            )
            for table, table_rows in snapshot.rows.items():
                self.connection.register("found", arrow_table(table, table_rows))
                verb = "insert into raw.{t} by name" if number else "create table raw.{t} as"
                self.connection.sql(f"{verb.format(t=table)} select * from found")
        for model in MODELS:
            text = (REPOSITORY / "models" / "lineage" / f"{model}.sql").read_text()
            self.connection.sql(f"create view {model} as {self.render(text)}")

    def render(self, text: str) -> str:
        return as_compiled(text, "raw.", "", self.target)

    def run(self, sql: str) -> list[Any]:
        return self.connection.sql(sql).fetchall()

    def crossings(self) -> set[tuple[str, str]]:
        frame = self.connection.sql(
            "select parent_project || ' ' || parent_id || '.' || parent_column,"
            " child_project || ' ' || child_id || '.' || child_column from ripple_fct_cross_project_edges"
        ).fetchall()
        return {(above, below) for above, below in frame}


FCT = {
    (f"core model.core.fct.{above}", f"finance source.finance.core.fct.{below}")
    for above, below in (
        *(("id", "ID"), ("amount", "amount"), ("code", "code"), ("*rows*", "*rows*")),
    )
}


def test_two_projects_do_not_overwrite_each_other() -> None:
    store = Store(core(), finance())
    frame = store.connection.sql(
        "select project_name, count(*) from ripple_dim_nodes group by all"
    ).fetchall()
    assert dict(frame) == {"core": len(core().nodes), "finance": len(finance().nodes)}


def test_a_source_gets_an_edge_from_what_builds_it() -> None:
    assert Store(core(), finance()).crossings() == FCT


def test_whatever_is_loaded_first() -> None:
    assert Store(finance()).crossings() == set()
    assert Store(core()).crossings() == set()
    assert Store(finance(hours_ago=5), core()).crossings() == FCT


def test_a_load_for_another_target_does_not_part_them() -> None:
    """The last load of core is of dev, whose schemas nobody else reads: an earlier one tells."""
    assert Store(core(), finance(), core(schema="dev", hours_ago=0)).crossings() == FCT


@pytest.mark.parametrize(("target", "schemas"), [("prod", {"s"}), ("dev", {"dev"}), ("x", {"dev"})])
def test_the_loads_of_the_target_that_is_built_for_are_shown(
    target: str, schemas: set[str]
) -> None:
    """dev is newer: it is shown where dev builds the models, or where none of the target is loaded."""
    sides = core(), core(schema="dev", hours_ago=0)
    for side, name in zip(sides, ("prod", "dev"), strict=True):
        side.nodes[next(iter(side.nodes))].meta["target"] = name
    store = Store(*sides, target=target)
    frame = store.connection.sql("select relation_name from ripple_dim_nodes where name = 'stg'")
    assert {name.split("`")[1] for (name,) in frame.fetchall()} == schemas


def test_a_model_that_is_gone_builds_nothing_any_more() -> None:
    without = made("core", *(n for n in core().nodes.values() if n.name != "fct"), hours_ago=0)
    assert Store(core(), finance(), without).crossings() == set()


def test_what_the_own_project_builds_is_not_joined() -> None:
    own = node("model.finance.fct", "select 1 as id")
    assert Store(core(), made("finance", *finance().nodes.values(), own)).crossings() == set()


def test_a_node_that_a_plugin_took_over() -> None:
    taken = node("model.core.fct", columns=["amount"])
    taken = replace(taken, relation_name="`elsewhere`.`fct`", schema="elsewhere")
    reads = made(
        "finance",
        taken,
        node("model.finance.m", "select amount from elsewhere.fct", taken.unique_id),
    )
    reads.nodes["model.core.fct"] = replace(reads.nodes["model.core.fct"], original_file_path="")
    assert {below for _, below in Store(core(), reads).crossings()} == {
        "finance model.core.fct.amount",
        "finance model.core.fct.*rows*",
    }


@pytest.mark.parametrize("column", ["amount", "code", "id"])
def test_dropping_from_tables_is_as_from_artifacts(column: str) -> None:
    """The SQL question crosses as `impact --other-project` does."""
    projects = core(), finance()
    store = Store(*projects)
    rows = {row[1]: row[4] for row in store.run(question(column, "raw.", "", store.run))}
    joined = JoinedProjects([Member(p, lambda p=p: analyse(p)) for p in projects])  # type: ignore[misc]
    report = impact(
        projects[0],
        find_node(projects[0], "raw")[0],
        [Change("drop", column)],
        joined=joined,
    )
    assert {u.partition("@")[0] for u in rows} == {
        a.unique_id.partition("@")[0] for a in report.affected_assets
    }
    for asset in report.affected_assets:
        if asset.name != "dates":  # of this id there are two
            assert rows[asset.unique_id] == asset.severity
    assert "exposure.finance.board" in rows or column != "amount"


@pytest.mark.spark
def test_the_way_across_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(core(), finance(), core(schema="dev", hours_ago=0))
    spark.sql("create database if not exists across")
    for (table,) in store.connection.sql(
        "select table_name from duckdb_tables() where schema_name = 'raw'"
    ).fetchall():
        file = str(tmp_path / f"{table}.parquet")
        pq.write_table(store.connection.sql(f"select * from raw.{table}").to_arrow_table(), file)
        spark.sql(f"create or replace view across.{table} as select * from parquet.`{file}`")
    for model in MODELS:
        text = (REPOSITORY / "models" / "lineage" / f"{model}.sql").read_text()
        sql = as_compiled(text, "across.", "across.")
        # As the package builds it: the walk asks for it several times.
        kind = "table" if model == "ripple_fct_cross_project_edges" else "view"
        using = "using parquet" if kind == "table" else ""
        spark.sql(f"create {kind} across.{model} {using} as {sql}")
    assert (
        spark.sql("select count(*) as n from across.ripple_fct_cross_project_edges").first()["n"]
        == 4
    )
    for column in ("amount",):
        asked_there = question(
            column, "across.", "across.", lambda sql: spark.sql(sql).collect(), "spark"
        )
        rows = spark.sql(asked_there).collect()
        severities = {(row["unique_id"], row["severity"]) for row in rows}
        here = store.run(question(column, "raw.", "", store.run))
        assert severities == {(row[1], row[4]) for row in here}
        assert "model.finance.report" in {unique_id for unique_id, _ in severities}
    # What goes from one project to another as the models follow it, after a change of fct.amount.
    for run, models, closure in (
        (store.connection.sql, "", "ripple_fct_node_closure"),
        (spark.sql, "across.", "across.ripple_fct_node_closure"),
    ):
        raw = models or "raw."
        run(f"create view {models}ripple_fct_column_edges as select * from {raw}column_edges")
        run(f"create view {closure} as select * from {raw}node_closure")
        run(
            f"create view {models}ripple_definition_changes as select 'core' as project_name,"
            " '' as target_name, 'model.core.fct' as unique_id, 'amount' as column_name"
        )
    for path in ("lineage/ripple_int_pii_elsewhere", "operations/ripple_int_reached_elsewhere"):
        text = (REPOSITORY / "models" / f"{path}.sql").read_text()
        here = store.connection.sql(as_compiled(text, "raw.", ""))
        there = spark.sql(as_compiled(text, "across.", "across.", engine="spark"))
        assert there.columns == here.columns
        assert sorted(map(tuple, there.collect()), key=str) == sorted(here.fetchall(), key=str)
        assert len(here.fetchall()) >= 4


# --- the questions, by dbt -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A real project that has the package, over two loads of core and one of finance."""
    pytest.importorskip("dbt.adapters.duckdb")
    import duck_project

    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        duck_project.make(folder, {"models/mine.sql": "select 1 as id"})
        duck_project.dbt(folder, "run", "--select", "ripple_dim_snapshots")
        for load, commit in (
            (core(), "one"),
            (core(factor=3, hours_ago=2), "two"),
            (finance(), "f"),
        ):
            duck_project.loaded(folder, load, commit)
        duck_project.insert(folder, "run_history", list(happened()))
        duck_project.dbt(folder, "run", "--select", "package:dbt_ripple")
        yield folder


def happened() -> Iterator[RunHistoryRow]:
    """Two runs of each project, before and after core's second load: what ended well and then did not."""
    nodes = {
        "model.core.fct": ("core", "error", 100),
        "test.p.stg_code": ("core", "fail", 100),
        "test.p.total": ("finance", "fail", 90),
        "test.p.known": ("finance", "fail", 90),
    }
    at = {"stg_code": "core.stg", "total": "finance.mart", "known": "finance.codes"}
    for unique_id, (of, status, minutes) in nodes.items():
        kind, _, name = unique_id.split(".")
        for run, ended in (
            (minutes + 60, "success" if kind == "model" else "pass"),
            (minutes, status),
        ):
            moment = NOW - timedelta(minutes=run)
            values: dict[str, Any] = dict.fromkeys(RunHistoryRow.__struct_fields__)
            values |= {
                "invocation_id": f"{of} {run}",
                "unique_id": unique_id,
                "project_name": of,
                "target_name": "dev",
                "command": "build",
                "resource_type": kind,
                "name": name,
                "node_id": f"model.{at.get(name, 'core.fct')}",
                "status": ended,
                "started_at": moment,
                "completed_at": moment,
                "recorded_at": NOW - timedelta(days=1),  # no run is newer than a load
            }
            yield RunHistoryRow(**values)


def asked(folder: Path, analysis: str, **variables: str) -> list[dict[str, Any]]:
    """What an analysis answers."""
    import duck_project

    names = {f"ripple_{name}": value for name, value in variables.items()}
    duck_project.dbt(folder, "compile", "--select", analysis, "--vars", json.dumps(names))
    (file,) = (folder / "target" / "compiled").rglob(f"{analysis}.sql")
    with duckdb.connect(str(folder / "duck.duckdb")) as connection:
        frame = connection.sql(file.read_text())
        return [dict(zip(frame.columns, row, strict=True)) for row in frame.fetchall()]


def test_who_to_page_in_the_other_project(store: Path) -> None:
    result_rows = asked(store, "who_to_page", node="stg", column="amount")
    by_name = {(row["project_name"], row["name"]): row for row in result_rows}
    assert set(by_name) == {
        *(("core", "stg"), ("core", "fct"), ("finance", "report"), ("finance", "mart")),
        ("finance", "board"),
    }
    assert by_name["finance", "board"]["owner"] == "Owner of board"
    assert by_name["finance", "board"]["depth"] == 5


def test_changed_upstream_in_the_other_project(store: Path) -> None:
    result_rows = asked(store, "changed_upstream", node="mart", column="total")
    assert [(row["project_name"], row["name"], row["column_name"]) for row in result_rows] == [
        ("core", "stg", "amount")
    ]
    assert (result_rows[0]["asked_about"], result_rows[0]["git_sha"], result_rows[0]["depth"]) == (
        "mart",
        "two",
        4,
    )
    assert asked(store, "changed_upstream", node="codes", column="code") == []


def test_from_a_failed_test_down_to_the_sources(store: Path) -> None:
    result_rows = asked(store, "diagnose_metric", node="total")
    assert ("core", "raw", "amount") in {
        (row["project_name"], row["name"], row["column_name"]) for row in result_rows
    }


def test_the_cause_of_an_incident_in_the_other_project(store: Path) -> None:
    import duck_project

    result_rows = duck_project.rows(
        store,
        "select incident_id, project_name, name, cause_project, cause_unique_id, cause_column,"
        " cause_git_sha, cause_distance from dev_ripple.ripple_incident_failures order by name",
    )
    stg = ("core", "model.core.stg", "amount", "two")
    assert [row[1:] for row in result_rows] == [
        ("core", "fct", *stg, 1),
        ("finance", "known", None, None, None, None, None),
        ("core", "stg_code", None, None, None, None, None),
        ("finance", "total", *stg, 5),
    ]
    fct, incident_of_stg, stg_code, total = (row[0] for row in result_rows)
    # One change is one incident, and what came wrong from the other project is that project's.
    assert fct == total and incident_of_stg == stg_code != fct
    assert duck_project.rows(
        store, "select project_name, name, failures from dev_ripple.ripple_incidents order by name"
    ) == [("core", "fct", 2), ("core", "stg_code", 2)]


def test_what_only_the_other_project_reads_has_a_reader(store: Path) -> None:
    import duck_project

    result_rows = duck_project.rows(
        store,
        "select name from dev_ripple.ripple_unknown_downstreams where is_latest order by name",
    )
    # fct is read in finance alone. Nobody reads either of the dates, and all else is read.
    assert result_rows == [("dates",), ("dates",)]


def test_personal_data_goes_on_in_the_other_project(store: Path) -> None:
    import duck_project

    result_rows = duck_project.rows(
        store,
        "select unique_id, column_name, pii, origin, source_project, source_id, path"
        " from dev_ripple.ripple_pii_columns where project_name = 'finance' order by unique_id",
    )
    way = "source.core.raw.raw.code > model.core.stg.code > model.core.fct.code > source.finance.core.fct.code"
    ways = {
        "exposure.finance.list": f"{way} > ... > exposure.finance.list.code",
        "model.finance.codes": f"{way} > model.finance.codes.code",
        "model.shared.dates": f"{way} > model.shared.dates.code",
        "source.finance.core.fct": way,
    }
    assert result_rows == [
        (unique_id, "code", "name", "inherited", "core", "source.core.raw.raw", path)
        for unique_id, path in ways.items()
    ]
    untagged = duck_project.rows(
        store, "select unique_id from dev_ripple.ripple_pii_untagged order by unique_id"
    )
    assert "model.finance.codes" in {unique_id for (unique_id,) in untagged}


def test_what_is_downstream_in_the_other_project(store: Path) -> None:
    result_rows = asked(store, "downstream_of_node", node="model.core.fct")
    assert {(row["name"], row["depth"]) for row in result_rows} == {
        *(("fct", 1), ("report", 2), ("dates", 2), ("codes", 2), ("mart", 3)),
        *(("board", 4), ("list", 3)),
    }


def test_a_way_can_be_kept_in_one_project(store: Path) -> None:
    result_rows = asked(store, "downstream_of_node", node="model.core.fct", max_projects="0")
    assert result_rows == []


def test_edges_say_what_is_computed(store: Path) -> None:
    with duckdb.connect(str(store / "duck.duckdb")) as connection:
        frame = connection.sql(
            "select child_id, child_column, expression from dev_ripple.ripple_fct_column_edges"
            " where expression is not null and type = 'DIRECT'"
        ).fetchall()
    assert ("model.core.stg", "amount", "amount * 3") in {*frame}
    assert ("model.finance.mart", "total", "SUM(total)") in {*frame}


def test_the_state_of_the_store(store: Path) -> None:
    import duck_project

    ((status, projects),) = duck_project.rows(
        store, "select status, project_count from dev_ripple.ripple_lineage_status"
    )
    assert (status, projects) == ("loaded", 2)
    duck_project.dbt(store, "compile", "--select", "lineage_is_whole")
    (checks,) = (store / "target" / "compiled").rglob("lineage_is_whole.sql")
    assert duck_project.rows(store, checks.read_text()) == []
