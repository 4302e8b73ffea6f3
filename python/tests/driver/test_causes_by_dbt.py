"""The cause of each change: what was edited, before and after, in which file and line, by a real dbt in both modes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import tiny_project

from dbt_ripple.artifacts import read_project
from dbt_ripple.changes import compare
from dbt_ripple.changes.causes import Cause
from dbt_ripple.dbt_runner.base_ref import both_sides
from dbt_ripple.dbt_runner.invoke import DbtOptions
from dbt_ripple.graph.cache import Cache
from dbt_ripple.selection.select import select_from

pytestmark = pytest.mark.slow

FILES = {
    "dbt_project.yml": """name: lab
version: '1.0'
profile: lab
vars:
  cutoff: '2020-01-01'
  unused: 100
on-run-end:
  - "update {{ ref('inc') }} set amount = 0 where amount < 0"
models:
  lab:
    marts:
      +materialized: table
seeds:
  lab:
    raw_customers:
      +column_types: {id: integer}
""",
    "profiles.yml": """lab:
  target: dev
  outputs:
    dev: {type: duckdb, path: lab.duckdb, schema: main, threads: 1}
""",
    ".gitignore": "target/\nlogs/\n*.duckdb\n",
    "seeds/raw_customers.csv": "id,name,country\n1,Ann,DE\n2,Bob,US\n",
    "seeds/raw_orders.csv": "id,customer_id,amount,status,ordered_at\n1,1,10,paid,2021-01-01\n2,1,20,open,2021-02-01\n3,2,30,paid,2021-03-01\n",
    "macros/all.sql": """{% macro clean(c) %}trim({{ c }}){% endmacro %}

{% macro cents(c) %}{{ return(adapter.dispatch('cents', 'lab')(c)) }}{% endmacro %}

{% macro default__cents(c) %}
  cast({{ c }} as double)
  / 100
{% endmacro %}

{% macro not_called() %}1{% endmacro %}

{% test positive(model, column_name) %}
select * from {{ model }} where {{ column_name }} < 0
{% endtest %}
""",
    "models/staging/stg_customers.sql": """select
  id as customer_id,
  {{ clean('name') }} as name,
  country
from {{ ref('raw_customers') }}
""",
    "models/staging/stg_orders.sql": """select id as order_id, customer_id, {{ cents('amount') }} as amount, status, ordered_at
from {{ ref('raw_orders') }}
where ordered_at >= '{{ var("cutoff") }}'
""",
    "models/staging/stg_people.sql": "select id, name from {{ source('app', 'people') }}\n",
    "models/marts/orders.sql": "select * from {{ ref('stg_orders') }}\n",
    "models/marts/customers.sql": """select c.customer_id, c.name, sum(o.amount) as spend
from {{ ref('stg_customers') }} c
left join {{ ref('orders') }} o using (customer_id)
group by 1, 2
""",
    "models/marts/report.sql": """{{ config(
    tags=['report'],
    post_hook="delete from {{ this }} where spend < 0",
) }}
select name, spend from {{ ref('customers') }}
""",
    "models/marts/moded.sql": """select '{{ env_var("LAB_MODE", "full") }}' as mode, order_id from {{ ref('orders') }}
""",
    "models/marts/tagged.sql": """{% set found = [] %}
{% for node in graph.nodes.values() if 'report' in node.tags %}{% do found.append(node.name) %}{% endfor %}
select '{{ found | join(",") }}' as names
""",
    "models/marts/inc.sql": """{{ config(materialized='incremental', unique_key='order_id') }}
select order_id, amount from {{ ref('orders') }}
{% if is_incremental() %}
where order_id > (select max(order_id) from {{ this }})
{% endif %}
""",
    "models/marts/dim_v1.sql": "select customer_id, name from {{ ref('customers') }}\n",
    "models/marts/dim_v2.sql": "select customer_id, upper(name) as name from {{ ref('customers') }}\n",
    "models/marts/reader.sql": "select customer_id, name from {{ ref('dim') }}\n",
    "models/marts/eph.sql": """{{ config(materialized='ephemeral') }}
select order_id, amount * 2 as double_amount from {{ ref('orders') }}
""",
    "models/marts/of_eph.sql": "select order_id, double_amount from {{ ref('eph') }}\n",
    "snapshots/snap.sql": """{% snapshot snap %}
{{ config(unique_key='customer_id', strategy='check', check_cols=['name'], target_schema='main') }}
select customer_id, name from {{ ref('stg_customers') }}
{% endsnapshot %}
""",
    "tests/spend_positive.sql": "select * from {{ ref('customers') }} where spend < 0\n",
    "models/schema.yml": """version: 2
