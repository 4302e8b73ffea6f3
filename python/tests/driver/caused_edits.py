"""Edits of a small dbt project, each with its cause: what was edited, where, and what stood there before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import tiny_project

from dbt_ripple.changes.causes import Cause
from dbt_ripple.changes.compare import Comparison
from dbt_ripple.selection.select import select_from

FILES = {
    "dbt_project.yml": """name: lab
version: '1.0'
profile: lab
vars:
  cutoff: '2020-01-01'
  unused: 100
dispatch:
  - {macro_namespace: util, search_order: [lab, util]}
on-run-start:
  - "{{ audit() }}"
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
    ".gitignore": "target/\nlogs/\n*.duckdb\ndbt_packages/\npackage-lock.yml\n",
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
    "packages.yml": "packages:\n  - local: util\n",
    "util/dbt_project.yml": "name: util\nversion: '1.0.0'\nvars: {step: 1}\n",
    "util/macros/util.sql": """{% macro plus(c) %}{{ c }} + {{ var('step', 1) }}{% endmacro %}

{% macro label(c) %}{{ return(adapter.dispatch('label', 'util')(c)) }}{% endmacro %}

{% macro default__label(c) %}lower({{ c }}){% endmacro %}

{% macro sign(c) %}{{ return(adapter.dispatch('sign', 'util')(c)) }}{% endmacro %}

{% macro default__sign(c) %}sign({{ c }}){% endmacro %}
""",
    "util/models/of_util.sql": "select {{ util.plus(1) }} as two\n",
    "macros/functions.sql": """{% macro duckdb__scalar_function_sql(target_relation) %}
create or replace macro {{ target_relation.schema }}.{{ target_relation.identifier }}(x) as
  ({{ model.compiled_code }})
{% endmacro %}
""",
    "macros/values.sql": """{% macro with_macro(f, c) %}{{ f(c) }}{% endmacro %}

{% macro shout(c) %}upper({{ c }}){% endmacro %}

{% macro default__sign(c) %}abs({{ c }}){% endmacro %}

{% macro audit() %}select 1 as audited{% endmacro %}

{% macro columns_of(relation) %}
  {% if execute %}
    {{ return(adapter.get_columns_in_relation(relation) | map(attribute='name') | list) }}
  {% endif %}
  {{ return([]) }}
{% endmacro %}
""",
    "functions/bumped.sql": "x + 1\n",
    "functions/functions.yml": """functions:
  - name: bumped
    arguments: [{name: x, data_type: integer}]
    returns: {data_type: integer}
""",
    "data/prices.csv": "sku,price\n1,10\n2,20\n",
    "models/marts/bumps.sql": "select order_id, {{ function('bumped') }}(customer_id) as bumped from {{ ref('stg_orders') }}\n",
    "models/marts/priced.sql": "select sku, price from read_csv('data/prices.csv')\n",
    "models/marts/valued.sql": """select customer_id, {{ with_macro(shout, 'name') }} as loud, {{ util.label('name') }} as label,
  {{ util.sign('customer_id') }} as sign
from {{ ref('stg_customers') }}
""",
    "models/marts/described.sql": """select {% for name, column in model.columns.items() %}'{{ column.meta.get('unit', name) }}' as {{ name }}{% endfor %}
""",
    "models/marts/targeted.sql": "select '{{ target.name }}' as target, {{ util.plus(1) }} as two\n",
    "models/marts/listed.sql": "select {{ columns_of(ref('stg_customers')) | length }} as n\n",
    "models/marts/pym.py": """def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("stg_customers").filter("country = 'DE'")
""",
    "models/exposures.yml": """exposures:
  - name: board
    type: dashboard
    owner: {name: Ann, email: ann@example.org}
    depends_on: [ref('report')]
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
  - name: bumps
    columns: [{name: order_id, data_tests: [unique]}, {name: bumped, data_tests: [not_null]}]
  - name: priced
    columns: [{name: price, data_tests: [not_null]}]
  - name: valued
    columns: [{name: loud, data_tests: [not_null]}, {name: label, data_tests: [not_null]}]
  - name: described
    columns: [{name: grams, meta: {unit: g}, data_tests: [not_null]}]
  - name: targeted
    columns: [{name: target, data_tests: [not_null]}, {name: two, data_tests: [not_null]}]
  - name: listed
    columns: [{name: n, data_tests: [not_null]}]
  - name: pym
    columns: [{name: name, data_tests: [not_null]}]
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
    others: list[tuple[str, str]] = []  # noqa: RUF012
    of_state: str = ""
    """The kind with `--state`, where artifacts tell less: "none", or another kind."""


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
    Row("the types of a seed", "dbt_project.yml", "{id: integer}", "{id: bigint}", "config", "column_types.id", "integer", "bigint", "+column_types"),
    Row("a contract", YML, "enforced: true", "enforced: false", "config", "contract.enforced", "true", "false", "contract:"),
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
    Row("a setting of the target", "profiles.yml", "threads: 1", "threads: 1, settings: {integer_division: true}", "profile", "settings.integer_division", None, "true", None, "", of_state="none"),
    Row("a new model", f"{MARTS}/more.sql", "", "select 1 as one\n", "new", "more", None, None, None, f"{MARTS}/more.sql"),
    # more lines
    Row("a CTE", f"{MARTS}/customers.sql", "select c.customer_id", "with x as (select 1 as one)\nselect c.customer_id", "code", "customers", None, "with x as (select 1 as one)", "with x"),
    Row("a limit", f"{MARTS}/report.sql", "from {{ ref('customers') }}", "from {{ ref('customers') }}\nlimit 1", "code", "report", None, "limit 1", "limit"),
    Row("a distinct", f"{MARTS}/dim_v1.sql", "select customer_id", "select distinct customer_id", "code", "dim.v1", None, None, "distinct"),
    Row("a line less", CUSTOMERS, ",\n  country\n", "\n", "code", "stg_customers", None, None, "name"),
    Row("a Python model", f"{MARTS}/pym.py", "'DE'", "'US'", "code", "pym", None, None, "US"),
    Row("a Jinja loop", f"{MARTS}/tagged.sql", "'report' in", "'reports' in", "code", "tagged", None, None, "reports"),
    Row("a condition on the target", f"{MARTS}/targeted.sql", "'{{ target.name }}'", "'{{ target.name | upper }}'", "code", "targeted", None, None, "upper"),
    Row("a file a query reads by another name", f"{MARTS}/priced.sql", "prices.csv", "./prices.csv", "code", "priced", None, None, "prices"),
    Row("an order", f"{MARTS}/report.sql", "from {{ ref('customers') }}", "from {{ ref('customers') }} order by spend", "code", "report", None, None, "order by"),
    Row("another source", "models/staging/stg_people.sql", "id, name", "id, upper(name) as name", "code", "stg_people", None, None, "upper"),
    Row("a macro of a package called with another column", f"{MARTS}/valued.sql", "util.label('name')", "util.label('loud')", "code", "valued", None, None, "util.label"),
    # config again
    Row("an alias", f"{MARTS}/report.sql", "tags=['report'],", "tags=['report'], alias='reported',", "config", "alias", None, "reported", "alias="),
    Row("a schema", f"{MARTS}/report.sql", "tags=['report'],", "tags=['report'], schema='reports',", "config", "schema", None, "reports", "schema="),
    Row("a schema of a folder", "dbt_project.yml", "+materialized: table", "+materialized: table\n      +schema: marts", "config", "schema", None, "marts", "+schema"),
    Row("a pre-hook", f"{MARTS}/inc.sql", "unique_key='order_id'", "unique_key='order_id', pre_hook='delete from {{ this }} where amount is null'", "config", "pre-hook", None, None, "pre_hook"),
    Row("an incremental strategy", f"{MARTS}/inc.sql", "unique_key='order_id'", "unique_key='order_id', incremental_strategy='append'", "config", "incremental_strategy", None, "append", "config("),
    Row("what happens to new columns", f"{MARTS}/inc.sql", "unique_key='order_id'", "unique_key='order_id', on_schema_change='append_new_columns'", "config", "on_schema_change", "ignore", "append_new_columns", "config("),
    Row("a full refresh that is forbidden", f"{MARTS}/inc.sql", "unique_key='order_id'", "unique_key='order_id', full_refresh=false", "config", "full_refresh", None, "false", "config("),
    Row("a header", f"{MARTS}/report.sql", "tags=['report'],", "tags=['report'], sql_header='set threads = 2;',", "config", "sql_header", None, "set threads = 2;", "sql_header"),
    Row("a model that is disabled", f"{MARTS}/of_eph.sql", "select", "{{ config(enabled=false) }}\nselect", "removed", "of_eph", None, None, None),
    Row("a delimiter of a seed", "dbt_project.yml", "      +column_types: {id: integer}", "      +column_types: {id: integer}\n      +delimiter: ';'", "config", "delimiter", ",", ";", "+delimiter"),
    Row("a materialization in yml", YML, "  - name: report\n", "  - name: report\n    config: {materialized: view}\n", "config", "materialized", "table", "view", "materialized: view"),
    Row("a filter of a test", YML, "          - positive\n", "          - positive: {config: {where: amount > 1}}\n", "config", "where", None, "amount > 1", "where:"),
    Row("a limit of a test", YML, "          - positive\n", "          - positive: {config: {limit: 10}}\n", "config", "limit", None, "10", "limit:"),
    Row("when a test warns", YML, "          - positive\n", "          - positive: {config: {error_if: '>5'}}\n", "config", "error_if", "!= 0", ">5", "error_if"),
    Row("what a test counts", YML, "          - positive\n", "          - positive: {config: {fail_calc: max(amount)}}\n", "config", "fail_calc", "count(*)", "max(amount)", "fail_calc"),
    Row("failures that are stored", YML, "          - positive\n", "          - positive: {config: {store_failures: true}}\n", "config", "store_failures", None, "true", "store_failures"),
    Row("a config of all tests", "dbt_project.yml", "seeds:\n", "data_tests:\n  +limit: 5\nseeds:\n", "config", "limit", None, "5", "+limit"),
    Row("a config by a var", f"{MARTS}/report.sql", "tags=['report'],", "tags=['report'], materialized=var('how', 'view'),", "config", "materialized", "table", None, "materialized"),
    # yml again
    Row("values of a unit test", YML, "rows: [{customer_id: 1, name: a}]\n    expect", "rows: [{customer_id: 2, name: a}]\n    expect", "property", "given", None, None, None),
    Row("another schema of a source", YML, "    schema: main\n", "    schema: raw\n", "property", "schema", "main", "raw", "schema:"),
    Row("a contract that is promised", YML, "  - name: reader\n    columns: [{name: name,", "  - name: reader\n    config: {contract: {enforced: true}}\n    columns: [{name: customer_id, data_type: integer}, {name: name, data_type: varchar,", "config", "contract.enforced", "false", "true", "contract: {enforced: true}}", others=[("column", "name.data_type"), ("column", "customer_id.data_type")]),
    Row("a column that is renamed in a contract", YML, "{name: spend, data_type: double}", "{name: spent, data_type: double}", "column", "spend.data_type", "double", None, None, others=[("column", "spent.data_type")]),
    Row("a test of another column", YML, "columns: [{name: spend, data_tests: [not_null]}]", "columns: [{name: name, data_tests: [not_null]}]", "new", "not_null_report_name", None, None, None),
    Row("a test of another kind", YML, "columns: [{name: spend, data_tests: [not_null]}]", "columns: [{name: spend, data_tests: [unique]}]", "new", "unique_report_spend", None, None, None),
    Row("meta that Jinja reads", YML, "meta: {unit: g}", "meta: {unit: kg}", "column", "grams.meta", None, None, "kg"),
    Row("a foreign key", YML, "{name: customer_id, data_type: integer, data_tests: [unique]}", "{name: customer_id, data_type: integer, data_tests: [unique], constraints: [{type: foreign_key, to: ref('stg_customers'), to_columns: [customer_id]}]}", "column", "customer_id.constraints", None, None, "foreign_key"),
    Row("what a function returns", "functions/functions.yml", "returns: {data_type: integer}", "returns: {data_type: bigint}", "property", "returns", None, None, "returns"),
    Row("an argument of a function", "functions/functions.yml", "{name: x, data_type: integer}", "{name: x, data_type: bigint}", "property", "arguments", None, None, "arguments"),
    Row("a function's body", "functions/bumped.sql", "x + 1", "x + 2", "code", "bumped", "x + 1", "x + 2", "x + 2"),
    # macros again
    Row("a macro passed as a value", "macros/values.sql", "upper({{ c }})", "lower({{ c }})", "macro", "shout", None, None, "lower("),
    Row("a macro that calls what it is given", "macros/values.sql", "{{ f(c) }}", "trim({{ f(c) }})", "macro", "with_macro", None, None, "trim("),
    Row("a macro of a package", "util/macros/util.sql", "{{ c }} + ", "{{ c }} - ", "macro", "util.plus", None, None, None, "util/macros/util.sql"),
    Row("a macro a package dispatches to", "util/macros/util.sql", "lower({{ c }})", "trim({{ c }})", "macro", "util.default__label", None, None, None, "util/macros/util.sql", through=["label"]),
    Row("a package's macro that the project replaces", MACROS, "{% macro not_called", "{% macro default__label(c) %}upper({{ c }}){% endmacro %}\n{% macro not_called", "macro", "default__label", None, None, "default__label", through=["label"]),
    Row("the order of dispatch", "dbt_project.yml", "search_order: [lab, util]", "search_order: [util, lab]", "dispatch", "dispatch", '[{"macro_namespace":"util","search_order":["lab","util"]}]', '[{"macro_namespace":"util","search_order":["util","lab"]}]', "search_order", of_state="compiled"),
    Row("a default of a macro's argument", MACROS, "{% macro clean(c) %}trim({{ c }})", "{% macro clean(c, d='x') %}trim({{ c }}, d)", "macro", "clean", None, None, "clean("),
    Row("a macro that asks the warehouse", "macros/values.sql", "map(attribute='name')", "map(attribute='dtype')", "macro", "columns_of", None, None, "dtype"),
    Row("a macro that makes functions", "macros/functions.sql", "({{ model.compiled_code }})", "(1 + {{ model.compiled_code }})", "macro", "duckdb__scalar_function_sql", None, None, "compiled_code"),
    Row("a macro that replaces one of dbt's for tests", MACROS, "{% macro not_called", "{% macro default__test_not_null(model, column_name) %}select 1 from {{ model }} where {{ column_name }} is null{% endmacro %}\n{% macro not_called", "macro", "default__test_not_null", None, None, "default__test_not_null", through=['test_not_null']),
    Row("a macro that names relations", MACROS, "{% macro not_called", "{% macro generate_alias_name(custom_alias_name, node) %}{{ node.name }}{% if node.config.materialized != 'ephemeral' %}_{{ node.version or 0 }}{% endif %}{% endmacro %}\n{% macro not_called", "macro", "generate_alias_name", None, None, "generate_alias_name"),
    Row("a ref of the project's own", MACROS, "{% macro not_called", "{% macro ref(name) %}{{ return(builtins.ref(name, *varargs, **kwargs)) }}{% endmacro %}\n{% macro not_called", "macro", "ref", None, None, "macro ref"),
    Row("a macro is gone", MACROS, "{% macro default__cents(c) %}\n  cast({{ c }} as double)\n  / 100\n{% endmacro %}\n", "{% macro duckdb__cents(c) %}{{ c }}{% endmacro %}\n", "macro", "default__cents", None, None, None, others=[("macro", "duckdb__cents")]),
    # vars and files
    Row("a var of a package", "util/dbt_project.yml", "step: 1", "step: 2", "var", "step", "1", "2", None, "", of_state="var"),
    Row("a var of a package in the project", "dbt_project.yml", "  unused: 100", "  unused: 100\n  util: {step: 3}", "var", "step", "1", "3", "step: 3", of_state="var"),
    Row("a default of var", ORDERS, 'var("cutoff")', 'var("cutof", "2020-01-02")', "code", "stg_orders", None, None, "cutof"),
    Row("a file that a query reads", "data/prices.csv", "2,20", "2,21", "file", "data/prices.csv", None, None, None, "data/prices.csv", of_state="none"),
    Row("a last line of a seed", "seeds/raw_customers.csv", "\n2,Bob,US\n", "\n", "seed", "raw_customers", "2,Bob,US", None, None),
    Row("a value to nothing in a seed", "seeds/raw_customers.csv", "2,Bob,US", "2,,US", "seed", "raw_customers", "2,Bob,US", "2,,US", "2,,US"),
    # hooks of the run
    Row("a hook at the start", "dbt_project.yml", '"{{ audit() }}"', "\"delete from {{ ref('inc') }}\"", "hook", "lab-on-run-start-0", None, None, None, "dbt_project.yml"),
    Row("a hook of a run is gone", "dbt_project.yml", "on-run-end:\n  - \"update {{ ref('inc') }} set amount = 0 where amount < 0\"\n", "", "removed", "lab-on-run-end-0", None, None, None),
    # the target
    Row("another setting of the target", "profiles.yml", "threads: 1", "threads: 1, settings: {preserve_insertion_order: false}", "profile", "settings.preserve_insertion_order", None, "false", None, "", of_state="none"),
    Row("a setting whose meaning is not known", "profiles.yml", "threads: 1", "threads: 1, keep_open: true", "profile", "keep_open", None, "true", None, "", of_state="none"),
    # nodes
    Row("a model is gone", f"{MARTS}/of_eph.sql", "select order_id, double_amount from {{ ref('eph') }}\n", "", "removed", "of_eph", None, None, None),
    Row("a new seed", "seeds/more.csv", "", "id\n1\n", "new", "more", None, None, None, "seeds/more.csv"),
    Row("a new singular test", "tests/more.sql", "", "select * from {{ ref('orders') }} where amount is null\n", "new", "more", None, None, None, "tests/more.sql"),
]  # fmt: skip
SILENT = [
    Row("a comment", CUSTOMERS, "  country\n", "  country -- of residence\n"),
    Row("layout", CUSTOMERS, "  country\n", "    country\n"),
    Row("a description", YML, "one row a customer", "one row for each customer"),
    Row("a var that nothing asks for", "dbt_project.yml", "unused: 100", "unused: 200"),
    Row("a macro that nothing calls", MACROS, "%}1{%", "%}2{%"),
    Row("threads of the target", "profiles.yml", "threads: 1", "threads: 2"),
    Row("a file that is no part of it", "README.md", "", "hello\n"),
    Row(
        "a tag that nothing reads",
        f"{MARTS}/customers.sql",
        "select",
        "{{ config(tags='x') }}\nselect",
    ),
    Row(
        "meta that nothing reads",
        YML,
        "description: one row a customer",
        "description: one row a customer\n    meta: {a: b}",
    ),
    Row("a comment of Jinja", CUSTOMERS, "  country\n", "  country {# of residence #}\n"),
    Row("a comment of Jinja in a macro", MACROS, "trim({{ c }})", "trim({{ c }}){# no space #}"),
    Row(
        "an argument that is set as it was by default",
        f"{MARTS}/inc.sql",
        "unique_key='order_id'",
        "unique_key='order_id', on_schema_change='ignore'",
    ),
    Row(
        "a materialization that is said once more",
        f"{MARTS}/report.sql",
        "tags=['report'],",
        "tags=['report'], materialized='table',",
    ),
    Row(
        "the description of an exposure",
        "models/exposures.yml",
        "type: dashboard",
        "type: dashboard\n    description: of the board",
    ),
    Row(
        "a package's macro with a name of dbt's",
        "util/macros/util.sql",
        "{% macro plus",
        "{% macro current_timestamp() %}now(){% endmacro %}\n{% macro ref(a) %}x{% endmacro %}\n{% macro plus",
    ),
    Row(
        "a package's macro that names relations",
        "util/macros/util.sql",
        "{% macro plus",
        "{% macro generate_schema_name(a, node) %}x{% endmacro %}\n{% macro plus",
    ),
    Row(
        "a package's macro that nothing calls",
        "util/macros/util.sql",
        "{% macro plus",
        "{% macro more() %}x{% endmacro %}\n{% macro plus",
    ),
    Row("a version of a package", "util/dbt_project.yml", "1.0.0", "1.0.1"),
    Row("a version of the project", "dbt_project.yml", "'1.0'", "'1.1'"),
    Row(
        "a comment of queries",
        "dbt_project.yml",
        "dispatch:",
        "query-comment: run by us\ndispatch:",
    ),
    Row(
        "freshness of a source",
        YML,
        "        identifier: raw_customers",
        "        identifier: raw_customers\n        freshness: {warn_after: {count: 1, period: day}}\n        loaded_at_field: id",
    ),
    Row(
        "a type without a contract",
        YML,
        "{name: price, data_tests",
        "{name: price, data_type: integer, data_tests",
    ),
    Row(
        "keys of yml in another order",
        YML,
        "{name: price, data_tests: [not_null]}",
        "{data_tests: [not_null], name: price}",
    ),
    Row(
        "a dbt version that is required",
        "dbt_project.yml",
        "dispatch:",
        "require-dbt-version: '>=1.0.0'\ndispatch:",
    ),
    Row(
        "a var that has a default there",
        "dbt_project.yml",
        "  unused: 100",
        "  unused: 100\n  util: {step: 1}",
    ),
    Row("an analysis", "analyses/a.sql", "", "select * from {{ ref('orders') }}\n"),
    Row(
        "an access",
        YML,
        "  - name: reader\n",
        "  - name: reader\n    config: {access: protected}\n",
    ),
    Row("a docs block", "models/docs.md", "", "{% docs x %} y {% enddocs %}\n"),
    Row("a password of the target", "profiles.yml", "threads: 1", "threads: 1, password: x"),
    Row("quoting", "dbt_project.yml", "dispatch:", "quoting: {identifier: false}\ndispatch:"),
    Row("a macro of a hook", "macros/values.sql", "1 as audited", "2 as audited"),
]
"""Edits that change nothing: they are causes of nothing."""


def build_lab(folder: Path) -> Path:
    """The project as it is on its main branch, built, with the artifacts in ``state`` beside it."""
    lab = folder / "lab"
    tiny_project.write(lab, FILES)
    tiny_project.git(folder, "init", "-q", "-b", "main", str(lab))
    tiny_project.commit(lab)
    assert tiny_project.dbt(lab, "deps")
    assert tiny_project.dbt(lab, "build", "--target-path", "state")
    (lab / "state").rename(folder / "state")
    return lab


def edited(lab: Path, row: Row, folder: Path) -> Path:
    """A copy of the project with an edit."""
    project = folder / "lab"
    shutil.copytree(lab, project, symlinks=True)
    package = project / "dbt_packages" / "util"
    package.unlink()
    package.symlink_to("../util")
    file = project / row.file
    file.parent.mkdir(exist_ok=True)
    text = file.read_text() if row.old else ""
    assert not row.old or text.count(row.old) >= 1, row
    file.write_text(text.replace(row.old, row.new, 1) if row.old else row.new)
    if not file.read_text():
        file.unlink()
    return project


def causes_and_bare(comparison: Comparison) -> tuple[list[Cause], set[str]]:
    """The causes of what differs, and the tests that are selected without one."""
    selection = select_from(comparison)
    caused = {u for cause in selection.causes for u in cause.nodes}
    bare = {
        test.unique_id
        for test in selection.tests
        if not caused & {test.unique_id, *(v.rpartition(".")[0] for v in test.path)}
    }
    return selection.causes, bare


def check(row: Row, causes: list[Cause], project: Path) -> None:
    """The causes are what was edited: kind, name, values, file and line."""
    assert [(c.kind, c.name) for c in causes] == [(row.kind, row.name), *row.others]
    cause = causes[0]
    file = row.file if row.in_file is None else row.in_file
    assert (cause.file or "") == file
    if row.at is not None and (project / file).is_file():
        lines = (project / file).read_text().splitlines()
        assert cause.line == next(i for i, line in enumerate(lines, 1) if row.at in line)
    if row.before is not None:
        assert cause.before == row.before
    if row.after is not None:
        assert cause.after == row.after
    assert cause.through == row.through
