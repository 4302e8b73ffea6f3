"""Properties that change what dbt builds, each built by a real dbt: what fails, or differs, was selected."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_project
from tiny_project import dbt, write

from dbt_ripple.artifacts import read_project
from dbt_ripple.selection.result import Selection
from dbt_ripple.selection.select import select

pytestmark = pytest.mark.slow

MODEL = """
{{ config(materialized='table', meta={'floor': 5}, post_hook="update {{ this }} set amount = amount + 1 where amount > {{ model.meta.floor }}") }}
select id, amount from {{ source('raw', 'orders') }}
"""
HISTORY = """
{{ config(materialized='incremental') }}
select id from {{ source('raw', 'orders') }}
{% if is_incremental() %}where id > 100{% endif %}
"""
YML = """
sources:
  - name: raw
    schema: main
    tables: [{name: orders}]
models:
  - name: plain
    config: {materialized: table, contract: {enforced: true}}
    columns: [{name: id, data_type: integer}, {name: amount, data_type: integer}]
    data_tests: [{dbt_floor: {column: amount}}]
  - name: hooked
    data_tests: [{dbt_floor: {column: amount}}]
  - name: history
unit_tests:
  - name: adds
    model: summed
    given: [{input: "source('raw', 'orders')", rows: [{id: 1, amount: 2}]}]
    expect: {rows: [{total: 2}]}
"""
FILES = {
    "dbt_project.yml": "name: props\nversion: 1.0.0\nprofile: props\n"
    "on-run-start: \"create table if not exists main.orders as (select 1 as id, 6 as amount union all select 1, 7)\"\n",
    "profiles.yml": "props:\n  target: dev\n  outputs:\n"
    "    dev: {type: duckdb, path: props.duckdb, schema: dev, threads: 1}\n",
    "models/plain.sql": "select id, amount from {{ source('raw', 'orders') }}",
    "models/hooked.sql": MODEL,
    "models/history.sql": HISTORY,
    "models/summed.sql": "select sum(amount)::integer as total from {{ source('raw', 'orders') }}",
    "models/models.yml": YML,
    "tests/generic/dbt_floor.sql": "{% test dbt_floor(model, column) %}"
    "select {{ column }} from {{ model }} where {{ column }} > 7{% endtest %}",
}  # fmt: skip

EDITS = {
    "a check that does not hold": (
        "models/models.yml",
        "{name: id, data_type: integer}",
        "{name: id, data_type: integer, constraints: [{type: check, expression: 'id > 1'}]}",
        {"model.props.plain"},
    ),
    "a key that is none": (
        "models/models.yml",
        "{name: id, data_type: integer}",
        "{name: id, data_type: integer, constraints: [{type: unique}]}",
        {"model.props.plain"},
    ),
    "a unique index on what repeats": (
        "models/models.yml",
        "materialized: table,",
        "materialized: table, indexes: [{columns: [id], unique: true}],",
        {"model.props.plain"},
    ),
    "a declared type that is another": (
        "models/models.yml",
        "{name: amount, data_type: integer}",
        "{name: amount, data_type: varchar}",
        {"model.props.plain"},
    ),
    "an updating hook on a view": (
        "models/hooked.sql",
        "materialized='table'",
        "materialized='view'",
        {"model.props.hooked"},
    ),
    "meta that a hook reads": (
        "models/hooked.sql",
        "'floor': 5",
        "'floor': 9",
        {"test.props.dbt_floor_hooked_amount"},
    ),
    "a source that is elsewhere": (
        "models/models.yml",
        "schema: main",
        "schema: dev",
        {"unit_test.props.summed.adds", "model.props.plain"},
    ),
    "a description": ("models/models.yml", "- name: history", "- name: history\n    description: x", set()),
    "an alias of what keeps its rows": (
        "models/history.sql",
        "'incremental'",
        "'incremental', alias='history_2'",
        set(),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project, built, with its artifacts in ``state``."""
    folder = tmp_path_factory.mktemp("props") / "props"
    write(folder, FILES)
    assert not dbt(folder, "build", "--target-path", "state")  # a test of base fails
    shutil.copytree(folder / "state", folder / "built")
    assert dbt(folder, "compile", "--target-path", "state")
    tiny_project.let_go()
    yield folder
    tiny_project.let_go()


def _results(target: Path) -> dict[str, str]:
    return {r.unique_id: f"{r.status} {r.failures}" for r in read_project(target).run_results}


def _chosen(selection: Selection) -> set[str]:
    return {*selection.models, *selection.unit_tests, *(t.unique_id for t in selection.tests)}


@pytest.mark.parametrize("name", EDITS)
def test_what_differs_was_selected(name: str, deployed: Path, tmp_path: Path) -> None:
    path, old, new, expected = EDITS[name]
    folder = tmp_path / "props"
    shutil.copytree(deployed, folder)
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new))
    assert dbt(folder, "compile", "--target-path", "head")
    base, head = (read_project(folder / d).having(run_results=[]) for d in ("state", "head"))
    chosen = _chosen(select(base, head, facts=False))
    dbt(folder, "build", "--target-path", "head")
    before, after = _results(folder / "built"), _results(folder / "head")
    differ = {u for u in after if after[u] != before.get(u) and not after[u].startswith("skipped")}
    tiny_project.let_go()
    assert all(any(u.startswith(one) for u in differ) for one in expected)
    assert differ <= chosen
    if name == "a description":
        assert not chosen
