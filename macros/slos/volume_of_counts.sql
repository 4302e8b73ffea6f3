{% macro volume_of_counts(relation, sigmas, days, tolerance, of) %}
{%- set node_id = dbt_ripple.tested_node(whole=true) -%}
{%- set test_id = dbt_ripple.compiled_test() -%}
{%- set history = dbt_ripple.existing_raw_table('run_history') -%}
{%- set now = dbt_ripple.now_utc() -%}
{%- set today = dbt_ripple.day_of(now) -%}
{%- set double = dbt_ripple.type_double() -%}
with counted as (
    select count(*) as row_count
    from {{ relation }}
)
{% if history is none %}
{#- Nothing was ever recorded here. #}
select row_count
from counted
where 1 = 0
{% else %},

-- Of each day before today, the count that was made at the time nearest to this time of day.
recorded as (
    select
        recorded_at,
        row_count,
        row_number() over (
            partition by {{ dbt_ripple.day_of('recorded_at') }}
            order by
                abs(
                    {{ dbt_ripple.seconds_between(dbt_ripple.day_of('recorded_at'), 'recorded_at') }}
                    - {{ dbt_ripple.seconds_between(today, now) }}
                ),
                recorded_at desc,
                invocation_id desc
        ) as nearness,
        -- A day on which this test failed, and did not pass later, is no example for others.
        max(
            case
                when unique_id = {{ dbt_ripple.text_literal(test_id) }} and status in ('fail', 'warn') then 1
                else 0
            end
        ) over (partition by {{ dbt_ripple.day_of('recorded_at') }})
        * min(
            case when unique_id = {{ dbt_ripple.text_literal(test_id) }} and status = 'pass' then 0 else 1 end
        ) over (partition by {{ dbt_ripple.day_of('recorded_at') }}) as is_unusual
    from {{ history }}
    where
        node_id = {{ dbt_ripple.text_literal(node_id) }}
        and target_name = {{ dbt_ripple.text_literal(target.name) }}
        and (test_name is null or test_name = 'volume_within_sigma')
        and row_count is not null
        and recorded_at < {{ today }}
        {#- The first of the days has no growth, only the others have. #}
        and recorded_at >= {{ dbt.dateadd('day', -((days | int) + (1 if of == 'delta' else 0)), today) }}
),

samples as (
    select
        recorded_at,
        row_count,
        is_unusual,
        lag(row_count) over (order by recorded_at) as previous_count,
        lag(recorded_at) over (order by recorded_at) as previous_at,
        row_number() over (order by recorded_at desc) as recency,
        row_number() over (partition by is_unusual order by recorded_at desc) as recency_of_kind
    from recorded
    where nearness = 1
),

-- A day that was not counted shares what came until the next count.
volumes as (
    select
        recorded_at,
        is_unusual,
        {% if of == 'delta' -%}
        cast(row_count - previous_count as {{ double }})
        / greatest(round({{ dbt_ripple.seconds_between('previous_at', 'recorded_at') }} / 86400.0), 1) as volume
        {%- else -%}
        cast(row_count as {{ double }}) as volume
        {%- endif %}
    from samples
),

usual as (
    select
        count(*) as recorded_days,
        avg(volume) as mean,
        stddev_samp(volume) as deviation,
        {% if of == 'delta' -%}
        {{ dbt_ripple.allowed_deviation('volume', sigmas) }} as allowed
        {%- else -%}
        {{ sigmas }} * stddev_samp(volume) as allowed
        {%- endif %}
    from volumes
    where is_unusual = 0
),

{% if of == 'delta' -%}
-- After days that were lost and are there again, it is what grew since the last usual day that is usual.
now_counted as (
    select
        counted.row_count,
        cast(counted.row_count - samples.row_count as {{ double }})
        / greatest(round({{ dbt_ripple.seconds_between('samples.recorded_at', now) }} / 86400.0), 1) as volume
    from counted
    cross join samples
    where
        samples.recency = 1
        or (samples.is_unusual = 0 and samples.recency_of_kind = 1)
),

grown as (
    select
        volume,
        recorded_at,
        max(case when volume != 0 then recorded_at end) over () as last_grown_at
    from volumes
),

-- Whether it grew on each day until it stopped.
standstill as (
    select
        case
            when
                count(case when volume != 0 then 1 end) >= 3
                and count(case when volume = 0 and recorded_at < last_grown_at then 1 end) = 0
                then 1
            else 0
        end as always_grew
    from grown
),
{%- else -%}
now_counted as (
    select
        row_count,
        cast(row_count as {{ double }}) as volume
    from counted
),

standstill as (
    select 0 as always_grew
),
{%- endif %}

judged as (
    select
        now_counted.row_count,
        now_counted.volume,
        usual.recorded_days,
        usual.mean,
        usual.deviation,
        case
            when standstill.always_grew = 1 and now_counted.volume = 0 then 1
            when
                abs(now_counted.volume - usual.mean) > usual.allowed
                and abs(now_counted.volume - usual.mean) > {{ tolerance }} * abs(usual.mean)
                {#- Less than a row is nothing but the division. #}
                and abs(now_counted.volume - usual.mean) >= 1
                then 1
            else 0
        end as is_unusual
    from now_counted
    cross join usual
    cross join standstill
)

select
    row_count,
    recorded_days,
    mean,
    deviation,
    min(volume) as volume
from judged
group by row_count, recorded_days, mean, deviation
having
    min(is_unusual) = 1
    and recorded_days >= {{ dbt_ripple.raw_setting('volume_min_days') }}
{% endif %}
{% endmacro %}