sources:
  - name: app
    schema: main
    tables:
      - name: people
        identifier: raw_customers
        columns: [{name: id, data_tests: [unique]}, {name: name}]
models:
  - name: stg_orders
    columns:
      - name: order_id
        data_tests: [unique]
      - name: status
        data_tests:
          - accepted_values:
              name: known_status
              arguments: {values: [paid, open]}
  - name: orders
    columns:
      - name: amount
        data_tests:
          - not_null
          - positive
  - name: customers
    description: one row a customer
    config:
      contract: {enforced: true}
    columns:
      - {name: customer_id, data_type: integer, data_tests: [unique]}
      - {name: name, data_type: varchar, data_tests: [not_null]}
      - {name: spend, data_type: double}
  - name: report
    columns: [{name: spend, data_tests: [not_null]}]
  - name: moded
    columns: [{name: mode, data_tests: [not_null]}]
  - name: tagged
    columns: [{name: names, data_tests: [not_null]}]
  - name: inc
    columns: [{name: order_id, data_tests: [unique]}, {name: amount, data_tests: [not_null]}]
  - name: dim
    latest_version: 1
    columns: [{name: customer_id, data_tests: [unique]}, {name: name}]
    versions:
      - v: 1
      - v: 2
  - name: reader
    columns: [{name: name, data_tests: [not_null]}]
  - name: of_eph
    columns: [{name: double_amount, data_tests: [not_null]}]
snapshots:
  - name: snap
    columns: [{name: name, data_tests: [not_null]}]
unit_tests:
  - name: reader_reads
    model: reader
    given:
      - input: ref('dim')
        rows: [{customer_id: 1, name: a}]
    expect:
      rows: [{customer_id: 1, name: a}]
