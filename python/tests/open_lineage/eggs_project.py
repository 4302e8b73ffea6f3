"""A project that real dbt builds on DuckDB, with each way in which a node can end."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dbt_here import run_dbt

FILES = {
    "dbt_project.yml": """
name: eggs
version: 1.0.0
profile: eggs
models:
  eggs:
    +group: farm
""",
    "profiles.yml": """
eggs:
  target: dev
  outputs:
    dev: {type: duckdb, path: "{{ env_var('EGGS_DB', 'eggs.duckdb') }}", schema: dev, threads: 1}
""",
    "seeds/raw_eggs.csv": "id,hen,grams,email\n1,ada,60,a@x.org\n2,bea,55,b@x.org\n3,ada,70,a@x.org\n",
    "models/_models.yml": """
groups:
  - name: farm
    owner: {name: farm team, email: farm@eggs.org}
sources:
  - name: market
    schema: dev
    tables:
      - name: prices
        columns: [{name: grams, data_type: integer}, {name: price, data_type: double}]
models:
  - name: eggs
    description: One row for each egg.
    config: {materialized: table, tags: [nightly]}
    meta: {contract_version: 3, criticality: tier1}
    columns:
      - name: egg_id
        description: The number on the egg.
        data_tests: [unique, not_null]
      - name: email
        meta: {pii: email}
      - name: grams
        data_tests:
          - accepted_values: {arguments: {values: [55, 60], quote: false}, config: {severity: warn}}
  - name: hens
    columns:
      - name: hen
        data_tests: [not_null, {relationships: {arguments: {to: ref('eggs'), field: hen}}}]
      - name: eggs
        data_tests:
          - accepted_values: {arguments: {values: [1], quote: false}}
unit_tests:
  - name: weighs_twice
    model: weights
    given:
      - {input: ref('eggs'), rows: [{egg_id: 1, hen: a, grams: 10, email: e}]}
    expect: {rows: [{hen: a, double_grams: 20}]}
exposures:
  - name: scales
    type: dashboard
    owner: {name: farm team}
    depends_on: [ref('hens')]
    meta: {referenced_columns: [grams]}
""",
    "models/eggs.sql": """
select id as egg_id, hen, cast(grams as integer) as grams, email from {{ ref('raw_eggs') }}
where grams > 0
""",
    "models/weights.sql": """
{{ config(materialized='ephemeral') }}
select hen, grams * 2 as double_grams from {{ ref('eggs') }}
""",
    "models/hens.sql": """
{{ config(materialized='table') }}
select hen, count(*) as eggs, sum(double_grams) as grams, md5(max(hen)) as hidden
from {{ ref('weights') }} group by hen
""",
    "models/sold.sql": """
select eggs.egg_id, prices.price
from {{ ref('eggs') }} as eggs join {{ source('market', 'prices') }} as prices using (grams)
""",
    "models/sold_later.sql": "select * from {{ ref('sold') }}\n",
    "tests/no_heavy_eggs.sql": "select egg_id from {{ ref('eggs') }} where grams > 1000\n",
}


def write(folder: Path) -> Path:
    """The project in a folder, with a git repository of its own."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    git = ("git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x.org")
    remote = "https://me:secret@git.eggs.org/farm/dbt.git"
    for arguments in (
        ("init", "--quiet"),
        ("remote", "add", "origin", remote),
        ("add", "."),
        ("commit", "--quiet", "-m", "eggs"),
    ):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    return folder


def build(folder: Path, *command: str) -> str:
    """Run dbt on it; what it says. `sold` fails, because nobody brings the prices."""
    return run_dbt(folder, *(command or ("build",)))[1]
