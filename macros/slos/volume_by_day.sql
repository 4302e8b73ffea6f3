{% macro volume_by_day(relation, by, sigmas, days, tolerance, delay) %}
{%- set today = dbt_ripple.day_of(dbt_ripple.now_utc()) -%}
{#- Twice as many as are judged: what days without rows are usual is seen before them. -#}
{%- set reach = 2 * (days | int) + 1 -%}
{%- set delay = delay | int -%}
-- Day 0 may still get rows; the days before it are whole.
with calendar as (
    {%- for number in range(reach + 1) %}
    select
        {{ number }} as days_ago,
        cast({{ dbt.dateadd('day', 1 - delay - number, today) }} as date) as on_day
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

counted as (
    select
        cast({{ by }} as date) as on_day,
        count(*) as row_count
    from {{ relation }}
    where
        cast({{ by }} as date) >= cast({{ dbt.dateadd('day', 1 - delay - reach, today) }} as date)
    group by cast({{ by }} as date)
),

-- A relation is no older than its first row.
volumes as (
    select
        calendar.days_ago,
        calendar.on_day,
        coalesce(counted.row_count, 0) as volume
    from calendar
    left join counted on calendar.on_day = counted.on_day
    where calendar.on_day >= (select min(on_day) from counted)
),

usual as (
    select
        count(*) as recorded_days,
        avg(cast(volume as {{ dbt_ripple.type_double() }})) as mean,
        stddev_samp(volume) as deviation,
        {{ dbt_ripple.allowed_deviation('volume', sigmas) }} as allowed
    from volumes
    where days_ago between 2 and {{ (days | int) + 1 }}
),

-- Days without rows, one after the other, come after as many days with rows.
with_rows_since as (
    select
        days_ago,
        on_day,
        volume,
        sum(case when volume > 0 then 1 else 0 end) over (
            order by days_ago
            rows between unbounded preceding and current row
        ) as gap
    from volumes
    where days_ago > 0
),

gaps as (
    select
        gap,
        count(*) as days,
        min(days_ago) as ended_days_ago,
        max(on_day) as last_day
    from with_rows_since
    where volume = 0
    group by gap
),

ranked as (
    select
        gap,
        days,
        ended_days_ago,
        last_day,
        row_number() over (order by days desc, gap) as place,
        lead(days) over (order by days desc, gap) as next_longest
    from gaps
),

found as (
    select
        volumes.on_day,
        volumes.volume,
        1 as days
    from volumes
    cross join usual
    where
        (
            volumes.days_ago = 1
            -- What is not over yet may already be too much.
            or (volumes.days_ago = 0 and volumes.volume > usual.mean)
        )
        and abs(volumes.volume - usual.mean) > usual.allowed
        and abs(volumes.volume - usual.mean) > {{ tolerance }} * usual.mean
        and abs(volumes.volume - usual.mean) >= 1

    union all

    -- Much longer without rows than ever; a single day is told while it is the last one.
    select
        last_day as on_day,
        0 as volume,
        days
    from ranked
    where
        place = 1
        and ended_days_ago <= {{ days }}
        and days > 4 * coalesce(next_longest, 0)
        and (days > 1 or ended_days_ago = 1)
)

select
    found.on_day,
    found.volume,
    found.days,
    usual.recorded_days,
    usual.mean,
    usual.deviation
from found
cross join usual
where usual.recorded_days >= {{ dbt_ripple.raw_setting('volume_min_days') }}
{% endmacro %}
