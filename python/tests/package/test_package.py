"""What can be said of the dbt package without a warehouse: it parses, and documents all it has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from column_macros import columns_of
from dbt_here import run_dbt

from dbt_ripple.graph.lineage_tables import RECORDED, TABLES

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
PACKAGE = "dbt_ripple"

PROJECT = """
name: somebody
version: 1.0.0
profile: somebody
"""
PROFILE = """
somebody:
  target: dev
  outputs:
    dev: {type: spark, method: session, host: none, schema: analytics}
"""


def _project(folder: Path, settings: str = "") -> Path:
    """Make a project of somebody's that installs the package from this clone."""
    (folder / "models").mkdir()
    # Their own models may well have the names of ours.
    (folder / "models" / "ripple_dim_nodes.sql").write_text("select 1 as theirs")
    (folder / "dbt_project.yml").write_text(PROJECT + settings)
    (folder / "profiles.yml").write_text(PROFILE)
    (folder / "packages.yml").write_text(json.dumps({"packages": [{"local": str(REPOSITORY)}]}))
    installed, output = run_dbt(folder, "deps")
    assert installed, output
    return folder


def _manifest(folder: Path, *arguments: str) -> dict[str, Any]:
    """Parse the project, every warning an error, and read what dbt made of it."""
    parsed, output = run_dbt(folder, "--warn-error", "parse", *arguments)
    assert parsed, output
    manifest: dict[str, Any] = json.loads((folder / "target" / "manifest.json").read_text())
    return manifest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _project(
        tmp_path_factory.mktemp("somebody"), "\nvars: {dbt_ripple: {ripple_parts: all}}"
    )


@pytest.fixture(scope="module")
def manifest(folder: Path) -> dict[str, Any]:
    return _manifest(folder)


