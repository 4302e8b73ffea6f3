"""Ordinary edits of projects that dbt is taught with, and what `dbt-ripple` says of each.

    python python/bench/ordinary_edits.py jaffle_shop=PATH jaffle-shop=PATH ...
        [--work DIR] [--write docs/gate-edits.md]

What was said of each project stays in the work folder, so that the projects need not be judged at one time.
PATH is a checkout of the project after `dbt deps` (see ``PROJECTS``; nothing of it is changed, and
nothing of them is kept here). Each is copied and built by dbt on DuckDB: what base is compared with.
Then every edit is made on a fresh copy, built, and judged by `dbt-ripple gate --with select` as it is
out of the box. Where an edit takes something away, `dbt-ripple impact` was asked before it.

An edit is *ordinary* or *breaking*. It exits with 1 where an ordinary one is blocked or a breaking one
is not (dbt's own refusal is one), where `impact` and `gate` disagree, where an edit is said to break
and the build does not fail or the other way round, and where a test says something else than on base
and was not selected. The playbooks are for another warehouse: they are compiled, not built.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

Change = str | list[tuple[str, str]] | None
"""A new file's text, replacements in a file that is there, or None: the file goes."""


@dataclass(frozen=True)
class Edit:
    """One edit, as somebody would make it in a pull request."""

    what: str
    files: dict[str, Change]
    breaking: bool = False
    before: str = ""
    """What `impact` is asked before the edit, where the edit is that and nothing else."""


def _replace(
    what: str, path: str, *pairs: tuple[str, str], breaking: bool = False, before: str = ""
) -> Edit:
    return Edit(what, {path: list(pairs)}, breaking, before)


# --- the classic jaffle shop, which its DuckDB twin has, too ---------------------------------------

_ORDERS, _CUSTOMERS = "models/orders.sql", "models/customers.sql"
_STG_ORDERS = "models/staging/stg_orders.sql"
_STG_PAYMENTS = "models/staging/stg_payments.sql"
_STG_CUSTOMERS = "models/staging/stg_customers.sql"

CLASSIC: Final = [
    Edit(
        "rename stg_orders.status, readers with it",
        {
            _STG_ORDERS: [("        status\n", "        status as order_status\n")],
            _ORDERS: [("orders.status,", "orders.order_status as status,")],
            "models/staging/schema.yml": [("- name: status", "- name: order_status")],
        },
    ),
    Edit(
        "rename stg_orders.status, readers forgotten",
        {
            _STG_ORDERS: [("        status\n", "        status as order_status\n")],
            "models/staging/schema.yml": [("- name: status", "- name: order_status")],
        },
        breaking=True,
        before="stg_orders --rename status:order_status",
    ),
    _replace(
        "rename customers.most_recent_order, which nothing reads",
        *(_CUSTOMERS, ("customer_orders.most_recent_order,", "most_recent_order as last_order,")),
        before="customers --rename most_recent_order:last_order",
    ),
    _replace(
        "edit an expression: cents to dollars, rounded",
        *(_STG_PAYMENTS, ("amount / 100 as amount", "round(amount / 100, 2) as amount")),
    ),
    _replace(
        "edit an expression that nothing reads: customer_lifetime_value",
        *(_CUSTOMERS, ("payments.total_amount as", "payments.total_amount * 1.0 as")),
    ),
    _replace(
        "add a column to stg_customers",
        *(_STG_CUSTOMERS, ("        last_name\n", "        last_name,\n        1 as one\n")),
    ),
    _replace(
        "drop customers.first_order, which nothing reads",
        *(_CUSTOMERS, ("        customer_orders.first_order,\n", "")),
        before="customers --drop first_order",
    ),
    _replace(
        "drop stg_payments.payment_method, which orders reads",
        *(_STG_PAYMENTS, ("        payment_method,\n", "")),
        breaking=True,
        before="stg_payments --drop payment_method",
    ),
    _replace(
        "forget a comma in stg_payments",
        *(_STG_PAYMENTS, ("        id as payment_id,\n", "        id as payment_id\n")),
        breaking=True,
    ),
    _replace(
        "forget a bracket in orders",
        *(_ORDERS, ("sum(amount) as total_amount", "sum(amount as total_amount")),
        breaking=True,
    ),
    _replace(
        "drop orders.amount, which a test reads",
        _ORDERS,
        (
            "        {% endfor -%}\n\n        order_payments.total_amount as amount",
            "        {% endfor -%}\n\n        1 as one",
        ),
        breaking=True,
    ),
    _replace(
        "add a filter to stg_orders",
        *(_STG_ORDERS, ("    from source\n", "    from source\n    where status <> 'returned'\n")),
    ),
    _replace(
        "a join of orders from left to inner",
        *(_ORDERS, ("    left join order_payments", "    inner join order_payments")),
    ),
    _replace(
        "the severity of a test",
        "models/schema.yml",
        (
            "          - unique\n          - not_null\n\n      - name: first_name",
            "          - unique\n          - not_null:\n              severity: warn\n\n"
            "      - name: first_name",
        ),
    ),
    _replace("a description", "models/schema.yml", ("basic information about a", "facts on each")),
    _replace(
        "reformat customers",
        _CUSTOMERS,
        ("        select\n        customer_id,\n\n", "    SELECT customer_id,\n"),
        ("    from orders\n\n    group by customer_id", "    FROM orders GROUP BY customer_id"),
    ),
    _replace(
        "split a CTE of customers in two",
        _CUSTOMERS,
        (
            "final as (\n",
            "with_orders as (\n\n    select customers.*, customer_orders.first_order,\n"
            "        customer_orders.most_recent_order, customer_orders.number_of_orders\n"
            "    from customers\n    left join customer_orders\n"
            "        on customers.customer_id = customer_orders.customer_id\n\n),\n\nfinal as (\n",
        ),
        (
            "        customers.customer_id,\n        customers.first",
            "        c.customer_id,\n        c.first",
        ),
        (
            "        customers.last_name,\n        customer_orders.first_order,\n",
            "        c.last_name,\n        c.first_order,\n",
        ),
        (
            "customer_orders.most_recent_order,\n        customer_orders.number_of_orders,\n        customer_payments",
            "c.most_recent_order,\n        c.number_of_orders,\n        customer_payments",
        ),
        (
            "    from customers\n\n    left join customer_orders\n"
            "        on customers.customer_id = customer_orders.customer_id\n\n"
            "    left join customer_payments\n        on  customers.customer_id",
            "    from with_orders as c\n\n    left join customer_payments\n        on c.customer_id",
        ),
    ),
    Edit(
        "add a model",
        {"models/returned.sql": "select * from {{ ref('orders') }} where status = 'returned'\n"},
    ),
    Edit(
        "remove customers, which only a test refers to",
        {_CUSTOMERS: None},
        before="customers --remove",
    ),
    Edit(
        "remove stg_payments, which orders reads",
        {_STG_PAYMENTS: None},
        breaking=True,
        before="stg_payments --remove",
    ),
    _replace(
        "orders as a view",
        *(
            _ORDERS,
            ("{% set payment_methods", "{{ config(materialized='view') }}\n{% set payment_methods"),
        ),
    ),
    _replace(
        "a value of a seed",
        "seeds/raw_payments.csv",
        ("1,1,credit_card,1000", "1,1,credit_card,1100"),
    ),
    _replace(
        "rename a header of a seed, stg_orders with it",
        *("seeds/raw_orders.csv", ("id,user_id,", "id,customer_id,")),
    ),
    _replace(
        "rename a header of a seed, stg_orders forgotten",
        *("seeds/raw_orders.csv", ("id,user_id,", "id,customer_id,")),
        breaking=True,
        before="raw_orders --rename user_id:customer_id",
    ),
    Edit(
        "an expression as a macro",
        {
            "macros/dollars.sql": "{% macro dollars(cents) %}{{ cents }} / 100{% endmacro %}\n",
            _STG_PAYMENTS: [("amount / 100 as amount", "{{ dollars('amount') }} as amount")],
        },
    ),
]
_WITH_READER = next(i for i, e in enumerate(CLASSIC) if e.what.endswith("stg_orders with it"))
CLASSIC[_WITH_READER] = Edit(
    CLASSIC[_WITH_READER].what,
    {**CLASSIC[_WITH_READER].files, _STG_ORDERS: [("user_id as customer_id", "customer_id")]},
)

