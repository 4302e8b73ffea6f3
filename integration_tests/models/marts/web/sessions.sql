with

events as (
    select
        *,
        lag(occurred_at) over (
            partition by visitor_id
            order by occurred_at, event_id
        ) as previous_at
    from {{ ref('int_events_exploded') }}
),

-- Half an hour of silence ends a session.
starts as (
    select
        *,
        case
            when previous_at is null then 1
            when {{ seconds_between('previous_at', 'occurred_at') }} > 1800 then 1
            else 0
        end as is_start
    from events
),

numbered as (
    select
        *,
        sum(is_start) over (
            partition by visitor_id
            order by occurred_at, event_id
            rows between unbounded preceding and current row
        ) as session_number
    from starts
)

select
    concat(visitor_id, '-', cast(session_number as string)) as session_id,
    visitor_id,
    session_number,
    max(customer_id) as customer_id,
    min(occurred_at) as started_at,
    max(occurred_at) as ended_at,
    {{ seconds_between('min(occurred_at)', 'max(occurred_at)') }} as duration_seconds,
    count(*) as event_count,
    count(distinct page_path) as page_count,
    max(event_name = 'purchase') as has_purchase,
    sum(event_value) as purchase_value,
    min_by(utm_source, occurred_at) as first_utm_source,
    max(device_os) as device_os
from numbered
group by visitor_id, session_number
having count(*) > 0
