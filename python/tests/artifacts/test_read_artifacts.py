"""The reader, on what dbt 1.6, 1.7 and 1.11 wrote, and on what no dbt should have written."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt_ripple.artifacts import Project, check_compiled, read_project
from dbt_ripple.errors import RippleError

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = ["v10_dbt_1_6", "v11_dbt_1_7", "v12_dbt_1_11"]
SCHEMA = "https://schemas.getdbt.com/dbt/manifest/v{}.json"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A copy of a real target folder that a test may spoil."""
    return Path(shutil.copytree(FIXTURES / "v12_dbt_1_11", tmp_path / "target"))


def changed(target: Path, name: str = "manifest.json", **parts: Any) -> Path:
    path = target / name
    content = json.loads(path.read_text())
    content.update(parts)
    path.write_text(json.dumps(content))
    return target


def a_manifest(folder: Path, *, schema: str = SCHEMA.format(12), **parts: Any) -> Path:
    metadata = {"dbt_schema_version": schema, "project_name": "shop"}
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"metadata": metadata, "nodes": {}} | parts))
    return folder


def refused(target: Path) -> str:
    with pytest.raises(RippleError) as caught:
        read_project(target)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.where
    assert caught.value.fix
    return message


# --- every version ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_reads_alike(version: str) -> None:
    project = read_project(FIXTURES / version)

    assert project.name == "shop"
    assert project.metadata.adapter_type == "spark"
    stg = project.nodes["model.shop.stg_orders"]
    assert stg.resource_type == "model"
    assert stg.materialized == "view"
    assert stg.meta == {"owner": "orders-team"}
    assert list(stg.columns) == ["order_id", "amount"]
    assert stg.compiled_code and stg.compiled_code.startswith("select order_id")
    dim = project.nodes["model.shop.dim_customers.v2"]
    assert (dim.display_name, dim.version, dim.group) == ("dim_customers.v2", 2, "finance")
    assert dim.contract_enforced
    assert dim.columns["amount"].data_type == "double"
    assert dim.tags == ["mart"]
    assert dim.refs[0].name == "eph_orders"
    assert project.nodes["model.shop.eph_orders"].is_ephemeral
    source = project.nodes["source.shop.raw.orders"]
    assert (source.source_name, source.identifier) == ("raw", "raw_orders")
    assert source.meta["criticality"] == "high"
    assert source.tags == ["landing"]
    assert source.columns["email"].meta == {"pii": "email"}
    exposure = project.nodes["exposure.shop.daily_revenue_report"]
    assert exposure.owner["name"] == "Finance data"
    assert exposure.meta["asset_type"] == "dag"
    test = project.nodes["test.shop.unique_stg_orders_order_id.e3b841c71a"]
    assert test.test_metadata and test.test_metadata.name == "unique"
    assert test.attached_node == "model.shop.stg_orders"
    assert project.groups["group.shop.finance"].owner["email"] == "finance@example.com"
    assert project.macros["macro.shop.cents"].macro_sql
    assert project.parents["model.shop.dim_customers.v2"] == [
        "model.shop.eph_orders",
        "seed.shop.countries",
    ]
    assert "model.shop.stg_orders" in project.children["source.shop.raw.orders"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_graph_has_no_loose_ends(version: str) -> None:
    project = read_project(FIXTURES / version)

    assert project.parents.keys() == project.nodes.keys() == project.children.keys()
    down = {(parent, child) for parent, children in project.children.items() for child in children}
    up = {(parent, child) for child, parents in project.parents.items() for parent in parents}
    assert down == up
    assert {end for edge in up for end in edge} <= project.nodes.keys()


def test_what_dbt_1_11_writes_is_all_there() -> None:
    project = read_project(FIXTURES / "v12_dbt_1_11")

    assert project.notes == []
    assert {node.resource_type for node in project.nodes.values()} == {
        *("model", "seed", "snapshot", "test", "unit_test", "analysis", "operation", "source"),
        *("exposure", "metric", "semantic_model", "saved_query", "function"),
    }
    assert project.disabled == ["model.shop.retired"]
    assert project.nodes["model.shop.py_model"].is_python
    function = project.nodes["function.shop.to_cents"]
    assert function.arguments[0]["name"] == "x"
    unit_test = project.nodes["unit_test.shop.dim_customers.amounts_are_summed_v1"]
    assert unit_test.model == "dim_customers"
    assert unit_test.given[0]["input"] == "ref('eph_orders')"
    assert unit_test.expect["rows"] == [{"customer_id": 1, "amount": 2.0}]
    # Since dbt 1.10 the meta of a column is said in its config, too.
    assert project.nodes["source.shop.raw.orders"].columns["email"].tags == ["pii"]


def test_the_other_artifacts() -> None:
    project = read_project(FIXTURES / "v12_dbt_1_11")

    columns = project.catalog["source.shop.raw.orders"]
    assert [column.name for column in columns] == [
        *("ordered_at", "order_id", "customer_id", "amount", "email"),
    ]
    assert columns[0].type == "timestamp"
    assert len(project.run_results) == 12
    result = project.run_results[1]
    assert (result.unique_id, result.status) == ("model.shop.stg_orders", "success")
    assert result.invocation_id == project.metadata.invocation_id
    assert result.started_at and result.completed_at
    assert timedelta(0) < result.completed_at - result.started_at < timedelta(minutes=1)
    assert result.started_at.tzinfo is UTC
    assert result.rows_affected is None
    assert project.run_args["which"] == "compile"
    assert [(item.unique_id, item.status) for item in project.freshness] == [
        ("source.shop.raw.orders", "warn")
    ]
    assert project.metadata.generated_at == datetime(2026, 11, 21, 9, 13, 10, 975064, UTC)


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_manifest_is_needed(version: str, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / version / "manifest.json", tmp_path)
    project = read_project(tmp_path)

    assert project.nodes
    assert (project.catalog, project.run_results, project.freshness) == ({}, [], [])


def test_a_project_without_a_name_gets_the_likely_one() -> None:
    project = read_project(FIXTURES / "v10_dbt_1_6")

    assert project.name == "shop"
    assert "does not name its project" in project.notes[0]


# --- the digest ------------------------------------------------------------------------------------


def test_the_digest_is_of_what_was_read(target: Path) -> None:
    first = read_project(target).digest
    assert first == read_project(target).digest

    (target / "sources.json").unlink()
    assert read_project(target).digest == first
    (target / "run_results.json").unlink()
    second = read_project(target).digest
    changed(target, "catalog.json", nodes={})
    assert len({first, second, read_project(target).digest}) == 3


# --- compiled or not -------------------------------------------------------------------------------


def without_sql(target: Path, *keep: str) -> Path:
    nodes = json.loads((target / "manifest.json").read_text())["nodes"]
    for unique_id, node in nodes.items():
        if unique_id not in keep:
            node.pop("compiled_code", None)
            node.pop("compiled", None)
    return changed(target, nodes=nodes)


def test_parsed_only_is_told_from_compiled(target: Path) -> None:
    check_compiled(read_project(target))
    assert read_project(target).uncompiled() == []

    project = read_project(without_sql(target, "model.shop.stg_orders"))
    check_compiled(project)  # some are compiled: the others are reported one by one
    left = {node.unique_id for node in project.uncompiled()}
    assert {"model.shop.dim_customers.v2", "snapshot.shop.orders_snapshot"} <= left
    assert "test.shop.no_negative_amount" in left
    assert not left & {"model.shop.stg_orders", "model.shop.py_model", "seed.shop.countries"}

    project = read_project(without_sql(target))
    with pytest.raises(RippleError, match="parsed this project but not compiled") as caught:
        check_compiled(project)
    assert "dbt docs generate" in caught.value.fix
    assert "--target-path" in caught.value.fix


def test_a_project_of_python_models_needs_no_compiling(tmp_path: Path) -> None:
    node = {"resource_type": "model", "language": "python"}
    project = read_project(a_manifest(tmp_path, nodes={"model.shop.a": node}))
    check_compiled(project)
    assert [(n.unique_id, n.is_python) for n in project.of_type("model")] == [
        ("model.shop.a", True)
    ]
    assert project.uncompiled() == []


def test_dbt_2_keeps_its_sql_in_files(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    node = {"resource_type": "model", "package_name": "shop", "language": "sql"}
    nodes = {
        f"model.shop.{name}": node | {"name": name, "original_file_path": f"models/{name}.sql"}
        for name in ("a", "b", "c")
    }
    metadata = {
        "dbt_schema_version": SCHEMA.format(20),
        "dbt_version": "2.0.0-preview.173",
        "project_name": "shop",
        "generated_at": now.isoformat(),
    }
    target = a_manifest(tmp_path, nodes=nodes, metadata=metadata)
    folder = target / "compiled" / "shop" / "models"
    folder.mkdir(parents=True)
    for name, age in (("a", -5), ("b", 3600)):
        (folder / f"{name}.sql").write_text("select 1 as one")
        written = now.timestamp() - age
        os.utime(folder / f"{name}.sql", (written, written))

    project = read_project(target)

    assert project.nodes["model.shop.a"].compiled_code == "select 1 as one"
    assert project.nodes["model.shop.b"].compiled_code is None  # older than the manifest
    assert project.nodes["model.shop.c"].compiled_code is None
    assert any("took the compiled SQL of 1 node" in note for note in project.notes)


# --- tolerance -------------------------------------------------------------------------------------


def one_node(folder: Path, **fields: Any) -> Project:
    node = {"name": "a", "resource_type": "model"} | fields
    return read_project(a_manifest(folder, nodes={"model.shop.a": node}))


def test_null_is_the_same_as_nothing(tmp_path: Path) -> None:
    project = one_node(
        tmp_path,
        meta=None,
        tags=None,
        columns=None,
        description=None,
        depends_on={"nodes": ["source.shop.raw.x", None], "macros": None},
        contract=None,
        config={"materialized": "table", "unique_key": None},
    )
    node = project.nodes["model.shop.a"]
    assert (node.meta, node.tags, node.columns, node.description) == ({}, [], {}, "")
    assert node.depends_on.nodes == ["source.shop.raw.x"]
    assert node.config == {"materialized": "table", "unique_key": None}
    assert not node.contract_enforced


@pytest.mark.parametrize(
    ("version", "name"), [(2, "a.v2"), (2.0, "a.v2"), (1.5, "a.v1.5"), ("x", "a.vx"), (None, "a")]
)
def test_versions_of_any_type(tmp_path: Path, version: Any, name: str) -> None:
    node = one_node(tmp_path, version=version, latest_version=version).nodes["model.shop.a"]
    assert node.display_name == name


def test_meta_and_tags_are_merged_from_wherever_dbt_says_them(tmp_path: Path) -> None:
    node = one_node(
        tmp_path,
        meta={"owner": "old", "tier": 1},
        tags=["a"],
        config={"meta": {"owner": "new"}, "tags": ["a", "b"], "group": "g", "access": "public"},
        columns={"id": {"meta": {"x": 1}, "config": {"meta": {"pii": "id"}, "tags": "key"}}},
    ).nodes["model.shop.a"]
    assert node.meta == {"owner": "new", "tier": 1}
    assert node.tags == ["a", "b"]
    assert (node.group, node.access) == ("g", "public")
    assert node.columns["id"].name == "id"
    assert node.columns["id"].meta == {"x": 1, "pii": "id"}
    assert node.columns["id"].tags == ["key"]


@pytest.mark.parametrize("tags", ["nightly", ["nightly"]])
def test_tags_may_be_one_string(tmp_path: Path, tags: Any) -> None:
    assert one_node(tmp_path, tags=tags).nodes["model.shop.a"].tags == ["nightly"]


@pytest.mark.parametrize("checksum", [None, "abc", {"name": "sha256", "checksum": "abc"}])
def test_checksums_of_any_type(tmp_path: Path, checksum: Any) -> None:
    assert one_node(tmp_path, checksum=checksum).nodes["model.shop.a"].checksum == checksum


def test_a_strange_field_is_left_out_and_said(tmp_path: Path) -> None:
    project = one_node(tmp_path, maturity=["high"], description="fine")
    node = project.nodes["model.shop.a"]
    assert (node.maturity, node.description) == (None, "fine")
    assert len(project.notes) == 1
    assert "left out `maturity` of model.shop.a" in project.notes[0]


@pytest.mark.parametrize(
    ("field", "value"), [("depends_on", "x"), ("compiled_code", 1), ("config", [])]
)
def test_a_strange_field_that_decides_lineage_is_refused(
    tmp_path: Path, field: str, value: Any
) -> None:
    node = {"name": "a", field: value}
    message = refused(a_manifest(tmp_path, nodes={"model.shop.a": node}))
    assert "model.shop.a" in message
    assert "unknown shape" in message


def test_missing_sections_and_maps(tmp_path: Path) -> None:
    nodes = {
        "model.shop.b": {"depends_on": {"nodes": ["model.shop.a", "model.gone.x"]}},
        "model.shop.a": {},
    }
    project = read_project(a_manifest(tmp_path, nodes=nodes, exposures=None))
    assert project.parents == {"model.shop.b": ["model.shop.a"], "model.shop.a": []}
    assert project.children == {"model.shop.b": [], "model.shop.a": ["model.shop.b"]}
    assert project.nodes["model.shop.a"].resource_type == "model"
    assert "1 node" in project.notes[0]
    assert "model.gone.x" in project.notes[0]


def test_an_empty_project(tmp_path: Path) -> None:
    project = read_project(a_manifest(tmp_path))
    check_compiled(project)
    assert (project.nodes, project.uncompiled()) == ({}, [])


# --- versions we do not know -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [10, 11, 12, 13, 20])
def test_versions_that_are_read(tmp_path: Path, version: int) -> None:
    node = {"resource_type": "model", "name": "a"}
    made = a_manifest(tmp_path, schema=SCHEMA.format(version), nodes={"model.shop.a": node})
    project = read_project(made)
    assert project.metadata.dbt_schema_version == SCHEMA.format(version)
    assert [n.name for n in project.of_type("model")] == ["a"]


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (SCHEMA.format(9), "too old"),
        (SCHEMA.format(1), "too old"),
        (SCHEMA.format(21), "newer"),
        (SCHEMA.format("twelve"), "not a dbt manifest of a known schema version"),
        ("https://schemas.getdbt.com/dbt/catalog/v1.json", "not a dbt manifest"),
        ("", "not a dbt manifest"),
    ],
)
def test_versions_that_are_refused(tmp_path: Path, schema: str, says: str) -> None:
    assert says in refused(a_manifest(tmp_path, schema=schema))