# --- the jaffle shop of today ----------------------------------------------------------------------

_PRODUCTS = "models/staging/stg_products.sql"
_ITEMS, _SHOP_ORDERS = "models/marts/order_items.sql", "models/marts/orders.sql"
_SHOP_CUSTOMERS = "models/marts/customers.sql"
_CENTS = "macros/cents_to_dollars.sql"

SHOP: Final = [
    Edit(
        "rename stg_products.product_price, readers with it",
        {
            _PRODUCTS: [("as product_price", "as price")],
            _ITEMS: [("products.product_price,", "products.price as product_price,")],
            "models/marts/products.yml": [("- name: product_price", "- name: price")],
        },
    ),
    _replace(
        "rename stg_products.product_price, readers forgotten",
        *(_PRODUCTS, ("as product_price", "as price")),
        breaking=True,
        before="stg_products --rename product_price:price",
    ),
    _replace(
        "rename stg_products.product_type, a dimension of the semantic layer forgotten",
        *(_PRODUCTS, ("type as product_type", "type as product_kind")),
        breaking=True,
        before="stg_products --rename product_type:product_kind",
    ),
    _replace(
        "rename stg_orders.subtotal_cents, which only `select *` passes on",
        *("models/staging/stg_orders.sql", ("as subtotal_cents", "as subtotal_in_cents")),
        before="stg_orders --rename subtotal_cents:subtotal_in_cents",
    ),
    _replace(
        "edit an expression: is_food_item",
        *(_PRODUCTS, ("type = 'jaffle'", "type in ('jaffle', 'toast')")),
    ),
    _replace(
        "edit an expression of a mart: customer_type",
        *(_SHOP_CUSTOMERS, ("'returning'", "'regular'"), ("'new'", "'first'")),
    ),
    _replace(
        "add a column to stg_products",
        *(_PRODUCTS, ("        sku as product_id,", "        sku as product_id,\n        sku,")),
    ),
    _replace(
        "drop stg_products.product_description, a dimension of the semantic layer forgotten",
        *(_PRODUCTS, ("        description as product_description,\n", "")),
        breaking=True,
        before="stg_products --drop product_description",
    ),
    _replace(
        "drop stg_orders.tax_paid_cents, which only `select *` passes on",
        *("models/staging/stg_orders.sql", ("        tax_paid as tax_paid_cents,\n", "")),
        before="stg_orders --drop tax_paid_cents",
    ),
    _replace(
        "drop order_items.supply_cost, which orders reads",
        *(
            _ITEMS,
            (
                "        products.is_drink_item,\n\n        order_supplies_summary.supply_cost\n",
                "        products.is_drink_item\n",
            ),
        ),
        breaking=True,
        before="order_items --drop supply_cost",
    ),
    _replace(
        "drop customers.lifetime_spend, which a test and a metric read",
        *(_SHOP_CUSTOMERS, ("        customer_orders_summary.lifetime_spend,\n", "")),
        breaking=True,
        before="customers --drop lifetime_spend",
    ),
    _replace(
        "forget the END of a CASE in customers",
        *(
            _SHOP_CUSTOMERS,
            ("            else 'new'\n        end as", "            else 'new'\n        as"),
        ),
        breaking=True,
    ),
    _replace(
        "add a filter to stg_orders",
        *(
            "models/staging/stg_orders.sql",
            ("    from source\n", "    from source\n    where order_total > 0\n"),
        ),
    ),
    _replace(
        "a join of order_items from left to inner",
        *(_ITEMS, ("left join products", "inner join products")),
    ),
    _replace(
        "the severity of a test",
        "models/staging/stg_orders.yml",
        (
            "          - not_null\n",
            "          - not_null:\n              config: {severity: warn}\n",
        ),
    ),
    _replace("a description", "models/marts/orders.yml", ("Order overview data mart", "Orders")),
    _replace(
        "reformat order_items",
        *(
            _ITEMS,
            (
                "    select\n        product_id,\n\n        sum(supply_cost) as supply_cost",
                "    SELECT product_id, SUM(supply_cost) AS supply_cost",
            ),
        ),
    ),
    _replace(
        "split a CTE of orders in two",
        _SHOP_ORDERS,
        (
            "compute_booleans as (\n",
            "passed_on as (\n\n    select * from order_items_summary\n\n),\n\ncompute_booleans as (\n",
        ),
        (
            "        order_items_summary\n        on orders.order_id = ",
            "        passed_on as order_items_summary\n        on orders.order_id = ",
        ),
    ),
    Edit(
        "add a model",
        {"models/marts/drinks.sql": "select * from {{ ref('products') }} where is_drink_item\n"},
    ),
    Edit(
        "remove locations and its yml, which nothing reads",
        {"models/marts/locations.sql": None, "models/marts/locations.yml": None},
    ),
    Edit(
        "remove order_items, which orders reads",
        {_ITEMS: None},
        breaking=True,
        before="order_items --remove",
    ),
    _replace(
        "orders as a view",
        *(
            _SHOP_ORDERS,
            ("with\n\norders as", "{{ config(materialized='view') }}\nwith\n\norders as"),
        ),
    ),
    _replace(
        "a value of a seed",
        *(
            "seeds/jaffle-data/raw_products.csv",
            (
                "JAF-001,nutellaphone who dis?,jaffle,1100",
                "JAF-001,nutellaphone who dis?,jaffle,1200",
            ),
        ),
    ),
    _replace(
        "rename a header of a seed that a source is read from, readers forgotten",
        *("seeds/jaffle-data/raw_products.csv", ("sku,name,type,price", "sku,name,kind,price")),
        breaking=True,
    ),
    _replace(
        "a macro: the version of another warehouse",
        *(_CENTS, ("round(cast((", "round(cast(1.0 * (")),
    ),
    _replace(
        "a macro: cents_to_dollars, with three digits",
        *(_CENTS, (" / 100)::numeric(16, 2)\n", " / 100)::numeric(16, 3)\n")),
    ),
    _replace(
        "a source's yml: a description and freshness",
        "models/staging/__sources.yml",
        ("One record per person", "One row a person"),
        (
            "        loaded_at_field: opened_at\n",
            "        loaded_at_field: opened_at\n        freshness: {warn_after: {count: 1, period: day}}\n",
        ),
    ),
]

