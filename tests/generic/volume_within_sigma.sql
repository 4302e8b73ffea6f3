{% test volume_within_sigma(model, sigmas=3, days=14, tolerance=0) %}
{#-
    One row where the row count is further from the mean of the trailing days than `sigmas` standard deviations and
    `tolerance` (a share of the mean) allow. What is compared with is what `record_run` recorded: of each day before
    today the last count. Fewer days than `ripple_volume_min_days` pass; slo_status then says `learning`.
-#}
{%- set node_id = dbt_ripple.tested_node(whole=true) -%}
{%- set history = dbt_ripple.existing_run_history() -%}
with counted as (
    select count(*) as row_count
    from {{ model }}
)
{% if history is none %}
{#- Nothing was ever recorded here. #}
select row_count
from counted
where 1 = 0
{% else %},

recorded as (
    select
        row_count,
        row_number() over (
            partition by {{ dbt_ripple.day_of('recorded_at') }}
            order by recorded_at desc, invocation_id desc
        ) as recency
    from {{ history }}
    where
        node_id = {{ dbt_ripple.text_literal(node_id) }}
        and target_name = {{ dbt_ripple.text_literal(target.name) }}
        and row_count is not null
        and recorded_at < {{ dbt_ripple.day_of(dbt_ripple.now_utc()) }}
        and recorded_at >= {{
            dbt.dateadd('day', -(days | int), dbt_ripple.day_of(dbt_ripple.now_utc()))
        }}
),

usual as (
    select
        count(*) as recorded_days,
        avg(row_count) as mean,
        stddev_samp(row_count) as deviation
    from recorded
    where recency = 1
)

select
    counted.row_count,
    usual.recorded_days,
    usual.mean,
    usual.deviation
from counted
cross join usual
where
    usual.recorded_days >= {{ dbt_ripple.raw_setting('volume_min_days') }}
    and abs(counted.row_count - usual.mean) > {{ sigmas }} * usual.deviation
    and abs(counted.row_count - usual.mean) > {{ tolerance }} * usual.mean
{% endif %}
{% endtest %}