# --- bad input -------------------------------------------------------------------------------------


def test_no_folder(tmp_path: Path) -> None:
    assert "no such folder" in refused(tmp_path / "target")


def test_a_file_instead_of_the_folder() -> None:
    assert "not the folder" in refused(FIXTURES / "v12_dbt_1_11" / "manifest.json")


def test_no_manifest(tmp_path: Path) -> None:
    assert "no manifest.json" in refused(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "catalog.json", "run_results.json"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"not json", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b"[1, 2]", "not an object"),
        (b"null", "not an object"),
    ],
)
def test_not_the_json_it_should_be(target: Path, name: str, content: bytes, says: str) -> None:
    (target / name).write_bytes(content)
    message = refused(target)
    assert says in message
    assert name in message


@pytest.mark.parametrize("name", ["manifest.json", "catalog.json", "run_results.json"])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_json_cut_short(target: Path, name: str, share: float) -> None:
    content = (target / name).read_bytes().rstrip()
    (target / name).write_bytes(content[: int(len(content) * share)])
    assert f"{name}: JSON cut short" in refused(target)


def test_json_that_is_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "an npm package"}')
    assert "not a dbt manifest" in refused(tmp_path)


def test_a_catalog_in_the_manifests_place(target: Path) -> None:
    shutil.copy(target / "catalog.json", target / "manifest.json")
    assert "not a dbt manifest" in refused(target)