# --- the playbooks ---------------------------------------------------------------------------------

_MRR, _BY_MONTH = "models/mrr.sql", "models/customer_revenue_by_month.sql"
_CHURN = "models/customer_churn_month.sql"

MRR: Final = [
    Edit(
        "rename customer_revenue_by_month.mrr, readers with it",
        {
            _BY_MONTH: [
                ("        mrr,\n\n        mrr > 0", "        mrr as revenue,\n\n        mrr > 0")
            ],
            _CHURN: [("0::float as mrr", "0::float as revenue")],
            _MRR: [
                ("lag(mrr)", "lag(revenue)"),
                ("mrr - previous_month_mrr as", "revenue - previous_month_mrr as"),
                (
                    "        *,\n\n        coalesce(\n            lag(is_active)",
                    "        *,\n        revenue as mrr,\n\n        coalesce(\n            lag(is_active)",
                ),
            ],
        },
    ),
    _replace(
        "rename customer_revenue_by_month.is_last_month, readers forgotten",
        *(_BY_MONTH, ("date_month as is_last_month", "date_month as is_final_month")),
        breaking=True,
        before="customer_revenue_by_month --rename is_last_month:is_final_month",
    ),
    _replace(
        "rename mrr.renewal_amount, which nothing reads",
        *(_MRR, ("as renewal_amount", "as renewed_amount")),
        before="mrr --rename renewal_amount:renewed_amount",
    ),
    _replace(
        "edit an expression: no revenue is null",
        *(_BY_MONTH, ("monthly_amount, 0) as mrr", "monthly_amount, 0.0) as mrr")),
    ),
    _replace(
        "edit an expression: change_category",
        *(_MRR, ("then 'upgrade'", "then 'expansion'")),
    ),
    _replace(
        "edit an expression that nothing reads: renewal_amount",
        *(_MRR, ("least(mrr, previous_month_mrr)", "greatest(0, least(mrr, previous_month_mrr))")),
    ),
    _replace(
        "add a column to mrr",
        *(_MRR, ("as renewal_amount", "as renewal_amount,\n        mrr * 12 as arr")),
    ),
    _replace(
        "drop mrr.renewal_amount, which nothing reads",
        *(
            _MRR,
            (
                "        end as change_category,\n\n        least(mrr, previous_month_mrr) as renewal_amount",
                "        end as change_category",
            ),
        ),
        before="mrr --drop renewal_amount",
    ),
    _replace(
        "drop customer_revenue_by_month.is_active, which mrr reads",
        *(_BY_MONTH, ("        mrr > 0 as is_active,\n", "")),
        breaking=True,
    ),
    _replace(
        "drop mrr.mrr_change, which a test reads",
        _MRR,
        (
            "        ) as previous_month_mrr,\n\n        mrr - previous_month_mrr as mrr_change",
            "        ) as previous_month_mrr",
        ),
        ("mrr_change > 0", "mrr > previous_month_mrr"),
        ("mrr_change < 0", "mrr < previous_month_mrr"),
        breaking=True,
        before="mrr --drop mrr_change",
    ),
    _replace(
        "a comma too many in mrr",
        *(_MRR, ("as renewal_amount", "as renewal_amount,,\n        mrr * 12 as arr")),
        breaking=True,
    ),
    _replace(
        "edit a filter: who churned",
        *(_CHURN, ("where is_last_month", "where is_last_month and is_active")),
    ),
    _replace(
        "add a filter to customer_revenue_by_month",
        *(_BY_MONTH, ("    from joined\n", "    from joined\n    where mrr >= 0\n")),
    ),
    _replace(
        "a join of customer_revenue_by_month from left to inner",
        *(_BY_MONTH, ("    left join subscription_periods", "    inner join subscription_periods")),
    ),
    _replace(
        "the severity of a test",
        *(
            "models/mrr.yml",
            (
                "      - name: mrr_change\n        tests:\n          - not_null",
                "      - name: mrr_change\n        tests:\n          - not_null:\n              severity: warn",
            ),
        ),
    ),
    _replace("a description", "models/mrr.yml", ("Monthly recurring revenue", "Recurring revenue")),
    _replace(
        "reformat mrr",
        *(
            _MRR,
            (
                "            lag(is_active) over (partition by customer_id order by date_month),\n            false\n",
                "            LAG(is_active) OVER (PARTITION BY customer_id ORDER BY date_month), FALSE\n",
            ),
        ),
    ),
    _replace(
        "split a CTE of customer_churn_month in two",
        *(
            _CHURN,
            (
                "joined as (\n",
                "last_months as (\n    select * from mrr where is_last_month\n),\n\njoined as (\n",
            ),
            ("    from mrr\n\n    where is_last_month\n", "    from last_months\n"),
        ),
    ),
    Edit("add a model", {"models/active.sql": "select * from {{ ref('mrr') }} where is_active\n"}),
    Edit(
        "remove mrr and its yml, which nothing reads",
        {_MRR: None, "models/mrr.yml": None},
    ),
    Edit(
        "remove customer_churn_month, which mrr reads",
        {_CHURN: None},
        breaking=True,
        before="customer_churn_month --remove",
    ),
    _replace(
        "mrr as a table",
        *(_MRR, ("with unioned as", "{{ config(materialized='table') }}\nwith unioned as")),
    ),
    _replace("a value of a seed", "data/subscription_periods.csv", ("@first_row", "@changed")),
    _replace(
        "rename a header of a seed, readers forgotten",
        *("data/subscription_periods.csv", ("monthly_amount", "amount")),
        breaking=True,
    ),
    _replace(
        "a macro that an operation calls",
        *("macros/grant_select_on_schema.sql", ("grant usage on schema", "grant usage  on schema")),
    ),
]

