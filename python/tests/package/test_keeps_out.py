"""The package keeps out of a project's own runs, shows one load at a time, and says what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest

pytest.importorskip("dbt.adapters.duckdb")

import duck_project
from dbt.artifacts.schemas.results import NodeResult
from duck_project import PROJECT, dbt, loaded, rows
from hand_made import RAW, node, orders, project

from dbt_ripple.artifacts import Project

pytestmark = pytest.mark.slow

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ASKED = ("--select", "package:dbt_ripple")
LINEAGE = (
    "ripple_dim_nodes",
    "ripple_dim_columns",
    "ripple_fct_edges",
    "ripple_fct_column_edges",
    "ripple_fct_node_closure",
)


@pytest.fixture
def duck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    duck_project.make(tmp_path, {"models/mine.sql": "select 1 as id"})
    yield tmp_path


def ours(results: list[NodeResult]) -> dict[str, str]:
    """What dbt said of each model and test of the package, by its name."""
    return {
        result.node.name: str(result.message or result.status)
        for result in results
        if result.node.package_name == "dbt_ripple"
        and str(result.node.resource_type) in ("model", "test")
    }


def relations(folder: Path) -> set[str]:
    """The relations of the package that are there, raw tables as well."""
    result_rows = rows(
        folder,
        "select table_name from information_schema.tables"
        " where table_schema in ('dev_ripple', 'dev_ripple_raw')",
    )
    return {name for (name,) in result_rows} - {"run_history"}


def shop(expression: str, when: datetime) -> Project:
    """A load: one model over one source."""
    made = project(
        orders(),
        node("model.p.stg", f"select id, {expression} as amount from s.orders", RAW),
        adapter="duckdb",
    )
    made.metadata.generated_at = when
    return made.having(digest=when.isoformat())


def test_a_plain_run_leaves_all_of_it_as_it_is(duck: Path) -> None:
    output = ours(dbt(duck, "build"))
    assert len(output) > 30
    assert set(output.values()) == {"SKIPPED, dbt-ripple build makes it", "pass"}
    assert relations(duck) == set()
    # Beside an edit of the project, and by a path that is the package's as well.
    dbt(duck, "build", "--select", "models")
    assert relations(duck) == set()

    built = ours(dbt(duck, "run", *ASKED))
    assert "SKIPPED, dbt-ripple build makes it" not in built.values()
    assert set(built) <= relations(duck)
    assert set(ours(dbt(duck, "test", *ASKED)).values()) == {"pass"}
    again = ours(dbt(duck, "run"))
    assert set(again.values()) == {"SKIPPED, dbt-ripple build makes it"}


def test_one_model_by_its_name(duck: Path) -> None:
    dbt(duck, "run", "--select", "+ripple_impacted_tests")
    assert {"ripple_impacted_tests", "snapshots", "nodes"} <= relations(duck)
    assert "ripple_dim_nodes" not in relations(duck)


def test_what_others_read_is_built_in_every_run(duck: Path) -> None:
    (duck / "models" / "theirs.sql").write_text(
        "select * from {{ ref('dbt_ripple', 'ripple_dim_columns') }}"
    )
    built = {
        name
        for name, output in ours(dbt(duck, "run")).items()
        if output != "SKIPPED, dbt-ripple build makes it"
    }
    assert built == {"ripple_dim_columns", "ripple_dim_nodes", "ripple_dim_snapshots"}
    assert rows(duck, "select * from dev.theirs") == []


def test_a_rule_that_is_named_is_asked_in_every_run(duck: Path) -> None:
    # Nothing else switches its part on.
    rule = PROJECT.replace("ripple_parts: all", "ripple_rules: {owner_missing: block}")
    (duck / "dbt_project.yml").write_text(rule)
    dbt(duck, "run", *ASKED)
    loaded(duck, shop("amount", NOON), "one")
    output = ours(dbt(duck, "build"))
    assert "SKIPPED, dbt-ripple build makes it" not in (
        output["ripple_owner_missing"],
        output["ripple_dim_nodes"],
    )
    assert "ripple_incidents" not in output
    assert output["ripple_dim_columns"] == "SKIPPED, dbt-ripple build makes it"
    # `model.p.stg` and its source have no owner: the test of the rule fails, though nobody selected it.
    assert rows(duck, "select count(*) from dev_ripple.ripple_owner_missing") == [(2,)]
    results = dbt(duck, "test")
    assert "fail" in {str(r.status) for r in results if r.node.name.startswith("owner_missing")}


def test_in_every_run_where_one_says_so(duck: Path) -> None:
    text = PROJECT.replace(
        "vars: {dbt_ripple: {", "vars: {dbt_ripple: {ripple_in_every_run: true, "
    )
    (duck / "dbt_project.yml").write_text(text)
    assert "SKIPPED, dbt-ripple build makes it" not in ours(dbt(duck, "run")).values()


@pytest.mark.parametrize(
    ("parts", "some", "none"),
    [
        (
            "[]",
            {"ripple_dim_nodes", "ripple_pii_columns", "ripple_lineage_status"},
            {"ripple_fct_runs", "ripple_owner_missing"},
        ),
        (
            "[governance]",
            {"ripple_owner_missing"},
            {"ripple_contract_violations", "ripple_lineage_coverage"},
        ),
        (
            "[health]",
            {"ripple_lineage_coverage", "health_is_whole"},
            {"ripple_lineage_kpis", "ripple_incidents"},
        ),
        (
            "[operations]",
            {"ripple_incidents"},
            {"ripple_contract_violations", "ripple_lineage_kpis"},
        ),
    ],
)
def test_parts_are_off_by_one_var(duck: Path, parts: str, some: set[str], none: set[str]) -> None:
    text = PROJECT.replace("ripple_parts: all", f"ripple_parts: {parts}")
    (duck / "dbt_project.yml").write_text(text)
    status_by_node = ours(dbt(duck, "--warn-error", "build", *ASKED))
    assert some <= set(status_by_node)
    assert not none & set(status_by_node)
    assert set(status_by_node.values()) <= {"OK", "pass"}


def status(folder: Path) -> tuple[str, str, int]:
    ((result_rows, message, behind),) = rows(
        folder, "select status, message, stale_model_count from dev_ripple.ripple_lineage_status"
    )
    return result_rows, message, behind


def held(folder: Path) -> dict[str, list[str]]:
    return {
        model: [s for (s,) in rows(folder, f"select distinct snapshot_id from dev_ripple.{model}")]
        for model in LINEAGE
    }


def test_whatever_is_built_all_models_show_one_load(duck: Path) -> None:
    dbt(duck, "run", *ASKED)
    assert status(duck)[0] == "empty"
    shown = []
    for number, expression in enumerate(("amount", "amount + 1")):
        loaded(duck, shop(expression, NOON + timedelta(hours=number)), str(number))
        dbt(duck, "run", "--select", "ripple_dim_nodes", "ripple_fct_edges")
        assert status(duck)[0::2] == ("stale", 1)
        assert list(held(duck).values()) == [shown[-1:]] * len(LINEAGE)
        dbt(duck, "run", "--select", "ripple_dim_snapshots")
        assert status(duck)[0::2] == ("loaded", 0)
        ((now,),) = {tuple(ids) for ids in held(duck).values()}
        shown.append(now)
    assert len(set(shown)) == 2


def test_tables_that_are_built_in_part_say_which_lag_behind(duck: Path) -> None:
    tables = "\nmodels: {dbt_ripple: {lineage: {+materialized: ripple_table}}}\n"
    (duck / "dbt_project.yml").write_text(PROJECT + tables)
    dbt(duck, "run", *ASKED)
    loaded(duck, shop("amount", NOON), "one")
    assert status(duck)[0] == "stale"
    dbt(duck, "run", *ASKED)
    assert status(duck)[0::2] == ("loaded", 0)
    loaded(duck, shop("amount + 1", NOON + timedelta(hours=1)), "two")
    dbt(
        duck,
        "run",
        "--select",
        "ripple_dim_snapshots",
        "ripple_dim_nodes",
        "ripple_dim_columns",
        "ripple_fct_node_closure",
    )
    status_of_tables, message, behind = status(duck)
    assert (status_of_tables, behind) == ("stale", 2)
    assert "ripple_fct_column_edges" in message
    # What is joined on the snapshot as well is of one load.
    joined = "select count(*) from dev_ripple.ripple_fct_edges join dev_ripple.ripple_dim_nodes"
    assert rows(duck, f"{joined} on parent_id = unique_id") == [(1,)]
    assert rows(duck, f"{joined} using (snapshot_id) where parent_id = unique_id") == [(0,)]


BREAK = {
    "dim_snapshots_says_what_and_when": "update dev_ripple.ripple_dim_snapshots set project_name = null",
    "dim_snapshots_key": "insert into dev_ripple.ripple_dim_snapshots from dev_ripple.ripple_dim_snapshots",
    "dim_nodes_key": "insert into {s}.nodes select * from {s}.nodes",
    "dim_nodes_kinds": "update {s}.nodes set name = null",
    "dim_nodes_statuses": "update {s}.nodes set analysis_status = 'guessed'",
    "dim_columns_key": "insert into {s}.columns select * from {s}.columns",
    "dim_columns_known_nodes": "update {s}.columns set unique_id = 'model.p.nobody'",
    "fct_edges_key": "insert into {s}.edges select * from {s}.edges",
    "fct_edges_known_children": "update {s}.edges set child_id = 'model.p.nobody'",
    "fct_column_edges_key": "insert into {s}.column_edges select * from {s}.column_edges",
    "fct_column_edges_known_parents": "update {s}.column_edges set parent_id = 'model.p.nobody'",
    "fct_column_edges_known_columns": "update {s}.column_edges set child_column = 'nothing'",
    "fct_column_edges_kinds": "update {s}.column_edges set subtype = 'MAGIC'",
    "fct_node_closure_key": "insert into {s}.node_closure select * from {s}.node_closure",
    "fct_node_closure_known_descendants": "update {s}.node_closure set descendant_id = 'model.p.nobody'",
    "fct_node_closure_holds_edges": "delete from {s}.edges",
    "fct_node_closure_holds_itself": "delete from {s}.node_closure where depth = 0",
    "lineage_is_acyclic": "insert into {s}.node_closure"
    " select snapshot_id, descendant_id, ancestor_id, depth from {s}.node_closure where depth = 1",
    "pii_columns_key": "insert into {s}.pii_columns select * from {s}.pii_columns",
    "pii_columns_known_sources": "update {s}.pii_columns set source_id = 'model.p.nobody'",
    "fct_cross_project_edges_key": "insert into dev_ripple.ripple_fct_cross_project_edges"
    " select 's', 'p', 'model.p.m', 'id', 't', 'q', 'source.q.m', 'id' from range(2)",
    "test_columns_key": "insert into {s}.test_columns select * from {s}.test_columns",
    "impacted_tests_key": "insert into {s}.nodes select * from {s}.nodes where resource_type = 'test'",
    "test_columns_known_nodes": "update {s}.test_columns set unique_id = 'model.p.nobody'",
}


def test_what_is_damaged_is_found_and_named(duck: Path) -> None:
    dbt(duck, "run", *ASKED)
    loaded(duck, shop("amount", NOON), "one")
    id_ = rows(duck, "select snapshot_id from dev_ripple_raw.snapshots")[0][0]
    rows(
        duck,
        "insert into dev_ripple_raw.pii_columns (snapshot_id, unique_id, column_name, source_id)"
        f" values ('{id_}', 'model.p.stg', 'id', '{RAW}')",
    )
    rows(
        duck,
        f"insert into dev_ripple_raw.test_columns values ('{id_}', 'test.p.t', 'model.p.stg', 'id')",
    )
    rows(
        duck,
        "insert into dev_ripple_raw.nodes (snapshot_id, unique_id, name, resource_type, asset_type, analysis_status)"
        f" values ('{id_}', 'test.p.t', 't', 'test', 'test', 'analysed')",
    )
    dbt(duck, "run", "--select", "ripple_dim_snapshots")
    dbt(duck, "compile", "--select", "lineage_is_whole")
    (compiled,) = (duck / "target" / "compiled").rglob("lineage_is_whole.sql")
    checks = compiled.read_text()
    assert rows(duck, checks) == []
    for check, damage in BREAK.items():
        broken = "; ".join(
            ("begin", damage.format(s="dev_ripple_raw"), "create temp table found as " + checks)
        )
        with_found = f"{broken}; select distinct check_name from found"
        names = {name for (name,) in rows(duck, with_found)}
        assert check in names, (check, names)


def test_a_view_that_is_there_with_the_same_text_is_not_made_again() -> None:
    path = duck_project.REPOSITORY / "macros" / "runs" / "is_same_view.sql"

    class Returned(Exception):  # noqa: N818
        pass

    def leave(value: object) -> None:
        raise Returned(value)

    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    environment.globals["return"] = leave
    macro = environment.from_string(path.read_text()).module.is_same_view  # type: ignore[attr-defined]

    def same(text: str | None, sql: str, *, is_view: bool = True) -> bool:
        listed = f"Database: s\nType: VIEW\nView Text: {text}\nSchema: root" if text else None
        relation = SimpleNamespace(is_view=is_view, information=listed)
        with pytest.raises(Returned) as returned:
            macro(relation, sql)
        return bool(returned.value.args[0])

    sql = "\n-- Why.\nwith a as (\n    select 1 as x\n)\n\nselect * from a\n"
    there = "with a as (\n    select 1 as x\n)\n\nselect * from a"
    assert same(there, sql)
    assert not same(there.replace("1", "2"), sql)
    assert not same(there, sql, is_view=False)
    assert not same(None, sql)