""",
}
CUSTOMERS, ORDERS = "models/staging/stg_customers.sql", "models/staging/stg_orders.sql"
MARTS, YML, MACROS = "models/marts", "models/schema.yml", "macros/all.sql"


class Row(NamedTuple):
    """An edit and what its cause is; the line is that of ``at`` in the edited file, None where no line is told."""

    what: str
    file: str
    old: str
    new: str
    kind: str = ""
    name: str = ""
    before: str | None = None
    after: str | None = None
    at: str | None = None
    in_file: str | None = None
    through: list[str] = []  # noqa: RUF012


ROWS = [
    # lines of a node's own file
    Row("an expression", CUSTOMERS, "  country\n", "  upper(country) as country\n", "code", "stg_customers", "country", "upper(country) as country", "upper("),
    Row("a filter", ORDERS, ">= '", "> '", "code", "stg_orders", "where ordered_at >= '{{ var(\"cutoff\") }}'", "where ordered_at > '{{ var(\"cutoff\") }}'", "where"),
    Row("a line more", CUSTOMERS, "  country\n", "  country,\n  1 as one\n", "code", "stg_customers", "country", "country,\n  1 as one", "  country,"),
    Row("a join", f"{MARTS}/customers.sql", "left join", "join", "code", "customers", "left join {{ ref('orders') }} o using (customer_id)", "join {{ ref('orders') }} o using (customer_id)", "join"),
    Row("another ref", f"{MARTS}/orders.sql", "stg_orders", "raw_orders", "code", "orders", "select * from {{ ref('stg_orders') }}", "select * from {{ ref('raw_orders') }}", "select"),
    Row("a branch of later runs", f"{MARTS}/inc.sql", "order_id > (", "order_id >= (", "code", "inc", "where order_id > (select max(order_id) from {{ this }})", "where order_id >= (select max(order_id) from {{ this }})", "where"),
    Row("a snapshot's query", "snapshots/snap.sql", "select customer_id, name", "select customer_id, upper(name) as name", "code", "snap", "select customer_id, name from {{ ref('stg_customers') }}", "select customer_id, upper(name) as name from {{ ref('stg_customers') }}", "upper"),
    Row("an ephemeral model", f"{MARTS}/eph.sql", "* 2", "* 3", "code", "eph", "select order_id, amount * 2 as double_amount from {{ ref('orders') }}", "select order_id, amount * 3 as double_amount from {{ ref('orders') }}", "* 3"),
    Row("a singular test", "tests/spend_positive.sql", "< 0", "< 1", "code", "spend_positive", "select * from {{ ref('customers') }} where spend < 0", "select * from {{ ref('customers') }} where spend < 1", "select"),
    Row("a default of env_var", f"{MARTS}/moded.sql", '"full"', '"lite"', "code", "moded", "select '{{ env_var(\"LAB_MODE\", \"full\") }}' as mode, order_id from {{ ref('orders') }}", "select '{{ env_var(\"LAB_MODE\", \"lite\") }}' as mode, order_id from {{ ref('orders') }}", "select"),
    # config
    Row("a hook", f"{MARTS}/report.sql", "spend < 0", "spend < 1", "config", "post-hook", None, None, "post_hook"),
    Row("a strategy of a snapshot", "snapshots/snap.sql", "check_cols=['name']", "check_cols='all'", "config", "check_cols", '["name"]', "all", "config("),
    Row("a unique key", f"{MARTS}/inc.sql", "unique_key='order_id'", "unique_key='amount'", "config", "unique_key", "order_id", "amount", "config("),
    Row("a materialization of a folder", "dbt_project.yml", "+materialized: table", "+materialized: view", "config", "materialized", "table", "view", "+materialized"),
    Row("the types of a seed", "dbt_project.yml", "{id: integer}", "{id: bigint}", "config", "column_types", '{"id":"integer"}', '{"id":"bigint"}', "+column_types"),
    Row("a contract", YML, "enforced: true", "enforced: false", "config", "contract", None, None, "contract:"),
    Row("a severity", YML, "          - not_null\n", "          - not_null: {config: {severity: warn}}\n", "config", "severity", "ERROR", "warn", "not_null: {"),
    # what yml files say besides
    Row("a type of a contract", YML, "{name: spend, data_type: double}", "{name: spend, data_type: decimal}", "column", "spend.data_type", "double", "decimal", "decimal"),
    Row("a constraint", YML, "{name: spend, data_type: double}", "{name: spend, data_type: double, constraints: [{type: check, expression: spend > 0}]}", "column", "spend.constraints", "[]", None, "constraints"),
    Row("values of a test", YML, "[paid, open]", "[paid, open, lost]", "argument", "values", '["paid","open"]', '["paid","open","lost"]', "- accepted_values"),
    Row("another table of a source", YML, "identifier: raw_customers", "identifier: raw_people", "property", "identifier", "raw_customers", "raw_people", "identifier:"),
    Row("what a unit test expects", YML, "    expect:\n      rows: [{customer_id: 1, name: a}]", "    expect:\n      rows: [{customer_id: 1, name: b}]", "property", "expect", None, None, "rows: [{customer_id: 1, name: b}]"),
    Row("the latest version", YML, "latest_version: 1", "latest_version: 2", "ref", "ref('dim')", "dim.v1", "dim.v2", "latest_version"),
    Row("a new test", YML, "      - {name: spend, data_type: double}", "      - {name: spend, data_type: double, data_tests: [not_null]}", "new", "not_null_customers_spend", None, None, "spend, data_type"),
    # macros and vars
    Row("a macro", MACROS, "trim(", "upper(", "macro", "clean", None, None, "upper("),
    Row("a macro that is dispatched to", MACROS, "/ 100", "/ 1000", "macro", "default__cents", "/ 100", "/ 1000", "/ 1000", through=["cents"]),
    Row("another adapter's version of a macro", MACROS, "{% macro not_called", "{% macro duckdb__cents(c) %}{{ c }}{% endmacro %}\n{% macro not_called", "macro", "duckdb__cents", None, "{% macro duckdb__cents(c) %}{{ c }}{% endmacro %}", "duckdb__cents", through=["cents"]),
    Row("a macro of a test", MACROS, "< 0", "<= 0", "macro", "test_positive", None, None, "<= 0"),
    Row("a macro of dbt's that is replaced", MACROS, "{% macro not_called", "{% macro generate_schema_name(custom_schema_name, node) %}{{ target.schema }}_x{% endmacro %}\n{% macro not_called", "macro", "generate_schema_name", None, None, "generate_schema_name"),
    Row("a var", "dbt_project.yml", "'2020-01-01'", "'2021-01-15'", "var", "cutoff", "2020-01-01", "2021-01-15", "cutoff"),
    # seeds and hooks of a run
    Row("a value of a seed", "seeds/raw_orders.csv", "2,1,20,", "2,1,21,", "seed", "raw_orders", "2,1,20,open,2021-02-01", "2,1,21,open,2021-02-01", "2,1,21"),
    Row("a row of a seed", "seeds/raw_customers.csv", "2,Bob,US\n", "2,Bob,US\n3,Cem,TR\n", "seed", "raw_customers", None, "3,Cem,TR", "3,Cem"),
    Row("a column of a seed", "seeds/raw_customers.csv", "id,name,country\n1,Ann", "id,name,land\n1,Ann", "seed", "raw_customers", "id,name,country", "id,name,land", "id,name,land"),
    Row("a hook of the run", "dbt_project.yml", "amount < 0", "amount < 1", "hook", "lab-on-run-end-0", None, None, None, "dbt_project.yml"),
    # elsewhere
    Row("a tag that Jinja reads", f"{MARTS}/moded.sql", "select '", "{{ config(tags='report') }}\nselect '", "graph", "moded.tags", "[]", "report", "config(", f"{MARTS}/moded.sql"),
    Row("a setting of the target", "profiles.yml", "threads: 1", "threads: 1, settings: {integer_division: true}", "profile", "settings.integer_division", None, "true", None, ""),
    Row("a new model", f"{MARTS}/more.sql", "", "select 1 as one\n", "new", "more", None, None, None, f"{MARTS}/more.sql"),
]  # fmt: skip
ROWS = [row for row in ROWS if row.kind]
SILENT = [
    Row("a comment", CUSTOMERS, "  country\n", "  country -- of residence\n"),
    Row("layout", CUSTOMERS, "  country\n", "    country\n"),
    Row("a description", YML, "one row a customer", "one row for each customer"),
    Row("a var that nothing asks for", "dbt_project.yml", "unused: 100", "unused: 200"),
    Row("a macro that nothing calls", MACROS, "%}1{%", "%}2{%"),
    Row("threads of the target", "profiles.yml", "threads: 1", "threads: 2"),
    Row("a file that is no part of it", "README.md", "", "hello\n"),
]
"""Edits that change nothing: they are causes of nothing."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it is on its main branch, built, with the artifacts in ``state`` beside it."""
    folder = tmp_path_factory.mktemp("lab") / "lab"
    tiny_project.write(folder, FILES)
    tiny_project.git(folder.parent, "init", "-q", "-b", "main", str(folder))
    tiny_project.commit(folder)
    assert tiny_project.dbt(folder, "build", "--target-path", "state")
    (folder / "state").rename(folder.parent / "state")
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    with Cache(tmp_path_factory.mktemp("cache")) as opened:
        yield opened