_TOUCHES = "models/attribution_touches.sql"

ATTRIBUTION: Final = [
    _replace(
        "rename attribution_touches.linear_revenue, which nothing reads",
        *(_TOUCHES, ("as linear_revenue", "as even_revenue")),
        before="attribution_touches --rename linear_revenue:even_revenue",
    ),
    _replace(
        "rename attribution_touches.total_sessions, its test forgotten",
        *(
            _TOUCHES,
            (
                "select * from with_points",
                "select * exclude (total_sessions), total_sessions as sessions from with_points",
            ),
        ),
        breaking=True,
        before="attribution_touches --rename total_sessions:sessions",
    ),
    Edit(
        "rename attribution_touches.total_sessions, its test with it",
        {
            _TOUCHES: [
                (
                    "select * from with_points",
                    "select * exclude (total_sessions), total_sessions as sessions from with_points",
                )
            ],
            "models/schema.yml": [("- name: total_sessions", "- name: sessions")],
        },
    ),
    _replace(
        "edit an expression: the window of attribution",
        *(
            _TOUCHES,
            ("order by sessions.started_at", "order by sessions.started_at, sessions.session_id"),
        ),
    ),
    _replace(
        "edit an expression: forty_twenty_forty_points",
        *(_TOUCHES, ("when total_sessions = 2 then 0.5", "when total_sessions = 2 then 0.50001")),
    ),
    _replace(
        "edit an expression: linear_points",
        *(_TOUCHES, ("1.0 / total_sessions as", "round(1.0 / total_sessions, 4) as")),
    ),
    _replace(
        "add a column",
        *(
            _TOUCHES,
            (
                "1.0 / total_sessions as linear_points,",
                "1.0 / total_sessions as linear_points,\n        session_index = 1 as is_first,",
            ),
        ),
    ),
    _replace(
        "drop linear_revenue, which nothing reads",
        *(
            _TOUCHES,
            (
                "* forty_twenty_forty_points as forty_twenty_forty_revenue,\n        revenue * linear_points as linear_revenue",
                "* forty_twenty_forty_points as forty_twenty_forty_revenue",
            ),
        ),
        before="attribution_touches --drop linear_revenue",
    ),
    _replace(
        "drop session_index, which the next CTE reads",
        *(
            _TOUCHES,
            (
                "        ) as total_sessions,\n\n        row_number() over (\n            partition by customer_id\n            order by sessions.started_at\n        ) as session_index\n",
                "        ) as total_sessions\n",
            ),
        ),
        breaking=True,
    ),
    _replace(
        "misspell FROM in attribution_touches",
        *(_TOUCHES, ("select * from with_points", "select * form with_points")),
        breaking=True,
    ),
    _replace(
        "edit a filter: sixty days",
        *(_TOUCHES, ("dateadd(days, -30,", "dateadd(days, -60,")),
    ),
    _replace(
        "add a filter",
        *(
            _TOUCHES,
            (
                "from sessions_before_conversion\n",
                "from sessions_before_conversion\n    where revenue > 0\n",
            ),
        ),
    ),
    _replace(
        "a join from left to inner",
        *(_TOUCHES, ("left join customer_conversions", "inner join customer_conversions")),
    ),
    _replace(
        "the severity of a test",
        *(
            "models/schema.yml",
            (
                "      - name: customer_id\n        tests:\n          - not_null",
                "      - name: customer_id\n        tests:\n          - not_null:\n              severity: warn",
            ),
        ),
    ),
    _replace(
        "a description", "models/schema.yml", ("One record per web session", "One row a session")
    ),
    _replace(
        "reformat",
        *(
            _TOUCHES,
            (
                "        count(*) over (\n            partition by customer_id\n        ) as",
                "        COUNT(*) OVER (PARTITION BY customer_id) AS",
            ),
        ),
    ),
    _replace(
        "split a CTE in two",
        *(
            _TOUCHES,
            (
                "with_points as (\n",
                "passed_on as (\n    select * from sessions_before_conversion\n),\n\nwith_points as (\n",
            ),
            ("    from sessions_before_conversion\n\n)", "    from passed_on\n\n)"),
        ),
    ),
    Edit(
        "add a model",
        {
            "models/first.sql": "select * from {{ ref('attribution_touches') }} where session_index = 1\n"
        },
    ),
    Edit(
        "remove the model and its yml, an analysis that reads it forgotten",
        {_TOUCHES: None, "models/schema.yml": None},
        breaking=True,
    ),
    _replace(
        "the model as a table",
        *(_TOUCHES, ("with sessions as", "{{ config(materialized='table') }}\nwith sessions as")),
    ),
    _replace("a value of a seed", "data/ad_spend.csv", ("@first_row", "@changed")),
    _replace(
        "rename a header of a seed, readers forgotten",
        *("data/sessions.csv", ("started_at", "began_at")),
        breaking=True,
    ),
    Edit(
        "remove a seed that the model reads",
        {"data/sessions.csv": None},
        breaking=True,
        before="sessions --remove",
    ),
    _replace(
        "rename a header of a seed that no model reads",
        *("data/ad_spend.csv", ("utm_source", "source")),
        before="ad_spend --rename utm_source:source",
    ),
]

# --- GitHub's public events, in DuckDB's own dialect -----------------------------------------------

_EVENTS, _ISSUES = "models/staging/github/stg_events.sql", "models/marts/issue_events.sql"
_PULLS, _PUSHES = "models/marts/pull_request_events.sql", "models/marts/push_events.sql"
_USERS, _REPOS = "models/marts/users.sql", "models/marts/repos.sql"
_MART_YML, _SOURCE_YML = "models/marts/_properties.yml", "models/staging/github/_sources.yml"

