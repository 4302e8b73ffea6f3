"""The Spark job that the shop declares (`spark:train_churn`), on tables of Spark's own catalog."""

import sys

from pyspark.sql import SparkSession

made = SparkSession.builder.appName("train_churn").enableHiveSupport()
spark = made.config("spark.sql.warehouse.dir", sys.argv[1]).getOrCreate()
for schema in ("shop", "ml"):
    spark.sql(f"create schema if not exists {schema}")
spark.sql(
    """
    create or replace temporary view landed as
    select * from values
        (1, 10, date '2026-11-01', date '2026-10-01', false, 'paid', 12.5),
        (2, 11, date '2026-11-02', date '2026-10-05', false, 'open', 20.0)
        as t (order_id, customer_id, order_date, previous_order_date, is_cancelled, payment_state,
              order_total_usd)
    """
)
spark.sql("create table shop.fct_orders using parquet as select * from landed")
spark.sql(
    """
    create table ml.order_frequency using parquet as
    with ordered as (
        select customer_id, order_total_usd, datediff(order_date, previous_order_date) as gap
        from shop.fct_orders
        where not is_cancelled and payment_state = 'paid'
    )
    select customer_id, count(*) as orders, avg(gap) as days_between, sum(order_total_usd) as spent_usd
    from ordered
    group by customer_id
    """
)
spark.stop()
