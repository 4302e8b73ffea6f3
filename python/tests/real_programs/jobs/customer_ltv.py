"""The Spark job of the tutorial: what a customer is worth, from fct_orders in PostgreSQL.

Nothing else reads `shipping_cost` and `channel`; `channel` only decides which orders count.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

url = sys.argv[1]
spark = SparkSession.builder.appName("customer_ltv").getOrCreate()
options = {"url": url, "driver": "org.postgresql.Driver"}
orders = spark.read.format("jdbc").options(**options, dbtable="analytics.fct_orders").load()
ltv = (
    orders.where(F.col("channel") != "staff")
    .groupBy("customer_id")
    .agg(F.sum(F.col("order_total") - F.col("shipping_cost")).alias("ltv"))
)
ltv.write.format("jdbc").options(**options, dbtable="ml.customer_ltv").mode("overwrite").save()
spark.stop()