OCTOCATALOG: Final = [
    Edit(
        "rename stg_events.event_type, readers with it",
        {
            _EVENTS: [("type as event_type", "type as kind")],
            _ISSUES: [("event_type = ", "kind = ")],
            _PULLS: [("event_type = ", "kind = ")],
            _PUSHES: [("event_type in ", "kind in ")],
        },
    ),
    _replace(
        "rename stg_events.event_type, readers forgotten",
        *(_EVENTS, ("type as event_type", "type as kind")),
        breaking=True,
        before="stg_events --rename event_type:kind",
    ),
    _replace(
        "rename stg_events.org_login, which nothing reads by name",
        *(_EVENTS, ("as org_login", "as organization")),
        before="stg_events --rename org_login:organization",
    ),
    _replace(
        "rename users.actor_id, its tests with it",
        _USERS,
        ("unique_key = 'actor_id'", "unique_key = 'user_id'"),
        (
            "        actor_id,\n        actor_gravatar_id,\n        actor_login,\n        actor_display_login,\n"
            "        actor_url,\n        actor_avatar_url,\n        updated_at,\n",
            "        actor_id as user_id,\n        actor_login,\n        updated_at,\n",
        ),
    ),
    _replace(
        "edit an expression: issue_action",
        *(_ISSUES, ("payload ->> '$.action'", "lower(payload ->> '$.action')")),
    ),
    _replace(
        "edit an expression of stg_events: actor_login",
        *(_EVENTS, ("actor['login'] as", "lower(actor['login']) as")),
    ),
    _replace(
        "edit an expression: the latest state of a repository, ties by name",
        *(
            _REPOS,
            (
                "order by repo_state_last_seen_at desc",
                "order by repo_state_last_seen_at desc, repo_name",
            ),
        ),
    ),
    _replace(
        "add a column to stg_events",
        *(
            _EVENTS,
            (
                "        payload,\n",
                "        payload,\n        length(payload) as payload_length,\n",
            ),
        ),
    ),
    _replace(
        "drop stg_events.org_url, which nothing reads by name",
        *(_EVENTS, ("        org['url'] as org_url,\n", "")),
        before="stg_events --drop org_url",
    ),
    _replace(
        "drop stg_events.actor_url, which users reads",
        *(_EVENTS, ("        actor['url'] as actor_url,\n", "")),
        breaking=True,
        before="stg_events --drop actor_url",
    ),
    _replace(
        "drop repos.repo_id, which tests read",
        _REPOS,
        (
            "    select\n        repo_id,\n        repo_name,\n        repo_url,\n        updated_at",
            "    select\n        repo_name,\n        repo_url,\n        updated_at",
        ),
        breaking=True,
        before="repos --drop repo_id",
    ),
    _replace(
        "add a filter to stg_events",
        *(_EVENTS, ("    from source\n", "    from source\n    where public\n")),
    ),
    _replace(
        "a filter of push_events that is not finished",
        *(_PUSHES, ("        event_type in ('PushEvent')\n", "")),
        breaking=True,
    ),
    _replace(
        "edit a filter of push_events",
        *(_PUSHES, ("('PushEvent')", "('PushEvent', 'CreateEvent')")),
    ),
    _replace(
        "edit only what an incremental run adds",
        *(_ISSUES, ("event_created_at >= coalesce", "event_created_at > coalesce")),
    ),
    _replace(
        "the severity of a test",
        *(
            _MART_YML,
            ("          - not_null\n", "          - not_null:\n              severity: warn\n"),
        ),
    ),
    _replace(
        "a description",
        *(
            _SOURCE_YML,
            (
                "      - name: github_events",
                "      - name: github_events\n        description: What happened",
            ),
        ),
    ),
    _replace(
        "reformat: `group by all` written out",
        *(
            _REPOS,
            ("    group by all\n", "    group by repo_state_uuid, repo_id, repo_name, repo_url\n"),
        ),
    ),
    _replace(
        "reformat: capitals, and no comma after the last column",
        _EVENTS,
        ("select *, from", "SELECT * FROM"),
        (
            "        org['url'] as org_url,\n        org['avatar_url'] as org_avatar_url,\n",
            "        org['url'] AS org_url, org['avatar_url'] AS org_avatar_url\n",
        ),
    ),
    _replace(
        "split a CTE of push_events in two",
        _PUSHES,
        (
            "unnest_json as (\n",
            "passed_on as (\n\n    select * from push_events\n\n),\n\nunnest_json as (\n",
        ),
        (
            "    from push_events\n\n)\n\nselect *, from unnest_json",
            "    from passed_on\n\n)\n\nselect *, from unnest_json",
        ),
    ),
    Edit(
        "add a model",
        {
            "models/marts/watches.sql": "select event_id from {{ ref('stg_events') }} where event_type = 'WatchEvent'\n"
        },
    ),
    Edit("remove push_events, which nothing reads", {_PUSHES: None}, before="push_events --remove"),
    Edit(
        "remove stg_events, which all read",
        {_EVENTS: None},
        breaking=True,
        before="stg_events --remove",
    ),
    _replace("users as a table", *(_USERS, ("'incremental'", "'table'"))),
    _replace("another unique_key", *(_ISSUES, ("'event_id'", "['event_id', 'repo_id']"))),
]
_OCTO_USERS = next(i for i, e in enumerate(OCTOCATALOG) if e.what.endswith("its tests with it"))
OCTOCATALOG[_OCTO_USERS].files[_MART_YML] = [("- name: actor_id", "- name: user_id")]

# --- revenue and churn of a software company -------------------------------------------------------

_SUBSCRIPTIONS, _ACCOUNTS = (
    "models/staging/stg_subscriptions.sql",
    "models/staging/stg_accounts.sql",
)
_CHURNED = "models/staging/stg_churn_events.sql"
_SUB_REVENUE = "models/intermediate/int_subscription_revenue.sql"
_SUB_MONTHS = "models/intermediate/int_subscription_months.sql"
_USAGE = "models/intermediate/int_account_feature_usage.sql"
_SUPPORT = "models/intermediate/int_account_support_load.sql"
_ACCOUNT_MRR = "models/marts/finance/fct_account_month_mrr.sql"
_ANALYTICS = "models/marts/finance/fct_account_month_analytics.sql"
_CHURN_ML = "models/marts/finance/fct_account_month_churn_ml.sql"
_ACCOUNT_CHURN = "models/marts/finance/fct_account_revenue_churn.sql"

