select
    session_id,
    max(happened_at) - min(happened_at) as duration,
    max(case when event = 'purchase' then 1 else 0 end) as converted
from {{ ref('session_events') }}
group by session_id
