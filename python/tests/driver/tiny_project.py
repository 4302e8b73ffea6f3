"""A small dbt project on DuckDB in a git repository, and real dbt on it in this process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path

FILES = {
    "dbt_project.yml": """
name: tiny
version: 1.0.0
profile: tiny
vars: {cutoff: 10}
on-run-start: "{{ leave_a_mark() }}"
""",
    # A path relative to the working directory: the worktree must not have a database of its own.
    "profiles.yml": """
tiny:
  target: dev
  outputs:
    dev: {type: duckdb, path: tiny.duckdb, schema: dev, threads: 1}
    prod: {type: duckdb, path: tiny.duckdb, schema: prod, threads: 1}
""",
    ".gitignore": "target/\nlogs/\n*.duckdb\n",
    "seeds/raw_orders.csv": "id,customer,amount,status\n1,a,10,new\n2,b,20,paid\n3,a,30,paid\n",
    "models/stg_orders.sql": "select id as order_id, customer, amount, status from {{ ref('raw_orders') }}\n",
    "models/big_orders.sql": """
select order_id, amount from {{ ref('stg_orders') }} where amount > {{ var('cutoff') }}
""",
    "models/fct_customers.sql": """
select customer, {{ total('amount') }} as total from {{ ref('stg_orders') }} group by customer
""",
    "models/inc_orders.sql": """
{{ config(materialized='incremental', unique_key='order_id') }}
select order_id, status from {{ ref('stg_orders') }}
{% if is_incremental() %}where order_id > (select max(order_id) from {{ this }}){% endif %}
""",
    "models/pivoted.sql": """
select customer
{% for value in values_of(ref('stg_orders'), 'status') %}
, sum(case when status = '{{ value }}' then amount end) as {{ value }}
{% endfor %}
from {{ ref('stg_orders') }} group by customer
""",
    "macros/macros.sql": """
{% macro total(column) %}sum({{ column }}){% endmacro %}
{% macro values_of(relation, column) %}
  {% if execute %}
    {% set found = run_query('select distinct ' ~ column ~ ' from ' ~ relation ~ ' order by 1') %}
    {{ return(found.columns[0].values()) }}
  {% endif %}
  {{ return([]) }}
{% endmacro %}
{% macro leave_a_mark() %}
  {% if execute and flags.WHICH == 'compile' %}
    {% do run_query('create table marked_by_a_hook as select 1') %}
  {% endif %}
{% endmacro %}
""",
    "models/models.yml": """
models:
  - name: stg_orders
    columns:
      - name: order_id
        data_tests: [unique, not_null]
      - name: status
        data_tests: [{accepted_values: {arguments: {values: [new, paid]}}}]
  - name: fct_customers
    columns:
      - {name: customer, data_tests: [unique]}
      - {name: total, data_tests: [not_null]}
  - name: big_orders
    columns: [{name: amount, data_tests: [not_null]}]
  - name: inc_orders
    columns: [{name: status, data_tests: [not_null]}]
""",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"))


def git(folder: Path, *arguments: str) -> str:
    run = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def commit(folder: Path, message: str = "as it is") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def dbt(project: Path, *arguments: str) -> bool:
    from dbt.cli.main import dbtRunner

    here = Path.cwd()
    os.chdir(project)  # what the path of the database is relative to
    try:
        with contextlib.redirect_stdout(sys.stderr):
            result = dbtRunner().invoke(
                [
                    *("--quiet", "--no-send-anonymous-usage-stats", *arguments),
                    *("--project-dir", str(project), "--profiles-dir", str(project)),
                ]
            )
        return bool(result.success)
    finally:
        os.chdir(here)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file and link below a folder, git's own included, with a hash of what it holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(
            str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def let_go() -> None:
    """Close the DuckDB files: the next test has others of the same name."""
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager
    from dbt.adapters.factory import reset_adapters

    DuckDBConnectionManager.close_all_connections()
    reset_adapters()