SAAS: Final = [
    Edit(
        "rename int_subscription_revenue.normalized_mrr, readers with it",
        {
            _SUB_REVENUE: [(") as normalized_mrr", ") as mrr")],
            _SUB_MONTHS: [
                (
                    "        normalized_mrr\n    from {{",
                    "        mrr as normalized_mrr\n    from {{",
                )
            ],
            _ACCOUNT_CHURN: [("sum(normalized_mrr)", "sum(mrr)")],
        },
    ),
    _replace(
        "rename int_subscription_revenue.normalized_mrr, one reader forgotten",
        _SUB_REVENUE,
        (") as normalized_mrr", ") as mrr"),
        breaking=True,
        before="int_subscription_revenue --rename normalized_mrr:mrr",
    ),
    _replace(
        "rename a column that a `a.*` passes on: stg_accounts.industry",
        *(_ACCOUNTS, ("    industry,", "    industry as sector,")),
        breaking=True,
        before="stg_accounts --rename industry:sector",
    ),
    _replace(
        "rename int_account_support_load.avg_satisfaction_score in its last select only",
        *(
            _SUPPORT,
            ("    avg_satisfaction_score,\n    escalated", "    avg_satisfaction,\n    escalated"),
        ),
        breaking=True,
    ),
    _replace(
        "the same number otherwise: twelve months as 12.0",
        *(_SUB_REVENUE, ("arr_amount / 12\n", "arr_amount / 12.0\n")),
    ),
    _replace(
        "edit a default: no revenue is null",
        *(_ACCOUNT_CHURN, ("coalesce(r.total_mrr, 0) as", "coalesce(r.total_mrr, null) as")),
    ),
    _replace(
        "a cast: seats as bigint",
        *(_ACCOUNTS, ("    seats,", "    cast(seats as bigint) as seats,")),
    ),
    _replace(
        "a cast to varchar(20), in which DuckDB ignores the 20",
        *(_ACCOUNTS, ("    country,", "    cast(country as varchar(20)) as country,")),
    ),
    _replace(
        "the same as a shorter expression: churn_next_month_flag",
        _CHURN_ML,
        (
            "        case\n            when c.first_churn_month = a.month_start + interval '1 month'\n"
            "                then 1\n            else 0\n        end as",
            "        case when a.month_start + interval '1 month' = c.first_churn_month then 1 else 0"
            " end as",
        ),
    ),
    _replace(
        "a flag as a boolean",
        *(
            _CHURN_ML,
            (
                "                then 1\n            else 0\n",
                "                then true\n            else false\n",
            ),
        ),
    ),
    _replace(
        "add a column to int_account_support_load, and to its last select",
        _SUPPORT,
        (
            "        count(*) as ticket_count,",
            "        count(*) as ticket_count,\n        count(closed_at) as closed_tickets,",
        ),
        ("    ticket_count,\n    avg", "    ticket_count,\n    closed_tickets,\n    avg"),
    ),
    _replace(
        "a column of a CTE that is not there",
        *(_USAGE, ("        is_beta_feature\n", "        is_beta_feature,\n        feature_id\n")),
        breaking=True,
    ),
    _replace(
        "drop stg_subscriptions.auto_renew_flag, which nothing reads",
        *(
            _SUBSCRIPTIONS,
            ("    billing_frequency,\n    auto_renew_flag", "    billing_frequency"),
        ),
        before="stg_subscriptions --drop auto_renew_flag",
    ),
    _replace(
        "drop stg_subscriptions.is_trial, which a CTE reads and nobody below",
        *(_SUBSCRIPTIONS, ("    is_trial,\n", "")),
        breaking=True,
        before="stg_subscriptions --drop is_trial",
    ),
    _replace(
        "drop int_account_churn_month.first_churn_month, a part of its reader",
        *(
            "models/intermediate/int_account_churn_month.sql",
            (
                "select\n    account_id,\n    first_churn_month\nfrom",
                "select\n    account_id\nfrom",
            ),
        ),
        breaking=True,
        before="int_account_churn_month --drop first_churn_month",
    ),
    _replace(
        "edit a filter: usage of accounts only",
        *(
            _USAGE,
            ("where account_id is not null", "where account_id is not null and usage_count > 0"),
        ),
    ),
    _replace(
        "edit a filter of an ancestor of everything",
        *(_SUBSCRIPTIONS, ("_subscriptions') }}", "_subscriptions') }}\nwhere not is_trial")),
    ),
    _replace(
        "a join of fct_account_revenue_churn from left to inner",
        *(_ACCOUNT_CHURN, ("left join revenue", "inner join revenue")),
    ),
    _replace(
        "a join with USING as a join with ON, its key qualified",
        *(
            _ACCOUNT_CHURN,
            (
                "left join churn c using (account_id)",
                "left join churn c on a.account_id = c.account_id",
            ),
        ),
    ),
    _replace(
        "full outer joins as left joins",
        *(
            _ANALYTICS,
            ("full outer join usage", "left join usage"),
            ("full outer join support", "left join support"),
        ),
    ),
    _replace(
        "a test that passed on base gets a where",
        *(
            "tests/stg_churn_events.yml",
            (
                "          - not_null\n          - unique",
                "          - not_null:\n              config: {where: account_id <> ''}\n          - unique",
            ),
        ),
    ),
    _replace(
        "a new test, of a column that is not there",
        *(
            "tests/stg_accounts.yml",
            (
                "      - name: churn_flag",
                "      - name: churned\n        tests: [not_null]\n      - name: churn_flag",
            ),
        ),
        breaking=True,
    ),
    _replace(
        "an owner and a tag in yml",
        *(
            "tests/fct_account_revenue_churn.yml",
            (
                "    columns:\n",
                "    config: {tags: [finance], meta: {owner: finance}}\n    columns:\n",
            ),
        ),
    ),
    _replace(
        "reformat: trailing commas, capitals and no CTE at the end",
        _SUB_MONTHS,
        (
            "\n)\n\nselect\n    subscription_id,\n    account_id,\n    month_start,\n"
            "    normalized_mrr as mrr_amount\nfrom subscription_months",
            "\n)\n\nSELECT subscription_id, account_id, month_start, normalized_mrr AS mrr_amount,\n"
            "FROM subscription_months",
        ),
    ),
    _replace(
        "marts as views, in dbt_project.yml",
        *(
            "dbt_project.yml",
            ("    marts:\n      +materialized: table", "    marts:\n      +materialized: view"),
        ),
    ),
    _replace(
        "a var for a number",
        _SUB_REVENUE,
        ("arr_amount / 12\n", "arr_amount / {{ var('months', 12) }}\n"),
    ),
    Edit(
        "a model as an incremental one, with what it adds",
        {
            _CHURNED: [
                ("select\n", "{{ config(materialized='incremental') }}\nselect\n"),
                (
                    "churn_events') }}",
                    "churn_events') }}\n{% if is_incremental() %}\n"
                    "where churn_date > (select max(churn_date) from {{ this }})\n{% endif %}",
                ),
            ]
        },
    ),
    Edit(
        "remove a model that nothing reads: fct_account_month_churn_ml",
        {_CHURN_ML: None},
        before="fct_account_month_churn_ml --remove",
    ),
    Edit(
        "remove int_account_churn_month, which a mart reads",
        {"models/intermediate/int_account_churn_month.sql": None},
        breaking=True,
        before="int_account_churn_month --remove",
    ),
    _replace(
        "a value of a seed",
        *(
            "seeds/ravenstack_accounts.csv",
            ("A-2e4581,Company_0,EdTech", "A-2e4581,Company_0,FinTech"),
        ),
    ),
    _replace(
        "rename a header of a seed, readers forgotten",
        *("seeds/ravenstack_churn_events.csv", ("account_id,churn_date", "account_id,churned_on")),
        breaking=True,
        before="ravenstack_churn_events --rename churn_date:churned_on",
    ),
    _replace(
        "fix the example: no row without an id",
        *(
            "models/example/my_first_dbt_model.sql",
            ("-- where id is not null", "where id is not null"),
        ),
    ),
]

