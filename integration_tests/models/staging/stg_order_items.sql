with

items as (
    select * from {{ source('raw', 'raw_order_items') }}
),

orders as (
    select * from {{ source('raw', 'raw_orders') }}
),

final as (
    select
        items.order_item_id,
        items.order_id,
        items.sku,
        split_part(items.sku, '-', 1) as product_line,
        items.qty,
        items.unit_price,
        coalesce(items.discount_pct, 0) as discount_pct,
        cast(items.qty * items.unit_price as decimal(18, 2)) as gross_amount,
        cast(
            items.qty * items.unit_price * (1 - coalesce(items.discount_pct, 0)) as decimal(18, 2)
        ) as net_amount,
        items.is_gift,
        items._loaded_at as loaded_at
    from items
    where
        items.qty > 0
        and exists (
            select 1
            from orders
            where orders.order_id = items.order_id
        )
)

select * from final
