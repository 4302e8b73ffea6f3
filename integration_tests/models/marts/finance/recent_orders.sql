{{ config(materialized='view') }}

-- The finance dashboard shows a month; it wants whatever the orders hold.
select *
from {{ ref('fct_orders') }}
where order_date > (select {{ days_before('max(order_date)', 30) }} from {{ ref('fct_orders') }})
