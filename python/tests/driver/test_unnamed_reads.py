"""That queries read what they do not name, and that hooks write to others, executed by dbt."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import tiny_project

from dbt_ripple.artifacts import Project, read_project
from dbt_ripple.selection.select import select

pytestmark = pytest.mark.slow

TABLE = "{{ config(materialized='table') }} "
AFTER_U = "-- depends_on: {{ ref('u') }}\n" + TABLE
AFTER_A = "-- depends_on: {{ ref('a') }}\n" + TABLE


def with_hooks(inserted: str, top: str) -> str:
    hooks = [
        f"insert into {{{{ ref('log') }}}} select {inserted} from {{{{ this }}}}",
        "insert into main.audit select id from {{ ref('u') }}",
        "create or replace macro all_of_u() as table from {{ ref('u') }}",
        f"create or replace macro top_of_u() as (select {top}(id) from {{{{ ref('u') }}}})",
        "create or replace view main.view_of_u as select * from {{ ref('u') }}",
    ]
    return f"{{{{ config(materialized='table', post_hook={hooks!r}) }}}} select id from {{{{ ref('nums') }}}}"


READS = {
    "bare_name": AFTER_U + "select id from u",
    "cte_over_it": AFTER_U + "with u as (select id from main.u) select id from u",
    "by_query_table": AFTER_U + "select id from query_table('u')",
    "by_query": AFTER_U + "select id from query('from ' || 'u')",
    "by_catalog": AFTER_U + "select column_count as id from duckdb_tables() where table_name = 'u'",
    "by_table_macro": AFTER_A + "select id from all_of_u()",
    "by_macro": AFTER_A + "select top_of_u() as id",
    "by_view": AFTER_A + "select id from main.view_of_u",
    "written_from_u": AFTER_A + "select id from {{ ref('audit') }}",
    "written_from_a": AFTER_A + "select id from {{ ref('log') }}",
    "neither": AFTER_A + "select id from {{ ref('nums') }}",
}
NUMS = "select id from {{ ref('nums') }}"
PROJECT = {
    "dbt_project.yml": "{name: tiny, version: 1.0.0, profile: tiny}",
    "profiles.yml": """
tiny:
  target: dev
  outputs:
    dev: {type: duckdb, path: tiny.duckdb, schema: main, threads: 1}
""",
    "models/nums.sql": TABLE + "select * from (values (1), (2), (3)) t(id)",
    "models/u.sql": TABLE + NUMS,
    "models/a.sql": "-- depends_on: {{ ref('audit') }}\n" + with_hooks("id", "max"),
    "models/log.sql": TABLE + "select 0 as id",
    "models/audit.sql": TABLE + "select 0 as id",
    **{f"models/{name}.sql": sql for name, sql in READS.items()},
    **{f"tests/of_{name}.sql": f"select id from {{{{ ref('{name}') }}}}" for name in READS},
}
OF_U = {"of_" + name for name in READS} - {"of_written_from_a", "of_neither"}
EDITS = {
    "u": ({"models/u.sql": TABLE + NUMS.replace("id", "id, 1 as more") + " where id < 3"}, OF_U),
    "the hooks": (
        {"models/a.sql": PROJECT["models/a.sql"].replace("select id from {{ this", "select id + 1 from {{ this").replace("max(", "min(")},
        {"of_by_macro", "of_written_from_a"},
    ),
}  # fmt: skip


def built(folder: Path, edit: dict[str, str]) -> tuple[Project, dict[str, object]]:
    """The project as dbt has built it, and what each of its tests finds."""
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager

    tiny_project.write(folder, {**PROJECT, **edit})
    tiny_project.dbt(folder, "build")  # tests that find rows fail
    DuckDBConnectionManager.close_all_connections()
    with duckdb.connect(str(folder / "tiny.duckdb")) as connection:
        rows = {f"of_{n}": sorted(connection.execute(f"from main.{n}").fetchall()) for n in READS}
    return read_project(folder / "target"), rows


def test_what_changes_is_selected(tmp_path: Path) -> None:
    base, before = built(tmp_path / "base", {})
    for number, (edit, changed) in enumerate(EDITS.values()):
        head, after = built(tmp_path / str(number), edit)
        assert {test for test in before if before[test] != after[test]} == changed
        selected = {test.name for test in select(base, head).tests}
        assert changed <= selected
        # It refers to `a`, whose hooks refer to the rest: what no SQL names counts whole.
        assert "of_neither" in selected
    assert select(base, read_project(tmp_path / "base" / "target")).tests == []


ON_RUN = [
    "create schema if not exists extra",
    "create or replace table extra.limits as select 2 as id",
    "create or replace macro top() as (select max(id) from extra.limits)",
    "comment on table extra.limits is 'mine'",
]
OF_HOOKS = {
    "limits": "select id from extra.limits",
    "by_top": "select top() as id",
    "plain": "select 1 as id",
}
OF_RUNS = {
    name: PROJECT[name] for name in ("dbt_project.yml", "profiles.yml", "models/nums.sql")
} | {
    **{f"models/{name}.sql": TABLE + sql for name, sql in OF_HOOKS.items()},
    **{f"tests/of_{name}.sql": f"select id from {{{{ ref('{name}') }}}}" for name in OF_HOOKS},
}


def run_with(folder: Path, hooks: list[str]) -> tuple[Project, dict[str, object]]:
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager

    project_yml = f"{{name: tiny, version: 1.0.0, profile: tiny, on-run-start: {hooks!r}}}"
    tiny_project.write(folder, {**OF_RUNS, "dbt_project.yml": project_yml.replace("\\'", "''")})
    tiny_project.dbt(folder, "build")
    DuckDBConnectionManager.close_all_connections()
    with duckdb.connect(str(folder / "tiny.duckdb")) as connection:
        held = {f"of_{n}": connection.execute(f"from main.{n}").fetchall() for n in OF_HOOKS}
    return read_project(folder / "target"), held


def test_what_an_edited_on_run_hook_writes_is_followed(tmp_path: Path) -> None:
    base, before = run_with(tmp_path / "base", ON_RUN)
    edits = {
        "the table": [sql.replace("2 as id", "3 as id") for sql in ON_RUN],
        "the macro": [sql.replace("max(id)", "max(id) + 1") for sql in ON_RUN],
        "a schema in front": ["create schema if not exists another", *ON_RUN[:3]],
    }
    expected = [{"of_limits", "of_by_top"}, {"of_by_top"}, set[str]()]
    for number, hooks in enumerate(edits.values()):
        head, after = run_with(tmp_path / str(number), hooks)
        changed = {test for test in before if before[test] != after[test]}
        assert changed == expected[number]
        assert {test.name for test in select(base, head).tests} == changed