def _ours(resources: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The package's resources of a kind."""
    ours = [
        resource
        for resource in resources.values()
        if resource["package_name"] == PACKAGE and resource["resource_type"] == kind
    ]
    assert ours
    return ours


def _selected_columns(sql: str) -> list[str]:
    """The columns a model's last CTE, `final`, passes on."""
    sql = re.sub(
        r"{{ columns_of\(.*?\) }}",
        lambda call: jinja2.Template(call[0]).render(columns_of=columns_of),
        sql,
        flags=re.DOTALL,
    )
    final = re.search(r"\nfinal as \(\n    select\n(.*?)\n    from ", sql, flags=re.DOTALL)
    assert final is not None
    # Eight spaces deep stand the columns; an expression over several lines ends at the same depth.
    columns = re.findall(r"^ {8}(?! )(.*?),?$", final[1], flags=re.MULTILINE)
    names = [re.split(r"[ .]", column)[-1] for column in columns]
    return [name for name in names if name not in ("case", "--")]


def test_every_model_and_every_column_is_documented(manifest: dict[str, Any]) -> None:
    for model in _ours(manifest["nodes"], "model"):
        assert model["description"], model["name"]
        assert list(model["columns"]) == _selected_columns(model["raw_code"]), model["name"]
        for column in model["columns"].values():
            assert column["description"], (model["name"], column["name"])


def test_sources_are_documented_and_hold_what_is_loaded(manifest: dict[str, Any]) -> None:
    sources = {source["name"]: source for source in _ours(manifest["sources"], "source")}
    assert list(sources) == list(TABLES | RECORDED)
    for name, source in sources.items():
        assert source["description"] and source["source_description"]
        assert tuple(source["columns"]) == (TABLES | RECORDED)[name].__struct_fields__
        assert all(column["description"] for column in source["columns"].values())


def test_macros_tests_analyses_and_exposures_are_documented(manifest: dict[str, Any]) -> None:
    for macro in _ours(manifest["macros"], "macro"):
        if "__" in macro["name"]:  # an adapter's version of a macro that is documented
            continue
        assert macro["description"], macro["name"]
        if macro["name"].startswith("materialization_"):
            continue
        signature = re.search(r"(?:macro|test) \w+\((.*?)\)", macro["macro_sql"], re.DOTALL)
        assert signature is not None
        arguments = [argument.split("=")[0].strip() for argument in signature[1].split(",")]
        declared = [argument["name"] for argument in macro["arguments"]]
        assert declared == [argument for argument in arguments if argument], macro["name"]
        assert all(argument["description"] for argument in macro["arguments"])
    for test in _ours(manifest["nodes"], "test"):
        assert test["description"] or test["test_metadata"], test["name"]
    for analysis in _ours(manifest["nodes"], "analysis"):
        assert analysis["description"], analysis["name"]
    for exposure in _ours(manifest["exposures"], "exposure"):
        assert exposure["description"] and exposure["depends_on"]["nodes"], exposure["name"]


# What lineage_kpis joins, it has twice where that has it twice. impacted_tests has a test twice where a load that it
# compares has: lineage_is_whole reads those. lineage_status is one row, of aggregates, with one of four constants.
CANNOT_BREAK_ALONE = {
    *("ripple_lineage_coverage", "ripple_median_blast_radius"),
    *("ripple_impacted_tests", "ripple_lineage_status"),
}


def test_few_tests_read_every_model_but_what_others_are_made_of(manifest: dict[str, Any]) -> None:
    tests = _ours(manifest["nodes"], "test")
    # Beside that of each rule.
    names = {model["name"] for model in _ours(manifest["nodes"], "model")}
    assert len([test for test in tests if f"ripple_{test['name']}" not in names]) <= 6
    read = {parent for test in tests for parent in test["depends_on"]["nodes"]}
    for model in _ours(manifest["nodes"], "model"):
        inner = model["name"].startswith(("ripple_int_", "stg_"))
        assert model["unique_id"] in read or inner or model["name"] in CANNOT_BREAK_ALONE, model[
            "name"
        ]


def test_names_of_theirs_are_not_mistaken_for_ours(manifest: dict[str, Any]) -> None:
    theirs = "model.somebody.ripple_dim_nodes"
    assert theirs in manifest["nodes"]
    for resources in (manifest["nodes"], manifest["exposures"]):
        for resource in resources.values():
            assert theirs not in resource["depends_on"]["nodes"], resource["unique_id"]


def test_where_things_land(manifest: dict[str, Any]) -> None:
    schemas = {model["name"]: model["schema"] for model in _ours(manifest["nodes"], "model")}
    assert set(schemas.values()) == {"analytics_ripple"}
    for source in _ours(manifest["sources"], "source"):
        assert source["schema"] == "analytics_ripple_raw"
        assert source["config"]["meta"]["file_format"] == "parquet"


def test_lineage_and_selection_are_a_dozen_relations(tmp_path: Path) -> None:
    manifest = _manifest(_project(tmp_path))
    relations = {
        model["name"]
        for model in _ours(manifest["nodes"], "model")
        if model["config"]["materialized"] != "ephemeral"
    }
    assert {"ripple_dim_nodes", "ripple_impacted_tests", "ripple_lineage_status"} <= relations
    assert len(relations) <= 12
    tests = [t["name"] for t in _ours(manifest["nodes"], "test") if t["config"]["enabled"]]
    assert sorted(tests) == ["lineage_is_whole"]


def test_all_in_one_schema_nothing_has_the_name_of_something_of_theirs(tmp_path: Path) -> None:
    """A project that ignores custom schemas, with models called as ours would be without the prefix."""
    settings = "\nvars: {dbt_ripple: {ripple_parts: all, ripple_raw_schema: analytics}}"
    folder = _project(tmp_path, settings)
    (folder / "macros").mkdir()
    (folder / "macros" / "generate_schema_name.sql").write_text(
        "{% macro generate_schema_name(name, node) %}{{ target.schema }}{% endmacro %}"
    )
    (folder / "models" / "ripple_dim_nodes.sql").unlink()
    ours = [*(REPOSITORY / "models").glob("*/ripple_*.sql")]
    names = {path.stem.removeprefix("ripple_") for path in ours} | {*TABLES, *RECORDED}
    for name in names:
        (folder / "models" / f"{name}.sql").write_text("select 1 as theirs")
    manifest = _manifest(folder)
    nodes = [*manifest["nodes"].values(), *manifest["sources"].values()]
    places = [
        (node["schema"], node.get("identifier") or node["alias"])
        for node in nodes
        if node["resource_type"] in ("model", "source")
    ]
    assert {schema for schema, _ in places} == {"analytics"}
    assert len(places) == len({*places}) > 2 * len(ours)


def test_settings_are_the_projects_to_make(tmp_path: Path) -> None:
    folder = _project(
        tmp_path,
        """
vars:
  dbt_ripple:
    ripple_parts: all
    ripple_raw_schema: shared_lineage
    ripple_file_format: delta
models:
  dbt_ripple:
    +schema: lineage
    lineage:
      +materialized: view
""",
    )
    manifest = _manifest(folder)
    for source in _ours(manifest["sources"], "source"):
        assert source["schema"] == "shared_lineage"
        assert source["config"]["meta"]["file_format"] == "delta"
    for model in _ours(manifest["nodes"], "model"):
        assert model["schema"] == "analytics_lineage"
        if model["fqn"][1] == "lineage":
            assert model["config"]["materialized"] == "view"
        if model["fqn"][1] == "lineage" or model["config"]["materialized"] == "ripple_table":
            assert model["config"]["file_format"] == "delta"


def test_switched_off_it_leaves_nothing_behind(tmp_path: Path) -> None:
    off = "\n  dbt_ripple:\n    +enabled: false\n"
    manifest = _manifest(_project(tmp_path, f"models:{off}exposures:{off}"))
    # dbt keeps some of what it switched off in the manifest, and says so in the config.
    left = [
        node["unique_id"]
        for node in [*manifest["nodes"].values(), *manifest["exposures"].values()]
        if node["package_name"] == PACKAGE and node["config"]["enabled"]
    ]
    assert left == []


def test_every_setting_is_explained() -> None:
    """Each var has a comment above it, and a line in the page that says how to install it."""
    lines = (REPOSITORY / "dbt_project.yml").read_text().splitlines()
    project = yaml.safe_load("\n".join(lines))
    page = (REPOSITORY / "docs" / "package.md").read_text()
    used = {
        name
        for path in (*REPOSITORY.glob("m*/**/*.sql"), *REPOSITORY.glob("analyses/*.sql"))
        for name in re.findall(r"\bvar\('(\w+)'", path.read_text())
    }
    settings = project["vars"][PACKAGE]
    assert used <= set(settings)
    for name in settings:
        (at,) = (number for number, line in enumerate(lines) if line.startswith(f"    {name}:"))
        above = lines[at - 1].strip()
        assert above.startswith(("#", "ripple_node:")), name
        assert f"`{name}`" in page, name


def test_yaml_is_what_dbt_on_databricks_checks_it_against() -> None:
    """dbt holds files against its JSON schemas with some adapters only, ours not among them."""
    schemas = pytest.importorskip("dbt.jsonschemas.jsonschemas", reason="dbt before 1.10")
    files = [
        path
        for folder in ("models", "macros", "analyses", "tests")
        for path in (REPOSITORY / folder).rglob("*.yml")
    ]
    assert files
    validator = schemas.CustomDraft7Validator
    for path in files:
        content = yaml.safe_load(path.read_text())
        errors = list(validator(schemas.resources_schema()).iter_errors(content))
        assert not errors, (path, errors)
    # The schema lists dbt's materializations only, and a package may bring its own.
    text = (REPOSITORY / "dbt_project.yml").read_text()
    project = yaml.safe_load(text.replace("materialized: ripple_", "materialized: "))
    assert not list(validator(schemas.project_schema()).iter_errors(project))