@pytest.mark.parametrize("name", ["manifest.json", "catalog.json", "run_results.json"])
def test_a_folder_in_the_files_place(target: Path, name: str) -> None:
    (target / name).unlink()
    (target / name).mkdir()
    assert "is a folder, not a file" in refused(target)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_no_permission(target: Path) -> None:
    (target / "manifest.json").chmod(0)
    assert "no permission" in refused(target)


@pytest.mark.parametrize("section", ["nodes", "sources", "macros", "parent_map", "disabled"])
def test_a_section_that_is_no_object(target: Path, section: str) -> None:
    assert f"`{section}` is not an object" in refused(changed(target, **{section: [1]}))


def test_the_catalog_of_another_project(target: Path) -> None:
    table = {"columns": {"x": {"name": "x", "type": "int", "index": 1}}}
    changed(target, "catalog.json", nodes={"model.bakery.bread": table}, sources={})
    message = refused(target)
    assert "catalog of another project" in message
    assert "model.bakery.bread" in message


def test_a_catalog_that_is_older_or_partial_is_fine(target: Path) -> None:
    table = {"columns": {"x": {"name": "x", "type": "int", "index": 1}}}
    nodes = {"model.shop.renamed_since": table, "model.shop.stg_orders": table}
    changed(target, "catalog.json", nodes=nodes, sources={})
    assert list(read_project(target).catalog) == ["model.shop.stg_orders"]
    changed(target, "catalog.json", nodes={}, sources={})
    assert read_project(target).catalog == {}


