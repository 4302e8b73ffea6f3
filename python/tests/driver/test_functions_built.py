"""Functions that dbt builds, each edited and built on DuckDB: the columns that come out otherwise are those that are said to change."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import tiny_project
from caused_edits import FILES
from test_causes_executed import let_go

from dbt_ripple.artifacts import read_project
from dbt_ripple.changes import compare
from dbt_ripple.selection.select import select_from

pytestmark = pytest.mark.slow

CALL = "{{ function('bumped') }}(customer_id)"
MODELS = {
    "called": f"select order_id, {CALL} as n, amount as a from {{{{ ref('base') }}}}",
    "below": "select order_id, n::varchar as n, a from {{ ref('called') }}",
    "filtered": f"select order_id, amount as a from {{{{ ref('base') }}}} where {CALL} > 2",
    "grouped": f"select {CALL} as order_id, sum(amount) as a from {{{{ ref('base') }}}} group by 1",
    "unread": f"with c as (select {CALL} as n from {{{{ ref('base') }}}}) select order_id, amount as a from {{{{ ref('base') }}}}",
    "of_capitals": "select order_id, MAIN.Bumped(customer_id) as n, amount as a from {{ ref('base') }} -- {{ function('bumped') }}",
    "of_macro": "select order_id, {{ by_macro('customer_id') }} as n, amount as a from {{ ref('base') }}",
    "of_both": "select order_id, {{ function('bumped') }}(customer_id) as n, {{ function('other') }}(customer_id) as a from {{ ref('base') }}",
    "of_twice": "select order_id, {{ function('twice') }}(customer_id) as n, amount as a from {{ ref('base') }}",
    "by_hook": "{{ config(post_hook=\"update {{ this }} set a = {{ function('bumped') }}(a)\") }} select order_id, {{ function('bumped') }}(customer_id) as n, amount as a from {{ ref('base') }}",
    "eph": "{{ config(materialized='ephemeral') }} select order_id, {{ function('bumped') }}(customer_id) as n, amount as a from {{ ref('base') }}",
    "of_eph": "select order_id, n, a from {{ ref('eph') }}",
    "apart": "select order_id, amount as a from {{ ref('base') }}",
}
PROJECT = {
    "dbt_project.yml": "name: calls\nversion: '1.0'\nprofile: calls\nmodels:\n  +materialized: table\n",
    "profiles.yml": FILES["profiles.yml"].replace("lab", "calls"),
    "macros/functions.sql": FILES["macros/functions.sql"],
    "macros/by_macro.sql": "{% macro by_macro(c) %}{{ function('bumped') }}({{ c }}){% endmacro %}\n",
    "functions/bumped.sql": "x + 1\n",
    "functions/other.sql": "{{ config(schema='far', alias='bumped') }}x + 3\n",
    "functions/twice.sql": "2 * {{ function('bumped') }}(x)\n",
    "functions/functions.yml": "functions:\n"
    + "".join(
        f"  - name: {name}\n    arguments: [{{name: x, data_type: integer}}]\n    returns: {{data_type: integer}}\n"
        for name in ("bumped", "other", "twice")
    ),
    "models/base.sql": "select * from (values (1, 1, 10), (2, 1, 20), (3, 2, 30)) t (order_id, customer_id, amount)\n",
    **{f"models/{name}.sql": sql for name, sql in MODELS.items()},
    "tests/apart.sql": "select * from {{ ref('called') }} where a is null\n",
    "tests/n.sql": "select * from {{ ref('called') }} where n is null\n",
}
N = {"n"}
OF_BUMPED = {
    **dict.fromkeys(("called", "below", "of_capitals", "of_macro", "of_both", "of_twice"), N),
    **dict.fromkeys(("eph", "of_eph"), N),
    "filtered": {"*"},
    "grouped": {"order_id", "a", "*"},
    "by_hook": {"n", "a", "order_id", "*"},  # what a hook updates may be any of it
}
EDITS = [
    ("bumped", "x + 1", "x + 2", OF_BUMPED),
    ("bumped", "x + 1", "(x + 1)::bigint", OF_BUMPED),
    ("other", "x + 3", "x + 4", {"of_both": {"a"}}),
    ("twice", "2 *", "3 *", {"of_twice": N}),
]
Columns = dict[str, tuple[str, list[object]]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    project = tmp_path_factory.mktemp("functions") / "calls"
    tiny_project.write(project, PROJECT)
    assert tiny_project.dbt(project, "build")
    yield project
    let_go()


def contents(project: Path) -> dict[str, Columns]:
    """The type and the values of each column of each table, in the order of the first one; ``*`` has how many rows."""
    let_go()
    found: dict[str, Columns] = {}
    with duckdb.connect(str(project / "calls.duckdb"), read_only=True) as connection:
        for name in MODELS:
            if name == "eph":
                continue
            table = connection.sql(f"from main.{name} order by order_id")
            rows = table.fetchall()
            types = zip(table.columns, map(str, table.types), zip(*rows, strict=True), strict=True)
            found[name] = {column: (kind, [*values]) for column, kind, values in types}
            found[name]["*"] = "", [len(rows)]
    return found


@pytest.mark.parametrize(("function", "old", "new", "said"), EDITS)
def test_the_columns_that_come_out_otherwise_are_said(
    function: str, old: str, new: str, said: dict[str, set[str]], built: Path, tmp_path: Path
) -> None:
    let_go()
    project = tmp_path / "calls"
    shutil.copytree(built, project)
    file = project / "functions" / f"{function}.sql"
    file.write_text(file.read_text().replace(old, new))
    assert tiny_project.dbt(project, "build")
    comparison = compare(read_project(built / "target"), read_project(project / "target"))
    changed = {
        unique_id.rpartition(".")[2]: {*change.redefined, *(["*"] if change.rows else [])}
        for unique_id, change in comparison.changed.items()
    }
    assert changed == said
    before, now = contents(built), contents(project)
    differ = {
        name: {c for c in now[name] if now[name][c] != before[name][c]} - {"*"} for name in now
    }
    for name, columns in differ.items():
        # Of other rows each column shows other values.
        assert columns <= changed.get(name, set()) or "*" in changed[name]
    certain = {"called", "below", "of_capitals", "of_macro", "of_twice", "of_eph"} & said.keys()
    cast = {"below"} if "::" in new else set()  # it makes the same text of both types
    assert all(differ[name] == said[name] for name in certain - cast)
    selection = select_from(comparison)
    assert [test.name for test in selection.tests] == (["n"] if function == "bumped" else [])
    assert [(c.kind, c.name) for c in selection.causes] == [("code", function)]
