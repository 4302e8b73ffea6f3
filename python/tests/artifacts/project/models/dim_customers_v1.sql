{{ config(materialized='incremental', unique_key='customer_id', on_schema_change='fail') }}
select customer_id, sum(amount) as amount from {{ ref('eph_orders') }} group by 1
