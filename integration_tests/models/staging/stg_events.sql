select
    batch_id,
    customer_id,
    visitor_id,
    received_at,
    device.os as device_os,
    device.browser as device_browser,
    device.geo.country as country_code,
    device.geo.city as visit_city,
    {{ json_value('context', '$.utm.source') }} as utm_source,
    {{ json_value('context', '$.utm.campaign') }} as utm_campaign,
    {{ json_value('context', '$.ab') }} as experiment_arm,
    {{ array_size('events') }} as event_count,
    array_contains(tags, 'promo') as is_promo_visit,
    tags,
    events
from {{ source('raw', 'events') }}
