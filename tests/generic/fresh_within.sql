{% test fresh_within(model, column_name, count=none, period=none, within=none, business_hours=none, time_zone='UTC') %}
{#-
    One row where the newest timestamp is older than is allowed, or where there is none. `within` says it in words:
    `30 minutes`, or `< 30m` where thirty minutes are too old already. With `business_hours` (`mon-fri 09:00-18:00`), in
    `time_zone`, nothing is too old at other times.
-#}
{%- set allowed = dbt_ripple.read_age(within if within is not none else (count | string) ~ ' ' ~ period) -%}
with newest as (
    select max({{ column_name }}) as newest_at
    from {{ model }}
)

select
    newest_at,
    '{{ allowed.text }}' as allowed
from newest
where
    {% if business_hours is not none and not dbt_ripple.is_business_time(business_hours, time_zone) -%}
    {#- Nobody waits for it now. -#}
    1 = 0
    and
    {%- endif %}
    (
        newest_at is null
        or newest_at {{ '<=' if allowed.strict else '<' }} {{
            dbt.dateadd(allowed.period, -allowed.count, dbt.current_timestamp())
        }}
    )
{% endtest %}