def test_run_results_of_something_else_are_ignored_and_said(target: Path) -> None:
    changed(target, "run_results.json", results=[{"unique_id": "model.bakery.bread"}])
    project = read_project(target)
    assert project.run_results == []
    assert "run_results.json" in project.notes[0]


def test_bad_utf8_in_a_name(target: Path) -> None:
    content = (target / "manifest.json").read_bytes()
    (target / "manifest.json").write_bytes(content.replace(b"from shop.", b"from \xff\xfe."))
    assert "not valid JSON" in refused(target)


MANIFEST = (FIXTURES / "v11_dbt_1_7" / "manifest.json").read_bytes()


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, len(MANIFEST) - 1), cut=st.integers(0, 40), put=st.binary(max_size=4))
def test_any_damage_is_read_or_refused_in_one_line(
    tmp_path: Path, at: int, cut: int, put: bytes
) -> None:
    (tmp_path / "manifest.json").write_bytes(MANIFEST[:at] + put + MANIFEST[at + cut :])
    try:
        read_project(tmp_path)
    except RippleError as error:
        assert "\n" not in str(error)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_field_of_any_type_is_read_or_refused_in_one_line(
    tmp_path: Path, data: st.DataObject
) -> None:
    """One value somewhere in the manifest is replaced by one of another type."""
    manifest = json.loads(MANIFEST)
    place: Any = manifest
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        deeper = place[key]
        if not isinstance(deeper, dict | list) or not deeper or data.draw(st.integers(0, 3)) == 0:
            break
        place = deeper
    place[key] = data.draw(
        st.sampled_from([None, True, 1, 1.5, "x", [], ["x"], [[1]], {}, {"x": 1}])
    )
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    try:
        project = read_project(tmp_path)
    except RippleError as error:
        assert "\n" not in str(error)
    else:
        assert project.parents.keys() == project.nodes.keys()


