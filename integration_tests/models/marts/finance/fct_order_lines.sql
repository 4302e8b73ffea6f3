{#- Late lines come up to nine days after their order: each run makes the last days again. -#}
{% set can_merge = env_var('RIPPLE_FILE_FORMAT', 'parquet') == 'delta' or target.type == 'duckdb' %}
{{
    config(
        materialized='incremental',
        incremental_strategy=('merge' if can_merge else 'insert_overwrite'),
        unique_key='order_item_id',
        partition_by=['order_date'],
    )
}}

with

lines as (
    select * from {{ ref('int_order_items_priced') }}
    {% if is_incremental() %}
        where order_date >= (select {{ days_before('max(order_date)', 10) }} from {{ this }})
    {% endif %}
)

select
    order_item_id,
    order_id,
    customer_id,
    sku,
    product_line,
    qty,
    currency,
    gross_amount,
    net_amount,
    net_amount_usd,
    order_status,
    loaded_at,
    -- Spark keeps the columns of a partition last.
    order_date
from lines
