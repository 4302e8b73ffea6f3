"""A small dbt project on DuckDB, built, with the site of `dbt docs generate`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from dbt_here import run_dbt

LABEL: Final = "Revenue <img src=x onerror=alert(2)> report"
OWNER: Final = "Ann </script><script>alert(1)</script>"

FILES: Final = {
    "dbt_project.yml": """
name: shop
profile: shop
asset-paths: [pictures]
vars: {dbt_ripple: {ripple_red_below: {slo: 0.6}}}
""",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: duckdb, path: shop.duckdb}}}",
    "pictures/logo.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "seeds/raw_payments.csv": "id,order_id,amount,email\n1,1,100,a@x.example\n2,2,300,b@x.example\n",
    "models/staging/stg_payments.sql": """
select id as payment_id, order_id, amount / 100 as amount, email
from {{ ref('raw_payments') }} where amount > 0
""",
    "models/marts/orders.sql": """
select order_id, sum(amount) as total, count(*) filter (where amount < 2) as small, max(email) as contact
from {{ ref('stg_payments') }} group by order_id
""",
    "models/marts/dim_v1.sql": "select order_id from {{ ref('orders') }}",
    "models/marts/dim_v2.sql": (
        "select order_id, contact || '<b>' as contact from {{ ref('orders') }}"
    ),
    "models/schema.yml": f"""
groups:
  - name: finance
    owner: {{name: "{OWNER}", email: ann@x.example}}
seeds:
  - name: raw_payments
    columns: [{{name: email, config: {{meta: {{pii: email}}}}}}]
models:
  - name: stg_payments
    description: "Payments *as they come*: <b>all</b>."
    config: {{meta: {{owner: bob, domain: finance}}}}
    columns:
      - {{name: payment_id, description: The key., data_tests: [unique, not_null]}}
      - {{name: email, description: where one writes to}}
  - name: orders
    config: {{group: finance, meta: {{criticality: tier1, certified: true, slack: "#fin"}}}}
    columns:
      - {{name: total, data_tests: [{{not_null: {{config: {{tags: [slo]}}}}}}]}}
      - name: contact
        data_tests:
          - accepted_values:
              arguments: {{values: [a@x.example]}}
              config: {{severity: warn, tags: [slo]}}
  - name: dim
    latest_version: 2
    versions: [{{v: 1, deprecation_date: 2027-01-01}}, {{v: 2}}]
exposures:
  - name: report
    label: "{LABEL}"
    type: dashboard
    owner: {{name: carl}}
    depends_on: [ref('orders')]
""",
}


def make(folder: Path) -> Path:
    """The project in a folder: ``target`` has the site, and ``last`` the artifacts of its build."""
    for name, content in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    built, said = run_dbt(folder, "build", DBT_PROFILES_DIR=".")
    assert built, said
    shutil.copytree(folder / "target", folder / "last")
    made, said = run_dbt(folder, "docs", "generate", DBT_PROFILES_DIR=".")
    assert made, said
    return folder
