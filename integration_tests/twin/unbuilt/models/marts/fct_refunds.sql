select
    order_id,
    order_total
form {{ ref('stg_orders') }}
where status = 'cancelled'
