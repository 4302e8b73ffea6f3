select
    earlier.session_id,
    later.session_id as overlapping_session_id
from {{ ref('sessions') }} as earlier
inner join {{ ref('sessions') }} as later
    on
        earlier.visitor_id = later.visitor_id
        and earlier.session_number < later.session_number
where later.started_at <= earlier.ended_at