def edited(lab: Path, row: Row, folder: Path) -> Path:
    """A copy of the project with an edit."""
    project = folder / "lab"
    shutil.copytree(lab, project, symlinks=True)
    file = project / row.file
    text = file.read_text() if row.old else ""
    assert not row.old or text.count(row.old) >= 1, row
    file.write_text(text.replace(row.old, row.new, 1) if row.old else row.new)
    return project


def causes_by_ref(project: Path, cache: Cache) -> tuple[list[Cause], set[str]]:
    """The causes of what `--base-ref` finds, and the tests that are selected without one."""
    with both_sides(project, "main", DbtOptions(), cache=cache) as sides:
        comparison = compare(sides.base, sides.head, cache=cache)
        comparison.project_dir = project
        selection = select_from(comparison)
        caused = {u for cause in selection.causes for u in cause.nodes}
        bare = {
            test.unique_id
            for test in selection.tests
            if not caused & {test.unique_id, *(v.rpartition(".")[0] for v in test.path)}
        }
    return selection.causes, bare


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_the_cause_is_what_was_edited(
    row: Row, lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    causes, bare = causes_by_ref(project, cache)
    assert [(c.kind, c.name) for c in causes] == [(row.kind, row.name)]
    (cause,) = causes
    assert not bare
    file = row.file if row.in_file is None else row.in_file
    assert (cause.file or "") == file
    if row.at is not None:
        lines = (project / file).read_text().splitlines()
        assert cause.line == next(i for i, line in enumerate(lines, 1) if row.at in line)
    if row.before is not None:
        assert cause.before == row.before
    if row.after is not None:
        assert cause.after == row.after
    assert cause.through == row.through


@pytest.mark.parametrize("row", SILENT, ids=[row.what for row in SILENT])
def test_what_changes_nothing_is_no_cause(
    row: Row, lab: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    assert causes_by_ref(project, cache) == ([], set())


@pytest.mark.parametrize("row", ROWS[::6], ids=[row.what for row in ROWS[::6]])
def test_artifacts_tell_the_same_causes(
    row: Row, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = edited(lab, row, tmp_path)
    monkeypatch.chdir(project)
    assert tiny_project.dbt(project, "compile", "--full-refresh")
    comparison = compare(read_project(lab.parent / "state"), read_project(project / "target"))
    comparison.project_dir = project
    causes = select_from(comparison).causes
    assert [(c.kind, c.name) for c in causes] == [(row.kind, row.name)]