# --- the dbt that is installed ---------------------------------------------------------------------


@pytest.mark.slow
def test_what_the_installed_dbt_writes(tmp_path: Path) -> None:
    """One node of every kind, parsed by whatever dbt is here; needs no Spark."""
    dbt = shutil.which("dbt", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    assert dbt, "the tests' environment has dbt"
    project = Path(__file__).parent / "project"
    paths = ["--project-dir", project, "--profiles-dir", project, "--log-path", tmp_path / "logs"]
    command = [dbt, "--quiet", "parse", *map(str, paths), "--target-path", str(tmp_path)]
    env = os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    read = read_project(tmp_path)
    expected = read_project(FIXTURES / "v12_dbt_1_11")
    assert read.notes == []
    assert read.nodes.keys() == expected.nodes.keys()
    assert read.parents == expected.parents
    assert {node.name for node in read.uncompiled()} >= {"stg_orders", "no_negative_amount"}


# --- the collector ---------------------------------------------------------------------------------


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_left_as_it_was(tmp_path: Path, on: bool) -> None:
    (gc.enable if on else gc.disable)()
    try:
        read_project(a_manifest(tmp_path))
        assert gc.isenabled() is on
        refused(tmp_path / "nowhere")
        assert gc.isenabled() is on
    finally:
        gc.enable()


def test_late_only_the_manifest_is_decoded(tmp_path: Path) -> None:
    for file in (FIXTURES / "v12_dbt_1_11").glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    at_once = read_project(tmp_path)
    assert at_once == read_project(tmp_path, late=True)
    for name in ("catalog.json", "run_results.json"):
        (tmp_path / name).write_text("{")
    project = read_project(tmp_path, late=True)
    assert project.nodes == at_once.nodes
    for name, field in (
        ("catalog", "catalog"),
        ("run_results", "run_results"),
        ("run_results", "digest"),
    ):
        with pytest.raises(RippleError, match=f"{name}.json"):
            getattr(project, field)


def test_columns_of_a_catalog_are_decoded_when_asked_for(target: Path) -> None:
    odd = {"columns": {"x": {"name": "x", "type": "int", "index": None}}}
    two = {
        "columns": {
            "b": {"name": "b", "type": "int", "index": 2},
            "a": {"name": "a", "type": "int", "index": 1},
        }
    }
    nodes = {"model.shop.stg_orders": two, "model.shop.py_model": odd, "model.shop.gone": two}
    changed(target, "catalog.json", nodes=nodes, sources={"source.shop.raw.orders": {}})
    catalog = read_project(target).catalog
    assert [c.name for c in catalog["model.shop.stg_orders"]] == ["a", "b"]
    assert catalog["model.shop.stg_orders"] is catalog["model.shop.stg_orders"]
    assert [c.name for c in catalog["model.shop.py_model"]] == ["x"]  # null is nothing
    assert catalog["source.shop.raw.orders"] == []
    assert "model.shop.gone" not in catalog
    assert len(catalog) == 3


def test_a_table_of_the_catalog_that_is_no_object(target: Path) -> None:
    changed(target, "catalog.json", nodes={"model.shop.stg_orders": None, "model.shop.x": 1})
    assert "model.shop.stg_orders" not in read_project(target).catalog


def test_an_odd_type_in_a_table_of_the_catalog(target: Path) -> None:
    tables = {
        f"model.shop.{name}": {"columns": {"x": {"name": "x", "type": "int", "index": index}}}
        for name, index in (("stg_orders", 1), ("py_model", "first"), ("eph_orders", 1))
    }
    changed(target, "catalog.json", nodes=tables, sources={})
    assert [unique_id for unique_id, _ in read_project(target).catalog.items()] == list(tables)
    assert read_project(target).catalog["model.shop.py_model"] == []


def test_a_catalog_that_is_no_text(target: Path) -> None:
    table = {"columns": {"x": {"name": "x", "type": "§", "index": 1}}}
    changed(target, "catalog.json", nodes={"model.shop.stg_orders": table}, sources={})
    file = target / "catalog.json"
    text = file.read_bytes()
    file.write_bytes(text.replace("§".encode(), b"\xff").replace(b"\\u00a7", b"\xff"))
    catalog = read_project(target).catalog
    with pytest.raises(RippleError, match=r"catalog\.json: not valid JSON"):
        catalog["model.shop.stg_orders"]


def test_a_disabled_test_is_no_test(tmp_path: Path) -> None:
    """dbt keeps it in the manifest and never runs it."""
    model = {"resource_type": "model", "name": "a", "config": {"enabled": True}}
    test = {
        "resource_type": "test",
        "name": "t",
        "config": {"enabled": False},
        "depends_on": {"nodes": ["model.shop.a"]},
    }
    nodes = {"model.shop.a": model, "test.shop.t": test}
    project = read_project(a_manifest(tmp_path, nodes=nodes))
    assert list(project.nodes) == ["model.shop.a"]
    assert project.children == {"model.shop.a": []}
    assert project.disabled == ["test.shop.t"]
    test["config"] = {"enabled": True}
    assert "test.shop.t" in read_project(a_manifest(tmp_path, nodes=nodes)).nodes