PROJECTS: Final[dict[str, list[Edit]]] = {
    "jaffle_shop": CLASSIC,
    "jaffle_shop_duckdb": CLASSIC,
    "jaffle-shop": SHOP,
    "octocatalog": OCTOCATALOG,
    "mrr-playbook": MRR,
    "attribution-playbook": ATTRIBUTION,
    "saas-finance-dbt-duckdb": SAAS,
}
"""Edits by the project's repository on GitHub: gwenwindflower/octocatalog,
Abs-23/saas-finance-dbt-duckdb, the others of dbt-labs."""

_VARS: Final = {"jaffle-shop": "{load_source_data: true}"}
"""Its seeds are what its sources are."""
_LOADED: Final = {
    "octocatalog": "create schema raw; create table raw.github_events as "
    "select * from read_json_auto('data/testing.json')"
}
"""What its source is loaded from."""
_ONLY_COMPILED: Final = ("mrr-playbook", "attribution-playbook")
"""Written for another warehouse than DuckDB."""
_FAILS: Final = "a node fails"
_IGNORED: Final = ("target", "logs", ".git", "*.duckdb*", "packages.yml", "package-lock.yml")


@dataclass
class Said:
    """What became of one edit."""

    what: str
    breaking: bool
    decision: str
    why: str
    before: str = ""
    tests: str = ""
    wrong: str = ""

    def __post_init__(self) -> None:
        blocked = self.decision in ("BLOCKED", "dbt refuses")
        if blocked != self.breaking:
            self.wrong = "a breaking edit passes" if self.breaking else "an ordinary edit"
        elif self.before and (self.before == "BLOCKED") != blocked:
            self.wrong = "impact and gate disagree"


class Project:
    """A project, and its state as base built it."""

    def __init__(self, name: str, source: Path, work: Path) -> None:
        self.name = name
        self.builds = name not in _ONLY_COMPILED
        self.folder = work / name
        self.clean = work / f"{name}-clean"
        self.warehouses = work / f"{name}-warehouses"
        for folder in (self.folder, self.clean, self.warehouses):
            shutil.rmtree(folder, ignore_errors=True)
        self.warehouses.mkdir(parents=True)
        shutil.copytree(source, self.clean, ignore=shutil.ignore_patterns(*_IGNORED))
        shutil.copytree(self.clean, self.folder)
        import yaml

        profile = yaml.safe_load((self.folder / "dbt_project.yml").read_text())["profile"]
        output = {"type": "duckdb", "path": "{{ env_var('EDITS_DUCKDB') }}", "threads": 1}
        profiles = {profile: {"target": "dev", "outputs": {"dev": output}}}
        (self.folder / "profiles.yml").write_text(yaml.safe_dump(profiles))
        git = ["git", "-C", str(self.folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
        for command in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "base"]):
            subprocess.run([*git, *command], check=True)  # a former seed is found there
        refused = self.compile()
        if refused:
            raise SystemExit(f"{name} cannot be built: {refused}")
        self.state = work / f"{name}-state"
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(self.folder / "target", self.state)
        self.base = self.results()
        if broken := [n for n, (status, _) in self.base.items() if status == "error"]:
            raise SystemExit(f"{name} cannot be built: {', '.join(broken)}")
        self.reset()

    def compile(self) -> str | None:
        """Build what lies there, or only compile it; what dbt says where it refuses to parse."""
        warehouse = Path(tempfile.mkdtemp(dir=self.warehouses))  # dbt keeps the last one open
        os.environ["EDITS_DUCKDB"] = str(warehouse / "shop.duckdb") if self.builds else ":memory:"
        if self.name in _LOADED:
            import duckdb

            with contextlib.chdir(self.folder), duckdb.connect(os.environ["EDITS_DUCKDB"]) as con:
                con.execute(_LOADED[self.name])
        (self.folder / "target" / "run_results.json").unlink(missing_ok=True)
        if self.name in _VARS and self.builds:
            self.dbt("seed")  # what sources are read from, which dbt cannot know
        refused = self.dbt("build" if self.builds else "compile")
        return None if self.builds and refused == _FAILS else refused

    def dbt(self, command: str) -> str | None:
        """Run dbt in this process; what it says where it fails."""
        from dbt.cli.main import dbtRunner

        where = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        where += ["--target-path", str(self.folder / "target")]
        if self.name in _VARS:
            where += ["--vars", _VARS[self.name]]
        arguments = ["--quiet", "--log-level", "none", "--no-send-anonymous-usage-stats"]
        arguments += ["--log-path", str(self.folder / "logs"), command, *where]
        with contextlib.redirect_stdout(io.StringIO()):
            result = dbtRunner().invoke(arguments)
        if result.success:
            return None
        return " ".join(str(result.exception).split()) if result.exception else _FAILS

    def results(self) -> dict[str, tuple[str, int | None]]:
        """What the build said of every node: its status, and how many rows a test found."""
        if not self.builds:
            return {}
        document = json.loads((self.folder / "target" / "run_results.json").read_text())["results"]
        return {r["unique_id"]: (r["status"], r["failures"]) for r in document}

    def reset(self) -> None:
        """Base's artifacts again: what `impact` is asked of."""
        shutil.rmtree(self.folder / "target", ignore_errors=True)
        shutil.copytree(self.state, self.folder / "target")

    def judge(self, edit: Edit) -> Said:
        """Ask `impact`, make the edit, ask the gate, and take the edit back."""
        before, named = "", (edit.what, edit.breaking)
        if edit.before:
            before = self.ask("impact", *edit.before.split())["decision"]
        self.make(edit)
        try:
            refused = self.compile()
            if refused is not None:
                return Said(*named, "dbt refuses", refused, before)
            gated = self.ask("gate", "--state", str(self.state), "--with", "select")
            answer = Said(*named, gated["decision"], self.why(gated), before, _tests(gated))
            answer.wrong = answer.wrong or self.missed(edit, gated["selection"])
            return answer
        finally:
            for path in edit.files:
                (self.folder / path).unlink(missing_ok=True)
                if (self.clean / path).exists():
                    shutil.copy(self.clean / path, self.folder / path)
            self.reset()

    def make(self, edit: Edit) -> None:
        """Make an edit, and be sure that it was made."""
        for path, change in edit.files.items():
            file = self.folder / path
            if change is None:
                file.unlink()
                continue
            if isinstance(change, str):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(change)
                continue
            text = file.read_text()
            for old, new in change:
                if old == "@first_row":
                    header, first, *rest = text.splitlines()
                    text = "\n".join([header, _another_value(first), *rest]) + "\n"
                    continue
                if old not in text:
                    raise SystemExit(f"{self.name}: {edit.what}: {path} has no {old!r}")
                text = text.replace(old, new, 1)
            file.write_text(text)

    def ask(self, *arguments: str) -> dict[str, Any]:
        """The JSON that a command prints in the project's folder."""
        from dbt_ripple.cli import cli

        answer, aside = io.StringIO(), io.StringIO()
        command = [*arguments, "--project-dir", str(self.folder), "--format", "json"]
        with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(aside):
            cli(command, prog_name="dbt-ripple", standalone_mode=False, obj=[])
        document = json.loads(answer.getvalue())
        assert isinstance(document, dict)
        return document

    def why(self, gated: dict[str, Any]) -> str:
        """Why the gate decided as it did, in a few words."""
        from dbt_ripple.artifacts import read_project

        base, head = read_project(self.state), read_project(self.folder / "target")
        nodes = {**base.nodes, **head.nodes}
        reasons = []
        for finding in gated["findings"]:
            if finding["level"] == "known":
                continue
            of = finding["unique_id"]
            column = f".{finding['column']}" if finding["column"] else ""
            where = f"{nodes[of].name}{column}: " if of else ""
            reasons.append(where + finding["message"])
        removed = [n for u, n in base.nodes.items() if u not in head.nodes and u[:5] != "test."]
        reasons += [f"{n.resource_type.replace('_', ' ')} {n.name} is removed" for n in removed]
        if not reasons:
            from dbt_ripple.changes import compare

            changed = compare(base, head).changed
            names = [nodes[unique_id].name for unique_id in changed]
            reasons = [f"only {', '.join(names)}" if names else "nothing changed"]
        return "; ".join(reasons)

    def missed(self, edit: Edit, selection: dict[str, Any]) -> str:
        """What the build says and the answer does not."""
        head = self.results()
        failed = [n for n, status in head.items() if status[0] == "error"]
        if self.builds and bool(failed) != edit.breaking and not self.only_semantic(selection):
            return f"the build says otherwise: {failed}"
        selected = {s["unique_id"] for s in (*selection["tests"], *selection["blocked"])}
        both = self.base.keys() & head.keys()
        ran = (n for n in both if "skipped" not in (head[n][0], self.base[n][0]))
        unseen = [
            n for n in ran if n[:5] == "test." and head[n] != self.base[n] and n not in selected
        ]
        return f"not selected: {', '.join(sorted(unseen))}" if unseen else ""

    def only_semantic(self, selection: dict[str, Any]) -> bool:
        """Whether all that is broken is of the semantic layer, which no build executes."""
        kinds = {broken["unique_id"].split(".")[0] for broken in selection["broken"]}
        return bool(kinds) and not kinds & {"model", "test", "seed", "snapshot"}


