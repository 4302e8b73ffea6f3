-- Branches of a union meet by position: only the first one names the columns.
select
    customer_id,
    'signup' as touchpoint,
    signed_up_at as touched_at,
    cast(null as string) as reference
from {{ ref('stg_customers') }}

union all

select
    customer_id,
    'order' as kind,
    ordered_at,
    cast(order_id as string) as order_reference
from {{ ref('stg_orders') }}
where status != 'cancelled'

union all

select
    customer_id,
    event_name,
    occurred_at,
    event_id
from {{ ref('int_events_exploded') }}
where
    customer_id is not null
    and event_name in ('add_to_cart', 'checkout')
