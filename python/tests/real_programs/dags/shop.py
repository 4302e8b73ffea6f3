"""The DAGs around the shop: one loads `raw_orders`, the other one is the tutorial's revenue report."""

from datetime import datetime

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG

with DAG(
    "load_orders", start_date=datetime(2026, 1, 1), schedule=None, catchup=False, tags=["raw"]
):
    SQLExecuteQueryOperator(
        task_id="load_raw_orders",
        conn_id="warehouse",
        sql="""
            insert into raw.raw_orders (
                order_id, customer_id, ordered_at, order_total, shipping_cost, channel,
                legacy_discount_code
            )
            select id, customer, placed_at, amount_cents / 100.0, shipping_cents / 100.0, channel, voucher
            from landing.orders
        """,
    )

with DAG(
    "daily_revenue_report",
    start_date=datetime(2026, 1, 1),
    schedule=None,
    catchup=False,
    owner_links={"finance": "mailto:finance@shop.example"},
    default_args={"owner": "finance"},
):
    cleared = SQLExecuteQueryOperator(
        task_id="clear",
        conn_id="warehouse",
        sql="drop table if exists reports.daily_revenue",
    )
    built = SQLExecuteQueryOperator(
        task_id="build",
        conn_id="warehouse",
        sql="""
            create table reports.daily_revenue as
            select order_date, sum(order_total) as revenue, count(*) as orders
            from analytics.fct_orders
            group by order_date
        """,
    )
    cleared >> built

with DAG("broken_export", start_date=datetime(2026, 1, 1), schedule=None, catchup=False):
    SQLExecuteQueryOperator(
        task_id="export",
        conn_id="warehouse",
        sql="create table reports.export as select no_such_column from analytics.fct_orders",
    )