def _tests(gated: dict[str, Any]) -> str:
    """How many tests are to run, and how many dbt would."""
    counts = gated["selection"]["counts"]
    return f"{counts['impacted_tests']} of {counts['all_tests']} ({counts['state_modified_tests']})"


def _another_value(row: str) -> str:
    """A row of a CSV file with another last digit."""
    place = max(i for i, letter in enumerate(row) if letter.isdigit())
    return f"{row[:place]}{(int(row[place]) + 1) % 10}{row[place + 1 :]}"


def table(answers: list[Said]) -> Iterator[str]:
    """What was said of one project's edits."""
    yield "| edit | gate | why | tests |"
    yield "| --- | --- | --- | --- |"
    for answer in answers:
        mark = f" **({answer.wrong})**" if answer.wrong else ""
        kind = " *(breaks)*" if answer.breaking else ""
        why = _shortened(answer.why, 110).replace("|", "\\|")
        cells = f"{answer.what}{kind}", answer.decision + mark, why, answer.tests
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |")


def summary(answers: dict[str, list[Said]]) -> Iterator[str]:
    """How often each decision was made of the edits of each project, and how many tests these would run."""
    yield "| project | ordinary edits | APPROVED | CAUTION | BLOCKED | edits that break | BLOCKED | dbt refuses | not found | tests to run | by `state:modified+` |"
    yield f"| --- |{' ---: |' * 10}"
    rows = [[name, *_counts(said)] for name, said in answers.items()]
    total = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    for row in (*rows, ["all", *total]):
        yield f"| {' | '.join(map(str, row))} |"


def _counts(answers: list[Said]) -> list[int]:
    ordinary, breaking = (
        [answer.decision for answer in answers if answer.breaking is breaks]
        for breaks in (False, True)
    )
    tests = [re.findall(r"\d+", answer.tests) for answer in answers if answer.tests]
    return [
        len(ordinary),
        *(ordinary.count(decision) for decision in ("APPROVED", "CAUTION", "BLOCKED")),
        len(breaking),
        *(breaking.count(decision) for decision in ("BLOCKED", "dbt refuses")),
        sum(decision in ("APPROVED", "CAUTION") for decision in breaking),
        sum(int(numbers[0]) for numbers in tests),
        sum(int(numbers[2]) for numbers in tests),
    ]


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


_BEGIN: Final = "<!-- made by python/bench/ordinary_edits.py -->"
_SHOWN: Final = "jaffle_shop_duckdb"
"""The project of which the page shows every edit."""


def main() -> int:
    """Judge all edits of the projects that are given, keep what was said, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--work", type=Path, default=Path("target/ordinary_edits"))
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    for name, _, path in (argument.partition("=") for argument in args.projects):
        project = Project(name, Path(path), args.work)
        said = [project.judge(edit) for edit in PROJECTS[name]]
        (args.work / f"{name}.json").write_text(
            json.dumps([asdict(each) for each in said], indent=1)
        )
        print("\n".join((f"## {name}", "", *table(said), "")), flush=True)
    files = {name: args.work / f"{name}.json" for name in PROJECTS}
    answers = {
        name: [Said(**each) for each in json.loads(file.read_text())]
        for name, file in files.items()
        if file.exists()
    }
    if args.write:
        before = args.write.read_text().partition(_BEGIN)[0]
        lines = [_BEGIN, "", *summary(answers)]
        if _SHOWN in answers:
            lines += ["", f"## Every edit of {_SHOWN}", "", *table(answers[_SHOWN])]
        args.write.write_text(before + "\n".join(lines) + "\n")
    wrong = [answer for said in answers.values() for answer in said if answer.wrong]
    print(f"{len(wrong)} not as they should be", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
