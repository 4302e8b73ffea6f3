with

orders as (
    select
        *,
        row_number() over (
            partition by order_id
            order by _loaded_at desc
        ) as version_rank
    from {{ source('raw', 'raw_orders') }}
),

status_mapping as (
    select * from {{ ref('order_status_mapping') }}
),

final as (
    select
        orders.order_id,
        orders.customer_id,
        cast(orders.ordered_at as date) as order_date,
        orders.ordered_at,
        coalesce(status_mapping.status, 'unknown') as status,
        coalesce(status_mapping.is_final, false) as is_final,
        upper(trim(orders.currency)) as currency,
        orders.order_total,
        nullif(trim(orders.legacy_discount_code), '') as legacy_discount_code,
        orders.channel,
        orders.country_code,
        orders._loaded_at as loaded_at
    from orders
    left join status_mapping
        on lower(trim(orders.status)) = status_mapping.raw_status
    where orders.version_rank = 1
)

select * from final
