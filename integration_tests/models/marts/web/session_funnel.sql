{{ config(materialized='view') }}

with

steps as (
    select
        sessions.session_id,
        coalesce(sessions.first_utm_source, 'direct') as utm_source,
        exists(
            select 1
            from {{ ref('int_events_exploded') }} as carts
            where
                carts.visitor_id = sessions.visitor_id
                and carts.event_name = 'add_to_cart'
                and carts.occurred_at between sessions.started_at and sessions.ended_at
        ) as has_cart,
        sessions.has_purchase,
        sessions.purchase_value
    from {{ ref('sessions') }} as sessions
)

select
    utm_source,
    count(*) as session_count,
    sum(if(has_cart, 1, 0)) as cart_count,
    sum(if(has_purchase, 1, 0)) as purchase_count,
    sum(purchase_value) as purchase_value
from steps
group by utm_source
