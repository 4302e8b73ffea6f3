select
    order_id,
    order_id! as possible_orders
from {{ ref('stg_orders') }}
