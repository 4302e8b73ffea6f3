select
    session_id,
    event,
    happened_at
from {{ source('raw', 'raw_events_v1') }}
where not is_bot
