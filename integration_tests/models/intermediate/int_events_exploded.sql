with

batches as (
    select * from {{ ref('stg_events') }}
),

exploded as (
    select
        batches.batch_id,
        batches.visitor_id,
        batches.customer_id,
        batches.device_os,
        batches.country_code,
        batches.utm_source,
        event
    from batches
        {{ explode_as('batches.events', 'event') }}
)

select
    event.event_id,
    batch_id,
    visitor_id,
    customer_id,
    event.name as event_name,
    event.occurred_at,
    event.page as page_path,
    event.value as event_value,
    device_os,
    country_code,
    utm_source
from exploded
